"""Scores of configurations under many draws."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from cvstats._check import InputError, check_count

if TYPE_CHECKING:
    from cvstats.judge.choosing import Draws
    from cvstats.metrics import Metric


def draw_scores(
    cube: xr.DataArray, metric: Metric, draws: Draws, rows: np.ndarray, batch: int | None = None
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield (draws, usable, scores) in blocks: scores are (draw, configuration), on the samples in `rows`."""
    from cvstats.judge import blocks, restricted
    from cvstats.kernels import kernel
    from cvstats.kernels.usable import LabelCheck

    data = restricted(cube, metric, rows)
    scorer = kernel(metric, data, draws.total)
    check = LabelCheck.of(metric, data)
    for start, stop, weights, _ in blocks(draws, batch, metric, data):
        with np.errstate(invalid="ignore", over="ignore"):
            scores = scorer.scores(weights)
        usable = check.chosen(weights) & ~np.isnan(scores).any(axis=1)
        yield slice(start, stop), usable, scores


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
