"""Kernels for Harrell's concordance: weighted pair counts with a segment tree over predicted ranks.

Samples are visited from the latest time to the earliest. Those already visited outlive the one at hand, so the tree
over predicted risk tells how much of their weight lies below or beside it: n log n steps instead of all pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._arrays import Problem

if TYPE_CHECKING:
    from .metrics import Metric

LANES = 4_000_000  # tree cells at a time


def visits(time: np.ndarray, event: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return, from the latest time to the earliest, the censored and the observed samples of each time.

    A sample censored at a time outlives one whose event is observed then; two events at one time are not comparable.
    """
    groups = []
    for value in np.unique(time)[::-1]:
        here = np.flatnonzero(time == value)
        groups.append((here[event[here] == 0], here[event[here] == 1]))
    return groups


def dense_ranks(risk: np.ndarray) -> np.ndarray:
    """Return ranks from 0 along the first axis, ties sharing one; NaN gets a rank that its zero weight disarms."""
    order = np.argsort(risk, axis=0)
    ordered = np.take_along_axis(risk, order, axis=0)
    step = np.zeros(risk.shape, np.int64)
    step[1:] = ordered[1:] != ordered[:-1]
    ranks = np.empty_like(step)
    np.put_along_axis(ranks, order, np.cumsum(step, axis=0), axis=0)
    return ranks


def pair_counts(
    rank: np.ndarray, weight: np.ndarray, groups: list[tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return twice the concordant weight (ties once) and the comparable weight, per lane.

    `rank` is (n,) when all lanes share it (one column, many draws) or (n, lane); `weight` is (n, lane).
    """
    n, lanes = weight.shape
    size = 1 << max(1, int(n - 1).bit_length())
    tree = np.zeros((2 * size, lanes))
    lane = np.arange(lanes)
    shared = rank.ndim == 1
    twice, comparable, seen = np.zeros(lanes), np.zeros(lanes), np.zeros(lanes)

    def insert(row: int) -> None:
        nonlocal seen
        node = rank[row] + size
        while np.all(node > 0):
            tree[node if shared else (node, lane)] += weight[row]
            node = node >> 1
        seen = seen + weight[row]

    def below(node: np.ndarray) -> np.ndarray:
        """Return the weight at ranks before `node`."""
        total = np.zeros(lanes)
        for _ in range(size.bit_length() - 1):
            if shared:
                if node & 1:
                    total += tree[node - 1]
            else:
                total += np.where(node & 1, tree[node - 1, lane], 0.0)
            node = node >> 1
        return total

    for censored, observed in groups:
        for row in censored:
            insert(row)
        for row in observed:
            node = rank[row] + size
            lower = below(node)
            twice += weight[row] * (2 * lower + tree[node if shared else (node, lane)])
            comparable += weight[row] * seen
        for row in observed:
            insert(row)
    return twice, comparable


class ConcordanceEngine:
    """Scores of all configurations under any weights, column by column over a block of draws."""

    def __init__(self, metric: Metric, problem: Problem, total: float) -> None:
        assert problem.event is not None
        self.metric = metric
        self.m, self.r = problem.p.shape[-2], problem.p.shape[-1]
        self.n = problem.n
        self.groups = visits(problem.y, problem.event)
        self.missing = np.isnan(problem.p) if np.isnan(np.min(problem.p)) else None
        self.rank = dense_ranks(problem.p.reshape(self.n, -1))
        self.weight = problem.weight
        self.repeat_weight: np.ndarray | None = None
        if self.missing is not None:
            some = ~self.missing.all(axis=0)
            self.repeat_weight = some / np.maximum(some.sum(axis=1, keepdims=True), 1)

    def _weights(self, weights: np.ndarray) -> np.ndarray:
        w = weights.T.astype(float)
        return np.ascontiguousarray(w if self.weight is None else w * self.weight[:, None])

    def _average(self, table: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        """Average (..., r) over repeats."""
        if rows is None:
            return np.asarray(table.mean(axis=-1))
        return np.asarray((np.where(rows > 0, table, 0.0) * rows).sum(axis=-1))

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the concordance of every configuration under each row of `weights`: (draw, m)."""
        w = self._weights(weights)
        out = np.empty((w.shape[1], self.m, self.r))
        for column in range(self.m * self.r):
            each = w
            if self.missing is not None:
                each = np.where(self.missing.reshape(self.n, -1)[:, column, None], 0.0, w)
            twice, comparable = pair_counts(self.rank[:, column], each, self.groups)
            with np.errstate(divide="ignore", invalid="ignore"):
                out[:, column // self.r, column % self.r] = twice / (2 * comparable)
        return self._average(out, self.repeat_weight)

    def criterion(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what to maximise and the scores."""
        score = self.scores(weights)
        return self.metric.sign * score, score

    def judged(self, weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return, for each draw, the concordance of configuration ``index[draw]`` under that draw's weights."""
        w = self._weights(weights)
        table = np.empty((len(index), self.r))
        for repeat in range(self.r):
            column = index * self.r + repeat
            each = w
            if self.missing is not None:
                each = np.where(self.missing.reshape(self.n, -1)[:, column], 0.0, w)
            twice, comparable = pair_counts(self.rank[:, column], each, self.groups)
            with np.errstate(divide="ignore", invalid="ignore"):
                table[:, repeat] = twice / (2 * comparable)
        return self._average(table, None if self.repeat_weight is None else self.repeat_weight[index])


def column_values(problem: Problem, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the concordance of every column (m, r) under one weight vector per repeat, `weights` (n,) or (n, r)."""
    assert problem.event is not None
    n, m, r = problem.p.shape
    w = np.ones((n, 1)) if weights is None else weights.reshape(n, -1)
    if problem.weight is not None:
        w = w * problem.weight[:, None]
    if problem.y.ndim == 2:
        each = [column_values(_one(problem, column), weights) for column in range(m)]
        return np.concatenate(each)
    groups = visits(problem.y, problem.event)
    flat = problem.p.reshape(n, m * r)
    out = np.empty(m * r)
    step = max(1, LANES // (4 * n))
    for start in range(0, m * r, step):
        column = np.arange(start, min(start + step, m * r))
        block = flat[:, column]
        each_weight = np.where(np.isnan(block), 0.0, w if w.shape[1] == 1 else w[:, column % r])
        twice, comparable = pair_counts(dense_ranks(block), each_weight, groups)
        with np.errstate(divide="ignore", invalid="ignore"):
            out[column] = twice / (2 * comparable)
    return out.reshape(m, r)


def _one(problem: Problem, column: int) -> Problem:
    """Return one column as a problem with labels of its own (labels that carry batch dims)."""
    return Problem(problem.y[:, column], problem.p[:, column : column + 1], problem.weight, problem.event, 0)
