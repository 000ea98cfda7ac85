"""The three rooms that a ring is made of, as they are passed around here."""

from __future__ import annotations

from typing import NamedTuple

from ringfence.store import Store
from ringfence.timeline import Timeline, Writer


class Ring(NamedTuple):
    """Where the bytes are, what they mean, and who adds to them."""

    store: Store
    timeline: Timeline
    writer: Writer
