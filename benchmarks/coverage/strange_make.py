"""Make and save the cubes of the study of strange designs: predictions, truth, and what the draws of `winner` tell.

Per repetition a record holds ``predictions`` (float32), ``label``, ``fold``, ``group``, ``event``, ``inner``;
``judged`` has, by question and metric, the evidence that intervals work on and the truth: what was decided, refitted
on all samples, on new cases. Files: ``FOLDER/KEY-CHUNK.pkl.gz``, each a list of records.
"""

from __future__ import annotations

import gzip
import pickle
import sys
import warnings
import zlib
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import cvstats as cs

from . import strange_learners as new
from .refit import deal
from .strange_cells import CELLS, Cell

NEW_CASES = 2000
LEAST = 6  # of a class in a training set
CHUNK = 25
TIMES = 300
SHARES = (0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975)
PRIOR = 0.3
TWO = ("accuracy", "balanced_accuracy", "f1", "mcc", "auc", "average_precision", "brier", "log_loss")
METRICS: dict[str, tuple[str, ...]] = {
    "class": TWO,
    "group": ("accuracy", "balanced_accuracy", "auc", "log_loss"),
    "three": ("accuracy", "balanced_accuracy", "auc_ovr", "auc_ovr_weighted", "brier", "log_loss"),
    "value": ("mse", "rmse", "mae", "r2"),
    "survival": ("concordance",),
    "separate": ("auc",),
}


class Recorder:
    """An interval method that keeps what it is given."""

    name = "recorder"

    def __init__(self) -> None:
        self.evidence: list[Any] = []

    def refuse(self, evidence: Any) -> str | None:
        """Never refuse."""
        return None

    def limits(self, evidence: Any, level: float) -> tuple[float, float, float]:
        """Keep the evidence."""
        if level > 0.94:
            self.evidence.append(evidence)
        return 0.0, 1.0, 0.0


def compact(evidence: Any) -> dict[str, Any]:
    """Return what intervals need of the evidence, draws by their variance and quantiles."""
    kept = {one.name: getattr(evidence, one.name) for one in fields(evidence)}
    kept["metric"] = evidence.metric.name
    for name in ("scores", "variance", "wins"):
        kept[name] = None if kept[name] is None else np.asarray(kept[name], np.float64)
    kept["quantiles"] = np.quantile(evidence.values, SHARES) if len(evidence.values) else np.full(len(SHARES), np.nan)
    for name in ("values", "chosen", "kept"):
        known = None if kept[name] is None else kept[name][np.isfinite(kept[name])]
        kept[name] = None if known is None else float(known.var(ddof=1)) if len(known) > 1 else 0.0
    del kept["cube"]
    return kept


def cases(cell: Cell, n: int, rng: np.random.Generator, balanced: bool = False) -> tuple[np.ndarray, ...]:
    """Return n cases and their weights; classes in the cell's ratio, or (weighted to it) half of each."""
    if not cell.share:
        made = cell.make(n, rng)
        return *made, np.ones(n)
    if cell.kind == "separate":
        up = round((0.5 if balanced else cell.share) * n)
    else:
        up = n // 2 if balanced else max(LEAST, int(rng.binomial(n, cell.share)))
    parts: list[list[np.ndarray]] = [[], []]
    wanted = (n - up, up)
    while any(sum(map(len, part)) < many for part, many in zip(parts, wanted, strict=True)):
        X, y = cell.make(2 * n, rng)
        for code in (0, 1):
            parts[code].append(X[y == code])
    X = np.concatenate([np.concatenate(part)[:many] for part, many in zip(parts, wanted, strict=True)])
    y = np.repeat([0, 1], wanted)
    order = rng.permutation(n)
    share = PRIOR if cell.kind == "separate" else cell.share
    weight = np.where(y == 1, share / up, (1 - share) / (n - up)) * n if balanced else np.ones(n)
    return X[order], y[order], weight[order]


