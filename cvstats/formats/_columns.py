"""Tables stored by column: Parquet and Feather, read without trusting what they say about themselves."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from cvstats._check import InputError, show

from ._gate import Budget, first_line, needed
from ._layout import ROW_NAMES
from ._tables import Table, check_header, from_frame

INDEX = re.compile(r"__index_level_\d+__")


def read_parquet(path: Path, budget: Budget) -> Table:
    """Open a Parquet file; each row group is one part, so that memory follows the cube and not the file."""
    parquet = needed("pyarrow.parquet", "Parquet files", "io")
    arrow = needed("pyarrow", "Parquet files", "io")
    try:
        with parquet.ParquetFile(path) as file:
            meta, schema = file.metadata, file.schema_arrow
            _refuse_types(schema, path.name, arrow.types)
            sizes = [_decoded(meta.row_group(i), schema) for i in range(meta.num_row_groups)]
    except InputError:
        raise
    except Exception as error:  # pyarrow raises whatever the damage leads it into
        raise _broken(path, "Parquet", error) from None
    names = list(schema.names)
    text = [f.name for f in schema if arrow.types.is_string(f.type) or arrow.types.is_large_string(f.type)]
    budget.take(max(sizes, default=0), f"{path.name}: a row group decompresses to")
    if not meta.num_rows:
        raise InputError(f"{path.name}: the table is empty: it has columns {show(names)} but no rows.")
    columns = [ROW_NAMES if INDEX.fullmatch(name) else name for name in names]
    check_header(columns, path.name)

    def parts() -> Iterator[pd.DataFrame]:
        try:
            with parquet.ParquetFile(path, read_dictionary=text, pre_buffer=False) as file:
                for i in range(meta.num_row_groups):
                    group = file.read_row_group(i, use_threads=False)
                    yield group.replace_schema_metadata(None).rename_columns(columns).to_pandas(use_threads=False)
        except (InputError, GeneratorExit):
            raise
        except Exception as error:
            raise _broken(path, "Parquet", error) from None

    return Table(path.name, columns, parts, meta.num_row_groups)


def _decoded(group: Any, schema: Any) -> int:
    """Return how many bytes a row group of flat columns takes when decoded: runs of one value are stored as one."""
    return max(int(group.total_byte_size), int(group.num_rows) * sum(_width(column.type) for column in schema))


def _width(kind: Any) -> int:
    try:
        return max(8, int(kind.bit_width) // 8)
    except ValueError:  # text
        return 8


def _refuse_types(schema: Any, name: str, types: Any) -> None:
    """Raise for columns that are no column of a table: bytes, lists and records."""
    for column in schema:
        kind = column.type.value_type if types.is_dictionary(column.type) else column.type
        flat = types.is_primitive(kind) or types.is_decimal(kind) or types.is_null(kind)
        text = types.is_string(kind) or types.is_large_string(kind) or _is_view(kind)
        if not (flat or text):
            raise InputError(
                f"{name}: column {column.name!r} holds {str(column.type)[:60]}; keep numbers and text only."
            )


def read_feather(path: Path, budget: Budget) -> Table:
    """Read a Feather (Arrow IPC) file whose buffers say that they fit."""
    arrow = needed("pyarrow", "Feather files", "io")
    try:
        size = declared_bytes(path)
        budget.take(size, f"{path.name}: the file decompresses to")
        with arrow.ipc.open_file(str(path)) as file:
            _refuse_types(file.schema, path.name, arrow.types)
            table = file.read_all()
        table.validate(full=True)
        size = sum(_viewed(chunk) for column in table.columns if _is_view(column.type) for chunk in column.chunks)
        budget.take(size, f"{path.name}: its text takes")
        frame = table.replace_schema_metadata(None).to_pandas()
    except InputError:
        raise
    except Exception as error:
        raise _broken(path, "Feather", error) from None
    if not all(isinstance(column, str) for column in frame.columns):
        raise InputError(f"{path.name}: columns must be named.")
    return from_frame(frame.rename(columns=lambda name: ROW_NAMES if INDEX.fullmatch(name) else name), path.name)


def _broken(path: Path, kind: str, error: Exception) -> InputError:
    return InputError(f"{path.name}: the {kind} file is corrupt or cut off ({first_line(error)}).")


def _is_view(kind: Any) -> bool:
    return str(kind) == "string_view"


def _viewed(chunk: Any) -> int:
    """Return the bytes of text behind views, which may all show the same place."""
    views = np.frombuffer(chunk.buffers()[1], "<i4").reshape(-1, 4)
    return int(views[chunk.offset : chunk.offset + len(chunk), 0].astype(np.int64).clip(0).sum())


def declared_bytes(path: Path) -> int:
    """Return the size of all buffers of an Arrow file after decompression, which each compressed one begins with.

    The file ends with a table of contents; this walks from there to the lists of buffers (flatbuffers, little-endian).
    """
    total = 0
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        length = _number(_read(file, end - 10, 4), 0, "<i")
        footer = _read(file, end - 10 - length, length)
        root = _number(footer, 0, "<I")
        for place in (*_structs(footer, root, 2, 24), *_structs(footer, root, 3, 24)):  # dictionaries, record batches
            offset, meta_size = _number(footer, place, "<q"), _number(footer, place + 8, "<i")
            meta = _read(file, offset, meta_size)
            meta = meta[8:] if meta[:4] == b"\xff\xff\xff\xff" else meta[4:]
            message = _number(meta, 0, "<I")
            batch = _table(meta, message, 2)
            if meta[_field(meta, message, 1)] == 2:  # a dictionary holds a record batch
                batch = _table(meta, batch, 1)
            packed = _field(meta, batch, 3) != 0
            for buffer in _structs(meta, batch, 2, 16):
                start, size = _number(meta, buffer, "<q"), _number(meta, buffer + 8, "<q")
                if packed and size >= 8:
                    unpacked = _number(_read(file, offset + meta_size + start, 8), 0, "<q")
                    size = size if unpacked == -1 else unpacked
                total += max(size, 0)
    return total


def _read(file: IO[bytes], at: int, size: int) -> bytes:
    if at < 0 or size < 0:
        raise ValueError("bytes before its beginning")
    file.seek(at)
    raw = file.read(size)
    if len(raw) < size:
        raise ValueError("bytes beyond its end")
    return raw


def _number(raw: bytes, at: int, how: str) -> int:
    if at < 0:
        raise ValueError("a place before its beginning")
    return int(struct.unpack_from(how, raw, at)[0])


def _field(raw: bytes, table: int, number: int) -> int:
    """Return where a field of a flatbuffers table lies; 0 where it has none."""
    names = table - _number(raw, table, "<i")
    place = 4 + 2 * number
    offset = _number(raw, names + place, "<H") if place < _number(raw, names, "<H") else 0
    return table + offset if offset else 0


def _table(raw: bytes, table: int, number: int) -> int:
    place = _field(raw, table, number)
    return place + _number(raw, place, "<I")


def _structs(raw: bytes, table: int, number: int, size: int) -> range:
    """Return where the structs of a field that is a vector of them lie."""
    if not _field(raw, table, number):
        return range(0)
    start = _table(raw, table, number)
    count = _number(raw, start, "<I")
    if start + 4 + count * size > len(raw):
        raise ValueError("a list beyond its end")
    return range(start + 4, start + 4 + count * size, size)
