"""The hot loop in plain arrays: score every configuration of a block in every draw, keep the best, judge it.

Blocks of configurations know nothing of each other. Each returns its best value per draw, who had it and how it was
judged, so that blocks may live anywhere and merge exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, show
from cvstats.cube.arrays import check_finite, check_kind, encode_labels, models, raw_block, threshold
from cvstats.cube.blocks import Coverage, Report, report_on
from cvstats.cube.make import check_values, is_lazy
from cvstats.kernels import Kernel, Problem, Weights, kernel
from cvstats.kernels.scan import Scan, scan
from cvstats.kernels.usable import LabelCheck
from cvstats.metrics import Metric
from cvstats.resample import ATTEMPTS, QUANTUM, Bootstrap, Given, Kept
from cvstats.select import break_ties, tie_keys

Draws = Bootstrap | Given
CELLS = 8_000_000  # numbers a block of draws may hold at a time


@dataclass(frozen=True)
class Frame:
    """What turns a block of raw predictions into a problem: the labels, and how the metric reads the values."""

    metric: Metric
    y: np.ndarray
    weight: np.ndarray | None
    event: np.ndarray | None
    n_classes: int
    kind: str
    threshold: float | None
    rows: np.ndarray | None  # samples in use; None: all
    gaps: bool
    check: bool  # whether values must still be checked, because they come from dask
    model: np.ndarray | None  # which model made a prediction, where only those of one compare

    @classmethod
    def of(cls, cube: xr.DataArray, metric: Metric, found: Coverage, *, check: bool) -> Frame:
        """Return the frame of a cube whose labels carry no batch dims."""
        check_kind(cube, metric)
        if not check and needs_finite(metric) and not is_lazy(cube):
            check_finite(raw_block(cube), metric, cube)
        y, n_classes = encode_labels(cube)
        coords = cube.coords.variables
        event = coords["event"].values.astype(float) if "event" in coords else None
        weight = coords["weight"].values.astype(float) if "weight" in coords else None
        rows = None if found.rows.all() else found.rows
        if rows is not None:
            y = y[rows]
            event, weight = (None if part is None else part[rows] for part in (event, weight))
        kind, model = str(coords["kind"].values.item()), models(cube, metric)
        if model is not None and rows is not None:
            model = model[rows]
        y = np.where(np.isnan(y), 0.0, y)
        return cls(metric, y, weight, event, n_classes, kind, threshold(cube), rows, found.gaps, check, model)

    @property
    def labels(self) -> LabelCheck:
        """What the labels of a draw must hold."""
        return LabelCheck(self.metric.requires, self.y, self.event, self.weight, self.n_classes)

    def kernel(self, block: np.ndarray, total: float, seen: Scan | None = None) -> Kernel:
        """Return the kernel for a block (k?, n, m, r) of the cube's predictions, or for a part of what was `seen`."""
        block = block if self.rows is None else block[..., self.rows, :, :]
        if self.check:
            check_values(block, self.kind, self.n_classes, "cube", seen)
            if needs_finite(self.metric):
                _check_finite(block, self.metric, seen or scan(block))
        data = Problem(self.y, block, self.weight, self.event, self.n_classes, self.kind, self.threshold, self.model)
        return kernel(self.metric, data, total, gaps=self.gaps)


def needs_finite(metric: Metric) -> bool:
    """Return whether infinite predictions make the metric undefined."""
    return metric.family != "rank" and metric.uses in ("value", "margin")


def _check_finite(block: np.ndarray, metric: Metric, seen: Scan) -> None:
    if np.isfinite(seen.low) and np.isfinite(seen.high):
        return
    bad = np.isinf(block)
    if bad.any():
        places = np.flatnonzero(bad.reshape(-1, *block.shape[-3:]).any(axis=(0, 2, 3)))
        raise InputError(
            f"metric {metric.name!r} needs finite predictions; found infinite ones for the samples in places "
            f"{show(places)}. Rank metrics such as auc accept them."
        )


@dataclass(frozen=True)
class Chosen:
    """The outcome of *choose* on one block of configurations (or on several, merged)."""

    usable: np.ndarray  # (draw,) whether the choosing labels allow the metric
    redrawn: np.ndarray  # (draw,) how often the draw was drawn again
    defined: np.ndarray  # (draw,) whether some configuration had a score
    best: np.ndarray  # (draw,) what was maximised
    index: np.ndarray  # (draw,) position among the eligible configurations
    key: np.ndarray  # (draw,) tie key of the winner
    value: np.ndarray  # (draw,) the winner as judged; NaN when judged later
    score: np.ndarray  # (m,) the score on all samples
    deviation: np.ndarray  # (2, m): sum and sum of squares of the score's deviation over usable draws
    scores: np.ndarray | None  # (draw, m) for strategies that need the whole table
    report: Report | None


