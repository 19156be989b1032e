"""What several sites say together: the mean, how much sites differ, and what a new one may see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_dim, check_level, check_option, show
from cvstats._results import call_text, result
from cvstats.cube.align import map_along
from cvstats.metrics import traits_of
from cvstats.protocols.common import warn_once

from .location import wald


class _Scale(NamedTuple):
    """Where estimates are combined: there and back, and the derivative of the way there."""

    name: str
    forward: Callable[[Any], Any]
    back: Callable[[Any], Any]
    slope: Callable[[Any], Any]


def meta_analysis(results: xr.Dataset, dim: str, *, scale: str = "auto", level: float = 0.95) -> xr.Dataset:
    r"""Return what estimates from several sites say together, by a random-effects meta-analysis.

    The estimand is the mean performance over a population of sites, of which those at hand are a sample. With estimates
    :math:`y_i`, standard errors :math:`s_i` and the variance between sites :math:`\tau^2`,

    .. math:: \hat\mu = \frac{\sum w_i y_i}{\sum w_i}, \quad w_i = \frac{1}{s_i^2 + \tau^2}, \quad
              \sum_i w_i (y_i - \hat\mu)^2 = k - 1

    where the last equation gives :math:`\tau^2` (Paule and Mandel; 0 if it has no solution). Limits of the mean have
    Student's t on k - 1 degrees of freedom; a new site's performance lies within
    :math:`\hat\mu \pm t_{k-2} \sqrt{\tau^2 + se(\hat\mu)^2}` with probability `level`. For predictions of
    sites left out take ``winner(cube, metric, subgroup="group")`` of a cube whose folds and groups are the sites.

    Parameters
    ----------
    results : Dataset
        ``estimate`` and ``std_error`` over `dim`: a protocol's result by subgroup, or several results put together
        along a dim of your own.
    dim : str
        The sites.
    scale : {"auto", "none"}
        ``"auto"``: metrics with two ends are combined as log odds, losses as logarithms, others as they are (and also
        if an estimate is at an end, with a warning); ``"none"``: as they are.
    level : float
        Confidence level.

    Returns
    -------
    Dataset
        ``estimate, std_error, conf_low, conf_high, statistic, df, p_value`` of the mean, where statistic (Cochran's
        Q), its degrees of freedom and p-value test that all sites are alike; ``predict_low`` and ``predict_high`` for a
        new site; ``tau2`` on the scale of the coordinate ``scale``; ``i2``, the share of the variance between estimates
        that is between sites; ``n``, the sites with an estimate.

    Notes
    -----
    With fewer than five sites the limits hold only roughly, with two there are none for a new site. A decision that was
    made on all samples together is common to all sites, which their standard errors count as if it were not.

    References
    ----------
    Paule, Mandel (1982), doi:10.6028/jres.087.022; Higgins, Thompson, Spiegelhalter (2009),
    doi:10.1111/j.1467-985X.2008.00552.x, for a new site; Debray et al. (2017), doi:10.1136/bmj.i6460, for prediction
    models.

    Examples
    --------
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> estimate, error = [0.81, 0.74, 0.88, 0.79], [0.02, 0.03, 0.02, 0.04]
    >>> sites = xr.Dataset({"estimate": ("site", estimate), "std_error": ("site", error)}, coords={"metric": "auc"})
    >>> out = cs.meta_analysis(sites, "site")
    >>> [round(float(out[name]), 3) for name in ("estimate", "conf_low", "conf_high", "predict_low", "predict_high")]
    [0.81, 0.694, 0.889, 0.426, 0.961]
    """
    if not isinstance(results, xr.Dataset) or not {"estimate", "std_error"} <= set(results.data_vars):
        raise InputError("`results` must be a Dataset with `estimate` and `std_error`, such as winner(subgroup=...).")
    check_option(scale, ("auto", "none"), "scale")
    check_dim(results["estimate"].dims, dim)
    level = check_level(level)
    table = xr.concat([results["estimate"], results["std_error"]], dim="part").transpose("part", ..., dim)
    others = [name for name in results["estimate"].dims if name != dim]
    notes: list[str] = []
    found = map_along(others, lambda part: _combined(part, dim, scale, level, notes), table)
    warn_once("meta_analysis", notes)
    names = results["metric"].values if "metric" in results.coords else "none"
    metric = str(names) if np.ndim(names) == 0 else "none"
    call = call_text("meta_analysis", dim=dim, scale=scale, level=level)
    return result(found, method="meta_analysis", metric=metric, conf_level=level, interval="t", call=call)


def _combined(table: xr.DataArray, dim: str, scale: str, level: float, notes: list[str]) -> xr.Dataset:
    """Return the meta-analysis of one metric."""
    from scipy.special import chdtrc, stdtrit

    estimate, error = table.values
    known = np.isfinite(estimate) & (error > 0) & np.isfinite(error)
    name = str(table["metric"].values) if "metric" in table.coords and table["metric"].ndim == 0 else ""
    if not known.all():
        lost = show(table[dim].values[~known] if dim in table.coords else np.flatnonzero(~known))
        notes.append(f"no estimate with a standard error for {dim} {lost}; left out")
    if known.sum() < 2:
        notes.append(f"fewer than two of {dim} have an estimate: NaN")
    estimate, error = estimate[known], error[known]
    on = _scale_of(name, scale, estimate, notes)
    y, s2 = on.forward(estimate), (error * np.abs(on.slope(estimate))) ** 2
    k = len(y)
    tau2 = _between(y, s2) if k > 1 else np.nan
    weight = 1 / (s2 + tau2)
    mean, se = (weight @ y / weight.sum(), np.sqrt(1 / weight.sum())) if k > 1 else (np.nan, np.nan)
    q = _excess(0.0, y, s2) + k - 1 if k > 1 else np.nan
    own = wald(mean, se, k - 1.0, level)
    half = stdtrit(k - 2, (1 + level) / 2) * np.sqrt(tau2 + se**2) if k > 2 else np.nan
    ends = {"conf_low": own["conf_low"], "conf_high": own["conf_high"]}
    ends |= {"predict_low": mean - half, "predict_high": mean + half}
    low, high = (on.back(np.array([ends[f"{what}_low"], ends[f"{what}_high"]])) for what in ("conf", "predict"))
    centre = on.back(mean)
    variables = {
        "estimate": centre,
        "std_error": se / np.abs(on.slope(centre)),
        **dict(zip(ends, [*sorted(low), *sorted(high)], strict=True)),
        "statistic": q,
        "df": k - 1.0,
        "p_value": chdtrc(k - 1, q) if k > 1 else np.nan,
        "tau2": tau2,
        "i2": max(0.0, 1 - (k - 1) / q) if k > 1 and q > 0 else np.nan,
        "n": k,
    }
    return xr.Dataset(variables, coords={"scale": on.name})


def _scale_of(metric: str, scale: str, estimate: np.ndarray, notes: list[str]) -> _Scale:
    """Return the scale on which estimates of a metric are combined."""
    plain = _Scale("none", lambda x: x, lambda x: x, np.ones_like)
    traits = traits_of(metric)
    if scale == "none" or traits is None or traits.scale == "none" or not len(estimate):
        return plain
    low, high = traits.range
    if traits.scale == "unit":
        found = _Scale(
            "log odds",
            lambda x: np.log((x - low) / (high - x)),
            lambda x: low + (high - low) / (1 + np.exp(-x)),
            lambda x: (high - low) / ((x - low) * (high - x)),
        )
        inside = (estimate > low) & (estimate < high)
    else:
        best, sign = (high, -1.0) if traits.sign > 0 else (low, 1.0)  # how far from the best
        found = _Scale(
            "logarithm",
            lambda x: np.log(sign * (x - best)),
            lambda x: best + sign * np.exp(x),
            lambda x: 1 / (x - best),
        )
        inside = estimate != best
    if inside.all():
        return found
    notes.append(f"{metric} is at the end of its range in a site; estimates are combined as they are")
    return plain


def _excess(tau2: float, y: np.ndarray, s2: np.ndarray) -> float:
    """Return by how much estimates differ more than `tau2` between sites explains."""
    weight = 1 / (s2 + tau2)
    return float(weight @ (y - weight @ y / weight.sum()) ** 2 - (len(y) - 1))


def _between(y: np.ndarray, s2: np.ndarray) -> float:
    """Return Paule and Mandel's variance between sites."""
    from scipy.optimize import brentq

    if _excess(0.0, y, s2) <= 0:
        return 0.0
    top = 2 * float(np.sum((y - y.mean()) ** 2))  # explains everything and more
    return float(brentq(_excess, 0.0, top, args=(y, s2), xtol=1e-300, rtol=4 * np.finfo(float).eps))
