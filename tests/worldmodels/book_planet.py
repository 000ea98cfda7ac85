"""What a memory of PlaNet has to hold, kept as a plain list of episodes; and programs that drive both."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ringfence.worldmodels.planet import Episode

SMALL, LARGE = (2,), (2, 300)
"""Shapes of observations: one that lies in the record, and one that has a column of its own."""


def picture(number: int, shape: tuple[int, ...] = SMALL) -> Any:
    """Draw a number."""
    drawn = np.zeros(shape, np.uint8)
    drawn[0], drawn[1] = divmod(number, 256)
    return drawn


def read(pictures: Any, axes: int) -> Any:
    """Read numbers, laid out over so many axes."""
    flat = (pictures if pictures.ndim == axes + 1 else pictures[..., 0]).astype(int)
    return flat[..., 0] * 256 + flat[..., 1]


def episode(first: int, steps: int, shape: tuple[int, ...] = SMALL, wide: int = 1) -> Episode:
    """Make one whose pictures, actions and rewards count from a number on."""
    made = Episode()
    for number in range(first, first + steps):
        made.append(picture(number, shape), np.full(wide, number, np.float32), float(number), number == first)
    made.terminate(picture(first + steps, shape))
    return made


class Book:
    """The newest episodes of a memory, each as its first number and its length."""

    def __init__(self, size: int | None, steps: int | None) -> None:
        self.kept: deque[tuple[int, int]] = deque(maxlen=size)
        self.steps = steps

    def append(self, first: int, length: int) -> None:
        """Add one; the oldest go where there are too many episodes, or too many steps."""
        self.kept.append((first, length))
        while self.steps is not None and sum(steps for _, steps in self.kept) > self.steps:
            self.kept.popleft()

    def windows(self, length: int) -> set[tuple[int, ...]]:
        """Give each window as the numbers of its observations, the one that follows among them, and its length."""
        return {
            (*range(start, start + length + 1), steps)
            for first, steps in self.kept
            for start in range(first, first + steps - length + 1)
        }


PROGRAMS = st.lists(
    st.one_of(
        st.lists(st.integers(1, 9), min_size=1, max_size=4),
        st.sampled_from(["clear", "save", "state", "refused"]),
    ),
    max_size=14,
)
"""Lists of lengths to append, and other things to do."""