class Choose:
    """*Choose* (and, where possible, *judge*) on one block of configurations; an object so that workers can get it.

    Parameters
    ----------
    frame, draws
        The labels and the weights that choose.
    judge
        Weights that judge: other draws, None for the samples left out of the draw.
    ties, seed, batch
        As in `select_and_judge`.
    keep
        Whether the strategy needs the whole table of scores; nobody is chosen here then.
    here
        Whether the block's winners are judged here, on the same predictions.
    tell
        Whether to report on missing predictions.
    """

    def __init__(
        self,
        frame: Frame,
        draws: Draws,
        judge: Draws | None,
        ties: str,
        seed: int,
        batch: int | None,
        *,
        keep: bool,
        here: bool,
        tell: bool,
    ) -> None:
        self.frame, self.draws, self.judge, self.ties, self.seed = frame, draws, judge, ties, seed
        self.batch, self.keep, self.here, self.tell = batch, keep, here, tell

    def __call__(
        self,
        block: np.ndarray,
        offset: int,
        hashes: np.ndarray | None,
        columns: np.ndarray | None = None,
        tick: Callable[..., Any] | None = None,
    ) -> Chosen:
        """Return the block's winner of every draw; `columns` are the places of eligible configurations in it."""
        seen = scan(block) if self.tell else None
        report = report_on(block, seen) if self.tell else None
        block = block if columns is None else block[..., columns, :]
        draws, judge = self.draws, self.judge
        total = max(draws.total, judge.total if judge is not None else 0.0)
        scorer, check = self.frame.kernel(block, total, seen), self.frame.labels
        times, m = draws.times, block.shape[-2]
        out = _blank(times, m, report, keep=self.keep)
        centre = np.zeros(m)
        assured = isinstance(draws, Bootstrap) and assures(draws, check)
        for start, stop, weights, again in draw_blocks(draws, self.batch, self.frame.metric, len(self.frame.y), m):
            here = slice(start, stop)
            memo = draws.memo(start, stop) if isinstance(draws, Kept) else {}
            if "weights" not in memo:  # all samples go along as one more draw
                ones = np.ones((0 if start else 1, weights.shape[1]), weights.dtype)
                memo["weights"] = Weights(np.concatenate([ones, weights]))
            criterion, score = scorer.criterion(memo["weights"])
            if not start:
                out.score[:] = score[0]
                criterion, score = criterion[1:], score[1:]
                centre = np.nan_to_num(out.score, posinf=0.0, neginf=0.0)
            if "usable" not in memo:
                memo["usable"] = again <= ATTEMPTS if assured else check.chosen(weights)
            out.redrawn[here], out.usable[here] = again, memo["usable"]
            add_deviations(out.deviation, score, centre, out.usable[here])
            gaps = np.isnan(criterion)
            out.defined[here] = ~gaps.all(axis=1)
            if out.scores is not None:
                out.scores[here] = score
            else:
                local = self._winners(
                    out, here, np.where(gaps, -np.inf, criterion) if gaps.any() else criterion, hashes
                )
                out.index[here] = local + offset
                if self.here:
                    right = (weights == 0).view(np.uint8) if judge is None else judge.block(start, stop)[0]
                    if "judged" not in memo:
                        memo["judged"] = memo["usable"] if assured and judge is None else check.chosen(right)
                    with np.errstate(invalid="ignore", over="ignore"):
                        out.value[here] = np.where(memo["judged"], scorer.judged(right, local), np.nan)
            del criterion, score  # else they would stand beside the next block's
            if tick is not None:
                tick(None, stop - start)
        return out

    def _winners(self, out: Chosen, here: slice, criterion: np.ndarray, hashes: np.ndarray | None) -> np.ndarray:
        local = np.argmax(criterion, axis=1)
        top = criterion[np.arange(len(local)), local]
        if hashes is not None:
            numbers = np.arange(here.start, here.stop)
            broken = break_ties(criterion, top, local, hashes, numbers, self.seed)
            local = np.where(out.defined[here], broken, local)
            out.key[here] = tie_keys(hashes[local], numbers, self.seed)
        out.best[here] = top
        return np.asarray(local)


def _blank(times: int, m: int, report: Report | None, *, keep: bool) -> Chosen:
    return Chosen(
        usable=np.zeros(times, bool),
        redrawn=np.zeros(times, int),
        defined=np.zeros(times, bool),
        best=np.full(times, -np.inf),
        index=np.zeros(times, np.int64),
        key=np.zeros(times, np.uint64),
        value=np.full(times, np.nan),
        score=np.empty(m),
        deviation=np.zeros((2, m)),
        scores=np.empty((times, m)) if keep else None,
        report=report,
    )


