"""Plain numpy arrays from whatever holds values: masked, nullable, categorical, objects, or blocks on dask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError, plain


def on_dask(values: Any) -> bool:
    """Return whether an array or variable lives on dask, so that nothing may load it whole."""
    return hasattr(getattr(values, "_data", values), "__dask_graph__")


def unmasked(values: Any) -> Any:
    """Return predictions as a plain array: masked ones are not predicted, which is NaN (None among names)."""
    if on_dask(values):
        return values.map_blocks(unmasked) if isinstance(values._meta, np.ma.MaskedArray) else values
    loose = isinstance(values, (list, tuple)) or (isinstance(values, np.ndarray) and values.dtype == object)
    if loose and any(value is np.ma.masked for value in values):  # taken out of a masked array one by one
        return np.asarray([None if value is np.ma.masked else value for value in values], object)
    if isinstance(values, (pd.Series, pd.api.extensions.ExtensionArray)):
        return frame_values(pd.Series(values).to_frame())[:, 0]
    if not np.ma.is_masked(values):
        return np.asarray(values)
    numbers = values.dtype.kind in "fiu"
    out = np.array(values.data, np.result_type(values.dtype, np.float16) if numbers else object)
    out[np.ma.getmaskarray(values)] = np.nan if numbers else None
    return out


def frame_values(frame: pd.DataFrame) -> np.ndarray:
    """Return a frame's values: numbers as numbers (missing is NaN), everything else as objects."""
    dtypes = set(frame.dtypes)
    if not all(pd.api.types.is_numeric_dtype(dtype) for dtype in dtypes):
        return frame.astype(object).to_numpy()
    numpy_only = all(isinstance(dtype, np.dtype) for dtype in dtypes)
    if numpy_only and (np.dtype(bool) not in dtypes or len(dtypes) == 1):
        return frame.to_numpy()
    if all(map(pd.api.types.is_signed_integer_dtype, dtypes)) and not frame.isna().any(axis=None):
        return frame.to_numpy(dtype=np.int64)
    return frame.to_numpy(dtype=float, na_value=np.nan)


def single_names(names: Any) -> np.ndarray:
    """Return names as an array; those of several levels, which are tuples, as text."""
    if any(isinstance(name, tuple) for name in names[:1]):
        return np.asarray([str(tuple(map(plain, name))) for name in names])
    return np.asarray(names)


def plain_array(values: Any) -> np.ndarray:
    """Return labels or names as an array of the plainest dtype that holds them, which every file format keeps."""
    if isinstance(getattr(values, "dtype", None), pd.CategoricalDtype):
        values = values.astype(object)
    array = np.asarray(unmasked(values) if isinstance(values, (np.ndarray, list, tuple)) else values)
    if array.dtype.kind not in "OT" or not array.size:
        return array
    array = array.astype(object)
    missing = np.asarray(pd.isna(array))
    kind = pd.api.types.infer_dtype(array.ravel(), skipna=True)
    if kind in ("string", "boolean") and not missing.any():
        return array.astype(str if kind == "string" else bool)
    if kind in ("integer", "floating", "mixed-integer-float"):
        if missing.any():
            return np.where(missing, np.nan, array).astype(float)
        return np.array(array.ravel().tolist()).reshape(array.shape)
    return array


def unique(values: np.ndarray) -> list[Any]:
    """Return the distinct values that are not missing, sorted, as plain Python objects."""
    array = np.ravel(values)
    flat = pd.unique(array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("=")))
    return sorted(map(plain, flat[~pd.isna(flat)]), key=lambda value: (str(type(value)), value))


def check_threshold(threshold: Any, kind: str) -> None:
    """Raise unless predictions of this kind are cut at the threshold, if there is one."""
    if threshold is None:
        return
    if kind not in ("score", "probability"):
        raise InputError(f"`threshold` is for scores and probabilities, but the predictions have kind={kind!r}.")
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float, np.number)) or not np.isfinite(threshold):
        raise InputError(f"`threshold` must be a finite number; got {threshold!r}.")
    if kind == "probability" and not 0 <= threshold <= 1:
        raise InputError(f"`threshold` of probabilities must lie in [0, 1]; got {threshold!r}.")
