"""The store against a model: random appends, crashes, restarts, compactions and writers side by side lose nothing.

A crash ends the process by ``os._exit`` at one of the calls by which a writer reaches the disk; the store must then
hold what it held before or what it would hold after.

The same 100 sequences run every time. More of them, others for every seed, on a disk in memory that need not be waited
for (about half a second of one processor each; several seeds may run side by side), and more kills::

    for seed in 1 2 3 4 5 6 7 8; do
        TMPDIR=/dev/shm STORE_SEQUENCES=250 STORE_KILLS=5 \\
            pytest tests/faults/test_store_machine.py --hypothesis-seed=$seed
    done
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import cvstats as cs
from cvstats.formats import _netcdf, _store

pytest.importorskip("h5netcdf")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

SEQUENCES, KILLS = int(os.environ.get("STORE_SEQUENCES", "100")), int(os.environ.get("STORE_KILLS", "4"))
SAMPLES, NAMES = 4, "abcd"
CALLS = [(os, "replace"), (os, "fsync"), (os, "unlink"), (Path, "write_bytes"), (Path, "mkdir"), (os, "listdir")]
Cells = dict[tuple[str, int], float]
masks = st.lists(st.booleans(), min_size=SAMPLES, max_size=SAMPLES).filter(any)
chosen = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)


def cube_of(cells: Cells) -> Any:
    """Return the cube of some cells; the rest is missing."""
    names = list(dict.fromkeys(name for name, _ in cells))
    values = np.full((SAMPLES, len(names)), np.nan)
    for (name, sample), value in cells.items():
        values[sample, names.index(name)] = value
    return cs.as_cube(values, np.arange(SAMPLES) % 2, configurations=names, kind="score", folds=[0, 1, 0, 1])


def cells_of(cube: Any) -> Cells:
    found = cube.transpose("configuration", "sample")
    return {
        (str(name), sample): float(value)
        for name, row in zip(found["configuration"].values, found.values, strict=True)
        for sample, value in enumerate(row)
        if not np.isnan(value)
    }


def in_child(action: Callable[[], Any], crash_at: int | None = None) -> int:
    """Run an action in a process of its own, which ends at some call that reaches the disk; return its exit code."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        left = [crash_at]

        def wrapped(plain: Any) -> Any:
            def call(*arguments: Any, **options: Any) -> Any:
                if left[0] is not None:
                    left[0] -= 1
                    if left[0] < 0:
                        os._exit(9)
                return plain(*arguments, **options)

            return call

        for owner, name in CALLS:
            setattr(owner, name, wrapped(getattr(owner, name)))
        action()
        os._exit(0)
    except cs.InputError:
        os._exit(2)
    finally:
        os._exit(1)


