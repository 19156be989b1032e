"""Scores from one weight vector: pooled over all samples, or within each fold and repeat."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, show, warn
from cvstats.cube.align import map_along
from cvstats.cube.arrays import BESIDE, SETTLED, batch_dims, encode_labels, problem
from cvstats.cube.blocks import by_chunk
from cvstats.cube.coords import folds_of
from cvstats.cube.partners import by_pairs
from cvstats.kernels import Problem

if TYPE_CHECKING:
    from .base import Metric

BLOCK = 1_000_000  # predictions at a time, so that extra memory stays far below the cube's own
COUNTED = 8192  # largest sum of case weights that are counts; rounding then stays below 1e-12 of the largest loss
REASONS = {  # what a metric may require of labels, the strongest last
    "positive": "needs positives",
    "negative": "needs negatives",
    "classes": "needs every class to be present",
    "spread": "needs labels that vary",
    "pairs": "needs comparable pairs",
}


def pooled_scores(cube: xr.DataArray, metric: Metric) -> xr.DataArray:
    """Return the score of each configuration over all samples, averaged over repeats."""
    scores: xr.DataArray = by_chunk(cube, partial(_mapped, metric=metric, function=_pooled))
    _warn_undefined(scores, np.isnan(scores.values), metric)
    return scores


def fold_scores(cube: xr.DataArray, metric: Metric, undefined: str = "nan") -> xr.DataArray:
    """Return the score within each fold and repeat: dims ``configuration, fold[, repeat]`` and batch dims.

    Of a separate-sampling cube every pair of folds, which one model left out, is a repeat with one fold.
    NaN where a configuration predicted nothing, and where the metric is undefined (which warns, unless such folds are
    to be skipped). Folds that nobody predicted are left out. Repeats that have fewer folds than others are an error.
    """
    return _fold_table(cube, metric, undefined)["score"].rename(metric.name)


def repeat_averages(cube: xr.DataArray, metric: Metric, undefined: str = "nan") -> xr.DataArray:
    """Return the mean over folds within each repeat, by the rules of `fold_average`."""
    table = _fold_table(cube, metric, undefined)
    return _mean_where(table["score"], table["predicted"], "fold")


def fold_average(cube: xr.DataArray, metric: Metric, undefined: str = "nan") -> xr.DataArray:
    """Return the mean over folds within each repeat, then over repeats.

    Folds and repeats in which a configuration predicted nothing are left out of its mean; a fold in which the metric
    is undefined makes it NaN, with one warning, or is left out too and the coordinate ``n_folds`` counts the others.
    """
    table = _fold_table(cube, metric, undefined)
    average, count = _mean_where(table["score"], table["predicted"], "fold"), table["predicted"].sum("fold")
    if "repeat" in average.dims:
        average, count = _mean_where(average, count > 0, "repeat"), count.sum("repeat")
    if not _lost(table).any():  # which has been said
        _warn_undefined(average, np.isnan(average.values), metric)
    if undefined == "skip":
        average = average.assign_coords(n_folds=count.drop_vars("metric"))
    return average.rename(metric.name)


def _mean_where(values: xr.DataArray, counted: xr.DataArray, dim: str) -> xr.DataArray:
    if values.sizes[dim] and bool(counted.all()):
        return values.mean(dim, skipna=False)
    count = counted.sum(dim)
    with np.errstate(invalid="ignore"):
        return values.where(counted, 0.0).sum(dim, skipna=False) / count.where(count > 0)


def _mapped(cube: xr.DataArray, metric: Metric, function: Callable[[xr.DataArray, Metric], Any]) -> Any:
    """Apply a function to a cube in memory, cell by cell along batch dims in which samples differ."""
    beside = {dim for name in BESIDE if name in cube.coords for dim in cube[name].dims}
    return map_along([dim for dim in batch_dims(cube) if dim in beside], lambda part: function(part, metric), cube)


def _pooled(cube: xr.DataArray, metric: Metric) -> xr.DataArray:
    data, values = problem(cube, metric), []
    for part in _blocks(data):
        part, counts = _counted(part)
        values.append(metric.kernel(part, float(counts.sum())).scores(counts[None])[0])
    return _label_columns(np.concatenate(values), cube, metric)


def _fold_table(cube: xr.DataArray, metric: Metric, undefined: str) -> xr.Dataset:
    """Return the scores by fold and whether there was anything to score; warn where there was and they are undefined.

    There is nothing in a fold that is to be skipped because the metric is undefined for all who predicted it.
    """
    folds_of(cube, "averaging by fold")
    if "inner_repeat" in cube.dims:
        raise InputError("averaging by fold is for one partition at a time; select from 'inner_repeat' first.")
    table: xr.Dataset = by_chunk(cube, partial(_mapped, metric=metric, function=_folded))
    predicted = table["predicted"].fillna(False).astype(bool)
    if undefined == "skip":
        predicted &= table["score"].notnull().any("configuration")
    some = predicted.any([dim for dim in predicted.dims if dim != "fold"])
    table = table.assign(predicted=predicted).isel(fold=np.flatnonzero(some.values))
    _warn_undefined(table["score"], _lost(table), metric)
    return table


def _lost(table: xr.Dataset) -> np.ndarray:
    """Return where there was something to score but the metric is undefined."""
    return np.asarray(np.isnan(table["score"].values) & table["predicted"].values)


def _folded(cube: xr.DataArray, metric: Metric) -> xr.Dataset:
    if "partner" in cube.dims:  # a fold is then what one model left out
        cube = by_pairs(cube, metric.name, *encode_labels(cube))
    data = problem(cube, metric)
    names, member = fold_members(cube)
    blocks = _blocks(data)
    columns = {
        "score": [_fold_block(metric, part, member) for part in blocks],
        "predicted": [_fold_present(part, member) for part in blocks],
    }
    table = xr.Dataset(
        {name: _label_columns(np.concatenate(part), cube, metric, names) for name, part in columns.items()}
    )
    return table if "repeat" in cube.dims else table.isel(repeat=0, drop=True)


def fold_members(cube: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the fold names and (repeat, fold, n) membership in 0/1.

    The id -1 (or an empty string) marks a sample that is in no fold of a repeat. Folds that are numbered throughout
    the repeats are renumbered from 0 within each.
    """
    repeats = cube.sizes.get("repeat", 1)
    fold = folds_of(cube, "averaging by fold")
    table = fold.transpose("sample", ...).values.reshape(cube.sizes["sample"], -1)
    held = table != ("" if table.dtype.kind in "UOT" else -1)
    each = [np.unique(column[used]) for column, used in zip(table.T, held.T, strict=True)]
    counts = [len(names) for names in each]
    odd = next((r for r, count in enumerate(counts) if count != counts[0] or not count), None)
    if odd is not None:
        names = cube["repeat"].values if "repeat" in cube.coords else np.arange(len(each))
        raise InputError(
            "coordinate 'fold': every repeat needs the same number of folds; "
            f"repeat {show(names[:1])} has {counts[0]}, repeat {show(names[[odd]])} has {counts[odd]}."
        )
    same = all(np.array_equal(names, each[0]) for names in each)
    member = np.stack([column == names[:, None] for column, names in zip(table.T, each, strict=True)]).astype(np.int64)
    if len(member) != repeats:
        member = np.repeat(member, repeats, axis=0)
    return each[0] if same else np.arange(len(each[0])), member


