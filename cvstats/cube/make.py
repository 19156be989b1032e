"""The cube: one plain ``xarray.DataArray`` of out-of-sample predictions with the truth beside them."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, check_option, plain, show
from cvstats.kernels.problem import Scan, scan

from .coords import ARGUMENTS, check_sample_values, check_unique, checked, sample_ids, sample_variable
from .kinds import KINDS, SETTLED, settle
from .predictions import named_predictions
from .values import plain_array, unique

LARGEST = 1e50  # of labels and predicted numbers: the cubes of their squared errors are still numbers


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
    predictions : array-like, DataArray, DataFrame, list or dict
        Array of sample x configuration [x repeat] [x label_class] (one dimension is one configuration), DataArray
        with dims of those names in any order (other dims are batch dims), data frame (rows are samples, columns
        configurations), or a list or mapping of one array per configuration. NaN and masked mean *not predicted*.
        The last of three axes is ``label_class`` (sorted, as `predict_proba` has them) when it has one column per class
        and they add up to one; else it is ``repeat``. `classes` or `repeats` say which.
    labels : array-like, optional
        The truth, one per sample: classes, numbers or survival times. Labels that carry ids (Series, DataArray)
        are matched by id. May be omitted for a DataArray that has a ``label`` coordinate.
    folds : array-like or list of index arrays, optional
        Which fold held each sample out: ids per sample [x repeat], or a list of test-index arrays.
    samples, configurations, repeats : sequence, optional
        Names along those dims. Configurations keep the order in which they are given.
    classes : sequence, optional
        Names of the classes; with it the last axis of a numeric array is ``label_class``.
    groups, weights, event : array-like, optional
        Cluster id, case weight, and (survival) 1 = observed, 0 = censored; one per sample.
    kind : str, optional
        What the values are: ``"label"``, ``"score"``, ``"probability"`` or ``"value"``. Inferred when omitted:
        values that are all labels are labels; numbers in [0, 1] for class labels are probabilities (of the positive
        class); other numbers for two classes are scores; numbers for numeric labels are values.
    positive : label, optional
        The positive class. 0/1, booleans and -1/1 take the larger; any other two labels need it.
    threshold : float, optional
        A score is positive when strictly above it: 0.5 for probabilities, no default for scores.

    Returns
    -------
    xarray.DataArray
        Named ``prediction``, with coordinates ``label``, ``kind`` and whatever else was given or settled.

    Raises
    ------
    InputError
        Sizes or ids that do not match; missing labels; two classes of which neither is the known positive; values that
        do not fit their kind; duplicate names. Nothing is repaired.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[0.9, 0.6], [0.2, 0.7], [0.8, 0.1]], [1, 0, 1], configurations=["a", "b"])
    >>> cube.dims, str(cube.kind.item()), cube.positive.item()
    (('sample', 'configuration'), 'probability', 1)
    """
    if kind is not None:
        check_option(kind, KINDS, "kind")
    given = {"samples": samples, "configurations": configurations, "repeats": repeats, "classes": classes}
    said = repeats is not None or classes is not None or event is not None or kind in ("label", "value")
    names = None if said or labels is None else unique(plain_array(labels))
    data, coords = named_predictions(predictions, given, kind, names)
    if data.size == 0:
        raise InputError(f"`predictions` is empty: sizes {dict(data.sizes)}; a cube needs samples and configurations.")
    if labels is None and "label" not in coords:
        raise InputError("`labels` are missing: give one per sample, or predictions with a 'label' coordinate.")
    ids = sample_ids(labels)
    if ids is not None and len(ids) == data.sizes["sample"]:
        coords.setdefault("sample", xr.Variable("sample", ids))  # without ids, predictions are in the labels' order
    for dim in data.dims:
        coords.setdefault(dim, xr.Variable(dim, np.arange(data.sizes[dim])))
    axes = xr.Dataset(coords={dim: coords[dim] for dim in data.dims})
    values = {"label": labels, "fold": folds, "group": groups, "weight": weights, "event": event}
    for name, value in values.items():
        if value is not None:
            coords[name] = sample_variable(value, name, axes)
        elif name in coords:
            coords[name] = checked(coords[name], name, axes)
    _check_labels(data, coords)
    data, extra = settle(data, coords, kind=kind, positive=positive, threshold=threshold, classes=classes)
    kept = {name: value for name, value in coords.items() if set(value.dims) <= set(data.dims) and name not in SETTLED}
    cube = xr.DataArray(data, coords=kept | extra, name="prediction")
    _check_names(cube)
    settled = str(cube["kind"].values)
    if settled != "label" and not is_lazy(cube):
        check_values(cube.values, settled, 0, "predictions")
    return cube


