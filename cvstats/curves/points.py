"""What all curves share: the points of a grid, judged at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import listened, warn
from cvstats._results import call_text, describe
from cvstats.metrics import Metric
from cvstats.protocols.bootstrap_winner import winner
from cvstats.select import Mixture, select_best

GRID = np.arange(101) / 100


def judged(
    curve: str,
    cube: xr.DataArray,
    dim: str,
    grid: np.ndarray,
    points: Sequence[Metric],
    *further: Metric,
    **asked: Any,
) -> tuple[xr.Dataset, list[xr.DataArray]]:
    """Return the judged points of a grid as a curve, and what `further` metrics say of the final decision."""
    notes: list[str] = []
    out = listened(notes, lambda: winner(cube, [*points, *further], **asked))
    name = points[0].name.partition("(")[0]
    said = "; ".join(note.removeprefix("winner: ").rstrip(".") for note in notes).split("; ")
    said = [note for note in said if note and not note.startswith(tuple(one.name for one in further))]
    if said:
        said = [re.sub(rf"\b{name}\([^)]*\)", name, note) for note in reversed(said)]
        alike = {re.sub(r"[\d.]+", "", note): note for note in said}  # the same of many points is said once
        warn(f"{curve}: {'; '.join(reversed(alike.values()))}.")
    rest = [out["naive"].isel(metric=len(points) + at).drop_vars(["metric", "interval"]) for at in range(len(further))]
    out = out.isel(metric=slice(len(points))).drop_vars(["metric", "calibration", "calibration_part"])
    kinds = np.unique(out["interval"].values)
    out = out.rename_dims(metric=dim).assign_coords({dim: grid, "metric": name})
    if len(kinds) == 1:
        out = out.assign_coords(interval=str(kinds[0]))
    strategy = asked["select"].name if isinstance(asked["select"], Mixture) else asked["select"]
    shown = asked | {"select": None if strategy is select_best else strategy}
    out.attrs["call"] = call_text(curve, **shown)
    return out, rest


def along(out: xr.Dataset, dim: str, **variables: Any) -> xr.Dataset:
    """Return the result with some variables replaced or added, its dims in the order they had."""
    made = {name: value.transpose(dim, ...) if dim in value.dims else value for name, value in variables.items()}
    out = out.assign(made)
    describe(out)
    return out
