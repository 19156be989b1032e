"""Numbers that describe a whole column of predictions, many at once: points of curves, and fits of calibration.

Each function takes labels and predictions of one column (n,), weights (draw, n) and where (g,) it is asked; it returns
(draw, g). Weights count as repeated rows. Any order of samples will do; where predictions ascend already it is quick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .logistic import fit_line, log_odds
from .problem import Kernel, Problem

if TYPE_CHECKING:
    from cvstats.metrics import Metric

CELLS = 400_000  # numbers in an intermediate array
WEIGHTS = 1_000_000  # weights of a block of draws, as real numbers
NEAR = 1e-12  # of rates that are the same but for rounding
POOLED, GROUPS = 1000, 500  # samples beyond which a smooth curve pools neighbours, and to how many
SPAN = 2 / 3  # share of the samples that a local fit uses
BINS = 10


class ColumnKernel(Kernel):
    """Scores of all configurations, column by column; a metric asked at several places has one more axis for them."""

    def __init__(self, metric: Metric, problem: Problem, total: float) -> None:
        self.metric, self.problem = metric, problem
        self.describe = partial(STATISTICS[metric.statistic], at=np.array(metric.at, float))
        self.p = problem.read(metric.uses)
        self.m = self.p.shape[1]
        self.present = ~np.isnan(self.p)  # (n, m, r)

    def some(self, weights: np.ndarray, columns: range) -> np.ndarray:
        """Return the score of some configurations under each row of `weights`: (draw, column[, place])."""
        return np.stack([self._column(j, weights) for j in columns], axis=1)

    def _column(self, j: int, weights: np.ndarray) -> np.ndarray:
        """Return the mean over the repeats in which the configuration predicted anything."""
        y, case = (self.problem.y if self.problem.y.ndim == 1 else self.problem.y[:, j]), self.problem.weight
        step, each = max(1, WEIGHTS // max(1, len(y))), []
        for there, p in zip(self.present[:, j].T, self.p[:, j].T.astype(float), strict=True):
            if not there.any():
                continue
            order, blocks = np.argsort(p, kind="stable")[: np.count_nonzero(there)], []  # once for all draws
            for start in range(0, max(1, len(weights)), step):
                w = np.take(weights[start : start + step], order, axis=1)
                with np.errstate(divide="ignore", invalid="ignore"):
                    w = w.astype(float) if case is None else w * case[order]
                    blocks.append(self.describe(y[order], p[order], w))
            each.append(np.concatenate(blocks) if len(blocks) > 1 else blocks[0])
        size = len(weights), len(self.metric.at) if self.metric.curve else 1
        value = np.mean(each, axis=0) if each else np.full(size, np.nan)
        return np.asarray(value if value.shape[1] > 1 else value[:, 0])


def _steps(y: np.ndarray, p: np.ndarray, w: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the weight of positives and of negatives above each distinct prediction, from nothing to everything."""
    order = np.argsort(-p, kind="stable")
    ends = np.append(p[order][1:] != p[order][:-1], True)
    corner, positive = np.append(0, 1 + np.flatnonzero(ends)), y[order] == 1
    above = np.zeros((2, 1 + len(order)))  # of one draw, so that it stays in the cache
    for row in w:
        v = row[order]
        for part, own in zip(above, (positive, ~positive), strict=True):
            np.cumsum(v * own, out=part[1:])
        tp, fp = above if len(corner) == above.shape[1] else above[:, corner]
        yield tp, fp


