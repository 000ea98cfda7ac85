"""Every call by which a save changes a disk, in one place, so that each can be made to fail in a test."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

NO_LINK = getattr(os, "O_NOFOLLOW", 0)
BINARY = getattr(os, "O_BINARY", 0)  # Windows would turn line ends


class System:
    """The operating system, as far as a save needs it."""

    def create(self, path: Path) -> int:
        """Make a new file and open it for writing; give the descriptor."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK | BINARY, 0o644)

    def write(self, file: int, data: memoryview) -> int:
        """Write some of the data; give how much."""
        return os.write(file, data)

    def sync(self, file: int) -> None:
        """Wait until what was written is on the disk."""
        os.fsync(file)

    def close(self, file: int) -> None:
        """Close a file."""
        os.close(file)

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name, and replace what has that name, at one instant."""
        old.replace(new)

    def remove(self, path: Path) -> None:
        """Remove a file."""
        path.unlink()

    def sync_directory(self, path: Path) -> None:
        """Wait until the names in a directory are on the disk, where the platform can."""
        if os.name == "nt":
            return
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


SYSTEM = System()


class Output:
    """A new file that is written from begin to end, and is on the disk once it is finished."""

    def __init__(self, system: System, path: Path) -> None:
        self._system, self._file = system, system.create(path)
        self.nbytes = 0

    def write(self, data: bytes | memoryview) -> None:
        """Write all of it, however little the system takes at once."""
        left = memoryview(data)
        self.nbytes += len(left)
        while left:
            left = left[self._system.write(self._file, left) :]

    def finish(self) -> None:
        """Bring it to the disk, and close it."""
        self._system.sync(self._file)
        self._close()

    def abandon(self) -> None:
        """Close it, whatever state it is in."""
        with contextlib.suppress(OSError):
            self._close()

    def _close(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            self._system.close(file)
