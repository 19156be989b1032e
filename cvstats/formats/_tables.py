"""From text to tables with named columns: delimited text, ARFF.

Text is read so that nothing is lost: ids and classes stay text until every distinct value can become a number without
changing how it is written.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import pandas as pd
from pandas.api.types import union_categoricals

from cvstats._check import InputError, show

from ._layout import NUMBER, ROW_NAMES

NA = ["", "NA", "NaN", "nan", "<NA>"]
IDS = re.compile(
    r"(?i)sample|configuration|repeat|fold|group|label|id2?|\.row|\.config|rowindex|row_ids?|"
    r"resample|sample name|inst#|learner(_id)?|task(_id)?|iter(ation)?|"
)
ATTRIBUTE = re.compile(r"@attribute\s+('(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|[^\s'\"]\S*)\s+(.+)", re.IGNORECASE)
HEAD, CHUNK = 200, 200_000  # lines that settle which columns hold fractions; lines that are text at a time


@dataclass(frozen=True)
class Table:
    """A table that can be read more than once, in parts."""

    name: str
    columns: list[str]
    parts: Callable[[], Iterator[pd.DataFrame]]
    n_parts: int = 1
    text: bool = False  # so that types are to be found out


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
    return Table(name, list(frame.columns), lambda: iter([frame]))


@dataclass(frozen=True)
class Cells:
    """The lines below the header of a text, and how they are written; ARFF has escapes and spaces between cells."""

    body: bytes
    header: list[str]
    name: str
    encoding: str
    separator: str = ","
    quote: str = '"'
    arff: bool = False

    def rows(self) -> Any:
        """Return a reader of the rows, as text."""
        lines = io.TextIOWrapper(io.BytesIO(self.body), self.encoding, newline="")
        dialect: dict[str, Any] = {"escapechar": "\\", "skipinitialspace": True} if self.arff else {}
        return csv.reader(lines, delimiter=self.separator, quotechar=self.quote, **dialect)

    def frame(self, ids: Iterable[str] | None) -> pd.DataFrame:
        """Return fractions as floats, everything else as text with its distinct values."""
        check_header(self.header, self.name, 1 if ids is None else 2)
        head = [row for row in islice(self.rows(), HEAD) if row]
        comma = self.separator == ";" and any(re.fullmatch(r"-?\d+,\d+", cell) for row in head for cell in row)
        names = {column for column in self.header if ids is None or IDS.fullmatch(column) or column in set(ids)}
        places = [place for place, column in enumerate(self.header) if column not in names]
        fractions = {self.header[place] for place in places if _fraction(place, head, "," if comma else ".")}
        frame = self._parsed(fractions, "," if comma else ".") if head else None
        if frame is None or not len(frame):
            self.refuse_ragged()
            raise InputError(f"{self.name}: the table is empty: it has columns {show(self.header)} but no rows.")
        quoted, counted = self.quote.encode() in self.body, (len(self.header) - 1) * len(frame)
        if frame[self.header[-1]].isna().any() or not (quoted or self.body.count(self.separator.encode()) == counted):
            self.refuse_ragged()
        return frame.reset_index(drop=True)

    def _parsed(self, fractions: set[str], decimal: str) -> pd.DataFrame | None:
        """Return the cells by pandas without blank lines; None when the first row is longer than the header."""
        settings: dict[str, Any] = {
            "header": None, "names": self.header, "index_col": False, "encoding": self.encoding, "sep": self.separator,
            "decimal": decimal, "quotechar": self.quote, "keep_default_na": False, "chunksize": CHUNK,
            "na_values": [*NA, "?"] if self.arff else NA, "low_memory": False,
        }  # fmt: skip
        if self.arff:
            settings |= {"escapechar": "\\", "doublequote": False, "skipinitialspace": True}
        if int(pd.__version__.partition(".")[0]) < 3:
            settings["float_precision"] = "round_trip"  # the default of later versions
        types = {column: "float64" if column in fractions else "str" for column in self.header}
        try:
            with warnings.catch_warnings(), pd.read_csv(io.BytesIO(self.body), dtype=types, **settings) as chunks:
                warnings.simplefilter("error", pd.errors.ParserWarning)
                parts = [part.astype({c: "category" for c in self.header if c not in fractions}) for part in chunks]
        except pd.errors.ParserWarning:
            return None
        except pd.errors.ParserError as error:
            raise InputError(f"{self.name}: the table is malformed: {_lines(str(error))}") from None
        except pd.errors.EmptyDataError:
            return None
        except UnicodeDecodeError:
            raise
        except ValueError:  # text further down among fractions
            return self._parsed(set(), decimal)
        frame = parts[0] if len(parts) == 1 else _joined(parts)
        return frame[~frame.isna().all(axis=1)] if frame[self.header[0]].isna().any() else frame

    def refuse_ragged(self) -> None:
        """Raise when a row has too few or too many cells: pandas fills or cuts them silently."""
        reader = self.rows()
        for row in reader:
            if not row or (len(row) == 1 and not row[0].strip()) or row[0].startswith("%"):
                continue
            if len(row) != len(self.header):
                line, cut = reader.line_num + 1, "" if any(True for _ in reader) else " The file seems to be cut off."
                raise InputError(
                    f"{self.name}: line {line} has {len(row)} cells but the header has {len(self.header)}.{cut}"
                )


def _joined(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Return the parts as one table, with the distinct values of all."""
    columns = {}
    for name in parts[0].columns:
        column = [part[name] for part in parts]
        text = isinstance(column[0].dtype, pd.CategoricalDtype)
        columns[name] = pd.Series(union_categoricals(column)) if text else pd.concat(column, ignore_index=True)
    return pd.DataFrame(columns)


