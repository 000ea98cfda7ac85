"""Arrays as ``.npy`` files that any NumPy reads, written and read a block at a time.

The header is written here, and on reading has to be, byte for byte, the one that is expected: nothing that stands in a
file is interpreted. Checksums are CRC-32 (zlib) over the whole file as it lies on the disk.
"""

from __future__ import annotations

import io
import mmap
import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.checkpoint.system import BINARY, NO_LINK, Output, System
from ringfence.checkpoint.tree import nbytes_of
from ringfence.errors import CheckpointError

PIECE = 1 << 20  # bytes read or written at once
ALIGN = 64  # of the data, as NumPy itself does
Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a save, as the manifest lists it."""

    name: str
    nbytes: int
    """Of the file on the disk."""
    crc32: int

    @property
    def compressed(self) -> bool:
        """Whether the file is a zstandard stream."""
        return self.name.endswith(".zst")


def header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Give the bytes that stand before an array's data."""
    descr = dtype.descr if dtype.names else dtype.str
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    version, encoding = ((1, 0), "latin1") if text.isascii() else ((3, 0), "utf8")
    data = text.encode(encoding)
    if version == (1, 0) and len(data) + ALIGN >= 1 << 16:
        version = (2, 0)
    width = 2 if version == (1, 0) else 4
    start = 8 + width
    padded = data + b" " * (-(start + len(data) + 1) % ALIGN) + b"\n"
    return b"\x93NUMPY" + bytes(version) + len(padded).to_bytes(width, "little") + padded


def write(system: System, path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], blocks: Iterable[Array]) -> Entry:
    """Write an array of which blocks along the first axis come one by one; a name with ``.zst`` is compressed."""
    output = Output(system, path)
    try:
        crc = 0
        for data in _squeezed(path, _pieces(dtype, shape, blocks)):
            crc = zlib.crc32(data, crc)
            output.write(data)
        output.finish()
    finally:
        output.abandon()
    return Entry(path.name, output.nbytes, crc)


def _pieces(dtype: np.dtype[Any], shape: tuple[int, ...], blocks: Iterable[Array]) -> Iterator[bytes | memoryview]:
    yield header(dtype, shape)
    rows = 0
    for block in blocks:
        assert block.dtype == dtype
        rows += len(block) if shape else 1
        if block.nbytes:
            yield np.ascontiguousarray(block).reshape(-1).view(np.uint8).data
    assert rows == (shape[0] if shape else 1)


