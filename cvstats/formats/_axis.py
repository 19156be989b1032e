"""The distinct values of a column, numbered: how labels of rows become places in a cube."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ._columns import natural, texts


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
