"""Blocks of configurations, in memory or on dask: the only place that knows where a cube's data live."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import xarray as xr

from cvstats._check import InputError, warn
from cvstats.kernels import Problem
from cvstats.kernels.problem import scan
from cvstats.kernels.threads import one_blas_thread, ticker

from .arrays import as_problem, check_finite
from .make import check_values, is_lazy

if TYPE_CHECKING:
    from cvstats.metrics import Metric

T = TypeVar("T")
Work = Callable[[Problem, np.ndarray, Callable[..., Any]], T]  # of a block, the places of its columns, and a ticker
PART = 16_000_000  # predictions of a block in memory
GROUP, SPREAD = 6_000_000, 16  # blocks on dask are worked on together up to GROUP predictions or 1 / SPREAD of all
SMALL, MANY = 250_000, 64  # more blocks than MANY with fewer predictions than SMALL are worth a warning


@dataclass(frozen=True)
class Report:
    """What one block of configurations says about missing predictions."""

    somebody: np.ndarray | None  # (n,) whether some configuration of the block has a prediction; None: all have
    count: np.ndarray  # (m,) samples that the configuration predicted in some repeat
    missing: np.ndarray  # (m,) missing predictions, repeats counted


def report_on(data: Problem, names: np.ndarray | None = None) -> Report:
    """Check the values of a block in memory and report what is missing, in one pass where nothing is."""
    n, m = data.p.shape[-3:-1]
    seen = scan(data.p)
    check_values(data.p, data.kind, data.n_classes, "cube", seen)
    if data.finite and not (np.isfinite(seen.low) and np.isfinite(seen.high)):
        check_finite(data.p, data.finite, names)
    if not seen.gaps:
        return Report(None, np.full(m, n), np.zeros(m, int))
    filled = data.filled()
    some = np.asarray(filled.any(axis=2))
    return Report(np.asarray(some.any(axis=1)), some.sum(axis=0), (~filled).sum(axis=(0, 2)))


def problem_on(cube: xr.DataArray, metric: Metric | None = None, *, compete: bool = True) -> Problem:
    """Return the problem of a cube without batch dims, wherever it lives.

    What is missing is known at once in memory, on dask after a pass over the data: see `map_blocks`. Configurations
    that `compete` must have predicted all that others did.
    """
    lazy = is_lazy(cube)
    data = replace(as_problem(whole_columns(cube) if lazy else cube, metric), compete=compete)
    return data if lazy else _told(data, [report_on(data, cube.coords.variables["sample"].values)])


def coverage(cube: xr.DataArray, *, compete: bool = True) -> Problem:
    """Return the problem of a cube without batch dims with what is missing; takes a pass over data on dask."""
    return surveyed(problem_on(cube, compete=compete))


def surveyed(data: Problem) -> Problem:
    """Return the problem with what is missing."""
    return data if data.gaps is not None else map_blocks(lambda _: _nothing, data)[0]


def _nothing(*_: Any) -> None:
    """Do nothing with a block but read it."""


def predicted(cube: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Return which samples somebody predicted, and which configurations predicted all of those."""
    data = coverage(cube)
    return data.rows, data.eligible


def _told(data: Problem, reports: Sequence[Report]) -> Problem:
    """Return the problem with what the reports of all its blocks say of missing predictions."""
    n, repeats = data.p.shape[-3], data.p.shape[-1]
    some = [part.somebody for part in reports if part.somebody is not None]
    rows = np.logical_or.reduce(some) if len(some) == len(reports) else np.ones(n, bool)
    count = np.concatenate([part.count for part in reports])
    missing = np.concatenate([part.missing for part in reports])
    total = int(rows.sum())
    eligible = complete(count, total) if data.compete or not total else np.ones(len(count), bool)
    gaps = bool((missing[eligible] > (n - total) * repeats).any())
    return replace(data, rows=rows, eligible=eligible, gaps=gaps)


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


