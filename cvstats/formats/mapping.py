"""What the caller says about columns, or what was guessed: the table under our names, and what they were called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError, check_option, show

from . import BY_HAND
from ._columns import texts, tuple_names
from ._frames import Table
from ._layout import ROW_NAMES
from .long import KEYS

JOINED = ("sample", "configuration", "repeat", "fold", "group", "prediction")  # roles that several columns may play


def check_columns(columns: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """Return what the caller says about columns, ``a+b`` as a list; raise for what cannot be."""
    out: dict[str, Any] = {}
    known = {*table.columns}
    for role, given in columns.items():
        check_option(role, (*KEYS, "prediction"), "columns")
        joined = isinstance(given, str) and given not in known and "+" in given
        out[role] = str(given).split("+") if joined else list(given) if isinstance(given, tuple) else given
        for name in names_in(out[role]):
            if name not in known:
                raise InputError(
                    f"`columns`[{role!r}] names {name!r}, which is not a column; found {show(table.columns)}."
                )
    single = [given for given in out.values() if isinstance(given, str)]
    if len({*single}) < len(single):
        raise InputError("`columns` gives one column two roles; copy it under another name first.")
    if isinstance(out.get("prediction"), list) and "configuration" in out:
        raise InputError("`columns`: a list of prediction columns is one per configuration; leave 'configuration' out.")
    if several := [role for role, given in out.items() if isinstance(given, list) and role not in JOINED]:
        raise InputError(f"`columns`[{several[0]!r}] must name one column; only {', '.join(JOINED)} may name several.")
    return out


def renamed(table: Table, columns: Mapping[str, Any]) -> Table:
    """Return the table with columns under other names (ours, or those of a layout); several together make one."""
    names = {given: role for role, given in columns.items() if isinstance(given, str)}
    if isinstance(prediction := columns.get("prediction"), Mapping):
        names |= {column: f"prediction_{label}" for label, column in prediction.items()}
    several = {role: given for role, given in columns.items() if isinstance(given, (list, tuple))}
    joined = {role: names_in(given) for role, given in several.items() if role != "prediction"}
    taken = {*names.values(), *joined}
    new = [names.get(c, f"original_{c}" if c in taken else c) for c in table.columns]

    def parts() -> Iterator[pd.DataFrame]:
        for frame in table.parts():
            more = {role: tuple_names(frame, names) for role, names in joined.items()}
            yield frame.set_axis(new, axis=1).assign(**more)

    return replace(table, columns=[*new, *joined], parts=parts) if columns else table


def narrowed(table: Table, wide: list[str]) -> Table:
    """Return the table with sample ids, and without columns that would be taken for configurations by mistake."""
    known = {*KEYS, *wide}
    kept = [name for name in table.columns if not wide or name in known]
    numbered = "sample" not in kept
    if not (numbered or wide):
        return table
    if numbered and {"configuration", "repeat"} & {*kept}:
        raise InputError(f"`columns` must say which column names the samples: {BY_HAND}.")

    def parts() -> Iterator[pd.DataFrame]:
        row = 0
        for frame in table.parts():
            ids = frame.get("sample", frame.get(ROW_NAMES, np.arange(row, row + len(frame))))
            row += len(frame)
            yield frame[kept].assign(sample=ids)

    return replace(table, columns=[*kept, *["sample"] * numbered], parts=parts)


def names_in(given: Any) -> list[str]:
    """Return the columns that are given for a role: one, several, or by class."""
    if isinstance(given, str):
        return [given]
    return [str(name) for name in (given.values() if isinstance(given, Mapping) else given)]


def origin_of(column: str, origin: Mapping[str, Any]) -> str:
    """Return what a column was called before it was renamed."""
    classes = origin.get("prediction")
    if isinstance(classes, Mapping) and column.startswith("prediction_"):
        return str(classes.get(column.removeprefix("prediction_"), column))
    given = origin.get(column, column)
    return "+".join(names_in(given)) if column != "prediction" or isinstance(given, str) else column


def distinct(table: Table, *columns: str) -> list[list[str]]:
    """Return the distinct values of columns as they are written, in first-seen order."""
    found: dict[str, dict[Any, None]] = {column: {} for column in columns}
    for frame in table.parts():
        for column, values in found.items():
            values |= dict.fromkeys(frame[column].dropna().unique())
    return [texts(values) for values in found.values()]
