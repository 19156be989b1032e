"""Early dropping: stop training configurations that are almost certainly worse than the current best (BBCD)."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, Rng, check_count, check_level, entropy, show
from cvstats._results import call_text, names_of, result
from cvstats.cube.align import map_batches
from cvstats.cube.make import check_cube, check_form
from cvstats.intervals import get_method
from cvstats.judge import Rules
from cvstats.metrics import Metric, bound_metric, score
from cvstats.resample import Draws
from cvstats.select import Select, select_best

from .bootstrap import Request, assemble, bootstrap_run, warn_once
from .common import final_choice, folds_of, optimism
from .race import Race, Ruling, timetable
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
    found = bound_metric(metric, cube, notes)
    threshold = _check_threshold(threshold)
    least = check_count(min_predictions, "min_predictions", minimum=0)
    rules = Rules(select, ties, entropy(rng), batch, progress)
    asked = Request(found, draws, times, strata, check_level(level), get_method(interval), rules, keep_draws, notes)
    labels = asked.labels("bbcd")

    def one(part: xr.DataArray, own: xr.DataArray | None) -> xr.Dataset:
        race = Race(part, found, select, timetable(part))
        replay = _replay(race, race.draws(part, None, times, rules.seed, strata), threshold, least)
        alive, trained = replay["alive"], replay["trained"]
        kept = part.isel(configuration=alive)
        run = bootstrap_run(kept, asked, None if own is None else own.isel(configuration=alive))
        out = assemble(run, kept, asked).assign_coords(labels)
        full = final_choice(part, found, select=select, scores=own)
        variables = {
            "dropped_after": ("configuration", replay["dropped_after"]),
            "p_worse": ("configuration", replay["p_worse"]),
            "models_trained": int(trained.sum()),
            "speed_up": float(replay["available"].sum() / trained.sum()),
            "full_selected": full.label,
            "full_naive": full.value,
            "cost": optimism(found, full.value, run.choice.value),
        }
        return out.reindex(configuration=part["configuration"].values, fill_value={"win_rate": 0.0}).assign(variables)

    out = map_batches(one, cube, score(cube, found))
    warn_once("bbcd", [*asked.doubts.notes(), *notes])
    call = call_text(
        "bbcd",
        metric=found.name,
        threshold=threshold,
        min_predictions=least,
        draws=draws,
        times=times,
        rng=rng,
        level=level,
        ties=ties,
        strata=strata,
    )
    return result(out, **labels, call=call, cube=cube)


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
    found = bound_metric(metric, cube)
    threshold = _check_threshold(threshold)
    least = check_count(min_predictions, "min_predictions", minimum=0)
    check_count(times, "times")
    seed = entropy(rng)

    def one(part: xr.DataArray, _: xr.DataArray | None) -> xr.Dataset:
        race = Race(part, found, select)
        alive = race.trained.all(axis=0)
        if not alive.any():
            raise InputError(_NOBODY)
        ruling = Ruling(np.full(len(alive), np.nan), None)
        if int(race.present.any(axis=1).sum()) >= least:
            ruling = race.rule(race.draws(part, draws, times, seed, strata), race.present, alive)
        variables = {
            "keep": ("configuration", alive & ~(ruling.p_worse > threshold)),
            "p_worse": ("configuration", ruling.p_worse),
            "best": names_of(part["configuration"].values, -1 if ruling.best is None else ruling.best),
        }
        return xr.Dataset(variables, coords={"configuration": part["configuration"].variable})

    out = map_batches(one, cube)
    call = call_text("drop_configurations", metric=found.name, threshold=threshold, draws=draws, times=times, rng=rng)
    return result(out, method="drop_configurations", metric=found.name, call=call, cube=cube)


_NOBODY = (
    "no configuration predicted everything (every sample, in every repeat) that any configuration predicted, so all "
    "count as dropped. Drop samples, repeats or configurations with gaps."
)


def _replay(race: Race, draws: Draws, threshold: float, least: int) -> dict[str, np.ndarray]:
    """Take the folds in order and return who is alive at the end, and when and why the others were dropped."""
    steps, has = race.steps, race.trained
    alive = np.ones(has.shape[1], bool)
    dropped = np.full(len(alive), np.nan)
    p_worse = np.full(len(alive), np.nan)
    for number, name in enumerate(steps):
        gone = alive & ~has[number]
        dropped[gone], alive[gone] = number, False
        if not alive.any():
            raise InputError(_NOBODY)
        so_far = race.present & (race.step <= name)
        if number == len(steps) - 1 or int(so_far.any(axis=1).sum()) < least:
            continue
        last = number == len(steps) - 2
        ruling = race.rule(draws, so_far, alive, None if last else threshold)
        p_worse = np.where(np.isnan(ruling.p_worse), p_worse, ruling.p_worse)
        out = alive & (ruling.p_worse > threshold)
        dropped[out], alive[out] = number + 1, False
    available = np.where(has.all(axis=0), len(steps), np.argmin(has, axis=0))
    trained = np.where(np.isnan(dropped), len(steps), np.minimum(dropped, available)).astype(int)
    return {"alive": alive, "dropped_after": dropped, "p_worse": p_worse, "trained": trained, "available": available}


def _check_threshold(threshold: object) -> float:
    number = isinstance(threshold, (int, float, np.floating, np.integer)) and not isinstance(threshold, bool)
    if not number or not 0 < float(threshold) <= 1:  # type: ignore[arg-type]
        raise InputError(f"`threshold` must be a probability in (0, 1], such as 0.99; got {show([threshold])}.")
    return float(threshold)  # type: ignore[arg-type]
