"""The sections of the report, in their order: what each says, as blocks for the template."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

import cvstats
from cvstats._check import plain
from cvstats.plot.configurations import plot_scores_by
from cvstats.plot.estimates import plot_intervals, plot_optimism, plot_win_rates
from cvstats.protocols import PROTOCOLS
from cvstats.tables import bind
from cvstats.tables.render import Cell
from cvstats.tables.words import capital, count, method_words, metric_words, percent, printable

from .analysis import Analysis
from .checklist import checklist_table
from .design import read_facts
from .families import FAMILIES, family_blocks
from .judged import curve_blocks, judged_table, survival_blocks
from .methods import paragraph, references_of
from .page import Block, Copied, Drawing, Listing, Page, Rows, section
from .population import population_blocks
from .remarks import choice_words, remarks_of
from .selected import selected_blocks

MOST_ROWS = 1000


def headline(analysis: Analysis) -> str:
    """Return what selection cost, in a sentence."""
    tried, best = analysis.design.configurations, analysis.winner
    if tried == 1:
        return "Only one configuration was tried, so there is no selection to correct for."
    claim, gap = analysis.number(best["naive"]), analysis.number(best["optimism"])
    plain_cv = f"Plain cross-validation of the winner of {count(tried)} configurations"
    if np.isnan(best["optimism"]):
        return f"{plain_cv} gives {claim}; what selection costs cannot be estimated here."
    if float(best["optimism"]) > 0 and gap.strip("0."):
        return f"{plain_cv} would claim {claim}, an estimated {gap} too good: the luck of having won."
    return f"{plain_cv} gives {claim}: here selection costs nothing that can be measured."


def test_words(analysis: Analysis) -> str:
    """Return what to think of a test set that is better than both the estimate and the claim."""
    sign, best = analysis.metric.sign, analysis.winner
    if not sign * analysis.truth > max(sign * float(best["estimate"]), sign * float(best["naive"])):
        return ""
    inside = float(best["conf_low"]) <= analysis.truth <= float(best["conf_high"])
    reason = "inside the interval: " if inside else ""
    return (
        f", better than both numbers and {reason}these samples were harder than the test set, by chance. Optimism is "
        "about averages over many data sets, and one data set may fall on either side"
    )


@section("decision", "One decision, judged by several metrics")
def one_decision(page: Page) -> Iterator[Block]:
    """Yield every metric that was asked for, of one and the same decision."""
    if page.analysis.decision is not None:
        yield decision_words(page.analysis)
        yield judged_table(page.analysis.decision, page.analysis.percentage, "One decision", "decision")


def decision_words(analysis: Analysis) -> str:
    """Return what was decided, and by what."""
    found = analysis.decision
    assert found is not None
    text = f"Chosen by {metric_words(found['by'].item())}: {printable(found['selected'].item()) or 'a mixture'}"
    for name in [name for name in ("threshold", "intercept", "slope") if name in found and not found[name].ndim]:
        text += f", {name} {float(found[name]):.4g}"
    return f"{text}. All rows judge this one decision, which was made again in every draw."


@section("read", "What was read")
def what_was_read(page: Page) -> list[Block]:
    """Return files, sizes and folds."""
    one = page.analysis
    return [Rows("facts", read_facts(one.cube, one.design, one.source))]


@section("remarks", "What to keep in mind")
def keep_in_mind(page: Page) -> list[Block]:
    """Return diagnostics."""
    return [Rows("remarks", remarks_of(page.analysis))]


@section("methods", "Methods side by side")
def side_by_side(page: Page) -> list[Block]:
    """Return all estimates."""
    if page.analysis.single:
        one = "With one configuration nothing was chosen: the rows differ in how they average, and in their intervals."
        return [one, method_table(page.analysis)]
    return [
        "The rows differ in which samples choose and which samples judge. \u201cOptimism\u201d is how much better the "
        "plain score looks than a method\u2019s estimate. Methods that average over folds, such as TT, start from "
        "another plain score and may choose another configuration; then both are given.",
        method_table(page.analysis),
    ]


section("population", "In the population")(population_blocks)


def method_table(analysis: Analysis) -> Listing:
    """Return all methods side by side, the recommended one first."""
    rows = []
    for name, outcome in analysis.results.items():
        known, label, about = PROTOCOLS[name], method_words(name), PROTOCOLS[name].remark
        if name == "winner":
            known = PROTOCOLS[str(outcome["method"].item())]
            label += f" ({'BBC, ties at random' if known is PROTOCOLS['bbc'] else known.words})"
        if analysis.single:
            label, about = label.removesuffix(" of the winner"), "" if name in ("cvt", "tt") else about
        removed, own = analysis.number(outcome["optimism"]), analysis.number(outcome["naive"])
        if own != analysis.number(analysis.winner["naive"]):
            removed += f" from {own}"
        if plain(outcome["selected"].item()) != plain(analysis.winner["selected"].item()):
            about += f" Here the winner is {printable(outcome['selected'].item())}."
        limits = analysis.limits(outcome)
        rows.append(
            [
                Cell(label, key=label, aside=about),
                Cell(analysis.number(outcome["estimate"]), key=float(outcome["estimate"])),
                Cell(limits or "–", key=float(outcome["conf_low"]) if limits else None),
                Cell("–") if name == "cvt" else Cell(removed, key=float(outcome["optimism"])),
                Cell(known.chooses),
                Cell(known.judges),
            ]
        )
    head = ["Method", capital(analysis.name), f"{analysis.percentage} interval", "Optimism", "Chooses on", "Judges on"]
    note = "; ".join(f"{method_words(name)} is not shown: {reason}" for name, reason in analysis.skipped.items())
    numeric = [False, True, True, True, False, False]
    return Listing(head, rows, 1, "Methods side by side", note + "." if note else "", "methods", numeric)


@section("winners", "Configurations")
def which_win(page: Page) -> list[Block | None]:
    """Return how firm the choice is, and the table of configurations."""
    one = page.analysis
    return [choice_words(one), win_rates(one), *tuning_figures(one), configuration_table(one)]


def tuning_figures(analysis: Analysis) -> list[Block]:
    """Return the plain score against the tuning values that most configurations have, three at most."""
    held = {name: np.isfinite(analysis.cube[name].values.astype(float)) for name in analysis.design.tuning}
    several_values = [name for name in held if analysis.design.tuning[name][2] > 2]
    shown = sorted(several_values, key=lambda name: -held[name].sum())[:3]
    return [_scores_by(analysis, name, held[name], f"scores-by-{place}") for place, name in enumerate(shown)]


def _scores_by(analysis: Analysis, name: str, held: np.ndarray, figure: str) -> Drawing:
    """Return the plain score of configurations that have a tuning value; of many some, from the best to the worst."""
    family = next((name for name in FAMILIES if name in analysis.scores.coords), None)
    order, (low, high, _) = ranked(analysis), analysis.design.tuning[name]
    having = order[held[order]]
    some = np.sort(having[:: -(-len(having) // MOST_ROWS)])
    left = f" {count(len(some))} of them are shown, evenly by rank." if len(some) < len(having) else ""
    words = f"{count(len(having))} configurations that have {printable(name)}"
    return Drawing(
        figure,
        lambda ax, narrow: plot_scores_by(analysis.scores[some], name, family=None if narrow else family, ax=ax),
        height=(3.0, 2.7),
        caption=f"Plain CV {analysis.name} of the {words}; the best is circled.{left}",
        text=f"Scatter plot of plain CV {analysis.name} against {printable(name)}, from {low:g} to {high:g}.",
    )


def ranked(analysis: Analysis) -> np.ndarray:
    """Return the places of all configurations, best plain score first."""
    score = analysis.scores.values.astype(float)
    return np.argsort(np.where(np.isnan(score), np.inf, -analysis.metric.sign * score), kind="stable")


def listed(analysis: Analysis) -> np.ndarray:
    """Return the places of the configurations that are listed."""
    return ranked(analysis)[:MOST_ROWS]


def configuration_table(analysis: Analysis) -> Listing:
    """Return every configuration, best plain score first."""
    cube, order = analysis.cube, listed(analysis)
    score, rate = analysis.scores.values.astype(float), analysis.winner["win_rate"].values.astype(float)
    names = cube["configuration"].values
    inside = None if analysis.best is None else analysis.best["in_set"].values.astype(bool)
    extra = _shown_coords(cube)
    head = ["Configuration", f"Plain CV {analysis.name}", "Wins", *(["In best set"] if inside is not None else [])]
    numeric = [False, True, True, *([False] if inside is not None else []), *extra.values()]
    rows = []
    for rank, at in enumerate(order):
        row = [
            Cell(printable(names[at]), key=printable(names[at])),
            Cell(analysis.number(score[at]), key=_key(score[at])),
            Cell(percent(float(rate[at]), digits=1) if rate[at] > 0 else "0%", key=_key(rate[at])),
        ]
        if inside is not None:
            row.append(Cell("yes" if inside[at] else "no", key=0.0 if inside[at] else 1.0 + rank))
        rows.append(row + [_coord_cell(plain(cube[name].values[at]), numbers) for name, numbers in extra.items()])
    note = "" if analysis.single else "Plain CV scores are for ranking; the best of them is optimistic."
    if inside is not None and analysis.few < analysis.times:
        note += f" The best set takes {count(analysis.few)} of the draws."
    if len(order) < len(score):
        note += f" The {count(len(order))} best of {count(len(score))} configurations are listed."
    head += [printable(name) for name in extra]
    return Listing(head, rows, 1, "Configurations", note, "configurations", numeric)


def _key(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _shown_coords(cube: xr.DataArray) -> dict[str, bool]:
    """Return the configurations' own coordinates (tuning values, family ...), and whether they are numbers."""
    shown = {}
    for name, coord in cube.coords.items():
        if coord.dims != ("configuration",) or name == "configuration":
            continue
        numeric = coord.dtype.kind in "fiu"
        if not numeric or np.isfinite(coord.values.astype(float)).any():
            shown[str(name)] = numeric
    return shown


