"""Kernels for rank statistics: AUC and average precision by walking down a sorted column.

A column is one configuration in one repeat. Each is sorted once; the walk then serves any number of weight vectors.
With whole-number weights twice the Mann-Whitney count is a whole number, so ties between configurations are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ._arrays import Problem

if TYPE_CHECKING:
    from .metrics import Metric

BLOCK = 4_000_000  # values sorted at a time


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


def sort_columns(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ascending order (column, n) and whether each place ends a group of ties, for `p` (n, columns)."""
    columns = np.ascontiguousarray(p.T)
    order = np.argsort(columns, axis=-1)
    ordered = np.take_along_axis(columns, order, axis=-1)
    last = np.ones(ordered.shape, bool)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=last[:, :-1])
    small = np.uint16 if p.shape[0] <= 65536 else np.int32
    return order.astype(small), last


def area(positive: np.ndarray, negative: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return the AUC along the last axis from weights in ascending order of score; `last` ends tie groups."""
    tp, tn = _at_group_ends(positive, last), _at_group_ends(negative, last)
    twice = np.einsum("...n,...n->...", np.diff(tp, axis=-1, prepend=0.0), tn + _shift(tn))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(twice / (2.0 * tp[..., -1] * tn[..., -1]))


def precision_area(positive: np.ndarray, negative: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return the average precision along the last axis; weights in ascending order of score."""
    first = np.ones(last.shape, bool)
    first[..., 1:] = last[..., :-1]
    end = first[..., ::-1]
    tp, fp = _at_group_ends(positive[..., ::-1], end), _at_group_ends(negative[..., ::-1], end)
    gain = np.diff(tp, axis=-1, prepend=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(gain > 0, tp / (tp + fp), 0.0)
        return np.asarray(np.einsum("...n,...n->...", gain, precision) / tp[..., -1])


def _at_group_ends(weights: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return the running sum as of the latest completed tie group (running sums never fall, so a maximum carries)."""
    total = np.cumsum(weights, axis=-1, dtype=float)
    return np.asarray(np.maximum.accumulate(np.where(last, total, 0.0), axis=-1))


def _shift(values: np.ndarray) -> np.ndarray:
    shifted = np.zeros_like(values)
    shifted[..., 1:] = values[..., :-1]
    return shifted


STATISTICS = {"auc": area, "average_precision": precision_area}


def column_values(metric: Metric, problem: Problem, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the metric of every column (m, r) under one weight vector per repeat, `weights` (n,) or (n, r)."""
    n, m, r = problem.n, problem.p.shape[-2], problem.p.shape[-1]
    weight = np.ones(n) if problem.weight is None else problem.weight
    w = np.ones((n, 1)) if weights is None else weights.reshape(n, -1)
    w = w * weight[:, None]
    planes = problem.p if problem.p.ndim == 4 else problem.p[None]
    statistic = STATISTICS[metric.statistic]
    values = np.empty((len(contrasts(metric, problem.n_classes)), m * r))
    share = np.empty(values.shape)
    step = max(1, BLOCK // n)
    for number, contrast in enumerate(contrasts(metric, problem.n_classes)):
        flat = planes[contrast.plane].reshape(n, m * r)
        for start in range(0, m * r, step):
            column = np.arange(start, min(start + step, m * r))
            block = flat[:, column]
            y = problem.y[:, None] if problem.y.ndim == 1 else problem.y[:, column // r]
            each = np.where(np.isnan(block), 0.0, w if w.shape[1] == 1 else w[:, column % r])
            positive = np.where(y == contrast.positive, each, 0.0).T
            out = y != contrast.positive if contrast.negative is None else y == contrast.negative
            negative = np.where(out, each, 0.0).T
            order, last = sort_columns(block)
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
            return np.asarray((values * share).sum(axis=0) / share.sum(axis=0))
    return np.asarray(values.mean(axis=0))


class RankEngine:
    """Scores of all configurations under any weights, by walking sorted columns once per block of draws."""

    def __init__(self, metric: Metric, problem: Problem, total: float) -> None:
        self.metric, self.total = metric, total
        p = problem.p
        self.m, self.r, self.n = p.shape[-2], p.shape[-1], problem.n
        self.weight = problem.weight
        planes = p if p.ndim == 4 else p[None]
        self.tasks = []
        for contrast in contrasts(metric, problem.n_classes):
            keep = np.ones(self.n, bool)
            if contrast.negative is not None:
                keep = (problem.y == contrast.positive) | (problem.y == contrast.negative)
            rows = np.flatnonzero(keep)
            block = planes[contrast.plane][rows].reshape(len(rows), self.m * self.r)
            order, last = sort_columns(block)
            count = np.isfinite(block).sum(axis=0) if np.isnan(block).any() else None
            if count is not None:
                count = (~np.isnan(block)).sum(axis=0)
            self.tasks.append(Task(rows, problem.y[rows] == contrast.positive, order, last, count))
        self.gaps = any(task.count is not None for task in self.tasks)
        self.repeat_weight: np.ndarray | None = None
        if self.gaps:
            some = np.stack([self._counts(task) for task in self.tasks]).min(axis=0).reshape(self.m, self.r) > 0
            self.repeat_weight = some / np.maximum(some.sum(axis=1, keepdims=True), 1)

    def _counts(self, task: Task) -> np.ndarray:
        return np.full(self.m * self.r, len(task.rows)) if task.count is None else task.count

    def _weights(self, task: Task, weights: np.ndarray) -> np.ndarray:
        """Return (n, draw) weights of the task's samples, in float32 when twice the count stays exact in it."""
        w = weights[:, task.rows]
        if self.weight is not None:
            w = w * self.weight[task.rows]
        whole = self.weight is None and weights.dtype.kind in "iub"
        exact = whole and self.metric.statistic == "auc" and self.total**2 / 2 < 2**24
        return np.ascontiguousarray(w.T.astype(np.float32 if exact else np.float64))

    def criterion(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what to maximise (exact counts where possible) and the scores, both (draw, m)."""
        from ._walk import walk

        values, share = [], []
        for task in self.tasks:
            w = self._weights(task, weights)
            raw = walk(self.metric.statistic, task, w)  # (column, draw): twice the count, or the precision sum
            positive, negative = w[task.positive].sum(axis=0, dtype=float), w[~task.positive].sum(axis=0, dtype=float)
            if task.count is None:
                scale = positive * (2.0 * negative if self.metric.statistic == "auc" else 1.0)
                if len(self.tasks) == 1:
                    summed = raw.reshape(self.m, self.r, -1).sum(axis=1, dtype=float).T
                    with np.errstate(divide="ignore", invalid="ignore"):
                        score = summed / (self.r * scale)[:, None]
                    return self.metric.sign * np.where(np.isnan(score), np.nan, summed), score
            else:
                pos, neg = self._gap_totals(task, w)
                scale = pos * (2.0 * neg if self.metric.statistic == "auc" else 1.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                values.append(raw / scale)
            share.append(np.broadcast_to(positive, raw.shape))
        score = self._over_repeats(combine(self.metric, np.array(values), np.array(share)))
        return self.metric.sign * score, score

    def _gap_totals(self, task: Task, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the positive and negative weight that each column with gaps has predictions for: (column, draw)."""
        assert task.count is not None
        size = len(task.rows)
        present = np.zeros((task.order.shape[0], size), bool)
        np.put_along_axis(present, task.order.astype(np.intp), np.arange(size) < task.count[:, None], axis=1)
        return present[:, task.positive] @ w[task.positive].astype(float), present[:, ~task.positive] @ w[~task.positive].astype(float)

    def _over_repeats(self, columns: np.ndarray) -> np.ndarray:
        """Average (column, draw) values over repeats: (draw, m)."""
        table = columns.reshape(self.m, self.r, -1)
        if self.repeat_weight is None:
            return np.asarray(table.mean(axis=1).T)
        rows = self.repeat_weight[:, :, None]
        return np.asarray((np.where(rows > 0, table, 0.0) * rows).sum(axis=1).T)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the score of every configuration under each row of `weights`: (draw, m)."""
        return self.criterion(weights)[1]

    def judged(self, weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return, for each draw, the score of configuration ``index[draw]`` under that draw's weights."""
        step = max(1, BLOCK // (8 * self.r * self.n))
        if len(index) > step:
            parts = [slice(start, start + step) for start in range(0, len(index), step)]
            return np.concatenate([self.judged(weights[part], index[part]) for part in parts])
        statistic = STATISTICS[self.metric.statistic]
        values, share = [], []
        for task in self.tasks:
            size = len(task.rows)
            order = task.order.reshape(self.m, self.r, size)[index].astype(np.intp)
            last = task.last.reshape(self.m, self.r, size)[index]
            w = weights[:, task.rows].astype(float)
            if self.weight is not None:
                w = w * self.weight[task.rows]
            ordered = np.take_along_axis(np.broadcast_to(w[:, None, :], order.shape), order, axis=-1)
            if task.count is not None:
                here = task.count.reshape(self.m, self.r)[index][..., None]
                ordered = np.where(np.arange(size) < here, ordered, 0.0)
            positive = task.positive[order]
            values.append(statistic(np.where(positive, ordered, 0.0), np.where(positive, 0.0, ordered), last))
            share.append(np.broadcast_to(w[:, task.positive].sum(axis=1)[:, None], values[-1].shape))
        table = combine(self.metric, np.array(values), np.array(share))
        if self.repeat_weight is None:
            return np.asarray(table.mean(axis=1))
        rows = self.repeat_weight[index]
        return np.asarray((np.where(rows > 0, table, 0.0) * rows).sum(axis=1))


@dataclass(frozen=True)
class Task:
    """A contrast ready to walk: its samples, which are positive, and each column's order, tie ends and length."""

    rows: np.ndarray
    positive: np.ndarray
    order: np.ndarray
    last: np.ndarray
    count: np.ndarray | None
