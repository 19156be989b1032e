"""What `read_predictions` is given: one table or several, renamed as the caller asks, as parts for the assembler."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError, check_option, show

from . import BY_HAND, recognise
from ._assemble import Part
from ._columns import read_feather, read_parquet
from ._gate import opened, unpacked
from ._layout import ROW_NAMES, Hints, Layout, Parsed, tuple_names
from ._tables import Table, from_frame, read_arff, read_text
from .long import KEYS

BINARY = {b"PAR1": "Parquet", b"ARROW1": "Feather", b"\x89HDF": "netCDF", b"CDF\x01": "netCDF", b"CDF\x02": "netCDF"}
BINARY |= {b"\x93NUMPY": "npy"}
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


def read_table(path: Path, *, encoding: str, max_bytes: int, ids: Iterable[str] | None = ()) -> Table:
    """Open a file by what it is, not by what it is called.

    Columns of `ids` hold names, read as they are written; None stands for all columns, of which there may be one.
    """
    name, least = path.name, 1 if ids is None else 2
    with opened(path) as file:
        start = file.read(8)
    if not start:
        raise InputError(f"{name}: the file is empty.")
    for magic, kind in BINARY.items():
        if start.startswith(magic):
            if kind in ("Parquet", "Feather"):
                return (read_parquet if kind == "Parquet" else read_feather)(path, max_bytes)
            raise InputError(f"{name}: this is a {kind} file, not a table of text.")
    if start[0] == 0x80 and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise InputError(
            f"{name}: this is a Python pickle, which is never opened; save the predictions as CSV or Parquet."
        )
    raw = _unpack(path, max_bytes)
    if raw.startswith((b"X\n\x00", b"RDX2", b"RDX3")):
        raise InputError(
            f"{name}: this is an R data file; save the predictions with write.csv() or arrow::write_parquet()."
        )
    if not raw.strip():
        raise InputError(f"{name}: the file is empty.")
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{name}: the text is UTF-16; save it as UTF-8.")
    if b"\x00" in raw[: 1 << 20]:
        raise InputError(f"{name}: this is a binary file, not a table of text.")
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        if re.match(rb"\s*(%[^\n]*\n\s*)*@relation", raw[: 1 << 16], re.IGNORECASE):
            return from_frame(read_arff(raw, name, encoding, ids), name, least)
        return from_frame(read_text(raw, name, encoding, ids), name, least)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name}: the text is not {encoding.upper()} (byte 0x{error.object[error.start]:02x}). "
            "Save it as UTF-8, or say encoding='latin-1' (or whatever it is)."
        ) from None
    except csv.Error as error:
        raise InputError(f"{name}: the table is malformed: {error}.") from None
    except LookupError:
        raise InputError(f"`encoding`={encoding!r} is not known to Python.") from None


def _unpack(path: Path, max_bytes: int) -> bytes:
    """Return the file's bytes, decompressed up to the limit."""
    with unpacked(path) as (file, kind):
        raw = file.read(max_bytes + 1)
    if len(raw) > max_bytes:
        how = "decompresses to" if kind else "has"
        raise InputError(
            f"{path.name}: the file {how} more than {max_bytes:,} bytes. Raise the limit with max_bytes=, "
            "or use Parquet, which is read in parts."
        )
    return raw


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
