"""The distribution of the best of many equally good configurations, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from cvstats._check import InputError
from cvstats._results import call_text, result

Floats = NDArray[np.float64]
LEVELS = (0.05, 0.95)


def expected_maximum(probability: Any, n_samples: Any, n_configurations: Any) -> xr.Dataset:
    """Give the exact distribution of the best of m estimated accuracies when all m are truly equal.

    The maximum of m independent Binomial(n, p) / n has P(max <= k / n) = F(k)^m with F the binomial distribution
    function, hence the mean 1 - sum over k < n of F(k)^m / n. It is what tuning on n samples reports when m equally
    good configurations err independently; dependence between them makes the optimism smaller.

    Parameters
    ----------
    probability, n_samples, n_configurations : number, list or DataArray
        The p, n and m above. Lists become dims of the argument's name, so that lists make a table; DataArrays are
        broadcast by dimension.

    Returns
    -------
    xarray.Dataset
        ``mean``, ``optimism`` (mean minus p) and ``quantiles`` over ``quantile`` (0.05 and 0.95): the smallest
        attainable value that the maximum does not exceed with at least that probability.

    Raises
    ------
    InputError
        Probabilities outside [0, 1], or counts that are not whole numbers of at least 1.

    References
    ----------
    Tsamardinos, Rakhshani, Lagani (2015). Performance-estimation properties of cross-validation-based protocols
    with simultaneous hyper-parameter optimization. Int. J. Artificial Intelligence Tools 24, 1540023, Table 1.
    doi:10.1142/S0218213015400230

    Examples
    --------
    >>> import cvstats as cs
    >>> best = cs.expected_maximum(0.85, [20, 100], 10)
    >>> best["mean"].round(4).values.tolist()
    [0.9588, 0.9026]
    """
    p = _argument(probability, "probability")
    n = _argument(n_samples, "n_samples")
    m = _argument(n_configurations, "n_configurations")
    if not bool(((p >= 0) & (p <= 1)).all()):
        raise InputError("`probability` must lie in [0, 1].")
    for name, array in (("n_samples", n), ("n_configurations", m)):
        if not bool(((array >= 1) & (array % 1 == 0)).all()):
            raise InputError(f"`{name}` must be whole numbers of at least 1.")
    mean, quantiles = xr.apply_ufunc(
        _maximum, p, n, m, output_core_dims=[[], ["quantile"]], kwargs={"levels": np.array(LEVELS)}, join="exact"
    )
    variables = {"mean": mean, "optimism": mean - p, "quantiles": quantiles.assign_coords(quantile=list(LEVELS))}
    given = {"probability": probability, "n_samples": n_samples, "n_configurations": n_configurations}
    call = call_text("expected_maximum", **given)
    return result(variables, method="expected_maximum", metric="accuracy", call=call)


def _argument(value: Any, name: str) -> xr.DataArray:
    if isinstance(value, xr.DataArray):
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "iuf" or array.ndim > 1:
        raise InputError(f"`{name}` must be a number, a list of numbers or a DataArray; got {value!r}.")
    return xr.DataArray(array, dims=[name] * array.ndim, coords={name: array} if array.ndim else None)


def _maximum(p: Floats, n: Floats, m: Floats, *, levels: Floats) -> tuple[Floats, Floats]:
    """Return mean and quantiles of the maximum, quantiles on a last axis."""
    from scipy.special import bdtr, bdtrc

    p, n, m = (array[..., None] for array in np.broadcast_arrays(p, n, m))
    k = np.arange(int(n.max()) + 1, dtype=float)
    inside = np.minimum(k, n)
    above = bdtrc(inside, n, p)
    with np.errstate(divide="ignore"):  # F = 0 has probability 0 of holding the maximum
        log_f = np.where(above < 0.5, np.log1p(-above), np.log(bdtr(inside, n, p)))
    mean = np.abs(np.expm1(m * log_f).sum(-1)) / n[..., 0]
    reached = (m * log_f)[..., None] >= np.log(levels)
    return mean, np.argmax(reached, axis=-2) / n
