"""The distinct values of a column, numbered: how labels of rows become places in a cube."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ._columns import natural, texts

NA = ["", "NA", "NaN", "nan", "<NA>"]  # words for a missing cell
PAD = bytes(128)  # so that words can be read from the last cell on
FEW = 100  # texts that are looked up one by one
MASKS = np.array([(1 << 8 * letters) - 1 for letters in range(9)], np.uint64)


@dataclass
class Axis:
    """Distinct values in first-seen order, numbered; compared by how they are written."""

    places: dict[str, int] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)

    def codes(self, column: pd.Series, text: bool) -> np.ndarray:
        """Return the number of each row's value, -1 where missing."""
        if isinstance(column.dtype, pd.CategoricalDtype):
            codes, values = np.asarray(column.array.codes), np.asarray(column.cat.categories)
            if not _first_seen(codes, len(values)):
                codes, used = pd.factorize(codes)  # a missing value is used as -1
                codes = np.where(used == -1, -1, np.cumsum(used >= 0) - 1)[codes] if len(used) else codes
                values = values[used[used >= 0]]
        else:
            codes, found = pd.factorize(column)
            values = np.asarray(found)
        kind = "O" if values.dtype.kind in "OUT" else values.dtype.kind
        self.kinds.add("t" if text and kind != "f" else kind)
        new = not self.places
        numbers = [self.places.setdefault(name, len(self.places)) for name in texts(values)]
        small = np.min_scalar_type(-1 - len(self.places))
        if new and len(numbers) == len(self.places):
            return np.asarray(codes.astype(small, copy=False))
        return np.asarray(np.array([*numbers, -1], small)[codes])

    def values(self, *, ids: bool) -> np.ndarray:
        """Return the distinct values in their natural type; text that came typed as text stays text."""
        raw = np.array(list(self.places), dtype=object)
        if self.kinds & {"O"} or (ids and self.kinds == {"b"}):
            return raw.astype(str)
        out = natural(raw, ids=ids)
        return out.astype(float) if self.kinds == {"f"} and not ids and out.dtype.kind == "i" else out

    def taken(self, codes: np.ndarray, *, ids: bool = False, number: Any = np.nan, text: Any = "") -> np.ndarray:
        """Return the value of each code, and where there is none what stands for a missing `number` or `text`."""
        values = self.values(ids=ids)
        if (codes >= 0).all():
            return np.asarray(values[codes])
        if text == "" and number is np.nan and values.dtype.kind in "iu" and (np.abs(values) > 2**53).any():
            values = values.astype(str)  # as floats some would be the same
        numbers = values.dtype.kind in ("iuf" if text == "" else "iufb")
        kind: Any = (float if number is np.nan else values.dtype) if numbers else object
        out = np.append(values.astype(kind), number if numbers else text)[codes]
        return np.asarray(out.astype(str) if not numbers and text == "" else out)


