"""From files to tables, by what a file is, not by what it is called. None is trusted in what it says about itself."""

from __future__ import annotations

import csv
import json
import re
import struct
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from cvstats._check import InputError, show

from ._axis import NA
from ._frames import Table, check_header, empty, from_frame, refuse_training
from ._gate import Budget, first_line, needed, opened, readable
from ._layout import ROW_NAMES
from ._text import arff_cells, delimited

BINARY = {b"PAR1": "Parquet", b"ARROW1": "Feather", b"\x89HDF": "netCDF", b"CDF\x01": "netCDF", b"CDF\x02": "netCDF"}
BINARY |= {b"\x93NUMPY": "npy"}
R_FILE = (
    'this is an R data file. In R type: write.csv(readRDS("{0}"), "{1}.csv", row.names = FALSE), with readRDS("{0}")'
)
R_FILE += '$pred for a fit of caret and tune::collect_predictions(readRDS("{0}")) for one of tidymodels.'
R_IMAGE = 'this is an R data file. In R type: load("{0}"); write.csv(<the table>, "{1}.csv", row.names = FALSE).'
PICKLE = "this is a Python pickle, which is never opened; save the predictions as CSV or Parquet. In Python: {2}('{0}')"
PICKLE += ".to_csv('{1}.csv') if it is a table."
EXCEL = "this is an Excel workbook, which needs the package openpyxl (pip install openpyxl); or save the sheet as CSV."
UTF16 = "the text is UTF-16; save it as UTF-8."
REFUSED = {b"X\n\x00": R_FILE, b"RDX2": R_IMAGE, b"RDX3": R_IMAGE, b"\xff\xfe": UTF16, b"\xfe\xff": UTF16}
REFUSED |= {b"\xd0\xcf\x11\xe0": "this is an old Excel workbook (.xls); save the sheet as CSV."}
BOM = b"\xef\xbb\xbf"
VIEW = "string_view"  # text of Arrow that lies anywhere
INDEX = re.compile(r"__index_level_\d+__")
PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


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
    packed = path.suffix == ".joblib"
    if start.startswith(PICKLES) or path.suffix in (".joblib", ".pkl", ".pickle"):
        loader = "joblib.load" if packed else "pandas.read_pickle"
        raise InputError(f"{name}: {PICKLE.format(name, path.stem, loader)}")
    if start.startswith(b"PK") and (sizes := _workbook(path)):
        budget.take(sum(sizes), f"{name}: the workbook decompresses to", path)
        return _excel(path)
    with budget.text(path) as file:
        return _text_table(file, path, encoding, ids)


def _text_table(file: IO[bytes], path: Path, encoding: str, ids: Iterable[str] | None) -> Table:
    name, start = path.name, file.read(1 << 20)
    if not start.strip():
        raise InputError(f"{name}: the file is empty.")
    for magic, words in REFUSED.items():
        if start.startswith(magic):
            raise InputError(f"{name}: {words.format(name, path.stem)}")
    if b"\x00" in start:
        raise InputError(f"{name}: this is a binary file, not a table of text.")
    file.seek(len(BOM) if start.startswith(BOM) else 0)
    start = start.removeprefix(BOM)[: 1 << 16]
    if start.lstrip()[:1] in (b"[", b"{"):
        return from_frame(_json(file.read(), name), name)
    cells = arff_cells if re.match(rb"\s*(%[^\n]*\n\s*)*@relation", start, re.IGNORECASE) else delimited
    try:
        frame = cells(file, name, encoding).frame(ids)
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


def _json(raw: bytes, name: str) -> pd.DataFrame:
    """Return records, columns, pandas' "split" or JSON lines as a table."""
    try:
        try:
            found = json.loads(raw)
        except ValueError:
            found = [json.loads(line) for line in raw.splitlines() if line.strip()]
        if isinstance(found, dict) and {"columns", "data"} <= {*found}:
            frame = pd.DataFrame(found["data"], columns=found["columns"], index=found.get("index"))
        else:
            frame = pd.DataFrame(found)
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(
            f"{name}: the JSON is malformed, or no table of rows or columns ({first_line(error)})."
        ) from None
    check_header([str(column) for column in frame.columns], name)
    deep = [column for column in frame if frame[column].map(lambda value: isinstance(value, (dict, list))).any()]
    if deep:
        raise InputError(f"{name}: column {deep[0]!r} holds lists or records; keep numbers and text only.")
    return frame.reset_index(drop=True)


