"""Figures of studies: bias, critical differences, coverage of intervals, error by prior, early dropping."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_dim, show
from cvstats.tables.words import count, labels_of, short

from . import style
from .style import NOTE, axes, drawable, finished, literal, palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COVERED = "intervals that cover the truth (%)"


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
    drawable(result, "result", "critical_difference()", ("mean_rank", "cd", "clique"))
    if result["mean_rank"].ndim != 1:
        raise InputError(f"`result` has dims {show(result['mean_rank'].dims)}; pick one table first with .sel().")
    by = result["mean_rank"].dims[0]
    names, ranks = labels_of(result, by), result["mean_rank"].values
    member = result["clique"].transpose("clique", by).values.astype(bool)
    k, groups = len(ranks), len(member)
    left, bars = (k + 1) // 2, 0.35 * groups
    depth = bars + 0.7 * max(left, k - left) + 0.4
    ax, shades = axes(ax, 7, 1.0 + 0.45 * (depth + 1))
    low, high, room = 1.0, float(k), style.characters(ax, 0.33, NOTE) - 7  # letters of a name beside its rank
    pad = 0.35 * max(high - low, 1)
    ax.set(xlim=(low - pad, high + pad), ylim=(-depth, 1.4))
    ax.axis("off")
    ax.plot([low, high], [0, 0], color=shades.ink, lw=1, clip_on=False)
    for tick in range(1, k + 1):
        ax.plot([tick, tick], [0, 0.15], color=shades.ink, lw=1)
        ax.text(tick, 0.22, str(tick), ha="center", va="bottom", fontsize=NOTE)
    cd = float(result["cd"])
    if np.isfinite(cd):
        end = min(low + cd, high + pad)
        bar = {"arrowstyle": "|-|,widthA=0.3,widthB=0.3", "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", (end, 1.0), (low, 1.0), arrowprops=bar)
        ax.text((low + end) / 2, 1.08, f"CD = {cd:.3g}", ha="center", va="bottom", fontsize=NOTE)
    for place, method in enumerate(np.argsort(ranks, kind="stable")):
        near = place < left
        height = -(bars + 0.4 + 0.7 * (place if near else k - 1 - place))
        edge, side = (low - 0.1 * pad, "right") if near else (high + 0.1 * pad, "left")
        ax.plot([ranks[method], ranks[method], edge], [0, height, height], color=shades.ink, lw=0.8)
        text = f" {short(names[method], room)} ({ranks[method]:.2f}) "
        literal([ax.text(edge, height, text, ha=side, va="center", fontsize=NOTE)])
    slack = 0.01 * (high - low + 2 * pad)
    for row, inside in enumerate(member):
        ends = ranks[inside].min() - slack, ranks[inside].max() + slack
        ax.plot(ends, [-0.3 - 0.35 * row] * 2, color=shades.ink, lw=3.5, solid_capstyle="butt")
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
    drawable(table, "table", "bias_table()", ("estimate", "conf_low", "conf_high", "std_dev"))
    check_dim(table["estimate"].dims, x, "x")
    if columns not in table["estimate"].dims:
        table = table.drop_vars(columns, errors="ignore").expand_dims({columns: [""]})
    lines = style.lines_of(table, "estimate", "table", x, columns)
    heads, rows = labels_of(table, columns), 2 if spread else 1
    if figure is None:
        figure = style.new_figure(2.6 * len(heads) + 0.6, 2.4 * rows)
    panels: np.ndarray = figure.subplots(rows, len(heads), sharex=True, sharey="row", squeeze=False)
    where = np.arange(table.sizes[x], dtype=float)  # sizes are often 20 ... 1500: evenly spaced, as categories
    for column, head in enumerate(heads):
        for at, (name, part) in enumerate(lines):
            one, look = part.isel({columns: column}), {**style.line_style(at), "ms": 3, "lw": 1}
            centre = one["estimate"].values
            bars = np.nan_to_num(np.stack([centre - one["conf_low"].values, one["conf_high"].values - centre]))
            dodge = 0.3 * ((at + 0.5) / len(lines) - 0.5)
            panels[0, column].errorbar(where + dodge, centre, yerr=bars, capsize=2, label=name, **look)
            if spread:
                panels[1, column].plot(where, one["std_dev"].values, **look)
        panels[0, column].axhline(0, color=palette().muted, lw=0.8, zorder=0)
        literal([panels[0, column].set_title(str(head), fontsize="medium")])
        panels[-1, column].set_xticks(where, [str(spot) for spot in labels_of(table, x)], rotation=45, fontsize=NOTE)
        for row, name in enumerate(("mean bias", "standard deviation")[:rows]):
            finished(panels[row, column], x=x if row == rows - 1 else "", y="" if column else name)
    if len(lines) > 1 or lines[0][1] is not table:
        entries, (along,) = panels[0, 0].get_legend_handles_labels(), {*table["estimate"].dims} - {x, columns}
        literal(figure.legend(*entries, loc="outside right center", title=str(along), fontsize=NOTE).get_texts())
    return panels


def plot_coverage(
    study: xr.Dataset, *, x: str | None = None, level: float | None = None, ax: Axes | None = None, title: str = ""
) -> Axes:
    """Draw how often intervals covered the truth, against the level they promise.

    Parameters
    ----------
    study : Dataset
        From `coverage`, or several stacked along ``method`` (`bind`) and other dims (such as ``size``, ``design``).
    x : str, optional
        The dim along the horizontal axis (numbers, such as sample sizes); one more dim may become lines. Without it
        every cell is a row.
    level : float, optional
        The promised level; by default the study's ``conf_level``.
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.
    title : str
        Shown above the axes.

    Returns
    -------
    matplotlib.axes.Axes
        Bars are two Monte-Carlo standard errors on either side.

    Raises
    ------
    InputError
        `study` does not come from `coverage`, mixes levels, or has more than one dim besides `x`.

    Examples
    --------
    >>> import cvstats as cs
    >>> study = cs.coverage(lambda rng: cs.simulate_cube(40, 20, rng=rng),
    ...                     lambda cube, rng: cs.bbc(cube, "accuracy", times=50, rng=rng), repetitions=20, rng=1)
    >>> cs.plot_coverage(study).get_xlabel()
    'intervals that cover the truth (%)'
    """
    drawable(study, "study", "coverage()", ("coverage", "coverage_std_error"))
    share, error = 100 * study["coverage"], 200 * study["coverage_std_error"]
    own = np.asarray(study["conf_level"].values if "conf_level" in study.coords else np.nan, float)
    levels = np.unique(own[np.isfinite(own)]) if level is None else [level]
    if len(levels) > 1:
        raise InputError(f"`study` holds levels {show(levels)}; pick one, or say what to draw with level=.")
    promised = 100 * float(levels[0]) if len(levels) else np.nan
    dash, label = (0, (4, 2)), f"promised: {promised:g}%"
    promise: dict[str, Any] = {"color": palette().muted, "lw": 1, "ls": dash, "label": label}
    if x is None:
        dims = share.dims or ("method",)
        before = {dim: "" if dim == "method" else f"{dim} " for dim in dims}
        parts = [[before[dim] + name for name in style.line_names(study, dim, 20)] for dim in dims]
        names = [short(", ".join(row)) for row in product(*parts)]
        ax, shades = axes(ax, 6.4, 0.9 + 0.34 * len(names), rows=len(names))
        rows, middle, half = np.arange(len(names)), share.values.ravel(), error.values.ravel()
        ax.axvline(promised, zorder=1, **promise)
        ax.hlines(rows, middle - half, np.minimum(middle + half, 100), color=shades.honest, lw=2)
        ax.plot(middle, rows, "o", color=shades.ink, ms=6)
        style.row_labels(ax, names)
        return finished(ax, title, x=COVERED, grid="x")
    check_dim(share.dims, x, "x")
    lines = style.lines_of(study, "coverage", "study", x)
    ax, _ = axes(ax, 6.4, 3.4)
    where = np.asarray(labels_of(study, x))
    numeric = where.dtype.kind in "iuf"
    spot = where.astype(float) if numeric else np.arange(len(where), dtype=float)
    ax.axhline(promised, zorder=1, **promise)
    for at, (name, one) in enumerate(lines):
        middle, half = 100 * one["coverage"].values, 200 * np.nan_to_num(one["coverage_std_error"].values.astype(float))
        ax.errorbar(spot, middle, half, ms=5, lw=1.3, capsize=2, label=name, **style.line_style(at))
    if numeric and len(spot) > 2 and spot.min() > 0 and spot.max() / spot.min() > 8:
        ax.set_xscale("log")
        ax.minorticks_off()
    ax.set_xticks(spot, [short(label, 16) for label in where])
    literal(ax.get_xticklabels())
    words = "sample size" if x in ("size", "n_samples") else x.replace("_", " ")
    return finished(ax, title, x=words, y=COVERED, grid="y", above=0)


def plot_prior(result: xr.Dataset, *, ax: Axes | None = None, title: str = "", mark: float | None = None) -> Axes:
    """Draw the error rate against the probability of a class in the population.

    Parameters
    ----------
    result : Dataset
        From `prior_curve` (whose classical estimate becomes a dashed line), or `separate_cv` with several priors;
        configurations or methods become lines.
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.
    title : str
        Shown above the axes.
    mark : float, optional
        A prior to mark with a line, such as the share of the class in the data or in the population.

    Returns
    -------
    matplotlib.axes.Axes
        Lines with their intervals as bands.

    Raises
    ------
    InputError
        `result` has one prior only, or more than one dim besides ``prior``.

    Examples
    --------
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> curve = xr.Dataset({"estimate": ("prior", [0.1, 0.2])}, coords={"prior": [0.0, 1.0]})
    >>> cs.plot_prior(curve).get_ylabel()
    'error rate'
    """
    dims = {"prior", "method", "configuration"}
    drawable(result, "result", "prior_curve() or separate_cv(prior=[...])", ("estimate", "prior"), dims)
    if "prior" not in result["estimate"].dims:
        raise InputError("`result` has one prior only; a curve needs several, as from prior_curve().")
    lines = style.lines_of(result, "estimate", "result", "prior")
    ax, shades = axes(ax, 6.4, 3.6)
    prior = result["prior"].values.astype(float)
    for at, (name, one) in enumerate(lines):
        colour, dash = (style.line_style(at)[part] for part in ("color", "ls"))
        if {"conf_low", "conf_high"} <= set(result.data_vars):
            low, high = one["conf_low"].values.astype(float), one["conf_high"].values.astype(float)
            ax.fill_between(prior, low, high, color=colour, alpha=0.15, lw=0)
        ax.plot(prior, one["estimate"].values, color=colour, ls=dash, lw=1.7, label=name)
        if "classical" in one and one["classical"].ndim == 0 and np.isfinite(float(one["classical"])):
            label = "_nolegend_" if at else "classical CV"
            ax.axhline(float(one["classical"]), color=colour, lw=1, ls=style.DASHED, label=label, zorder=1)
    if mark is not None:
        ax.axvline(float(mark), color=shades.muted, lw=1, ls=style.DOTTED, label=f"prior {float(mark):g}")
    ax.set_ylim(bottom=0)
    known = "prior_class" in result.coords and result["prior_class"].ndim == 0
    which = f"class {short(result['prior_class'].item(), 24)}" if known else "the first class"
    return finished(ax, title, x=f"probability of {which} in the population", y="error rate", grid="y", above=0)


def plot_dropping(result: xr.Dataset, *, ax: Axes | None = None, title: str = "") -> Axes:
    """Draw how many configurations were still being trained, fold by fold, when losers are dropped early.

    Parameters
    ----------
    result : Dataset
        From `bbcd`, with ``dropped_after``.
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.
    title : str
        Shown above the axes.

    Returns
    -------
    matplotlib.axes.Axes
        The filled area is the work that was done, the hatched one the work saved.

    Raises
    ------
    InputError
        `result` does not come from `bbcd`, or holds several data sets.

    Examples
    --------
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> after = xr.Dataset({"dropped_after": ("configuration", [1.0, 2.0, float("nan")]), "models_trained": 13})
    >>> cs.plot_dropping(after).get_ylabel()
    'configurations trained'
    """
    drawable(result, "result", "bbcd()", ("dropped_after",), {"configuration"})
    ax, shades = axes(ax, 6.4, 3.2)
    after = result["dropped_after"].values.astype(float)
    total, dropped = len(after), after[np.isfinite(after)]
    folds = int(dropped.max(initial=0)) + 1
    if "models_trained" in result and len(dropped) < total:  # survivors are trained on every fold
        folds = round((float(result["models_trained"]) - float(dropped.sum())) / (total - len(dropped)))
    fold, edges = np.arange(1, folds + 1), np.arange(0.5, folds + 1)
    alive = total - (after[:, None] < fold).sum(axis=0)  # dropped after fold f: trained up to f
    saved: dict[str, Any] = {"fc": shades.paper, "ec": shades.muted, "hatch": "////", "lw": 0.6}
    ax.stairs(np.full(folds, total), edges, baseline=alive, fill=True, label="saved", **saved)
    ax.stairs(alive, edges, fill=True, fc=shades.honest, ec=shades.honest, alpha=0.9, label="trained")
    ax.set(xlim=(0.5, folds + 0.5), ylim=(0, total * 1.04))
    if folds <= 20:
        ax.set_xticks(fold)
    heading = f"{count(alive.sum())} of {count(total * folds)} models trained"
    if "speed_up" in result and np.isfinite(float(result["speed_up"])):
        heading += f", {float(result['speed_up']):.1f} times as fast"
    ax.legend(loc="upper right", frameon=True, framealpha=1, edgecolor="none", fontsize=NOTE)
    heading = f"{title}: {heading}" if title else heading
    return finished(ax, heading, x="fold, in the order of training", y="configurations trained", fontsize="medium")
