"""What one pass over an array of predictions tells: their range, and whether some are missing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

TILE = 65_536  # numbers looked at while they are in the cache


@dataclass(frozen=True)
class Scan:
    """The smallest and largest number of an array (NaN when there is none), and whether some are missing."""

    low: float
    high: float
    gaps: bool


def scan(values: np.ndarray) -> Scan:
    """Return what a pass over an array tells."""
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
