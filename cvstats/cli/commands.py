"""What the commands do, once their arguments are parsed."""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, plain, show
from cvstats.report.analysis import Analysis, analyse, check_one, default_metric, design_of
from cvstats.report.parts import between, design_words, headline, method_table
from cvstats.tables.words import metric_words, number, percent, printable, several

from .inputs import check_target, inner_of, read
from .progress import bars, clear, stage


def run(options: argparse.Namespace) -> None:
    """Run one command; warnings become lines on stderr."""
    command = {"report": report, "estimate": estimate, "compare": compare, "describe": describe, "convert": convert}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            command[options.command](options)
        finally:
            clear()
            _warn([str(item.message) for item in caught if issubclass(item.category, UserWarning)])


def _warn(messages: list[str]) -> None:
    for text in dict.fromkeys(messages):
        print(f"warning: {printable(' '.join(text.split()))}", file=sys.stderr)


def write(text: str) -> None:
    """Print for a terminal of any encoding: typographic signs become plain ones."""
    for fancy, simple in (("\u2212", "-"), ("\u202f", " "), ("\u2013", "-"), ("\u2019", "'")):
        text = text.replace(fancy, simple)
    print(text)


def _analysed(options: argparse.Namespace, *, extras: bool) -> Analysis:
    cube = read(options)
    inner = inner_of(options.inner)
    stage("Estimating")
    return analyse(
        cube,
        options.metric,
        inner=inner,
        regime=options.regime,
        times=options.draws,
        seed=options.seed,
        level=options.level,
        extras=extras,
        progress=bars(),
    )


def report(options: argparse.Namespace) -> None:
    """Write the report and print the headline."""
    from cvstats.report import check_folder, render_html, template_engine, write_text

    target = check_folder(options.output)
    check_target(options.output, options)
    template_engine()
    analysis = _analysed(options, extras=True)
    stage("Drawing")
    text = render_html(
        analysis, title=options.title, preprocessing=options.preprocessing, command=reproduction(options, analysis)
    )
    write_text(target, text, force=options.force)
    clear()
    write(summary(analysis))
    write(f"Report: {target}")
    _warn(analysis.warned)


def reproduction(options: argparse.Namespace, analysis: Analysis) -> str:
    """Return the command that makes the same report, with every default written out."""
    words = ["cvstats", "report", *options.files]
    named = {
        "--example": options.example,
        "--positive": options.positive,
        "--format": None if options.format == "auto" else options.format,
        "--labels": options.labels,
        "--kind": options.kind,
        "--threshold": options.threshold,
        "--encoding": None if options.encoding == "utf-8" else options.encoding,
        "--metric": analysis.metric.name,
        "--inner": options.inner,
        "--regime": None if options.regime == "cv" else options.regime,
        "--preprocessing": options.preprocessing,
        "--title": options.title,
        "--draws": options.draws,
        "--level": f"{options.level:g}",
        "--seed": options.seed,
        "-o": options.output,
    }
    for columns in options.columns:
        words += ["--columns", columns]
    for name, value in named.items():
        if value is not None:
            words += [name, str(value)]
    return shlex.join(words)


def summary(analysis: Analysis) -> str:
    """Return the headline for a terminal, the honest number first."""
    shown, design = headline(analysis), design_of(analysis.cube)
    lines = [f"{shown.metric[:1].upper()}{shown.metric[1:]} of the winner: {shown.estimate}"]
    if shown.interval:
        lines[0] += f" ({shown.level} interval {shown.interval})"
    lines.append(f"Selected: {shown.selected}")
    if design.configurations > 1:
        beside = f" ({shown.bbc_interval})" if shown.bbc_interval else ""
        lines.append(
            f"Plain CV would claim {shown.claim}, optimism {shown.gap}. BBC-CV as published: {shown.bbc}{beside}."
        )
    sizes = f"{several(design.samples, 'sample')}, {several(design.configurations, 'configuration')}"
    lines.append(f"{sizes}, {design_words(design).split(',')[0]}. Seed {analysis.seed}, {analysis.times} draws.")
    return "\n".join(lines)


