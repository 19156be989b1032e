"""Cross-validation holdout predictions of H2O."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError

from ._layout import ROW_NAMES, TRUTHS, Hints, Layout, Parsed, check_class_columns, row_ids, texts, truth_column

FOLDS = ("fold_assignment", "fold")


def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Integer classes have columns p0, p1; others their bare names. Zero-filled per-fold frames are refused."""
    known = ("predict", "sample", *FOLDS, *TRUTHS, ROW_NAMES)
    columns = [name for name in frame.columns if name not in known and not name.startswith("cal_")]
    truth = truth_column(frame, hints, "h2o")
    _refuse_zero_filled(frame, columns)
    values: dict[Any, str] = {None: "predict"}
    if columns and hints.kind != "label":
        check_class_columns(frame, columns, "h2o")
        guessed = set(texts(frame["predict"].dropna().unique()))
        numbered = all(re.fullmatch(r"p-?\d+", name) for name in columns) and not guessed <= set(columns)
        values = {name[1:] if numbered else name: name for name in columns}
    sample, note = row_ids(frame)
    out = pd.DataFrame({"sample": sample, "configuration": hints.name})
    if truth is not None:
        out["label"] = frame[truth]
    fold = next((name for name in FOLDS if name in frame.columns), None)
    if fold is not None:
        out["fold"] = frame[fold]
    for name in values.values():
        out[name] = frame[name]
    return Parsed(out, values, kind=None if columns else "value", notes=[note])


def _refuse_zero_filled(frame: pd.DataFrame, columns: list[str]) -> None:
    block = frame[columns or ["predict"]]
    if any(block[name].dtype.kind not in "iuf" for name in block.columns):
        return
    zero = (block.to_numpy(float) == 0).all(axis=1)
    if zero.any() and (columns or zero.mean() >= 0.25):
        rows = np.flatnonzero(zero)
        raise InputError(
            f"H2O: {len(rows)} of {len(frame)} rows are all zero (first: row {rows[0] + 1}). This is a per-fold "
            "frame of cross_validation_predictions(), zero outside its fold; save "
            "cross_validation_holdout_predictions() instead."
        )


LAYOUT = Layout(
    name="h2o",
    title="H2O cross_validation_holdout_predictions() (predict, p0, p1 or class names, [fold_assignment])",
    needs=("predict",),
    lacks=("prediction_label", "inst#"),
    unlike="Weka, whose column is called predicted",
    knows=("sample", *FOLDS, *TRUTHS, r"p-?\d+", "cal_.+"),
    parse=parse,
)
