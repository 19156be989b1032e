"""What is looked at before a store is opened: damage the libraries below cannot bear, code, and bombs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import xarray as xr

from cvstats._check import InputError

LARGE, RATIO = 2**31, 1000  # bytes; how many times smaller no honest file is


def first_line(error: BaseException) -> str:
    """Return the beginning of what an error of another library says."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]


def refuse_bombs(dataset: xr.Dataset, path: Path) -> None:
    """Raise when a small file says that it holds a very large array."""
    if dataset.nbytes <= LARGE:
        return
    stored = path.stat().st_size
    if path.is_dir():
        files = (Path(root) / name for root, _, names in os.walk(path) for name in names)
        stored = sum(file.stat().st_size for file in files if file.suffix != ".partial")  # a writer may be at work
    if dataset.nbytes > RATIO * stored:
        raise InputError(
            f"{path.name}: {stored:,} bytes say that they hold {dataset.nbytes:,}; the file is damaged, or read it in "
            "parts with read_cube(path, chunks={})."
        )


def refuse_links(path: Path) -> None:
    """Raise when a Zarr store holds links: what they lead to is not looked at, and may be anywhere."""
    for folder, inside, names in os.walk(path):
        for name in [*inside, *(name for name in names if not name.endswith(".partial"))]:  # those are never read
            found = Path(folder) / name
            if found.is_symlink():
                raise InputError(
                    f"{path.name}: {found.relative_to(path).as_posix()!r} is a link, which is never followed inside a "
                    "store; copy the store with what its links lead to (cp -rL)."
                )


def refuse_pickles(path: Path) -> None:
    """Raise when a Zarr store asks for unpickling."""
    for folder, _, names in os.walk(path):
        for name in {".zmetadata", ".zarray", "zarr.json"} & set(names):
            if _pickled(json.loads((Path(folder) / name).read_bytes())):
                raise InputError(
                    f"{path.name}: holds Python objects ({name} asks for pickle), which are never unpickled."
                )


def _pickled(meta: Any) -> bool:
    """Return whether any codec in the metadata is a pickle."""
    if isinstance(meta, dict):
        return any(
            (key in ("id", "name") and "pickle" in str(value).lower()) or _pickled(value) for key, value in meta.items()
        )
    return isinstance(meta, list) and any(_pickled(value) for value in meta)
