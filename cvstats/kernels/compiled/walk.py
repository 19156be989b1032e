"""The walk down sorted columns, compiled: the same operations in the same order as numpy's, hence the same bits.

Serial and parallel kernels would need different names, because numba's disk cache ignores ``parallel=``; these are
serial and release the lock, so threads over columns serve instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numba
import numpy as np

from cvstats.kernels.walk import TINY

if TYPE_CHECKING:
    from cvstats.kernels.ranks import Task
    from cvstats.kernels.walk import Lanes

F = TypeVar("F", bound=Callable[..., Any])


def _compiled(function: F) -> F:
    """Compile, with the disk cache where a directory can be written."""
    try:
        compiled: F = numba.njit(function, nogil=True, cache=True)
    except RuntimeError:
        compiled = numba.njit(function, nogil=True)
    return compiled


def walk(statistic: str, task: Task, lanes: Lanes, start: int, stop: int, count: np.ndarray, out: np.ndarray) -> None:
    """Fill `out` (column, draw) as `_walk.walk` does."""
    order, positive, weights = task.order[start:stop], task.positive, lanes.weights
    tied = task.tied[start:stop]
    last = np.empty((0, 0), bool) if task.last is None else task.last[start:stop]
    if statistic != "auc":
        precision_lanes(order, last, tied, count, positive, weights, out)
        return
    whole = lanes.counter.kind == "i"
    many = (tied > order.shape[1] // 2) if whole else np.zeros(len(tied), bool)
    few = np.flatnonzero(~many)
    if few.size:
        (auc_lanes_in_pairs if whole else auc_lanes)(few, order, count, positive, weights, out)
    some = np.flatnonzero((tied > 0) & ~many)
    if some.size:
        add_ties(some, order, last, count, positive, weights, out)
    if many.any():
        auc_lanes_with_ties(np.flatnonzero(many), order, last, count, positive, weights, out)


@_compiled
def auc_lanes(
    columns: np.ndarray,
    order: np.ndarray,
    count: np.ndarray,
    positive: np.ndarray,
    weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """Columns as if without ties, one sample at a time."""
    lanes = weights.shape[1]
    below = np.empty(lanes, out.dtype)
    for c in columns:
        line = out[c]
        for b in range(lanes):
            line[b] = 0
            below[b] = 0
        for k in range(count[c]):
            row = order[c, k]
            w = weights[row]
            if positive[row]:
                for b in range(lanes):
                    line[b] += w[b] * below[b]
            else:
                for b in range(lanes):
                    below[b] += w[b]
        for b in range(lanes):
            line[b] += line[b]


@_compiled
def auc_lanes_in_pairs(
    columns: np.ndarray,
    order: np.ndarray,
    count: np.ndarray,
    positive: np.ndarray,
    weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """Columns as if without ties, two samples at a time: half the loads and stores. Whole numbers only."""
    lanes = weights.shape[1]
    below = np.empty(lanes, np.int32)
    for c in columns:
        line = out[c]
        for b in range(lanes):
            line[b] = 0
            below[b] = 0
        size = count[c]
        for k in range(0, size - 1, 2):
            one, two = order[c, k], order[c, k + 1]
            v, w = weights[one], weights[two]
            if positive[one]:
                if positive[two]:
                    for b in range(lanes):
                        line[b] += (np.int32(v[b]) + np.int32(w[b])) * below[b]
                else:
                    for b in range(lanes):
                        under = below[b]
                        line[b] += np.int32(v[b]) * under
                        below[b] = under + np.int32(w[b])
            elif positive[two]:
                for b in range(lanes):
                    under = below[b] + np.int32(v[b])
                    below[b] = under
                    line[b] += np.int32(w[b]) * under
            else:
                for b in range(lanes):
                    below[b] += np.int32(v[b]) + np.int32(w[b])
        if size % 2:
            row = order[c, size - 1]
            if positive[row]:
                w = weights[row]
                for b in range(lanes):
                    line[b] += np.int32(w[b]) * below[b]
        for b in range(lanes):
            line[b] += line[b]


@_compiled
def add_ties(
    columns: np.ndarray,
    order: np.ndarray,
    last: np.ndarray,
    count: np.ndarray,
    positive: np.ndarray,
    weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add what positives and negatives of one tie group share; the positives of a group come first."""
    lanes = weights.shape[1]
    gain, loss = np.empty(lanes, out.dtype), np.empty(lanes, out.dtype)
    for c in columns:
        line = out[c]
        start = 0
        for place in range(count[c]):
            if not last[c, place]:
                continue
            if place > start and positive[order[c, start]] and not positive[order[c, place]]:
                above, beside = 0, 0
                for k in range(start, place + 1):
                    row = order[c, k]
                    w = weights[row]
                    if positive[row]:
                        for b in range(lanes):
                            gain[b] = w[b] if above == 0 else gain[b] + w[b]
                        above += 1
                    else:
                        for b in range(lanes):
                            loss[b] = w[b] if beside == 0 else loss[b] + w[b]
                        beside += 1
                for b in range(lanes):
                    line[b] += gain[b] * loss[b]
            start = place + 1


