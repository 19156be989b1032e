"""Predictions of any accepted form as one variable with named dims and names along them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, plain, show

from .values import frame_values, on_dask, plain_strings, unmasked

Names = dict[Hashable, xr.Variable]
AXES = ("sample", "configuration", "repeat")
SUM_TOLERANCE = 0.01  # how far class probabilities may be from adding up to one (files round them)


def named_predictions(
    predictions: Any,
    given: Mapping[str, Sequence[Hashable] | None],
    kind: str | None,
    label_names: Sequence[Hashable] | None = None,
) -> tuple[xr.Variable, Names, bool]:
    """Return the predictions, the coordinates that came with them or were `given`, and whether samples have ids.

    `given` holds the arguments ``samples, configurations, repeats, classes`` by argument name; `label_names` are the
    classes that the last axis may stand for when the caller named neither repeats nor classes.
    """
    coords: Names = {}
    if isinstance(predictions, xr.DataArray):
        data, coords = _from_dataarray(predictions)
    else:
        values, found = _from_tables(predictions)
        if label_names is not None and _sum_to_one(values, label_names):
            if values.ndim == 2 and given["configurations"] is None and "configuration" not in found:
                raise InputError(
                    f"`predictions` have one column for each of the classes {show(label_names)}, and they add up to "
                    "one. If they are class probabilities, say `classes=`; if configurations, say `configurations=`."
                )
            given = {**given, "classes": label_names} if values.ndim > 2 else given
        data = _name_axes(values, given["classes"], kind)
        coords = {dim: _names(names, dim) for dim, names in found.items()}
    for argument, names in given.items():
        dim = "label_class" if argument == "classes" else argument[:-1]
        if names is None or (dim not in data.dims and dim == "label_class"):
            continue
        if dim not in data.dims:
            raise InputError(f"`{argument}` names {dim}s, but `predictions` has no {dim} axis.")
        variable = _names(names, dim)
        if variable.size != data.sizes[dim]:
            raise InputError(
                f"`{argument}` has {variable.size} names but `predictions` has {data.sizes[dim]} along {dim!r}."
            )
        if dim == "label_class" and dim in coords and not np.array_equal(coords[dim].values, variable.values):
            raise InputError(
                f"`classes` are {show(variable.values)}, but `predictions` has the classes {show(coords[dim].values)} "
                "along 'label_class'. Leave `classes` out, or rename that coordinate."
            )
        coords[dim] = variable
    if "label_class" in data.dims and "label_class" not in coords:
        raise InputError("`predictions` has a dimension 'label_class' without names; give them as `classes=`.")
    has_ids = "sample" in coords
    for axis in data.dims:
        if axis not in coords:
            coords[axis] = xr.Variable(axis, np.arange(data.sizes[axis]))
    return data, coords, has_ids


def _from_dataarray(predictions: xr.DataArray) -> tuple[xr.Variable, Names]:
    if "sample" not in predictions.dims:
        raise InputError(f"`predictions` has no dimension 'sample'; found {show(predictions.dims)}. Rename one to it.")
    data = predictions.variable
    if on_dask(data):
        data = data.copy(data=unmasked(data.data))
    if "configuration" not in data.dims:
        at = data.dims.index("sample") + 1
        dims = [*data.dims[:at], "configuration", *data.dims[at:]]
        data = data.set_dims({dim: data.sizes.get(dim, 1) for dim in dims})  # type: ignore[no-untyped-call]
    coords: Names = {}
    for name, coord in predictions.coords.items():
        index = predictions.indexes.get(name)
        if not isinstance(index, pd.MultiIndex):
            coords[name] = coord.variable.to_base_variable()
        elif name in data.dims:
            coords[name] = _names(index.to_numpy(), name)
    if "configuration" in coords and coords["configuration"].ndim == 0:
        coords["configuration"] = xr.Variable("configuration", [coords["configuration"].values.item()])
    for dim in set(coords) & set(data.dims):
        coords[dim] = coords[dim].copy(data=plain_strings(coords[dim].values))
    return data, coords


def _from_tables(predictions: Any) -> tuple[Any, dict[Hashable, Any]]:
    """Return an array and the names it came with, from frames, series, mappings, lists or arrays."""
    if isinstance(predictions, pd.Series):
        predictions = predictions.to_frame()
    if isinstance(predictions, pd.DataFrame):
        if {"sample", "configuration", "prediction"} <= set(map(str, predictions.columns)):
            raise InputError(
                "`predictions` is a long table (columns sample, configuration, prediction); "
                "use read_predictions() for it. as_cube() takes one column per configuration."
            )
        names: dict[Hashable, Any] = {
            "sample": predictions.index.to_numpy(),
            "configuration": predictions.columns.to_numpy(),
        }
        return frame_values(predictions), names
    if isinstance(predictions, Mapping):
        values, names = _stack(list(predictions.values()))
        return values, {**names, "configuration": list(predictions)}
    if isinstance(predictions, (list, tuple)) and predictions and isinstance(predictions[0], (np.ndarray, pd.Series)):
        return _stack(list(predictions))
    try:
        return unmasked(predictions), {}
    except ValueError:
        raise InputError(
            "`predictions`: rows must have one length; give a rectangle of sample x configuration."
        ) from None


def _stack(columns: list[Any]) -> tuple[np.ndarray, dict[Hashable, Any]]:
    """Return one array per configuration side by side, and the sample ids when the arrays are Series."""
    arrays = [frame_values(c.to_frame())[:, 0] if isinstance(c, pd.Series) else unmasked(c) for c in columns]
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise InputError(f"`predictions`: arrays per configuration must have one shape; found {show(sorted(shapes))}.")
    if not arrays or not arrays[0].ndim:
        raise InputError("`predictions`: give one array per configuration, with one value per sample.")
    indexes = [column.index for column in columns if isinstance(column, pd.Series)]
    if any(not index.equals(indexes[0]) for index in indexes):
        raise InputError("`predictions`: Series per configuration must share one index; align them first.")
    return np.stack(arrays, axis=1), {"sample": indexes[0].to_numpy()} if indexes else {}


def _sum_to_one(values: Any, names: Sequence[Hashable]) -> bool:
    """Return whether the last axis looks like class probabilities: one column per class, adding up to one."""
    k = values.shape[-1] if values.ndim > 1 else 0
    if k < 2 or values.dtype.kind != "f":
        return False
    rows = np.asarray(values[:, :1] if on_dask(values) else values).reshape(-1, k)
    rows = rows[~np.isnan(rows).all(axis=1)]
    if not (rows.size and rows.min() >= 0 and np.abs(rows.sum(axis=1, dtype=float) - 1).max() <= SUM_TOLERANCE):
        return False  # also where NaN fills a part of a row
    if np.allclose(rows, 1 / k):
        return values.ndim > 2 and k == len(names)  # the same number in every column, whatever they are
    if k != len(names) and values.ndim > 2:
        raise InputError(
            f"`predictions` have {k} columns for each configuration that add up to one, as class probabilities do, but "
            f"`labels` hold {len(names)} classes. Name the classes with `classes=`, or the repeats with `repeats=`."
        )
    return k == len(names)


def _name_axes(values: Any, classes: Sequence[Hashable] | None, kind: str | None) -> xr.Variable:
    """Return the array with its axes named sample, configuration [, repeat] [, label_class]."""
    if values.ndim == 1:
        values = values[:, None]
    k = 0 if classes is None or kind == "label" or values.dtype.kind not in "fiu" else len(classes)
    whole = values.dtype.kind in "iu"
    with_classes = k > 0 and values.ndim > 1 and (values.shape[-1] == k or (values.ndim > 2 and not whole))
    if with_classes and values.ndim == 2:
        values = values[:, None, :]  # one configuration's class probabilities, as cross_val_predict returns them
    dims = (*AXES[: values.ndim - 1], "label_class") if with_classes else AXES[: values.ndim]
    if len(dims) != values.ndim or values.ndim < 1:
        raise InputError(
            f"`predictions` has {values.ndim} axes; arrays are sample x configuration [x repeat] [x label_class "
            "with `classes=`]. Give a DataArray with named dims for anything else."
        )
    return xr.Variable(dims, values)


def _names(names: Any, dim: Hashable) -> xr.Variable:
    """Return names along a dim as a variable; tuples become text."""
    if np.ma.is_masked(names):
        raise InputError(f"names of {dim!r} are masked in places {show(np.flatnonzero(np.ma.getmaskarray(names)))}.")
    values = np.asarray(names) if hasattr(names, "dtype") else list(names)
    if any(isinstance(name, tuple) for name in values[:1]):
        values = [str(tuple(map(plain, name))) for name in values]
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"names of {dim!r} must be a list of single names; got {array.ndim} axes.")
    return xr.Variable(dim, plain_strings(array))
