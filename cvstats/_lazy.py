"""Blocks of configurations, in memory or on dask: the only place that knows where a cube's data live."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from ._check import InputError
from .cube import is_lazy

T = TypeVar("T")
PART = 16_000_000  # predictions of a block in memory


def parts_of(cube: xr.DataArray, eligible: np.ndarray) -> list[xr.DataArray]:
    """Return the cube in blocks of eligible configurations: dask's own chunks, or slices that bound memory."""
    columns = np.flatnonzero(eligible)
    if is_lazy(cube):
        cube = rechunked(cube)
        edges = np.cumsum(cube.chunksizes["configuration"])[:-1]
        groups = [part for part in np.split(columns, np.searchsorted(columns, edges)) if part.size]
    else:
        step = max(1, PART // max(1, cube.size // cube.sizes["configuration"]))
        groups = [columns[start : start + step] for start in range(0, len(columns), step)]
    whole = len(columns) == cube.sizes["configuration"]
    return [cube.isel(configuration=_run(part, whole)) for part in groups]


def _run(part: np.ndarray, whole: bool) -> slice | np.ndarray:
    return slice(int(part[0]), int(part[-1]) + 1) if whole else part


def rechunked(cube: xr.DataArray) -> xr.DataArray:
    """Return the cube chunked along configuration only, as every kernel needs whole columns."""
    whole = {dim: -1 for dim in cube.dims if dim != "configuration" and len(cube.chunksizes[dim]) > 1}
    return cube.chunk(whole) if whole else cube


def map_parts(function: Callable[[Any], T], arguments: list[Any], *, progress: bool = False, text: str = "") -> list[T]:
    """Return ``[function(a) for a in arguments]``, on dask when the blocks live there."""
    lazy = any(isinstance(item, xr.DataArray) and is_lazy(item) for a in arguments for item in (a if isinstance(a, tuple) else (a,)))
    if lazy:
        import dask

        call = dask.delayed(function, pure=False)
        return list(dask.compute(*[call(a) for a in arguments]))
    if progress and len(arguments) > 1:
        from tqdm.auto import tqdm

        arguments = tqdm(arguments, desc=text, leave=False)
    return [function(a) for a in arguments]


def by_chunk(cube: xr.DataArray, function: Callable[[xr.DataArray], xr.DataArray]) -> xr.DataArray:
    """Return the results of `function` on each block of configurations, joined along configuration."""
    parts = parts_of(cube, np.ones(cube.sizes["configuration"], bool))
    return xr.concat(map_parts(function, parts), dim="configuration")


def predicted(cube: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Return which samples somebody predicted, and which configurations predicted all of those."""
    if is_lazy(cube):
        parts = parts_of(cube, np.ones(cube.sizes["configuration"], bool))
        found = map_parts(_filled, parts)
        rows = np.logical_or.reduce([part.any(axis=1) for part in found])
        return _complete(rows, np.concatenate([part.sum(axis=0) for part in found]))
    if not np.isnan(np.min(cube.values)):
        return np.ones(cube.sizes["sample"], bool), np.ones(cube.sizes["configuration"], bool)
    filled = _filled(cube)
    return _complete(filled.any(axis=1), filled.sum(axis=0))


def _filled(cube: xr.DataArray) -> np.ndarray:
    """Return (sample, configuration): whether there is a prediction in some repeat."""
    present = cube.notnull()
    if "label_class" in cube.dims:
        present = present.all("label_class")
    others = [dim for dim in present.dims if dim not in ("sample", "configuration")]
    return np.asarray(present.any(others).transpose("sample", "configuration").values)


def _complete(rows: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    eligible = count == rows.sum()
    if not rows.any():
        raise InputError("`cube` holds no predictions: every value is NaN.")
    if not eligible.any():
        raise InputError(
            "no configuration predicted every sample that any configuration predicted, so none may be selected; "
            f"the most complete has {int(count.max())} of {int(rows.sum())} samples. Drop samples or configurations."
        )
    return rows, eligible
