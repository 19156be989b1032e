"""Kernel for Harrell's concordance: sums over comparable pairs, by matrix products.

A pair is comparable when the sample with the earlier time had its event observed; one censored at the very time of
another's event outlives it; two events at one time are not comparable. In order of time, censored after events, the
comparable pairs lie above the diagonal of a matrix, so tiles of it suffice and bound memory. With numba a tree of
weights by risk counts them in n log n steps instead. Sums of whole-number weights are exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .problem import Kernel, Problem
from .ranks import whole_weights
from .repeats import Presence, mean_ratio
from .walk import accelerator

if TYPE_CHECKING:
    from types import ModuleType

    from cvstats.metrics import Metric

TILE = 256  # samples on either side of a tile of pairs
CELLS = 2_000_000  # numbers in an intermediate array


class PairKernel(Kernel):
    """Scores of all configurations under any weights, column by column over a block of draws.

    Parameters are those of `RankKernel`.
    """

    def __init__(self, metric: Metric, problem: Problem, total: float) -> None:
        assert problem.event is not None
        self.metric = metric
        time = 2 * np.unique(problem.y, return_inverse=True)[1] + (problem.event == 0)
        self.order = np.argsort(time, kind="stable")
        self.time, self.event = time[self.order], problem.event[self.order] == 1
        p = problem.read(metric.uses)[self.order]
        n, self.m, self.r = p.shape
        risk = p.reshape(n, -1)
        self.weight, self.bound = whole_weights(problem.weight, total)
        self.presence = Presence(np.isnan(risk) if np.isnan(np.min(p)) else None, n, self.m * self.r)
        self.rank = _ranks(risk)
        self.perfect = _ranks(np.where(self.presence.patterns, -self.time.astype(float), np.nan).T)

    def some(self, weights: np.ndarray, columns: range) -> np.ndarray:
        """Return the concordance of some configurations under each row of `weights`: (draw, column)."""
        fast, *sides = self._sides(weights, len(columns) * self.r)
        comparable = self._twice(self.perfect, fast, *sides)
        side = min(TILE, len(self.time))
        step = max(1, CELLS // (self.r * side * max(side, len(weights))))
        parts = [columns[start : start + step] for start in range(0, len(columns), step)]
        return np.concatenate([self._scores(part, comparable, fast, *sides) for part in parts]).T

    def _sides(self, weights: np.ndarray, columns: int) -> tuple[ModuleType | None, np.ndarray, np.ndarray]:
        """Return the engine, and what samples weigh (n, draw) in order of time as the earlier and the later of a pair.

        Whole numbers have the narrowest type in which sums stay exact.
        """
        w = weights[:, self.order]
        w = w if self.weight is None else w * self.weight[self.order]
        lead = self._leading(w)
        fast = accelerator(columns, w.shape[1] ** 2 // 32, len(w))
        whole, kind = w.dtype.kind != "f", "f8"
        if fast is None and whole and 2 * self.bound < 2**24:
            kind = "f4"
        elif fast is not None and whole and lead is w and self.bound**2 < 2**31:
            kind = "i4"
        later = np.ascontiguousarray(w.T, dtype=kind)
        return fast, later if lead is w else np.ascontiguousarray(lead.T, dtype=float), later

    def _leading(self, w: np.ndarray) -> np.ndarray:
        """Return what samples weigh as the earlier of a pair."""
        return w

    def _scores(
        self, some: range, comparable: np.ndarray, fast: ModuleType | None, lead: np.ndarray, w: np.ndarray
    ) -> np.ndarray:
        """Return the concordance (configuration, draw) of some configurations, averaged over repeats."""
        columns, shape = slice(some.start * self.r, some.stop * self.r), (len(some), self.r)
        twice = self._twice(self.rank[columns], fast, lead, w).reshape(*shape, -1)
        scale = comparable[self.presence.pattern[columns]].reshape(*shape, -1)
        begun, whole = (side[columns].reshape(shape) for side in (self.presence.begun, self.presence.whole))
        return mean_ratio(twice, scale, begun, whole.all(axis=1))

    def _twice(self, rank: np.ndarray, fast: ModuleType | None, lead: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Return twice the weight of concordant pairs (column, draw), tied risks once; what is missing has no pairs."""
        columns, n = rank.shape
        if fast is not None:
            count = np.empty((columns, w.shape[1]), lead.dtype)
            fast.concordant(rank, self.time, self.event, lead, w, count)
            return count.astype(float, copy=False)
        total, beyond = np.zeros((columns, w.shape[1])), np.where(rank > 0, rank, n + 1)
        for start in range(0, n, TILE):
            events = np.flatnonzero(self.event[start : start + TILE]) + start
            if not events.size:
                continue
            mine, time = rank[:, events, None], self.time[events, None]
            above = np.zeros((columns * len(events), w.shape[1]), w.dtype)
            for at in range(start, n, TILE):
                other = beyond[:, None, at : at + TILE]
                share = (mine > other).astype(w.dtype)
                share += mine >= other
                if self.time[at] <= time[-1]:
                    share *= time < self.time[at : at + TILE]
                above += share.reshape(len(above), -1) @ w[at : at + TILE]
            above = above.reshape(columns, len(events), -1)
            total += np.einsum("cib,ib->cb", above, lead[events], dtype=float)
        return total


def _ranks(risk: np.ndarray) -> np.ndarray:
    """Return the rank of each risk in its column, (column, n) from 1, ties sharing one; 0 where it is missing."""
    order = np.argsort(risk.T, axis=1)  # NaN comes last
    ordered = np.take_along_axis(risk.T, order, axis=1)
    rank = np.ones(order.shape, np.int32)
    np.cumsum(ordered[:, 1:] != ordered[:, :-1], axis=1, out=rank[:, 1:])
    rank[:, 1:] += 1
    rank[np.isnan(ordered)] = 0
    np.put_along_axis(rank, order, rank.copy(), axis=1)
    return rank
