"""Rank statistics column by column: sorting, tie groups, and AUC and average precision on all samples.

A column is one configuration in one repeat. Counts and what they are divided by are kept apart, so that counts can be
added over repeats exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .problem import Problem

if TYPE_CHECKING:
    from cvstats.metrics import Metric

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


def sort_columns(p: np.ndarray, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Return the ascending order (column, n) of `p` (n, columns), where tie groups end, and how many places do not.

    With `rows`, of those samples, ties in that order; without, of all. The order of a float and its position fit one
    64-bit word but for the last bits of the float, and sorting words is twice as fast as sorting positions; columns
    in which those bits matter are sorted again. NaN goes to the end.
    """
    n, columns = p.shape if rows is None else (len(rows), p.shape[1])
    bits = max(1, (n - 1).bit_length())
    order = np.empty((columns, n), np.int32)
    last: np.ndarray | None = None
    tied = np.zeros(columns, np.int64)
    place = np.arange(n)
    step = max(1, TILE // max(1, n))
    for start in range(0, columns, step):
        here = slice(start, min(start + step, columns))
        part = p[:, here] if rows is None else p[rows, here]
        values = np.ascontiguousarray(part.T, dtype=np.float64) + 0.0  # -0.0 ties with 0.0
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
            tied[start + close] = n - 1 - differ.sum(axis=1)
    return order, last, tied


def area(positive: np.ndarray, negative: np.ndarray, last: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return twice the Mann-Whitney count and twice the number of pairs, along the last axis.

    Weights are in ascending order of score; `last` ends tie groups.
    """
    tp, tn = _at_group_ends(positive, last), _at_group_ends(negative, last)
    twice = _added(np.diff(tp, axis=-1, prepend=0.0) * (tn + _shift(tn)))
    return twice, 2.0 * tp[..., -1] * tn[..., -1]


def precision_area(
    positive: np.ndarray, negative: np.ndarray, last: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of precisions at the positives and the number of positives; weights in ascending order."""
    end = None
    if last is not None:
        first = np.ones(last.shape, bool)
        first[..., 1:] = last[..., :-1]
        end = first[..., ::-1]
    tp, fp = _at_group_ends(positive[..., ::-1], end), _at_group_ends(negative[..., ::-1], end)
    gain = np.diff(tp, axis=-1, prepend=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(gain > 0, tp / (tp + fp), 0.0)
    return _added(gain * precision), tp[..., -1]


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
    m, r = problem.p.shape[-2:]
    count, scale, share = _column_counts(metric, problem)
    with np.errstate(divide="ignore", invalid="ignore"):
        return combine(metric, count / scale, share).reshape(m, r)


def pooled_values(metric: Metric, problem: Problem) -> np.ndarray:
    """Return the score of every configuration (m,) on all samples, with the operations of `RankKernel.criterion`."""
    m, r = problem.p.shape[-2:]
    count, scale, share = _column_counts(metric, problem)
    with np.errstate(divide="ignore", invalid="ignore"):
        table = combine(metric, count / scale, share).reshape(m, r)
        planes = problem.p if problem.p.ndim == 4 else problem.p[None]
        absent = np.isnan(planes).any(axis=0) if np.isnan(np.min(planes)) else None
        begun = None if absent is None else ~absent.all(axis=0)
        score = over_repeats(table, begun)
        if len(count) == 1:
            whole = np.ones(m, bool) if absent is None else ~absent.any(axis=(0, 2))
            score[whole] = add_up(count[0].reshape(m, r).T)[whole] / (r * scale[0].reshape(m, r)[whole, 0])
    return score


def _column_counts(metric: Metric, problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, by contrast and column, the count, what to divide it by, and the weight of the positives."""
    n, m, r = problem.n, problem.p.shape[-2], problem.p.shape[-1]
    weight = np.ones(n) if problem.weight is None else problem.weight
    p = problem.read(metric.uses)
    planes = p if p.ndim == 4 else p[None]
    statistic = STATISTICS[metric.statistic]
    every = contrasts(metric, problem.n_classes)
    count, scale, share = np.empty((3, len(every), m * r))
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
            count[number, column], scale[number, column] = statistic(
                np.take_along_axis(positive, order, -1), np.take_along_axis(negative, order, -1), last
            )
            share[number, column] = positive.sum(axis=1)
    return count, scale, share


def over_repeats(table: np.ndarray, begun: np.ndarray | None) -> np.ndarray:
    """Average (m, r, ...) over repeats; `begun` (m, r) says in which ones a configuration predicted anything."""
    r = table.shape[1]
    if begun is None:
        return np.asarray(add_up(table[:, repeat] for repeat in range(r)) / r)
    some = begun.reshape(begun.shape + (1,) * (table.ndim - 2))
    total = add_up(np.where(some[:, repeat], table[:, repeat], 0.0) for repeat in range(r))
    count = some.sum(axis=1)
    return np.asarray(total / np.where(count > 0, count, np.nan))


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
