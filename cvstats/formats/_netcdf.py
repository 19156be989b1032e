"""A cube as one netCDF file, without loss.

The format drops something that a cube has (the width of text, half precision, the order of coordinates, attributes that
are not text), so that is kept beside the data as one JSON attribute and put back on reading. Files are made and opened
in memory or through file objects of our own: the HDF5 library survives neither a full disk nor, opened again by the
same path, a file that has been put right since.
"""

from __future__ import annotations

import io
import json
import mmap
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, show

from ._gate import ARRAYS, most_of, needed, opened, readable
from ._output import KEPT, replacing

CHUNK_VALUES = 2**20  # predictions per chunk of a file: all samples and repeats of some configurations
# attributes of the format
STRUCTURE = re.compile(r"CLASS|NAME|DIMENSION_LIST|REFERENCE_LIST|_Netcdf4\w+|_NCProperties")
PORTION = 6_000_000  # predictions that are worked on at a time


def encode(cube: xr.DataArray) -> xr.Dataset:
    """Return the cube as a Dataset that both formats can hold."""
    name = "prediction" if cube.name is None else str(cube.name)
    if name in cube.coords:
        raise InputError(f"the cube's name {name!r} is also a coordinate; rename it to 'prediction'.")
    loaded = cube.coords.to_dataset().compute().coords
    dataset = cube.drop_encoding().assign_coords(loaded).to_dataset(name=name)
    kept: dict[str, Any] = {"name": name, "dims": list(cube.dims), "coords": [str(c) for c in cube.coords]}
    kept["dtypes"] = {}
    for key, variable in dataset.variables.items():
        kept["dtypes"][str(key)] = "str" if variable.dtype.kind in "OT" else variable.dtype.str
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
    kept["variables"] = {str(key): list(variable.dims) for key, variable in dataset.variables.items()}
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
        dtype = np.dtype(re.sub(r"^(\|T|StringDType).*", "str", dtypes.get(name, variable.dtype.str)))
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


