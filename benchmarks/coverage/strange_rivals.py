"""Run the rivals on saved predictions of the study of strange designs, and tabulate coverage, width and cost.

python -m benchmarks.coverage.strange_rivals run FOLDER 50 validation   the first repetitions that are there
python -m benchmarks.coverage.strange_rivals run FOLDER 100 pairs       concordance, more designs
python -m benchmarks.coverage.strange_rivals table                      the tables of docs/coverage.md again

Costs are CPU time of one call, as a multiple of `winner` on the same data.
"""

from __future__ import annotations

import gzip
import pickle
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import cvstats as cs
from cvstats.metrics import get_metric

from . import rivals
from .refit import deal
from .strange_cells import CELLS, Cell
from .strange_make import CHUNK, cases, cube_of, fitted
from .summary import fill

RESULTS, DOCS = Path(__file__).resolve().parents[1] / "results", Path(__file__).resolve().parents[2] / "docs"

TIMES, MANY = 300, 1000  # draws of the estimate, and of methods that need the tails of many configurations
DOUBLE = 25  # repetitions of the double bootstrap
LEVEL = 0.95
HALVES = 10  # splits into halves
TWO = ("accuracy", "auc", "log_loss")
CHOSEN: dict[str, dict[str, tuple[str, ...]]] = {
    "validation": {
        "circles-n60": TWO,
        "bent-n80": TWO,
        "tailed-n40": TWO,
        "friedman-n60": TWO,
        "cancer-n40": TWO,
        "noise-plain-n50": TWO,
        "tailed-rare-n100": TWO,
        "bent-loose-n80": TWO,
        "bent-repeats-n60": ("accuracy", "log_loss"),
        "tailed-inner-n60": ("accuracy", "log_loss"),
        "friedman3-n60": ("mse",),
        "diabetes-n60": ("mse",),
        "block-value-n60": ("mse",),
        "survival-bent-n80": ("concordance",),
        "survival-large-n150": ("concordance",),
        "ordinal-n80": ("auc_ovr",),
        "wine-n50": ("auc_ovr",),
        "ordinal-large-n200": ("auc_ovr",),
    },
    "pairs": {cell.key.split("-", 1)[1]: ("concordance",) for cell in CELLS.values() if cell.set == "pairs"},
}
Result = Callable[[], tuple[float, float]]


