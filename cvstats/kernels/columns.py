"""Numbers that describe a whole column of predictions, many at once: points of curves, and fits of calibration.

Each function takes labels and predictions (1 or draw, n), ascending by prediction, weights (draw, n) in the same order,
and where (g,) it is asked; it returns (draw, g). Weights count as repeated rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from .logistic import fit_line, log_odds
from .problem import Kernel, Problem

if TYPE_CHECKING:
    from cvstats.metrics import Metric

CELLS = 100_000  # numbers in an intermediate array, which stays in the cache
WEIGHTS = 1_000_000  # weights of a block of draws, as real numbers
NEAR = 1e-12  # of rates that are the same but for rounding
POOLED, GROUPS = 1000, 500  # samples beyond which a smooth curve pools neighbours, and to how many
SPAN = 2 / 3  # share of the samples that a local fit uses
BINS = 10
MANY = 8  # draws that a configuration must have on average to be sorted once for all of them


class ColumnKernel(Kernel):
    """Scores of all configurations, column by column; a metric asked at several places has one more axis for them."""

    def __init__(self, metric: Metric, problem: Problem, total: float) -> None:
        self.metric, self.y, self.weight = metric, (problem.y == 1).astype(float), problem.weight
        self.p = problem.read(metric.uses)
        at = np.array(metric.at, float)
        self.describe = partial(STATISTICS[metric.statistic], at=at)
        if (
            metric.statistic == "net_benefit"
        ):  # 0.1 in single precision is not above 0.1, nor is it by that metric alone
            self.describe = partial(self.describe, limit=at.astype(np.result_type(self.p, np.float16)).astype(float))
        self.m = self.p.shape[1]
        self.present = ~np.isnan(self.p)  # (n, m, r)
        self.alike = bool(metric.curve) and bool(self.present.all())  # so that draws may have columns of their own
        self.step = max(1, WEIGHTS // max(1, len(self.p)))

    def some(self, weights: np.ndarray, columns: range) -> np.ndarray:
        """Return the score of some configurations under each row of `weights`: (draw, column[, place])."""
        every = np.array(columns)
        if self.alike and MANY * len(weights) < len(every):
            return np.stack([self.judged(np.broadcast_to(row, (len(every), len(row))), every) for row in weights])
        return np.stack([self._described(every[j : j + 1], weights) for j in range(len(every))], axis=1)

    def judged(self, weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return, for each draw, the score of configuration ``index[draw]`` under that draw's weights."""
        if self.alike and len(index) <= self.step and len(index) < MANY * len(np.unique(index)):
            return self._described(index, weights)  # a column for every draw
        return super().judged(weights, index)

    def _described(self, columns: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the score of one configuration, or of one for each draw; the mean over repeats that predicted any."""
        case, each = self.weight, []
        for repeat, there in enumerate(self.present[:, columns[0]].T):
            if not there.any():
                continue
            p = self.p[:, columns, repeat].T.astype(float, order="C")
            order = np.argsort(p, axis=1)[:, : np.count_nonzero(there)]  # once for all draws
            y, p, blocks = self.y[order], np.take_along_axis(p, order, axis=1), []
            for start in range(0, max(1, len(weights)), self.step):
                w = weights[start : start + self.step]
                w = np.take(w, order[0], axis=1) if len(columns) == 1 else np.take_along_axis(w, order, axis=1)
                with np.errstate(divide="ignore", invalid="ignore"):
                    w = w.astype(float) if case is None else w * case[order]
                    blocks.append(self.describe(y, p, w))
            each.append(np.concatenate(blocks))
        size = len(weights), len(self.metric.at) if self.metric.curve else 1
        value = np.mean(each, axis=0) if each else np.full(size, np.nan)
        return np.asarray(value if value.shape[1] > 1 else value[:, 0])


def _found(rows: Iterable[np.ndarray], values: Iterable[np.ndarray], side: str = "left") -> np.ndarray:
    """Return where values would stand in each of several rows that ascend."""
    pairs = zip(rows, values, strict=True)
    return np.array([row.searchsorted(value, side) for row, value in pairs])  # type: ignore[call-overload]


def _steps(y: np.ndarray, p: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the weight (2, draw, n + 1) of positives and of negatives above each prediction, from nothing to all.

    Tied predictions count at once: each has what lies above the last of them, and that too.
    """
    above = np.zeros((2, len(w), 1 + w.shape[1]))
    for part, own in zip(above, (y, 1 - y), strict=True):
        np.cumsum((w * own)[:, ::-1], axis=1, out=part[:, 1:])
    corner = np.pad(p[:, :0:-1] != p[:, -2::-1], ((0, 0), (1, 1)), constant_values=True)
    if corner.all():
        return above
    last = np.where(corner, np.arange(corner.shape[1]), corner.shape[1])
    return np.take_along_axis(above, np.minimum.accumulate(last[:, ::-1], axis=1)[None, :, ::-1], axis=2)


def sensitivity_at(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the height of the ROC curve at false positive rates; the top of a vertical step."""
    tp, fp = _steps(y, p, w)
    return _height(tp, fp, at)[0]


def _height(tp: np.ndarray, fp: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the height of ROC curves at given rates, and the corner before each."""
    near = (at + NEAR) * fp[:, -1:]
    right = np.minimum(_found(fp, near, "right"), fp.shape[1] - 1)
    left = np.where(np.take_along_axis(fp, right, axis=1) <= near, right, np.maximum(right - 1, 0))
    (start, low), (end, high) = (
        [np.take_along_axis(each, corner, axis=1) / each[:, -1:] for each in (fp, tp)] for corner in (left, right)
    )
    share = np.clip((at - start) / np.where(end > start, end - start, 1.0), 0.0, 1.0)
    return low + share * (high - low), left


def specificity_at(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the specificity at given shares of positives missed: the same curve with the classes exchanged."""
    return sensitivity_at(1 - y[:, ::-1], -p[:, ::-1], w[:, ::-1], at)


def partial_auc(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the area under the ROC curve between the two false positive rates `at`, as one number."""
    tp, fp = _steps(y, p, w)
    top, left = _height(tp, fp, at)
    x, height = fp / fp[:, -1:], tp / tp[:, -1:]
    before = np.pad(np.cumsum(np.diff(x) * (height[:, 1:] + height[:, :-1]) / 2, axis=1), ((0, 0), (1, 0)))
    before, x, height = (np.take_along_axis(each, left, axis=1) for each in (before, x, height))
    return np.diff(before + np.maximum(at - x, 0.0) * (height + top) / 2)


def precision_at(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the precision at the strictest threshold that has something above it and reaches a recall."""
    tp, fp = _steps(y, p, w)
    first, place = _found(tp + fp, np.zeros((len(w), 1)), "right"), _found(tp, (at - NEAR) * tp[:, -1:])
    place = np.minimum(np.maximum(place, first), w.shape[1])
    hits, misses = (np.take_along_axis(each, place, axis=1) for each in (tp, fp))
    return np.where(tp[:, -1:] > 0, hits / (hits + misses), np.nan)


def net_benefit(
    y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray, limit: np.ndarray | None = None
) -> np.ndarray:
    """Return the net benefit of treating above each threshold; predictions are compared with `limit`, if given."""
    limit = at if limit is None else limit
    rank, size, draw = np.argsort(at, kind="stable"), 1 + len(at), np.arange(len(w))[:, None]
    place = np.searchsorted(limit[rank], p) + size * y.astype(int)  # how many thresholds lie below, and the class
    table = np.bincount((place + 2 * size * draw).ravel(), w.ravel(), 2 * size * len(w)).reshape(-1, 2, size)
    above = np.empty((len(w), 2, len(at)))
    above[..., rank] = np.cumsum(table[..., :0:-1], axis=2)[..., ::-1]
    return np.asarray((above[:, 1] - above[:, 0] * at / (1 - at)) / table.sum(axis=(1, 2))[:, None])


def lowess(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return Cleveland's local regression without robustness: tricube weights, a line, the nearest two thirds.

    The same numbers as R's ``lowess(p, y, iter = 0, delta = 0)``, with its rules for the ends of the window. More than
    `POOLED` samples are pooled with their neighbours first, to about `GROUPS` that are alike in rank and prediction.
    """
    there, events, n = w > 0, w * y, p.shape[1]
    ends = np.stack([there.argmax(axis=1), n - 1 - there[:, ::-1].argmax(axis=1)], axis=1)
    wide = np.where(there.any(axis=1, keepdims=True), np.diff(np.take_along_axis(p, ends, axis=1)), -np.inf)
    if n > POOLED and len(p) > 1:
        return np.concatenate([lowess(y[i : i + 1], p[i : i + 1], w[i : i + 1], at) for i in range(len(p))])
    if n > POOLED:
        place = np.arange(n) / n + (p[0] - p[0, 0]) / max(p[0, -1] - p[0, 0], np.finfo(float).tiny)
        starts = np.unique(np.floor(place / 2 * GROUPS), return_index=True)[1]
        p = np.add.reduceat(p, starts, axis=1) / np.diff(starts, append=n)
        w, events = (np.add.reduceat(each, starts, axis=1) for each in (w, events))
    else:  # what weighs nothing need not be looked at
        order = np.argsort(~there, axis=1, kind="stable")[:, : max(1, there.sum(axis=1).max())]
        p, w, events = (
            np.take_along_axis(np.broadcast_to(each, there.shape), order, axis=1) for each in (p, w, events)
        )
        p = np.maximum.accumulate(p, axis=1)
    window, out, n = _window(p, w, at), np.empty((len(w), len(at))), p.shape[1]
    few = max(1, CELLS // n)
    step = max(1, CELLS // (n * min(few, len(at))))
    for start, first in product(range(0, len(w), step), range(0, len(at), few)):
        now, block = slice(start, start + step), slice(first, first + few)
        z = (p if len(p) == 1 else p[now])[:, None] - at[block, None]
        out[now, block] = _lines(z, window[now, block], w[now], events[now], wide[now])
    return out


def _lines(z: np.ndarray, window: np.ndarray, w: np.ndarray, events: np.ndarray, wide: np.ndarray) -> np.ndarray:
    """Return the height (draw, place) of a local line at distance 0, for distances `z` (1 or draw, place, n)."""
    with np.errstate(over="ignore"):  # a window of tied predictions has no width
        v = np.abs(z) / window[..., None]
        v[v <= 0.001] = 0.0
        inside = v * v
        inside *= v
    np.subtract(1.0, inside, out=inside)
    inside[inside < 1 - 0.999**3] = 0.0  # the tricube, nothing from .999 of the window on
    np.multiply(inside, inside, out=v)
    v *= inside
    np.multiply(v, w[:, None], out=inside)
    v *= events[:, None]
    mass = inside.sum(axis=2)
    middle = np.nan_to_num(_dot(inside, z) / mass)
    middle = middle.mean(axis=0, keepdims=True) if len(z) == 1 else middle
    u = z - middle[..., None]  # else differences of moments would cancel where the window lies to one side
    level, tilt, first = v.sum(axis=2) / mass, _dot(v, u) / mass, _dot(inside, u) / mass
    inside *= u
    second = _dot(inside, u) / mass
    spread = second - first * first
    bent = np.sqrt(np.maximum(spread, 0.0)) > 0.001 * wide
    return np.asarray(level - np.where(bent, (middle + first) * (tilt - first * level) / spread, 0.0))


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the sums of products along the last axis."""
    return np.asarray(np.einsum("...n,...n->...", a, b))


def _window(p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return how far (draw, place) one must go from each place to have `SPAN` of the samples.

    The shortest span that has them and begins with a sample, for all samples: its ends grow with its beginning. The
    best for a place is the first whose middle lies beyond it, or the one before.
    """
    total = w.sum(axis=1, keepdims=True)
    least = np.clip(np.floor(SPAN * total + 1e-7), 2, np.maximum(total, 2)) - 1e-9 * total
    running, nothing = np.cumsum(w, axis=1), np.full((len(w), 1), np.inf)
    p = np.broadcast_to(p, w.shape)
    end = np.take_along_axis(np.hstack([p, nothing]), _found(running, running - w + least), axis=1)
    best = _found(p + end, np.broadcast_to(2 * at, (len(w), len(at))))
    after, before = (np.take_along_axis(np.hstack(pair), best, axis=1) for pair in ((end, nothing), (-nothing, p)))
    reach = np.minimum(after - at, at - before)
    farthest = np.maximum(at - p[:, :1], p[:, -1:] - at)
    return np.asarray(np.maximum(np.minimum(reach, farthest), np.finfo(float).tiny))


def observed_at(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the smoothed share of events at given predictions."""
    return np.asarray(np.clip(lowess(y, p, w, at), 0.0, 1.0))


def ici(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the mean distance between predictions of one column and the smoothed share of events."""
    knot, place = np.unique(p[0], return_inverse=True)
    out = np.empty((len(w), 1))
    for row, v in enumerate(w):
        used = np.zeros(len(knot), bool)
        used[place[v > 0]] = True
        gap = np.zeros(len(knot))
        gap[used] = np.abs(knot[used] - lowess(y[:, v > 0], p[:, v > 0], v[None, v > 0], knot[used])[0])
        out[row] = v @ gap[place] / v.sum()
    return out


def predicted_quantile(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return quantiles (type 7) of the predictions."""
    running = np.cumsum(w, axis=1)
    last = running[:, -1:] - 1
    place = np.maximum(last, 0.0) * at
    low = np.floor(place + 1e-9)
    ends = (np.minimum(_found(running, each, "right"), p.shape[1] - 1) for each in (low, np.minimum(low + 1, last)))
    below, above = (np.take_along_axis(p, end, axis=1) for end in ends)
    return np.asarray(below + np.clip(place - low, 0.0, 1.0) * (above - below))


def quantile_bin(p: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the bin (draw, n) between quantiles of the predictions that each sample is in; they need not ascend."""
    order = np.argsort(p, axis=1)
    p_up, w_up = (np.take_along_axis(each, order, axis=1) for each in (p, w))
    edges = predicted_quantile(p_up, p_up, w_up, np.arange(1, BINS) / BINS)
    return np.asarray((p[:, None] > edges[:, :, None]).sum(axis=1))


def _binned(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray, what: str) -> np.ndarray:
    """Return the weight of quantile bins, or the mean label or prediction there."""
    inside = np.where(quantile_bin(p, w) == at[:, None, None], w, 0.0)  # (g, draw, n)
    size = inside.sum(axis=2).T
    return size if what == "size" else np.asarray(_dot(inside, p if what == "predicted" else y).T / size)


def calibration_intercept(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the intercept of a logistic regression with the log odds of one column as offset."""
    return fit_line(y[0], log_odds(p), w, free=False)[0][:, None]


def calibration_slope(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the slope of a logistic regression on the log odds of one column; NaN where classes are separated."""
    x, slope = log_odds(p), np.zeros(len(w))
    for sign in (1, -1):
        last = np.where((w > 0) & (y == 0), sign * x, -np.inf).max(axis=1)
        first = np.where((w > 0) & (y == 1), sign * x, np.inf).min(axis=1)
        slope += sign * fit_line(y[0], sign * x, w, free=True)[1]  # not negative, so that one of the two is 0
        slope[last <= first] = np.nan
    return slope[:, None]


STATISTICS: dict[str, Callable[..., np.ndarray]] = {
    **{f"bin_{what}": partial(_binned, what=what) for what in ("size", "predicted", "observed")},
    **{one.__name__: one for one in (sensitivity_at, specificity_at, partial_auc, precision_at, net_benefit)},
    **{one.__name__: one for one in (observed_at, predicted_quantile, calibration_intercept, calibration_slope, ici)},
}
