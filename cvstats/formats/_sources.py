"""What `read_predictions` is given: one table or several, renamed as the caller asks, as parts for the assembler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError, check_option, show

from . import BY_HAND, recognise
from ._assemble import Part
from ._layout import ROW_NAMES, Hints, Layout, Parsed, tuple_names
from ._tables import Table, from_frame, read_table
from .long import KEYS

ROLES = (*KEYS, "prediction")
NAMES = ("sample", "configuration", "repeat", "fold", "label", "group")  # roles whose values are names, not amounts


@dataclass(frozen=True)
class Source:
    """One table with its layout and what the caller said about it."""

    table: Table
    layout: Layout
    recognised: str
    hints: Hints
    text: bool
    fold: int | None = None  # several files of one configuration are its folds

    def parts(self) -> Iterator[Part]:
        """Yield the parsed parts; layouts that need all rows at once get them."""
        frames: Iterator[pd.DataFrame] = self.table.parts()
        if not self.layout.chunked and self.table.n_parts > 1:
            frames = iter([pd.concat(list(frames), ignore_index=True)])
        row = 1
        for frame in frames:
            try:
                parsed = self.layout.parse(frame, self.hints)
            except InputError:
                raise
            except (ValueError, KeyError, IndexError, TypeError, OverflowError) as error:
                raise InputError(
                    f"{self.table.name}: has the columns of layout {self.layout.name!r} but not its values ({error})."
                ) from None
            self._take_mapped(frame, parsed)
            if "configuration" not in parsed.frame.columns:
                parsed.frame = parsed.frame.assign(configuration=self.hints.name)
            if self.fold is not None:
                parsed.frame = parsed.frame.assign(
                    fold=self.fold, sample=[f"{self.fold}:{name}" for name in parsed.frame["sample"]]
                )
            yield Part(parsed, self.table.name, row, self.text, len(parsed.frame) == len(frame), len(frame))
            row += len(frame)

    def _take_mapped(self, frame: pd.DataFrame, parsed: Parsed) -> None:
        """Let the columns that the caller mapped win over those that the layout has of its own."""
        for role in sorted(self.hints.mapped - {"prediction"}):
            if role == "label" and self.layout.name in ("long", "tidymodels"):
                continue  # they look for it, and split survival times
            if len(parsed.frame) != len(frame) and self.layout.name != "wide":
                raise InputError(f"{self.table.name}: layout {self.layout.name!r} has no place for columns[{role!r}].")
            if len(parsed.frame) == len(frame):
                parsed.frame = parsed.frame.assign(**{role: frame[role]})


def open_source(
    what: Any,
    name: str | None,
    *,
    format: str,
    columns: Mapping[str, Any] | None,
    hints: Hints,
    fold: int | None = None,
    **options: Any,
) -> Source:
    """Read a path or frame into a `Source`."""
    if isinstance(what, pd.DataFrame) or hasattr(what, "to_pandas"):
        table, text = from_frame(what if isinstance(what, pd.DataFrame) else what.to_pandas(), name or "table"), False
    elif isinstance(what, (str, Path)):
        path = Path(what)
        named = {name for role, given in (columns or {}).items() if role in NAMES for name in _names(given)}
        table = read_table(path, ids=named, **options)
        text = _is_text(path)
        name = name or stem(path)
    else:
        raise InputError(
            f"`path` must be a file name, a data frame, or a list or mapping of them; got {type(what).__name__}."
        )
    hints = replace(hints, name=name or "configuration")
    try:
        if columns:
            table, format, hints = _rename(table, columns, format, hints)
        layout, how = recognise(table.columns, format, hints)
    except InputError as error:
        raise InputError(f"{table.name}: {error}") from None
    return Source(table, layout, how, hints, text, fold)


def stem(path: Path) -> str:
    """Return the file name without its extensions."""
    name = path.name
    for suffix in (".gz", ".bz2", ".xz", ".zip"):
        name = name.removesuffix(suffix)
    return Path(name).stem


def _is_text(path: Path) -> bool:
    with path.open("rb") as file:
        return not file.read(6).startswith((b"PAR1", b"ARROW1"))


def _rename(table: Table, columns: Mapping[str, Any], format: str, hints: Hints) -> tuple[Table, str, Hints]:
    """Return the table with the caller's columns under our names."""
    for role, given in columns.items():
        check_option(role, ROLES, "columns")
        for name in _names(given):
            if name not in table.columns:
                raise InputError(
                    f"`columns`[{role!r}] names {name!r}, which is not a column; found {show(table.columns)}."
                )
    names: dict[str, str] = {given: role for role, given in columns.items() if isinstance(given, str)}
    prediction = columns.get("prediction")
    if isinstance(prediction, Mapping):
        names |= {column: f"prediction_{label}" for label, column in prediction.items()}
    wide = [str(name) for name in prediction] if isinstance(prediction, (list, tuple)) else []
    if wide and "configuration" in columns:
        raise InputError("`columns`: a list of prediction columns is one per configuration; leave 'configuration' out.")
    joined = {
        role: [str(c) for c in given]
        for role, given in columns.items()
        if role != "prediction" and not isinstance(given, str)
    }
    if any(role != "configuration" for role in joined):
        raise InputError("`columns`: only 'configuration' and 'prediction' may name several columns.")
    by_hand = "prediction" in columns
    taken = set(names.values()) | set(joined)
    kept = [names.get(c, f"original_{c}" if c in taken else c) for c in table.columns]
    if by_hand:
        wanted = {*names.values(), *wide, *KEYS} if wide else set(kept)
        kept = [c if c in wanted or not wide else f"unused_{c}" for c in kept]
    needs_rows = by_hand and "sample" not in kept
    if needs_rows and ({"configuration", "repeat"} & {*kept, *joined}):
        raise InputError(f"`columns` must say which column names the samples: {BY_HAND}.")

    def parts() -> Iterator[pd.DataFrame]:
        row = 0
        for frame in table.parts():
            out = frame.set_axis(kept, axis=1)
            out = out[[c for c in kept if not c.startswith("unused_")]]
            if joined:
                out = out.assign(configuration=tuple_names(frame, joined["configuration"]))
            if needs_rows:
                numbers = np.arange(row, row + len(out))
                out = out.assign(sample=out[ROW_NAMES] if ROW_NAMES in kept else numbers)
            row += len(out)
            yield out

    final = [c for c in kept if not c.startswith("unused_")]
    final += [name for name in ("configuration",) if joined and name not in final] + (["sample"] if needs_rows else [])
    if by_hand and format == "auto":
        format = "wide" if wide else "long"
    hints = replace(hints, mapped=frozenset(columns))
    return replace(table, columns=final, parts=parts), format, hints


def _names(given: Any) -> Sequence[str]:
    if isinstance(given, str):
        return [given]
    return [str(name) for name in (given.values() if isinstance(given, Mapping) else given)]