class StoreMachine(RuleBasedStateMachine):
    """Compares the store with a dictionary of its cells."""

    @initialize(portion=st.sampled_from([SAMPLES, 10**6]))
    def begin(self, portion: int) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.path, self.link = self.folder / "run.cube", self.folder / "link.cube"
        self.link.symlink_to("run.cube")
        self.cells: Cells = {}
        self.order: list[str] = []
        self.portion, _netcdf.PORTION = _netcdf.PORTION, portion

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)
            _netcdf.PORTION = self.portion

    def given(self, names: list[str], mask: list[bool], version: int) -> Cells:
        """Return cells whose values depend on the version only: two appends of one version never disagree."""
        return {
            (name, i): float(NAMES.index(name) + 10 * i + 100 * version)
            for name in names
            for i, there in enumerate(mask)
            if there
        }

    def learn(self, cells: Cells) -> None:
        self.cells |= cells
        self.order += [name for name in dict.fromkeys(name for name, _ in cells) if name not in self.order]

    def clashes(self, cells: Cells) -> bool:
        return any(self.cells.get(key, value) != value for key, value in cells.items())

    @rule(names=chosen, mask=masks, version=st.sampled_from([0, 0, 0, 1]))
    def append(self, names: list[str], mask: list[bool], version: int) -> None:
        cells = self.given(names, mask, version)
        if self.clashes(cells):
            with pytest.raises(cs.InputError, match="already stored with another prediction"):
                cs.write_cube(cube_of(cells), self.path, append=True)
        else:
            cs.write_cube(cube_of(cells), self.path, append=True)
            self.learn(cells)

    @rule(names=chosen, mask=masks, at=st.integers(0, 14), restart=st.booleans())
    def crash(self, names: list[str], mask: list[bool], at: int, restart: bool) -> None:
        """An append dies somewhere; what is there afterwards is all of it or nothing."""
        cells = self.given(names, mask, 0)
        if self.clashes(cells):
            return
        code = in_child(lambda: cs.write_cube(cube_of(cells), self.path, append=True), at)
        assert code in (0, 9)
        there = cells_of(cs.read_cube(self.path)) if (self.path / "manifest.json").exists() else {}
        assert there in (self.cells, self.cells | cells)
        assert code == 9 or there == self.cells | cells
        if there != self.cells:
            self.learn(cells)
        elif restart:
            cs.write_cube(cube_of(cells), self.path, append=True)
            self.learn(cells)

    @rule(at=st.none() | st.integers(0, 14))
    def compact(self, at: int | None) -> None:
        if self.cells:
            assert in_child(lambda: cs.compact_cube(self.path), at) in (0, 9)

    @rule(first=chosen, second=chosen, mask=masks)
    def two_writers(self, first: list[str], second: list[str], mask: list[bool]) -> None:
        """One writes by a link to the store while the other writes by its path."""
        parts = [self.given(names, mask, 0) for names in (first, second)]
        if any(self.clashes(part) for part in parts):
            return
        children = []
        for part, path in zip(parts, (self.path, self.link), strict=True):
            if (child := os.fork()) == 0:
                try:
                    cs.write_cube(cube_of(part), path, append=True)
                    os._exit(0)
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(1)
            children.append(child)
        assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
        found = [str(name) for name in cs.read_cube(self.path)["configuration"].values]
        assert found[: len(self.order)] == self.order
        self.learn({key: value for part in parts for key, value in part.items()})
        self.order = found

    @rule()
    def lose(self) -> None:
        """A part is gone: reading says which. Then it is back."""
        parts = sorted(self.path.glob("part-*.nc")) if self.cells else []
        if parts and parts[0].name in (self.path / "manifest.json").read_text():
            away = parts[0].rename(self.folder / "away")
            with pytest.raises(cs.InputError, match=rf"{parts[0].name} is missing"):
                cs.read_cube(self.path)
            away.rename(parts[0])

    @invariant()
    def the_store_is_the_model(self) -> None:
        if not hasattr(self, "path"):
            return
        if not self.cells:
            assert not (self.path / "manifest.json").exists()
            return
        cube = cs.read_cube(self.path)
        assert cells_of(cube) == self.cells
        assert [str(name) for name in cube["configuration"].values] == self.order


def test_the_store_is_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, decoded = _store._decoded, functools.cache(_store._decoded)

    def once(source: bytes | Path, name: str, **options: bool) -> Any:
        """Decode the same bytes once; that they are the same is checked every time."""
        return (decoded if isinstance(source, bytes) else plain)(source, name, **options)

    monkeypatch.setattr(_store, "_decoded", once)
    options = settings(
        max_examples=SEQUENCES,
        stateful_step_count=6,
        deadline=None,
        derandomize="STORE_SEQUENCES" not in os.environ,
        database=None,
    )
    run_state_machine_as_test(StoreMachine, settings=options)


WRITER = """
import itertools, sys
import numpy as np
import cvstats as cs
path, start = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
for number in itertools.count(start):
    values = np.full((3, 1), float(number))
    cs.write_cube(cs.as_cube(values, [0, 1, 0], configurations=[f"c{number}"], kind="score"), path, append=True)
    print(number, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_writer_that_is_killed_again_and_again(tmp_path: Path) -> None:
    """Everything that a writer has said to be written is there, whenever it is struck by SIGKILL."""
    path, g, done = tmp_path / "run.cube", np.random.default_rng(5), -1
    for _ in range(KILLS):
        command = [sys.executable, "-c", WRITER, str(path), str(done + 1)]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert running.stdout is not None
        running.stdout.readline()
        time.sleep(float(g.random()))
        running.send_signal(signal.SIGKILL)
        said = running.communicate()[0].split()
        done = int(said[-1]) if said else done
        if (path / "manifest.json").exists():
            cube = cs.read_cube(path)
            numbers = [int(str(name)[1:]) for name in cube["configuration"].values]
            assert numbers == list(range(len(numbers)))
            assert len(numbers) in (done + 1, done + 2)
            assert (cube.values == np.array(numbers)).all()
            done = len(numbers) - 1
        else:
            assert done == -1
    cs.write_cube(
        cs.as_cube([[1.0], [2.0], [3.0]], [0, 1, 0], configurations=["last"], kind="score"), path, append=True
    )
    assert cs.read_cube(path).sizes["configuration"] == done + 2
    named = {entry.file for entry in _store.read_manifest(path)}
    assert {file.name for file in path.iterdir()} == {*named, "manifest.json", ".lock"}
