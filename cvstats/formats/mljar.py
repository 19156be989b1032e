"""predictions_out_of_folds.csv of mljar-supervised."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError, show

from ._layout import Hints, Layout, Parsed, natural_column, row_ids, texts

BINARY = re.compile(r"prediction_0_for_(.+)_1_for_(.+)")
PREFIX = "prediction_"


def parse(frame: pd.DataFrame, hints: Hints) -> Parsed:
    """`target` may hold codes 0, 1, ... of the classes that the prediction columns name."""
    columns = [name for name in frame.columns if name == "prediction" or name.startswith(PREFIX)]
    sample, note = row_ids(frame)
    notes = [note]
    out = pd.DataFrame({"sample": sample, "configuration": hints.name})
    binary = BINARY.fullmatch(columns[0]) if len(columns) == 1 else None
    values: dict[Any, str]
    if len(columns) == 1 and not binary:
        name = columns[0].removeprefix("prediction").removeprefix("_")
        values = {name or None: columns[0]}
        out["label"] = frame["target"]
    elif binary:
        names = _split(binary, columns[0], frame["target"])
        values = {names[1]: columns[0]}
        out["label"] = _names(frame["target"], names, notes)
    else:
        values = {name[len(PREFIX) :]: name for name in columns}
        out["label"] = _names(frame["target"], list(values), notes)
    kind = "value" if None in values else None
    return Parsed(out.join(frame[columns]), values, kind=kind, notes=notes)


def _split(match: re.Match[str], column: str, target: pd.Series) -> list[str]:
    text = column[len("prediction_0_for_") :]
    cuts = [part.start() for part in re.finditer("_1_for_", text)]
    if len(cuts) > 1:
        known = set(texts(target.dropna().unique()))
        cuts = [cut for cut in cuts if {text[:cut], text[cut + 7 :]} == known]
        if len(cuts) != 1:
            raise InputError(
                f"mljar: cannot tell the two classes apart in column {column!r}; rename it to prediction_<positive>."
            )
    return [text[: cuts[0]], text[cuts[0] + 7 :]]


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
    return pd.Series(
        pd.Categorical.from_codes(column.astype(int).to_numpy(), categories=pd.Index(names)), index=target.index
    )


LAYOUT = Layout(
    name="mljar",
    title="mljar predictions_out_of_folds.csv (target, prediction or prediction_<class>)",
    needs=("target", r"prediction(_.+)?"),
    lacks=("sample", "row_id", "prediction_label", "configuration", "inst#"),
    unlike="our long table, which has sample and label",
    parse=parse,
)
