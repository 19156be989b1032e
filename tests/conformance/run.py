"""Run the conformance vectors against cvstats and print a table.

    python -m tests.conformance [FILE ...] [--failures]

The vectors are plain JSON (see README.md); this runner is all that is specific to cvstats.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import cvstats as cs

HERE = Path(__file__).parent
CUBE_ARGUMENTS = ("labels", "folds", "classes", "weights", "groups", "event", "kind", "positive", "threshold")


class Row(NamedTuple):
    """One expected quantity and what came out."""

    name: str
    quantity: str
    expected: np.ndarray
    got: np.ndarray
    difference: float
    passed: bool


def numbers(value: Any) -> Any:
    """Return a JSON value with the strings NaN, NA, Inf and -Inf as numbers, nested lists as they are."""
    if isinstance(value, list):
        return [numbers(item) for item in value]
    if value is None or value in ("NaN", "NA"):
        return float("nan")
    if value in ("Inf", "-Inf"):
        return float(value)
    return value


def make_cube(data: dict[str, Any]) -> xr.DataArray:
    """Return the cube that a data set of a vector file describes."""
    given = {name: data[name] for name in CUBE_ARGUMENTS if name in data}
    if "partner" in data or "horizon" in data:
        values = np.asarray(numbers(data["predictions"]), float)
        third = "partner" if "partner" in data else "horizon"
        array = xr.DataArray(values, dims=("sample", "configuration", third, "repeat")[: values.ndim])
        array = array.assign_coords(horizon=np.asarray(data["horizon"], float)) if third == "horizon" else array
        cube = cs.as_cube(array, np.asarray(given.pop("labels")), **given)
    else:
        predictions = np.asarray(numbers(data["predictions"]))
        cube = cs.as_cube(predictions, np.asarray(given.pop("labels")), **given)
    if "complexity" in data:
        cube = cube.assign_coords(complexity=("configuration", np.asarray(data["complexity"], float)))
    for name, values in data.get("coordinates", {}).items():
        cube = cube.assign_coords({name: ("sample", np.asarray(values))})
    return cube


def make_inner(inner: dict[str, Any]) -> xr.DataArray:
    """Return inner predictions: sample x configuration x outer fold [x repeat]."""
    values = np.asarray(numbers(inner["predictions"]), float)
    out = xr.DataArray(values, dims=("sample", "configuration", "outer_fold", "repeat")[: values.ndim])
    out = out.assign_coords({dim: np.arange(out.sizes[dim]) for dim in out.dims})
    if "folds" in inner:
        folds = np.asarray(inner["folds"])
        out = out.assign_coords(fold=(("sample", "outer_fold", "repeat")[: folds.ndim], folds))
    return out


def make_draws(draws: Any) -> xr.DataArray:
    """Return weights over draw and sample; ``{"enumerate": n}`` stands for all n^n ordered draws of n samples."""
    counts: Any = draws
    if isinstance(draws, dict):
        n = draws["enumerate"]
        counts = [np.bincount(picked, minlength=n) for picked in itertools.product(range(n), repeat=n)]
    return xr.DataArray(np.asarray(counts), dims=("draw", "sample"))


def named_cube(where: Any, data: dict[str, Any]) -> xr.DataArray:
    """Return a data set of the file, or several stacked as realisations."""
    if isinstance(where, str):
        return make_cube(data[where])
    return xr.concat([make_cube(data[name]) for name in where], dim="realisation", coords="minimal", compat="override")


def made(written: dict[str, Any], cube: xr.DataArray) -> Any:
    """Return the metric, adjustment or strategy written as ``{name: arguments}``; keys in arguments are labels."""
    ((name, arguments),) = written.items()
    if name == "select_best":
        return cs.select_best
    labels = {str(label): label for label in np.unique(cube["label"].values).tolist()}
    named = dict(arguments)
    for key, value in arguments.items():
        if isinstance(value, dict):
            named[key] = made(value, cube) if key == "metric" else {labels[k]: v for k, v in value.items()}
    return getattr(cs, name)(**named)


def call(vector: dict[str, Any], content: dict[str, Any]) -> Any:
    """Return what the library answers to a vector of a file with this content."""
    data = content["data"]
    positional: list[Any] = []
    keywords = dict(vector.get("arguments", {}))
    if "data" in vector:
        positional.append(named_cube(vector["data"], data))
    for name, where in vector.get("data_arguments", {}).items():
        keywords[name] = named_cube(where, data)
    for name, where in vector.get("inner_arguments", {}).items():
        keywords[name] = make_inner(content["inner"][where])
    for name, array in vector.get("array_arguments", {}).items():
        given = xr.DataArray(np.asarray(array["values"]), dims=array["dims"])
        keywords[name] = given.assign_coords(sample=positional[0]["sample"]) if "sample" in given.dims else given
    for name, values in vector.get("plain", {}).items():
        keywords[name] = np.asarray(values, float)
    if "select" in vector:
        keywords["select"] = getattr(cs, vector["select"])
    if "metric" in vector:
        metric = vector["metric"]
        if "metric_arguments" in vector:
            metric = {metric: vector["metric_arguments"]}
        listed = [
            m if isinstance(m, str) else made(m, positional[0])
            for m in (metric if isinstance(metric, list) else [metric])
        ]
        positional.append(listed if isinstance(metric, list) else listed[0])
    if "adjust" in vector:
        keywords["adjust"] = [made(step, positional[0]) for step in vector["adjust"]]
    for name, strategy in vector.get("strategies", {}).items():
        keywords[name] = made(strategy, positional[0])
    if "mixture" in vector:
        keywords["select"] = made(vector["mixture"], positional[0])
    if "draws" in vector:
        draws = make_draws(vector["draws"] if isinstance(vector["draws"], dict) else content["draws"][vector["draws"]])
        keywords["draws"] = draws.assign_coords(sample=positional[0]["sample"].values)
    if "inner" in vector:
        keywords["inner"] = make_inner(content["inner"][vector["inner"]])
    if "other_data" in vector:
        keywords["other"] = make_cube(data[vector["other_data"]])
    if "select_within" in vector:
        keywords["select"] = cs.select_within(vector["select_within"])
    if "calibrated" in vector:
        keywords["interval"] = cs.calibrated(**vector["calibrated"])
    for name, array in vector.get("arrays", {}).items():
        value = xr.DataArray(np.asarray(numbers(array["values"]), float), dims=array["dims"])
        if name == "x":
            positional.append(value)
        else:
            keywords[name] = value
    if "results" in vector:
        held = {name: (vector["dim"], values) for name, values in vector["results"].items() if name != "metric"}
        positional.append(xr.Dataset(held, coords={"metric": vector["results"]["metric"]}))
    if "dim" in vector:
        positional.append(vector["dim"] if isinstance(vector["dim"], str) else tuple(vector["dim"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.CvstatsWarning)
        function = getattr(cs, vector["function"])
        if "plain" in vector:
            return function(keywords.pop("scores"), **keywords)
        found = function(*positional, **keywords)
    return found.sel(vector["order"]) if "order" in vector else found


def compare(expected: np.ndarray, got: np.ndarray, tolerance: float) -> tuple[float, bool]:
    """Return the largest difference (relative above 1), and whether it is within the tolerance."""
    if expected.size != got.size:
        return np.inf, False
    expected, got = expected.ravel(), got.ravel()
    if expected.dtype.kind not in "fiub" or got.dtype.kind not in "fiub":
        return (0.0, True) if [str(v) for v in expected] == [str(v) for v in got] else (np.inf, False)
    expected, got = expected.astype(float), got.astype(float)
    same = (expected == got) | (np.isnan(expected) & np.isnan(got))
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0.0, np.abs(expected - got) / np.maximum(1.0, np.abs(expected)))
    gap = np.where(np.isnan(gap), np.inf, gap)
    worst = float(gap.max(initial=0.0))
    return worst, worst <= tolerance


def rows(paths: list[Path]) -> Iterator[Row]:
    """Yield a row for every expected quantity of every vector."""
    for path in paths:
        content = json.loads(path.read_text(encoding="utf-8"))
        for vector in content["vectors"]:
            name = f"{path.stem}/{vector['name']}"
            try:
                found = call(vector, content)
            except Exception as error:
                for quantity, value in vector["expected"].items():
                    yield Row(name, quantity, np.asarray(numbers(value)), np.array(type(error).__name__), np.inf, False)
                continue
            for quantity, value in vector["expected"].items():
                expected = np.asarray(numbers(value))
                got = found if quantity == "value" and not isinstance(found, xr.Dataset) else found[quantity]
                answer = np.asarray(got.transpose("metric", ...) if "metric" in getattr(got, "dims", ()) else got)
                difference, passed = compare(expected, answer, vector["tolerance"])
                yield Row(name, quantity, expected, answer, difference, passed)


def files() -> list[Path]:
    """Return the vector files."""
    return sorted(HERE.glob("*.json"))


def shown(values: np.ndarray) -> str:
    """Return the first value of an array, and how many more there are."""
    flat = values.ravel()
    first = f"{flat[0]:.10g}" if flat.dtype.kind in "fiu" else str(flat[0])
    return first if flat.size == 1 else f"{first} (+{flat.size - 1})"


def main(arguments: list[str] | None = None) -> int:
    """Print the table; the exit status is the number of failures, at most 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="*", type=Path, help="vector files; all of them by default")
    parser.add_argument("--failures", action="store_true", help="show failures only")
    chosen = parser.parse_args(arguments)
    count = failed = 0
    print(f"{'vector':<52} {'quantity':<16} {'expected':>22} {'got':>22} {'difference':>10}  pass")  # noqa: T201
    for row in rows(chosen.file or files()):
        count, failed = count + 1, failed + (not row.passed)
        if row.passed and chosen.failures:
            continue
        verdict = "yes" if row.passed else "NO"
        print(  # noqa: T201
            f"{row.name:<52} {row.quantity:<16} {shown(row.expected):>22} {shown(row.got):>22} "
            f"{row.difference:>10.1e}  {verdict}"
        )
    print(f"{count} quantities, {failed} failures")  # noqa: T201
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
