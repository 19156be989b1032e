"""A cube as a folder of immutable parts, which a training job adds to as it goes.

Parts are combined by label; what is given twice must be given alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats._check import InputError, plain, show
from cvstats.cube.blocks import delayed_columns

from ._gate import check_input, needed, node, opened, readable
from ._manifest import MANIFEST, Entry, check_part, check_store, read_manifest, write_manifest, write_part, writing
from ._netcdf import decode, netcdf_bytes, open_netcdf, portions

MANY = 4096  # parts whose outlines a process remembers
_OUTLINES: dict[str, xr.DataArray] = {}  # by hash
_KNOWN: dict[Path, Known] = {}  # of the stores that this process has appended to


# -- reading


def read_store(path: Path, chunks: Any) -> xr.DataArray:
    """Read a store; with `chunks` its parts stay on disk until they are needed."""
    folder = path.resolve()
    if node(folder / MANIFEST, follow=False) == "nothing":
        raise InputError(f"{str(path)!r} is a folder but not a cube store: it has no {MANIFEST}.")
    while True:
        entries = read_manifest(folder)
        try:
            whole = united([(_outline(folder, entry), entry.file) for entry in entries])
            if chunks is None:
                return whole.copy(data=filled(whole, folder, entries))
            cube = whole.copy(data=_on_dask(whole, folder, entries))
            return cube.chunk(chunks) if chunks else cube
        except InputError:
            if read_manifest(folder) == entries:  # else it has been compacted meanwhile
                raise


def _on_dask(whole: xr.DataArray, folder: Path, entries: list[Entry]) -> Any:
    """Return the predictions as blocks of configurations that lie in the same parts."""
    needed("dask", "chunked cubes", "dask")
    holds = np.array([_shared(whole, _outline(folder, entry))["configuration"] for entry in entries])
    edges = [0, *(np.flatnonzero((holds[:, 1:] != holds[:, :-1]).any(axis=0)) + 1).tolist(), holds.shape[1]]
    blocks = []
    for start, stop in pairwise(edges):
        some = [entry for entry, has in zip(entries, holds[:, start], strict=True) if has]
        names = {dim: whole.indexes[dim] for dim in whole.dims}
        names["configuration"] = names["configuration"][start:stop]
        blocks.append(partial(_block, names, whole.dtype, folder, some))
    axis = whole.get_axis_num("configuration")
    return delayed_columns(blocks, np.diff(edges).tolist(), whole.shape, axis, whole.dtype)


def _block(names: dict[Any, pd.Index], dtype: Any, folder: Path, entries: Sequence[Entry]) -> np.ndarray:
    """Return the predictions of some parts in the cells that have these names: all that workers need to receive."""
    blank = np.broadcast_to(np.zeros((), dtype), [len(index) for index in names.values()])
    return filled(xr.DataArray(blank, names, list(names), "prediction"), folder, entries)


def filled(whole: xr.DataArray, folder: Path, entries: Sequence[Entry]) -> np.ndarray:
    """Return the predictions of the parts in the cells of `whole`."""
    if len(entries) == 1:
        part = _load(folder, entries[0])
        if all(part.indexes[dim].equals(whole.indexes[dim]) for dim in whole.dims):
            return part.transpose(*whole.dims).values.astype(whole.dtype, copy=False)  # nothing to put together
    sheet = Sheet(whole, dict(whole.indexes))
    for entry in entries:
        part = _load(folder, entry)
        sheet.put(part.isel(_shared(part, whole)), "earlier parts", entry.file)
    return sheet.values


def _shared(one: xr.DataArray, other: xr.DataArray) -> dict[str, np.ndarray]:
    """Return which labels of one cube another has too."""
    return {str(dim): one.indexes[dim].isin(other.indexes[dim]) for dim in one.dims}


def _load(folder: Path, entry: Entry) -> xr.DataArray:
    """Return a part whose bytes are those that the manifest names."""
    name = check_part(folder, entry)
    with opened(folder / entry.file, inside=True) as file:
        raw = file.read()
    if hashlib.sha256(raw).hexdigest() != entry.sha256:
        raise InputError(f"{name} is damaged: its hash is not the one in {MANIFEST}.")
    return _decoded(raw, name)


def _decoded(source: bytes | Path, name: str, *, lazy: bool = False) -> xr.DataArray:
    """Return the cube of a part; a `lazy` one has zeros for predictions, which take no room."""
    with readable(name), open_netcdf(source, name, lazy=lazy) as dataset:
        return decode(dataset if lazy else dataset.load(), name)


def _outline(folder: Path, entry: Entry) -> xr.DataArray:
    """Return a part without its predictions; parts never change, so that a process opens each once for this."""
    if entry.sha256 not in _OUTLINES:
        _remember(entry, _decoded(folder / entry.file, check_part(folder, entry), lazy=True))
    return _OUTLINES[entry.sha256]


def _remember(entry: Entry, cube: xr.DataArray) -> None:
    if len(_OUTLINES) >= MANY:
        _OUTLINES.clear()
    _OUTLINES[entry.sha256] = cube.copy(data=np.broadcast_to(np.zeros((), cube.dtype), cube.shape))


# -- combining


class Sheet:
    """An array under construction, by label: what is put twice must be alike, what is blank says nothing."""

    def __init__(self, like: xr.DataArray, indexes: Mapping[Any, pd.Index]) -> None:
        self.name, self.dims, self.indexes, self.cells = like.name, like.dims, indexes, like.name not in like.coords
        shape = [len(indexes[dim]) for dim in like.dims]
        empty = {"f": np.nan, "U": "", "i": -1, "M": "NaT", "m": "NaT"}.get(like.dtype.kind, 0)
        self.values = np.full(shape, empty, like.dtype)
        self.known = np.zeros(shape, bool)

    def put(self, given: xr.DataArray, old: str, new: str) -> bool:
        """Fill cells in and return whether any was empty; raise, naming where, for one that holds something else."""
        given = given.transpose(*self.dims)
        runs = [self.indexes[dim].get_indexer(given.indexes[dim]) for dim in self.dims]
        whole = all(len(run) and (np.diff(run) == 1).all() for run in runs)
        places = tuple(slice(run[0], run[-1] + 1) for run in runs) if whole else np.ix_(*runs)
        values, known, says = self.values[places], self.known[places], ~self._blank(given.values)
        clash = known & says & (values != given.values)
        if clash.any():
            first = tuple(np.argwhere(clash)[0])
            names = (given.indexes[dim][i] for dim, i in zip(self.dims, first, strict=True))
            where = ", ".join(f"{dim} {plain(name)!r}" for dim, name in zip(self.dims, names, strict=True))
            both = f"{plain(values[first])!r} in {old} but {plain(given.values[first])!r} in {new}"
            if self.cells:
                raise InputError(
                    f"{int(clash.sum())} cells are already stored with another prediction; first {where}, which has "
                    f"{both}. Nothing is overwritten: append only what is new, or write to another store."
                )
            raise InputError(f"conflicting {self.name}: {where} has {both}.")
        fresh = says & ~known
        self.values[places] = np.where(fresh, given.values, values)
        self.known[places] = known | says
        return bool(fresh.any())

    def _blank(self, values: np.ndarray) -> np.ndarray:
        """Return where an array says nothing: NaN, empty text, or -1 for folds."""
        blank = values == "" if values.dtype.kind == "U" else pd.isna(values)
        return np.asarray(blank | (values == -1) if self.name == "fold" else blank)


def united(parts: Sequence[tuple[xr.DataArray, str]], old: str = "earlier parts") -> xr.DataArray:
    """Return the hollow cube of all labels and coordinates of the parts, each given with its name.

    Labels come in first-seen order; coordinates that are given twice must agree.
    """
    first = parts[0][0]
    for part, new in parts:
        _check_alike(first, part, old, new)
    indexes = dict(first.indexes)
    for part, _ in parts[1:]:
        for dim, index in indexes.items():
            more = part.indexes[dim]
            indexes[dim] = index.append(more[~more.isin(index)])
    coords: dict[Any, Any] = {}
    for name, coord in first.coords.items():
        dtype = np.result_type(*(part.coords[name].dtype for part, _ in parts))
        if name in indexes:
            coords[name] = (name, indexes[name].to_numpy().astype(dtype))
            continue
        sheet = Sheet(coord.astype(dtype), indexes)
        for part, new in parts:
            sheet.put(part.coords[name], old, new)
        coords[name] = (coord.dims, sheet.values, coord.attrs)
    attrs = {key: value for key, value in first.attrs.items() if all(part.attrs.get(key) == value for part, _ in parts)}
    dtype = np.result_type(*(part.dtype for part, _ in parts))
    shape = [len(indexes[dim]) for dim in first.dims]
    return xr.DataArray(np.broadcast_to(np.zeros((), dtype), shape), coords, first.dims, first.name, attrs)


def _check_alike(first: xr.DataArray, part: xr.DataArray, old: str, new: str) -> None:
    """Raise unless two cubes have the same dims, labels of the same type, and the same coordinates."""
    if set(first.dims) != set(part.dims):
        raise InputError(
            f"{old} has dims {show(first.dims)} but {new} has {show(part.dims)}; give the cube the same dims "
            "(for instance cube.expand_dims(repeat=[0]))."
        )
    ours, theirs = {str(c) for c in first.coords}, {str(c) for c in part.coords}
    if ours != theirs:
        raise InputError(
            f"coordinates differ: only in {old}: {show(sorted(ours - theirs)) or 'none'}; "
            f"only in {new}: {show(sorted(theirs - ours)) or 'none'}."
        )
    bare = [dim for dim in part.dims if dim not in part.indexes or not part.indexes[dim].is_unique]
    if bare:
        raise InputError(f"in a store every dimension needs labels; {show(bare)} has none, or one of them twice.")
    for name, a in first.coords.items():
        b = part.coords[name]
        if set(a.dims) != set(b.dims):
            raise InputError(f"coordinate {name!r} has dims {show(a.dims)} in {old} but {show(b.dims)} in {new}.")
        if (a.dtype.kind == "U") != (b.dtype.kind == "U"):
            raise InputError(f"the {name} names are {a.dtype} in {old} but {b.dtype} in {new}; use one type.")
        if not a.dims and not (a == b or (pd.isna(a.item()) and pd.isna(b.item()))):
            raise InputError(f"{name!r} is {plain(a.values[()])!r} in {old} but {plain(b.values[()])!r} in {new}.")
        if name == "label_class" and a.dims and set(a.values) != set(b.values):
            raise InputError(f"the classes are {show(a.values)} in {old} but {show(b.values)} in {new}.")


# -- writing


def write_store(cube: xr.DataArray, path: Path, *, append: bool) -> None:
    """Write a cube as the only content of a store, or `append` what the store does not hold yet."""
    needed("h5netcdf", "cube stores", "io")
    folder = check_store(path)
    with writing(folder) as stored:
        kept = stored if append else []
        known = _known(folder, kept) if kept else None
        new: list[Entry] = []
        for place in portions(cube):
            raw = netcdf_bytes(cube.isel(configuration=place).compute())
            part = _decoded(raw, "`cube`", lazy=True)  # as it will be read
            _check_alike(part, part, "`cube`", "`cube`")
            if known is None or _adds(part, raw, known, folder):
                new.append(write_part(folder, [*stored, *new], raw))
                _remember(new[-1], part)
        if new:
            write_manifest(folder, [*kept, *new])


@dataclass(frozen=True)
class Known:
    """What a process knows of a store: its parts, all that they say but the predictions, and who holds what."""

    entries: tuple[Entry, ...]
    whole: Any  # a hollow cube, or None of no parts
    holders: dict[Any, list[Entry]]  # by configuration


def _known(folder: Path, entries: Sequence[Entry]) -> Known:
    """Return what is known of a store; only parts that are new to this process are looked at."""
    old = _KNOWN.get(folder)
    if old is None or old.entries != tuple(entries[: len(old.entries)]):
        old = Known((), None, {})
    new = entries[len(old.entries) :]
    parts = [(_outline(folder, entry), entry.file) for entry in new]
    for entry, (outline, _) in zip(new, parts, strict=True):
        for name in outline.indexes["configuration"]:
            old.holders.setdefault(name, []).append(entry)
    before = [] if old.whole is None else [(old.whole, "earlier parts")]
    _KNOWN[folder] = Known(tuple(entries), united([*before, *parts]) if parts else old.whole, old.holders)
    return _KNOWN[folder]


def _adds(part: xr.DataArray, raw: bytes, known: Known, folder: Path) -> bool:
    """Return whether a part holds anything that the store does not; raise when the two disagree."""
    whole = united([(known.whole, "the store"), (part, "`cube`")], old="the store")
    holders = [known.holders.get(name, []) for name in part.indexes["configuration"]]
    near = {entry.file: entry for some in holders for entry in some}
    others = [e for e in near.values() if all(has.any() for has in _shared(part, _outline(folder, e)).values())]
    if not others:
        return True
    sheet, cube = Sheet(part, dict(part.indexes)), _decoded(raw, "`cube`")
    for entry in others:
        other = _load(folder, entry)
        sheet.put(other.isel(_shared(other, cube)), "earlier parts", entry.file)
    return sheet.put(cube, "the store", "`cube`") or not whole.coords.equals(known.whole.coords)


def compact_store(path: Path) -> None:
    """Merge the parts of a store into as few as reading by dask allows."""
    folder = check_store(path)
    check_input(folder / MANIFEST, inside=True)
    with writing(folder) as stored:
        outlines = {entry: _outline(folder, entry) for entry in stored}
        whole = united([(outline, entry.file) for entry, outline in outlines.items()])
        places = list(portions(whole))
        if len(places) >= len(stored):
            return
        new: list[Entry] = []
        for place in places:
            piece = whole.isel(configuration=place)
            some = [entry for entry, outline in outlines.items() if _shared(piece, outline)["configuration"].any()]
            raw = netcdf_bytes(piece.copy(data=filled(piece, folder, some)))
            new.append(write_part(folder, [*stored, *new], raw))
        write_manifest(folder, new)
