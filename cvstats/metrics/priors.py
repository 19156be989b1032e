"""Error rate, and any other metric, in a population whose class probabilities are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, plain, show
from cvstats.cube.arrays import class_names

from .base import MADE, Metric, Sums, get_metric
from .classes import _ERROR, class_counts, error_rate


def prior_error(prior: float | Mapping[Any, float]) -> Metric:
    r"""Return the metric "error rate in a population whose class probabilities are known".

    .. math:: \varepsilon = \sum_y P(Y = y) \, \hat\varepsilon_y

    with the error of each class estimated from that class's samples alone. It is what to use when classes were sampled
    separately, so that their ratio in the data says nothing about the population. It is no better than the prior that
    you give, and undefined (NaN) when a class is absent.

    Parameters
    ----------
    prior : dict or float
        ``{label: probability}``; with two classes one of them is enough. A number is the probability of the *first*
        class (the negative one of two), the paper's *c*. Probabilities that do not add up to 1, and labels that are not
        classes of the cube, are errors.

    Returns
    -------
    Metric
        For `score` and every protocol, as any other metric.

    References
    ----------
    Braga-Neto, Zollanvari, Dougherty (2014), doi:10.1093/bioinformatics/btu527, equation 14.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[1], [0], [0], [0]], [1, 1, 0, 0])
    >>> cs.score(cube, cs.prior_error({1: 0.1, 0: 0.9})).values
    array([0.05])
    """
    try:
        values = [float(value) for value in (prior.values() if isinstance(prior, Mapping) else [prior])]
    except (TypeError, ValueError):
        raise InputError(
            f"`prior` must be {{label: probability}} or one number; got {prior!r}. Arrays go to separate_cv()."
        ) from None
    if not all(0 <= value <= 1 for value in values):
        raise InputError(f"`prior` must hold probabilities in [0, 1]; got {prior!r}.")
    given = dict(zip(map(plain, prior), values, strict=True)) if isinstance(prior, Mapping) else values[0]
    return replace(MADE["prior_error"], bind=partial(_bind, given, error_rate))


_ERROR_RATE = _ERROR | {"words": "error rate at the given prior", "ratio_free": True, "requires": "classes"}
MADE["prior_error"] = Metric("prior_error", **_ERROR_RATE, family="smooth")  # the rest is filled in by `_bind`


def at_prior(metric: str | Metric, prior: Mapping[Any, float]) -> Metric:
    r"""Return a metric as it would be in a population with other class probabilities than the sample's.

    Every sum over samples is replaced by :math:`N \sum_k P(Y = k) \, \bar s_k`, with :math:`\bar s_k` the mean over the
    samples of class k: samples count as if their class had its share in the population. What does not depend on the
    class ratio (AUC, sensitivity, balanced accuracy) stays as it is. It is what to use where classes were sampled
    separately, and what `shift_prior` is judged by.

    Parameters
    ----------
    metric : str or Metric
        A mean of per-sample values or a function of such means, such as accuracy, Brier score, log loss, predictive
        values, F1, net benefit; or one that ignores the class ratio. Average precision and metrics of your own are
        errors.
    prior : dict
        ``{label: probability}``; with two classes one of them is enough.

    Returns
    -------
    Metric
        Called, for instance, ``ppv(ill=0.02)`` in results; undefined (NaN) when a class is absent.

    References
    ----------
    Braga-Neto, Zollanvari, Dougherty (2014), doi:10.1093/bioinformatics/btu527, for the error rate.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[1], [0], [1], [0]], [1, 1, 0, 0])
    >>> cs.score(cube, cs.at_prior("ppv", {1: 0.1})).values
    array([0.1])
    """
    found = get_metric(metric)
    if not isinstance(prior, Mapping) or not prior:
        raise InputError(f"`prior` must be {{label: probability}}; got {prior!r}.")
    if found.prior is not None or found.name == "prior_error":
        raise InputError(f"metric {found.name!r} has a prior of its own; give one that has none, such as error_rate.")
    if found.family not in ("mean", "smooth") and not found.ratio_free:
        raise InputError(
            f"metric {found.name!r} is no function of means over samples, so that classes cannot be reweighted in it."
        )
    given = {plain(label): float(value) for label, value in prior.items()}
    if not all(0 <= value <= 1 for value in given.values()):
        raise InputError(f"`prior` must hold probabilities in [0, 1]; got {dict(prior)}.")
    text = ", ".join(f"{label}={value}" for label, value in given.items())
    name, words = f"{found.name}({text})", f"{found.words} at {text}"
    return replace(found, name=name, words=words, aliases=(), ratio_free=True, bind=partial(_bind, given, found))


def _bind(
    given: float | Mapping[Any, float], plainly: Metric, metric: Metric, cube: xr.DataArray, notes: list[str]
) -> Metric:
    """Fill in the classes' order, after whatever the metric itself must know of the cube."""
    free = plainly.ratio_free
    plainly = plainly if plainly.bind is None else plainly.bind(plainly, cube, notes)
    prior = resolve_prior(given, cube)
    if free:
        return replace(plainly, name=metric.name, words=metric.words, aliases=(), bind=None, prior=prior)
    return replace(
        metric,
        family="smooth",
        monotone=0,
        requires="classes",
        ingredients=partial(_by_class, plainly),
        label_parts=partial(_labels_by_class, plainly),
        formula=partial(_reweighted, plainly, prior),
        bind=None,
        prior=prior,
        curve="",
    )


