"""Blocks of configurations, in memory or on dask: the only place that knows where a cube's data live."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from cvstats._check import InputError, warn
from cvstats.kernels.scan import Scan, scan
from cvstats.kernels.threads import one_blas_thread, ticker

from .arrays import batch_dims, raw_block
from .make import is_lazy

T = TypeVar("T")
PART = 16_000_000  # predictions of a block in memory
GROUP, SPREAD = 6_000_000, 16  # blocks on dask are worked on together up to GROUP predictions or 1 / SPREAD of all
SMALL, MANY = 250_000, 64  # more blocks than MANY with fewer predictions than SMALL are worth a warning
MEMORY = 64  # dask arrays whose gaps are remembered


@dataclass(frozen=True)
class Report:
    """What one block of configurations says about missing predictions."""

    somebody: np.ndarray | None  # (n,) whether some configuration of the block has a prediction; None: all have
    count: np.ndarray  # (m,) samples that the configuration predicted in some repeat
    missing: np.ndarray  # (m,) missing predictions, repeats counted


@dataclass(frozen=True)
class Coverage:
    """Which samples somebody predicted, which configurations predicted all of those, and whether these have gaps."""

    rows: np.ndarray
    eligible: np.ndarray
    gaps: bool  # some eligible configuration lacks a sample in some repeat


def report_on(block: np.ndarray, seen: Scan | None = None) -> Report:
    """Return the report on a block (k?, n, m, r) as `raw_block` returns it; a pass may have `seen` it already."""
    n, m = block.shape[-3:-1]
    if not (seen or scan(block)).gaps:
        return Report(None, np.full(m, n), np.zeros(m, int))
    absent = np.isnan(block)
    absent = absent.any(axis=0) if absent.ndim == 4 else absent
    filled = ~absent.all(axis=2)
    return Report(filled.any(axis=1), filled.sum(axis=0), absent.sum(axis=(0, 2)))


def covered(reports: list[Report], n: int, repeats: int, *, need: bool = True) -> Coverage:
    """Put the reports of all blocks together; `need` an eligible configuration, or take all (those that only judge)."""
    some = [part.somebody for part in reports if part.somebody is not None]
    rows = np.logical_or.reduce(some) if len(some) == len(reports) else np.ones(n, bool)
    count = np.concatenate([part.count for part in reports])
    missing = np.concatenate([part.missing for part in reports])
    total = int(rows.sum())
    eligible = complete(count, total) if need or not total else np.ones(len(count), bool)
    return Coverage(rows, eligible, bool((missing[eligible] > (n - total) * repeats).any()))


def complete(count: np.ndarray, total: int) -> np.ndarray:
    """Return which configurations predicted all samples (`count` each, `total` by any); raise when none did."""
    if not total:
        raise InputError("`cube` holds no predictions: every value is NaN.")
    eligible = np.asarray(count == total)
    if not eligible.any():
        raise InputError(
            "no configuration predicted every sample that any configuration predicted, so none may be selected; "
            f"the most complete has {int(count.max())} of {total} samples. Drop samples or configurations."
        )
    return eligible


_KNOWN: OrderedDict[Hashable, Coverage] = OrderedDict()  # by dask's name of the array, which stands for its content
_NOTED: OrderedDict[Hashable, None] = OrderedDict()


def _remember(memory: OrderedDict[Hashable, Any], key: Hashable, value: Any) -> None:
    memory[key] = value
    while len(memory) > MEMORY:
        memory.popitem(last=False)


def _key(cube: xr.DataArray) -> Hashable:
    data: Any = cube.variable._data
    return data.name, cube.dims


def everything(cube: xr.DataArray) -> Coverage:
    """Return the coverage of a cube without gaps."""
    return Coverage(np.ones(cube.sizes["sample"], bool), np.ones(cube.sizes["configuration"], bool), False)


def known_coverage(cube: xr.DataArray, seen: Scan | None = None) -> Coverage | None:
    """Return the coverage of a cube in memory, or of one on dask if a pass over its data has told it already.

    `seen` is what a pass over this cube, or over one that it is a part of, told.
    """
    if is_lazy(cube):
        return _KNOWN.get(_key(cube))
    if seen is not None and not seen.gaps:
        return everything(cube)
    block = raw_block(cube)
    return covered([report_on(block)], block.shape[-3], block.shape[-1])


def remember_coverage(cube: xr.DataArray, found: Coverage) -> None:
    """Keep what a pass over the data of a cube on dask has told."""
    _remember(_KNOWN, _key(cube), found)


def coverage(cube: xr.DataArray) -> Coverage:
    """Return the coverage of a cube without batch dims; takes a pass over the data of a cube on dask, once."""
    found = known_coverage(cube)
    if found is None:
        found = _coverage(cube, need=True)
        remember_coverage(cube, found)
    return found


def judging_coverage(cube: xr.DataArray) -> Coverage:
    """Return the coverage of predictions that only judge, where no configuration need be complete."""
    found = known_coverage(cube) if is_lazy(cube) else None
    if found is not None and not found.gaps and found.eligible.all():
        return found
    return _coverage(cube, need=False)


def _coverage(cube: xr.DataArray, *, need: bool) -> Coverage:
    data = raw_block(whole_columns(cube) if is_lazy(cube) else cube)
    blocks = column_blocks(data)[1] if is_lazy(cube) else [data]
    reports = map_blocks(report_on, blocks, [()] * len(blocks))
    return covered(reports, data.shape[-3], data.shape[-1], need=need)


def predicted(cube: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Return which samples somebody predicted, and which configurations predicted all of those."""
    found = coverage(cube)
    return found.rows, found.eligible


