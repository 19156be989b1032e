"""What the commands do, once their arguments are parsed."""

from __future__ import annotations

import argparse
import fnmatch
import inspect
import json
import re
import shlex
import sys
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pandas as pd
import xarray as xr

import cvstats
from cvstats._check import InputError, nearest, plain, show
from cvstats.compare import best_set, contrast
from cvstats.formats.long import guarded
from cvstats.protocols import PROTOCOLS
from cvstats.read import write_cube
from cvstats.report import check_folder, template_engine, write_report
from cvstats.report.analysis import Analysis, check_one, default_metric
from cvstats.report.design import read_facts
from cvstats.report.judged import judged_table
from cvstats.report.page import Page
from cvstats.report.record import files_of, finite, variables_of
from cvstats.report.remarks import looking_remarks
from cvstats.report.sections import decision_words, method_table
from cvstats.tables import format_table, render, tidy, words

from .inputs import check_target, cut_of, inner_of, prior_of, read
from .progress import bars, clear, stage
from .verify import verify

# options of a report in the order of a command that makes it again, and those that need not be written out
WRITTEN = "example positive format labels kind threshold encoding metric by cut subgroup prior inner regime "
WRITTEN += "preprocessing title draws level"
USUAL = {"format": "auto", "encoding": "utf-8", "regime": "cv"}


def run(options: argparse.Namespace) -> int:
    """Run one command and return its exit code; warnings become lines on stderr."""
    command: dict[str, Callable[[argparse.Namespace], int | None]]
    command = {"report": report, "estimate": estimate, "compare": compare, "describe": describe, "convert": convert}
    command |= {"verify": verification, "help": explain}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            return command[options.command](options) or 0
        finally:
            clear()
            _warn([str(item.message) for item in caught if issubclass(item.category, UserWarning)])


def _warn(messages: list[str]) -> None:
    for text in dict.fromkeys(messages):
        print(f"warning: {words.printable(' '.join(text.split()))}", file=sys.stderr)


def write(text: str) -> None:
    """Print for a terminal of any encoding: signs become plain ones, and visible where they would steer it."""
    for fancy, simple in (("\u2212", "-"), ("\u202f", " "), ("\u2013", "-"), ("\u2019", "'")):
        text = text.replace(fancy, simple)
    print("\n".join(map(words.printable, text.split("\n"))))


def _analysis(options: argparse.Namespace) -> Analysis:
    cube, inner = read(options), inner_of(options.inner)
    stage("Estimating")
    metrics: Any = re.split(r",(?![^(]*\))", options.metric) if options.metric else [None]
    asked = {"by": options.by, "adjust": cut_of(options.cut), "subgroup": options.subgroup}
    asked["prior"] = prior_of(options.prior)
    plan = (inner, options.regime, options.draws, options.seed, options.level, bars())
    return Analysis(cube, metrics if len(metrics) > 1 else metrics[0], *plan, **asked)


def report(options: argparse.Namespace) -> None:
    """Write the report and print the headline."""
    target = check_folder(options.output)
    check_target(options.output, options)
    template_engine()
    analysis = _analysis(options)
    shown = summary(analysis)
    stage("Drawing")
    example = None if options.files else options.example or "breast_cancer"
    reading = {"example": example, **{name: getattr(options, name) for name in ("format", "columns", "encoding")}}
    files = files_of([*options.files, *(name for name in (options.labels, options.inner) if name)])
    command = reproduction(options, analysis)
    page = Page(analysis, options.title, options.preprocessing, command, list(files), reading)
    write_report(page, target, force=options.force)
    clear()
    write(shown)
    write(f"Report: {target}")
    _warn(analysis.warned)


def reproduction(options: argparse.Namespace, analysis: Analysis) -> str:
    """Return the command that makes the same report, with every default that matters written out."""
    command = ["cvstats", "report", *options.files]
    for columns in options.columns:
        command += ["--columns", columns]
    settings = {**vars(options), "metric": options.metric or analysis.named[0], "level": f"{options.level:g}"}
    for name in [*WRITTEN.split(), "seed"]:
        if settings[name] not in (None, USUAL.get(name)):
            command += [f"--{name}", str(settings[name])]
    return shlex.join([*command, "-o", options.output])