def estimate(options: argparse.Namespace) -> None:
    """Print the estimates of all methods."""
    analysis = _analysed(options, extras=False)
    clear()
    if options.json:
        results = [{"protocol": name, **_record(outcome)} for name, outcome in analysis.results.items()]
        _json({**_context(analysis), "results": results, "not_available": analysis.skipped})
    elif options.csv:
        _csv(estimate_table(analysis))
    else:
        write(summary(analysis))
        write("")
        write(_text_table(analysis))
    _warn(analysis.warned)


def _context(analysis: Analysis) -> dict[str, Any]:
    import cvstats

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


def _record(result: xr.Dataset) -> dict[str, Any]:
    """Return a result's own variables: scalars as they are, others as {label: value} or lists."""
    found: dict[str, Any] = {}
    for name in [*result.data_vars, *[name for name in result.coords if result[name].ndim == 0]]:
        values = result[name]
        if values.ndim == 0:
            found[str(name)] = _plain(values.values[()])
        elif values.ndim == 1 and values.dims[0] in values.coords:
            labels = values[values.dims[0]].values
            found[str(name)] = {str(plain(label)): _plain(v) for label, v in zip(labels, values.values, strict=True)}
        else:
            found[str(name)] = [[_plain(v) for v in np.ravel(row)] for row in values.values]
    return found


