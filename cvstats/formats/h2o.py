"""Cross-validation holdout predictions of H2O."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from cvstats._check import InputError

from ._columns import words
from ._layout import TRUTHS, Hints, Parsed, check_classes, chosen, in_our_words, layout, others, truth_column

FOLDS = ("fold_assignment", "fold")


@layout(
    "h2o",
    "H2O cross_validation_holdout_predictions() (predict, p0, p1 or class names, [fold_assignment])",
    needs=("predict",),
    lacks=("prediction_label", "inst#"),
    # not to be confused with Weka, whose column is called predicted
    knows=("sample", *FOLDS, *TRUTHS, r"p-?\d+", "cal_.+"),
)
def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Integer classes have columns p0, p1; others their bare names. Zero-filled per-fold frames are refused."""
    columns = [c for c in others(frame, ("predict", "sample", *FOLDS, *TRUTHS)) if not c.startswith("cal_")]
    truth = truth_column(frame, hints, "h2o")
    _refuse_zero_filled(frame, columns)
    numbered = all(re.fullmatch(r"p-?\d+", name) for name in columns) and not words(frame["predict"]) <= set(columns)
    values = chosen({name[1:] if numbered else name: name for name in columns}, "predict", hints)
    if None not in values:
        check_classes(frame, columns, "h2o")
    fold = next((name for name in FOLDS if name in frame.columns), None)
    return in_our_words(frame, {"label": truth, "fold": fold}, values, kind=None if columns else "value")


def _refuse_zero_filled(frame: pd.DataFrame, columns: list[str]) -> None:
    block = frame[columns or ["predict"]]
    if any(block[name].dtype.kind not in "iuf" for name in block.columns):
        return
    zero = (block.to_numpy(float) == 0).all(axis=1)
    if zero.any() and (columns or zero.mean() >= 0.25):
        raise InputError(
            f"H2O: {zero.sum()} of {len(frame)} rows are all zero (first: row {np.argmax(zero) + 1}). This is a "
            "per-fold frame of cross_validation_predictions(), zero outside its fold; save "
            "cross_validation_holdout_predictions() instead."
        )
