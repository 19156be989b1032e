"""netCDF files by way of the HDF5 library, which neither damage nor a full disk may bring down."""

from __future__ import annotations

import io
import mmap
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from cvstats._check import InputError

from ._guards import LARGE, RATIO
from ._optional import needed

Block = tuple[tuple[slice, ...], np.ndarray]


@contextmanager
def open_hdf(path: Path) -> Iterator[xr.Dataset]:
    """Open a netCDF file, and close it whatever happens.

    Read through a file object of our own: a path that an error has left open is the same file to the HDF5 library
    when it is opened again, whatever is there by now, and it may run in circles.
    """
    h5py, h5netcdf = needed("h5py", "netCDF files", "io"), needed("h5netcdf", "netCDF files", "io")
    with path.open("rb") as raw:
        start = raw.read(8)
        if not start:
            raise InputError(f"{path.name}: the file is empty.")
        if not start.startswith(b"\x89HDF"):
            raise InputError(
                f"{path.name}: this is not a netCDF-4 file (.nc) or Zarr store (.zarr). "
                "For tables of predictions use read_predictions()."
            )
        raw.seek(0)
        with mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ) as image, ExitStack() as stack:
            if _endless(image):
                raise InputError(f"{path.name}: the file is corrupt (its texts do not follow each other).")
            file = stack.enter_context(h5py.File(raw, "r"))
            dict(file.attrs)  # what fails here fails in h5netcdf as well, with a traceback on the terminal
            opened = stack.enter_context(h5netcdf.File(raw, "r", decode_vlen_strings=True))
            if _too_long([file[name] for name in opened.variables], image):
                raise InputError(f"{path.name}: the file is corrupt (its texts are longer than the file).")
            yield stack.enter_context(xr.open_dataset(xr.backends.H5NetCDFStore(opened)))


def _too_long(arrays: list[Any], image: Any) -> bool:
    """Return whether texts are said to be longer than the file, or together than it could hold.

    The HDF5 library makes room for each as it is told, up to 4 GB.
    """
    for data in arrays:
        offset = data.id.get_offset() if data.dtype.kind == "O" and data.size else None
        if offset is not None:
            width = data.id.get_storage_size() // data.size  # length, place and number of each text
            entries = np.frombuffer(image[offset : offset + data.size * width], np.uint8).reshape(-1, width)
            lengths = np.ascontiguousarray(entries[:, :4]).view("<u4").astype(np.int64)
            if lengths.max() > len(image) or lengths.sum() > max(LARGE, RATIO * len(image)):
                return True
    return False


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


def write_hdf(
    dataset: xr.Dataset, path: Path, encoding: Mapping[str, Any], name: str = "", blocks: Iterable[Block] = ()
) -> None:
    """Write a new netCDF file; the variable `name`, if it is on dask, from its `blocks`.

    A thread does it, as interruptions come to the main thread: an exception in the middle of a write would reach the
    HDF5 library as a failure of the disk.
    """
    h5netcdf = needed("h5netcdf", "netCDF files", "io")
    with Enduring(path) as raw, ThreadPoolExecutor(1) as thread:
        made = thread.submit(h5netcdf.File, raw, "w")
        try:
            file = made.result()
            store = xr.backends.H5NetCDFStore(file)
            thread.submit(dataset.dump_to_store, store, encoding=encoding).result()  # leaves out what is on dask
            raw.check()
            for where, values in blocks:
                thread.submit(file[name].__setitem__, where, values).result()
                raw.check()
        finally:
            thread.submit(_close, made).result()
        raw.check()


def _close(made: Future[Any]) -> None:
    if made.exception() is None:
        made.result().close()


class Enduring(io.RawIOBase):
    """A new file that takes whatever it is given: what the disk refuses stays in memory, and `error` says why.

    The HDF5 library does not survive a write that fails, not even to close the file.
    """

    def __init__(self, path: Path) -> None:
        self.error: Exception | None = None
        self._disk = path.open("x+b", buffering=0)
        self._refused: list[tuple[int, bytes]] = []
        self._place = self._size = 0

    def check(self) -> None:
        """Raise what the disk has said, if it refused something."""
        if self.error is not None:
            raise self.error

    def write(self, data: Any) -> int:
        """Write all of it, to the disk or to memory."""
        view = memoryview(data).cast("B")
        if self.error is None:
            try:
                self._disk.seek(self._place)
                done = 0
                while done < len(view):
                    done += self._disk.write(view[done:])
            except Exception as error:
                self.error = error
        if self.error is not None:
            self._refused.append((self._place, bytes(view)))
        self._place += len(view)
        self._size = max(self._size, self._place)
        return len(view)

    def readinto(self, buffer: Any) -> int:
        """Read what was written, wherever it is; what never was is zero."""
        view = memoryview(buffer).cast("B")
        view[:] = bytes(len(view))
        begin, end, done = self._place, self._place + len(view), 0
        if not self._disk.closed:
            self._disk.seek(begin)
            while done < len(view) and (count := self._disk.readinto(view[done:])):
                done += count
        for place, piece in self._refused:
            first, last = max(begin, place), min(end, place + len(piece))
            if first < last:
                view[first - begin : last - begin] = piece[first - place : last - place]
        self._place = end
        return len(view)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        return self._place

    def tell(self) -> int:
        """Return the place."""
        return self._place

    def truncate(self, size: int | None = None) -> int:
        """Make the file as long as asked."""
        self._size = self._place if size is None else size
        if self.error is None:
            try:
                self._disk.truncate(self._size)
            except Exception as error:
                self.error = error
        return self._size

    def flush(self) -> None:
        """Do nothing, as nothing waits in a buffer."""

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def writable(self) -> bool:
        """Return that it can be written."""
        return True

    def seekable(self) -> bool:
        """Return that it can be read anywhere."""
        return True

    def close(self) -> None:
        """Close the file on the disk."""
        self._disk.close()
        super().close()
