"""Tests of spread: Levene and Brown-Forsythe, O'Brien, and Pitman-Morgan for paired samples."""

from __future__ import annotations

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_level, check_option, is_number
from cvstats._results import call_text

from .batch import Dims, as_numbers, batch
from .location import Moments, moments

CENTERS = ("median", "mean", "trimmed")
_FEW = "{}: fewer than {} values in a group, or no variation within the groups"
_TINY = 16 * np.finfo(np.float64).eps


def levene_test(x: xr.DataArray, dim: Dims, *, by: str, center: str = "median", trim: float = 0.1) -> xr.Dataset:
    """Test whether groups have equal spread, by an analysis of variance of distances from the group's centre.

    The null hypothesis is equal variances of the groups along `by`. With ``z = |x - centre of its group|`` the
    statistic is the one-way F of ``z``. ``center="median"`` is Brown and Forsythe's robust version, ``"mean"``
    Levene's own, ``"trimmed"`` uses the mean without a share `trim` at either end.

    Parameters
    ----------
    x : DataArray
        Numbers; NaN pads groups of unequal size.
    dim : str or sequence of str
        Where the observations of a group lie.
    by : str
        The dimension of the groups. All others are mapped over.
    center : {"median", "mean", "trimmed"}
        What distances are taken from.
    trim : float
        Share cut from each end for ``center="trimmed"``.

    Returns
    -------
    Dataset
        ``statistic, df, df_residual, p_value, effect_size`` (eta squared of ``z``) and ``std_dev(by)``.

    Notes
    -----
    Groups are taken as independent; for paired groups see `pitman_morgan_test`. Two values per group are equally far
    from their centre, so nothing is left to estimate the error from: NaN and one warning, as for constant groups.

    References
    ----------
    Brown, Forsythe (1974), Robust tests for the equality of variances, JASA 69, 364-367.
    https://doi.org/10.1080/01621459.1974.10482955

    Examples
    --------
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> x = xr.DataArray([[1.0, 2, 3, 4], [0, 4, 8, 12]], dims=("method", "trial"))
    >>> test = cs.levene_test(x, "trial", by="method")
    >>> round(float(test.statistic), 4), float(test.df), float(test.df_residual)
    (6.3529, 1.0, 6.0)
    """
    check_option(center, CENTERS, "center")
    if not is_number(trim) or not 0 <= trim < 0.5:
        raise InputError(f"`trim` must be at least 0 and below 0.5; got {trim!r}.")
    data = batch(x, dim, by=by)
    m = moments(data.values)
    z = moments(_distances(m, center, trim))
    names = {"median": "Brown-Forsythe test", "mean": "Levene test", "trimmed": "Levene test (trimmed mean)"}
    found, lost = f_test(z.n, z.mean, z.ss, rounding(m.deviation, (-2, -1)))
    data.warn(lost, _FEW.format(names[center], 2))
    call = call_text("levene_test", dim=dim, by=by, center=center, trim=trim if center == "trimmed" else None)
    return data.dataset(names[center], {**found, "std_dev": m.std_dev}, call=call)


def obrien_test(x: xr.DataArray, dim: Dims, *, by: str, against: object = None) -> xr.Dataset:
    """Test whether groups have equal variances with O'Brien's transform.

    Each value becomes ``r = ((n - 1.5) n (x - mean)**2 - 0.5 (n - 1) s**2) / ((n - 1) (n - 2))``, whose mean over the
    group is the variance ``s**2``; the statistic is the one-way F of ``r``. Without `against` all levels of `by` are
    compared at once; with it, each level is compared with that one, as in tables that mark every method whose spread
    differs from a reference method.

    Parameters
    ----------
    x : DataArray
        Numbers; NaN pads groups of unequal size.
    dim : str or sequence of str
        Where the observations of a group lie.
    by : str
        The dimension of the groups. All others are mapped over.
    against : label, optional
        The reference level of `by`.

    Returns
    -------
    Dataset
        ``statistic, df, df_residual, p_value, effect_size`` (eta squared of ``r``) and ``std_dev(by)``; with
        `against` the test runs over `by` too, NaN at the reference itself, with ``variance_ratio`` to it.

    Notes
    -----
    Groups are taken as independent; where they are paired (methods judged on the same trials) the test loses power,
    and `pitman_morgan_test` is the one to put beside it. The transform needs three values per group: with fewer, and
    when no group varies, the result is NaN with one warning. p-values are not adjusted for the number of levels:
    see `p_adjust`.

    References
    ----------
    O'Brien (1979), A general ANOVA method for robust tests of additive models for variances, JASA 74, 877-880.
    https://doi.org/10.1080/01621459.1979.10481047

    Examples
    --------
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> x = xr.DataArray([[1.0, 2, 3, 4], [0, 4, 8, 12]], dims=("method", "trial"), coords={"method": ["TT", "NCV"]})
    >>> test = cs.obrien_test(x, "trial", by="method", against="NCV")
    >>> round(float(test.p_value.sel({"method": "TT"})), 4), float(test.variance_ratio.sel({"method": "TT"}))
    (0.1562, 0.0625)
    """
    data = batch(x, dim, by=by)
    reference = None if against is None else data.level(against)
    m = moments(data.values)
    found, lost = f_test(*obrien_groups(m), reference)
    data.warn(lost, _FEW.format("O'Brien test", 3))
    if reference is not None:
        with np.errstate(invalid="ignore", divide="ignore"):
            found["variance_ratio"] = (m.std_dev / m.std_dev[..., [reference]]) ** 2
    call = call_text("obrien_test", dim=dim, by=by, against=against)
    return data.dataset("O'Brien test", {**found, "std_dev": m.std_dev}, call=call)


