"""The load report: what was read and how, kept on the cube as JSON so that it survives every file format."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

ATTR = "load_report"
MIN_FOLD = 3  # a fold of one or two zeros is no evidence


def attach(cube: xr.DataArray, *, layout: str, title: str, recognised: str, source: str, **facts: Any) -> xr.DataArray:
    """Return the cube with its load report."""
    report: dict[str, Any] = {"layout": layout, "title": title, "recognised": recognised, "source": source}
    report |= {
        "rows": facts.pop("rows", None),
        "samples": cube.sizes["sample"],
        "configurations": cube.sizes["configuration"],
        "repeats": cube.sizes.get("repeat", 1),
        "folds": _folds(cube),
        "classes": cube.sizes.get("label_class"),
        "kind": str(cube["kind"].item()),
        "missing_cells": facts.pop("missing_cells", None),
        "duplicate_rows": 0,
        "truth_conflicts": 0,
        "averaged_repeats": facts.pop("averaged_repeats", False),
        "zero_filled_folds": zero_filled(cube),
        "ignored_columns": facts.pop("ignored_columns", []),
        "notes": facts.pop("notes", []),
    }
    if report["missing_cells"] is None:
        nan = np.isnan(cube.values)
        report["missing_cells"] = int((nan.any(axis=-1) if cube.dims[-1] == "label_class" else nan).sum())
    if report["zero_filled_folds"]:
        report["notes"].append(
            f"{report['zero_filled_folds']} folds hold nothing but zeros for some configuration: were they filled in?"
        )
    report |= facts
    return cube.assign_attrs({ATTR: json.dumps(report)})


def _folds(cube: xr.DataArray) -> int:
    if "fold" not in cube.coords:
        return 0
    fold = cube["fold"]
    columns = fold.values.reshape(fold.sizes["sample"], -1).T if fold.ndim > 1 else [fold.values]
    return max(
        len(pd.unique(column[column != -1] if column.dtype.kind == "i" else column[column != ""])) for column in columns
    )


def zero_filled(cube: xr.DataArray) -> int:
    """Count the folds with nothing but zeros, for configurations that are not zero throughout."""
    if "fold" not in cube.coords or str(cube["kind"].item()) == "label":
        return 0
    order = [dim for dim in ("sample", "configuration", "repeat", "label_class") if dim in cube.dims]
    if len(order) < cube.ndim:
        return 0
    values = cube.transpose(*order).values
    zero = values == 0
    if "label_class" in order:
        zero = zero.all(axis=-1)
    if zero.ndim == 2:
        zero = zero[:, :, None]
    if not zero.any():
        return 0
    fold = cube["fold"]
    ids = fold.transpose("sample", ...).values.reshape(len(zero), -1)
    count = 0
    for r in range(zero.shape[2]):
        codes, names = pd.factorize(ids[:, min(r, ids.shape[1] - 1)])
        sizes = np.bincount(codes)
        member = (codes[:, None] == np.arange(len(names))).astype(np.float32)
        full = member.T @ zero[:, :, r].astype(np.float32) == sizes[:, None]
        full &= (sizes >= MIN_FOLD)[:, None] & ~zero[:, :, r].all(axis=0)
        count += int(full.sum())
    return count


def read(cube: xr.DataArray) -> dict[str, Any] | None:
    """Return the report, or None when the cube has none."""
    try:
        report = json.loads(cube.attrs.get(ATTR, ""))
    except (TypeError, ValueError):
        return None
    return report if isinstance(report, dict) else None
