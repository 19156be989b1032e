"""What is looked at before a store is opened: damage the libraries below cannot bear, code, and bombs."""

from __future__ import annotations

import json
import mmap
import os
from pathlib import Path
from typing import Any

import xarray as xr

from cvstats._check import InputError

from ._optional import needed

LARGE, RATIO = 2**31, 1000  # bytes; how many times smaller no honest file is


def first_line(error: BaseException) -> str:
    """Return the beginning of what an error of another library says."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]


def refuse_broken_hdf(path: Path) -> None:
    """Raise unless the HDF5 library can open the file and read its text without running in circles."""
    h5py = needed("h5py", "netCDF files", "io")
    try:
        with path.open("rb") as file:
            start = file.read(8)
            if not start:
                raise InputError(f"{path.name}: the file is empty.")
            if not start.startswith(b"\x89HDF"):
                raise InputError(
                    f"{path.name}: this is not a netCDF-4 file (.nc) or Zarr store (.zarr). "
                    "For tables of predictions use read_predictions()."
                )
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as raw:
            broken = _endless(raw)
        if not broken:
            with h5py.File(path, "r") as store:
                dict(store.attrs)  # what fails here fails in h5netcdf as well, with a traceback on the terminal
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path.name}: the file is corrupt or cut off ({first_line(error)}).") from None
    if broken:
        raise InputError(f"{path.name}: the file is corrupt (its texts do not follow each other).")


def _endless(raw: Any) -> bool:
    """Return whether a collection of texts (global heap) has an entry that does not lead to the next.

    The HDF5 library never returns from such a collection.
    """
    start = raw.find(b"GCOL")
    while start >= 0:
        size = int.from_bytes(raw[start + 8 : start + 16], "little")
        if raw[start + 4 : start + 8] == b"\x01\x00\x00\x00" and start + size <= len(raw):
            place, end = start + 16, start + size
            while place + 16 <= end:
                number = int.from_bytes(raw[place : place + 2], "little")
                length = int.from_bytes(raw[place + 8 : place + 16], "little")
                step = length if number == 0 else 16 + (length + 7) // 8 * 8
                if step < 16 or place + step > end:
                    return True
                place += step
        start = raw.find(b"GCOL", start + 4)
    return False


def refuse_bombs(dataset: xr.Dataset, path: Path) -> None:
    """Raise when a small file says that it holds a very large array."""
    if dataset.nbytes <= LARGE:
        return
    stored = path.stat().st_size
    if path.is_dir():
        stored = sum(os.path.getsize(Path(root) / name) for root, _, names in os.walk(path) for name in names)
    if dataset.nbytes > RATIO * stored:
        raise InputError(
            f"{path.name}: {stored:,} bytes say that they hold {dataset.nbytes:,}; the file is damaged, or read it in "
            "parts with read_cube(path, chunks={})."
        )


def open_zarr(path: Path, **options: Any) -> xr.Dataset:
    """Open a Zarr store that needs no unpickling."""
    for folder, _, names in os.walk(path):
        for name in {".zmetadata", ".zarray", "zarr.json"} & set(names):
            file = Path(folder) / name
            if _pickled(json.loads(file.read_bytes())):
                raise InputError(
                    f"{path.name}: holds Python objects ({name} asks for pickle), which are never unpickled."
                )
    dataset: xr.Dataset = xr.open_zarr(path, **options)
    return dataset


def _pickled(meta: Any) -> bool:
    """Return whether any codec in the metadata is a pickle."""
    if isinstance(meta, dict):
        return any(
            (key in ("id", "name") and "pickle" in str(value).lower()) or _pickled(value) for key, value in meta.items()
        )
    return isinstance(meta, list) and any(_pickled(value) for value in meta)
