"""Blocks of configurations on dask: the only place that knows it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from cvstats._check import warn
from cvstats.kernels.threads import one_blas_thread, ticker

T = TypeVar("T")
GROUP, SPREAD = 6_000_000, 16  # blocks on dask are worked on together up to GROUP predictions or 1 / SPREAD of all
SMALL, MANY = 250_000, 64  # more blocks than MANY with fewer predictions than SMALL are worth a warning


def over_blocks(job: Callable[[Any, np.ndarray, Any], T], data: Any, pick: np.ndarray, progress: str) -> list[T]:
    """Return ``job(block, places, local)`` of blocks of columns that hold some in `pick`, by whatever scheduler.

    `places` are those columns in the cube, `local` in the block.
    """
    tasks, start = [], 0
    for size, block in zip(*column_blocks(data), strict=True):
        inside = np.flatnonzero(pick[start : start + size])
        if inside.size:
            tasks.append((block, inside + start, slice(None) if inside.size == size else inside))
        start += size
    return _on_dask(job, tasks, -2, progress)


def whole_columns(cube: xr.DataArray) -> xr.DataArray:
    """Return a cube on dask chunked along configuration only, as every kernel needs whole columns.

    Other layouts are put right with a warning; so are told very many tiny blocks, which are read one by one even
    though they are worked on together.
    """
    sizes = cube.chunksizes
    split = [str(dim) for dim in cube.dims if dim != "configuration" and len(sizes[dim]) > 1]
    column = cube.size // cube.sizes["configuration"]
    blocks = sizes["configuration"]
    tiny = len(blocks) > MANY and max(blocks) * column < SMALL
    if not split and not tiny:
        return cube
    step = max(1, min(cube.sizes["configuration"], GROUP // column))
    what = f"is split along {' and '.join(map(repr, split))}" if split else f"has {len(blocks)} tiny blocks"
    done = f"rechunked to {step} whole configurations a block" if split else "put together while it is read"
    warn(
        f"the dask-backed cube {what}; it is {done}, which costs time. "
        f"Store it so: cube.chunk({{'sample': -1, 'configuration': {step}}})."
    )
    return cube.chunk(dict.fromkeys(cube.dims, -1) | {"configuration": step})


def column_blocks(data: Any, axis: int = -2) -> tuple[list[int], list[Any]]:
    """Return sizes and blocks of a dask array that is chunked along its configurations only.

    A block is a delayed object, or a list of small neighbours to be joined where they are worked on.
    """
    pieces = list(data.to_delayed().ravel())
    column = max(1, data.size // data.shape[axis])
    most = max(1, min(GROUP, data.size // SPREAD) // column)
    sizes: list[int] = []
    blocks: list[Any] = []
    for size, piece in zip(data.chunks[axis], pieces, strict=True):
        if sizes and sizes[-1] + size <= most:
            sizes[-1] += size
            blocks[-1].append(piece)
        else:
            sizes.append(size)
            blocks.append([piece])
    return sizes, blocks


def _on_dask(function: Callable[..., T], blocks: list[tuple[Any, ...]], axis: int, progress: str = "") -> list[T]:
    """Return ``[function(*block), ...]``, each with one thread; `function` is sent once, whatever the number."""
    import dask

    shared = dask.delayed(function, pure=False, traverse=False)
    call = dask.delayed(_alone, pure=False)
    return _computed([call(shared, axis, *block) for block in blocks], progress)


def _alone(function: Callable[..., T], axis: int, pieces: list[np.ndarray], *arguments: Any) -> T:
    block = pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=axis)
    with one_blas_thread():
        return function(block, *arguments)


def _computed(tasks: list[Any], progress: str) -> list[Any]:
    """Return the values of delayed objects, computed by whatever scheduler is active."""
    import dask.callbacks

    if not progress:
        return list(dask.compute(*tasks))
    client, keys = _client(), {task.key for task in tasks}
    with ticker(progress, len(tasks)) as tick:
        if client is None:
            with dask.callbacks.Callback(posttask=lambda key, *_: tick(None, key in keys)):
                return list(dask.compute(*tasks))
        from distributed import as_completed

        futures = client.compute(tasks)
        for _ in as_completed(futures):
            tick(None)
        return list(client.gather(futures))


def _client() -> Any:
    """Return the active distributed client, if there is one."""
    loaded = sys.modules.get("distributed")
    try:
        return loaded.get_client() if loaded is not None else None
    except ValueError:
        return None


def by_chunk(cube: xr.DataArray, function: Callable[[xr.DataArray], Any]) -> Any:
    """Return ``function(cube)``; on dask of each block of configurations, joined along configuration."""
    if cube.chunks is None:
        return function(cube)
    whole = whole_columns(cube)
    axis = whole.dims.index("configuration")
    sizes, blocks = column_blocks(whole.variable._data, axis)
    ends = np.cumsum(sizes).tolist()
    labelled = partial(_labelled, function, whole.coords.to_dataset(), whole.dims, whole.name)
    spans = [(block, end - size, end) for block, size, end in zip(blocks, sizes, ends, strict=True)]
    return xr.concat(_on_dask(labelled, spans, axis), dim="configuration")


def _labelled(
    function: Callable[[xr.DataArray], T], axes: xr.Dataset, dims: Any, name: Any, block: np.ndarray, *span: int
) -> T:
    """Return a function of a block as a labelled cube, the configurations from the first to the last of `span`."""
    coords = axes.isel(configuration=slice(*span)).coords
    return function(xr.DataArray(block, coords=coords, dims=dims, name=name))


def delayed_columns(
    loads: Sequence[Callable[[], np.ndarray]], sizes: Sequence[int], shape: Sequence[int], axis: int, dtype: Any
) -> Any:
    """Return a dask array of a shape whose blocks along `axis` are what the functions return, called when needed."""
    import dask
    import dask.array as da

    pieces = []
    for load, size in zip(loads, sizes, strict=True):
        block = dask.delayed(load, pure=False, traverse=False)()
        pieces.append(da.from_delayed(block, (*shape[:axis], size, *shape[axis + 1 :]), dtype))
    return da.concatenate(pieces, axis)
