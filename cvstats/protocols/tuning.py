"""Choosing tuning values: the best score, ties to the smallest value, and what those choices then predict."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import xarray as xr

from cvstats._check import InputError, show
from cvstats.cube.arrays import REPEATS, batch_dims
from cvstats.metrics import Metric, score

Inputs = Mapping[str, xr.DataArray | None]


def eligible(cube: xr.DataArray) -> xr.DataArray:
    """Return, over batch dims and configuration, whether a configuration predicted all that any of them did."""
    present = cube.notnull()
    if "label_class" in cube.dims:
        present = present.all("label_class")
    present = present.any([dim for dim in REPEATS if dim in present.dims])
    return (present | ~present.any("configuration")).all("sample").drop_vars(["kind"], errors="ignore")


def best(scores: xr.DataArray, allowed: xr.DataArray, metric: Metric) -> xr.DataArray:
    """Return the position of the best configuration over the other dims; -1 where no score is defined.

    Ties go to the smallest tuning value when configurations are named by numbers, else to the first.
    """
    dims = [dim for dim in scores.dims if dim != "configuration"]
    allowed = allowed.drop_vars(list(allowed.coords)).broadcast_like(scores.drop_vars(list(scores.coords)))
    values = metric.sign * scores.transpose(*dims, "configuration").values
    values = np.where(allowed.transpose(*dims, "configuration").values, values, np.nan)
    if not allowed.any("configuration").all():
        raise InputError(
            "no configuration predicted every sample that any configuration predicted, so none may be selected. "
            "Drop samples or configurations."
        )
    order = by_value(scores["configuration"].values)
    ordered = np.where(np.isnan(values), -np.inf, values)[..., order]
    index = np.where(np.isnan(values).all(axis=-1), -1, order[np.argmax(ordered, axis=-1)])
    return xr.DataArray(index, dims=dims, coords={dim: scores[dim].variable for dim in dims if dim in scores.coords})


def by_value(names: np.ndarray) -> np.ndarray:
    """Return configurations in ascending order when they are numbers, else in the order they have."""
    return np.argsort(names, kind="stable") if names.dtype.kind in "iuf" else np.arange(len(names))


def choose(cube: xr.DataArray, metric: Metric) -> xr.DataArray:
    """Return the position of the configuration that the pooled score of each batch chooses."""
    return best(score(cube, metric), eligible(cube), metric)


def per_training_set(inner: xr.DataArray, metric: Metric) -> np.ndarray:
    """Return the position chosen by each training set's own predictions: (outer fold, repeat or 1)."""
    inner = inner.drop_vars("fold", errors="ignore")
    if "repeat" in inner.dims:
        inner = inner.rename(repeat="partition")  # every repeat chooses for itself
    index = choose(inner, metric)
    return index.transpose("outer_fold", ...).values.reshape(inner.sizes["outer_fold"], -1)


def combined_score(cube: xr.DataArray, metric: Metric, folds: np.ndarray, chosen: np.ndarray) -> float:
    """Return the pooled score when each sample is predicted by what its fold chose: `chosen` (fold, repeat or 1).

    NaN when a fold with predictions chose nothing (-1).
    """
    repeats = cube.sizes.get("repeat", 1)
    table = cube["fold"].transpose("sample", ...).values.reshape(cube.sizes["sample"], -1)
    order = np.argsort(folds, kind="stable")
    code = order[np.searchsorted(folds, table, sorter=order)]
    place = np.broadcast_to(chosen, (len(folds), repeats))[code, np.arange(repeats)]
    undecided = (folds[code] == table) & (place < 0)
    if undecided.any():
        others = [dim for dim in cube.dims if dim not in ("sample", "repeat")]
        there = cube.notnull().any(others).transpose("sample", ...).values.reshape(len(table), repeats)
        if (there & undecided).any():
            return np.nan
    place = np.where(folds[code] == table, place, -1)  # in no fold
    where = {"sample": xr.DataArray(np.arange(len(table)), dims=["sample"])}
    if "repeat" in cube.dims:
        where["repeat"] = xr.DataArray(np.arange(repeats), dims=["repeat"])
    index = xr.DataArray(place if "repeat" in cube.dims else place[:, 0], dims=list(where))
    gone = [name for name, coord in cube.coords.items() if "configuration" in coord.dims]
    picked = cube.drop_vars(gone).isel({**where, "configuration": index}).where(index >= 0)
    return float(score(picked.expand_dims(configuration=[0]), metric).values[0])


def over_batches(function: Callable[[Inputs], xr.Dataset], inputs: Inputs, *, keep: tuple[str, ...] = ()) -> xr.Dataset:
    """Apply `function` to every combination of the batch dims of any input, and join the results along them.

    `keep` names dims that the function itself uses.
    """
    known = ("configuration", "outer_fold", *keep)
    for name, part in inputs.items():
        dims = [] if part is None else [dim for dim in batch_dims(part) if dim not in known]
        if part is None or not dims:
            continue
        dim, index = dims[0], part[dims[0]].values
        for other_name, other in inputs.items():
            if other is not None and dim in other.dims and other[dim].values.tolist() != index.tolist():
                raise InputError(f"`{other_name}` and `{name}` have different labels along {dim!r}; align them first.")
        results = []
        for i in range(part.sizes[dim]):
            one = {key: v if v is None or dim not in v.dims else v.isel({dim: i}) for key, v in inputs.items()}
            results.append(over_batches(function, one, keep=keep).drop_vars([dim], errors="ignore"))
        along = xr.DataArray(index, dims=[dim], name=dim)
        return xr.concat(results, dim=along, coords="different", compat="equals")
    return function(inputs)


def same_configurations(other: xr.DataArray, cube: xr.DataArray, argument: str) -> xr.DataArray:
    """Return `other` in the cube's order of configurations, or say which labels only one of them has."""
    here, there = cube.indexes["configuration"], other.indexes["configuration"]
    lost, extra = here.difference(there, sort=False), there.difference(here, sort=False)
    if len(lost) or len(extra):
        raise InputError(
            f"`{argument}` does not match the cube along 'configuration': only in the cube: {show(lost) or 'none'}; "
            f"only in `{argument}`: {show(extra) or 'none'}."
        )
    return other.isel(configuration=there.get_indexer(here))
