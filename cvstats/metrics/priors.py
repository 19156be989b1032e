"""Any metric in a population whose class probabilities are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, plain

from .base import Metric, Sums, get_metric
from .classes import class_counts, resolve_prior


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


def _bind(given: Mapping[Any, float], plainly: Metric, metric: Metric, cube: xr.DataArray, notes: list[str]) -> Metric:
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

    return metric.formula(added(sums), [total, *added(labels[k + 1 :])])
