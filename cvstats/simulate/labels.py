"""Simulated scores as a cube."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from cvstats.cube.make import as_cube

ORDER = ("sample", "configuration", "partner", "outer_fold", "repeat")


def score_cube(values: np.ndarray, dims: tuple[str, ...], coords: dict[str, Any], *, batch: bool) -> xr.DataArray:
    """Return a cube of scores; its first dim stays when it is a `batch` of data sets, a single repeat does not."""
    numbers = {dim: np.arange(size) for dim, size in zip(dims, values.shape, strict=True)}
    cube = xr.DataArray(values, dims=dims, coords=numbers | coords)
    gone = [dim for dim, single in ((dims[0], not batch), ("repeat", cube.sizes["repeat"] == 1)) if single]
    cube = cube.transpose(*(dim for dim in ORDER if dim in dims), dims[0]).isel(dict.fromkeys(gone, 0), drop=True)
    if cube["label"].dtype.kind == "f":
        return as_cube(cube, kind="value")
    return as_cube(cube, kind="score", positive=1, threshold=0.0)
