"""Whole episodes in one ring: the oldest go whole, and none is ever there in part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringfence.draw import Uniform
from ringfence.draw.perepisode import PerEpisode
from ringfence.errors import BudgetExceeded
from ringfence.plan import EPISODE, plan
from ringfence.replay import Replay
from ringfence.timeline import Look
from ringfence.view.sequences import Sequences
from ringfence.view.span import Span
from ringfence.worldmodels.chosen import Reader, view
from ringfence.worldmodels.episode import Record
from ringfence.worldmodels.form import Form

Array = NDArray[Any]
By = Literal["episodes", "windows"]


class Room(NamedTuple):
    """How much a memory may hold, as its caller said."""

    size: int | None
    """Episodes."""
    steps: int | None
    budget: float | str | None

    def capacity(self, form: Form, lengths: list[int], newest: int, now: int) -> int:
        """Give the steps that a ring needs for these episodes, the last ``newest`` of which are to come.

        Args:
            form: What a step is.
            lengths: Of all episodes that will be held.
            newest: How many of them are not held yet.
            now: What the ring holds now; 0 where there is none.

        Raises:
            BudgetExceeded: They do not fit, however many of the old ones go.
        """
        longest = max(lengths[len(lengths) - newest :])
        if self.steps is None and self.size is not None:
            found = now if sum(lengths) <= now else self._grown(form, sum(lengths), longest, now)
        elif now:
            found = now
        else:
            whole = plan(form.schema(), self.steps, budget=self.budget, episode_length=self._average(self.steps))
            whole.check()
            found = whole.capacity
        if longest > found:
            raise BudgetExceeded(
                f"an episode of {longest} steps does not fit: there is room for {found} (size={self.size}, "
                f"steps={self.steps}, budget={self.budget!r}); give more, or shorter episodes"
            )
        return found

    def _grown(self, form: Form, least: int, longest: int, now: int) -> int:
        """Give the steps of a larger ring, or of the largest that the budget allows."""
        assert self.size is not None
        # a ring for as many episodes as long as the longest; later twice as much at most, since one long episode does
        # not tell that all will be
        most = self.size * longest
        found = max(least, min(most, 2 * now) if now else most)
        while self.budget is not None and found > now:
            priced = plan(form.schema(), found, budget=self.budget, episode_length=self._average(found))
            if priced.fits:
                break
            # a smaller ring has to expect shorter episodes, whose last observations may take more than it saved
            found = min(priced.fitting, found - 1)
        return max(now, found)

    def _average(self, capacity: int | None) -> int:
        """Give the steps of an episode for which a ring has room for the last observations of ``size`` episodes."""
        return EPISODE if self.size is None or capacity is None else max(1, min(EPISODE, capacity // self.size))

    def ring(self, form: Form, capacity: int) -> Replay:
        """Take the memory.

        Raises:
            BudgetExceeded: It does not fit what the process may still take.
        """
        return Replay(form.schema(), capacity, seed=0, episode_length=self._average(capacity))


class Shelf:
    """Hold episodes in a ring of one stream, and read windows and whole episodes back."""

    def __init__(self, replay: Replay, form: Form) -> None:
        self.replay, self.form = replay, form
        # parts of the core that a buffer may use and that its callers should not
        self._store, self._timeline = replay._store, replay._timeline  # noqa: SLF001
        self._view: tuple[tuple[Any, ...], Sequences] | None = None

    @property
    def lengths(self) -> list[int]:
        """Steps of each episode, oldest first."""
        return self.replay.episode_lengths()

    def put(self, record: Record, size: int | None) -> None:
        """Add an episode that was brought to the ring's form and is no longer than the ring; the oldest go for it."""
        lengths = self.lengths
        go, held = 0, sum(lengths)
        while held + record.steps > self.replay.capacity or (size is not None and len(lengths) - go >= size):
            held -= lengths[go]
            go += 1
        self.replay.drop(go)
        x, u, r, t, _ = record
        last = record.steps - 1
        for at in range(record.steps):
            self.replay.add(x[at], u[at], r[at], x[at + 1], False, at == last, terminal=t[at], length=record.steps)

    def windows(self, length: int, by: By, generator: np.random.Generator) -> Sequences:
        """Give the view of windows of this length: the last one again where it is of this kind."""
        key = length, by, generator
        if self._view is None or self._view[0] != key:
            span = Span(length, bootstrap=True, state=("length",))
            draw = PerEpisode(generator) if by == "episodes" else Uniform(generator)
            self._view = key, view(self._store, self._timeline, span, draw, generator)
        return self._view[1]

    def read(self, number: int) -> Record:
        """Copy an episode, counted from the oldest."""
        lengths = self.lengths
        before = sum(lengths[:number])

        def start(look: Look) -> Array:
            return np.array([look.tail(0) + before])

        reader = Reader(self._store, self._timeline, Span(lengths[number], bootstrap=True))
        batch = reader.read(1, start)
        return Record(batch.obs[0], batch.action[0], batch.reward[0], batch.terminal[0], self.form.flat)

    def records(self) -> Iterator[Record]:
        """Copy the episodes one by one, oldest first."""
        for number in range(len(self.lengths)):
            yield self.read(number)
