"""The C library's heap: what it has handed out, what it holds, and having it give the difference back."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from ringfence.guard import kernel

_FIGURES = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class _Mallinfo(ctypes.Structure):
    """What glibc's mallinfo2 fills."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in _FIGURES)


def heap() -> tuple[int, int] | None:
    """Give the bytes that malloc has handed out and the bytes that it holds, blocks of their own mapping among both.

    None where the C library does not tell: it is glibc's from 2.33 on that does. The difference, slack, is free but may
    still be resident; a trim may give it back.
    """
    mallinfo2 = _function("mallinfo2")
    if mallinfo2 is None:
        return None
    mallinfo2.restype = _Mallinfo
    info = mallinfo2()
    return info.uordblks + info.hblkhd, info.arena + info.hblkhd


def trim() -> int | None:
    """Have malloc give its free pages back to the system; tell how many resident bytes that freed.

    Takes some milliseconds for each gigabyte, and what is given back costs a page fault each when it is wanted again:
    an answer to pressure, not a habit. Any thread may call it.

    Returns:
        The bytes by which anonymous memory fell; None, with nothing done, where the C library is not glibc.
    """
    malloc_trim = _function("malloc_trim")
    if malloc_trim is None:
        return None
    before = kernel.split().anonymous
    malloc_trim(0)
    after = kernel.split().anonymous
    return None if before is None or after is None else max(0, before - after)


@functools.cache
def _function(name: str) -> Any:
    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError, TypeError):  # TypeError: Windows has no library without a name
        return None
