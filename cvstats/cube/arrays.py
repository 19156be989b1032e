"""From the labelled cube to the plain arrays that kernels take.

Kernels never see xarray. They get a `Problem`: sample axis first, then columns (configurations, with batch dims
folded in), then repeats. Partners of a separate-sampling cube and inner repeats are averaged like repeats, so they
share that axis; rank metrics, which compare samples, are told which model made each prediction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, show
from cvstats.kernels import Problem
from cvstats.kernels.problem import scan

from .align import REPEATS, batch_dims
from .kinds import encode
from .make import check_cube, class_names, is_lazy
from .values import unique

if TYPE_CHECKING:
    from cvstats.metrics import Metric


def encode_labels(cube: xr.DataArray) -> tuple[np.ndarray, int]:
    """Return labels as numbers (class codes for classification) with NaN where missing, and the number of classes."""
    names = class_names(cube)
    values = cube.coords.variables["label"].values
    if names is None:
        return values.astype(float), 0
    codes = encode(values, names)
    if np.any(codes == -1):
        stray = unique(values[codes == -1])
        raise InputError(f"coordinate 'label' holds {show(stray)}, not among the classes {show(names)}.")
    return codes, len(names)


def check_kind(cube: xr.DataArray, metric: Metric) -> None:
    """Raise when the metric cannot be computed from this kind of predictions."""
    coords = cube.coords.variables
    kind = str(coords["kind"].values)
    survival = "event" in coords
    what, uses = f"metric {metric.name!r}", metric.uses
    if uses == "any":
        return
    if uses == "survival":
        if not survival:
            raise InputError(f"{what} needs the 'event' coordinate (1 observed, 0 censored); give as_cube(event=...).")
        return
    if survival:
        raise InputError(f"{what} does not know censoring, but the cube holds survival times. Use concordance.")
    if uses == "value" and kind != "value":
        raise InputError(
            f"{what} is for numeric predictions, but the cube has kind={kind!r}. Use accuracy or auc, say, "
            "or give as_cube(..., kind='value') when the values are numbers."
        )
    if uses != "value" and kind == "value":
        raise InputError(f"{what} is for class labels, but the cube holds numbers (kind='value'). Use mse or mae, say.")
    if uses in ("score", "margin") and kind == "label":
        raise InputError(f"{what} needs scores or probabilities, but the cube holds hard labels (kind='label').")
    if uses == "probability" and kind != "probability":
        raise InputError(f"{what} needs probabilities, but the cube has kind={kind!r}.")
    many = "label_class" in cube.dims or (kind == "label" and len(class_names(cube) or ()) > 2)
    if metric.binary_only and many:
        raise InputError(f"{what} is for two classes, but the cube has {len(class_names(cube) or ())}.")
    if uses in ("label", "margin") and not many and kind == "score" and "threshold" not in cube.coords:
        need = "class labels" if uses == "label" else "the distance from the threshold"
        raise InputError(
            f"{what} needs {need}, and scores have no default threshold; give as_cube(..., threshold=...)."
        )


def raw_block(cube: xr.DataArray) -> Any:
    """Return the cube's data as (k?, n, m, r): class axis first, batch dims folded into columns, repeats last."""
    batch = batch_dims(cube)
    repeats = [dim for dim in REPEATS if dim in cube.dims]
    classes = [dim for dim in ("label_class",) if dim in cube.dims]
    data = cube.variable.transpose(*classes, "sample", *batch, "configuration", *repeats).data
    lead = data.shape[: len(classes) + 1]
    r = int(np.prod([cube.sizes[dim] for dim in repeats], dtype=int))
    return data.reshape(*lead, -1, r)


def problem(cube: xr.DataArray, metric: Metric) -> Problem:
    """Return the whole cube as one problem, batch dims folded into the columns. For cubes in memory."""
    check_cube(cube)
    if is_lazy(cube):
        raise InputError("this step needs the predictions in memory; call .compute() on the cube first.")
    data = as_problem(cube, metric)
    if data.finite:
        check_finite(data.p, data.finite, cube["sample"].values)
    return data


