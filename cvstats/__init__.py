"""Honest numbers from saved cross-validation predictions.

Names are loaded on first use (PEP 562), so ``import cvstats`` stays as light as xarray itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public names by the module that holds them, in the order data flows.
_MODULES: dict[str, tuple[str, ...]] = {
    "_check": ("CvstatsWarning", "InputError"),
    "cube": (
        "as_cube",
        "check_cube",
    ),
    "metrics": (
        "Metric",
        "accuracy",
        "as_metric",
        "auc",
        "auc_ovr",
        "auc_ovr_weighted",
        "average_precision",
        "balanced_accuracy",
        "brier",
        "concordance",
        "error_rate",
        "f1",
        "log_loss",
        "mae",
        "mcc",
        "mse",
        "prior_error",
        "r2",
        "rmse",
        "score",
        "sensitivity",
        "smoothed_error_rate",
        "specificity",
    ),
    "select": (
        "select_best",
        "select_one_se",
        "select_within",
    ),
    "resample": (
        "bootstrap",
        "jackknife",
        "subsample",
    ),
    "judge": ("select_and_judge",),
    "protocols.tuned": (
        "cv",
        "cvt",
        "cvm_cv",
    ),
    "protocols.tibshirani": ("tt",),
    "protocols.nested": ("ncv",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", *_HOME]  # noqa: PLE0604

if TYPE_CHECKING:
    from ._check import CvstatsWarning as CvstatsWarning
    from ._check import InputError as InputError
    from .cube import as_cube as as_cube
    from .cube import check_cube as check_cube
    from .metrics import Metric as Metric
    from .metrics import accuracy as accuracy
    from .metrics import as_metric as as_metric
    from .metrics import auc as auc
    from .metrics import auc_ovr as auc_ovr
    from .metrics import auc_ovr_weighted as auc_ovr_weighted
    from .metrics import average_precision as average_precision
    from .metrics import balanced_accuracy as balanced_accuracy
    from .metrics import brier as brier
    from .metrics import concordance as concordance
    from .metrics import error_rate as error_rate
    from .metrics import f1 as f1
    from .metrics import log_loss as log_loss
    from .metrics import mae as mae
    from .metrics import mcc as mcc
    from .metrics import mse as mse
    from .metrics import prior_error as prior_error
    from .metrics import r2 as r2
    from .metrics import rmse as rmse
    from .metrics import score as score
    from .metrics import sensitivity as sensitivity
    from .metrics import smoothed_error_rate as smoothed_error_rate
    from .metrics import specificity as specificity
    from .select import select_best as select_best
    from .select import select_one_se as select_one_se
    from .select import select_within as select_within
    from .resample import bootstrap as bootstrap
    from .resample import jackknife as jackknife
    from .resample import subsample as subsample
    from .judge import select_and_judge as select_and_judge
    from .protocols.tuned import cv as cv
    from .protocols.tuned import cvt as cvt
    from .protocols.tuned import cvm_cv as cvm_cv
    from .protocols.tibshirani import tt as tt
    from .protocols.nested import ncv as ncv


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'cvstats' has no attribute {name!r}")
    value = getattr(import_module(f"cvstats.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
