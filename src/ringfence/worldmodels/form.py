"""What the steps of PlaNet's episodes are like: learnt from the first episode, and asked of all that follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import CheckpointError, SchemaError
from ringfence.schema import Field, Schema
from ringfence.worldmodels.episode import Record

Array = NDArray[Any]


class Form(NamedTuple):
    """Shapes and dtypes of an episode's arrays."""

    x: tuple[tuple[int, ...], str]
    """Shape of an observation, and its dtype."""
    u: tuple[tuple[int, ...], str]
    """Likewise of an action."""
    r: str
    t: str
    flat: bool
    """Whether the first episode's actions were single numbers; they are held as vectors of one."""

    @classmethod
    def of(cls, record: Record) -> Form:
        """Learn it from an episode."""
        x, u = record.x, record.u
        return cls(
            (x.shape[1:], x.dtype.str), (u.shape[1:], u.dtype.str), record.r.dtype.str, record.t.dtype.str, record.flat
        )

    @classmethod
    def load(cls, state: Any) -> Form:
        """Take back what :meth:`state` gave.

        Raises:
            CheckpointError: It is no such state.
        """
        try:
            x, u, r, t = (_checked(state[name]) for name in "xurt")
            flat = state["flat"]
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"form: is damaged: {error}") from error
        if r[0] or t[0] or not isinstance(flat, bool):
            raise CheckpointError(f"form: is damaged: {state!r}")
        return cls(x, u, r[1], t[1], flat)

    def state(self) -> dict[str, Any]:
        """Give it as plain numbers and text."""
        parts: Mapping[str, Any] = {"x": self.x, "u": self.u, "r": ((), self.r), "t": ((), self.t)}
        return {**{name: [list(shape), dtype] for name, (shape, dtype) in parts.items()}, "flat": self.flat}

    def schema(self) -> Schema:
        """Describe a step, with the length of its episode beside it: a batch tells it for each window.

        Raises:
            SchemaError: A shape has a size of 0.
        """
        extras = {"terminal": Field((), self.t), "length": Field((), np.int64)}
        return Schema(Field(*self.x), Field(*self.u), Field((), self.r), extras)

    def fit(self, record: Record) -> Record:
        """Bring an episode to this form.

        Raises:
            SchemaError: A shape is another one, or a value would be changed: floats are rounded to narrower ones, and
                nothing else is.
        """
        x, u = _as("x", record.x, *self.x), _as("u", record.u, *self.u)
        return Record(x, u, _as("r", record.r, (), self.r), _as("t", record.t, (), self.t), record.flat)


def _as(name: str, values: Array, shape: tuple[int, ...], dtype: str) -> Array:
    if values.shape[1:] != shape:
        raise SchemaError(f"{name}: expected steps of shape {shape}, as of the first episode, got {values.shape[1:]}")
    wanted = np.dtype(dtype)
    if values.dtype == wanted:
        return values
    with np.errstate(all="ignore"):
        cast = values.astype(wanted)
    floats = values.dtype.kind == wanted.kind == "f"
    kept = np.isfinite(cast) == np.isfinite(values) if floats else cast.astype(values.dtype) == values
    # a value may survive there and back, and be another one in between: -1 as uint8 is 255
    if not kept.all() or (not floats and (cast != values).any()):
        raise SchemaError(
            f"{name}: expected {wanted}, as of the first episode, got {values.dtype} with values that it cannot hold; "
            f"give every episode in one dtype"
        )
    return cast


def _checked(part: Any) -> tuple[tuple[int, ...], str]:
    shape, dtype = part
    if np.dtype(dtype).kind not in "biuf" or any(type(size) is not int or size < 1 for size in shape):
        raise ValueError(f"{part!r}")
    return tuple(shape), str(dtype)