def summary(analysis: Analysis) -> str:
    """Return the headline for a terminal, the honest number first."""
    best, design, number = analysis.winner, analysis.design, analysis.number
    whose = "" if analysis.single else " of the winner"
    lines = [f"{words.capital(analysis.name)}{whose}: {analysis.estimated}"]
    lines.append(f"{'Configuration' if analysis.single else 'Selected'}: {words.printable(best['selected'].item())}")
    if not analysis.single:
        beside, claim, gap = analysis.limits(analysis.bbc), number(best["naive"]), number(best["optimism"])
        paper = number(analysis.bbc["estimate"]) + (f" ({beside})" if beside else "")
        lines.append(f"Plain CV would claim {claim}, optimism {gap}. BBC-CV as published: {paper}.")
    sizes = f"{words.several(design.samples, 'sample')}, {words.several(design.configurations, 'configuration')}"
    lines.append(f"{sizes}, {design.words.split(',')[0]}. Seed {analysis.seed}, {analysis.times} draws.")
    return "\n".join(lines)


def estimate(options: argparse.Namespace) -> None:
    """Print the estimates of all methods."""
    analysis = _analysis(options)
    shown = summary(analysis)
    clear()
    if options.json:
        results = [{"protocol": name, **variables_of(outcome)} for name, outcome in analysis.results.items()]
        if analysis.decision is not None:
            rows = ({str(k): finite(v) for k, v in row.items()} for row in tidy(analysis.decision).to_dict("records"))
            results = [{"protocol": "decision", **row} for row in rows] + results
        _json({**_context(analysis), "results": results, "not_available": analysis.skipped})
    elif options.csv:
        _csv(estimate_table(analysis) if analysis.decision is None else tidy(analysis.decision))
    else:
        one, table = analysis.decision, method_table(analysis)
        narrow = render.Grid(table.header[:4], [row[:4] for row in table.body], note=table.note)
        first = f"{decision_words(analysis)}\n\n" if one is not None else ""
        first += f"{render.text(judged_table(one, analysis.percentage, '', 'decision'))}\n\n" if one is not None else ""
        write(f"{first}{shown}\n\n{render.text(narrow)}")
    _warn(analysis.warned)


def _context(analysis: Analysis) -> dict[str, Any]:
    return {
        "cvstats_version": cvstats.__version__,
        "metric": analysis.metric.name,
        "direction": analysis.metric.direction,
        "seed": analysis.seed,
        "times": analysis.times,
        "n_samples": analysis.cube.sizes["sample"],
        "n_configurations": analysis.cube.sizes["configuration"],
        "n_repeats": analysis.cube.sizes.get("repeat", 1),
        "cube_hash": analysis.winner.attrs.get("cube_hash", ""),
    }


def estimate_table(analysis: Analysis) -> pd.DataFrame:
    """Return one row per method, with the result variables' own names."""
    rows = [
        {"protocol": name, "method": str(outcome["method"].item()), **tidy(outcome).to_dict("records")[0]}
        for name, outcome in analysis.results.items()
    ]
    table = pd.DataFrame(rows)
    counts = [name for name in table.columns if str(name).startswith("n_")]
    return table.astype(dict.fromkeys(counts, "Int64"))


def compare(options: argparse.Namespace) -> None:
    """Print which configurations cannot be excluded as the best, or the difference of two."""
    if (options.a is None) != (options.b is None):
        raise InputError("give both --a and --b, or neither.")
    cube = read(options)
    check_one(cube)
    metric = options.metric or default_metric(cube)
    stage("Comparing")
    common = {"level": options.level, "times": options.draws, "rng": options.seed, "progress": bars()}
    if options.a is None:
        found = best_set(cube, metric, **common)
    else:
        sides = {side: _side(cube, getattr(options, side), f"--{side}") for side in ("a", "b")}
        found = contrast(cube, metric, **sides, **common)
    clear()
    if options.json:
        _json({"seed": options.seed, **variables_of(found)})
    elif options.csv:
        _csv(_best_first(found) if options.a is None else tidy(found))
    elif options.a is None:
        _show_best(options, found)
    else:
        _show_contrast(options, found)


def _side(cube: xr.DataArray, names: list[str], option: str) -> Any:
    known = {str(name): name for name in words.labels_of(cube, "configuration")}
    if len(names) == 1 and names[0] not in known and "=" in names[0]:
        coordinate, _, value = names[0].partition("=")
        if coordinate in cube.coords and cube[coordinate].dims == ("configuration",):
            values = {str(plain(v)): plain(v) for v in cube[coordinate].values}
            if value not in values:
                raise InputError(f"{option}: no configuration has {coordinate} {value!r}; found {show(values)}.")
            return {coordinate: values[value]}
    chosen: list[str] = []
    for name in names:
        alike = [name] if name in known else fnmatch.filter(known, name)
        if not alike:
            raise InputError(f"{option}: no configuration {name!r}{nearest(name, known)}; found {show(known)}.")
        chosen += [one for one in alike if one not in chosen]
    return known[chosen[0]] if len(chosen) == 1 else [known[name] for name in chosen]


