"""Tables with named columns, wherever they come from: what is checked of every one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from cvstats._check import InputError, show

from ._columns import NUMBER, words
from ._layout import ROW_NAMES, UNNAMED

TRAINING = {"train", "training"}
SETS = TRAINING | {"test", "testing", "val", "valid", "validation", "holdout", "oof"}


@dataclass(frozen=True)
class Table:
    """A table that is read in parts."""

    name: str
    columns: list[str]
    parts: Callable[[], Iterator[pd.DataFrame]]
    text: bool = False  # so that types are to be found out

    def whole(self) -> pd.DataFrame:
        """Return all rows."""
        parts = [*self.parts()]
        return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)


def from_frame(frame: pd.DataFrame, name: str, least: int = 2) -> Table:
    """Wrap a data frame; an index that is not just row numbers becomes a column."""
    if isinstance(frame.columns, pd.MultiIndex):
        raise InputError(f"{name}: columns are a MultiIndex; flatten them to one name each.")
    index = frame.index
    if not (isinstance(index, pd.RangeIndex) and index.name is None and index.start == 0 and index.step == 1):
        if isinstance(index, pd.MultiIndex) and None in index.names:
            raise InputError(f"{name}: rows are a MultiIndex without names; make columns of it with reset_index().")
        frame = frame.reset_index(names=[ROW_NAMES if level is None else str(level) for level in index.names])
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1).infer_objects()
    check_header(list(frame.columns), name, least)
    if not len(frame):
        raise empty(name, frame.columns)
    for column in frame.columns[[kind == "object" for kind in frame.dtypes]]:
        kinds = {type(value).__name__ for value in frame[column].dropna()}
        if len(kinds) > 1 and not kinds <= {"int", "float", "int64", "float64"}:
            raise InputError(f"{name}: column {column!r} mixes types {show(sorted(kinds))}; convert it to one.")
    refuse_training(frame, name)
    return Table(name, list(frame.columns), lambda: iter([frame]))


def check_header(header: Sequence[str], name: str, least: int = 2) -> None:
    """Raise unless column names are unique and look like names, and there are at least so many."""
    if len(header) > 2 and all(UNNAMED.fullmatch(column) for column in header[1:]):
        raise InputError(f"{name}: the first line names no columns; delete what is above the header.")
    twice = [column for column, times in Counter(header).items() if times > 1]
    if twice:
        raise InputError(f"{name}: column names must be unique; found more than once: {show(twice)}.")
    if len(header) < least:
        raise InputError(
            f"{name}: only one column, {''.join(header)!r}, so this is not a table of predictions "
            "(or its separator is not , ; or tab, or there are lines above the header)."
        )
    if all(NUMBER.fullmatch(column) for column in header):
        raise InputError(
            f"{name}: the first line holds numbers ({show(header)}); columns must be named in a header line."
        )


def refuse_training(frame: pd.DataFrame, name: str) -> None:
    """Raise where a column says that some rows are no test sets, or of different ones."""
    for column in frame.columns[[kind.kind == "O" for kind in frame.dtypes]]:  # text, of whatever type
        if not {str(value).lower() for value in frame[column].iloc[:100].dropna()} <= SETS:
            continue
        found = sorted(words(frame[column]))
        kinds = {value.lower() for value in found}
        if kinds <= SETS and (len(kinds) > 1 or kinds & TRAINING):
            raise InputError(f"{name}: column {column!r} holds {show(found)}; keep the rows of test sets only.")


def empty(name: str, columns: Iterable[str]) -> InputError:
    return InputError(f"{name}: the table is empty: it has columns {show(columns)} but no rows.")
