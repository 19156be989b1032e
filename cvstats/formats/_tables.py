"""From files to tables with named columns: delimited text, ARFF, Parquet, Feather.

Text is read so that nothing is lost: ids and classes stay text until every distinct value can become a number without
changing how it is written. No file is trusted in what it says about itself.
"""

from __future__ import annotations

import csv
import io
import re
import struct
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals

from cvstats._check import InputError, show

from ._columns import NUMBER
from ._gate import Budget, needed, opened, readable
from ._layout import ROW_NAMES

BINARY = {b"PAR1": "Parquet", b"ARROW1": "Feather", b"\x89HDF": "netCDF", b"CDF\x01": "netCDF", b"CDF\x02": "netCDF"}
BINARY |= {b"\x93NUMPY": "npy"}
R_DATA = "this is an R data file; save the predictions with write.csv() or arrow::write_parquet()."
UTF16 = "the text is UTF-16; save it as UTF-8."
REFUSED = {b"X\n\x00": R_DATA, b"RDX2": R_DATA, b"RDX3": R_DATA, b"\xff\xfe": UTF16, b"\xfe\xff": UTF16}
NA = ["", "NA", "NaN", "nan", "<NA>"]
IDS = re.compile(
    r"(?i)sample|configuration|repeat|fold|group|label|id2?|\.row|\.config|rowindex|row_ids?|"
    r"resample|sample name|inst#|learner(_id)?|task(_id)?|iter(ation)?|"
)
ATTRIBUTE = re.compile(r"@attribute\s+('(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|[^\s'\"]\S*)\s+(.+)", re.IGNORECASE)
VIEW = "string_view"  # text of Arrow that lies anywhere
INDEX = re.compile(r"__index_level_\d+__")
HEAD, CHUNK = 200, 200_000  # lines that settle which columns hold fractions; lines that are text at a time


@dataclass(frozen=True)
class Table:
    """A table that is read in parts."""

    name: str
    columns: list[str]
    parts: Callable[[], Iterator[pd.DataFrame]]
    text: bool = False  # so that types are to be found out


def read_table(path: Path, encoding: str, budget: Budget, ids: Iterable[str] | None = ()) -> Table:
    """Open a file by what it is, not by what it is called.

    Columns of `ids` hold names, read as they are written; None stands for all columns, of which there may be one.
    """
    name = path.name
    with opened(path) as file:
        start = file.read(8)
    kind = next((kind for magic, kind in BINARY.items() if start.startswith(magic)), None)
    if kind in ("Parquet", "Feather"):
        return (_parquet if kind == "Parquet" else _feather)(path, budget)
    if kind is not None:
        raise InputError(f"{name}: this is a {kind} file, not a table of text.")
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise InputError(
            f"{name}: this is a Python pickle, which is never opened; save the predictions as CSV or Parquet."
        )
    raw = budget.read(path)
    if not raw.strip():
        raise InputError(f"{name}: the file is empty.")
    for magic, words in REFUSED.items():
        if raw.startswith(magic):
            raise InputError(f"{name}: {words}")
    if b"\x00" in raw[: 1 << 20]:
        raise InputError(f"{name}: this is a binary file, not a table of text.")
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    cells = _arff if re.match(rb"\s*(%[^\n]*\n\s*)*@relation", raw[: 1 << 16], re.IGNORECASE) else _delimited
    try:
        frame = cells(raw, name, encoding).frame(ids)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name}: the text is not {encoding.upper()} (byte 0x{error.object[error.start]:02x}). "
            "Save it as UTF-8, or say encoding='latin-1' (or whatever it is)."
        ) from None
    except csv.Error as error:
        raise InputError(f"{name}: the table is malformed: {error}.") from None
    except LookupError:
        raise InputError(f"`encoding`={encoding!r} is not known to Python.") from None
    return replace(from_frame(frame, name, 1 if ids is None else 2), text=True)


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
        raise _empty(name, frame.columns)
    for column in frame.columns:
        if frame[column].dtype == object:
            kinds = {type(value).__name__ for value in frame[column].dropna()}
            if len(kinds) > 1 and not kinds <= {"int", "float", "int64", "float64"}:
                raise InputError(f"{name}: column {column!r} mixes types {show(sorted(kinds))}; convert it to one.")
    return Table(name, list(frame.columns), lambda: iter([frame]))


def check_header(header: Sequence[str], name: str, least: int = 2) -> None:
    """Raise unless column names are unique and look like names, and there are at least so many."""
    twice = [column for column in dict.fromkeys(header) if list(header).count(column) > 1]
    if twice:
        raise InputError(f"{name}: column names must be unique; found more than once: {show(twice)}.")
    if len(header) < least:
        raise InputError(
            f"{name}: only one column, {''.join(header)!r}, so this is not a table of predictions "
            "(or its separator is not , ; or tab)."
        )
    if all(NUMBER.fullmatch(column) for column in header):
        raise InputError(
            f"{name}: the first line holds numbers ({show(header)}); columns must be named in a header line."
        )