def _best_first(found: xr.Dataset) -> pd.DataFrame:
    sign = -1 if float(found["difference"].min()) < 0 else 1
    return tidy(found).sort_values("difference", key=lambda gap: sign * gap, kind="stable")


def _show_best(options: argparse.Namespace, found: xr.Dataset) -> None:
    table = _best_first(found)
    inside = table[table["in_set"].astype(bool)].head(30)
    inside = inside.assign(configuration=[words.printable(name) for name in inside["configuration"]])
    columns = ["configuration", "estimate", "difference", "std_error", "p_value"]
    level, metric = words.level_words(float(found["conf_level"])), words.metric_words(found["metric"].item())
    write(
        f"{int(found['n_set'])} of {found.sizes['configuration']} configurations cannot be excluded as the best "
        f"{metric} at the {level} level (seed {options.seed}).\n"
    )
    digits = words.places_of(found["std_error"].values, found["estimate"].values)
    write(format_table(inside, values=columns, stars=False, digits=digits))
    if len(inside) < int(found["n_set"]):
        write(f"... and {int(found['n_set']) - len(inside)} more (--csv lists all)")


def _show_contrast(options: argparse.Namespace, found: xr.Dataset) -> None:
    digits = words.places_of(words.spread_of(found), float(found["estimate"]))
    metric, level = words.metric_words(found["metric"].item()), words.level_words(float(found["conf_level"]))
    write(
        f"Difference in {metric}, a - b: {words.number(found['estimate'], digits)} "
        f"({level} interval {words.limits_text(found, digits)}), P = {words.p_text(float(found['p_value']))}"
    )
    for side in ("a", "b"):
        chosen = found.get(f"selected_{side}")
        who = "" if chosen is None else f", selected {words.printable(chosen.item())}"
        write(f"{side}: {words.number(found[f'estimate_{side}'], digits)}{who}")
    write(f"About {found.attrs['about']}. Seed {options.seed}, {options.draws} draws.")


def describe(options: argparse.Namespace) -> None:
    """Print what was read and what is worth knowing about it, without estimating anything."""
    looked = Analysis(read(options))
    stage("Looking")
    design, remarks = looked.design, looking_remarks(looked)
    facts = read_facts(looked.cube, design, looked.source)
    clear()
    if options.json:
        _json({**looked.source, **asdict(design), "remarks": [remark.text for remark in remarks]})
        return
    if design.tuning:
        facts.append(("Tuning values", ", ".join(f"{k} {a:g} to {b:g}" for k, (a, b, _) in design.tuning.items())))
    wide = max(len(name) for name, _ in facts)
    for name, text in facts:
        write(f"{name.ljust(wide)}  {text}")
    for remark in remarks:
        write(f"{'!' if remark.care else '-'} {remark.text}")


def convert(options: argparse.Namespace) -> None:
    """Write the predictions as a cube or a long table."""
    if not options.files and not options.example:
        raise InputError("convert needs FILE and OUT, or --example NAME and OUT.")
    check_target(options.target, options)
    cube = read(options)
    stage("Writing")
    write_cube(cube, options.target, force=options.force)
    clear()
    sizes = [words.several(cube.sizes.get(dim, 1), dim) for dim in ("sample", "configuration", "repeat")]
    write(f"Wrote {options.target}: {', '.join(sizes)}.")


def verification(options: argparse.Namespace) -> int:
    """Print whether a report follows from the predictions."""
    text, code = verify(options)
    clear()
    write(text)
    return code


def explain(options: argparse.Namespace) -> None:
    """Print what a function does and when not to rely on it, from its own documentation."""
    known = [name for name in dir(cvstats) if callable(getattr(cvstats, name))]
    if options.name not in known:
        raise InputError(f"no function {options.name!r}{nearest(options.name, known)}; found {show(known)}.")
    text = inspect.getdoc(getattr(cvstats, options.name)) or ""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}$", text, flags=re.MULTILINE)
    protocol = PROTOCOLS.get(options.name)
    write(parts[0].strip())
    if protocol is not None and protocol.chooses != "see below":
        write(f"\nChooses on {protocol.chooses}, judges on {protocol.judges}. {protocol.remark}")
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        if title in ("Notes", "References"):
            write(f"\n{title}\n{textwrap.indent(body.strip(), '  ')}")


def _json(value: Any) -> None:
    print(json.dumps(value, indent=2, allow_nan=False, default=str))


def _csv(table: pd.DataFrame) -> None:
    text = [name for name in table.columns if not pd.api.types.is_numeric_dtype(table[name])]
    lines = table.assign(**{name: guarded(table[name].tolist()) for name in text}).to_csv(index=False)
    write(lines.removesuffix("\n")) if sys.stdout.isatty() else print(lines, end="")
