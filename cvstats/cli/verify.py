"""``cvstats verify`` says whether a report follows from the predictions that it was made from."""

from __future__ import annotations

import argparse
import ast
import re
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import xarray as xr

import cvstats
from cvstats._check import InputError, clipped, show
from cvstats._results import cube_hash
from cvstats.cube.arrays import class_names
from cvstats.metrics.base import MADE, get_metric
from cvstats.report import render_html
from cvstats.report.analysis import Analysis
from cvstats.report.page import Page
from cvstats.report.record import (
    BLOCK,
    ENOUGH,
    differences,
    files_of,
    leaves,
    numbers_of,
    order_of,
    read_record,
    versions,
)
from cvstats.tables.words import count, printable, several

from .inputs import inner_of, prior_of, read
from .progress import bars, stage

SAME, DIFFERENT = 0, 1  # exit codes
MAKERS, LONGEST = ("cut", "recalibrate", "shift_prior"), 1000  # of adjustments; letters of a name that is read
SVG = re.compile(r"<svg.*?</svg>", re.S)


def verify(options: argparse.Namespace) -> tuple[str, int]:
    """Make the numbers of a report again; return whether they are those of its record in words, and the exit code."""
    name = printable(Path(options.report).name)
    record, page = read_record(Path(options.report))
    analysis = _analysis(options, record, name)
    now = numbers_of(analysis)
    gaps, total = differences(record["numbers"], now), sum(1 for _ in leaves(now))
    others = _other_predictions(analysis, record)
    agree = min((digits for *_, digits in gaps.values()), default=0)
    if others or (gaps and agree < ENOUGH):
        lines = [f"different: {_first(gaps, 0 if others else ENOUGH)}", *(others or _other_order(analysis, record))]
    elif gaps:
        lines = [f"equal to {agree} digits: {count(len(gaps))} of {several(total, 'number')} differ in later ones."]
    elif page is not None and (altered := _altered(analysis, record, page)):
        lines = [f"different: the numbers of the record come out again, but not the page. {altered}"]
    else:
        lines = [f"identical: all {several(total, 'number')} of {name} come out again, to the last digit."]
    then, now = record["versions"], versions()
    changed = [f"{key} {then.get(key)} there, {value} here" for key, value in now.items() if then.get(key) != value]
    notes = [*_other_files(options, record), *([f"Versions: {'; '.join(changed)}."] if changed else [])]
    return "\n".join([*lines, *notes]), DIFFERENT if lines[0].startswith("different") else SAME


def _analysis(options: argparse.Namespace, record: dict[str, Any], name: str) -> Analysis:
    """Return the analysis of the given predictions with the options of the record."""
    asked, reading, settled = record["options"], record["reading"], record["cube"]
    if not options.files and not options.example:
        options.example = reading.get("example")
        if options.example is None:
            known = [file.get("name") for file in record["inputs"]]
            raise InputError(f"give the predictions that {name} was made from{': ' if known else '.'}{show(known)}")
    if record["inner"] is not None and options.inner is None:
        raise InputError(f"{name} was made with inner predictions too; give them with --inner.")
    options.format = options.format or reading.get("format") or "auto"
    options.encoding = options.encoding or reading.get("encoding") or "utf-8"
    options.columns = options.columns or reading.get("columns") or []
    options.kind = options.kind or settled.get("kind")
    options.threshold = settled.get("threshold") if options.threshold is None else options.threshold
    if options.positive is None and settled.get("positive") is not None:
        options.positive = str(settled["positive"])
    cube, inner = read(options), inner_of(options.inner)
    stage("Estimating")
    how = (asked["regime"], asked["draws"], asked["seed"], asked["level"])
    again = partial(_made_again, cube=cube, report=name)
    metrics, by, adjust = [again(text) for text in asked["metrics"]], asked["by"], asked["adjust"]
    listed = len(metrics) > 1 or record["numbers"].get("decision")  # a list of one has its table too
    decision = {
        "by": by and again(by),
        "adjust": [again(text, what="adjustment") for text in adjust]
        if isinstance(adjust, list)
        else adjust and again(adjust, what="adjustment"),
        "subgroup": asked["subgroup"],
        "prior": prior_of(asked["prior"]),
    }
    return Analysis(cube, metrics if listed else metrics[0], inner, *how, progress=bars(), **decision)


