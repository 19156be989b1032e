"""How labels, folds and other per-sample values are matched to a cube's samples: by id, exactly, or by position."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, show

from .predictions import plain_strings, unmasked

ARGUMENTS = {"label": "labels", "fold": "folds", "group": "groups", "weight": "weights", "event": "event"}


@dataclass(frozen=True)
class Frame:
    """What per-sample values are matched to: the sizes of the predictions and the names along their dims."""

    sizes: Mapping[Hashable, int]
    names: Mapping[Hashable, xr.Variable]

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.sizes["sample"]

    @cached_property
    def samples(self) -> pd.Index:
        """Sample ids."""
        index: pd.Index = pd.Index(self.names["sample"].values)
        return index


def sample_ids(values: Any) -> np.ndarray | None:
    """Return the sample ids that values carry, or None."""
    if isinstance(values, pd.Series):
        return np.asarray(values.index)
    if isinstance(values, xr.DataArray) and "sample" in values.indexes:
        return np.asarray(values.indexes["sample"])
    return None


def sample_variable(values: Any, name: str, frame: Frame) -> xr.Variable:
    """Return `values` (one per sample; batch dims allowed) as the checked coordinate `name`."""
    _refuse_masked(values, ARGUMENTS[name], frame)
    if name == "fold":
        values = _fold_table(values, frame)
    variable = _by_sample(values, ARGUMENTS[name], frame)
    return checked(variable, name, frame)


def _refuse_masked(values: Any, argument: str, frame: Frame) -> None:
    for given in values if isinstance(values, (list, tuple)) else [values]:
        part = given[1] if isinstance(given, tuple) and len(given) == 2 else given  # (train, test)
        if np.ma.is_masked(part) and np.ndim(part):
            rows = np.flatnonzero(np.ma.getmaskarray(part).reshape(len(part), -1).any(axis=1))
            named = part is values and len(part) == frame.n
            where = f"for samples {show(frame.samples[rows])}" if named else f"in places {show(rows)}"
            raise InputError(f"`{argument}` are masked {where}; give every sample its value, or leave the sample out.")


def checked(variable: xr.Variable, name: str, frame: Frame) -> xr.Variable:
    """Return the coordinate in its stored form; raise when its values break the contract."""
    values = variable.values
    if name == "label":
        variable = variable.copy(data=plain_array(values))
    elif name == "fold":
        variable = _checked_folds(variable, frame)
    elif name == "weight":
        if values.dtype.kind not in "biuf":
            raise InputError(f"`weights` must be numbers; found dtype {values.dtype}.")
        variable = variable.copy(data=values.astype(float))
    elif name == "event":
        values = plain_array(values)
        variable = variable.copy(data=values.astype(int) if values.dtype.kind == "b" else values)
    elif name == "group":
        variable = variable.copy(data=plain_array(values))
    check_sample_values(name, variable)
    return variable.astype(int) if name == "event" else variable


def check_sample_values(name: str, variable: xr.Variable) -> None:
    """Raise unless a per-sample coordinate obeys its rule. Labels are checked elsewhere, against the predictions."""
    if "sample" not in variable.dims:
        raise InputError(f"coordinate {name!r} must have the dimension 'sample'; found {show(variable.dims)}.")
    values = variable.values
    if name == "weight" and not (values.dtype.kind in "biuf" and np.all(np.isfinite(values)) and np.all(values >= 0)):
        raise InputError("`weights` must be finite and not negative.")
    if name == "weight" and not np.any(values > 0):
        raise InputError("`weights` are all zero; at least one sample must count.")
    if name == "event" and not np.all((values == 0) | (values == 1)):
        found = pd.unique(pd.Series(values.ravel()))
        raise InputError(f"`event` must be 1 (observed) or 0 (censored); found {show(found)}.")
    if name == "group" and values.dtype.kind in "Of" and pd.isna(values).any():
        raise InputError("`groups` must not be missing; give every sample its cluster id.")
    if name == "fold":
        if values.dtype.kind == "f":
            raise InputError("`folds` holds floats; fold ids must be integers or strings. Convert with .astype(int).")
        if values.dtype.kind not in "iuUOT" or (values.dtype.kind == "O" and pd.isna(values).any()):
            raise InputError(f"`folds` must hold integers or strings for every sample; found dtype {values.dtype}.")


def _checked_folds(variable: xr.Variable, frame: Frame) -> xr.Variable:
    values = variable.values
    if values.dtype.kind == "O" and values.size and all(type(value) is float for value in values.ravel()):
        values = values.astype(float)
    variable = variable.copy(data=plain_strings(values))
    if "repeat" in variable.dims and "repeat" not in frame.sizes:
        if variable.sizes["repeat"] != 1:
            raise InputError(f"`folds` has {variable.sizes['repeat']} repeats but `predictions` has no repeat axis.")
        variable = variable.isel(repeat=0)
    return variable


def _fold_table(folds: Any, frame: Frame) -> Any:
    """Return fold ids with named dims, from ids per sample [x repeat] or from the test indices of each fold."""
    if isinstance(folds, pd.DataFrame):
        return xr.DataArray(folds.to_numpy(), dims=("sample", "repeat"), coords={"sample": folds.index.to_numpy()})
    if isinstance(folds, (xr.DataArray, pd.Series)):
        return folds
    if isinstance(folds, (list, tuple)) and folds:
        pairs = [part[1] if isinstance(part, tuple) and len(part) == 2 else part for part in folds]  # (train, test)
        if all(isinstance(part, np.ndarray) and part.ndim == 1 for part in pairs):
            return _from_indices(pairs, frame.samples)
    try:
        table = np.asarray(unmasked(folds))
    except ValueError:
        raise InputError("`folds` must be ids per sample [x repeat], or one array of test indices per fold.") from None
    if table.ndim == 2 and table.shape == (frame.n, frame.sizes.get("repeat", 1)):
        return xr.DataArray(table, dims=("sample", "repeat"))
    if table.ndim != 1 or len(table) != frame.n:
        repeats = f" x {frame.sizes['repeat']} repeats" if "repeat" in frame.sizes else ""
        raise InputError(
            f"`folds` has shape {table.shape} and does not cover the {frame.n} samples{repeats}; "
            "give one fold id per sample [and repeat]."
        )
    return table


def _from_indices(parts: list[np.ndarray], samples: pd.Index) -> np.ndarray:
    """Return fold ids from the test indices of each fold; every sample must be held out once."""
    n = len(samples)
    count, folds = np.zeros(n, int), np.zeros(n, int)
    for number, part in enumerate(parts):
        if part.dtype.kind not in "iu" or (part.size and (part.min() < 0 or part.max() >= n)):
            raise InputError(f"`folds`: the test indices of fold {number} must be whole numbers from 0 to {n - 1}.")
        np.add.at(count, part, 1)
        folds[part] = number
    if (count != 1).any():
        raise InputError(
            f"`folds` do not cover the samples once each: never held out: {show(samples[count == 0]) or 'none'}; "
            f"more than once: {show(samples[count > 1]) or 'none'}."
        )
    return folds


def _by_sample(values: Any, argument: str, frame: Frame) -> xr.Variable:
    """Return `values` along the samples: matched by id when they carry ids, else by position."""
    if isinstance(values, xr.DataArray):
        return _from_dataarray(values, argument, frame)
    ids = sample_ids(values)
    array = plain_array(values)
    if array.ndim != 1 or (ids is None and len(array) != frame.n):
        raise InputError(
            f"`{argument}` has shape {array.shape} but `predictions` has {frame.n} samples; give one per sample."
        )
    variable = xr.Variable("sample", array)
    return variable if ids is None else _match(variable, "sample", pd.Index(ids), argument, frame)


def _from_dataarray(values: xr.DataArray, argument: str, frame: Frame) -> xr.Variable:
    if "sample" not in values.dims:
        raise InputError(f"`{argument}` has no dimension 'sample'; found {show(values.dims)}.")
    extra = [dim for dim in values.dims if dim not in frame.sizes and not (dim == "repeat" and argument == "folds")]
    if extra:
        raise InputError(f"`{argument}` has dimensions {show(extra)} that `predictions` lacks.")
    variable = values.variable
    for dim in values.dims:
        if dim in values.indexes and dim in frame.names:
            variable = _match(variable, dim, values.indexes[dim], argument, frame)
        elif dim in frame.sizes and values.sizes[dim] != frame.sizes[dim]:
            raise InputError(
                f"`{argument}` has {values.sizes[dim]} along {dim!r} but `predictions` has {frame.sizes[dim]}."
            )
    return variable


def _match(values: xr.Variable, dim: Hashable, ids: pd.Index, argument: str, frame: Frame) -> xr.Variable:
    """Return the values in the order of the predictions along `dim`, by id; raise naming what only one side has."""
    known = frame.samples if dim == "sample" else pd.Index(frame.names[dim].values)
    if not ids.is_unique:
        raise InputError(f"`{argument}` has duplicate {dim} ids: {show(ids[ids.duplicated()].unique())}.")
    if ids.equals(known):
        return values
    only_here, only_there = ids.difference(known, sort=False), known.difference(ids, sort=False)
    if len(only_here) or len(only_there):
        raise InputError(
            f"{dim} ids do not match: only in `{argument}`: {show(only_here) or 'none'}; "
            f"only in `predictions`: {show(only_there) or 'none'}."
        )
    return values.isel({dim: ids.get_indexer(known)})


def plain_array(values: Any) -> np.ndarray:
    """Return labels as a numpy array of the plainest dtype that holds them, of any shape."""
    if isinstance(values, pd.Series):
        if isinstance(values.dtype, pd.CategoricalDtype):
            values = values.astype(object)
        values = values.to_numpy()
    elif isinstance(values, pd.Categorical):
        values = values.astype(object)
    array = np.asarray(unmasked(values) if isinstance(values, (np.ndarray, list, tuple)) else values)
    if array.dtype.kind not in "OT" or not array.size:
        return array
    missing = np.asarray(pd.isna(array))
    types = {_type_of(value) for value in array[~missing]}
    if not missing.any() and len(types) == 1 and types <= {"s", "b"}:
        return array.astype(str if types == {"s"} else bool)
    if types and types <= {"n"}:
        filled = np.where(missing, np.nan, array) if missing.any() else array
        return filled.astype(float) if missing.any() else np.array(array.ravel().tolist()).reshape(array.shape)
    return array.astype(object)


def _type_of(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "b"
    if isinstance(value, str):
        return "s"
    return "n" if isinstance(value, (int, float, np.integer, np.floating)) else "o"
