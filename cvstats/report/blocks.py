"""What a page is made of: the blocks that a section may hold, and the registries of sections and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from cvstats.tables.render import Grid

from .analysis import Analysis
from .drawing import Drawing


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


MakeBlocks = Callable[[Page], list[Block]]
MakeDrawing = Callable[[Analysis], Drawing | None]


@dataclass(frozen=True)
class Section:
    """A heading and what makes the blocks below it; without blocks the section is left out."""

    title: str
    blocks: MakeBlocks


SECTIONS: dict[str, Section] = {}  # in the order of the page
FIGURES: dict[str, list[MakeDrawing]] = {}  # by the section they stand in


def section(name: str, title: str, *, before: str | None = None) -> Callable[[MakeBlocks], MakeBlocks]:
    """Add the decorated function to the page as a section, at the end or before another one."""

    def add(blocks: MakeBlocks) -> MakeBlocks:
        order = [item for item in SECTIONS.items() if item[0] != name]
        at = [known for known, _ in order].index(before) if before else len(order)
        order.insert(at, (name, Section(title, blocks)))
        SECTIONS.clear()
        SECTIONS.update(order)
        return blocks

    return add


def figure(section: str) -> Callable[[MakeDrawing], MakeDrawing]:
    """Add the decorated function to the figures of a section."""

    def add(draw: MakeDrawing) -> MakeDrawing:
        FIGURES.setdefault(section, []).append(draw)
        return draw

    return add


def figures_of(section: str, analysis: Analysis) -> list[Block]:
    """Return the figures of a section that this analysis allows."""
    return [drawing for draw in FIGURES.get(section, ()) if (drawing := draw(analysis)) is not None]
