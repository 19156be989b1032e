"""The walk down sorted columns: one vector operation over draws per sample, in numpy or (same bits) in numba.

Walking upwards, a negative adds its weight to the weight *below*; a positive collects the weight below it. Twice the
sum collected is twice the Mann-Whitney count, a whole number when the weights are.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .threads import thread_count

if TYPE_CHECKING:
    from types import ModuleType

    from .ranks import Task

FORCE = ""  # "numpy" or "numba" in tests; the numbers are the same
THREADED = 200_000_000  # steps (column, sample, draw) that repay starting threads: about 20 ms
REPAY = 1e9  # nanoseconds of numpy work, summed over calls, that repay loading (and once compiling) numba
_done = 0.0


def accelerator(columns: int, size: int, lanes: int) -> ModuleType | None:
    """Return the numba kernels when they are installed and the work so far repays loading them."""
    global _done
    if FORCE == "numpy":
        return None
    _done += columns * size * (600.0 + 0.3 * lanes)
    if FORCE != "numba" and _done < REPAY and "cvstats.kernels.compiled.walk" not in sys.modules:
        return None
    try:
        from .compiled import walk as _walk_numba
    except ImportError:
        return None
    return _walk_numba


@dataclass(frozen=True)
class Lanes:
    """The weights of a block of draws, samples first, in the narrowest types in which sums stay exact.

    Whole numbers use 32-bit counters while twice the count fits them; numba reads weights of one byte.
    """

    weights: np.ndarray  # (n, draw)
    counter: np.dtype[Any]
    draws: int


def lanes_of(weights: np.ndarray, bound: float, statistic: str, *, narrow: bool) -> Lanes:
    """Return (draw, n) weights as lanes; `bound` limits the sum of a draw's weights."""
    draws = len(weights)
    whole = weights.dtype.kind in "iub"
    small = whole and statistic == "auc" and bound**2 / 2 < 2**31
    counter = np.dtype(np.int32 if small else np.float64)
    kind: Any = counter
    if narrow and whole and weights.max(initial=0) < 256:
        kind = np.uint8
    table = np.ascontiguousarray(weights.T.astype(kind))
    if draws == 1 and not narrow:
        table = np.repeat(table, 2, axis=1)  # sums over a single lane would be added in another order
    return Lanes(table, counter, draws)


def walk(statistic: str, task: Task, lanes: Lanes, start: int, stop: int, fast: ModuleType | None) -> np.ndarray:
    """Return (column, draw) of columns `start` to `stop`: twice the Mann-Whitney count, or the sum of precisions."""
    out = np.empty((stop - start, lanes.weights.shape[1]), lanes.counter)
    count = np.full(stop - start, len(task.rows)) if task.count is None else task.count[start:stop]
    if fast is not None:
        _side_by_side(fast, statistic, task, lanes, start, stop, count, out)
        return out
    rows = list(lanes.weights)
    positive = task.positive.tolist()
    for column in range(start, stop):
        size = int(count[column - start])
        order = task.order[column, :size].tolist()
        last = None if task.last is None or not task.tied[column] else task.last[column, :size].tolist()
        line = out[column - start]
        if statistic != "auc":
            _precision(order, last, positive, rows, line)
        elif last is not None and task.tied[column] > size // 8 and lanes.counter.kind == "i":
            _auc_tied(order, last, positive, rows, line)
        else:
            (_auc_runs if lanes.counter.kind == "i" else _auc_single)(order, positive, rows, line)
            if last is not None:
                _add_ties(order, last, positive, rows, line)
    return out[:, : lanes.draws]


def _side_by_side(
    fast: Any, statistic: str, task: Task, lanes: Lanes, start: int, stop: int, count: np.ndarray, out: np.ndarray
) -> None:
    """Walk columns in as many threads as the caller lets matrix products use, when there is work for them."""
    threads = thread_count() if out.size * len(task.rows) > THREADED else 1
    edges = np.linspace(start, stop, threads + 1).astype(int).tolist()

    def part(low: int, high: int) -> None:
        here = slice(low - start, high - start)
        fast.walk(statistic, task, lanes, low, high, count[here], out[here])

    if threads == 1:
        part(start, stop)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(part, edges[:-1], edges[1:]))


