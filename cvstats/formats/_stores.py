"""Cubes on disk, without loss: netCDF files and Zarr stores.

Both formats drop something that a cube has (the width of text, half precision, the order of coordinates, attributes
that are not text), so that is kept beside the data as one JSON attribute and put back on reading.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, clipped, show
from cvstats.cube.blocks import GROUP, PART

from ._chunks import open_zarr
from ._guards import first_line, refuse_bombs
from ._hdf import open_hdf, write_hdf
from ._optional import needed

KEPT = "cvstats_store"
CHUNK_VALUES = 2**20  # predictions per chunk: all samples and repeats of some configurations


def encode(cube: xr.DataArray) -> xr.Dataset:
    """Return the cube as a Dataset that both formats can hold."""
    name = "prediction" if cube.name is None else str(cube.name)
    if name in cube.coords:
        raise InputError(f"the cube's name {name!r} is also a coordinate; rename it to 'prediction'.")
    loaded = cube.coords.to_dataset().compute().coords
    dataset = cube.drop_encoding().assign_coords(loaded).to_dataset(name=name)
    kept: dict[str, Any] = {
        "name": name,
        "dims": list(cube.dims),
        "coords": [str(c) for c in cube.coords],
        "dtypes": {},
    }
    for key, variable in dataset.variables.items():
        kept["dtypes"][str(key)] = variable.dtype.str if variable.dtype.kind != "O" else "str"
        if isinstance(dataset.indexes.get(key), pd.MultiIndex):
            raise InputError(f"coordinate {key!r} is a MultiIndex, which files cannot hold; reset it first.")
        if variable.dtype.kind in "UOT":
            values = variable.values.astype(object)
            odd = {type(value).__name__ for value in values.ravel() if not isinstance(value, str)}
            if odd:
                raise InputError(
                    f"coordinate {key!r} holds {show(sorted(odd))} among text; make it all text or all numbers."
                )
            dataset[key] = variable.copy(data=values)
        elif variable.dtype == np.float16:
            dataset[key] = variable.astype(np.float32)
        elif variable.dtype.kind not in "biufmM":
            raise InputError(f"coordinate {key!r} has dtype {variable.dtype}, which files cannot hold.")
    text = {key: value for key, value in cube.attrs.items() if isinstance(value, str)}
    try:
        kept["attrs"] = {str(key): json.dumps(value) for key, value in cube.attrs.items() if key not in text}
    except TypeError as error:
        raise InputError(f"attributes must be text, numbers or lists: {error}.") from None
    dataset[name].attrs = {}
    dataset.attrs = {**text, KEPT: json.dumps(kept)}
    return dataset


def decode(dataset: xr.Dataset, source: str) -> xr.DataArray:
    """Return the Dataset as the cube it was written from; other Datasets need a variable called prediction."""
    if KEPT not in dataset.attrs:
        if "prediction" not in dataset.data_vars:
            raise InputError(
                f"{source}: holds no cube: there is no variable 'prediction'; found {show(dataset.data_vars)}."
            )
        cube = dataset["prediction"]
        return cube.assign_coords({c: as_text(cube[c].variable) for c in cube.coords if cube[c].dtype.kind in "OT"})
    kept = json.loads(dataset.attrs[KEPT])
    cube = dataset[kept["name"]].transpose(*kept["dims"])
    dtypes: Mapping[str, str] = kept["dtypes"]
    coords = {}
    for name in [*kept["coords"], *(str(c) for c in cube.coords if c not in kept["coords"])]:
        variable = cube.coords[name].variable
        dtype = np.dtype(dtypes.get(name, variable.dtype.str).replace("|T16", "str"))
        if variable.dtype.kind in "OUT":
            variable = as_text(variable, dtype)
        elif variable.dtype != dtype:
            variable = variable.astype(dtype)
        coords[name] = xr.Variable(variable.dims, variable.values, dict(variable.attrs))
    variable = cube.variable
    stored = np.dtype(dtypes[kept["name"]])
    variable = variable if variable.dtype == stored else variable.astype(stored)
    out = xr.DataArray(xr.Variable(variable.dims, variable._data), coords=coords, name=kept["name"])
    text = {str(key): value for key, value in dataset.attrs.items() if key != KEPT}
    return out.assign_attrs({**text, **{key: json.loads(value) for key, value in kept["attrs"].items()}})


def as_text(variable: xr.Variable, dtype: np.dtype[Any] | None = None) -> xr.Variable:
    """Return text as fixed-width text, at least as wide as it was."""
    values = variable.values.astype(object)
    if any(not isinstance(value, str) for value in values.ravel()):
        return variable
    text = values.astype(str)
    if dtype is not None and dtype.kind == "U" and dtype.itemsize > text.dtype.itemsize:
        text = text.astype(dtype)
    return xr.Variable(variable.dims, text, dict(variable.attrs))


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside `path` that takes its place only when writing has succeeded."""
    temporary = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}.tmp{path.suffix}"
    try:
        yield temporary
        if temporary.is_dir() and path.exists():
            old = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}.old"
            try:
                path.rename(old)
                temporary.rename(path)
            except BaseException:
                if not path.exists():
                    old.rename(path)
                raise
            finally:
                if path.exists():  # else it is all that is left
                    _remove(old)
        else:
            os.replace(temporary, path)
    except BaseException as error:
        _remove(temporary)
        if not isinstance(error, OSError):
            raise
        reason = os.strerror(error.errno) if error.errno else first_line(error)
        raise OSError(error.errno or errno.EIO, f"{path.name} could not be written: {reason}") from error


