"""The TRIPOD+AI checklist: what the predictions answer, and what only the authors can write."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cvstats.tables.render import Cell
from cvstats.tables.words import capital, count, metric_words, printable, several

from .analysis import Analysis
from .methods import TEXTS
from .page import Listing

REFERENCE: str = TEXTS["references"]["tripod"]
ITEMS: dict[str, str] = TEXTS["tripod"]  # number -> topic
AUTHOR = "For the authors to write."


def answers(analysis: Analysis) -> dict[str, str]:
    """Return what is known of each item, by its number."""
    design, best = analysis.design, analysis.winner
    classes = ", ".join(f"{count(n)} {printable(name)}" for name, n in list(design.classes.items())[:8])
    events = classes or (f"{count(design.events)} events" if design.events is not None else "")
    known = {
        "10": f"{several(design.predicted, 'sample')}{f' ({events})' if events else ''} were available; "
        "precision_plan() shows what more would buy. Say how the size was decided.",
        "12a": f"Cross-validation: {design.words}. The same samples chose and judged, corrected as in 12c.",
        "12c": f"{several(design.configurations, 'configuration')} compared by {analysis.name}; selection is corrected "
        f"by redoing it in {several(int(best['n_draws']), 'bootstrap draw')} (methods paragraph). Say how models were "
        "built.",
        "12e": f"{', '.join(_metrics(analysis))}; intervals as in the methods paragraph.",
        "15": f"Predictions are {_output(analysis)}.",
        "18f": "This analysis: cvstats, command and seed under \u201cTo reproduce\u201d. Add the code of the models.",
        "21": f"{several(design.predicted, 'sample')}{f', {events}' if events else ''}.",
        "23a": f"{capital(analysis.name)} {analysis.estimated}; plain cross-validation "
        f"{analysis.number(best['naive'])}. Further metrics, subgroups and curves: where they are shown.",
    }
    if design.classes:
        known["13"] = f"Class sizes: {classes}. Nothing was rebalanced here; say whether training was."
    if analysis.subgroup is not None:
        levels = f"Performance within each {printable(analysis.subgroup)} is in the table of the decision."
        known |= {"14": levels, "23b": levels}
    if design.groups:
        known["12d"] = f"Samples come in {count(design.groups)} groups, which were resampled whole."
    if analysis.adjust is not None:
        learned = "What was adjusted after choosing was learned again in every draw; values are shown above."
        known |= {"12f": learned, "24": learned}
    missing = design.samples - design.predicted
    known["11"] = f"{several(missing, 'sample')} without a prediction{' were left out' if missing else ''}. "
    known["11"] += "Say how missing predictors and outcomes were handled."
    return known


def checklist(analysis: Analysis) -> Iterator[tuple[str, str, str]]:
    """Yield item, topic and answer."""
    known = answers(analysis)
    yield from ((item, topic, known.get(item, AUTHOR)) for item, topic in ITEMS.items())


def checklist_table(analysis: Analysis) -> Listing:
    """Return the checklist as a table; the authors' part is said so."""
    rows = [[Cell(item, key=item), Cell(topic, key=topic), Cell(answer)] for item, topic, answer in checklist(analysis)]
    note = f"Topics in our words; the statement has the full text: {REFERENCE}."
    return Listing(["Item", "Topic", "Answer"], rows, 1, "TRIPOD+AI", note, "checklist", [False, False, False])


def checklist_text(analysis: Analysis, write: Callable[[str], str]) -> str:
    """Return the checklist, a line for each item."""
    lines = [f"{item} {topic}: {answer}" for item, topic, answer in checklist(analysis)]
    return "\n\n".join(write(line) for line in ["TRIPOD+AI", *lines, REFERENCE])


def _metrics(analysis: Analysis) -> list[str]:
    if analysis.decision is None:
        return [analysis.name]
    return [metric_words(name) for name in analysis.decision["metric"].values]


def _output(analysis: Analysis) -> str:
    words = {"label": "classes", "score": "scores", "probability": "probabilities", "value": "numbers"}
    return words[analysis.kind] + (f", {analysis.cut}" if analysis.cut else "")
