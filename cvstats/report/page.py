"""What a page is made of: the blocks that a section may hold, and the registry of sections."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cvstats.plot.style import figure_class
from cvstats.tables.render import Grid

from .analysis import Analysis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase

WIDE, NARROW = 7.4, 3.75  # inches; a desktop column and a phone held upright
MARGIN = 3  # points around a figure
_OPENING = re.compile(r"<svg[^>]*?viewBox=\"([^\"]+)\"[^>]*>")
_REFERENCE = re.compile(r"#([\w.-]+)")
_ID = re.compile(r' id="([^"]*)"')
_FONTS = re.compile(r" ?font-family: [^;\"]*;?")
_STRIPPED = re.compile(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", re.S)


@dataclass(frozen=True)
class Listing(Grid):
    """A table that can be sorted and copied; says which columns are numbers."""

    block: ClassVar = "listing"
    name: str = ""
    numeric: Sequence[bool] = ()


@dataclass(frozen=True)
class Rows:
    """Facts (name, what is known), remarks, or references (text, DOI)."""

    block: str
    rows: Sequence[Any]


@dataclass(frozen=True)
class Remark:
    """One diagnostic in plain words; `care` marks what a reader must not overlook."""

    text: str
    care: bool = False


@dataclass(frozen=True)
class Copied:
    """Text to copy, with what the button says and a note above and below; with a `summary` it is folded away."""

    block: ClassVar = "copied"
    name: str
    text: str
    button: str
    note: str = ""
    foot: str = ""
    tag: str = "pre"
    summary: str = ""


@dataclass(frozen=True)
class Drawing:
    """A figure of the report, drawn by ``draw(ax, narrow)`` in two widths or `small`, with caption and words."""

    block: ClassVar = "drawing"
    name: str
    draw: Callable[[Axes, bool], object]
    height: tuple[float, float]  # inches: wide, narrow
    caption: str
    text: str  # what it says, for readers who do not see it
    small: bool = False  # whether the width of a phone will do, and a desktop has two side by side

    def svg(self, narrow: bool) -> str:
        """Return the figure for a phone or for a desktop."""
        import matplotlib as mpl
        from matplotlib.backends.backend_svg import FigureCanvasSVG, RendererSVG

        name = f"cvstats-{self.name}-{'narrow' if narrow else 'wide'}"
        settings = {"svg.fonttype": "none", "svg.hashsalt": name, "font.size": 9.5, "hatch.linewidth": 0.6}
        with mpl.rc_context(), warnings.catch_warnings():
            mpl.rcdefaults()  # whatever the user's matplotlibrc says: the same page for everybody
            mpl.rcParams.update(settings)  # type: ignore[arg-type]
            warnings.filterwarnings("ignore", message=r"Glyph \d+")  # the browser has the glyph
            size = (NARROW if narrow else WIDE, self.height[narrow])
            figure = figure_class()(figsize=size, dpi=FigureCanvasSVG.fixed_dpi)
            figure.patch.set_alpha(0)
            ax = figure.subplots()
            ax.patch.set_alpha(0)
            self.draw(ax, narrow)
            out, (width, height) = io.StringIO(), figure.bbox.size
            made: Any = RendererSVG  # not typed
            renderer = made(width, height, out, image_dpi=figure.dpi, metadata={"Date": None, "Creator": None})
            spread(ax, renderer)
            figure.draw(renderer)
            renderer.finalize()
        return inline(out.getvalue())


def spread(ax: Axes, renderer: RendererBase) -> None:
    """Give the only axes of a figure all the room that names and legend leave.

    Constrained layout measures everything twice, and savefig() then draws everything once without need. Here it is
    measured again only when the axes have other ticks in their new size; else the names of the axes stay at their
    distance, which drawing would measure again.
    """
    figure, both = ax.get_figure(root=True), (ax.xaxis, ax.yaxis)
    assert figure is not None
    for _ in range(2):
        room, inside = np.array(figure.bbox.max), ax.bbox.frozen()
        box = ax.get_tightbbox(renderer, for_layout_only=True)
        ticks = [axis.get_majorticklocs() for axis in both]
        assert box is not None
        low, high = np.subtract(inside.min, box.min) + MARGIN, room - np.subtract(box.max, inside.max) - MARGIN
        if (high <= low).any():
            return  # names leave no room
        below, left = ax.xaxis.label.get_position()[1] - inside.y0, ax.yaxis.label.get_position()[0] - inside.x0
        ax.set_position((*(low / room), *((high - low) / room)))
        if all(map(np.array_equal, ticks, (axis.get_majorticklocs() for axis in both))):
            width, height = high - low
            ax.xaxis.set_label_coords(0.5, below / height)
            ax.yaxis.set_label_coords(left / width, 0.5)
            return


Block = str | Listing | Rows | Copied | Drawing  # a string is a paragraph


@dataclass(frozen=True)
class Page:
    """An analysis and what its author says of it: all that a section may look at."""

    analysis: Analysis
    title: str | None = None
    preprocessing: str | None = None
    command: str | None = None
    inputs: Sequence[Mapping[str, Any]] = ()  # the files that were read: name, size, hash
    reading: Mapping[str, Any] = field(default_factory=dict)  # how they were read


MakeBlocks = Callable[[Page], Iterable[Block | None]]
SECTIONS: dict[str, tuple[str, MakeBlocks]] = {}  # titles and what makes the blocks below, in the order of the page


def section(name: str, title: str, *, before: str | None = None) -> Callable[[MakeBlocks], MakeBlocks]:
    """Add the decorated function to the page as a section, at the end or before another one.

    Blocks that are None or empty are left out, and a section without any.
    """

    def add(blocks: MakeBlocks) -> MakeBlocks:
        order = [item for item in SECTIONS.items() if item[0] != name]
        at = [known for known, _ in order].index(before) if before else len(order)
        order.insert(at, (name, (title, blocks)))
        SECTIONS.clear()
        SECTIONS.update(order)
        return blocks

    return add


def inline(text: str) -> str:
    """Return the ``<svg>`` element alone, scaling with its column, hidden from readers who get the words instead."""
    text = _STRIPPED.sub("", text[text.index("<svg") :])
    opening = _OPENING.match(text)
    if opening is None:
        raise ValueError("matplotlib wrote an SVG without a viewBox")
    width = float(opening.group(1).split()[2]) * 4 / 3  # points to CSS pixels
    body = text[opening.end() :].strip()
    used = set(_REFERENCE.findall(body))
    body = _ID.sub(lambda match: match.group() if match.group(1) in used else "", body)
    body = _FONTS.sub("", body)  # the page decides
    tag = f'<svg viewBox="{opening.group(1)}" style="max-width: {width:.0f}px" aria-hidden="true" focusable="false">'
    return tag + re.sub(r"\s*\n\s*", "\n", body)
