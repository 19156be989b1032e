"""From a file to tables with named columns: text (plain or compressed), ARFF, Parquet, Feather.

Files are data: nothing is unpickled or evaluated, and decompression stops at a limit. Text is read so that nothing is
lost: ids and classes stay text until every distinct value can become a number without changing how it is written.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError, show

from ._gate import opened, unpacked
from ._layout import NUMBER, ROW_NAMES

NA = ["", "NA", "NaN", "nan", "<NA>"]
IDS = re.compile(
    r"(?i)sample|configuration|repeat|fold|group|label|id2?|\.row|\.config|rowindex|row_ids?|"
    r"resample|sample name|inst#|learner(_id)?|task(_id)?|iter(ation)?|"
)
BINARY = {
    b"PAR1": "Parquet",
    b"ARROW1": "Feather",
    b"\x89HDF": "netCDF",
    b"CDF\x01": "netCDF",
    b"CDF\x02": "netCDF",
    b"\x93NUMPY": "npy",
}
HEAD = 200  # lines that settle which columns hold fractions


@dataclass(frozen=True)
class Table:
    """A table that can be read more than once, in parts."""

    name: str
    columns: list[str]
    parts: Callable[[], Iterator[pd.DataFrame]]
    n_parts: int


def from_frame(frame: pd.DataFrame, name: str, least: int = 2) -> Table:
    """Wrap a data frame; an index that is not just row numbers becomes a column."""
    if isinstance(frame.columns, pd.MultiIndex):
        raise InputError(f"{name}: columns are a MultiIndex; flatten them to one name each.")
    index = frame.index
    plain_rows = isinstance(index, pd.RangeIndex) and index.name is None and index.start == 0 and index.step == 1
    if not plain_rows:
        frame = frame.reset_index(
            names=ROW_NAMES if isinstance(index, pd.MultiIndex) or index.name is None else str(index.name)
        )
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
    check_header(list(frame.columns), name, least)
    if not len(frame):
        raise InputError(f"{name}: the table is empty: it has columns {show(frame.columns)} but no rows.")
    for column in frame.columns:
        if frame[column].dtype == object:
            kinds = {type(value).__name__ for value in frame[column].dropna()}
            if len(kinds) > 1 and not kinds <= {"int", "float", "int64", "float64"}:
                raise InputError(f"{name}: column {column!r} mixes types {show(sorted(kinds))}; convert it to one.")
    return Table(name, list(frame.columns), lambda: iter([frame]), 1)


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
                from . import _columns

                return (_columns.read_parquet if kind == "Parquet" else _columns.read_feather)(path, max_bytes)
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
            from ._arff import read_arff

            return from_frame(read_arff(raw, name, encoding, ids), name, least)
        return from_frame(read_text(raw, name, encoding, ids), name, least)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name}: the text is not {encoding.upper()} (byte 0x{error.object[error.start]:02x}). "
            "Save it as UTF-8, or say encoding='latin-1' (or whatever it is)."
        ) from None
    except LookupError:
        raise InputError(f"`encoding`={encoding!r} is not known to Python.") from None


def read_text(raw: bytes, name: str, encoding: str, ids: Iterable[str] | None = ()) -> pd.DataFrame:
    """Read delimited text; the separator is the one that the header uses."""
    body = raw.lstrip(b"\r\n")
    head = (
        body[: 1 << 18].decode(encoding, errors="strict" if len(body) < 1 << 18 else "replace").splitlines()[: HEAD + 1]
    )
    separator = max(",;\t", key=head[0].count)
    rows = list(csv.reader(head, delimiter=separator))
    header, first = [cell.strip() for cell in rows[0]], rows[1:]
    if not first:
        raise InputError(f"{name}: the table is empty: it has columns {show(header)} but no rows.")
    if len(first[0]) == len(header) + 1:
        header = [ROW_NAMES, *header]  # R's write.table names the columns but not the row names
    header = name_blanks(header)
    check_header(header, name, 1 if ids is None else 2)
    decimal = (
        "," if separator == ";" and any(re.fullmatch(r"-?\d+,\d+", cell) for row in first for cell in row) else "."
    )
    body = body[body.index(b"\n") + 1 :] if b"\n" in body else b""
    return read_cells(body, header, name, encoding, ids, separator=separator, decimal=decimal, sample=first)


def read_cells(
    body: bytes,
    header: list[str],
    name: str,
    encoding: str,
    ids: Iterable[str] | None = (),
    *,
    separator: str = ",",
    decimal: str = ".",
    sample: Sequence[Sequence[str]],
    **options: Any,
) -> pd.DataFrame:
    """Read the lines below the header: fractions as floats, everything else as text with its distinct values."""
    ids = {column for column in header if ids is None or IDS.fullmatch(column) or column in set(ids)}
    fractions = [c for place, c in enumerate(header) if c not in ids and _fraction(place, sample, decimal)]
    missing = [*NA, *options.pop("na", [])]
    settings: dict[str, Any] = {
        "header": None, "names": header, "sep": separator, "decimal": decimal, "encoding": encoding, "index_col": False,
        "keep_default_na": False, "na_values": missing, "low_memory": False, **options,
    }  # fmt: skip
    if int(pd.__version__.partition(".")[0]) < 3:
        settings["float_precision"] = "round_trip"  # the default of later versions
    quote = options.get("quotechar", '"')
    frame: pd.DataFrame | None = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # the first row is longer than the header
            frame = _parsed(body, header, fractions, ids, settings)
    except pd.errors.ParserWarning:
        pass
    except pd.errors.ParserError as error:
        raise InputError(f"{name}: the table is malformed: {_lines(str(error))}") from None
    except pd.errors.EmptyDataError:
        raise InputError(f"{name}: the table is empty: it has columns {show(header)} but no rows.") from None
    if frame is None:
        _refuse_ragged(body, header, name, encoding, separator, quote)
        raise InputError(f"{name}: rows have more cells than the header, which has {len(header)}.")
    frame = frame[~frame.isna().all(axis=1)] if frame[header[0]].isna().any() else frame
    quoted, counted = quote.encode() in body, (len(header) - 1) * len(frame)
    if frame[header[-1]].isna().any() or not (quoted or body.count(separator.encode()) == counted):
        _refuse_ragged(body, header, name, encoding, separator, quote)
    return pd.DataFrame(frame.reset_index(drop=True))


def _parsed(
    body: bytes, header: list[str], fractions: list[str], ids: set[str], settings: dict[str, Any]
) -> pd.DataFrame:
    """Read the cells with pandas, again and as text where it would lose how they are written."""
    try:
        frame = pd.read_csv(
            io.BytesIO(body), dtype={c: "float64" if c in fractions else "category" for c in header}, **settings
        )
    except ValueError as error:
        if isinstance(error, (pd.errors.ParserError, UnicodeDecodeError)):
            raise
        frame = pd.read_csv(io.BytesIO(body), dtype=dict.fromkeys(header, "category"), **settings)
    as_text = _written_otherwise(frame, ids, body)
    if as_text:
        text = pd.read_csv(io.BytesIO(body), dtype=dict.fromkeys(as_text, "str"), usecols=as_text, **settings)
        frame = frame.assign(**{column: text[column].astype("category") for column in as_text})
    return pd.DataFrame(frame)


def _written_otherwise(frame: pd.DataFrame, ids: set[str], body: bytes) -> list[str]:
    """Return columns of numbers that may not be written as numbers are, such as 007 or 1.10: pandas converts those."""
    numeric = {
        str(c): frame[c].cat.categories.dtype.kind
        for c in frame.columns
        if isinstance(frame[c].dtype, pd.CategoricalDtype)
    }
    suspects = [column for column, kind in numeric.items() if kind in "fb" and column in ids]
    if _leading_zero(body):
        suspects += [column for column, kind in numeric.items() if kind in "iu"]
    return suspects


def _leading_zero(body: bytes, step: int = 1 << 24) -> bool:
    """Return whether any cell begins with a zero and another digit, at memory speed."""
    starts, signs = np.frombuffer(b"\n,;\t\"' ", np.uint8), np.frombuffer(b"+-", np.uint8)
    for begin in range(0, len(body), step):
        block = np.frombuffer(b"\n\n" + body[:step] if begin == 0 else body[begin - 3 : begin + step], np.uint8)
        zero = np.flatnonzero((block[2:-1] == ord("0")) & (block[3:] >= ord("0")) & (block[3:] <= ord("9"))) + 2
        before = np.where(np.isin(block[zero - 1], signs), block[zero - 2], block[zero - 1])
        if np.isin(before, starts).any():
            return True
    return False


def _fraction(place: int, rows: Sequence[Sequence[str]], decimal: str) -> bool:
    cells = [row[place].strip().replace(decimal, ".") for row in rows[:-1] or rows if place < len(row)]
    cells = [cell for cell in cells if cell not in NA]
    return any(re.search(r"[.eE]", cell) for cell in cells) and all(NUMBER.fullmatch(cell) for cell in cells)


def _lines(message: str) -> str:
    """Return pandas' complaint with line numbers that count the header."""
    text = message.replace("Error tokenizing data. C error: ", "").strip()
    return re.sub(r"in line (\d+)", lambda part: f"in line {int(part[1]) + 1}", text) + "."