def _squeezed(path: Path, pieces: Iterator[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    if path.suffix != ".zst":
        yield from pieces
        return
    import zstandard

    stream = zstandard.ZstdCompressor(level=1).compressobj()
    for piece in pieces:
        data = stream.compress(piece)
        if data:
            yield data
    yield stream.flush()


def read(folder: Path, entry: Entry, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Iterator[Array]:
    """Read an array in blocks of at most a megabyte, or of one row. The checksum is known after the last one.

    Raises:
        CheckpointError: The file is missing, damaged, or holds another array.
    """
    row = nbytes_of(dtype, shape[1:])
    expected = header(dtype, shape)
    with opened(folder, entry) as file:
        checked = _Checked(entry, file)
        source = _Bytes(entry, checked)
        if source.take(len(expected)) != expected:
            raise CheckpointError(f"{entry.name}: expected {shape} of {dtype}, got something else")
        rows, most = shape[0] if shape else 1, max(1, PIECE // max(row, 1))
        for start in range(0, rows, most) if row else ():
            count = min(most, rows - start)
            data = source.take(count * row)
            yield np.frombuffer(data, dtype).reshape(count, *shape[1:])
        source.end()
        checked.end()


def whole(folder: Path, entry: Entry, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Read an array at once, after checking that the file is large enough to be it.

    Raises:
        CheckpointError: The file is missing, damaged, or holds another array.
    """
    if not entry.compressed and entry.nbytes != len(header(dtype, shape)) + nbytes_of(dtype, shape):
        raise CheckpointError(f"{entry.name}: a file of {entry.nbytes} bytes does not hold {shape} of {dtype}")
    blocks = list(read(folder, entry, dtype, shape))
    return np.concatenate(blocks).reshape(shape) if blocks else np.zeros(shape, dtype)


def mapped(folder: Path, entry: Entry, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Map an array's file, read only. Its checksum is not looked at, which would read all of it.

    Raises:
        CheckpointError: The file is missing, or holds another array.
    """
    expected = header(dtype, shape)
    with opened(folder, entry) as file:
        fits = entry.nbytes == len(expected) + nbytes_of(dtype, shape) and file.read(len(expected)) == expected
        if not fits:
            raise CheckpointError(f"{entry.name}: expected {shape} of {dtype}, got something else")
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return np.ndarray(shape, dtype, data, len(expected))


def verify(folder: Path, entry: Entry) -> None:
    """Read a whole file and compare its checksum.

    Raises:
        CheckpointError: The file is missing or damaged.
    """
    with opened(folder, entry) as file:
        _Checked(entry, file).end()


def opened(folder: Path, entry: Entry) -> io.FileIO:
    """Open a file of a save for reading, if it is a plain file of the size that it should have.

    Raises:
        CheckpointError: It is not.
    """
    file = plain(folder / entry.name)
    size = os.fstat(file.fileno()).st_size
    if size != entry.nbytes:
        file.close()
        raise CheckpointError(f"{entry.name}: expected {entry.nbytes} bytes, got {size}")
    return file


def plain(path: Path) -> io.FileIO:
    """Open a file for reading, if it is a plain one: no link, no pipe that would be waited for.

    Raises:
        CheckpointError: It is not, or cannot be opened.
    """
    try:
        regular = stat.S_ISREG(os.lstat(path).st_mode)
        file = io.FileIO(os.open(path, os.O_RDONLY | NO_LINK | BINARY)) if regular else None
    except OSError as error:
        raise CheckpointError(error.errno, f"{path.name}: cannot be read: {error.strerror}") from error
    if file is None:
        raise CheckpointError(f"{path.name}: is no plain file")
    return file


class _Checked:
    """The bytes of a file, and its checksum."""

    def __init__(self, entry: Entry, file: io.FileIO) -> None:
        self._entry, self._file, self._crc, self._done = entry, file, 0, 0

    def read(self, count: int = PIECE) -> bytes:
        """Give at most so many bytes; none at the end."""
        try:
            data = self._file.read(min(count, PIECE))
        except OSError as error:
            raise CheckpointError(error.errno, f"{self._entry.name}: cannot be read: {error.strerror}") from error
        self._crc, self._done = zlib.crc32(data, self._crc), self._done + len(data)
        return data

    def end(self) -> None:
        """Read what is left, and compare the checksum."""
        while self.read():
            pass
        if self._crc != self._entry.crc32 or self._done != self._entry.nbytes:
            raise CheckpointError(f"{self._entry.name}: is damaged: its checksum is {self._crc:08x}")


class _Bytes:
    """The bytes of an array's file, decompressed where need be, never more at once than asked for."""

    def __init__(self, entry: Entry, checked: _Checked) -> None:
        self._name = entry.name
        self._stream: Any = checked
        self._errors: tuple[type[Exception], ...] = ()
        if entry.compressed:
            import zstandard

            # our own streams need half a megabyte of history; a hostile one does not get more
            source: Any = checked  # has the read() that is needed
            self._stream = zstandard.ZstdDecompressor(max_window_size=1 << 21).stream_reader(source, 1 << 16)
            self._errors = (zstandard.ZstdError,)

    def take(self, count: int) -> bytes:
        """Give so many bytes."""
        parts, missing = [], count
        while missing:
            parts.append(self._read(missing))
            missing -= len(parts[-1])
            if not parts[-1]:
                raise CheckpointError(f"{self._name}: is damaged: it ends too early")
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def end(self) -> None:
        """Refuse what stands behind the array."""
        if self._read(1):
            raise CheckpointError(f"{self._name}: is damaged: it goes on behind its end")

    def _read(self, count: int) -> bytes:
        try:
            data: bytes = self._stream.read(count)
        except self._errors as error:
            raise CheckpointError(f"{self._name}: is damaged: {error}") from error
        return data
