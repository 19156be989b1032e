"""From files to tables, by what a file is, not by what it is called. None is trusted in what it says about itself."""

from __future__ import annotations

import csv
import json
import re
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import IO

import pandas as pd

from cvstats._check import InputError, show

from ._columnar import feather_table, parquet_table
from ._frames import Table, check_header, from_frame
from ._gate import Budget, first_line, opened, readable
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
        return (parquet_table if kind == "Parquet" else feather_table)(path, budget)
    if kind is not None:
        raise InputError(f"{name}: this is a {kind} file, not a table of text.")
    packed = path.suffix == ".joblib"
    if start.startswith(PICKLES) or packed:
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
        sheets = {
            name: frame for name, frame in pd.read_excel(path, sheet_name=None, dtype=object).items() if len(frame)
        }
    if len(sheets) != 1:
        raise InputError(f"{path.name}: the workbook has {len(sheets)} sheets with rows ({show(sheets)}); keep one.")
    return from_frame(next(iter(sheets.values())), path.name)
