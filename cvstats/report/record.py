"""The record of a report: what went in and every number that came out, beside the page and inside it.

``cvstats verify`` makes the numbers again from the predictions and compares them with a record.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import cvstats
from cvstats._check import InputError, plain
from cvstats._results import cube_hash
from cvstats.adjust import Adjustment
from cvstats.cube.arrays import SETTLED
from cvstats.formats._gate import node, opened
from cvstats.tables import tidy

from .analysis import Analysis
from .page import Page
from .sections import listed

MARK, VERSION = "cvstats_record", 1
LARGEST = 2**28  # bytes of a page or record that is read
ENOUGH = 6  # digits in which numbers must agree to be equal
SMALL = 1e-6  # numbers below this share of the plain score are compared with that share: an optimism of 0 or 1e-17
BLOCK = re.compile(r'<script type="application/json" id="record">(.*?)</script>', re.S)
SHAPE: dict[str, dict[str, tuple[type, ...]]] = {
    "cube": {"hash": (str,), "order": (dict,)},
    "options": {"metric": (str,), "metrics": (list,), "seed": (int,), "draws": (int,), "level": (float,)}
    | {"regime": (str,), "adjust": (str, list, type(None))}
    | dict.fromkeys(("by", "subgroup", "prior", "preprocessing", "title", "command"), (str, type(None))),
    "reading": {},
    "source": {},
    "versions": {"cvstats": (str,)},
    "numbers": {"results": (dict,)},
}
# what reading and cube may hold
OPTIONAL = {"example": str, "format": str, "encoding": str, "columns": list, "kind": str, "threshold": float}


def beside(page: Path) -> Path:
    """Return where the record of a page is."""
    return page.with_suffix(".record.json")


def record_of(page: Page) -> dict[str, Any]:
    """Return what went into a page and every number on it."""
    analysis, cube, one = page.analysis, page.analysis.cube, page.analysis.adjust
    settled = {name: plain(cube.coords[name].values[()]) for name in SETTLED if name in cube.coords}
    return {
        MARK: VERSION,
        "versions": versions(),
        "inputs": list(page.inputs),
        "reading": dict(page.reading),
        "cube": {"hash": analysis.winner.attrs["cube_hash"], "order": order_of(cube), "sizes": dict(cube.sizes)}
        | settled,
        "inner": None if analysis.inner is None else {"hash": cube_hash(analysis.inner)},
        "options": {
            "metric": analysis.metric.name,
            "metrics": [name if isinstance(name, str) else name.name for name in analysis.named],
            "by": analysis.by if isinstance(analysis.by, (str, type(None))) else analysis.by.name,
            "adjust": one.name if isinstance(one, Adjustment) else one and [step.name for step in one],
            "subgroup": analysis.subgroup,
            "prior": None if analysis.prior is None else prior_words(analysis.prior),
            "seed": analysis.seed,
            "draws": analysis.times,
            "level": float(analysis.level),
            "regime": analysis.regime,
            "preprocessing": page.preprocessing,
            "title": page.title,
            "command": page.command,
        },
        "source": analysis.source,
        "numbers": numbers_of(analysis),
    }


def prior_words(prior: Mapping[Any, float]) -> str:
    """Return a prior as it is given on the command line."""
    return ",".join(f"{plain(label)}={float(value)!r}" for label, value in prior.items())


def order_of(cube: xr.DataArray) -> dict[str, str]:
    """Return a hash of the names along each dim as they come: draws go by the place of a sample, ties by the first."""
    names = {str(dim): [str(name) for name in index] for dim, index in cube.indexes.items()}
    return {dim: hashlib.sha256(json.dumps(own).encode()).hexdigest() for dim, own in names.items()}


def versions() -> dict[str, str]:
    """Return the versions of what computes and draws."""
    import matplotlib as mpl
    import pandas as pd
    import scipy

    packages = {"numpy": np, "scipy": scipy, "xarray": xr, "pandas": pd, "matplotlib": mpl}
    own = {"cvstats": cvstats.__version__, "python": platform.python_version()}
    return own | {name: package.__version__ for name, package in packages.items()}


def numbers_of(analysis: Analysis) -> dict[str, Any]:
    """Return every number that a report shows, in full precision."""
    names = analysis.cube["configuration"].values
    columns = {"score": analysis.scores.values, "win_rate": analysis.winner["win_rate"].values}
    if analysis.best is not None:
        columns["in_set"] = analysis.best["in_set"].values
    rows = {str(plain(names[at])): {key: finite(one[at]) for key, one in columns.items()} for at in listed(analysis)}
    curve = analysis.curve
    found = {
        "results": {name: variables_of(out, scalar=True) for name, out in analysis.results.items()},
        "decision": None if analysis.decision is None else tidy(analysis.decision).map(finite).to_dict("records"),
        "population": None if analysis.population is None else variables_of(analysis.population),
        "test": finite(analysis.truth),
        "configurations": rows,
        "curve": None if curve is None else variables_of(curve),
        "design": asdict(analysis.design),
        "description": variables_of(analysis.about, scalar=True),
    }
    return dict(json.loads(json.dumps(found)))  # as it is read again: lists for tuples


def variables_of(result: xr.Dataset, *, scalar: bool = False) -> dict[str, Any]:
    """Return a result's own variables: scalars as they are, others as {label: value} or lists, unless left out."""
    found: dict[str, Any] = {}
    for name in [*result.data_vars, *[name for name in result.coords if result[name].ndim == 0]]:
        values = result[name]
        if values.ndim == 0:
            found[str(name)] = finite(values.values[()])
        elif scalar:
            continue
        elif values.ndim == 1 and values.dims[0] in values.coords:
            labels = values[values.dims[0]].values
            found[str(name)] = {str(plain(label)): finite(v) for label, v in zip(labels, values.values, strict=True)}
        else:
            found[str(name)] = [[finite(v) for v in np.ravel(row)] for row in values.values]
    return found


