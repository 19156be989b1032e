"""Wilcoxon's signed-rank test, exact with ties."""

from __future__ import annotations

import numpy as np
import xarray as xr

from cvstats._check import check_count, check_option
from cvstats._results import call_text

from .location import ALTERNATIVES, differences
from .named import Dims, as_dims, as_numbers, labelled

EXACT_UP_TO = 50


def wilcoxon_test(
    x: xr.DataArray,
    dim: Dims,
    *,
    other: xr.DataArray | None = None,
    alternative: str = "two-sided",
    digits: int | None = None,
) -> xr.Dataset:
    """Test whether `x`, or the paired difference ``x - other``, is symmetric about zero.

    The statistic is R's V, the sum of the ranks of ``|difference|`` over the positive differences. Zeros are dropped
    first; ties share their mean rank.

    Up to 50 non-zero differences the p-value is exact: it comes from the permutation distribution of V given the
    (mid-)ranks at hand, all ``2**n`` sign patterns equally likely, so ties are covered. Above that, V is taken as
    normal with mean ``sum(rank) / 2``, variance ``sum(rank**2) / 4`` (which corrects for ties) and a continuity
    correction of one half, as R's ``wilcox.test(exact=FALSE)``. Two-sided p-values are twice the smaller tail.

    Parameters
    ----------
    x : DataArray
        Numbers; NaN is left out with its partner.
    dim : str or sequence of str
        Where the pairs lie (for a comparison over data sets, the data sets). All other dimensions are mapped over.
    other : DataArray, optional
        The second sample, matched by label.
    alternative : {"two-sided", "less", "greater"}
        "greater": `x` tends to exceed `other`.
    digits : int, optional
        Significant digits to which differences are rounded before ranking. Decimal data need it: 0.3 - 0.2 and
        0.2 - 0.1 differ in their last bit, and the tie is lost. The default compares exactly, as R does.

    Returns
    -------
    Dataset
        ``statistic`` (V), ``p_value``, ``effect_size`` (rank-biserial correlation, -1 to 1), ``n`` (non-zero
        differences), ``n_zero`` and ``exact``.

    Notes
    -----
    Without any non-zero difference the result is NaN with one warning. With fewer than six of them no two-sided p-value
    can be below .05. Data sets count as independent and equally important.

    References
    ----------
    Wilcoxon (1945), Individual comparisons by ranking methods, Biometrics Bulletin 1, 80-83.
    https://doi.org/10.2307/3001968
    Demsar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7, 1-30.
    https://www.jmlr.org/papers/v7/demsar06a.html

    Examples
    --------
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> a = xr.DataArray([10.4, 26.5, 23.3, 34.2, 23.4, 16.7], dims="dataset")
    >>> b = xr.DataArray([10.6, 26.9, 23.2, 34.9, 24.4, 18.0], dims="dataset")
    >>> test = cs.wilcoxon_test(a, "dataset", other=b)
    >>> float(test.statistic), float(test.p_value)
    (1.0, 0.0625)
    """
    check_option(alternative, ALTERNATIVES, "alternative")
    if digits is not None:
        check_count(digits, "digits")
    x = as_numbers(x)
    dims = as_dims(x, dim)
    cells, values, _ = differences(x, dims, other)
    found = signed_rank(values.reshape(-1, values.shape[-1]), alternative, digits)
    found = {name: part.reshape(cells.shape) for name, part in found.items()}
    cells.warn(found["n"] == 0, "Wilcoxon test: no difference other than zero")
    variables = {name: cells.variable(part) for name, part in found.items()}
    call = call_text("wilcoxon_test", dim=dim, alternative=alternative, digits=digits)
    return labelled(variables, cells, test="Wilcoxon signed-rank test", call=call)


def signed_rank(values: np.ndarray, alternative: str, digits: int | None = None) -> dict[str, np.ndarray]:
    """Return V and its p-value for every row."""
    from scipy.stats import rankdata

    zero = values == 0
    kept = ~(zero | np.isnan(values))
    size = np.where(kept, np.abs(values), np.nan)
    if digits is not None:
        size = significant(size, digits)
    n = kept.sum(-1)
    # twice the mid-rank is a whole number; 0 for what is left out
    doubled = np.where(kept, 2 * rankdata(size, axis=-1, nan_policy="omit"), 0).astype(np.int64)
    twice_v = np.where(values > 0, doubled, 0).sum(-1)
    total = n * (n + 1)
    exact = (n > 0) & (n <= EXACT_UP_TO)
    lower = np.full(len(n), np.nan)
    upper = lower.copy()
    lower[exact], upper[exact] = _exact_tails(doubled[exact], twice_v[exact])
    large = n > EXACT_UP_TO
    lower[large], upper[large] = _normal_tails(doubled[large], twice_v[large], alternative)
    if alternative == "less":
        p_value = lower
    elif alternative == "greater":
        p_value = upper
    else:
        p_value = np.minimum(2 * np.minimum(lower, upper), 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        effect = (2 * twice_v - total) / total
    return {
        "statistic": np.where(n > 0, twice_v / 2, np.nan),
        "p_value": p_value,
        "effect_size": effect,
        "n": n,
        "n_zero": zero.sum(-1),
        "exact": exact,
    }


def significant(values: np.ndarray, digits: int) -> np.ndarray:
    """Round positive numbers to `digits` significant digits."""
    with np.errstate(divide="ignore", invalid="ignore"):
        power = digits - 1 - np.floor(np.log10(values))
    return np.where(np.isfinite(power), np.round(values * 10.0**power) / 10.0**power, values)


def _exact_tails(doubled: np.ndarray, twice_v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return P(V <= v) and P(V >= v) for every row.

    The number of sign patterns that reach each sum, at most 2**50, is exact in float64. Rows with the same ranks share
    one distribution, so data without ties need one per sample size.
    """
    patterns, which = np.unique(np.sort(doubled, axis=-1), axis=0, return_inverse=True)
    which = which.reshape(-1)
    lower, upper = np.empty(len(twice_v)), np.empty(len(twice_v))
    order = np.argsort(which, kind="stable")
    ends = np.searchsorted(which[order], np.arange(len(patterns) + 1))
    for row, pattern in enumerate(patterns):
        rows = order[ends[row] : ends[row + 1]]
        ranks = pattern[pattern > 0].tolist()
        total = sum(ranks)
        ways = np.zeros(total + 1)
        ways[0], reach = 1.0, 0
        for rank in ranks:
            reach += rank
            ways[rank : reach + 1] += ways[: reach - rank + 1].copy()
        below = np.cumsum(ways) / 2.0 ** len(ranks)
        lower[rows] = below[twice_v[rows]]
        upper[rows] = below[total - twice_v[rows]]  # the distribution is symmetric
    return lower, upper


def _normal_tails(doubled: np.ndarray, twice_v: np.ndarray, alternative: str) -> tuple[np.ndarray, np.ndarray]:
    from scipy.special import ndtr

    ranks = doubled / 2
    distance = twice_v / 2 - ranks.sum(-1) / 2
    spread = np.sqrt((ranks**2).sum(-1) / 4)
    half = {"two-sided": np.sign(distance) / 2, "greater": 0.5, "less": -0.5}[alternative]
    z = (distance - half) / spread
    return ndtr(z), ndtr(-z)
