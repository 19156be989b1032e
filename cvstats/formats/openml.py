"""Predictions of an OpenML run (ARFF, or the same columns in CSV)."""

from __future__ import annotations

import pandas as pd

from cvstats._check import InputError, show

from ._layout import Hints, Parsed, chosen, class_columns, in_our_words, layout


@layout(
    "openml",
    "OpenML run predictions (repeat, fold, row_id, prediction, correct or truth, confidence.<class>)",
    needs=("row_id", "prediction", "fold", "correct|truth"),
    # not to be confused with our long table: OpenML's `sample` is not the row
    knows=("repeat", "sample", r"confidence\..+"),
)
def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """`sample` is a learning-curve index here, never the row; the truth is `correct` or `truth`."""
    truth = [name for name in ("correct", "truth") if name in frame.columns]
    if len(truth) != 1:
        raise InputError(f"OpenML: the truth is called 'correct' or 'truth'; found {show(truth) or 'neither'}.")
    notes = []
    if "sample" in frame.columns:
        if (sizes := len(frame["sample"].unique())) > 1:
            raise InputError(
                f"OpenML: learning-curve run with {sizes} training sizes in column 'sample'; keep the rows of one size."
            )
        notes.append("column `sample` is OpenML's learning-curve index; samples are named by `row_id`")
    values = chosen(class_columns(frame.columns, r"confidence\.(.*)"), "prediction", hints)
    roles = {"sample": "row_id", "label": truth[0], "repeat": "repeat", "fold": "fold"}
    return in_our_words(frame, roles, values, notes, kind="value" if truth == ["truth"] else None)