def fitted(cell: Cell, X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return the predictions of all configurations."""
    if cell.kind == "three":
        return new.one_against_rest(cell.families)(X, y, Z)
    target = np.log(y) if cell.kind == "survival" else y
    made = np.concatenate([family(X, target, Z) for family in cell.families], axis=1)
    return -made if cell.kind == "survival" else made  # a risk


def out_of_fold(cell: Cell, X: np.ndarray, y: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Return predictions for every sample by the models that did not see its fold."""
    out = None
    for one in np.unique(fold):
        held = fold == one
        made = fitted(cell, X[~held], y[~held], X[held])
        out = np.full((len(y), *made.shape[1:]), np.nan) if out is None else out
        out[held] = made
    assert out is not None
    return out


def partners(cell: Cell, X: np.ndarray, y: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Return predictions (sample, configuration, partner) with a fold of each class left out."""
    k, out = cell.folds, None
    for a in range(k):
        for b in range(k):
            held = fold == np.where(y == 1, b, a)
            made = fitted(cell, X[~held], y[~held], X[held])
            out = np.full((len(y), made.shape[1], k), np.nan) if out is None else out
            out[np.flatnonzero(held), :, np.where(y[held] == 1, a, b)] = made
    assert out is not None
    return out


def split(cell: Cell, y: np.ndarray, group: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """Return folds."""
    if cell.folds == 0:
        return np.arange(len(y))
    if group is not None:
        return (rng.permutation(group.max() + 1) % cell.folds)[group]
    if cell.kind in ("value", "survival") or not cell.stratified:
        return rng.permutation(len(y)) % cell.folds
    return deal(y, cell.folds, rng)


def predicted(cell: Cell, rng: np.random.Generator) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """Return one data set with its predictions, and new cases: theirs, their target, weight and event."""
    while True:
        X, y, *more, _ = cases(cell, cell.n, rng)
        if cell.kind in ("value", "survival") or np.bincount(y).min() >= LEAST:
            break
    group = more[0] if cell.kind == "group" else None
    fold = np.stack([split(cell, y, group, rng) for _ in range(cell.repeats)], 1)
    if cell.kind == "separate":
        made = partners(cell, X, y, fold[:, 0])
    else:
        made = np.stack([out_of_fold(cell, X, y, fold[:, r]) for r in range(cell.repeats)], axis=2)
        made = made[:, :, 0] if cell.repeats == 1 else made
    record: dict[str, Any] = {"predictions": made.astype(np.float32), "label": y, "fold": fold, "group": group}
    record["event"] = more[0] if cell.kind == "survival" else None
    if cell.inner:
        inner = []
        for one in range(cell.folds):
            rows = np.flatnonzero(fold[:, 0] != one)
            inner.append(np.full(made.shape, np.nan))
            inner[-1][rows] = out_of_fold(cell, X[rows], y[rows], deal(y[rows], 5, rng))
        record["inner"] = np.stack(inner, 2).astype(np.float32)
    Z, t, *more, weight = cases(cell, NEW_CASES if cell.kind != "survival" else 800, rng, balanced=True)
    return record, (fitted(cell, X, y, Z), t, weight, more[0] if cell.kind == "survival" else None)


def repetition(cell: Cell, rng: np.random.Generator) -> dict[str, Any]:
    """Return the record of one data set."""
    record, new_cases = predicted(cell, rng)
    return record | truths(cell, record, *new_cases)


def known(cell: Cell, fresh: np.ndarray, t: np.ndarray, weight: np.ndarray, event: Any) -> xr.DataArray:
    """Return predictions (case, configuration) for new cases as a cube, with what is known of them."""
    dims = ("sample", "configuration", "label_class")[: fresh.ndim]
    given: dict[str, Any] = {"kind": {"value": "value", "survival": "score"}.get(cell.kind, "probability")}
    given |= {"event": event}
    given |= {"weights": weight} if cell.share else {}
    given |= {"classes": range(3)} if cell.kind == "three" else {}
    return cs.as_cube(xr.DataArray(fresh, dims=dims), t, **given)


def cube_of(cell: Cell, record: dict[str, Any]) -> tuple[xr.DataArray, xr.DataArray | None]:
    """Return the cube of a record, and the inner predictions if there are some."""
    made, y, fold = record["predictions"].astype(float), record["label"], record["fold"]
    dims = ("sample", "configuration", {"three": "label_class", "separate": "partner"}.get(cell.kind, "repeat"))
    array = xr.DataArray(made, dims=dims[: made.ndim])
    kind = {"value": "value", "survival": "score"}.get(cell.kind, "probability")
    given = {"groups": record["group"], "event": record["event"], "kind": kind}
    given |= {"classes": range(3)} if cell.kind == "three" else {}
    cube = cs.as_cube(array, y, folds=fold if cell.repeats > 1 else fold[:, 0], **given)
    inner = None
    if "inner" in record:
        values = record["inner"].astype(float)
        inner = xr.DataArray(
            values, dims=("sample", "configuration", "outer_fold"), coords={"outer_fold": range(values.shape[2])}
        )
    return cube, inner


def questions(cell: Cell, cube: xr.DataArray) -> dict[str, dict[str, Any]]:
    """Return what is asked of `winner`, by name."""
    asked: dict[str, dict[str, Any]] = {metric: {"metric": metric} for metric in METRICS[cell.kind]}
    many = cube.sizes["configuration"] > 2
    if cell.kind == "class" and many and cell.repeats == 1 and not cell.inner:
        asked["by auc"] = {"metric": ["accuracy", "sensitivity", "brier"], "by": "auc"}
        cut = {"by": "auc", "adjust": cs.cut("youden")}
        asked["cut"] = {"metric": ["balanced_accuracy", "sensitivity", "f1"], **cut}
        if cell.n <= 50:  # the costliest
            asked["mixture"] = {"metric": ["log_loss", "brier"], "by": "log_loss", "select": cs.top_mean(3)}
        if cell.n >= 80 and cell.n * (cell.share or 0.5) >= 25:  # fewer events have no slope in many draws
            asked["clinical"] = {"metric": ["calibration_slope", cs.net_benefit(0.2)], "by": "auc"}
    if cell.kind == "value" and many:
        asked["mixture"] = {"metric": ["mse", "r2"], "by": "mse", "select": cs.top_mean(3)}
    if cell.kind == "separate":
        asked["accuracy"] = {"metric": cs.at_prior("accuracy", {1: PRIOR})}
        asked["brier"] = {"metric": cs.at_prior("brier", {1: PRIOR})}
    return asked


def truths(
    cell: Cell, record: dict[str, Any], fresh: np.ndarray, t: np.ndarray, weight: np.ndarray, event: Any
) -> dict[str, Any]:
    """Return, by question and metric, the evidence and the truth of what was decided."""
    cube, inner = cube_of(cell, record)
    decided: list[tuple[str, Any, dict[str, Any], np.ndarray]] = []
    for name, question in questions(cell, cube).items():
        recorder = Recorder()
        inside = {"inner": inner} if inner is not None else {}
        out = cs.winner(cube, interval=recorder, times=TIMES, rng=1, **question, **inside)
        at = int(out["selected"]) if "share" not in out else -1
        final = fresh[:, at] if at >= 0 else fresh @ out["share"].values
        if "threshold" in out:
            final = (final > float(out["threshold"])).astype(float)
        for evidence in recorder.evidence:
            # classes sampled separately: the weights of new cases are those of the prior already
            plain = evidence.metric.name.split("(")[0]
            metric = plain if cell.kind == "separate" else evidence.metric
            label = name if name == plain else f"{plain}, {name}"
            decided.append((label, metric, compact(evidence) | {"selected": at}, final))
    judged: dict[str, Any] = {}
    for metric in {str(one): one for _, one, _, _ in decided}.values():
        mine = [(label, found, final) for label, one, found, final in decided if str(one) == str(metric)]
        final = known(cell, np.stack([one[2] for one in mine], axis=1), t, weight, event)
        for (label, found, _), truth in zip(mine, cs.score(final, metric).values, strict=True):
            judged[label] = found | {"truth": float(truth)}
    return {"judged": judged}


def make(folder: Path, repetitions: int, only: str = "", first: int = 0) -> None:
    """Make all chunks that are missing, first chunks of all cells first."""
    folder.mkdir(parents=True, exist_ok=True)
    for chunk in range(first // CHUNK, -(-repetitions // CHUNK)):
        for key, cell in CELLS.items():
            path = folder / f"{key}-{chunk:03d}.pkl.gz"
            if only in key and not path.exists():
                seed = zlib.crc32(key.encode())
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    records = [repetition(cell, np.random.default_rng([seed, chunk * CHUNK + i])) for i in range(CHUNK)]
                with gzip.open(path.with_suffix(".part"), "wb", 2) as file:
                    pickle.dump(records, file, 5)
                path.with_suffix(".part").rename(path)


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:4], *map(int, sys.argv[4:]))
