"""The processes below the script's: what each has to itself, what it is for, and what it told of itself."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable
from typing import Any

from ringfence.guard.doctor import reading
from ringfence.guard.doctor.evidence import Holder

SELDOM = 10  # samples between two readings of the children: each takes a millisecond and more


class Family:
    """Measure the children."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._files = reading.mapped_files()
        self._last = 0
        self._ticks = 0

    def read(self) -> dict[int, tuple[int, int]]:
        """Give the resident and the private bytes of each child."""
        found = {pid: reading.process(pid) for pid in reading.below(self._pid)}
        return {pid: sizes for pid, sizes in found.items() if sizes is not None}

    def private(self) -> int:
        """Give the private bytes of all children, as they were a second ago at most."""
        if self._ticks % SELDOM == 0:
            self._last = sum(private for _, private in self.read().values())
        self._ticks += 1
        return self._last

    def files(self) -> dict[str, tuple[int, int]]:
        """Give the resident bytes of mapped files, at the beginning and now."""
        now = reading.mapped_files()
        return {name: (self._files.get(name, 0), size) for name, size in now.items() if size > self._files.get(name, 0)}

    def name(self, pid: int) -> str:
        """Name a child: as multiprocessing knows it, or by its command line."""
        processes = sys.modules.get("multiprocessing.process")
        for child in list(getattr(processes, "_children", ())):
            if child.pid == pid:
                return str(child.name)
        return reading.command(pid)

    def loaders(self, things: Iterable[Any]) -> set[int]:
        """Find the processes that work for a DataLoader of torch."""
        loader = getattr(sys.modules.get("torch.utils.data.dataloader"), "_MultiProcessingDataLoaderIter", None)
        if loader is None:
            return set()
        return {
            worker.pid
            for thing in (*things, *gc.get_objects())
            if type(thing) is loader
            for worker in getattr(thing, "_workers", ())
        }

    def told(self, _pid: int) -> tuple[Holder, ...]:
        """Give what a child found growing in itself."""
        return ()
