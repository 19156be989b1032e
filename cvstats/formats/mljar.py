"""predictions_out_of_folds.csv of mljar-supervised."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError, show

from ._columns import natural_column, texts, words
from ._layout import Hints, Parsed, class_columns, in_our_words, layout

BINARY, SECOND = "prediction_0_for_", "_1_for_"


@layout(
    "mljar",
    "mljar predictions_out_of_folds.csv (target, prediction or prediction_<class>)",
    needs=("target", r"prediction(_.+)?"),
    lacks=("prediction_label",),
    # not to be confused with tables that have more columns than these
    names_classes=True,
    strange=lambda columns, hints: [c for c in columns if not re.fullmatch("(target|prediction(_.*)?)?", c)],
)
def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """`target` may hold codes 0, 1, ... of the classes that the prediction columns name."""
    columns = [name for name in frame.columns if re.fullmatch("prediction(_.*)?", name)]
    target = frame["target"]
    notes: list[str] = []
    values: dict[Any, str] = class_columns(columns, "prediction_(.*)")
    if len(columns) > 1:
        target = _names(target, list(values), notes)
    elif re.fullmatch(f"{BINARY}.+{SECOND}.+", columns[0]):
        names = _split(columns[0], target)
        values, target = {names[1]: columns[0]}, _names(target, names, notes)
    else:
        values = {columns[0][len("prediction_") :] or None: columns[0]}
    kind = "value" if None in values and len(words(target)) > 2 else None  # two: not by mljar, which names them
    return in_our_words(frame, {"label": target}, values, notes, kind=kind)


def _split(column: str, target: pd.Series) -> list[str]:
    """Return the two classes that the name of a column names."""
    text = column[len(BINARY) :]
    cuts = [(text[: part.start()], text[part.end() :]) for part in re.finditer(SECOND, text)]
    if len(cuts) > 1:
        cuts = [cut for cut in cuts if {*cut} == words(target)]
        if len(cuts) != 1:
            raise InputError(
                f"mljar: cannot tell the two classes apart in column {column!r}; rename it to prediction_<positive>."
            )
    return [*cuts[0]]


def _names(target: pd.Series, names: list[str], notes: list[str]) -> pd.Series:
    column = natural_column(target)
    found = column.dropna().unique()
    if set(texts(found)) <= set(names):
        return target
    if column.dtype.kind not in "if" or not set(found.tolist()) <= set(range(len(names))):
        raise InputError(
            f"mljar: column 'target' holds {show(found)}, neither the classes {show(names)} nor their codes."
        )
    notes.append(f"`target` holds codes, read as {', '.join(f'{i} = {name}' for i, name in enumerate(names))}")
    if column.isna().any():
        raise InputError(f"mljar: column 'target' is missing in rows {show(np.flatnonzero(column.isna()) + 1)}.")
    return pd.Series(pd.Categorical.from_codes(column.astype(int), categories=pd.Index(names)), index=target.index)
