"""Holm's adjustment of p-values for multiplicity."""

from __future__ import annotations

import numpy as np


def holm(p: np.ndarray) -> np.ndarray:
    """Return p-values adjusted along the last axis; NaN stays in place and is not counted.

    Not statsmodels' own, which makes Python collect its garbage in every call: that takes longer than any test here.
    """
    order = np.argsort(p, axis=-1)  # NaN last
    left = (~np.isnan(p)).sum(axis=-1, keepdims=True) - np.arange(p.shape[-1])
    steps = np.maximum.accumulate(np.take_along_axis(p, order, axis=-1) * left, axis=-1)
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, np.minimum(steps, 1.0), axis=-1)
    return adjusted