def _coord_cell(value: Any, is_number: bool) -> Cell:
    if not is_number:
        return Cell(printable(value), key=printable(value))
    return Cell(f"{value:.6g}", key=float(value)) if math.isfinite(value) else Cell("")


section("selected", "Predictions and truth")(selected_blocks)
section("curves", "Curves")(lambda page: [*survival_blocks(page.analysis), *curve_blocks(page.analysis)])
section("families", "The best of each family")(family_blocks)


@section("optimism", "What trying many configurations costs")
def cost_of_trying(page: Page) -> list[Block | None]:
    """Return the optimism curve."""
    return [optimism(page.analysis)]


@section("paragraph", "For the methods section")
def for_the_methods_section(page: Page) -> list[Block]:
    """Return the paragraph in three formats."""
    kinds = ("text", "latex", "markdown")
    text, latex, markdown = (paragraph(page.analysis, kind, page.preprocessing) for kind in kinds)
    note = "Every choice a reader needs to judge or repeat the analysis"
    return [
        Copied("text-plain", text, "Copy text", note, tag="blockquote"),
        Copied("text-latex", latex, "Copy LaTeX", summary="LaTeX"),
        Copied("text-markdown", markdown, "Copy Markdown", summary="Markdown"),
    ]


@section("checklist", "TRIPOD+AI checklist")
def tripod(page: Page) -> list[Block]:
    """Return what a reporting guideline asks, answered where the predictions can."""
    return [checklist_table(page.analysis)]


