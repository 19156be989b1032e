"""The configurations that cannot be told from the best one."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import check_level, entropy
from cvstats._results import call_text, names_of, result
from cvstats.cube.arrays import check_cube, map_batches
from cvstats.judge import Rules, scored
from cvstats.judge.asked import problem_of
from cvstats.kernels import Problem
from cvstats.metrics import Metric, metrics_of, score
from cvstats.protocols.common import warn_once
from cvstats.resample import given_draws, make_draws, unit_count

from .contrasts import check_draws, scarce

BLOCK = 32  # draws compared at a time, more of few columns
CELLS = 50_000  # numbers of a block that stay in the cache


def best_set(
    cube: xr.DataArray,
    metric: str | Metric,
    *,
    average: str = "pooled",
    level: float = 0.95,
    draws: xr.DataArray | None = None,
    times: int = 1000,
    rng: Any = None,
    strata: Any = "auto",
    progress: bool = False,
) -> xr.Dataset:
    r"""Return the configurations that cannot be told from the best at the stated level.

    The set contains *every* configuration that is truly best, ties included, with probability at least `level` (for
    large N). A configuration leaves when its distance to the best score in standard errors,

    .. math:: T_j = d_j / \sqrt{s_j^2 + d_j^2 / N}, \qquad d_j = \hat\theta_{best} - \hat\theta_j,

    with :math:`s_j` the bootstrap standard error of :math:`d_j`, exceeds the `level` quantile of the largest such
    distance over bootstrap draws in which all configurations in the set are centred to be equal. All share the draws,
    so the quantile accounts for how many configurations were tried and how alike they are. The step is repeated on
    those that stay until none leaves.

    Parameters
    ----------
    cube : DataArray
        Predictions made by `as_cube`.
    metric : str or Metric
        Name, such as ``"auc"``, or metric, of any family.
    average : {"pooled", "fold"}
        Whether configurations are compared by pooled scores, or by means over folds as GridSearchCV and caret do;
        within a draw folds that lack a class are skipped.
    level : float
        Confidence level of the set.
    draws, times, rng : as in `bbc`
        Draws from `bootstrap`, or how many to make, and seed or generator.
    strata : str, optional
        As in `winner`: "auto" draws within class for metrics that need every class.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Dataset
        Over ``configuration``: ``estimate`` (score), ``difference`` (to the best score, in the metric's unit, never
        better than 0), ``std_error`` (of the difference), ``statistic`` (T), ``p_value`` (adjusted for all comparisons)
        and ``in_set`` (p above 1 - level; all where nothing can be tested). Also ``selected`` (the best), ``n_set`` and
        ``n_draws``.

    Notes
    -----
    Being in the set is no evidence of being as good: with few samples nearly everything is. A configuration that did
    not predict every sample has NaN and is never in the set. Fewer than five samples (groups), or of a class that the
    metric needs, exclude nothing. Models are taken as given.

    References
    ----------
    Hansen, Lunde, Nason (2011), The model confidence set, Econometrica 79, 453-497. https://doi.org/10.3982/ECTA5771
    Romano, Wolf (2005), JASA 100, 94-108. https://doi.org/10.1198/016214504000000539

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.simulate_cube(500, 30, rng=1)
    >>> found = cs.best_set(cube, "accuracy", rng=1)
    >>> bool(found.in_set.sel(configuration=found.selected)), bool(found.n_set < 30)
    (True, True)
    """
    check_cube(cube)
    level = check_level(level)
    times = check_draws(times, draws)
    notes: list[str] = []
    few: list[str] = []
    (bound,), _ = metrics_of([metric], None, cube, notes)
    seed, rules = entropy(rng), Rules(average=average)

    def one(part: xr.DataArray, own: xr.DataArray) -> xr.Dataset:
        weights = make_draws(part, bound, times, seed, strata) if draws is None else given_draws(draws, part)
        data, (table,) = scored(bound, problem_of(part, bound, (bound,), rules), weights, progress=progress)
        few.extend(scarce(part, data, bound))
        return best_of(part, bound, data, own.values, table, level)

    out = map_batches(one, cube, score(cube, bound, average=average))
    lost = int(out["p_value"].isnull().sum())
    if few:
        notes.extend(few)
    elif bool((out["n_draws"] == 0).any()):
        notes.append("no draw could be used (too few samples for the metric), so nothing can be tested: NaN")
    elif lost:
        notes.append(f"{lost} configurations did not predict every sample and are not in the set: NaN")
    warn_once("best_set", notes)
    by_fold = "fold" if average == "fold" else None
    call = call_text("best_set", metric=bound.name, average=by_fold, level=level, times=times, rng=rng, strata=strata)
    return result(out, method="best_set", metric=bound.name, conf_level=level, interval="none", call=call, cube=cube)


def best_of(
    cube: xr.DataArray, metric: Metric, data: Problem, own: np.ndarray, table: np.ndarray, level: float
) -> xr.Dataset:
    """Return the variables of `best_set` from all scores and those of the eligible configurations in every draw."""
    scores, eligible, usable = own.astype(float), data.eligible, ~np.isnan(table).any(axis=1)
    if scarce(cube, data, metric):
        usable[:] = False
    units, sign = unit_count(cube, data.rows), float(metric.sign)
    table = table if usable.all() else table[usable]
    gap, error, statistic, p_value = distances(sign * scores[eligible], table if sign > 0 else -table, units, level)
    full = np.full((4, len(scores)), np.nan)
    full[:, eligible] = 0.0 - sign * gap, error, statistic, p_value
    inside = eligible & ~(full[3] <= 1 - level)  # what cannot be tested cannot be excluded
    best = -1 if np.isnan(gap).all() else np.flatnonzero(eligible)[int(np.nanargmin(gap))]
    columns = ("estimate", "difference", "std_error", "statistic", "p_value", "in_set")
    variables = {
        **{name: ("configuration", values) for name, values in zip(columns, (scores, *full, inside), strict=True)},
        "selected": names_of(cube["configuration"].values, best),
        "n_set": int(inside.sum()),
        "n_draws": int(usable.sum()),
    }
    return xr.Dataset(variables, coords={"configuration": cube["configuration"].variable})


def distances(
    score: np.ndarray, table: np.ndarray, units: int, level: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return gap to the best (higher is better), its standard error, T and the adjusted p-value of every column.

    `table` holds the scores of the same columns over draws.
    """
    noise = 16 * np.finfo(float).eps * np.abs(score).max(initial=0.0)
    gap = score.max() - score
    if not len(table):
        nothing = np.full(len(score), np.nan)
        return gap, nothing, nothing, nothing
    centred = table - table.mean(axis=0)
    centred *= np.sqrt(units / max(units - 1, 1))
    error = spreads(centred, np.array([np.argmin(gap)]), squared(centred))[0]
    # the variance if the two were equal, as in a score test: the gap itself counts as noise. With s alone, pairs that
    # happen to have a small s leave too often (measured: .08 to .17 instead of .05 for N up to 100)
    null_error = np.sqrt(error**2 + gap**2 / units)
    statistic = np.where(gap <= noise, 0.0, gap / np.where(null_error > 0, null_error, 1.0))
    p_value = np.ones(len(score))
    inside, floor = np.arange(len(score)), 0.0
    while True:
        p_value[inside] = np.maximum(step_down(centred, statistic[inside]), floor)
        stay = p_value[inside] > 1 - level
        if stay.all() or not stay.any():
            return gap, error, statistic, p_value
        # those that stay are compared again among themselves; none may then look worse than one that left
        floor = float(p_value[inside[~stay]].max())
        inside, centred = inside[stay], np.compress(stay, centred, axis=1)


