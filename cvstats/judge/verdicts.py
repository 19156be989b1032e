"""One judged column for every draw: what it decided, applied to the samples that judge, by any number of metrics.

The column is the winner's predictions or a mixture, adjusted by what the draw's samples teach. The decision on all
samples is one draw more; judged on the same samples it is the anchor of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cvstats.adjust import Fitted
from cvstats.cube.arrays import map_blocks, surveyed
from cvstats.kernels import Kernel, Problem, kernel
from cvstats.kernels.mixing import mix
from cvstats.metrics import Metric, get_metric
from cvstats.resample import Draws

from .loop import Decision, Rules, spans
from .scorers import adjusted, choosing_kernel, label_check, mixable


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
    unseen: float  # what a misclassified sample would cost, when that decision misclassifies none; else 0


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
        w = counts if self.near.weight is None else counts * self.near.weight
        return self.rules.adjust.fit_each(self.near.y, self._column(self.near, decision).p, w)

    def _column(self, problem: Problem, decision: Decision) -> Problem:
        """Return the problem with one column for each draw."""
        if decision.share is None:
            return problem.columns(self.local(decision))
        mixed = mixable(problem)
        return replace(mixed, p=mix(mixed.p, np.nan_to_num(decision.share[:, self.won])))

    def local(self, decision: Decision) -> np.ndarray:
        """Return where each draw's winner stands here; where nothing was chosen the first stands in."""
        return np.asarray(np.searchsorted(self.won, np.maximum(decision.place, self.won[0])))

    def problem(self, metric: Metric, decision: Decision, fitted: Fitted | None) -> tuple[Problem, np.ndarray | None]:
        """Return the problem whose columns `metric` judges, and which column is whose; None: one for each draw."""
        if decision.share is None and not self.changes(metric):
            return self.far, self.local(decision)
        column = self._column(self.far, decision)
        return (column if fitted is None else adjusted(metric, column, fitted)), None

    def changes(self, metric: Metric) -> bool:
        """Return whether adjustments matter to the metric."""
        return self.rules.adjust is not None and self.rules.adjust.affects(metric)


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
    known = setting.data
    other = known if setting.judges is None else surveyed(setting.judges)
    times, inside = setting.draws.times, other.rows[known.rows]
    parts = np.ones((1, known.rows.sum()), bool) if parts is None else parts[:, known.rows]
    parts = parts[:, inside].astype(np.uint8)
    won = _winners(decision, final)
    blank = np.full((len(metrics), len(parts), 5, times), np.nan)
    single = np.full((len(metrics), len(parts), 3), np.nan)
    learned: dict[str, np.ndarray] = {}
    nothing = decision.empty
    last: Fitted | None = None
    if won.size:
        bench = _Bench(_gathered(known, won), _gathered(other, won), won, rules)
        draws = setting.draws.on(known.rows)
        judge = None if setting.judge is None else setting.judge.on(other.rows)
        total = max(draws.total, judge.total if judge else 0.0, float(known.n))
        last = bench.fitted(final, np.ones((1, draws.n), np.uint8))
        ends = [_Final.of(metric, bench, final, last, total) for metric in metrics]
        single[:] = [[end.naive(part) for part in parts] for end in ends]
        memory: dict[int, Kernel] = {}
        for start, stop in spans(times, rules.batch, metrics[0], bench.far):
            counts = draws.block(start, stop)[0]
            right = (counts == 0).view(np.uint8) if judge is None else judge.block(start, stop)[0]
            right = right[:, inside] if judge is None else right
            some = decision.take(slice(start, stop))
            fitted = bench.fitted(some, counts)
            if fitted is not None:
                nothing[start:stop] |= fitted.undefined
                for name, value in fitted.parameters.items():
                    learned.setdefault(name, np.full(times, np.nan))[start:stop] = value
            for number, metric in enumerate(metrics):
                problem, index = bench.problem(metric, some, fitted)
                if index is None or number not in memory:
                    memory[number] = kernel(metric, problem, total, gaps=None if index is None else problem.gaps)
                scorer, check = memory[number], label_check(metric, bench.far)
                index = np.arange(stop - start) if index is None else index
                for place, part in enumerate(parts):
                    rows = blank[number, place, :, start:stop]
                    weights = right if part.all() else right * part
                    rows[4] = check.chosen(weights)
                    rows[0] = scorer.judged(weights, index)
                    rows[1] = ends[number].scores(weights)
                    rows[2] = scorer.scores(part[None])[0][index]
                    rows[3] = ends[number].scores(counts[:, inside] * part)
    if final.empty[0]:
        single[:] = blank[:, :, [1, 3]] = np.nan
    table: list[list[Verdict]] = []
    for number in range(len(metrics)):
        row = []
        for place in range(len(parts)):
            value, anchor, everywhere, kept, defined = blank[number, place]
            there = defined == 1
            row.append(
                Verdict(
                    np.where(there & ~nothing, value, np.nan),
                    np.where(there, anchor, np.nan),
                    np.where(nothing, np.nan, everywhere),
                    kept,
                    there & ~nothing,
                    *single[number, place].tolist(),
                )
            )
        table.append(row)
    learned = {name: np.where(nothing, np.nan, value) for name, value in learned.items()}
    return Verdicts(table, learned, replace(final, fitted=last))


