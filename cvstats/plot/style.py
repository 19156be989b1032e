"""What all figures share: where they are drawn, colours that survive a photocopier, and text taken literally."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr

from cvstats._check import InputError, is_number, show
from cvstats.tables.words import labels_of, method_words, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

# Okabe and Ito's palette; each colour comes with its own marker and dash, so that colour is never the only cue
INK, MUTED, RULE = "#1b1b1b", "#6b6b6b", "#c8c8c8"
HONEST, CLAIM = "#0072b2", "#d55e00"
COLOURS = (HONEST, CLAIM, "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHED, DOTTED = (0, (5, 2)), (0, (1, 1.5))
DASHES = ("-", DASHED, DOTTED, (0, (5, 1.5, 1, 1.5)), (0, (8, 3)), (0, (3, 1)), (0, (1, 3)))
NOTE = "small"  # size of numbers and legends, beside the reader's font.size
GAP = 6  # points between axes and title
ROOMY = 4  # inches of axes in which words fit beside marks
COLUMNS = {"single": 3.35, "double": 6.85}  # inches


class Palette(NamedTuple):
    """The colours of a figure."""

    ink: str  # texts and main marks
    muted: str
    rule: str
    paper: str  # inside of open marks
    honest: str  # what was corrected
    claim: str  # what plain CV says
    lines: tuple[str, ...]


def palette() -> Palette:
    """Return the colours: our own, or those of the reader's style where it says something else than matplotlib does."""
    import matplotlib as mpl
    from matplotlib.colors import to_hex, to_rgb

    set_to: dict[str, Any] = mpl.rcParams  # type: ignore[assignment]
    theirs: dict[str, Any] = mpl.rcParamsDefault  # type: ignore[assignment]
    own = {name for name in ("axes.facecolor", "axes.prop_cycle", "text.color") if set_to[name] != theirs[name]}
    ink, muted, rule, paper = INK, MUTED, RULE, to_hex(set_to["axes.facecolor"])
    if own & {"text.color", "axes.facecolor"}:
        front, back = np.array(to_rgb(set_to["text.color"])), np.array(to_rgb(paper))
        ink, muted, rule = (to_hex(tuple(share * front + (1 - share) * back)) for share in (1, 0.6, 0.25))
    lines: tuple[str, ...] = (ink, *COLOURS)
    if "axes.prop_cycle" not in own:
        return Palette(ink, muted, rule, paper, HONEST, CLAIM, lines)
    lines = tuple(to_hex(part.get("color", ink)) for part in set_to["axes.prop_cycle"])
    return Palette(ink, muted, rule, paper, lines[0], lines[1 % len(lines)], lines)


def journal(columns: str | float = "single", *, size: float = 8) -> dict[str, Any]:
    """Return matplotlib settings for a figure of a printed page.

    Parameters
    ----------
    columns : str or float
        How wide: ``"single"`` (3.35 inches, 85 mm), ``"double"`` (6.85 inches, 174 mm), or inches, such as 3.5 for
        Nature and IEEE.
    size : float
        Size of the letters in points.

    Returns
    -------
    dict
        Settings for ``matplotlib.rc_context``. Text stays text in PDF and SVG files.

    Raises
    ------
    InputError
        `columns` is neither a known word nor a width.

    Examples
    --------
    >>> import matplotlib as mpl
    >>> import cvstats as cs
    >>> out = cs.bbc(cs.simulate_cube(60, 8, rng=1), "accuracy", times=50, rng=1)
    >>> with mpl.rc_context(cs.plot.journal("single")):
    ...     ax = cs.plot_intervals(out)
    >>> float(ax.figure.get_figwidth())
    3.35
    """
    width = COLUMNS.get(columns) if isinstance(columns, str) else columns
    if not is_number(width) or not 1 <= width <= 20:
        raise InputError(f"`columns` must be one of {show(COLUMNS)} or a width from 1 to 20 inches; got {columns!r}.")
    return {
        "figure.figsize": (float(width), min(0.72 * width, 4.5)),
        "figure.constrained_layout.use": True,
        "font.size": size,
        "lines.linewidth": size / 6,
        "pdf.fonttype": 42,
        "svg.fonttype": "none",
        "savefig.dpi": 600,
    }


