"""Large arrays: how much of each is paid for, and whether its values would fit into less."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.guard.doctor.evidence import Buffer
from ringfence.guard.doctor.look import Look, key_of
from ringfence.guard.doctor.walk import Walk

ROWS, FEWEST, PORTION = 256, 16, 4 * 2**20  # that are looked at: so many, or fewer where they are larger than this
LONG = 64  # rows, below which an array is no store of steps
STACK = 16  # entries along the second axis, above which it is no stack
BYTE = 255


def buffers(looks: list[Look], walk: Walk) -> list[Buffer]:
    """Describe the large arrays that lived through the whole watch."""
    found, stores = [], []
    for row in walk.big:
        thing = walk.things[row]
        key = key_of(thing)
        if walk.weights[row] == 1.0 and all(key in look.resident for look in looks):
            array = _array(thing)
            stores.append((walk.path(row), array))
            found.append((walk.path(row), thing, array, key))
    return [
        _buffer(path, thing, array, [looks[0].resident[key], looks[-1].resident[key]], stores)
        for path, thing, array, key in found
    ]


def _buffer(path: str, thing: Any, array: Any, present: list[int], stores: list[tuple[str, Any]]) -> Buffer:
    written = _written(array, present[-1])
    return Buffer(
        path=path,
        kind="tensor" if not isinstance(thing, np.ndarray) else "memmap" if isinstance(thing, np.memmap) else "array",
        dtype="" if array is None else str(array.dtype),
        shape=() if array is None else tuple(array.shape),
        nbytes=int(thing.nbytes if isinstance(thing, np.ndarray) else thing.untyped_storage().nbytes()),
        first=present[0],
        last=present[-1],
        narrower=narrower(written),
        stacked=stacked(written),
        repeats=next((name for name, other in stores if other is not array and repeats(written, other)), ""),
    )


def _array(thing: Any) -> Any:
    """See a tensor as an array; None where that cannot be."""
    try:
        return thing if isinstance(thing, np.ndarray) else thing.detach().numpy()
    except Exception:  # noqa: BLE001  # sparse, bfloat16, on a device
        return None


def _written(array: Any, present: int) -> Any:
    """Take the first rows, of those that are in memory: to look at others would put them there."""
    if array is None or array.ndim < 1 or len(array) < LONG or not array.flags.c_contiguous:
        return None
    row = max(1, array.nbytes // len(array))
    rows = array[: min(ROWS, max(FEWEST, PORTION // row), present // row)]
    return rows.copy() if len(rows) >= FEWEST else None


def narrower(rows: Any) -> str:
    """Name a dtype of a quarter of the size or less, or float32 for float64, that holds all of these values exactly."""
    if rows is None or rows.dtype.kind not in "fiu" or rows.dtype.itemsize == 1 or not np.isfinite(rows).all():
        return ""
    values = np.unique(rows)
    if len(values) > 2 and (values >= 0).all() and (values <= BYTE).all() and (values == np.floor(values)).all():
        return "uint8" if rows.ndim > 2 and values[-1] > 1 else ""
    if rows.dtype == np.float64 and len(values) > 2 and (values == values.astype(np.float32)).all():
        return "float32"
    return ""


def stacked(rows: Any) -> int:
    """Count the frames of a stack: along the second axis or the last, a row repeats all but one of the row before."""
    if rows is None or rows.ndim < 3:
        return 1
    for axis in (1, rows.ndim - 1):
        count = rows.shape[axis]
        if 2 <= count <= STACK:
            frames = np.moveaxis(rows, axis, 1)
            same = (frames[1:, :-1] == frames[:-1, 1:]).reshape(len(rows) - 1, -1).all(1)
            varied = (frames[1:, -1] != frames[:-1, -1]).reshape(len(rows) - 1, -1).any(1)
            if (same & varied).mean() > 0.5:
                return int(count)
    return 1


def repeats(rows: Any, other: Any) -> bool:
    """Tell whether another array of the same shape holds these rows, each of them one row earlier."""
    if rows is None or other is None or other.ndim != rows.ndim or other.shape[1:] != rows.shape[1:] or rows.ndim < 2:
        return False
    later = other[1 : len(rows)]
    same = (rows[: len(later)] == later).reshape(len(later), -1).all(1)
    return bool(len(later)) and bool((rows[: len(later)] != rows[0]).any()) and same.mean() > 0.5
