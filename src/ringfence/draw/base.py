"""Which steps to take: what every draw does."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ringfence.timeline import Anchors, Look, Timeline, Window

Seed = int | np.random.SeedSequence | np.random.Generator | None


def child(generator: np.random.Generator) -> np.random.Generator:
    """Give a generator of its own that another one determines."""
    try:
        return generator.spawn(1)[0]
    except TypeError:  # a generator that was not made from a SeedSequence
        return np.random.default_rng(generator.integers(0, 2**63, 4))


class Drawn(NamedTuple):
    """What a draw chose."""

    anchors: Anchors
    probabilities: NDArray[np.float64] | None = None
    """Of each anchor among all legal ones; None where each is as likely as any other."""
    weights: NDArray[np.float32] | None = None
    """Importance weights; None where each is 1."""


class Draw(Protocol):
    """Choose anchors among the legal ones of one view.

    A draw pulls: it is told of nothing that happens to the ring, and looks at the timeline when it is asked. One thread
    at a time may ask it. A draw serves one view; a second one needs a draw of its own.
    """

    def start(self, timeline: Timeline, window: Window, generator: np.random.Generator) -> None:
        """Take the view's timeline and window, and the generator for all choices unless one was given before.

        Raises:
            ValueError: The draw serves a view already.
        """
        ...

    def draw(self, look: Look, count: int) -> Drawn:
        """Choose ``count`` anchors that are legal by ``look``.

        Raises:
            NotEnoughData: No held step is the anchor of a legal window.
        """
        ...

    def stats(self) -> dict[str, Any]:
        """Give figures for a log."""
        ...

    def state(self) -> dict[str, Any]:
        """Give all that the next draws depend on, as plain numbers and arrays."""
        ...

    def load(self, state: dict[str, Any]) -> None:
        """Take back what :meth:`state` gave: the next draws are those that would have come then."""
        ...


class Updatable(Protocol):
    """A draw whose choices depend on priorities."""

    def update(self, anchors: Anchors, priorities: NDArray[np.float64]) -> int:
        """Take new priorities, of steps that may be gone or never were, whatever an id named; give how many applied.

        Raises:
            ValueError: A priority is negative, NaN or infinite; none was taken.
        """
        ...


class Bound:
    """What a draw knows once it serves a view: composed into every draw."""

    def __init__(self, seed: Seed) -> None:
        self.generator = None if seed is None else np.random.default_rng(seed)
        self._timeline: Timeline | None = None
        self._window: Window | None = None

    def start(self, timeline: Timeline, window: Window, generator: np.random.Generator) -> None:
        """Bind to a view; ValueError if bound already."""
        if self._timeline is not None:
            raise ValueError("this draw serves another view already; make one for each view")
        self._timeline, self._window = timeline, window
        self.generator = self.generator or generator

    @property
    def timeline(self) -> Timeline:
        """The view's timeline."""
        if self._timeline is None:
            raise ValueError("this draw serves no view yet; pass it as draw= to one")
        return self._timeline

    @property
    def window(self) -> Window:
        """The view's window."""
        assert self._window is not None
        return self._window

    @property
    def random(self) -> np.random.Generator:
        """The generator of all choices."""
        assert self.generator is not None
        return self.generator

    def state(self) -> dict[str, Any]:
        """Give the generator's state."""
        return {"generator": self.random.bit_generator.state}

    def load(self, state: dict[str, Any]) -> None:
        """Take the generator's state back."""
        self.random.bit_generator.state = state["generator"]
