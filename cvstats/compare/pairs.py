"""What the bootstrap comparisons of configurations share."""

from __future__ import annotations

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_count


def check_draws(times: int, draws: xr.DataArray | None) -> None:
    """Raise unless there will be enough draws for a standard error."""
    check_count(times, "times", minimum=20)
    if draws is not None and isinstance(draws, xr.DataArray) and draws.sizes.get("draw", 0) < 20:
        raise InputError(f"`draws` holds {draws.sizes.get('draw', 0)} draws; at least 20 are needed, 1000 advisable.")


def present_rows(cube: xr.DataArray) -> np.ndarray:
    """Return which samples have a prediction by each configuration, as (sample, configuration)."""
    present = cube.notnull()
    if "label_class" in cube.dims:
        present = present.all("label_class")
    others = [dim for dim in present.dims if dim not in ("sample", "configuration")]
    return np.asarray(present.any(others).transpose("sample", "configuration").values)
