"""Adding to a Zarr store as a training job produces predictions: new configurations, repeats, folds or samples.

The store is committed by its consolidated metadata, written last: a job that dies while appending leaves the store as
it was for every reader, and the next append takes back what was half written before it writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, plain, show

from ._chunks import open_zarr
from ._guards import refuse_links
from ._optional import needed
from ._stores import decode, is_zarr, write_zarr

PARTIAL = re.compile(r"\.[0-9a-f]{32}\.partial$")  # what the store calls files while it writes them


def append_zarr(cube: xr.DataArray, path: Path) -> None:
    """Merge `cube` into the store: labels not yet there are added, empty cells are filled, nothing is overwritten."""
    zarr = needed("zarr", "Zarr stores", "io")
    with _locked(path):
        if not path.exists():
            write_zarr(cube, path)
            return
        if not is_zarr(path):
            raise InputError(f"{str(path)!r} exists and is not a Zarr store; choose another name.")
        refuse_links(path)
        for left in path.rglob("*.partial"):  # of a job that was killed
            if PARTIAL.search(left.name):
                left.unlink(missing_ok=True)
        with open_zarr(path, chunks=None) as dataset:
            stored = decode(dataset, path.name)
            union = _union(stored, cube)
            coords = _coordinates(stored, cube, union)
            values = _cells(stored, cube)
        group = zarr.open_group(str(path), mode="r+", use_consolidated=False)
        _take_back(group, zarr.open_group(str(path), mode="r"))
        shape = tuple(len(union[str(dim)]) for dim in stored.dims)
        places = tuple(union[str(dim)].get_indexer(cube.indexes[dim]) for dim in stored.dims)
        target = group[str(stored.name)]
        target.resize(shape)
        target.oindex[places] = values.astype(target.dtype)
        for name, array in coords.items():
            target = group[name]
            target.resize(array.shape)
            target[...] = array
        zarr.consolidate_metadata(str(path), zarr_format=2)


def _take_back(group: Any, committed: Any) -> None:
    """Return all arrays to their committed sizes and empty the cells that an unfinished append has written beyond.

    The sizes come last: if this is interrupted too, the next append still sees what there is to do.
    """
    for name, target in group.arrays():
        shape = committed[name].shape
        if target.shape == shape:
            continue
        if target.dtype.kind == "f":
            for axis, size in enumerate(shape):
                target[tuple(slice(size, None) if place == axis else slice(None) for place in range(len(shape)))] = (
                    np.nan
                )
        target.resize(shape)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process append at a time, where the system can lock files."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    lock = path.parent / f".{path.name}.lock"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _union(stored: xr.DataArray, cube: xr.DataArray) -> dict[str, pd.Index]:
    if set(stored.dims) != set(cube.dims):
        raise InputError(
            f"the store has dims {show(stored.dims)} but `cube` has {show(cube.dims)}; give the cube the same dims "
            "(for instance cube.expand_dims(repeat=[0]))."
        )
    bare = [dim for dim in stored.dims if dim not in stored.indexes or dim not in cube.indexes]
    if bare:
        raise InputError(f"to append, every dimension needs labels; {show(bare)} has none: use cube.assign_coords().")
    out = {}
    for dim in stored.dims:
        old, new = stored.indexes[dim], cube.indexes[dim]
        if (old.dtype.kind in "OU") != (new.dtype.kind in "OU"):
            raise InputError(f"the store's {dim} names are {old.dtype} but `cube` has {new.dtype}; use one type.")
        out[str(dim)] = old.append(new[~new.isin(old)])
    if "label_class" in stored.dims and len(out["label_class"]) != stored.sizes["label_class"]:
        raise InputError(
            f"the store's classes are {show(stored.indexes['label_class'])} "
            f"but `cube` has {show(cube.indexes['label_class'])}."
        )
    return out


def _coordinates(stored: xr.DataArray, cube: xr.DataArray, union: dict[str, pd.Index]) -> dict[str, np.ndarray]:
    """Return the coordinates that grow or are filled in; values that are already stored must agree."""
    ours, theirs = {str(c) for c in stored.coords}, {str(c) for c in cube.coords}
    if ours != theirs:
        raise InputError(
            f"coordinates differ: only in the store: {show(sorted(ours - theirs)) or 'none'}; "
            f"only in `cube`: {show(sorted(theirs - ours)) or 'none'}."
        )
    out: dict[str, np.ndarray] = {}
    for name in ours:
        old, new = stored.coords[name], cube.coords[name]
        if set(old.dims) != set(new.dims):
            raise InputError(
                f"coordinate {name!r} has dims {show(old.dims)} in the store but {show(new.dims)} in `cube`."
            )
        new = new.transpose(*old.dims)
        if name in union:
            if len(union[name]) > old.size:
                out[name] = _plain(union[name].to_numpy())
            continue
        if not old.dims:
            if not _equal(old.values, new.values).all():
                raise InputError(
                    f"{name!r} is {plain(old.values[()])!r} in the store but {plain(new.values[()])!r} in `cube`."
                )
            continue
        shape = tuple(len(union[str(dim)]) for dim in old.dims)
        full = np.empty(shape, object if old.dtype.kind in "OU" else np.promote_types(old.dtype, new.dtype))
        full[...] = (
            ""
            if full.dtype == object
            else (np.nan if full.dtype.kind == "f" else (-1 if full.dtype.kind == "i" else 0))
        )
        full[tuple(slice(size) for size in old.shape)] = old.values
        there = np.zeros(shape, bool)
        there[tuple(slice(size) for size in old.shape)] = ~_blank(old.values, name)
        places = np.ix_(*(union[str(dim)].get_indexer(cube.indexes[dim]) for dim in old.dims))
        clash = there[places] & ~_equal(full[places], new.values) & ~_blank(new.values, name)
        if clash.any():
            first = tuple(int(i) for i in np.argwhere(clash)[0])
            where = ", ".join(f"{dim} {plain(new[dim].values[i])!r}" for dim, i in zip(old.dims, first, strict=True))
            raise InputError(
                f"conflicting {name}: {where} has {plain(full[places][first])!r} in the store "
                f"but {plain(new.values[first])!r} in `cube`."
            )
        filled = ~there[places] & ~_blank(new.values, name)
        if shape != old.shape or filled.any():
            full[places] = np.where(there[places], full[places], new.values)
            out[name] = full
    return out


def _cells(stored: xr.DataArray, cube: xr.DataArray) -> np.ndarray:
    """Return the cube's values in the store's dim order, with cells that are already stored kept; they must agree."""
    new = cube.transpose(*stored.dims)
    values = np.array(new.values)
    rows = [np.flatnonzero(new.indexes[dim].isin(stored.indexes[dim])) for dim in stored.dims]
    if any(len(places) == 0 for places in rows):
        return values
    where = {
        dim: stored.indexes[dim].get_indexer(new.indexes[dim][places])
        for dim, places in zip(stored.dims, rows, strict=True)
    }
    old = stored.isel({dim: np.sort(places) for dim, places in where.items()})
    old = old.isel({dim: np.argsort(np.argsort(places)) for dim, places in where.items()})
    block = np.ix_(*rows)
    fresh, kept = values[block], old.values
    clash = ~np.isnan(fresh) & ~np.isnan(kept) & (fresh != kept)
    if clash.any():
        first = np.argwhere(clash)[0]
        names = ", ".join(
            f"{dim} {plain(new.indexes[dim][places[i]])!r}"
            for dim, places, i in zip(stored.dims, rows, first, strict=True)
        )
        raise InputError(
            f"{int(clash.sum())} cells are already stored with another prediction; first {names}. "
            "Nothing is overwritten: append only what is new, or write to another store."
        )
    values[block] = np.where(np.isnan(kept), fresh, kept)
    return values


def _plain(values: np.ndarray) -> np.ndarray:
    return values.astype(object) if values.dtype.kind in "OU" else values


def _blank(values: np.ndarray, name: str) -> np.ndarray:
    """Return where a coordinate says nothing: NaN, empty text, or -1 for folds."""
    if values.dtype.kind in "OU":
        return np.asarray(values == "", dtype=bool)
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    return np.asarray(values == -1) if name == "fold" else np.zeros(values.shape, bool)


def _equal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    same = np.asarray(a == b)
    if a.dtype.kind == "f" and b.dtype.kind == "f":
        same = same | (np.isnan(a) & np.isnan(b))
    return same
