"""Kernel: do values shift between folds? Rank tests of all columns at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CELLS = 2_000_000  # numbers ranked at a time


@dataclass(frozen=True)
class Shift:
    """Kruskal-Wallis statistics summed over strata, one per column."""

    statistic: np.ndarray
    df: np.ndarray
    p_value: np.ndarray
    effect: np.ndarray


def fold_shift(values: np.ndarray, fold: np.ndarray, stratum: np.ndarray) -> Shift:
    """Return the test for each column of `values` (n, m); NaN values are left out.

    Within each stratum the values are ranked and compared between folds (Kruskal-Wallis, corrected for ties); the
    statistics of the strata add up, and so do their degrees of freedom. A stratum that has a single fold, or at most
    one value in every fold, or only tied values, says nothing and is left out; without any other the result is NaN.
    """
    m = values.shape[1]
    step = max(1, CELLS // max(1, len(values)))
    parts = [_shift(values[:, start : start + step], fold, stratum) for start in range(0, m, step)]
    return Shift(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _shift(values: np.ndarray, fold: np.ndarray, stratum: np.ndarray) -> tuple[np.ndarray, ...]:
    from scipy.special import chdtrc
    from scipy.stats import rankdata

    m = values.shape[1]
    statistic, df, between, total, spare = (np.zeros(m) for _ in range(5))
    for code in np.unique(stratum):
        rows = stratum == code
        part = values[rows].astype(float)
        present = ~np.isnan(part)
        ranks = rankdata(part, axis=0, nan_policy="omit")
        member = (fold[rows] == np.unique(fold[rows])[:, None]).astype(float)
        size = member @ present
        count = size.sum(axis=0)
        centred = np.where(present, ranks - (count + 1) / 2, 0.0)
        sums = member @ centred
        ssb = np.divide(sums**2, size, out=np.zeros_like(sums), where=size > 0).sum(axis=0)
        sst = np.einsum("nm,nm->m", centred, centred)
        groups = (size > 0).sum(axis=0)
        use = (groups > 1) & (count > groups) & (sst > 0)
        statistic += np.where(use, (count - 1) * ssb / np.where(use, sst, 1.0), 0.0)
        df += np.where(use, groups - 1, 0)
        between, total = between + np.where(use, ssb, 0.0), total + np.where(use, sst, 0.0)
        spare += np.where(use, count - 1, 0)
    known = df > 0
    p_value = np.where(known, chdtrc(np.maximum(df, 1), statistic), np.nan)
    left = np.maximum(spare - df, 1)
    share = 1 - (1 - between / np.where(known, total, 1.0)) * spare / left  # as an adjusted R2: 0 is what chance gives
    return (
        np.where(known, statistic, np.nan),
        np.where(known, df, np.nan),
        p_value,
        np.where(known, np.clip(share, 0.0, 1.0), np.nan),
    )
