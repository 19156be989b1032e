"""The cube: one plain ``xarray.DataArray`` of out-of-sample predictions with the truth beside them."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from ._check import InputError, check_option, plain, show
from ._coords import attach_folds, attach_labels, attach_sample_values

KINDS = ("label", "score", "probability", "value")
CORE_DIMS = ("sample", "configuration", "repeat", "partner", "inner_repeat", "outer_fold", "label_class")


def as_cube(
    predictions: Any,
    labels: Any = None,
    *,
    folds: Any = None,
    samples: Sequence[Hashable] | None = None,
    configurations: Sequence[Hashable] | None = None,
    repeats: Sequence[Hashable] | None = None,
    classes: Sequence[Hashable] | None = None,
    groups: Any = None,
    weights: Any = None,
    event: Any = None,
    kind: str | None = None,
    positive: Hashable | None = None,
    threshold: float | None = None,
) -> xr.DataArray:
    """Return predictions and labels as the cube that every other function takes.

    Parameters
    ----------
    predictions
        Array of sample x configuration [x repeat] [x label_class] (one dimension is one configuration), DataArray
        with dims of those names in any order (other dims are batch dims), data frame (rows are samples, columns
        configurations), or a list or mapping of one array per configuration. NaN means *not predicted*.
    labels
        The truth, one per sample: classes, numbers or survival times. Labels that carry ids (Series, DataArray)
        are matched by id. May be omitted for a DataArray that has a ``label`` coordinate.
    folds
        Which fold held each sample out: ids per sample [x repeat], or a list of test-index arrays.
    samples, configurations, repeats
        Names along those dims. Configurations keep the order in which they are given.
    classes
        Names of the classes; with it the last axis of a numeric array is ``label_class``.
    groups, weights, event
        Cluster id, case weight, and (survival) 1 = observed, 0 = censored; one per sample.
    kind
        What the values are: ``"label"``, ``"score"``, ``"probability"`` or ``"value"``. Inferred when omitted:
        values that are all labels are labels; numbers in [0, 1] for class labels are probabilities (of the positive
        class); other numbers for two classes are scores; numbers for numeric labels are values.
    positive
        The positive class. 0/1, booleans and -1/1 take the larger; any other two labels need it.
    threshold
        A score is positive when strictly above it: 0.5 for probabilities, no default for scores.

    Returns
    -------
    xarray.DataArray
        Named ``prediction``, with coordinates ``label``, ``kind`` and whatever else was given or settled.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[0.9, 0.6], [0.2, 0.7], [0.8, 0.1]], [1, 0, 1], configurations=["a", "b"])
    >>> cube.dims, str(cube.kind.item()), cube.positive.item()
    (('sample', 'configuration'), 'probability', 1)
    """
    if kind is not None:
        check_option(kind, KINDS, "kind")
    cube = _dimensions(predictions, samples, configurations, repeats, classes)
    cube = attach_labels(cube, labels)
    if folds is not None:
        cube = attach_folds(cube, folds)
    for name, values in (("group", groups), ("weight", weights), ("event", event)):
        if values is not None:
            cube = attach_sample_values(cube, values, name)
    if cube.size == 0:
        raise InputError(f"`predictions` is empty: sizes {dict(cube.sizes)}; a cube needs samples and configurations.")
    _check_unique(cube)
    cube = _settle_kind(cube, kind, positive, threshold, classes)
    check_cube(cube)
    return cube


def check_cube(cube: xr.DataArray) -> xr.DataArray:
    """Return `cube` unchanged if it obeys the contract, else raise an error that says what is wrong.

    Checks dims, unique sample and configuration names, missing labels (allowed only where every prediction is
    missing), fold ids, case weights, and that values fit their ``kind``. Values of a dask-backed cube are checked
    block by block when they are used, not here.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[0.9], [0.2]], [1, 0])
    >>> cs.check_cube(cube) is cube
    True
    """
    if not isinstance(cube, xr.DataArray):
        raise InputError(f"`cube` must be an xarray.DataArray made by as_cube(); got {type(cube).__name__}.")
    for dim in ("sample", "configuration"):
        if dim not in cube.dims:
            raise InputError(f"`cube` has no dimension {dim!r}; found {show(cube.dims)}. Make it with as_cube().")
    for name in ("label", "kind"):
        if name not in cube.coords:
            raise InputError(f"`cube` has no coordinate {name!r}. Make it with as_cube(predictions, labels).")
    if cube.size == 0:
        raise InputError(f"`cube` is empty: sizes {dict(cube.sizes)}.")
    check_option(str(cube.coords["kind"].item()), KINDS, "kind")
    _check_unique(cube)
    for name in ("label", "event", "group", "weight"):
        if name in cube.coords and "sample" not in cube.coords[name].dims:
            raise InputError(f"coordinate {name!r} must have the dimension 'sample'; found {show(cube[name].dims)}.")
    if "fold" in cube.coords and cube["fold"].dtype.kind == "f":
        raise InputError(
            "coordinate 'fold' holds floats; fold ids must be integers or strings. Convert with .astype(int)."
        )
    _check_label_values(cube)
    if not is_lazy(cube):
        check_values(cube.values, str(cube.coords["kind"].item()), _class_count(cube), "cube")
    return cube


def is_lazy(cube: xr.DataArray) -> bool:
    """Return whether the cube is backed by dask, so that nothing may load it whole."""
    return hasattr(cube.variable._data, "__dask_graph__")


def class_names(cube: xr.DataArray) -> list[Any] | None:
    """Return the classes in the order of their codes (binary: negative, positive), or None for numeric labels."""
    kind = str(cube.coords["kind"].item())
    if kind == "value" or "event" in cube.coords:
        return None
    if "label_class" in cube.dims:
        return [plain(name) for name in cube["label_class"].values]
    if kind == "label":
        return list(json.loads(str(cube.coords["classes"].item())))
    positive = plain(cube.coords["positive"].item())
    others = [name for name in _unique(cube["label"].values) if name != positive]
    return [others[0] if others else None, positive]


def check_values(values: np.ndarray, kind: str, n_classes: int, argument: str) -> None:
    """Raise unless the values fit their kind: probabilities in [0, 1], class codes below `n_classes`."""
    if kind in ("score", "value") or values.size == 0:
        return
    low, high = np.min(values), np.max(values)
    if np.isnan(low):
        if np.all(np.isnan(values)):
            return
        low, high = np.nanmin(values), np.nanmax(values)
    if kind == "probability" and (low < 0 or high > 1):
        raise InputError(
            f"`{argument}`: probabilities must lie in [0, 1]; found values from {low:g} to {high:g}. "
            "Give scores with kind='score'."
        )
    if kind == "label":
        present = values[~np.isnan(values)] if np.isnan(values).any() else values
        if low < 0 or high >= n_classes or np.any(present != np.floor(present)):
            raise InputError(
                f"`{argument}`: class codes must be whole numbers from 0 to {n_classes - 1}; found {low:g} to {high:g}."
            )


def _dimensions(
    predictions: Any,
    samples: Sequence[Hashable] | None,
    configurations: Sequence[Hashable] | None,
    repeats: Sequence[Hashable] | None,
    classes: Sequence[Hashable] | None,
) -> xr.DataArray:
    """Return predictions of any accepted form as a DataArray with named dims and coordinates."""
    coords: dict[str, Any] = {}
    if isinstance(predictions, xr.DataArray):
        cube = _with_core_dims(predictions)
    else:
        if isinstance(predictions, pd.Series):
            predictions = predictions.to_frame()
        if isinstance(predictions, pd.DataFrame):
            if {"sample", "configuration", "prediction"} <= set(map(str, predictions.columns)):
                raise InputError(
                    "`predictions` is a long table (columns sample, configuration, prediction); "
                    "use read_predictions() for it. as_cube() takes one column per configuration."
                )
            coords = {"sample": predictions.index.to_numpy(), "configuration": predictions.columns.to_numpy()}
            values = _frame_values(predictions)
        elif isinstance(predictions, Mapping):
            coords = {"configuration": np.array(list(predictions))}
            values = _stack(list(predictions.values()))
        elif isinstance(predictions, (list, tuple)) and predictions and isinstance(predictions[0], (np.ndarray, pd.Series)):
            values = _stack(list(predictions))
        else:
            values = predictions if hasattr(predictions, "__dask_graph__") else np.asarray(predictions)
        cube = _name_axes(values, classes)
    given = {"sample": samples, "configuration": configurations, "repeat": repeats, "label_class": classes}
    for dim, names in given.items():
        if names is None or dim not in cube.dims:
            if names is not None and dim == "repeat":
                raise InputError("`repeats` names repeats, but `predictions` has no repeat axis.")
            continue
        coords[dim] = _names(names)
        if len(coords[dim]) != cube.sizes[dim]:
            argument = {"label_class": "classes"}.get(dim, dim + "s")
            raise InputError(
                f"`{argument}` has {len(coords[dim])} names but `predictions` has {cube.sizes[dim]} along {dim!r}."
            )
    for dim in cube.dims:
        if dim not in coords and dim not in cube.coords:
            coords[str(dim)] = np.arange(cube.sizes[dim])
    cube = cube.assign_coords({dim: (dim, _tidy_dtype(np.asarray(names))) for dim, names in coords.items()})
    cube.name = "prediction"
    return cube


def _with_core_dims(predictions: xr.DataArray) -> xr.DataArray:
    if "sample" not in predictions.dims:
        raise InputError(f"`predictions` has no dimension 'sample'; found {show(predictions.dims)}. Rename one to it.")
    if "configuration" not in predictions.dims:
        predictions = predictions.expand_dims(configuration=[0], axis=predictions.dims.index("sample") + 1)
    return predictions.copy(deep=False)


def _name_axes(values: Any, classes: Sequence[Hashable] | None) -> xr.DataArray:
    if values.ndim == 1:
        values = values[:, None]
    with_classes = classes is not None and values.dtype.kind in "fiu" and values.ndim > 2 - (values.shape[-1] == len(classes))
    names = ["sample", "configuration", "repeat"]
    if classes is not None and with_classes and values.ndim == 2:
        values = values[:, None, :]  # one configuration's class probabilities, as cross_val_predict returns them
    dims = [*names[: values.ndim - 1], "label_class"] if with_classes else names[: values.ndim]
    if len(dims) != values.ndim or values.ndim < 1:
        raise InputError(
            f"`predictions` has {values.ndim} axes; arrays are sample x configuration [x repeat] [x label_class "
            "with `classes=`]. Give a DataArray with named dims for anything else."
        )
    return xr.DataArray(values, dims=dims)


def _stack(columns: list[Any]) -> np.ndarray:
    arrays = [_frame_values(column.to_frame())[:, 0] if isinstance(column, pd.Series) else np.asarray(column) for column in columns]
    shapes = {array.shape for array in arrays}
    if len(shapes) != 1:
        raise InputError(f"`predictions`: arrays per configuration must have one shape; found {show(sorted(shapes))}.")
    indexes = [column.index for column in columns if isinstance(column, pd.Series)]
    if any(not index.equals(indexes[0]) for index in indexes):
        raise InputError("`predictions`: Series per configuration must share one index; align them first.")
    return np.stack(arrays, axis=1)


def _frame_values(frame: pd.DataFrame) -> np.ndarray:
    kinds = {column: frame[column].dtype for column in frame.columns}
    if any(isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_string_dtype(dtype) for dtype in kinds.values()):
        return frame.astype(object).to_numpy()
    values = frame.to_numpy(dtype=None if all(isinstance(d, np.dtype) for d in kinds.values()) else float, na_value=np.nan)
    return values


def _names(names: Any) -> np.ndarray:
    values = np.asarray(names)
    return values if values.ndim == 1 else np.array([str(tuple(map(plain, name))) for name in names])


def _tidy_dtype(values: np.ndarray) -> np.ndarray:
    """Store all-string object arrays as fixed-width strings, which every file format keeps."""
    if values.dtype.kind == "O" and all(isinstance(value, str) for value in values.ravel()):
        return values.astype(str)
    return np.asarray(values.astype(str)) if values.dtype.kind == "T" else values


def _check_unique(cube: xr.DataArray) -> None:
    for dim in ("sample", "configuration"):
        if dim in cube.indexes and not cube.indexes[dim].is_unique:
            index = cube.indexes[dim]
            raise InputError(
                f"{dim} names must be unique; found more than once: {show(index[index.duplicated()].unique())}."
            )


def _unique(values: np.ndarray) -> list[Any]:
    flat = np.ravel(values)
    if flat.dtype.kind in "Of":
        flat = flat[~pd.isnull(flat)]
        if flat.dtype.kind == "O":
            return sorted({plain(value) for value in flat}, key=lambda value: (str(type(value)), value))
    return [plain(value) for value in np.unique(flat)]


def _check_label_values(cube: xr.DataArray) -> None:
    label = cube["label"]
    if label.dtype.kind not in "Of":
        return
    missing = np.asarray(pd.isnull(label.values))
    if label.dtype.kind == "f" and np.isinf(label.values[~missing]).any():
        raise InputError("`labels` must be finite; found infinite values.")
    if not missing.any():
        return
    if is_lazy(cube):
        bad = xr.DataArray(missing, dims=label.dims)
    else:
        others = [dim for dim in cube.dims if dim not in label.dims]
        bad = xr.DataArray(missing, dims=label.dims) & cube.notnull().any(others).drop_vars(list(cube.coords), errors="ignore")
    if bool(bad.any()):
        names = cube["sample"].values[bad.any([dim for dim in bad.dims if dim != "sample"]).values]
        raise InputError(
            f"`labels` are missing for samples {show(names)} that have predictions; every predicted sample needs a label."
        )


def _class_count(cube: xr.DataArray) -> int:
    names = class_names(cube)
    return len(names) if names else 0


def _settle_kind(
    cube: xr.DataArray,
    kind: str | None,
    positive: Hashable | None,
    threshold: float | None,
    classes: Sequence[Hashable] | None,
) -> xr.DataArray:
    """Decide what the values are and store the decision as scalar coordinates."""
    lazy = is_lazy(cube)
    kind = kind or (str(cube.coords["kind"].item()) if "kind" in cube.coords else None)
    if "classes" in cube.coords and kind == "label" and classes is None:
        return cube  # already a cube of class codes
    label_values = _unique(cube["label"].values)
    survival = "event" in cube.coords
    if kind is None:
        if lazy:
            raise InputError("`kind` must be given for dask-backed predictions, because inferring it would load them.")
        if survival:
            raise InputError(
                "`kind` must be given with `event`: 'score' for risk (higher = earlier event), 'value' for predicted time."
            )
        kind = _infer_kind(cube, label_values)
    if positive is None and "positive" in cube.coords:
        positive = cube.coords["positive"].item()
    if threshold is None and "threshold" in cube.coords:
        threshold = float(cube.coords["threshold"])
    if kind != "label":
        cube = _as_numbers(cube)
    if kind == "value" or survival:
        if cube["label"].dtype.kind not in "fiub":
            raise InputError(f"`labels` must be numbers for kind={kind!r}; found {show(label_values)}.")
        return cube.assign_coords(kind=kind)
    if "label_class" in cube.dims:
        unknown = [name for name in label_values if name not in set(map(plain, cube["label_class"].values))]
        if unknown:
            raise InputError(
                f"`labels` hold {show(unknown)}, not among the classes {show(cube['label_class'].values)}."
            )
        if cube.sizes["label_class"] > 2:
            return cube.assign_coords(kind=kind)
        cube, positive = _collapse(cube, kind, positive)
    known = [plain(name) for name in classes] if classes is not None else label_values
    if kind == "label" and len(known) > 2:
        return _as_codes(cube, known)
    if kind != "label" and len(known) > 2:
        raise InputError(
            f"kind={kind!r} with one value per prediction needs two classes; `labels` hold {len(known)}: {show(known)}. "
            "Give class probabilities with `classes=`, or kind='value' for numeric labels."
        )
    positive = _positive_class(known, positive)
    negative = next((name for name in known if name != positive), None)
    if kind == "label":
        cube = _as_codes(cube, [negative, positive])
    elif kind == "probability":
        threshold = 0.5 if threshold is None else threshold
    if threshold is not None and kind != "label":
        cube = cube.assign_coords(threshold=float(threshold))
    return cube.assign_coords(kind=kind, positive=positive)


def _infer_kind(cube: xr.DataArray, label_values: list[Any]) -> str:
    values = cube.values
    if values.dtype.kind in "OUSTb":
        return "label"
    if values.dtype.kind not in "fiu":
        raise InputError(f"`predictions` have dtype {values.dtype}; give numbers, booleans or class names.")
    finite = values[np.isfinite(values)]
    unit = finite.size > 0 and finite.min() >= 0 and finite.max() <= 1
    if "label_class" in cube.dims:
        return "probability" if unit else "score"
    numeric = cube["label"].dtype.kind in "fiu"
    if numeric and finite.size and np.isin(finite, label_values).all():
        whole = all(float(value).is_integer() for value in label_values)
        if whole:
            return "label"
    two = len(label_values) <= 2 and (not numeric or set(label_values) <= {0, 1} or set(label_values) <= {-1, 1} or _whole(cube))
    if not two:
        if not numeric:
            raise InputError(
                f"`predictions` hold numbers but `labels` hold {len(label_values)} classes: {show(label_values)}. "
                "Give one column per class with `classes=`, or the predicted classes themselves."
            )
        return "value"
    return "probability" if unit else "score"


def _whole(cube: xr.DataArray) -> bool:
    return cube["label"].dtype.kind in "iu"


def _as_numbers(cube: xr.DataArray) -> xr.DataArray:
    if cube.dtype.kind == "f" and cube.dtype.itemsize >= 4:
        return cube
    if cube.dtype.kind in "fiub":
        return cube.astype(np.float32 if cube.dtype.kind == "f" else np.float64)
    raise InputError(
        f"`predictions` have dtype {cube.dtype}, which is not numeric. Convert with .astype(float), "
        "or give class names with kind='label'."
    )


def _as_codes(cube: xr.DataArray, names: list[Any]) -> xr.DataArray:
    """Store class-label predictions as codes, with the names as JSON in the scalar coordinate ``classes``."""
    values = cube.values
    if values.dtype.kind == "O":
        flat = values.ravel()
        odd = [value for value in flat if not isinstance(value, (str, bool, np.bool_, int)) and not pd.isnull(value)]
        if odd:
            raise InputError(
                f"`predictions` have dtype object and hold {type(odd[0]).__name__} such as {odd[0]!r}. "
                "Convert numbers with .astype(float) and class names to strings."
            )
    missing = np.asarray(pd.isnull(values))
    index = pd.Index(pd.unique(pd.Series([name for name in names if name is not None], dtype=object)))
    offset = 0 if names[0] is not None else 1
    table = {name: code + offset for code, name in enumerate(index)}
    found = _unique(values)
    unknown = [value for value in found if value not in table]
    if unknown:
        raise InputError(
            f"`predictions` hold {show(unknown)}, not among the classes {show(index)}. "
            "Name every class with `classes=`, or correct the predictions."
        )
    stray = [value for value in _unique(cube["label"].values) if value not in table]
    if stray:
        raise InputError(f"`labels` hold {show(stray)}, not among the classes {show(index)}.")
    codes = np.full(values.shape, np.nan)
    for value in found:
        codes[(values == value) & ~missing] = table[value]
    return cube.copy(data=codes).assign_coords(kind="label", classes=json.dumps(names))


def _positive_class(known: list[Any], positive: Any) -> Any:
    positive = plain(positive)
    if positive is not None:
        if positive not in known and len(known) >= 2:
            raise InputError(f"`positive`={positive!r} is not among the labels {show(known)}.")
        return next((name for name in known if name == positive), positive)
    if all(isinstance(name, (bool, int, float)) for name in known) and (set(known) <= {0, 1} or set(known) <= {-1, 1}):
        return True if isinstance(known[0], bool) else max([*known, type(known[0])(1)])
    raise InputError(f"`positive` must say which of the labels {show(known)} is the positive class.")


def _collapse(cube: xr.DataArray, kind: str, positive: Any) -> tuple[xr.DataArray, Any]:
    """Reduce two class columns to the positive one; nothing is lost because they add up to one."""
    names = [plain(name) for name in cube["label_class"].values]
    positive = _positive_class(names, positive)
    column = cube.isel(label_class=names.index(positive), drop=True)
    if kind == "probability" and not is_lazy(cube):
        gap = np.abs(cube.sum("label_class", skipna=False).values - 1)
        if np.nanmax(gap, initial=0.0) > 1e-3:
            raise InputError(
                f"`predictions`: probabilities of the classes {show(names)} must add up to 1; "
                f"off by up to {np.nanmax(gap):g}. Give scores with kind='score'."
            )
    return column, positive
