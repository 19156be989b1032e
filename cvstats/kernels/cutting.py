"""The best threshold of every configuration under many weights, and the table of hits and false alarms there.

Repeats are pooled, predictions that are missing are skipped, and a prediction strictly above the threshold is positive.
Candidates are the midpoints between neighbouring distinct scores *of positive weight* and the two ends, written -inf
(everything is positive) and inf (nothing is). Of candidates that are equally good the one nearest a given number wins,
then the smaller; or, where no such number makes sense, the lower median of them all.

Sums of whole-number weights are exact, and criteria are written so that equal values are equal bits: a tie is a tie.
Real weights are added in the same order whatever the batch of draws or the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .walk import accelerator

if TYPE_CHECKING:
    from cvstats.metrics import Metric

TILE = 524_288  # numbers in an intermediate array
Function = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
Between = Callable[[np.ndarray, np.ndarray], np.ndarray]
Table = tuple[np.ndarray, np.ndarray]  # hits and false alarms


@dataclass(frozen=True)
class Criterion:
    """What a threshold maximises: a function of hits, false alarms, positives and negatives.

    Parameters
    ----------
    form : str
        One of `FORMS`, or ``"function"``.
    hit, alarm : float
        Constants of the form: what a hit gains and a false alarm costs, or the least share as a fraction hit / alarm.
    function : callable, optional
        Any other criterion, ``function(tp, fp, positives, negatives)``; NaN where it is undefined.
    """

    form: str
    hit: float = 1.0
    alarm: float = 1.0
    function: Function | None = None

    @property
    def code(self) -> int:
        """The number of its form, by which the compiled engine knows it."""
        return list(FORMS).index(self.form)

    @property
    def strict(self) -> bool:
        """Whether every hit raises it and every false alarm lowers it, so that it can only peak below a positive."""
        return self.form in ("youden", "f1", "mcc") or (self.form == "linear" and min(self.hit, self.alarm) > 0)

    def __call__(self, tp: np.ndarray, fp: np.ndarray, positives: np.ndarray, negatives: np.ndarray) -> np.ndarray:
        """Return what to maximise among the candidates of one draw; -inf where undefined, or a class has no weight."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.function is not None:
                value = np.asarray(self.function(tp, fp, positives, negatives), float)
            else:
                value = FORMS[self.form](self, tp, fp, positives, negatives)
        value = np.fmax(value, -np.inf)
        lacking = (positives <= 0) | (negatives <= 0)
        return np.where(lacking, -np.inf, value) if lacking.any() else value