def _workbook(path: Path) -> list[int]:
    """Return the sizes of the files in an Excel workbook; none for another archive."""
    with readable(path.name, "zip file is corrupt or cut off"), zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
    return [info.file_size for info in infos] if any(info.filename == "xl/workbook.xml" for info in infos) else []


def _excel(path: Path) -> Table:
    try:
        import_module("openpyxl")
    except ImportError:
        raise InputError(f"{path.name}: {EXCEL}") from None
    with readable(path.name, "Excel workbook is corrupt"):
        found = pd.read_excel(path, sheet_name=None, dtype=object, keep_default_na=False, na_values=NA)
    sheets = {name: frame for name, frame in found.items() if len(frame)}
    if len(sheets) != 1:
        raise InputError(f"{path.name}: the workbook has {len(sheets)} sheets with rows ({show(sheets)}); keep one.")
    return from_frame(next(iter(sheets.values())), path.name)


# -- tables stored by column, read in parts and within a budget


def _parquet(path: Path, budget: Budget) -> Table:
    """Open a Parquet file; each row group is one part, so that memory follows the cube and not the file."""
    parquet = needed("pyarrow.parquet", "Parquet files", "io")
    types = needed("pyarrow", "Parquet files", "io").types
    with readable(path.name, "Parquet file is corrupt or cut off"):
        file = parquet.ParquetFile(path, memory_map=True, pre_buffer=False)
        meta, schema = file.metadata, file.schema_arrow
        kinds = Counter(schema.types)  # of which there are few, however many columns
        _refuse_types(schema, kinds, path.name, types)
        width = sum(count * (32 if types.is_decimal(kind) else 8) for kind, count in kinds.items())
        groups = [meta.row_group(i) for i in range(meta.num_row_groups)]  # runs of one value are stored as one
        size = max((max(group.total_byte_size, group.num_rows * width) for group in groups), default=0)
    budget.take(size, f"{path.name}: a row group decompresses to", path)
    if not meta.num_rows:
        raise empty(path.name, schema.names)
    columns = [ROW_NAMES if INDEX.fullmatch(name) else name for name in schema.names]
    check_header(columns, path.name)
    source = file
    if any(map(_is_text, kinds)):  # each distinct text once
        text = [column.name for column in schema if _is_text(column.type)]
        source = parquet.ParquetFile(path, memory_map=True, pre_buffer=False, read_dictionary=text, metadata=meta)

    def parts() -> Iterator[pd.DataFrame]:
        with readable(path.name, "Parquet file is corrupt or cut off"):
            for i in range(meta.num_row_groups):
                group = source.read_row_group(i, use_threads=False)
                frame = _frame(group if columns == schema.names else group.rename_columns(columns), types)
                refuse_training(frame, path.name)
                yield frame

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
            _refuse_types(stream.schema, {*stream.schema.types}, path.name, arrow.types)
            batches = list(stream)
        if stream.schema != contents.schema or len(batches) != contents.num_record_batches:
            raise ValueError("it does not hold what its end says")
        table = arrow.Table.from_batches(batches, stream.schema)
        table.validate(full=True)
        size = sum(_viewed(chunk) for column in table.columns if str(column.type) == VIEW for chunk in column.chunks)
        budget.take(size, f"{path.name}: its text takes", path)
        frame = _frame(table, arrow.types)
    if not all(isinstance(column, str) for column in frame.columns):
        raise InputError(f"{path.name}: columns must be named.")
    return from_frame(frame.rename(columns=lambda name: ROW_NAMES if INDEX.fullmatch(name) else name), path.name)


def _frame(table: Any, types: Any) -> pd.DataFrame:
    """Return an Arrow table as pandas takes it without what pandas wrote into it; decimals become floats."""
    for place, column in enumerate(table.schema if any(map(types.is_decimal, {*table.schema.types})) else ()):
        if types.is_decimal(column.type):
            numbers = table.column(place).cast("string").cast("float64")  # at once, some would be rounded twice
            table = table.set_column(place, column.name, numbers)
    frame: pd.DataFrame = table.replace_schema_metadata(None).to_pandas(use_threads=False)
    return frame


def _refuse_types(schema: Any, kinds: Iterable[Any], name: str, types: Any) -> None:
    """Raise for columns that are no column of a table: bytes, lists and records."""
    for kind in kinds:
        inner = kind.value_type if types.is_dictionary(kind) else kind
        if not (types.is_primitive(inner) or types.is_decimal(inner) or types.is_null(inner) or _is_text(inner)):
            column = next(column.name for column in schema if column.type == kind)
            raise InputError(f"{name}: column {column!r} holds {str(kind)[:60]}; keep numbers and text only.")


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
