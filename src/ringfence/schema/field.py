"""One field of a step: its shape, its dtype, and how it is kept."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from ringfence.errors import SchemaError

Pad = Literal["first", "zero"]
KINDS = "biuf"  # bool, signed, unsigned, float: what a record can hold without referring to a Python object


@dataclass(frozen=True, init=False)
class Field:
    """Describe one array of a step.

    Example: ``Field((84, 84), np.uint8, stack=4)`` keeps one 7 kB frame a step and presents four.
    """

    shape: tuple[int, ...]
    """Shape of one step's array, without the stack; ``()`` for a number."""
    dtype: np.dtype[Any]
    """What ``sample`` gives."""
    stored: np.dtype[Any] | None
    """A narrower dtype in memory; a value that does not fit it is refused when it is added."""
    stack: int | None
    """Present this many frames, oldest first, while one is kept."""
    stack_axis: int
    """Where the frames lie in what is presented: 0, or -1 for 84x84x4."""
    pad: Pad
    """What stands before the first frame of an episode: the first frame repeated, or zeros."""
    finite: bool
    """Refuse NaN and infinity."""

    def __init__(
        self,
        shape: int | Iterable[int],
        dtype: DTypeLike,
        stored: DTypeLike | None = None,
        stack: int | None = None,
        *,
        stack_axis: int = 0,
        pad: Pad = "first",
        finite: bool = False,
    ) -> None:
        """Bring shape and dtypes to one form.

        Raises:
            SchemaError: A dtype that memory cannot hold (object, text), a ``stored`` dtype that is not narrower and of
                the same kind, a stack below 1, or a shape with a size below 1.
        """
        sizes = tuple(shape) if isinstance(shape, Iterable) and not isinstance(shape, str) else (shape,)
        if not all(_is_count(size) for size in sizes):
            raise SchemaError(f"shape: expected sizes of 1 or more, got {shape!r}")
        plain = _plain_dtype("dtype", dtype)
        values = {
            "shape": tuple(int(size) for size in sizes),
            "dtype": plain,
            "stored": None if stored is None else _narrower(plain, stored),
            "stack": stack,
            "stack_axis": stack_axis,
            "pad": pad,
            "finite": bool(finite),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check_stack()

    def _check_stack(self) -> None:
        if self.stack is not None and not _is_count(self.stack):
            raise SchemaError(f"stack: expected a number of frames of 1 or more, got {self.stack!r}")
        if self.stack_axis not in (0, -1):
            raise SchemaError(f"stack_axis: expected 0 or -1, got {self.stack_axis!r}")
        if self.pad not in ("first", "zero"):
            raise SchemaError(f'pad: expected "first" or "zero", got {self.pad!r}')

    @property
    def kept(self) -> np.dtype[Any]:
        """The dtype in memory."""
        return self.dtype if self.stored is None else self.stored

    @property
    def presented(self) -> tuple[int, ...]:
        """The shape that ``sample`` gives for one step."""
        if self.stack is None:
            return self.shape
        return (self.stack, *self.shape) if self.stack_axis == 0 else (*self.shape, self.stack)

    @property
    def nbytes(self) -> int:
        """Bytes that one step takes in memory."""
        return math.prod(self.shape) * self.kept.itemsize

    def __str__(self) -> str:
        """Give shape, dtype and stack in a few words."""
        kept = "" if self.stored is None else f" stored as {self.stored}"
        stack = "" if self.stack is None else f", stack {self.stack}"
        return f"{self.shape} {self.dtype}{kept}{stack}"


def _is_count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 1)


def _plain_dtype(name: str, dtype: Any) -> np.dtype[Any]:
    if dtype is None:
        raise SchemaError(f"{name}: expected a dtype, got None")
    try:
        plain = np.dtype(dtype)
    except TypeError as error:
        raise SchemaError(f"{name}: {dtype!r} is not a dtype that NumPy knows") from error
    if plain.kind not in KINDS or plain.itemsize > 8:
        raise SchemaError(
            f"{name}: {plain} cannot be kept; memory holds bool, integer and float values, never Python objects or text"
        )
    # NumPy's own object for this dtype: the hot path tells by identity that an array needs no cast
    return np.dtype(f"{plain.kind}{plain.itemsize}")


def _narrower(dtype: np.dtype[Any], stored: Any) -> np.dtype[Any]:
    kept = _plain_dtype("stored", stored)
    same_kind = kept.kind == dtype.kind or {kept.kind, dtype.kind} == {"i", "u"}
    if not same_kind or not np.can_cast(kept, dtype):
        raise SchemaError(f"stored: expected a narrower dtype that widens to {dtype} without loss, got {kept}")
    return kept