def axes(ax: Axes | None, width: float, height: float, *, rows: int = 0) -> tuple[Axes, Palette]:
    """Return `ax`, or the axes of a new figure, and the colours to draw with."""
    if ax is not None and not (hasattr(ax, "plot") and hasattr(ax, "figure")):
        raise InputError(f"`ax` must be a matplotlib Axes; got {type(ax).__name__}.")
    return new_figure(width, height, rows).subplots() if ax is None else ax, palette()


def new_figure(width: float, height: float, rows: int = 0) -> Figure:
    """Return a figure that no global state knows of.

    Its size is the reader's ``figure.figsize``, if that was set; a chart of many rows is as high as they need.
    """
    kind = figure_class()
    from matplotlib import rcParams, rcParamsDefault

    given = tuple(rcParams["figure.figsize"])
    if given != tuple(rcParamsDefault["figure.figsize"]):
        width, height = given[0], max(given[1], (5 + 2.2 * rows) * rcParams["font.size"] / 72 if rows else 0)
    figure: Figure = kind(figsize=(width, height), layout="constrained")
    return figure


def figure_class() -> Any:
    """Return matplotlib's Figure, or say how to install it."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('figures need matplotlib: pip install "cvstats[plot]"') from error
    return Figure


def line_style(at: int) -> dict[str, Any]:
    """Return colour, marker and dash of the line number `at`; colour is never the only cue."""
    lines = palette().lines
    return {"color": lines[at % len(lines)], "marker": MARKERS[at % 7], "ls": DASHES[at % 7]}


def finished(
    ax: Axes, title: str = "", *, x: str = "", y: str = "", grid: str = "", above: int | None = None, **options: Any
) -> Axes:
    """Return the axes with names, few lines, an unobtrusive grid and, unless it is empty, a title.

    Marks are explained by a legend in up to `above` columns on top, 0 for one at the right, None for no legend.
    """
    shades = palette()
    if above is not None:
        options["pad"] = legend(ax, above)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(shades.muted)
    ax.tick_params(colors=shades.ink, width=0.8)
    if grid:
        ax.grid(axis=grid, color=shades.rule, lw=0.6)  # type: ignore[arg-type]
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


def legend(ax: Axes, above: int) -> float:
    """Explain several marks outside the axes, and return how far above the axes a title then stands, in points.

    They are explained at the right, or on top: in up to `above` columns, or where the axes are narrow.
    """
    handles, labels = ax.get_legend_handles_labels()
    place: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
    columns = 0
    if width_of(ax) <= ROOMY:  # row names push the axes to the right
        columns, place = 2, {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "columnspacing": 1.0}
    elif above:
        columns, place = min(above, len(labels)), {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    if len([label for label in labels if label]) < 2:
        return GAP
    made = ax.legend(handles, labels, frameon=False, fontsize=NOTE, ncols=columns or 1, **place)
    literal(made.get_texts())
    height = 1.5 * float(made.get_texts()[0].get_fontsize())
    return GAP + (1 + -(-len(labels) // columns)) * height - height / 2 if columns else GAP


def characters(ax: Axes, share: float, size: float | str | None = None) -> int:
    """Return about how many letters fit into a share of the figure's width."""
    from matplotlib.font_manager import FontProperties

    width = 72 * ax.get_figure(root=True).get_figwidth()  # type: ignore[union-attr]
    return max(5, int(share * width / (0.56 * FontProperties(size=size).get_size_in_points())))


def row_labels(ax: Axes, names: list[str]) -> None:
    """Name the rows of a chart, the first one on top."""
    if width_of(ax) <= ROOMY:
        room = characters(ax, 0.45)
        lines = (name.partition("\n") for name in names)  # numbers may stand below
        names = [short(first, room) + between + below for first, between, below in lines]
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
    alone = table["method"].item() if "method" in table.coords and dim not in table.dims else ""
    return [short(words(name), longest) for name in (labels_of(table, dim) if dim in table.dims else [alone])]