def _blocks(data: Problem) -> list[Problem]:
    m, width = data.p.shape[-2], data.n * data.p.shape[-1] * (data.p.shape[0] if data.p.ndim == 4 else 1)
    step = max(1, BLOCK // max(1, width))
    return [data.columns(slice(start, start + step)) for start in range(0, m, step)]


def _counted(data: Problem) -> tuple[Problem, np.ndarray]:
    """Return the problem without samples of weight zero, and how often each counts.

    Case weights that are whole numbers become counts, and then are repeated rows to the last bit. Sums of counts are
    exact because values are rounded to fewer bits the larger the sum, so large weights stay factors instead.
    """
    if data.weight is None:
        return data, np.ones(data.n, np.int64)
    if not data.weight.all():
        data = data.samples(data.weight > 0)
    weight = data.weight
    assert weight is not None
    if np.any(weight % 1) or weight.sum() > COUNTED:
        return data, np.ones(data.n, np.int64)
    return replace(data, weight=None), weight.astype(np.int64)


def _fold_block(metric: Metric, data: Problem, member: np.ndarray) -> np.ndarray:
    """Return the (m, r, fold) scores of a block of columns: a fold is a draw of its members, a repeat a problem."""
    if data.weight is not None:
        member = member[..., data.weight > 0]
    data, counts = _counted(data)
    total = float(counts.sum())
    each = [_by_fold(metric, data.repeats(slice(r, r + 1)), total, inside * counts) for r, inside in enumerate(member)]
    return np.stack(each, axis=1).T


def _by_fold(metric: Metric, data: Problem, total: float, counts: np.ndarray) -> np.ndarray:
    """Return the scores (fold, m) under the counts of each fold."""
    if metric.requires != "spread":
        return metric.kernel(data, total).scores(counts)
    out = np.full((len(counts), data.p.shape[-2]), np.nan)
    for fold, count in enumerate(counts):  # labels vary little in a fold that lies far from the centre of all
        if count.any():
            part = data.samples(count > 0)
            out[fold] = metric.kernel(part, total).scores(count[None, count > 0])[0]
    return out


def _fold_present(data: Problem, member: np.ndarray) -> np.ndarray:
    """Return (m, r, fold): whether a configuration predicted some sample of the fold."""
    if not data.gaps:
        return np.broadcast_to(member.any(axis=2), (data.p.shape[-2], *member.shape[:2]))
    count = member @ data.filled().transpose(2, 0, 1).astype(float)
    return np.asarray(count.transpose(2, 0, 1) > 0)


def _label_columns(values: np.ndarray, cube: xr.DataArray, metric: Metric, folds: Any = None) -> xr.DataArray:
    """Return values (column[, repeat, fold]) as a DataArray over batch dims, configuration, and repeats and folds."""
    batch, trailing = batch_dims(cube), [] if folds is None else ["repeat", "fold"]
    shape = [cube.sizes[dim] for dim in batch] + [cube.sizes["configuration"], *values.shape[1:]]
    dims = [*batch, "configuration", *trailing]
    kept = {*batch, "configuration", *(["repeat"] if trailing and "repeat" in cube.dims else [])}
    names = [name for name in cube.coords if name not in SETTLED and (name in kept or name not in trailing)]
    coords: dict[Hashable, Any] = {name: cube.coords.variables[name] for name in names}
    coords = {name: coord for name, coord in coords.items() if set(coord.dims) <= kept}
    coords["metric"] = metric.name
    if trailing:
        coords["fold"] = ("fold", folds)
    return xr.DataArray(values.reshape(shape), dims=dims, coords=coords, name=metric.name)


def _warn_undefined(scores: xr.DataArray, missing: np.ndarray, metric: Metric) -> None:
    """Warn once when the metric is undefined somewhere, naming the folds and configurations."""
    if not missing.any():
        return
    where = []
    for dim in ("fold", "configuration"):
        if dim in scores.dims:
            bad = missing.any(axis=tuple(i for i, other in enumerate(scores.dims) if other != dim))
            if dim == "fold" or not bad.all():
                where.append(f"{dim} {show(scores[dim].values[bad])}")
    place = f" ({'; '.join(where)})" if where else ""
    reason = REASONS.get(metric.requires, "is undefined for these predictions")
    if any(part.startswith("configuration") for part in where):
        reason += "; a configuration without a score cannot be selected"
    warn(f"{metric.name} is NaN for {int(missing.sum())} of {missing.size} scores{place}: it {reason}.")
