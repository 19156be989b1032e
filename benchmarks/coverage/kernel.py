"""The bootstrap of the study: same numbers as `cvstats.bbc` on the same draws, without labels and checks.

Cubes of the study are small (N <= 200, some 30 configurations), where labelled arrays cost ten times the arithmetic.
`python -m benchmarks.coverage check` compares this kernel with the package.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SIGN = {"accuracy": 1, "auc": 1, "concordance": 1, "log_loss": -1, "brier": -1, "mse": -1}


def draw_counts(n: int, times: int, rng: np.random.Generator, strata: np.ndarray | None = None) -> np.ndarray:
    """Return bootstrap counts (draw, sample), within strata when given; no draw uses every sample of a stratum."""
    if strata is None:
        pick = rng.integers(0, n, (times, n)) + n * np.arange(times)[:, None]
        counts = np.bincount(pick.ravel(), minlength=times * n).reshape(times, n)
        full = (counts > 0).all(axis=1)
        if full.any():
            counts[full] = draw_counts(n, int(full.sum()), rng)
        return counts.astype(np.float32)
    counts = np.empty((times, n), np.float32)
    for name in np.unique(strata):
        rows = np.flatnonzero(strata == name)
        counts[:, rows] = draw_counts(len(rows), times, rng)
    return counts


def pointwise(metric: str, prediction: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return each prediction's value (0-1 score or loss), shaped like `prediction` (sample first)."""
    truth = y.reshape(-1, *([1] * (prediction.ndim - 1)))
    if metric == "accuracy":
        return ((prediction > 0.5) == (truth == 1)).astype(np.float32)
    if metric == "log_loss":
        return -np.log(np.where(truth == 1, prediction, 1 - prediction))
    return (prediction - truth) ** 2


def auc_of(prediction: np.ndarray, y: np.ndarray) -> float:
    """Return the AUC of one column."""
    positive, negative = prediction[y == 1], np.sort(prediction[y == 0])
    below = np.searchsorted(negative, positive, "left") + np.searchsorted(negative, positive, "right")
    return float(below.mean() / (2 * len(negative)))


def concordance_of(prediction: np.ndarray, y: np.ndarray) -> float:
    """Return the share of pairs that a column orders rightly, on at most 1000 cases; all events are observed."""
    prediction, y = prediction[:1000], y[:1000]
    longer = y[:, None] > y[None]
    gap = prediction[:, None] - prediction[None]
    return float(((gap > 0) + 0.5 * (gap == 0))[longer].mean())


def score_of(metric: str, prediction: np.ndarray, y: np.ndarray) -> float:
    """Return the score of one column of predictions."""
    if metric == "concordance":
        return concordance_of(prediction, y)
    return auc_of(prediction, y) if metric == "auc" else float(pointwise(metric, prediction, y).mean())


class Sums:
    """Means of pointwise values."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.scores = values.astype(float).mean(axis=0)

    def in_bag(self, counts: np.ndarray) -> np.ndarray:
        """Return the scores (draw, configuration), rounded so that equal ones are seen to be equal."""
        return np.round(counts.astype(self.values.dtype) @ self.values / counts[:1].sum(), 12)

    def judged(self, counts: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return, per draw, the score of configuration `index` on the samples left out."""
        out = counts == 0
        return (self.values.T[index] * out).sum(axis=1, dtype=float) / out.sum(axis=1)


