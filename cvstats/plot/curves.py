"""Figures of curves: what was chosen as it looks, and corrected, with limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import xarray as xr

from cvstats._check import plain

from .style import DASHED, DASHES, DOTTED, axes, drawable, finished, lines_of, palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 0.05  # how far below zero net benefit is shown


def plot_roc(curve: xr.Dataset, *, ax: Axes | None = None, title: str = "") -> Axes:
    """Draw a ROC curve: corrected with its limits, and as it looks.

    Parameters
    ----------
    curve : Dataset
        From `roc_curve`; levels of a subgroup become lines.
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.
    title : str
        Shown above the axes.

    Returns
    -------
    matplotlib.axes.Axes
        A solid line is the estimate, the shade its pointwise limits, a dashed line the naive curve, dotted is guessing.

    Examples
    --------
    >>> import cvstats as cs
    >>> curve = cs.roc_curve(cs.example_cube().isel(repeat=0), times=50, rng=1)
    >>> cs.plot_roc(curve).get_ylabel()
    'sensitivity'
    """
    ax = _drawn(curve, "false_positive_rate", "roc_curve()", ax)
    ax.plot([0, 1], [0, 1], color=palette().muted, lw=1, ls=DOTTED, label="guessing")
    return _unit(ax, title, "false positive rate", "sensitivity")


def plot_precision_recall(curve: xr.Dataset, *, ax: Axes | None = None, title: str = "") -> Axes:
    """Draw precision against recall: corrected with its limits, and as it looks.

    Parameters
    ----------
    curve : Dataset
        From `precision_recall_curve`; levels of a subgroup become lines.
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.
    title : str
        Shown above the axes.

    Returns
    -------
    matplotlib.axes.Axes
        A solid line is the estimate, the shade its pointwise limits, a dashed line the naive curve.

    Examples
    --------
    >>> import cvstats as cs
    >>> curve = cs.precision_recall_curve(cs.example_cube().isel(repeat=0), times=50, rng=1)
    >>> cs.plot_precision_recall(curve).get_xlabel()
    'recall'
    """
    return _unit(_drawn(curve, "recall", "precision_recall_curve()", ax), title, "recall", "precision")


def plot_calibration(curve: xr.Dataset, *, ax: Axes | None = None, title: str = "") -> Axes:
    """Draw a calibration curve, smooth or binned: corrected with its limits, and as it looks.

    Parameters
    ----------
    curve : Dataset
        From `calibration_curve`; levels of a subgroup become lines.
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.
    title : str
        Shown above the axes.

    Returns
    -------
    matplotlib.axes.Axes
        A solid line is the estimate, the shade its pointwise limits, a dashed line the naive curve; on the dotted line
        predicted risks are right.

    Examples
    --------
    >>> import cvstats as cs
    >>> curve = cs.calibration_curve(cs.example_cube().isel(repeat=0), by="brier", times=50, rng=1)
    >>> cs.plot_calibration(curve).get_ylabel()
    'observed share of events'
    """
    binned = isinstance(curve, xr.Dataset) and "bin" in curve.dims
    ax = _drawn(curve, "bin" if binned else "predicted", "calibration_curve()", ax)
    ax.plot([0, 1], [0, 1], color=palette().muted, lw=1, ls=DOTTED, label="as predicted")
    return _unit(ax, title, "predicted risk", "observed share of events")


def plot_decision(curve: xr.Dataset, *, ax: Axes | None = None, title: str = "") -> Axes:
    """Draw a decision curve: net benefit corrected with its limits, as it looks, and of treating all or none.

    Parameters
    ----------
    curve : Dataset
        From `decision_curve`, without levels of a subgroup (pick one with ``.sel``).
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.
    title : str
        Shown above the axes.

    Returns
    -------
    matplotlib.axes.Axes
        A solid line is the estimate, the shade its pointwise limits, a dashed line the naive curve; dotted is treating
        everybody, the line at zero nobody. What is far below zero is not shown.

    Examples
    --------
    >>> import cvstats as cs
    >>> curve = cs.decision_curve(cs.example_cube().isel(repeat=0), times=50, rng=1)
    >>> cs.plot_decision(curve).get_ylabel()
    'net benefit'
    """
    drawable(curve, "curve", "decision_curve()", ("estimate", "treat_all"), {"threshold"})
    ax = _drawn(curve, "threshold", "decision_curve()", ax)
    ax.plot(curve["threshold"], curve["treat_all"], color=palette().muted, lw=1.4, ls=DOTTED, label="treat all")
    ax.axhline(0, color=palette().muted, lw=1, label="treat none")
    top = max(float(curve[name].max()) for name in ("estimate", "naive", "treat_all"))
    ax.set(xlim=(0, 1), ylim=(-SHOWN, max(1.15 * top, SHOWN)))
    return finished(ax, title, x="risk threshold", y="net benefit", grid="y", above=0)


def _drawn(curve: xr.Dataset, dim: str, source: str, ax: Axes | None) -> Axes:
    """Draw what all curves have: estimate, limits and naive, a line for each level of at most one further dim."""
    drawable(curve, "curve", source, ("estimate", "conf_low", "conf_high", "naive", dim))
    lines = lines_of(curve, "estimate", "curve", dim)
    ax, shades = axes(ax, 5.6, 3.8)
    several = len(lines) > 1
    colours = [colour for colour in shades.lines if colour != shades.ink]
    for at, (name, line) in enumerate(lines):
        colour, dash = (colours[at % len(colours)], DASHES[at % 7]) if several else (shades.honest, "-")
        x = line["predicted" if dim == "bin" else dim].values
        limits = f"{100 * float(plain(line['conf_level'].item())):g} % limits" if not several else ""
        ax.fill_between(x, line["conf_low"], line["conf_high"], color=colour, alpha=0.18, lw=0, label=limits)
        look: dict[str, Any] = {"color": colour, "lw": 2, "ls": dash, "marker": "o" if dim == "bin" else "", "ms": 4}
        ax.plot(x, line["estimate"], label=name if several else "corrected", **look)
        if not several:
            ax.plot(x, line["naive"], color=shades.claim, lw=1.4, ls=DASHED, label="as it looks")
    return ax


def _unit(ax: Axes, title: str, x: str, y: str) -> Axes:
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
    return finished(ax, title, x=x, y=y, grid="y", above=0)
