"""Figures. Each draws a computed result, takes and returns matplotlib axes, and keeps no global state.

Letters, colours and sizes are those of the reader's matplotlib settings, where these differ from matplotlib's own.
"""

from __future__ import annotations

from .configurations import plot_configurations, plot_scores_by
from .curves import plot_calibration, plot_decision, plot_precision_recall, plot_roc
from .estimates import plot_forest, plot_intervals, plot_optimism, plot_win_rates
from .studies import plot_bias, plot_coverage, plot_critical_difference, plot_dropping, plot_prior
from .style import journal

__all__ = [
    "journal", "plot_bias", "plot_calibration", "plot_configurations", "plot_coverage", "plot_critical_difference",
    "plot_decision", "plot_dropping", "plot_forest", "plot_intervals", "plot_optimism", "plot_precision_recall",
    "plot_prior", "plot_roc", "plot_scores_by", "plot_win_rates",
]  # fmt: skip