def losses(metric: str, p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return what every sample (first axis) adds to a mean of samples, in performance direction."""
    y = y.reshape(-1, *[1] * (p.ndim - 1))
    if metric == "accuracy":
        return ((p > 0.5) == (y > 0)).astype(float)
    if metric == "mse":
        return -((p - y) ** 2)
    return np.log(np.clip(np.where(y > 0, p, 1 - p), np.finfo(float).eps, None))


def of_package(out: xr.Dataset) -> tuple[float, float]:
    """Return the limits of a result."""
    return float(out["conf_low"]), float(out["conf_high"])


class Case:
    """One data set, one metric."""

    def __init__(self, cell: Cell, record: dict[str, Any], metric: str) -> None:
        self.cell, self.metric, self.record = cell, metric, record
        self.cube, self.inner = cube_of(cell, record)
        self.sign = get_metric(metric).sign
        self.best = record["judged"][metric]["selected"]
        self.one = self.cube.isel(configuration=[self.best])

    def drawn(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return scores, their bootstrap draws, and the draws over samples."""
        counts = cs.bootstrap(self.cube, MANY, rng=2)
        draws = self.sign * cs.score_draws(self.cube, self.metric, counts).values
        good = np.isfinite(draws).all(axis=1)
        return self.sign * cs.score(self.cube, self.metric).values, draws[good], counts.values[good]

    def back(self, limits: tuple[float, float]) -> tuple[float, float]:
        """Return limits in the metric's unit."""
        low, high = np.clip(sorted(self.sign * np.array(limits)), *get_metric(self.metric).range)
        return float(low), float(high)

    def tilted(self) -> tuple[float, float]:
        """Return Rink and Brannath's limits."""
        scores, draws, counts = self.drawn()
        p, y = self.one.values[:, 0], self.record["label"]
        if self.metric == "auc":
            wins = (p[y == 1][:, None] > p[y == 0]) + 0.5 * (p[y == 1][:, None] == p[y == 0])
            influence = np.empty(len(y))
            influence[y == 1] = (wins.mean(1) - wins.mean()) * len(y) / (y == 1).sum()
            influence[y == 0] = (wins.mean(0) - wins.mean()) * len(y) / (y == 0).sum()

            def area(w: np.ndarray) -> float:
                return float(w[y == 1] @ wins @ w[y == 0] / (w[y == 1].sum() * w[y == 0].sum()))

            return self.back(rivals.tilted(scores, draws, counts, influence, area, LEVEL))
        each = losses(self.metric, p, y)
        return self.back(rivals.tilted(scores, draws, counts, each, lambda w: float(w @ each), LEVEL))

    def nested(self) -> tuple[float, float]:
        """Return the limits of Bates, Hastie and Tibshirani for the winner's configuration."""
        y, fold, inner = self.record["label"], self.record["fold"][:, 0], self.record["inner"].astype(float)
        each = losses(self.metric, self.one.values[:, 0], y)
        inside = losses(self.metric, inner[:, self.best], y)
        parts = [(each[fold == k], inside[fold != k, k]) for k in range(inner.shape[2])]
        return self.back(rivals.nested(*zip(*parts, strict=True), LEVEL))

    def corrected_t(self) -> tuple[float, float]:
        """Return the corrected resampled t limits of the winner."""
        fold, folds = self.record["fold"], self.cell.folds
        each = losses(self.metric, self.one.values[:, 0], self.record["label"])
        means = [[each[fold[:, r] == k, r].mean() for k in range(folds)] for r in range(fold.shape[1])]
        return self.back(rivals.corrected_t(np.array(means), LEVEL))

    def conservative_z(self, X: np.ndarray) -> tuple[float, float]:
        """Return conservative Z limits of the winner, refitted on halves with folds of the same size."""
        y, rng = self.record["label"], np.random.default_rng(3)
        size, halves = len(y) // self.cell.folds, np.empty((HALVES, 2))
        for at in range(HALVES):
            half = deal(y, 2, rng)
            for side in (0, 1):
                rows, values = np.flatnonzero(half == side), []
                for _ in range(self.cell.folds):
                    held = deal(y[rows], max(2, round(len(rows) / size)), rng) == 0
                    made = fitted(self.cell, X[rows[~held]], y[rows[~held]], X[rows[held]])[:, self.best]
                    values.append(losses(self.metric, made, y[rows[held]]).mean())
                halves[at, side] = np.mean(values)
        naive = self.sign * float(cs.score(self.one, self.metric).mean())
        return self.back(rivals.conservative_z(naive, halves, LEVEL))

    def methods(self, repetition: int) -> Iterator[tuple[str, Result]]:
        """Return the methods that apply, by name."""
        cube, metric, one, given = self.cube, self.metric, self.one, {"times": TIMES, "rng": 1}
        inside = {} if self.inner is None else {"inner": self.inner}
        plain = self.cell.repeats == 1 and not inside
        yield "calibrated", lambda: of_package(cs.winner(cube, metric, **given, **inside))
        yield "percentile, first ties", lambda: of_package(cs.bbc(cube, metric, **given))
        yield "percentile, random ties", lambda: of_package(cs.bbc(cube, metric, **given, ties="random"))
        yield "BCa on the winner", lambda: of_package(cs.bbc(one, metric, **given, interval=cs.bca(MANY)))
        if metric in ("accuracy", "auc") and plain:
            name = {"accuracy": "wilson", "auc": "delong"}[metric]
            yield "Wilson or DeLong on the winner", lambda: of_package(cs.bbc(one, metric, **given, interval=name))
        yield "simultaneous, max-T", lambda: self.back(rivals.simultaneous(*self.drawn()[:2], LEVEL))
        yield "zoom correction", lambda: self.back(rivals.zoom(*self.drawn()[:2], LEVEL))
        if metric in ("accuracy", "auc", "log_loss", "mse") and self.cell.repeats == 1:
            yield "simultaneous, tilted", self.tilted
        if plain and repetition < DOUBLE and metric not in ("concordance", "auc_ovr"):
            method = cs.double_bootstrap(outer=200, inner=40)
            yield "double bootstrap", lambda: of_package(cs.winner(cube, metric, **given, interval=method))
        if inside:
            yield "nested folds", self.nested
        if self.cell.repeats > 1:
            yield "corrected resampled t", self.corrected_t
        if not plain:
            place = (zlib.crc32(self.cell.key.encode()), self.record["number"])
            X, y, *_ = cases(self.cell, self.cell.n, np.random.default_rng(list(place)))
            if np.array_equal(y, self.record["label"]):  # else this data set was drawn again
                yield "conservative Z (models of halves)", lambda: self.conservative_z(X)


def run(folder: Path, path: Path, repetitions: int, which: str) -> None:
    """Run all rivals on the first repetitions that are saved; a row has a cell, a metric and a method."""
    rows: list[dict[str, Any]] = []
    for name, metrics in CHOSEN[which].items():
        cell, many = CELLS[f"{which}-{name}"], 0
        found: dict[tuple[str, str], list[tuple[bool, float, float]]] = {}
        for file in sorted(folder.glob(f"{cell.key}-*.pkl.gz")):
            first = int(file.name.rsplit("-", 1)[1].split(".")[0]) * CHUNK
            with gzip.open(file) as opened:
                records = pickle.load(opened)
            for at, record in enumerate(records[: repetitions - many]):
                record["number"] = first + at
                for metric in metrics:
                    truth = record["judged"][metric]["truth"]
                    for method, limits in Case(cell, record, metric).methods(many):
                        begin = time.process_time()
                        low, high = limits()
                        spent = time.process_time() - begin
                        inside = low - 1e-12 <= truth <= high + 1e-12
                        found.setdefault((metric, method), []).append((inside, high - low, spent))
                many += 1
        for (metric, method), each in found.items():
            inside, width, spent = np.array(each, float).T
            row = {"cell": name, "metric": metric, "method": method, "repetitions": len(each)}
            row |= {"coverage": inside.mean(), "width": np.median(width), "seconds": spent.mean()}
            rows.append(row)
        pd.DataFrame(rows).to_csv(path, index=False, float_format="%.5g")
        print(f"{name}: {many}", flush=True)


def table(rows: pd.DataFrame) -> str:
    """Return the table: by method and metric coverage (mean / least cell) and width, then cost."""
    rows = rows.set_index(["cell", "metric"])
    base = rows[rows["method"] == "percentile, random ties"]["width"]
    ours = rows[rows["method"] == "calibrated"]
    metrics = list(dict.fromkeys(rows.index.get_level_values("metric")))
    lines = ["| limits | " + " | ".join(metrics) + " | cost |", "| --- " * (len(metrics) + 2) + "|"]
    for method in dict.fromkeys(rows["method"]):
        mine, shown = rows[rows["method"] == method], []
        for metric in metrics:
            part = mine[mine.index.get_level_values("metric") == metric]
            width = (part["width"] / base.loc[part.index]).median()
            each = part["coverage"]
            shown.append(f"{each.mean():.3f} / {each.min():.2f}, {width:.2f}" if len(part) else "")
        cost = mine["seconds"].sum() / ours.loc[mine.index]["seconds"].sum()
        lines.append(f"| {method} | " + " | ".join(shown) + f" | {cost:.1f} |")
    return "\n".join(lines) + "\n"


def pairs(rows: pd.DataFrame) -> str:
    """Return the table of concordance and AUC of several classes: width relative to BCa's, and coverage of both."""
    rows = rows[rows["metric"].isin(["concordance", "auc_ovr"])].set_index(["cell", "metric", "method"])
    lines = [
        "| cell | metric | width relative to BCa | coverage | coverage of BCa |",
        "| --- | --- | --- | --- | --- |",
    ]
    for cell, metric in dict.fromkeys(key[:2] for key in rows.index):
        ours, rival = (rows.loc[cell, metric, method] for method in ("calibrated", "BCa on the winner"))
        ratio = ours["width"] / rival["width"]
        lines.append(f"| {cell} | {metric} | {ratio:.2f} | {ours['coverage']:.3f} | {rival['coverage']:.3f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "run":
        run(Path(sys.argv[2]), RESULTS / f"rivals_{sys.argv[4]}.csv", int(sys.argv[3]), sys.argv[4])
    first, second = (pd.read_csv(RESULTS / f"rivals_{which}.csv") for which in CHOSEN)
    fill(DOCS / "coverage.md", {"rivals": table(first), "pairs": pairs(pd.concat([first, second]))})
