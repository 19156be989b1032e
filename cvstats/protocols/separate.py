"""Separate sampling: class errors first, and an overall error only for a known prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, Rng, check_level, entropy, show
from cvstats._results import call_text, describe, result
from cvstats.cube.arrays import check_cube, class_names, map_batches, problem_on, surveyed
from cvstats.intervals import check_times
from cvstats.judge import scored
from cvstats.metrics import Metric, bound_metric, get_metric, prior_error, resolve_prior, score
from cvstats.resample import Bootstrap, Given, codes_of

from .common import warn_once
from .registry import needs_no_partners, needs_partners, protocol

PriorGiven = float | Mapping[Any, Any] | Any

NUMBERS = ("estimate", "std_error", "conf_low", "conf_high", "bound_low", "bound_high")
LOSSES = ("error_rate", "brier", "log_loss", "smoothed_error_rate")
FEW = 5  # samples of a class below which no interval is given
NO_PRIOR = (
    "without a prior only class errors are returned, because classes sampled separately do not tell how frequent they "
    "are and no overall error can be estimated; give prior={label: probability}"
)


@protocol("separate_cv", "Separate-sampling CV", "nobody", "each class, at the prior", applies=needs_partners)
def separate_cv(
    cube: xr.DataArray,
    metric: str | Metric = "error_rate",
    *,
    prior: PriorGiven | None = None,
    level: float = 0.95,
    times: int = 1000,
    rng: Rng = None,
) -> xr.Dataset:
    r"""Return the error of every configuration when the classes were sampled separately.

    The estimand is the error in a population with known class probabilities. When n_0 and n_1 were fixed by design
    their ratio says nothing about the population, and ordinary cross-validation is biased however large the sample.
    With folds :math:`U_i` of class 0 and :math:`V_j` of class 1, every pair left out once,

    .. math:: \hat\varepsilon_0 = \frac{1}{n_0 k_1} \sum_{i,j} \sum_{r \in U_i} I(\text{wrong}_{ij}(r)), \qquad
              \hat\varepsilon = c\,\hat\varepsilon_0 + (1 - c)\,\hat\varepsilon_1.

    A sample's value is its mean over partners (and repeats), so unequal folds and leave-one-out need nothing special.
    To choose among configurations use `bbc` or `winner` with the metric `prior_error` on the same cube.

    Parameters
    ----------
    cube : DataArray
        Separate-sampling cube: dims ``sample, configuration, partner[, repeat]``; see `separate_folds`, `pairs`.
    metric : str or Metric
        A mean of per-sample losses: ``"error_rate"``, ``"brier"``, ``"log_loss"``, ``"smoothed_error_rate"``.
    prior : dict, float or array-like, optional
        ``{label: probability}`` (of two classes one is enough), or one number, the probability of the *first* class.
        An array of numbers (or ``{label: array}``) gives the dim ``prior``. Without it only class errors are
        returned, because then no overall estimate exists.
    level : float
        Level of the intervals.
    times : int
        Number of bootstrap draws, within each class.
    rng : int or numpy.random.Generator, optional
        Seed or generator.

    Returns
    -------
    xarray.Dataset
        ``class_error(configuration, label_class)`` with ``class_std_error``, ``class_conf_low``, ``class_conf_high``;
        with a prior also ``estimate``, ``std_error``, ``conf_low``, ``conf_high``, ``bound_low``, ``bound_high``
        over ``configuration[, prior]``, and ``class_prior``. The coordinate ``prior`` is the probability of
        ``prior_class``. Limits of error rates are Wilson's, with the sample size that the bootstrap spread stands for
        (at most that of the class), joined over classes as variances are (MOVER); of other losses they are percentiles.
        They see nothing of the training.

    References
    ----------
    Braga-Neto, Zollanvari, Dougherty (2014). Cross-validation under separate sampling: strong bias and how to
    correct it. Bioinformatics 30, 3349-3355. doi:10.1093/bioinformatics/btu527

    Zou, Donner (2008), doi:10.1002/sim.3095, for the limits.

    Examples
    --------
    >>> import cvstats as cs
    >>> separate, ordinary = cs.separate_gaussian(80, ratio=0.7, prior=0.1, rng=6)
    >>> out = cs.separate_cv(separate, prior={0: 0.1}, rng=1)
    >>> out.estimate.values.round(3), out.class_error.values.round(3)
    (array([0.179]), array([[0.064, 0.192]]))
    """
    check_cube(cube)
    if "partner" not in cube.dims:
        raise InputError(
            "`cube` has no dimension 'partner', so it is not a separate-sampling cube; see pairs() for the design. "
            "prior_reweighted_cv() approximates it from ordinary folds."
        )
    return _estimates(cube, metric, prior=prior, level=level, times=times, rng=rng, method="separate_cv")


@protocol("prior_reweighted_cv", "Prior-reweighted CV", "nobody", "each class, at the prior", applies=needs_no_partners)
def prior_reweighted_cv(
    cube: xr.DataArray,
    metric: str | Metric = "error_rate",
    *,
    prior: PriorGiven,
    level: float = 0.95,
    times: int = 1000,
    rng: Rng = None,
) -> xr.Dataset:
    r"""Return class errors of *ordinary* folds weighted by a known prior: an approximation to `separate_cv`.

    .. math:: \tilde\varepsilon = \sum_y P(Y = y) \, \hat\varepsilon_y

    with :math:`\hat\varepsilon_y` from ordinary cross-validation. The weights are right but the models are not: an
    ordinary fold leaves out both classes in the ratio that the fold happens to hold, and with stratified folds one
    partner instead of all. Its bias is of the order of the fold's share of the data, its variance larger than that of
    `separate_cv`. On a hold-out set that trained no model it is exact.

    Parameters
    ----------
    cube : DataArray
        Ordinary cube: dims ``sample, configuration[, repeat]``.
    metric, prior, level, times, rng : as in `separate_cv`
        Loss, prior (required), level of the interval, number of draws, seed.

    Returns
    -------
    xarray.Dataset
        As `separate_cv`, with the method ``"prior_reweighted_cv"``.

    References
    ----------
    Braga-Neto, Zollanvari, Dougherty (2014), doi:10.1093/bioinformatics/btu527, equation 14 with the class errors of 8.

    Examples
    --------
    >>> import cvstats as cs
    >>> separate, ordinary = cs.separate_gaussian(80, ratio=0.7, prior=0.1, rng=6)
    >>> cs.prior_reweighted_cv(ordinary, prior={0: 0.1}, rng=1).estimate.values.round(3)
    array([0.195])
    """
    check_cube(cube)
    if "partner" in cube.dims:
        raise InputError("`cube` is a separate-sampling cube (dimension 'partner'); use separate_cv().")
    if prior is None:
        raise InputError(
            "`prior` is required: give {label: probability}. classical_cv() weights by the sampling ratio."
        )
    return _estimates(cube, metric, prior=prior, level=level, times=times, rng=rng, method="prior_reweighted_cv")


@protocol("classical_cv", "Classical CV", "nobody", "all samples")
def classical_cv(
    cube: xr.DataArray, metric: str | Metric = "error_rate", *, level: float = 0.95, times: int = 1000, rng: Rng = None
) -> xr.Dataset:
    """Return ordinary cross-validation for comparison: class errors weighted by how many samples each class has.

    Under separate sampling it estimates the error in a population with the *sampling* ratio, so its bias does not
    vanish with n. From a separate-sampling cube it can be read off when both classes have the same folds (each
    sample's partner is then the fold of its own number); otherwise give an ordinary cube.

    Parameters
    ----------
    cube : DataArray
        Ordinary cube, or a separate-sampling cube with k0 = k1 and the coordinate ``fold``.
    metric, level, times, rng : as in `separate_cv`
        Loss, level of the interval, number of draws, seed.

    Returns
    -------
    xarray.Dataset
        As `separate_cv`; ``class_prior`` is the share of each class among the samples.

    References
    ----------
    Braga-Neto, Zollanvari, Dougherty (2014), doi:10.1093/bioinformatics/btu527, equation 8.

    Examples
    --------
    >>> import cvstats as cs
    >>> separate, ordinary = cs.separate_gaussian(80, ratio=0.7, prior=0.1, rng=6)
    >>> cs.classical_cv(separate, rng=1).estimate.values, cs.classical_cv(ordinary, rng=1).estimate.values
    (array([0.1125]), array([0.1125]))
    """
    check_cube(cube)
    return _estimates(cube, metric, level=level, times=times, rng=rng, method="classical_cv", classical=True)


def prior_curve(
    cube: xr.DataArray,
    metric: str | Metric = "error_rate",
    *,
    prior: PriorGiven | None = None,
    level: float = 0.95,
    times: int = 1000,
    rng: Rng = None,
) -> xr.Dataset:
    r"""Return the error as a function of the prior, with what ordinary cross-validation claims beside it.

    .. math:: \hat\varepsilon(c) = c\,\hat\varepsilon_0 + (1 - c)\,\hat\varepsilon_1, \qquad 0 \le c \le 1

    What can be shown when no prior is known: a straight line for each configuration, and where lines cross the choice
    of configuration depends on the prior.

    Parameters
    ----------
    cube : DataArray
        Separate-sampling cube (`separate_cv` at every prior) or ordinary cube (`prior_reweighted_cv`); the method
        label says which. Two classes.
    metric : as in `separate_cv`
        The loss.
    prior : array-like or dict, optional
        Probabilities of the first class, or ``{label: array}``; 0, 0.01, ..., 1 by default. One number is an error.
    level, times, rng : as in `separate_cv`
        Level of the intervals, number of draws, seed.

    Returns
    -------
    xarray.Dataset
        As `separate_cv` over ``configuration, prior``, and ``classical(configuration)``: the estimate of
        `classical_cv`, NaN where it cannot be read off the cube.

    References
    ----------
    Braga-Neto, Zollanvari, Dougherty (2014), doi:10.1093/bioinformatics/btu527.

    Examples
    --------
    >>> import cvstats as cs
    >>> separate, ordinary = cs.separate_gaussian(80, ratio=0.7, prior=0.1, rng=6)
    >>> cs.prior_curve(separate, prior=[0.1, 0.5], rng=1).estimate.values.round(3)
    array([[0.179, 0.128]])
    """
    check_cube(cube)
    grid = np.linspace(0.0, 1.0, 101) if prior is None else prior
    method = "separate_cv" if "partner" in cube.dims else "prior_reweighted_cv"
    out = _estimates(cube, metric, prior=grid, level=level, times=times, rng=rng, method=method)
    if "prior" not in out.dims:
        raise InputError(f"`prior` must be an array of probabilities for a curve; got {prior!r}. Use separate_cv().")
    try:
        same = replace(get_metric(metric), bind=None)  # what binding has to say was said above
        classical = score(own_partner(cube), same)
    except PartnerError:
        classical = out["estimate"].isel(prior=0) * np.nan
    out.attrs["call"] = call_text("prior_curve", prior=_shown(prior), level=level, times=times)
    out = out.assign(classical=classical.variable)
    describe(out)
    return out


@dataclass(frozen=True)
class Priors:
    """Class probabilities: `weights` (prior, class) in class order, and as `given`, probabilities of the class `of`."""

    weights: np.ndarray
    given: np.ndarray | None
    of: Any

    @property
    def curve(self) -> bool:
        """Whether there is a dim ``prior``."""
        return self.given is not None and self.given.ndim == 1


def prior_table(prior: Any, cube: xr.DataArray, names: list[Any]) -> Priors:
    """Return the prior in any accepted form as a table in class order."""
    named = isinstance(prior, Mapping)
    arrays = {name: np.asarray(value, float) for name, value in (dict(prior) if named else {names[0]: prior}).items()}
    first, given = next(iter(arrays.items()), (names[0], np.zeros(0)))
    if all(value.ndim == 0 for value in arrays.values()):
        single = dict(prior) if named else float(given)
        prior_error(single)  # its checks of the numbers
        return Priors(np.array([resolve_prior(single, cube)]), given if len(names) == 2 else None, first)
    if named and (len(arrays) != 1 or len(names) != 2):
        raise InputError("`prior` as {label: array} must name one of two classes; the other has the rest.")
    if first not in names:
        raise InputError(f"`prior` names {show([first])}, not among the classes {show(names)}.")
    if given.ndim > 1 or given.size == 0:
        raise InputError(f"`prior` must be one number or a one-dimensional array; got shape {given.shape}.")
    if len(names) != 2:
        raise InputError(f"`prior` as an array is for two classes; the cube has {len(names)}: {show(names)}.")
    outside = ~((given >= 0) & (given <= 1))
    if outside.any():
        raise InputError(f"`prior` must hold probabilities in [0, 1]; found {show(given[outside])}.")
    pair = np.stack([given, 1 - given], axis=1)
    return Priors(pair if first == names[0] else pair[:, ::-1], given, first)


class PartnerError(InputError):
    """Ordinary cross-validation cannot be read off a separate-sampling cube."""


def own_partner(cube: xr.DataArray) -> xr.DataArray:
    """Return the ordinary cube inside a separate-sampling one: each sample's partner is the fold of its own number."""
    if "partner" not in cube.dims:
        return cube
    why, partners = "", cube["partner"].values
    if "fold" not in cube.coords:
        why = "the cube has no coordinate 'fold'"
    else:
        fold, label = xr.broadcast(cube["fold"], cube["label"])
        each = [set(np.unique(fold.values[label.values == name]).tolist()) for name in class_names(cube) or []]
        if any(ids != set(partners.tolist()) for ids in each):
            why = f"the classes have {' and '.join(str(len(ids)) for ids in each)} folds"
    if why:
        raise PartnerError(
            f"classical_cv cannot be read off this separate-sampling cube: {why}, and it needs the same folds in both "
            "classes. Give an ordinary cube."
        )
    own = cube["fold"].transpose("sample", ...).variable
    place = xr.DataArray(pd.Index(partners).get_indexer(own.values.ravel()).reshape(own.shape), dims=own.dims)
    places = {dim: xr.DataArray(np.arange(cube.sizes[dim]), dims=[dim]) for dim in own.dims}
    return cube.isel({**places, "partner": place}).drop_vars("partner", errors="ignore")


def _shown(prior: Any) -> str | None:
    return None if prior is None else str(dict(prior) if isinstance(prior, Mapping) else prior)[:80]


def _estimates(
    cube: xr.DataArray,
    metric: str | Metric,
    *,
    prior: Any = None,
    level: float,
    times: int,
    rng: Rng,
    method: str,
    classical: bool = False,
) -> xr.Dataset:
    """Return class errors and their average under each prior."""
    level, loss, names = check_level(level), get_metric(metric), class_names(cube)
    if names is None:
        raise InputError("class errors are for class labels, but the cube holds numbers. Use cv() or winner().")
    if loss.family != "mean" or loss.direction != "minimize" or loss.uses == "value":
        raise InputError(
            f"`metric` must be a mean of per-sample losses ({', '.join(LOSSES)}), because class errors are means over "
            f"the samples of a class; got {loss.name!r}."
        )
    table = None if prior is None else prior_table(prior, cube, names)
    times, seed = check_times(times, level, "percentile"), entropy(rng)
    notes = [NO_PRIOR] if prior is None and not classical else []
    bound = bound_metric(loss, own_partner(cube) if classical else cube, notes, any_cube=True)

    def one(part: xr.DataArray) -> xr.Dataset:
        errors = class_errors(own_partner(part) if classical else part, bound, names, times, seed)
        classes = np.array(names, dtype=object)
        out = _summary(errors, classes, table, level, wilson=binary(bound), classical=classical, notes=notes)
        return out.assign_coords(configuration=part["configuration"].variable)

    out = map_batches(one, cube)
    warn_once(method, notes)
    call = call_text(method, prior=_shown(prior), level=level, times=times)
    interval = "wilson" if binary(bound) else "percentile"
    out = result(out, method=method, metric=bound.name, conf_level=level, interval=interval, call=call, cube=cube)
    out = out.assign_coords(label_class=np.array(names))
    if table is None:
        return out
    curve = table.curve
    out["class_prior"] = (("prior", "label_class"), table.weights) if curve else ("label_class", table.weights[0])
    describe(out)
    if table.given is not None:
        out = out.assign_coords(prior=("prior", table.given) if curve else float(table.given), prior_class=table.of)
    return out


def binary(metric: Metric) -> bool:
    """Return whether a sample's loss is 0 or 1, so that Wilson's limits are for it."""
    return metric.uses == "label" and metric.range == (0.0, 1.0)


def _wilson(share: np.ndarray, spread: np.ndarray, size: np.ndarray, tail: float) -> np.ndarray:
    """Return Wilson's limit of shares at a tail, with the sample size that the bootstrap spread stands for.

    Never more than there are samples (or groups): those are independent at best, and without any error it is them.
    """
    from scipy.special import stdtrit

    with np.errstate(divide="ignore", invalid="ignore"):
        n = np.fmin(share * (1 - share) / spread**2, size)
        n = np.where(spread > 0, np.maximum(n, 1.0), size)
        t = stdtrit(np.maximum(size - 1.0, 1.0), tail)
        middle = (share + t**2 / (2 * n)) / (1 + t**2 / n)
        half = t * np.sqrt(share * (1 - share) / n + t**2 / (4 * n**2)) / (1 + t**2 / n)
    return np.asarray(np.clip(middle + half, 0.0, 1.0))


def _summary(
    errors: ClassErrors,
    names: np.ndarray,
    priors: Priors | None,
    level: float,
    *,
    wilson: bool,
    classical: bool,
    notes: list[str],
) -> xr.Dataset:
    """Return estimates and limits of one cube without batch dims."""
    few = errors.size < FEW
    tails = [(1 - level) / 2, (1 + level) / 2, 1 - level, level]
    point, spread, *limits = _described(errors.by_class, tails)
    if wilson:
        limits = [_wilson(point, spread, errors.size, tail) for tail in tails]
    by_class = point, np.stack(limits)
    flat = (spread == 0) & (not wilson)
    still = ~few & flat.all(axis=0)
    if few.any():
        notes.append(f"classes {show(names[few])} have fewer than {FEW} samples, so limits are NaN")
    elif still.any():
        notes.append(
            f"the error of classes {show(names[still])} does not vary over draws, so its limits are NaN and overall "
            "limits lack its uncertainty"
        )
    low, high = np.where(few | flat, np.nan, limits[:2])
    each = {"error": point, "std_error": np.where(few, np.nan, spread), "conf_low": low, "conf_high": high}
    variables: dict[str, Any] = {f"class_{name}": (("configuration", "label_class"), v) for name, v in each.items()}
    if priors is not None or classical:
        weights: Any = [] if priors is None else priors.weights  # a class of prior 0 may have no error
        at_priors = [errors.by_class[..., row > 0] @ row[row > 0] for row in weights] or [errors.overall]
        point, spread, *limits = _described(np.stack(at_priors, axis=-1), tails)
        if wilson:
            rows = [errors.share] if priors is None else priors.weights
            limits = point + np.stack([_joined(*by_class, row, tails) for row in rows], axis=-1)
        ends = np.where(few.any() | ((spread == 0) & (not wilson)), np.nan, limits)
        curve = priors is not None and priors.curve
        for name, v in zip(NUMBERS, (point, np.where(few.any(), np.nan, spread), *ends), strict=True):
            variables[name] = (("configuration", "prior"), v) if curve else ("configuration", v[:, 0])
    if classical:
        variables["class_prior"] = ("label_class", errors.share)
    return xr.Dataset({**variables, "n_draws": len(errors.by_class) - 1})


def _joined(point: np.ndarray, limits: np.ndarray, weight: np.ndarray, tails: Sequence[float]) -> np.ndarray:
    """Return how far limits of a weighted sum of independent class errors lie from it (tail, configuration).

    Distances of the classes' own limits are added as variances are (Zou and Donner's MOVER).
    """
    known = weight > 0
    apart = (limits - point)[..., known] * weight[known]
    return np.asarray(np.sign(np.array(tails) - 0.5)[:, None] * np.sqrt((apart**2).sum(axis=-1)))


def _described(table: np.ndarray, tails: Sequence[float]) -> list[np.ndarray]:
    """Return the first row (all samples), and the spread and quantiles of the others (draws)."""
    return [table[0], table[1:].std(axis=0, ddof=1), *np.quantile(table[1:], tails, axis=0)]


@dataclass(frozen=True)
class ClassErrors:
    """Errors of every configuration on all samples (first row) and in every draw, and how the classes are filled."""

    overall: np.ndarray  # (1 + draw, configuration)
    by_class: np.ndarray  # (1 + draw, configuration, class)
    size: np.ndarray  # samples, or groups, of each class
    share: np.ndarray  # of the weight


def class_errors(cube: xr.DataArray, metric: Metric, names: list[Any], times: int, seed: int) -> ClassErrors:
    """Return mean losses by class; classes are drawn separately, groups whole."""
    rows = surveyed(problem_on(cube, metric, compete=False)).rows
    cube = cube if rows.all() else cube.isel(sample=rows)
    label = cube["label"].values
    code = np.select([label == name for name in names], np.arange(len(names)), -1)
    group, unit = codes_of(cube, None, "groups"), code
    if group is not None:
        low, high = np.full(group.max() + 1, len(names)), np.full(group.max() + 1, -1)
        np.minimum.at(low, group, code)
        np.maximum.at(high, group, code)
        if (low != high).any():
            raise InputError(
                f"`cube`: {int((low != high).sum())} of {len(low)} groups hold samples of several classes; classes "
                "that were sampled separately are drawn separately, so every group must lie in one class."
            )
        unit = low
    weight = cube["weight"].values if "weight" in cube.coords else np.ones(len(code))
    share = np.bincount(code, weight, minlength=len(names)) / weight.sum()
    strata = np.unique(code, return_inverse=True)[1]
    draws = Given(np.ones((1, len(code)), np.int32)), Bootstrap(len(code), times, seed, group=group, strata=strata)
    data = problem_on(cube, metric, compete=False)
    losses = [metric, *(within_class(metric, number) for number in range(len(names)))]
    overall, *each = (np.concatenate(scored(loss, data, *draws)[1]) for loss in losses)
    return ClassErrors(overall, np.stack(each, axis=-1), np.bincount(unit, minlength=len(names)), share)


def within_class(metric: Metric, code: int) -> Metric:
    """Return the mean loss over the samples of one class as a metric."""

    def ingredients(y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
        (loss,) = metric.ingredients(y, p, k)
        return [(y == code) & loss if loss.dtype == bool else np.where(y == code, loss, 0.0)]

    return replace(
        metric,
        family="smooth",
        monotone=0,
        requires="",
        ingredients=ingredients,
        label_parts=lambda y, k: [(y == code).astype(float)],
        formula=lambda sums, labels: np.asarray(sums[0] / labels[1]),
    )