def merge(blocks: list[Chosen], ties: str) -> Chosen:
    """Merge blocks in configuration order: the better one wins, ties go to the smaller key or to the first."""
    first = blocks[0]
    if len(blocks) == 1:
        return first
    defined, best, index, key, value = first.defined, first.best, first.index, first.key, first.value
    for block in blocks[1:]:
        better = (block.best > best) | (block.defined & ~defined)
        if ties == "random":
            better |= block.defined & (block.best == best) & (block.key < key)
        best, index = np.where(better, block.best, best), np.where(better, block.index, index)
        key, value = np.where(better, block.key, key), np.where(better, block.value, value)
        defined = defined | block.defined
    scores = None
    if first.scores is not None:
        scores = np.concatenate([block.scores for block in blocks if block.scores is not None], axis=1)
    score = np.concatenate([block.score for block in blocks])
    deviation = np.concatenate([block.deviation for block in blocks], axis=1)
    return Chosen(first.usable, first.redrawn, defined, best, index, key, value, score, deviation, scores, None)


class Judge:
    """*Judge* the draws whose winners lie in one block of configurations; an object so that workers can get it."""

    def __init__(
        self, frame: Frame, draws: Draws, judge: Draws | None, shift: np.ndarray | None, batch: int | None
    ) -> None:
        self.frame, self.draws, self.judge, self.shift, self.batch = frame, draws, judge, shift, batch

    def __call__(self, block: np.ndarray, numbers: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Return the value of the winner, configuration ``place`` of the block, of the draws in `numbers`."""
        winners, place = np.unique(place, return_inverse=True)
        total = max(self.draws.total, self.judge.total if self.judge is not None else 0.0)
        scorer, check = self.frame.kernel(block[..., winners, :], total), self.frame.labels
        value = np.empty(len(numbers))
        for start, stop, weights, _ in draw_blocks(
            self.draws, self.batch, self.frame.metric, self.draws.n, len(winners), self.judge is None
        ):
            here = slice(*np.searchsorted(numbers, (start, stop)))
            rows = numbers[here] - start
            if not rows.size:
                continue
            if self.judge is not None:
                right = self.judge.block(start, stop)[0][rows]
            else:
                right = (weights[rows] == 0).view(np.uint8)
                right = right if self.shift is None else right[:, self.shift]
            with np.errstate(invalid="ignore", over="ignore"):
                value[here] = np.where(check.chosen(right), scorer.judged(right, place[here]), np.nan)
        return value


def assures(draws: Bootstrap, check: LabelCheck) -> bool:
    """Return whether draws were drawn until they could both choose and judge, by the very rules of `check`."""
    rule = getattr(draws.usable, "__self__", None)
    name = getattr(draws.usable, "__name__", "")
    return isinstance(rule, LabelCheck) and name == "pair" and rule.same(check)


def add_deviations(deviation: np.ndarray, score: np.ndarray, centre: np.ndarray, ok: np.ndarray) -> None:
    """Add up deviations of the score from `centre` quantum by quantum, an order that no batch size changes."""
    with np.errstate(invalid="ignore", over="ignore"):
        gap = score - centre
        if not ok.all():
            gap = np.where(ok[:, None], gap, 0.0)
        whole = len(gap) // QUANTUM * QUANTUM
        table = gap[:whole].reshape(-1, QUANTUM, gap.shape[1])
        for moment in range(2):
            if moment:
                gap = np.multiply(gap, gap, out=gap)
                table = gap[:whole].reshape(-1, QUANTUM, gap.shape[1])
            part = _rows_added(table.swapaxes(0, 1)) if whole else gap[:0]
            for row in part:
                deviation[moment] += row
            if whole < len(gap):
                deviation[moment] += _rows_added(gap[whole:])


def _rows_added(rows: np.ndarray) -> np.ndarray:
    """Return the sum along the first axis, one by one (numpy's own order of addition depends on the shape)."""
    total = rows[0].copy()
    for row in rows[1:]:
        total += row
    return np.asarray(total)


def draw_blocks(
    draws: Draws, batch: int | None, metric: Metric, n: int, m: int, need: bool = True
) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
    """Yield (start, stop, weights, times redrawn) in blocks of draws that bound memory; `need` is for the weights."""
    wide, width = (1024, n // 2 + 2 * m) if metric.family == "rank" else (512, n + 2 * m)
    step = batch or max(QUANTUM, min(wide, CELLS // max(1, width) // QUANTUM * QUANTUM))
    nothing = np.empty((0, 0), np.int32), np.empty(0, int)
    for start in range(0, draws.times, step):
        stop = min(start + step, draws.times)
        yield start, stop, *(draws.block(start, stop) if need else nothing)
