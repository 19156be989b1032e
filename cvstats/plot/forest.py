"""Estimates of sites or subgroups below each other, and what they say together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from cvstats._check import InputError, show

from .estimates import plot_intervals
from .style import drawable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUMMARY = {"mean over all": ("conf_low", "conf_high"), "a new one": ("predict_low", "predict_high")}


def plot_forest(
    results: xr.Dataset, *, summary: xr.Dataset | None = None, ax: Axes | None = None, title: str = ""
) -> Axes:
    """Draw the estimates of sites or subgroups below each other (a forest plot), and what they say together.

    Parameters
    ----------
    results : Dataset
        Estimates along one dim, such as ``winner(cube, metric, subgroup="site")``.
    summary : Dataset, optional
        What `meta_analysis` says of them: the mean with its limits, and the interval for a new site.
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.
    title : str
        Shown above the axes.

    Returns
    -------
    matplotlib.axes.Axes
        One row for each site, then those of the summary, marked as in `plot_intervals`.

    References
    ----------
    Lewis, Clarke (2001). Forest plots: trying to see the wood and the trees. BMJ 322, 1479-1480.
    doi:10.1136/bmj.322.7300.1479

    Examples
    --------
    >>> import numpy as np
    >>> import cvstats as cs
    >>> cube = cs.simulate_cube(90, 5, rng=1).assign_coords(site=("sample", np.repeat(list("xyz"), 30)))
    >>> sites = cs.winner(cube, "accuracy", subgroup="site", times=50, rng=1)
    >>> ax = cs.plot_forest(sites, summary=cs.meta_analysis(sites, "site"))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['x', 'y', 'z', 'mean over all', 'a new one']
    """
    drawable(results, "results", "winner(..., subgroup=...)", ("estimate",))
    dims = results["estimate"].dims
    if len(dims) != 1 or dims[0] == "method":
        raise InputError(f"`results` must have one dim, of sites or subgroups; found {show(dims)}. Use .sel().")
    names = [name for name in ("estimate", "conf_low", "conf_high", "naive") if name in results]
    rows = [results[names].drop_vars("method", errors="ignore").rename({dims[0]: "method"})]
    if summary is not None:
        drawable(summary, "summary", "meta_analysis()", ("estimate", "predict_low", "predict_high"), set())
        for name, (low, high) in SUMMARY.items():
            one = {"estimate": summary["estimate"], "conf_low": summary[low], "conf_high": summary[high]}
            own = xr.Dataset({key: value.reset_coords(drop=True) for key, value in one.items()})
            rows.append(own.expand_dims(method=[name]))
        rows[0] = rows[0].assign_coords(method=rows[0]["method"].astype(str))
    together = xr.concat(rows, "method", coords="minimal", compat="override", join="outer", data_vars="all")
    return plot_intervals(together, ax=ax, title=title)
