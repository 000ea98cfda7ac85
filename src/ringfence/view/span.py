"""What a view of sequences was asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from ringfence.errors import SchemaError
from ringfence.schema import Schema
from ringfence.timeline import Boundary, Window

LONGEST = 2**31 - 1  # steps of a window; ages are int32


@dataclass(frozen=True, slots=True)
class Span:
    """Say how long windows are, where they may lie, and how they are laid out.

    Raises:
        ValueError: A number makes no sense, or the boundary is none of the three.
        SchemaError: ``state`` is no list of names.
    """

    length: int
    """Steps to learn from."""
    burn_in: int = 0
    """Steps before them, to warm up a recurrent state."""
    boundary: Boundary = "stop"
    """What ends a window: see :class:`ringfence.timeline.Window`."""
    time_major: bool = False
    """(T, B, ...) in place of (B, T, ...)."""
    bootstrap: bool = False
    """Observations have one step more: the successor of the last step."""
    stride: int = 1
    """Only every so-many-th step of an episode begins a window, the first one among them."""
    state: Iterable[str] = ()
    """Extras of which the first step's value alone is given; kept as a tuple."""
    gamma: float = 0.99

    def __post_init__(self) -> None:
        """Bring the numbers to plain ones."""
        object.__setattr__(self, "length", _count("length", self.length, 1))
        object.__setattr__(self, "burn_in", _count("burn_in", self.burn_in, 0))
        object.__setattr__(self, "stride", _count("stride", self.stride, 1))
        object.__setattr__(self, "state", _names(self.state))
        if self.boundary not in get_args(Boundary):
            raise ValueError(f'boundary: expected "stop", "cross" or "pad", got {self.boundary!r}')
        if self.steps > LONGEST:
            raise ValueError(f"burn_in + length: expected at most {LONGEST} steps, got {self.steps}")
        if isinstance(self.gamma, bool) or not 0 <= self.gamma <= 1:
            raise ValueError(f"gamma: expected a number from 0 to 1, got {self.gamma!r}")
        object.__setattr__(self, "gamma", float(self.gamma))
        object.__setattr__(self, "time_major", bool(self.time_major))
        object.__setattr__(self, "bootstrap", bool(self.bootstrap))

    @property
    def steps(self) -> int:
        """Steps of a window: burn-in and length together."""
        return self.burn_in + self.length

    def window(self, schema: Schema) -> Window:
        """Say what must be held around an anchor: the rest of the window, and the frames of the first step's stack.

        Raises:
            SchemaError: ``state`` names something that is no extra of this schema.
        """
        for name in self.state:
            if name not in schema.extras:
                known = ", ".join(schema.extras) or "none"
                raise SchemaError(f"state: {name!r} is no declared extra; the schema has {known}")
        return Window(
            before=schema.stack - 1,
            after=self.steps - 1,
            boundary=self.boundary,
            short_start=True,
            stride=self.stride,
        )

    def __str__(self) -> str:
        """Say it in a few words."""
        burn_in = f"{self.burn_in} of burn-in and " if self.burn_in else ""
        stride = f", at every {self.stride}th step of an episode" if self.stride > 1 else ""
        return f'windows of {burn_in}{self.length} step(s), boundary="{self.boundary}"{stride}'


def _count(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name}: expected a whole number of at least {least}, got {value!r}")
    return int(value)


def _names(state: Any) -> tuple[str, ...]:
    if isinstance(state, str) or not isinstance(state, Iterable):
        raise SchemaError(f'state: expected a tuple of names such as ("hidden",), got {state!r}')
    return tuple(dict.fromkeys(state))
