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
        rank = 2 * np.unique(problem.y, return_inverse=True)[1] + (problem.event == 0)
        self.order = np.argsort(rank, kind="stable")
        self.rank, self.event = rank[self.order], problem.event[self.order] == 1
        p = problem.read(metric.uses)[self.order]
        n, self.m, self.r = p.shape
        self.risk = p.reshape(n, self.m * self.r)
        self.weight, bound = whole_weights(problem.weight, total)
        self.exact = np.float32 if 2 * bound < 2**24 else np.float64
        self.presence = Presence(np.isnan(self.risk) if np.isnan(np.min(p)) else None, n, self.m * self.r)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the concordance of every configuration under each row of `weights`: (draw, m)."""
        w = self._weighted(weights)
        comparable = self._comparable(w)
        score = np.empty((len(w), self.m))
        side = min(TILE, len(self.rank))
        step = max(1, CELLS // (self.r * side * max(side, len(w))))
        for start in range(0, self.m, step):
            stop = min(start + step, self.m)
            score[:, start:stop] = self._scores(start, stop, w, comparable).T
        return score

    def judged(self, weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return, for each draw, the concordance of configuration ``index[draw]`` under that draw's weights."""
        w = self._weighted(weights)
        comparable = self._comparable(w)
        out = np.empty(len(index))
        for j in np.unique(index).tolist():
            draws = np.flatnonzero(index == j)
            out[draws] = self._scores(j, j + 1, w[draws], comparable[:, draws])[0]
        return out

    def _weighted(self, weights: np.ndarray) -> np.ndarray:
        """Return (draw, n) weights in order of time, in the precision in which sums of whole numbers are exact."""
        counts = weights[:, self.order]
        w = counts if self.weight is None else counts * self.weight[self.order]
        return np.ascontiguousarray(w, dtype=float if w.dtype.kind == "f" else self.exact)

    def _leading(self, w: np.ndarray) -> np.ndarray:
        """Return what samples weigh as the earlier of a pair."""
        return w

    def _scores(self, start: int, stop: int, w: np.ndarray, comparable: np.ndarray) -> np.ndarray:
        """Return the concordance (configuration, draw) of some configurations, averaged over repeats."""
        columns = slice(start * self.r, stop * self.r)
        shape = stop - start, self.r
        twice = self._twice(self.risk[:, columns], w).reshape(*shape, -1)
        scale = comparable[self.presence.pattern[columns]].reshape(*shape, -1)
        begun, whole = (side[columns].reshape(shape) for side in (self.presence.begun, self.presence.whole))
        return mean_ratio(twice, scale, begun, whole.all(axis=1))

    def _comparable(self, w: np.ndarray) -> np.ndarray:
        """Return twice the comparable weight (pattern, draw): what a perfect prediction would count."""
        perfect = np.where(self.presence.patterns, -self.rank.astype(float), np.nan)
        return np.concatenate([self._twice(risk[:, None], w) for risk in perfect])

    def _twice(self, risk: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Return twice the weight of concordant pairs (column, draw), tied risks counting once; NaN pairs with none."""
        n, columns = risk.shape
        total, lead = np.zeros((columns, len(w))), self._leading(w)
        fast = accelerator(columns, n * n // 32, len(w))
        if fast is not None:
            sides = np.ascontiguousarray(lead.T, dtype=float), np.ascontiguousarray(w.T)
            fast.concordant(_ranks(risk), self.rank, self.event, *sides, total)
            return total
        for start in range(0, n, TILE):
            events = np.flatnonzero(self.event[start : start + TILE]) + start
            if not events.size:
                continue
            mine, time = risk[events].T[:, :, None], self.rank[events, None]
            above = np.zeros((columns * len(events), len(w)), w.dtype)
            for at in range(start, n, TILE):
                other = risk[at : at + TILE].T[:, None, :]
                share = (mine > other).astype(w.dtype)
                share += mine >= other
                if self.rank[at] <= time[-1]:
                    share *= time < self.rank[at : at + TILE]
                above += share.reshape(len(above), -1) @ w[:, at : at + TILE].T
            above = above.reshape(columns, len(events), len(w))
            total += np.einsum("cib,bi->cb", above, lead[:, events], dtype=float)
        return total


def _ranks(risk: np.ndarray) -> np.ndarray:
    """Return the rank of each risk in its column, (column, n) from 1, ties sharing one; 0 where it is missing."""
    order = np.argsort(risk.T, axis=1)  # NaN comes last
    ordered = np.take_along_axis(risk.T, order, axis=1)
    rank = np.ones(order.shape, np.int64)
    np.cumsum(ordered[:, 1:] != ordered[:, :-1], axis=1, out=rank[:, 1:])
    rank[:, 1:] += 1
    rank[np.isnan(ordered)] = 0
    np.put_along_axis(rank, order, rank.copy(), axis=1)
    return rank
