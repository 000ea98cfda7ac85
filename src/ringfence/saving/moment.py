"""What a ring is at one moment, beside the steps that will not change any more.

The newest step of a stream may still be marked as its episode's last, and its successor may still be replaced, so both
are copied here; everything older is written once and stays as it is until it is dropped.

A writer may be stopped anywhere within an add while this is looked at. So nothing is believed but what the order of its
writes guarantees: an episode is open unless its end is known, and an ended one counts from when its last step does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import CheckpointError
from ringfence.saving.ring import Ring
from ringfence.schema import Layout
from ringfence.store import Store
from ringfence.timeline import Ints, Timeline

ATTEMPTS = 1000  # looks that a writer may make stale; each takes microseconds
Array = NDArray[Any]


@dataclass(slots=True)
class Moment:
    """The marks of every stream, and its newest step. Arrays have one entry a stream."""

    heads: Ints
    tails: Ints
    """The oldest step held. Where steps are overwritten before they are written down, it moves on."""
    ended: Ints
    """Episodes ever ended."""
    ages: Ints
    """Steps since the episode's first, of the oldest step held."""
    runs: Ints
    """Steps so far of the open episode; 0 where none is open."""
    finals: list[Ints]
    """The time of the last step of each episode that ended and is held, oldest first."""
    newest: dict[str, Array]
    """By part: the newest record and its big fields, and the observation that follows it."""
    breaks: int
    early: int

    @property
    def ends(self) -> Ints:
        """The first step that segments do not hold: the newest one, where there is one."""
        return np.maximum(self.tails, self.heads - 1)

    @property
    def firsts(self) -> Ints:
        """The number of the first final observation held."""
        return self.ended - np.array([len(times) for times in self.finals], np.int64)

    def forget(self, tails: Ints) -> int:
        """Leave out the steps before ``tails``; give how many these were."""
        tails = np.maximum(self.tails, tails)
        lost = int((tails - self.tails).sum())
        for stream in np.flatnonzero(tails > self.tails):
            self.ages[stream] = self.ages_of(int(stream), tails[stream : stream + 1])[0]
            self.finals[stream] = self.finals[stream][self.finals[stream] >= tails[stream]]
        self.tails = tails
        return lost

    def ages_of(self, stream: int, times: Ints) -> Ints:
        """Give the steps since the episode's first of held steps, which ends and the oldest one's age determine."""
        first = int(self.tails[stream]) - int(self.ages[stream])
        starts = np.concatenate([[first], self.finals[stream] + 1])
        ages: Ints = times - starts[starts.searchsorted(times, "right") - 1]
        return ages

    def plain(self) -> dict[str, Any]:
        """Give all of it as plain numbers and arrays."""
        return {
            "heads": self.heads,
            "tails": self.tails,
            "ended": self.ended,
            "ages": self.ages,
            "runs": self.runs,
            "final_counts": np.array([len(times) for times in self.finals], np.int64),
            "final_times": np.concatenate([np.zeros(0, np.int64), *self.finals]),
            "newest": {name: _raw(part) for name, part in self.newest.items()},
            "breaks": self.breaks,
            "early": self.early,
        }


def take(ring: Ring) -> Moment:
    """Look at a ring; other threads may add meanwhile.

    Raises:
        CheckpointError: They never stopped for long enough.
    """
    store, timeline, writer = ring
    for _ in range(ATTEMPTS):
        look = timeline.look()
        heads, tails = (np.array(numbers, np.int64) for numbers in (look.heads, look.tails))
        ended, finals = _ended(store, heads, tails)
        newest = _newest(store, timeline, heads)
        runs, ages = _open(store, timeline, (heads, tails), newest["records"], finals)
        if look.marks == timeline.look().marks:
            return Moment(heads, tails, ended, ages, runs, finals, newest, writer.breaks, writer.early)
    raise CheckpointError(f"the ring was added to {ATTEMPTS} times while its marks were being read; save between steps")


