"""The load report: what was read and how, kept on the cube as JSON so that it survives every file format."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.cube.arrays import encode_labels

ATTR = "load_report"
MANY, LARGE = 30, 20_000_000  # samples from which on chance makes nobody perfect; cells that take too long to count
TOO_GOOD, PLAUSIBLE = 0.995, 0.97
MIN_FOLD = 3  # a fold of one or two zeros is no evidence


def attach(cube: xr.DataArray, *, layout: str, title: str, recognised: str, source: str, **facts: Any) -> xr.DataArray:
    """Return the cube with its load report."""
    if "missing_cells" not in facts:
        missing = cube.variable.isnull()
        facts["missing_cells"] = int((missing.any("label_class") if "label_class" in cube.dims else missing).sum())
    report: dict[str, Any] = {
        "layout": layout, "title": title, "recognised": recognised, "source": source,
        "rows": facts.get("rows"),
        "samples": cube.sizes["sample"],
        "configurations": cube.sizes["configuration"],
        "repeats": cube.sizes.get("repeat", 1),
        "folds": _folds(cube),
        "classes": cube.sizes.get("label_class"),
        "kind": kind_of(cube),
        "missing_cells": facts["missing_cells"],
        "duplicate_rows": 0,
        "truth_conflicts": 0,
        "averaged_repeats": False,
        "zero_filled_folds": zero_filled(cube),
        "read_as": {},
        "ignored_columns": [],
        "notes": [],
    }  # fmt: skip
    report |= facts
    if count := report["zero_filled_folds"]:
        what = "folds hold nothing but zeros for some configuration: were they filled in?"
        report["notes"] = [*report["notes"], f"{count} {what}"]
    report["notes"] = [*report["notes"], *too_good(cube)]
    return cube.assign_attrs({ATTR: json.dumps(report)})


def kind_of(cube: xr.DataArray) -> str:
    """Return what the predictions are; a DataArray of it would be made of all coordinates."""
    return str(cube.coords.variables["kind"].values.item())


def _folds(cube: xr.DataArray) -> int:
    """Return the number of folds, of the repeat that has most."""
    if "fold" not in cube.coords:
        return 0
    fold = cube.coords.variables["fold"].transpose("sample", ...).values
    missing = -1 if fold.dtype.kind == "i" else ""
    names = (pd.unique(ids).tolist() for ids in fold.reshape(len(fold), -1).T)
    return max(sum(bool(name == name and name != missing) for name in found) for found in names)


def zero_filled(cube: xr.DataArray) -> int:
    """Count the folds with nothing but zeros, for configurations that are not zero throughout."""
    order = ["sample", "configuration", *(dim for dim in ("repeat", "label_class") if dim in cube.dims)]
    if "fold" not in cube.coords or kind_of(cube) == "label" or len(order) < cube.ndim:
        return 0
    zero = cube.variable.transpose(*order).values == 0
    zero = zero.all(axis=-1) if "label_class" in order else zero
    if not zero.any():
        return 0
    zero = zero.reshape(*zero.shape[:2], -1)
    ids = cube.coords.variables["fold"].transpose("sample", ...).values.reshape(len(zero), -1)
    count = 0
    for r in range(zero.shape[2]):
        code = pd.factorize(ids[:, min(r, ids.shape[1] - 1)])[0]
        size, own = np.bincount(code), zero[np.argsort(code, kind="stable"), :, r]  # fold by fold
        full = np.logical_and.reduceat(own, np.cumsum(size) - size, axis=0) & (size >= MIN_FOLD)[:, None]
        count += int((full & ~own.all(axis=0)).sum())
    return count


def too_good(cube: xr.DataArray) -> list[str]:
    """Return a remark when predictions look as if they knew the truth: one configuration's, or everybody's."""
    right = _share_right(cube) if cube.sizes["sample"] >= MANY and cube.size <= LARGE else None
    if right is None:
        return []
    name, best, rest = cube["configuration"].values[right.argmax()], right.max(), np.sort(right)[:-1]
    if len(rest) and best > 1 - 1e-9 and rest[-1] < PLAUSIBLE:
        return [
            f"configuration {name!s} is right throughout, the next best {100 * rest[-1]:.1f} %: does it know the truth "
            "(an oracle, or predictions for its own training samples)?"
        ]
    middle = np.median(right)
    if middle > TOO_GOOD:
        return [
            f"predictions are right to {100 * right.min():.1f} to {100 * best:.1f} % (median {100 * middle:.1f} % over "
            f"{len(right)} configurations): were they made for samples that the models had not seen?"
        ]
    return []


def _share_right(cube: xr.DataArray) -> np.ndarray | None:
    """Return the share of right classes, or of explained variance, of each configuration; None for scores."""
    kind = kind_of(cube)
    if kind == "score" or "event" in cube.coords or {*cube.dims} - {"sample", "configuration", "repeat", "label_class"}:
        return None
    if kind == "value":
        label = cube["label"]
        wrong = ((cube - label) ** 2).mean([dim for dim in cube.dims if dim != "configuration"])
        return np.asarray(np.nan_to_num((1 - wrong / label.var()).values))
    dims = [dim for dim in ("sample", "configuration", "repeat", "label_class") if dim in cube.dims]
    values = cube.variable.transpose(*dims).values
    known = ~np.isnan(values)
    if "label_class" in dims:
        guess, known = np.where(known, values, -1).argmax(axis=-1), known.any(axis=-1)
    else:
        limit = cube.coords.variables["threshold"].values.item() if "threshold" in cube.coords else 0.5
        guess = values if kind == "label" else values > limit
    codes = encode_labels(cube)[0].astype(guess.dtype).reshape(-1, *[1] * (guess.ndim - 1))
    right, count = (
        which.sum(axis=0, dtype=np.int32).reshape(which.shape[1], -1).sum(axis=1)
        for which in ((guess == codes) & known, known)
    )
    return np.asarray(right / np.maximum(count, 1))


def read(cube: xr.DataArray) -> dict[str, Any] | None:
    """Return the report, or None when the cube has none."""
    try:
        report = json.loads(cube.attrs.get(ATTR, ""))
    except (TypeError, ValueError):
        return None
    return report if isinstance(report, dict) else None
