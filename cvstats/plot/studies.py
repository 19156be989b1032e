"""Figures of studies: coverage of intervals, error by prior, early dropping."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_dim, show
from cvstats.tables.words import count, labels_of, method_words, short

from .style import HONEST, INK, MUTED, axes, calm, line_style, literal, need, one_table, row_labels, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    need(study, {"coverage", "coverage_std_error"}, "study", "coverage()")
    promised = _promised(study, level)
    cells = study["coverage"]
    if x is None:
        return _coverage_rows(study, promised, ax, title)
    check_dim(cells.dims, x, "x")
    lines = _lines(study, "coverage", x, "study")
    ax = axes(ax, 6.4, 3.4)
    where = np.asarray(labels_of(study, x))
    numeric = where.dtype.kind in "iuf"
    spot = where.astype(float) if numeric else np.arange(len(where), dtype=float)
    _promise(ax, promised, vertical=False)
    for at, (name, one) in enumerate(lines):
        share, error = (one[part].values.astype(float) for part in ("coverage", "coverage_std_error"))
        bars = 200 * np.nan_to_num(error)
        ax.errorbar(spot, 100 * share, bars, ms=5, lw=1.3, capsize=2, label=name, **line_style(at))
    if numeric and len(spot) > 2 and spot.min() > 0 and spot.max() / spot.min() > 8:
        ax.set_xscale("log")
        ax.minorticks_off()
    ax.set_xticks(spot, [short(label, 16) for label in where])
    literal(ax.get_xticklabels())
    ax.set_xlabel({"size": "sample size", "n_samples": "sample size"}.get(x, x.replace("_", " ")))
    ax.set_ylabel("intervals that cover the truth (%)")
    calm(ax, grid="y")
    _legend(ax)
    return titled(ax, title)


def _coverage_rows(study: xr.Dataset, promised: float, ax: Axes | None, title: str) -> Axes:
    cells = study["coverage"]
    names = _row_names(study, cells.dims)
    ax = axes(ax, 6.4, 0.9 + 0.34 * len(names))
    share, error = 100 * cells.values.ravel(), 200 * study["coverage_std_error"].values.ravel()
    rows = np.arange(len(names))
    _promise(ax, promised, vertical=True)
    ax.hlines(rows, share - error, np.minimum(share + error, 100), color=HONEST, lw=2)
    ax.plot(share, rows, "o", color=INK, ms=6)
    row_labels(ax, [short(name) for name in names])
    ax.set_xlabel("intervals that cover the truth (%)")
    calm(ax, grid="x")
    return titled(ax, title)


def _promised(study: xr.Dataset, level: float | None) -> float:
    own = np.asarray(study["conf_level"].values if "conf_level" in study.coords else np.nan, float)
    levels = np.unique(own[np.isfinite(own)]) if level is None else [level]
    if len(levels) > 1:
        raise InputError(f"`study` holds levels {show(levels)}; pick one, or say what to draw with level=.")
    return 100 * float(levels[0]) if len(levels) else np.nan


def _promise(ax: Axes, promised: float, *, vertical: bool) -> None:
    if np.isfinite(promised):
        draw = ax.axvline if vertical else ax.axhline
        draw(promised, color=MUTED, lw=1, ls=(0, (4, 2)), label=f"promised: {promised:g}%", zorder=1)


def _legend(ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    if len([label for label in labels if label]) > 1:
        legend = ax.legend(handles, labels, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8.5)
        literal(legend.get_texts())


def _lines(table: xr.Dataset, variable: str, x: str, argument: str) -> list[tuple[str, xr.Dataset]]:
    """Return the lines that a figure over `x` has, and what they are called."""
    dims = [dim for dim in table[variable].dims if dim != x]
    if len(dims) > 1:
        raise InputError(f"`{argument}` has dims {show(dims)} besides {x!r}; at most one can become lines. Use .sel().")
    along = dims[0] if dims else None
    return [
        (name, table if along is None else table.isel({along: at})) for at, name in enumerate(_line_names(table, along))
    ]


def _line_names(table: xr.Dataset, dim: Hashable | None) -> list[str]:
    """Return what the lines along a dim are called; without one, the name of the only line."""
    if dim is None:
        alone = "method" in table.coords and table["method"].ndim == 0
        return [short(method_words(table["method"].item()) if alone else "", 30)]
    return [short(method_words(name), 30) for name in labels_of(table, dim)]


def _row_names(table: xr.Dataset, dims: tuple[Hashable, ...]) -> list[str]:
    parts = [
        _line_names(table, dim) if dim == "method" else [f"{dim} {short(name, 20)}" for name in labels_of(table, dim)]
        for dim in dims
    ]
    return [", ".join(row) for row in product(*parts)] if dims else _line_names(table, None)


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
    need(result, {"estimate", "prior"}, "result", "prior_curve() or separate_cv(prior=[...])")
    if "prior" not in result["estimate"].dims:
        raise InputError("`result` has one prior only; a curve needs several, as from prior_curve().")
    one_table(result, "estimate", {"prior", "method", "configuration"}, "result")
    lines = _lines(result, "estimate", "prior", "result")
    ax = axes(ax, 6.4, 3.6)
    prior = result["prior"].values.astype(float)
    for at, (name, one) in enumerate(lines):
        style = line_style(at)
        if {"conf_low", "conf_high"} <= set(result.data_vars):
            low, high = one["conf_low"].values.astype(float), one["conf_high"].values.astype(float)
            ax.fill_between(prior, low, high, color=style["color"], alpha=0.15, lw=0)
        ax.plot(prior, one["estimate"].values, color=style["color"], ls=style["ls"], lw=1.7, label=name)
        _classical(ax, one, style["color"], labelled=at == 0)
    if mark is not None:
        ax.axvline(float(mark), color=MUTED, lw=1, ls=(0, (1, 1.5)), label=f"prior {float(mark):g}")
    ax.set_xlabel(_prior_label(result))
    ax.set_ylabel("error rate")
    ax.set_ylim(bottom=0)
    calm(ax, grid="y")
    _legend(ax)
    return titled(ax, title)


def _classical(ax: Axes, one: xr.Dataset, colour: str, *, labelled: bool) -> None:
    """Draw what classical cross-validation gives, whatever the prior, where the result knows it."""
    if "classical" in one and one["classical"].ndim == 0 and np.isfinite(float(one["classical"])):
        label = "classical CV" if labelled else "_nolegend_"
        ax.axhline(float(one["classical"]), color=colour, lw=1, ls=(0, (5, 2)), label=label, zorder=1)


def _prior_label(result: xr.Dataset) -> str:
    for name in ("prior_class", "class", "label_class"):
        if name in result.coords and result[name].ndim == 0:
            return f"probability of class {short(result[name].item(), 24)} in the population"
    return "probability of the first class in the population"


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
    need(result, {"dropped_after"}, "result", "bbcd()")
    one_table(result, "dropped_after", {"configuration"}, "result")
    ax = axes(ax, 6.4, 3.2)
    after = result["dropped_after"].values.astype(float)
    total, folds = len(after), _fold_count(result, after)
    fold = np.arange(1, folds + 1)
    alive = np.array([int((~(after < number)).sum()) for number in fold])  # dropped after fold f: trained up to f
    edges = np.arange(0.5, folds + 1)
    saved: dict[str, Any] = {"fc": "white", "ec": MUTED, "hatch": "////", "lw": 0.6}
    ax.stairs(np.full(folds, total), edges, baseline=alive, fill=True, label="saved", **saved)
    ax.stairs(alive, edges, fill=True, fc=HONEST, ec=HONEST, alpha=0.9, label="trained")
    ax.set_xlim(0.5, folds + 0.5)
    ax.set_ylim(0, total * 1.04)
    if folds <= 20:
        ax.set_xticks(fold)
    ax.set_xlabel("fold, in the order of training")
    ax.set_ylabel("configurations trained")
    calm(ax)
    done = int(alive.sum())
    heading = f"{count(done)} of {count(total * folds)} models trained"
    if "speed_up" in result and np.isfinite(float(result["speed_up"])):
        heading += f", {float(result['speed_up']):.1f} times as fast"
    ax.legend(loc="upper right", frameon=True, framealpha=1, edgecolor="none", fontsize=8.5)
    return titled(ax, f"{title}: {heading}" if title else heading, fontsize=10)


def _fold_count(result: xr.Dataset, after: np.ndarray) -> int:
    """Return the number of folds: from the models trained, which count each configuration's folds."""
    dropped = after[np.isfinite(after)]
    kept = len(after) - len(dropped)
    if "models_trained" in result and kept:
        return round((float(result["models_trained"]) - float(dropped.sum())) / kept)
    return int(dropped.max()) + 1 if len(dropped) else 1
