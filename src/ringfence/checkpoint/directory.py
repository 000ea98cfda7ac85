"""A directory of saves: what is in it, and how the next one comes to be in it whole or not at all."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.checkpoint import manifest, npy
from ringfence.checkpoint.manifest import LARGEST, NAME, Manifest
from ringfence.checkpoint.npy import Entry
from ringfence.checkpoint.system import NO_LINK, SYSTEM, Output, System
from ringfence.errors import CheckpointError

log = logging.getLogger("ringfence")
SAVE = re.compile(r"save-(\d{8})\.json")
HALF = ".half"  # behind the name of a manifest that is being written
LOCK = "lock"
RACES = 10  # savers that may replace a save between listing and reading it
Array = NDArray[Any]


class Directory:
    """Saves in a directory, each a manifest and the files that it names; files are shared by saves.

    A save counts from the instant at which its manifest gets its name. Whatever goes wrong before, the saves that were
    there are untouched, and the next one clears up.
    """

    def __init__(self, path: str | os.PathLike[str], system: System | None = None) -> None:
        self.path, self._system = Path(path), SYSTEM if system is None else system

    # -- reading

    def saves(self) -> list[int]:
        """Give the numbers of the saves that are there, oldest first.

        Raises:
            CheckpointError: The directory cannot be read.
        """
        found = [SAVE.fullmatch(name) for name in self.names()]
        return sorted(int(match[1]) for match in found if match)

    def read(self, number: int | None = None) -> Manifest:
        """Read the manifest of a save, the newest unless told, and look whether its files are there.

        Raises:
            CheckpointError: There is none, or it is damaged, or a file is missing or has another size.
        """
        for _ in range(RACES):
            there = self.saves()
            if not there:
                raise CheckpointError(f"{self.path}: holds no save")
            if number is not None and number not in there:
                raise CheckpointError(f"{self.path}: holds no save {number}; there are {_listed(there)}")
            chosen = there[-1] if number is None else number
            try:
                return self._read(chosen)
            except CheckpointError as error:
                if number is None and self.saves()[-1:] != [chosen]:
                    continue  # a saver replaced it meanwhile
                others = [other for other in there if other != chosen]
                hint = f"; saves {_listed(others)} are there too" if others else ""
                raise CheckpointError(error.errno, f"{self.path}: save {chosen}: {_text(error)}{hint}") from error
        raise CheckpointError(f"{self.path}: was saved to {RACES} times while it was being read")

    def _read(self, number: int) -> Manifest:
        data = self._bytes(_manifest_name(number))
        found = manifest.of_bytes(data, number)
        for entry in found.files.values():
            npy.opened(self.path, entry).close()
        return found

    def _bytes(self, name: str) -> bytes:
        path = self.path / name
        with npy.plain(path) as file:
            if os.fstat(file.fileno()).st_size > LARGEST:
                raise CheckpointError(f"{name}: is larger than {LARGEST} bytes")
            return file.readall()

    def blocks(self, entry: Entry, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Iterator[Array]:
        """Read an array a block at a time; see :func:`ringfence.checkpoint.npy.read`."""
        return npy.read(self.path, entry, dtype, shape)

    def whole(self, entry: Entry, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """Read an array at once."""
        return npy.whole(self.path, entry, dtype, shape)

    def mapped(self, entry: Entry, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """Map an array's file, read only; see :func:`ringfence.checkpoint.npy.mapped`."""
        return npy.mapped(self.path, entry, dtype, shape)

    def verify(self, entry: Entry) -> None:
        """Compare a file's checksum; CheckpointError if it is another."""
        npy.verify(self.path, entry)

    def names(self) -> list[str]:
        """List what is in the directory, ours or not; CheckpointError if it cannot be read."""
        try:
            return [path.name for path in self.path.iterdir()]
        except OSError as error:
            raise CheckpointError(error.errno, f"{self.path}: cannot be read: {error.strerror}") from error

    # -- writing

    @contextlib.contextmanager
    def draft(self, *, compress: bool = False) -> Iterator[Draft]:
        """Begin a save; unless it is committed within the block, nothing of it stays.

        Raises:
            CheckpointError: The directory holds something else, another process is saving to it, or the disk refuses
                what is written. The saves that were there are untouched.
        """
        self._make()
        with self._locked():
            draft = Draft(self, self._system, compress=compress)
            try:
                yield draft
            except OSError as error:
                draft.abandon()
                if isinstance(error, CheckpointError):
                    raise
                raise self._failed(error) from error
            except BaseException:
                draft.abandon()
                raise
            draft.abandon()

    def _failed(self, error: OSError) -> CheckpointError:
        advice = "make room, or save elsewhere" if error.errno in FULL else "the saves before it are untouched"
        return CheckpointError(error.errno, f"{self.path}: cannot save: {error.strerror or error}; {advice}")

    def _make(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(error.errno, f"{self.path}: cannot be made: {error.strerror}") from error
        foreign = [name for name in self.names() if not _is_ours(name)]
        if foreign:
            raise CheckpointError(
                f"{self.path}: holds {min(foreign)!r}, which is no part of a checkpoint; save to a directory of its own"
            )

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other savers out, where the platform has file locks."""
        try:
            import fcntl
        except ImportError:
            yield
            return
        try:
            file = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | NO_LINK, 0o644)
        except OSError as error:
            raise self._failed(error) from error
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise CheckpointError(
                    error.errno, f"{self.path}: is being saved to by another process, or another replay of this one"
                ) from error
            except OSError as error:  # a file system that has no locks
                log.warning("%s: cannot be locked (%s); let nobody else save here", self.path, error.strerror)
            yield
        finally:
            os.close(file)


class Draft:
    """A save that is being written."""

    def __init__(self, directory: Directory, system: System, *, compress: bool) -> None:
        self._directory, self._system, self._compress = directory, system, compress
        there = directory.saves()
        self.number = there[-1] + 1 if there else 1
        self._entries: dict[str, Entry] = {}
        self._written: list[Path] = []

    def array(self, label: str, dtype: np.dtype[Any], shape: tuple[int, ...], blocks: Iterable[Array]) -> str:
        """Write an array whose blocks come one by one; give the name of its file."""
        suffix = ".npy.zst" if self._compress else ".npy"
        name = f"{self.number:08d}-{len(self._entries):04d}-{label}{suffix}"
        assert NAME.fullmatch(name)
        self._clear(name)
        self._written.append(self._directory.path / name)
        self._entries[name] = npy.write(self._system, self._directory.path / name, dtype, shape, blocks)
        return name

    def commit(self, body: dict[str, Any], old: Iterable[Entry], library: str, keep: int) -> Manifest:
        """Make this the newest save.

        Args:
            body: What is saved, as JSON holds it.
            old: Files of the save before that are part of this one.
            library: The version of ringfence.
            keep: How many saves to keep, this one included.
        """
        files = {entry.name: entry for entry in old} | self._entries
        data, crc = manifest.to_bytes(body, files, library)
        if len(data) > LARGEST:
            raise CheckpointError(f"a manifest of {len(data)} bytes is more than the {LARGEST} that are read")
        path, name = self._directory.path, _manifest_name(self.number)
        self._clear(name + HALF)
        self._written.append(path / (name + HALF))
        output = Output(self._system, path / (name + HALF))
        try:
            output.write(data)
            output.finish()
        finally:
            output.abandon()
        self._system.sync_directory(path)  # the names of the files, before the name that makes them count
        self._system.rename(path / (name + HALF), path / name)
        self._written = []
        self._after(path, keep)
        return Manifest(self.number, body, files, library, crc)

    def _after(self, path: Path, keep: int) -> None:
        """Bring the new name to the disk, and remove what no save needs: only then, and never at the save's expense."""
        try:
            self._system.sync_directory(path)
            self._clean(keep)
        except OSError as error:
            log.warning("%s: saved, but not cleared up: %s", path, error)

    def _clean(self, keep: int) -> None:
        directory = self._directory
        kept: set[int] = set()
        needed = {LOCK}
        for number in reversed(directory.saves()):
            if len(kept) == keep:
                break
            with contextlib.suppress(CheckpointError):  # a damaged one is of no use to anyone
                needed |= directory._read(number).files.keys()  # noqa: SLF001, a draft is a part of its directory
                needed.add(_manifest_name(number))
                kept.add(number)
        for name in directory.names():
            if name not in needed and _is_ours(name):
                self._system.remove(directory.path / name)

    def _clear(self, name: str) -> None:
        """Remove what a save that came to nothing has left under this name."""
        with contextlib.suppress(FileNotFoundError):
            self._system.remove(self._directory.path / name)

    def abandon(self) -> None:
        """Remove what was written, unless it was committed."""
        if self._written and os.path.lexists(self._directory.path / _manifest_name(self.number)):
            return  # an interrupt came after the manifest had got its name
        for path in self._written:
            with contextlib.suppress(OSError):
                self._system.remove(path)
        self._written = []


def _manifest_name(number: int) -> str:
    return f"save-{number:08d}.json"


def _is_ours(name: str) -> bool:
    return name == LOCK or bool(NAME.fullmatch(name) or SAVE.fullmatch(name.removesuffix(HALF)))


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[-5:]))


def _text(error: CheckpointError) -> str:
    return str(error.strerror or error)


FULL = frozenset({28, 122})
"""ENOSPC and EDQUOT."""
