"""Data frames for R: what Debian's reticulate cannot read of today's pandas and numpy, handed over as lists."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

LARGEST = 2**31  # of R's whole numbers


def _columns(frame: pd.DataFrame) -> Iterator[tuple[str, Any]]:
    """Yield names and columns as reticulate asks for them; text with gaps becomes a factor, whose gaps are NA."""
    for name in frame.columns:
        column, kind = frame[name], frame[name].dtype.kind
        if kind in "iu" and (np.abs(column) >= LARGEST).any():
            column = column.astype(float)
        if kind in "biuf":
            values = column.tolist()
        elif not column.isna().any():
            values = [str(value) for value in column]
        else:
            codes, levels = pd.factorize(column)
            names = SimpleNamespace(values=[str(level) for level in levels])
            factor = SimpleNamespace(name="category", ordered=False, categories=names)
            yield (
                str(name),
                SimpleNamespace(dtype=factor, cat=SimpleNamespace(codes=SimpleNamespace(values=codes.tolist()))),
            )
            continue
        yield str(name), SimpleNamespace(dtype=SimpleNamespace(name="object"), values=values)


def for_caller(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame, inside an R session as a class that every reticulate makes a data frame of.

    reticulate knows frames by the name of their class, which pandas 3 changed, and before 1.38 it cannot convert the
    arrays of numpy 2.
    """
    if "rpytools" not in sys.modules:  # what reticulate loads first
        return frame
    kind = type("DataFrame", (pd.DataFrame,), {"__module__": "pandas.core.frame", "items": _columns})
    sent: pd.DataFrame = kind(frame)
    sent.columns.format = lambda: [str(name) for name in frame.columns]  # type: ignore[attr-defined]
    sent.attrs = frame.attrs
    return sent
