"""Kernels for Harrell's concordance: weighted pair counts with a Fenwick tree over predicted ranks.

Samples are visited from the latest time to the earliest. Those already visited outlive the one at hand, so the tree
over predicted risk tells how much of their weight lies below or beside it: n log n steps instead of all pairs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .columns import add_up, over_repeats
from .problem import Problem, Weights
from .ranks import whole_weights
from .walk import accelerator

if TYPE_CHECKING:
    from cvstats.metrics import Metric

LANES = 4_000_000  # tree cells at a time


def visits(time: np.ndarray, event: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the samples from the latest time to the earliest, whether each has its event, and where times end.

    A sample censored at a time outlives one whose event is observed then, so it comes first; two events at one time
    are not comparable, so events of one time are all looked up before any of them counts as visited.
    """
    order = np.lexsort((event, -time))
    ends = np.ones(len(order), bool)
    ends[:-1] = time[order][1:] != time[order][:-1]
    return order, event[order] == 1, ends


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
    rank: np.ndarray, weight: np.ndarray, when: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return twice the concordant weight (ties once) and the comparable weight, per lane.

    `rank` is (n,) when all lanes share it (one column, many draws) or (n, lane); `weight` is (n, lane).
    """
    tree = _Tree(rank, weight)
    twice = np.zeros(weight.shape[1], weight.dtype)
    comparable, seen = np.zeros_like(twice), np.zeros_like(twice)
    waiting: list[int] = []
    for row, observed, ends in zip(*(part.tolist() for part in when), strict=True):
        if observed:
            waiting.append(row)
            twice += weight[row] * tree.twice_below(row)
            comparable += weight[row] * seen
        else:
            tree.insert(row)
            seen += weight[row]
        if ends:
            for other in waiting:
                tree.insert(other)
                seen += weight[other]
            waiting.clear()
    return twice, comparable


class _Tree:
    """Weight by rank, for many lanes at once."""

    def __init__(self, rank: np.ndarray, weight: np.ndarray) -> None:
        n, lanes = weight.shape
        self.rank, self.weight, self.n = rank, weight, n
        self.shared = rank.ndim == 1
        self.cells = np.zeros((n + 1, lanes), weight.dtype)
        self.beside = np.zeros((n, lanes), weight.dtype)  # weight at each very rank
        self.lane = np.arange(lanes)
        self.ranks = rank.tolist() if self.shared else []

    def insert(self, row: int) -> None:
        weight = self.weight[row]
        if self.shared:
            self.beside[self.ranks[row]] += weight
            node = self.ranks[row] + 1
            while node <= self.n:
                self.cells[node] += weight
                node += node & -node
            return
        self.beside[self.rank[row], self.lane] += weight
        nodes = self.rank[row] + 1
        lane = self.lane
        while lane.size:
            self.cells[nodes, lane] += weight[lane]
            nodes = nodes + (nodes & -nodes)
            inside = nodes <= self.n
            nodes, lane = nodes[inside], lane[inside]

    def twice_below(self, row: int) -> np.ndarray:
        """Return twice the weight at lower ranks plus the weight at the same rank."""
        if self.shared:
            node = self.ranks[row]
            total = np.zeros_like(self.cells[0])
            while node:
                total += self.cells[node]
                node &= node - 1
            return np.asarray(total + total + self.beside[self.ranks[row]])
        nodes, lane = self.rank[row], self.lane
        total = np.zeros_like(self.cells[0])
        inside = nodes > 0
        nodes, lane = nodes[inside], lane[inside]
        while lane.size:
            total[lane] += self.cells[nodes, lane]
            nodes = nodes & (nodes - 1)
            inside = nodes > 0
            nodes, lane = nodes[inside], lane[inside]
        return np.asarray(total + total + self.beside[self.rank[row], self.lane])


class PairKernel:
    """Scores of all configurations under any weights, column by column over a block of draws.

    Parameters are those of `RankKernel`.
    """

    def __init__(self, metric: Metric, problem: Problem, total: float, *, gaps: bool | None = None) -> None:
        assert problem.event is not None
        self.metric = metric
        p = problem.read(metric.uses)
        self.n, self.m, self.r = p.shape
        self.when = visits(problem.y, problem.event)
        missing = bool(np.isnan(np.min(p)))
        self.gaps = missing if gaps is None else gaps
        self.missing = np.isnan(p).reshape(self.n, -1) if missing else None
        self.rank = np.ascontiguousarray(dense_ranks(p.reshape(self.n, -1)).T)  # (column, n)
        self.weight, self.bound = whole_weights(problem.weight, total)
        self.begun, self.partial = None, np.zeros(self.m, bool)
        if self.missing is not None:
            self.begun = ~self.missing.all(axis=0).reshape(self.m, self.r)
            self.partial = self.missing.any(axis=0).reshape(self.m, self.r).any(axis=1)

    def _weighted(self, weights: np.ndarray | Weights) -> np.ndarray:
        """Return (draw, n) weights in integers while counts fit 32 bits, else in doubles."""
        counts = Weights.of(weights).counts
        w = counts if self.weight is None else counts * self.weight
        small = w.dtype.kind in "iub" and self.bound**2 < 2**31
        return w.astype(np.int32 if small else np.float64)

    def criterion(self, weights: np.ndarray | Weights) -> tuple[np.ndarray, np.ndarray]:
        """Return what to maximise (exact counts where possible) and the scores, both (draw, m)."""
        draws = len(weights)
        steps = 2 + int(np.log2(self.n))
        fast = accelerator(self.m * self.r, self.n * steps, draws)
        w = np.ascontiguousarray(self._weighted(weights).T)
        lanes = w if draws > 1 else np.repeat(w, 2, axis=1)
        criterion, score = np.empty((self.m, draws)), np.empty((self.m, draws))
        for j in range(self.m):
            twice, comparable = zip(*(self._column(j * self.r + k, lanes, fast) for k in range(self.r)), strict=True)
            with np.errstate(divide="ignore", invalid="ignore"):
                summed = add_up(t[:draws] for t in twice)
                score[j] = criterion[j] = summed / (2.0 * self.r * comparable[0][:draws])
                if not self.gaps:
                    criterion[j] = np.where(comparable[0][:draws] > 0, summed, np.nan)
                elif self.begun is not None and self.partial[j]:
                    each = np.array([t[:draws] / (2.0 * c[:draws]) for t, c in zip(twice, comparable, strict=True)])
                    score[j] = criterion[j] = over_repeats(each[None], self.begun[j][None])[0]
        return criterion.T, score.T

    def _column(self, column: int, lanes: np.ndarray, fast: Any) -> tuple[np.ndarray, np.ndarray]:
        if self.missing is not None and self.missing[:, column].any():
            lanes = np.where(self.missing[:, column, None], lanes.dtype.type(0), lanes)
        if fast is None:
            return pair_counts(self.rank[column], lanes, self.when)
        out = np.empty((2, lanes.shape[1]), lanes.dtype)
        fast.concordance_lanes(self.rank[column], lanes, *self.when, out)
        return out[0], out[1]

    def scores(self, weights: np.ndarray | Weights) -> np.ndarray:
        """Return the concordance of every configuration under each row of `weights`: (draw, m)."""
        return self.criterion(weights)[1]

    def judged(self, weights: np.ndarray | Weights, index: np.ndarray) -> np.ndarray:
        """Return, for each draw, the concordance of configuration ``index[draw]`` under that draw's weights."""
        w = self._weighted(weights)
        fast = accelerator(0, 0, 0)
        each = []
        for repeat in range(self.r):
            column = index * self.r + repeat
            mine = w if self.missing is None else np.where(self.missing[:, column].T, w.dtype.type(0), w)
            if fast is None:
                twice, comparable = pair_counts(self.rank[column].T, mine.T, self.when)
            else:
                twice, comparable = np.empty((2, len(index)), w.dtype)
                fast.judged_concordance(self.rank, column, np.ascontiguousarray(mine), *self.when, twice, comparable)
            with np.errstate(divide="ignore", invalid="ignore"):
                each.append(twice / (2.0 * comparable))
        return over_repeats(np.array(each).T, None if self.begun is None else self.begun[index])


