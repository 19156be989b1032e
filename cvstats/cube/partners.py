"""Cubes of classes that were sampled separately: which model made a prediction."""

from __future__ import annotations

import numpy as np
import xarray as xr

from cvstats._check import InputError, show

from .values import unique


def models(cube: xr.DataArray, metric: str, y: np.ndarray, n_classes: int) -> np.ndarray:
    """Return which model made each prediction of a separate-sampling cube, (sample, repeat, partner); -1 for none.

    Partner j of a class-0 sample of fold i is the model that left out folds i of class 0 and j of class 1; so is
    partner i of a class-1 sample of fold j. Only rank metrics ask, for they compare predictions of different samples.
    `y` are the codes of the labels.
    """
    what = f"metric {metric!r} of a separate-sampling cube (dimension 'partner')"
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
    held = np.isfinite(y)[:, None] & (fold != ("" if fold.dtype.kind in "UOT" else -1))
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


def by_pairs(cube: xr.DataArray, metric: str, y: np.ndarray, n_classes: int) -> xr.DataArray:
    """Return an ordinary cube whose repeats are the models of a separate-sampling cube in memory, one fold in each.

    That fold holds the samples the model left out, of both classes; no other sample is in a fold of this repeat.
    """
    number = models(cube, metric, y, n_classes)
    found = [(repeat, one) for repeat in range(number.shape[1]) for one in np.unique(number[:, repeat]) if one >= 0]
    last = ("repeat", "partner") if "repeat" in cube.dims else ("partner",)
    wide = cube.transpose("sample", ..., *last)
    values = wide.values.reshape(*wide.shape[: -len(last)], *number.shape[1:])
    out, fold = np.full((*values.shape[:-2], len(found)), np.nan), np.full((len(y), len(found)), -1)
    for place, (repeat, one) in enumerate(found):
        rows, partner = np.nonzero(number[:, repeat] == one)
        out[rows, ..., place] = values[rows, ..., repeat, partner]
        fold[rows, place] = 0
    dims = ("sample", *wide.dims[1 : -len(last)], "repeat")
    kept = {
        name: coord.variable for name, coord in cube.coords.items() if not {"partner", "repeat"} & {name, *coord.dims}
    }
    coords = {**kept, "repeat": np.arange(len(found)), "fold": (("sample", "repeat"), fold)}
    return xr.DataArray(out, dims=dims, coords=coords, name=cube.name)
