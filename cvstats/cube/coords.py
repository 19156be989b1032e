"""How labels, folds and other per-sample values are matched to a cube's samples: by id, exactly, or by position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, show

from .align import aligned
from .values import plain_array, single_names, unmasked

ARGUMENTS = {"label": "labels", "fold": "folds", "group": "groups", "weight": "weights", "event": "event"}


def sample_ids(values: Any) -> np.ndarray | None:
    """Return the sample ids that values carry, or None."""
    if isinstance(values, pd.Series):
        return single_names(values.index)
    if isinstance(values, xr.DataArray) and "sample" in values.indexes:
        return single_names(values.indexes["sample"])
    return None


def check_unique(index: pd.Index, rule: str) -> None:
    """Raise naming what an index holds more than once; `rule` is what the message says of it."""
    if not index.is_unique:
        raise InputError(f"{rule}: {show(index[index.duplicated()].unique())}.")


def sample_variable(values: Any, name: str, to: xr.Dataset) -> xr.Variable:
    """Return `values` (one per sample; batch dims allowed) as the coordinate `name`; `to` has all the dims."""
    _refuse_masked(values, ARGUMENTS[name], to)
    table = _fold_table(values, to) if name == "fold" else values
    return plain_variable(_by_sample(table, ARGUMENTS[name], to), name, to)


def _refuse_masked(values: Any, argument: str, to: xr.Dataset) -> None:
    for part in _test_parts(values) if isinstance(values, (list, tuple)) else [values]:
        if np.ma.is_masked(part) and np.ndim(part):
            rows = np.flatnonzero(np.ma.getmaskarray(part).reshape(len(part), -1).any(axis=1))
            samples = to.indexes["sample"]
            named = part is values and len(part) == len(samples)
            where = f"for samples {show(samples[rows])}" if named else f"in places {show(rows)}"
            raise InputError(f"`{argument}` are masked {where}; give every sample its value, or leave the sample out.")


def _test_parts(parts: Any) -> list[Any]:
    """Return the members of a list, of pairs (train, test) the second."""
    return [part[1] if isinstance(part, tuple) and len(part) == 2 else part for part in parts]


def plain_variable(variable: xr.Variable, name: str, to: xr.Dataset) -> xr.Variable:
    """Return the coordinate along the samples, in plain numbers or texts."""
    if name != "weight":
        variable = variable.copy(data=plain_array(variable.values))
    if name == "fold" and "repeat" in variable.dims and "repeat" not in to.dims:
        if variable.sizes["repeat"] != 1:
            raise InputError(f"`folds` has {variable.sizes['repeat']} repeats but `predictions` has no repeat axis.")
        variable = variable.isel(repeat=0)
    return variable


def _fold_table(folds: Any, to: xr.Dataset) -> Any:
    """Return fold ids with named dims, from ids per sample [x repeat] or from the test indices of each fold."""
    if isinstance(folds, pd.DataFrame):
        return xr.DataArray(folds.to_numpy(), dims=("sample", "repeat"), coords={"sample": folds.index.to_numpy()})
    if isinstance(folds, (xr.DataArray, pd.Series)):
        return folds
    if isinstance(folds, (list, tuple)) and folds:
        parts = _test_parts(folds)
        if all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts):
            return _from_indices(parts, to.indexes["sample"])
    try:
        table = np.asarray(unmasked(folds))
    except ValueError:
        raise InputError("`folds` must be ids per sample [x repeat], or one array of test indices per fold.") from None
    n, repeats = to.sizes["sample"], to.sizes.get("repeat", 1)
    if table.shape == (n, repeats):
        return xr.DataArray(table, dims=("sample", "repeat"))
    if table.shape != (n,):
        also = f" x {repeats} repeats" if "repeat" in to.dims else ""
        raise InputError(
            f"`folds` has shape {table.shape} and does not cover the {n} samples{also}; "
            "give one fold id per sample [and repeat]."
        )
    return table


def _from_indices(parts: list[np.ndarray], samples: pd.Index) -> np.ndarray | xr.DataArray:
    """Return fold ids from the test indices of each fold; consecutive folds that hold out every sample are a repeat."""
    n = len(samples)
    count, fold = np.zeros(n, int), np.full(n, -1)
    repeats, first, clear = [fold], 0, True
    for number, part in enumerate(parts):
        if part.dtype.kind not in "iu" or (part.size and (part.min() < 0 or part.max() >= n)):
            raise InputError(f"`folds`: the test indices of fold {number} must be whole numbers from 0 to {n - 1}.")
        if (fold >= 0).all():
            fold, first = np.full(n, -1), number
            repeats.append(fold)
        np.add.at(count, part, 1)
        clear = clear and not (fold[part] >= 0).any() and len(np.unique(part)) == len(part)
        fold[part] = number - first
    if not clear or (fold < 0).any():
        raise InputError(
            f"`folds` do not cover the samples once each: never held out: {show(samples[count == 0]) or 'none'}; "
            f"more than once: {show(samples[count > 1]) or 'none'}."
        )
    return fold if len(repeats) == 1 else xr.DataArray(np.stack(repeats, axis=1), dims=("sample", "repeat"))


def _by_sample(values: Any, argument: str, to: xr.Dataset) -> xr.Variable:
    """Return `values` along the samples: matched by id when they carry ids, else by position."""
    if not isinstance(values, xr.DataArray):
        ids, array, n = sample_ids(values), plain_array(values), to.sizes["sample"]
        if array.ndim != 1 or (ids is None and len(array) != n):
            raise InputError(
                f"`{argument}` has shape {array.shape} but `predictions` has {n} samples; give one per sample."
            )
        values = xr.DataArray(array, dims="sample", coords={} if ids is None else {"sample": ids})
    if "sample" not in values.dims:
        raise InputError(f"`{argument}` has no dimension 'sample'; found {show(values.dims)}.")
    extra = [dim for dim in values.dims if dim not in to.dims and not (dim == "repeat" and argument == "folds")]
    if extra:
        raise InputError(f"`{argument}` has dimensions {show(extra)} that `predictions` lacks.")
    for dim in values.dims:
        if dim in values.indexes and dim in to.dims:
            check_unique(values.indexes[dim], f"`{argument}` has duplicate {dim} ids")
    return aligned(values, to, argument, values.dims, owner="`predictions`").variable


def folds_of(cube: xr.DataArray, what: str) -> xr.DataArray:
    """Return the fold coordinate, or say why it is not what by-fold averages need."""
    if "fold" not in cube.coords:
        raise InputError(f"{what} needs the coordinate 'fold'; give as_cube(..., folds=...).")
    if "configuration" in cube["fold"].dims:
        raise InputError(
            f"{what} compares configurations fold by fold, but they were split in different ways (coordinate 'fold' "
            "has the dimension 'configuration'). Pooled methods take such cubes: cvt, bbc and winner as they are."
        )
    return cube["fold"]
