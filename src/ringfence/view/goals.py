"""Which step's outcome becomes the goal of another one (Andrychowicz et al. 2017, section 4.5)."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from ringfence.draw import Uniform
from ringfence.store import Store
from ringfence.timeline import Anchors, Look, Timeline, Window
from ringfence.view.episodes import Episodes

Strategy = Literal["future", "final", "episode", "random"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


class Goals:
    """Choose goals among held steps, each step that the strategy allows equally likely."""

    def __init__(self, store: Store, timeline: Timeline, strategy: Strategy, generator: np.random.Generator) -> None:
        self._strategy, self._random = strategy, generator
        self._episodes = Episodes(store, timeline)
        self._anywhere = Uniform()
        self._anywhere.start(timeline, Window(), generator)

    def choose(self, look: Look, steps: Anchors) -> Anchors | None:
        """Give a step for each of these held ones, one at least; None where a writer overtook the search."""
        if self._strategy == "random":
            return self._anywhere.draw(look, len(steps.times)).anchors
        last = self._episodes.last(look, steps)
        if last is None:
            return None
        if self._strategy == "final":
            return steps._replace(times=last)
        first = steps.times if self._strategy == "future" else self._episodes.first(look, steps)
        return steps._replace(times=self._random.integers(first, last, endpoint=True))
