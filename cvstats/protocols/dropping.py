"""Early dropping: stop training configurations that are almost certainly worse than the current best (BBCD)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, Rng, check_count, check_level, entropy, is_number, show
from cvstats._results import call_text, names_of, result
from cvstats.cube.arrays import check_cube, check_form, map_batches, map_blocks, problem_on
from cvstats.cube.coords import folds_of
from cvstats.intervals import get_method
from cvstats.judge import Rules, scored
from cvstats.kernels import Problem
from cvstats.metrics import Metric, metrics_of, score
from cvstats.resample import QUANTUM, Draws, Given, Part, given_draws, label_check, make_draws
from cvstats.select import Select, choose, needs_std_error, select_best

from .bootstrap import Request, assemble, bootstrap_run, finished
from .common import final_choice, warn_once
from .registry import needs_folds, protocol


@protocol("bbcd", "BBCD-CV", "each draw, among the survivors", "samples left out of the draw", applies=needs_folds)
def bbcd(
    cube: xr.DataArray,
    metric: str | Metric,
    *,
    threshold: float = 0.99,
    min_predictions: int = 50,
    draws: xr.DataArray | None = None,
    times: int = 1000,
    rng: Rng = None,
    level: float = 0.95,
    interval: Any = "percentile",
    ties: str = "first",
    select: Select = select_best,
    strata: Any = None,
    keep_draws: bool = False,
    batch: int | None = None,
    progress: bool = False,
) -> xr.Dataset:
    r"""Replay early dropping on a saved cube, then return the BBC estimate over the survivors (BBCD-CV).

    Folds are taken in order, repeat by repeat. After each but the last, the predictions so far are bootstrapped, and
    configuration j is dropped (no more models are trained for it) when its loss exceeds that of the current best,
    :math:`j_0`, in more than the share `threshold` of the draws:

    .. math:: \hat p_j = \tfrac1B \, \#\{b : l(y_b, \Pi_b(\cdot, j)) > l(y_b, \Pi_b(\cdot, j_0))\}.

    It saves time, not bias: with few samples good configurations are dropped by bad luck in the first folds, hence
    `min_predictions`. The estimand is that of `bbc`, for the winner among the survivors, which may differ from the
    winner of the whole cube; ``cost`` says by how much. Each test is made in isolation and takes the current best as
    given, so p is a screening rule, not a p-value. With a metric that is not a mean (AUC) a repeat that has just begun
    counts as much as a finished one; draws in which it lacks a class never count as worse.

    Parameters
    ----------
    cube : DataArray
        Predictions with folds. A configuration without predictions that others have counts as dropped before that fold,
        so a cube saved while dropping can be replayed.
    metric : str or Metric
        Name, such as ``"auc"``, or metric.
    threshold : float
        Drop when p is strictly above it; 1 never drops, and the result is that of `bbc`.
    min_predictions : int
        Samples that must be predicted before the first drop.
    draws : DataArray, optional
        Weights for the final BBC only; dropping draws with `rng`.
    times, rng, level, interval, ties, select, strata, keep_draws, batch, progress : as in `bbc`
        As in `bbc`. `select` also names the current best, and `strata` serves both bootstraps.

    Returns
    -------
    xarray.Dataset
        The variables of `bbc`; ``dropped_after(configuration)`` (number of folds trained, NaN = never dropped),
        ``p_worse(configuration)`` (when it was dropped, or last computed), ``models_trained``, ``speed_up`` (models of
        the whole cube over models trained), ``full_selected`` and ``full_naive`` (the winner of the whole cube and
        its score), ``cost`` (how much better that score is than ``naive``: what dropping cost).

    References
    ----------
    Tsamardinos, Greasidou, Borboudakis (2018), doi:10.1007/s10994-018-5714-4, section 4.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.simulate_cube(500, 100, rng=1)
    >>> out = cs.bbcd(cube, "accuracy", times=500, rng=1)
    >>> bool(out.speed_up > 2), bool(out.cost >= 0)
    (True, True)
    """
    check_form(cube)
    folds_of(cube, "bbcd")
    notes: list[str] = []
    (found,), _ = metrics_of([metric], None, cube, notes)
    threshold = _check_threshold(threshold)
    least = check_count(min_predictions, "min_predictions", minimum=0)
    rules = Rules(select, ties, entropy(rng), batch, progress)
    asked = Request(
        (found,), found, draws, times, strata, check_level(level), get_method(interval), rules, keep_draws, notes
    )

    def one(part: xr.DataArray, own: xr.DataArray) -> xr.Dataset:
        race = Race(part, found, select, timetable(part))
        alive, replay = race.replay(race.draws(part, None, asked.times, rules.seed, strata), threshold, least)
        kept = part.isel(configuration=alive)
        run = bootstrap_run(kept, asked, own.isel(configuration=alive))
        out = assemble(run, kept, asked, "bbcd")
        full = final_choice(part, found, select=select, scores=own)
        cost = found.sign * (full.value - run.choice.value)
        out = out.reindex(configuration=part["configuration"].values, fill_value={"win_rate": 0.0})
        return out.assign({**replay, "full_selected": full.label, "full_naive": full.value, "cost": cost})

    out = map_batches(one, cube, score(cube, found))
    given = {"threshold": threshold, "min_predictions": least, "draws": draws, "times": times, "rng": rng}
    return finished("bbcd", asked, out, cube, **given, level=level, ties=ties, strata=strata)


def drop_configurations(
    cube: xr.DataArray,
    metric: str | Metric,
    *,
    threshold: float = 0.99,
    min_predictions: int = 0,
    draws: xr.DataArray | None = None,
    times: int = 1000,
    rng: Rng = None,
    select: Select = select_best,
    strata: Any = None,
) -> xr.Dataset:
    """Say which configurations are worth training on the next fold: the live form of `bbcd`.

    Call it after every fold with the predictions so far (NaN for what is not predicted yet) and stop training what it
    does not keep. With one seed, a loop of calls drops what `bbcd` drops on the finished cube.

    Parameters
    ----------
    cube : DataArray
        The predictions so far. Configurations that lack predictions others have were dropped before and stay so.
    metric : str or Metric
        Metric.
    threshold : float
        Drop when the share of draws with a greater loss than the current best's is strictly above it.
    min_predictions : int
        Keep everything until so many samples are predicted (`bbcd` uses 50, and so should you).
    draws, times, rng, select, strata : as in `bbc`
        As in `bbc`.

    Returns
    -------
    xarray.Dataset
        ``keep(configuration)``, ``p_worse(configuration)`` (NaN for those dropped before, and when there are too few
        predictions or the metric is undefined), and ``best``, the current best (empty or NaN when there
        is none).

    References
    ----------
    Tsamardinos, Greasidou, Borboudakis (2018), doi:10.1007/s10994-018-5714-4, section 4.1.

    Examples
    --------
    >>> import numpy as np, cvstats as cs
    >>> label = np.arange(60) % 2
    >>> good, poor = label.copy(), label.copy()
    >>> good[:3], poor[:20] = 1 - good[:3], 1 - poor[:20]
    >>> cube = cs.as_cube(np.stack([good, poor], axis=1), label, configurations=["good", "poor"])
    >>> cs.drop_configurations(cube, "accuracy", rng=1).keep.values
    array([ True, False])
    """
    check_cube(cube)
    notes: list[str] = []
    (found,), _ = metrics_of([metric], None, cube, notes)
    warn_once("drop_configurations", notes)
    threshold = _check_threshold(threshold)
    least = check_count(min_predictions, "min_predictions", minimum=0)
    times, seed = check_count(times, "times"), entropy(rng)

    def one(part: xr.DataArray) -> xr.Dataset:
        race = Race(part, found, select)
        alive = race.trained.all(axis=0)
        if not alive.any():
            raise InputError(_NOBODY)
        p_worse, best = np.full(len(alive), np.nan), -1
        if int(race.present.any(axis=1).sum()) >= least:
            p_worse, best = race.rule(race.draws(part, draws, times, seed, strata), race.present, alive)
        variables = {
            "keep": ("configuration", alive & ~(p_worse > threshold)),
            "p_worse": ("configuration", p_worse),
            "best": names_of(part["configuration"].values, best),
        }
        return xr.Dataset(variables, coords={"configuration": part["configuration"].variable})

    out = map_batches(one, cube)
    call = call_text("drop_configurations", metric=found.name, threshold=threshold, draws=draws, times=times, rng=rng)
    return result(out, method="drop_configurations", metric=found.name, call=call, cube=cube)


_NOBODY = (
    "no configuration predicted everything (every sample, in every repeat) that any configuration predicted, so all "
    "count as dropped. Drop samples, repeats or configurations with gaps."
)

HEAT = 4 * QUANTUM  # draws after which configurations that can no longer be dropped leave the race


def timetable(cube: xr.DataArray) -> np.ndarray:
    """Return when each sample of each repeat is predicted: folds in order, repeat-major."""
    repeats = cube.sizes.get("repeat", 1)
    table = cube["fold"].transpose("sample", ...).values.reshape(cube.sizes["sample"], -1)
    codes, names = pd.factorize(table.ravel(), sort=True)
    codes = np.broadcast_to(codes.reshape(table.shape), (len(table), repeats))
    return np.asarray(codes + len(names) * np.arange(repeats))


def presence(step: np.ndarray, steps: np.ndarray, block: Problem, *_: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return what somebody in a block predicted (sample, repeat), and how much each did per step (step, column)."""
    filled, step = block.filled().transpose(0, 2, 1), step[block.rows]
    return np.asarray(filled.any(axis=2)), np.stack([filled[step == name].sum(axis=0) for name in steps])


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
            raise InputError(
                "early dropping is defined for ordinary folds, not for a cube with partners: there a sample is "
                "complete only when the models of all pairs of folds are trained. Use bbc()."
            )
        self.metric, self.select, self.check = metric, select, label_check(cube, metric)
        shape = cube.sizes["sample"], cube.sizes.get("repeat", 1)
        self.step = step = np.zeros(shape, int) if step is None else step
        steps, problem = np.unique(step), problem_on(cube, metric, compete=False)
        self.data, parts = map_blocks(partial(presence, step, steps), problem)
        self.present = np.zeros(shape, bool)
        self.present[self.data.rows] = np.logical_or.reduce([some for some, _ in parts])
        wanted = np.array([(self.present & (step == name)).sum() for name in steps])
        count = np.concatenate([count for _, count in parts], axis=1)
        self.steps, self.trained = steps[wanted > 0], (count == wanted[:, None])[wanted > 0]

    def draws(self, cube: xr.DataArray, given: xr.DataArray | None, times: int, seed: int, strata: Any) -> Draws:
        """Return the draws of every ruling; those of all samples are made once."""
        if given is not None:
            return given_draws(given, cube)
        check = replace(self.check, judging=False)
        return make_draws(cube, self.metric, times, seed, strata, check).remembered()

    def replay(self, draws: Draws, threshold: float, least: int) -> tuple[np.ndarray, dict[str, Any]]:
        """Return who survives all folds, and what a result says of the race; a gap counts as dropped there."""
        has, last = self.trained, len(self.steps)
        alive = np.ones(has.shape[1], bool)
        dropped, p_worse = np.full(len(alive), np.nan), np.full(len(alive), np.nan)
        for number, name in enumerate(self.steps, 1):
            gone = alive & ~has[number - 1]
            dropped[gone], alive[gone] = number - 1, False
            if not alive.any():
                raise InputError(_NOBODY)
            so_far = self.present & (self.step <= name)
            if number == last or int(so_far.any(axis=1).sum()) < least:
                continue
            p, _ = self.rule(draws, so_far, alive, threshold if number < last - 1 else None)
            p_worse = np.where(np.isnan(p), p_worse, p)
            out = alive & (p > threshold)
            dropped[out], alive[out] = number, False
        available = np.where(has.all(axis=0), last, np.argmin(has, axis=0))
        trained = np.fmin(dropped, available).astype(int)
        return alive, {
            "dropped_after": ("configuration", dropped),
            "p_worse": ("configuration", p_worse),
            "models_trained": int(trained.sum()),
            "speed_up": float(available.sum() / trained.sum()),
        }

    def rule(
        self, draws: Draws, present: np.ndarray, alive: np.ndarray, threshold: float | None = None
    ) -> tuple[np.ndarray, int]:
        """Compare the configurations in `alive` with the best of them on the predictions in `present`.

        Returns how often each is worse, NaN for those that are not in the race, and the best, -1 without one. With a
        threshold, no draws are spent on configurations that can no longer exceed it; their p is NaN.
        """
        data, worse, usable = self._part(present, alive), np.full(len(alive), np.nan), 0
        everything = Given(np.ones((1, draws.n), np.int32))
        if not self.check.on(data.rows).chosen(np.ones((1, int(data.rows.sum()))))[0]:
            return worse, -1
        edges = [0, draws.times] if threshold is None or draws.times <= HEAT else [0, HEAT, draws.times]
        _, (plain, table) = scored(self.metric, data, everything, Part(draws, 0, edges[1]))
        best = self._best(data, plain[0], draws)
        if best < 0:
            return worse, -1
        columns = left = np.flatnonzero(alive)
        worse[left] = 0.0
        for start, stop in pairwise(edges):
            if start:  # the best runs along
                columns = np.union1d(left, best)
                racing = replace(data, eligible=np.isin(np.arange(len(alive)), columns))
                _, (table,) = scored(self.metric, racing, Part(draws, start, stop))
            own = table[:, columns == best]
            lost = (table < own if self.metric.sign > 0 else table > own).sum(axis=0)
            worse[left] += lost[np.searchsorted(columns, left)]
            doubtful = table[np.isnan(own[:, 0])]  # without a value of the best, another may have one
            usable += len(table) - int(np.isnan(doubtful).all(axis=1).sum())
            rest = draws.times - stop
            if rest and threshold is not None:
                hopeless = (worse[left] + rest) / (usable + rest) <= threshold
                worse[left[hopeless]] = np.nan  # cannot be dropped any more
                left = left[~hopeless]
                if not left.size:
                    break
        return worse / usable if usable else np.full(len(alive), np.nan), best

    def _part(self, present: np.ndarray, alive: np.ndarray) -> Problem:
        """Return the predictions in `present` of the configurations in `alive`, as if no others had been made."""
        rows = np.asarray(present.any(axis=1))
        begun = int(np.flatnonzero(present.any(axis=0))[-1]) + 1
        present = present[:, :begun]
        data, whole = self.data.repeats(slice(begun)), bool(present[rows].all())
        p = data.p if whole else np.where(present[:, None, :], data.p, np.nan)
        return replace(data, p=p, rows=rows, eligible=alive, gaps=not whole)

    def _best(self, data: Problem, plain: np.ndarray, draws: Draws) -> int:
        """Return the configuration that `select` takes on the predictions so far."""
        scores, error = np.full((2, len(data.eligible)), np.nan)
        scores[data.eligible] = plain
        if np.isnan(plain).all():
            return -1
        if needs_std_error(self.select):
            error[data.eligible] = np.nanstd(scored(self.metric, data, draws)[1][0], axis=0, ddof=1)
        return choose(data, scores, self.metric.direction, self.select, error).index


def _check_threshold(threshold: object) -> float:
    if not is_number(threshold) or not 0 < threshold <= 1:
        raise InputError(f"`threshold` must be a probability in (0, 1], such as 0.99; got {show([threshold])}.")
    return float(threshold)
