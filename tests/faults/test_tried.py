"""What was tried as an attacker or an unlucky user would, where no other test of a reader or writer has it."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from cvstats import cli
from cvstats._results import cube_hash

resource = pytest.importorskip("resource")

LEAK = """
text.usetex: True
font.size: 17
font.family: monospace
axes.prop_cycle: cycler('color', ['r', 'g'])
axes.grid: True
axes.facecolor: yellow
axes.formatter.use_locale: True
axes.unicode_minus: False
figure.dpi: 33
lines.linewidth: 9
path.simplify: False
savefig.bbox: tight
savefig.transparent: True
svg.fonttype: path
"""


def test_a_report_has_the_same_bytes_under_any_matplotlibrc(tmp_path: Path) -> None:
    """TeX is not even installed where this runs, so that a figure drawn by it would fail."""
    pytest.importorskip("jinja2")
    (tmp_path / "matplotlibrc").write_text(LEAK)
    call = [sys.executable, "-W", "error::UserWarning", "-m", "cvstats", "report", "--example", "iris"]
    call += ["--draws", "40", "-o", "r.html"]
    pages = []
    for number, leak in enumerate([None, str(tmp_path / "matplotlibrc")]):
        folder = tmp_path / str(number)
        folder.mkdir()
        environment = {**os.environ, **({"MATPLOTLIBRC": leak} if leak else {})}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
        subprocess.run(call, cwd=folder, env=environment, check=True, capture_output=True, timeout=300)
        pages.append((folder / "r.html").read_bytes())
    assert pages[0] == pages[1]


def test_a_zarr_store_runs_no_code(tmp_path: Path) -> None:
    """A compressor of pickle in a linked folder: the store is not opened at all."""
    away = tmp_path / "away"
    away.mkdir()
    mark = tmp_path / "ran"
    code = f"cos\nsystem\n(S'touch {mark}'\ntR."
    array = {"zarr_format": 2, "shape": [2, 1], "chunks": [2, 1], "dtype": "<f8", "compressor": {"id": "pickle"}}
    array |= {"fill_value": 0.0, "order": "C", "filters": None}
    (away / ".zarray").write_text(json.dumps(array))
    (away / ".zattrs").write_text(json.dumps({"_ARRAY_DIMENSIONS": ["sample", "configuration"]}))
    (away / "0.0").write_text(code)
    store = tmp_path / "x.zarr"
    store.mkdir()
    (store / ".zgroup").write_text('{"zarr_format": 2}')
    (store / "prediction").symlink_to(away, target_is_directory=True)
    for read in (cs.read_cube, cs.read_predictions):
        with pytest.raises(cs.InputError, match=r"xarray\.open_zarr"):
            read(store)
    assert cli.main(["describe", str(store)]) == cli.BAD_INPUT
    assert not mark.exists()


def test_the_hash_of_a_cube_sees_what_changed_and_nothing_else() -> None:
    da = pytest.importorskip("dask.array")
    values = np.random.default_rng(1).random((20, 6))
    cube = cs.as_cube(values, np.arange(20) % 2)

    def found(one: xr.DataArray) -> str:
        return str(cs.cvt(one, "auc").attrs["cube_hash"])

    assert len(found(cube)) == 64
    for step in (2, 3):
        assert found(cube.chunk(configuration=step)) in (found(cube), "not computed"), "chunks change nothing"
    lazy = cube.copy(data=da.from_array(values, chunks=(20, 2), name="fixed"))
    before = found(lazy)
    values[3, 2] /= 2
    assert found(lazy) != before or before == "not computed", "predictions behind dask have changed"


# --- small files that unpack to much --------------------------------------------------------------------------------


def peak_of(action: Callable[[], object]) -> int:
    """Return the bytes of memory that an action takes at most, measured in a process of its own."""
    receive, send = os.pipe()
    if (child := os.fork()) == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        action()
        os.write(send, str(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)).encode())
        os._exit(0)
    os.close(send)
    with os.fdopen(receive) as said:
        taken = int(said.read() or -1)
    assert os.waitpid(child, 0)[1] == 0
    return taken


def packed(head: bytes, row: bytes, times: int, how: str) -> bytes:
    """Return a table of 2**18 rows, `times` over, compressed; what is compressed piece by piece is one text, too."""
    rows = row * 2**18
    if how == "zip":
        with zipfile.ZipFile(raw := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("y.csv", head + rows * times)
        return raw.getvalue()
    compress: Any = {"gz": gzip, "bz2": bz2, "xz": lzma}[how]
    return bytes(compress.compress(head) + compress.compress(rows) * times)


@pytest.mark.skipif(sys.platform != "linux", reason="memory as Linux counts it")
@pytest.mark.parametrize("how", ["gz", "bz2", "xz", "zip"])
def test_compressed_text_is_bounded_by_the_size_of_its_file(how: str, tmp_path: Path) -> None:
    """Labels, one table and one table per model alike: a file of some kB is unpacked to 16 MB and not to 17."""
    bomb, table = tmp_path / f"y.csv.{how}", tmp_path / "p.csv"
    bomb.write_bytes(packed(b"id,y\n", b"1,1\n", 17, how))
    assert bomb.stat().st_size < 50_000
    table.write_text("sample,prediction\n1,0.5\n2,0.25\n")

    def refused() -> None:
        message = rf"file of {bomb.stat().st_size:,} bytes decompresses to more than 16,777,216 bytes.*unpack it first"
        for path, labels in ((table, bomb), (bomb, None), ([table, bomb], [1, 0])):
            with pytest.raises(cs.InputError, match=message):
                cs.read_predictions(path, labels=labels)

    assert peak_of(refused) < 2**27


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory as Linux counts it")
def test_labels_within_the_bound_take_memory_within_a_bound(tmp_path: Path) -> None:
    """As many rows as 16 MB of text can have."""
    (tmp_path / "p.csv").write_text("sample,prediction\n1,0.5\n2,0.25\n")
    (tmp_path / "y.csv.gz").write_bytes(packed(b"y\n", b"1\n", 31, "gz"))

    def read() -> None:
        with pytest.raises(cs.InputError, match="8126464,"):
            cs.read_predictions(tmp_path / "p.csv", labels=tmp_path / "y.csv.gz")

    assert peak_of(read) < 2**29


def test_arrays_are_bounded_by_the_size_of_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cvstats.formats._gate.ARRAYS", (2**16, 200))
    np.savez_compressed(tmp_path / "x.npz", prediction=np.zeros((2000, 200)), label=np.arange(2000) % 2)
    with pytest.raises(
        cs.InputError, match=r"decompress to 3,.* bytes, more than a file of .* bytes can honestly hold"
    ):
        cs.read_predictions(tmp_path / "x.npz")


# --- names, bytes and nodes that nobody expects ---------------------------------------------------------------------

SMALL = cs.as_cube(np.linspace(0, 1, 12).reshape(6, 2), [0, 1] * 3, configurations=["a", "b"])


@pytest.mark.parametrize("suffix", [".nc", ".cube", ".csv", ".parquet", ".feather"])
def test_bytes_in_the_other_order_are_the_same_numbers(suffix: str, tmp_path: Path) -> None:
    pytest.importorskip("h5netcdf")
    pytest.importorskip("pyarrow")
    other = cs.as_cube(SMALL.values.astype(">f8"), SMALL["label"].values.astype(">i4"), configurations=["a", "b"])
    for cube in (other, SMALL.astype(">f8"), SMALL.assign_coords(label=SMALL["label"].astype(">i2"))):
        cs.write_cube(cube, tmp_path / f"x{suffix}")
        assert cube_hash(cube) == cube_hash(cs.read_predictions(tmp_path / f"x{suffix}")) == cube_hash(SMALL)


@pytest.mark.parametrize("suffix", [".nc", ".cube", ".csv", ".parquet"])
@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_names_that_no_file_can_hold(name: str, suffix: str, tmp_path: Path) -> None:
    with pytest.raises(cs.InputError, match=r"coordinate 'configuration' holds .*, a text that files cannot hold"):
        cs.write_cube(SMALL.assign_coords(configuration=["a", name]), tmp_path / f"x{suffix}")
    assert not list(tmp_path.iterdir())


def test_numbers_wider_than_tables_have(tmp_path: Path) -> None:
    if np.dtype(np.longdouble).itemsize > 8:
        with pytest.raises(cs.InputError, match=r"dtype float128 are not written to tables; use cube\.astype\(float\)"):
            cs.write_cube(SMALL.astype(np.longdouble), tmp_path / "x.parquet")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX nodes")
@pytest.mark.parametrize("kind", ["a pipe", "a folder", "a link"])
def test_a_lock_that_is_no_file_is_not_opened(kind: str, tmp_path: Path) -> None:
    """A writer would wait for a pipe for ever, and make a file wherever a link leads."""
    pytest.importorskip("h5netcdf")
    path = tmp_path / "run.cube"
    cs.write_cube(SMALL, path)
    (path / ".lock").unlink()
    make = {"a pipe": os.mkfifo, "a folder": os.mkdir, "a link": lambda lock: lock.symlink_to(tmp_path / "victim")}
    make[kind](path / ".lock")
    with pytest.raises(cs.InputError, match=f"is {kind}"):
        cs.write_cube(SMALL.assign_coords(configuration=["c", "d"]), path, append=True)
    assert not (tmp_path / "victim").exists()
    assert cs.read_cube(path).identical(SMALL)


@pytest.mark.parametrize("name", ["../part-000001.nc", "/part-000001.nc", "part-00000\u0661.nc", "part-000001.nc\n"])
def test_a_manifest_names_parts_beside_it_only(name: str, tmp_path: Path) -> None:
    pytest.importorskip("h5netcdf")
    path = tmp_path / "run.cube"
    cs.write_cube(SMALL, path)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["parts"][0]["file"] = name
    (path / "manifest.json").write_text(json.dumps(manifest))
    for attempt in (cs.read_cube, cs.compact_cube, lambda path: cs.write_cube(SMALL, path, append=True)):
        with pytest.raises(cs.InputError, match=r"run\.cube: manifest\.json is damaged"):
            attempt(path)


def test_arguments_that_are_not_known_do_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["describe", "--\x1b[31mred\u202e"])
    assert r"--\x1b[31mred\u202e" in capsys.readouterr().err
