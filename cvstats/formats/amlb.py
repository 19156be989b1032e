"""Predictions of the AutoML benchmark: class columns first, then predictions, truth; one file per fold."""

from __future__ import annotations

import pandas as pd

from ._layout import Hints, Parsed, check_classes, chosen, in_our_words, layout, others


@layout(
    "amlb",
    "AutoML benchmark (class columns, predictions, truth)",
    needs=("predictions", "truth"),
    lacks=("row_ids", "id"),
    # not to be confused with mlr3 (row_ids, response, truth)
    knows=("sample", "fold"),
)
def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """There are no row ids, so files of several frameworks are matched by row."""
    classes = others(frame, ("predictions", "truth", "sample", "fold"))
    values = chosen({name: name for name in classes}, "predictions", hints)
    if None not in values:
        check_classes(frame, classes, "amlb")
    return in_our_words(frame, {"label": "truth", "fold": "fold"}, values)
