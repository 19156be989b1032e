"""Plain cross-validation, with tuning, and with a second cross-validation to judge the winner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_option
from cvstats._results import call_text, result
from cvstats.adjust import Adjustment
from cvstats.cube.arrays import check_cube, map_batches
from cvstats.judge import Rules, Setting, decide, verdicts
from cvstats.judge.asked import adjustment_of, problem_of, stand_in
from cvstats.metrics import Metric, bound_metric, metrics_of, score
from cvstats.metrics.scoring import fold_scores
from cvstats.resample import Given, make_draws
from cvstats.select import Mixture, Select, needs_std_error, select_best

from .common import SE_DRAWS, chosen_by, claimed, counted, decided_on, final_choice, said, warn_once
from .registry import needs_repeats, protocol


@protocol("cv", "Plain CV", "nobody", "all samples")
def cv(cube: xr.DataArray, metric: str | Metric, *, average: str = "pooled", undefined: str = "nan") -> xr.Dataset:
    r"""Return the cross-validated score of every configuration.

    The estimand is the performance of each configuration *fixed in advance*. Of the best of many it is optimistic:
    see `cvt` for the claim and `winner` for the correction. With :math:`F_k` the samples of fold k and l the metric,

    .. math:: \hat\theta_j = l(y, \Pi_j) \text{ (pooled)}, \qquad
              \hat\theta_j = \frac1K \sum_k l(y_{F_k}, \Pi_{F_k, j}) \text{ (by fold)}.

    Parameters
    ----------
    cube : DataArray
        Predictions made by `as_cube`.
    metric : str or Metric
        Name, such as ``"auc"``, or metric.
    average : {"pooled", "fold"}
        Once over all samples, or the mean over folds of each fold's score.
    undefined : {"nan", "skip"}
        A fold in which the metric is undefined (AUC in a fold of one class) makes the mean over folds NaN, with one
        warning; or it is left out, and ``n_folds`` counts the folds that the mean is over.

    Returns
    -------
    xarray.Dataset
        ``estimate(configuration)`` and ``std_error(configuration)``, the standard deviation of fold scores over the
        square root of the number of folds (averaged over repeats; NaN without folds). It treats folds as
        independent, which they are not, because training sets overlap: a guide for plots, not a basis for tests.

    References
    ----------
    Stone (1974). Cross-validatory choice and assessment of statistical predictions. JRSS B 36, 111-147.
    doi:10.1111/j.2517-6161.1974.tb00994.x

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[0.9, 0.4], [0.2, 0.7], [0.8, 0.6], [0.6, 0.1]], [1, 0, 1, 0], folds=[0, 0, 1, 1])
    >>> cs.cv(cube, "accuracy").estimate.values
    array([0.75, 0.5 ])
    """
    check_cube(cube)
    found = bound_metric(metric, cube)
    estimate = score(cube, found, average=average, undefined=undefined)
    error = xr.full_like(estimate, np.nan, dtype=float)
    shared = "fold" in cube.coords and "configuration" not in cube["fold"].dims
    if shared and "partner" not in cube.dims:
        by_fold, skip = fold_scores(cube, found, undefined), undefined == "skip"
        if by_fold.sizes["fold"] > 1:
            number = by_fold.count("fold") if skip else by_fold.sizes["fold"]
            error = by_fold.std("fold", ddof=1, skipna=skip) / np.sqrt(number)
            error = error.mean("repeat") if "repeat" in error.dims else error
    error.attrs["long_name"] = "standard error of the mean over folds, as if folds were independent"
    variables = {"estimate": estimate.drop_vars("metric"), "std_error": error.drop_vars("metric", errors="ignore")}
    out = xr.Dataset(variables)
    out = out.reset_coords("n_folds") if undefined == "skip" else out
    call = call_text("cv", metric=found.name, average=average, undefined=said(undefined))
    return result(out, method="cv", metric=found.name, call=call, cube=cube)


@protocol(
    "cvt",
    "Plain CV of the winner",
    "all samples",
    "the same samples",
    "What is commonly reported: the samples that choose also judge.",
)
def cvt(
    cube: xr.DataArray,
    metric: str | Metric | Sequence[str | Metric],
    *,
    by: str | Metric | None = None,
    adjust: Adjustment | Sequence[Adjustment] | None = None,
    average: str = "pooled",
    undefined: str = "nan",
    select: Select | Mixture = select_best,
) -> xr.Dataset:
    r"""Return the score of the winner on the very samples that chose it: cross-validation with tuning.

    .. math:: L_{CVT} = \max_j \hat\theta_j \quad \text{(the minimum for losses)}

    It is what analysts commonly report, and it is optimistic: the maximum of many noisy scores exceeds the performance
    of the configuration that attains it, by +.155 at N = 20 with 200 configurations and +.008 at N = 500 in the 2018
    simulation. Shown for comparison; `winner` corrects it.

    Parameters
    ----------
    cube : DataArray
        Predictions made by `as_cube`.
    metric, by, adjust : as in `bbc`
        What judges (a list gives the dim ``metric``), what chooses, and what is done with predictions.
    average : {"pooled", "fold"}
        How folds are averaged, as in `cv`.
    undefined : {"nan", "skip"}
        What a fold does in which the metric is undefined, as in `cv`. ``"skip"`` is for one metric that chooses and
        judges, without adjustments and mixtures.
    select : callable or mixture
        Selection strategy, see `select_best`. `select_one_se` takes standard errors from 1000 bootstrap draws with a
        fixed seed.

    Returns
    -------
    xarray.Dataset
        ``estimate`` (the claim), ``naive`` (the same), ``optimism`` (0: it is not known here) and ``selected``, the
        configuration; ``share(configuration)`` of a mixture and what adjustments learned, such as ``threshold``. No
        interval: none of the usual ones holds around a winner.

    Raises
    ------
    InputError
        No configuration predicted every sample that any other predicted, so none may be selected.

    References
    ----------
    Tsamardinos, Rakhshani, Lagani (2015), doi:10.1142/S0218213015400230 (there CVM);
    Tsamardinos, Greasidou, Borboudakis (2018), doi:10.1007/s10994-018-5714-4, Algorithm 2.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[0.9, 0.4], [0.2, 0.7], [0.8, 0.6], [0.6, 0.1]], [1, 0, 1, 0])
    >>> out = cs.cvt(cube, "accuracy")
    >>> float(out.estimate), int(out.selected)
    (0.75, 0)
    """
    check_cube(cube)
    notes: list[str] = []
    metrics, chooser = metrics_of(metric, by, cube, notes)
    listed = isinstance(metric, (list, tuple))
    rules = Rules(select, ties="first", adjust=adjustment_of(adjust, cube, metrics), average=average)
    single = rules.adjust is None and not isinstance(select, Mixture)
    alone = single and metrics == (chooser,)
    if undefined == "skip" and not alone:
        raise InputError(
            "undefined='skip' is for one metric that chooses and judges; leave out `by`, `adjust`, lists and mixtures."
        )
    scores = score(cube, chooser, average=average, undefined=undefined) if single else None
    warn_once("cvt", notes)

    def one(part: xr.DataArray, own: xr.DataArray | None) -> xr.Dataset:
        if own is not None and alone:
            choice = final_choice(part, chooser, average=average, select=select, scores=own)
            value, variables = [choice.value], {"selected": choice.label, **counted(own, choice)}
        else:
            value, variables = _decided(part, metrics, chooser, rules, own)
        claim = (("metric",), np.array(value)) if listed else value[0]
        nothing = (("metric",), 0.0 * np.array(value)) if listed else 0.0 * value[0]
        coords: dict[str, Any] = {"metric": [metric.name for metric in metrics]} if listed else {}
        if "share" in variables:
            coords["configuration"] = part.coords.variables["configuration"]
        return xr.Dataset({"estimate": claim, "naive": claim, "optimism": nothing, **variables}, coords=coords)

    out = map_batches(one, cube, scores)
    if listed or chooser is not metrics[0]:
        out = out.assign_coords(by=chooser.name)
    name = tuple(metric.name for metric in metrics) if listed else metrics[0].name
    strategy = select.name if isinstance(select, Mixture) else select
    adjusted = None if rules.adjust is None else rules.adjust.name
    call = call_text(
        "cvt", metric=name, by=by, adjust=adjusted, average=average, undefined=said(undefined), select=strategy
    )
    return result(out, method="cvt", metric=metrics[0].name, call=call, cube=cube)


def _decided(
    cube: xr.DataArray, metrics: Sequence[Metric], by: Metric, rules: Rules, scores: xr.DataArray | None
) -> tuple[list[float], dict[str, Any]]:
    """Return what every metric says on all samples of the decision made on all samples, and the decision."""
    everything = Given(np.ones((1, cube.sizes["sample"]), np.int32))
    data, scoring = problem_of(cube, by, metrics, rules), rules
    if not isinstance(rules.select, Mixture):
        scoring = replace(rules, select=select_best)
    out = decide(by, data, everything, scoring, judging=False)
    if needs_std_error(rules.select):
        draws = make_draws(cube, stand_in(by, metrics, rules.adjust), SE_DRAWS, 0, None)
        out = replace(out, score_variance=decide(by, data, draws, scoring, judging=False).score_variance)
    choice, final = chosen_by(out, by, rules, scores)
    judged = verdicts(metrics, Setting(out.problem, everything, everything), out.decision, final, rules)
    return [row[0].naive for row in judged.each], {"selected": choice.label, **decided_on(judged.final)}


@protocol(
    "cvm_cv",
    "CVM-CV",
    "the first repeat",
    "the other repeats",
    "Removes the luck of the partition only.",
    applies=needs_repeats,
)
def cvm_cv(cube: xr.DataArray, metric: str | Metric, *, average: str = "pooled") -> xr.Dataset:
    r"""Return the score of the first repeat's winner on the other repeats.

    A second partition judges what the first chose, which removes the part of the optimism that comes from the luck
    of the partition; the samples are the same, so the part that comes from *them* stays. With :math:`j_1` the winner on
    repeat 1 of R,

    .. math:: L_{CVM-CV} = \frac{1}{R - 1} \sum_{r \ge 2} \hat\theta^{(r)}_{j_1}.

    Parameters
    ----------
    cube, metric, average : as in `cv`
        Predictions, metric, and how folds are averaged. The cube needs two repeats or more.

    Returns
    -------
    xarray.Dataset
        ``estimate``; ``selected_first`` (the configuration it is the score of: the winner on the first repeat);
        ``naive`` and ``selected``: value and label of the winner on all data, as `cvt` gives them.

    References
    ----------
    Tsamardinos, Rakhshani, Lagani (2015), doi:10.1142/S0218213015400230.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[[1, 1], [0, 1]], [[0, 1], [0, 1]], [[1, 1], [1, 1]]], [1, 0, 1])
    >>> out = cs.cvm_cv(cube, "accuracy")
    >>> int(out.selected_first), round(float(out.estimate), 4)
    (0, 0.6667)
    """
    check_cube(cube)
    check_option(average, ("pooled", "fold"), "average")
    found = bound_metric(metric, cube)
    if cube.sizes.get("repeat", 1) < 2:
        raise InputError(
            f"cvm_cv chooses on the first repeat and judges on the others, so it needs two; the cube has "
            f"{cube.sizes.get('repeat', 1)}. Use winner() or bbc() for one."
        )

    def one(part: xr.DataArray) -> xr.Dataset:
        choice = final_choice(part.isel(repeat=[0]), found, average=average)
        scores = score(part.isel(repeat=slice(1, None)), found, average=average)
        estimate = float(scores[choice.index]) if choice.index >= 0 else np.nan
        claim = claimed(found, estimate, final_choice(part, found, average=average))
        return xr.Dataset({**claim, "selected_first": choice.label})

    call = call_text("cvm_cv", metric=found.name, average=average)
    return result(map_batches(one, cube), method="cvm_cv", metric=found.name, call=call, cube=cube)