def _plain(value: Any) -> Any:
    value = plain(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def estimate_table(analysis: Analysis) -> pd.DataFrame:
    """Return one row per method, with the result variables' own names."""
    rows = []
    for name, outcome in analysis.results.items():
        scalars = {str(v): plain(outcome[v].values[()]) for v in outcome.data_vars if outcome[v].ndim == 0}
        labels = {str(c): plain(outcome[c].values[()]) for c in ("metric", "conf_level", "interval")}
        rows.append({"protocol": name, "method": str(outcome["method"].item()), **scalars, **labels})
    table = pd.DataFrame(rows)
    counts = [name for name in table.columns if str(name).startswith("n_")]
    return table.astype(dict.fromkeys(counts, "Int64"))


def _text_table(analysis: Analysis) -> str:
    from cvstats.tables.render import Cell, Grid, text

    table = method_table(analysis)
    body = [[Cell(cell.text) for cell in row[:4]] for row in table.rows]
    return text(Grid(table.head[:4], body, labels=1, note=table.note))


def compare(options: argparse.Namespace) -> None:
    """Print which configurations are as good as the best, or the difference of two."""
    if (options.a is None) != (options.b is None):
        raise InputError("give both --a and --b, or neither.")
    cube = read(options)
    check_one(cube)
    metric = options.metric or default_metric(cube)
    stage("Comparing")
    common = {"level": options.level, "times": options.draws, "rng": options.seed}
    if options.a is None:
        from cvstats.compare.best import best_set

        found = best_set(cube, metric, **common)
        clear()
        _show_best(options, found)
        return
    from cvstats.compare.contrasts import contrast

    sides = {side: _side(cube, getattr(options, side), f"--{side}") for side in ("a", "b")}
    found = contrast(cube, metric, **sides, **common)
    clear()
    _show_contrast(options, found)


def _side(cube: xr.DataArray, names: list[str], option: str) -> Any:
    known = {str(plain(name)): plain(name) for name in cube["configuration"].values}
    if len(names) == 1 and names[0] not in known and "=" in names[0]:
        coordinate, _, value = names[0].partition("=")
        if coordinate in cube.coords and cube[coordinate].dims == ("configuration",):
            values = {str(plain(v)): plain(v) for v in cube[coordinate].values}
            if value not in values:
                raise InputError(f"{option}: no configuration has {coordinate} {value!r}; found {show(values)}.")
            return {coordinate: values[value]}
    for name in names:
        if name not in known:
            from cvstats._check import nearest

            raise InputError(f"{option}: no configuration {name!r}{nearest(name, known)}; found {show(known)}.")
    return known[names[0]] if len(names) == 1 else [known[name] for name in names]


def _show_best(options: argparse.Namespace, found: xr.Dataset) -> None:
    from cvstats.tables import format_table, tidy
    from cvstats.tables.layout import decimals

    table = tidy(found)
    sign = -1 if float(found["difference"].min()) < 0 else 1
    table = table.assign(_key=sign * table["difference"]).sort_values("_key", kind="stable").drop(columns="_key")
    if options.json:
        _json({"seed": options.seed, **_record(found)})
    elif options.csv:
        _csv(table)
    else:
        level, metric = percent(float(found["conf_level"])), metric_words(found["metric"].item())
        write(
            f"{int(found['n_set'])} of {found.sizes['configuration']} configurations cannot be told from the best "
            f"{metric} at the {level} level (seed {options.seed})."
        )
        inside = table[table["in_set"].astype(bool)].head(30)
        inside = inside.assign(configuration=[printable(name) for name in inside["configuration"]])
        write("")
        write(
            format_table(
                inside,
                values=["configuration", "estimate", "difference", "std_error", "p_value"],
                stars=False,
                digits=decimals(found["std_error"].values),
            )
        )
        if len(inside) < int(found["n_set"]):
            write(f"... and {int(found['n_set']) - len(inside)} more (--csv lists all)")


def _show_contrast(options: argparse.Namespace, found: xr.Dataset) -> None:
    if options.json:
        _json({"seed": options.seed, **_record(found)})
        return
    if options.csv:
        from cvstats.tables import tidy

        _csv(tidy(found))
        return
    from cvstats.tables.layout import p_text
    from cvstats.tables.words import places_of, spread_of

    digits = places_of(spread_of(found), float(found["estimate"]))
    metric, level = metric_words(found["metric"].item()), percent(float(found["conf_level"]))
    write(
        f"Difference in {metric}, a - b: {number(found['estimate'], digits)} "
        f"({level} interval {between(found, digits)}), P = {p_text(float(found['p_value']))}"
    )
    for side in ("a", "b"):
        value = number(found[f"estimate_{side}"], digits)
        chosen = f", selected {printable(found[f'selected_{side}'].item())}" if f"selected_{side}" in found else ""
        write(f"{side}: {value}{chosen}")
    write(f"Seed {options.seed}, {options.draws} draws.")


def describe(options: argparse.Namespace) -> None:
    """Print what was read and what is worth knowing about it."""
    from .describing import described

    cube = read(options)
    stage("Looking")
    facts, remarks, record = described(cube)
    clear()
    if options.json:
        _json(record)
        return
    wide = max(len(name) for name, _ in facts)
    for name, text in facts:
        write(f"{name.ljust(wide)}  {text}")
    for remark in remarks:
        write(f"{'!' if remark.care else '-'} {remark.text}")


def convert(options: argparse.Namespace) -> None:
    """Write the predictions as a cube or a long table."""
    from cvstats.read import write_cube

    if not options.files and not options.example:
        raise InputError("convert needs FILE and OUT, or --example NAME and OUT.")
    check_target(options.target, options)
    cube = read(options)
    stage("Writing")
    write_cube(cube, options.target, force=options.force)
    clear()
    sizes = f"{several(cube.sizes['sample'], 'sample')}, {several(cube.sizes['configuration'], 'configuration')}"
    write(f"Wrote {options.target}: {sizes}, {several(cube.sizes.get('repeat', 1), 'repeat')}.")


def _json(value: Any) -> None:
    print(json.dumps(value, indent=2, allow_nan=False, default=str))


def _csv(table: pd.DataFrame) -> None:
    from cvstats.formats.long import guarded

    table.apply(lambda column: guarded(column.tolist()), result_type="expand").to_csv(sys.stdout, index=False)
