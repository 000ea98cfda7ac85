"""Which bytes of an address range lie in memory: what a lazily allocated array has cost so far."""

from __future__ import annotations

import mmap
import os

import numpy as np

ENTRY = 8  # bytes in /proc/self/pagemap for each page
PRESENT = np.uint64(1 << 63)
PATH = "/proc/self/pagemap"


def resident(address: int, nbytes: int) -> int | None:
    """Count the bytes of a range whose pages are present; None where the system does not tell."""
    first, last = address // mmap.PAGESIZE, -(-(address + nbytes) // mmap.PAGESIZE)
    try:
        with open(PATH, "rb", buffering=0) as file:  # noqa: PTH123  # a path object would be made at each look
            entries = np.frombuffer(os.pread(file.fileno(), (last - first) * ENTRY, first * ENTRY), np.uint64)
    except OSError:
        return None
    if len(entries) < last - first:
        return None
    return min(nbytes, int(np.count_nonzero(entries & PRESENT)) * mmap.PAGESIZE)