def column_values(metric: Metric, problem: Problem) -> np.ndarray:
    """Return the concordance of every column (m, r) on all samples."""
    twice, comparable = _column_counts(problem)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(twice / (2.0 * comparable))


def pooled_values(metric: Metric, problem: Problem) -> np.ndarray:
    """Return the score of every configuration (m,) on all samples, as `PairKernel.criterion` computes it."""
    r = problem.p.shape[2]
    twice, comparable = _column_counts(problem)
    absent = np.isnan(problem.p)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = over_repeats(twice / (2.0 * comparable), ~absent.all(axis=0) if absent.any() else None)
        whole = ~absent.any(axis=(0, 2))
        score[whole] = add_up(twice.T)[whole] / (2.0 * r * comparable[whole, 0])
    return score


def _column_counts(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return twice the concordant and the comparable weight of every column, both (m, r)."""
    assert problem.event is not None
    n, m, r = problem.p.shape
    if problem.y.ndim == 2:
        parts = [_column_counts(_one(problem, column)) for column in range(m)]
        return np.concatenate([twice for twice, _ in parts]), np.concatenate([both for _, both in parts])
    when = visits(problem.y, problem.event)
    flat = problem.read("survival").reshape(n, m * r)
    weight = np.ones((n, 1)) if problem.weight is None else problem.weight[:, None]
    out = np.empty((2, m * r))
    step = max(1, LANES // (4 * n))
    for start in range(0, m * r, step):
        block = flat[:, start : start + step]
        each = np.where(np.isnan(block), 0.0, weight)
        out[:, start : start + step] = pair_counts(dense_ranks(block), each, when)
    return out[0].reshape(m, r), out[1].reshape(m, r)


def _one(problem: Problem, column: int) -> Problem:
    """Return one column as a problem with labels of its own (labels that carry batch dims)."""
    return replace(problem.columns(slice(column, column + 1)), y=problem.y[:, column])
