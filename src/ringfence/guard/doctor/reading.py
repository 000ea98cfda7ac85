"""One reading of the memory of this process and of those below it, from the kernel's own files."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROC = Path("/proc")


class Mallinfo(ctypes.Structure):
    """What glibc's mallinfo2 fills."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    )


def split() -> tuple[int, int, int]:
    """Give the resident bytes of this process: anonymous, of files, shared."""
    try:
        text = (PROC / "self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        import psutil

        return int(psutil.Process().memory_info().rss), 0, 0
    found = {
        name: int(number) * 1024 for name, number in re.findall(r"^Rss(Anon|File|Shmem):\s+(\d+)", text, re.MULTILINE)
    }
    return found.get("Anon", 0), found.get("File", 0), found.get("Shmem", 0)


def heap() -> tuple[int | None, int | None]:
    """Give what malloc has handed out and what it holds; None where the C library does not tell."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError, TypeError):
        return None, None
    mallinfo2.restype = Mallinfo
    info = mallinfo2()
    return info.uordblks + info.hblkhd, info.arena + info.hblkhd


def trim() -> int | None:
    """Have malloc give free pages back; tell how many bytes went, None where the C library cannot."""
    try:
        malloc_trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return None
    before = split()[0]
    malloc_trim(0)
    return max(0, before - split()[0])


def below(pid: int | None = None) -> list[int]:
    """List the processes below one, this one unless given."""
    found, todo = [], [os.getpid() if pid is None else pid]
    while todo:
        fresh = [int(child) for path in _tasks(todo.pop()) for child in _text(path).split()]
        found += fresh
        todo += fresh
    return found


def _tasks(pid: int) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from PROC.glob(f"{pid}/task/*/children")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def process(pid: int) -> tuple[int, int] | None:
    """Give the resident and the private bytes of a process; None where it is gone."""
    text = _text(PROC / f"{pid}/smaps_rollup")
    sizes = {name: int(number) * 1024 for name, number in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
    if "Rss" not in sizes:
        return None
    return sizes["Rss"], sizes.get("Private_Clean", 0) + sizes.get("Private_Dirty", 0)


def command(pid: int) -> str:
    """Give the command line of a process, shortened."""
    return _text(PROC / f"{pid}/cmdline").replace("\0", " ").strip()[:120]


def mapped_files() -> dict[str, int]:
    """Give the resident bytes of the files that are mapped for writing or for data, by name; programs are left out."""
    sizes: dict[str, int] = {}
    name = ""
    for line in _text(PROC / "self/smaps").splitlines():
        head = re.match(r"[0-9a-f]+-[0-9a-f]+ (\S+) \S+ \S+ (\d+)\s*(.*)", line)
        if head:
            data = head[2] != "0" and "x" not in head[1] and ".so" not in head[3]
            name = head[3] if data else ""
        elif name and line.startswith("Rss:"):
            sizes[name] = sizes.get(name, 0) + int(line.split()[1]) * 1024
    return sizes


def device() -> tuple[int, int]:
    """Give the bytes that torch uses and holds on the accelerator, if torch is loaded and uses one."""
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    try:
        if cuda is None or not cuda.is_initialized():
            return 0, 0
        return int(cuda.memory_allocated()), int(cuda.memory_reserved())
    except Exception:  # noqa: BLE001  # a driver that is not there
        return 0, 0
