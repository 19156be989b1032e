"""Kernels for rank statistics: AUC and average precision by walking down a sorted column.

A column is one configuration in one repeat. Each is sorted once; the walk then serves any number of weight vectors.
With whole-number weights twice the Mann-Whitney count is a whole number, so ties between configurations are exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ._arrays import Problem
from ._walk import Lanes, accelerator, lanes_of, walk

if TYPE_CHECKING:
    from .metrics import Metric

TILE = 1_000_000  # numbers in an intermediate array


@dataclass(frozen=True)
class Contrast:
    """One binary question behind a rank metric: which class plane ranks which positives over which negatives."""

    plane: int
    positive: int
    negative: int | None  # None: all other classes


def contrasts(metric: Metric, n_classes: int) -> list[Contrast]:
    """Return the binary questions of a metric: one for two classes, Hand & Till pairs or one-vs-rest for more."""
    if n_classes == 2:
        return [Contrast(0, 1, None)]
    if metric.multiclass == "pairs":
        return [Contrast(a, a, b) for a in range(n_classes) for b in range(n_classes) if a != b]
    return [Contrast(a, a, None) for a in range(n_classes)]


def sort_columns(p: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Return the ascending order (column, n) of `p` (n, columns), where tie groups end, and which columns have ties.

    The order of a float and its position fit one 64-bit word but for the last bits of the float, and sorting words is
    twice as fast as sorting positions; columns in which those bits matter are sorted again. NaN goes to the end.
    """
    n, columns = p.shape
    bits = max(1, (n - 1).bit_length())
    order = np.empty((columns, n), np.int32)
    last: np.ndarray | None = None
    tied = np.zeros(columns, bool)
    place = np.arange(n)
    step = max(1, TILE // max(1, n))
    for start in range(0, columns, step):
        here = slice(start, min(start + step, columns))
        values = np.ascontiguousarray(p[:, here].T, dtype=np.float64) + 0.0  # -0.0 ties with 0.0
        gaps = np.isnan(values)
        if gaps.any():
            values[gaps] = np.nan  # whatever their sign bit
        word = values.view(np.int64)
        word = word ^ ((word >> 63) & np.int64(2**63 - 1))
        word &= np.int64(-1 << bits)
        word |= place
        word.sort(axis=1)
        order[here] = word & np.int64((1 << bits) - 1)
        word >>= np.int64(bits)
        close = np.flatnonzero((word[:, 1:] == word[:, :-1]).any(axis=1))
        if close.size:
            rest = values[close]
            ordered = np.take_along_axis(rest, order[start + close].astype(np.intp), axis=1)
            wrong = np.flatnonzero((ordered[:, 1:] < ordered[:, :-1]).any(axis=1))
            if wrong.size:
                order[start + close[wrong]] = np.argsort(rest[wrong], axis=1, kind="stable")
                ordered = np.take_along_axis(rest, order[start + close].astype(np.intp), axis=1)
            last = np.ones((columns, n), bool) if last is None else last
            differ = ordered[:, 1:] != ordered[:, :-1]
            last[start + close, :-1] = differ
            tied[start + close] = ~differ.all(axis=1)
    return order, last, tied


def area(positive: np.ndarray, negative: np.ndarray, last: np.ndarray | None) -> np.ndarray:
    """Return the AUC along the last axis from weights in ascending order of score; `last` ends tie groups."""
    tp, tn = _at_group_ends(positive, last), _at_group_ends(negative, last)
    twice = _added(np.diff(tp, axis=-1, prepend=0.0) * (tn + _shift(tn)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(twice / (2.0 * tp[..., -1] * tn[..., -1]))


def precision_area(positive: np.ndarray, negative: np.ndarray, last: np.ndarray | None) -> np.ndarray:
    """Return the average precision along the last axis; weights in ascending order of score."""
    end = None
    if last is not None:
        first = np.ones(last.shape, bool)
        first[..., 1:] = last[..., :-1]
        end = first[..., ::-1]
    tp, fp = _at_group_ends(positive[..., ::-1], end), _at_group_ends(negative[..., ::-1], end)
    gain = np.diff(tp, axis=-1, prepend=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(gain > 0, tp / (tp + fp), 0.0)
        return np.asarray(_added(gain * precision) / tp[..., -1])


def _added(values: np.ndarray) -> np.ndarray:
    """Return sums along the last axis, added one by one: an order that numba repeats."""
    return np.asarray(np.cumsum(values, axis=-1)[..., -1])


def _at_group_ends(weights: np.ndarray, last: np.ndarray | None) -> np.ndarray:
    """Return the running sum as of the latest completed tie group (running sums never fall, so a maximum carries)."""
    total = np.cumsum(weights, axis=-1, dtype=float)
    return total if last is None else np.asarray(np.maximum.accumulate(np.where(last, total, 0.0), axis=-1))


def _shift(values: np.ndarray) -> np.ndarray:
    shifted = np.zeros_like(values)
    shifted[..., 1:] = values[..., :-1]
    return shifted


STATISTICS = {"auc": area, "average_precision": precision_area}


def column_values(metric: Metric, problem: Problem) -> np.ndarray:
    """Return the metric of every column (m, r) on all samples."""
    n, m, r = problem.n, problem.p.shape[-2], problem.p.shape[-1]
    weight = np.ones(n) if problem.weight is None else problem.weight
    planes = problem.p if problem.p.ndim == 4 else problem.p[None]
    statistic = STATISTICS[metric.statistic]
    every = contrasts(metric, problem.n_classes)
    values, share = np.empty((len(every), m * r)), np.empty((len(every), m * r))
    step = max(1, TILE // n)
    for number, contrast in enumerate(every):
        flat = planes[contrast.plane].reshape(n, m * r)
        for start in range(0, m * r, step):
            column = np.arange(start, min(start + step, m * r))
            block = flat[:, column]
            y = problem.y[:, None] if problem.y.ndim == 1 else problem.y[:, column // r]
            each = np.where(np.isnan(block), 0.0, weight[:, None])
            positive = np.where(y == contrast.positive, each, 0.0).T
            out = y != contrast.positive if contrast.negative is None else y == contrast.negative
            negative = np.where(out, each, 0.0).T
            order, last, _ = sort_columns(block)
            order = order.astype(np.intp)
            values[number, column] = statistic(
                np.take_along_axis(positive, order, -1), np.take_along_axis(negative, order, -1), last
            )
            share[number, column] = positive.sum(axis=1)
    return combine(metric, values, share).reshape(m, r)


def combine(metric: Metric, values: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Average the contrasts of a multi-class metric: equally, or by the share of each class."""
    if len(values) == 1:
        return np.asarray(values[0])
    if metric.multiclass == "weighted":
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(add_up(values * share) / add_up(share))
    return np.asarray(add_up(values) / len(values))


def add_up(parts: Iterable[np.ndarray]) -> np.ndarray:
    """Return the sum of some arrays, added one by one whatever their shape or layout."""
    total: np.ndarray | None = None
    for part in parts:
        total = np.array(part, dtype=float) if total is None else np.add(total, part, out=total)
    assert total is not None
    return total


@dataclass(frozen=True)
class Task:
    """A contrast ready to walk: its samples, which are positive, and each column's order, ties and length."""

    rows: np.ndarray
    positive: np.ndarray
    order: np.ndarray  # (column, n) ascending
    last: np.ndarray | None  # (column, n) whether a place ends a tie group; None: no ties at all
    tied: np.ndarray  # (column,) whether there are ties
    count: np.ndarray | None  # (column,) number of predictions; None: all


class RankEngine:
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
        p = problem.p
        self.m, self.r, self.n = p.shape[-2], p.shape[-1], problem.n
        self.weight, self.bound = whole_weights(problem.weight, total)
        planes = p if p.ndim == 4 else p[None]
        missing = bool(np.isnan(np.min(planes)))
        self.gaps = missing if gaps is None else gaps
        self.tasks = []
        for contrast in contrasts(metric, problem.n_classes):
            keep = np.ones(self.n, bool)
            if contrast.negative is not None:
                keep = (problem.y == contrast.positive) | (problem.y == contrast.negative)
            rows = np.flatnonzero(keep)
            block = planes[contrast.plane][rows] if len(rows) < self.n else planes[contrast.plane]
            block = block.reshape(len(rows), self.m * self.r)
            count = (~np.isnan(block)).sum(axis=0) if missing else None
            self.tasks.append(Task(rows, problem.y[rows] == contrast.positive, *sort_columns(block), count))
        self.repeat_weight: np.ndarray | None = None
        if missing:
            some = np.stack([self._counts(task) for task in self.tasks]).min(axis=0).reshape(self.m, self.r) > 0
            self.repeat_weight = some / np.maximum(some.sum(axis=1, keepdims=True), 1)

    def _counts(self, task: Task) -> np.ndarray:
        return np.full(self.m * self.r, len(task.rows)) if task.count is None else task.count

    def _weighted(self, weights: np.ndarray, task: Task) -> np.ndarray:
        """Return (draw, n) weights of the task's samples, case weights included."""
        w = weights if len(task.rows) == self.n else weights[:, task.rows]
        if self.weight is None:
            return w
        return np.asarray(w * (self.weight if len(task.rows) == self.n else self.weight[task.rows]))

    def criterion(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what to maximise (exact counts where possible) and the scores, both (draw, m)."""
        draws = len(weights)
        fast = accelerator(len(self.tasks) * self.m * self.r, self.n, draws)
        ready = []
        for task in self.tasks:
            w = self._weighted(weights, task)
            lanes = lanes_of(w, self.bound, self.metric.statistic, narrow=fast is not None)
            ready.append((task, lanes, *self._totals(task, w)))
        exact = len(self.tasks) == 1 and not self.gaps
        criterion, score = np.empty((self.m, draws)), np.empty((self.m, draws))
        step = max(1, TILE // max(1, self.r * draws))
        for start in range(0, self.m, step):
            stop = min(start + step, self.m)
            here = slice(start, stop)
            if exact:
                criterion[here], score[here] = self._exact(*ready[0], start, stop, fast)
            else:
                score[here] = self._combined(ready, start, stop, fast)
        if not exact:
            np.multiply(score, self.metric.sign, out=criterion)
        return criterion.T, score.T

    def _totals(self, task: Task, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the positive and negative weight: (draw,), or (column, draw) where predictions are missing."""
        w = w.astype(float)
        if task.count is None:
            return w[:, task.positive].sum(axis=1), w[:, ~task.positive].sum(axis=1)
        size = len(task.rows)
        present = np.zeros((task.order.shape[0], size), bool)
        np.put_along_axis(present, task.order.astype(np.intp), np.arange(size) < task.count[:, None], axis=1)
        share = present.astype(float)
        return share[:, task.positive] @ w[:, task.positive].T, share[:, ~task.positive] @ w[:, ~task.positive].T

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
            with np.errstate(divide="ignore", invalid="ignore"):
                values.append(raw / (pos * (2.0 * neg if self.metric.statistic == "auc" else 1.0)))
            share.append(np.broadcast_to(pos, raw.shape))
        table = combine(self.metric, np.array(values), np.array(share)).reshape(stop - start, self.r, -1)
        return self._over_repeats(table, None if self.repeat_weight is None else self.repeat_weight[start:stop])

    def _over_repeats(self, table: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        """Average (m, r, ...) over repeats, leaving out those in which a configuration predicted nothing."""
        if rows is None:
            return np.asarray(add_up(table[:, repeat] for repeat in range(self.r)) / self.r)
        rows = rows.reshape(rows.shape + (1,) * (table.ndim - 2))
        some = rows > 0
        total = add_up(np.where(some[:, repeat], table[:, repeat], 0.0) for repeat in range(self.r))
        return np.asarray(total / np.maximum(some.sum(axis=1), 1))

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the score of every configuration under each row of `weights`: (draw, m)."""
        return self.criterion(weights)[1]

    def judged(self, weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return, for each draw, the score of configuration ``index[draw]`` under that draw's weights."""
        fast = accelerator(0, 0, 0)
        values, share = [], []
        for task in self.tasks:
            w = self._weighted(weights, task)
            values.append(self._judged_by_numba(fast, task, w, index) if fast else self._judged(task, w, index))
            share.append(self._judged_share(task, w, index) if self.metric.multiclass == "weighted" else values[-1])
        table = combine(self.metric, np.array(values), np.array(share))
        return self._over_repeats(table, None if self.repeat_weight is None else self.repeat_weight[index])

    def _judged(self, task: Task, w: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return (draw, r) values, a few draws at a time."""
        size = len(task.rows)
        out = np.empty((len(index), self.r))
        step = max(1, TILE // max(1, self.r * size))
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
            out[start : start + step] = STATISTICS[self.metric.statistic](
                np.where(positive, ordered, 0.0), np.where(positive, 0.0, ordered), last
            )
        return out

    def _judged_by_numba(self, fast: Any, task: Task, w: np.ndarray, index: np.ndarray) -> np.ndarray:
        out = np.empty((len(index), self.r))
        kernel = fast.judged_area if self.metric.statistic == "auc" else fast.judged_precision
        last = np.empty((0, 0), bool) if task.last is None else task.last
        w = np.ascontiguousarray(w, dtype=np.uint8 if w.dtype.kind in "iub" and w.max(initial=0) < 256 else float)
        kernel(index, self.r, task.order, last, task.tied, self._counts(task), task.positive, w, out)
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
