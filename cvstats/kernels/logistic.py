"""Maps of probabilities: logistic regression of labels on one column, for many weights at once; isotonic regression."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

LARGEST = 52 * np.log(2)  # log odds of the largest probability below one that log loss tells apart from it


def log_odds(p: np.ndarray) -> np.ndarray:
    """Return log(p / (1 - p)), with p kept 2^-52 away from 0 and 1."""
    from scipy.special import logit

    return np.asarray(logit(np.clip(p.astype(float), 2.0**-52, 1 - 2.0**-52)))


def fit_line(y: np.ndarray, x: np.ndarray, w: np.ndarray, *, free: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return intercept and slope (draw,) of logistic regressions of y (e,) on x (draw or 1, e) with weights (draw, e).

    Without `free` the slope is 1. The slope is not negative; separated classes get the slope that `recalibrate` tells.
    """
    x = np.broadcast_to(x, w.shape)
    total, hits = w.sum(axis=1), w @ y
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = (w * x).sum(axis=1) / total
        base = np.log(hits) - np.log(total - hits)
    both = (hits > 0) & (hits < total)
    if not free:
        a, b = np.where(both, 0.0, np.nan), np.ones(len(w))
        return _ascend(y, x, w, a, b, np.flatnonzero(both), free=False)[0], b
    a, b = np.where(both, base, np.nan), np.where(both, 0.0, np.nan)
    rising = both & ((w * (x - centre[:, None])) @ y > 0) & (_end(x, w > 0, -1) < _end(x, w > 0, 1))
    last, first = _end(x, (w > 0) & (y == 0), 1), _end(x, (w > 0) & (y == 1), -1)
    apart = np.flatnonzero(rising & (last <= first))
    for i in apart:
        a[i], b[i] = _steep(y, x[i], w[i], last[i], first[i])
    rest = np.flatnonzero(rising & (last > first))
    level, slope = _ascend(y, x - centre[:, None], w, a, b, rest, free=True)
    a[rest], b[rest] = level[rest] - slope[rest] * centre[rest], slope[rest]
    return a, b


def on_line(p: np.ndarray, intercept: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Return probabilities (..., column, r) mapped by the line of each column."""
    from scipy.special import expit

    return np.asarray(expit(intercept[..., None] + slope[..., None] * log_odds(p)))


def _end(x: np.ndarray, some: np.ndarray, side: int) -> np.ndarray:
    """Return the largest (side 1) or smallest (-1) of some x in each row."""
    return np.asarray(side * np.where(some, side * x, -np.inf).max(axis=1))


def _steep(y: np.ndarray, x: np.ndarray, w: np.ndarray, last: float, first: float) -> tuple[float, float]:
    """Return the line for separated classes: steep enough for the samples next to the gap; level where they meet."""
    middle = last / 2 + first / 2
    level, reach = 0.0, (first - last) / 2
    if last == first:
        at = x == last
        level = float(np.log(w[at & (y == 1)].sum()) - np.log(w[at & (y == 0)].sum()))
        reach = float(np.abs(x[(w > 0) & ~at] - last).min())
    slope = (LARGEST + abs(level)) / reach
    return level - slope * middle, slope


def _ascend(
    y: np.ndarray, x: np.ndarray, w: np.ndarray, a: np.ndarray, b: np.ndarray, rows: np.ndarray, *, free: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the maximum-likelihood line of some rows by Newton steps, halved while they overshoot.

    The likelihood is concave: a step went too far when the slope along it, upwards at its start, is downwards and as
    steep at its end.
    """
    from scipy.special import expit

    a, b = a.copy(), b.copy()
    step, rise = np.zeros((2, len(rows))), np.full(len(rows), np.inf)
    for _ in range(200):
        if not rows.size:
            break
        z, v = x[rows], w[rows]
        mean = expit(a[rows, None] + b[rows, None] * z)
        miss, spread = v * (y - mean), v * mean * (1 - mean)
        slope = np.stack([miss.sum(axis=1), (miss * z).sum(axis=1) if free else np.zeros(len(rows))])
        far = (slope * step).sum(axis=0) < -0.9 * rise
        newton, half = _solved(spread, z, slope, free=free), step / 2
        move = np.where(far, -half, newton)
        a[rows] += move[0]
        b[rows] += move[1]
        step = np.where(far, half, newton)
        rise = np.where(far, rise / 2, (slope * newton).sum(axis=0))
        keep = far | (rise > 1e-20 * v.sum(axis=1))
        rows, step, rise = rows[keep], step[:, keep], rise[keep]
    return a, b


def _solved(spread: np.ndarray, z: np.ndarray, slope: np.ndarray, *, free: bool) -> np.ndarray:
    """Return the Newton step (2, row); a level far off sees no curvature, so its step is bounded."""
    level = np.maximum(spread.sum(axis=1), 1e-300)
    if not free:
        return np.stack([np.clip(slope[0] / level, -100.0, 100.0), slope[1]])
    cross, tilt = (spread * z).sum(axis=1), (spread * z**2).sum(axis=1)
    area = np.maximum(level * tilt - cross**2, 1e-300)
    return np.stack([(tilt * slope[0] - cross * slope[1]) / area, (level * slope[1] - cross * slope[0]) / area])


def isotonic(label: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> Callable[..., Any]:
    """Return the best non-decreasing map: equal predictions are pooled, then neighbours out of order."""
    from scipy.optimize import isotonic_regression

    knot, place = np.unique(prediction, return_inverse=True)
    total = np.bincount(place, weight)
    value = isotonic_regression(np.bincount(place, weight * label) / total, weights=total).x
    return partial(np.interp, xp=knot, fp=np.clip(value, 0.0, 1.0))
