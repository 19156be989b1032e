"""The best thresholds, compiled: many draws side by side on the way up, then the threshold of each draw.

The same operations in the same order as numpy's, hence the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .walk import compiled

if TYPE_CHECKING:
    from cvstats.kernels.cutting import Column, Criterion


def cut(column: Column, w: np.ndarray, criterion: Criterion, nearest: float | None, out: np.ndarray) -> None:
    """Fill `out` (5, draw) for one column, as numpy's `cut_column` does; rows 3 and 4 hold the class totals."""
    rule, goal = (criterion.code, criterion.hit, criterion.alarm), np.nan if nearest is None else nearest
    room, cell = (len(column.stop) + 1, w.shape[1]), np.ascontiguousarray(out)
    passed, value = np.empty((2, *room), np.int32 if w.dtype == np.uint8 else float), np.empty(room)
    climb(column.row, column.positive, column.stop, w, rule, cell, passed, value)
    settle(column.score, column.row, column.stop, w, goal, cell, passed, value)
    out[:3] = cell[:3]


@compiled
def climb(
    row: np.ndarray,
    positive: np.ndarray,
    stop: np.ndarray,
    weights: np.ndarray,
    rule: tuple[int, float, float],
    cell: np.ndarray,
    passed: np.ndarray,
    value: np.ndarray,
) -> None:
    """Fill the weight of each class passed at every stop, the criterion there, and in `cell` its best and the place.

    Row 2 of `cell` says whether the best was reached again. Loops over draws stand in functions of their own and hold
    few arrays, so that the compiler can tell that those do not overlap.
    """
    best, place, again = cell[0], cell[1], cell[2]
    best[:], place[:], again[:] = -np.inf, 0.0, 0.0
    missed, spared = np.zeros_like(passed[0, 0]), np.zeros_like(passed[1, 0])
    start = 0
    for s in range(len(stop) + 1):
        end = stop[s - 1] + 1 if s > 0 else 0
        for k in range(start, end):
            if positive[k]:
                add(weights[row[k]], missed)
            else:
                add(weights[row[k]], spared)
        start = end
        copy(missed, passed[0, s])
        copy(spared, passed[1, s])
        evaluate(rule, cell[3], cell[4], missed, spared, value[s])
        compare(value[s], float(s), best, place, again)


@compiled
def add(w: np.ndarray, sums: np.ndarray) -> None:
    """Add the weights of one sample."""
    for b in range(len(sums)):
        sums[b] += w[b]


@compiled
def copy(sums: np.ndarray, noted: np.ndarray) -> None:
    """Note the sums at a stop."""
    for b in range(len(sums)):
        noted[b] = sums[b]


@compiled
def compare(v: np.ndarray, s: float, best: np.ndarray, place: np.ndarray, again: np.ndarray) -> None:
    """Note where a draw's criterion rises above its best so far, and whether it reaches that again."""
    for b in range(len(v)):
        x, y = v[b], best[b]
        rises = x > y
        again[b] = 0.0 if rises else (1.0 if x == y else again[b])
        place[b] = s if rises else place[b]
        best[b] = x if rises else y


@compiled
def evaluate(
    rule: tuple[int, float, float], p: np.ndarray, n: np.ndarray, missed: np.ndarray, spared: np.ndarray, v: np.ndarray
) -> None:
    """Fill the criterion of every draw; -inf where it is not allowed."""
    code, hit, alarm = rule
    if code == 0:
        for b in range(len(v)):
            v[b] = (p[b] - missed[b]) * n[b] - (n[b] - spared[b]) * p[b]
    elif code == 1:
        for b in range(len(v)):
            v[b] = hit * (p[b] - missed[b]) - alarm * (n[b] - spared[b])
    elif code == 2:
        for b in range(len(v)):
            tp, fp = p[b] - missed[b], n[b] - spared[b]
            v[b] = tp / (p[b] + (tp + fp))
    elif code == 3:
        for b in range(len(v)):
            tp, fp = p[b] - missed[b], n[b] - spared[b]
            cross, flagged = tp * n[b] - fp * p[b], tp + fp
            spread = flagged * (p[b] + n[b] - flagged)
            v[b] = cross * abs(cross) / spread if spread > 0 else 0.0
    elif code == 4:
        for b in range(len(v)):
            v[b] = spared[b] - n[b] if (p[b] - missed[b]) * alarm >= p[b] * hit else -np.inf
    else:
        for b in range(len(v)):
            fp = n[b] - spared[b]
            v[b] = p[b] - missed[b] if (n[b] - fp) * alarm >= n[b] * hit else -np.inf


@compiled
def settle(
    score: np.ndarray,
    row: np.ndarray,
    stop: np.ndarray,
    weights: np.ndarray,
    goal: float,
    cell: np.ndarray,
    passed: np.ndarray,
    value: np.ndarray,
) -> None:
    """Replace what `climb` left in `cell` by the threshold and its table; of several candidates by the tie rule."""
    for b in range(weights.shape[1]):
        threshold, chosen = np.nan, 0
        if cell[0, b] > -np.inf and cell[3, b] > 0 and cell[4, b] > 0:
            chosen = int(cell[1, b])
            if cell[2, b] > 0:
                chosen = among(score, row, stop, weights, goal, passed[:, :, b], value[:, b], b)
            threshold = between(score, row, stop, weights, b, chosen)
        cell[0, b] = threshold
        cell[1, b], cell[2, b] = cell[3, b] - passed[0, chosen, b], cell[4, b] - passed[1, chosen, b]


@compiled
def among(
    score: np.ndarray,
    row: np.ndarray,
    stop: np.ndarray,
    weights: np.ndarray,
    goal: float,
    passed: np.ndarray,
    value: np.ndarray,
    b: int,
) -> int:
    """Return which of the best stops of draw b is nearest the goal, or (no goal) the lower median of them."""
    size = len(stop) + 1
    best = value[:size].max()
    tied = np.empty(size, np.int64)
    count = 0
    for s in range(size):  # a table may stand at several stops, with nothing of weight between them
        if value[s] == best:
            last = tied[count - 1] if count else s
            if count == 0 or passed[0, s] != passed[0, last] or passed[1, s] != passed[1, last]:
                tied[count] = s
                count += 1
    chosen: int = tied[(count - 1) // 2 if np.isnan(goal) else 0]
    distance = np.inf
    for s in tied[:count]:
        gap = abs(between(score, row, stop, weights, b, s) - goal)
        if gap < distance:
            chosen, distance = s, gap
    return chosen


@compiled
def between(score: np.ndarray, row: np.ndarray, stop: np.ndarray, weights: np.ndarray, b: int, s: int) -> float:
    """Return the midpoint of the scores of positive weight on both sides of a stop in draw b; an end is infinite."""
    high = stop[s - 1] + 1 if s > 0 else 0
    low = high - 1
    while low >= 0 and weights[row[low], b] <= 0:
        low -= 1
    while high < len(row) and weights[row[high], b] <= 0:
        high += 1
    if high == len(row):
        return np.inf
    if low < 0:
        return -np.inf
    middle: float = score[low] / 2 + score[high] / 2
    if not score[low] <= middle < score[high]:  # neighbouring doubles
        middle = score[low]
    return middle