def map_blocks(
    make: Callable[[Problem], Work[T]],
    data: Problem,
    *,
    pick: np.ndarray | None = None,
    progress: str = "",
    steps: int = 1,
) -> tuple[Problem, list[T]]:
    """Return the problem with what is missing, and ``work(block, places, tick)`` of every block of configurations.

    `make` returns the work for a problem whose gaps are known. Blocks hold the eligible configurations (or those in
    `pick`) on the samples that somebody predicted. On dask nothing is known before the data are read: the first pass
    takes them to be complete, checks and reports; if they were not, a second pass does it right.
    """
    whole = replace(data, rows=np.ones(data.n, bool), eligible=np.ones(data.p.shape[-2], bool), gaps=False)
    known = whole if data.gaps is None else data
    job = _Job(make(known), replace(known, p=None), tell=data.gaps is None)
    results = _each(job, known, pick, progress, steps)
    if not job.tell:
        return data, [value for _, value in results]
    known = _told(data, [report for report, _ in results if report is not None])
    if known.gaps or not (known.rows.all() and known.eligible.all()):
        results = _each(_Job(make(known), replace(known, p=None)), known, pick, progress, steps)
    return known, [value for _, value in results]


@dataclass(frozen=True)
class _Job:
    """Work on a block wherever its data are; an object so that workers can receive it, without the predictions."""

    work: Work[Any]
    data: Problem
    tell: bool = False  # whether to check the values and to report on what is missing

    def __call__(self, block: Any, places: np.ndarray, local: Any, tick: Callable[..., Any]) -> tuple[Any, Any]:
        part = replace(self.data, p=block)
        report = report_on(part) if self.tell else None
        part = part if isinstance(local, slice) else part.columns(local)
        return report, self.work(part if part.rows.all() else part.samples(part.rows), places, tick)


def _each(job: _Job, data: Problem, pick: np.ndarray | None, progress: str, steps: int) -> list[Any]:
    """Return the job's results block by block, one after the other in memory, by whatever scheduler on dask."""
    pick = data.eligible if pick is None else pick
    blocks = []
    for block, start, stop in _cut(data.p):
        inside = np.flatnonzero(pick[start:stop])
        if inside.size:
            local = slice(None) if inside.size == stop - start else inside
            blocks.append((block, inside + start, local))
    if not hasattr(data.p, "__dask_graph__"):
        if not progress:
            return [job(*block, _nothing) for block in blocks]
        with ticker(progress, len(blocks) * steps) as tick:
            return [job(*block, tick) for block in blocks]
    return _on_dask(job, [(*block, _nothing) for block in blocks], -2, progress)


def many_blocks(data: Problem) -> bool:
    """Return whether the problem is worked off in more than one block."""
    return sum(1 for _ in _cut(data.p)) > 1


def _cut(data: Any) -> Iterator[tuple[Any, int, int]]:
    """Yield blocks of whole columns and where they begin and end: slices that bound memory, or dask's own."""
    if hasattr(data, "__dask_graph__"):
        sizes, blocks = column_blocks(data)
        ends = np.cumsum(sizes).tolist()
        yield from ((block, end - size, end) for block, size, end in zip(blocks, sizes, ends, strict=True))
        return
    step = max(1, PART // max(1, data.size // data.shape[-2]))
    for start in range(0, data.shape[-2], step):
        yield data[..., start : start + step, :], start, min(start + step, data.shape[-2])


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
    """Return ``function(cube)``; on dask of each block of configurations, joined along configuration."""
    if not is_lazy(cube):
        return function(cube)
    whole = whole_columns(cube)
    axis = whole.dims.index("configuration")
    sizes, blocks = column_blocks(whole.variable._data, axis)
    ends = np.cumsum(sizes).tolist()
    labelled = _Labelled(function, whole.coords.to_dataset(), whole.dims, whole.name)
    spans = [(block, end - size, end) for block, size, end in zip(blocks, sizes, ends, strict=True)]
    return xr.concat(_on_dask(labelled, spans, axis), dim="configuration")


@dataclass(frozen=True)
class _Labelled:
    """Apply a function to a block as a labelled cube; an object so that workers can receive it."""

    function: Callable[[xr.DataArray], Any]
    coords: xr.Dataset
    dims: Any
    name: Any

    def __call__(self, block: np.ndarray, start: int, stop: int) -> Any:
        coords = self.coords.isel(configuration=slice(start, stop)).coords
        return self.function(xr.DataArray(block, coords=coords, dims=self.dims, name=self.name))


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
