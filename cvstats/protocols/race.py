"""The race behind early dropping: how often each configuration is worse than the best so far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError
from cvstats.cube.blocks import map_blocks, problem_on
from cvstats.judge import scored
from cvstats.kernels import Problem
from cvstats.kernels.problem import LabelCheck
from cvstats.metrics import Metric
from cvstats.resample import PIECE, Bootstrap, Draws, Given, Part, given_draws, label_check, units_of
from cvstats.select import Select, needs_std_error

HEAT = PIECE  # draws after which configurations that can no longer be dropped leave the race


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
    """The configurations of a cube without batch dims, compared on any part of its predictions.

    Attributes
    ----------
    present : (sample, repeat) whether somebody predicted it.
    steps : the folds, in order, in which somebody predicted something; `step` (sample, repeat) says which made it.
    trained : (step, configuration) whether it has every prediction that somebody has in that fold.
    """

    def __init__(self, cube: xr.DataArray, metric: Metric, select: Select, step: np.ndarray | None = None) -> None:
        if any(dim in cube.dims for dim in ("partner", "inner_repeat")):
            raise InputError("early dropping is defined for ordinary folds, not for a cube with partners.")
        self.metric, self.select, self.check = metric, select, label_check(cube, metric)
        shape = cube.sizes["sample"], cube.sizes.get("repeat", 1)
        self.step = np.zeros(shape, int) if step is None else step
        steps = np.unique(self.step)
        problem = problem_on(cube, metric, compete=False)
        self.data, parts = map_blocks(lambda known: _Presence(self.step[known.rows], steps), problem)
        self.present = np.zeros(shape, bool)
        self.present[self.data.rows] = np.logical_or.reduce([some for some, _ in parts])
        wanted = np.array([(self.present & (self.step == name)).sum() for name in steps])
        count = np.concatenate([count for _, count in parts], axis=1)
        self.steps, self.trained = steps[wanted > 0], (count == wanted[:, None])[wanted > 0]

    def draws(self, cube: xr.DataArray, given: xr.DataArray | None, times: int, seed: int, strata: Any) -> Draws:
        """Return the draws of every ruling; those of all samples are made once."""
        if given is not None:
            return given_draws(given, cube)
        group, layer = units_of(cube, self.metric, strata)
        n, check = cube.sizes["sample"], self.check
        return Bootstrap(n, times, seed, group=group, strata=layer, check=check, judging=False).remembered()

    def rule(self, draws: Draws, present: np.ndarray, alive: np.ndarray, threshold: float | None = None) -> Ruling:
        """Compare the configurations in `alive` with the best of them on the predictions in `present`.

        With a threshold, no draws are spent on configurations that can no longer exceed it; their p is NaN.
        """
        data = self._part(present, alive)
        check = self.check.on(data.rows)
        everything = Given(np.ones((1, draws.n), np.int32))
        racing, columns, worse, usable = alive, np.flatnonzero(alive), np.full(len(alive), np.nan), 0
        if not check.chosen(everything.on(data.rows).values)[0]:
            return Ruling(worse, None)
        edges = [0, draws.times] if threshold is None or draws.times <= HEAT else [0, HEAT, draws.times]
        _, (plain, table) = scored(self.metric, data, everything, Part(draws, 0, edges[1]))
        best = self._best(data, plain[0], draws)
        if best is None:
            return Ruling(worse, None)
        left = columns
        worse[left] = 0.0
        for start, stop in pairwise(edges):
            if start:  # the best runs along
                racing = np.isin(np.arange(len(alive)), [*left, best])
                columns = np.flatnonzero(racing)
                _, (table,) = scored(self.metric, replace(data, eligible=racing), Part(draws, start, stop))
            value = self.metric.sign * table
            lost = (value < value[:, columns == best]).sum(axis=0)
            worse[left] += lost[np.searchsorted(columns, left)]
            usable += _count_usable(Part(draws, start, stop).on(data.rows), check)
            rest = draws.times - stop
            if rest and threshold is not None:
                hopeless = (worse[left] + rest) / (usable + rest) <= threshold
                worse[left[hopeless]] = np.nan  # cannot be dropped any more
                left = left[~hopeless]
                if not left.size:
                    break
        return Ruling(worse / usable if usable else np.full(len(alive), np.nan), best)

    def _part(self, present: np.ndarray, alive: np.ndarray) -> Problem:
        """Return the predictions in `present` of the configurations in `alive`, as if no others had been made."""
        rows = np.asarray(present.any(axis=1))
        begun = int(np.flatnonzero(present.any(axis=0))[-1]) + 1
        present = present[:, :begun]
        data, whole = self.data.repeats(slice(begun)), bool(present[rows].all())
        p = data.p if whole else np.where(present[:, None, :], data.p, np.nan)
        return replace(data, p=p, rows=rows, eligible=alive, gaps=not whole)

    def _best(self, data: Problem, plain: np.ndarray, draws: Draws) -> int | None:
        """Return the configuration that `select` takes on the predictions so far."""
        places, error = np.flatnonzero(data.eligible), None
        scores = np.full(len(data.eligible), np.nan)
        scores[places] = plain
        if np.isnan(scores).all():
            return None
        if needs_std_error(self.select):
            error = np.full(len(scores), np.nan)
            error[places] = np.nanstd(scored(self.metric, data, draws)[1][0], axis=0, ddof=1)
        return int(self.select(scores, direction=self.metric.direction, std_error=error, complexity=data.complexity))


@dataclass(frozen=True)
class _Presence:
    """Who predicted what in a block of configurations; an object so that workers can receive it."""

    step: np.ndarray
    steps: np.ndarray

    def __call__(self, block: Problem, *_: Any) -> tuple[np.ndarray, np.ndarray]:
        filled = block.filled().transpose(0, 2, 1)
        return np.asarray(filled.any(axis=2)), np.stack([filled[self.step == name].sum(axis=0) for name in self.steps])


def _count_usable(draws: Draws, check: LabelCheck) -> int:
    starts = range(0, draws.times, PIECE)
    return sum(int(check.chosen(draws.block(at, min(at + PIECE, draws.times))[0]).sum()) for at in starts)
