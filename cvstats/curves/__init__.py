"""Curves of what was chosen: ROC, precision and recall, calibration, decision; naive and corrected, with limits.

A curve is one decision judged by many metrics, one for each point of a grid, through `winner`.
"""

from __future__ import annotations

from .rates import precision_recall_curve, roc_curve
from .risks import calibration_curve, decision_curve

__all__ = ["calibration_curve", "decision_curve", "precision_recall_curve", "roc_curve"]
