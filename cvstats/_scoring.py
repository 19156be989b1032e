"""Scores from one weight vector: pooled over all samples, or within each fold and repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from . import _concordance, _ranks
from ._arrays import REPEATS, Problem, batch_dims, problem
from ._check import InputError, warn
from ._custom import custom_column
from ._sums import SumEngine, fold_values
from .cube import is_lazy
from .metrics import Metric, bound_metric

if TYPE_CHECKING:
    from collections.abc import Hashable

BLOCK = 2_000_000  # predictions at a time, so that extra memory stays far below the cube's own


def pooled_scores(cube: xr.DataArray, metric: str | Metric) -> xr.DataArray:
    """Return the score of each configuration over all samples, averaged over repeats."""
    found = bound_metric(metric, cube) if isinstance(cube, xr.DataArray) else metric
    if isinstance(cube, xr.DataArray) and is_lazy(cube):
        from ._lazy import by_chunk

        return by_chunk(cube, lambda part: pooled_scores(part, found))
    assert isinstance(found, Metric)
    data = problem(cube, found)
    values = np.concatenate([_pooled_block(found, part) for part in _blocks(data)])
    scores = _label_columns(values, cube, found, [])
    _warn_undefined(scores, found, "")
    return scores


def fold_scores(cube: xr.DataArray, metric: str | Metric) -> xr.DataArray:
    """Return the score within each fold and repeat: dims ``configuration, fold[, repeat]`` and batch dims.

    Repeats that have fewer folds than others are an error, because no average would mean the same for both.
    """
    found = bound_metric(metric, cube)
    if "fold" not in cube.coords:
        raise InputError("`cube` has no coordinate 'fold'; averaging by fold needs as_cube(..., folds=...).")
    if is_lazy(cube):
        from ._lazy import by_chunk

        return by_chunk(cube, lambda part: fold_scores(part, found))
    extra = [dim for dim in cube["fold"].dims if dim not in ("sample", "repeat")]
    if extra or any(dim in cube.dims for dim in REPEATS if dim != "repeat"):
        return _fold_scores_by_batch(cube, found, extra)
    data = problem(cube, found)
    names, member = fold_members(cube)
    parts = [_fold_block(found, part, member) for part in _blocks(data)]
    values = np.concatenate(parts, axis=-1)  # (r, fold, m)
    by_fold = _label_columns(np.moveaxis(values, -1, 0), cube, found, ["repeat", "fold"], names)
    _warn_undefined(by_fold, found, " within folds")
    return by_fold if "repeat" in cube.dims else by_fold.isel(repeat=0, drop=True)


def _fold_scores_by_batch(cube: xr.DataArray, metric: Metric, extra: list[Hashable]) -> xr.DataArray:
    if not extra:
        raise InputError("averaging by fold is defined for ordinary folds, not for a cube with partners.")
    parts = [fold_scores(cube.isel({extra[0]: [i]}).squeeze(extra[0]), metric) for i in range(cube.sizes[extra[0]])]
    return xr.concat(parts, dim=cube[extra[0]])


def fold_members(cube: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the fold names and (repeat, fold, n) membership in 0/1."""
    fold = cube["fold"]
    repeats = cube.sizes.get("repeat", 1)
    table = fold.transpose("sample", ...).values.reshape(cube.sizes["sample"], -1)
    codes, names = pd.factorize(table.ravel(), sort=True)
    codes = codes.reshape(table.shape)
    if table.shape[1] == 1:
        codes = np.repeat(codes, repeats, axis=1)
    member = (codes.T[:, None, :] == np.arange(len(names))[None, :, None]).astype(float)
    empty = ~member.any(axis=2)
    if empty.any():
        raise InputError(
            f"`cube`: repeat {int(np.argwhere(empty)[0][0])} has no samples in fold {names[np.argwhere(empty)[0][1]]!r}; "
            "every repeat needs the same folds."
        )
    return np.asarray(names), member


