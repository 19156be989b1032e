"""Run the designs with refitted learners; keep per repetition what every interval needs."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from . import kernel
from .designs import Design
from .learners import predict_all, predict_one

TIMES = 300
CHUNK = 50
REPEATS = (2, 3, 5, 10)


def deal(y: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return folds, stratified by class (or in blocks of sorted values) and of nearly equal size."""
    order = np.lexsort((rng.random(len(y)), y))
    fold = np.empty(len(y), int)
    fold[order] = np.arange(len(y)) % k
    return rng.permutation(k)[fold]


def cross_validate(design: Design, X: np.ndarray, y: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Return out-of-fold predictions (sample, configuration)."""
    out: np.ndarray | None = None
    for k in np.unique(fold):
        inside = fold != k
        held = predict_all(design.families, X[inside], y[inside], X[~inside])
        out = np.empty((len(y), held.shape[1])) if out is None else out
        out[~inside] = held
    assert out is not None
    return out


def repetition(design: Design, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the records of one data set: a flat dict keyed metric/field."""
    X, y, Z, t = design.source(design.n, rng)
    folds = [deal(y, design.folds, rng) for _ in range(design.repeats)]
    predictions = np.stack([cross_validate(design, X, y, fold) for fold in folds], axis=2)
    inner = inner_predictions(design, X, y, folds[0], rng) if design.inner else None
    truths: dict[int, np.ndarray] = {}
    record: dict[str, np.ndarray] = {}
    for metric in design.metrics:
        for label, found, extra in outcomes(design, metric, predictions, inner, y, folds[0], rng):
            if found.selected not in truths:
                truths[found.selected] = predict_one(design.families, found.selected, X, y, Z)
            record[f"{label}/truth"] = np.float64(kernel.score_of(metric, truths[found.selected], t))
            for name in ("naive", "bbc", "scores", "variance", "wins", "first"):
                record[f"{label}/{name}"] = np.asarray(getattr(found, name))
            record[f"{label}/values"] = found.values.astype(np.float32)
            record[f"{label}/estimate"] = np.float64(found.bbc if extra is None else extra)
            least = len(y) if metric != "auc" else min(int(y.sum()), len(y) - int(y.sum()))
            record[f"{label}/smallest"] = np.int64(least)
    return record


def inner_predictions(
    design: Design, X: np.ndarray, y: np.ndarray, fold: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return predictions made inside each outer training set (outer fold, sample, configuration)."""
    out = []
    for k in range(design.folds):
        rows = np.flatnonzero(fold != k)
        inside = cross_validate(design, X[rows], y[rows], deal(y[rows], 5, rng))
        out.append(np.full((len(y), inside.shape[1]), np.nan))
        out[-1][rows] = inside
    return np.stack(out)


def outcomes(
    design: Design,
    metric: str,
    predictions: np.ndarray,
    inner: np.ndarray | None,
    y: np.ndarray,
    fold: np.ndarray,
    rng: np.random.Generator,
) -> list[tuple[str, kernel.Outcome, float | None]]:
    """Return (label, outcome, estimate other than BBC) of every estimator that the design allows."""
    if design.repeats > 1:
        out: list[tuple[str, kernel.Outcome, float | None]] = []
        sign = kernel.SIGN[metric]
        for many in REPEATS:
            if metric == "auc":
                out.append((f"{metric}@r{many}", _averaged_areas(predictions[:, :, :many], y, rng), None))
                continue
            values = kernel.pointwise(metric, predictions[:, :, :many], y)
            counts = kernel.draw_counts(len(y), TIMES, rng)
            found = kernel.outcome(kernel.Sums(values.sum(axis=2) / many), metric, counts, rng)
            out.append((f"{metric}@r{many}", found, kernel.cross_repeat(values, sign, counts, rng)))
        return out
    found = kernel.bootstrap(metric, predictions[:, :, 0], y, TIMES, rng)
    if inner is None:
        return [(metric, found, None)]
    values = kernel.pointwise(metric, predictions[:, :, 0], y)
    inside = np.stack([kernel.pointwise(metric, each, y) for each in inner])
    smooth = kernel.smoothed_nested(values, inside, fold, kernel.SIGN[metric], 100, rng)
    return [(metric, found, None), (f"{metric}@inner", found, (found.bbc + smooth) / 2)]


def _averaged_areas(predictions: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> kernel.Outcome:
    machine = kernel.Areas(predictions[:, :, 0], y)
    rest = [kernel.Areas(predictions[:, :, r], y) for r in range(1, predictions.shape[2])]
    machine.wins = sum((each.wins for each in rest), machine.wins) / (len(rest) + 1)
    machine.scores = machine.wins.mean(axis=(0, 2), dtype=float)
    machine.by_configuration = np.ascontiguousarray(machine.wins.transpose(1, 0, 2))
    return kernel.outcome(machine, "auc", kernel.draw_counts(len(y), TIMES, rng, y), rng)


def run_chunk(design: Design, chunk: int, folder: Path) -> None:
    """Run one chunk of repetitions and write it, whole or not at all."""
    seed = zlib.crc32(design.key.encode())
    rows = [repetition(design, np.random.default_rng([seed, chunk * CHUNK + number])) for number in range(CHUNK)]
    path = folder / f"{design.key}-{chunk:03d}.npz"
    part = path.with_suffix(".part.npz")
    np.savez_compressed(part, **{name: np.stack([row[name] for row in rows]) for name in rows[0]})
    part.rename(path)
