"""Files that simulusion writes: ring buffers as ``replay.npz``, episodes of PlaNet as ``episode_000000.npz``.

Nothing in them is run or unpickled, and each array's size is checked against the file before memory is taken for it.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from os import PathLike, fspath
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ringfence.errors import CheckpointError

Array = NDArray[Any]
BLOCK = 1 << 20  # bytes read at once, or one row
RATIO = 1040  # deflate makes at most 1032 bytes of one; a file that claims more is not sound
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, SyntaxError)
READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class Entry(NamedTuple):
    """One array of a file."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Archive:
    """Read the arrays of an ``.npz`` file a few rows at a time."""

    def __init__(self, path: str | PathLike[str]) -> None:
        """Open a file.

        Raises:
            CheckpointError: It is missing, or no zip file.
        """
        self.path = fspath(path)
        try:
            self._file = zipfile.ZipFile(self.path)
        except OSError as error:
            raise CheckpointError(error.errno, f"{self.path}: cannot be read: {error.strerror}") from error
        except DAMAGED as error:
            raise CheckpointError(f"{self.path}: is no .npz file: {error}") from error

    def close(self) -> None:
        """Let the file go."""
        self._file.close()

    def holds(self, name: str) -> bool:
        """Tell whether there is an array of this name."""
        return f"{name}.npy" in self._file.namelist()

    def entry(self, name: str, kinds: str, ndim: int | None = None) -> Entry:
        """Give shape and dtype of an array.

        Args:
            name: Of the array.
            kinds: Dtypes that it may have, such as ``"f4 f8"``.
            ndim: Axes that it must have.

        Raises:
            CheckpointError: It is missing or damaged, has another dtype or number of axes, or is not as large as it
                says.
        """
        if not self.holds(name):
            raise self.refuse(name, f"is missing; the file has {', '.join(self._file.namelist())[:200] or 'nothing'}")
        with self._open(name) as stream:
            entry, start = self._header(name, stream)
        known = {np.dtype(kind) for kind in kinds.split()}
        if entry.dtype not in known:
            raise self.refuse(name, f"expected {' or '.join(sorted(map(str, known)))}, got {entry.dtype}")
        if ndim is not None and len(entry.shape) != ndim:
            raise self.refuse(name, f"expected {ndim} axes, got shape {entry.shape}")
        info = self._file.getinfo(f"{name}.npy")
        nbytes = math.prod(entry.shape) * entry.dtype.itemsize
        if info.file_size != start + nbytes or info.file_size > RATIO * (info.compress_size + 1):
            raise self.refuse(name, f"{entry.shape} of {entry.dtype} is not what its {info.file_size} bytes hold")
        return entry

    def blocks(self, name: str, entry: Entry) -> Iterator[Array]:
        """Read an array of at least one axis, some rows at a time; the checksum is compared after the last.

        Raises:
            CheckpointError: It is damaged.
        """
        row = math.prod(entry.shape[1:]) * entry.dtype.itemsize
        most = max(1, BLOCK // max(row, 1))
        with self._open(name) as stream:
            self._header(name, stream)
            for start in range(0, entry.shape[0], most):
                rows = min(most, entry.shape[0] - start)
                yield np.frombuffer(self._read(name, stream, rows * row), entry.dtype).reshape(rows, *entry.shape[1:])
            self._read(name, stream, 1, least=0)

    def whole(self, name: str, entry: Entry) -> Array:
        """Read an array at once.

        Raises:
            CheckpointError: It is damaged.
        """
        if not entry.shape:
            raise self.refuse(name, "expected an array with rows, got a single number")
        array, done = np.empty(entry.shape, entry.dtype), 0
        for block in self.blocks(name, entry):
            array[done : done + len(block)] = block
            done += len(block)
        return array

    def refuse(self, name: str, why: str) -> CheckpointError:
        """Give the error for an array."""
        return CheckpointError(f"{self.path}: {name}: {why}")

    def _open(self, name: str) -> IO[bytes]:
        try:
            return self._file.open(f"{name}.npy")
        except (*DAMAGED, OSError) as error:
            raise self.refuse(name, f"is damaged: {error}") from error

    def _read(self, name: str, stream: IO[bytes], count: int, least: int | None = None) -> bytes:
        try:
            data = stream.read(count)
        except (*DAMAGED, OSError) as error:
            raise self.refuse(name, f"is damaged: {error}") from error
        if len(data) != (count if least is None else least):
            raise self.refuse(name, f"is damaged: {len(data)} bytes where {count} were expected")
        return data

    def _header(self, name: str, stream: IO[bytes]) -> tuple[Entry, int]:
        """Read what stands before an array's bytes, and give its length too."""
        try:
            version = npy.read_magic(stream)
            shape, fortran, dtype = READERS[version](stream)
        except (*DAMAGED, OSError, KeyError, TypeError, AttributeError) as error:
            raise self.refuse(name, f"is damaged: {error}") from error
        if dtype.hasobject:
            raise self.refuse(name, "holds Python objects, which are not read")
        if fortran and len(shape) > 1:
            raise self.refuse(name, "lies in Fortran's order; save numpy.ascontiguousarray of it")
        return Entry(shape, dtype), stream.tell()


class Ring:
    """A ring buffer as it was saved: arrays by slot, of which the oldest step is not the first."""

    NAMES = ("observations", "actions", "rewards", "terminals", "terminated")
    """``terminated`` is missing where the buffer was IRIS's."""

    def __init__(self, path: str | PathLike[str]) -> None:
        """Open a file and check all but the steps.

        Raises:
            CheckpointError: It is missing or damaged, or its arrays do not fit each other.
        """
        self._archive = Archive(path)
        try:
            self._check()
        except BaseException:
            self.close()
            raise

    def _check(self) -> None:
        archive = self._archive
        images = archive.entry("observations", "u1")
        if len(images.shape) < 2:
            raise archive.refuse("observations", f"expected steps of images, got shape {images.shape}")
        self._entries = {"observations": images, "actions": archive.entry("actions", "f4", 2)}
        for name in self.NAMES[2:]:
            if name != "terminated" or archive.holds(name):
                self._entries[name] = archive.entry(name, "f4", 1)
        self.held = images.shape[0]
        """How many steps it holds."""
        self.obs_shape, self.action_size = images.shape[1:], self._entries["actions"].shape[1]
        for name, entry in self._entries.items():
            if entry.shape[0] != self.held:
                raise archive.refuse(name, f"holds {entry.shape[0]} steps, and observations {self.held}")
        if not self.held:
            raise archive.refuse("observations", "holds no steps")
        state = archive.entry("state", "i4 i8", 1)
        if state.shape != (4,):
            raise archive.refuse("state", f"expected idx, full, steps and episodes, got shape {state.shape}")
        self.slot, full, self.steps, self.episodes = archive.whole("state", state).tolist()
        sound = 0 <= self.slot < self.held if full else self.slot == self.held
        if not sound or full not in (0, 1) or self.steps < self.held or self.episodes < 0:
            told = [self.slot, full, self.steps, self.episodes]
            raise archive.refuse("state", f"idx, full, steps, episodes = {told} cannot be of {self.held} steps")

    def close(self) -> None:
        """Let the file go."""
        self._archive.close()

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Give the steps, oldest first: image, action, reward, terminal, and terminated or None.

        Raises:
            CheckpointError: An array is damaged.
        """
        oldest = self.slot % self.held
        # from the oldest to the end, then again from the beginning: only a few rows are in memory at a time
        for first, last in ((oldest, self.held), (0, oldest)):
            if first < last:
                columns = [self._column(name, first, last) for name in self._entries]
                for row in zip(*columns, strict=True):
                    yield row if len(row) == len(self.NAMES) else (*row, None)

    def _column(self, name: str, first: int, last: int) -> Iterator[Any]:
        done = 0
        for block in self._archive.blocks(name, self._entries[name]):
            if done >= last:
                return
            yield from block[max(0, first - done) : last - done]
            done += len(block)


def read_episode(path: str | PathLike[str]) -> tuple[Array, Array, Array, Array]:
    """Read an episode of PlaNet: observations ``x``, actions ``u``, rewards ``r``, terminals ``t``, as they were saved.

    Raises:
        CheckpointError: The file is missing or damaged, or its arrays do not fit each other.
    """
    numbers = "f2 f4 f8 b1 u1 i1 i2 i4 i8"
    with closing(Archive(path)) as archive:
        entries = {name: archive.entry(name, numbers) for name in ("x", "u", "r", "t")}
        steps = entries["u"].shape[:1]
        if not steps or not steps[0]:
            raise archive.refuse("u", f"expected the actions of at least one step, got shape {entries['u'].shape}")
        for name, extra in (("x", 1), ("r", 0), ("t", 0)):
            found = entries[name].shape[:1]
            if found != (steps[0] + extra,):
                raise archive.refuse(name, f"expected {steps[0] + extra} rows beside {steps[0]} actions, got {found}")
        x, u, r, t = (archive.whole(name, entry) for name, entry in entries.items())
    return x, u, r, t
