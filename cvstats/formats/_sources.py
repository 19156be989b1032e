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
import xarray as xr

from cvstats._check import InputError, check_option, show

from . import BY_HAND, recognise
from ._assemble import Part, assemble
from ._columns import read_feather, read_parquet
from ._gate import Budget, node, opened, unpacked
from ._layout import ROW_NAMES, Hints, Layout, Parsed, natural_column, tuple_names
from ._tables import Table, from_frame, read_arff, read_text
from .long import KEYS, plain_text
from .long import LAYOUT as LONG

BINARY = {b"PAR1": "Parquet", b"ARROW1": "Feather", b"\x89HDF": "netCDF", b"CDF\x01": "netCDF", b"CDF\x02": "netCDF"}
BINARY |= {b"\x93NUMPY": "npy"}
R_DATA = "this is an R data file; save the predictions with write.csv() or arrow::write_parquet()."
REFUSED = {
    (b"X\n\x00", b"RDX2", b"RDX3"): R_DATA,
    (b"\xff\xfe", b"\xfe\xff"): "the text is UTF-16; save it as UTF-8.",
}
ROLES = (*KEYS, "prediction")
NAMES = ("sample", "configuration", "repeat", "fold", "label", "group")  # roles whose values are names, not amounts


@dataclass(frozen=True)
class Request:
    """What the caller of `read_predictions` said about all tables."""

    format: str
    columns: Mapping[str, Any] | None
    hints: Hints
    encoding: str
    budget: Budget


@dataclass(frozen=True)
class Source:
    """One table with its layout and what the caller said about it."""

    table: Table
    layout: Layout
    recognised: str
    hints: Hints
    fold: int | None = None  # several files of one configuration are its folds

    def parts(self) -> Iterator[Part]:
        """Yield the parsed parts; layouts that need all rows at once get them."""
        frames: Iterator[pd.DataFrame] = self.table.parts()
        if not self.layout.chunked and self.table.n_parts > 1:
            frames = iter([pd.concat(list(frames), ignore_index=True)])
        row = 1
        for frame in frames:
            frame = plain_text(frame) if self.table.text and self.layout is LONG else frame
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
            yield Part(parsed, self.table.name, row, self.table.text, len(parsed.frame) == len(frame), len(frame))
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


def read_tables(path: Any, request: Request) -> tuple[xr.DataArray, dict[str, Any]]:
    """Return the cube of one table or several, and the facts for its load report."""
    sources = _sources(path, request)
    try:
        parts = (part for source in sources for part in source.parts())
        cube, facts = assemble(parts, request.hints, len(sources) > 1)
    except InputError as error:
        known = len(sources) > 1 or str(error).startswith(sources[0].table.name)
        raise error if known else InputError(f"{sources[0].table.name}: {error}") from None
    layouts = list(dict.fromkeys(source.layout.name for source in sources))
    if len(sources) == 1 and layouts == ["long"]:
        facts["columns"] = sources[0].table.columns
    more = f" and {len(sources) - 3} more" if len(sources) > 3 else ""
    facts |= {"source": ", ".join(source.table.name for source in sources[:3]) + more, "layout": ", ".join(layouts)}
    return cube, {**facts, "title": sources[0].layout.title, "recognised": sources[0].recognised}


def _sources(path: Any, request: Request) -> list[Source]:
    """Open every table that the caller names."""
    named: list[tuple[str | None, Any]]
    if isinstance(path, Mapping):
        named = [(str(name), value) for name, value in path.items()]
    elif isinstance(path, (list, tuple)):
        named = [(None, value) for value in path]
    else:
        named = [(None, path)]
    out = []
    for name, value in named:
        if name is not None and isinstance(value, (list, tuple)):
            out += [replace(_source(part, name, request), fold=number) for number, part in enumerate(value)]
        else:
            out.append(_source(value, name, request))
    if not out:
        raise InputError("`path` names no files.")
    names = [source.hints.name for source in out]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice and isinstance(path, (list, tuple)):
        raise InputError(f"several files are called {show(twice)}; give a mapping of names to files.")
    return out


