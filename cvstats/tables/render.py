"""A grid of strings as text, Markdown, LaTeX or HTML. Knows nothing of statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape


@dataclass(frozen=True)
class Cell:
    """One entry: its text, and marks (stars) that hang to the right of it."""

    text: str
    marks: str = ""


@dataclass(frozen=True)
class Grid:
    """One table: header and body of equal width; the first `labels` columns are left-aligned."""

    header: Sequence[str]
    body: Sequence[Sequence[Cell]]
    labels: int = 1
    caption: str = ""
    note: str = ""
    marked: list[int] = field(init=False, default_factory=list)  # widest marks per column

    def __post_init__(self) -> None:
        columns = range(len(self.header))
        self.marked.extend(max((len(row[at].marks) for row in self.body), default=0) for at in columns)


def text(grid: Grid) -> str:
    """Return aligned plain text; marks hang outside the right edge of their numbers."""
    width = [
        max(len(head), *(len(row[at].text) + grid.marked[at] for row in grid.body)) if grid.body else len(head)
        for at, head in enumerate(grid.header)
    ]

    def line(cells: Sequence[str]) -> str:
        parts = [
            c.ljust(w) if at < grid.labels else c.rjust(w) for at, (c, w) in enumerate(zip(cells, width, strict=True))
        ]
        return "  ".join(parts).rstrip()

    def hung(row: Sequence[Cell]) -> list[str]:
        return [cell.text + cell.marks.ljust(grid.marked[at]) for at, cell in enumerate(row)]

    rule = "-" * (sum(width) + 2 * (len(width) - 1))
    lines = [
        *([grid.caption] if grid.caption else []),
        line(grid.header),
        rule,
        *(line(hung(row)) for row in grid.body),
    ]
    return "\n".join([*lines, *([rule, grid.note] if grid.note else [])])


def markdown(grid: Grid) -> str:
    """Return a pipe table (GitHub, Pandoc, Jupyter)."""

    def safe(value: str) -> str:
        return (
            value.replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;").replace("\n", " ")
        )

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    rule = [":--" if at < grid.labels else "--:" for at in range(len(grid.header))]
    lines = [line([safe(head) for head in grid.header]), line(rule)]
    lines += [line([safe(cell.text + cell.marks) for cell in row]) for row in grid.body]
    before = [safe(grid.caption), ""] if grid.caption else []
    return "\n".join([*before, *lines, *(["", safe(grid.note)] if grid.note else [])])


_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
}


def latex(grid: Grid) -> str:
    """Return a ``table`` with booktabs rules; minus signs are typeset as such and marks are raised."""

    def safe(value: str) -> str:
        return "".join(_LATEX.get(character, character) for character in value)

    def entry(at: int, cell: Cell) -> str:
        number = at >= grid.labels
        shown = safe(cell.text)
        shown = shown.replace("-", "$-$") if number and any(c.isdigit() for c in shown) else shown
        return shown + (f"\\textsuperscript{{{cell.marks}}}" if cell.marks else "")

    columns = "l" * grid.labels + "r" * (len(grid.header) - grid.labels)
    lines = [r"\begin{table}", r"\centering"]
    lines += [f"\\caption{{{safe(grid.caption)}}}"] if grid.caption else []
    lines += [f"\\begin{{tabular}}{{{columns}}}", r"\toprule"]
    lines += [" & ".join(safe(head) for head in grid.header) + r" \\", r"\midrule"]
    # a row that starts with a bracket would be read as the optional argument of the line break before it
    starts = ["{}" if row and row[0].text.startswith("[") else "" for row in grid.body]
    ends = [" & ".join(entry(at, cell) for at, cell in enumerate(row)) + r" \\" for row in grid.body]
    lines += [start + end for start, end in zip(starts, ends, strict=True)]
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [f"\\par\\smallskip{{\\footnotesize {safe(grid.note)}}}"] if grid.note else []
    return "\n".join([*lines, r"\end{table}"])


def html(grid: Grid) -> str:
    """Return a plain ``<table>`` with caption, head, body and (for the note) foot."""

    def row(cells: Sequence[str], tag: str) -> str:
        parts = []
        for at, cell in enumerate(cells):
            side = "" if at < grid.labels else ' style="text-align: right"'
            name = "th" if tag == "th" or at < grid.labels else "td"
            scope = ' scope="col"' if tag == "th" else ' scope="row"' if name == "th" else ""
            parts.append(f"<{name}{scope}{side}>{cell}</{name}>")
        return "<tr>" + "".join(parts) + "</tr>"

    def entry(cell: Cell) -> str:
        return escape(cell.text) + (f"<sup>{cell.marks}</sup>" if cell.marks else "")

    lines = ["<table>"]
    lines += [f"<caption>{escape(grid.caption)}</caption>"] if grid.caption else []
    lines += ["<thead>", row([escape(head) for head in grid.header], "th"), "</thead>", "<tbody>"]
    lines += [row([entry(cell) for cell in cells], "td") for cells in grid.body]
    lines += ["</tbody>"]
    lines += [f'<tfoot><tr><td colspan="{len(grid.header)}">{escape(grid.note)}</td></tr></tfoot>'] if grid.note else []
    return "\n".join([*lines, "</table>"])


RENDERERS: dict[str, Callable[[Grid], str]] = {"text": text, "markdown": markdown, "latex": latex, "html": html}