def check_cube(cube: xr.DataArray) -> xr.DataArray:
    """Return `cube` unchanged if it obeys the contract, else raise an error that says what is wrong.

    Checks dims, unique sample and configuration names, missing labels (allowed only where every prediction is
    missing), fold ids, case weights, and that values fit their ``kind``. Values of a dask-backed cube are checked
    block by block when they are used, not here.

    Parameters
    ----------
    cube : DataArray
        What should be a cube.

    Returns
    -------
    xarray.DataArray
        The same object.

    Raises
    ------
    InputError
        The first rule that is broken, with the labels that break it.

    Examples
    --------
    >>> import cvstats as cs
    >>> cube = cs.as_cube([[0.9], [0.2]], [1, 0])
    >>> cs.check_cube(cube) is cube
    True
    """
    kind = check_form(cube)
    if not is_lazy(cube):
        check_values(cube.values, kind, len(class_names(cube) or ()), "cube")
    return cube


def check_form(cube: xr.DataArray) -> str:
    """Check everything but the predictions themselves; return their kind."""
    if not isinstance(cube, xr.DataArray):
        raise InputError(f"`cube` must be an xarray.DataArray made by as_cube(); got {type(cube).__name__}.")
    for dim in ("sample", "configuration"):
        if dim not in cube.dims:
            raise InputError(f"`cube` has no dimension {dim!r}; found {show(cube.dims)}. Make it with as_cube().")
    coords = cube.coords.variables  # building a DataArray for each would cost more than the checks
    for name in ("label", "kind", "sample", "configuration"):
        if name not in coords:
            raise InputError(f"`cube` has no coordinate {name!r}. Make it with as_cube(predictions, labels).")
    if cube.size == 0:
        raise InputError(f"`cube` is empty: sizes {dict(cube.sizes)}.")
    if cube.dtype.kind != "f":
        raise InputError(f"`cube` has dtype {cube.dtype}; a cube holds floats. Make it with as_cube().")
    for name in SETTLED:
        if name in coords and coords[name].ndim:
            raise InputError(
                f"coordinate {name!r} must be a single value, but has dims {show(coords[name].dims)}; "
                "cubes that differ in it cannot be put into one."
            )
    kind = str(coords["kind"].values.item())
    check_option(kind, KINDS, "kind")
    needed = _source_of_classes(cube)
    if needed is not None and needed not in coords:
        raise InputError(f"`cube` of kind {kind!r} has no coordinate {needed!r}. Make it with as_cube().")
    _check_names(cube)
    for name in ARGUMENTS:
        if name in coords:
            check_sample_values(name, coords[name])
    _check_labels(cube.variable, coords)
    return kind


def is_lazy(cube: xr.DataArray) -> bool:
    """Return whether the cube is backed by dask, so that nothing may load it whole."""
    return hasattr(cube.variable._data, "__dask_graph__")


def class_names(cube: xr.DataArray) -> list[Any] | None:
    """Return the classes in the order of their codes (binary: negative, positive), or None for numeric labels."""
    coords = cube.coords.variables
    source = _source_of_classes(cube)
    if source is None:
        return None
    if source == "label_class":
        return [plain(name) for name in coords[source].values]
    settled = coords[source].values.item()
    if source == "classes":
        return list(json.loads(settled))
    positive = plain(settled)
    others = [name for name in unique(coords["label"].values) if name != positive]
    return [others[0] if others else None, positive]


