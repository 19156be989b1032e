"""What the report says, part by part: headline, facts and tables. All of it is data for the template."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import plain
from cvstats.tables.words import (
    better,
    count,
    method_words,
    metric_words,
    number,
    percent,
    places_of,
    printable,
    several,
    spread_of,
)

from .analysis import Analysis, Design

MOST_ROWS = 1000
ABOUT = {
    "winner": ("see below", "see below", "What we recommend, from all that was saved."),
    "bbc": (
        "each bootstrap draw",
        "samples left out of the draw",
        "The published method, with its percentile interval.",
    ),
    "ncv": ("inner predictions of each training set", "the outer fold", "Nearly unbiased, but noisy."),
    "cvm_cv": ("the first repeat", "the other repeats", "Removes the luck of the partition only."),
    "tt": ("each fold alone", "the fold", "Over-corrects with small folds and many configurations."),
    "cvt": ("all samples", "the same samples", "What is commonly reported: too good to be true."),
}
ESTIMATORS = {
    "bbc": ("each bootstrap draw", "samples left out of the draw"),
    "bbc_cross_repeat": ("one repeat of each draw", "other repeats of the samples left out"),
    "bbc_ncv": ("draws, and inner predictions", "samples left out, and the outer folds"),
    "bbc_x": ("each bootstrap draw", "samples left out of the draw"),
}


@dataclass(frozen=True)
class Cell:
    """One entry of a table: what is shown, and what sorting compares."""

    text: str
    key: float | str | None = None
    header: bool = False
    aside: str = ""


@dataclass(frozen=True)
class Table:
    """A table that can be sorted and copied."""

    name: str
    caption: str
    head: list[str]
    numeric: list[bool]
    rows: list[list[Cell]]
    note: str = ""


@dataclass(frozen=True)
class Headline:
    """The numbers a reader takes away."""

    metric: str
    direction: str
    selected: str
    estimate: str
    interval: str
    level: str
    claim: str
    gap: str
    bbc: str
    bbc_interval: str
    sentence: str
    truth: str = ""


@dataclass(frozen=True)
class Remark:
    """One diagnostic in plain words; `care` marks what a reader must not overlook."""

    text: str
    care: bool = False


def places(analysis: Analysis) -> int:
    """Return the decimals of every number in the metric's unit, from the recommended estimate's standard error."""
    return places_of(spread_of(analysis.winner), float(analysis.winner["estimate"]))


def between(result: xr.Dataset, digits: int) -> str:
    """Return ``0.86 to 0.96``, or an empty string without an interval."""
    if "conf_low" not in result or not np.isfinite(float(result["conf_low"])):
        return ""
    return f"{number(result['conf_low'], digits)} to {number(result['conf_high'], digits)}"


def known_truth(analysis: Analysis) -> float:
    """Return the selected configuration's score on a test set, when the cube carries it (``test_<metric>``)."""
    name = f"test_{analysis.metric.name}"
    if name not in analysis.cube.coords or analysis.cube[name].dims != ("configuration",):
        return math.nan
    place = analysis.cube.indexes["configuration"].get_loc(analysis.winner["selected"].item())
    return float(analysis.cube[name].values[place])


def headline(analysis: Analysis) -> Headline:
    """Return the headline numbers as text."""
    digits, metric, recommended = places(analysis), analysis.metric, analysis.winner
    gap = float(recommended["optimism"])
    name = metric_words(metric.name)
    tried = analysis.cube.sizes["configuration"]
    if tried == 1:
        sentence = "Only one configuration was tried, so there is no selection to correct for."
    elif gap > 0:
        sentence = (
            f"Plain cross-validation of the winner of {count(tried)} configurations would claim "
            f"{number(recommended['naive'], digits)}, an estimated {number(gap, digits)} too good: the luck of "
            "having won."
        )
    else:
        sentence = (
            f"Plain cross-validation of the winner of {count(tried)} configurations gives "
            f"{number(recommended['naive'], digits)}: here selection costs nothing that can be measured."
        )
    truth = known_truth(analysis)
    return Headline(
        metric=name,
        direction=better(metric.direction),
        selected=printable(recommended["selected"].item()),
        estimate=number(recommended["estimate"], digits),
        interval=between(recommended, digits),
        level=percent(analysis.level, digits=0 if round(100 * analysis.level, 6).is_integer() else 1),
        claim=number(recommended["naive"], digits),
        gap=number(gap, digits),
        bbc=number(analysis.bbc["estimate"], digits),
        bbc_interval=between(analysis.bbc, digits),
        sentence=sentence,
        truth=number(truth, digits) if np.isfinite(truth) else "",
    )


