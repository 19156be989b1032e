"""Kernels for rank statistics: AUC and average precision by walking down a sorted column.

A column is one configuration in one repeat. Each is sorted once; the walk then serves any number of weight vectors.
With whole-number weights twice the Mann-Whitney count is a whole number, so ties between configurations are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .columns import STATISTICS, TILE, add_up, combine, contrasts, over_repeats, sort_columns
from .problem import Problem, Weights
from .walk import Lanes, accelerator, lanes_of, walk

if TYPE_CHECKING:
    from cvstats.metrics import Metric


@dataclass(frozen=True)
class Task:
    """A contrast ready to walk: its samples, which are positive, and each column's order, ties and length."""

    rows: np.ndarray  # positives first, so that ties are walked in that order
    positive: np.ndarray
    order: np.ndarray  # (column, n) ascending
    last: np.ndarray | None  # (column, n) whether a place ends a tie group; None: no ties at all
    tied: np.ndarray  # (column,) how many places do not end a tie group
    count: np.ndarray | None  # (column,) number of predictions; None: all


class RankKernel:
    """Scores of all configurations under any weights, by walking sorted columns once per block of draws.

    Parameters
    ----------
    metric, problem, total
        What to compute, on which arrays, and an upper bound of the sum of weights of a draw.
    gaps
        Whether predictions are missing somewhere in the cube, which decides the order of operations; by default
        whether they are missing here. Blocks of one cube must agree on it.
    """

    def __init__(self, metric: Metric, problem: Problem, total: float, *, gaps: bool | None = None) -> None:
        self.metric = metric
        p = problem.read(metric.uses)
        self.m, self.r, self.n = p.shape[-2], p.shape[-1], problem.n
        self.weight, self.bound = whole_weights(problem.weight, total)
        planes = p if p.ndim == 4 else p[None]
        missing = bool(np.isnan(np.min(planes)))
        self.gaps = missing if gaps is None else gaps
        y, case = problem.y, problem.weight
        self.key = (
            metric.statistic,
            metric.multiclass,
            self.bound,
            y.tobytes(),
            None if case is None else case.tobytes(),
        )
        self.tasks = []
        for contrast in contrasts(metric, problem.n_classes):
            mine = problem.y == contrast.positive
            other = ~mine if contrast.negative is None else problem.y == contrast.negative
            rows = np.concatenate([np.flatnonzero(mine), np.flatnonzero(other)])
            block = planes[contrast.plane].reshape(self.n, self.m * self.r)
            count = (~np.isnan(block[rows])).sum(axis=0) if missing else None
            self.tasks.append(Task(rows, mine[rows], *sort_columns(block, rows), count))
        self.begun: np.ndarray | None = None  # (m, r) whether a configuration predicted anything in a repeat
        self.whole = np.ones(self.m, bool)  # (m,) whether it predicted everything
        if missing:
            least = np.stack([self._counts(task) for task in self.tasks]).min(axis=0).reshape(self.m, self.r)
            self.begun, self.whole = least > 0, (least == self.n).all(axis=1)

    def _counts(self, task: Task) -> np.ndarray:
        return np.full(self.m * self.r, len(task.rows)) if task.count is None else task.count

    def _weighted(self, weights: np.ndarray, task: Task, *, by_draw: bool = False) -> np.ndarray:
        """Return (draw, n) weights of the task's samples, case weights included; contiguous by sample or by draw."""
        w = np.take(weights, task.rows, axis=1) if by_draw else weights[:, task.rows]
        return w if self.weight is None else np.asarray(w * self.weight[task.rows])

    def criterion(self, weights: np.ndarray | Weights) -> tuple[np.ndarray, np.ndarray]:
        """Return what to maximise (exact counts where possible) and the scores, both (draw, m)."""
        draws = len(weights)
        fast = accelerator(len(self.tasks) * self.m * self.r, self.n, draws)
        weights = Weights.of(weights)
        if self.begun is not None:
            weights = Weights(weights.counts)  # totals depend on who predicted what: nothing for other blocks
        ready: list[Any] = []
        for number, task in enumerate(self.tasks):
            make = partial(self._ready, task, weights.counts, fast is not None)
            ready.append((task, *weights.cached((*self.key, number, fast is not None), make)))
        exact = len(self.tasks) == 1 and not self.gaps and self.begun is None
        criterion, score = np.empty((self.m, draws)), np.empty((self.m, draws))
        step = max(1, TILE // max(1, self.r * draws))
        for start in range(0, self.m, step):
            stop = min(start + step, self.m)
            here = slice(start, stop)
            if exact:
                task, lanes, positive, negative = ready[0]
                criterion[here], score[here] = self._exact(task, lanes, positive, negative, start, stop, fast)
            else:
                score[here] = self._combined(ready, start, stop, fast)
        if not exact:
            np.multiply(score, self.metric.sign, out=criterion)
        return criterion.T, score.T

    def _ready(self, task: Task, weights: np.ndarray, narrow: bool) -> tuple[Lanes, np.ndarray, np.ndarray]:
        """Return what depends on draws and labels alone: lanes, and the weight of positives and negatives."""
        w = self._weighted(weights, task)
        return lanes_of(w, self.bound, self.metric.statistic, narrow=narrow), *self._totals(task, w)

    def _totals(self, task: Task, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the positive and negative weight: (draw,), or (column, draw) where predictions are missing."""
        cut = int(task.positive.sum())
        if task.count is None:
            return w[:, :cut].sum(axis=1).astype(float), w[:, cut:].sum(axis=1).astype(float)
        size = len(task.rows)
        present = np.zeros((task.order.shape[0], size), bool)
        np.put_along_axis(present, task.order.astype(np.intp), np.arange(size) < task.count[:, None], axis=1)
        share, w = present.astype(float), w.astype(float)
        return share[:, :cut] @ w[:, :cut].T, share[:, cut:] @ w[:, cut:].T

    def _exact(
        self, task: Task, lanes: Lanes, positive: np.ndarray, negative: np.ndarray, start: int, stop: int, fast: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return sums over repeats of exact counts, and the scores, both (configuration, draw)."""
        raw = walk(self.metric.statistic, task, lanes, start * self.r, stop * self.r, fast)
        raw = raw.reshape(stop - start, self.r, -1)
        summed = add_up(raw[:, repeat] for repeat in range(self.r))
        scale = self.r * positive * (2.0 * negative if self.metric.statistic == "auc" else 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            score = summed / scale
        criterion = self.metric.sign * summed
        return np.where(scale > 0, criterion, np.nan), score

    def _combined(self, ready: list[Any], start: int, stop: int, fast: Any) -> np.ndarray:
        """Return the scores (configuration, draw) when predictions are missing or contrasts must be averaged."""
        values, share = [], []
        here = slice(start * self.r, stop * self.r)
        for task, lanes, positive, negative in ready:
            raw = walk(self.metric.statistic, task, lanes, here.start, here.stop, fast)
            pos, neg = (positive, negative) if task.count is None else (positive[here], negative[here])
            scale = pos * (2.0 * neg if self.metric.statistic == "auc" else 1.0)
            first = scale if task.count is None else scale[:: self.r]
            with np.errstate(divide="ignore", invalid="ignore"):
                values.append(raw / scale)
            share.append(np.broadcast_to(pos, raw.shape))
        table = combine(self.metric, np.array(values), np.array(share)).reshape(stop - start, self.r, -1)
        score = over_repeats(table, None if self.begun is None else self.begun[start:stop])
        if len(ready) == 1:
            whole = self.whole[start:stop]
            summed = add_up(raw.reshape(table.shape)[:, repeat] for repeat in range(self.r))
            with np.errstate(divide="ignore", invalid="ignore"):
                score[whole] = (summed / (self.r * first))[whole]
        return score

    def scores(self, weights: np.ndarray | Weights) -> np.ndarray:
        """Return the score of every configuration under each row of `weights`: (draw, m)."""
        return self.criterion(weights)[1]

    def judged(self, weights: np.ndarray | Weights, index: np.ndarray) -> np.ndarray:
        """Return, for each draw, the score of configuration ``index[draw]`` under that draw's weights."""
        fast = accelerator(0, 0, 0)
        values, share = [], []
        for task in self.tasks:
            w = self._weighted(Weights.of(weights).counts, task, by_draw=True)
            values.append(self._judged_by_numba(fast, task, w, index) if fast else self._judged(task, w, index))
            share.append(self._judged_share(task, w, index) if self.metric.multiclass == "weighted" else values[-1])
        table = combine(self.metric, np.array(values), np.array(share))
        return over_repeats(table, None if self.begun is None else self.begun[index])

    def _judged(self, task: Task, w: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return (draw, r) values, a few draws at a time."""
        size = len(task.rows)
        if not size:  # no sample of these classes
            return np.full((len(index), self.r), np.nan)
        out = np.empty((len(index), self.r))
        step = max(1, TILE // 8 // max(1, self.r * size))  # a dozen arrays of this size
        for start in range(0, len(index), step):
            some = index[start : start + step]
            order = task.order.reshape(self.m, self.r, size)[some].astype(np.intp)
            last = None if task.last is None else task.last.reshape(self.m, self.r, size)[some]
            part = w[start : start + step].astype(float)
            ordered = np.take_along_axis(np.broadcast_to(part[:, None, :], order.shape), order, axis=-1)
            if task.count is not None:
                here = task.count.reshape(self.m, self.r)[some][..., None]
                ordered = np.where(np.arange(size) < here, ordered, 0.0)
            positive = task.positive[order]
            count, scale = STATISTICS[self.metric.statistic](
                np.where(positive, ordered, 0.0), np.where(positive, 0.0, ordered), last
            )
            with np.errstate(divide="ignore", invalid="ignore"):
                out[start : start + step] = count / scale
        return out

    def _judged_by_numba(self, fast: Any, task: Task, w: np.ndarray, index: np.ndarray) -> np.ndarray:
        out = np.empty((len(index), self.r))
        last = np.empty((0, 0), bool) if task.last is None else task.last
        narrow = w.dtype.kind in "iub" and w.max(initial=0) < 256
        w = np.ascontiguousarray(w, dtype=np.uint8 if narrow else float)
        common = (index, self.r, task.order, last, task.tied, self._counts(task))
        if self.metric.statistic != "auc":
            fast.judged_precision(*common, task.positive, w, out)
        elif narrow:
            fast.judged_count(*common, int(task.positive.sum()), w, out)
        else:
            fast.judged_area(*common, task.positive, w, out)
        return out

    def _judged_share(self, task: Task, w: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return (draw, r): the positive weight of each draw's winner."""
        w = w.astype(float)
        if task.count is None:
            return np.repeat(w[:, task.positive].sum(axis=1)[:, None], self.r, axis=1)
        size = len(task.rows)
        present = np.zeros((task.order.shape[0], size), bool)
        np.put_along_axis(present, task.order.astype(np.intp), np.arange(size) < task.count[:, None], axis=1)
        chosen = present.reshape(self.m, self.r, size)[index][:, :, task.positive]
        return np.asarray(np.einsum("brn,bn->br", chosen.astype(float), w[:, task.positive]))


def whole_weights(weight: np.ndarray | None, total: float) -> tuple[np.ndarray | None, float]:
    """Return case weights, as integers when they are whole, and the bound of a draw's weight with them."""
    if weight is None:
        return None, total
    top = float(weight.max(initial=0.0))
    if top * total < 2**31 and np.array_equal(weight, np.rint(weight)):
        return weight.astype(np.int32), total * max(top, 1.0)
    return weight, total * max(top, 1.0)