@_compiled
def auc_lanes_with_ties(
    columns: np.ndarray,
    order: np.ndarray,
    last: np.ndarray,
    count: np.ndarray,
    positive: np.ndarray,
    weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """Columns with many ties, group by group."""
    lanes = weights.shape[1]
    below, gain, loss = np.empty(lanes, out.dtype), np.empty(lanes, out.dtype), np.empty(lanes, out.dtype)
    for c in columns:
        line = out[c]
        for b in range(lanes):
            line[b] = 0
            below[b] = 0
        start = 0
        size = count[c]
        while start < size:
            stop = start + 1
            while stop < size and not last[c, stop - 1]:
                stop += 1
            above, beside = 0, 0
            for k in range(start, stop):
                row = order[c, k]
                w = weights[row]
                if positive[row]:
                    if above == 0:
                        for b in range(lanes):
                            gain[b] = w[b]
                    else:
                        for b in range(lanes):
                            gain[b] += w[b]
                    above += 1
                else:
                    if beside == 0:
                        for b in range(lanes):
                            loss[b] = w[b]
                    else:
                        for b in range(lanes):
                            loss[b] += w[b]
                    beside += 1
            if above > 0 and beside > 0:
                for b in range(lanes):
                    line[b] += gain[b] * (below[b] + below[b] + loss[b])
                    below[b] += loss[b]
            elif above > 0:
                for b in range(lanes):
                    line[b] += gain[b] * (below[b] + below[b])
            else:
                for b in range(lanes):
                    below[b] += loss[b]
            start = stop


@_compiled
def precision_lanes(
    order: np.ndarray,
    last: np.ndarray,
    tied: np.ndarray,
    count: np.ndarray,
    positive: np.ndarray,
    weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """Average precision: at the end of each tie group its positives count the precision reached there."""
    lanes = weights.shape[1]
    hits, seen, gain = np.empty(lanes), np.empty(lanes), np.empty(lanes)
    for c in range(order.shape[0]):
        line = out[c]
        for b in range(lanes):
            line[b] = 0.0
            hits[b] = 0.0
            seen[b] = TINY
        above = 0
        for place in range(count[c] - 1, -1, -1):
            row = order[c, place]
            w = weights[row]
            if not positive[row]:
                for b in range(lanes):
                    seen[b] += np.float64(w[b])
            elif above == 0:
                for b in range(lanes):
                    seen[b] += np.float64(w[b])
                    gain[b] = np.float64(w[b])
                above = 1
            else:
                for b in range(lanes):
                    seen[b] += np.float64(w[b])
                    gain[b] += np.float64(w[b])
            if above > 0 and (place == 0 or not tied[c] or last[c, place - 1]):
                for b in range(lanes):
                    hits[b] += gain[b]
                    line[b] += hits[b] / seen[b] * gain[b]
                above = 0


@_compiled
def judged_count(
    index: np.ndarray,
    repeats: int,
    order: np.ndarray,
    last: np.ndarray,
    tied: np.ndarray,
    count: np.ndarray,
    cut: int,
    weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill `out` (draw, repeat) as `judged_area` does, for weights of one byte: whole numbers need no branches.

    The first `cut` samples are the positives.
    """
    for b in range(len(index)):
        w = weights[b]
        for r in range(repeats):
            c = index[b] * repeats + r
            size = count[c]
            pairs, below, total = np.int64(0), np.int64(0), np.int64(0)
            for k in range(size):
                row = order[c, k]
                x = np.int64(w[row])
                above = x * np.int64(row < cut)
                pairs += above * below
                total += above
                below += x - above
            twice = 2 * pairs
            if tied[c]:
                start = 0
                for k in range(size):
                    if last[c, k]:
                        if k > start and order[c, start] < cut and order[c, k] >= cut:
                            gain, loss = np.int64(0), np.int64(0)
                            for place in range(start, k + 1):
                                row = order[c, place]
                                if row < cut:
                                    gain += w[row]
                                else:
                                    loss += w[row]
                            twice += gain * loss
                        start = k + 1
            scale = 2.0 * np.float64(total) * np.float64(below)
            out[b, r] = np.float64(twice) / scale if scale > 0 else np.nan


@_compiled
def judged_area(
    index: np.ndarray,
    repeats: int,
    order: np.ndarray,
    last: np.ndarray,
    tied: np.ndarray,
    count: np.ndarray,
    positive: np.ndarray,
    weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill `out` (draw, repeat) with the AUC of configuration ``index[draw]`` under that draw's weights (draw, n)."""
    for b in range(len(index)):
        w = weights[b]
        for r in range(repeats):
            c = index[b] * repeats + r
            pos, neg, tp, tn, twice = 0.0, 0.0, 0.0, 0.0, 0.0
            size = count[c]
            for k in range(size):
                row = order[c, k]
                if positive[row]:
                    pos += w[row]
                else:
                    neg += w[row]
                if not tied[c] or last[c, k] or k == size - 1:
                    twice += (pos - tp) * (neg + tn)
                    tp = pos
                    tn = neg
            out[b, r] = twice / (2.0 * tp * tn) if tp > 0 and tn > 0 else np.nan


@_compiled
def judged_precision(
    index: np.ndarray,
    repeats: int,
    order: np.ndarray,
    last: np.ndarray,
    tied: np.ndarray,
    count: np.ndarray,
    positive: np.ndarray,
    weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill `out` (draw, repeat) with the average precision of ``index[draw]`` under that draw's weights (draw, n)."""
    for b in range(len(index)):
        w = weights[b]
        for r in range(repeats):
            c = index[b] * repeats + r
            pos, neg, tp, total = 0.0, 0.0, 0.0, 0.0
            for k in range(count[c] - 1, -1, -1):
                row = order[c, k]
                if positive[row]:
                    pos += w[row]
                else:
                    neg += w[row]
                if (k == 0 or not tied[c] or last[c, k - 1]) and pos > tp:
                    total += (pos - tp) * (pos / (pos + neg))
                    tp = pos
            out[b, r] = total / tp if tp > 0 else np.nan


@_compiled
def concordance_lanes(
    rank: np.ndarray,
    weights: np.ndarray,
    order: np.ndarray,
    observed: np.ndarray,
    ends: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill `out` (2, draw) with twice the concordant and the comparable weight of one column; weights (n, draw)."""
    n, lanes = weights.shape
    cells = np.zeros((n + 1, lanes), weights.dtype)
    beside = np.zeros((n, lanes), weights.dtype)
    seen, total = np.zeros(lanes, weights.dtype), np.empty(lanes, weights.dtype)
    twice, comparable = out[0], out[1]
    for b in range(lanes):
        twice[b] = 0
        comparable[b] = 0
    first = 0
    for k in range(n):
        row = order[k]
        w = weights[row]
        if observed[k]:
            for b in range(lanes):
                total[b] = 0
            node = rank[row]
            while node:
                cell = cells[node]
                for b in range(lanes):
                    total[b] += cell[b]
                node &= node - 1
            mine = beside[rank[row]]
            for b in range(lanes):
                twice[b] += w[b] * (total[b] + total[b] + mine[b])
                comparable[b] += w[b] * seen[b]
        else:
            first = k + 1
        if not observed[k] or ends[k]:
            for at in range(first if observed[k] else k, k + 1):
                other = order[at]
                v = weights[other]
                mine = beside[rank[other]]
                for b in range(lanes):
                    mine[b] += v[b]
                    seen[b] += v[b]
                node = rank[other] + 1
                while node <= n:
                    cell = cells[node]
                    for b in range(lanes):
                        cell[b] += v[b]
                    node += node & -node
            first = k + 1


@_compiled
def judged_concordance(
    rank: np.ndarray,
    column: np.ndarray,
    weights: np.ndarray,
    order: np.ndarray,
    observed: np.ndarray,
    ends: np.ndarray,
    twice: np.ndarray,
    comparable: np.ndarray,
) -> None:
    """Fill, per draw, the counts of its own column under its own weights (draw, n)."""
    n = weights.shape[1]
    cells, beside = np.empty(n + 1, weights.dtype), np.empty(n, weights.dtype)
    zero = np.zeros(1, weights.dtype)[0]
    for b in range(len(column)):
        mine, w = rank[column[b]], weights[b]
        cells[:] = zero
        beside[:] = zero
        seen, pairs, both = zero, zero, zero
        first = 0
        for k in range(n):
            row = order[k]
            if observed[k]:
                total = zero
                node = mine[row]
                while node:
                    total += cells[node]
                    node &= node - 1
                both += w[row] * (total + total + beside[mine[row]])
                pairs += w[row] * seen
            else:
                first = k
            if not observed[k] or ends[k]:
                for at in range(first, k + 1):
                    other = order[at]
                    beside[mine[other]] += w[other]
                    seen += w[other]
                    node = mine[other] + 1
                    while node <= n:
                        cells[node] += w[other]
                        node += node & -node
                first = k + 1
        twice[b] = both
        comparable[b] = pairs
