"""Distinct values and how they are numbered, compared and converted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ._layout import natural, texts


@dataclass
class Axis:
    """Distinct values in first-seen order, numbered; compared by how they are written."""

    name: str
    places: dict[str, int] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)

    def codes(self, column: pd.Series, text: bool) -> np.ndarray:
        """Return the number of each row's value, -1 where missing."""
        if isinstance(column.dtype, pd.CategoricalDtype):
            codes, used = pd.factorize(column.cat.codes.to_numpy())  # a missing value is used as -1
            values, present = np.asarray(column.cat.categories)[used[used >= 0]], used >= 0
        else:
            codes, found = pd.factorize(column)
            values, present = np.asarray(found), np.ones(len(found), bool)
        kind = "O" if values.dtype.kind in "OUT" else values.dtype.kind
        self.kinds.add("t" if text and kind != "f" else kind)
        numbers = np.full(len(present) + 1, -1)
        numbers[:-1][present] = [self.places.setdefault(name, len(self.places)) for name in texts(values)]
        return np.asarray(numbers[codes])

    def values(self, *, ids: bool) -> np.ndarray:
        """Return the distinct values in their natural type; text that came typed as text stays text."""
        raw = np.array(list(self.places), dtype=object)
        if self.kinds & {"O"}:
            return raw.astype(str)
        out = natural(raw, ids=ids)
        if self.kinds == {"f"} and not ids and out.dtype.kind == "i":
            out = out.astype(float)
        if self.kinds == {"b"} and ids:
            out = raw.astype(str)
        return out

    def taken(self, codes: np.ndarray, *, ids: bool = False, number: Any = np.nan, text: Any = "") -> np.ndarray:
        """Return the value of each code, and where there is none what stands for a missing `number` or `text`."""
        values = self.values(ids=ids)
        if (codes >= 0).all():
            return np.asarray(values[codes])
        numeric = values.dtype.kind in ("iuf" if text == "" else "iufb")
        kind: Any = (float if number is np.nan else values.dtype) if numeric else object
        out = np.append(values.astype(kind), number if numeric else text)[np.maximum(codes, -1)]
        return np.asarray(out.astype(str) if not numeric and text == "" else out)


def constant(store: np.ndarray, index: np.ndarray, codes: np.ndarray) -> bool:
    """Note the first code of each place (-2 = none yet) and return whether all later ones agree."""
    new = store[index] == -2
    store[index[new][::-1]] = codes[new][::-1]
    return bool((store[index] == codes).all())


def numeric(column: pd.Series) -> bool:
    """Return whether every value can be read as a number."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return all(is_number(str(value)) for value in column.cat.categories)
    return column.dtype.kind in "iuf" or bool(column.dtype == object and column.isna().all())


def is_number(text: str) -> bool:
    """Return whether text can be read as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def numbers_of(column: pd.Series) -> np.ndarray:
    """Return a column as floats, NaN where missing."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        values = np.array([float(value) for value in column.cat.categories] + [np.nan])
        return np.asarray(values[column.cat.codes.to_numpy()])
    return column.to_numpy(dtype=float, na_value=np.nan)


def same(name: Any, names: dict[str, Any]) -> Any:
    """Return the label that is written like `name`, else `name` itself."""
    return name if name is None else names.get(texts([name])[0], names.get(str(name), name))