def _by_class(metric: Metric, y: np.ndarray, p: np.ndarray, k: int) -> list[np.ndarray]:
    parts = metric.ingredients(y, p, k)
    return [part & (y == code) if part.dtype == bool else part * (y == code) for part in parts for code in range(k)]


def _labels_by_class(metric: Metric, y: np.ndarray, k: int) -> list[np.ndarray]:
    members = class_counts(y, k)
    parts = [] if metric.label_parts is None else metric.label_parts(y, k)
    return members + [part * member for part in parts for member in members]


def _reweighted(metric: Metric, prior: tuple[float, ...], sums: Sums, labels: Sums) -> np.ndarray:
    """Return the metric of sums in which a class counts by its share in the population."""
    k, total = len(prior), labels[0]
    factor = [share * total / count for share, count in zip(prior, labels[1 : k + 1], strict=True)]

    def added(parts: Sums) -> list[Any]:
        by_class = (parts[at : at + k] for at in range(0, len(parts), k))
        return [sum(f * part for f, part in zip(factor, some, strict=True)) for some in by_class]

    value = metric.formula(added(sums), [total, *added(labels[k + 1 :])])
    return np.where(np.all(np.broadcast_arrays(*labels[1 : k + 1]), axis=0), value, np.nan)


def resolve_prior(prior: float | Mapping[Any, float], cube: xr.DataArray) -> tuple[float, ...]:
    """Return the prior in the order of the cube's class codes."""
    names = class_names(cube)
    if names is None:
        raise InputError("`prior` is for class labels, but the cube holds numbers.")
    if not isinstance(prior, Mapping):
        if len(names) != 2:
            raise InputError(
                f"`prior` must be {{label: probability}} for {len(names)} classes {show(names)}; got {prior!r}."
            )
        return (float(prior), 1.0 - float(prior))
    return prior_in_order(prior, names)


def prior_in_order(prior: Mapping[Any, float], names: Sequence[Any], argument: str = "prior") -> tuple[float, ...]:
    """Return the probabilities of the classes `names`, in their order; with two classes one of them is enough."""
    stray = [name for name in prior if name not in names]
    if stray:
        raise InputError(f"`{argument}` names {show(stray)}, not among the classes {show(names)}.")
    absent = [name for name in names if name not in prior]
    rest = 1.0 - sum(prior.values())
    if len(absent) > (len(names) == 2):
        raise InputError(f"`{argument}` lacks the classes {show(absent)}; give the probability of each.")
    if abs(min(rest, 0.0) if absent else rest) > 1e-9:
        raise InputError(f"`{argument}` must add up to 1; it adds up to {sum(prior.values()):g}.")
    return tuple(float(prior.get(name, rest)) for name in names)
