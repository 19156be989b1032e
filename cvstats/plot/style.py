"""What all figures share: where they are drawn, colours that survive a photocopier, and text taken literally."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import xarray as xr

from cvstats._check import InputError, show
from cvstats.tables.words import labels_of, method_words, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

# Okabe and Ito's palette; each colour comes with its own marker and dash, so that colour is never the only cue
INK, MUTED, RULE = "#1b1b1b", "#6b6b6b", "#c8c8c8"
HONEST, CLAIM, THIRD = "#0072b2", "#d55e00", "#009e73"
COLOURS = (INK, HONEST, CLAIM, THIRD, "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHED, DOTTED = (0, (5, 2)), (0, (1, 1.5))
DASHES = ("-", DASHED, DOTTED, (0, (5, 1.5, 1, 1.5)), (0, (8, 3)), (0, (3, 1)), (0, (1, 3)))


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


def finished(ax: Axes, title: str = "", *, x: str = "", y: str = "", grid: str = "", **options: Any) -> Axes:
    """Return the axes with names, few lines, an unobtrusive grid and, unless it is empty, a title."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(MUTED)
    ax.tick_params(colors=INK, width=0.8)
    if grid:
        ax.grid(axis=grid, color=RULE, lw=0.6)  # type: ignore[arg-type]
        ax.set_axisbelow(True)
    ax.set(xlabel=x or ax.get_xlabel(), ylabel=y or ax.get_ylabel())
    if title:
        literal([ax.set_title(title, loc="left", **options)])
    return ax


def literal(texts: Iterable[Text]) -> None:
    """Show texts as they are: a ``$`` in a user's name is no formula, a ``_`` no error of TeX."""
    for text in texts:
        text.set_parse_math(False)
        text.set_usetex(False)


def width_of(ax: Axes) -> float:
    """Return the width of the space that axes have, in inches."""
    return float(ax.get_figure(root=True).get_figwidth() * ax.get_position(original=True).width)  # type: ignore[union-attr]


def legend(ax: Axes, above: int = 0) -> None:
    """Explain several marks outside the axes: at the right, or in up to `above` columns on top."""
    handles, labels = ax.get_legend_handles_labels()
    place: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
    if above and width_of(ax) > 4:
        place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": min(above, len(labels))}
    elif above:  # row names push the axes to the right
        place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": 2, "columnspacing": 1.0, "fontsize": 8}
    if len([label for label in labels if label]) > 1:
        literal(ax.legend(handles, labels, **{"frameon": False, "fontsize": 8.5, **place}).get_texts())


def row_labels(ax: Axes, names: list[str]) -> None:
    """Name the rows of a chart, the first one on top."""
    ax.set_yticks(range(len(names)))
    literal(ax.set_yticklabels(names))
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def drawable(result: Any, argument: str, source: str, needed: Sequence[str], dims: set[str] | None = None) -> None:
    """Raise unless `result` has the variables of a figure, the first of them without other dims than those shown."""
    if not isinstance(result, xr.Dataset):
        raise InputError(f"`{argument}` must be a result (Dataset) from {source}; got {type(result).__name__}.")
    lost = [name for name in needed if name not in result.variables]
    if lost:
        raise InputError(f"`{argument}` must come from {source}: it lacks {show(lost)}.")
    extra = [dim for dim in result[needed[0]].dims if dims is not None and dim not in dims]
    if extra:
        raise InputError(f"`{argument}` has dims {show(extra)}; pick one first with .sel().")


def lines_of(table: xr.Dataset, variable: str, argument: str, *shown: str) -> list[tuple[str, xr.Dataset]]:
    """Return the parts of a table that become lines, with their names: at most one dim besides those shown."""
    dims = [dim for dim in table[variable].dims if dim not in shown]
    if len(dims) > 1:
        known = " and ".join(map(repr, shown))
        raise InputError(
            f"`{argument}` has dims {show(dims)} besides {known}; at most one can become lines. Use .sel()."
        )
    if not dims:
        return [(line_names(table, "method")[0], table)]
    return [(name, table.isel({dims[0]: at})) for at, name in enumerate(line_names(table, dims[0]))]


def line_names(table: xr.Dataset, dim: Hashable, longest: int = 30) -> list[str]:
    """Return the names along a dim as a figure shows them; methods in words."""
    words = method_words if dim == "method" else str
    labels = (
        labels_of(table, dim) if dim in table.dims else [table["method"].item() if "method" in table.coords else ""]
    )
    return [short(words(name), longest) for name in labels]
