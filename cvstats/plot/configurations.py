"""Figures of all configurations: their scores beside the best, and against a tuning value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_count, plain, show
from cvstats.metrics import traits_of
from cvstats.tables import words

from .style import axes, drawable, finished, line_style, literal, row_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_configurations(
    result: xr.Dataset, *, top: int = 30, ax: Axes | None = None, title: str = "", longest: int = words.LONGEST
) -> Axes:
    """Draw the difference of every configuration from the best one, the best first.

    Parameters
    ----------
    result : Dataset
        From `best_set`.
    top : int
        How many configurations to show, from the best on.
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.
    title : str
        Shown above the axes.
    longest : int
        Characters of a name that are shown; the middle of longer ones is left out.

    Returns
    -------
    matplotlib.axes.Axes
        Dots are differences of plain scores, bars pointwise intervals at the level of the set (1.96 standard errors
        for 95 %); filled dots are in the set, open ones are not.

    Raises
    ------
    InputError
        `result` is not from `best_set`, or holds several data sets.

    Examples
    --------
    >>> import cvstats as cs
    >>> ax = cs.plot_configurations(cs.best_set(cs.simulate_cube(60, 8, rng=1), "accuracy", times=50, rng=1))
    >>> ax.get_xlabel()
    'accuracy: difference from the best'
    """
    from scipy.special import ndtri

    drawable(result, "result", "best_set()", ("difference", "std_error", "in_set"), {"configuration"})
    top, longest = check_count(top, "top"), check_count(longest, "longest", minimum=5)
    gap, error = result["difference"].values.astype(float), result["std_error"].values.astype(float)
    order = np.argsort(np.where(np.isnan(gap), np.inf, np.abs(gap)), kind="stable")[:top]
    order = order[np.isfinite(gap[order])]
    if not order.size:
        raise InputError("`result` has no configuration with a difference from the best; all of them are NaN.")
    ax, shades = axes(ax, 6.8, 0.9 + 0.26 * len(order), rows=len(order))
    at, reach = np.arange(len(order)), float(ndtri((1 + float(result["conf_level"])) / 2)) * error[order]
    inside = result["in_set"].values.astype(bool)[order]
    ax.axvline(0, color=shades.muted, lw=0.8, zorder=1)
    ax.hlines(at, gap[order] - reach, gap[order] + reach, color=shades.honest, lw=1.6, zorder=2)
    for kept, fill, name in ((inside, shades.honest, "cannot be excluded"), (~inside, shades.paper, "excluded")):
        label = name if kept.any() else ""
        ax.plot(gap[order][kept], at[kept], "o", mfc=fill, mec=shades.honest, ms=5.5, ls="", zorder=3, label=label)
    names = words.labels_of(result, "configuration")
    row_labels(ax, [words.short(names[place], longest) for place in order])
    name = words.metric_words(plain(result["metric"].values[()])) if "metric" in result.coords else "score"
    return finished(ax, title, x=f"{name}: difference from the best", grid="x", above=2)


def plot_scores_by(
    scores: xr.DataArray, coordinate: str, *, family: str | None = None, ax: Axes | None = None, title: str = ""
) -> Axes:
    """Draw the score of every configuration against one of its tuning values.

    Parameters
    ----------
    scores : DataArray
        From `score`: one number per configuration, with tuning values as coordinates.
    coordinate : str
        The tuning value: a coordinate over ``configuration``. Positive numbers over more than a factor of 30 are drawn
        on a logarithmic axis; words become rows of points.
    family : str, optional
        A coordinate whose values get their own colour and marker.
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.
    title : str
        Shown above the axes.

    Returns
    -------
    matplotlib.axes.Axes
        The best score is circled.

    Raises
    ------
    InputError
        There is no such coordinate over ``configuration``, or no configuration has both a score and a value.

    Examples
    --------
    >>> import cvstats as cs
    >>> scores = cs.score(cs.example_cube().isel(repeat=0), "auc")
    >>> cs.plot_scores_by(scores, "C", family="family").get_xlabel()
    'C'
    """
    if not isinstance(scores, xr.DataArray) or scores.dims != ("configuration",):
        raise InputError("`scores` must be a DataArray over 'configuration' alone, such as score(cube, metric) gives.")
    own = [str(name) for name, coord in scores.coords.items() if coord.dims == ("configuration",)]
    for argument, name in (("coordinate", coordinate), ("family", family)):
        if name is not None and name not in own:
            raise InputError(f"`{argument}`: {name!r} is no coordinate over 'configuration'; there are {show(own)}.")
    value, held = scores.values.astype(float), scores[coordinate].values
    numeric = held.dtype.kind in "fiu"
    level, place = (None, held.astype(float)) if numeric else np.unique(held.astype(str), return_inverse=True)
    usable = np.isfinite(value) & np.isfinite(place)
    if not usable.any():
        raise InputError(f"`coordinate`: no configuration has both a score and a value of {coordinate!r}.")
    ax, shades = axes(ax, 6.4, 3.4)
    group = scores[family].values.astype(str) if family is not None else np.full(len(value), "")
    for at, name in enumerate(dict.fromkeys(group[usable].tolist())):
        look = {**line_style(at), "ls": ""}
        rows = usable & (group == name)
        ax.plot(place[rows], value[rows], ms=5, alpha=0.8, label=words.short(name, 26), **look)
    known = traits_of(str(plain(scores["metric"].values[()]))) if "metric" in scores.coords else None
    sign = known.sign if known else 1
    best = int(np.nanargmax(np.where(usable, sign * value, -np.inf)))
    ax.plot(place[best], value[best], "o", mfc="none", mec=shades.claim, mew=1.6, ms=12, label="best")
    if numeric and (place[usable] > 0).all() and np.ptp(np.log(place[usable])) > np.log(30):
        ax.set_xscale("log")
    elif level is not None:
        ax.set_xticks(range(len(level)))
        literal(ax.set_xticklabels([words.short(name, 18) for name in level], rotation=30 if len(level) > 4 else 0))
    label = words.metric_words(known.name) if known else "score"
    ax.tick_params(colors=shades.ink)
    literal([ax.xaxis.label])
    return finished(ax, title, x=words.printable(coordinate), y=f"plain CV {label}", grid="y", above=0)