def _ended(store: Store, heads: Ints, tails: Ints) -> tuple[Ints, list[Ints]]:
    """Give how many episodes ended by a moment, and when those did that are held."""
    times, count = store.final_times, store.shape.finals
    ended = store.marks[2].copy()
    last = times[np.arange(len(heads)), (ended - 1) % count]
    ended -= (ended > 0) & (last >= heads)  # its step is not added yet
    counted = np.arange(count) < ended[:, None]
    # the oldest place may hold one that a cut in progress has put there, and that is not counted yet
    newest = times[np.arange(len(heads)), (ended - 1) % count]
    counted &= (times <= newest[:, None]) & (times >= tails[:, None]) & (times < heads[:, None])
    finals = [np.sort(row[held]) for row, held in zip(times, counted, strict=True)]
    return ended, finals


def _newest(store: Store, timeline: Timeline, heads: Ints) -> dict[str, Array]:
    """Copy the newest step of each stream, and the observation after it; zeros where there is none."""
    streams = np.arange(len(heads))
    first = streams * timeline.rows_each
    rows, after = first + (heads - 1) % timeline.slots, first + heads % timeline.slots
    layout = store.layout
    found: dict[str, Array] = {"records": store.records_at(rows).view(layout.record)}
    if layout.obs_nbytes:
        waiting = np.frombuffer(store.waiting(after), np.dtype((np.void, layout.obs_nbytes)))
        found["successors"] = waiting.copy().view(layout.small_obs)
    for at, leaf in enumerate(layout.columns):
        found[f"column {at}"] = store.frames(at, rows)
        if leaf.role == "obs":
            found[f"successors {at}"] = store.frames(at, after)
    for part in found.values():
        part[heads == 0] = np.zeros((), part.dtype)
    return found


def _open(
    store: Store, timeline: Timeline, marks: tuple[Ints, Ints], records: Array, finals: list[Ints]
) -> tuple[Ints, Ints]:
    """Give the steps of each open episode, and the age of each oldest step; mend what an add in progress has marked."""
    heads, tails = marks
    first = np.arange(len(heads)) * timeline.rows_each
    ages = timeline.ages(first + tails % timeline.slots).astype(np.int64)
    ages[heads == tails] = 0
    runs = store.runs.astype(np.int64)
    newest_ages = timeline.ages(first + (heads - 1) % timeline.slots)
    for stream in np.flatnonzero(heads > tails):
        over = bool(len(finals[stream])) and int(finals[stream][-1]) == int(heads[stream]) - 1
        runs[stream] = 0 if over else int(newest_ages[stream]) + 1
        records["_final"][stream] = 0 if over else -1
    return runs, ages


def check_newest(newest: Any, layout: Layout, streams: int) -> dict[str, Array]:
    """Give the newest steps of a saved moment.

    Raises:
        CheckpointError: A part is missing, or has another shape or dtype.
    """
    expected: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {"records": (layout.record, ())}
    if layout.obs_nbytes:
        expected["successors"] = layout.small_obs, ()
    for at, leaf in enumerate(layout.columns):
        expected[f"column {at}"] = leaf.field.kept, leaf.field.shape
        if leaf.role == "obs":
            expected[f"successors {at}"] = leaf.field.kept, leaf.field.shape
    if not isinstance(newest, dict) or newest.keys() != expected.keys():
        raise CheckpointError(f"newest: expected the parts {', '.join(expected)}")
    found = {}
    for name, (dtype, each) in expected.items():
        part, dims = newest[name], (streams, *each)
        raw = np.dtype((np.void, dtype.itemsize)) if dtype.names else dtype
        if not isinstance(part, np.ndarray) or part.dtype != raw or part.shape != dims:
            raise CheckpointError(f"newest: {name}: expected {dims} of {dtype}, got {_shown(part)}")
        found[name] = part.view(dtype)
    return found


def _raw(part: Array) -> Array:
    """Give records as raw bytes, whose names the schema tells."""
    return part.view((np.void, part.dtype.itemsize)) if part.dtype.names else part


def _shown(part: Any) -> str:
    return f"{part.shape} of {part.dtype}" if isinstance(part, np.ndarray) else type(part).__name__
