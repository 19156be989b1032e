"""Interrupted runs: nothing half-written stays behind, one line says what happened, and a second run gives the numbers.

The same rule for every writer: a full disk, a folder that cannot be written to, an interruption at any moment.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from cvstats import cli

pytest.importorskip("h5netcdf")
pytest.importorskip("pyarrow")

SUFFIXES = (".nc", ".cube", ".csv", ".csv.gz", ".csv.zip", ".parquet", ".feather")


def cube_of(n: int = 40, c: int = 6) -> xr.DataArray:
    g = np.random.default_rng(1)
    y = np.arange(n) % 2
    names = [f"c{j}" for j in range(c)]
    return cs.as_cube(
        g.random((n, c, 2)), y, configurations=names, kind="probability", folds=np.tile(np.arange(n) % 5, (2, 1)).T
    )


def listing(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# --- a full disk --------------------------------------------------------------------------------------------------
FULL = """
import json, pathlib, resource, sys
import numpy, pandas, xarray, pyarrow, h5netcdf, jinja2, matplotlib.figure
from cvstats import cli
folder, out = pathlib.Path(sys.argv[1]), []
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
for target in sys.argv[2:]:
    command = ["report", "--example", "iris", "--draws", "40", "-o", str(folder / target)]
    if not target.endswith(".html"):
        command = ["convert", "--example", "iris", str(folder / target)]
    out.append(cli.main(command))
print(json.dumps(out))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits")
def test_a_full_disk_leaves_the_old_files(tmp_path: Path) -> None:
    """Files may not grow beyond 3000 bytes, which stops every writer in the middle."""
    names = [*(f"x{suffix}" for suffix in SUFFIXES), "r.html"]
    cube = cube_of(6, 2)
    for name in ("x.nc", "x.cube", "x.csv"):
        cs.write_cube(cube, tmp_path / name)
    old = '<meta name="generator" content="cvstats 0">'
    (tmp_path / "r.html").write_text(old)
    before = listing(tmp_path)
    command = [sys.executable, "-W", "error", "-c", FULL, str(tmp_path), *names]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert json.loads(ran.stdout.splitlines()[-1]) == [1] * len(names), ran.stderr
    lines = ran.stderr.splitlines()
    assert len(lines) == len(names), ran.stderr
    for name, line in zip(names, lines, strict=True):
        assert line.startswith("cvstats: error: ")
        assert "unexpected" not in line
        assert f"{name} could not be written" in line or name == "r.html"
    assert listing(tmp_path) == before
    for name in ("x.nc", "x.cube"):
        assert cs.read_cube(tmp_path / name).identical(cube)
    assert (tmp_path / "r.html").read_text() == old


LAZY = """
import json, pathlib, resource, sys
import cvstats
from cvstats.formats import _netcdf
folder, out = pathlib.Path(sys.argv[1]), []
cube = cvstats.read_cube(folder / "in.cube", chunks={"configuration": 7})
cvstats.write_cube(cube, folder / "x.cube")
for limit in (1, 3000, 30_000, 60_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    for name in ("x.nc", "y.nc", "x.cube", "y.cube"):
        _netcdf.PORTION = 2000 if name.endswith(".nc") else 10**6  # several portions of a file, one part of a store
        try:
            cvstats.write_cube(cube, folder / name)
        except OSError as error:
            out.append(str(error).replace("[Errno 27] ", ""))
print(json.dumps(out))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits")
def test_a_full_disk_while_a_cube_on_dask_is_written(tmp_path: Path) -> None:
    """The HDF5 library crashes when a write fails, at the latest when the process ends."""
    pytest.importorskip("dask")
    cube = cube_of(100, 70)
    for name in ("in.cube", "x.cube", "whole.nc"):
        cs.write_cube(cube, tmp_path / name)
    assert (tmp_path / "whole.nc").stat().st_size > 60_000
    cs.write_cube(cube_of(6, 2), tmp_path / "x.nc")
    before = listing(tmp_path)
    command = [sys.executable, "-W", "error", "-c", LAZY, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stderr) == (0, "")
    told = [f"{name} could not be written: File too large" for name in ("x.nc", "y.nc", "x.cube", "y.cube")]
    assert json.loads(ran.stdout) == 4 * told
    assert listing(tmp_path) == before
    assert cs.read_cube(tmp_path / "x.nc").identical(cube_of(6, 2))
    assert cs.read_cube(tmp_path / "x.cube").identical(cube)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", [["estimate", "--csv"], ["describe"]])
def test_output_to_a_full_disk(command: list[str]) -> None:
    call = [sys.executable, "-m", "cvstats", *command, "--example", "iris"]
    call += ["--draws", "40"] if command[0] == "estimate" else []
    with open("/dev/full", "w") as full:
        ran = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
    assert ran.returncode == 1
    lines = [line for line in ran.stderr.splitlines() if "warning" not in line]
    assert len(lines) == 1, ran.stderr
    assert "No space left on device" in lines[0]


# --- a folder that cannot be written to ---------------------------------------------------------------------------
@pytest.mark.parametrize("suffix", [*SUFFIXES, ".html"])
@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_folder_that_cannot_be_written_to(
    suffix: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Renaming into place fails as on a read-only or full disk."""

    def refuse(*arguments: Any, **options: Any) -> None:
        raise OSError(number, os.strerror(number), str(arguments[0]))

    monkeypatch.setattr(os, "replace", refuse)
    monkeypatch.setattr(Path, "rename", refuse)
    target = tmp_path / f"x{suffix}"
    command = ["convert", "--example", "iris", str(target)]
    if suffix == ".html":
        pytest.importorskip("jinja2")
        command = ["report", "--example", "iris", "--draws", "40", "-o", str(target)]
    assert cli.main(command) in (1, 2)
    shown = capsys.readouterr()
    assert shown.out == ""
    errors = [line for line in shown.err.splitlines() if "warning" not in line]
    assert len(errors) == 1
    assert os.strerror(number) in errors[0]
    assert listing(tmp_path) == set()


