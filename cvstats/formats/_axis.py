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
            codes, used = pd.factorize(column.cat.codes.to_numpy())  # a missing value is used as -1
            values, present = np.asarray(column.cat.categories)[used[used >= 0]], used >= 0
        else:
            codes, found = pd.factorize(column)
            values, present = np.asarray(found), np.ones(len(found), bool)
        kind = "O" if values.dtype.kind in "OUT" else values.dtype.kind
        self.kinds.add("t" if text and kind != "f" else kind)
        numbers = np.full(len(present) + 1, -1, np.int32)
        numbers[:-1][present] = [self.places.setdefault(name, len(self.places)) for name in texts(values)]
        return np.asarray(numbers[codes])

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


def same(name: Any, names: dict[str, Any]) -> Any:
    """Return the label that is written like `name`, else `name` itself."""
    return name if name is None else names.get(texts([name])[0], names.get(str(name), name))
