"""One judged column for every draw: what it decided, applied to the samples that judge, by any number of metrics.

The column is the winner's predictions or a mixture, adjusted by what the draw's samples teach. The decision on all
samples is one draw more; judged on the same samples it is the anchor of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from cvstats.adjust import Fitted
from cvstats.cube.arrays import surveyed
from cvstats.kernels import Kernel, Problem
from cvstats.kernels.mixing import mix
from cvstats.metrics import Metric, get_metric
from cvstats.metrics.curves import together
from cvstats.resample import Draws
from cvstats.select import Rules

from .loop import CELLS, Decision, gathered, spans
from .scorers import adjusted, choosing_kernel, mixable

MANY = 8  # draws that a winner must have on average to be sorted once for all of them


@dataclass(frozen=True)
class Setting:
    """Which samples and predictions choose, and which judge."""

    data: Problem  # that choose, with what is missing
    draws: Draws
    judge: Draws | None = None  # by default the samples left out of each draw
    judges: Problem | None = None  # the predictions that judge, by default the same


@dataclass(frozen=True)
class Verdict:
    """How one metric judges what was decided."""

    value: np.ndarray  # (draw,) each draw's decision on the samples that judge; NaN where undefined
    anchor: np.ndarray  # (draw,) the decision on all samples, on the same samples
    everywhere: np.ndarray  # (draw,) each draw's decision on all samples
    kept: np.ndarray  # (draw,) the decision on all samples, on the samples that choose
    defined: np.ndarray  # (draw,) whether the labels of the samples that judge allow the metric
    naive: float  # the decision on all samples, on all samples, averaged as choosing does
    pooled: float  # the same, pooled
    errors: float  # how many samples that decision misclassifies, for a mean loss of probabilities; else 0
    unseen: float  # what one more would cost; 0 for other metrics


@dataclass(frozen=True)
class Verdicts:
    """How all metrics judge, on all samples or on parts of them, and what adjustments learned."""

    each: list[list[Verdict]]  # by metric, then by part
    parameters: dict[str, np.ndarray]  # (draw,)
    final: Decision  # on all samples, with what adjustments learned there


@dataclass(frozen=True)
class _Bench:
    """The predictions that choose and judge, of those configurations that won or have a share, in memory."""

    near: Problem
    far: Problem
    won: np.ndarray
    rules: Rules

    def fitted(self, decision: Decision, counts: np.ndarray) -> Fitted | None:
        """Return what the adjustments learn in each draw."""
        if self.rules.adjust is None or decision.fitted is not None:
            return decision.fitted
        adjust, near = self.rules.adjust, self.near
        w = counts if near.weight is None else counts * near.weight
        local = self.local(decision)
        winners = np.unique(local)
        if decision.share is not None or MANY * len(winners) > len(local):
            return adjust.fit(near.y, self._column(near, decision).p, w)
        each = [adjust.fit(near.y, near.p[..., j : j + 1, :], w[local == j]) for j in winners.tolist()]
        order = np.argsort(np.argsort(local, kind="stable"), kind="stable")
        state = {name: np.concatenate([one.state[name] for one in each])[order] for name in each[0].state}
        return replace(each[0], state=state)

    def _column(self, problem: Problem, decision: Decision) -> Problem:
        """Return the problem with one column for each draw."""
        if decision.share is None:
            return replace(problem.columns(self.local(decision)), gaps=None)
        mixed = mixable(problem)
        return replace(mixed, p=mix(mixed.p, np.nan_to_num(decision.share[:, self.won])), gaps=None)

    def local(self, decision: Decision) -> np.ndarray:
        """Return where each draw's winner stands here; where nothing was chosen the first stands in."""
        return np.asarray(np.searchsorted(self.won, np.maximum(decision.place, self.won[0])))

    def problem(self, metric: Metric, decision: Decision, fitted: Fitted | None) -> tuple[Problem, np.ndarray | None]:
        """Return the problem whose columns `metric` judges, and which column is whose; None: one for each draw."""
        adjust = self.rules.adjust
        if decision.share is None and (adjust is None or not adjust.affects(metric)):
            return self.far, self.local(decision)
        column = self._column(self.far, decision)
        return (column if fitted is None else adjusted(metric, column, fitted)), None


