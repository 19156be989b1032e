"""Adjusting p-values for multiplicity."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_option, clipped
from cvstats.cube.values import unmasked
from cvstats.kernels.holm import holm

from .batch import Dims, as_dims, as_numbers

# R's names and what statsmodels calls them
METHODS = {
    "holm": None,
    "hochberg": "simes-hochberg",
    "hommel": "hommel",
    "bonferroni": "bonferroni",
    "bh": "fdr_bh",
    "fdr": "fdr_bh",
    "by": "fdr_by",
    "none": None,
}


@overload
def p_adjust(p: xr.DataArray, method: str = ..., *, dim: Dims | None = ...) -> xr.DataArray: ...
@overload
def p_adjust(p: Any, method: str = ..., *, dim: None = ...) -> np.ndarray: ...
def p_adjust(p: Any, method: str = "holm", *, dim: Dims | None = None) -> Any:
    """Adjust p-values for the number of tests made.

    An adjusted p-value is the smallest family-wise error rate (holm, hochberg, hommel, bonferroni) or false discovery
    rate (BH = fdr, BY) at which that test would be rejected.

    Parameters
    ----------
    p : DataArray or array-like
        The p-values. NaN stays in place and is not counted as a test.
    method : str
        R's names, in any case: "holm", "hochberg", "hommel", "bonferroni", "BH" (or "fdr"), "BY", "none".
    dim : str or sequence of str, optional
        For a DataArray, the dimension(s) that make up one family; the default is all values.

    Returns
    -------
    DataArray or ndarray
        As `p`, adjusted.

    Notes
    -----
    Hochberg and Hommel assume independent or positively dependent tests, BH too; Holm, Bonferroni and BY do not.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6, 65-70.
    https://www.jstor.org/stable/4615733
    Benjamini, Hochberg (1995), JRSS B 57, 289-300. https://doi.org/10.1111/j.2517-6161.1995.tb02031.x

    Examples
    --------
    >>> import cvstats as cs
    >>> cs.p_adjust([0.01, float("nan"), 0.04, 0.03], "holm").round(2)
    array([0.03,  nan, 0.06, 0.06])
    """
    known = method.lower() if isinstance(method, str) else method
    check_option(known, tuple(METHODS), "method")
    labelled = isinstance(p, xr.DataArray)
    if not labelled and dim is not None:
        raise InputError("`dim` needs `p` to be an xarray.DataArray with named dims.")
    if isinstance(p, (xr.DataArray, xr.Dataset)):
        p = as_numbers(p, "p")
    try:
        values = np.asarray(p if labelled else unmasked(p), dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"`p` must hold numbers; got {clipped(p)}.") from None
    outside = (values < 0) | (values > 1)
    if outside.any():
        raise InputError(f"`p` must hold p-values between 0 and 1 (or NaN); found {values[outside][0].item()!r}.")
    axes = tuple(range(values.ndim)) if dim is None else p.get_axis_num(as_dims(p, dim))
    last = range(-len(axes), 0)
    rows = np.moveaxis(values, axes, last)
    flat = rows.reshape(*rows.shape[: rows.ndim - len(axes)], -1)
    adjusted = np.moveaxis(np.apply_along_axis(_adjusted, -1, flat, known).reshape(rows.shape), last, axes)
    return p.copy(data=adjusted) if labelled else adjusted


def _adjusted(p: np.ndarray, method: str) -> np.ndarray:
    """Adjust one family of p-values (1-d), leaving NaN out."""
    name, tested = METHODS[method], ~np.isnan(p)
    if name is None or not tested.any():
        return holm(p) if method == "holm" else p.copy()
    from statsmodels.stats.multitest import multipletests

    adjusted = np.full(p.shape, np.nan)
    adjusted[tested] = multipletests(p[tested], method=name)[1]
    return adjusted
