"""The folder of a store: its manifest, the one process that may write, and parts that are there or not.

``run.cube/manifest.json`` names the parts with their sizes and SHA-256 hashes; ``part-000001.nc`` and so on are netCDF
files. A part is written under a temporary name, renamed, and only then named in the manifest, which is itself replaced
in one step: a job that dies leaves the store as it was before or after, and what it left behind is never read and
removed by the next writer.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from cvstats._check import InputError, show

from ._gate import check_input, node, opened
from ._output import put, removed_on_failure, synchronise

try:
    import fcntl
except ImportError:  # Windows: nobody waits
    fcntl = None  # type: ignore[assignment]

MANIFEST, LOCK, VERSION = "manifest.json", ".lock", 1
PART = re.compile(r"part-([0-9]{6,12})\.nc")
LARGEST = 2**26  # bytes of a manifest
HASH = re.compile(r"[0-9a-f]{64}")
OURS = re.compile(rf"{PART.pattern}|\.[\w.-]+\.tmp|\{LOCK}")  # what a writer may leave in a folder


@dataclass(frozen=True)
class Entry:
    """What the manifest says of a part."""

    file: str
    bytes: int
    sha256: str


def read_manifest(folder: Path) -> list[Entry]:
    """Return the entries of the parts in the order of writing."""
    with opened(folder / MANIFEST, inside=True) as file:
        raw = file.read(LARGEST)  # what is cut off is damaged
    try:
        found = json.loads(raw)
        version, entries = found["cvstats_cube"], [Entry(**entry) for entry in found["parts"]]
        right = 0 < len(entries) == len({entry.file for entry in entries})
        right &= all(PART.fullmatch(entry.file) and HASH.fullmatch(entry.sha256) for entry in entries)
        right &= all(type(entry.bytes) is int for entry in entries)
    except (ValueError, KeyError, TypeError, RecursionError):
        version, right = VERSION, False
    if version != VERSION:
        raise InputError(f"{folder.name}: the store has version {show([version])}; this cvstats knows {VERSION}.")
    if not right:
        raise InputError(f"{folder.name}: {MANIFEST} is damaged.")
    return entries


def check_store(path: Path) -> Path:
    """Return the real path of a store; raise when something else is there."""
    folder = path.resolve()
    kind, names = node(folder), []
    if kind == "a folder":
        with suppress(FileNotFoundError):  # removed by a writer that failed
            names = os.listdir(folder)
    if MANIFEST in names:
        read_manifest(folder)
    elif kind not in ("a folder", "nothing") or not all(OURS.fullmatch(name) for name in names):
        raise InputError(f"{str(path)!r} exists and is not a cube store; choose another name.")
    return folder


def check_part(folder: Path, entry: Entry) -> str:
    """Return a part's name for people; raise when it is not there or not as long as it was."""
    path, name = folder / entry.file, f"{folder.name}/{entry.file}"
    if node(path, follow=False) == "nothing":
        raise InputError(f"{name} is missing, and with it predictions that were stored.")
    check_input(path, inside=True)
    if path.stat().st_size != entry.bytes:
        raise InputError(f"{name} is damaged: it has {path.stat().st_size:,} bytes instead of {entry.bytes:,}.")
    return name


def write_part(folder: Path, others: Sequence[Entry], raw: bytes) -> Entry:
    """Write a part that nobody knows of yet, under the next number."""
    number = 1 + max((int(PART.fullmatch(entry.file)[1]) for entry in others), default=0)  # type: ignore[index]
    entry = Entry(f"part-{number:06d}.nc", len(raw), hashlib.sha256(raw).hexdigest())
    _write(folder / entry.file, raw)
    return entry


def write_manifest(folder: Path, entries: Sequence[Entry]) -> None:
    synchronise(folder)  # the parts have their names before the manifest names them
    content = {"cvstats_cube": VERSION, "parts": [asdict(entry) for entry in entries]}
    _write(folder / MANIFEST, json.dumps(content, indent=1).encode())


def _write(path: Path, raw: bytes) -> None:
    temporary = path.parent / f".{path.name}.tmp"
    with removed_on_failure(temporary, f"{path.parent.name}"):
        temporary.write_bytes(raw)
        put(temporary, path)


@contextmanager
def writing(folder: Path) -> Iterator[list[Entry]]:
    """Yield what a store holds to the one process that may write now; afterwards remove what its manifest lacks.

    A folder that holds no store then is removed too. Where the system cannot lock files nobody waits.
    """
    while (lock := _lock(folder)) is None:
        pass
    with lock:
        try:
            yield _clear(folder)
        finally:
            if not _clear(folder):
                with suppress(OSError):
                    (folder / LOCK).unlink()
                    folder.rmdir()


def _clear(folder: Path) -> list[Entry]:
    """Remove what a writer that died or failed has left, all of it if it was the first; return what is stored."""
    stored = read_manifest(folder) if (folder / MANIFEST).exists() else []
    named = {entry.file for entry in stored}
    for name in os.listdir(folder):
        if OURS.fullmatch(name) and name not in named and name != LOCK:
            (folder / name).unlink(missing_ok=True)
    return stored


def _lock(folder: Path) -> IO[str] | None:
    """Return the locked file; None if another process has removed it meanwhile."""
    folder.mkdir(exist_ok=True)
    if node(folder / LOCK, follow=False) != "nothing":
        check_input(folder / LOCK, inside=True)
    try:
        file = (folder / LOCK).open("a")
    except FileNotFoundError:
        return None
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX)
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(file.fileno()), os.stat(folder / LOCK)):
            return file
    file.close()
    return None