@pytest.mark.skipif(not Path("/sys/kernel").exists(), reason="needs a folder that nobody can write to")
@pytest.mark.parametrize("suffix", [".nc", ".cube", ".csv", ".parquet", ".html"])
def test_a_read_only_folder(suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    target = f"/sys/kernel/x{suffix}"
    command = ["convert", "--example", "iris", target]
    if suffix == ".html":
        pytest.importorskip("jinja2")
        command = ["report", "--example", "iris", "--draws", "40", "-o", target]
    assert cli.main(command) in (1, 2)
    errors = [line for line in capsys.readouterr().err.splitlines() if "warning" not in line]
    assert len(errors) == 1
    assert "ermission denied" in errors[0] or "Read-only" in errors[0] or "not permitted" in errors[0]


# --- interruptions ------------------------------------------------------------------------------------------------
class Fuse:
    """Counts calls of writing functions and interrupts the main thread, as SIGINT does, at one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        self.calls = 0
        for owner, name in ((os, "replace"), (os, "fsync"), (Path, "write_bytes")):
            self._wrap(monkeypatch, owner, name)

    def _wrap(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        plain = getattr(owner, name)

        def call(*arguments: Any, **options: Any) -> Any:
            self.burn()
            return plain(*arguments, **options)

        monkeypatch.setattr(owner, name, call)

    def burn(self) -> None:
        self.calls += 1
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                if threading.current_thread() is threading.main_thread():
                    raise KeyboardInterrupt
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # other threads write on


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("suffix", [".nc", ".cube", ".csv", ".parquet"])
def test_an_interrupted_replacement_leaves_the_old_or_the_new(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = cube_of(6, 2), cube_of(6, 2) / 2
    path = tmp_path / f"x{suffix}"
    cs.write_cube(old, path)
    fuse = Fuse(monkeypatch)
    cs.write_cube(old, path)
    steps = fuse.calls
    assert steps > 0
    for step in sorted({0, steps // 2, max(steps - 2, 0), steps - 1}):
        fuse.left = step
        with pytest.raises(KeyboardInterrupt):
            cs.write_cube(new, path)
        fuse.left = None
        assert listing(tmp_path) == {path.name}, (
            step,
            steps,
            [str(p)[-40:] for p in tmp_path.rglob("*") if ".tmp" in str(p)],
        )
        assert bool((cs.read_predictions(path).values == old.values).all())
    cs.write_cube(new, path)
    np.testing.assert_array_equal(cs.read_predictions(path).values, new.values)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_an_append_interrupted_anywhere_leaves_an_earlier_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cube = cube_of(6, 4)
    path, first, rest = tmp_path / "run.cube", cube.isel(configuration=[0, 1]), cube.isel(configuration=[2, 3])
    fuse = Fuse(monkeypatch)
    cs.write_cube(first, path, append=True)
    before, fuse.calls = cs.read_cube(path), 0
    cs.write_cube(rest, tmp_path / "other.cube", append=True)
    stopped = 0
    for step in range(100):
        fuse.left = step
        try:
            cs.write_cube(rest, path, append=True)
        except KeyboardInterrupt:
            stopped += 1
            fuse.left = None
            found = cs.read_cube(path)
            assert found.identical(before) or found.identical(cube), step
            continue
        break
    fuse.left = None
    assert stopped > 4
    assert cs.read_cube(path).identical(cube)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("suffix", [".nc", ".cube", ".csv", ".parquet"])
def test_signals_while_converting(suffix: str, tmp_path: Path) -> None:
    """A process is struck as soon as it has begun to write: one line, the old file, and nothing beside it."""
    g = np.random.default_rng(0)
    np.savez(tmp_path / "in.npz", prediction=g.random((300, 200, 4)), label=np.arange(300) % 2)
    whole = cs.read_predictions(tmp_path / "in.npz")
    struck = 0
    for number, code, word in ((signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")):
        folder = tmp_path / word
        folder.mkdir()
        path, old = folder / f"x{suffix}", cube_of(6, 2)
        cs.write_cube(old, path)
        running = subprocess.Popen(
            [sys.executable, "-m", "cvstats", "convert", str(tmp_path / "in.npz"), str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs of a shell ignore it
        )
        before = len(list(folder.rglob("*")))
        while running.poll() is None and len(list(folder.rglob("*"))) == before:
            time.sleep(0.001)
        running.send_signal(number)
        out, err = running.communicate(timeout=300)
        assert listing(folder) == {path.name}
        if running.returncode == code:
            struck += 1
            assert (out, err) == ("", f"cvstats: error: {word}; no file is left half-written\n")
            np.testing.assert_array_equal(cs.read_predictions(path).values, old.values)
        else:  # it was done before
            assert (running.returncode, err) in ((0, ""), (-number, ""))
    assert struck
    assert cli.main(["convert", str(tmp_path / "in.npz"), str(path)]) == 0
    np.testing.assert_array_equal(cs.read_predictions(path).values, whole.values)


@pytest.mark.parametrize("suffix", [".nc", ".cube", ".csv"])
def test_a_block_that_fails_leaves_nothing(suffix: str, tmp_path: Path) -> None:
    """As when a worker of a cluster dies for good: its error comes out of the computation."""
    pytest.importorskip("dask")

    def fail(block: np.ndarray) -> np.ndarray:
        raise MemoryError("worker died")

    lazy = cube_of().chunk(configuration=2)
    broken = lazy.copy(data=lazy.data.map_blocks(fail, dtype=float, meta=np.empty((0, 0, 0))))
    with pytest.raises(MemoryError, match="worker died"):
        cs.write_cube(broken, tmp_path / f"x{suffix}")
    assert listing(tmp_path) == set()


# --- workers of a cluster that die --------------------------------------------------------------------------------
@pytest.fixture
def cluster() -> Iterator[Callable[[int], None]]:
    """Start workers of which some number may die under a task before it is given up."""
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with ExitStack() as stack:

        def start(deaths: int) -> None:
            stack.enter_context(dask.config.set({"distributed.scheduler.allowed-failures": deaths}))
            stack.enter_context(distributed.Client(stack.enter_context(distributed.LocalCluster(**options))))

        yield start


class Deadly:
    """Kills the process that computes the last block: always, or only if nobody has left the mark yet."""

    def __init__(self, mark: Path | None) -> None:
        self.mark = mark

    def __call__(self, block: np.ndarray, block_info: Any = None) -> np.ndarray:
        if block_info and block_info[0]["chunk-location"][1] == block_info[0]["num-chunks"][1] - 1:
            time.sleep(0.2)  # others are written meanwhile
            if self.mark is None:
                os.kill(os.getpid(), signal.SIGKILL)
            elif not self.mark.exists():
                self.mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return block


def deadly_cube(mark: Path | None) -> tuple[xr.DataArray, xr.DataArray]:
    """Return a cube, and the same on dask where computing it kills a worker."""
    cube = cube_of(20, 12)
    lazy = cube.chunk(configuration=3)
    return cube, lazy.copy(data=lazy.data.map_blocks(Deadly(mark), dtype=float, meta=np.empty((0, 0, 0))))


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("suffix", [".nc", ".cube"])
@pytest.mark.parametrize("once", [True, False])
def test_a_worker_that_is_killed(
    cluster: Callable[[int], None], suffix: str, once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once: another does its work. Given up: an error of one line, the old file, and nothing beside it."""
    from distributed.scheduler import KilledWorker

    monkeypatch.setattr("cvstats.formats._netcdf.PORTION", 200)  # several portions
    old, path, mark = cube_of(6, 2), tmp_path / "out" / f"x{suffix}", tmp_path / "mark"
    path.parent.mkdir()
    cs.write_cube(old, path)
    expected, lazy = deadly_cube(mark if once else None)
    cluster(10 if once else 0)
    if once:
        cs.write_cube(lazy, path)
        assert mark.exists()
    else:
        expected = old
        with pytest.raises(KilledWorker) as caught:
            cs.write_cube(lazy, path)
        assert "\n" not in str(caught.value)
    assert listing(path.parent) == {path.name}
    np.testing.assert_array_equal(cs.read_predictions(path).values, expected.values)


def test_a_second_run_gives_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jinja2")
    from cvstats import report

    command = ["report", "--example", "iris", "--draws", "40", "--seed", "4", "-o"]
    assert cli.main([*command, str(tmp_path / "a.html")]) == 0
    whole = capsys.readouterr().out.replace("a.html", "")
    with monkeypatch.context() as patch:

        def stop(*arguments: Any) -> None:
            raise KeyboardInterrupt

        patch.setattr(os, "fsync", stop)
        assert cli.main([*command, str(tmp_path / "b.html")]) == 130
    shown = capsys.readouterr()
    assert shown.out == ""
    assert [line for line in shown.err.splitlines() if "warning" not in line] == [
        "cvstats: error: interrupted; no file is left half-written"
    ]
    assert listing(tmp_path) == {"a.html", "a.record.json"}
    assert cli.main([*command, str(tmp_path / "b.html")]) == 0
    assert capsys.readouterr().out.replace("b.html", "") == whole
    pages = [(tmp_path / f"{name}.html").read_text(encoding="utf-8").replace(f"{name}.html", "") for name in "ab"]
    assert pages[0] == pages[1]
    assert report is not None
