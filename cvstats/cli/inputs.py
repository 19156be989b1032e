"""What the arguments of the command line name: files, labels, inner predictions."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, show
from cvstats.cube.arrays import class_names
from cvstats.cube.values import check_threshold
from cvstats.tables.words import printable

from .progress import stage

CLASS = r"(?:probability|prediction)\[[^\]]+\]"
COLUMNS = ("sample", "label", "prediction", "configuration", "repeat", "fold", "group", "weight", "event")


def read(options: argparse.Namespace) -> xr.DataArray:
    """Return the cube that the arguments name."""
    from cvstats.read import example_cube, read_predictions

    if options.example or not options.files:
        if options.files:
            raise InputError("give files or --example, not both.")
        return _with_threshold(example_cube(options.example or "breast_cancer"), options)
    names = [Path(name) for name in options.files]
    stage(f"Reading {printable(names[0].name)}")
    for name in names:
        if not name.exists():
            raise InputError(f"no such file: {str(name)!r}.")
    arguments: dict[str, Any] = {name: getattr(options, name) for name in ("format", "labels", "kind", "encoding")}
    arguments["columns"] = _columns(options.columns)
    source = names[0] if len(names) == 1 else names
    try:
        cube = read_predictions(source, positive=options.positive, **arguments)
    except InputError:
        if options.positive is None or _natural(options.positive) == options.positive:
            raise
        cube = read_predictions(source, positive=_natural(options.positive), **arguments)
    if options.positive is not None and "positive" not in cube.coords:
        raise InputError(f"--positive is for two classes; the labels are {show(class_names(cube) or ['numbers'])}.")
    return _with_threshold(cube, options)


def check_target(output: str, options: argparse.Namespace) -> None:
    """Raise when the output is something that the command reads, or inside it or around it, or may not be replaced."""
    from cvstats.formats._output import check_output
    from cvstats.report.record import beside

    page, inputs = options.command == "report", [*options.files, options.labels, getattr(options, "inner", None)]
    for target in [Path(output), *([beside(Path(output))] if page else [])]:
        for name in [name for name in inputs if name is not None]:
            read, write = Path(name).resolve(), target.resolve()
            same = read.exists() and write.exists() and read.samefile(write)  # hard links, names that differ in case
            if same or read == write or read in write.parents or write in read.parents:
                raise InputError(
                    f"the output {str(target)!r} would replace {name!r}, which is read; give it another name."
                )
        if target.suffix != ".cube":
            check_output(target, page=page, force=options.force)


def _with_threshold(cube: xr.DataArray, options: argparse.Namespace) -> xr.DataArray:
    if options.threshold is None:
        return cube
    check_threshold(options.threshold, str(cube.coords["kind"].item()))
    return cube.assign_coords(threshold=float(options.threshold))


def _natural(text: str) -> Any:
    """Return what a label on the command line stands for: 2, 0.5, True or the text itself."""
    from cvstats.formats._columns import natural

    return natural(np.array([text])).item()


def _columns(pairs: list[str]) -> dict[str, Any] | None:
    found: dict[str, list[str]] = {}
    classes: dict[str, str] = {}
    for pair in (part for item in pairs for part in re.split(rf",(?=(?:{'|'.join(COLUMNS)}|{CLASS})=)", item)):
        ours, equals, theirs = pair.partition("=")
        if re.fullmatch(CLASS, ours) and theirs:
            classes[ours.partition("[")[2][:-1]] = theirs
        elif not equals or not theirs or ours not in COLUMNS:
            raise InputError(
                f"--columns takes OURS=THEIRS with OURS one of {', '.join(COLUMNS)} or probability[<class>]; "
                f"got {pair!r}."
            )
        else:
            found.setdefault(ours, []).append(theirs)
    if classes and "prediction" in found:
        raise InputError("--columns: give prediction=... or probability[<class>]=..., not both.")
    out: dict[str, Any] = {ours: theirs[0] if len(theirs) == 1 else theirs for ours, theirs in found.items()}
    return (out | ({"prediction": classes} if classes else {})) or None


def cut_of(text: str | None) -> Any:
    """Return the adjustment that ``--cut`` names."""
    from cvstats.adjust import cut

    name, equals, value = (text or "").partition("=")
    if not equals:
        return None if text is None else cut(name)
    try:
        least = {name: float(value)}
    except ValueError:
        least = {}
    if name not in ("sensitivity", "specificity") or not least:
        raise InputError(f"--cut takes a metric, or sensitivity=0.9 or specificity=0.9; got {text!r}.")
    return cut(**least)  # type: ignore[arg-type]


def prior_of(text: str | None) -> dict[Any, float] | None:
    """Return the class probabilities that ``--prior`` names."""
    found = {}
    for part in (text or "").split(",") if text else ():
        label, equals, value = part.rpartition("=")
        try:
            found[_natural(label)] = float(value)
        except ValueError:
            equals = ""
        if not equals or not label:
            raise InputError(f"--prior takes LABEL=PROBABILITY, such as ill=0.02; got {part!r}.")
    return found or None


def inner_of(name: str | None) -> xr.DataArray | None:
    """Return the cube of inner predictions, if one is named."""
    if name is None:
        return None
    from cvstats.read import read_cube

    return read_cube(name)