def step_down(centred: np.ndarray, statistic: np.ndarray) -> np.ndarray:
    """Return p-values of T: how often the largest T over the columns no farther from the best is as large.

    In every draw the columns, centred to be equal, are compared with the one that leads it.
    """
    leader, order = centred.argmax(axis=1), np.argsort(statistic, kind="stable")
    nearest, draws, above = statistic[order], np.argsort(leader), np.zeros(len(order), int)
    square = squared(centred)
    block = max(BLOCK, CELLS // max(1, len(order)))
    for start in range(0, len(draws), block):
        rows = draws[start : start + block]
        leaders, which = np.unique(leader[rows], return_inverse=True)
        part, own = centred[rows], spreads(centred, leaders, square)[which]
        np.subtract(part.max(axis=1, keepdims=True), part, out=part)
        part[own <= 0] = 0.0
        own[own <= 0] = 1.0
        part = np.take(np.divide(part, own, out=part), order, axis=1, out=own)
        above += (np.maximum.accumulate(part, axis=1, out=part) >= nearest - 1e-12).sum(axis=0)
    above = above[np.searchsorted(nearest, nearest, side="right") - 1]  # ties count together
    p_value = (1 + above) / (1 + len(centred))
    p_value[order] = np.maximum.accumulate(p_value[::-1])[::-1]
    return p_value


def squared(centred: np.ndarray) -> np.ndarray:
    """Return the sum of squares of every column."""
    return np.asarray(np.einsum("ij,ij->j", centred, centred))


def spreads(centred: np.ndarray, columns: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Return the standard error of the difference between each of `columns` and every column; rounding becomes 0."""
    total = square[columns][:, None] + square
    squares = np.take(centred, columns, axis=1).T @ centred
    squares *= -2
    squares += total
    squares[squares <= 1e-12 * total] = 0.0
    squares /= len(centred)
    return np.asarray(np.sqrt(squares, out=squares))
