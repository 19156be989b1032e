"""From files to pages: reading tables against pandas, reports against one `winner` call, and how both grow."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from report_time import make_table
from speed_jobs import Row, cpu, interleaved, make_cube

import cvstats as cs

REPORTS = ((100, 5_000), (50, 20_000), (20_000, 2), (100_000, 2))  # samples, configurations
FIXED = 1.0  # seconds of a report that no size changes: figures
CHILD = """
import sys
from pathlib import Path
import cvstats as cs
def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
cs.read_predictions(sys.argv[1])
before = peak()
cube = cs.read_predictions(sys.argv[2])
print(1024 * (peak() - before) / cube.nbytes)
"""


def rows(rounds: int) -> list[Row]:
    """Time reading, reports, and growth."""
    with tempfile.TemporaryDirectory() as folder:
        made = [*reading(Path(folder), rounds), *reports(Path(folder))]
        return [*made, *growth(Path(folder))]


def reading(folder: Path, rounds: int, samples: int = 2000, configurations: int = 100) -> list[Row]:
    """Time a long table of a million rows against `pandas.read_csv`, and say what memory it takes."""
    path = folder / "long.csv"
    count = make_table(path, samples, configurations, 5)
    calls = {"ours": lambda: cs.read_predictions(path), "pandas": lambda: pd.read_csv(path)}
    seconds = interleaved(calls, max(2, rounds // 2))
    ratio = seconds["ours"] / seconds["pandas"]
    job, few = f"long CSV of {count:,} rows", folder / "few.csv"
    make_table(few, 20, 10, 2)
    done = subprocess.run([sys.executable, "-c", CHILD, few, path], capture_output=True, text=True, check=True)
    return [
        Row(f"{job} to a cube", "pandas.read_csv", ratio, 1.2, False, seconds["ours"]),
        Row(f"{job}: memory", "the cube itself", float(done.stdout), 3.0, False, np.nan, "peak of the process"),
    ]


def reports(folder: Path, sizes: tuple[tuple[int, int], ...] = REPORTS) -> list[Row]:
    """Time the whole report, less a fixed second, in calls of `winner`."""
    cs.report_html(make_cube(60, 6, 1), "auc", path=folder / "a.html", times=100)
    cs.report_html(make_cube(4000, 3, 1), "auc", path=folder / "a.html", times=100)
    found = []
    for n, c in sizes:
        cube = make_cube(n, c, 1)
        calls = {
            "one": lambda: cs.winner(cube, "auc", rng=1),  # noqa: B023
            "whole": lambda: cs.report_html(cube, "auc", path=folder / "a.html"),  # noqa: B023
        }
        seconds = interleaved(calls, 3 if n < 50_000 else 1)
        ratio, note = max(seconds["whole"] - FIXED, 0) / seconds["one"], f"reports: all but {FIXED:g} s for figures"
        found.append(Row(f"report, AUC, {n} x {c}", "one `winner` call", ratio, 4.0, False, seconds["whole"], note))
    return found


def growth(folder: Path) -> list[Row]:
    """Time four times the rows, columns and classes."""
    return [
        _fourfold("rows of a long table", lambda size: _long(folder, size), 250),
        _fourfold("columns of a wide table", lambda size: _wide(folder, size, "csv"), 1500),
        _fourfold("columns of a Parquet table", lambda size: _wide(folder, size, "parquet"), 5000),
        _fourfold("classes, balanced accuracy", _classes, 25),
        _fourfold("classes, one-vs-rest AUC", _class_scores, 5),
    ]


def _fourfold(what: str, prepare: object, size: int) -> Row:
    few, many = (prepare(size * factor) for factor in (1, 4))  # type: ignore[operator]
    seconds = {"few": np.inf, "many": np.inf}
    for _ in range(4):
        seconds = {"few": min(seconds["few"], cpu(few)), "many": min(seconds["many"], cpu(many))}
    return Row(f"4x {what}", "the smaller size", seconds["many"] / seconds["few"], 4.6, False, seconds["many"])


def _long(folder: Path, samples: int) -> object:
    path = folder / f"rows{samples}.csv"
    make_table(path, samples, 100, 5)
    return lambda: cs.read_predictions(path)


def _wide(folder: Path, columns: int, kind: str) -> object:
    path = folder / f"columns{columns}.{kind}"
    frame = pd.DataFrame(np.random.default_rng(1).random((60, columns)).round(4))
    frame.columns = [f"m{i}" for i in range(columns)]
    frame.insert(0, "label", np.arange(60) % 2)
    frame.insert(0, "sample", np.arange(60))
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path, index=False)
    return lambda: cs.read_predictions(path)


def _classes(count: int) -> object:
    g, y = np.random.default_rng(1), np.arange(2000) % count
    p = np.where(g.random((2000, 20)) < 0.5, y[:, None], g.integers(0, count, (2000, 20)))
    cube = cs.as_cube(p, y, kind="label")
    return lambda: cs.bbc(cube, "balanced_accuracy", times=200, rng=1)


def _class_scores(count: int) -> object:
    g, y = np.random.default_rng(1), np.arange(400) % count
    p = g.random((400, 10, count)) + (y[:, None, None] == np.arange(count))
    cube = cs.as_cube(p / p.sum(axis=2, keepdims=True), y, classes=list(range(count)))
    return lambda: cs.bbc(cube, "auc_ovr", times=100, rng=1)
