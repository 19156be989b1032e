"""The race behind early dropping: how often each configuration is worse than the best so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError
from cvstats.cube.arrays import problem
from cvstats.cube.blocks import parts_of
from cvstats.cube.make import is_lazy
from cvstats.judge import CELLS
from cvstats.kernels import Kernel, Problem, kernel
from cvstats.kernels.usable import LabelCheck
from cvstats.metrics import Metric
from cvstats.resample import QUANTUM, Bootstrap, Given, check_nested, group_codes, strata_codes
from cvstats.select import Select, needs_std_error, select_best

from .bootstrap import CLASS_METRICS

HEAT = 4 * QUANTUM  # draws after which configurations that can no longer be dropped leave the race


@dataclass(frozen=True)
class Ruling:
    """One decision: the share of draws in which each configuration was worse than the best, and the best."""

    p_worse: np.ndarray  # (configuration,); NaN for those that are not, or no longer, in the race
    best: int | None


def timetable(cube: xr.DataArray) -> np.ndarray:
    """Return (sample, repeat): the number of the fold that made it, repeat-major, folds in sorted order."""
    repeats = cube.sizes.get("repeat", 1)
    table = cube["fold"].transpose("sample", ...).values.reshape(cube.sizes["sample"], -1)
    codes, names = pd.factorize(table.ravel(), sort=True)
    codes = np.broadcast_to(codes.reshape(table.shape), (len(table), repeats))
    return np.asarray(codes + len(names) * np.arange(repeats))


class Race:
    """The configurations of a cube without batch dims, compared on any part of its predictions."""

    def __init__(self, cube: xr.DataArray, metric: Metric, times: int, seed: int, select: Select, strata: Any) -> None:
        if any(dim in cube.dims for dim in ("partner", "inner_repeat")):
            raise InputError("early dropping is defined for ordinary folds, not for a cube with partners.")
        self.metric, self.times, self.seed, self.select = metric, times, seed, select
        self.size = cube.sizes["configuration"]
        self.complexity = cube["complexity"].values.astype(float) if "complexity" in cube.coords else None
        self.group, self.strata = layers(cube, metric, strata)
        self.lazy = is_lazy(cube)
        self.whole: Given | None = None
        parts = parts_of(cube, np.ones(self.size, bool))
        ends = np.cumsum([part.sizes["configuration"] for part in parts])
        self.columns = [
            np.arange(end - part.sizes["configuration"], end) for part, end in zip(parts, ends, strict=True)
        ]
        self.parts: list[Any] = parts if self.lazy else [problem(part, metric) for part in parts]

    def data(self) -> Iterator[tuple[np.ndarray, Problem]]:
        """Yield the columns and arrays of each block of configurations; dask's blocks are loaded one at a time."""
        for columns, part in zip(self.columns, self.parts, strict=True):
            yield columns, problem(part.compute(), self.metric) if self.lazy else part

    def predicted(self) -> np.ndarray:
        """Return (sample, repeat): whether somebody predicted it."""
        out = np.logical_or.reduce([_filled(data).any(axis=1) for _, data in self.data()])
        if not out.any():
            raise InputError("`cube` holds no predictions: every value is NaN.")
        return np.asarray(out)

    def complete(self, present: np.ndarray) -> np.ndarray:
        """Return (configuration,): whether it has every prediction in `present` (sample, repeat)."""
        out = np.empty(self.size, bool)
        for columns, data in self.data():
            out[columns] = (_filled(data) | ~present[:, None, :]).all(axis=(0, 2))
        return out

    def trained(self, step: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Return (step, configuration): whether it has every prediction that somebody has in that fold."""
        out = np.ones((len(steps), self.size), bool)
        present = self.predicted()
        for columns, data in self.data():
            filled = _filled(data)
            if not filled.all():
                for number, name in enumerate(steps):
                    now = present & (step == name)
                    out[number, columns] = (filled | ~now[:, None, :]).all(axis=(0, 2))
        return out

    def rule(
        self,
        present: np.ndarray,
        alive: np.ndarray,
        *,
        threshold: float | None = None,
        given: np.ndarray | None = None,
    ) -> Ruling:
        """Compare the configurations in `alive` with the best of them on the predictions in `present`.

        With a threshold, no draws are spent on configurations that can no longer exceed it; their p is NaN.
        """
        rows = np.asarray(present.any(axis=1))
        mask = present[rows]
        p_worse = np.full(self.size, np.nan)
        first = next(_part(data, rows, np.array([0]), mask) for _, data in self.data())
        check = LabelCheck.of(self.metric, first)
        if not check.chosen(np.ones((1, first.n), np.int32))[0]:
            return Ruling(p_worse, None)
        source = self._draws(rows, check) if given is None else Given(given[:, rows])
        kept = [] if self.lazy else list(self._heats(rows, mask, alive, source))

        def heats() -> Iterable[_Heat]:
            return self._heats(rows, mask, alive, source) if self.lazy else kept

        best = self._best(heats(), source)
        if best is None:
            return Ruling(p_worse, None)
        column = next(heat.only(best) for heat in heats() if best in heat.racing)
        for heat in heats():
            p_worse[heat.racing] = heat.share_worse(best, column, source, check, threshold)
        return Ruling(p_worse, best)

    def _heats(
        self, rows: np.ndarray, mask: np.ndarray, alive: np.ndarray, source: Bootstrap | Given
    ) -> Iterator[_Heat]:
        for columns, data in self.data():
            racing = columns[alive[columns]]
            if racing.size:
                part = _part(data, rows, racing - columns[0], mask)
                yield _Heat(self.metric, racing, part, kernel(self.metric, part, source.total))

    def _draws(self, rows: np.ndarray, check: LabelCheck) -> Bootstrap | Given:
        """Return draws of the samples in `rows`; those of all samples serve every later repeat."""
        if rows.all() and self.whole is not None:
            return self.whole

        def pick(codes: np.ndarray | None) -> Any:
            return None if codes is None else np.unique(codes[rows], return_inverse=True)[1]

        group, strata = pick(self.group), pick(self.strata)
        draws = Bootstrap(int(rows.sum()), self.times, self.seed, group=group, strata=strata, usable=check.chosen)
        if rows.all() and self.times * draws.n <= CELLS:
            self.whole = Given(draws.block(0, self.times)[0])
            return self.whole
        return draws

    def _best(self, heats: Iterable[_Heat], source: Bootstrap | Given) -> int | None:
        """Return the configuration that `select` takes on the predictions so far."""
        scores, error = np.full(self.size, np.nan), np.full(self.size, np.nan)
        for heat in heats:
            scores[heat.racing] = heat.scorer.scores(np.ones((1, heat.data.n), np.int32))[0]
            if needs_std_error(self.select):
                table = [heat.scorer.scores(weights) for weights in between(source, 0, source.times, heat.data)]
                error[heat.racing] = np.nanstd(np.concatenate(table), axis=0, ddof=1)
        if np.isnan(scores).all():
            return None
        options = {"std_error": error, "complexity": self.complexity} if self.select is not select_best else {}
        return int(self.select(scores, direction=self.metric.direction, **options))


@dataclass(frozen=True)
class _Heat:
    """A block of configurations in the race: their labels' positions, their predictions so far, and a kernel."""

    metric: Metric
    racing: np.ndarray
    data: Problem
    scorer: Kernel

    def only(self, configuration: int) -> Problem:
        """Return the predictions of one configuration."""
        return self.data.columns(np.flatnonzero(self.racing == configuration))

    def share_worse(
        self, best: int, column: Problem, source: Bootstrap | Given, check: LabelCheck, threshold: float | None
    ) -> np.ndarray:
        """Return, per configuration, the share of usable draws in which its loss exceeds the best's.

        The best is compared as a column of the same kernel, so that sums are on one scale and ties are exact.
        """
        data, shift = self.data, 0
        scorer: Kernel | None = self.scorer
        if best not in self.racing:
            data, scorer, shift = replace(data, p=np.concatenate([column.p, data.p], axis=-2)), None, 1
        at = 0 if shift else int(np.flatnonzero(self.racing == best)[0])
        left = np.arange(len(self.racing)) + shift
        worse = np.zeros(len(left) + shift)
        usable = 0
        edges = [0, source.times] if threshold is None or source.times <= HEAT else [0, HEAT, source.times]
        for start, stop in pairwise(edges):
            running = left if shift == 0 and start == 0 else np.concatenate([[at], left])
            if start or scorer is None:
                scorer = kernel(self.metric, data.columns(running), source.total)
            place = at if running is left else 0
            for weights in between(source, start, stop, data):
                ok = check.chosen(weights)
                with np.errstate(invalid="ignore", over="ignore"):
                    value = scorer.criterion(weights)[0]
                    lost = (value < value[:, place : place + 1])[:, -len(left) :]
                worse[left] += (lost if ok.all() else lost & ok[:, None]).sum(axis=0)
                usable += int(ok.sum())
            if threshold is not None and stop < source.times:
                rest = source.times - stop
                hopeless = (worse[left] + rest) / (usable + rest) <= threshold
                worse[left[hopeless]] = np.nan  # cannot be dropped any more
                left = left[~hopeless]
                if not left.size:
                    break
        return worse[shift:] / usable if usable else np.full(len(self.racing), np.nan)


def between(source: Bootstrap | Given, start: int, stop: int, data: Problem) -> Iterator[np.ndarray]:
    """Yield the weights of the draws from `start` to `stop` in blocks that bound memory."""
    width = data.n + data.p.shape[-2] * data.p.shape[-1]
    step = max(QUANTUM, min(512, CELLS // width // QUANTUM * QUANTUM))
    for low in range(start, stop, step):
        yield source.block(low, min(low + step, stop))[0]


def layers(cube: xr.DataArray, metric: Metric, strata: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the codes of groups and strata; ``"auto"`` draws within class for metrics that need every class."""
    group = group_codes(cube, None)
    automatic = isinstance(strata, str) and strata == "auto"
    if automatic:
        strata = "label" if metric.requires in CLASS_METRICS and cube["label"].dims == ("sample",) else None
    layer = strata_codes(cube, strata)
    try:
        check_nested(group, layer)
    except InputError:
        if not automatic:
            raise
        layer = None
    return group, layer


def _filled(data: Problem) -> np.ndarray:
    """Return (sample, configuration, repeat): whether there is a prediction."""
    gaps = np.isnan(data.p)
    return np.asarray(~(gaps.any(axis=0) if data.p.ndim == 4 else gaps))


def _part(data: Problem, rows: np.ndarray, columns: np.ndarray, mask: np.ndarray) -> Problem:
    """Return the predictions in `mask` (row, repeat) of some columns, as if no others had been made."""
    begun = int(np.flatnonzero(mask.any(axis=0))[-1]) + 1
    mask = mask[:, :begun]
    p = data.p[..., :begun]
    p = p if len(columns) == p.shape[-2] else p[..., columns, :]
    p = p if rows.all() else p[..., rows, :, :]
    p = p if mask.all() else np.where(mask[:, None, :], p, np.nan)
    return replace(
        data,
        y=data.y[rows],
        p=p,
        weight=None if data.weight is None else data.weight[rows],
        event=None if data.event is None else data.event[rows],
    )
