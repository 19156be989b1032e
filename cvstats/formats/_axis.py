"""The distinct values of a column, numbered: how labels of rows become places in a cube."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from ._columns import natural, texts

NA = ["", "NA", "NaN", "nan", "<NA>"]  # words for a missing cell
PAD = bytes(8)  # so that a word can be read from the last letter on
MASKS = np.array([(1 << 8 * letters) - 1 for letters in range(9)], np.uint64)


@dataclass
class Axis:
    """Distinct values in first-seen order, numbered; compared by how they are written."""

    places: dict[str, int] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)

    def codes(self, column: pd.Series, text: bool) -> np.ndarray:
        """Return the number of each row's value, -1 where missing."""
        if isinstance(column.dtype, pd.CategoricalDtype):
            codes, values = column.cat.codes.to_numpy(), np.asarray(column.cat.categories)
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
        return np.array([*numbers, -1], small)[codes]

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

    def __init__(self, fraction: bool) -> None:
        self.fraction, self.numbers = fraction, bytearray()
        self.places: dict[str, int] = {}  # in first-seen order
        self.codes: list[np.ndarray] = []
        self.known: dict[Any, int] = {}  # numbers by the words of a text

    def add_numbers(self, numbers: np.ndarray) -> None:
        """Take in fractions."""
        self.numbers += np.ascontiguousarray(numbers).data

    def numbers_of(self, texts: Iterable[str]) -> np.ndarray:
        """Return the numbers of distinct texts."""
        return self.small([self.places.setdefault(text, len(self.places)) for text in texts])

    def small(self, numbers: list[int]) -> np.ndarray:
        """Return numbers in as few bytes as all of them need."""
        return np.array(numbers, np.min_scalar_type(-1 - len(self.places)))

    def cut(self, raw: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> None:
        """Take in cells that start and end somewhere.

        They are compared as words of eight letters. Few are looked up: of a run only the first cell, and what comes
        again and again in the same order only once.
        """
        n, lengths = len(starts), ends - starts
        shortest, longest = int(lengths.min()), int(lengths.max())
        if shortest == longest == 1:
            self._letters(raw[starts].tobytes())
            return
        any_place, words = np.ndarray(len(raw) - 7, "<u8", raw.data, 0, (1,)), []
        for begin in range(0, max(longest, 1), 8):
            left: Any = min(longest - begin, 8) if shortest == longest else (lengths - begin).clip(0, 8)
            words.append(any_place[np.minimum(starts + begin, len(raw) - 8)] & MASKS[left])
        fresh = np.flatnonzero(reduce(np.logical_or, [word[1:] != word[:-1] for word in words])) + 1
        runs = np.append(0, fresh) if 4 * len(fresh) < n else None
        words = words if runs is None else [word[runs] for word in words]
        again = np.flatnonzero(reduce(np.logical_and, [word == word[0] for word in words]))
        period, count = int(again[1]) if len(again) > 1 else 0, len(words[0])
        if not period or not all((word[period:] == word[:-period]).all() for word in words):
            period = count
        codes, first = _numbered([word[:period] for word in words])
        rows = first if runs is None else runs[first]
        keys: list[Any] = [word[first].tolist() for word in words]
        keys = keys[0] if len(keys) == 1 else list(zip(*keys, strict=True))
        for row, key in zip(rows, keys, strict=True) if not self.known.keys() >= {*keys} else ():
            if key not in self.known:
                text = raw[starts[row] : ends[row]].tobytes().decode()
                self.known[key] = self.places.setdefault(text, len(self.places))
        codes = self.small([self.known[key] for key in keys])[codes]
        codes = codes if period == count else np.resize(codes, count)
        self.codes.append(codes if runs is None else np.repeat(codes, np.diff(np.append(runs, n))))

    def _letters(self, cells: bytes) -> None:
        """Take in cells of one letter each."""
        found, rest = b"", cells
        while rest:
            found += bytes(dict.fromkeys(rest[:256]))
            rest = rest.translate(None, found)
        numbers = self.numbers_of(found.decode())
        small = numbers.itemsize == 1
        table = bytearray(256)
        for letter, number in zip(found, (numbers if small else np.arange(len(found))).tolist(), strict=True):
            table[letter] = number
        codes = np.frombuffer(cells.translate(table), np.int8)
        self.codes.append(codes if small else numbers[codes])

    def whole(self) -> Any:
        """Return all cells, and keep none."""
        if self.fraction:
            return np.frombuffer(self.numbers)
        codes, names = np.concatenate(self.codes), [*self.places]
        self.codes = []
        if gone := [self.places[word] for word in NA if word in self.places]:
            kept = np.delete(np.arange(len(names)), gone)
            numbers = np.full(len(names), -1, codes.dtype)
            numbers[kept] = np.arange(len(kept))
            codes, names = numbers[codes], [names[place] for place in kept]
        return pd.Categorical.from_codes(codes, categories=pd.Index(names, dtype=object))


def fractions_of(raw: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return cells as numbers: to pyarrow they are texts with the rest of the line, which is missing, between them."""
    from pyarrow import Array, float64, py_buffer, string

    n = len(starts)
    between = np.empty((n, 2), np.int32)
    between[:, 0], between[:, 1] = starts, ends
    buffers = [py_buffer(b"\x55" * (n // 4 + 1)), py_buffer(between), py_buffer(raw)]
    numbers = Array.from_buffers(string(), 2 * n - 1, buffers, n - 1).cast(float64())
    return np.frombuffer(numbers.buffers()[1], float, 2 * n - 1)[::2]


def _numbered(words: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each row of words among the distinct ones in first-seen order, and where each is first."""
    codes = pd.factorize(words[0])[0]
    for word in words[1:]:
        more, others = pd.factorize(word)
        codes = pd.factorize(codes * len(others) + more)[0]
    return codes, np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))
