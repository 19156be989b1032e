"""The one loop: every block of configurations under every draw, in memory or on dask, in plain arrays.

Blocks of configurations know nothing of each other. Each returns its best value per draw, who had it and how it was
judged, so that blocks may live anywhere and merge exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from cvstats.adjust import Fitted
from cvstats.cube.arrays import map_blocks, surveyed
from cvstats.kernels import Problem
from cvstats.metrics import Metric
from cvstats.resample import ATTEMPTS, QUANTUM, Draws
from cvstats.select import Mixture, Rules, beats, label_keys, picked, select_best, winners

from .scorers import candidates, choosing_kernel, mixable

CELLS = 8_000_000  # numbers a block of draws may hold at a time
Tick = Callable[..., Any] | None


@dataclass(frozen=True)
class Decision:
    """What every draw decided: one configuration, or the share of each."""

    place: np.ndarray  # (draw,) of the configuration in the cube; -1: nothing was chosen, or several were mixed
    share: np.ndarray | None = None  # (draw, configuration); NaN: nothing was chosen
    fitted: Fitted | None = None  # what adjustments learned, if that is known

    def take(self, draws: slice) -> Decision:
        """Return what some draws decided."""
        return Decision(self.place[draws], None if self.share is None else self.share[draws])

    def rates(self, usable: np.ndarray, size: int) -> np.ndarray:
        """Return how often each configuration won, or its mean share, in draws that are usable."""
        if not usable.any():
            return np.full(size, np.nan)
        if self.share is not None:
            return np.asarray(self.share[usable].mean(axis=0))
        return np.asarray(np.bincount(self.place[usable], minlength=size) / usable.sum())

    @property
    def empty(self) -> np.ndarray:
        """Which draws decided nothing."""
        return np.asarray(self.place < 0 if self.share is None else np.isnan(self.share).any(axis=1))


@dataclass(frozen=True)
class Outcome:
    """What choosing and judging found on a cube without batch dims."""

    problem: Problem  # and what is missing
    decision: Decision
    value: np.ndarray  # (draw,) NaN where not usable
    usable: np.ndarray  # (draw,)
    win_rate: np.ndarray  # (configuration,) of mixtures the mean share
    score: np.ndarray  # (configuration,) on all samples; NaN for those that may not be selected
    score_variance: np.ndarray  # (configuration,) over usable draws
    n_redrawn: int
    share: np.ndarray | None = None  # (configuration,) of the mixture that all samples choose
    anchor: np.ndarray | None = None  # (draw,) the best on all samples, judged as each draw's choice was, if asked for

    def judged(self, values: Iterable[np.ndarray]) -> Outcome:
        """Return the outcome of draws that something was decided in and some of `values` (draw,) judge."""
        usable = self.usable & np.logical_or.reduce([~np.isnan(value) for value in values])
        return replace(self, usable=usable, win_rate=self.decision.rates(usable, len(self.problem.eligible)))


def scored(
    metric: Metric, data: Problem, *several: Draws, batch: int | None = None, progress: bool = False
) -> tuple[Problem, list[np.ndarray]]:
    """Return the problem with what is missing, and the score of every eligible configuration in every draw.

    One table (draw, configuration) for each of `several` draws over the cube's samples. A draw whose labels the
    metric cannot use is NaN.
    """
    steps = sum(draws.times for draws in several)
    work = partial(_scored_block, metric, several, batch)
    known, parts = map_blocks(work, data, progress="scoring" if progress else "", steps=steps)
    return known, parts[0] if len(parts) == 1 else [np.concatenate(each, axis=1) for each in zip(*parts, strict=True)]


def _scored_block(
    metric: Metric, several: Sequence[Draws], batch: int | None, block: Problem, columns: np.ndarray, tick: Tick
) -> list[np.ndarray]:
    """Return the scores of one block of configurations under several draws."""
    several = [draws.on(block.rows) for draws in several]
    if len(columns) < np.count_nonzero(block.eligible):
        several = [draws.remembered() for draws in several]  # for the other blocks
    total = max(*(draws.total for draws in several), float(block.n))
    scorer, check = choosing_kernel(metric, block, total), block.check(metric.requires)
    tables = [np.empty((draws.times, len(columns))) for draws in several]
    for draws, table in zip(several, tables, strict=True):
        for start, stop in spans(draws.times, batch, metric, block):
            counts, _ = draws.block(start, stop)
            table[start:stop] = scorer.scores(counts)
            table[start:stop][~check.chosen(counts)] = np.nan
            if tick is not None:
                tick(None, stop - start)
    return tables


def decide(
    metric: Metric,
    data: Problem,
    draws: Draws,
    rules: Rules,
    *,
    judge: Draws | None = None,
    judging: bool = True,
    anchored: bool = False,
) -> Outcome:
    """Choose in every draw and, if `judging`, judge the choice by the same metric; if `anchored` the best of all too.

    `judge` are the weights that judge, by default the samples left out of the draw. Draws are over all samples of the
    cube. Other metrics and predictions, and all that rules make of more than a plain choice, are judged by `verdicts`;
    the values are then NaN, and draws that decided something are usable.
    """
    judging = judging and rules.plain
    if isinstance(rules.select, Mixture):
        return _mixed(metric, surveyed(data), draws, rules)
    best_wins = rules.select is select_best
    in_place = judging and best_wins
    keys = label_keys(data.names) if best_wins and rules.ties == "random" else None
    work = Choose(metric, draws, judge if in_place else None, rules, keys, in_place, anchored and in_place)
    progress = "choosing" if rules.progress else ""
    known, blocks = map_blocks(work, data, progress=progress, steps=draws.times)
    best = blocks[0] if len(blocks) == 1 else merged(blocks, metric.direction)
    places = np.flatnonzero(known.eligible)
    count, variance = int(best.usable.sum()), np.full(len(places), np.nan)
    if count > 1:
        with np.errstate(invalid="ignore", over="ignore"):
            variance = np.maximum(best.deviation[1] - best.deviation[0] ** 2 / count, 0.0) / (count - 1)
    place = best.place
    if not best_wins:
        place = places[picked(rules.select, best.table, metric.direction, variance, known)]
    place = np.where(best.usable & ~np.isnan(best.best), place, -1)
    value = best.value
    usable = place >= 0
    if judging:
        if not in_place:
            value = _judged_apart(metric, known, draws, judge, place, rules.batch)
        usable = usable & ~np.isnan(value)
    size, decision = len(known.eligible), Decision(place)
    rate = decision.rates(usable, size)
    score, spread = np.full((2, size), np.nan)
    score[places], spread[places] = best.score, variance
    redrawn = int((best.redrawn > 0).sum())
    anchor = best.anchor if work.anchored else None
    value = np.where(usable, value, np.nan)
    return Outcome(known, decision, value, usable, rate, score, spread, redrawn, anchor=anchor)


def _mixed(metric: Metric, known: Problem, draws: Draws, rules: Rules) -> Outcome:
    """Learn a mixture in every draw, and on all samples."""
    assert isinstance(rules.select, Mixture)
    places = np.flatnonzero(known.eligible)
    rules.select.check(known.kind, len(places), lazy=not isinstance(known.p, np.ndarray))
    block = mixable(known.columns(places).samples(known.rows))
    own, check = draws.on(known.rows), block.check(metric.requires)
    learn = partial(rules.select.shares, block.y, candidates(metric, block, rules.adjust))
    everything = np.ones((1, own.n), np.uint8)
    share, usable, redrawn = [], [], []
    for start, stop in spans(own.times, rules.batch, metric, block):
        counts, again = own.block(start, stop)
        usable.append(check.chosen(counts) & (again <= ATTEMPTS))
        redrawn.append(again)
        counts = np.where(usable[-1][:, None], counts, 0)  # nothing is learned there
        counts = counts if start else np.concatenate([everything.astype(counts.dtype), counts])
        share.append(learn(counts if block.weight is None else counts * block.weight))
    size = len(known.eligible)
    whole = np.zeros((1 + own.times, size))
    whole[:, places] = np.concatenate(share)
    whole[np.isnan(whole).any(axis=1)] = np.nan
    decision = Decision(np.full(own.times, -1), whole[1:])
    there = np.concatenate(usable) & ~decision.empty
    score = np.full(size, np.nan)
    score[places] = choosing_kernel(metric, replace(block, gaps=None), float(own.n), rules.adjust).scores(everything)[0]
    nothing, n_redrawn = np.full(own.times, np.nan), int((np.concatenate(redrawn) > 0).sum())
    rate = decision.rates(there, size)
    return Outcome(known, decision, nothing, there, rate, score, np.full(size, np.nan), n_redrawn, whole[0])


@dataclass(frozen=True)
class _Chosen:
    """What one block of configurations (or several, merged) chose in every draw."""

    usable: np.ndarray  # (draw,) whether the choosing labels allow the metric
    redrawn: np.ndarray  # (draw,) how often the draw was drawn again
    best: np.ndarray  # (draw,) what was maximised; NaN where no configuration has a score
    place: np.ndarray  # (draw,) of the winner in the cube
    key: np.ndarray  # (draw,) its tie key
    value: np.ndarray  # (draw,) the winner as judged; NaN when judged later
    anchor: np.ndarray  # (draw,) the best on all samples as judged; NaN when nobody asked
    score: np.ndarray  # (m,) the score on all samples
    deviation: np.ndarray  # (2, m) sum and sum of squares of the score's deviation over usable draws
    table: np.ndarray  # (draw, m) all scores, for strategies that need them


@dataclass(frozen=True)
class Choose:
    """Choose and, where possible, judge on one block of configurations; an object so that workers can receive it."""

    metric: Metric
    draws: Draws
    judge: Draws | None
    rules: Rules
    keys: np.ndarray | None  # (configuration,) hashes of the names, for random ties
    in_place: bool = True  # whether the block's winners are judged here, on the same predictions
    anchored: bool = False  # whether its best on all samples is judged too

    def __call__(self, block: Problem, columns: np.ndarray, tick: Tick = None) -> _Chosen:
        """Return what the block's configurations, `columns` of the cube, chose in every draw."""
        draws, m = self.draws.on(block.rows), len(columns)
        judge = None if self.judge is None else self.judge.on(block.rows)
        if m < np.count_nonzero(block.eligible):
            draws = draws.remembered()  # for the other blocks
        heaviest, adjust = max(draws.total, judge.total if judge else 0.0), self.rules.adjust
        plain, metric = self.rules.plain, self.metric
        scorer = metric.kernel(block, heaviest) if plain else choosing_kernel(metric, block, heaviest, adjust)
        check = block.check(self.metric.requires)
        best_wins = self.rules.select is select_best
        times = draws.times
        out = _Chosen(
            usable=np.zeros(times, bool),
            redrawn=np.zeros(times, int),
            best=np.full(times, np.nan),
            place=np.zeros(times, np.int64),
            key=np.zeros(times, np.uint64),
            value=np.full(times, np.nan),
            anchor=np.full(times, np.nan),
            score=np.empty(m),
            deviation=np.zeros((2, m)),
            table=np.empty((times, 0 if best_wins else m)),
        )
        for start, stop in spans(draws.times, self.rules.batch, self.metric, block, walked=adjust is not None):
            now = slice(start, stop)
            counts, out.redrawn[now] = draws.block(start, stop)
            if start:
                criterion, score = scorer.criterion(counts)
            else:  # all samples go along as one more draw
                criterion, score = scorer.criterion(
                    np.concatenate([np.ones((1, counts.shape[1]), counts.dtype), counts])
                )
                out.score[:], criterion, score = score[0], criterion[1:], score[1:]
                first = select_best(out.score, direction=self.metric.direction) if self.anchored else None
                centre = np.nan_to_num(out.score, posinf=0.0, neginf=0.0)
            out.usable[now] = check.chosen(counts) & (out.redrawn[now] <= ATTEMPTS)
            with np.errstate(invalid="ignore", over="ignore"):  # scores that overflow have no variance
                gap = np.zeros((-(-len(score) // QUANTUM), QUANTUM, max(m, 2)))  # a single column is added up otherwise
                rows = gap.reshape(-1, gap.shape[2])[: len(score), :m]
                np.subtract(score, centre, out=rows)
                rows[~out.usable[now]] = 0.0
                for part in np.stack([np.einsum("qbm->qm", gap), np.einsum("qbm,qbm->qm", gap, gap)], axis=1):
                    out.deviation[:] += part[:, :m]  # quantum by quantum, as in any batch
            if not best_wins:
                out.table[now] = score
                out.best[now] = np.where(np.isnan(score).all(axis=1), np.nan, 0.0)
            else:
                keys, numbers = None if self.keys is None else self.keys[columns], np.arange(start, stop)
                local, out.best[now], out.key[now] = winners(criterion, numbers, keys, self.rules.seed)
                out.place[now] = columns[local]
            if self.in_place:
                right = (counts == 0).view(np.uint8) if judge is None else judge.block(start, stop)[0]
                good = check.chosen(right)
                out.value[now] = np.where(good, scorer.judged(right, local), np.nan)
                if first is not None:
                    out.anchor[now] = np.where(good, scorer.judged(right, np.repeat(first, len(right))), np.nan)
            del criterion, score, gap  # else they would stand beside the next block's
            if tick is not None:
                tick(None, stop - start)
        return out


def merged(blocks: list[_Chosen], direction: str) -> _Chosen:
    """Merge blocks in configuration order: the better one wins, ties go to the smaller key or to the first."""
    out = blocks[0]
    for block in blocks[1:]:
        better = beats(block.best, block.key, out.best, out.key)
        won = {name: getattr(block, name) for name in ("best", "place", "key", "value")}
        out = replace(out, **{name: np.where(better, new, getattr(out, name)) for name, new in won.items()})
    score = np.concatenate([block.score for block in blocks])
    first = int(select_best(score, direction=direction))
    ends = np.cumsum([len(block.score) for block in blocks])
    return replace(
        out,
        anchor=blocks[int(np.searchsorted(ends, first, "right"))].anchor,
        score=score,
        deviation=np.concatenate([block.deviation for block in blocks], axis=1),
        table=np.concatenate([block.table for block in blocks], axis=1),
    )


def _judged_apart(
    metric: Metric, known: Problem, draws: Draws, judge: Draws | None, place: np.ndarray, batch: int | None
) -> np.ndarray:
    """Return the value of each draw's choice, where all blocks had to be seen before anything was chosen."""
    value, won = np.full(len(place), np.nan), np.unique(place[place >= 0])
    if not won.size:
        return value
    block = gathered(known, won)
    own, weights = draws.on(known.rows), None if judge is None else judge.on(known.rows)
    scorer = metric.kernel(block, max(own.total, weights.total if weights else 0.0))
    check, local = block.check(metric.requires), np.searchsorted(won, np.maximum(place, won[0]))
    for start, stop in spans(own.times, batch, metric, block):
        right = (own.block(start, stop)[0] == 0).view(np.uint8) if weights is None else weights.block(start, stop)[0]
        value[start:stop] = np.where(check.chosen(right), scorer.judged(right, local[start:stop]), np.nan)
    return value


def gathered(problem: Problem, places: np.ndarray) -> Problem:
    """Return some configurations of a problem in memory, on the samples that somebody predicted."""
    pick = np.isin(np.arange(problem.p.shape[-2]), places)
    blocks: list[Problem] = map_blocks(_as_it_is, problem, pick=pick)[1]
    if len(blocks) == 1:
        return blocks[0]
    return replace(blocks[0], p=np.concatenate([block.p for block in blocks], axis=-2))


def _as_it_is(block: Problem, *_: Any) -> Problem:
    return block


def spans(
    times: int, batch: int | None, metric: Metric, block: Problem, *, walked: bool = False
) -> Iterator[tuple[int, int]]:
    """Yield the first and last draw of blocks that bound memory: large ones where columns are `walked` row by row."""
    n, m = block.p.shape[-3:-1]
    wide, width = (1024, n // 2 + 2 * m) if walked or metric.family == "rank" else (256, n + 2 * m)
    most = min(wide, CELLS // max(1, width)) if batch is None else batch + QUANTUM - 1
    step = max(QUANTUM, most // QUANTUM * QUANTUM)  # whole quanta, so that no batch changes a sum
    for start in range(0, times, step):
        yield start, min(start + step, times)