def youden(of: Criterion, tp: np.ndarray, fp: np.ndarray, p: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Sensitivity + specificity, times positives times negatives; balanced accuracy has the same order."""
    return np.asarray(tp * n - fp * p)


def linear(of: Criterion, tp: np.ndarray, fp: np.ndarray, p: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Return what hits gain less what false alarms cost; of accuracy it is the same."""
    return np.asarray(of.hit * tp - of.alarm * fp)


def f1(of: Criterion, tp: np.ndarray, fp: np.ndarray, p: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Return half of F1."""
    return np.asarray(tp / (p + (tp + fp)))


def mcc(of: Criterion, tp: np.ndarray, fp: np.ndarray, p: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Squared, with its sign: a ratio of whole numbers, free of roots."""
    cross, flagged = tp * n - fp * p, tp + fp
    spread = flagged * (p + n - flagged)
    return np.where(spread > 0, cross * np.abs(cross) / spread, 0.0)


def sensitivity(of: Criterion, tp: np.ndarray, fp: np.ndarray, p: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Fewest false alarms among those with tp / p >= hit / alarm."""
    return np.where(tp * of.alarm >= p * of.hit, -fp, -np.inf)


def specificity(of: Criterion, tp: np.ndarray, fp: np.ndarray, p: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Most hits among those with tn / n >= hit / alarm."""
    return np.where((n - fp) * of.alarm >= n * of.hit, tp, -np.inf)


FORMS: dict[str, Callable[..., np.ndarray]] = {
    form.__name__: form for form in (youden, linear, f1, mcc, sensitivity, specificity)
}


def table_value(
    metric: Metric, tp: np.ndarray, fp: np.ndarray, positives: np.ndarray, negatives: np.ndarray
) -> np.ndarray:
    """Return any metric of predicted classes from hits, false alarms, positives and negatives, higher better."""
    truth, guess = np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 0.0, 1.0, 0.0])
    counts = np.broadcast_arrays(tp, positives - tp, fp, negatives - fp)
    if metric.function is not None:
        values = []
        for cell in np.stack([part.ravel() for part in counts], axis=1):
            some = cell > 0
            values.append(float(metric.function(truth[some], guess[some], cell[some])) if some.any() else np.nan)
        return metric.sign * np.reshape(values, counts[0].shape)
    parts = metric.ingredients(truth, guess, 2)
    labels = [np.ones(4), *(metric.label_parts(truth, 2) if metric.label_parts else [])]
    sums, totals = ([_weighed(part, counts) for part in group] for group in (parts, labels))
    return metric.sign * metric.formula(sums, totals)


def _weighed(values: np.ndarray, counts: Sequence[np.ndarray]) -> np.ndarray:
    return np.asarray(sum(float(value) * count for value, count in zip(values, counts, strict=True)))


@dataclass(frozen=True)
class Cuts:
    """Thresholds and the table of each: hits, false alarms, positives and negatives, all repeats pooled.

    The threshold is NaN where a class has no weight or the criterion is undefined for every candidate; the table is
    then that of everything called positive.
    """

    threshold: np.ndarray
    tp: np.ndarray
    fp: np.ndarray
    positives: np.ndarray
    negatives: np.ndarray


class Cutter:
    """The best cut of every configuration under any weights: columns are sorted once, draws come in blocks.

    Parameters
    ----------
    y : (n,) labels, 1 = positive.
    p : (n, m, r) finite scores; NaN is skipped.
    criterion
        What to maximise.
    nearest
        Of tied candidates the one nearest this number wins; None: the lower median.
    """

    def __init__(self, y: np.ndarray, p: np.ndarray, criterion: Criterion, nearest: float | None = 0.5) -> None:
        self.shape, self.criterion, self.nearest = p.shape, criterion, nearest
        self.positive = np.asarray(y) == 1
        self.columns = [_sorted_column(p[:, j], self.positive, criterion.strict) for j in range(p.shape[1])]

    def cuts(self, weights: np.ndarray) -> Cuts:
        """Return the best cut (draw, m) for weights (draw, n) of the samples that choose."""
        n, m, r = self.shape
        fast = self._compiled(len(weights))
        out = np.empty((5, m, len(weights)))
        step = max(256, TILE // max(1, n * r)) if fast is None else 256  # what stays in the cache
        small = weights.dtype.kind in "iub" and weights.max(initial=0) < 256 and n * r < 2**23
        kind = np.uint8 if fast is not None and small else float
        for start in range(0, len(weights), step):
            w = np.ascontiguousarray(weights[start : start + step].T, dtype=kind)
            totals = [r * w[part].sum(axis=0, dtype=float) for part in (self.positive, ~self.positive)]
            for j, column in enumerate(self.columns):
                cell = out[:, j, start : start + step]
                cell[3:] = totals if len(column.row) == n * r else _totals(column, w)
                (cut_column if fast is None else fast.cut)(column, w, self.criterion, self.nearest, cell)
        return Cuts(*(part.T for part in out))

    def _compiled(self, draws: int) -> Any:
        """Return the compiled twin when it has the criterion and the work repays it, else None."""
        n, m, r = self.shape
        if self.criterion.form not in FORMS or accelerator(m * r, n, draws) is None:
            return None
        from .compiled import cutting

        return cutting


def paired_cuts(
    y: np.ndarray, p: np.ndarray, weights: np.ndarray, criterion: Criterion, nearest: float | None = 0.5
) -> Cuts:
    """Return the best cut (draw,) of column ``p[:, draw]`` under that draw's weights; otherwise as `Cutter`."""
    n, draws, r = p.shape
    positive = np.repeat(np.asarray(y) == 1, r)
    out = np.empty((5, draws))
    step = max(1, TILE // max(1, n * r))
    for start in range(0, draws, step):
        block = slice(start, min(start + step, draws))
        score = p[:, block].transpose(1, 0, 2).reshape(-1, n * r).astype(float)
        w = np.where(np.isnan(score), 0.0, np.repeat(weights[block], r, axis=1))
        order = np.argsort(score, axis=1, kind="stable")
        score, w, up = np.take_along_axis(score, order, 1), np.take_along_axis(w, order, 1), positive[order]
        # a prediction of positive weight is followed by a candidate if the next such has a higher score
        edge = np.full((len(w), 1), -np.inf)
        weighed = np.where(w > 0, score, np.nan)
        below = np.concatenate([edge, weighed], axis=1)
        above = np.concatenate([np.fmin.accumulate(weighed[:, ::-1], axis=1)[:, ::-1], -edge], axis=1)
        above = np.where(np.isnan(above), np.inf, above)
        missed, spared = np.zeros((2, *below.shape))
        np.cumsum(np.where(up, w, 0.0), axis=1, out=missed[:, 1:])
        np.cumsum(np.where(up, 0.0, w), axis=1, out=spared[:, 1:])
        tp, fp = missed[:, -1:] - missed, spared[:, -1:] - spared
        value = np.where(below < above, criterion(tp, fp, tp[:, :1], fp[:, :1]), -np.inf)
        cell = out[:, block]
        cell[3:] = tp[:, 0], fp[:, 0]
        _settle(value, (tp, fp), partial(_beside, below, above), nearest, cell)
    return Cuts(*out)


@dataclass(frozen=True)
class Column:
    """The predictions of one configuration in ascending order."""

    score: np.ndarray  # (e,)
    row: np.ndarray  # (e,) the sample each belongs to
    positive: np.ndarray  # (e,)
    stop: np.ndarray  # places after which the criterion may peak


def _totals(column: Column, w: np.ndarray) -> np.ndarray:
    """Return the weight of the positives and of the negatives among the predictions that a column has."""
    parts = (column.row[column.positive], column.row[~column.positive])
    return np.stack([w[part].sum(axis=0, dtype=float) for part in parts])


def _sorted_column(p: np.ndarray, positive: np.ndarray, strict: bool) -> Column:
    flat = p.ravel().astype(float)
    order = np.argsort(flat, kind="stable")[: int((~np.isnan(flat)).sum())]
    score, row = flat[order], (order // p.shape[1]).astype(np.intp)
    up = positive[row]
    ends = np.ones(len(order), bool)
    ends[:-1] = score[1:] != score[:-1]
    if strict and len(order):  # only where negatives of one group of ties meet positives of the next
        first = np.flatnonzero(np.concatenate([[True], ends[:-1]]))
        holds = np.stack([np.logical_or.reduceat(~up, first), np.logical_or.reduceat(up, first)])
        peak = np.ones(len(first), bool)
        peak[:-1] = holds[0, :-1] & holds[1, 1:]
        ends[np.flatnonzero(ends)] = peak
    return Column(score, row, up, np.flatnonzero(ends))


def cut_column(column: Column, w: np.ndarray, criterion: Criterion, nearest: float | None, out: np.ndarray) -> None:
    """Fill `out` (5, draw) for one column under weights (n, draw); rows 3 and 4 hold the class totals."""
    positives, negatives = out[3], out[4]
    tp, fp = np.empty((2, len(column.stop) + 1, len(positives)))
    tp[0], fp[0] = positives, negatives
    rows, ends, step = list(w), column.stop.tolist(), 1
    missed, spared = np.zeros((2, len(positives)))
    for place, (row, up) in enumerate(zip(column.row.tolist(), column.positive.tolist(), strict=True)):
        sums = missed if up else spared
        np.add(sums, rows[row], out=sums)
        if place == ends[step - 1]:
            np.subtract(positives, missed, out=tp[step])
            np.subtract(negatives, spared, out=fp[step])
            step += 1
    value = criterion(tp, fp, positives, negatives)
    _settle(value.T, (tp.T, fp.T), partial(_between, column, w), nearest, out)


def _settle(value: np.ndarray, table: Table, between: Between, nearest: float | None, out: np.ndarray) -> None:
    """Fill the threshold and its table in `out` (5, draw) from what is maximised and the tables (draw, candidate).

    `between` tells the thresholds of some draws and candidates.
    """
    tp, fp = table
    top = value.max(axis=1, keepdims=True)
    lane, place = np.nonzero((value == top) & (top > -np.inf))
    hits, alarms = tp[lane, place], fp[lane, place]
    new = np.ones(len(lane), bool)  # a table may stand at several places, with nothing of weight between them
    new[1:] = (lane[1:] != lane[:-1]) | (hits[1:] != hits[:-1]) | (alarms[1:] != alarms[:-1])
    lane, place, hits, alarms = lane[new], place[new], hits[new], alarms[new]
    threshold = between(lane, place)
    first = np.flatnonzero(np.diff(lane, prepend=-1))
    if nearest is None:
        pick = first + (np.diff(first, append=len(lane)) - 1) // 2
    else:
        pick = np.lexsort((threshold, np.abs(threshold - nearest), lane))[first]
    out[0], out[1:3] = np.nan, out[3:]
    out[:3, lane[pick]] = threshold[pick], hits[pick], alarms[pick]


def _between(column: Column, w: np.ndarray, lane: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """Return the midpoint of the scores of positive weight on both sides of a stop, for each lane and stop."""
    sides, place = [], np.concatenate([[0], column.stop + 1])[stop]
    for step, limit in ((-1, -1), (1, len(column.row))):
        at = place - 1 if step < 0 else place.copy()
        active = np.flatnonzero(at != limit)
        while active.size:
            active = active[w[column.row[at[active]], lane[active]] <= 0]
            at[active] += step
            active = active[at[active] != limit]
        sides.append(np.where(at == limit, step * np.inf, np.append(column.score, np.nan)[at]))
    return midpoint(*sides)


def _beside(below: np.ndarray, above: np.ndarray, *candidate: np.ndarray) -> np.ndarray:
    return midpoint(below[candidate], above[candidate])


def midpoint(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Return a number from which `above` but not `below` is strictly above; an end where one is infinite."""
    middle = np.where(np.isinf(below), above, below) / 2 + above / 2
    middle = np.where((middle < above) & (middle >= below), middle, below)
    return np.where(np.isinf(above), above, middle)
