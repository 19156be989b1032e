"""Tables of text: delimited and ARFF, read so that nothing is lost.

Ids and classes stay text until every distinct value can become a number without changing how it is written. Of a large
file one block is held at a time: its cells become numbers, those of fractions or of the distinct texts of a column.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import IO, Any

import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals

from cvstats._check import InputError

from ._axis import NA, PAD, TextColumn, fractions_of
from ._columns import NUMBER
from ._frames import check_header, empty
from ._layout import ROW_NAMES
from ._roles import is_id

IDS = re.compile(r"(?i)label|id2|inst#|task|")  # columns of names that the roles do not know
ATTRIBUTE = re.compile(r"@attribute\s+('(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|[^\s'\"]\S*)\s+(.+)", re.IGNORECASE)
HEAD, CHUNK = 200, 200_000  # lines that settle which columns hold fractions; lines that are text at a time
BLOCK, LINES = 2**20, 100  # bytes that pyarrow reads at a time, and how many times the longest line at least
WIDE = 100  # columns from which on those of one type are better copied into one array than kept apart
TALL = 10  # rows per column from which on looking at each column pays


@dataclass(frozen=True)
class Cells:
    """The lines below the header of a text, and how they are written."""

    file: IO[bytes]
    start: int  # of the first line below the header
    header: list[str]
    name: str
    encoding: str
    separator: str = ","
    quote: str = '"'
    spaces: bool = False  # whether a space follows each separator
    arff: bool = False  # which has escapes
    unnamed: tuple[str, ...] = ()  # columns without a name, by what they are called instead

    def lines(self) -> IO[bytes]:
        """Return the file, from the first line below the header on."""
        self.file.seek(self.start)
        return self.file

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of each line (from 1) and its cells, as text."""
        lines = io.TextIOWrapper(self.lines(), self.encoding, newline="")
        dialect: dict[str, Any] = {"escapechar": "\\"} if self.arff else {}
        dialect |= {"delimiter": self.separator, "quotechar": self.quote, "skipinitialspace": self.spaces}
        reader = csv.reader(lines, **dialect)
        try:
            for row in reader:
                yield reader.line_num + 1, row
        finally:
            if not self.file.closed:
                lines.detach()

    def frame(self, ids: Iterable[str] | None) -> pd.DataFrame:
        """Return fractions as floats, everything else as text with its distinct values."""
        check_header(self.header, self.name, 1 if ids is None else 2)
        head = [row for _, row in islice(self.rows(), HEAD) if row]
        comma = self.separator != "," and any(re.fullmatch(r"-?\d+,\d+", cell) for row in head for cell in row)
        decimal = "," if comma else "."
        names = None if ids is None else {*ids, *filter(is_id, self.header)}
        fractions = {
            column
            for place, column in enumerate(self.header)
            if names is not None and column not in names and not IDS.fullmatch(column)
            if _fraction(place, head, decimal)
        }
        frame = self._by_arrow(fractions) if head and not comma else None
        if frame is None and head:
            try:
                frame = self._by_pandas(fractions, decimal)
            except (InputError, UnicodeDecodeError):
                raise
            except ValueError:  # text further down among fractions
                frame = self._by_pandas(set(), decimal)
        if frame is None or not len(frame):
            self._refuse_ragged()
            raise empty(self.name, self.header)
        self._refuse_header(frame)
        frame = frame.drop(columns=[name for name in self.unnamed if frame[name].isna().all()])
        if self.separator != ",":
            texts = [name for name in frame.columns[frame.dtypes == "category"] if name not in (names or ())]
            frame = frame.assign(**{name: _with_points(frame[name]) for name in texts})
        return frame.reset_index(drop=True)

    def _by_arrow(self, fractions: set[str]) -> pd.DataFrame | None:
        """Return the cells by pyarrow, in one pass; None where it is missing, or anything is not plain."""
        if self.spaces or codecs.lookup(self.encoding).name != "utf-8":
            return None
        try:
            from pyarrow import ArrowException
        except ImportError:
            return None
        lines = self.lines().readlines(HEAD * len(self.header))
        usual = max(len(b"".join(lines)) // len(lines), 2 * len(self.header))
        rows = (self.file.seek(0, io.SEEK_END) - self.start) // usual  # about so many
        columns = {name: TextColumn(name in fractions, rows) for name in self.header}
        for block in self._blocks(LINES * len(lines[0])):
            try:
                plain = self._cut(block, columns)
            except ArrowException:  # a fraction that is missing, or no number
                plain = False
            try:
                if not plain:
                    self._by_csv(block, columns)
            except ArrowException:  # what is wrong, pandas says
                return None
        made = {name: column.whole() for name, column in columns.items()}
        return self._whole(pd.DataFrame(made, copy=len(made) > WIDE))

    def _cut(self, block: bytes, columns: Mapping[str, TextColumn]) -> bool:
        """Take in lines without quotes, whose cells the separators tell; return whether these are such lines."""
        if self.quote.encode() in block or b"\x00" in block or len(columns) < 2:
            return False
        raw = np.frombuffer(b"".join([block, b"" if block.endswith(b"\n") else b"\n", PAD]), np.uint8)
        edges = self._edges(raw, b"\r" in block)
        if edges is None:
            return False
        lengths = edges[1:] - edges[:-1]
        lengths -= 1
        if lengths.max() > len(PAD):
            return False
        numbers = [
            fractions_of(raw, start + 1, end) if column.fraction else None
            for column, start, end in zip(columns.values(), edges[:-1], edges[1:], strict=True)
        ]
        for place, column in enumerate(columns.values()):
            if (found := numbers[place]) is not None:
                column.add(found)
            else:
                column.cut(raw, edges[place] + 1, lengths[place])
        return True

    def _edges(self, raw: np.ndarray, returns: bool) -> np.ndarray | None:
        """Return what is before the first cell of each line, and behind each cell; None where lines are not alike."""
        width, marks = len(self.header), raw == ord("\n")
        count = np.count_nonzero(marks)
        if count < TALL * width:
            return None
        marks |= raw == ord(self.separator)
        cuts = np.flatnonzero(marks)
        if len(cuts) != width * count:
            return None
        edges = np.empty((width + 1, count), np.int32)
        edges[1:] = cuts.astype(np.int32).reshape(count, width).T
        edges[0] = np.append(-1, edges[-1, :-1])
        if (raw[edges[-1]] != ord("\n")).any():
            return None
        if returns:
            edges[-1] -= 1
            if np.count_nonzero(raw == ord("\r")) != count or (raw[edges[-1]] != ord("\r")).any():
                return None
        return edges

    def _by_csv(self, block: bytes, columns: Mapping[str, TextColumn]) -> None:
        """Take in any lines that pyarrow reads as CSV."""
        from pyarrow import ArrowInvalid, binary, csv, float64, py_buffer, string

        quote = self.quote.encode() in block
        if block.count(self.quote.encode()) % 2:
            raise ArrowInvalid("quotes do not come in pairs")
        types = {name: float64() if column.fraction else string() for name, column in columns.items()}
        table = csv.read_csv(
            py_buffer(block),
            csv.ReadOptions(column_names=self.header, use_threads=False, block_size=min(len(block) + 1, 2**24)),
            csv.ParseOptions(
                delimiter=self.separator, quote_char=self.quote if quote else False, newlines_in_values=quote
            ),
            csv.ConvertOptions(column_types=types, null_values=NA),
        )
        for name, column in columns.items():
            cells = table[name].combine_chunks()
            if column.fraction:
                column.add(cells.to_numpy(zero_copy_only=False))
            else:
                once = cells.dictionary_encode()
                column.add(column.numbers_of(once.dictionary.cast(binary()).to_pylist())[once.indices.to_numpy()])

    def _blocks(self, least: int) -> Iterator[bytes]:
        """Yield whole lines, some at a time; all the rest where a quoted cell goes on in the next line."""
        file, quote = self.lines(), self.quote.encode()
        while block := file.read(max(BLOCK, least)):
            block += file.readline()
            if quote in block and block.count(quote) % 2:
                block += file.read()
            if block[0] not in b"\r\n" or block.strip(b"\r\n"):
                yield block

    def _by_pandas(self, fractions: set[str], decimal: str) -> pd.DataFrame | None:
        """Return the cells by pandas without blank lines; None when the first row is longer than the header."""
        settings: dict[str, Any] = {
            "header": None, "names": self.header, "index_col": False, "encoding": self.encoding, "sep": self.separator,
            "decimal": decimal, "quotechar": self.quote, "skipinitialspace": self.spaces, "keep_default_na": False,
            "low_memory": False, "na_values": [*NA, "?"] if self.arff else NA, "chunksize": CHUNK,
        }  # fmt: skip
        if self.arff:
            settings |= {"escapechar": "\\", "doublequote": False}
        if int(pd.__version__.partition(".")[0]) < 3:
            settings["float_precision"] = "round_trip"  # the default of later versions
        types = {column: "float64" if column in fractions else "str" for column in self.header}
        try:
            with warnings.catch_warnings(), pd.read_csv(self.lines(), dtype=types, **settings) as chunks:
                warnings.simplefilter("error", pd.errors.ParserWarning)
                parts = [chunk.astype({c: "category" for c in types if c not in fractions}) for chunk in chunks]
        except (pd.errors.ParserWarning, pd.errors.EmptyDataError):
            return None
        except pd.errors.ParserError as error:  # with line numbers that count the header
            text = str(error).replace("Error tokenizing data. C error: ", "").strip()
            text = re.sub(r"in line (\d+)", lambda part: f"in line {int(part[1]) + 1}", text)
            raise InputError(f"{self.name}: the table is malformed: {text}.") from None
        joins: dict[str, Any] = {c: pd.concat if c in fractions else union_categoricals for c in self.header}
        frame = self._whole(pd.DataFrame({c: join([part[c] for part in parts]) for c, join in joins.items()}))
        body, cuts = self.lines().read(), (len(self.header) - 1) * len(frame)
        plain = self.quote.encode() in body or body.count(self.separator.encode()) == cuts
        if frame[self.header[-1]].isna().any() or not plain:  # pandas may have filled or cut rows silently
            self._refuse_ragged()
        return frame

    def _whole(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows that are not blank."""
        return frame[~frame.isna().all(axis=1)] if frame[self.header[0]].isna().any() else frame

    def _refuse_header(self, frame: pd.DataFrame) -> None:
        """Raise where the header comes again, as in files that were put one below the other."""
        column = self.header[-1]
        if not isinstance(frame[column].dtype, pd.CategoricalDtype) or column not in frame[column].cat.categories:
            return
        for row in np.flatnonzero(frame[column] == column):
            if frame.iloc[row].dropna().tolist() == [name for name in self.header if name]:
                raise InputError(
                    f"{self.name}: row {row + 1} repeats the header, as where two tables were put one below the other. "
                    "Remove it, if the rows below belong to the same table."
                )

    def _refuse_ragged(self) -> None:
        """Raise when a row has too few or too many cells: pandas fills or cuts them silently."""
        rows = self.rows()
        for line, row in rows:
            if not row or (len(row) == 1 and not row[0].strip()) or row[0].startswith("%"):
                continue
            if len(row) != len(self.header):
                cut = "" if any(True for _ in rows) else " The file seems to be cut off."
                raise InputError(
                    f"{self.name}: line {line} has {len(row)} cells but the header has {len(self.header)}.{cut}"
                )


def _fraction(place: int, rows: Sequence[Sequence[str]], decimal: str) -> bool:
    cells = [row[place].strip().replace(decimal, ".") for row in rows[:-1] or rows if place < len(row)]
    cells = [cell for cell in cells if cell not in NA]
    return any(re.search(r"[.eE]", cell) for cell in cells) and all(NUMBER.fullmatch(cell) for cell in cells)


def _with_points(column: pd.Series) -> pd.Series:
    """Return a column of numbers with decimal commas with decimal points, any other as it is."""
    found = [str(text) for text in column.cat.categories]
    points = [text.replace(",", ".") for text in found]
    if points == found or len({*points}) < len(found) or not all(NUMBER.fullmatch(text.strip()) for text in points):
        return column
    return column.cat.rename_categories(points)


def delimited(file: IO[bytes], name: str, encoding: str) -> Cells:
    """Return the cells of delimited text; the separator is the one that the header uses."""
    first = file.readline()
    if not first.endswith(b"\n"):  # on some old systems lines end otherwise
        file = io.BytesIO(first.replace(b"\r", b"\n"))
        first = file.readline()
    while first and not first.strip(b"\r\n"):
        first = file.readline()
    line, start = first.decode(encoding), file.tell()
    below = file.readline().decode(encoding, "replace")
    separator = max(",;\t", key=lambda mark: (line.count(mark), below.count(mark)))
    written = next(csv.reader([line], delimiter=separator))
    header = [cell.strip() for cell in written]
    spaces = len(header) > 1 and all(cell.startswith(" ") for cell in written[1:])
    cells = Cells(file, start, header, name, encoding, separator, spaces=spaces)
    second = next(cells.rows(), (0, []))[1]
    if len(second) > 2 and not any(header[1:]):
        raise InputError(f"{name}: the first line, {header[0]!r}, is no header; delete what is above the column names.")
    header = [ROW_NAMES] * (len(second) == len(header) + 1) + header  # R's write.table names no row names
    names = _name_blanks(header)
    unnamed = tuple(name for name, cell in zip(names, header, strict=True) if name and not cell)
    return replace(cells, header=names, unnamed=unnamed)


def _name_blanks(header: list[str]) -> list[str]:
    """Name blank columns after the column before them; a blank first column keeps its empty name (row names)."""
    out, blanks = [], 0
    for place, cell in enumerate(header):
        blanks = 0 if cell or place == 0 else blanks + 1
        out.append(f"{header[place - blanks]}.{blanks}" if blanks else cell)
    return out


def arff_cells(file: IO[bytes], name: str, encoding: str) -> Cells:
    """Return the cells of Weka's text format: attribute names, then delimited text; ``?`` is missing."""
    raw = file.read()
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
    return Cells(io.BytesIO(body), 0, header, name, encoding, quote=quote, spaces=True, arff=True)
