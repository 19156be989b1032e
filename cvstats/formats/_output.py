"""The gate that every file passes before it is written.

Never anything but a regular file or a new one, never what cvstats has not made unless the caller insists; written under
a temporary name, then renamed. Ours are: pages with our name as generator, their records, netCDF files with our
attribute, tables with the header of our long table.
"""

from __future__ import annotations

import csv
import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import xarray as xr

from cvstats._check import InputError

from ._gate import first_line, needed, node, opened, unpacked

PAGE, RECORD = b'<meta name="generator" content="cvstats', b'"cvstats_record": '
KEPT = "cvstats_store"  # the attribute of our netCDF files
FIRST = ("sample", "configuration", "partner", "repeat", "fold")  # columns of our long table before the predictions
LAST = ("label", "group", "weight", "event")  # and behind them


def check_output(path: Path, *, page: bool = False, force: bool = False) -> None:
    """Raise unless a file may be written: a new one, one of ours of the same kind, or with `force` any regular file."""
    if not path.parent.is_dir():
        raise InputError(f"no such folder: {str(path.parent)!r}.")
    kind = node(path, follow=False)
    if kind not in ("nothing", "a file"):
        raise InputError(f"{str(path)!r} is {kind}, which is never replaced; give the name of a file.")
    if kind == "a file" and not force and not _made_here(path, page):
        what = "a report" if page else "predictions"
        raise InputError(
            f"{str(path)!r} exists and is not {what} made by cvstats; choose another name, or insist with `force`."
        )


def _made_here(path: Path, page: bool) -> bool:
    """Return whether a file is one of our pages, or one of our cubes or tables; an empty one is nobody's loss."""
    with opened(path) as file:
        start = file.read(4096)
    if not start or page:
        return not start or (RECORD if path.name.endswith(".record.json") else PAGE) in start
    try:
        if start.startswith(b"\x89HDF"):
            with opened(path) as raw, needed("h5py", "netCDF files", "io").File(raw, "r") as file:
                return KEPT in file.attrs
        return _is_long(_header(path, start))
    except Exception:  # the libraries below raise whatever the damage leads them into
        return False


def _header(path: Path, start: bytes) -> list[str]:
    if start.startswith(b"PAR1"):
        return list(needed("pyarrow.parquet", "Parquet files", "io").read_schema(path).names)
    if start.startswith(b"ARROW1"):
        with needed("pyarrow", "Feather files", "io").ipc.open_file(str(path)) as file:
            return list(file.schema.names)
    with unpacked(path) as (file, _):
        line = file.readline(2**20).decode()
    return next(csv.reader([line], delimiter="\t" if "\t" in line else ","))


def _is_long(columns: list[str]) -> bool:
    ours = [name for name in columns if name in (*FIRST, *LAST)]
    predictions = [name for name in columns if name == "prediction" or name.startswith("prediction_")]
    return {"sample", "configuration", "label"} <= {*ours} and bool(predictions)


def check_text(cube: xr.DataArray) -> None:
    """Raise for names and labels that no file can hold: half a sign of Unicode, or a zero byte."""
    for name, coord in cube.coords.items():
        texts = [one for one in coord.values.ravel() if isinstance(one, str)] if coord.dtype.kind in "UOT" else []
        odd = [one for one in dict.fromkeys(texts) if "\0" in one or one != one.encode(errors="ignore").decode()]
        if odd:
            raise InputError(f"coordinate {name!r} holds {odd[0]!r}, a text that files cannot hold; rename it first.")


@contextmanager
def replacing(path: Path, *, page: bool = False, force: bool = False) -> Iterator[Path]:
    """Yield a temporary name beside `path` that takes its place only when writing has succeeded."""
    check_output(path, page=page, force=force)
    temporary = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}.tmp{path.suffix}"
    with removed_on_failure(temporary, path.name):
        yield temporary
        put(temporary, path)


def put(temporary: Path, path: Path) -> None:
    """Give a file its name once all of it is on the disk."""
    synchronise(temporary)
    os.replace(temporary, path)


def synchronise(path: Path) -> None:
    """Wait until the disk holds a file, or the names in a folder."""
    if path.is_file() or os.name == "posix":  # Windows opens no folders
        handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def removed_on_failure(temporary: Path, name: str) -> Iterator[None]:
    """Leave nothing half written behind, and say of what the disk refused which file it was."""
    try:
        yield
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        reason = os.strerror(error.errno) if error.errno else first_line(error)
        raise OSError(error.errno or errno.EIO, f"{name} could not be written: {reason}") from error
