"""How optimism grows with the number of configurations tried."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, Rng, check_count, check_option, entropy, show, warn
from cvstats._results import call_text, result
from cvstats.adjust import Adjustment
from cvstats.cube.arrays import batch_dims, check_cube, problem_on
from cvstats.judge import Decision, Rules, Setting, decide, scored, verdicts
from cvstats.judge.asked import adjustment_of, problem_of, stand_in
from cvstats.kernels import Problem
from cvstats.metrics import Metric, metrics_of
from cvstats.resample import Draws, Given, Part, given_draws, make_draws
from cvstats.select import label_keys, ranking, select_best

from .common import warn_once

BLOCK = 32  # draws ranked at a time


def optimism_curve(
    cube: xr.DataArray,
    metric: str | Metric,
    *,
    by: str | Metric | None = None,
    adjust: Adjustment | Sequence[Adjustment] | None = None,
    average: str = "pooled",
    order: str = "random",
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

    With ``order="tried"`` configurations were tried in the order of the cube, and m are the first m of them: the curve
    follows the incumbent of a search, the best so far (of equals the earlier), what it claimed and what was left of it.

    Parameters
    ----------
    cube : DataArray
        Predictions made by `as_cube`.
    metric : str or Metric
        Name, such as ``"auc"``, or metric.
    by, adjust, average : as in `bbc`
        What chooses, what is done with predictions, and how folds are averaged. Mixtures have no curve: in a subset
        they would be other mixtures.
    order : {"random", "tried"}
        Whether the order of configurations means nothing, or is that in which a search tried them.
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
        ``naive``, ``estimate`` and ``optimism`` over ``n_configurations``. A search in the order tried also has
        ``worse_than_first``, the share of draws in which the incumbent is worse on the samples left out than the
        configuration that was tried first, usually the default (overtuning).

    Raises
    ------
    InputError
        The cube has batch dims, or `sizes` exceed the number of complete configurations.

    Notes
    -----
    In random order the curve says what *this* set of configurations does; a search that tries the promising ones first
    climbs faster. Configurations that did not predict every sample are left out.

    References
    ----------
    Tsamardinos, Greasidou, Borboudakis (2018), doi:10.1007/s10994-018-5714-4; Schneider, Bischl, Feurer (2025),
    Overtuning in hyperparameter optimization, PMLR 293, 17.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.simulate_cube(60, 30, rng=1)
    >>> curve = cs.optimism_curve(cube, "accuracy", sizes=[1, 30], times=100, rng=1)
    >>> bool(curve.optimism[1] > curve.optimism[0])
    True
    >>> tried = cs.optimism_curve(cube, "accuracy", order="tried", times=100, rng=1)
    >>> float(tried.worse_than_first[0]), bool((tried.naive.diff("n_configurations") >= 0).all())
    (0.0, True)
    >>> cube = cs.example_cube().isel(repeat=0, configuration=slice(0, 20))
    >>> both = cs.optimism_curve(cube, "accuracy", adjust=cs.cut("youden"), sizes=[1, 20], times=50, rng=1)
    >>> bool(both.optimism[0] > 0)  # one configuration, but its threshold was chosen too
    True
    """
    check_cube(cube)
    if batch_dims(cube):
        raise InputError(f"`cube` has batch dims {show(batch_dims(cube))}; pick one data set first with .sel().")
    times = check_count(times, "times")
    check_option(order, ("random", "tried"), "order")
    notes: list[str] = []
    (found,), chooser = metrics_of([metric], by, cube, notes)
    seed = entropy(rng)
    rules = Rules(_Tabled(), seed=seed, adjust=adjustment_of(adjust, cube, [found]), average=average)
    if draws is None:
        weights: Draws = make_draws(cube, stand_in(chooser, [found], rules.adjust), times, seed, "auto").remembered()
    else:
        weights = given_draws(draws, cube)
    plain = rules.plain and chooser is found
    tables = score_tables(cube, found, weights) if plain else _decided_tables(cube, found, chooser, weights, rules)
    if len(lost := tables[0].names[~tables[0].eligible]):
        notes.append(f"{show(lost)} lacked predictions that others have and could not be selected")
    warn_once("optimism_curve", notes)
    return curve_of(cube, found, tables, seed, sizes, by=None if plain else chooser, order=order)


Tables = tuple[Problem, list[np.ndarray]]


def score_tables(cube: xr.DataArray, metric: Metric, draws: Draws) -> Tables:
    """Return the scores (draw, eligible configuration) in the bag, out of it, and on all samples (one row)."""
    everything = Given(np.ones((1, draws.n), np.int32))
    return scored(metric, problem_on(cube, metric), draws, Part(draws, left_out=True), everything)


