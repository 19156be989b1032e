"""Metrics: functions that carry their direction, their range and the family that decides how they are computed."""

from __future__ import annotations

from .base import Metric, bound_metric, define, get_metric, metrics_of, never_chooses, score, traits_of
from .calibration import calibration_intercept, calibration_slope, ici, observed_expected
from .classes import accuracy, balanced_accuracy, error_rate, f1, mcc, sensitivity, specificity
from .clinical import kappa, negative_likelihood_ratio, npv, positive_likelihood_ratio, ppv, precision, recall, youden
from .curves import net_benefit, partial_auc, sensitivity_at, specificity_at
from .custom import as_metric
from .numbers import brier, log_loss, mae, mse, r2, rmse, smoothed_error_rate
from .priors import at_prior, prior_error, prior_in_order, resolve_prior
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