def statement(shown: Headline) -> str:
    """Return the report's heading: the honest number."""
    return f"The winner\u2019s {shown.metric} is about {shown.estimate}"


def read_facts(cube: xr.DataArray, design: Design, source: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return what was read, in words."""
    facts: list[tuple[str, str]] = []
    report = source or {}
    if report.get("source"):
        facts.append(("Source", printable(report["source"])))
    if report.get("layout"):
        title = printable(report.get("title") or report["layout"])
        how = f" ({report['recognised']})" if report.get("recognised") else ""
        facts.append(("Layout", title + how))
    if report.get("rows"):
        facts.append(("Rows read", count(report["rows"])))
    classes = ", ".join(f"{count(n)} {printable(name)}" for name, n in list(design.classes.items())[:8])
    facts.append(("Samples", count(design.samples) + (f" ({classes})" if classes else "")))
    if design.events is not None:
        facts.append(("Events", f"{count(design.events)} observed, {count(design.samples - design.events)} censored"))
    if design.groups:
        facts.append(("Groups", count(design.groups)))
    facts.append(("Configurations", count(design.configurations)))
    facts.append(("Cross-validation", design_words(design)))
    facts.append(("Predictions", _kind(cube)))
    gaps = report.get("missing_cells")
    if gaps is not None:
        facts.append(("Missing predictions", count(gaps) if gaps else "none"))
    if report.get("ignored_columns"):
        facts.append(("Columns not used", ", ".join(printable(name) for name in report["ignored_columns"][:12])))
    return facts


def design_words(design: Design) -> str:
    """Return the resampling design in a few words."""
    if not design.folds:
        return f"{several(design.repeats, 'repeat')}, folds not saved" if design.repeats > 1 else "folds not saved"
    if design.leave_one_out:
        return "leave-one-out"
    kind = {True: "stratified ", False: "", None: ""}[design.stratified]
    times = f"{several(design.repeats, 'repeat')} of " if design.repeats > 1 else ""
    low, high = design.smallest_fold, design.largest_fold
    return f"{times}{kind}{design.folds}-fold, {low if low == high else f'{low} to {high}'} samples a fold"


def _kind(cube: xr.DataArray) -> str:
    kind = str(cube.coords["kind"].item())
    words = {
        "label": "predicted classes",
        "score": "risk scores" if "event" in cube.coords else "scores",
        "probability": "class probabilities" if "label_class" in cube.dims else "probabilities",
        "value": "predicted times" if "event" in cube.coords else "numbers",
    }[kind]
    if "positive" in cube.coords and kind in ("score", "probability"):
        words += f" of the positive class, {printable(cube.coords['positive'].item())}"
    return words


def method_table(analysis: Analysis) -> Table:
    """Return all methods side by side, the recommended one first."""
    digits = places(analysis)
    rows = []
    for name, outcome in analysis.results.items():
        chooses, judges, about = ABOUT[name]
        label = method_words(name)
        if name == "winner":
            method = str(outcome["method"].item())
            chooses, judges = ESTIMATORS.get(method, (chooses, judges))
            label = f"{label} ({'BBC, ties at random' if method == 'bbc' else method_words(method)})"
        gap = float(outcome["optimism"])
        removed, own = number(gap, digits), number(outcome["naive"], digits)
        if own != number(analysis.winner["naive"], digits):
            removed += f" from {own}"
        if plain(outcome["selected"].item()) != plain(analysis.winner["selected"].item()):
            about += f" Here the winner is {printable(outcome['selected'].item())}."
        rows.append(
            [
                Cell(label, label, header=True, aside=about),
                Cell(number(outcome["estimate"], digits), float(outcome["estimate"])),
                Cell(between(outcome, digits) or "–", _low(outcome)),
                Cell(removed if name != "cvt" else "–", gap if name != "cvt" else None),
                Cell(chooses),
                Cell(judges),
            ]
        )
    level = percent(analysis.level)
    head = ["Method", metric_words(analysis.metric.name), f"{level} interval", "Removed", "Chooses on", "Judges on"]
    head[1] = head[1][0].upper() + head[1][1:]
    note = "; ".join(
        f"{method_words(name)} is not shown: {reason}" for name, reason in analysis.skipped.items() if name in ABOUT
    )
    return Table(
        "methods",
        "Methods side by side",
        head,
        [False, True, True, True, False, False],
        rows,
        note + "." if note else "",
    )


def _low(outcome: xr.Dataset) -> float | None:
    if "conf_low" not in outcome or not np.isfinite(float(outcome["conf_low"])):
        return None
    return float(outcome["conf_low"])


def configuration_table(analysis: Analysis) -> Table:
    """Return every configuration, best plain score first."""
    cube, digits = analysis.cube, places(analysis)
    values = analysis.scores.values.astype(float)
    rate = analysis.winner["win_rate"].values.astype(float)
    order = np.argsort(np.where(np.isnan(values), np.inf, -analysis.metric.sign * values), kind="stable")
    names = [plain(name) for name in cube["configuration"].values]
    inside = best_members(analysis)
    extra = _shown_coords(cube)
    head = ["Configuration", f"Plain CV {metric_words(analysis.metric.name)}", "Wins"]
    head += ["In best set"] if inside is not None else []
    head += [printable(name) for name in extra]
    numeric = [False, True, True, *([False] if inside is not None else []), *extra.values()]
    rows = []
    for rank, at in enumerate(order[:MOST_ROWS]):
        row = [
            Cell(printable(names[at]), printable(names[at]), header=True),
            Cell(number(values[at], digits), _key(values[at])),
            Cell(percent(float(rate[at]), digits=1) if rate[at] > 0 else "0%", _key(rate[at])),
        ]
        if inside is not None:
            row.append(Cell("yes" if inside[at] else "no", 0.0 if inside[at] else 1.0 + rank))
        row += [_coord_cell(cube[name].values[at], isnumber) for name, isnumber in extra.items()]
        rows.append(row)
    note = "Plain CV scores are for ranking; the best of them is optimistic."
    if len(order) > MOST_ROWS:
        note += f" The {count(MOST_ROWS)} best of {count(len(order))} configurations are listed."
    return Table("configurations", "Configurations", head, numeric, rows, note)


def _key(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _shown_coords(cube: xr.DataArray) -> dict[str, bool]:
    """Return the configurations' own coordinates that most of them have, and whether they are numbers."""
    found = {}
    for name, coord in cube.coords.items():
        if coord.dims != ("configuration",) or name == "configuration":
            continue
        numeric = coord.dtype.kind in "fiu"
        if not numeric or np.isfinite(coord.values.astype(float)).mean() > 0.5:  # sparse tuning values are in the name
            found[str(name)] = numeric
    return dict(list(found.items())[:4])


def _coord_cell(value: Any, isnumber: bool) -> Cell:
    value = plain(value)
    if isnumber:
        known = isinstance(value, int) or math.isfinite(value)
        return Cell(f"{value:.6g}" if known else "", float(value) if known else None)
    return Cell(printable(value), printable(value))


def best_members(analysis: Analysis) -> np.ndarray | None:
    """Return which configurations cannot be told from the best, or None when that was not computed."""
    if analysis.best is None:
        return None
    return np.asarray(analysis.best["in_set"].values, bool)


def choice_words(analysis: Analysis) -> str:
    """Return how firm the choice of the winner is, in words."""
    rate = analysis.winner["win_rate"].values.astype(float)
    names = [plain(name) for name in analysis.cube["configuration"].values]
    if len(names) == 1 or not np.isfinite(rate).any():
        return ""
    own = float(rate[names.index(plain(analysis.winner["selected"].item()))])
    some = int((rate > 0).sum())
    firm = (
        "a firm choice"
        if own > 0.8
        else "a choice that other data could well overturn"
        if own < 0.4
        else "a fairly firm choice"
    )
    text = (
        f"The selected configuration wins {percent(own)} of the bootstrap draws, and {count(some)} of "
        f"{count(len(names))} configurations win at least one: {firm}."
    )
    inside = best_members(analysis)
    if inside is not None:
        others = int(inside.sum()) - 1
        level = f"at the {percent(analysis.level)} level"
        text += (
            f" {several(others, 'other configuration')} cannot be told from the best {level}."
            if others > 0
            else f" No other configuration is compatible with being the best {level}."
        )
    return text