def _made_again(text: str, cube: xr.DataArray, report: str, what: str = "metric") -> Any:
    """Return the metric or adjustment of ours that results call so: ``auc``, ``net_benefit(0.2)``, ``cut(youden)``."""
    function, opened, inside = text[:LONGEST].partition("(")
    try:
        if what == "metric" and not opened:
            get_metric(text)
            return text
        if function in (MADE if what == "metric" else MAKERS):
            call: Any = ast.parse(text, mode="eval").body
            given = [node.id if isinstance(node, ast.Name) else ast.literal_eval(node) for node in call.args]
            made = getattr(cvstats, function)(*given, **{one.arg: ast.literal_eval(one.value) for one in call.keywords})
        else:  # at_prior: brier(ill=0.1)
            labels = {str(label): label for label in class_names(cube) or ()}
            parts = [part.rpartition("=") for part in inside.removesuffix(")").split(", ")]
            made = cvstats.at_prior(function, {labels[label]: float(share) for label, _, share in parts})
        if made.name == text:
            return made
    except (ValueError, SyntaxError, AttributeError, KeyError, TypeError, RecursionError, MemoryError):
        pass
    raise InputError(
        f"{report}: the {what} {clipped(text)} is not known by its name alone, so that only the script that made the "
        "report can make its numbers again."
    )


def _first(gaps: dict[tuple[str, ...], tuple[Any, Any, int]], enough: int) -> str:
    """Return the first number that differs in a digit that counts, in words."""
    for path, (then, now, digits) in gaps.items():
        if digits < enough or not enough:
            where, total = " / ".join(path), several(len(gaps), "number")
            return f"{where} is {then!r} in the record and {now!r} now; {total} differ."
    return "these are other predictions, though all numbers come out again."


def _other_predictions(analysis: Analysis, record: dict[str, Any]) -> list[str]:
    """Return what the hashes of cubes say: nothing, when they are the same or one of them was not computed."""
    found = []
    pairs = {"predictions": (record["cube"], analysis.winner.attrs["cube_hash"])}
    if analysis.inner is not None:
        pairs["inner predictions"] = (record["inner"] or {"hash": "none"}, cube_hash(analysis.inner))
    for what, (then, now) in pairs.items():
        if then["hash"] != now and "not computed" not in (then["hash"], now):
            found.append(f"The {what} are not those of the report: their hash is {now}, and was {then['hash']}.")
    return found


def _other_order(analysis: Analysis, record: dict[str, Any]) -> list[str]:
    """Return what in the same predictions comes in another order, by which draws and ties go."""
    then = record["cube"]["order"]
    moved = [f"{dim}s" for dim, order in order_of(analysis.cube).items() if then.get(dim) != order]
    return [f"The predictions are the same, but {' and '.join(moved)} come in another order."] if moved else []


def _other_files(options: argparse.Namespace, record: dict[str, Any]) -> list[str]:
    """Return which of the given files are not byte for byte those of the report."""
    known = {file["sha256"] for file in record["inputs"] if file["sha256"]}
    if not known:  # made in Python, or of an example
        return []
    given = [*options.files, *(name for name in (options.labels, options.inner) if name)]
    other = [file["name"] for file in files_of(given) if file["sha256"] not in known]
    return [f"Not byte for byte a file of the report: {show(other)}."] if other else []


def _altered(analysis: Analysis, record: dict[str, Any], page: str) -> str:
    """Return where a page is not what this cvstats makes of the numbers; other versions may use other words."""
    now, asked = versions(), record["options"]
    if record["versions"]["cvstats"] != now["cvstats"]:
        return ""
    analysis.source = record["source"]  # the page names the files it was made from
    try:
        again = render_html(Page(analysis, asked["title"], asked["preprocessing"], asked["command"]))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return "Its record is damaged."
    texts = [BLOCK.sub("", text) for text in (page, again)]
    if record["versions"].get("matplotlib") != now["matplotlib"]:
        texts = [SVG.sub("", text) for text in texts]
    pairs = zip_longest(*(text.splitlines() for text in texts), fillvalue="")
    at, (line, expected) = next(((at, pair) for at, pair in enumerate(pairs, 1) if pair[0] != pair[1]), (0, ("", "")))
    if not at:
        return ""
    start = max(0, next((i for i, (a, b) in enumerate(zip(line, expected, strict=False)) if a != b), 0) - 20)
    return f"Line {at} has {clipped(line[start:])} instead of {clipped(expected[start:])}."
