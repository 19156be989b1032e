"""The bias table: how far estimates are from the truth, method by method."""

from __future__ import annotations

import numpy as np
import xarray as xr

from cvstats._check import check_level
from cvstats._results import call_text

from .batch import Dims, as_numbers, batch, direction_of
from .location import moments, wald
from .spread import f_test, obrien_groups, pitman_morgan, rounding


def bias_table(
    estimates: xr.DataArray,
    truth: xr.DataArray,
    *,
    dim: Dims,
    against: object = None,
    by: str = "method",
    direction: str | None = None,
    level: float = 0.95,
) -> xr.Dataset:
    """Compare estimates with the truth: mean bias, spread, and tests of both.

    The estimand is the mean along `dim` of ``estimate - truth`` (``truth - estimate`` for losses), so bias is positive
    when the claim is too good. It is tested against zero by Student's t. With a reference method, the spread of every
    other method's bias is compared with the reference's by O'Brien's test, which takes the methods as independent, and
    by Pitman and Morgan's, which uses that they were judged on the same trials.

    Parameters
    ----------
    estimates : DataArray
        What the methods claimed, e.g. over ``method, size, dataset, trial``.
    truth : DataArray
        The performance of what they selected, over the same labels; dims it lacks (such as `by`) are broadcast.
    dim : str or sequence of str
        What to average over, e.g. ``("dataset", "trial")``. All other dimensions are mapped over.
    against : label, optional
        The reference level of `by`.
    by : str
        The dimension of the methods; only needed with `against`.
    direction : {"maximize", "minimize"}, optional
        Whether larger values are better (AUC, accuracy) or smaller ones (losses); by default what the coordinate
        ``metric`` of `estimates` says, else "maximize".
    level : float
        Confidence level.

    Returns
    -------
    Dataset
        ``estimate`` (mean bias), ``std_error, conf_low, conf_high, statistic, df, p_value`` (t-test against zero),
        ``std_dev`` (of the bias), ``rmse``, ``truth`` (its mean) and ``n``. With `against` also ``truth_ratio`` (to
        the reference), ``obrien_statistic, obrien_p_value, pitman_statistic, pitman_p_value``, NaN at the reference.

    Notes
    -----
    All values along `dim` count as independent. Averaging over data sets makes them so only as draws of (data set,
    trial); with few data sets the standard errors are too small for claims about new ones. p-values are not adjusted
    for the number of cells. Print with `format_table`, draw with `plot_bias`.

    References
    ----------
    Tsamardinos, Rakhshani, Lagani (2015), International Journal on Artificial Intelligence Tools 24, 1540023.
    https://doi.org/10.1142/S0218213015400230

    Examples
    --------
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> auc = xr.DataArray([[0.80, 0.86, 0.83], [0.70, 0.81, 0.74]], dims=("method", "trial"),
    ...                    coords={"method": ["CVT", "NCV"]})
    >>> truth = xr.DataArray([0.74, 0.80, 0.76], dims="trial")
    >>> cs.bias_table(auc, truth, dim="trial", against="NCV").estimate.values.round(4).tolist()
    [0.0633, -0.0167]
    """
    level = check_level(level)
    direction = direction_of(as_numbers(estimates, "estimates"), direction, "maximize")
    groups = None if against is None else by
    data = batch(estimates, dim, other=truth, by=groups, levels=1, names=("estimates", "truth"))
    claim, true = data.values, np.where(np.isnan(data.values), np.nan, data.other)
    bias = data.difference if direction == "maximize" else -data.difference
    m = moments(bias)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        std_error = m.std_dev / np.sqrt(m.n)
        rmse = np.sqrt(m.ss / m.n + m.mean**2)
        true_mean = np.nansum(true, -1) / m.n
    # a bias that is constant but for the rounding of the two numbers it is the difference of
    noise = rounding(np.where(m.present, claim, 0.0), (-1,)) + rounding(np.where(m.present, true, 0.0), (-1,))
    bad = ~(std_error > noise)
    values = wald(m.mean, std_error, np.where(m.n > 1, m.n - 1.0, np.nan), level)
    values |= {name: np.where(bad, np.nan, values[name]) for name in ("statistic", "p_value")}
    values |= {"std_dev": m.std_dev, "rmse": rmse, "truth": true_mean, "n": m.n}
    if against is not None:
        reference = data.level(against)
        spread, lost = f_test(*obrien_groups(m), reference)
        paired, _ = pitman_morgan(bias, np.broadcast_to(bias[..., [reference], :], bias.shape))
        with np.errstate(invalid="ignore", divide="ignore"):
            values["truth_ratio"] = true_mean / true_mean[..., [reference]]
        for name in ("statistic", "p_value"):
            values[f"obrien_{name}"], values[f"pitman_{name}"] = spread[name], paired[name]
        bad |= lost
    data.warn(bad, "bias_table: too few values, or no variation, for a test")
    call = call_text("bias_table", dim=dim, against=against, by=groups, direction=direction, level=level)
    return data.dataset("bias table", values, call=call, level=level, interval="t")
