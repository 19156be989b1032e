"""Figures as inline SVG: real text, no ids that clash, the same bytes for the same numbers."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

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
class Drawing:
    """A figure of the report, drawn in two widths by ``draw(ax, narrow)``, with its caption and its words."""

    block: ClassVar = "drawing"
    name: str
    draw: Callable[[Axes, bool], object]
    height: tuple[float, float]  # inches: wide, narrow
    caption: str
    text: str  # what it says, for readers who do not see it

    def svg(self, narrow: bool) -> str:
        """Return the figure for a phone or for a desktop."""
        import matplotlib as mpl

        name = f"cvstats-{self.name}-{'narrow' if narrow else 'wide'}"
        settings = {"svg.fonttype": "none", "svg.hashsalt": name, "font.size": 9.5, "hatch.linewidth": 0.6}
        with mpl.rc_context(), warnings.catch_warnings():
            mpl.rcdefaults()  # whatever the user's matplotlibrc says: the same page for everybody
            mpl.rcParams.update(settings)  # type: ignore[arg-type]
            warnings.filterwarnings("ignore", message=r"Glyph \d+")  # the browser has the glyph
            warnings.filterwarnings("ignore", message=".*constrained_layout not applied.*")
            figure = figure_class()(figsize=(NARROW if narrow else WIDE, self.height[narrow]), layout="constrained")
            figure.patch.set_alpha(0)
            ax = figure.subplots()
            ax.patch.set_alpha(0)
            self.draw(ax, narrow)
            out = io.StringIO()
            figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
        return inline(out.getvalue())


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
