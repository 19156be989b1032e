"""The hash of a cube: containers, chunks and order change nothing; any value or name changes it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import cvstats as cs
from cvstats import _results
from cvstats._results import cube_hash


def cube_of(seed: int = 0, n: int = 12, c: int = 5) -> xr.DataArray:
    g = np.random.default_rng(seed)
    return cs.as_cube(
        g.random((n, c, 2)),
        np.where(np.arange(n) % 2, "ill", "well"),
        positive="ill",
        samples=[f"s{i}" for i in range(n)],
        configurations=[f"c{j}" for j in range(c)],
        folds=np.stack([np.arange(n) % 3, np.arange(n) // 2 % 3], axis=1),
        groups=np.arange(n) // 2,
        weights=1.0 + np.arange(n),
    )


@pytest.mark.parametrize("name", ["breast_cancer", "iris", "diabetes"])
@pytest.mark.parametrize("suffix", [".nc", ".cube", ".csv", ".csv.gz", ".parquet", ".feather"])
def test_every_container_has_the_same_hash(name, suffix, tmp_path):
    pytest.importorskip("h5netcdf")
    pytest.importorskip("pyarrow")
    cube = cs.example_cube(name).isel(sample=slice(30), configuration=slice(3))
    cs.write_cube(cube, tmp_path / f"x{suffix}")
    positive = "malignant" if name == "breast_cancer" else None
    assert cube_hash(cs.read_predictions(tmp_path / f"x{suffix}", positive=positive)) == cube_hash(cube)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_no_order_matters(data):
    cube = cube_of()
    order = {dim: data.draw(st.permutations(range(size)), label=dim) for dim, size in cube.sizes.items()}
    dims = data.draw(st.permutations(cube.dims))
    assert cube_hash(cube.isel(order).transpose(*dims)) == cube_hash(cube)


def test_batch_dims_and_classes_in_any_order():
    iris = cs.example_cube("iris").isel(sample=slice(0, 150, 10))
    assert cube_hash(iris.isel(label_class=[2, 0, 1], repeat=slice(None, None, -1))) == cube_hash(iris)
    both = xr.concat([cube_of(1), cube_of(2)], xr.DataArray(["x", "y"], dims="data", name="data"))
    assert cube_hash(both.isel(data=[1, 0])) == cube_hash(both)
    swapped = both.assign_coords(data=["y", "x"])
    assert cube_hash(swapped) != cube_hash(both)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 7, 64, 2**16])
def test_one_cell_changes_it_wherever_it_is(size, monkeypatch):
    monkeypatch.setattr(_results, "AT_ONCE", size)
    cube = cube_of()
    known = {cube_hash(cube)}
    for place in np.ndindex(cube.shape):
        other = cube.copy()
        other[place] = np.nextafter(float(cube[place]), 1)
        known.add(cube_hash(other))
    assert len(known) == cube.size + 1


def test_swapped_cells_change_it():
    cube = cube_of()
    other = cube.copy()
    other[0], other[1] = cube[1].values, cube[0].values
    assert cube_hash(other) != cube_hash(cube)
    codes = cs.as_cube(np.eye(4, dtype=int), [0, 1, 0, 1])
    assert cube_hash(codes.copy(data=codes.values[::-1])) != cube_hash(codes)


@pytest.mark.parametrize("name", ["sample", "configuration", "repeat", "label", "fold", "group", "weight", "positive"])
def test_any_name_label_or_fold_changes_it(name):
    cube = cube_of()
    values = np.array(cube[name].values, copy=True)
    if name == "positive":
        values = np.array("well")
    elif name == "label":
        values[0] = "ill"
    else:
        values.flat[0] = "zz" if values.dtype.kind == "U" else 99
    assert cube_hash(cube.assign_coords({name: (cube[name].dims, values)})) != cube_hash(cube)


def test_threshold_kind_and_dims_change_it():
    cube = cube_of()
    found = {
        cube_hash(cube),
        cube_hash(cube.assign_coords(threshold=0.4)),
        cube_hash(cube.assign_coords(kind="score")),
        cube_hash(cube.rename(repeat="trial")),
        cube_hash(cube.drop_vars("fold")),
        cube_hash(cube.isel(repeat=0)),
    }
    assert len(found) == 6


def test_how_a_number_is_stored_does_not_change_it():
    values, labels = np.array([[0.0, 0.875], [0.5, np.nan], [0.25, 0.625]]), [1, 0, 1]
    cube = cs.as_cube(values, labels)
    payload = np.array([0x7FF8000000000001], np.uint64).view(float)[0]
    other = np.where(np.isnan(values), payload, np.where(values == 0, -0.0, values))
    expected = cube_hash(cube)
    assert cube_hash(cube.copy(data=other)) == expected
    assert cube_hash(cube.astype(np.float32)) == expected
    assert cube_hash(cube.copy(data=np.asfortranarray(cube.values))) == expected
    for dtype in (np.int8, np.uint64, float, object):
        assert cube_hash(cube.assign_coords(label=("sample", np.array(labels, dtype)))) == expected
        assert cube_hash(cube.assign_coords(sample=np.arange(3).astype(dtype))) == expected
    text = cube.assign_coords(configuration=["a", "b"])
    assert cube_hash(text.assign_coords(configuration=np.array(["a", "b"], object))) == cube_hash(text)


def test_a_number_is_not_its_text_nor_a_truth_value():
    cube = cs.as_cube([[0.1, 0.2], [0.3, 0.4]], [1, 0])
    names = ([0, 1], ["0", "1"], [False, True], np.array([0, "1"], object), ["0, 1", "2"], ["0", "1, 2"])
    names += (["a", "b\x1fc"], ["a\x1fb", "c"], ["a", "b\0c"], ["a\0b", "c"])  # no sign parts names
    assert len({cube_hash(cube.assign_coords(configuration=np.asarray(n))) for n in names}) == len(names)
    large = [cube.assign_coords(sample=[2**53 + i, 5]) for i in range(3)]
    assert len({cube_hash(one) for one in large}) == 3


def test_folds_that_all_repeats_share_may_be_given_once():
    cube = cube_of()
    once = cube.assign_coords(fold=("sample", cube.fold.values[:, 0]))
    twice = cube.assign_coords(fold=(("sample", "repeat"), np.repeat(cube.fold.values[:, :1], 2, axis=1)))
    assert cube_hash(once) == cube_hash(twice) != cube_hash(cube)


def test_coordinates_that_only_describe_do_not_count():
    cube = cube_of()
    assert cube_hash(cube.assign_coords(family=("configuration", list("abcde")))) == cube_hash(cube)
    assert cube_hash(cube.assign_attrs(load_report="{}").rename("p")) == cube_hash(cube)


def test_a_cube_on_dask_is_never_read_for_it():
    pytest.importorskip("dask")
    lazy = cube_of().chunk(configuration=2)
    assert cube_hash(lazy) == "not computed"
    assert cs.cv(lazy, "accuracy").attrs["cube_hash"] == "not computed"
    assert cs.cv(lazy.compute(), "accuracy").attrs["cube_hash"] == cube_hash(cube_of())


def test_every_result_of_a_cube_has_it():
    cube = cs.example_cube("diabetes").isel(configuration=slice(3))
    for found in (cs.cv(cube, "mse"), cs.bbc(cube, "mse", times=50), cs.winner(cube, "mse", times=50)):
        assert found.attrs["cube_hash"] == cube_hash(cube)
        assert len(found.attrs["cube_hash"]) == 64


TEXT = np.dtypes.StringDType(na_object=np.nan)  # what a pandas index of names becomes along a new dim


@pytest.mark.parametrize("name", ["sample", "configuration", "label", "group"])
def test_text_of_any_length_is_text(name, tmp_path):
    pytest.importorskip("h5netcdf")
    cube = cube_of().assign_coords(group=("sample", [f"g{i // 2}" for i in range(12)]))
    known = cube.coords[name]
    stored = cube.assign_coords({name: (known.dims, known.values.astype(TEXT))})
    assert stored.coords[name].dtype == TEXT
    assert cube_hash(stored) == cube_hash(cube)
    assert cs.cvt(stored, "auc")["estimate"] == cs.cvt(cube, "auc")["estimate"]
    for suffix in (".nc", ".cube", ".csv"):
        cs.write_cube(stored, tmp_path / f"x{suffix}")
        assert cube_hash(cs.read_predictions(tmp_path / f"x{suffix}", positive="ill")) == cube_hash(cube)


def test_data_sets_named_by_a_pandas_index():
    both = xr.concat([cube_of(1), cube_of(2)], dim=pd.Index(["x", "y"], name="data"))
    plain = xr.concat([cube_of(1), cube_of(2)], xr.DataArray(["x", "y"], dims="data", name="data"))
    assert cs.cvt(both, "auc").attrs["cube_hash"] == cube_hash(plain)


def test_labels_that_are_a_pandas_series():
    cube = cube_of()
    series = cube.assign_coords(label=("sample", pd.Series(cube["label"].values, dtype="str")))
    assert cube_hash(series.assign_coords(sample=cube["sample"])) == cube_hash(cube)
    assert cs.cvt(series, "auc").attrs["cube_hash"] == cube_hash(cube)