def _remove(path: Path) -> None:
    """Remove what an interrupted writer has left; threads of zarr may still be adding to it."""
    try:
        if path.suffix == ".zarr":
            _settle()
        shutil.rmtree(path, ignore_errors=True)
        if path.is_file():
            path.unlink(missing_ok=True)
    except BaseException:  # interrupted once more
        shutil.rmtree(path, ignore_errors=True)
        raise


def _settle() -> None:
    """Wait until zarr's own threads have finished what they were at."""
    import asyncio

    async def others() -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        if tasks:
            await asyncio.wait(tasks, timeout=10)

    with suppress(Exception):  # a private function of zarr, which may move
        from zarr.core.sync import _get_loop

        asyncio.run_coroutine_threadsafe(others(), _get_loop()).result(15)


def chunk_sizes(cube: xr.DataArray, *, fit: bool) -> tuple[int, ...]:
    """Return chunks that split configurations only, as the kernels read them."""
    rest = int(np.prod([size for dim, size in cube.sizes.items() if dim != "configuration"], dtype=np.int64))
    per = max(1, min(1024, CHUNK_VALUES // max(rest, 1)))
    sizes = {**cube.sizes, "configuration": min(per, cube.sizes["configuration"]) if fit else per}
    return tuple(int(sizes[dim]) for dim in cube.dims)


def write_netcdf(cube: xr.DataArray, path: Path) -> None:
    """Write a netCDF file."""
    dataset = encode(cube)
    name = str(next(iter(dataset.data_vars)))
    chunks = chunk_sizes(cube, fit=True)
    encoding = {name: {"zlib": True, "complevel": 1, "shuffle": True, "chunksizes": chunks}}
    with replacing(path) as temporary:
        write_hdf(dataset, temporary, encoding, name, blocks(dataset[name], chunks))


def blocks(array: xr.DataArray, chunks: tuple[int, ...]) -> Iterator[tuple[tuple[slice, ...], np.ndarray]]:
    """Yield the values of an array on dask with their places: whole chunks of the file, computed in good portions.

    They come here, so that a worker that dies leaves nothing half written. Each block of dask is computed once.
    """
    if array.chunks is None:
        return
    axis = array.get_axis_num("configuration")
    total, step = array.shape[axis], chunks[axis]
    few, many = (max(step, limit // max(1, array.size // max(total, 1))) for limit in (GROUP, PART))
    ends = np.cumsum(array.chunks[axis])
    start = begin = 0
    kept = np.empty([0 if place == axis else size for place, size in enumerate(array.shape)], array.dtype)
    while start < total:
        after = ends[(ends > start) & (ends <= start + many)]
        stop = int(max(after[after <= start + few], default=min(after, default=min(start + many, total))))
        part = array.isel(configuration=slice(start, stop)).values
        kept, start = np.concatenate([kept, part], axis) if kept.size else part, stop
        whole = kept.shape[axis] if start == total else kept.shape[axis] // step * step
        if whole:
            ready, kept = np.split(kept, [whole], axis)
            yield (
                tuple(slice(begin, begin + whole) if place == axis else slice(None) for place in range(array.ndim)),
                ready,
            )
            begin += whole


def write_zarr(cube: xr.DataArray, path: Path) -> None:
    """Write a Zarr store; a folder that is no store is never replaced."""
    if path.exists() and not is_zarr(path):
        raise InputError(f"{str(path)!r} exists and is not a Zarr store; choose another name.")
    with replacing(path) as temporary:
        _to_zarr(cube, temporary)


def _to_zarr(cube: xr.DataArray, path: Path) -> None:
    zarr = needed("zarr", "Zarr stores", "io")
    dataset = encode(cube)
    name = next(iter(dataset.data_vars))
    chunks = chunk_sizes(cube, fit=False)
    how: dict[str, Any] = {"consolidated": True, "zarr_format": 2, "compute": False, "safe_chunks": False}
    dataset.to_zarr(path, mode="w", encoding={name: {"chunks": chunks}}, **how)
    for where, values in blocks(dataset[name], chunks):
        zarr.open_group(str(path), mode="r+")[name][where] = values


def is_zarr(path: Path) -> bool:
    """Return whether a folder is a Zarr store."""
    return path.is_dir() and any((path / name).exists() for name in (".zgroup", ".zmetadata", "zarr.json"))


def open_store(path: Path, chunks: Any) -> xr.DataArray:
    """Open a netCDF file or Zarr store; lazily, through dask, when `chunks` are given."""
    if not os.path.exists(path):
        raise InputError(f"no such file: {clipped(str(path))}.")
    if chunks is not None:
        needed("dask", "chunked cubes", "dask")
    opened: Callable[[Path], AbstractContextManager[xr.Dataset]]
    if path.is_dir():
        if not is_zarr(path):
            raise InputError(f"{str(path)!r} is a folder but not a Zarr store.")
        needed("zarr", "Zarr stores", "io")
        opened, lazily = partial(open_zarr, chunks=None), open_zarr
    else:
        opened, lazily = open_hdf, partial(xr.open_dataset, engine="h5netcdf")
    try:
        with opened(path) as dataset:
            if chunks is None:
                refuse_bombs(dataset, path)
                return decode(dataset.load(), path.name)
            decode(dataset, path.name)
        cube = decode(lazily(path, chunks={}), path.name)  # as stored, then as asked
    except InputError:
        raise
    except Exception as error:  # the libraries below raise whatever the damage leads them into
        raise InputError(f"{path.name}: the file is corrupt, cut off or holds no cube ({first_line(error)}).") from None
    return cube.chunk(chunks) if chunks else cube
