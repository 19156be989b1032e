"""How optimism grows with the number of configurations tried."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from cvstats._check import InputError, Rng, check_count, entropy, show, warn
from cvstats._results import call_text, result
from cvstats.cube.align import batch_dims
from cvstats.cube.blocks import problem_on
from cvstats.cube.make import check_cube
from cvstats.judge import scored
from cvstats.kernels import Problem
from cvstats.metrics import Metric, bound_metric
from cvstats.resample import Draws, Given, Part, given_draws, make_draws
from cvstats.select import label_keys, ranking


def optimism_curve(
    cube: xr.DataArray,
    metric: str | Metric,
    *,
    sizes: Sequence[int] | None = None,
    draws: xr.DataArray | Draws | None = None,
    times: int = 200,
    rng: Rng = None,
) -> xr.Dataset:
    r"""Return what plain CV would claim, and what is left of it, had fewer configurations been tried.

    For every number m of configurations, the mean over *all* subsets of m configurations of the winner's plain CV
    score (``naive``) and of its bootstrap bias-corrected score (``estimate``). No subset is drawn: in a table ranked
    from best to worst, the j-th of C configurations wins in the share

    .. math:: \binom{C - j}{m - 1} / \binom{C}{m}

    of the subsets of size m, so each bootstrap draw gives the whole curve exactly.

    Parameters
    ----------
    cube : DataArray
        Predictions made by `as_cube`.
    metric : str or Metric
        Name, such as ``"auc"``, or metric.
    sizes : sequence of int, optional
        Numbers of configurations; by default about 25 from 1 to all.
    draws : DataArray, optional
        Weights from `bootstrap` (or your own) instead of draws made here.
    times : int
        Bootstrap draws.
    rng : int or numpy.random.Generator, optional
        Seed or generator. With `winner`'s seed and number of draws, the curve ends at its ``bbc_plain``.

    Returns
    -------
    xarray.Dataset
        ``naive``, ``estimate`` and ``optimism`` over ``n_configurations``.

    Raises
    ------
    InputError
        The cube has batch dims, or `sizes` exceed the number of complete configurations.

    Notes
    -----
    The curve says what *this* set of configurations does, taken in random order; a search that tries the promising
    ones first climbs faster. Configurations that did not predict every sample are left out.

    References
    ----------
    Tsamardinos, Greasidou, Borboudakis (2018), doi:10.1007/s10994-018-5714-4.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.simulate_cube(60, 30, rng=1)
    >>> curve = cs.optimism_curve(cube, "accuracy", sizes=[1, 30], times=100, rng=1)
    >>> bool(curve.optimism[1] > curve.optimism[0])
    True
    """
    check_cube(cube)
    if batch_dims(cube):
        raise InputError(f"`cube` has batch dims {show(batch_dims(cube))}; pick one data set first with .sel().")
    check_count(times, "times")
    found = bound_metric(metric, cube)
    seed = entropy(rng)
    weights = make_draws(cube, found, times, seed, "auto").remembered() if draws is None else given_draws(draws, cube)
    return curve_of(cube, found, score_tables(cube, found, weights), seed, sizes)


Tables = tuple[Problem, list[np.ndarray]]


def score_tables(cube: xr.DataArray, metric: Metric, draws: Draws) -> Tables:
    """Return the scores (draw, eligible configuration) in the bag, out of it, and on all samples (one row)."""
    everything = Given(np.ones((1, draws.n), np.int32))
    return scored(metric, problem_on(cube, metric), draws, Part(draws, left_out=True), everything)


def curve_of(
    cube: xr.DataArray, metric: Metric, tables: Tables, seed: int, sizes: Sequence[int] | None = None
) -> xr.Dataset:
    """Return the curve from scores that are known already; `seed` breaks ties as in `winner`."""
    data, (inside, outside, plain) = tables
    wanted = _sizes(sizes, inside.shape[1])
    share = _shares(inside.shape[1], wanted)
    naive = metric.sign * (share @ np.sort(metric.sign * plain[0])[::-1])
    order = ranking(metric.sign * inside, label_keys(data.names[data.eligible]), seed)  # best in the bag first
    honest = np.take_along_axis(outside, order, axis=1) @ share.T
    estimate = np.nanmean(honest, axis=0) if np.isfinite(honest).any() else np.full(len(wanted), np.nan)
    if np.isnan(estimate).any() or np.isnan(naive).any():
        warn(f"optimism_curve: too few samples for {metric.name} on all data or out of the draws: NaN.")
    dims, coords = ("n_configurations",), {"n_configurations": wanted}
    values = {"naive": naive, "estimate": estimate, "optimism": metric.sign * (naive - estimate)}
    return result(
        {name: xr.DataArray(value, dims=dims, coords=coords) for name, value in values.items()},
        method="optimism_curve",
        metric=metric.name,
        call=call_text("optimism_curve", metric=metric.name, times=len(inside), rng=seed),
        cube=cube,
    )


def _sizes(sizes: Sequence[int] | None, total: int) -> np.ndarray:
    if sizes is None:
        return np.unique(np.round(np.geomspace(1, total, 25)).astype(int))
    wanted = np.array([check_count(size, "sizes") for size in sizes], int)
    if not wanted.size or wanted.max() > total:
        raise InputError(f"`sizes` must lie between 1 and {total}, the complete configurations; got {show(sizes)}.")
    return wanted


def _shares(total: int, sizes: np.ndarray) -> np.ndarray:
    """Return (size, rank): in which share of the subsets the configuration of that rank (best first) wins."""
    from scipy.special import gammaln

    rank = np.arange(1, total + 1)[None, :]
    m = sizes[:, None]
    behind = total - rank - (m - 1)  # how many of those behind stay out of the subset
    with np.errstate(invalid="ignore"):
        log = gammaln(total - rank + 1) - gammaln(m) - gammaln(np.where(behind >= 0, behind, 0) + 1)
        log = log - (gammaln(total + 1) - gammaln(m + 1) - gammaln(total - m + 1))
    return np.where(behind >= 0, np.exp(log), 0.0)
