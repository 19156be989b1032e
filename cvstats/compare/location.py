"""Tests of means: Student's, paired and Welch's t-test, and Nadeau and Bengio's for overlapping training sets."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_level, check_option, is_number
from cvstats._results import call_text

from .batch import Batch, Dims, batch

ALTERNATIVES = ("two-sided", "less", "greater")
WELCH = "Welch t-test"
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
    if not is_number(mu) or not np.isfinite(mu):
        raise InputError(f"`mu` must be a finite number, the mean under the null hypothesis; got {mu!r}.")
    data = batch(x, dim, other=other, paired=paired)
    call = call_text("t_test", dim=dim, paired=paired, mu=mu, alternative=alternative, level=level)
    kind = "one-sample t-test" if other is None else "paired t-test" if paired else WELCH
    return _t_test(data, kind, level, call, mu=mu, alternative=alternative)


def corrected_t_test(
    x: xr.DataArray,
    dim: Dims,
    *,
    other: xr.DataArray | None = None,
    test_fraction: float,
    rope: float | None = None,
    level: float = 0.95,
) -> xr.Dataset:
    """Test whether the mean of cross-validated scores (or of their paired difference) is zero.

    The estimand is the mean over random splits. Scores of splits whose training sets overlap are correlated, so the
    variance of their mean is not ``s**2 / J`` but about ``(1 / J + n_test / n_train) * s**2`` (Nadeau and Bengio);
    the statistic is referred to Student's t on ``J - 1`` degrees of freedom. The limits use the same variance.

    With `rope` also the Bayesian correlated t-test: the posterior of the mean, under the usual flat prior, is that very
    t distribution around the estimate, and its mass is given below, within and above the region of practical
    equivalence.

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
    rope : float, optional
        A (mean) difference of at most this size is taken for none, such as 0.01 of accuracy.
    level : float
        Confidence level.

    Returns
    -------
    Dataset
        As `t_test`, always two-sided. With `rope` also ``p_left``, ``p_rope`` and ``p_right``, the posterior
        probabilities that the mean is below ``-rope``, within, and above ``rope``; scores that do not vary have all of
        it at their mean.

    Notes
    -----
    The correction assumes a correlation of ``test_fraction`` between splits. It is an approximation: no unbiased
    estimate of that variance exists (Bengio and Grandvalet 2004), and for very few splits the test is conservative.
    Repeats are splits too (J is folds times repeats, as in Bouckaert and Frank), but they hold the same samples: with
    many of them the test can be too sure for learners that vary much from one training set to another. Where
    predictions were saved, `contrast` keeps what the samples vary whatever the number of repeats.

    References
    ----------
    Nadeau, Bengio (2003), Inference for the generalization error, Machine Learning 52, 239-281.
    https://doi.org/10.1023/A:1024068626366
    Bouckaert, Frank (2004), doi:10.1007/978-3-540-24775-3_3, for repeated cross-validation.
    Corani, Benavoli (2015), doi:10.1007/s10994-015-5486-z, and Benavoli, Corani, Demsar, Zaffalon (2017), Journal of
    Machine Learning Research 18, 77, for the Bayesian test.

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
    >>> known = cs.corrected_t_test(a, "fold", other=b, test_fraction=1 / 5, rope=0.01)
    >>> [round(float(known[name]), 3) for name in ("p_left", "p_rope", "p_right")]
    [0.028, 0.159, 0.813]
    """
    level = check_level(level)
    if not is_number(test_fraction) or not 0 < test_fraction < 1:
        raise InputError(
            "`test_fraction` must be a number strictly between 0 and 1: n_test / (n_test + n_train), which is 1/k for "
            f"k folds; got {test_fraction!r}."
        )
    check_size(rope, "rope", at_least=True)
    data = batch(x, dim, other=other)
    call = call_text("corrected_t_test", dim=dim, test_fraction=test_fraction, rope=rope, level=level)
    overlap = float(test_fraction / (1 - test_fraction))
    out = _t_test(data, "corrected resampled t-test", level, call, overlap=overlap)
    return out if rope is None else out.assign(_posterior(out, rope))


def check_size(value: float | None, argument: str, *, at_least: bool = False) -> None:
    """Raise unless a difference that matters is a finite number above zero, or `at_least` zero."""
    if value is not None and not (is_number(value) and 0 <= value < np.inf and (at_least or value > 0)):
        least = "of at least 0" if at_least else "above 0"
        raise InputError(f"`{argument}` must be a finite number {least}, in the unit of the scores; got {value!r}.")


def _posterior(out: xr.Dataset, rope: float) -> dict[str, xr.DataArray]:
    """Return the mass of the posterior below, within and above the region of practical equivalence."""
    from scipy.special import stdtr

    mean, error, df = out["estimate"], out["std_error"], out["n"] - 1.0
    flat = out["statistic"].isnull() & error.notnull()  # no variation: all mass at the mean
    with np.errstate(invalid="ignore", divide="ignore"):
        left, right = (
            xr.apply_ufunc(stdtr, df, -(rope + far) / error).where(~flat, far < -rope) for far in (mean, -mean)
        )
    return {"p_left": left, "p_rope": 1 - left - right, "p_right": right}


class Moments(NamedTuple):
    """Moments along the last axis: `deviation` is from the mean, and 0 where nothing is present."""

    n: np.ndarray
    mean: np.ndarray
    ss: np.ndarray
    deviation: np.ndarray
    present: np.ndarray

    @property
    def std_dev(self) -> np.ndarray:
        """The usual estimate, with ``n - 1``."""
        return np.asarray(np.sqrt(self.ss / np.where(self.n > 1, self.n - 1.0, np.nan)))


@np.errstate(invalid="ignore", divide="ignore", over="ignore")
def moments(values: np.ndarray) -> Moments:
    """Return count, mean and sum of squares of the values that are not NaN."""
    present = ~np.isnan(values)
    n, mean, deviation = present.sum(-1), np.zeros(values.shape[:-1]), values
    for _ in range(2):  # the second pass takes what rounding left
        step = deviation.sum(-1, where=present) / n
        deviation, mean = deviation - step[..., None], mean + step
    deviation = np.where(present, deviation, 0.0)
    ss = np.einsum("...i,...i->...", deviation, deviation)
    return Moments(n, mean, np.where(np.isfinite(ss), ss, np.nan), deviation, present)  # NaN: too large to be squared


@np.errstate(invalid="ignore", divide="ignore", over="ignore")
def _t_test(
    data: Batch,
    kind: str,
    level: float,
    call: str,
    *,
    mu: float = 0.0,
    alternative: str = "two-sided",
    overlap: float = 0.0,
) -> xr.Dataset:
    if kind == WELCH:
        middle = moments(data.other).mean  # taken off both, so that a large common offset costs no digits
        a, b = moments(data.values - middle[..., None] - mu), moments(data.other - middle[..., None])
        qa, qb, fewest = a.std_dev**2 / a.n, b.std_dev**2 / b.n, np.minimum(a.n, b.n)
        share = qa / (qa + qb)
        df = 1 / (share**2 / (a.n - 1) + (1 - share) ** 2 / (b.n - 1))
        n, std_error, std_dev = a.n + b.n, np.sqrt(qa + qb), np.sqrt((a.std_dev**2 + b.std_dev**2) / 2)
        n, shift = np.where(fewest < 2, fewest, n), a.mean - b.mean
        size = np.maximum(np.abs(middle + shift + mu), np.abs(middle))
    else:
        a = moments(data.difference - mu)
        n, df, shift, std_dev, size = a.n, a.n - 1.0, a.mean, a.std_dev, np.abs(a.mean + mu)
        std_error = std_dev * np.sqrt(1 / n + overlap)
    few = n < 2
    bad = few | ~(std_error > _CONSTANT * size)
    data.warn(bad, f"{kind}: fewer than two values or no variation")
    error, df = np.where(bad, np.nan, std_error), np.where(bad, np.nan, df)
    variables = {
        **wald(shift + mu, error, df, level, shift=shift, alternative=alternative, bounds=True),
        "std_error": np.where(few, np.nan, std_error),
        "effect_size": np.where(bad, np.nan, shift) / std_dev,
        "n": n,
    }
    return data.dataset(kind, variables, call=call, level=level, interval="t")


def wald(
    estimate: Any,
    std_error: Any,
    df: Any,
    level: float,
    *,
    shift: Any = None,
    alternative: str = "two-sided",
    bounds: bool = False,
) -> dict[str, Any]:
    """Return limits, statistic and p-value of an estimate: Student's t, or normal without `df`.

    `shift` is the distance from the null hypothesis, the estimate itself unless given; `bounds` adds one-sided limits.
    A standard error of NaN makes all NaN.
    """
    from scipy.special import ndtr, ndtri, stdtr, stdtrit

    below, quantile = (ndtr, ndtri) if df is None else (partial(stdtr, df), partial(stdtrit, df))
    both, one = quantile((1 + level) / 2) * std_error, quantile(level) * std_error
    with np.errstate(invalid="ignore", divide="ignore"):
        statistic = (estimate if shift is None else shift) / std_error
    low, high, p_value = estimate - both, estimate + both, 2 * below(-np.abs(statistic))
    if alternative == "less":
        low, high, p_value = np.where(np.isnan(one), np.nan, -np.inf), estimate + one, below(statistic)
    elif alternative == "greater":
        low, high, p_value = estimate - one, np.where(np.isnan(one), np.nan, np.inf), below(-statistic)
    return {
        "estimate": estimate,
        "std_error": std_error,
        "conf_low": low,
        "conf_high": high,
        **({"bound_low": estimate - one, "bound_high": estimate + one} if bounds else {}),
        "statistic": statistic,
        "df": np.nan if df is None else df,
        "p_value": p_value,
    }