def _blocks(data: Problem) -> list[Problem]:
    m, width = data.p.shape[-2], data.n * data.p.shape[-1] * (data.p.shape[0] if data.p.ndim == 4 else 1)
    step = max(1, BLOCK // max(1, width))
    return [data.columns(slice(start, start + step)) for start in range(0, m, step)]


def _pooled_block(metric: Metric, data: Problem) -> np.ndarray:
    if metric.family in ("mean", "smooth"):
        return SumEngine(metric, data, float(data.n)).scores(np.ones((1, data.n)))[0]
    return _average_repeats(_columns(metric, data, None), data)


def _columns(metric: Metric, data: Problem, weights: np.ndarray | None) -> np.ndarray:
    """Return the (m, r) values of a rank or custom metric."""
    if metric.family == "custom":
        n, m, r = data.p.shape[-3:]
        w = np.ones((n, r)) if weights is None else np.broadcast_to(weights.reshape(n, -1), (n, r))
        return np.array([[custom_column(metric, data, column, repeat, w[:, repeat]) for repeat in range(r)] for column in range(m)])
    if metric.statistic == "concordance":
        return _concordance.column_values(data, weights)
    return _ranks.column_values(metric, data, weights)


def _average_repeats(values: np.ndarray, data: Problem) -> np.ndarray:
    """Average over repeats, leaving out those in which a configuration predicted nothing."""
    if values.shape[1] == 1 or not np.isnan(values).any():
        return np.asarray(values.mean(axis=1))
    planes = data.p if data.p.ndim == 4 else data.p[None]
    some = ~np.isnan(planes).any(axis=0).all(axis=0)
    count = some.sum(axis=1)
    total = np.where(some, values, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _fold_block(metric: Metric, data: Problem, member: np.ndarray) -> np.ndarray:
    if metric.family in ("mean", "smooth"):
        return fold_values(metric, data, member)
    by_fold = [_columns(metric, data, member[:, fold].T) for fold in range(member.shape[1])]
    return np.stack(by_fold).transpose(2, 0, 1)


def _label_columns(
    values: np.ndarray, cube: xr.DataArray, metric: Metric, trailing: list[str], folds: Any = None
) -> xr.DataArray:
    """Return (columns, ...) values as a DataArray over batch dims, configuration and the trailing dims."""
    batch = batch_dims(cube)
    shape = [cube.sizes[dim] for dim in batch] + [cube.sizes["configuration"], *values.shape[1:]]
    dims = [*batch, "configuration", *trailing]
    coords = {name: c for name, c in cube.coords.items() if set(c.dims) <= {*batch, "configuration"} and name not in KEEP_OFF}
    scores = xr.DataArray(values.reshape(shape), dims=dims, coords=coords, name=metric.name)
    if trailing:
        scores = scores.assign_coords(fold=("fold", folds))
        if "repeat" in cube.coords:
            scores = scores.assign_coords(repeat=cube["repeat"].variable)
    return scores.assign_coords(metric=metric.name)


KEEP_OFF = ("kind", "positive", "threshold", "classes")


def _warn_undefined(scores: xr.DataArray, metric: Metric, where: str) -> None:
    missing = np.isnan(scores.values)
    if not missing.any():
        return
    reason = {
        "classes": "needs every class to be present",
        "positive": "needs positives",
        "negative": "needs negatives",
        "spread": "needs labels that vary",
        "pairs": "needs comparable pairs",
    }.get(metric.requires, "is undefined for these predictions")
    folds = ""
    if "fold" in scores.dims:
        bad = missing.any(axis=tuple(i for i, dim in enumerate(scores.dims) if dim != "fold"))
        from ._check import show

        folds = f" (folds {show(scores['fold'].values[bad])})"
    warn(f"{metric.name} is NaN for {int(missing.sum())} of {missing.size} values{where}{folds}: it {reason}.")
