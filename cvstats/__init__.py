"""Honest numbers from saved cross-validation predictions.

The dozen that matter (``import cvstats as cs``):

    read_predictions   a table of predictions, of many tools, as a cube
    as_cube            the same from arrays
    summary            what was read, what is odd about it, and the headline
    winner             how good is what won: estimate, interval, optimism
    best_set           which configurations cannot be excluded as the best
    contrast           two configurations, or two tuned families
    roc_curve, calibration_curve, decision_curve   curves of what won
    score              plain scores of all configurations
    tidy               any result as a data frame
    report_html        all of it as one page; report_text is its methods paragraph

More, by prefix or by kind (``help(cvstats.winner)`` and so on; ``cvstats help METHOD`` in a shell):

    read and write     read_*, write_cube, example_cube, simulate_*, describe_cube
    estimates          bbc, bbcd, ncv, tt, cvm_cv, cvt, cv, bbc_folds, separate_cv, prior_curve
    metrics            auc, brier, accuracy, mse, concordance ...; metric_set, as_metric, at_prior
    decisions          select_*, ensemble, top_mean, cut, recalibrate, shift_prior
    intervals          calibrated, percentile, wilson, delong, bca, double_bootstrap
    tests              *_test, critical_difference, p_adjust, meta_analysis
    figures            plot_*; cvstats.plot.journal has settings for print
    draws and folds    bootstrap, subsample, jackknife, kfold, nested_folds, separate_folds
    tables             tidy, augment, bind, confint, format_table
    planning           precision_plan, optimism_curve, coverage
"""

# Names are loaded on first use (PEP 562), so `import cvstats` stays as light as xarray itself. Which names there are,
# and where they live, stands once, in `__init__.pyi`.

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOME = {name: module for module, name in re.findall(r"^from \.(\S+) import (\w+) as", _STUB, re.MULTILINE)}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'cvstats' has no attribute {name!r}")
    value = getattr(import_module(f"cvstats.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def _in_notebooks() -> None:
    """Where IPython runs, let results begin with their sentence."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None

    def page(dataset: Any) -> Any:
        return import_module("cvstats.report.summary").page_of(dataset)

    def text(dataset: Any, printer: Any, cycle: bool) -> None:
        printer.text(import_module("cvstats.report.summary").text_of(dataset))

    if shell is not None:
        shell.display_formatter.formatters["text/html"].for_type_by_name("xarray.core.dataset", "Dataset", page)
        shell.display_formatter.formatters["text/plain"].for_type_by_name("xarray.core.dataset", "Dataset", text)


_in_notebooks()
