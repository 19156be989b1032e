"""DeLong's variance of AUCs from placements: who lies above whom."""

from __future__ import annotations

import numpy as np


def placements(scores: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each positive's share of negatives below it, and each negative's share of positives above it.

    From mid-ranks within the class and overall (last axis: samples), so in O(n log n).
    """
    from scipy.stats import rankdata

    above, below = scores[..., positive], scores[..., ~positive]
    m, n = above.shape[-1], below.shape[-1]
    everybody = rankdata(np.concatenate([above, below], axis=-1), axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        over = (everybody[..., :m] - rankdata(above, axis=-1)) / n
        under = 1 - (everybody[..., m:] - rankdata(below, axis=-1)) / m
    return over, under


def delong(over: np.ndarray, under: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return AUCs and their covariance matrix from placements (configuration, sample of the class)."""
    m, n, k = over.shape[-1], under.shape[-1], len(over)
    area = over.mean(axis=-1) if m and n else np.full(k, np.nan)
    if m < 2 or n < 2:
        return area, np.full((k, k), np.nan)
    return area, np.atleast_2d(np.cov(over)) / m + np.atleast_2d(np.cov(under)) / n
