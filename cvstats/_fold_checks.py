"""What a fold design is made from and may be: labels, groups, classes and fold ids, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from ._check import InputError, plain, show
from ._coords import plain_array


def check_fold(fold: object, *, outside: bool = False) -> xr.DataArray:
    """Return `fold` if it is a design: a DataArray with a ``sample`` dim of integer or string ids."""
    if not isinstance(fold, xr.DataArray) or "sample" not in fold.dims:
        found = f"dims {show(fold.dims)}" if isinstance(fold, xr.DataArray) else type(fold).__name__
        raise InputError(f"`fold` must be a DataArray with the dim 'sample', such as kfold() returns; got {found}.")
    if fold.dtype.kind == "f":
        raise InputError("`fold` holds floats; fold ids must be integers or strings. Convert with .astype(int).")
    if fold.dtype.kind not in "iuU":
        raise InputError(f"`fold` must hold integers or strings; found dtype {fold.dtype}.")
    if not outside and fold.dtype.kind == "i" and bool((fold < 0).any()):
        raise InputError("`fold` holds negative ids, which mark samples outside an inner design; give an outer design.")
    return fold.drop_vars([name for name in fold.coords if name not in (*fold.dims, "label", "group")]).rename("fold")


def per_sample(labels: Any, argument: str) -> xr.DataArray:
    """Return labels as a DataArray over ``sample``: ids kept when they have any, else numbered from 0."""
    ids = None
    if isinstance(labels, xr.DataArray):
        if labels.dims != ("sample",):
            raise InputError(
                f"`{argument}` must have the one dim 'sample'; found {show(labels.dims) or 'none'}. "
                "Select or rename first."
            )
        ids = labels.indexes["sample"].to_numpy() if "sample" in labels.indexes else None
        labels = labels.values
    elif isinstance(labels, pd.Series):
        ids = labels.index.to_numpy()
    values = plain_array(labels)
    if values.ndim != 1 or values.size < 2:
        raise InputError(f"`{argument}` must be one-dimensional with at least two samples; got shape {values.shape}.")
    missing = np.asarray(pd.isna(values))
    ids = np.arange(values.size) if ids is None else ids
    if not (index := pd.Index(ids)).is_unique:
        raise InputError(f"`{argument}` has duplicate sample ids: {show(index[index.duplicated()].unique())}.")
    if missing.any():
        raise InputError(f"`{argument}` are missing for samples {show(ids[missing])}; every sample needs one.")
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise InputError(
            f"`{argument}` must be finite; found infinite values for samples {show(ids[np.isinf(values)])}."
        )
    return xr.DataArray(values, dims="sample", coords={"sample": ids})


def align_groups(groups: Any, label: xr.DataArray) -> xr.DataArray:
    """Return groups in the order of the labels: by id when both carry ids, else by position."""
    group = per_sample(groups, "groups")
    if group.size != label.size:
        raise InputError(f"`groups` has {group.size} samples but `labels` has {label.size}; give one per sample.")
    if not isinstance(groups, pd.Series) and "sample" not in getattr(groups, "coords", ()):
        return group.assign_coords(sample=label["sample"])
    here, there = group.indexes["sample"], label.indexes["sample"]
    if len(there.difference(here)):
        raise InputError(
            f"sample ids do not match: only in `groups`: {show(here.difference(there, sort=False))}; "
            f"only in `labels`: {show(there.difference(here, sort=False))}."
        )
    return xr.DataArray(group.values[here.get_indexer(there)], dims="sample", coords={"sample": there})


def labelled(fold: np.ndarray, label: xr.DataArray, group: xr.DataArray | None) -> xr.DataArray:
    """Return the design with its sample ids, labels and groups."""
    coords = {"sample": label["sample"].values, "repeat": np.arange(fold.shape[1]), "label": ("sample", label.values)}
    if group is not None:
        coords["group"] = ("sample", group.values)
    return xr.DataArray(fold, dims=("sample", "repeat"), coords=coords, name="fold")


def label_of(fold: xr.DataArray, function: str) -> xr.DataArray:
    """Return the coordinate ``label`` of a design."""
    if "label" not in fold.coords:
        raise InputError(
            f"`fold` has no coordinate 'label', which {function}() needs; "
            "add it with fold.assign_coords(label=('sample', labels))."
        )
    label: xr.DataArray = fold.coords["label"]
    return label


def first_seen(values: np.ndarray) -> np.ndarray:
    """Return integer codes from 0 in first-seen order."""
    return np.asarray(pd.factorize(values)[0])


def class_codes(values: np.ndarray, k: int) -> np.ndarray | None:
    """Return class codes, or None when the labels are numbers to be spread by rank."""
    names, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    if values.dtype.kind == "f" and names.size > 2 and not ((names % 1 == 0).all() and counts.min() >= k):
        return None
    return codes


def lowered(k: int, classes: np.ndarray, units: np.ndarray, values: np.ndarray) -> tuple[int, str]:
    """Return `k`, lowered to the number of samples (or groups) that hold the rarest class, and what to warn of."""
    held = np.bincount(np.unique(np.column_stack([classes, units]), axis=0)[:, 0])
    rarest = int(held.argmin())
    name, count = plain(values[classes == rarest][0]), int(held[rarest])
    what = "sample" if np.unique(units).size == units.size else "group"
    if count < 2:
        raise InputError(
            f"`labels`: class {name!r} is in only one {what}, so folds cannot be stratified by class. Merge classes, "
            "give numbers as floats, or use stratified=False or k='loo'."
        )
    if count >= k:
        return k, ""
    return count, f"`k` was lowered from {k} to {count}, the number of {what}s that hold the rarest class {name!r}."


def missing_classes(fold: np.ndarray, classes: np.ndarray, values: np.ndarray, k: int) -> str:
    """Return what to warn of when a fold lacks a class."""
    names = np.array([plain(values[classes == code][0]) for code in range(int(classes.max()) + 1)])
    seen = np.zeros((len(fold), k, len(names)), bool)
    seen[np.arange(len(fold))[:, None], fold, classes] = True
    absent = names[~seen.all((0, 1))]
    if not absent.size:
        return ""
    return f"keeping groups whole left folds without samples of class {show(absent)}; use fewer folds."
