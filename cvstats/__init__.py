"""Honest numbers from saved cross-validation predictions.

Names are loaded on first use (PEP 562), so ``import cvstats`` stays as light as xarray itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public names by the module that holds them, in the order data flows.
_MODULES: dict[str, tuple[str, ...]] = {
    "_check": (
        "CvstatsWarning",
        "InputError",
    ),
    "read": (
        "example_cube",
        "load_report",
        "read_cube",
        "read_predictions",
        "write_cube",
    ),
    "cube": (
        "as_cube",
        "check_cube",
    ),
    "describe": ("describe_cube",),
    "folds": (
        "kfold",
        "nested_folds",
        "pairs",
        "separate_folds",
        "train_test",
    ),
    "metrics": (
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
        "Metric",
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
        "cvm_cv",
        "cvt",
    ),
    "protocols.tibshirani": ("tt",),
    "protocols.nested": ("ncv",),
    "protocols.bootstrap_corrected": ("bbc",),
    "protocols.dropping": (
        "bbcd",
        "drop_configurations",
    ),
    "protocols.recommended": ("winner",),
    "protocols.separate": (
        "classical_cv",
        "prior_curve",
        "prior_reweighted_cv",
        "separate_cv",
    ),
    "protocols.pitfalls": ("implementations",),
    "protocols.evaluation": ("evaluation_protocols",),
    "intervals": (
        "bca",
        "calibrated",
        "delong",
        "double_bootstrap",
        "percentile",
        "wilson",
    ),
    "optimism": ("optimism_curve",),
    "compare": (
        "best_set",
        "bias_table",
        "contrast",
        "corrected_t_test",
        "critical_difference",
        "delong_test",
        "friedman_test",
        "levene_test",
        "mcnemar_test",
        "nemenyi_test",
        "obrien_test",
        "p_adjust",
        "pitman_morgan_test",
        "t_test",
        "wilcoxon_test",
    ),
    "simulate": (
        "coverage",
        "expected_maximum",
        "ripley_mixture",
        "separate_gaussian",
        "simulate_cube",
    ),
    "tables": (
        "augment",
        "bind",
        "confint",
        "format_table",
        "tidy",
    ),
    "plot": (
        "plot_bias",
        "plot_coverage",
        "plot_critical_difference",
        "plot_dropping",
        "plot_intervals",
        "plot_optimism",
        "plot_prior",
        "plot_win_rates",
    ),
    "report": (
        "report_html",
        "report_text",
    ),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", *_HOME]

if TYPE_CHECKING:
    from ._check import CvstatsWarning as CvstatsWarning
    from ._check import InputError as InputError
    from .compare import best_set as best_set
    from .compare import bias_table as bias_table
    from .compare import contrast as contrast
    from .compare import corrected_t_test as corrected_t_test
    from .compare import critical_difference as critical_difference
    from .compare import delong_test as delong_test
    from .compare import friedman_test as friedman_test
    from .compare import levene_test as levene_test
    from .compare import mcnemar_test as mcnemar_test
    from .compare import nemenyi_test as nemenyi_test
    from .compare import obrien_test as obrien_test
    from .compare import p_adjust as p_adjust
    from .compare import pitman_morgan_test as pitman_morgan_test
    from .compare import t_test as t_test
    from .compare import wilcoxon_test as wilcoxon_test
    from .cube import as_cube as as_cube
    from .cube import check_cube as check_cube
    from .describe import describe_cube as describe_cube
    from .folds import kfold as kfold
    from .folds import nested_folds as nested_folds
    from .folds import pairs as pairs
    from .folds import separate_folds as separate_folds
    from .folds import train_test as train_test
    from .intervals import bca as bca
    from .intervals import calibrated as calibrated
    from .intervals import delong as delong
    from .intervals import double_bootstrap as double_bootstrap
    from .intervals import percentile as percentile
    from .intervals import wilson as wilson
    from .judge import select_and_judge as select_and_judge
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
    from .optimism import optimism_curve as optimism_curve
    from .plot import plot_bias as plot_bias
    from .plot import plot_coverage as plot_coverage
    from .plot import plot_critical_difference as plot_critical_difference
    from .plot import plot_dropping as plot_dropping
    from .plot import plot_intervals as plot_intervals
    from .plot import plot_optimism as plot_optimism
    from .plot import plot_prior as plot_prior
    from .plot import plot_win_rates as plot_win_rates
    from .protocols.bootstrap_corrected import bbc as bbc
    from .protocols.dropping import bbcd as bbcd
    from .protocols.dropping import drop_configurations as drop_configurations
    from .protocols.evaluation import evaluation_protocols as evaluation_protocols
    from .protocols.nested import ncv as ncv
    from .protocols.pitfalls import implementations as implementations
    from .protocols.recommended import winner as winner
    from .protocols.separate import classical_cv as classical_cv
    from .protocols.separate import prior_curve as prior_curve
    from .protocols.separate import prior_reweighted_cv as prior_reweighted_cv
    from .protocols.separate import separate_cv as separate_cv
    from .protocols.tibshirani import tt as tt
    from .protocols.tuned import cv as cv
    from .protocols.tuned import cvm_cv as cvm_cv
    from .protocols.tuned import cvt as cvt
    from .read import example_cube as example_cube
    from .read import load_report as load_report
    from .read import read_cube as read_cube
    from .read import read_predictions as read_predictions
    from .read import write_cube as write_cube
    from .report import report_html as report_html
    from .report import report_text as report_text
    from .resample import bootstrap as bootstrap
    from .resample import jackknife as jackknife
    from .resample import subsample as subsample
    from .select import select_best as select_best
    from .select import select_one_se as select_one_se
    from .select import select_within as select_within
    from .simulate import coverage as coverage
    from .simulate import expected_maximum as expected_maximum
    from .simulate import ripley_mixture as ripley_mixture
    from .simulate import separate_gaussian as separate_gaussian
    from .simulate import simulate_cube as simulate_cube
    from .tables import augment as augment
    from .tables import bind as bind
    from .tables import confint as confint
    from .tables import format_table as format_table
    from .tables import tidy as tidy


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'cvstats' has no attribute {name!r}")
    value = getattr(import_module(f"cvstats.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