@section("reproduce", "To reproduce")
def to_reproduce(page: Page) -> list[Block]:
    """Return the command, the seed and the fingerprint."""
    analysis = page.analysis
    note = f"Seed {analysis.seed}, {analysis.times} bootstrap draws, cvstats {cvstats.__version__}"
    foot = "The same predictions and seed give the same numbers on any machine. Fingerprint of the predictions: "
    foot += f"{analysis.winner.attrs.get('cube_hash', '')}."
    return [Copied("command", page.command or _python_call(page), "Copy", note, foot)]


def _python_call(page: Page) -> str:
    analysis = page.analysis
    options = f"path='report.html', times={analysis.times}, rng={analysis.seed}, level={analysis.level:g}"
    options += f", regime={analysis.regime!r}" if analysis.regime != "cv" else ""
    options += ", inner=inner" if analysis.inner is not None else ""
    options += f", preprocessing={page.preprocessing!r}" if page.preprocessing else ""
    options += f", prior={dict(analysis.prior)!r}" if analysis.prior else ""
    metric: Any = getattr(analysis.named[0], "name", analysis.named[0])
    if analysis.decision is not None:
        given = {"by": analysis.metric.name, "adjust": analysis.adjust, "subgroup": analysis.subgroup}
        options += "".join(f", {name}={value!r}" for name, value in given.items() if value is not None)
        metric = analysis.decision["metric"].values.tolist()
    return f"import cvstats as cs\ncs.report_html(cube, {metric!r}, {options})"


