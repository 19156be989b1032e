"""Time from a long CSV of two million rows to a report, stage by stage.

Run ``python benchmarks/report_time.py``. It writes a table of 2000 samples x 100 configurations x 10 repeats to a
temporary folder, reads it, analyses it and writes the report, and prints the seconds of every stage (wall and CPU).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import cvstats as cs
from cvstats.report import render_html, write_text
from cvstats.report.analysis import Analysis
from cvstats.report.page import Page


def make_table(path: Path, samples: int, configurations: int, repeats: int) -> int:
    rng = np.random.default_rng(1)
    label = rng.integers(0, 2, samples)
    skill = rng.uniform(0.2, 1.2, configurations)
    shape = (configurations, repeats, samples)
    luck = rng.normal(size=(configurations, 1, samples)) + 0.5 * rng.normal(size=shape)
    score = 1 / (1 + np.exp(-(skill[:, None, None] * (2 * label - 1) + luck)))
    fold = np.stack([rng.permutation(np.arange(samples) % 10) for _ in range(repeats)])
    frame = pd.DataFrame(
        {
            "sample": np.tile(np.arange(samples), configurations * repeats),
            "configuration": np.repeat([f"model {i:03d}" for i in range(configurations)], repeats * samples),
            "repeat": np.tile(np.repeat(np.arange(repeats), samples), configurations),
            "fold": np.tile(fold.ravel(), configurations),
            "prediction": score.ravel().round(5),
            "label": np.tile(label, configurations * repeats),
        }
    )
    frame.to_csv(path, index=False)
    return len(frame)


def timed(stages: list[tuple[str, float, float]], name: str, work: Callable[[], Any]) -> Any:
    wall, cpu = time.perf_counter(), time.process_time()
    value = work()
    stages.append((name, time.perf_counter() - wall, time.process_time() - cpu))
    return value


def everything(analysis: Analysis) -> tuple[Any, ...]:
    return analysis.results, analysis.about, analysis.curve, analysis.best


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--samples", type=int, default=2000)
    arguments.add_argument("--configurations", type=int, default=100)
    arguments.add_argument("--repeats", type=int, default=10)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.csv"
        rows = make_table(path, options.samples, options.configurations, options.repeats)
        print(f"{rows} rows, {path.stat().st_size / 1e6:.0f} MB, 1000 draws")
        stages: list[tuple[str, float, float]] = []
        cube = timed(stages, "read", lambda: cs.read_predictions(path))
        few = Analysis(cube.isel(configuration=slice(3)), "auc", times=100)
        timed(stages, "start up", lambda: everything(few))  # imports and compiled kernels, whatever the size
        analysis = Analysis(cube, "auc")
        timed(stages, "analyse", lambda: everything(analysis))
        page = timed(stages, "draw", lambda: render_html(Page(analysis)))
        timed(stages, "write", lambda: write_text(Path(folder) / "report.html", page))
        parts: list[tuple[str, float, float]] = []
        timed(parts, "winner", lambda: cs.winner(cube, "auc", rng=1))
    total = sum(wall for _, wall, _ in stages)
    for name, wall, cpu in [*stages, ("total", total, sum(cpu for _, _, cpu in stages)), *parts]:
        print(f"{name:10s} {wall:7.2f} s  CPU {cpu:7.2f} s  {100 * wall / total:5.1f} %")


if __name__ == "__main__":
    main()
