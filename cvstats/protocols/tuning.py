"""Choosing tuning values: the best score, ties to the smallest value, and what those choices then predict."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import xarray as xr

from cvstats._check import InputError
from cvstats.cube.align import map_along
from cvstats.cube.arrays import PLANES, REPEATS, batch_dims
from cvstats.metrics import Metric, score
from cvstats.select import by_value, select_best

Inputs = Mapping[str, xr.DataArray | None]


def present(cube: xr.DataArray) -> xr.DataArray:
    """Return, over batch dims, sample and configuration, whether there is a prediction, in any repeat."""
    there = cube.notnull().all([dim for dim in PLANES if dim in cube.dims])
    return there.any([dim for dim in REPEATS if dim in there.dims]).drop_vars("kind", errors="ignore")


def eligible(cube: xr.DataArray) -> xr.DataArray:
    """Return, over batch dims and configuration, whether a configuration predicted all that any of them did."""
    there = present(cube)
    allowed = (there | ~there.any("configuration")).all("sample").compute()
    if not allowed.any("configuration").all():
        raise InputError(
            "no configuration predicted every sample that any configuration predicted, so none may be selected. "
            "Drop samples or configurations."
        )
    return allowed


def best(scores: xr.DataArray, allowed: xr.DataArray, metric: Metric) -> xr.DataArray:
    """Return the position of the best configuration over the other dims; -1 where no score is defined.

    Ties go to the smallest tuning value when configurations are named by numbers, else to the first.
    """
    order = by_value(scores["configuration"].values)

    def first(values: np.ndarray) -> np.ndarray:
        chosen = order[select_best(values[..., order], direction=metric.direction)]
        return np.where(np.isnan(values).all(axis=-1), -1, chosen)

    values = scores.where(allowed.drop_vars(list(allowed.coords)))
    index: xr.DataArray = xr.apply_ufunc(first, values, input_core_dims=[["configuration"]])
    return index


def penalised(scores: xr.DataArray, cube: xr.DataArray, metric: Metric) -> xr.DataArray:
    """Return the scores that choose: worse by the cube's coordinate ``penalty``, where it has one."""
    if "penalty" not in cube.coords:
        return scores
    return scores - metric.sign * cube["penalty"].astype(float).drop_vars(list(cube["penalty"].coords))


def choose(cube: xr.DataArray, metric: Metric) -> xr.DataArray:
    """Return the position of the configuration that the pooled score of each batch chooses, less its penalty if any."""
    return best(penalised(score(cube, metric), cube, metric), eligible(cube), metric)


def readable(cube: xr.DataArray, metric: Metric) -> xr.DataArray:
    """Return scores of two classes that are numbers as the metric reads them: as numbers, or as scores.

    A least-squares learner of -1 and 1 is chosen by its squared error and judged by its errors.
    """
    kind, names = str(cube["kind"].item()), np.unique(cube["label"].values[cube["label"].notnull().values])
    if len(names) != 2 or names.dtype.kind not in "iuf":
        return cube
    if kind == "score" and metric.uses == "value":
        return cube.drop_vars(["threshold", "positive"], errors="ignore").assign_coords(kind="value")
    if kind == "value" and metric.uses in ("label", "score", "margin"):
        return cube.assign_coords(kind="score", threshold=float(names.mean()), positive=names[1])
    return cube


def per_training_set(inner: xr.DataArray, metric: Metric) -> np.ndarray:
    """Return the position chosen by each training set's own predictions: (outer fold, repeat or 1)."""
    inner = inner.drop_vars("fold", errors="ignore")
    if "repeat" in inner.dims:
        inner = inner.rename(repeat="partition")  # every repeat chooses for itself
    index = choose(inner, metric)
    return index.transpose("outer_fold", ...).values.reshape(inner.sizes["outer_fold"], -1)


def combined_score(cube: xr.DataArray, metric: Metric, folds: np.ndarray, chosen: np.ndarray) -> float:
    """Return the pooled score when each sample is predicted by what its fold chose: `chosen` (fold, repeat or 1).

    NaN when a fold with predictions chose nothing (-1); nothing chose for a sample that is in no fold.
    """
    repeats, n = cube.sizes.get("repeat", 1), cube.sizes["sample"]
    table = cube["fold"].transpose("sample", ...).values.reshape(n, -1)
    order = np.argsort(folds, kind="stable")
    code = order[np.searchsorted(folds, table, sorter=order)]
    own = np.broadcast_to(chosen, (len(folds), repeats))[code, np.arange(repeats)]
    dims = ["sample", "repeat"] if "repeat" in cube.dims else ["sample"]
    known, place = (
        xr.DataArray(np.broadcast_to(part, own.shape).reshape([cube.sizes[dim] for dim in dims]), dims=dims)
        for part in (folds[code] == table, own)
    )
    lost = known & (place < 0)
    if bool(lost.any()) and bool((lost & cube.notnull().any([dim for dim in cube.dims if dim not in dims])).any()):
        return np.nan
    where = {dim: xr.DataArray(np.arange(cube.sizes[dim]), dims=[dim]) for dim in dims}
    gone = [name for name, coord in cube.coords.items() if "configuration" in coord.dims]
    picked = cube.drop_vars(gone).isel({**where, "configuration": place}).where(known & (place >= 0))
    return float(score(picked.expand_dims(configuration=[0]), metric).values[0])


def over_batches(function: Callable[[Inputs], xr.Dataset], inputs: Inputs, *, keep: tuple[str, ...] = ()) -> xr.Dataset:
    """Apply `function` to every combination of the batch dims of any input, and join the results along them.

    `keep` names dims that the function itself uses. All inputs must have the same labels along every such dim.
    """
    given = {name: part for name, part in inputs.items() if part is not None}
    owner: dict[str, str] = {}
    for name, part in given.items():
        for dim in (str(dim) for dim in batch_dims(part) if dim not in ("configuration", "outer_fold")):
            if part[dim].values.tolist() != given[owner.setdefault(dim, name)][dim].values.tolist():
                raise InputError(f"`{name}` and `{owner[dim]}` have different labels along {dim!r}; align them first.")
    dims = [dim for dim in owner if dim not in keep]
    return map_along(dims, lambda *parts: function(dict(zip(inputs, parts, strict=True))), *inputs.values())
