"""The difference between two configurations, or between two tuned families, by a paired bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_count, check_level, check_option, entropy, plain, show
from cvstats._results import call_text, result
from cvstats.adjust import Adjustment
from cvstats.cube.arrays import check_cube, coverage, map_batches, problem_on
from cvstats.intervals import MINIMUM
from cvstats.intervals.calibrated_limits import variance_of
from cvstats.judge import Rules, Setting, decide, scored, verdicts
from cvstats.judge.asked import adjustment_of, problem_of, stand_in
from cvstats.kernels import Problem
from cvstats.kernels.problem import CLASS_NEEDS
from cvstats.metrics import Metric, metrics_of, score
from cvstats.protocols.common import chosen_by, warn_once
from cvstats.protocols.tuning import present
from cvstats.resample import Draws, given_draws, make_draws, unit_count
from cvstats.select import Mixture, select_best, winners

from .batch import in_cells
from .configurations import MODELS, family
from .location import check_size, wald

# A draw's out-of-bag samples are .368 N of the N: over draws their mean varies 1/.368 - 1 times as much as the mean
# of all N over data sets.
_OUT_OF_BAG = np.exp(1) - 1
# What other training samples would change is in no saved prediction, so it is added as a multiple of what other test
# samples would: Nadeau and Bengio's n / n_train, that of five folds whatever the folds (see docs/comparing.md).
TRAINING = 1.25
METHODS = "the methods, trained and judged on other samples; the standard error allows for both"


def contrast(
    cube: xr.DataArray,
    metric: str | Metric,
    *,
    a: Any,
    b: Any,
    by: str | Metric | None = None,
    adjust: Adjustment | Sequence[Adjustment] | None = None,
    average: str = "pooled",
    regime: str = "cv",
    margin: float | None = None,
    level: float = 0.95,
    draws: xr.DataArray | None = None,
    times: int = 1000,
    rng: Any = None,
    strata: Any = "auto",
    select: Any = None,
    keep_draws: bool = False,
    progress: bool = False,
) -> xr.Dataset:
    """Return the difference a - b between two methods: two configurations, or two tuned families.

    *Two configurations*: the estimand is the difference of their performances, the estimate the difference of their
    scores on all samples. With ``V`` the variance of the difference over bootstrap draws of samples, and ``V_1`` the
    same of a single repeat (their mean), the squared standard error is ``V + 1.25 V_1``: the first for other samples to
    be judged on, the second for other samples to be trained on, after Nadeau and Bengio.

    *Two families* (lists of configurations): the estimand is the difference between the performances of the
    configurations that tuning would pick from each. Selection is redone within each family in every draw and judged
    on the samples left out; the estimate is the mean of these differences. With ``V`` their variance over draws and
    ``V_s`` the variance of the all-data difference of the draws' winners, the squared standard error is
    ``2.25 (V - V_s) / (e - 1) + V_s``.

    *Any other decisions* (a mixture on a side, `by`, `adjust` or folds averaged): both sides are estimated as `winner`
    does (anchored, from one table), and with ``v`` the variance over draws of the difference of the final decisions, in
    the draw, and ``V_s`` as above, the squared standard error is ``2.25 v + V_s``.

    Either way all configurations share the draws, so the comparison is paired; limits are
    ``estimate +- t * std_error`` with Student's t on N - 1 degrees of freedom.

    Parameters
    ----------
    cube : DataArray
        Predictions made by `as_cube`.
    metric : str or Metric
        Name, such as ``"auc"``, or metric, of any family.
    a, b : label, list of labels, dict, or strategy
        A configuration's label; a list of labels; coordinate values of the configurations that make up the family, such
        as ``{"learner": "svm"}``; or a strategy that takes all configurations, such as `select_best` or `ensemble`.
    by, adjust, average : as in `bbc`
        What chooses, what is done with predictions, and how folds are averaged, for both sides.
    regime : {"cv", "holdout"}
        ``"cv"``: the question is about methods, whose models were refitted in every fold. ``"holdout"``: it is about
        these very models, which never saw the samples; nothing is added for training (1.25 becomes 0, 2.25 becomes 1).
    margin : float, optional
        The largest difference that would not matter, in the unit of the metric and named before looking; adds tests of
        non-inferiority (a is worse than b by less) and equivalence (neither is better by as much).
    level : float
        Confidence level.
    draws, times, rng : as in `bbc`
        Draws from `bootstrap`, or how many to make, and seed or generator.
    strata : str, optional
        As in `winner`: "auto" draws within class for metrics that need every class.
    select : callable, optional
        Selection strategy of the families; `select_best` by default.
    keep_draws : bool
        Also return ``draw_estimate(draw)``.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Dataset
        ``estimate, std_error, conf_low, conf_high, bound_low, bound_high, statistic, df, p_value``; ``estimate_a`` and
        ``estimate_b``; ``naive`` (difference of the scores of the selected), ``selected_a, selected_b``; ``n_draws``.
        Sides that mix have ``share_a`` and ``share_b``. With `margin` also ``p_noninferior`` (one-sided; small: a is
        not worse than b by the margin, whichever direction of the metric is better) and ``p_equivalent`` (the larger of
        two one-sided tests; small: they differ by less). The limits at level 1 - 2 alpha say the same at alpha.

    Notes
    -----
    Samples that one side alone predicted are left out, and configurations of a family that did not predict every sample
    of it cannot be selected: a warning says which. Fewer than five samples (groups), or of a class that the metric
    needs, have no limits.

    Do not contrast a winner with a loser picked by the same data: name both before looking, contrast families, or use
    `best_set`. Models that other samples would train are not in the predictions: what is added for them is the rule of
    thumb that held in simulations with refitted learners. It costs power, because it allows for unstable learners
    wherever it is used; ``regime="holdout"`` has more and says less: with refitted models it calls equal methods
    different in up to 27 % of data sets instead of 5 %.

    References
    ----------
    Tsamardinos, Greasidou, Borboudakis (2018), Machine Learning 107, 1895-1922.
    https://doi.org/10.1007/s10994-018-5714-4
    Nadeau, Bengio (2003), Machine Learning 52, 239-281. https://doi.org/10.1023/A:1024068626366
    Schuirmann (1987), doi:10.1007/BF01068419, for two one-sided tests.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.simulate_cube(200, 20, rng=1)
    >>> names = cube.configuration.values
    >>> one = cs.contrast(cube, "accuracy", a=names[0], b=names[1], rng=1)
    >>> tuned = cs.contrast(cube, "accuracy", a=list(names[:10]), b=list(names[10:]), rng=1)
    >>> bool(tuned.conf_low < tuned.estimate < tuned.conf_high), int(one.df)
    (True, 199)
    >>> same = cs.contrast(cube, "accuracy", a=names[0], b=names[1], margin=0.1, rng=1)
    >>> bool(same.p_noninferior <= same.p_equivalent)
    True
    >>> cube = cs.example_cube().isel(repeat=0)
    >>> worth = cs.contrast(cube, "brier", a=cs.ensemble(10), b=cs.select_best, times=100, rng=1)
    >>> bool(worth.conf_low < worth.estimate < worth.conf_high)
    True
    """
    check_cube(cube)
    level = check_level(level)
    check_size(margin, "margin")
    check_option(regime, ("cv", "holdout"), "regime")
    times = check_draws(times, draws)
    notes: list[str] = []
    default = select_best if select is None else select
    (ours, first), (theirs, second) = _side(cube, a, "a", default), _side(cube, b, "b", default)
    if len(ours) == len(theirs) and set(ours) == set(theirs) and first is second:
        raise InputError("`a` and `b` name the same configurations; there is nothing to compare.")
    both = cube.isel(configuration=np.union1d(ours, theirs))
    (bound,), chooser = metrics_of([metric], by, both, notes)
    seed = entropy(rng)
    rules = [
        Rules(one, seed=seed, progress=progress, adjust=adjustment_of(adjust, both, [bound]), average=average)
        for one in (first, second)
    ]
    plain_choice = chooser is bound and all(one.plain for one in rules)
    single, refitted = plain_choice and len(ours) == 1 and len(theirs) == 1, regime == "cv"

    def one(part: xr.DataArray) -> xr.Dataset:
        pair, inside = _common(part, ours, theirs, notes)
        weights = _draws(pair, stand_in(chooser, [bound], rules[0].adjust), draws, times, seed, strata)
        units, few = unit_count(pair, np.ones(pair.sizes["sample"], bool)), scarce(pair, problem_on(pair, bound), bound)
        notes.extend(few)
        if single:
            sides, variance, values, scores = _two(pair, inside, bound, weights, refitted, progress)
        elif plain_choice:
            sides, variance, values, scores = _families(pair, inside, bound, weights, rules, refitted)
        else:
            sides, variance, values, scores = _decisions(pair, inside, (bound, chooser), weights, rules, refitted)
        error, df = np.sqrt(variance), units - 1.0
        noise = 16 * np.finfo(float).eps * np.nanmax(np.abs(scores), initial=0.0)  # an error that is rounding alone
        tested = error if error > noise and not few else np.nan
        out = wald(sides["estimate_a"] - sides["estimate_b"], tested, df, level, bounds=True)
        if margin is not None:
            out |= _within(bound.sign * out["estimate"], tested, df, margin)
        out |= {"std_error": error, **sides, "n_draws": int((~np.isnan(values)).sum()), "few": bool(few)}
        coords = {"configuration": pair["configuration"].variable} if {"share_a", "share_b"} & set(sides) else {}
        return xr.Dataset({**out, "draw_estimate": ("draw", values)} if keep_draws else out, coords=coords)

    out = map_batches(one, cube)
    flat = out["conf_low"].isnull() & ~out["few"]
    if bool(flat.any()):
        notes.append(f"the difference does not vary over draws{in_cells(flat)}, so it cannot be tested: NaN")
    warn_once("contrast", notes)
    kind = "contrast of tuned families" if plain_choice else "contrast of decisions"
    kind = ("paired bootstrap contrast" if single else kind) + ("" if refitted else " (fitted models)")
    said: dict[str, Any] = {"a": getattr(a, "name", a), "b": getattr(b, "name", b), "by": by and chooser.name}
    said |= {"adjust": rules[0].adjust and rules[0].adjust.name, "regime": regime, "margin": margin}
    call = call_text("contrast", metric=bound.name, **said, level=level, times=times, rng=rng, strata=strata)
    out = out.drop_vars("few")
    out = result(out, method=kind, metric=bound.name, conf_level=level, interval="t", call=call, cube=cube)
    return out.assign_attrs(about=METHODS if refitted else MODELS)


def scarce(cube: xr.DataArray, data: Problem, metric: Metric) -> list[str]:
    """Return why nothing can be tested, if there are too few units, or too few of a class that the metric needs."""
    codes = data.check(metric.requires).codes() if metric.requires in CLASS_NEEDS else []
    units = unit_count(cube, data.rows)
    smallest = min((int((data.y[data.rows] == code).sum()) for code in codes), default=units)
    if min(units, smallest) >= MINIMUM:
        return []
    few = f"{units} independent samples" if units < MINIMUM else f"{smallest} of a class"
    return [f"limits and p-values are NaN: {few} is fewer than {MINIMUM}"]


def _within(gain: float, error: float, df: float, margin: float) -> dict[str, float]:
    """Return the p-values against "a is worse by the margin or more" and against "either is"."""
    from scipy.special import stdtr

    worse, better = float(stdtr(df, -(gain + margin) / error)), float(stdtr(df, (gain - margin) / error))
    return {"p_noninferior": worse, "p_equivalent": max(worse, better)}


def check_draws(times: int, draws: Any) -> int:
    """Return how many draws to make; fewer than a standard error needs are refused."""
    times = check_count(times, "times", minimum=20)
    if isinstance(draws, xr.DataArray) and draws.sizes.get("draw", 0) < 20:
        raise InputError(f"`draws` holds {draws.sizes.get('draw', 0)} draws; at least 20 are needed, 1000 advisable.")
    return times


def _side(cube: xr.DataArray, given: Any, argument: str, select: Any) -> tuple[np.ndarray, Any]:
    """Return the positions of the configurations of a side, and the strategy that decides among them."""
    if isinstance(given, Mixture) or callable(given):
        return np.arange(cube.sizes["configuration"]), given
    return family(cube, plain(given), argument), select


def _common(
    cube: xr.DataArray, ours: np.ndarray, theirs: np.ndarray, notes: list[str]
) -> tuple[xr.DataArray, np.ndarray]:
    """Return the configurations of both sides on the samples that both predicted, and which belong to either side.

    What is left out is noted: samples that one side alone predicted, and configurations of a family with gaps.
    """
    places = np.union1d(ours, theirs)
    part = cube.isel(configuration=places).compute()
    inside = np.stack([np.isin(places, side) for side in (ours, theirs)])
    there = present(part).transpose("sample", "configuration").values
    rows = there[:, inside[0]].any(axis=1) & there[:, inside[1]].any(axis=1)
    if not rows.any():
        raise InputError("`a` and `b` have no sample in common that both predicted.")
    if one_sided := int((there.any(axis=1) & ~rows).sum()):
        notes.append(f"{one_sided} samples that only one of `a` and `b` predicted are left out")
    part = part.isel(sample=rows)
    for side in inside[inside.sum(axis=1) > 1]:
        own = coverage(part.isel(configuration=side))
        if len(lost := own.names[~own.eligible]):
            notes.append(f"{show(lost)} lacked predictions that others have and could not be selected")
    return part, inside


def _draws(cube: xr.DataArray, metric: Metric, given: Any, times: int, seed: int, strata: Any) -> Draws:
    if given is None:
        return make_draws(cube, metric, times, seed, strata)
    if isinstance(given, xr.DataArray) and "sample" in given.indexes:  # of all samples, those at hand
        given = given.isel(sample=np.isin(given.indexes["sample"], cube.indexes["sample"]))
    return given_draws(given, cube)


Contrasted = tuple[dict[str, Any], float, np.ndarray, np.ndarray]  # both sides, variance, draws, scores


def _two(
    cube: xr.DataArray, inside: np.ndarray, metric: Metric, draws: Draws, refitted: bool, progress: bool
) -> Contrasted:
    """Contrast two configurations."""
    at, data, draws = inside.argmax(axis=1), problem_on(cube, metric, compete=False), draws.remembered()
    values = _differences(metric, data, draws, at, progress)
    variance = single = _spread(values)
    if refitted:
        repeats = data.p.shape[-1] // data.partners
        if repeats > 1:
            alone = (data.repeats(slice(r, r + 1)) for r in range(repeats))
            each = np.array([_spread(_differences(metric, part, draws, at)) for part in alone])
            single = float(each[~np.isnan(each)].mean()) if not np.isnan(each).all() else variance
        variance += TRAINING * single
    units = unit_count(cube, data.rows)
    variance *= units / (units - 1) if units > 1 else np.nan
    own = score(cube, metric).values[at]
    return _sides(own, own, cube["configuration"].values[at]), variance, values, own


def _differences(metric: Metric, data: Problem, draws: Draws, at: np.ndarray, progress: bool = False) -> np.ndarray:
    """Return the difference of two configurations in every draw."""
    _, (table,) = scored(metric, data, draws, progress=progress)
    return np.asarray(table[:, at[0]] - table[:, at[1]])


def _spread(values: np.ndarray) -> float:
    kept = values[~np.isnan(values)]
    return float(np.var(kept, ddof=1)) if len(kept) > 1 else np.nan


def _families(
    cube: xr.DataArray, inside: np.ndarray, metric: Metric, draws: Draws, rules: list[Rules], refitted: bool
) -> Contrasted:
    """Contrast what tuning picks from two families."""
    value, standing, choices = [], [], []
    for side, rule in zip(inside, rules, strict=True):
        part = cube.isel(configuration=side)
        out = decide(metric, problem_on(part, metric), draws, rule)
        choice, _ = chosen_by(out, metric, rule)
        value.append(out.value)
        standing.append(choice.scores[out.decision.place])
        choices.append(choice)
    means, variance, values = tuned_difference(value, standing, TRAINING if refitted else 0.0)
    sides = _sides(means, [choice.value for choice in choices], [choice.label for choice in choices])
    return sides, variance, values, np.concatenate([choice.scores for choice in choices])


def tuned_difference(
    value: Sequence[np.ndarray], standing: Sequence[np.ndarray], training: float = TRAINING
) -> tuple[list[float], float, np.ndarray]:
    """Return the means of two tuned families over draws, the variance of their difference, and the differences.

    `value` is what judges the draw's winner of either family, `standing` that winner's score on all samples.
    """
    values = value[0] - value[1]
    kept = ~np.isnan(values)
    if kept.sum() < 2:
        return [np.nan, np.nan], np.nan, values
    chosen = float(np.var((standing[0] - standing[1])[kept], ddof=1))
    variance = (1 + training) * max(float(np.var(values[kept], ddof=1)) - chosen, 0.0) / _OUT_OF_BAG + chosen
    return [float(side[kept].mean()) for side in value], variance, values


def best_of_families(
    metric: Metric, names: np.ndarray, tables: Sequence[np.ndarray], keys: np.ndarray, seed: int
) -> dict[Any, tuple[np.ndarray, np.ndarray, int]]:
    """Return what judges the best of every family in every draw, its score on all samples, and the final best.

    `tables` hold the scores (draw, configuration) in the bag, out of it and on all samples; `names` the family of every
    column, `keys` what breaks its ties. With these `tuned_difference` is `contrast` of families, from one bootstrap.
    """
    inside, outside, plain = tables
    draw, found = np.arange(len(inside)), {}
    for name in dict.fromkeys(names.tolist()):
        own = np.flatnonzero(names == name)
        best = own[winners(metric.sign * inside[:, own], draw, keys[own], seed)[0]]
        found[name] = outside[draw, best], plain[0][best], int(own[np.argmax(metric.sign * plain[0][own])])
    return found


def _decisions(
    cube: xr.DataArray,
    inside: np.ndarray,
    metrics: tuple[Metric, Metric],
    draws: Draws,
    rules: list[Rules],
    refitted: bool,
) -> Contrasted:
    """Contrast any two decisions by a metric; another one chooses."""
    metric, by = metrics
    judged, labels, shares = [], [], {}
    for name, side, rule in zip("ab", inside, rules, strict=True):
        part = cube.isel(configuration=side)
        out = decide(by, problem_of(part, by, (metric,), rule), draws, rule, judging=False)
        choice, final = chosen_by(out, by, rule)
        judged.append(verdicts((metric,), Setting(out.problem, draws), out.decision, final, rule).each[0][0])
        labels.append(choice.label)
        if out.share is not None:
            shares[f"share_{name}"] = ("configuration", np.where(side, 0.0, np.nan))
            shares[f"share_{name}"][1][side] = out.share
    gaps = [one.value - one.anchor for one in judged]
    values = judged[0].value - judged[1].value
    kept = ~np.isnan(gaps[0] - gaps[1])
    estimate, variance = [np.nan, np.nan], np.nan
    if kept.sum() > 1:
        means = [one.naive + float(gap[kept].mean()) for one, gap in zip(judged, gaps, strict=True)]
        estimate = np.clip(means, *metric.range).tolist()
        chosen = variance_of(judged[0].everywhere - judged[1].everywhere)
        training = TRAINING if refitted else 0.0
        variance = (1 + training) * variance_of(judged[0].kept - judged[1].kept) + chosen
    naive = [one.naive for one in judged]
    return _sides(estimate, naive, labels) | shares, variance, values, np.array(naive)


def _sides(estimate: Any, naive: Any, selected: Any) -> dict[str, Any]:
    return {
        "estimate_a": estimate[0],
        "estimate_b": estimate[1],
        "naive": naive[0] - naive[1],
        "selected_a": selected[0],
        "selected_b": selected[1],
    }
