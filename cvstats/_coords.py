"""How labels, folds and other per-sample values are matched to a cube's samples: by id, exactly, or by position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from ._check import InputError, show


def attach_labels(cube: xr.DataArray, labels: Any) -> xr.DataArray:
    """Return the cube with its ``label`` coordinate."""
    if labels is None:
        if "label" not in cube.coords:
            raise InputError("`labels` are missing: give one per sample, or predictions with a 'label' coordinate.")
        return cube
    return attach_sample_values(cube, labels, "label")


def attach_sample_values(cube: xr.DataArray, values: Any, name: str) -> xr.DataArray:
    """Return the cube with `values` (one per sample, batch dims allowed) as the coordinate `name`."""
    argument = {"label": "labels", "group": "groups", "weight": "weights", "fold": "folds"}.get(name, name)
    array = _by_sample(cube, values, argument)
    if name == "weight":
        array = array.astype(float)
        if not bool((np.isfinite(array) & (array >= 0)).all()):
            raise InputError("`weights` must be finite and not negative.")
    if name == "event":
        found = set(np.unique(array.values).tolist())
        if not found <= {0, 1, False, True}:
            raise InputError(f"`event` must be 1 (observed) or 0 (censored); found {show(sorted(found))}.")
        array = array.astype(int)
    if name == "group" and pd.isnull(array.values).any():
        raise InputError("`groups` must not be missing; give every sample its cluster id.")
    return cube.assign_coords({name: array.variable})


def attach_folds(cube: xr.DataArray, folds: Any) -> xr.DataArray:
    """Return the cube with its ``fold`` coordinate, from ids or from a list of test-index arrays."""
    n = cube.sizes["sample"]
    if isinstance(folds, (list, tuple)) and folds and all(isinstance(part, np.ndarray) and part.ndim == 1 for part in folds):
        folds = _from_indices([np.asarray(part) for part in folds], cube["sample"].values)
    if not isinstance(folds, (xr.DataArray, pd.Series, pd.DataFrame)):
        folds = np.asarray(folds)
        if folds.ndim == 2 and "repeat" in cube.dims and folds.shape == (n, cube.sizes["repeat"]):
            folds = xr.DataArray(folds, dims=("sample", "repeat"))
        elif folds.ndim == 2 and folds.shape == (n, 1):
            folds = folds[:, 0]
        elif folds.ndim != 1 or len(folds) != n:
            repeats = f" x {cube.sizes['repeat']} repeats" if "repeat" in cube.dims else ""
            raise InputError(
                f"`folds` has shape {folds.shape} and does not cover the {n} samples{repeats}; "
                "give one fold id per sample [and repeat]."
            )
    elif isinstance(folds, pd.DataFrame):
        folds = xr.DataArray(folds.to_numpy(), dims=("sample", "repeat"), coords={"sample": folds.index.to_numpy()})
    array = _by_sample(cube, folds, "folds")
    if array.dtype.kind == "f":
        raise InputError("`folds` holds floats; fold ids must be integers or strings. Convert with .astype(int).")
    if array.dtype.kind not in "iuUOST" or (array.dtype.kind == "O" and pd.isnull(array.values).any()):
        raise InputError(f"`folds` must hold integers or strings for every sample; found dtype {array.dtype}.")
    if "repeat" in array.dims and "repeat" not in cube.dims:
        if array.sizes["repeat"] != 1:
            raise InputError(f"`folds` has {array.sizes['repeat']} repeats but `predictions` has no repeat axis.")
        array = array.isel(repeat=0, drop=True)
    return cube.assign_coords(fold=array.variable)


def _by_sample(cube: xr.DataArray, values: Any, argument: str) -> xr.DataArray:
    """Return `values` along the cube's samples: matched by id when they carry ids, else by position."""
    samples = cube.indexes["sample"] if "sample" in cube.indexes else pd.RangeIndex(cube.sizes["sample"])
    if isinstance(values, pd.Series):
        values = xr.DataArray(_plain_array(values), dims="sample", coords={"sample": values.index.to_numpy()})
    if not isinstance(values, xr.DataArray):
        array = _plain_array(values)
        if array.ndim != 1 or len(array) != len(samples):
            raise InputError(
                f"`{argument}` has shape {array.shape} but `predictions` has {len(samples)} samples; give one per sample."
            )
        return xr.DataArray(array, dims="sample")
    if "sample" not in values.dims:
        raise InputError(f"`{argument}` has no dimension 'sample'; found {show(values.dims)}.")
    extra = [dim for dim in values.dims if dim not in cube.dims and not (dim == "repeat" and argument == "folds")]
    if extra:
        raise InputError(f"`{argument}` has dimensions {show(extra)} that `predictions` lacks.")
    if "sample" in values.indexes:
        values = _match(values, values.indexes["sample"], samples, argument)
    elif values.sizes["sample"] != len(samples):
        raise InputError(
            f"`{argument}` has {values.sizes['sample']} samples but `predictions` has {len(samples)}; give one per sample."
        )
    values = values.drop_vars(list(values.coords))
    data = values.values
    if data.dtype.kind in "OT":
        values = values.copy(data=_plain_array(data.ravel()).reshape(data.shape))
    return values


def _match(values: xr.DataArray, ids: pd.Index, samples: pd.Index, argument: str) -> xr.DataArray:
    if not ids.is_unique:
        raise InputError(f"`{argument}` has duplicate sample ids: {show(ids[ids.duplicated()].unique())}.")
    if len(ids) == len(samples) and ids.equals(samples):
        return values
    only_here, only_there = ids.difference(samples, sort=False), samples.difference(ids, sort=False)
    if len(only_here) or len(only_there):
        raise InputError(
            f"sample ids do not match: only in `{argument}`: {show(only_here) or 'none'}; "
            f"only in `predictions`: {show(only_there) or 'none'}."
        )
    return values.isel(sample=ids.get_indexer(samples))


def _plain_array(values: Any) -> np.ndarray:
    """Return labels as a numpy array of the plainest dtype that holds them."""
    if isinstance(values, pd.Series):
        if isinstance(values.dtype, pd.CategoricalDtype):
            values = values.astype(values.cat.categories.dtype)
        values = values.to_numpy()
    array = np.asarray(values)
    if array.dtype.kind in "OT" and array.size:
        missing = np.asarray(pd.isnull(array))
        kinds = {bool: "b", np.bool_: "b"}
        types = {kinds.get(type(value), "s" if isinstance(value, str) else "n") for value in array[~missing].ravel()}
        if not missing.any() and types == {"s"}:
            return array.astype(str)
        if not missing.any() and types == {"b"}:
            return array.astype(bool)
        if types == {"n"}:
            try:
                return array.astype(float) if missing.any() else np.array(array.tolist())
            except (TypeError, ValueError):
                return array
    return array


def _from_indices(parts: list[np.ndarray], samples: np.ndarray) -> np.ndarray:
    """Return fold ids from the test indices of each fold; every sample must be held out once."""
    count = np.zeros(len(samples), int)
    folds = np.zeros(len(samples), int)
    for number, part in enumerate(parts):
        if part.dtype.kind not in "iu" or (part.size and (part.min() < 0 or part.max() >= len(samples))):
            raise InputError(f"`folds`: the test indices of fold {number} must lie in 0 to {len(samples) - 1}.")
        np.add.at(count, part, 1)
        folds[part] = number
    if (count != 1).any():
        raise InputError(
            f"`folds` do not cover the samples once each: never held out: {show(samples[count == 0]) or 'none'}; "
            f"more than once: {show(samples[count > 1]) or 'none'}."
        )
    return folds
