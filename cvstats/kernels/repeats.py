"""Who predicted what, and averages over repeats: counts and what they are divided by stay apart until the end."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


class Presence:
    """Which of `n` samples each column predicted; columns that lack the same samples share a pattern.

    `missing` is (n, columns), or None when no prediction is.
    """

    def __init__(self, missing: np.ndarray | None, n: int, columns: int) -> None:
        self.patterns, self.pattern = np.ones((1, n), bool), np.zeros(columns, np.intp)
        if missing is not None:
            packed = np.packbits(missing.T, axis=1)
            _, first, self.pattern = np.unique(packed, axis=0, return_index=True, return_inverse=True)
            self.patterns = ~missing[:, first].T
        self.begun = np.any(self.patterns, axis=1)[self.pattern]  # (column,) anything predicted
        self.whole = np.all(self.patterns, axis=1)[self.pattern]  # (column,) everything predicted


def over_repeats(table: np.ndarray, begun: np.ndarray | None) -> np.ndarray:
    """Average (m, r, ...) over repeats; `begun` (m, r) says in which ones a configuration predicted anything."""
    r = table.shape[1]
    if begun is None or begun.all():
        return np.asarray(add_up(table[:, repeat] for repeat in range(r)) / r)
    some = begun.reshape(begun.shape + (1,) * (table.ndim - 2))
    total = add_up(np.where(some[:, repeat], table[:, repeat], 0.0) for repeat in range(r))
    count = some.sum(axis=1)
    return np.asarray(total / np.where(count > 0, count, np.nan))


def mean_ratio(count: np.ndarray, scale: np.ndarray, begun: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return the average of count / scale over repeats, (m, draw) from (m, r, draw).

    The repeats of a configuration that is `whole` share their scale, and are added before they are divided: whole
    numbers stay whole, and a tie is a tie.
    """
    r = count.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        summed = np.asarray(add_up(count[:, repeat] for repeat in range(r)) / (r * scale[:, 0]))
        return summed if whole.all() else np.where(whole[:, None], summed, over_repeats(count / scale, begun))


def add_up(parts: Iterable[np.ndarray]) -> np.ndarray:
    """Return the sum of some arrays, added one by one whatever their shape or layout."""
    total: np.ndarray | None = None
    for part in parts:
        total = np.array(part, dtype=float) if total is None else np.add(total, part, out=total)
    assert total is not None
    return total