def _empty(name: str, columns: Iterable[str]) -> InputError:
    return InputError(f"{name}: the table is empty: it has columns {show(columns)} but no rows.")


# -- text


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
        named = None if ids is None else {*ids}
        fractions = {
            column
            for place, column in enumerate(self.header)
            if named is not None and not IDS.fullmatch(column) and column not in named
            if _fraction(place, head, "," if comma else ".")
        }
        frame = self._parsed(fractions, "," if comma else ".") if head else None
        if frame is None or not len(frame):
            self._refuse_ragged()
            raise _empty(self.name, self.header)
        quoted, counted = self.quote.encode() in self.body, (len(self.header) - 1) * len(frame)
        if frame[self.header[-1]].isna().any() or not (quoted or self.body.count(self.separator.encode()) == counted):
            self._refuse_ragged()
        return frame.reset_index(drop=True)

    def _parsed(self, fractions: set[str], decimal: str) -> pd.DataFrame | None:
        """Return the cells by pandas without blank lines; None when the first row is longer than the header."""
        settings: dict[str, Any] = {
            "header": None, "names": self.header, "index_col": False, "encoding": self.encoding, "sep": self.separator,
            "decimal": decimal, "quotechar": self.quote, "keep_default_na": False, "low_memory": False,
            "na_values": [*NA, "?"] if self.arff else NA, "chunksize": CHUNK,
        }  # fmt: skip
        if self.arff:
            settings |= {"escapechar": "\\", "doublequote": False, "skipinitialspace": True}
        if int(pd.__version__.partition(".")[0]) < 3:
            settings["float_precision"] = "round_trip"  # the default of later versions
        types = {column: "float64" if column in fractions else "str" for column in self.header}
        try:
            with warnings.catch_warnings(), pd.read_csv(io.BytesIO(self.body), dtype=types, **settings) as chunks:
                warnings.simplefilter("error", pd.errors.ParserWarning)
                parts = [chunk.astype({c: "category" for c in types if c not in fractions}) for chunk in chunks]
        except (pd.errors.ParserWarning, pd.errors.EmptyDataError):
            return None
        except pd.errors.ParserError as error:  # with line numbers that count the header
            text = str(error).replace("Error tokenizing data. C error: ", "").strip()
            text = re.sub(r"in line (\d+)", lambda part: f"in line {int(part[1]) + 1}", text)
            raise InputError(f"{self.name}: the table is malformed: {text}.") from None
        except UnicodeDecodeError:
            raise
        except ValueError:  # text further down among fractions
            return self._parsed(set(), decimal)
        join: dict[str, Any] = {
            column: pd.concat if column in fractions else union_categoricals for column in self.header
        }
        frame = pd.DataFrame({column: join[column]([part[column] for part in parts]) for column in self.header})
        return frame[~frame.isna().all(axis=1)] if frame[self.header[0]].isna().any() else frame

    def _refuse_ragged(self) -> None:
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


def _fraction(place: int, rows: Sequence[Sequence[str]], decimal: str) -> bool:
    cells = [row[place].strip().replace(decimal, ".") for row in rows[:-1] or rows if place < len(row)]
    cells = [cell for cell in cells if cell not in NA]
    return any(re.search(r"[.eE]", cell) for cell in cells) and all(NUMBER.fullmatch(cell) for cell in cells)


def _delimited(raw: bytes, name: str, encoding: str) -> Cells:
    """Return the cells of delimited text; the separator is the one that the header uses."""
    body = (raw if b"\n" in raw else raw.replace(b"\r", b"\n")).lstrip(b"\r\n")
    first, _, body = body.partition(b"\n")
    line = first.decode(encoding)
    separator = max(",;\t", key=line.count)
    header = [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]
    cells = Cells(body, _name_blanks(header), name, encoding, separator)
    if len(next(cells.rows(), [])) == len(header) + 1:  # R's write.table names the columns but not the row names
        return replace(cells, header=_name_blanks([ROW_NAMES, *header]))
    return cells


def _name_blanks(header: list[str]) -> list[str]:
    """Name blank columns after the column before them; a blank first column keeps its empty name (row names)."""
    out, blanks = [], 0
    for place, cell in enumerate(header):
        blanks = 0 if cell or place == 0 else blanks + 1
        out.append(f"{header[place - blanks]}.{blanks}" if blanks else cell)
    return out


def _arff(raw: bytes, name: str, encoding: str) -> Cells:
    """Return the cells of Weka's text format: attribute names, then delimited text; ``?`` is missing."""
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
    return Cells(body, header, name, encoding, quote="'" if b"'" in body or b'"' not in body else '"', arff=True)


# -- tables stored by column


