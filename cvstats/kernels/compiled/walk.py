"""The walk down sorted columns, compiled: the same operations as numpy's, so whole-number weights give the same bits.

Serial and parallel kernels would need different names, because numba's disk cache ignores ``parallel=``; these are
serial and release the lock, so threads over columns serve instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np

from cvstats.kernels.order import TINY, Ranking

F = TypeVar("F", bound=Callable[..., Any])
LANES = 64  # draws whose tree of weights stays in the cache


def compiled(function: F) -> F:
    """Compile with numpy's division, with the disk cache where a directory can be written."""
    try:
        made: F = numba.njit(function, nogil=True, cache=True, error_model="numpy")
    except RuntimeError:
        made = numba.njit(function, nogil=True, error_model="numpy")
    return made


def walk(statistic: str, ranking: Ranking, weights: np.ndarray, start: int, out: np.ndarray) -> None:
    """Fill `out` (column, draw) from column `start` on; weights are (n, draw)."""
    columns = slice(start, start + len(out))
    last = np.empty((0, 0), bool) if ranking.last is None else ranking.last[columns]
    count = auc if statistic == "auc" else average_precision
    count(ranking.order[columns], last, ranking.count[columns], ranking.cut, weights, out)


@compiled
def auc(order: np.ndarray, last: np.ndarray, count: np.ndarray, cut: int, weights: np.ndarray, out: np.ndarray) -> None:
    """Walk as if without ties, two samples at a time for half the loads and stores; then add what ties share."""
    kind, lanes = out.dtype.type, out.shape[1]
    below, gain, loss = np.empty_like(out[0]), np.empty_like(out[0]), np.empty_like(out[0])
    for c in range(len(order)):
        line, size = out[c], count[c]
        line[:], below[:] = 0, 0
        for k in range(0, size - 1, 2):
            one, two = order[c, k], order[c, k + 1]
            v, w = weights[one], weights[two]
            if one < cut:
                if two < cut:
                    for b in range(lanes):
                        line[b] += (kind(v[b]) + kind(w[b])) * below[b]
                else:
                    for b in range(lanes):
                        under = below[b]
                        line[b] += kind(v[b]) * under
                        below[b] = under + kind(w[b])
            elif two < cut:
                for b in range(lanes):
                    under = below[b] + kind(v[b])
                    below[b] = under
                    line[b] += kind(w[b]) * under
            else:
                for b in range(lanes):
                    below[b] += kind(v[b]) + kind(w[b])
        if size % 2 and order[c, size - 1] < cut:
            w = weights[order[c, size - 1]]
            for b in range(lanes):
                line[b] += kind(w[b]) * below[b]
        for b in range(lanes):
            line[b] += line[b]
        start = 0
        for place in range(size if len(last) else 0):
            if not last[c, place]:
                continue
            if order[c, start] < cut and order[c, place] >= cut:  # the positives of a group come first
                gain[:], loss[:] = 0, 0
                for k in range(start, place + 1):
                    w = weights[order[c, k]]
                    side = gain if order[c, k] < cut else loss
                    for b in range(lanes):
                        side[b] += kind(w[b])
                for b in range(lanes):
                    line[b] += gain[b] * loss[b]
            start = place + 1


@compiled
def average_precision(
    order: np.ndarray, last: np.ndarray, count: np.ndarray, cut: int, weights: np.ndarray, out: np.ndarray
) -> None:
    """Walk downwards: at the end of each tie group its positives count the precision reached there."""
    lanes = out.shape[1]
    hits, seen, gain = np.empty(lanes), np.empty(lanes), np.empty(lanes)
    for c in range(len(order)):
        line, above = out[c], False
        line[:], hits[:], gain[:], seen[:] = 0.0, 0.0, 0.0, TINY
        for place in range(count[c] - 1, -1, -1):
            row = order[c, place]
            w = weights[row]
            for b in range(lanes):
                seen[b] += np.float64(w[b])
            if row < cut:
                above = True
                for b in range(lanes):
                    gain[b] += np.float64(w[b])
            if above and (place == 0 or not len(last) or last[c, place - 1]):
                above = False
                for b in range(lanes):
                    hits[b] += gain[b]
                    line[b] += hits[b] / seen[b] * gain[b]
                    gain[b] = 0.0


@compiled
def concordant(
    rank: np.ndarray, time: np.ndarray, event: np.ndarray, lead: np.ndarray, weights: np.ndarray, out: np.ndarray
) -> None:
    """Fill `out` (column, draw) with twice the weight of concordant pairs, tied risks once.

    The earlier of a pair weighs `lead`. Samples are in order of time. Walking backwards, a Fenwick tree over the ranks
    of a column (from 1; 0 is missing) holds the weight of all that outlive the sample at hand; those of one time are
    looked up before any of them enters.
    """
    n, draws = weights.shape
    for first in range(0, draws, LANES):
        lanes = min(LANES, draws - first)
        w = np.ascontiguousarray(weights[:, first : first + lanes])
        v = np.ascontiguousarray(lead[:, first : first + lanes])
        tree, beside = np.empty((n + 1, lanes), w.dtype), np.empty((n + 1, lanes), w.dtype)
        below, line = np.empty(lanes, w.dtype), np.empty(lanes, out.dtype)
        for c in range(len(rank)):
            tree[:], beside[:], line[:] = 0, 0, 0
            stop = n
            while stop > 0:
                start = stop - 1
                while start > 0 and time[start - 1] == time[start]:
                    start -= 1
                for i in range(start, stop):
                    if not event[i] or rank[c, i] == 0:
                        continue
                    below[:] = 0
                    k = rank[c, i] - 1
                    while k > 0:
                        cell = tree[k]
                        for b in range(lanes):
                            below[b] += cell[b]
                        k &= k - 1
                    earlier, same = v[i], beside[rank[c, i]]
                    for b in range(lanes):
                        line[b] += earlier[b] * (below[b] + below[b] + same[b])
                for i in range(start, stop):
                    k, later = rank[c, i], w[i]
                    same = beside[k]
                    for b in range(lanes):
                        same[b] += later[b]
                    while 0 < k <= n:
                        cell = tree[k]
                        for b in range(lanes):
                            cell[b] += later[b]
                        k += k & -k
                stop = start
            out[c, first : first + lanes] = line
