"""The load report: what was read and how, kept on the cube as JSON so that it survives every file format."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import xarray as xr

ATTR = "load_report"
MIN_FOLD = 3  # a fold of one or two zeros is no evidence


def attach(cube: xr.DataArray, *, layout: str, title: str, recognised: str, source: str, **facts: Any) -> xr.DataArray:
    """Return the cube with its load report."""
    if "missing_cells" not in facts:
        missing = cube.isnull()
        facts["missing_cells"] = int((missing.any("label_class") if "label_class" in cube.dims else missing).sum())
    report: dict[str, Any] = {
        "layout": layout, "title": title, "recognised": recognised, "source": source,
        "rows": facts.get("rows"),
        "samples": cube.sizes["sample"],
        "configurations": cube.sizes["configuration"],
        "repeats": cube.sizes.get("repeat", 1),
        "folds": _folds(cube),
        "classes": cube.sizes.get("label_class"),
        "kind": str(cube["kind"].item()),
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
    return cube.assign_attrs({ATTR: json.dumps(report)})


def as_sentence(read_as: dict[str, str]) -> str:
    """Return what was read as what, for people."""
    return f"read {', '.join(f'{theirs} as {ours}' for ours, theirs in read_as.items())}"


def _folds(cube: xr.DataArray) -> int:
    """Return the number of folds, of the repeat that has most."""
    if "fold" not in cube.coords:
        return 0
    fold = cube["fold"].transpose("sample", ...)
    named = fold.where(fold != (-1 if fold.dtype.kind == "i" else ""))
    return int(pd.DataFrame(named.values.reshape(len(fold), -1)).nunique().max())


def zero_filled(cube: xr.DataArray) -> int:
    """Count the folds with nothing but zeros, for configurations that are not zero throughout."""
    order = ["sample", "configuration", *(dim for dim in ("repeat", "label_class") if dim in cube.dims)]
    if "fold" not in cube.coords or str(cube["kind"].item()) == "label" or len(order) < cube.ndim:
        return 0
    zero = cube.transpose(*order).values == 0
    zero = zero.all(axis=-1) if "label_class" in order else zero
    if not zero.any():
        return 0
    zero = zero.reshape(*zero.shape[:2], -1)
    ids = cube["fold"].transpose("sample", ...).values.reshape(len(zero), -1)
    count = 0
    for r in range(zero.shape[2]):
        folds = pd.DataFrame(zero[:, :, r]).groupby(ids[:, min(r, ids.shape[1] - 1)])
        full = folds.all().to_numpy() & (folds.size() >= MIN_FOLD).to_numpy()[:, None]
        count += int((full & ~zero[:, :, r].all(axis=0)).sum())
    return count


def read(cube: xr.DataArray) -> dict[str, Any] | None:
    """Return the report, or None when the cube has none."""
    try:
        report = json.loads(cube.attrs.get(ATTR, ""))
    except (TypeError, ValueError):
        return None
    return report if isinstance(report, dict) else None
