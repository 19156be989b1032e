"""Cubes on disk: nothing is lost, nothing is half written, and a training job can append."""

import json
import multiprocessing
import os
import sys
import warnings

import numpy as np
import pytest
import xarray as xr

from cvstats._check import InputError
from cvstats.cube.make import as_cube
from cvstats.formats import _netcdf
from cvstats.read import EXAMPLES, compact_cube, example_cube, load_report, read_cube, read_predictions, write_cube

RNG = np.random.default_rng(3)


def cube_of(labels, *, configurations=("a", "a longer name"), repeats=2, **options):
    n = len(labels)
    values = RNG.random((n, len(configurations), repeats))
    values[1, 0, 0] = np.nan
    folds = np.arange(n * repeats).reshape(n, repeats) % 3
    return as_cube(values, labels, configurations=list(configurations), folds=folds, kind="probability", **options)


def bare(cube):
    cube = cube.copy()
    cube.attrs = {}
    return cube


LABELS = {
    "int": np.array([0, 1, 1, 0, 1]),
    "bool": np.array([False, True, True, False, True]),
    "str": np.array(["no", "yes", "yes", "no", "ünïcode"])[[0, 4, 4, 0, 4]],
    "float": np.array([0.0, 1.0, 1.0, 0.0, 1.0]),
}


@pytest.mark.parametrize("suffix", [".nc", ".cube"])
@pytest.mark.parametrize("kind", LABELS)
def test_round_trip_loses_nothing(tmp_path, suffix, kind):
    positive = "ünïcode" if kind == "str" else None
    cube = cube_of(
        LABELS[kind], positive=positive, groups=["g1", "g1", "g2", "g2", "a longer group"], weights=[1, 2, 3, 4, 5.5]
    )
    cube = cube.assign_coords(
        complexity=("configuration", [3, 1]), family=("configuration", np.array(["x", "yy"], "<U30"))
    )
    cube = cube.assign_coords(
        half=("sample", np.arange(5, dtype=np.float16)), flag=("sample", LABELS["bool"]), dataset="one"
    )
    cube.attrs = {"load_report": '{"a": 1}', "number": 3, "list": [1, 2], "flag": True, "nothing": None}
    path = tmp_path / f"cube{suffix}"
    write_cube(cube, path)
    back = read_cube(path)
    assert back.identical(cube)
    assert back.dtype == cube.dtype
    assert list(back.coords) == list(cube.coords)
    for name in cube.coords:
        assert back[name].dtype == cube[name].dtype, name
    assert back.attrs == cube.attrs
    assert not [p for p in tmp_path.iterdir() if p != path]