class _Tabled:
    """The strategy "the best", which keeps the scores it was shown."""

    def __call__(self, scores: np.ndarray, *, direction: str, **known: Any) -> np.ndarray:
        """Return the best of each row."""
        self.table = scores
        return select_best(scores, direction=direction)


def _decided_tables(cube: xr.DataArray, metric: Metric, by: Metric, draws: Draws, rules: Rules) -> Tables:
    """Return what chooses in the bag, what judges out of it, and both on all samples, of eligible configurations.

    Every configuration is judged in every draw as if it had won.
    """
    out = decide(by, problem_of(cube, by, (metric,), rules), draws, rules, judging=False)
    assert isinstance(rules.select, _Tabled)
    setting, judged = Setting(out.problem, draws), []
    for place in np.flatnonzero(out.problem.eligible).tolist():
        winner = Decision(np.where(out.usable, place, -1))
        judged.append(verdicts((metric,), setting, winner, Decision(np.array([place])), rules).each[0][0])
    outside = np.stack([one.value for one in judged], axis=1)
    plain = np.array([out.score[out.problem.eligible], [one.naive for one in judged]])
    return out.problem, [rules.select.table, outside, plain]


def curve_of(
    cube: xr.DataArray,
    metric: Metric,
    tables: Tables,
    seed: int,
    sizes: Sequence[int] | None = None,
    *,
    by: Metric | None = None,
    order: str = "random",
) -> xr.Dataset:
    """Return the curve from scores that are known already; `seed` breaks ties as in `winner`.

    The last table holds scores on all samples: by what chooses first, and last by what judges.
    """
    data, (inside, outside, plain) = tables
    chooser = metric if by is None else by
    wanted = _sizes(sizes, inside.shape[1])
    if order == "tried":
        naive = plain[-1][_incumbents(chooser.sign * plain[:1])[0, wanted - 1]]
        held = _incumbents(chooser.sign * inside)[:, wanted - 1]
        honest = np.take_along_axis(outside, held, axis=1)
    else:
        share = _shares(inside.shape[1], wanted)
        naive = share @ plain[-1][np.argsort(-chooser.sign * plain[0], kind="stable")]
        best = ranking((chooser.sign * row for row in inside), label_keys(data.names[data.eligible]), seed)
        ranked = (row[order] for row, order in zip(outside, best, strict=True))  # the best in the bag first
        blocks = iter(lambda: list(islice(ranked, BLOCK)), [])
        honest = np.concatenate([np.array(rows) @ share.T for rows in blocks])
    estimate = np.nanmean(honest, axis=0) if np.isfinite(honest).any() else np.full(len(wanted), np.nan)
    if np.isnan(estimate).any() or np.isnan(naive).any():
        warn(f"optimism_curve: too few samples for {metric.name} on all data or out of the draws: NaN.")
    dims, coords = ("n_configurations",), {"n_configurations": wanted}
    values = {"naive": naive, "estimate": estimate, "optimism": metric.optimism(naive, estimate)}
    if order == "tried":
        gap = metric.optimism(outside[:, :1], honest)  # how much better the first is
        known = ~np.isnan(gap)
        values["worse_than_first"] = (gap > 0).sum(axis=0) / np.where(known.any(axis=0), known.sum(axis=0), np.nan)
    said = {"metric": metric.name, "by": by and by.name, "order": order if order != "random" else None}
    return result(
        {name: xr.DataArray(value, dims=dims, coords=coords) for name, value in values.items()},
        method="optimism_curve",
        metric=metric.name,
        call=call_text("optimism_curve", **said, times=len(inside), rng=seed),
        cube=cube,
    )


def _incumbents(worth: np.ndarray) -> np.ndarray:
    """Return (draw, number) the place of the best of the first configurations, ties to the earlier."""
    worth = np.where(np.isnan(worth), -np.inf, worth)
    top = np.maximum.accumulate(worth, axis=1)
    new = np.ones(worth.shape, bool)
    new[:, 1:] = worth[:, 1:] > top[:, :-1]
    return np.maximum.accumulate(np.where(new, np.arange(worth.shape[1]), 0), axis=1)


def _sizes(sizes: Sequence[int] | None, total: int) -> np.ndarray:
    if sizes is None:
        return np.unique(np.round(np.geomspace(1, total, 25)).astype(int))
    wanted = np.array([check_count(size, "sizes") for size in np.atleast_1d(np.asarray(sizes)).tolist()], int)
    if not wanted.size or wanted.max() > total:
        raise InputError(
            f"`sizes` must lie between 1 and {total}, the complete configurations; got {show(wanted) or 'none'}."
        )
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