def _source(what: Any, name: str | None, request: Request) -> Source:
    """Read a path or frame into a `Source`."""
    columns = request.columns or {}
    if isinstance(what, pd.DataFrame) or hasattr(what, "to_pandas"):
        table = from_frame(what if isinstance(what, pd.DataFrame) else what.to_pandas(), name or "table")
    elif isinstance(what, (str, Path)):
        ids = {column for role, given in columns.items() if role in NAMES for column in _names(given)}
        table = read_table(Path(what), request.encoding, request.budget, ids)
        name = name or Path(re.sub(r"\.(gz|bz2|xz|zip)$", "", Path(what).name)).stem
    else:
        raise InputError(
            f"`path` must be a file name, a data frame, or a list or mapping of them; got {type(what).__name__}."
        )
    hints, format = replace(request.hints, name=name or "configuration"), request.format
    try:
        if columns:
            table, format, hints = _rename(table, columns, format, hints)
        layout, how = recognise(table.columns, format, hints)
    except InputError as error:
        raise InputError(f"{table.name}: {error}") from None
    return Source(table, layout, how, hints)


def read_labels(labels: Any, encoding: str, budget: Budget) -> Any:
    """Return labels as an array, or as a Series by sample id; from a local file as they are written there."""
    if isinstance(labels, (str, Path)):
        if node(Path(labels)) == "nothing":
            raise InputError(f"`labels`: no such file: {str(labels)!r}.")
        try:
            table = read_table(Path(labels), encoding, budget, None)
        except InputError as error:
            raise InputError(f"`labels`: {error}") from None
        if len(table.columns) > 2:
            raise InputError(
                f"`labels`: {str(labels)!r} must have one column (labels) or two (ids, labels); "
                f"found {len(table.columns)}."
            )
        frame = pd.concat(list(table.parts()), ignore_index=True)
        written, found = frame.iloc[:, -1].astype(object), natural_column(frame.iloc[:, -1])
        found = found if found.nunique() == written.nunique() else written  # classes called 1.1 and 1.10
        if len(table.columns) == 1:
            return found.to_numpy()
        if frame.iloc[:, 0].isna().any():
            raise InputError(f"`labels`: {str(labels)!r} has rows without an id.")
        return found.set_axis(natural_column(frame.iloc[:, 0], ids=True))
    if isinstance(labels, pd.DataFrame):
        if labels.shape[1] != 1:
            raise InputError(f"`labels` must be one column; got {show(labels.columns)}.")
        return labels.iloc[:, 0]
    if isinstance(labels, Mapping):
        return pd.Series(labels)
    return np.asarray(labels) if isinstance(labels, (list, tuple)) else labels


def read_table(path: Path, encoding: str, budget: Budget, ids: Iterable[str] | None = ()) -> Table:
    """Open a file by what it is, not by what it is called.

    Columns of `ids` hold names, read as they are written; None stands for all columns, of which there may be one.
    """
    name = path.name
    with opened(path) as file:
        start = file.read(8)
    kind = next((kind for magic, kind in BINARY.items() if start.startswith(magic)), None)
    if kind in ("Parquet", "Feather"):
        return (read_parquet if kind == "Parquet" else read_feather)(path, budget)
    if kind is not None:
        raise InputError(f"{name}: this is a {kind} file, not a table of text.")
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise InputError(
            f"{name}: this is a Python pickle, which is never opened; save the predictions as CSV or Parquet."
        )
    with unpacked(path) as (file, packing):
        raw = file.read(budget.left + 1)
    if len(raw) > budget.left:
        raise InputError(
            f"{name}: the file {'decompresses to' if packing else 'has'} more than {budget.left:,} bytes. Raise the "
            "limit with max_bytes=, or use Parquet, which is read in parts."
        )
    budget.take(len(raw), name)
    if not raw.strip():
        raise InputError(f"{name}: the file is empty.")
    for starts, words in REFUSED.items():
        if raw.startswith(starts):
            raise InputError(f"{name}: {words}")
    if b"\x00" in raw[: 1 << 20]:
        raise InputError(f"{name}: this is a binary file, not a table of text.")
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    read = read_arff if re.match(rb"\s*(%[^\n]*\n\s*)*@relation", raw[: 1 << 16], re.IGNORECASE) else read_text
    try:
        return replace(from_frame(read(raw, name, encoding, ids), name, 1 if ids is None else 2), text=True)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name}: the text is not {encoding.upper()} (byte 0x{error.object[error.start]:02x}). "
            "Save it as UTF-8, or say encoding='latin-1' (or whatever it is)."
        ) from None
    except csv.Error as error:
        raise InputError(f"{name}: the table is malformed: {error}.") from None
    except LookupError:
        raise InputError(f"`encoding`={encoding!r} is not known to Python.") from None


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
