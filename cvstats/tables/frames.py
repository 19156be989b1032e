"""Results and cubes as data frames: tidy and augment."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, plain, show
from cvstats.cube.arrays import SETTLED, check_cube, class_names

from .for_r import for_caller

QUALIFIERS = ("method", "metric", "by", "conf_level", "interval", "test")
# what a row of a result is about, the first that is there
_MAIN = ("estimate", "cd", "statistic", "p_value")
# pandas leaves out columns in the middle when a screen is narrow: what people look for stands at either end
_FIRST = ("estimate", "conf_low", "conf_high")
_LAST = ("naive", "optimism")


def tidy(x: xr.Dataset | xr.DataArray) -> pd.DataFrame:
    """Return a result, a metric's values or a cube as a long data frame.

    One row per cell of what the result is about: of ``estimate``, else of ``statistic`` or ``p_value`` (of the mean
    ranks for `critical_difference`). Variables with further dims, such as ``win_rate(configuration)`` or kept draws,
    are not multiplied in: ask for them, ``tidy(result["win_rate"])``.

    Parameters
    ----------
    x : Dataset or DataArray
        A result, a metric's values, or a cube. Class codes of a cube come out as class names; its ``kind``,
        ``positive`` and ``threshold`` go to the frame's ``attrs`` instead of being repeated in every row.

    Returns
    -------
    pandas.DataFrame
        Dims first, then ``estimate, conf_low, conf_high``, other values and coordinates, and last
        ``naive, optimism``. Rows keep the order of the labels as first seen; nothing is sorted.

    Raises
    ------
    InputError
        `x` is neither a Dataset nor a DataArray, or has no variables.

    Examples
    --------
    >>> import xarray as xr
    >>> import cvstats as cs
    >>> bias = xr.DataArray([[0.02, 0.05, 0.04], [0.0, 0.01, -0.02]], dims=("size", "trial"), coords={"size": [20, 40]})
    >>> cs.tidy(cs.t_test(bias, "trial"))[["size", "estimate", "df"]]
       size  estimate   df
    0    20  0.036667  2.0
    1    40 -0.003333  2.0
    """
    if isinstance(x, xr.DataArray):
        name = str(x.name) if x.name is not None else "value"
        settled: dict[Hashable, Any] = {}
        if {"sample", "configuration", "kind"} <= {*x.dims, *x.coords}:
            x = _named_classes(x)
            settled = {key: plain(x.coords[key].values[()]) for key in SETTLED if key in x.coords}
            x = x.drop_vars(list(settled))
        frame = _frame({name: x.variable}, x, x.dims)
        frame.attrs = settled
        return for_caller(frame)
    if not isinstance(x, xr.Dataset):
        raise InputError(f"`x` must be a result (Dataset), a metric or a cube (DataArray); got {type(x).__name__}.")
    dims = main_dims(x)
    wanted = {str(name): var.variable for name, var in x.data_vars.items() if set(var.dims) <= set(dims)}
    frame = _frame(wanted, x, dims)
    named = [str(dim) for dim in dims]
    first = [*named, *(name for name in _FIRST if name in frame and name not in named)]
    last = [name for name in _LAST if name in frame and name not in first]
    return for_caller(frame[[*first, *(name for name in frame if name not in {*first, *last}), *last]])


def main_dims(result: xr.Dataset) -> tuple[Hashable, ...]:
    """Return the dims a row of the tidy frame stands for."""
    if not result.data_vars:
        raise InputError("`x` has no variables.")
    main = next((name for name in _MAIN if name in result), None) or next(iter(result.data_vars))
    dims = result["mean_rank"].dims if main == "cd" else result[main].dims
    return tuple(dims)


def _named_classes(cube: xr.DataArray) -> xr.DataArray:
    """Return a cube of class codes with the names of the classes in their place."""
    if str(cube.coords["kind"].item()) != "label":
        return cube
    known = class_names(cube) or []
    alike = len({type(name) for name in known}) == 1
    codes = np.asarray(cube.values, dtype=float)
    gone = np.isnan(codes)
    names = np.array(known, dtype=None if alike else object)
    if gone.any():  # only text and mixed names need objects to be able to be missing
        names = np.array([*known, np.nan]) if names.dtype.kind in "iuf" else np.array([*known, None], dtype=object)
    return cube.copy(data=names[np.where(gone, len(names) - 1, codes).astype(np.intp)])


def _frame(variables: dict[str, xr.Variable], x: xr.Dataset | xr.DataArray, dims: Sequence[Hashable]) -> pd.DataFrame:
    sizes = {dim: x.sizes[dim] for dim in dims}

    def spread(variable: xr.Variable) -> np.ndarray:
        full = variable.to_base_variable().set_dims(sizes)  # type: ignore[no-untyped-call]
        return np.asarray(full.transpose(*dims).values).reshape(-1)

    columns: dict[str, np.ndarray] = {}
    for dim in dims:
        index = x.coords[dim].variable if dim in x.coords and x.coords[dim].dims == (dim,) else None
        columns[str(dim)] = spread(index if index is not None else xr.Variable((dim,), np.arange(x.sizes[dim])))
    fit = {str(name): coord.variable for name, coord in x.coords.items() if set(coord.dims) <= set(dims)}
    last = {name: fit.pop(name) for name in QUALIFIERS if name in fit}
    for name, variable in [*variables.items(), *fit.items(), *last.items()]:
        if name not in columns:
            columns[name] = spread(variable)
    return pd.DataFrame(columns)


def augment(cube: xr.DataArray, result: xr.Dataset) -> pd.DataFrame:
    """Return one row per sample (and repeat): the truth beside what the selected configuration predicted.

    Parameters
    ----------
    cube : DataArray
        The cube the result came from.
    result : Dataset
        A protocol's result, with ``selected``.

    Returns
    -------
    pandas.DataFrame
        ``sample`` (and other dims of the cube), ``selected``, ``prediction``, ``label``, ``fold`` and further
        coordinates of the samples; for numbers also ``residual`` (label minus prediction), for classes
        ``predicted_class`` and ``correct`` where the cube settles them.

    Raises
    ------
    InputError
        `result` has no ``selected``, holds several results, or selected what the cube does not have.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[0.9, 0.4], [0.2, 0.7], [0.8, 0.6]], [1, 0, 1], configurations=["a", "b"])
    >>> cs.augment(cube, cs.cvt(cube, "accuracy"))
       sample selected  prediction  label predicted_class  correct
    0       0        a         0.9      1               1      1.0
    1       1        a         0.2      0               0      1.0
    2       2        a         0.8      1               1      1.0
    """
    check_cube(cube)
    if not isinstance(result, xr.Dataset) or "selected" not in result:
        raise InputError("`result` must be a protocol's result with the variable `selected`.")
    chosen = result["selected"]
    if chosen.ndim:
        raise InputError(
            f"`result` has dims {show(chosen.dims)}; pick one result first, e.g. with .sel({{'method': 'bbc'}})."
        )
    label = plain(chosen.values[()])
    known = [plain(name) for name in cube["configuration"].values]
    if label not in known:
        raise InputError(f"`result` selected {label!r}, which is not a configuration of `cube`; found {show(known)}.")
    one = cube.sel(configuration=label, drop=True).rename("prediction")
    kind, names, timed = str(cube.coords["kind"].item()), class_names(cube) or [], "event" in cube.coords
    codes = None  # of the predicted classes, where predictions must be turned into them
    if "label_class" in one.dims:
        table = one.transpose(..., "label_class").values
        codes = np.where(np.isnan(table).any(-1), -1, np.where(np.isnan(table), -np.inf, table).argmax(-1))
        shown, columns = one.isel(label_class=0, drop=True), {}
    else:
        shown = _named_classes(one)
        columns = {"prediction": shown.variable}
        if kind in ("probability", "score") and "threshold" in cube.coords and not timed:
            codes = np.where(np.isnan(one.values), -1, one.values > float(cube.coords["threshold"].item()))
    if codes is not None:
        columns["predicted_class"] = xr.Variable(shown.dims, np.array([*names, None], dtype=object)[codes])
    elif kind == "label":
        columns["predicted_class"] = shown.variable
    frame = _frame(columns, shown.drop_vars([name for name in SETTLED if name in shown.coords]), shown.dims)
    if kind == "value" and not timed:
        frame["residual"] = frame["label"] - frame["prediction"]
    if "predicted_class" in frame:
        frame["predicted_class"] = frame.pop("predicted_class")  # beside `correct`
        hit = (frame["predicted_class"] == frame["label"]).astype(float)
        frame["correct"] = hit.where(frame["predicted_class"].notna())
    frame.insert(shown.ndim, "selected", label)
    return for_caller(frame)
