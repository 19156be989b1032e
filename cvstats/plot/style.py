"""What all figures share: where they are drawn, colours that survive a photocopier, and text taken literally."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import xarray as xr

from cvstats._check import InputError, show

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

# Okabe and Ito's palette; each colour comes with its own marker and dash, so that colour is never the only cue
INK, MUTED, RULE = "#1b1b1b", "#6b6b6b", "#c8c8c8"
HONEST, CLAIM, THIRD = "#0072b2", "#d55e00", "#009e73"
COLOURS = (INK, HONEST, CLAIM, THIRD, "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (8, 3)), (0, (3, 1)), (0, (1, 3)))


def axes(ax: Axes | None, width: float = 6.4, height: float = 3.6) -> Axes:
    """Return `ax`, or the axes of a new figure that no global state knows of."""
    if ax is None:
        made: Axes = figure_class()(figsize=(width, height), layout="constrained").subplots()
        return made
    if not hasattr(ax, "plot") or not hasattr(ax, "figure"):
        raise InputError(f"`ax` must be a matplotlib Axes; got {type(ax).__name__}.")
    return ax


def figure_class() -> Any:
    """Return matplotlib's Figure, or say how to install it."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('figures need matplotlib: pip install "cvstats[plot]"') from error
    return Figure


def line_style(at: int) -> dict[str, Any]:
    """Return colour, marker and dash of the line number `at`; colour is never the only cue."""
    return {"color": COLOURS[at % 7], "marker": MARKERS[at % 7], "ls": DASHES[at % 7]}


def titled(ax: Axes, title: str, **options: Any) -> Axes:
    """Put a title, if there is one, above the left end of the axes; return the axes."""
    if title:
        literal([ax.set_title(title, loc="left", **options)])
    return ax


def calm(ax: Axes, *, grid: str = "") -> None:
    """Leave the two axes that carry a scale, and a light grid along one of them."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(MUTED)
    ax.tick_params(colors=INK, width=0.8)
    if grid:
        ax.grid(axis=grid, color=RULE, lw=0.6)  # type: ignore[arg-type]
        ax.set_axisbelow(True)


def literal(texts: Iterable[Text]) -> None:
    """Show texts as they are: a ``$`` in a user's name is no formula, a ``_`` no error of TeX."""
    for text in texts:
        text.set_parse_math(False)
        text.set_usetex(False)


def width_of(ax: Axes) -> float:
    """Return the width of the space that axes have, in inches."""
    return float(ax.get_figure(root=True).get_figwidth() * ax.get_position(original=True).width)  # type: ignore[union-attr]


def legend_above(ax: Axes, most: int) -> None:
    """Put the legend above the axes, in as many columns as fit."""
    handles, labels = ax.get_legend_handles_labels()
    if len(labels) > 1:
        room = width_of(ax) > 4
        place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": min(most, len(labels))}
        if not room:  # row names push the axes to the right
            place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": 2, "columnspacing": 1.0}
        ax.legend(handles, labels, frameon=False, fontsize=8.5 if room else 8, **place)


def row_labels(ax: Axes, names: list[str]) -> None:
    """Name the rows of a chart, the first one on top."""
    ax.set_yticks(range(len(names)))
    literal(ax.set_yticklabels(names))
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def need(result: Any, names: set[str], argument: str, source: str) -> None:
    """Raise unless `result` is a Dataset with the variables that a figure draws."""
    if not isinstance(result, xr.Dataset):
        raise InputError(f"`{argument}` must be a result (Dataset) from {source}; got {type(result).__name__}.")
    lost = sorted(names - {str(name) for name in result.variables})
    if lost:
        raise InputError(f"`{argument}` must come from {source}: it lacks {show(lost)}.")


def one_table(result: xr.Dataset, variable: str, allowed: set[str], argument: str) -> None:
    """Raise when there are dims left that a figure cannot show."""
    extra = [dim for dim in result[variable].dims if dim not in allowed]
    if extra:
        raise InputError(f"`{argument}` has dims {show(extra)}; pick one first with .sel().")
