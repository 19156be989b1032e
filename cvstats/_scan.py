"""Range and gaps of an array of predictions, found in one pass over memory and remembered within one public call."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")
TILE = 65_536  # numbers looked at while they are in the cache
_seen: ContextVar[dict[Any, tuple[np.ndarray, Scan]] | None] = ContextVar("cvstats_scans", default=None)


@dataclass(frozen=True)
class Scan:
    """The smallest and largest number of an array (NaN when there is none), and whether some are missing."""

    low: float
    high: float
    gaps: bool


def scan(values: np.ndarray) -> Scan:
    """Return the scan of an array, from memory when this call has looked at it before."""
    seen = _seen.get()
    if seen is None:
        return _scan(values)
    layout = values.size if values.flags.c_contiguous else (values.shape, values.strides)
    key = (values.ctypes.data, layout, values.dtype.str)
    if key not in seen:
        seen[key] = (values, _scan(values))  # holding the array keeps its address from being used again
    return seen[key][1]


def _scan(values: np.ndarray) -> Scan:
    if not values.flags.c_contiguous:
        values = values.T if values.flags.f_contiguous else values
    tiles = [values]
    if values.flags.c_contiguous:
        flat = values.reshape(-1)
        tiles = [flat[start : start + TILE] for start in range(0, flat.size, TILE)]
    low, high, gaps = np.inf, -np.inf, False
    for tile in tiles:
        least = np.min(tile)
        if np.isnan(least):
            gaps = True
            least, most = np.fmin.reduce(tile, axis=None), np.fmax.reduce(tile, axis=None)
            if np.isnan(least):
                continue
        else:
            most = np.max(tile)
        low, high = min(low, float(least)), max(high, float(most))
    return Scan(low, high, gaps) if low <= high else Scan(np.nan, np.nan, gaps)


def one_scan(function: Callable[P, R]) -> Callable[P, R]:
    """Let a public function look at each array once, however many checks it and its helpers make."""
    seen = _seen

    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        if seen.get() is not None:
            return function(*args, **kwargs)
        token = seen.set({})
        try:
            return function(*args, **kwargs)
        finally:
            seen.reset(token)

    # With the function's own globals, doctest takes the wrapper for a function of that module and finds its examples.
    at_home = FunctionType(wrapped.__code__, function.__globals__, function.__name__, None, wrapped.__closure__)
    return wraps(function)(at_home)
