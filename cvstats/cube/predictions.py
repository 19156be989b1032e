"""Predictions of any accepted form as one variable with named dims and names along them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, show

from .values import frame_values, on_dask, plain_array, single_names, unmasked

Names = dict[Hashable, xr.Variable]
AXES = ("sample", "configuration", "repeat")
TABLES = (np.ndarray, pd.Series, pd.DataFrame)  # what a list may hold, one for each configuration
SUM_TOLERANCE = 0.01  # how far class probabilities may be from adding up to one (files round them)
SCALES: dict[str, Callable[[np.ndarray], np.ndarray]] = {  # how class probabilities are written
    "": lambda rows: rows,
    "percentages": lambda rows: rows / 100,
    "logarithms": lambda rows: np.exp(np.minimum(rows, 1)),
}


def named_predictions(
    predictions: Any,
    given: Mapping[str, Sequence[Hashable] | None],
    kind: str | None,
    label_names: Sequence[Hashable] | None,
) -> tuple[xr.Variable, Names]:
    """Return the predictions and the coordinates that came with them or were `given`.

    `given` holds the arguments ``samples, configurations, repeats, classes`` by argument name; `label_names` are the
    classes that the last axis may stand for when the caller named neither repeats nor classes.
    """
    if isinstance(predictions, xr.DataArray):
        data, coords = _from_dataarray(predictions)
    else:
        values, found = _from_tables(predictions)
        heads = found.pop("columns", None)
        said = given["classes"] is not None
        unnamed = given["configurations"] is None and "configuration" not in found
        if label_names is not None and (values.ndim > 2 or unnamed) and _are_classes(values, label_names):
            if values.ndim == 2:
                raise InputError(
                    f"`predictions` have one column for each of the classes {show(label_names)}, and they add up to "
                    "one. If they are class probabilities, say `classes=`; if configurations, say `configurations=`."
                )
            given = {**given, "classes": label_names}
        data = _name_axes(values, given["classes"], kind)
        if heads is not None and given["classes"] is not None and "label_class" in data.dims:
            data = data.isel(label_class=_class_order(heads, given["classes"], said))
        elif heads is not None and data.ndim == 2:
            found["configuration"] = heads
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
    if "horizon" in data.dims and "horizon" not in coords:
        raise InputError("`predictions` has a dimension 'horizon' without times; give them as its coordinate.")
    return data, coords


def _from_dataarray(predictions: xr.DataArray) -> tuple[xr.Variable, Names]:
    if "sample" not in predictions.dims:
        raise InputError(f"`predictions` has no dimension 'sample'; found {show(predictions.dims)}. Rename one to it.")
    if "configuration" not in predictions.dims:
        predictions = predictions.expand_dims("configuration", predictions.dims.index("sample") + 1)
    data = predictions.variable
    if on_dask(data):
        data = data.copy(data=unmasked(data.data))
    coords: Names = {}
    for name, coord in predictions.coords.items():
        variable = coord.variable.to_base_variable()
        if isinstance(predictions.indexes.get(name), pd.MultiIndex):
            if name in data.dims:
                coords[name] = _names(predictions.indexes[name].to_numpy(), name)
        else:
            coords[name] = variable.copy(data=plain_array(variable.values)) if name in data.dims else variable
    return data, coords


def _from_tables(predictions: Any) -> tuple[Any, dict[str, Any]]:
    """Return an array and the names it came with, from frames, series, mappings, lists or arrays."""
    if isinstance(predictions, pd.Series):
        predictions = predictions.to_frame()
    if isinstance(predictions, pd.DataFrame):
        if {"sample", "configuration", "prediction"} <= set(map(str, predictions.columns)):
            raise InputError(
                "`predictions` is a long table (columns sample, configuration, prediction); "
                "use read_predictions() for it. as_cube() takes one column per configuration."
            )
        names = {"sample": predictions.index.to_numpy(), "columns": predictions.columns.to_numpy()}
        return frame_values(predictions), names
    if isinstance(predictions, Mapping):
        values, names = _stack(list(predictions.values()))
        return values, {**names, "configuration": list(predictions)}
    if isinstance(predictions, (list, tuple)) and predictions and isinstance(predictions[0], TABLES):
        return _stack(list(predictions))
    try:
        return unmasked(predictions), {}
    except ValueError:
        raise InputError(
            "`predictions`: rows must have one length; give a rectangle of sample x configuration."
        ) from None


def _stack(columns: list[Any]) -> tuple[np.ndarray, dict[str, Any]]:
    """Return one array per configuration side by side, and the names that Series and DataFrames bring."""
    arrays = [frame_values(c) if isinstance(c, pd.DataFrame) else unmasked(c) for c in columns]
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise InputError(f"`predictions`: arrays per configuration must have one shape; found {show(sorted(shapes))}.")
    if not arrays or not arrays[0].ndim:
        raise InputError("`predictions`: give one array per configuration, with one value per sample.")
    indexes = [column.index for column in columns if isinstance(column, (pd.Series, pd.DataFrame))]
    heads = [column.columns for column in columns if isinstance(column, pd.DataFrame)]
    for named, who, what in ((indexes, "Series", "index"), (heads, "DataFrames", "order of columns")):
        if any(not names.equals(named[0]) for names in named):
            raise InputError(f"`predictions`: {who} per configuration must share one {what}; align them first.")
    found = {"sample": indexes[:1], "columns": heads[:1]}
    return np.stack(arrays, axis=1), {what: names[0].to_numpy() for what, names in found.items() if names}


def _class_order(columns: Any, classes: Sequence[Hashable], said: bool) -> list[int]:
    """Return the places of the classes among a table's columns: by name, else in order if `said` or not named."""
    names, wanted = [str(name) for name in columns], [str(name) for name in classes]
    if sorted(names) == sorted(wanted):
        return [names.index(name) for name in wanted]
    if not said and names != [str(place) for place in range(len(wanted))]:
        raise InputError(
            f"`predictions` are probabilities of the classes {show(classes)}, but their columns are called "
            f"{show(columns)}. Name the columns after the classes, or say `classes=` in their order."
        )
    return list(range(len(wanted)))


