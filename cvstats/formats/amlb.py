"""Predictions of the AutoML benchmark: class columns first, then predictions, truth; one file per fold."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ._layout import ROW_NAMES, Hints, Layout, Parsed, check_class_columns, row_ids


def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """There are no row ids, so files of several frameworks are matched by row."""
    classes = [name for name in frame.columns if name not in ("predictions", "truth", "sample", "fold", ROW_NAMES)]
    values: dict[Any, str] = {None: "predictions"}
    if classes and hints.kind != "label":
        check_class_columns(frame, classes, "amlb")
        values = {name: name for name in classes}
    sample, note = row_ids(frame)
    out = pd.DataFrame({"sample": sample, "configuration": hints.name, "label": frame["truth"]})
    for name in ("fold", *values.values()):
        if name in frame.columns:
            out[name] = frame[name]
    return Parsed(out, values, notes=[note])


LAYOUT = Layout(
    name="amlb",
    title="AutoML benchmark (class columns, predictions, truth)",
    needs=("predictions", "truth"),
    lacks=("row_ids", "id"),
    unlike="mlr3 (row_ids, response, truth)",
    knows=("sample", "fold"),
    parse=parse,
)