class Areas:
    """AUC by counting pairs."""

    def __init__(self, prediction: np.ndarray, y: np.ndarray) -> None:
        positive, negative = prediction[y == 1], prediction[y == 0]
        gap = positive[:, :, None] - negative.T[None]  # (positive, configuration, negative)
        self.wins = ((gap > 0) + 0.5 * (gap == 0)).astype(np.float32)
        self.y = y
        self.scores = self.wins.mean(axis=(0, 2), dtype=float)
        self.by_configuration = np.ascontiguousarray(self.wins.transpose(1, 0, 2))

    def in_bag(self, counts: np.ndarray) -> np.ndarray:
        """Return the scores (draw, configuration)."""
        up, down = counts[:, self.y == 1], counts[:, self.y == 0]
        n1, c, n0 = self.wins.shape
        total = (up @ self.wins.reshape(n1, c * n0)).reshape(-1, c, n0)
        return np.einsum("bcj,bj->bc", total, down) / float(n1 * n0)

    def judged(self, counts: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return, per draw, the score of configuration `index` on the samples left out."""
        up = (counts[:, self.y == 1] == 0).astype(np.float32)
        down = (counts[:, self.y == 0] == 0).astype(np.float32)
        value = np.empty(len(counts))
        for which in np.unique(index):
            rows = index == which
            value[rows] = ((up[rows] @ self.by_configuration[which]) * down[rows]).sum(axis=1)
        return value / (up.sum(axis=1) * down.sum(axis=1))


class Pairs:
    """Concordance of predicted times with observed ones, by counting pairs."""

    def __init__(self, prediction: np.ndarray, y: np.ndarray) -> None:
        self.longer = (y[:, None] > y[None]).astype(np.float32)
        gap = prediction.T[:, :, None] - prediction.T[:, None, :]
        self.wins = (((gap > 0) + 0.5 * (gap == 0)) * self.longer).astype(np.float32)
        self.scores = self.wins.sum(axis=(1, 2), dtype=float) / self.longer.sum(dtype=float)

    def in_bag(self, counts: np.ndarray) -> np.ndarray:
        """Return the scores (draw, configuration)."""
        pairs = ((counts @ self.longer) * counts).sum(axis=1, dtype=float)
        return np.stack([((counts @ each) * counts).sum(axis=1, dtype=float) / pairs for each in self.wins], axis=1)

    def judged(self, counts: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return, per draw, the score of configuration `index` on the samples left out."""
        out = (counts == 0).astype(np.float32)
        value = np.empty(len(counts))
        for which in np.unique(index):
            rows = index == which
            value[rows] = ((out[rows] @ self.wins[which]) * out[rows]).sum(axis=1)
        return value / ((out @ self.longer) * out).sum(axis=1)


def machine_of(metric: str, prediction: np.ndarray, y: np.ndarray) -> Sums | Areas | Pairs:
    """Return what scores predictions (sample, configuration) under many draws."""
    if metric in ("auc", "concordance"):
        return Areas(prediction, y) if metric == "auc" else Pairs(prediction, y)
    return Sums(pointwise(metric, prediction, y))


def chosen(scores: np.ndarray, sign: int, rng: np.random.Generator | None) -> np.ndarray:
    """Return the best configuration of each draw; ties go to the first, or with `rng` to any."""
    value = sign * scores
    if rng is None:
        return value.argmax(axis=1)
    return np.where(value == value.max(axis=1, keepdims=True), rng.random(value.shape, np.float32), -1).argmax(axis=1)


@dataclass
class Outcome:
    """What a repetition keeps, for one metric: enough to rebuild every interval offline."""

    naive: float
    selected: int
    scores: np.ndarray
    variance: np.ndarray
    wins: np.ndarray
    values: np.ndarray
    bbc: float
    first: tuple[float, float, float, float, float]  # ties to the first: mean, and quantiles .025 .975 .05 .95


def bootstrap(metric: str, prediction: np.ndarray, y: np.ndarray, times: int, rng: np.random.Generator) -> Outcome:
    """Choose in the bag, judge out of it, on predictions (sample, configuration)."""
    machine = machine_of(metric, prediction, y)
    return outcome(machine, metric, draw_counts(len(y), times, rng, y if metric == "auc" else None), rng)


def outcome(machine: Sums | Areas | Pairs, metric: str, counts: np.ndarray, rng: np.random.Generator) -> Outcome:
    """Return what the draws tell."""
    sign = SIGN[metric]
    inside = machine.in_bag(counts)
    index = chosen(inside, sign, rng)
    values = machine.judged(counts, index)
    first = machine.judged(counts, chosen(inside, sign, None))
    best = int((sign * machine.scores).argmax())
    return Outcome(
        naive=float(machine.scores[best]),
        selected=best,
        scores=machine.scores,
        variance=inside.var(axis=0, ddof=1, dtype=float),
        wins=np.bincount(index, minlength=len(machine.scores)),
        values=values,
        bbc=float(values.mean()),
        first=(float(first.mean()), *map(float, np.quantile(first, [0.025, 0.975, 0.05, 0.95]))),
    )


def cross_repeat(values: np.ndarray, sign: int, counts: np.ndarray, rng: np.random.Generator) -> float:
    """Return the cross-repeat estimate from pointwise values (sample, configuration, repeat)."""
    repeats = values.shape[2]
    total, found = values.sum(axis=2), []
    for repeat in range(repeats):
        index = chosen(counts.astype(values.dtype) @ values[:, :, repeat], sign, rng)
        others = Sums((total - values[:, :, repeat]) / (repeats - 1))
        found.append(others.judged(counts, index).mean())
    return float(np.mean(found))


def smoothed_nested(
    values: np.ndarray, inner: np.ndarray, fold: np.ndarray, sign: int, times: int, rng: np.random.Generator
) -> float:
    """Return smoothed nested cross-validation: `inner` (outer fold, sample, configuration), NaN on the fold itself."""
    mixed = np.empty(len(fold))
    for k in range(inner.shape[0]):
        rows = fold != k
        counts = draw_counts(int(rows.sum()), times, rng)
        index = chosen(counts.astype(float) @ inner[k][rows], sign, rng)
        share = np.bincount(index, minlength=values.shape[1]) / times
        mixed[~rows] = values[~rows] @ share
    return float(mixed.mean())
