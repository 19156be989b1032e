"""The cube: one plain ``xarray.DataArray`` of out-of-sample predictions with the truth beside them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_option

from .arrays import KINDS, SETTLED, check_beside, check_form, check_values
from .coords import plain_variable, sample_ids, sample_variable
from .kinds import settle
from .predictions import named_predictions
from .values import plain_array, unique


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
        Which fold held each sample out: ids per sample [x repeat], or a list of test-index arrays, of repeated
        cross-validation one repeat after the other. Configurations that were split in their own ways have ids along
        ``sample`` and ``configuration`` (a DataArray); only pooled methods take these.
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
            coords[name] = plain_variable(coords[name], name, axes)
    check_beside(data, coords)
    coords |= {name: coords[name].astype(kind) for name, kind in (("weight", float), ("event", int)) if name in coords}
    data, extra = settle(data, coords, kind=kind, positive=positive, threshold=threshold, classes=classes)
    kept = {name: value for name, value in coords.items() if set(value.dims) <= set(data.dims) and name not in SETTLED}
    cube = xr.DataArray(data, coords=kept | extra, name="prediction")
    settled = check_form(cube)
    if settled != "label" and cube.chunks is None:
        check_values(cube.values, settled, 0, "predictions")
    return cube