def finite(value: Any) -> Any:
    """Return a value as JSON has it: what is not finite is None."""
    value = plain(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def record_text(record: Mapping[str, Any]) -> str:
    """Return a record as JSON that may stand in a page: no character of it ends a script."""
    text = json.dumps(record, indent=1, allow_nan=False, default=str)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text + "\n"


def files_of(names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield name, size and SHA-256 hash of files, of folders those of the files in them; a pipe has neither."""
    for name in names:
        path = Path(name)
        inside = sorted(found for found in path.rglob("*") if node(found, follow=False) == "a file")
        for file in inside if path.is_dir() else [path]:
            known: dict[str, Any] = {"name": file.as_posix(), "bytes": None, "sha256": None}
            if node(file) == "a file":
                with opened(file) as content:
                    known["sha256"] = hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type]
                    known["bytes"] = content.tell()
            yield known


# -- reading one again


def read_record(path: Path) -> tuple[dict[str, Any], str | None]:
    """Return the record in a page or a file of its own, and the page; raise when there is none to be read."""
    with opened(path) as file:
        raw = file.read(LARGEST + 1)
    try:
        if len(raw) > LARGEST:
            raise ValueError
        text = raw.decode()
        page = None if text.lstrip().startswith("{") else text
        (found,) = [text] if page is None else BLOCK.findall(page)
        record = json.loads(found)
        version = record[MARK]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f"{path.name}: this is no report with a record, and no record (.record.json) of one."
        ) from None
    if version != VERSION:
        raise InputError(f"{path.name}: the record has version {version!r}; this cvstats knows {VERSION}.")
    for part in _damaged(record):
        raise InputError(f"{path.name}: the record is damaged: {part}.")
    return record, page


def _damaged(record: dict[str, Any]) -> Iterator[str]:
    """Yield what in a record is not of the type it must have."""
    for part, fields in SHAPE.items():
        given = record.get(part)
        if not isinstance(given, dict):
            yield part
        else:
            yield from (f"{part} {name}" for name, types in fields.items() if type(given.get(name)) not in types)
            wrong = [name for name, kind in OPTIONAL.items() if not isinstance(given.get(name), (kind, type(None)))]
            yield from (f"{part} {name}" for name in wrong if part in ("cube", "reading"))
    columns, files, inner = record["reading"].get("columns"), record.get("inputs"), record.get("inner")
    metrics, steps = record["options"]["metrics"], record["options"]["adjust"]
    if not metrics or not all(isinstance(name, str) for name in (*metrics, *(steps or []), *(columns or []))):
        yield "options metrics, options adjust or reading columns"
    if not isinstance(files, list) or not all(isinstance(file, dict) and "sha256" in file for file in files):
        yield "inputs"
    if inner is not None and not (isinstance(inner, dict) and isinstance(inner.get("hash"), str)):
        yield "inner"


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield where every single value of nested tables stands, and the value."""
    if not isinstance(value, (dict, list)):
        yield path, value
        return
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        yield from leaves(part, (*path, str(key)))


def differences(then: Any, now: Any) -> dict[tuple[str, ...], tuple[Any, Any, int]]:
    """Return where two tables of numbers differ: what each has there, and in how many digits they agree."""
    old, new = dict(leaves(then)), dict(leaves(now))
    naive = new.get(("results", "winner", "naive"))
    small = SMALL * abs(naive) if isinstance(naive, float) else 0.0
    found = {}
    for path in dict.fromkeys([*old, *new]):
        a, b = old.get(path, "absent"), new.get(path, "absent")
        if a != b or type(a) is not type(b):
            found[path] = (a, b, _digits(a, b, small))
    return found


def _digits(a: Any, b: Any, small: float) -> int:
    """Return in how many digits two values agree that are not the same; only real numbers can."""
    if not (isinstance(a, float) and isinstance(b, float) and math.isfinite(a - b)):
        return 0
    gap = abs(a - b) / max(abs(a), abs(b), small)
    return max(0, min(15, math.floor(-math.log10(gap)))) if gap > 0 else 15
