"""Counts of rank statistics under many weights: a walk down sorted columns, in numpy or in numba.

Walking upwards, a negative adds its weight to the weight *below*; a positive collects the weight below it. Twice the
sum collected is twice the Mann-Whitney count, a whole number when the weights are; average precision walks downwards.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from .order import TILE, TINY, Ranking
from .threads import thread_count

if TYPE_CHECKING:
    from types import ModuleType

FORCE = ""  # "numpy" or "numba" in tests; whole-number weights give the same bits
THREADED = 200_000_000  # steps (column, sample, draw) that repay starting threads: about 20 ms
FEW = 32  # draws for which numpy works across columns instead
REPAY = 1e9  # nanoseconds of numpy work, summed over calls, that repay loading (and once compiling) numba
_done = 0.0


def accelerator(columns: int, size: int, lanes: int) -> ModuleType | None:
    """Return the numba kernels when they are installed and the work so far repays loading them."""
    global _done
    if FORCE == "numpy":
        return None
    _done += columns * size * min(20.0 * lanes, 600.0 + 0.3 * lanes)
    if FORCE != "numba" and _done < REPAY and "cvstats.kernels.compiled.walk" not in sys.modules:
        return None
    try:
        from .compiled import walk as compiled
    except ImportError:
        return None
    return compiled


@dataclass(frozen=True)
class Lanes:
    """The weights of a block of draws, samples first, in the narrowest types in which sums stay exact.

    Whole numbers use 32-bit counters while twice the count fits them; numba reads weights of one byte.
    """

    weights: np.ndarray  # (n, draw)
    counter: np.dtype[Any]
    fast: ModuleType | None


def lanes_of(weights: np.ndarray, bound: float, statistic: str, fast: ModuleType | None) -> Lanes:
    """Return (draw, n) weights as lanes; `bound` limits the sum of a draw's weights."""
    whole = weights.dtype.kind in "iub"
    small = whole and statistic == "auc" and bound**2 / 2 < 2**31
    counter = np.dtype(np.int32 if small else np.float64)
    narrow = fast is not None and whole and weights.max(initial=0) < 256
    return Lanes(np.ascontiguousarray(weights.T.astype(np.uint8 if narrow else counter)), counter, fast)


def count(statistic: str, ranking: Ranking, lanes: Lanes, start: int, stop: int) -> np.ndarray:
    """Return (column, draw) of columns `start` to `stop`: twice the Mann-Whitney count, or the sum of precisions."""
    draws = lanes.weights.shape[1]
    if lanes.fast is None and draws < FEW:
        return _across(statistic, ranking, start, stop, np.ascontiguousarray(lanes.weights.T, dtype=float))
    out = np.empty((stop - start, draws), lanes.counter)
    if lanes.fast is not None:
        _side_by_side(statistic, ranking, lanes, start, out)
        return out
    rows = list(lanes.weights)
    walk = _auc if statistic == "auc" else _precision
    for column, line in enumerate(out, start):
        size = int(ranking.count[column])
        last = None if ranking.last is None else ranking.last[column, :size]
        ties = None if last is None or last.all() else last.tolist()
        walk(ranking.order[column, :size].tolist(), ties, ranking.cut, rows, line)
    return out


def _side_by_side(statistic: str, ranking: Ranking, lanes: Lanes, start: int, out: np.ndarray) -> None:
    """Walk columns in as many threads as the caller lets matrix products use, when there is work for them."""
    assert lanes.fast is not None
    walk = partial(lanes.fast.walk, statistic, ranking, lanes.weights)
    threads = thread_count() if out.size * len(ranking.rows) > THREADED else 1
    if threads == 1:
        walk(start, out)
        return
    from concurrent.futures import ThreadPoolExecutor

    edges = np.linspace(0, len(out), threads + 1).astype(int).tolist()[:-1]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(walk, [start + edge for edge in edges], np.split(out, edges[1:])))


