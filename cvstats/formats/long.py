"""Our own long table: one row per sample, configuration and repeat."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cvstats._check import InputError, show

from ._layout import ROW_NAMES, TRUTHS, Hints, Layout, Parsed, truth_column

KEYS = ("sample", "configuration", "repeat", "fold", "label", "group", "weight", "event")
SETTLED = ("kind", "positive", "threshold", "classes")  # scalar coordinates that a cube written as a table brings along
PREFIX = "prediction_"


def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """Take the columns as they are."""
    columns = list(frame.columns)
    by_class = [name for name in columns if name.startswith(PREFIX) and name != PREFIX]
    if "prediction" in columns and by_class:
        raise InputError(
            f"the table has both 'prediction' and {show(by_class)}: give one value per prediction or one per class, "
            "or say which with columns={'prediction': ...}."
        )
    values: dict[Any, str] = (
        {None: "prediction"} if "prediction" in columns else {c[len(PREFIX) :]: c for c in by_class}
    )
    truth = truth_column(frame, hints, "long")
    if truth is not None and truth != "label":
        frame = frame.rename(columns={truth: "label"})
        columns = list(frame.columns)
    known = {*KEYS, *SETTLED, *values.values(), ROW_NAMES}
    extras = [name for name in columns if name not in known]
    parsed = Parsed(frame, values, extras)
    for name in SETTLED[:3]:
        if name in columns:
            setattr(parsed, name, _constant(frame[name], name))
    if parsed.threshold is not None:
        parsed.threshold = float(parsed.threshold)
    return parsed


def _constant(column: pd.Series, name: str) -> Any:
    found = column.dropna().unique()
    if len(found) > 1:
        raise InputError(f"column {name!r} must hold one value for the whole table; found {show(found)}.")
    return found[0] if len(found) else None


LAYOUT = Layout(
    name="long",
    title="long table (sample, configuration, [repeat], [fold], prediction or prediction_<class>, label)",
    needs=("sample", r"prediction(_.+)?"),
    lacks=("inst#", "row_id", "prediction_label", r"\.pred.*"),
    unlike="OpenML (row_id; its `sample` is a learning-curve index), PyCaret (prediction_label), mljar (target)",
    knows=(*KEYS, *SETTLED, *TRUTHS),
    parse=parse,
    chunked=True,
)