def _polygon(y: np.ndarray, p: np.ndarray, w: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield false and true positive rates of the corners of the ROC curve."""
    for tp, fp in _steps(y, p, w):
        yield fp / fp[-1], tp / tp[-1]


def sensitivity_at(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the height of the ROC curve at false positive rates; the top of a vertical step."""
    return np.array([_height(x, height, at)[0] for x, height in _polygon(y, p, w)])


def _height(x: np.ndarray, height: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the height of a polygon at given places, and the corner before each."""
    right = np.minimum(np.searchsorted(x, at + NEAR, side="right"), len(x) - 1)
    left = np.maximum(right - 1, 0)
    left = np.where(x[right] <= at + NEAR, right, left)
    width = x[right] - x[left]
    share = np.clip((at - x[left]) / np.where(width > 0, width, 1.0), 0.0, 1.0)
    return np.where(np.isnan(x[-1]), np.nan, height[left] + share * (height[right] - height[left])), left


def specificity_at(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the specificity at given shares of positives missed: the same curve with the classes exchanged."""
    return sensitivity_at(1 - y, -p, w, at)


def partial_auc(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the area under the ROC curve between the two false positive rates `at`, as one number."""
    areas = []
    for x, height in _polygon(y, p, w):
        before = np.append(0.0, np.cumsum(np.diff(x) * (height[1:] + height[:-1]) / 2))
        top, left = _height(x, height, at)
        areas.append(before[left] + np.maximum(at - x[left], 0.0) * (height[left] + top) / 2)
    return np.diff(areas, axis=1)


def precision_at(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the precision at the strictest threshold that has something above it and reaches a recall."""
    out = np.empty((len(w), len(at)))
    for row, (tp, fp) in enumerate(_steps(y, p, w)):
        first = np.searchsorted(tp + fp, 0.0, side="right")
        place = np.minimum(np.maximum(np.searchsorted(tp, (at - NEAR) * tp[-1]), first), len(tp) - 1)
        out[row] = tp[place] / (tp[place] + fp[place])
    return np.where((w @ (y == 1) > 0)[:, None], out, np.nan)


def net_benefit(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the net benefit of treating above each of the thresholds."""
    rank, size = np.argsort(at, kind="stable"), 1 + len(at)
    place = np.searchsorted(at[rank], p) + size * (y == 1)  # how many thresholds lie below, and the class
    table = np.array([np.bincount(place, row, 2 * size) for row in w]).reshape(len(w), 2, size)
    above = np.empty((len(w), 2, len(at)))
    above[..., rank] = np.cumsum(table[..., :0:-1], axis=2)[..., ::-1]
    return np.asarray((above[:, 1] - above[:, 0] * at / (1 - at)) / table.sum(axis=(1, 2))[:, None])


def lowess(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return Cleveland's local regression without robustness: tricube weights, a line, the nearest two thirds.

    The same numbers as R's ``lowess(p, y, iter = 0, delta = 0)``, with its rules for the ends of the window. More than
    `POOLED` samples are pooled with their neighbours first, to about `GROUPS` that are alike in rank and prediction.
    """
    order = np.argsort(p, kind="stable")
    p, w = p[order], np.take(w, order, axis=1)
    there, events = w > 0, w * y[order]
    first, last = there.argmax(axis=1), there.shape[1] - 1 - there[:, ::-1].argmax(axis=1)
    wide = np.where(there.any(axis=1), p[last] - p[first], -np.inf)
    if len(p) > POOLED:
        place = np.arange(len(p)) / len(p) + (p - p[0]) / max(p[-1] - p[0], np.finfo(float).tiny)
        starts = np.unique(np.floor(place / 2 * GROUPS), return_index=True)[1]
        p = np.add.reduceat(p, starts) / np.diff(starts, append=len(p))
        w, events = (np.add.reduceat(each, starts, axis=1) for each in (w, events))
    out = np.empty((len(at), len(w)))
    step = max(1, CELLS // max(1, len(p)))
    for start in range(0, len(at), step):
        block = slice(start, start + step)
        z = p - at[block, None]
        window = np.maximum(_window(p, w, at[block], np.abs(z)), np.finfo(float).tiny)
        few = max(1, CELLS // z.size)
        for first in range(0, len(w), few):
            now = slice(first, first + few)
            out[block, now] = _lines(z, window[:, now], w[now], events[now], wide[now])
    return out.T


def _lines(z: np.ndarray, window: np.ndarray, w: np.ndarray, events: np.ndarray, wide: np.ndarray) -> np.ndarray:
    """Return the height (place, draw) of a local line at distance 0, for distances `z` (place, n) from each place."""
    with np.errstate(over="ignore"):  # a window of tied predictions has no width
        v = np.minimum(np.abs(z)[:, None] / window[..., None], 1.0)
    v[v <= 0.001] = 0.0
    v = 1 - v * v * v  # the tricube, nothing from .999 of the window on
    v[v < 1 - 0.999**3] = 0.0
    v *= v * v
    inside = v * w
    v *= events
    mass = inside.sum(axis=2)
    middle = np.nan_to_num((inside @ z[..., None])[..., 0] / mass).mean(axis=1, keepdims=True)
    u = z - middle  # else differences of moments would cancel where the window lies to one side
    first, second = np.moveaxis(inside @ np.stack([u, u * u], axis=2), 2, 0) / mass
    level, tilt = v.sum(axis=2) / mass, (v @ u[..., None])[..., 0] / mass
    spread = second - first * first
    bent = np.sqrt(np.maximum(spread, 0.0)) > 0.001 * wide
    return np.asarray(level - np.where(bent, (middle + first) * (tilt - first * level) / spread, 0.0))


def _window(p: np.ndarray, w: np.ndarray, at: np.ndarray, far: np.ndarray) -> np.ndarray:
    """Return how far (place, draw) one must go from each place to have `SPAN` of the samples; `p` ascends."""
    total = w.sum(axis=1)
    least = np.clip(np.floor(SPAN * total + 1e-7), 2, np.maximum(total, 2)) - 1e-9 * total
    running = np.concatenate([np.zeros((len(w), 1)), np.cumsum(w, axis=1)], axis=1)
    reach = np.sort(far, axis=1)
    draw, place = np.arange(len(w)), np.arange(len(at))[:, None]
    left, right = (
        np.searchsorted(p, at[:, None] - reach * (1 + NEAR)),
        np.searchsorted(p, at[:, None] + reach * (1 + NEAR), side="right"),
    )
    low, high = np.zeros((2, len(at), len(w)), int)
    high += len(p) - 1
    while (low < high).any():
        half = (low + high) // 2
        enough = running[draw, right[place, half]] - running[draw, left[place, half]] >= least
        low, high = np.where(enough, low, half + 1), np.where(enough, half, high)
    return np.asarray(reach[place, low])


def observed_at(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the smoothed share of events at given predictions."""
    return np.asarray(np.clip(lowess(y, p, w, at), 0.0, 1.0))


def ici(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the mean distance between predictions and the smoothed share of events."""
    knot, place = np.unique(p, return_inverse=True)
    out = np.empty((len(w), 1))
    for row, v in enumerate(w):
        used = np.zeros(len(knot), bool)
        used[place[v > 0]] = True
        gap = np.zeros(len(knot))
        gap[used] = np.abs(knot[used] - lowess(y[v > 0], p[v > 0], v[None, v > 0], knot[used])[0])
        out[row] = v @ gap[place] / v.sum()
    return out


def predicted_quantile(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return quantiles (type 7) of the predictions."""
    order = np.argsort(p, kind="stable")
    ordered, running = p[order], np.cumsum(np.take(w, order, axis=1), axis=1)
    out = np.empty((len(w), len(at)))
    for row, sums in enumerate(running):
        place = np.maximum(sums[-1] - 1, 0.0) * at
        low = np.floor(place + 1e-9)
        ends = np.searchsorted(sums, [low, np.minimum(low + 1, sums[-1] - 1)], side="right")
        below, above = ordered[np.minimum(ends, len(p) - 1)]
        out[row] = below + np.clip(place - low, 0.0, 1.0) * (above - below)
    return out


def quantile_bin(p: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the bin (draw, n) between quantiles of the predictions that each sample is in."""
    edges = predicted_quantile(p, p, w, np.arange(1, BINS) / BINS)
    return np.asarray((p > edges[:, :, None]).sum(axis=1))


def _binned(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray, what: str) -> np.ndarray:
    """Return the weight of quantile bins, or the mean label or prediction there."""
    inside = np.where(quantile_bin(p, w) == at[:, None, None], w, 0.0)  # (g, draw, n)
    size = inside.sum(axis=2).T
    return size if what == "size" else np.asarray((inside @ (p if what == "predicted" else y)).T / size)


def calibration_intercept(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the intercept of a logistic regression with the predictions' log odds as offset."""
    return fit_line(y, log_odds(p)[None], w, free=False)[0][:, None]


def calibration_slope(y: np.ndarray, p: np.ndarray, w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the slope of a logistic regression on the predictions' log odds; NaN where classes are separated."""
    x, slope = log_odds(p)[None], np.zeros(len(w))
    for sign in (1, -1):
        last = np.where((w > 0) & (y == 0), sign * x, -np.inf).max(axis=1)
        first = np.where((w > 0) & (y == 1), sign * x, np.inf).min(axis=1)
        slope += sign * fit_line(y, sign * x, w, free=True)[1]  # not negative, so that one of the two is 0
        slope[last <= first] = np.nan
    return slope[:, None]


STATISTICS: dict[str, Callable[..., np.ndarray]] = {
    **{f"bin_{what}": partial(_binned, what=what) for what in ("size", "predicted", "observed")},
    **{one.__name__: one for one in (sensitivity_at, specificity_at, partial_auc, precision_at, net_benefit)},
    **{one.__name__: one for one in (observed_at, predicted_quantile, calibration_intercept, calibration_slope, ici)},
}
