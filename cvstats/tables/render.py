"""A grid of strings as text, Markdown, LaTeX or HTML. Knows nothing of statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

_LATEX = dict(zip("&%$#_{}", (r"\&", r"\%", r"\$", r"\#", r"\_", r"\{", r"\}"), strict=True)) | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "\u2212": "$-$",
    "\u202f": r"\,",
    "²": r"\textsuperscript{2}",
    "…": r"\ldots{}",
    "\ufffd": "?",
}


@dataclass(frozen=True)
class Cell:
    """One entry: its text, marks (stars) that hang to the right of it; on a page what sorts it, and small print."""

    text: str
    marks: str = ""
    key: float | str | None = None
    aside: str = ""


@dataclass(frozen=True)
class Grid:
    """One table: header and body of equal width; the first `labels` columns are left-aligned."""

    header: Sequence[str]
    body: Sequence[Sequence[Cell]]
    labels: int = 1
    caption: str = ""
    note: str = ""


def text(grid: Grid) -> str:
    """Return aligned plain text; marks hang outside the right edge of their numbers."""
    hang = [max((len(cell.marks) for cell in column), default=0) for column in zip(*grid.body, strict=True)]
    hung = [[cell.text + cell.marks.ljust(room) for cell, room in zip(row, hang, strict=True)] for row in grid.body]
    width = [max(map(len, column)) for column in zip(grid.header, *hung, strict=True)]

    def line(cells: Sequence[str]) -> str:
        sides = [str.ljust if at < grid.labels else str.rjust for at in range(len(cells))]
        return "  ".join(side(cell, room) for side, cell, room in zip(sides, cells, width, strict=True)).rstrip()

    rule = "-" * (sum(width) + 2 * (len(width) - 1))
    lines = [*([grid.caption] if grid.caption else []), line(grid.header), rule, *map(line, hung)]
    return "\n".join([*lines, *([rule, grid.note] if grid.note else [])])


def markdown(grid: Grid) -> str:
    """Return a pipe table (GitHub, Pandoc, Jupyter)."""
    signs = str.maketrans({"\\": "\\\\", "|": "\\|", "*": "\\*", "<": "&lt;", "\n": " "})

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.translate(signs) for cell in cells) + " |"

    rule = [":--" if at < grid.labels else "--:" for at in range(len(grid.header))]
    lines = [line(grid.header), line(rule), *(line([cell.text + cell.marks for cell in row]) for row in grid.body)]
    before = [grid.caption.translate(signs), ""] if grid.caption else []
    return "\n".join([*before, *lines, *(["", grid.note.translate(signs)] if grid.note else [])])


def latex_text(value: str) -> str:
    """Return text as LaTeX shows it literally."""
    return "".join(_LATEX.get(character, character) for character in value)


def latex(grid: Grid) -> str:
    """Return a ``table`` with booktabs rules; minus signs are typeset as such and marks are raised."""

    def entry(at: int, cell: Cell) -> str:
        shown = latex_text(cell.text)
        shown = shown.replace("-", "$-$") if at >= grid.labels and any(c.isdigit() for c in shown) else shown
        return shown + (f"\\textsuperscript{{{cell.marks}}}" if cell.marks else "")

    columns = "l" * grid.labels + "r" * (len(grid.header) - grid.labels)
    lines = [r"\begin{table}", r"\centering"]
    lines += [f"\\caption{{{latex_text(grid.caption)}}}"] if grid.caption else []
    lines += [f"\\begin{{tabular}}{{{columns}}}", r"\toprule"]
    lines += [" & ".join(map(latex_text, grid.header)) + r" \\", r"\midrule"]
    for row in grid.body:
        # a row that starts with a bracket would be read as the optional argument of the line break before it
        start = "{}" if row and row[0].text.startswith("[") else ""
        lines.append(start + " & ".join(entry(at, cell) for at, cell in enumerate(row)) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [f"\\par\\smallskip{{\\footnotesize {latex_text(grid.note)}}}"] if grid.note else []
    return "\n".join([*lines, r"\end{table}"])


def html(grid: Grid) -> str:
    """Return a plain ``<table>`` with caption, head, body and (for the note) foot."""

    def row(cells: Sequence[str], scope: str) -> str:
        parts = []
        for at, cell in enumerate(cells):
            side = "" if at < grid.labels else ' style="text-align: right"'
            heads = scope == "col" or at < grid.labels
            parts.append(f'<th scope="{scope}"{side}>{cell}</th>' if heads else f"<td{side}>{cell}</td>")
        return "<tr>" + "".join(parts) + "</tr>"

    def entry(cell: Cell) -> str:
        return escape(cell.text) + (f"<sup>{cell.marks}</sup>" if cell.marks else "")

    lines = ["<table>"]
    lines += [f"<caption>{escape(grid.caption)}</caption>"] if grid.caption else []
    lines += ["<thead>", row([escape(head) for head in grid.header], "col"), "</thead>", "<tbody>"]
    lines += [row([entry(cell) for cell in cells], "row") for cells in grid.body]
    lines += ["</tbody>"]
    lines += [f'<tfoot><tr><td colspan="{len(grid.header)}">{escape(grid.note)}</td></tr></tfoot>'] if grid.note else []
    return "\n".join([*lines, "</table>"])


RENDERERS: dict[str, Callable[[Grid], str]] = {"text": text, "markdown": markdown, "latex": latex, "html": html}