def _first_seen(codes: np.ndarray, count: int) -> bool:
    """Return whether so many codes are all used, each for the first time after those before it; -1 is missing."""
    step = 256
    blocks, rest = np.split(codes, [len(codes) // step * step])
    blocks = blocks.reshape(-1, step)
    grown = np.diff(np.maximum.accumulate(blocks.max(axis=1)), prepend=-1) > 0  # where the highest code is a new one
    highest = np.maximum.accumulate(np.concatenate([blocks[grown].ravel(), rest]))
    if not count or not len(highest) or highest[0] > 0 or highest[-1] < count - 1:
        return False
    return bool((np.diff(highest).view(f"u{highest.itemsize}") <= 1).all())


def same(name: Any, names: dict[str, Any]) -> Any:
    """Return the label that is written like `name`, else `name` itself."""
    return name if name is None else names.get(texts([name])[0], names.get(str(name), name))


class TextColumn:
    """A column of a table that arrives in blocks: numbers, or the numbers of its distinct texts."""

    def __init__(self, fraction: bool, room: int = 0) -> None:
        self.fraction, self.count = fraction, 0
        self.cells = np.empty(room, float if fraction else np.int8)  # `count` of them, then room for more
        self.places: dict[bytes, int] = {}  # in first-seen order
        self.letters = b""  # those that are texts
        self.round = np.empty((0, 0), np.uint64), np.empty(0, np.int8)  # texts that came in this order, their numbers

    def add(self, cells: np.ndarray) -> None:
        """Take in numbers."""
        start, self.count = self.count, self.count + len(cells)
        kind = np.promote_types(self.cells.dtype, cells.dtype)
        if self.count > len(self.cells) or kind != self.cells.dtype:
            room = np.empty(max(len(self.cells), self.count + self.count // 4), kind)
            room[:start] = self.cells[:start]
            self.cells = room
        self.cells[start : self.count] = cells

    def numbers_of(self, texts: Iterable[bytes]) -> np.ndarray:
        """Return the numbers of distinct texts, in as few bytes as all of them need."""
        numbers = [self.places.setdefault(text, len(self.places)) for text in texts]
        return np.array(numbers, np.min_scalar_type(-1 - len(self.places)))

    def cut(self, raw: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> None:
        """Take in cells that start somewhere; of a run only the first is looked at."""
        if lengths.min() == lengths.max() == 1:
            self.add(self._of_letters(raw.take(starts, mode="clip").tobytes()))
            return
        words = _words(raw, starts, lengths)
        fresh = np.flatnonzero((words[:, 1:] != words[:, :-1]).any(axis=0)) + 1
        if 4 * len(fresh) < len(starts):
            runs = np.append(0, fresh)
            self.add(np.repeat(self._of_words(words[:, runs]), np.diff(np.append(runs, len(starts)))))
        else:
            self.add(self._of_words(words))

    def _of_words(self, words: np.ndarray) -> np.ndarray:
        """Return the numbers of texts; those that come again and again in the same order are looked up once."""
        n = words.shape[1]
        if n < FEW:
            return self.numbers_of(_texts(words))
        known, numbers = self.round
        if len(known) == len(words) and len(now := np.flatnonzero((known == words[:, :1]).all(axis=0))):
            turned = np.roll(known, -now[0], axis=1)
            if all((np.resize(texts, n) == word).all() for texts, word in zip(turned, words, strict=True)):
                return np.resize(np.roll(numbers, -now[0]), n)
        again = np.flatnonzero((words == words[:, :1]).all(axis=0))
        period = int(again[1]) if len(again) > 1 else n
        if (words[:, period:] != words[:, :-period]).any():
            period = n
        codes, first = _numbered(words[:, :period])
        numbers = self.numbers_of(_texts(words[:, first]))[codes]
        self.round = words[:, :period], numbers
        return np.resize(numbers, n)

    def _of_letters(self, cells: bytes) -> np.ndarray:
        """Return the numbers of texts of one letter each."""
        while rest := cells.translate(None, self.letters):
            self.letters += bytes(dict.fromkeys(rest[:256]))
        numbers = self.numbers_of(bytes([letter]) for letter in self.letters)
        if numbers.itemsize == 1:
            return np.frombuffer(cells.translate(bytes.maketrans(self.letters, numbers.tobytes())), np.int8)
        places = bytes.maketrans(self.letters, bytes(range(len(numbers))))
        return np.asarray(numbers[np.frombuffer(cells.translate(places), np.uint8)])

    def whole(self) -> Any:
        """Return all cells."""
        cells = self.cells[: self.count]
        if self.fraction:
            return cells
        names = [text.decode() for text in self.places]
        if gone := [place for place, name in enumerate(names) if name in NA]:
            kept = np.delete(np.arange(len(names)), gone)
            numbers = np.full(len(names), -1, cells.dtype)
            numbers[kept] = np.arange(len(kept))
            cells, names = numbers[cells], [names[place] for place in kept]
        return pd.Categorical.from_codes(cells, categories=pd.Index(names, dtype=object))


def _words(raw: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return cells as words of eight letters, zeros after the last one; word by word."""
    shortest, longest = int(lengths.min()), max(int(lengths.max()), 1)
    width = -(-longest // 8)
    any_place = np.ndarray(len(raw) - 8 * width + 1, f"V{8 * width}", raw.data, 0, (1,))
    words = np.ascontiguousarray(any_place[starts].view("<u8").reshape(-1, width).T)
    for place in range(shortest // 8, width):
        words[place] &= MASKS.take((lengths if shortest < longest else longest) - 8 * place, mode="clip")
    return words


def _texts(words: np.ndarray) -> list[bytes]:
    """Return what words were made of."""
    return np.ascontiguousarray(words.T).view(f"S{8 * len(words)}").ravel().tolist()


def fractions_of(raw: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return cells as numbers: to pyarrow they are texts with the rest of the line, which is missing, between them."""
    from pyarrow import Array, float64, py_buffer, string

    n = len(starts)
    between = np.empty((n, 2), np.int32)
    between[:, 0], between[:, 1] = starts, ends
    buffers = [py_buffer(b"\x55" * (n // 4 + 1)), py_buffer(between), py_buffer(raw)]
    numbers = Array.from_buffers(string(), 2 * n - 1, buffers, n - 1).cast(float64())
    return np.frombuffer(numbers.buffers()[1], float, 2 * n - 1)[::2]


def _numbered(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each text among the distinct ones in first-seen order, and where each is first."""
    codes = pd.factorize(words[0])[0]
    for word in words[1:]:
        more, others = pd.factorize(word)
        codes = pd.factorize(codes * len(others) + more)[0]
    return codes, np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))