def _parquet(path: Path, budget: Budget) -> Table:
    """Open a Parquet file; each row group is one part, so that memory follows the cube and not the file."""
    parquet = needed("pyarrow.parquet", "Parquet files", "io")
    types = needed("pyarrow", "Parquet files", "io").types
    with readable(path.name, "Parquet file is corrupt or cut off"), parquet.ParquetFile(path) as file:
        meta, schema = file.metadata, file.schema_arrow
        _refuse_types(schema, path.name, types)
        width = sum(8 if _is_text(column.type) else max(8, column.type.bit_width // 8) for column in schema)
        groups = [meta.row_group(i) for i in range(meta.num_row_groups)]  # runs of one value are stored as one
        size = max((max(group.total_byte_size, group.num_rows * width) for group in groups), default=0)
    budget.take(size, f"{path.name}: a row group decompresses to", path)
    if not meta.num_rows:
        raise _empty(path.name, schema.names)
    columns = [ROW_NAMES if INDEX.fullmatch(name) else name for name in schema.names]
    check_header(columns, path.name)
    text = [column.name for column in schema if _is_text(column.type)]

    def parts() -> Iterator[pd.DataFrame]:
        with (
            readable(path.name, "Parquet file is corrupt or cut off"),
            parquet.ParquetFile(path, read_dictionary=text, pre_buffer=False) as file,
        ):
            for i in range(meta.num_row_groups):
                group = file.read_row_group(i, use_threads=False)
                yield group.replace_schema_metadata(None).rename_columns(columns).to_pandas(use_threads=False)

    return Table(path.name, columns, parts)


def _feather(path: Path, budget: Budget) -> Table:
    """Read a Feather (Arrow IPC) file whose buffers say that they fit."""
    arrow = needed("pyarrow", "Feather files", "io")
    with readable(path.name, "Feather file is corrupt or cut off"), arrow.memory_map(str(path)) as file:
        contents = arrow.ipc.open_file(file)
        file.seek(8)
        size = sum(_unpacked_size(message) for message in arrow.ipc.MessageReader.open_stream(file))
        budget.take(size, f"{path.name}: the file decompresses to", path)
        file.seek(8)
        with arrow.ipc.open_stream(file) as stream:
            _refuse_types(stream.schema, path.name, arrow.types)
            batches = list(stream)
        if stream.schema != contents.schema or len(batches) != contents.num_record_batches:
            raise ValueError("it does not hold what its end says")
        table = arrow.Table.from_batches(batches, stream.schema)
        table.validate(full=True)
        size = sum(_viewed(chunk) for column in table.columns if str(column.type) == VIEW for chunk in column.chunks)
        budget.take(size, f"{path.name}: its text takes", path)
        frame = table.replace_schema_metadata(None).to_pandas()
    if not all(isinstance(column, str) for column in frame.columns):
        raise InputError(f"{path.name}: columns must be named.")
    return from_frame(frame.rename(columns=lambda name: ROW_NAMES if INDEX.fullmatch(name) else name), path.name)


def _refuse_types(schema: Any, name: str, types: Any) -> None:
    """Raise for columns that are no column of a table: bytes, lists and records."""
    for column in schema:
        kind = column.type.value_type if types.is_dictionary(column.type) else column.type
        flat = types.is_primitive(kind) or types.is_decimal(kind) or types.is_null(kind)
        if not (flat or _is_text(kind)):
            raise InputError(
                f"{name}: column {column.name!r} holds {str(column.type)[:60]}; keep numbers and text only."
            )


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", VIEW)


def _viewed(chunk: Any) -> int:
    """Return the bytes of text behind views, which may all show the same place."""
    views = np.frombuffer(chunk.buffers()[1], "<i4").reshape(-1, 4)
    return int(views[chunk.offset : chunk.offset + len(chunk), 0].astype(np.int64).clip(0).sum())


def _unpacked_size(message: Any) -> int:
    """Return the size of the buffers of an Arrow message (flatbuffers); each compressed one begins with it."""
    if message.type not in ("record batch", "dictionary"):
        return 0
    raw = message.metadata.to_pybytes()

    def number(place: int, how: str = "<I") -> int:
        if place < 0:
            raise ValueError("a place before its beginning")
        return int(struct.unpack_from(how, raw, place)[0])

    def field(table: int, nth: int) -> int:  # where a field of a table lies; 0 where it has none
        names = table - number(table, "<i")
        offset = number(names + 4 + 2 * nth, "<H") if 4 + 2 * nth < number(names, "<H") else 0
        return table + offset if offset else 0

    def follow(place: int) -> int:
        return place + number(place)

    batch = follow(field(follow(0), 2))
    if message.type == "dictionary":  # which holds a record batch
        batch = follow(field(batch, 1))
    if not field(batch, 2):
        return 0
    buffers, packed = follow(field(batch, 2)), field(batch, 3) != 0
    total = 0
    for start, size in np.frombuffer(raw, "<i8", 2 * number(buffers), buffers + 4).reshape(-1, 2).tolist():
        unpacked = struct.unpack_from("<q", message.body, start)[0] if packed and size >= 8 else -1
        total += max(size if unpacked == -1 else unpacked, 0)
    return total