def _are_classes(values: Any, names: Sequence[Hashable]) -> bool:
    """Return whether the last axis holds class probabilities: one column per class, adding up to one.

    Raise where they are some but not to be used as they are: other classes, another scale, marks of a class, gaps.
    """
    k = values.shape[-1] if values.ndim > 1 else 0
    if k < 2 or values.dtype.kind not in ("f" if values.ndim == 2 else "fiub"):
        return False
    rows = np.asarray(values[:, :1] if on_dask(values) else values).reshape(-1, k).astype(float)
    rows = rows[~np.isnan(rows).all(axis=1)]
    whole = rows[~np.isnan(rows).any(axis=1)]
    scale = next((name for name, back in SCALES.items() if _add_up(back(whole))), None)
    if scale is None or (k != len(names) and (scale or values.ndim == 2)):
        return False
    if np.allclose(SCALES[scale](whole), 1 / k):
        return not scale and values.ndim > 2 and k == len(names)  # the same number in every column, whatever they are
    if k != len(names):
        reason = f"`labels` hold {len(names)} classes. Name the classes with `classes=`"
    elif scale:
        reason = f"as {scale}. Give probabilities"
    elif values.dtype.kind != "f":
        reason = "as whole numbers. If they mark the predicted class, give its name instead, or use .astype(float)"
    elif len(whole) < len(rows):
        reason = "some are missing. Give all or none of a sample's"
    else:
        return True
    raise InputError(
        f"`predictions` have {k} columns for each configuration that add up to one, as class probabilities do, but "
        f"{reason}, or name the repeats with `repeats=`."
    )


def _add_up(rows: np.ndarray) -> bool:
    return bool(rows.size and rows.min() >= 0 and np.abs(rows.sum(axis=1) - 1).max() <= SUM_TOLERANCE)


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
    values: Any = names if hasattr(names, "dtype") else list(names)
    hidden = np.ma.getmaskarray(values) if np.ma.is_masked(values) else [name is np.ma.masked for name in values]
    if np.any(hidden):
        raise InputError(f"names of {dim!r} are masked in places {show(np.flatnonzero(hidden))}.")
    array = single_names(values)
    if array.ndim != 1:
        raise InputError(f"names of {dim!r} must be a list of single names; got {array.ndim} axes.")
    return xr.Variable(dim, plain_array(array))
