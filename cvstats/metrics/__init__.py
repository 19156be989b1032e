"""Metrics: functions that carry their direction, their range and the family that decides how they are computed."""

from __future__ import annotations

import xarray as xr

from cvstats._check import InputError, check_option

from .base import Metric, as_metric, bound_metric, define, get_metric, metrics_of, never_chooses, traits_of
from .calibration import calibration_intercept, calibration_slope, ici, observed_expected
from .classes import (
    accuracy,
    balanced_accuracy,
    error_rate,
    f1,
    mcc,
    prior_error,
    prior_in_order,
    resolve_prior,
    sensitivity,
    specificity,
)
from .clinical import (
    kappa,
    negative_likelihood_ratio,
    net_benefit,
    npv,
    positive_likelihood_ratio,
    ppv,
    precision,
    recall,
    youden,
)
from .curves import partial_auc, sensitivity_at, specificity_at
from .numbers import brier, log_loss, mae, mse, r2, rmse, smoothed_error_rate
from .priors import at_prior
from .ranks import auc, auc_ovr, auc_ovr_weighted, average_precision, concordance
from .sets import metric_set
from .survival import survival_auc, survival_brier, survival_observed_expected, truncated_concordance, uno_concordance

__all__ = [
    "Metric", "accuracy", "as_metric", "at_prior", "auc", "auc_ovr", "auc_ovr_weighted", "average_precision",
    "balanced_accuracy", "bound_metric", "brier", "calibration_intercept", "calibration_slope", "concordance",
    "define", "error_rate", "f1", "get_metric", "ici", "kappa", "log_loss", "mae", "mcc", "metric_set",
    "metrics_of", "mse", "negative_likelihood_ratio", "net_benefit", "never_chooses", "npv", "observed_expected",
    "partial_auc", "positive_likelihood_ratio", "ppv", "precision", "prior_error", "prior_in_order", "r2", "recall",
    "resolve_prior", "rmse", "score", "sensitivity", "sensitivity_at", "smoothed_error_rate", "specificity",
    "specificity_at", "survival_auc", "survival_brier", "survival_observed_expected", "traits_of",
    "truncated_concordance", "uno_concordance", "youden",
]  # fmt: skip


def score(cube: xr.DataArray, metric: str | Metric, *, average: str = "pooled", undefined: str = "nan") -> xr.DataArray:
    """Return the metric of every configuration.

    The estimand is the performance of each configuration fixed in advance. The metric is computed within each repeat
    and averaged over repeats. Case weights (coordinate ``weight``) count as repeated rows. Predictions that are missing
    are left out; a sample's value is then its mean over the repeats that have it.

    Parameters
    ----------
    cube : DataArray
        Predictions made by `as_cube`.
    metric : str or Metric
        Name, such as ``"auc"``, or metric. One that does not fit the kind of predictions is an error.
    average : {"pooled", "fold"}
        Once over all samples; or within each fold, then the mean over folds (needs folds).
    undefined : {"nan", "skip"}
        What a fold does that lacks what the metric needs, such as a class: it makes the mean NaN, with one warning;
        or the mean is over the other folds, which the coordinate ``n_folds`` counts.

    Returns
    -------
    xarray.DataArray
        Over ``configuration`` and the batch dims.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[0.9, 0.4], [0.2, 0.7], [0.8, 0.6]], [1, 0, 1])
    >>> cs.score(cube, "auc").values
    array([1., 0.])
    """
    from .scoring import fold_average, pooled_scores

    check_average(average, undefined)
    return pooled_scores(cube, metric) if average == "pooled" else fold_average(cube, metric, undefined)


def check_average(average: str, undefined: str) -> None:
    """Raise unless both are known, and fit."""
    check_option(average, ("pooled", "fold"), "average")
    check_option(undefined, ("nan", "skip"), "undefined")
    if undefined == "skip" and average == "pooled":
        raise InputError("undefined='skip' leaves folds out of a mean over folds; give average='fold' with it.")


Metric.score = staticmethod(score)
