"""From the labelled cube to the plain arrays that kernels take: its rules, its classes, its problem, its blocks.

Kernels never see xarray. They get a `Problem`: sample axis first, then columns (configurations, with batch dims
folded in), then repeats. Partners of a separate-sampling cube and inner repeats are averaged like repeats, so they
share that axis; rank metrics, which compare samples, are told which model made each prediction.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, check_option, plain, show
from cvstats.kernels import Problem
from cvstats.kernels.threads import ticker

from .align import Labelled, map_along
from .blocks import over_blocks, whole_columns
from .gaps import Report, report, reported
from .partners import models
from .values import check_threshold, unique

if TYPE_CHECKING:
    from cvstats.metrics import Metric

T = TypeVar("T")
Work = Callable[[Problem, np.ndarray, Any], T]  # of a block, the places of its columns, and a ticker or None
KINDS = ("label", "score", "probability", "value")
SETTLED = ("kind", "positive", "threshold", "classes")  # the scalar coordinates that say what was settled
BESIDE = ("label", "fold", "group", "weight", "event")  # coordinates of the samples
REPEATS = ("repeat", "partner", "inner_repeat")
PLANES = ("label_class", "horizon")  # a prediction is one value for each class, or for each horizon
CORE = {"sample", "configuration", *REPEATS, *PLANES}
LARGEST = 1e50  # of labels and predicted numbers: the cubes of their squared errors are still numbers
TILE = 65_536  # numbers looked at while they are in the cache
PART = 16_000_000  # predictions of a block in memory


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
    if cube.chunks is None:
        check_values(cube.values, kind, len(class_names(cube) or ()))
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
    if "threshold" in coords and kind in ("score", "probability"):
        check_threshold(coords["threshold"].values.item(), kind)
    needed = "label_class" if "label_class" in cube.dims else "classes" if kind == "label" else "positive"
    if kind != "value" and "event" not in coords and needed not in coords:
        raise InputError(f"`cube` of kind {kind!r} has no coordinate {needed!r}. Make it with as_cube().")
    for dim, index in cube.indexes.items():
        if isinstance(index, pd.MultiIndex):
            raise InputError(
                f"the {dim} names are a MultiIndex of {show(index.names)}; give each a single name, for instance with "
                "as_cube(cube), which makes text of them."
            )
        if not index.is_unique:
            twice = index[index.duplicated()].unique()
            raise InputError(f"{dim} names must be unique; found more than once: {show(twice)}.")
    if "event" in coords or "horizon" in cube.dims:
        _check_horizon(cube, kind)
    check_beside(cube.variable, coords)
    return kind


def _check_horizon(cube: xr.DataArray, kind: str) -> None:
    """Raise unless predictions at horizons are those of survival times."""
    coords = cube.coords.variables
    if "horizon" in cube.dims and ("event" not in coords or kind == "value"):
        raise InputError(
            "the dimension 'horizon' is for survival: risks (kind='score') or survival probabilities "
            "(kind='probability') at times, with as_cube(event=...). Rename it if it means something else."
        )
    if "event" in coords and kind == "probability" and "horizon" not in coords:
        raise InputError(
            "survival probabilities need the times they are for: a dimension 'horizon', or a single coordinate, in a "
            "DataArray of predictions. Risks that are no such probabilities have kind='score'."
        )
    if "event" in coords and "horizon" in coords:
        times = coords["horizon"].values
        if times.dtype.kind not in "fiu" or not np.all(np.isfinite(times)):
            raise InputError(f"coordinate 'horizon' must hold times, as the labels do; found {show(np.ravel(times))}.")


def check_beside(data: xr.Variable, coords: Mapping[Hashable, xr.Variable]) -> None:
    """Check what stands beside the predictions of samples: labels, folds, groups, weights and events."""
    for name in BESIDE:
        if name not in coords:
            continue
        values, kind = coords[name].values, coords[name].dtype.kind
        if "sample" not in coords[name].dims:
            raise InputError(f"coordinate {name!r} must have the dimension 'sample'; found {show(coords[name].dims)}.")
        if name == "weight":
            if kind not in "biuf":
                raise InputError(f"`weights` must be numbers; found dtype {values.dtype}.")
            if not (np.isfinite(values) & (values >= 0)).all():
                raise InputError("`weights` must be finite and not negative.")
            if not values.any():
                raise InputError("`weights` are all zero; at least one sample must count.")
        if name == "event" and not np.all((values == 0) | (values == 1)):
            raise InputError(f"`event` must be 1 (observed) or 0 (censored); found {show(pd.unique(values.ravel()))}.")
        if name == "group" and kind in "Of" and pd.isna(values).any():
            raise InputError("`groups` must not be missing; give every sample its cluster id.")
        if name == "fold" and kind == "f":
            raise InputError("`folds` holds floats; fold ids must be integers or strings. Convert with .astype(int).")
        if name == "fold" and (kind not in "iuUOT" or (kind == "O" and pd.isna(values).any())):
            raise InputError(f"`folds` must hold integers or strings for every sample; found dtype {values.dtype}.")
    label = coords["label"]
    if label.dtype.kind == "f":
        largest = float(np.fmax.reduce(np.abs(label.values), axis=None))
        if np.isinf(largest):
            raise InputError("`labels` must be finite; found infinite values.")
        if largest > LARGEST:
            raise InputError(f"`labels` must lie within {-LARGEST:g} and {LARGEST:g}; change their unit.")
    if label.dtype.kind in "Of" and (missing := label.isnull()).values.any():
        rows = np.flatnonzero(missing.any([dim for dim in label.dims if dim != "sample"]).values)
        bad = data.isel(sample=rows).notnull() & missing.isel(sample=rows)
        hit = bad.any([dim for dim in bad.dims if dim != "sample"]).values
        if hit.any():
            raise InputError(
                f"`labels` are missing for samples {show(coords['sample'].values[rows[hit]])} that have predictions; "
                "every predicted sample needs a label."
            )


def check_values(
    values: np.ndarray,
    kind: str,
    n_classes: int,
    argument: str = "cube",
    *,
    metric: str = "",
    samples: np.ndarray | None = None,
) -> bool:
    """Raise unless the values fit their kind: probabilities in [0, 1], class codes below `n_classes`, sane numbers.

    A `metric` that needs finite predictions is given by name, with the names of the `samples` if they are known. All
    in one pass over the values, which also tells whether some are missing.
    """
    tiles = [values]
    if values.flags.forc:
        flat = values.reshape(-1, order="A")
        tiles = [flat[start : start + TILE] for start in range(0, flat.size, TILE)]
    ends = np.array([(tile.min(), tile.max()) for tile in tiles])
    gaps = bool(np.isnan(ends).any())
    if gaps:
        ends = np.array([(np.fmin.reduce(tile, axis=None), np.fmax.reduce(tile, axis=None)) for tile in tiles])
    low, high = float(np.fmin.reduce(ends[:, 0])), float(np.fmax.reduce(ends[:, 1]))  # NaN when there is no number
    infinite = np.isinf(low) or np.isinf(high)
    if infinite and kind == "value":  # which metrics can use infinite predictions, they say themselves
        finite = values[np.isfinite(values)]
        low, high = float(finite.min(initial=0.0)), float(finite.max(initial=0.0))
    if kind == "value" and (low < -LARGEST or high > LARGEST):
        raise InputError(
            f"`{argument}`: numbers must lie within {-LARGEST:g} and {LARGEST:g}; found values from {low:g} to "
            f"{high:g}. Give what a diverged model predicted as NaN, or change the unit."
        )
    if infinite and metric:
        rows = np.flatnonzero(np.isinf(values).reshape(-1, *values.shape[-3:]).any(axis=(0, 2, 3)))
        where = f"the samples in places {show(rows)}" if samples is None else f"samples {show(samples[rows])}"
        raise InputError(
            f"metric {metric!r} needs finite predictions; found infinite ones for {where}. "
            "Rank metrics such as auc accept them."
        )
    if kind == "probability" and (low < 0 or high > 1):
        raise InputError(
            f"`{argument}`: probabilities must lie in [0, 1]; found values from {low:g} to {high:g}. "
            "Give scores with kind='score'."
        )
    if kind == "label" and (low < 0 or high >= n_classes or any(np.any(np.abs(t - np.rint(t)) > 0) for t in tiles)):
        raise InputError(
            f"`{argument}`: class codes must be whole numbers from 0 to {n_classes - 1}; found {low:g} to {high:g}."
        )
    return gaps


def class_names(cube: xr.DataArray) -> list[Any] | None:
    """Return the classes in the order of their codes (binary: negative, positive), or None for numeric labels."""
    coords = cube.coords.variables
    kind = coords["kind"].values.item()
    if kind == "value" or "event" in coords:
        return None
    if "label_class" in cube.dims:
        return [plain(name) for name in coords["label_class"].values]
    if kind == "label":
        return list(json.loads(coords["classes"].values.item()))
    positive = plain(coords["positive"].values.item())
    others = [name for name in unique(coords["label"].values) if name != positive]
    return [others[0] if others else None, positive]


def encode(values: np.ndarray, names: list[Any]) -> np.ndarray:
    """Return values as codes of `names`: NaN where missing, -1 where not among them."""
    table = {name: float(code) for code, name in enumerate(names) if name is not None}
    number, found = pd.factorize(values.ravel())  # missing has the number -1, the last of those known
    known = np.array([*(table.get(name, -1.0) for name in found.tolist()), np.nan])
    return np.asarray(known[number].reshape(values.shape))


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


def problem_on(cube: xr.DataArray, metric: Metric | None = None, *, compete: bool = True, look: bool = True) -> Problem:
    """Return the problem of a cube, wherever it lives.

    What is missing is known at once in memory, on dask after a pass over the data: see `map_blocks`. Configurations
    that `compete` must have predicted all that others did. Nobody need `look` at the predictions, which may then have
    batch dims, folded into the columns.
    """
    lazy = cube.chunks is not None
    cube = whole_columns(cube) if lazy else cube
    if metric is not None:
        metric.check_kind(cube)
    coords = cube.coords.variables
    y, n_classes = encode_labels(cube)
    repeats = [dim for dim in REPEATS if dim in cube.dims]
    planes = [dim for dim in PLANES if dim in cube.dims]
    p = cube.variable.transpose(*planes, "sample", ..., "configuration", *repeats).data
    p = p.reshape(*p.shape[: len(planes) + 1], -1, math.prod(cube.sizes[dim] for dim in repeats))
    event, weight, threshold, complexity = (
        coords[name].values.astype(float) if name in coords else None
        for name in ("event", "weight", "threshold", "complexity")
    )
    ranks = metric is not None and metric.family == "rank"
    data = Problem(
        np.where(np.isnan(y), 0.0, y),
        p,
        weight,
        event,
        n_classes,
        str(coords["kind"].values.item()),
        None if threshold is None else float(threshold),
        models(cube, metric.name, y, n_classes) if metric is not None and ranks and "partner" in cube.dims else None,
        cube.sizes.get("partner", 1),
        finite=metric.name if metric is not None and not ranks and metric.uses in ("value", "margin") else "",
        rows=np.ones(cube.sizes["sample"], bool),
        eligible=np.ones(p.shape[-2], bool),
        compete=compete,
        horizon=coords["horizon"].values.astype(float).reshape(-1) if "horizon" in coords else None,
        names=coords["configuration"].values,
        complexity=complexity,
    )
    if lazy or not look:
        return data
    gaps = check_values(data.p, data.kind, n_classes, metric=data.finite, samples=coords["sample"].values)
    return reported(data, [report(data)]) if gaps else replace(data, gaps=False)


def problem(cube: xr.DataArray, metric: Metric) -> Problem:
    """Return a whole cube in memory as one problem, batch dims folded into the columns."""
    data = problem_on(cube, metric, look=False)
    gaps = check_values(data.p, data.kind, data.n_classes, metric=data.finite, samples=cube["sample"].values)
    return replace(data, gaps=gaps)


def report_on(data: Problem) -> Report:
    """Check the values of a block in memory and report what is missing, in one pass where nothing is."""
    n, m = data.p.shape[-3:-1]
    if check_values(data.p, data.kind, data.n_classes, metric=data.finite):
        return report(data)
    return Report(np.ones(n, bool), np.full(m, n), np.zeros(m, int))


def coverage(cube: xr.DataArray) -> Problem:
    """Return the problem of a cube without batch dims with what is missing; takes a pass over data on dask."""
    return surveyed(problem_on(cube))


def surveyed(data: Problem) -> Problem:
    """Return the problem with what is missing."""
    return data if data.gaps is not None else map_blocks(_nothing, data)[0]


def _nothing(*_: Any) -> None:
    """Look at a block, and do nothing with it."""


def map_blocks(
    work: Work[T], data: Problem, *, pick: np.ndarray | None = None, progress: str = "", steps: int = 1
) -> tuple[Problem, list[T]]:
    """Return the problem with what is missing, and ``work(block, places, tick)`` of every block of configurations.

    Blocks hold the eligible configurations (or those in `pick`) on the samples that somebody predicted, ``block.rows``
    of the cube's. On dask nothing is known before the data are read: the first pass takes them to be complete, checks
    and reports; if they were not, a second pass does it right. `tick` shows progress, if anything does.
    """
    if hasattr(data.p, "__dask_graph__"):
        return _map_lazy(work, data, pick, progress)
    results, m = [], data.p.shape[-2]
    pick = data.eligible if pick is None else pick
    step = max(1, PART // max(1, data.p.size // m))
    with ticker(progress, -(-m // step) * steps) if progress else nullcontext() as tick:
        for start in range(0, m, step):
            block = slice(start, min(start + step, m))
            places = np.flatnonzero(pick[block]) + start
            if places.size:
                some = block if len(places) == block.stop - start else places
                part = data if len(places) == m else data.columns(some)
                results.append(work(part if part.rows.all() else part.samples(part.rows), places, tick))
    return data, results


def _map_lazy(work: Work[T], data: Problem, pick: np.ndarray | None, progress: str) -> tuple[Problem, list[T]]:
    known, unsure = replace(data, gaps=bool(data.gaps)), data.gaps is None
    for survey in (True, False) if unsure else (False,):
        job = partial(_work_lazily, work, replace(known, p=None), survey)
        pairs = over_blocks(job, known.p, known.eligible if pick is None else pick, progress)
        if survey:
            known = reported(data, [report for report, _ in pairs if report is not None])
            if not known.gaps and known.rows.all() and known.eligible.all():
                break
    return known, [value for _, value in pairs]


def _work_lazily(
    work: Work[T], data: Problem, survey: bool, block: np.ndarray, places: np.ndarray, local: Any
) -> tuple[Report | None, T]:
    """Work on a block wherever its data are, of a problem that was sent there without predictions.

    With `survey` check the values, and report on what is missing.
    """
    part = replace(data, p=block)
    report = report_on(part) if survey else None
    part = part if isinstance(local, slice) else part.columns(local)
    return report, work(part if part.rows.all() else part.samples(part.rows), places, None)


def batch_dims(cube: xr.DataArray) -> list[Hashable]:
    """Return the dims that functions map over."""
    return [dim for dim in cube.dims if dim not in CORE]


def map_batches(function: Callable[..., Labelled], cube: xr.DataArray, *others: xr.DataArray | None) -> Labelled:
    """Return ``function(cube, *others)`` for every combination of batch dims, put together along them."""
    if CORE.issuperset(cube.dims):
        return function(cube, *others)
    return map_along(batch_dims(cube), function, cube, *others)
