"""Plots of comparisons: the critical-difference diagram and the bias figure. They draw results and compute nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_dim, show
from cvstats.tables.words import labels_of

from .style import INK, MUTED, axes, calm, figure_class, line_style, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_critical_difference(result: xr.Dataset, *, ax: Axes | None = None, title: str = "") -> Axes:
    """Draw the mean ranks of methods; bars join those that cannot be told apart.

    Parameters
    ----------
    result : Dataset
        From `critical_difference`, for one table (no dims left to map over).
    ax : matplotlib Axes, optional
        Where to draw; a new figure of fitting height otherwise.
    title : str
        Shown above the axes.

    Returns
    -------
    matplotlib.axes.Axes
        Best ranks are on the left. The critical difference is drawn to scale above the axis (Nemenyi only).

    Raises
    ------
    InputError
        `result` does not come from `critical_difference`, or holds several tables.

    References
    ----------
    Demsar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7, 1-30.
    https://www.jmlr.org/papers/v7/demsar06a.html

    Examples
    --------
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> error = xr.DataArray([[1.0, 2, 3]] * 8, dims=("dataset", "method"), coords={"method": ["a", "b", "c"]})
    >>> ax = cs.plot_critical_difference(cs.critical_difference(error, "dataset", by="method", direction="minimize"))
    >>> [text.get_text().strip() for text in ax.texts][-1]
    'c (3.00)'
    """
    if not isinstance(result, xr.Dataset) or not {"mean_rank", "cd", "clique"} <= {*result.variables}:
        raise InputError("`result` must come from critical_difference().")
    if result["mean_rank"].ndim != 1:
        raise InputError(f"`result` has dims {show(result['mean_rank'].dims)}; pick one table first with .sel().")
    by = result["mean_rank"].dims[0]
    names = [str(name) for name in labels_of(result, by)]
    ranks = result["mean_rank"].values
    member = result["clique"].transpose(by, "clique").values.astype(bool)
    order = np.argsort(ranks, kind="stable")
    k, groups = len(ranks), member.shape[1]
    left = (k + 1) // 2
    bars = 0.35 * groups
    depth = bars + 0.7 * max(left, k - left) + 0.4
    ax = axes(ax, 7, 1.0 + 0.45 * (depth + 1))
    low, high = 1.0, float(k)
    pad = 0.35 * max(high - low, 1)
    ax.set_xlim(low - pad, high + pad)
    ax.set_ylim(-depth, 1.4)
    ax.axis("off")
    ax.plot([low, high], [0, 0], color=INK, lw=1, clip_on=False)
    for tick in range(1, k + 1):
        ax.plot([tick, tick], [0, 0.15], color=INK, lw=1)
        ax.text(tick, 0.22, str(tick), ha="center", va="bottom", fontsize=9)
    cd = float(result["cd"])
    if np.isfinite(cd):
        end = min(low + cd, high + pad)
        bar = {"arrowstyle": "|-|,widthA=0.3,widthB=0.3", "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", (end, 1.0), (low, 1.0), arrowprops=bar)
        ax.text((low + end) / 2, 1.08, f"CD = {cd:.3g}", ha="center", va="bottom", fontsize=9)
    for place, method in enumerate(order):
        near = place < left
        height = -(bars + 0.4 + 0.7 * (place if near else k - 1 - place))
        edge = low - 0.1 * pad if near else high + 0.1 * pad
        ax.plot([ranks[method], ranks[method], edge], [0, height, height], color=INK, lw=0.8)
        label = f"{names[method]} ({ranks[method]:.2f})"
        side = "right" if near else "left"
        literal([ax.text(edge, height, f"{label} " if near else f" {label}", ha=side, va="center", fontsize=9)])
    for column in range(groups):
        inside = ranks[member[:, column]]
        y = -0.3 - 0.35 * column
        slack = 0.01 * (high - low + 2 * pad)
        ax.plot([inside.min() - slack, inside.max() + slack], [y, y], color=INK, lw=3.5, solid_capstyle="butt")
    if title:
        ax.set_title(title)
    return ax


def plot_bias(
    table: xr.Dataset, *, x: str = "size", columns: str = "method", spread: bool = True, figure: Figure | None = None
) -> np.ndarray:
    """Draw mean bias by sample size, one column of panels per method, with the standard deviation below.

    Parameters
    ----------
    table : Dataset
        From `bias_table`, over `x`, `columns` and at most one further dim (such as ``dataset``), whose labels become
        lines.
    x : str
        The dim along the horizontal axis.
    columns : str
        The dim whose labels get a column of panels each.
    spread : bool
        Whether to add the second row, the standard deviation of the bias.
    figure : matplotlib Figure, optional
        Where to draw; a new one otherwise.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        Rows (bias, spread) by columns (methods); their figure is ``axes[0, 0].figure``. Error bars are the
        confidence limits of the mean; bias above zero is optimistic.

    Raises
    ------
    InputError
        `table` does not come from `bias_table`, lacks the dims named, or has more than one further dim.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> bias = xr.DataArray(np.random.default_rng(1).normal(size=(2, 3, 9)), dims=("method", "size", "trial"))
    >>> cs.plot_bias(cs.bias_table(bias, 0 * bias, dim="trial")).shape
    (2, 2)
    """
    if not isinstance(table, xr.Dataset) or not {"estimate", "conf_low", "conf_high", "std_dev"} <= {*table.data_vars}:
        raise InputError("`table` must come from bias_table().")
    mean = table["estimate"]
    check_dim(mean.dims, x, "x")
    if columns not in mean.dims:
        table = table.drop_vars(columns, errors="ignore").expand_dims({columns: [""]})
        mean = table["estimate"]
    lines = [dim for dim in mean.dims if dim not in (x, columns)]
    if len(lines) > 1:
        raise InputError(f"`table` has dims {show(lines)} besides {x!r} and {columns!r}; at most one can become lines.")
    heads = labels_of(table, columns)
    rows = 2 if spread else 1
    if figure is None:
        figure = figure_class()(figsize=(2.6 * len(heads) + 0.6, 2.4 * rows), layout="constrained")
    panels: np.ndarray = figure.subplots(rows, len(heads), sharex=True, sharey="row", squeeze=False)
    where = np.arange(table.sizes[x], dtype=float)  # sizes are often 20 ... 1500: evenly spaced, as categories
    names: list[Any] = labels_of(table, lines[0]) if lines else [None]
    for column, head in enumerate(heads):
        part = table.isel({columns: column})
        for at, name in enumerate(names):
            one = part.isel({lines[0]: at}) if lines else part
            look = {**line_style(at), "ms": 3, "lw": 1}
            centre = one["estimate"].values
            bars = np.nan_to_num(np.stack([centre - one["conf_low"].values, one["conf_high"].values - centre]))
            dodge = 0.3 * ((at + 0.5) / len(names) - 0.5)
            label = None if name is None else str(name)
            panels[0, column].errorbar(where + dodge, centre, yerr=bars, capsize=2, label=label, **look)
            if spread:
                panels[1, column].plot(where, one["std_dev"].values, **look)
        panels[0, column].axhline(0, color=MUTED, lw=0.8, zorder=0)
        literal([panels[0, column].set_title(str(head), fontsize=10)])
        panels[-1, column].set_xlabel(x)
    panels[0, 0].set_ylabel("mean bias")
    if spread:
        panels[1, 0].set_ylabel("standard deviation")
    for panel in panels.ravel():
        calm(panel)
    for panel in panels[-1]:
        panel.set_xticks(where, [str(spot) for spot in labels_of(table, x)], rotation=45, fontsize=8)
    if lines:
        entries = panels[0, 0].get_legend_handles_labels()
        literal(figure.legend(*entries, loc="outside right center", title=str(lines[0]), fontsize=8).get_texts())
    return panels