def parts_of(cube: xr.DataArray, eligible: np.ndarray) -> list[xr.DataArray]:
    """Return the cube in blocks of eligible configurations: dask's own chunks, or slices that bound memory."""
    columns = np.flatnonzero(eligible)
    if is_lazy(cube):
        cube = whole_columns(cube)
        column = cube.size // cube.sizes["configuration"]
        edges = np.cumsum([sum(group) for group in grouped(cube.chunksizes["configuration"], column)])[:-1]
        groups = [part for part in np.split(columns, np.searchsorted(columns, edges)) if part.size]
    else:
        step = max(1, PART // max(1, cube.size // cube.sizes["configuration"]))
        groups = [columns[start : start + step] for start in range(0, len(columns), step)]
    whole = len(columns) == cube.sizes["configuration"]
    return [cube.isel(configuration=_run(part, whole)) for part in groups]


def _run(part: np.ndarray, whole: bool) -> slice | np.ndarray:
    return slice(int(part[0]), int(part[-1]) + 1) if whole else part


def whole_columns(cube: xr.DataArray) -> xr.DataArray:
    """Return the cube chunked along configuration only, as every kernel needs whole columns.

    Other layouts are put right with one warning for each array; so are told very many tiny blocks, which are read
    one by one even though they are worked on together.
    """
    sizes = cube.chunksizes
    split = [str(dim) for dim in cube.dims if dim != "configuration" and len(sizes[dim]) > 1]
    column = cube.size // cube.sizes["configuration"]
    blocks = sizes["configuration"]
    tiny = len(blocks) > MANY and max(blocks) * column < SMALL
    if not split and not tiny:
        return cube
    step = max(1, min(cube.sizes["configuration"], GROUP // column))
    key = _key(cube)
    if key not in _NOTED:
        _remember(_NOTED, key, None)
        what = f"is split along {' and '.join(map(repr, split))}" if split else f"has {len(blocks)} tiny blocks"
        done = f"rechunked to {step} whole configurations a block" if split else "put together while it is read"
        warn(
            f"the dask-backed cube {what}; it is {done}, which costs time. "
            f"Store it so: cube.chunk({{'sample': -1, 'configuration': {step}}})."
        )
    if not split:
        return cube
    return cube.chunk({dim: -1 for dim in cube.dims if dim != "configuration"} | {"configuration": step})


def grouped(sizes: Sequence[int], column: int) -> list[list[int]]:
    """Return the sizes of neighbouring blocks in groups that are worth a task each; `column` is one configuration."""
    most = max(1, min(GROUP, sum(sizes) * column // SPREAD) // max(1, column))
    groups: list[list[int]] = []
    for size in sizes:
        if groups and sum(groups[-1]) + size <= most:
            groups[-1].append(size)
        else:
            groups.append([size])
    return groups


def column_blocks(data: Any, axis: int = -2) -> tuple[list[int], list[Any]]:
    """Return sizes and blocks of a dask array that is chunked along its configurations only.

    A block is a delayed object, or a list of neighbours to be joined where they are worked on.
    """
    pieces = list(data.to_delayed().ravel())
    groups = grouped(data.chunks[axis], data.size // data.shape[axis])
    ends = np.cumsum([len(group) for group in groups]).tolist()
    blocks = [pieces[end - len(group) : end] for group, end in zip(groups, ends, strict=True)]
    return [sum(group) for group in groups], [block[0] if len(block) == 1 else block for block in blocks]


def map_blocks(
    function: Callable[..., T],
    blocks: list[Any],
    arguments: list[tuple[Any, ...]],
    *,
    axis: int = -2,
    progress: str = "",
) -> list[T]:
    """Return ``[function(block, *argument), ...]``, on dask when the blocks live there, else one after the other.

    `function` is sent once, whatever the number of blocks; with dask each block uses one thread. Blocks that are
    lists are joined along `axis` first.
    """
    if not blocks or not (isinstance(blocks[0], list) or hasattr(blocks[0], "__dask_graph__")):
        with ticker(progress, len(blocks)) as tick:
            return [tick(function(block, *argument)) for block, argument in zip(blocks, arguments, strict=True)]
    import dask

    shared = dask.delayed(function, pure=False, traverse=False)
    call = dask.delayed(_alone, pure=False)
    tasks = [call(shared, axis, block, *argument) for block, argument in zip(blocks, arguments, strict=True)]
    return _computed(tasks, progress)


def _alone(function: Callable[..., T], axis: int, block: Any, *argument: Any) -> T:
    block = np.concatenate(block, axis=axis) if isinstance(block, list) else block
    with one_blas_thread():
        return function(block, *argument)


def _computed(tasks: list[Any], progress: str) -> list[Any]:
    """Return the values of delayed objects, computed by whatever scheduler is active."""
    import dask

    if not progress:
        return list(dask.compute(*tasks))
    client = _client()
    with ticker(progress, len(tasks)) as tick:
        if client is None:
            from dask.callbacks import Callback

            keys = {task.key for task in tasks}

            def done(key: Any, *_: Any) -> None:
                if key in keys:
                    tick(None)

            with Callback(posttask=done):
                return list(dask.compute(*tasks))
        from distributed import as_completed

        futures = client.compute(tasks)
        for _ in as_completed(futures):
            tick(None)
        return list(client.gather(futures))


def _client() -> Any:
    """Return the active distributed client, if there is one."""
    import sys

    if "distributed" not in sys.modules:
        return None
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


def by_chunk(cube: xr.DataArray, function: Callable[[xr.DataArray], Any]) -> Any:
    """Return the results of `function` on each block of configurations of a cube on dask, joined along configuration.

    Sample coordinates are sent once. What the pass tells about gaps is remembered.
    """
    whole = whole_columns(cube)
    data: Any = whole.variable._data
    axis = whole.dims.index("configuration")
    sizes, blocks = column_blocks(data, axis)
    task = _OnPart(function, whole.coords.to_dataset(), whole.dims, whole.name)
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    found = map_blocks(task, blocks, [(start,) for start in starts], axis=axis)
    reports = [report for _, report in found if report is not None]
    if len(reports) == len(found):
        width = cube.sizes["sample"] * cube.sizes["configuration"] * cube.sizes.get("label_class", 1)
        with suppress(InputError):  # whoever selects will say so
            remember_coverage(cube, covered(reports, cube.sizes["sample"], cube.size // width))
    return xr.concat([part for part, _ in found], dim="configuration")


class _OnPart:
    """Apply a function to a block as a labelled cube; an object so that workers can receive it."""

    def __init__(self, function: Callable[[xr.DataArray], Any], coords: xr.Dataset, dims: Any, name: Any) -> None:
        self.function, self.coords, self.dims, self.name = function, coords, dims, name

    def __call__(self, block: np.ndarray, start: int) -> tuple[Any, Report | None]:
        size = block.shape[self.dims.index("configuration")]
        coords = self.coords.isel(configuration=slice(start, start + size)).coords
        part = xr.DataArray(block, coords=coords, dims=self.dims, name=self.name)
        return self.function(part), None if batch_dims(part) else report_on(raw_block(part))


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
