"""Tests of means: Student's, paired and Welch's t-test, and Nadeau and Bengio's for overlapping training sets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_level, check_option
from cvstats._results import call_text

from .moments import moments
from .named import Cells, Dims, as_dims, as_numbers, check_length, labelled, match

ALTERNATIVES = ("two-sided", "less", "greater")
_CONSTANT = 10 * np.finfo(np.float64).eps  # a standard error below this share of the mean is rounding noise


def t_test(
    x: xr.DataArray,
    dim: Dims,
    *,
    other: xr.DataArray | None = None,
    paired: bool = True,
    mu: float = 0.0,
    alternative: str = "two-sided",
    level: float = 0.95,
) -> xr.Dataset:
    """Test the mean of `x`, or of the difference ``x - other``, against `mu`.

    The estimand is the mean of `x` along `dim` (one sample), the mean of the paired differences, or the difference of
    two means (``paired=False``: Welch's test, unequal variances). The statistic is ``(estimate - mu) / std_error``
    on Student's t; the standard error is ``s / sqrt(n)``, and ``sqrt(s1**2 / n1 + s2**2 / n2)`` for Welch.
    Every other dimension is mapped over.

    Parameters
    ----------
    x : DataArray
        Numbers; NaN is left out (with its partner, when paired).
    dim : str or sequence of str
        The dimension(s) along which the observations lie; several are taken as one long sample.
    other : DataArray, optional
        The second sample. Paired samples are matched by label, exactly.
    paired : bool
        Whether `other` is paired with `x`.
    mu : float
        The mean (difference) under the null hypothesis.
    alternative : {"two-sided", "less", "greater"}
        "greater": the mean (difference) exceeds `mu`.
    level : float
        Confidence level.

    Returns
    -------
    Dataset
        ``estimate, std_error, conf_low, conf_high, bound_low, bound_high, statistic, df, p_value, effect_size, n``.
        ``effect_size`` is Cohen's d: ``(estimate - mu)`` over the standard deviation (of the differences; for Welch
        the root mean square of the two). With a one-sided alternative the far limit is infinite, as in R;
        ``bound_low`` and ``bound_high`` are one-sided limits at `level` in any case.

    Notes
    -----
    A sample without variation gives NaN and one warning. Scores of cross-validation folds are not independent:
    use `corrected_t_test` for them.

    References
    ----------
    Welch (1947), The generalization of Student's problem when several different population variances are involved,
    Biometrika 34, 28-35. https://doi.org/10.1093/biomet/34.1-2.28

    Examples
    --------
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> bias = xr.DataArray([0.02, 0.05, 0.01, 0.04], dims="trial")
    >>> test = cs.t_test(bias, "trial")
    >>> [round(float(test[name]), 4) for name in ("estimate", "statistic", "df", "p_value")]
    [0.03, 3.2863, 3.0, 0.0462]
    """
    check_option(alternative, ALTERNATIVES, "alternative")
    level = check_level(level)
    x = as_numbers(x)
    dims = as_dims(x, dim)
    call = call_text("t_test", dim=dim, paired=paired, mu=mu, alternative=alternative, level=level)
    if other is None or paired:
        cells, values, dims = differences(x, dims, other)
        kind = "one-sample t-test" if other is None else "paired t-test"
        found = one_sample(values)
    else:
        check_length(x, dims)
        given = match(x, other, free=dims)
        check_length(given, as_dims(given, dims, "dim"), argument="other")
        one_each = [part.isel(dict.fromkeys(dims, 0), drop=True) for part in (x, given)]
        cells = Cells.of(xr.broadcast(*one_each)[0], ())
        kind = "Welch t-test"
        found = welch(_spread_over(x, cells, dims), _spread_over(given, cells, dims))
    return _t_result(found, cells, kind, call, mu=mu, alternative=alternative, level=level)


def corrected_t_test(
    x: xr.DataArray,
    dim: Dims,
    *,
    other: xr.DataArray | None = None,
    test_fraction: float,
    level: float = 0.95,
) -> xr.Dataset:
    """Test whether the mean of cross-validated scores (or of their paired difference) is zero.

    The estimand is the mean over random splits. Scores of splits whose training sets overlap are correlated, so the
    variance of their mean is not ``s**2 / J`` but about ``(1 / J + n_test / n_train) * s**2`` (Nadeau and Bengio);
    the statistic is referred to Student's t on ``J - 1`` degrees of freedom.

    Parameters
    ----------
    x : DataArray
        Scores per split, e.g. over ``fold`` and ``repeat``.
    dim : str or sequence of str
        The dimension(s) of the splits; for repeated k-fold give both, ``("repeat", "fold")``.
    other : DataArray, optional
        Scores of the other configuration on the same splits; the test is then of ``x - other``.
    test_fraction : float
        ``n_test / (n_test + n_train)``, so ``1 / k`` for (repeated) k-fold.
    level : float
        Confidence level.

    Returns
    -------
    Dataset
        As `t_test`, always two-sided.

    Notes
    -----
    The correction assumes a correlation of ``test_fraction`` between splits. It is an approximation: no unbiased
    estimate of that variance exists (Bengio and Grandvalet 2004), and for very few splits the test is conservative.

    References
    ----------
    Nadeau, Bengio (2003), Inference for the generalization error, Machine Learning 52, 239-281.
    https://doi.org/10.1023/A:1024068626366

    Examples
    --------
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> a = xr.DataArray([0.81, 0.84, 0.78, 0.86, 0.80], dims="fold")
    >>> b = xr.DataArray([0.79, 0.80, 0.78, 0.82, 0.79], dims="fold")
    >>> plain = cs.t_test(a, "fold", other=b)
    >>> honest = cs.corrected_t_test(a, "fold", other=b, test_fraction=1 / 5)
    >>> round(float(plain.p_value), 3), round(float(honest.p_value), 3)
    (0.051, 0.141)
    """
    level = check_level(level)
    if isinstance(test_fraction, bool) or not isinstance(test_fraction, (int, float, np.floating)):
        raise InputError(f"`test_fraction` must be a number between 0 and 1; got {test_fraction!r}.")
    if not 0 < test_fraction < 1:
        raise InputError(
            "`test_fraction` is n_test / (n_test + n_train), strictly between 0 and 1 (1/k for k folds); "
            f"got {test_fraction!r}."
        )
    x = as_numbers(x)
    call = call_text("corrected_t_test", dim=dim, test_fraction=test_fraction, level=level)
    cells, values, _ = differences(x, as_dims(x, dim), other)
    found = one_sample(values, inflation=float(test_fraction / (1 - test_fraction)))
    kind = "corrected resampled t-test"
    return _t_result(found, cells, kind, call, mu=0.0, alternative="two-sided", level=level)


def differences(
    x: xr.DataArray, dims: tuple[str, ...], other: xr.DataArray | None
) -> tuple[Cells, np.ndarray, tuple[str, ...]]:
    """Return the values to test, cells first: `x`, or the paired differences ``x - other``."""
    check_length(x, dims)
    if other is not None:
        given = match(x, other)
        as_dims(given, dims, "dim")
        kept = {name: coord for name, coord in x.coords.items() if name not in given.coords}
        x = (x.astype(float) - given).assign_coords(kept)
    cells = Cells.of(x, dims)
    return cells, cells.pull(x, dims), dims


def _spread_over(x: xr.DataArray, cells: Cells, dims: tuple[str, ...]) -> np.ndarray:
    missing = [dim for dim in cells.dims if dim not in x.dims]
    wide = x.expand_dims({dim: cells.shape[cells.dims.index(dim)] for dim in missing})
    return cells.pull(wide, dims)


class TFound(NamedTuple):
    """What the kernels hand back; `center` + `offset` is the estimate, kept apart so that ``- mu`` is exact."""

    center: np.ndarray
    offset: np.ndarray
    std_error: np.ndarray
    df: np.ndarray
    spread: np.ndarray
    n: np.ndarray
    size: np.ndarray  # magnitude against which a standard error counts as rounding noise


def one_sample(values: np.ndarray, *, inflation: float = 0.0) -> TFound:
    """Return mean and standard error along the last axis; `inflation` is added to 1/n."""
    m = moments(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        sd = np.sqrt(m.ss / (m.n - 1))
        std_error = sd * np.sqrt(1 / m.n + inflation)
    return TFound(m.origin, m.offset, std_error, m.n - 1.0, sd, m.n, np.abs(m.origin + m.offset))


def welch(a: np.ndarray, b: np.ndarray) -> TFound:
    """Return the difference of means with Welch's standard error and degrees of freedom."""
    ma, mb = moments(a), moments(b)
    with np.errstate(invalid="ignore", divide="ignore"):
        origin, offset = ma.origin - mb.origin, ma.offset - mb.offset
        va, vb = ma.ss / (ma.n - 1), mb.ss / (mb.n - 1)
        qa, qb = va / ma.n, vb / mb.n
        largest = np.maximum(qa, qb)
        ra, rb = qa / largest, qb / largest
        df = (ra + rb) ** 2 / (ra**2 / (ma.n - 1) + rb**2 / (mb.n - 1))
    size = np.maximum(np.abs(ma.origin + ma.offset), np.abs(mb.origin + mb.offset))
    few = np.minimum(ma.n, mb.n)
    return TFound(
        origin,
        offset,
        np.sqrt(qa + qb),
        df,
        np.sqrt((va + vb) / 2),
        np.where(few < 2, few, ma.n + mb.n),
        size,
    )


