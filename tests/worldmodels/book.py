"""What a buffer of world models has to hold, kept as a plain list of steps; and programs that drive both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

SMALL, LARGE = (2,), (2, 300)
"""Shapes of images: one that lies in the record, and one that has a column of its own."""
FOREIGN = 60_000
"""Added to a number, so that an image is none of the book's."""


def image(number: int, shape: tuple[int, ...] = SMALL) -> Any:
    """Draw a picture of a number."""
    picture = np.zeros(shape, np.uint8)
    picture[0], picture[1] = divmod(number, 256)
    return picture


def numbers(images: Any, axes: int) -> Any:
    """Read pictures, laid out over so many axes."""
    flat = (images if images.ndim == axes + 1 else images[..., 0]).astype(int)
    return flat[..., 0] * 256 + flat[..., 1]


@dataclass
class Step:
    """A step, whose picture, action and reward are its number."""

    number: int
    ended: bool = False
    terminated: bool = False
    successor: int | None = None
    """What follows it; None where it is not known yet."""
    last: bool = False
    """The episode is over after it, for whatever reason."""
    age: int = 0


@dataclass
class Book:
    """The newest steps of a buffer."""

    size: int
    steps: list[Step] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    added: int = 0
    episodes: int = 0
    left: bool = False
    """The buffer was loaded, so that an open episode of which nothing is known ends with the next step."""

    def __post_init__(self) -> None:
        self.slots = [0] * self.size

    @property
    def newest(self) -> Step | None:
        """The last step, if its episode is open."""
        return self.steps[-1] if self.steps and not self.steps[-1].last else None

    def add(self, number: int, ended: bool, terminated: bool, successor: int | None) -> None:
        """Add a step."""
        newest = self.newest
        if newest and newest.successor is None:
            if self.left:
                self.cut()
            else:
                newest.successor = number
        elif newest and newest.successor != number:
            self.cut()
        age = self.newest.age + 1 if self.newest else 0
        if successor is None and ended:
            successor = number
        self.steps.append(Step(number, ended, terminated, successor, ended, age))
        self.slots[self.added % self.size] = number
        self.added, self.episodes, self.left = self.added + 1, self.episodes + ended, False
        del self.steps[: -self.size]

    def cut(self) -> None:
        """End the open episode."""
        if self.newest:
            self.newest.successor = self.newest.successor or self.newest.number
            self.steps[-1].last = True
            self.episodes += 1

    def clear(self) -> None:
        """Forget everything."""
        self.steps, self.slots, self.added, self.episodes = [], [0] * self.size, 0, 0
        self.left = False

    def windows(self, length: int, cross: bool = False, settled: bool = False) -> set[tuple[int, ...]]:
        """Give the numbers of the steps of each legal window; if ``settled``, those that follow too."""
        found = set()
        for first in range(len(self.steps) - length + 1):
            window = self.steps[first : first + length]
            if not cross and any(step.last for step in window[:-1]):
                continue
            shown = [step.number for step in window]
            if settled and window[-1].successor is None:
                continue
            found.add((*shown, window[-1].successor) if settled else tuple(shown))
        return found

    def contexts(self, before: int) -> set[tuple[int, ...]]:
        """Give each step that may be imagined from, behind the ones before it."""
        found = set()
        for at, step in enumerate(self.steps):
            reach = min(step.age, before)
            if reach <= at:
                earlier = [self.steps[at - min(back, reach)].number for back in range(before, 0, -1)]
                found.add((*earlier, step.number))
        return found


STEP = st.fixed_dictionaries(
    {
        "do": st.just("step"),
        "ended": st.sampled_from([False] * 5 + [True]),
        "terminated": st.booleans(),
        "given": st.sampled_from(["not"] * 3 + ["right", "wrong"]),
    }
)
RARE = st.sampled_from(["cut", "clear", "continue", "truncate", "save"]).map(lambda do: {"do": do})
PROGRAMS = st.lists(st.one_of([STEP] * 9 + [RARE]), max_size=60)
