"""Rebuild intervals from the records of the study and count what they cover."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from cvstats.intervals import Evidence, calibrated, percentile
from cvstats.intervals.calibrated_limits import bbc_x
from cvstats.metrics import get_metric

from .designs import DESIGNS, Design
from .simulated import SIMULATED, Fixed

LEVEL = 0.95
SEEN = 100  # repetitions of held-out designs that were looked at before the constants were final
Limits = Callable[[Evidence, float], tuple[float, float, float]]
METHODS: dict[str, Limits] = {
    "percentile, random ties": percentile().limits,
    "calibrated": calibrated().limits,
    "calibrated, never safe": calibrated(safe_upper=False).limits,
    "calibrated, always safe": calibrated(safe_upper=True).limits,
}
SAFE = ("calibrated, never safe", "calibrated, always safe")
FIRST = "percentile, first ties"
HOLDOUT = "calibrated, hold-out"


def holdout(evidence: Evidence, level: float) -> tuple[float, float, float]:
    """Return the limits of the hold-out regime, whose estimate is BBC-X."""
    return calibrated().limits(replace(evidence, estimator="bbc_x", estimate=bbc_x(evidence)), level)


def load(folder: Path, design: Design | Fixed) -> dict[str, np.ndarray]:
    """Return all records of a design, chunks joined in order."""
    parts = [np.load(path) for path in sorted(folder.glob(f"{design.key}-[0-9][0-9][0-9].npz"))]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0].files} if parts else {}


def labels_of(records: dict[str, np.ndarray]) -> list[str]:
    """Return the metric labels (metric, metric@r3, metric@inner) of the records."""
    return [name.removesuffix("/truth") for name in records if name.endswith("/truth")]


def estimator_of(label: str) -> str:
    """Return which estimator a label stands for."""
    metric, _, extra = label.partition("@")
    if extra == "inner":
        return "bbc_ncv"
    return "bbc_cross_repeat" if extra and metric != "auc" else "bbc"


def evidences(records: dict[str, np.ndarray], label: str, n: int) -> Iterator[Evidence]:
    """Yield the evidence of each repetition, as `winner` would hand it to an interval method."""
    metric = get_metric(label.partition("@")[0])
    column = {
        name: records[f"{label}/{name}"]
        for name in ("naive", "bbc", "estimate", "scores", "variance", "wins", "values", "smallest")
    }
    unseen = _unseen(records, label, n)
    for i in range(len(column["naive"])):
        yield Evidence(
            metric=metric,
            estimate=float(column["estimate"][i]),
            bbc=float(column["bbc"][i]),
            naive=float(column["naive"][i]),
            scores=column["scores"][i],
            variance=column["variance"][i],
            chosen=np.repeat(column["scores"][i], column["wins"][i]),
            values=column["values"][i].astype(float),
            n=n,
            smallest_class=int(column["smallest"][i]),
            estimator=estimator_of(label),
            wins=column["wins"][i] / column["wins"][i].sum(),
            unseen=unseen[i],
        )


def _unseen(records: dict[str, np.ndarray], label: str, n: int) -> np.ndarray:
    """Return the cost of errors where the winner made none; its accuracy stands in the records of the same design."""
    metric = label.partition("@")[0]
    cost, scores = get_metric(metric).error_cost(2), records[f"{label}/scores"]
    right = records.get(label.replace(metric, "accuracy", 1) + "/scores")
    if not cost or right is None:
        return np.zeros(len(scores))
    chosen = np.take_along_axis(right, scores.argmin(axis=1)[:, None], axis=1)[:, 0]
    return np.where((1 - chosen) * n < 0.5, cost, 0.0)


def cell_rows(
    design: Design | Fixed, records: dict[str, np.ndarray], methods: dict[str, Limits]
) -> list[dict[str, object]]:
    """Return one row per metric and method of a design."""
    rows = []
    for label in labels_of(records):
        if getattr(design, "inner", False) and "@" not in label:
            continue  # that is another design
        truth, sign = records[f"{label}/truth"], get_metric(label.partition("@")[0]).sign
        first = records[f"{label}/first"]
        found = {FIRST: (first[:, 0], first[:, 1:3], first[:, 3:5])}
        everything = list(evidences(records, label, design.n))
        estimate = records[f"{label}/estimate"]
        for name, limits in methods.items():
            if name in SAFE and sign < 0:
                continue  # losses know no automatic rule
            centre = records[f"{label}/bbc"] if name.startswith("percentile") else estimate
            if name == HOLDOUT:
                centre = np.array([bbc_x(each) for each in everything])
            two = np.array([limits(each, LEVEL)[:2] for each in everything])
            one = np.array([limits(each, 2 * LEVEL - 1)[:2] for each in everything])
            found[name] = (centre, two, one)
        width = np.median(found["percentile, random ties"][1] @ [-1, 1])
        for name, (centre, two, one) in found.items():
            rows.append(
                {
                    "set": design.set,
                    "design": design.name,
                    "size": design.n,
                    "folds": design.folds,
                    "metric": label.partition("@")[0],
                    "saved": label.partition("@")[2] or "r1",
                    "estimator": _estimator(label, name),
                    "method": name,
                    **counted(truth, centre, two, one, sign),
                    "width_ratio": float(np.median(two @ [-1, 1]) / width) if width > 0 else np.inf,
                }
            )
    return rows


def _estimator(label: str, method: str) -> str:
    if method == HOLDOUT:
        return "bbc_x"
    return "bbc" if method.startswith("percentile") else estimator_of(label)


def counted(
    truth: np.ndarray, estimate: np.ndarray, two: np.ndarray, one: np.ndarray, sign: int
) -> dict[str, float | int]:
    """Return shares and means over repetitions; `bound` is the one-sided bound on the bad side of the estimate."""
    inside = (two[:, 0] <= truth) & (truth <= two[:, 1])
    bound = one[:, 0] <= truth if sign > 0 else truth <= one[:, 1]
    other = truth <= one[:, 1] if sign > 0 else one[:, 0] <= truth
    error = sign * (estimate - truth)
    return {
        "repetitions": len(truth),
        "coverage": float(inside.mean()),
        "coverage_std_error": float(np.sqrt(inside.mean() * (1 - inside.mean()) / len(truth))),
        "coverage_upper99": upper(int(inside.sum()), len(truth)),
        "bound_coverage": float(bound.mean()),
        "bound_upper99": upper(int(bound.sum()), len(truth)),
        "other_bound_coverage": float(other.mean()),
        "truth": float(truth.mean()),
        "bias": float(error.mean()),
        "bias_std_error": float(error.std(ddof=1) / np.sqrt(len(truth))),
        "rmse": float(np.sqrt((error**2).mean())),
        "width": float((two @ [-1, 1]).mean()),
    }


def upper(hits: int, n: int, level: float = 0.99) -> float:
    """Return the exact upper confidence limit (Clopper and Pearson, one-sided) of a share."""
    from scipy.special import betaincinv

    return 1.0 if hits == n else float(betaincinv(hits + 1, n - hits, level))


def study_rows(folder: Path, simulated: bool = False) -> list[dict[str, object]]:
    """Return the rows of all designs that have records."""
    rows: list[dict[str, object]] = []
    for design in SIMULATED if simulated else DESIGNS:
        records = load(folder, design)
        if records:
            rows += cell_rows(design, records, METHODS | ({HOLDOUT: holdout} if simulated else {}))
    return rows


def fresh_rows(folder: Path) -> list[dict[str, object]]:
    """Return accuracy and AUC of the held-out designs without their first repetitions, which were looked at early."""
    methods = {name: METHODS[name] for name in ("percentile, random ties", "calibrated")}
    rows: list[dict[str, object]] = []
    for design in DESIGNS:
        if design.set == "held_out" and "auc" in design.metrics and design.repeats == 1:
            records = {
                name: values[SEEN:]
                for name, values in load(folder, design).items()
                if name.startswith(("accuracy/", "auc/"))
            }
            if records and all(map(len, records.values())):
                rows += cell_rows(design, records, methods)
    return rows