def _t_result(
    found: TFound, cells: Cells, kind: str, call: str, *, mu: float, alternative: str, level: float
) -> xr.Dataset:
    from scipy.special import stdtr, stdtrit

    few = found.n < 2
    constant = ~few & ~(found.std_error > _CONSTANT * found.size)
    cells.warn(few | constant, f"{kind}: fewer than two values or no variation")
    usable = ~(few | constant)
    estimate = np.where(found.n > 0, found.center + found.offset, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        shift = (found.center - mu) + found.offset
        statistic = np.where(usable, shift / found.std_error, np.nan)
        effect = np.where(usable, shift / found.spread, np.nan)
    df = np.where(usable, found.df, np.nan)
    if alternative == "two-sided":
        p_value = 2 * stdtr(df, -np.abs(statistic))
    else:
        p_value = stdtr(df, statistic if alternative == "less" else -statistic)
    both = stdtrit(df, (1 + level) / 2) * found.std_error
    one = stdtrit(df, level) * found.std_error
    low, high = estimate - both, estimate + both
    if alternative == "less":
        low, high = np.where(usable, -np.inf, np.nan), estimate + one
    elif alternative == "greater":
        low, high = estimate - one, np.where(usable, np.inf, np.nan)
    values = {
        "estimate": estimate,
        "std_error": np.where(few, np.nan, found.std_error),
        "conf_low": low,
        "conf_high": high,
        "bound_low": estimate - one,
        "bound_high": estimate + one,
        "statistic": statistic,
        "df": df,
        "p_value": p_value,
        "effect_size": effect,
        "n": found.n,
    }
    variables = {name: cells.variable(part) for name, part in values.items()}
    return labelled(variables, cells, test=kind, call=call, conf_level=level, interval="t")
