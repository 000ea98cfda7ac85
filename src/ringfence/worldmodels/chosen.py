"""Windows that the caller names, read whole whatever a writer does meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ringfence.draw import Draw, Drawn
from ringfence.store import Store
from ringfence.timeline import Anchors, Ints, Look, Timeline, Window
from ringfence.view.sequences import Sequences
from ringfence.view.span import Span

Choose = Callable[[Look], Ints]
"""Give the times of the first steps of the windows to read, by a look of now. Asked again if a writer was faster."""


class Chosen:
    """Draw, in a ring of one stream, what a function says. There is no chance in it, and nothing to save."""

    def __init__(self) -> None:
        self.choose: Choose | None = None

    def start(self, timeline: Timeline, window: Window, generator: np.random.Generator) -> None:
        """Serve a view."""

    def draw(self, look: Look, count: int) -> Drawn:
        """Give what the function says, which must be as many as asked for."""
        assert self.choose is not None
        return Drawn(Anchors(None, self.choose(look)), np.ones(count))

    def stats(self) -> dict[str, Any]:
        """Give nothing: there is nothing to tell."""
        return {}

    def state(self) -> dict[str, Any]:
        """Give nothing."""
        return {}

    def load(self, state: dict[str, Any]) -> None:
        """Take nothing back."""


class Reader:
    """Read windows of one length by where they begin."""

    def __init__(self, store: Store, timeline: Timeline, span: Span) -> None:
        self._draw = Chosen()
        self._view = view(store, timeline, span, self._draw, np.random.default_rng(0))

    def read(self, count: int, choose: Choose) -> Any:
        """Give a batch of the windows that ``choose`` says.

        Raises:
            NotEnoughData: A writer was always faster.
        """
        self._draw.choose = choose
        return self._view.sample(count)


def view(store: Store, timeline: Timeline, span: Span, draw: Draw, generator: np.random.Generator) -> Sequences:
    """Give a view whose draw the caller saves, or that has nothing to save: a replay does not know of it."""
    draw.start(timeline, span.window(store.layout.schema), generator)
    return Sequences(store, timeline, draw, span)