def pitman_morgan_test(x: xr.DataArray, dim: Dims, *, other: xr.DataArray, level: float = 0.95) -> xr.Dataset:
    """Test whether two paired samples have equal variances.

    The estimand is the ratio of the variances of `x` and `other`. The variances are equal exactly when sum and
    difference of the pairs are uncorrelated, so the statistic is Student's t of that correlation, on ``n - 2``
    degrees of freedom.

    Parameters
    ----------
    x : DataArray
        Numbers; NaN is left out with its partner.
    dim : str or sequence of str
        Where the pairs lie. All other dimensions are mapped over.
    other : DataArray
        The second sample, matched with `x` by label.
    level : float
        Confidence level of the interval for the ratio.

    Returns
    -------
    Dataset
        ``estimate`` (variance ratio), ``conf_low, conf_high, statistic, df, p_value, effect_size`` (the correlation
        of sum and difference) and ``n``. A positive statistic means that `x` varies more.

    Notes
    -----
    Exact for normal pairs, sensitive to heavy tails. Samples that move in lockstep, constant samples and fewer than
    three pairs give NaN and one warning.

    References
    ----------
    Morgan (1939), A test for the significance of the difference between the two variances in a sample from a normal
    bivariate population, Biometrika 31, 13-19. https://doi.org/10.1093/biomet/31.1-2.13

    Examples
    --------
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> a = xr.DataArray([1.0, 2, 3, 4, 6], dims="trial")
    >>> b = xr.DataArray([0.0, 5, 7, 12, 15], dims="trial")
    >>> test = cs.pitman_morgan_test(a, "trial", other=b)
    >>> round(float(test.estimate), 4), round(float(test.p_value), 4)
    (0.1066, 0.0017)
    """
    from scipy.special import stdtrit

    level = check_level(level)
    data = batch(x, dim, other=as_numbers(other, "other"), minimum=3)
    found, left_over = pitman_morgan(data.values, data.other)
    bad, ratio, df = np.isnan(found["statistic"]), found["estimate"], found["df"]
    data.warn(bad, "Pitman-Morgan test: fewer than three pairs, or no variation to compare")
    with np.errstate(invalid="ignore", divide="ignore"):
        k = 1 + 2 * left_over * stdtrit(df, (1 + level) / 2) ** 2 / df
        wide = k + np.sqrt(k**2 - 1)
    limits = {"conf_low": ratio / wide, "conf_high": ratio * wide}
    call = call_text("pitman_morgan_test", dim=dim, level=level)
    return data.dataset("Pitman-Morgan test", {**found, **limits}, call=call, level=level, interval="t")