@section("references", "References")
def references(page: Page) -> list[Block]:
    """Return what the report cites."""
    return [Rows("references", references_of(page.analysis))]


def intervals(analysis: Analysis) -> Drawing:
    """Draw all estimates below each other."""
    keep = ("estimate", "conf_low", "conf_high", "naive", "std_error")
    stacked = bind(**{name: out[[v for v in keep if v in out]] for name, out in analysis.results.items()})
    truth = analysis.truth if np.isfinite(analysis.truth) else None
    rows, said = len(analysis.results), []
    for name, out in analysis.results.items():
        limits = analysis.limits(out)
        said.append(f"{method_words(name)} {analysis.number(out['estimate'])}{limits and f' ({limits})'}")
    test = f" The dotted line is the {analysis.which}'s {analysis.name} on a test set." if truth else ""
    return Drawing(
        "intervals",
        lambda ax, narrow: plot_intervals(stacked, ax=ax, truth=truth, truth_label="test set"),
        height=(1.0 + 0.42 * rows, 1.2 + 0.52 * rows),
        caption=f"Estimates of {analysis.whose} {analysis.name} by method.{test}",
        text=f"Dot plot of {analysis.name}. {'; '.join(said)}.",
    )


def win_rates(analysis: Analysis) -> Drawing | None:
    """Draw who wins how often."""
    rate = analysis.winner["win_rate"].values.astype(float)
    if len(rate) < 2 or not np.isfinite(rate).any():
        return None
    drawn = analysis.winner.isel(configuration=(rate > 0) | (np.arange(len(rate)) == analysis.chosen))
    height = 0.8 + 0.3 * (min(int((rate > 0).sum()), 11) + 1)
    top = printable(plain(analysis.cube["configuration"].values[int(np.nanargmax(rate))]))
    return Drawing(
        "win-rates",
        lambda ax, narrow: plot_win_rates(drawn, top=10, ax=ax, longest=22 if narrow else 40),
        height=(height, height),
        caption="How often each configuration wins when samples are drawn again; the solid bar is selected.",
        text=f"Bar chart of win rates. Most frequent winner: {top}, {percent(float(np.nanmax(rate)))} of draws. "
        + choice_words(analysis),
    )


def optimism(analysis: Analysis) -> Drawing | None:
    """Draw what trying many configurations costs."""
    curve = analysis.curve
    if curve is None:
        return None
    claim, left = (analysis.number(curve[name].values[-1]) for name in ("naive", "estimate"))
    return Drawing(
        "optimism",
        lambda ax, narrow: plot_optimism(curve, ax=ax),
        height=(3.2, 2.9),
        caption=(
            "The more configurations are tried, the more plain CV of the winner claims beyond what is there."
            if claim != left
            else "Here trying many configurations cost nothing that can be measured."
        )
        + (f" Of {count(analysis.few)} of the draws." if analysis.few < analysis.times else ""),
        text=f"Line chart of {analysis.name} against the number of configurations tried. With all "
        f"{count(curve['n_configurations'].values[-1])} plain CV claims {claim} and {left} is left after correction.",
    )