def as_problem(cube: xr.DataArray, metric: Metric | None = None) -> Problem:
    """Return labels and predictions as they lie, in memory or on dask, without a look at the predictions."""
    if metric is not None:
        check_kind(cube, metric)
    coords = cube.coords.variables
    y, n_classes = encode_labels(cube)
    batch, label = batch_dims(cube), coords["label"].dims
    if any(dim in label for dim in batch):
        shape = {dim: cube.sizes[dim] for dim in ("sample", *batch)}
        wide = xr.Variable(label, y).set_dims(shape)  # type: ignore[no-untyped-call]
        flat = wide.transpose("sample", *batch).values.reshape(cube.sizes["sample"], -1)
        y = np.repeat(flat, cube.sizes["configuration"], axis=1)
    y = np.where(np.isnan(y), 0.0, y)
    event, weight = (coords[name].values.astype(float) if name in coords else None for name in ("event", "weight"))
    kind = str(coords["kind"].values.item())
    finite = metric is not None and metric.family != "rank" and metric.uses in ("value", "margin")
    name = metric.name if metric is not None and finite else ""
    return Problem(
        y,
        raw_block(cube),
        weight,
        event,
        n_classes,
        kind,
        threshold(cube),
        None if metric is None else models(cube, metric),
        finite=name,
        names=coords["configuration"].values,
        complexity=coords["complexity"].values.astype(float) if "complexity" in coords else None,
    )


def models(cube: xr.DataArray, metric: Metric) -> np.ndarray | None:
    """Return which model made each prediction of a separate-sampling cube, (sample, repeat, partner); -1 for none.

    Partner j of a class-0 sample of fold i is the model that left out folds i of class 0 and j of class 1; so is
    partner i of a class-1 sample of fold j. Only rank metrics ask, for they compare predictions of different samples.
    """
    if metric.family != "rank" or "partner" not in cube.dims:
        return None
    what = f"metric {metric.name!r} of a separate-sampling cube (dimension 'partner')"
    y, n_classes = encode_labels(cube)
    if n_classes != 2:
        raise InputError(f"{what} is for two classes, but the cube has {n_classes}.")
    if "fold" not in cube.coords:
        raise InputError(
            f"{what} compares predictions of one model, which is known by the folds it left out, but the cube has no "
            "coordinate 'fold'; give as_cube(..., folds=...)."
        )
    partner = cube["partner"].values if "partner" in cube.coords else np.arange(cube.sizes["partner"])
    sizes = {dim: cube.sizes[dim] for dim in ("sample", "repeat") if dim in cube.dims}
    wide = cube["fold"].variable.set_dims(sizes)  # type: ignore[no-untyped-call]
    fold = wide.transpose(*sizes).values.reshape(cube.sizes["sample"], -1)
    held = np.isfinite(y)[:, None] & (fold != ("" if fold.dtype.kind in "UO" else -1))
    if not np.isin(fold[held], partner).all():
        raise InputError(
            f"{what} needs every fold among the partners; coordinate 'fold' holds "
            f"{show(unique(fold[held & ~np.isin(fold, partner)]))}, 'partner' holds {show(partner)}."
        )
    order = np.argsort(partner, kind="stable")
    own = order[np.searchsorted(partner[order], np.where(held, fold, partner[0]))][:, :, None]  # place of its own fold
    other = np.arange(len(partner))
    first, second = (y == 0)[:, None, None], (y == 1)[:, None, None]
    number = np.where(first, own * len(partner) + other, other * len(partner) + own)
    number[~held] = -1
    both = [np.isin(number, number[np.broadcast_to(side, number.shape)]) for side in (first, second)]
    return np.where(both[0] & both[1], number, -1)


def check_finite(p: np.ndarray, metric: str, samples: np.ndarray | None = None) -> None:
    """Raise for infinite predictions, which only rank metrics can use; `samples` are their names, if known."""
    seen = scan(p)
    if np.isfinite(seen.low) and np.isfinite(seen.high):
        return
    bad = np.isinf(p)
    if bad.any():
        rows = np.flatnonzero(bad.reshape(-1, *p.shape[-3:]).any(axis=(0, 2, 3)))
        where = f"the samples in places {show(rows)}" if samples is None else f"samples {show(samples[rows])}"
        raise InputError(
            f"metric {metric!r} needs finite predictions; found infinite ones for {where}. "
            "Rank metrics such as auc accept them."
        )


def threshold(cube: xr.DataArray) -> float | None:
    """Return the cube's decision threshold, or None."""
    coords = cube.coords.variables
    return float(coords["threshold"].values) if "threshold" in coords else None
