"""Tables stored by column, Parquet and Feather, read in parts and within a budget."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError

from ._frames import Table, check_header, empty, from_frame
from ._gate import Budget, needed, readable
from ._layout import ROW_NAMES

VIEW = "string_view"  # text of Arrow that lies anywhere
INDEX = re.compile(r"__index_level_\d+__")


def parquet_table(path: Path, budget: Budget) -> Table:
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
        raise empty(path.name, schema.names)
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


def feather_table(path: Path, budget: Budget) -> Table:
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