def check_values(values: np.ndarray, kind: str, n_classes: int, argument: str, seen: Scan | None = None) -> None:
    """Raise unless the values fit their kind: probabilities in [0, 1], class codes below `n_classes`, sane numbers.

    What a pass over the values has `seen` already need not be looked for again.
    """
    if kind == "score" or values.size == 0:
        return
    seen = seen or scan(values)
    low, high = seen.low, seen.high
    if kind == "value":
        if np.isinf(low) or np.isinf(high):  # which metrics can use infinite predictions, they say themselves
            finite = values[np.isfinite(values)]
            low, high = float(finite.min(initial=0.0)), float(finite.max(initial=0.0))
        if low < -LARGEST or high > LARGEST:
            raise InputError(
                f"`{argument}`: numbers must lie within {-LARGEST:g} and {LARGEST:g}; found values from {low:g} to "
                f"{high:g}. Give what a diverged model predicted as NaN, or change the unit."
            )
    if kind == "probability" and (low < 0 or high > 1):
        raise InputError(
            f"`{argument}`: probabilities must lie in [0, 1]; found values from {low:g} to {high:g}. "
            "Give scores with kind='score'."
        )
    if kind == "label" and (low < 0 or high >= n_classes or _fractions(values)):
        raise InputError(
            f"`{argument}`: class codes must be whole numbers from 0 to {n_classes - 1}; found {low:g} to {high:g}."
        )


def _fractions(values: np.ndarray) -> bool:
    """Return whether some value is not a whole number; NaN does not count."""
    flat = values.ravel(order="K")
    tiles = (flat[start : start + 65_536] for start in range(0, flat.size, 65_536))
    return any(bool(np.any(np.abs(tile - np.rint(tile)) > 0)) for tile in tiles)


def _source_of_classes(cube: xr.DataArray) -> str | None:
    """Return the coordinate that names the classes, without which predictions of classes cannot be read."""
    kind = str(cube.coords.variables["kind"].values.item())
    if kind == "value" or "event" in cube.coords.variables:
        return None
    if "label_class" in cube.dims:
        return "label_class"
    return "classes" if kind == "label" else "positive"


def _check_names(cube: xr.DataArray) -> None:
    for dim, index in cube.indexes.items():
        if isinstance(index, pd.MultiIndex):
            raise InputError(
                f"the {dim} names are a MultiIndex of {show(index.names)}; give each a single name, for instance with "
                "as_cube(cube), which makes text of them."
            )
        check_unique(index, f"{dim} names must be unique; found more than once")


def _check_labels(data: xr.Variable, coords: Mapping[Hashable, xr.Variable]) -> None:
    """Raise for infinite labels, and for missing ones unless every prediction of the sample is missing too."""
    label = coords["label"]
    if label.dtype.kind not in "Of":
        return
    if label.dtype.kind == "f":
        largest = float(np.fmax.reduce(np.abs(label.values), axis=None))
        if np.isinf(largest):
            raise InputError("`labels` must be finite; found infinite values.")
        if largest > LARGEST:
            raise InputError(f"`labels` must lie within {-LARGEST:g} and {LARGEST:g}; change their unit.")
    missing = label.isnull()
    rows = np.flatnonzero(missing.any([dim for dim in label.dims if dim != "sample"]).values)
    if not rows.size:
        return
    bad = data.isel(sample=rows).notnull() & missing.isel(sample=rows)
    hit = bad.any([dim for dim in bad.dims if dim != "sample"]).values
    if hit.any():
        raise InputError(
            f"`labels` are missing for samples {show(coords['sample'].values[rows[hit]])} that have predictions; "
            "every predicted sample needs a label."
        )