def _auc_runs(order: list[int], positive: list[bool], rows: list[np.ndarray], out: np.ndarray) -> None:
    """Whole numbers: a run of positives collects together, which saves a product for each but the first.

    In a tie group the positives come first and see only what is below the group.
    """
    out[:] = 0
    below, gain, product = np.zeros_like(out), np.empty_like(out), np.empty_like(out)
    add, multiply = np.add, np.multiply
    run: Any = None  # weight of the run of positives at hand
    for row in order:
        if positive[row]:
            run = rows[row] if run is None else add(run, rows[row], gain)
        else:
            if run is not None:
                multiply(run, below, product)
                add(out, product, out)
                run = None
            add(below, rows[row], below)
    if run is not None:
        multiply(run, below, product)
        add(out, product, out)
    add(out, out, out)


def _auc_single(order: list[int], positive: list[bool], rows: list[np.ndarray], out: np.ndarray) -> None:
    """Real weights: one by one, an order of additions that numba repeats."""
    out[:] = 0
    below, product = np.zeros_like(out), np.empty_like(out)
    add, multiply = np.add, np.multiply
    for row in order:
        if positive[row]:
            multiply(rows[row], below, product)
            add(out, product, out)
        else:
            add(below, rows[row], below)
    add(out, out, out)


def _add_ties(
    order: list[int], last: list[bool], positive: list[bool], rows: list[np.ndarray], out: np.ndarray
) -> None:
    """Add what positives and negatives of one tie group share: half of each pair, twice."""
    gain, loss, product = np.empty_like(out), np.empty_like(out), np.empty_like(out)
    start = 0
    for place, ends in enumerate(last):
        if not ends:
            continue
        if place > start:
            above = [row for row in order[start : place + 1] if positive[row]]
            beside = order[start + len(above) : place + 1]
            if above and beside:
                np.multiply(_total(above, rows, gain), _total(beside, rows, loss), product)
                np.add(out, product, out)
        start = place + 1


def _auc_tied(
    order: list[int], last: list[bool], positive: list[bool], rows: list[np.ndarray], out: np.ndarray
) -> None:
    """Whole numbers, many ties: positives of a group see twice the weight below and once that of its negatives."""
    out[:] = 0
    below, twice, product = np.zeros_like(out), np.empty_like(out), np.empty_like(out)
    gain, loss = np.empty_like(out), np.empty_like(out)
    add, multiply = np.add, np.multiply
    above: list[int] = []
    beside: list[int] = []
    for row, ends in zip(order, last, strict=True):
        (above if positive[row] else beside).append(row)
        if not ends:
            continue
        mine = _total(beside, rows, loss) if beside else None
        if above:
            add(below, below, twice)
            if mine is not None:
                add(twice, mine, twice)
            multiply(_total(above, rows, gain), twice, product)
            add(out, product, out)
            above.clear()
        if mine is not None:
            add(below, mine, below)
            beside.clear()


def _total(members: list[int], rows: list[np.ndarray], out: np.ndarray) -> np.ndarray:
    """Return the weight of some samples, added in their order."""
    if len(members) == 1:
        return rows[members[0]]
    np.add(rows[members[0]], rows[members[1]], out)
    for row in members[2:]:
        np.add(out, rows[row], out)
    return out


def _precision(
    order: list[int], last: list[bool] | None, positive: list[bool], rows: list[np.ndarray], out: np.ndarray
) -> None:
    """Walk downwards: at the end of each tie group its positives count the precision reached there."""
    out[:] = 0
    hits, seen = np.zeros_like(out), np.full_like(out, TINY)
    gain, product = np.empty_like(out), np.empty_like(out)
    add, multiply, divide = np.add, np.multiply, np.divide
    above: list[int] = []
    for place in range(len(order) - 1, -1, -1):
        row = order[place]
        add(seen, rows[row], seen)
        if positive[row]:
            above.append(row)
        if above and (place == 0 or last is None or last[place - 1]):
            mine = _total(above, rows, gain)
            add(hits, mine, hits)
            divide(hits, seen, product)
            multiply(product, mine, product)
            add(out, product, out)
            above.clear()


TINY = 1e-300  # keeps 0 / 0 away where nothing has weight yet, and vanishes when anything has
