"""What the kernel says of a process: the files of /proc that tell about memory, read without ever failing.

Elsewhere than on Linux, psutil gives what it can and the rest is None. A process may end between two reads, and the
files of other users' may be closed to us: what cannot be read is None too, never zero.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass

from ringfence.limits.tree import Tree, field

LINUX = sys.platform == "linux"
_TREE = Tree()
_AREA = re.compile(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \d+ *(.*)")


@dataclass(frozen=True, slots=True)
class Split:
    """Resident memory of one process by what it is; the same page counts in each process that maps it."""

    resident: int | None = None
    anonymous: int | None = None
    """Heap, stacks, private copies of pages: gone only when freed."""
    file: int | None = None
    """Pages of mapped files, programs and libraries among them: the kernel drops the clean ones when it needs room."""
    shared: int | None = None
    """Shared memory without a file, such as a ring in RAM."""
    swap: int | None = None


@dataclass(frozen=True, slots=True)
class Shares:
    """Memory of one process in which a page counts in parts, one for each process that maps it."""

    pss: int | None = None
    """All of it: summed over processes, nothing counts twice."""
    uss: int | None = None
    """Pages that this process alone maps: what its end would free."""
    anonymous: int | None = None
    """The part of `pss` that is anonymous."""
    shared: int | None = None
    """The part of `pss` that is shared memory without a file."""
    swap: int | None = None

    @property
    def held(self) -> int | None:
        """Bytes that only this process's doing can free: no pages of files, but those in swap."""
        if self.anonymous is None or self.shared is None:
            return self.pss
        return self.anonymous + self.shared + (self.swap or 0)


def split(pid: int | None = None) -> Split:
    """Read the resident memory of a process, of this one unless given. Takes some 60 µs, however large it is."""
    text = _TREE.read(f"/proc/{pid or 'self'}/status")
    if not text and not LINUX:
        return Split(resident=_elsewhere(pid))
    return Split(
        resident=field(text, "VmRSS"),
        anonymous=field(text, "RssAnon"),
        file=field(text, "RssFile"),
        shared=field(text, "RssShmem"),
        swap=field(text, "VmSwap"),
    )


def shares(pid: int | None = None) -> Shares:
    """Read what a process maps in shares, of this one unless given.

    The kernel walks every page for it: 0.9 ms for an interpreter with NumPy, 20 ms with one GiB more in small pages.
    """
    text = _TREE.read(f"/proc/{pid or 'self'}/smaps_rollup")
    clean, dirty = field(text, "Private_Clean"), field(text, "Private_Dirty")
    return Shares(
        pss=field(text, "Pss"),
        uss=None if clean is None or dirty is None else clean + dirty,
        anonymous=field(text, "Pss_Anon"),
        shared=field(text, "Pss_Shmem"),
        swap=field(text, "SwapPss"),
    )


def below(pid: int | None = None) -> list[int]:
    """List the processes below one, children first and theirs after, below this one unless given."""
    root = pid or os.getpid()
    if not LINUX:
        return _elsewhere_below(root)
    found, todo = [], [root]
    while todo:
        fresh = _children(todo.pop(0))
        found += fresh
        todo += fresh
    return found


def command(pid: int) -> str:
    """Give the command line of a process, shortened; empty where it is gone."""
    return _TREE.read(f"/proc/{pid}/cmdline").replace("\0", " ").strip()[:120]


def born(pid: int) -> int | None:
    """Give the clock tick at which a process started; None where it is gone or a zombie.

    With its number that names a process for good: numbers alone are given out again.
    """
    _, _, rest = _TREE.read(f"/proc/{pid}/stat").rpartition(")")
    fields = rest.split()
    if len(fields) > 19:
        return None if fields[0] in "ZX" else int(fields[19])
    return None if LINUX else _elsewhere_born(pid)


def mapped(pid: int | None = None) -> dict[str, int] | None:
    """Give the resident bytes of each mapped file or named area ("[heap]", "/dev/zero (deleted)"), "" for the rest.

    Takes some milliseconds: the kernel writes a page of text for each dozen of areas.
    """
    text = _TREE.read(f"/proc/{pid or 'self'}/smaps")
    if not text:
        return None
    sizes: dict[str, int] = {}
    name = ""
    for line in text.split("\n"):
        if line.startswith("Rss:"):
            sizes[name] = sizes.get(name, 0) + int(line.split()[1]) * 1024
        elif head := _AREA.fullmatch(line):
            name = head[1]
    return sizes


def _children(pid: int) -> list[int]:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  # read often: no path objects
    except OSError:
        return []
    return [int(child) for task in tasks for child in _TREE.read(f"/proc/{pid}/task/{task}/children").split()]


def _elsewhere(pid: int | None) -> int | None:
    import psutil

    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None


def _elsewhere_born(pid: int) -> int | None:
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else int(process.create_time() * 100)
    except psutil.Error:
        return None


def _elsewhere_below(pid: int) -> list[int]:
    import psutil

    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []
