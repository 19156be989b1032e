"""Figures as inline SVG: real text, no ids that clash, the same bytes for the same numbers."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cvstats.plot.style import figure_class

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE, NARROW = 7.4, 3.75  # inches; a desktop column and a phone held upright
_OPENING = re.compile(r"<svg[^>]*?viewBox=\"([^\"]+)\"[^>]*>")
_REFERENCE = re.compile(r"#([\w.-]+)")
_ID = re.compile(r' id="([^"]*)"')
_FONTS = re.compile(r" ?font-family: [^;\"]*;?")
_STRIPPED = re.compile(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", re.S)


@dataclass(frozen=True)
class Figure:
    """One figure of the report in two widths, with its caption and what it says in words."""

    name: str
    wide: str
    narrow: str
    caption: str
    text: str  # the alternative for readers who do not see it


def draw_figure(
    name: str, draw: Callable[[Axes, bool], object], *, height: tuple[float, float], caption: str, text: str
) -> Figure:
    """Return a figure drawn twice by ``draw(ax, narrow)``; `height` is (wide, narrow) in inches."""
    wide = _svg(f"{name}-wide", lambda ax: draw(ax, False), WIDE, height[0])
    narrow = _svg(f"{name}-narrow", lambda ax: draw(ax, True), NARROW, height[1])
    return Figure(name, wide, narrow, caption, text)


def _svg(name: str, draw: Callable[[Axes], object], width: float, height: float) -> str:
    figure_class()
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    settings = {"svg.fonttype": "none", "svg.hashsalt": f"cvstats-{name}", "font.size": 9.5, "hatch.linewidth": 0.6}
    with mpl.rc_context(settings), warnings.catch_warnings():  # type: ignore[arg-type]
        warnings.filterwarnings("ignore", message=r"Glyph \d+")  # the browser has the glyph
        warnings.filterwarnings("ignore", message=".*constrained_layout not applied.*")
        figure = Canvas(figsize=(width, height), layout="constrained")
        figure.patch.set_alpha(0)
        ax = figure.subplots()
        ax.patch.set_alpha(0)
        draw(ax)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return inline(out.getvalue())


def inline(text: str) -> str:
    """Return the ``<svg>`` element alone, scaling with its column, hidden from readers who get the words instead."""
    text = _STRIPPED.sub("", text[text.index("<svg") :])
    found = _OPENING.match(text)
    if found is None:
        raise ValueError("matplotlib wrote an SVG without a viewBox")
    width = float(found.group(1).split()[2]) * 4 / 3  # points to CSS pixels
    body = text[found.end() :].strip()
    used = set(_REFERENCE.findall(body))
    body = _ID.sub(lambda match: match.group() if match.group(1) in used else "", body)
    body = _FONTS.sub("", body)  # the page decides
    opening = f'<svg viewBox="{found.group(1)}" style="max-width: {width:.0f}px" aria-hidden="true" focusable="false">'
    return opening + re.sub(r"\s*\n\s*", "\n", body)
