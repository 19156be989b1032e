"""The gate that every file passes before it is read, and the packages that only some files need.

Regular files only, unpacked as far as the budget of the call goes; what is wrong is one line.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from cvstats._check import InputError, clipped, show

# bytes that any file may unpack to, and how many times its own size at most; a frame takes several times its text
ARRAYS, TEXT = (2**28, 1000), (2**24, 200)
NODES = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"PK\x03\x04": "zip"}


def needed(module: str, what: str, extra: str) -> Any:
    """Import an optional package, or say how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == package:
            problem = f'which is not installed. Install it with: pip install "cvstats[{extra}]"'
        else:
            problem = f"which is installed but cannot be imported: {' '.join(str(error).split())}"
        raise ImportError(f"{what} need the package {package!r}, {problem}") from error


def first_line(error: BaseException) -> str:
    """Return the beginning of what an error of another library says."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]


@contextmanager
def readable(name: str, damage: str = "file is corrupt, cut off or holds no cube") -> Iterator[None]:
    """Turn whatever damage leads the libraries below into, into one line."""
    try:
        yield
    except (InputError, ImportError):
        raise
    except Exception as error:
        raise InputError(f"{name}: the {damage} ({first_line(error)}).") from None


def node(path: Path, *, follow: bool = True) -> str:
    """Return what stands at a path: "a file", "nothing", "a folder", "a link" ..."""
    try:
        found = os.stat(path, follow_symlinks=follow)
    except (OSError, ValueError):  # ValueError: a name with a zero byte
        return "nothing"
    return NODES.get(stat.S_IFMT(found.st_mode), "a file")


def check_input(path: Path, *, inside: bool = False) -> None:
    """Raise unless a path is that of a regular file; a link may lead to one, but not `inside` a store."""
    kind = node(path, follow=not inside)
    if kind == "nothing":
        raise InputError(f"no such file: {clipped(str(path))}.")
    if kind == "a link":
        raise InputError(
            f"{path.parent.name}: {path.name!r} is a link, which is never followed inside a store; copy the store with "
            "what its links lead to (cp -rL)."
        )
    if kind == "a folder":
        raise InputError(f"{path.name}: this is a folder, not a file.")
    if kind != "a file":
        raise InputError(f"{path.name}: this is {kind}, not a file; save what it holds to a file first.")


class Budget:
    """Bytes that all files of one call may take together once they are unpacked."""

    def __init__(self, limit: int) -> None:
        self.limit = self.left = limit

    def take(self, size: int, what: str, path: Path) -> None:
        """Count what is about to be unpacked; raise when it is too much."""
        if size > self.left:
            raise InputError(f"{what} {size:,} bytes, more than max_bytes={self.limit:,} for all files together.")
        if size > most_of(path.stat().st_size, ARRAYS):
            raise InputError(
                f"{what} {size:,} bytes, more than a file of {path.stat().st_size:,} bytes can honestly hold."
            )
        self.left -= size

    @contextmanager
    def text(self, path: Path) -> Iterator[IO[bytes]]:
        """Open a file of text, unpacked; raise when it is too much."""
        size = path.stat().st_size
        with unpacked(path) as (file, packing):
            most = min(self.left, most_of(size, TEXT)) if packing else self.left
            if packing:
                raw = file.read(most + 1)
                file, size, packed = io.BytesIO(raw), len(raw), size
            if size > self.left:
                raise InputError(
                    f"the file {'decompresses to' if packing else 'has'} more than {self.left:,} bytes. Raise the "
                    "limit with max_bytes=, or use Parquet, which is read in parts."
                )
            if size > most:
                raise InputError(
                    f"the {packing} file of {packed:,} bytes decompresses to more than {most:,} bytes, which a table "
                    "rarely does; if it is one, unpack it first."
                )
            self.left -= size
            yield file


def most_of(size: int, share: tuple[int, int]) -> int:
    """Return what a file of some size may unpack to."""
    return max(share[0], share[1] * size)


@contextmanager
def opened(path: Path, *, inside: bool = False) -> Iterator[IO[bytes]]:
    """Open a regular file for reading; what the system has against it is one line."""
    check_input(path, inside=inside)
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"{path.name}: cannot be read: {error.strerror or error}.") from None
    with file:
        yield file


@contextmanager
def unpacked(path: Path) -> Iterator[tuple[IO[bytes], str | None]]:
    """Open a file as what it is when it is not compressed, with the name of the compression."""
    with opened(path) as raw:
        start = raw.read(8)
        raw.seek(0)
        kind = next((kind for magic, kind in PACKED.items() if start.startswith(magic)), None)
        openers: dict[str, Any] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open, "zip": _only_file}
        try:
            with openers[kind](raw) if kind else raw as file:
                yield file, kind
        except InputError as error:
            raise error if str(error).startswith(path.name) else InputError(f"{path.name}: {error}") from None
        except (EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, RuntimeError, UnicodeError) as error:
            if kind is None:
                raise InputError(f"{path.name}: cannot be read: {getattr(error, 'strerror', None) or error}.") from None
            raise InputError(f"{path.name}: the {kind} file is corrupt or cut off ({error}).") from None


def _only_file(raw: IO[bytes]) -> IO[bytes]:
    archive = zipfile.ZipFile(raw)
    files = [info for info in archive.infolist() if not info.is_dir() and not info.filename.startswith("__MACOSX")]
    if len(files) != 1:
        raise InputError(
            f"the zip archive holds {len(files)} files ({show(info.filename for info in files)}); one table is needed."
        )
    return archive.open(files[0])
