"""The section for a population whose class probabilities are not those of the samples."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from cvstats._check import plain
from cvstats.plot.studies import plot_prior
from cvstats.tables.render import Cell
from cvstats.tables.words import count, estimate_text, number, percent, places_of, printable, spread_of

from .analysis import Analysis
from .methods import class_text
from .page import Block, Drawing, Listing, Page


def population_blocks(page: Page) -> Iterator[Block | None]:
    """Yield class errors, the overall error at the prior, and which rule is best at which prior."""
    if page.analysis.population is not None:
        for make in (population_words, class_table, error_by_prior, best_by_prior):
            yield make(page.analysis)


def population_words(analysis: Analysis) -> str:
    """Return what the numbers are, and what to do when always saying the same would err less."""
    found = analysis.population
    assert found is not None
    said = (
        "Classes were sampled separately, so their ratio in the data says nothing about the population; every class "
        "has its own error."
        if analysis.design.separate or "partner" in analysis.cube.dims
        else "Prior-reweighted cross-validation: class errors of ordinary folds, weighted by the class probabilities "
        "of the population. It approximates cross-validation of classes that are divided separately."
    )
    if "estimate" not in found:
        return f"{said} Without a prior there is no error over all classes; give one as LABEL=PROBABILITY."
    mine, shares = found.isel(configuration=analysis.chosen), found["class_prior"].values
    always = printable(plain(found["label_class"].values[shares.argmax()]))
    trivial = 1 - float(shares.max())
    if trivial < float(mine["estimate"]):
        places = places_of(spread_of(mine), float(mine["estimate"]))
        said += (
            f" At this prior, always saying {always} errs {number(trivial, places)}, and the selected configuration "
            f"{number(mine['estimate'], places)}: its threshold is made for another class ratio. Shift the "
            "probabilities to the prior (shift_prior), or choose the threshold by its costs (cut)."
        )
    return said


def class_table(analysis: Analysis) -> Listing:
    """Return the errors of the selected configuration by class, and in the population."""
    found = analysis.population
    assert found is not None
    mine, rows = found.isel(configuration=analysis.chosen), []
    overall = "estimate" in mine
    for at, name in enumerate(mine["label_class"].values.tolist()):
        share = [Cell(f"{float(mine['class_prior'][at]):g}")] if overall else []
        size = Cell(count(analysis.design.classes[str(name)]))
        rows.append([Cell(printable(name)), *share, size, Cell(class_text(mine, at))])
    if overall:
        size = Cell(count(sum(analysis.design.classes.values())))
        rows.append([Cell("All"), Cell("1"), size, Cell(estimate_text(mine))])
    head = ["Class", *(["Probability"] if overall else []), "Samples", f"Error ({analysis.percentage} interval)"]
    name = printable(plain(analysis.cube["configuration"].values[analysis.chosen]))
    note = f"Of {name}, which all samples chose; not corrected for that choice."
    numeric = [False, *[True] * (len(head) - 1)]
    return Listing(head, rows, 1, "Errors by class", note, "population", numeric)


def best_by_prior(analysis: Analysis) -> Listing | None:
    """Return which configuration, or which class said always, has the smallest error at which prior."""
    line = analysis.prior_line
    if line is None:
        return None
    prior, of = line["prior"].values, plain(line["prior_class"].item())
    other = next(name for name in line["label_class"].values.tolist() if name != of)
    names = [printable(plain(name)) for name in line["configuration"].values]
    names += [f"always {printable(other)}", f"always {printable(of)}"]
    error = np.vstack([line["estimate"].transpose("configuration", "prior").values, prior, 1 - prior])
    best = np.where(np.isnan(error), np.inf, error).argmin(axis=0)
    rows = []
    for _, run in pd.Series(np.arange(len(prior))).groupby(np.cumsum(np.diff(best, prepend=best[0]) != 0)):
        first, last = run.iloc[0], run.iloc[-1]
        low, high = sorted((error[best[first], first], error[best[first], last]))
        rows.append(
            [
                Cell(f"{percent(prior[first])} to {percent(prior[last])}", key=float(prior[first])),
                Cell(names[best[first]], key=names[best[first]]),
                Cell(f"{low:.3f} to {high:.3f}", key=float(low)),
            ]
        )
    head = [f"Probability of {printable(of)}", "Smallest error", "Error"]
    note = "Plain errors, for ranking. Thresholds are as saved: shifting them to the prior does better at its ends."
    return Listing(head, rows, 1, "Decision by prevalence", note, "prevalence", [False, False, True])


def error_by_prior(analysis: Analysis) -> Drawing | None:
    """Draw the error of the selected configuration against the prior."""
    line = analysis.prior_line
    if line is None:
        return None
    mine = line.isel(configuration=[analysis.chosen])
    mark = float(next(iter(analysis.prior.values()))) if analysis.prior else None
    ends = [number(mine["estimate"].values[0, at], 3) for at in (0, -1)]
    return Drawing(
        "prior",
        lambda ax, narrow: plot_prior(mine, ax=ax, mark=mark),
        height=(3.2, 2.9),
        caption="The error of the selected configuration by the probability of a class in the population; the dashed "
        "line is what ordinary cross-validation of these samples claims.",
        text=f"Line chart of the error against the prior, from {ends[0]} at 0 to {ends[1]} at 1.",
    )
