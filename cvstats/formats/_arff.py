"""ARFF tables: Weka's text format, in which OpenML stores predictions."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable

import pandas as pd

from cvstats._check import InputError, show

from ._tables import check_header, read_cells

ATTRIBUTE = re.compile(r"@attribute\s+('(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|[^\s'\"]\S*)\s+(.+)", re.IGNORECASE)


def read_arff(raw: bytes, name: str, encoding: str, ids: Iterable[str] | None = ()) -> pd.DataFrame:
    """Read the attribute names, then the data section as delimited text; ``?`` is missing."""
    match = re.search(rb"^[ \t]*@data[ \t]*\r?\n", raw, re.IGNORECASE | re.MULTILINE)
    if match is None:
        raise InputError(f"{name}: the ARFF file has no @data section; it may be cut off.")
    names = []
    for line in raw[: match.start()].decode(encoding).splitlines():
        line = line.strip()
        if line.lower().startswith("@attribute"):
            part = ATTRIBUTE.fullmatch(line)
            if part is None:
                raise InputError(f"{name}: cannot read the ARFF line {line[:80]!r}.")
            names.append(_unquote(part[1]))
    check_header(names, name, 1 if ids is None else 2)
    body = re.sub(rb"^[ \t]*%[^\n]*\n", b"", raw[match.end() :], flags=re.MULTILINE)
    if body.lstrip().startswith(b"{"):
        raise InputError(f"{name}: sparse ARFF is not supported; save the predictions as CSV.")
    head = body[: 1 << 18].decode(encoding, errors="replace").splitlines()[:200]
    quote = "'" if b"'" in body or b'"' not in body else '"'
    reader = csv.reader(head, quotechar=quote, escapechar="\\", skipinitialspace=True)
    rows = [row for row in reader if row]
    if not rows:
        raise InputError(f"{name}: the table is empty: it has columns {show(names)} but no rows.")
    return read_cells(
        body, names, name, encoding, ids, sample=rows, na=["?"], quotechar=quote, escapechar="\\", doublequote=False,
        skipinitialspace=True,
    )  # fmt: skip


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text[:1] in "'\"" and len(text) > 1 else text