@pytest.mark.parametrize("suffix", [".nc", ".cube"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_round_trip(tmp_path, suffix, name):
    cube = example_cube(name).isel(configuration=slice(0, 5))
    write_cube(cube, tmp_path / f"x{suffix}")
    assert read_cube(tmp_path / f"x{suffix}").identical(cube)
    again = read_predictions(tmp_path / f"x{suffix}")
    assert load_report(again) == load_report(cube)


@pytest.mark.parametrize("suffix", [".nc", ".cube"])
def test_dims_in_any_order_float32_and_labels_as_predictions(tmp_path, suffix):
    cube = cube_of(LABELS["int"]).astype(np.float32).transpose("repeat", "configuration", "sample")
    write_cube(cube, tmp_path / f"x{suffix}")
    assert read_cube(tmp_path / f"x{suffix}").identical(cube)
    labels = as_cube([["u", "v"], ["v", "v"], ["w", "u"]], ["u", "v", "w"])
    write_cube(labels, tmp_path / f"x{suffix}")
    assert read_cube(tmp_path / f"x{suffix}").identical(labels)


@pytest.mark.parametrize("suffix", [".nc", ".cube"])
def test_dask_backed(tmp_path, suffix):
    cube = example_cube()
    write_cube(cube, tmp_path / f"x{suffix}")
    lazy = read_cube(tmp_path / f"x{suffix}", chunks={"configuration": 50})
    assert lazy.chunks[1] == (50, 50, 33)
    assert lazy.compute().identical(cube)
    write_cube(lazy, tmp_path / f"again{suffix}")
    assert read_cube(tmp_path / f"again{suffix}").identical(cube)


def test_files_of_other_software(tmp_path):
    cube = cube_of(LABELS["str"], positive="no")
    cube.to_dataset(name="prediction").to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    back = read_cube(tmp_path / "x.nc")
    xr.testing.assert_equal(back, cube)
    assert back["label"].dtype.kind == "U"
    cube.to_dataset(name="other").to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    with pytest.raises(InputError, match=r"no variable 'prediction'; found 'other'"):
        read_cube(tmp_path / "x.nc")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    cube = cube_of(LABELS["int"])
    for suffix in (".nc", ".cube", ".csv"):
        path = tmp_path / f"x{suffix}"
        write_cube(cube, path)
        before = read_predictions(path)

        def fail(*args, **kwargs):
            raise RuntimeError("disk full")

        with monkeypatch.context() as patch:
            patch.setattr(xr.Dataset, "dump_to_store", fail)
            patch.setattr("pandas.DataFrame.to_csv", fail)
            with pytest.raises(RuntimeError, match=r"disk full"):
                write_cube(cube * 0 + 0.5, path)
        xr.testing.assert_equal(read_predictions(path), before)
        assert {p.name for p in tmp_path.iterdir()} <= {"x.nc", "x.cube", "x.csv"}


def test_write_errors(tmp_path):
    cube = cube_of(LABELS["int"])
    with pytest.raises(InputError, match=r"must be an xarray.DataArray made by as_cube"):
        write_cube(cube.to_dataset(name="x"), tmp_path / "x.nc")
    with pytest.raises(InputError, match=r"cannot tell the format of 'x.xlsx'"):
        write_cube(cube, tmp_path / "x.xlsx")
    with pytest.raises(InputError, match=r"no such folder"):
        write_cube(cube, tmp_path / "nowhere" / "x.nc")
    with pytest.raises(InputError, match=r"append=True needs a store"):
        write_cube(cube, tmp_path / "x.nc", append=True)
    with pytest.raises(InputError, match=r"`cube` has no dimension 'configuration'"):
        write_cube(cube.isel(configuration=0), tmp_path / "x.nc")
    (tmp_path / "folder.cube").mkdir()
    (tmp_path / "folder.cube" / "precious.txt").write_text("keep")
    (tmp_path / "file.cube").write_text("keep")
    for append in (False, True):
        for name in ("folder.cube", "file.cube"):
            with pytest.raises(InputError, match=r"exists and is not a cube store"):
                write_cube(cube, tmp_path / name, append=append)
    with pytest.raises(InputError, match=r"x.zarr: Zarr is not written; use .cube, or .*to_zarr\(path\) of xarray"):
        write_cube(cube, tmp_path / "x.zarr")
    several = cube.rename(configuration="c", repeat="r").stack(configuration=("c", "r"))
    for name in ("x.nc", "x.cube"):
        with pytest.raises(InputError, match=r"coordinate 'configuration' is a MultiIndex, which files cannot hold"):
            write_cube(several, tmp_path / name)
    odd = cube.assign_coords(mix=("sample", np.array(["a", 1, 2, 3, 4], dtype=object)))
    with pytest.raises(InputError, match=r"coordinate 'mix' holds 'int' among text"):
        write_cube(odd, tmp_path / "x.nc")
    with pytest.raises(InputError, match=r"attributes must be text, numbers or lists"):
        write_cube(cube.assign_attrs(x={1, 2}), tmp_path / "x.nc")


def test_read_errors(tmp_path):
    with pytest.raises(InputError, match=r"no such file"):
        read_cube(tmp_path / "x.nc")
    (tmp_path / "x.nc").write_text("sample,prediction\n")
    with pytest.raises(InputError, match=r"not a netCDF-4 file .* use read_predictions\(\)"):
        read_cube(tmp_path / "x.nc")
    write_cube(cube_of(LABELS["int"]), tmp_path / "y.nc")
    (tmp_path / "x.nc").write_bytes((tmp_path / "y.nc").read_bytes()[:700])
    with pytest.raises(InputError, match=r"corrupt, cut off or holds no cube"):
        read_cube(tmp_path / "x.nc")
    (tmp_path / "z.cube").mkdir()
    with pytest.raises(InputError, match=r"a folder but not a cube store"):
        read_cube(tmp_path / "z.cube")
    for read in (read_cube, read_predictions):
        with pytest.raises(InputError, match=r'z.zarr: .*xarray.open_zarr\(path\)\["prediction"\]'):
            read(tmp_path / "z.zarr")


def test_a_stored_cube_is_settled(tmp_path):
    write_cube(example_cube(), tmp_path / "x.nc")
    assert read_predictions(tmp_path / "x.nc", positive="malignant").identical(example_cube())
    with pytest.raises(InputError, match=r"`positive`='benign', but this cube was written with positive 'malignant'"):
        read_predictions(tmp_path / "x.nc", positive="benign")
    with pytest.raises(InputError, match=r"`kind`='score', but this cube was written with kind 'probability'"):
        read_predictions(tmp_path / "x.nc", kind="score")
    with pytest.raises(InputError, match=r"`labels` is for tables"):
        read_predictions(tmp_path / "x.nc", labels=[1])


# -- appending


def test_configurations_one_by_one(tmp_path):
    cube = example_cube().isel(configuration=slice(0, 6))
    path = tmp_path / "run.cube"
    for name in cube["configuration"].values:
        write_cube(cube.sel(configuration=[name]), path, append=True)
    assert bare(read_cube(path)).identical(bare(cube))
    lazy = read_cube(path, chunks={})
    assert lazy.chunks[0] == (120,)


def test_folds_and_repeats_as_they_finish(tmp_path):
    cube = example_cube().isel(configuration=slice(0, 3), repeat=slice(0, 2))
    cube = cube.drop_vars(
        [name for name in cube.coords if cube[name].dims == ("configuration",) and name != "configuration"]
    )
    path = tmp_path / "run.cube"
    for r in cube["repeat"].values:
        one = cube.sel(repeat=[r])
        for k in range(10):
            write_cube(one.where(one["fold"] == k), path, append=True)
            if r == 0 and k == 3:
                part = read_cube(path)
                assert int(part.notnull().any("configuration").sum()) == int((cube["fold"].sel(repeat=0) <= 3).sum())
    assert bare(read_cube(path)).identical(bare(cube))


def test_only_the_samples_of_a_fold(tmp_path):
    cube = example_cube("diabetes").isel(configuration=slice(0, 3), repeat=0, drop=True)
    path = tmp_path / "run.cube"
    for k in range(10):
        write_cube(cube.isel(sample=np.flatnonzero(cube["fold"].values == k)), path, append=True)
    back = read_cube(path).sel(sample=cube["sample"])
    assert bare(back).identical(bare(cube))


def test_a_run_resumes_without_harm(tmp_path):
    cube = cube_of(LABELS["int"], configurations=["a", "b", "c"])
    path = tmp_path / "run.cube"
    write_cube(cube.isel(configuration=slice(0, 2)), path, append=True)
    write_cube(cube, path, append=True)
    write_cube(cube, path, append=True)
    assert read_cube(path).identical(cube)


def test_longer_names_and_any_order(tmp_path):
    cube = cube_of(LABELS["str"], positive="no", configurations=["a", "a very much longer name", "ü"])
    path = tmp_path / "run.cube"
    write_cube(cube.isel(configuration=[0]), path, append=True)
    write_cube(cube.isel(configuration=[2, 1], sample=[4, 3, 2, 1, 0]), path, append=True)
    back = read_cube(path)
    assert back["configuration"].values.tolist() == ["a", "ü", "a very much longer name"]
    xr.testing.assert_equal(back.sel(configuration=cube["configuration"]), cube)


def test_nothing_is_overwritten(tmp_path):
    cube = cube_of(LABELS["int"])
    path = tmp_path / "run.cube"
    write_cube(cube, path, append=True)
    with pytest.raises(
        InputError,
        match=r"9 cells are already stored with another prediction; first sample 0, configuration 'a', repeat 0",
    ):
        write_cube((cube * 0.5).assign_attrs(cube.attrs).where(cube["configuration"] == "a"), path, append=True)
    other = as_cube(
        cube.values, 1 - LABELS["int"], configurations=["c", "d"], folds=cube["fold"].values, kind="probability"
    )
    with pytest.raises(InputError, match=r"conflicting label: sample 0 has 0 in the store but 1 in `cube`"):
        write_cube(other, path, append=True)
    with pytest.raises(InputError, match=r"'kind' is 'probability' in the store but 'score'"):
        write_cube(cube.assign_coords(kind="score"), path, append=True)
    with pytest.raises(InputError, match=r"only in the store: 'fold'; only in `cube`: none"):
        write_cube(cube.drop_vars("fold"), path, append=True)
    with pytest.raises(InputError, match=r"the store has dims .* cube.expand_dims\(repeat="):
        write_cube(cube.isel(repeat=0, drop=True), path, append=True)
    with pytest.raises(
        InputError, match=r"the configuration names are <U13 in the store but int64 in `cube`; use one type"
    ):
        write_cube(cube.assign_coords(configuration=[1, 2]), path, append=True)
    classes = example_cube("iris").isel(configuration=[0])
    write_cube(classes, tmp_path / "iris.cube", append=True)
    with pytest.raises(InputError, match=r"the classes are .* in the store but 'x', 'y', 'z' in `cube`"):
        write_cube(
            classes.assign_coords(label_class=["x", "y", "z"], configuration=["new"]),
            tmp_path / "iris.cube",
            append=True,
        )
    assert read_cube(path).identical(cube)


@pytest.mark.parametrize("crash", ["part", "manifest"])
def test_a_job_that_dies_leaves_the_store_as_it_was(tmp_path, monkeypatch, crash):
    cube = cube_of(LABELS["int"], configurations=[f"c{i}" for i in range(4)])
    path = tmp_path / "run.cube"
    write_cube(cube.isel(configuration=slice(0, 2)), path, append=True)
    before, replace = read_cube(path), os.replace

    def die(old, new):
        if crash in str(new):
            raise KeyboardInterrupt
        replace(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            write_cube(cube.isel(configuration=slice(2, 4)) * 0.5, path, append=True)
    assert read_cube(path).identical(before)
    write_cube(cube.isel(configuration=slice(2, 4)), path, append=True)
    assert read_cube(path).identical(cube)


def test_what_the_manifest_does_not_name_is_not_read_and_removed_by_the_next_writer(tmp_path):
    path, cube = tmp_path / "run.cube", cube_of([0, 1, 0, 1])
    write_cube(cube.isel(configuration=[0]), path, append=True)
    (path / "part-000002.nc").symlink_to(tmp_path / "gone")
    (path / ".manifest.json.tmp").write_bytes(b"half")
    (path / "notes.txt").write_text("mine")
    assert bare(read_cube(path)).identical(bare(cube.isel(configuration=[0])))
    write_cube(cube, path, append=True)
    assert sorted(file.name for file in path.iterdir()) == [
        ".lock", "manifest.json", "notes.txt", "part-000001.nc", "part-000002.nc",
    ]  # fmt: skip
    assert bare(read_cube(path)).identical(bare(cube))


def test_what_is_known_already_is_not_written_again(tmp_path):
    path, cube = tmp_path / "run.cube", cube_of(LABELS["int"])
    for part in (cube, cube.isel(configuration=[1]), cube.isel(sample=[3, 1]), cube.where(cube["fold"] == 1)):
        write_cube(part, path, append=True)
    assert len(list(path.glob("part-*"))) == 1


def test_replacing_a_store(tmp_path):
    path, cube = tmp_path / "run.cube", cube_of(LABELS["int"])
    write_cube(cube, path)
    write_cube(cube * 0.5, path)
    assert read_cube(path).equals(cube * 0.5)
    assert [file.name for file in path.glob("part-*")] == ["part-000002.nc"]


def test_parts_that_are_missing_damaged_or_in_conflict(tmp_path):
    path, cube = tmp_path / "run.cube", cube_of(LABELS["int"])
    for name in cube["configuration"].values:
        write_cube(cube.sel(configuration=[name]), path, append=True)
    part = path / "part-000002.nc"
    whole = part.read_bytes()
    lazy = read_cube(path, chunks={})
    for raw, words in (
        (None, "run.cube/part-000002.nc is missing, and with it predictions that were stored"),
        (whole[:-1], f"run.cube/part-000002.nc is damaged: it has {len(whole) - 1:,} bytes instead of {len(whole):,}"),
        (whole[:-1] + b"x", "run.cube/part-000002.nc is damaged: its hash is not the one in manifest.json"),
    ):
        part.unlink(missing_ok=True)
        if raw is not None:
            part.write_bytes(raw)
        for read in (lambda: read_cube(path), lazy.compute):
            with pytest.raises(InputError, match=words):
                read()
    part.write_bytes(whole)
    assert lazy.compute().equals(cube)
    other = tmp_path / "other.cube"
    write_cube((cube * 0.5).assign_attrs(cube.attrs), other)
    manifest = json.loads((path / "manifest.json").read_text())
    (other / "part-000001.nc").rename(path / "part-000003.nc")
    manifest["parts"] += [{**json.loads((other / "manifest.json").read_text())["parts"][0], "file": "part-000003.nc"}]
    (path / "manifest.json").write_text(json.dumps(manifest))
    words = r"\d+ cells are already stored .* first sample 0, configuration 'a.*', repeat 0, .* in part-000003.nc"
    for read in (lambda: read_cube(path), lambda: compact_cube(path), read_cube(path, chunks={}).compute):
        with pytest.raises(InputError, match=words):
            read()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"cvstats_cube": 1, "parts": []}', '{"cvstats_cube": 1, "parts": [{"file": "../x"}]}']
)
def test_a_damaged_manifest(tmp_path, text):
    path, cube = tmp_path / "run.cube", cube_of(LABELS["int"])
    write_cube(cube, path)
    (path / "manifest.json").write_text(text)
    for attempt in (lambda: read_cube(path), lambda: write_cube(cube, path, append=True), lambda: compact_cube(path)):
        with pytest.raises(InputError, match=r"run.cube: manifest.json is damaged"):
            attempt()
    (path / "manifest.json").write_text('{"cvstats_cube": 2, "parts": []}')
    with pytest.raises(InputError, match="the store has version 2; this cvstats knows 1"):
        read_cube(path)


def test_compact(tmp_path):
    path, cube = tmp_path / "run.cube", example_cube().isel(configuration=slice(0, 7))
    tuning = [name for name in cube.coords if cube[name].dims == ("configuration",) and name != "configuration"]
    cube, more = cube.drop_vars(tuning), example_cube().drop_vars(tuning)
    with pytest.raises(InputError, match="no such file"):
        compact_cube(path)
    for k in (0, 1, 2):
        write_cube(cube.where(cube["fold"] == k), path, append=True)
    before = read_cube(path)
    compact_cube(path)
    assert [file.name for file in path.glob("part-*")] == ["part-000004.nc"]
    assert read_cube(path).identical(before)
    compact_cube(path)
    assert [file.name for file in path.glob("part-*")] == ["part-000004.nc"]
    write_cube(more, path, append=True)
    assert bare(read_cube(path)).identical(bare(more))


def test_a_store_larger_than_memory_is_several_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(_netcdf, "PORTION", 120 * 5 * 20)
    path, cube = tmp_path / "run.cube", example_cube()
    write_cube(cube.chunk(configuration=8), path)
    assert len(list(path.glob("part-*"))) == 9
    lazy = read_cube(path, chunks={})
    assert lazy.chunks[1] == (16,) * 8 + (5,)
    assert lazy.compute().identical(cube)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX locks")
def test_a_link_to_a_store_is_the_store(tmp_path):
    cube = cube_of(LABELS["int"], configurations=[f"c{i}" for i in range(6)])
    path = tmp_path / "run.cube"
    write_cube(cube.isel(configuration=[0]), path)
    (tmp_path / "link.cube").symlink_to("run.cube")
    context = multiprocessing.get_context("spawn")
    jobs = [
        context.Process(target=_append, args=(tmp_path / name, cube.isel(configuration=place)))
        for name, place in (("run.cube", slice(1, 3)), ("link.cube", slice(3, 6)))
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(120)
    xr.testing.assert_equal(read_cube(path).sel(configuration=cube["configuration"]), cube)


def _append(path, values):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_cube(values, path, append=True)


def test_processes_append_together(tmp_path):
    cube = cube_of(LABELS["int"], configurations=[f"c{i}" for i in range(6)])
    path = tmp_path / "run.cube"
    context = multiprocessing.get_context("spawn")
    jobs = [context.Process(target=_append, args=(path, cube.isel(configuration=slice(i, i + 3)))) for i in (0, 3)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(120)
    back = read_cube(path)
    xr.testing.assert_equal(back.sel(configuration=cube["configuration"]), cube)


def test_report_is_plain_json():
    assert json.loads(example_cube().attrs["load_report"])["samples"] == 120


def test_chunks_of_a_file_split_configurations_only(tmp_path, monkeypatch):
    monkeypatch.setattr(_netcdf, "CHUNK_VALUES", 120 * 5 * 50)
    write_cube(example_cube(), tmp_path / "x.nc")
    assert read_cube(tmp_path / "x.nc", chunks={}).chunks == ((120,), (50, 50, 33), (5,))


# -- examples


def test_examples_are_what_they_say():
    cube = example_cube()
    assert dict(cube.sizes) == {"sample": 120, "configuration": 133, "repeat": 5}
    assert (cube["label"] == "malignant").sum().item() == 45
    assert not cube.isnull().any()
    assert cube["complexity"].values.tolist() == list(range(1, 134))
    counts = [np.bincount(cube["fold"].sel(repeat=r)).tolist() for r in range(5)]
    assert counts == [[12] * 10] * 5
    inner = example_cube("breast_cancer_inner")
    assert dict(inner.sizes) == {"sample": 120, "configuration": 133, "outer_fold": 10, "repeat": 5}
    own = cube["fold"] == inner["outer_fold"]
    assert bool((inner.isnull().all("configuration") == own).all())
    assert bool(((inner["fold"] == -1) == own).all())
    training = example_cube("breast_cancer_training")
    assert bool((training.isnull().all("configuration") == own.sel(repeat=0)).all())
    for other in (inner, training):
        for name in ("sample", "configuration", "label"):
            np.testing.assert_array_equal(other[name], cube[name])
    separate = example_cube("breast_cancer_separate")
    assert (separate["label"] == "malignant").sum().item() == 60
    assert not separate.isnull().any()
    with pytest.raises(InputError, match=r"did you mean 'iris'"):
        example_cube("irris")


def test_example_predicts_other_patients_about_as_well():
    from sklearn.metrics import roc_auc_score

    cube = example_cube().isel(configuration=slice(None, None, 4), repeat=0)
    y = (cube["label"] == "malignant").values
    auc = [roc_auc_score(y, column) for column in cube.values.T]
    assert np.corrcoef(auc, cube["test_auc"])[0, 1] > 0.85


def test_appending_needs_labels(tmp_path):
    cube = cube_of(LABELS["int"]).expand_dims(trial=2)
    for append in (False, True):
        with pytest.raises(InputError, match=r"every dimension needs labels; 'trial' has none"):
            write_cube(cube, tmp_path / "x.cube", append=append)
    assert not list(tmp_path.iterdir())


def test_workers_receive_names_not_numbers(tmp_path):
    """A blank cube beside every block would make what is sent as large as the cube."""
    cloudpickle = pytest.importorskip("cloudpickle")
    p = np.random.default_rng(1).random((400, 60))
    cube = as_cube(p, np.arange(400) % 2)
    write_cube(cube.chunk(configuration=20), tmp_path / "x.cube")
    lazy = read_cube(tmp_path / "x.cube", chunks={})
    sent = len(cloudpickle.dumps(dict(lazy.data.__dask_graph__())))
    assert sent < lazy.nbytes / 4
    np.testing.assert_array_equal(lazy.values, cube.values)
