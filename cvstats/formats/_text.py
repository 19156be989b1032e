"""Tables of text: delimited and ARFF, read so that nothing is lost.

Ids and classes stay text until every distinct value can become a number without changing how it is written.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import pandas as pd
from pandas.api.types import union_categoricals

from cvstats._check import InputError

from ._columns import NUMBER
from ._frames import check_header, empty
from ._layout import ROW_NAMES
from ._roles import is_id

NA = ["", "NA", "NaN", "nan", "<NA>"]
IDS = re.compile(
    r"(?i)sample|configuration|repeat|fold|group|label|id2?|\.row|\.config|rowindex|row_ids?|"
    r"resample|sample name|inst#|learner(_id)?|task(_id)?|iter(ation)?|"
)
ATTRIBUTE = re.compile(r"@attribute\s+('(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|[^\s'\"]\S*)\s+(.+)", re.IGNORECASE)
HEAD, CHUNK = 200, 200_000  # lines that settle which columns hold fractions; lines that are text at a time
BLOCK = 2**24  # bytes that pyarrow reads at a time


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
            if named is not None and not (IDS.fullmatch(column) or is_id(column) or column in named)
            if _fraction(place, head, "," if comma else ".")
        }
        frame = None
        if head:
            frame = None if comma else self._by_arrow(fractions)
            frame = self._parsed(fractions, "," if comma else ".") if frame is None else frame
        if frame is None or not len(frame):
            self._refuse_ragged()
            raise empty(self.name, self.header)
        quoted, counted = self.quote.encode() in self.body, (len(self.header) - 1) * len(frame)
        if frame[self.header[-1]].isna().any() or not (quoted or self.body.count(self.separator.encode()) == counted):
            self._refuse_ragged()
        return frame.reset_index(drop=True)

    def _by_arrow(self, fractions: set[str]) -> pd.DataFrame | None:
        """Return the cells by pyarrow, several times faster; None where it is missing, or anything is not plain."""
        plain_quotes = self.body.count(self.quote.encode()) % 2 == 0
        if self.arff or not plain_quotes or codecs.lookup(self.encoding).name != "utf-8":
            return None
        try:
            from pyarrow import ArrowException, csv, dictionary, float64, int32, py_buffer, string
        except ImportError:
            return None
        text = dictionary(int32(), string())
        try:
            table = csv.read_csv(
                py_buffer(self.body),
                read_options=csv.ReadOptions(column_names=self.header, use_threads=False, block_size=BLOCK),
                parse_options=csv.ParseOptions(
                    delimiter=self.separator,
                    quote_char=self.quote if self.quote.encode() in self.body else False,
                    newlines_in_values=True,
                ),
                convert_options=csv.ConvertOptions(
                    column_types={column: float64() if column in fractions else text for column in self.header},
                    null_values=NA,
                    strings_can_be_null=True,
                ),
            )
        except ArrowException:  # what is wrong, pandas says
            return None
        return self._whole(table.unify_dictionaries().to_pandas(use_threads=False, self_destruct=True))

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
        return self._whole(
            pd.DataFrame({column: join[column]([part[column] for part in parts]) for column in self.header})
        )

    def _whole(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows that are not blank."""
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


def delimited(raw: bytes, name: str, encoding: str) -> Cells:
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


def arff_cells(raw: bytes, name: str, encoding: str) -> Cells:
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
