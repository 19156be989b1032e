"""Columns of predictions in ascending order: what every rank statistic starts from.

A column is one configuration in one repeat (or, where classes were sampled separately, under one model).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .repeats import Presence

if TYPE_CHECKING:
    from cvstats.metrics import Metric

TILE = 1_000_000  # numbers in an intermediate array
TINY = 1e-300  # keeps 0 / 0 away where nothing has weight yet, and vanishes when anything has


@dataclass(frozen=True)
class Ranking:
    """Samples that are ranked against each other in every column: positives, negatives, orders and ties."""

    rows: np.ndarray  # the samples, positives first, so that ties are walked in that order
    cut: int  # how many are positive
    order: np.ndarray  # (column, n) places in `rows`, ascending
    last: np.ndarray | None  # (column, n) whether a place ends a tie group; None: no ties at all
    count: np.ndarray  # (column,) number of predictions; those that are missing come last
    presence: Presence

    @classmethod
    def of(cls, rows: np.ndarray, cut: int, p: np.ndarray, places: np.ndarray) -> Ranking:
        """Return the ranking of the samples `rows`; row ``places[k]`` of `p` holds the predictions of ``rows[k]``."""
        missing = np.isnan(p)[places] if np.isnan(np.min(p, initial=0.0)) else None
        presence = Presence(missing, len(rows), p.shape[1])
        return cls(rows, cut, *sort_columns(p, places), presence.patterns.sum(axis=1)[presence.pattern], presence)

    def totals(self, w: np.ndarray, bound: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the weight of positives and of negatives (pattern, draw), from weights (draw, row) up to `bound`."""
        cut, there = self.cut, self.presence.patterns
        if there.all():
            return w[:, :cut].sum(axis=1, dtype=float)[None], w[:, cut:].sum(axis=1, dtype=float)[None]
        kind = np.float32 if w.dtype.kind in "iub" and bound < 2**24 else np.float64
        share, w = there.astype(kind), w.astype(kind)
        return (share[:, :cut] @ w[:, :cut].T).astype(float), (share[:, cut:] @ w[:, cut:].T).astype(float)


def contrasts(metric: Metric, y: np.ndarray, n_classes: int) -> Iterator[tuple[int, np.ndarray, int]]:
    """Yield the binary questions of a metric: the class plane that ranks, the samples, and how many are positive.

    One for two classes, Hand and Till's ordered pairs or each class against the rest for more.
    """
    sides: list[tuple[int, int, int | None]] = [(a, a, None) for a in range(n_classes)]
    if n_classes == 2:
        sides = [(0, 1, None)]
    elif metric.multiclass == "pairs":
        sides = [(a, a, b) for a in range(n_classes) for b in range(n_classes) if a != b]
    for plane, positive, negative in sides:
        mine = np.flatnonzero(y == positive)
        other = np.flatnonzero(y != positive if negative is None else y == negative)
        yield plane, np.concatenate([mine, other]), len(mine)


def model_rankings(model: np.ndarray, y: np.ndarray, p: np.ndarray) -> Iterator[tuple[slice, Ranking]]:
    """Yield the repeat and the ranking of each model: of the samples it left out, by its own predictions."""
    for repeat in range(model.shape[1]):
        for number in np.unique(model[:, repeat][model[:, repeat] >= 0]):
            rows, partner = np.nonzero(model[:, repeat] == number)
            first = np.argsort(y[rows] != 1, kind="stable")
            rows, column = rows[first], repeat * model.shape[2] + partner[first]
            cut = int((y[rows] == 1).sum())
            yield slice(repeat, repeat + 1), Ranking.of(rows, cut, p[rows, :, column], np.arange(len(rows)))


def sort_columns(p: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the ascending order (column, n) of the samples `rows` of `p`, and where tie groups end (None: no ties).

    Ties stay in the order of `rows`, NaN goes to the end. The order of a float and its position fit one 64-bit word
    but for the last bits of the float, and sorting words is twice as fast as sorting positions; columns in which
    those bits matter are sorted again.
    """
    n, columns = len(rows), p.shape[1]
    bits = max(1, (n - 1).bit_length())
    order = np.empty((columns, n), np.int32)
    last: np.ndarray | None = None
    place = np.arange(n)
    step = max(1, TILE // max(1, n))
    for start in range(0, columns, step):
        block = slice(start, min(start + step, columns))
        values = np.ascontiguousarray(p[rows, block].T, dtype=np.float64) + 0.0  # -0.0 ties with 0.0
        values[np.isnan(values)] = np.nan  # whatever their sign bit
        word = values.view(np.int64)
        word = word ^ ((word >> 63) & np.int64(2**63 - 1))
        word &= np.int64(-1 << bits)
        word |= place
        word.sort(axis=1)
        order[block] = word & np.int64((1 << bits) - 1)
        word >>= np.int64(bits)
        close = np.flatnonzero((word[:, 1:] == word[:, :-1]).any(axis=1))
        if close.size:
            rest = values[close]
            ordered = np.take_along_axis(rest, order[start + close].astype(np.intp), axis=1)
            wrong = np.flatnonzero((ordered[:, 1:] < ordered[:, :-1]).any(axis=1))
            if wrong.size:
                order[start + close[wrong]] = np.argsort(rest[wrong], axis=1, kind="stable")
                ordered = np.take_along_axis(rest, order[start + close].astype(np.intp), axis=1)
            differ = ordered[:, 1:] != ordered[:, :-1]
            if last is None and not differ.all():
                last = np.ones((columns, n), bool)
            if last is not None:
                last[start + close, :-1] = differ
    return order, last
