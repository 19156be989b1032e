"""The bias table: how far estimates are from the truth, method by method."""

from __future__ import annotations

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_dim, check_level
from cvstats._results import call_text

from .location import one_sample
from .moments import anova_against, moments, rounding
from .named import (
    Cells,
    Dims,
    Variable,
    as_dims,
    as_numbers,
    check_length,
    direction_of,
    labelled,
    level_index,
    match,
)
from .spread import obrien_groups, pitman_morgan


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
    from scipy.special import fdtrc, stdtr, stdtrit

    level = check_level(level)
    estimates = as_numbers(estimates, "estimates")
    direction = direction_of(estimates, direction, "maximize")
    dims = as_dims(estimates, dim)
    if against is not None:
        check_dim(estimates.dims, by, "by")
        if by in dims:
            raise InputError(f"`by`={by!r} is also in `dim`; the methods cannot be averaged over and compared.")
    check_length(estimates, dims, argument="estimates")
    right = match(estimates, truth, argument="truth")
    claimed, right = xr.broadcast(estimates.astype(float), right.astype(float))
    last = by if against is not None else None
    cells = Cells.of(claimed, dims, last=last)
    claim, true = cells.pull(claimed, dims), cells.pull(right, dims)
    true = np.where(np.isnan(claim), np.nan, true)
    bias = claim - true if direction == "maximize" else true - claim

    m = moments(bias)
    found = one_sample(bias)
    # a bias that is constant but for the rounding of the two numbers it is the difference of
    noise = rounding(np.where(m.present, claim, 0.0), (-1,)) + rounding(np.where(m.present, true, 0.0), (-1,))
    few, constant = m.n < 2, (m.n > 1) & ~(found.std_error > noise)
    bad = few | constant
    mean = np.where(m.n > 0, m.origin + m.offset, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        statistic = np.where(bad, np.nan, mean / found.std_error)
        half = stdtrit(np.where(few, np.nan, found.df), (1 + level) / 2) * found.std_error
        true_mean = np.nansum(true, -1) / m.n
        rmse = np.sqrt(m.ss / m.n + mean**2)
    values = {
        "estimate": mean,
        "std_error": np.where(few, np.nan, found.std_error),
        "conf_low": mean - half,
        "conf_high": mean + half,
        "statistic": statistic,
        "df": np.where(few, np.nan, found.df),
        "p_value": 2 * stdtr(found.df, -np.abs(statistic)),
        "std_dev": np.where(few, np.nan, found.spread),
        "rmse": rmse,
        "truth": true_mean,
        "n": m.n,
    }
    if against is not None:
        reference = level_index(estimates, by, against)
        spread = anova_against(*obrien_groups(m), reference)
        own = np.arange(bias.shape[-2]) == reference
        paired, df, *_ = pitman_morgan(bias, np.broadcast_to(bias[..., reference : reference + 1, :], bias.shape))
        with np.errstate(invalid="ignore", divide="ignore"):
            values["truth_ratio"] = true_mean / true_mean[..., reference : reference + 1]
        bad |= np.isnan(spread.statistic) & ~own
        values["obrien_statistic"] = spread.statistic
        values["obrien_p_value"] = fdtrc(spread.df, spread.df_residual, spread.statistic)
        values["pitman_statistic"] = np.where(own, np.nan, paired)
        values["pitman_p_value"] = np.where(own, np.nan, 2 * stdtr(df, -np.abs(paired)))
    cells.warn(bad, "bias_table: too few values, or no variation, for a test")
    variables: dict[str, Variable] = {name: cells.variable(part) for name, part in values.items()}
    call = call_text("bias_table", dim=dim, against=against, by=last, direction=direction, level=level)
    return labelled(variables, cells, test="bias table", call=call, conf_level=level, interval="t")