def read_text(raw: bytes, name: str, encoding: str, ids: Iterable[str] | None = ()) -> pd.DataFrame:
    """Read delimited text; the separator is the one that the header uses."""
    body = (raw if b"\n" in raw else raw.replace(b"\r", b"\n")).lstrip(b"\r\n")
    first, _, body = body.partition(b"\n")
    line = first.decode(encoding)
    separator = max(",;\t", key=line.count)
    header = [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]
    cells = Cells(body, name_blanks(header), name, encoding, separator)
    row: list[str] = next(cells.rows(), [])
    if len(row) == len(header) + 1:  # R's write.table names the columns but not the row names
        cells = replace(cells, header=name_blanks([ROW_NAMES, *header]))
    return cells.frame(ids)


def read_arff(raw: bytes, name: str, encoding: str, ids: Iterable[str] | None = ()) -> pd.DataFrame:
    """Read Weka's text format: the attribute names, then the data section as delimited text; ``?`` is missing."""
    match = re.search(rb"^[ \t]*@data[ \t]*\r?\n", raw, re.IGNORECASE | re.MULTILINE)
    if match is None:
        raise InputError(f"{name}: the ARFF file has no @data section; it may be cut off.")
    header = []
    for line in raw[: match.start()].decode(encoding).splitlines():
        line = line.strip()
        if line.lower().startswith("@attribute"):
            part = ATTRIBUTE.fullmatch(line)
            if part is None:
                raise InputError(f"{name}: cannot read the ARFF line {line[:80]!r}.")
            quoted = part[1][:1] in "'\"" and len(part[1]) > 1
            header.append(re.sub(r"\\(.)", r"\1", part[1][1:-1]) if quoted else part[1])
    body = re.sub(rb"^[ \t]*%[^\n]*\n", b"", raw[match.end() :], flags=re.MULTILINE)
    if body.lstrip().startswith(b"{"):
        raise InputError(f"{name}: sparse ARFF is not supported; save the predictions as CSV.")
    quote = "'" if b"'" in body or b'"' not in body else '"'
    return Cells(body, header, name, encoding, quote=quote, arff=True).frame(ids)


def _fraction(place: int, rows: Sequence[Sequence[str]], decimal: str) -> bool:
    cells = [row[place].strip().replace(decimal, ".") for row in rows[:-1] or rows if place < len(row)]
    cells = [cell for cell in cells if cell not in NA]
    return any(re.search(r"[.eE]", cell) for cell in cells) and all(NUMBER.fullmatch(cell) for cell in cells)


def _lines(message: str) -> str:
    """Return pandas' complaint with line numbers that count the header."""
    text = message.replace("Error tokenizing data. C error: ", "").strip()
    return re.sub(r"in line (\d+)", lambda part: f"in line {int(part[1]) + 1}", text) + "."


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