@np.errstate(invalid="ignore", divide="ignore", over="ignore")
def obrien_groups(m: Moments) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return size, mean and sum of squares of O'Brien's transform per group, and the rounding noise, scale-free.

    Only the squares vary within a group, so the transform itself is never formed:
    ``r - mean(r) = n (n - 1.5) / ((n - 1) (n - 2)) * (d**2 - mean(d**2))``.
    """
    squares = _unit(m.deviation, (-2, -1)) ** 2
    noise = rounding(squares, (-2, -1))
    n = m.n.astype(float)
    mean_square = squares.sum(-1) / n
    centred = np.subtract(squares, mean_square[..., None], out=squares)
    if (m.n < squares.shape[-1]).any():
        centred[~m.present] = 0.0
    factor = np.where(n > 2, n * (n - 1.5) / ((n - 1) * (n - 2)), np.nan)
    ss = factor**2 * _product(centred, centred)
    variance = n * mean_square / (n - 1)
    return n, variance, ss, noise


@np.errstate(invalid="ignore", divide="ignore", over="ignore")
def pitman_morgan(a: np.ndarray, b: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the t-test of the correlation of sum and difference, with the ratio of variances; and ``1 - r**2``.

    Its own computation, because scipy's correlation takes rounding noise for a perfect one.
    """
    from scipy.special import stdtr

    gap = np.isnan(a) | np.isnan(b)
    da, db = _unit(np.stack([moments(np.where(gap, np.nan, part)).deviation for part in (a, b)]), (0, -1))
    plus, minus, n = da + db, da - db, (~gap).sum(-1)
    noise = np.maximum(n, 1) * rounding(np.abs(plus) + np.abs(minus), (-1,)) ** 2
    ss, slope = _product(minus, minus), _product(plus, minus) / _product(minus, minus)
    left = plus - slope[..., None] * minus
    residual = _product(left, left)
    bad = (n < 3) | ~(ss > noise) | ~(residual > noise)
    df = np.where(bad, np.nan, n - 2.0)
    statistic = np.asarray(slope * np.sqrt(ss * df / residual))
    sa, sb, sab = _product(da, da), _product(db, db), _product(da, db)
    found = {
        "estimate": np.where(bad, np.nan, sa / sb),
        "statistic": statistic,
        "df": df,
        "p_value": 2 * stdtr(df, -np.abs(statistic)),
        "effect_size": statistic / np.sqrt(statistic**2 + df),
        "n": df + 2,
    }
    return found, np.asarray(1 - sab**2 / (sa * sb))


def _product(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("...i,...i->...", u, v))


@np.errstate(invalid="ignore", divide="ignore", over="ignore")
def _distances(m: Moments, center: str, trim: float) -> np.ndarray:
    """Return ``|x - centre|`` with NaN where a value is missing."""
    deviation = np.where(m.present, m.deviation, np.nan)
    # what is left of the sorted values is averaged: the middle one or two of them give the median
    cuts = {"median": np.maximum(m.n - 1, 0) // 2, "mean": np.zeros_like(m.n), "trimmed": np.floor(m.n * trim)}
    cut, n, place = cuts[center][..., None], m.n[..., None], np.arange(deviation.shape[-1])
    kept = (place >= cut) & (place < n - cut)
    middle = np.where(kept, np.sort(deviation, axis=-1), 0.0).sum(-1, keepdims=True) / kept.sum(-1, keepdims=True)
    return np.asarray(np.abs(deviation - middle))


@np.errstate(invalid="ignore", divide="ignore", over="ignore")
def f_test(
    n: np.ndarray, mean: np.ndarray, ss: np.ndarray, noise: np.ndarray, reference: int | None = None
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the one-way F of groups (last axis), or of each group against the reference, which itself gets NaN.

    From sums, because scipy has no F for cells whose groups differ in size. Empty groups are left out. `noise` is the
    size of rounding errors in a single value; a residual sum of squares below it counts as zero.
    """
    from scipy.special import fdtrc

    if reference is not None:
        n, mean, ss = (np.stack(np.broadcast_arrays(part, part[..., [reference]]), -1) for part in (n, mean, ss))
        noise = noise[..., None]
    filled = n > 0
    mean, ss = np.where(filled, mean, 0.0), np.where(filled, ss, 0.0)
    total, within = n.sum(-1), ss.sum(-1)
    df, df_residual = filled.sum(-1) - 1.0, total - filled.sum(-1)
    grand = (n * mean).sum(-1, keepdims=True) / total[..., None]
    between = (n * (mean - grand) ** 2).sum(-1)
    lost = ~((df > 0) & (df_residual > 0) & (within > total * noise**2))
    none = lost.copy()
    if reference is not None:
        lost[..., reference], none[..., reference] = False, True
    df, df_residual, between = (np.where(none, np.nan, part) for part in (df, df_residual, between))
    statistic = (between / df) / (within / df_residual)
    found = {
        "statistic": statistic,
        "df": df,
        "df_residual": df_residual,
        "p_value": fdtrc(df, df_residual, statistic),
        "effect_size": between / (between + within),
    }
    return found, lost


def rounding(deviation: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return how large rounding errors of a single value are, given what was subtracted to get it."""
    return np.asarray(_TINY * np.abs(deviation).max(axes, initial=0.0))


def _unit(deviation: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return deviations over the power of two above the largest, so that fourth powers neither overflow nor vanish."""
    largest = np.abs(deviation).max(axes, initial=0.0, keepdims=True)
    return np.asarray(np.ldexp(deviation, -np.frexp(largest)[1]))