def verdicts(
    metrics: Sequence[Metric],
    setting: Setting,
    decision: Decision,
    final: Decision,
    rules: Rules,
    parts: np.ndarray | None = None,
) -> Verdicts:
    """Judge what every draw decided, and what all samples decided (`final`), by all metrics on all parts of samples.

    `parts` (part, n) says which samples of the cube judge; by default all.
    """
    known, won = setting.data, _winners(decision, final)
    other = known if setting.judges is None else surveyed(setting.judges)
    inside = other.rows[known.rows]
    parts = np.ones((1, len(inside)), bool) if parts is None else parts[:, known.rows]
    parts = parts[:, inside].astype(np.uint8)
    table = np.full((len(metrics), len(parts), len(fields(Verdict)) - 4, setting.draws.times), np.nan)
    single = np.full((len(metrics), len(parts), 4), np.nan)
    learned: dict[str, np.ndarray] = {}
    last, nothing = final.fitted, decision.empty
    if won.size:
        bench = _Bench(gathered(known, won), gathered(other, won), won, rules)
        total = max(setting.draws.total, setting.judge.total if setting.judge else 0.0, float(known.n))
        last = bench.fitted(final, np.ones((1, len(inside)), np.uint8))
        every = together(metrics) if bench.far.fold is None else [(slice(i, i + 1), m) for i, m in enumerate(metrics)]
        ends = []  # what scores the decision on all samples, by metric
        for own, metric in every:
            problem, index = bench.problem(metric, final, last)
            problem = problem if index is None else replace(problem.columns(index), gaps=None)
            ends.append(metric.kernel(problem, total))
            for place, part in enumerate(parts):
                naive = _naive(metric, problem, ends[-1], total, part)
                single[own, place] = np.stack(np.broadcast_arrays(*naive), axis=-1)
        scorers: dict[int, Kernel] = {}
        whole: dict[tuple[int, int], np.ndarray] = {}  # scores on all samples of columns that stay the same
        batch = rules.batch
        if batch is None and not (rules.adjust is None and decision.share is None):  # a column for every draw
            batch = max(1, CELLS // max(1, bench.far.p.size // len(won)))
        blocks = spans(setting.draws.times, batch, metrics[0], bench.far, walked=bool(metrics[0].curve))
        for now, counts, bag, right in _weights(setting, other, blocks):
            some = decision.take(now)
            fitted = bench.fitted(some, counts)
            if fitted is not None:
                nothing[now] |= fitted.undefined
                for name, value in fitted.parameters.items():
                    learned.setdefault(name, np.full(len(nothing), np.nan))[now] = value
            for number, (own, metric) in enumerate(every):
                problem, index = bench.problem(metric, some, fitted)
                if index is None or number not in scorers:
                    scorers[number] = metric.kernel(problem, total)
                scorer, end, check = scorers[number], ends[number], bench.far.check(metric.requires)
                fixed, index = index, np.arange(len(counts)) if index is None else index
                unlike = np.flatnonzero(np.ones(len(counts), bool) if fixed is None else fixed != bench.local(final)[0])
                for place, part in enumerate(parts):
                    if fixed is None or (number, place) not in whole:
                        whole[number, place] = scorer.scores(part[None])[0]
                    judging, choosing = (each if part.all() else each * part for each in (right, bag))
                    anchor = end.scores(judging)[:, 0]
                    value = anchor.copy()
                    if unlike.size:
                        value[unlike] = scorer.judged(judging[unlike], index[unlike])
                    everywhere, kept = whole[number, place][index], end.scores(choosing)[:, 0]
                    cells = (value, anchor, everywhere, kept, check.chosen(judging))  # (draw[, point of a curve])
                    table[own, place, :, now] = np.stack(np.broadcast_arrays(*(cell.T for cell in cells)), axis=-2)
    if final.empty[0]:
        single[:] = table[:, :, [1, 3]] = np.nan
    each = [
        [_verdict(cell, nothing, single[number, place]) for place, cell in enumerate(row)]
        for number, row in enumerate(table)
    ]
    learned = {name: np.where(nothing, np.nan, value) for name, value in learned.items()}
    return Verdicts(each, learned, replace(final, fitted=last))


def _weights(
    setting: Setting, other: Problem, blocks: Iterable[tuple[int, int]]
) -> Iterator[tuple[slice, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield blocks of draws: their weights, the same over the samples that judge, and the weights that judge."""
    rows = setting.data.rows
    draws, inside = setting.draws.on(rows), other.rows[rows]
    judge = None if setting.judge is None else setting.judge.on(other.rows)
    for start, stop in blocks:
        counts = draws.block(start, stop)[0]
        bag = counts if inside.all() else counts[:, inside]
        right = (bag == 0).view(np.uint8) if judge is None else judge.block(start, stop)[0]
        yield slice(start, stop), counts, bag, right


def _verdict(cell: np.ndarray, nothing: np.ndarray, single: np.ndarray) -> Verdict:
    """Return a verdict from what was computed for every draw, decided or not."""
    value, anchor, everywhere, kept, defined = cell
    there = (defined == 1) & ~nothing
    value, everywhere = np.where(there, value, np.nan), np.where(nothing, np.nan, everywhere)
    return Verdict(value, np.where(defined == 1, anchor, np.nan), everywhere, kept, there, *single.tolist())


def _naive(metric: Metric, problem: Problem, scorer: Kernel, total: float, part: np.ndarray) -> tuple[Any, ...]:
    """Return the score of the decision on all samples on a part of them, its errors and the cost of one.

    Averaged as choosing does, and pooled.
    """
    pooled = scorer.scores(part[None])[0, 0]
    average = pooled
    if problem.fold is not None:
        average = float(choosing_kernel(metric, problem, total).scores(part[None])[0, 0])
    return average, pooled, *errors_of(metric, problem)


def errors_of(metric: Metric, problem: Problem) -> tuple[float, float]:
    """Return how many samples the only configuration misclassifies, and what one more would cost by a mean loss."""
    if not metric.error_cost(2):
        return 0.0, 0.0
    losses = get_metric("log_loss").ingredients(problem.y[:, None, None], np.asarray(problem.p), problem.n_classes)[0]
    wrong = (losses >= np.log(2)).sum() / losses.shape[-1]  # the truth got a probability of one half at most
    left = -np.expm1(-float(np.nanmax(losses, initial=0.0)))  # to other classes by the least certain prediction
    return float(wrong), metric.error_cost(problem.n_classes, left)


def _winners(decision: Decision, final: Decision) -> np.ndarray:
    """Return the places of the configurations that won somewhere or have a share."""
    if decision.share is None or final.share is None:
        place = np.unique(np.concatenate([decision.place, final.place]))
        return np.asarray(place[place >= 0])
    share = np.concatenate([decision.share, final.share])
    return np.flatnonzero((np.nan_to_num(share) > 0).any(axis=0))