def portions(cube: xr.DataArray) -> Iterator[slice]:
    """Yield runs of configurations that fit into memory together: whole blocks of a cube on dask."""
    total = cube.sizes["configuration"]
    most = max(1, PORTION // max(1, cube.size // max(1, total)))
    start = stop = 0
    for size in cube.chunksizes.get("configuration", (1,) * total):
        if stop > start and stop + size - start > most:
            yield slice(start, stop)
            start = stop
        stop += size
    yield slice(start, stop)


def netcdf_bytes(cube: xr.DataArray) -> bytes:
    """Return the content of a netCDF file.

    A thread makes it, as interruptions come to the main thread: an exception in the middle of a write would reach the
    HDF5 library as a failure of the disk.
    """
    h5netcdf = needed("h5netcdf", "netCDF files", "io")
    dataset, raw = encode(cube), io.BytesIO()
    name = str(next(iter(dataset.data_vars)))
    rest = max(1, cube.size // max(1, cube.sizes["configuration"]))
    some = min(cube.sizes["configuration"], max(1, min(1024, CHUNK_VALUES // rest)))
    chunks = tuple(some if dim == "configuration" else size for dim, size in cube.sizes.items())
    encoding = {name: {"zlib": True, "complevel": 1, "shuffle": True, "chunksizes": chunks}}
    with ThreadPoolExecutor(1) as thread:
        file = thread.submit(h5netcdf.File, raw, "w").result()
        try:
            store = xr.backends.H5NetCDFStore(file)
            thread.submit(dataset.dump_to_store, store, encoding=encoding).result()  # leaves out what is on dask
            for part in portions(cube) if cube.chunks else ():
                values = cube.isel(configuration=part).values
                place = tuple(part if dim == "configuration" else slice(None) for dim in cube.dims)
                thread.submit(file[name].__setitem__, place, values).result()
        finally:
            thread.submit(file.close).result()
    return raw.getvalue()


def write_netcdf(cube: xr.DataArray, path: Path, *, force: bool = False) -> None:
    """Write a netCDF file."""
    with replacing(path, force=force) as temporary:
        temporary.write_bytes(netcdf_bytes(cube))


@contextmanager
def open_netcdf(source: Path | bytes, name: str, *, lazy: bool = False) -> Iterator[xr.Dataset]:
    """Open a netCDF file, or the bytes of one, that holds nothing but what a cube needs and is not a bomb.

    What is left on disk (`lazy`) may be of any size.
    """
    h5py, h5netcdf = needed("h5py", "netCDF files", "io"), needed("h5netcdf", "netCDF files", "io")
    with ExitStack() as stack:
        raw: Any = io.BytesIO(source) if isinstance(source, bytes) else stack.enter_context(opened(source))
        start = raw.read(8)
        if not start:
            raise InputError(f"{name}: the file is empty.")
        if not start.startswith(b"\x89HDF"):
            raise InputError(
                f"{name}: this is not a netCDF-4 file (.nc) or cube store (.cube). "
                "For tables of predictions use read_predictions()."
            )
        image = source if isinstance(source, bytes) else mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ)
        if _endless(image):
            raise InputError(f"{name}: the file is corrupt (its texts do not follow each other).")
        file = stack.enter_context(h5py.File(raw, "r"))
        dict(file.attrs)  # what fails here fails in h5netcdf as well, with a traceback on the terminal
        _check_content(file, h5py, name, image, lazy)
        kept = json.loads(file.attrs.get(KEPT, "{}"))
        if "variables" in kept:
            yield _own(file, h5py, kept["variables"], kept["name"] if lazy else None)
        else:
            again = stack.enter_context(h5netcdf.File(raw, "r", decode_vlen_strings=True))
            yield stack.enter_context(xr.open_dataset(xr.backends.H5NetCDFStore(again)))


def _own(file: Any, h5py: Any, dims: Mapping[str, list[str]], left: str | None) -> xr.Dataset:
    """Return what one of our own files says that it holds: several times as fast as following its dimension scales.

    What is to be `left` on disk is zeros that take no room.
    """
    variables = {}
    for key, names in dims.items():
        data = file[key]
        if key == left:
            values = np.broadcast_to(np.zeros((), data.dtype), data.shape)
        else:
            values = data.asstr()[...] if data.dtype.kind == "O" else data[...]
        variables[key] = xr.Variable(names, values, _attributes(data, h5py))
    return xr.decode_cf(xr.Dataset(variables, attrs=_attributes(file, h5py)))


def _attributes(owner: Any, h5py: Any) -> dict[str, Any]:
    found = {name: owner.attrs[name] for name in owner.attrs if not STRUCTURE.fullmatch(name)}
    found = {name: "" if isinstance(value, h5py.Empty) else value for name, value in found.items()}
    return {name: value[0] if np.shape(value) == (1,) else value for name, value in found.items()}


def _check_content(file: Any, h5py: Any, name: str, image: Any, lazy: bool) -> None:
    """Raise for what leads out of the file, for what no cube holds, and for more than so small a file can hold."""
    size, total = len(image), 0
    budget = most_of(size, ARRAYS)
    for key in file:
        data = file[key] if isinstance(file.get(key, getlink=True), h5py.HardLink) else None
        if not isinstance(data, h5py.Dataset) or data.is_virtual or data.external:
            raise InputError(
                f"{name}: {key!r} is a link, a group or kept in other files; a cube is arrays in one file."
            )
        if data.dtype.kind != "O":
            width = data.dtype.itemsize * (4 if data.dtype.kind == "S" else 1)  # as numpy holds text
            total += 0 if lazy and data.ndim > 1 else data.size * width
        elif h5py.check_string_dtype(data.dtype) is None:
            raise InputError(f"{name}: {key!r} holds {data.dtype}; keep numbers and text only.")
        else:
            longest = _longest(data, image, file.id.get_create_plist().get_sizes()[0])
            if longest is None:
                raise InputError(f"{name}: the text {key!r} is compressed, which is not read; save it as it is.")
            total += 4 * longest * data.size
        if total > budget:
            raise InputError(
                f"{name}: {size:,} bytes say that they hold {total:,}; the file is damaged, or read it in parts with "
                "read_cube(path, chunks={})."
            )


def _longest(data: Any, image: Any, address: int) -> int | None:
    """Return the length of the longest text of an array as the file says it; None where it says so in packed form.

    No interface of the HDF5 library tells it: it makes room for each text as it is told, up to 4 GB, before it looks.
    """
    layout, size = data.id.get_create_plist(), data.id.get_storage_size()
    if layout.get_nfilters() or (size and not data.chunks and data.id.get_offset() is None):
        return None
    places = [(data.id.get_offset(), size)] if size else []
    if data.chunks:
        chunks = map(data.id.get_chunk_info, range(data.id.get_num_chunks()))
        places = [(chunk.byte_offset, chunk.size) for chunk in chunks]
    entries = (np.frombuffer(image[start : start + long], np.uint8) for start, long in places)
    return max((int(some.reshape(-1, 8 + address)[:, :4].copy().view("<u4").max()) for some in entries), default=0)


def _endless(image: Any) -> bool:
    """Return whether a collection of texts (global heap) has an entry that does not lead to the next.

    The HDF5 library (2.0 and before) never returns from such a collection, which no interface of it can tell.
    """
    start = image.find(b"GCOL")
    while start >= 0:
        end = start + int.from_bytes(image[start + 8 : start + 16], "little")
        place = start + 16
        while end <= len(image) and place + 16 <= end:
            length = int.from_bytes(image[place + 8 : place + 16], "little")
            step = 16 + (length + 7) // 8 * 8 if any(image[place : place + 2]) else length
            if step < 16 or place + step > end:
                return True
            place += step
        start = image.find(b"GCOL", start + 4)
    return False


def read_netcdf(path: Path, chunks: Any) -> xr.DataArray:
    """Read a netCDF file; lazily, through dask, when `chunks` are given."""
    with readable(path.name), open_netcdf(path, path.name, lazy=chunks is not None) as dataset:
        if chunks is None:
            return decode(dataset.load(), path.name)
        decode(dataset, path.name)
    with readable(path.name):
        cube = decode(xr.open_dataset(path, engine="h5netcdf", chunks={}), path.name)  # as stored, then as asked
    return cube.chunk(chunks) if chunks else cube