@dataclass(frozen=True)
class _Final:
    """The decision on all samples as one metric sees it."""

    metric: Metric
    problem: Problem  # of one column
    scorer: Kernel
    total: float

    @classmethod
    def of(cls, metric: Metric, bench: _Bench, final: Decision, fitted: Fitted | None, total: float) -> _Final:
        """Return the column that was decided on, adjusted."""
        problem, index = bench.problem(metric, final, fitted)
        problem = problem if index is None else problem.columns(index)
        return cls(metric, problem, kernel(metric, problem, total), total)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return its score under each row of weights."""
        return self.scorer.scores(weights)[:, 0]

    def naive(self, part: np.ndarray) -> tuple[float, float, float]:
        """Return its score on a part of the samples, averaged as choosing does and pooled, and the cost of an error."""
        pooled = float(self.scores(part[None])[0])
        average = pooled
        if self.problem.fold is not None:
            average = float(choosing_kernel(self.metric, self.problem, self.total).scores(part[None])[0, 0])
        return average, pooled, unseen_cost(self.metric, self.problem)


def unseen_cost(metric: Metric, problem: Problem) -> float:
    """Return what a misclassified sample would cost when the only configuration misclassifies none; else 0."""
    if not metric.error_cost(2):
        return 0.0
    losses = get_metric("log_loss").ingredients(problem.y[:, None, None], np.asarray(problem.p), problem.n_classes)[0]
    wrong = (losses >= np.log(2)).sum() / losses.shape[-1]  # the truth got a probability of one half at most
    return metric.error_cost(problem.n_classes) if wrong < 0.5 else 0.0


def _winners(decision: Decision, final: Decision) -> np.ndarray:
    """Return the places of the configurations that won somewhere or have a share."""
    if decision.share is None or final.share is None:
        place = np.unique(np.concatenate([decision.place, final.place]))
        return np.asarray(place[place >= 0])
    share = np.concatenate([decision.share, final.share])
    return np.flatnonzero((np.nan_to_num(share) > 0).any(axis=0))


def _gathered(problem: Problem, places: np.ndarray) -> Problem:
    """Return some configurations of a problem in memory, on the samples that somebody predicted."""
    pick = np.isin(np.arange(problem.p.shape[-2]), places)
    blocks: list[Problem] = map_blocks(lambda _: _as_it_is, problem, pick=pick)[1]
    if len(blocks) == 1:
        return blocks[0]
    return replace(blocks[0], p=np.concatenate([block.p for block in blocks], axis=-2))


def _as_it_is(block: Problem, *_: Any) -> Problem:
    return block
