"""Rings with a known past, to try draws on: nothing but a store, a timeline and what was added."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ringfence.schema import Field, Layout, Schema
from ringfence.schema.check import step_check
from ringfence.store import Ram, RingShape
from ringfence.timeline import Look, Timeline, Window, Writer

LAYOUT = Layout.of(Schema(obs=Field((), np.int64), action=Field((), np.int8)))
Key = tuple[int, int]
"""A step's name: its stream and its time."""


class TrialRing:
    """A ring whose observations are numbered, ready for a draw to be started on its ``timeline``.

    Args:
        per_stream: transitions that each stream holds.
        streams: time lines.
        finals: final observations that each stream keeps; with fewer than ``per_stream`` of them, short episodes push
            steps out early.
    """

    def __init__(self, per_stream: int, streams: int = 1, finals: int | None = None) -> None:
        self.per_stream, self.streams = per_stream, streams
        store = Ram(LAYOUT, RingShape(streams, per_stream, per_stream + 1 if finals is None else finals))
        self.timeline = Timeline(store)
        self._writer, self._check = Writer(store), step_check(LAYOUT)
        self._number = 0

    def episode(self, length: int, stream: int = 0, *, ends: bool = True) -> None:
        """Add steps of one episode to a stream; without ``ends`` it stays open."""
        for left in reversed(range(length)):
            terminated = ends and not left
            step = self._check(self._number, 0, 0.0, self._number + 1, terminated, False, {})
            self._writer.append(stream, step)
            self._number += 1
        if not ends:
            self._number += 1  # whatever comes next, also in another stream, is the beginning of something else

    def clear(self) -> None:
        """Drop every step."""
        self._writer.clear()

    def legal(self, window: Window) -> list[Key]:
        """List the anchors that may be drawn now, stream by stream, oldest first."""
        every = self.timeline.every(self.timeline.look(), window)
        streams = np.zeros(len(every.times), np.int64) if every.streams is None else every.streams
        return list(zip(streams.tolist(), every.times.tolist(), strict=True))

    def look(self) -> Look:
        """Note what is held now."""
        return self.timeline.look()


def filling() -> TrialRing:
    """Fill two thirds of one stream, with ends, and an episode that goes on."""
    ring = TrialRing(48)
    for length in (9, 1, 14):
        ring.episode(length)
    ring.episode(8, ends=False)
    return ring


def wrapped() -> TrialRing:
    """Turn a ring three times with episodes of one to eleven steps."""
    ring = TrialRing(30)
    for length in (5, 1, 11, 1, 1, 7, 3, 9, 2, 1, 11, 6, 1, 4, 8, 1, 10, 5, 1, 1, 2):
        ring.episode(length)
    ring.episode(6, ends=False)
    return ring


def unequal() -> TrialRing:
    """Fill five streams to different degrees: one turned twice, one with a single step, one empty."""
    ring = TrialRing(16, streams=5)
    for stream, length in enumerate((37, 1, 0, 9, 16)):
        if length:
            ring.episode(length, stream)
        if length > 2:
            ring.episode(length // 3, stream, ends=False)
    return ring


def cleared() -> TrialRing:
    """Turn two streams, drop all, and begin again."""
    ring = TrialRing(20, streams=2)
    for stream in (0, 1):
        ring.episode(26, stream)
    ring.clear()
    ring.episode(7, 1)
    ring.episode(5, 0, ends=False)
    return ring


def early() -> TrialRing:
    """Push steps out before their turn: more episodes end than final observations are kept."""
    ring = TrialRing(40, streams=2, finals=6)
    for length in (17, *(2,) * 12, 8):
        ring.episode(length, 0)
    ring.episode(30, 1)
    ring.episode(4, 1, ends=False)
    return ring


def single() -> TrialRing:
    """Hold one step."""
    ring = TrialRing(8)
    ring.episode(1, ends=False)
    return ring


PASTS: tuple[Callable[[], TrialRing], ...] = (filling, wrapped, unequal, cleared, early, single)
"""Each makes a new ring, always with the same steps."""

WINDOWS = (
    Window(),
    Window(before=3, short_start=True),
    Window(after=3),
    Window(before=1, after=4, boundary="cross"),
    Window(after=6, boundary="pad"),
    Window(after=2, stride=3),
)
"""Windows of every kind: with few or many legal anchors."""
