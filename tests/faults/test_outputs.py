"""Files: an output never replaces an input, an append never mixes with an unfinished one, links are not followed."""

import os
import shutil
import sys

import numpy as np
import pytest

import cvstats as cs
from cvstats import cli
from shared import binary

LINKS = pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")


@pytest.fixture
def folder(tmp_path):
    cube = binary(20, (3,)).assign_coords(configuration=["a", "b", "c"])
    cs.write_cube(cube, tmp_path / "mine.csv")
    cs.write_cube(cube, tmp_path / "store.cube")
    (tmp_path / "labels.csv").write_text("label\n1\n0\n")
    (tmp_path / "there").mkdir()
    return tmp_path


def content(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def refused(folder, capsys, *words):
    """Run a command that must refuse with one line and touch nothing."""
    before = content(folder)
    assert cli.main([str(word) for word in words]) == cli.BAD_INPUT
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "would replace" in said.err
    assert "which is read; give it another name" in said.err
    assert content(folder) == before


def test_no_output_replaces_the_predictions(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    refused(folder, capsys, "report", "mine.csv", "-o", "mine.csv")
    refused(folder, capsys, "report", "mine.csv", "-o", folder / "there" / ".." / "mine.csv")
    refused(folder, capsys, "convert", "mine.csv", folder / "mine.csv")
    refused(folder, capsys, "convert", "store.cube", "store.cube")


def test_no_output_replaces_labels_or_inner_predictions(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    refused(folder, capsys, "report", "mine.csv", "--labels", "labels.csv", "-o", "labels.csv")
    refused(folder, capsys, "convert", "--labels", "labels.csv", "mine.csv", "labels.csv")
    refused(folder, capsys, "report", "mine.csv", "--inner", "store.cube", "-o", "store.cube/manifest.json")


def test_no_output_is_written_into_a_store_that_is_read_or_around_it(folder, capsys):
    refused(folder, capsys, "report", folder / "store.cube", "-o", folder / "store.cube" / "report.html")
    shutil.copy(folder / "mine.csv", folder / "store.cube" / "mine.csv")
    refused(folder, capsys, "convert", folder / "store.cube" / "mine.csv", folder / "store.cube")


@LINKS
def test_no_output_replaces_an_input_through_a_link(folder, capsys):
    (folder / "soft.csv").symlink_to("mine.csv")
    os.link(folder / "mine.csv", folder / "hard.csv")
    (folder / "way").symlink_to(".", target_is_directory=True)
    for name in ("soft.csv", "hard.csv", "way/mine.csv"):
        refused(folder, capsys, "report", folder / "mine.csv", "-o", folder / name)
        refused(folder, capsys, "convert", folder / name, folder / "mine.csv")


def test_an_output_beside_the_inputs_is_written(folder):
    assert cli.main(["convert", str(folder / "mine.csv"), str(folder / "mine.nc")]) == cli.OK


# --- what is replaced ---------------------------------------------------------------------------------------------


def test_what_cvstats_has_not_made_needs_force(folder, capsys):
    page, table, store = folder / "page.html", folder / "table.csv", folder / "cube.nc"
    for path in (page, table, store):
        path.write_text("a,b\n1,2\n")
    calls = {page: ["report", "--example", "iris", "--draws", "40", "-o"], table: ["convert", "--example", "iris"]}
    for path, call in {**calls, store: calls[table]}.items():
        assert cli.main([*call, str(path)]) == cli.BAD_INPUT
        said = capsys.readouterr().err
        assert "made by cvstats; choose another name, or insist with --force." in said
        assert path.read_text() == "a,b\n1,2\n"
        assert cli.main([*call, str(path), "--force"]) == cli.OK
        assert cli.main([*call, str(path)]) == cli.OK, "ours now"
    with pytest.raises(cs.InputError, match=r"is not predictions made by cvstats; .* insist with `force`"):
        cs.write_cube(CUBE, folder / "labels.csv")
    cs.write_cube(CUBE, folder / "labels.csv", force=True)
    with pytest.raises(cs.InputError, match="is not a report made by cvstats"):
        cs.report_html(CUBE, path=folder / "labels.csv", times=40)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".csv.zip", ".tsv", ".parquet", ".feather", ".nc"])
def test_files_of_ours_are_replaced(suffix, tmp_path):
    cs.write_cube(CUBE, tmp_path / f"x{suffix}")
    cs.write_cube(CUBE.isel(configuration=[0]), tmp_path / f"x{suffix}")
    assert cs.read_predictions(tmp_path / f"x{suffix}").sizes["configuration"] == 1


def test_files_of_others_are_not(tmp_path):
    CUBE.to_dataset(name="prediction").to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    CUBE.to_dataframe("p").reset_index().to_parquet(tmp_path / "x.parquet")
    (tmp_path / "x.csv.gz").write_bytes(b"\x1f\x8bnot a gzip file")
    (tmp_path / "y.nc").write_bytes(b"\x89HDF\r\n\x1a\n cut off")
    before = content(tmp_path)
    for name in before:
        with pytest.raises(cs.InputError, match="is not predictions made by cvstats"):
            cs.write_cube(CUBE, tmp_path / name)
    assert content(tmp_path) == before


@LINKS
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_links_pipes_and_devices_are_never_replaced(force, folder, capsys):
    (folder / "link.csv").symlink_to("labels.csv")
    (folder / "gone.csv").symlink_to("nowhere")
    os.mkfifo(folder / "pipe.csv")
    for name, kind in {"link.csv": "a link", "gone.csv": "a link", "pipe.csv": "a pipe", "there": "a folder"}.items():
        for call in (["convert", "--example", "iris"], ["report", "--example", "iris", "--draws", "40", "-o"]):
            assert cli.main([*call, str(folder / name), *force]) == cli.BAD_INPUT
            said = capsys.readouterr().err
            assert f"is {kind}, which is never replaced" in said or "is a folder; give a file name" in said
    assert cli.main(["report", "--example", "iris", "--draws", "40", "-o", "/dev/full", *force]) == cli.BAD_INPUT
    assert (folder / "link.csv").is_symlink()
    assert (folder / "pipe.csv").is_fifo()


# --- stores -------------------------------------------------------------------------------------------------------

CUBE = binary(6, (5,)).assign_coords(configuration=list("abcde"))


@pytest.fixture(params=["part", "manifest"])
def crashed(request, tmp_path):
    """Return a store of a and b in which an append of c and d died just before a part or the manifest was named."""
    path = tmp_path / "run.cube"
    cs.write_cube(CUBE.sel(configuration=["a", "b"]), path, append=True)
    if (child := os.fork()) == 0:
        replace = os.replace
        os.replace = lambda old, new: os._exit(3) if request.param in str(new) else replace(old, new)
        cs.write_cube(CUBE.sel(configuration=["c", "d"]), path, append=True)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert len(list(path.iterdir())) > 3
    return path


def test_another_append_after_a_crash_holds_none_of_the_crashed_predictions(crashed):
    some = CUBE.sel(configuration=["e"]).isel(sample=[0, 2, 4])
    cs.write_cube(some, crashed, append=True)
    found = cs.read_cube(crashed)
    assert list(found.configuration.values) == ["a", "b", "e"]
    assert found.sel(configuration=["a", "b"]).equals(CUBE.sel(configuration=["a", "b"]))
    np.testing.assert_array_equal(found.sel(configuration="e")[::2], CUBE.sel(configuration="e")[::2])
    assert np.isnan(found.sel(configuration="e")[1::2]).all()


def test_an_append_that_adds_no_configuration_after_a_crash_leaves_a_readable_store(crashed):
    cs.write_cube(CUBE.sel(configuration=["a"]), crashed, append=True)
    assert cs.read_cube(crashed).equals(CUBE.sel(configuration=["a", "b"]))
    cs.write_cube(CUBE.sel(configuration=["e"]), crashed, append=True)
    assert cs.read_cube(crashed).equals(CUBE.sel(configuration=["a", "b", "e"]))


def test_an_append_of_new_samples_after_a_crash_holds_none_of_the_crashed_predictions(crashed):
    more = CUBE.sel(configuration=["a", "b"]).isel(sample=[0, 1]).assign_coords(sample=[100, 101])
    cs.write_cube(more, crashed, append=True)
    cs.write_cube(CUBE.sel(configuration=["e"]).isel(sample=[0]), crashed, append=True)
    found = cs.read_cube(crashed)
    assert dict(found.sizes) == {"sample": 8, "configuration": 3}
    assert int(found.sel(configuration="e").notnull().sum()) == 1


def test_the_same_append_after_a_crash_completes_it(crashed):
    cs.write_cube(CUBE.sel(configuration=["c", "d"]), crashed, append=True)
    assert cs.read_cube(crashed).equals(CUBE.sel(configuration=["a", "b", "c", "d"]))


@LINKS
@pytest.mark.parametrize("inside", ["manifest.json", "part-000001.nc"])
def test_links_inside_a_store_are_refused(inside, tmp_path):
    path, away = tmp_path / "run.cube", tmp_path / "away"
    cs.write_cube(CUBE, path)
    shutil.move(path / inside, away)
    (path / inside).symlink_to(away)
    before = content(path)
    for attempt in (
        lambda: cs.read_cube(path),
        lambda: cs.read_cube(path, chunks={}).compute(),
        lambda: cs.write_cube(CUBE, path, append=True),
    ):
        with pytest.raises(cs.InputError, match=f"'{inside}' is a link, which is never followed inside a store"):
            attempt()
    assert content(path) == before


@LINKS
def test_a_link_to_a_store_is_read(tmp_path):
    cs.write_cube(CUBE, tmp_path / "run.cube")
    (tmp_path / "latest.cube").symlink_to("run.cube")
    assert cs.read_cube(tmp_path / "latest.cube").equals(CUBE)