def _auc(order: list[int], last: list[bool] | None, cut: int, rows: list[np.ndarray], out: np.ndarray) -> None:
    """Fill `out` (draw,) for one column: a run of positives collects together, which saves products.

    In a tie group the positives come first and see only what is below the group; its own pairs are added afterwards.
    """
    out[:] = 0
    below, gain, product = np.zeros_like(out), np.empty_like(out), np.empty_like(out)
    add, multiply = np.add, np.multiply
    for positive, run in groupby(order, cut.__gt__):
        if positive:
            multiply(_total(list(run), rows, gain), below, product)
            add(out, product, out)
        else:
            for row in run:
                add(below, rows[row], below)
    add(out, out, out)
    start = 0
    for place, ends in enumerate(last or ()):
        if ends:
            if order[start] < cut <= order[place]:
                above = [row for row in order[start : place + 1] if row < cut]
                beside = order[start + len(above) : place + 1]
                multiply(_total(above, rows, gain), _total(beside, rows, below), product)
                add(out, product, out)
            start = place + 1


def _precision(order: list[int], last: list[bool] | None, cut: int, rows: list[np.ndarray], out: np.ndarray) -> None:
    """Fill `out` (draw,) for one column: at the end of each tie group its positives count the precision there."""
    out[:] = 0
    hits, seen = np.zeros_like(out), np.full_like(out, TINY)
    gain, product = np.empty_like(out), np.empty_like(out)
    add, multiply, divide = np.add, np.multiply, np.divide
    above: list[int] = []
    for place in range(len(order) - 1, -1, -1):
        row = order[place]
        add(seen, rows[row], seen)
        if row < cut:
            above.append(row)
        if above and (place == 0 or last is None or last[place - 1]):
            mine = _total(above, rows, gain)
            add(hits, mine, hits)
            divide(hits, seen, product)
            multiply(product, mine, product)
            add(out, product, out)
            above.clear()


def _total(members: list[int], rows: list[np.ndarray], out: np.ndarray) -> np.ndarray:
    """Return the weight of some samples, added in their order."""
    if len(members) == 1:
        return rows[members[0]]
    np.add(rows[members[0]], rows[members[1]], out)
    for row in members[2:]:
        np.add(out, rows[row], out)
    return out


def _across(statistic: str, ranking: Ranking, start: int, stop: int, weights: np.ndarray) -> np.ndarray:
    """Return the counts (column, draw) of columns `start` to `stop` under a few weight vectors (draw, n)."""
    draws, size = weights.shape
    out = np.zeros((stop - start, draws))
    step = max(1, TILE // 8 // max(1, draws * size))  # a dozen arrays of this size
    for at in range(start, stop if size else start, step):
        block = slice(at, min(at + step, stop))
        order, last = ranking.order[block, ::-1], None  # downwards
        ordered = weights[:, order]
        ordered[:, np.arange(size) < size - ranking.count[block, None]] = 0.0
        positive = np.where(order < ranking.cut, ordered, 0.0)
        if ranking.last is not None:
            last = np.ones(order.shape, bool)
            last[:, :-1] = ranking.last[block, -2::-1]
        tp, fp = _at_group_ends(positive, last), _at_group_ends(ordered - positive, last)
        gain, value = np.diff(tp, prepend=0.0), out[at - start : block.stop - start]
        if statistic == "auc":
            value[:] = (np.diff(fp, prepend=0.0) * (tp + tp - gain)).sum(axis=-1).T
        else:  # added as by a walk
            value[:] = np.cumsum(gain * (tp / np.maximum(tp + fp, TINY)), axis=-1)[..., -1].T
    return out


def _at_group_ends(weights: np.ndarray, last: np.ndarray | None) -> np.ndarray:
    """Return the running sum as of the latest completed tie group (running sums never fall, so a maximum carries)."""
    total = np.cumsum(weights, axis=-1, dtype=float)
    return total if last is None else np.asarray(np.maximum.accumulate(np.where(last, total, 0.0), axis=-1))
