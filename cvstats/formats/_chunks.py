"""Chunks of Zarr stores, looked at before they are unpacked: the libraries make room for what a chunk says it is."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import math
import os
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError, show

from ._guards import LARGE, RATIO, refuse_links, refuse_pickles
from ._optional import needed

TEXT = 2**26  # bytes that a chunk of text may hold, however small its file
PACKED = {"blosc", "zstd", "gzip", "zlib", "bz2", "lzma", "lz4"}
SAME_SIZE = {"bytes", "transpose", "shuffle", "crc32c", "crc32", "adler32", "fletcher32"}
VARYING = {"vlen-utf8", "vlen-bytes", "delta", "astype", "fixedscaleoffset", "quantize", "bitround", "packbits"}


def open_zarr(path: Path, **options: Any) -> xr.Dataset:
    """Open a Zarr store without links that needs no unpickling and whose chunks fit."""
    refuse_links(path)
    refuse_pickles(path)
    _refuse_bombs(path)
    dataset: xr.Dataset = xr.open_zarr(path, **options)
    return dataset


def _refuse_bombs(path: Path) -> None:
    """Raise when a chunk of a Zarr store unpacks to more than its array says, or cannot be checked."""
    for folder, meta in _arrays(path):
        codecs, shape, dtype = _described(meta)
        packed = [codec for codec in codecs if codec in PACKED]
        odd = [codec for codec in codecs if codec not in PACKED | SAME_SIZE | VARYING]
        if odd or len(packed) > 1 or (packed and codecs[-1] not in (*packed, "crc32c")):
            raise InputError(
                f"{path.name}: {folder.name!r} is stored with {show(odd or codecs)}, which is not read here; "
                "store it with zstd, blosc or gzip."
            )
        cells = math.prod(int(size) for size in shape)
        for file in _files(folder):
            size = file.stat().st_size
            limit = max(TEXT, RATIO * size)
            if dtype is not None and not VARYING & {*codecs}:
                limit = min(cells * dtype.itemsize + 16, max(LARGE, RATIO * size))  # 16: checksums
            packer = packed[0] if packed else None
            if _unpacked(file, packer, limit) > limit or ("vlen-utf8" in codecs and _count(file, packer) > cells):
                raise InputError(
                    f"{path.name}: chunk {file.relative_to(path).as_posix()} is corrupt: it unpacks to more than its "
                    "array holds."
                )


def _arrays(path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the folders of arrays with what is said about them, in their own and in consolidated metadata."""
    for root, _, names in os.walk(path):
        folder = Path(root)
        for name in {".zmetadata", ".zarray", "zarr.json"} & {*names}:
            meta = json.loads((folder / name).read_bytes())
            if name == ".zarray" or "codecs" in meta:
                yield folder, meta
            parts = meta if name == ".zmetadata" else meta.get("consolidated_metadata") or {}
            for key, part in parts.get("metadata", {}).items():
                if key.endswith(".zarray") or "codecs" in part:
                    yield folder / key.removesuffix(".zarray"), part


def _described(meta: dict[str, Any]) -> tuple[list[str], list[int], np.dtype[Any] | None]:
    """Return the codecs in the order of writing, the shape of chunks, and the type if it is of fixed size."""
    if "codecs" in meta:  # format 3
        codecs = [str(codec["name"]).removeprefix("numcodecs.") for codec in meta["codecs"]]
        shape, kind = meta["chunk_grid"]["configuration"]["chunk_shape"], meta["data_type"]
    else:
        steps = [*(meta["filters"] or []), *([meta["compressor"]] if meta["compressor"] else [])]
        codecs, shape, kind = [str(step["id"]) for step in steps], meta["chunks"], meta["dtype"]
    try:
        dtype = np.dtype(kind)
    except TypeError:
        return codecs, shape, None
    return codecs, shape, dtype if dtype.kind in "biufcmMSUV" else None


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of chunks; those that a writer has not finished are none yet."""
    for root, _, names in os.walk(folder):
        for name in names:
            if not (name.startswith(".") or name == "zarr.json" or name.endswith(".partial")):
                yield Path(root) / name


def _unpacked(file: Path, packer: str | None, limit: int) -> int:
    """Return how large a chunk says it is, or where it does not say, how large it is or that it is over the limit."""
    with file.open("rb") as raw:
        head = raw.read(18)
        raw.seek(0)
        if packer is None:
            return file.stat().st_size
        if packer in ("blosc", "lz4"):
            start = 4 if packer == "blosc" else 0
            return int.from_bytes(head[start : start + 4], "little")
        if packer == "zstd" and (said := _zstd_size(head)) is not None:
            return said
        if packer == "zlib":
            return len(zlib.decompressobj().decompress(raw.read(), limit + 1))
        arrow = needed("pyarrow", "Zarr stores of this kind", "io")
        openers: dict[str, Callable[..., Any]] = {"gzip": gzip.open, "bz2": bz2.open, "lzma": lzma.open}
        openers["zstd"] = partial(arrow.CompressedInputStream, compression="zstd")
        total = 0
        with openers[packer](raw) as stream:
            while total <= limit and (part := stream.read(io.DEFAULT_BUFFER_SIZE * 16)):
                total += len(part)
        return total


def _zstd_size(head: bytes) -> int | None:
    """Return the size that a frame of zstd declares, None if it does not; 0 for what is no such frame."""
    if head[:4] != b"\x28\xb5\x2f\xfd":
        return 0
    flags = head[4]
    single = flags >> 5 & 1
    width = {0: single, 1: 2, 2: 4, 3: 8}[flags >> 6]
    start = 6 - single + (0, 1, 2, 4)[flags & 3]
    size = int.from_bytes(head[start : start + width], "little")
    return size + 256 * (width == 2) if width else None


def _count(file: Path, packer: str | None) -> int:
    """Return how many texts a chunk says it holds."""
    raw = file.read_bytes()
    if packer is not None:
        raw = bytes(needed("numcodecs", "Zarr stores", "io").get_codec({"id": packer}).decode(raw))
    return int.from_bytes(raw[:4], "little")