def _refuse_ragged(body: bytes, header: list[str], name: str, encoding: str, separator: str, quote: str) -> None:
    """Raise when a row has too few or too many cells: pandas fills or cuts them silently."""
    reader = csv.reader(io.TextIOWrapper(io.BytesIO(body), encoding, newline=""), delimiter=separator, quotechar=quote,
                        escapechar="\\" if quote == "'" else None, skipinitialspace=quote == "'")  # fmt: skip
    last = None
    for row in reader:
        if not row or (len(row) == 1 and not row[0].strip()) or row[0].startswith("%"):
            continue
        if len(row) != len(header):
            last = reader.line_num + 1, len(row)
            break
    if last:
        rest = sum(1 for _ in reader)
        cut = " The file seems to be cut off." if rest == 0 else ""
        raise InputError(f"{name}: line {last[0]} has {last[1]} cells but the header has {len(header)}.{cut}")


def name_blanks(header: list[str]) -> list[str]:
    """Name blank columns after the column before them; a blank first column keeps its empty name (row names)."""
    out: list[str] = []
    for place, cell in enumerate(header):
        if cell or place == 0:
            out.append(cell)
            base, count = cell, 0
        else:
            count += 1
            out.append(f"{base}.{count}")
    return out


def check_header(header: Sequence[str], name: str, least: int = 2) -> None:
    """Raise unless column names are unique and look like names, and there are at least so many."""
    twice = [column for column in dict.fromkeys(header) if list(header).count(column) > 1]
    if twice:
        raise InputError(f"{name}: column names must be unique; found more than once: {show(twice)}.")
    if len(header) < least:
        raise InputError(
            f"{name}: only one column, {header[0]!r}, so this is not a table of predictions "
            "(or its separator is not , ; or tab)."
        )
    if all(NUMBER.fullmatch(column) for column in header):
        raise InputError(
            f"{name}: the first line holds numbers ({show(header)}); columns must be named in a header line."
        )


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
