"""What the tests of draws ask timelines with: any window, and its legal anchors found by brute force."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from tests.timeline.ledger import Ledger

from ringfence.store import RingShape
from ringfence.testing.strategies import Move
from ringfence.timeline import Anchors, Window

LENGTHS = st.sampled_from([0, 0, 1, 2, 3, 4, 6])
WINDOWS = st.builds(
    Window,
    before=LENGTHS,
    after=LENGTHS,
    boundary=st.sampled_from(["stop", "cross", "pad"]),
    short_start=st.booleans(),
    stride=st.sampled_from([1, 1, 1, 2, 3]),
)

Key = tuple[int, int]
"""Stream and time."""


def legal(ledger: Ledger, window: Window) -> list[Key]:
    """List the legal anchors, stream by stream, oldest first."""
    return [(stream, entry.time) for stream, entry in ledger.everything() if ledger.legal(stream, entry, window)]


def keys(anchors: Anchors) -> list[Key]:
    """Give anchors as pairs of stream and time."""
    streams = np.zeros(len(anchors.times), np.int64) if anchors.streams is None else anchors.streams
    return list(zip(streams.tolist(), anchors.times.tolist(), strict=True))


def ledger(streams: int = 1, capacity: int = 20) -> Ledger:
    """Make empty streams."""
    return Ledger(RingShape(streams, capacity, capacity + 1))


def episode(ledger: Ledger, length: int, stream: int = 0, *, end: bool = True) -> None:
    """Add an episode of this many steps, or begin it."""
    for left in reversed(range(length)):
        ledger.do(Move(stream, "" if left or not end else "terminated"))


def started(draw, ledger: Ledger, window: Window | None = None, seed: int = 0):
    """Bind a draw to streams; give it."""
    draw.start(ledger.timeline, window or Window(), np.random.default_rng(seed))
    return draw
