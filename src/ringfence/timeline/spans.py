"""The legal anchors of a window as runs of steps, one or none for each episode.

Where episodes end says which anchors are legal, so that all of them are known in time and memory that go with the
episodes held, and no step is looked at. A draw by runs refuses nothing and never has to draw again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringfence.timeline.timeline import TIME_BITS, Anchors, Ints, Look, Timeline
from ringfence.timeline.window import Window


class Spans(NamedTuple):
    """Runs of steps, stream by stream, oldest first; none is empty."""

    streams: Ints | None
    """None where there is only one stream."""
    firsts: Ints
    """The time of the first step of each."""
    counts: Ints
    """How many steps each has."""
    stride: int = 1
    """Steps from one to the next."""

    @property
    def total(self) -> int:
        """The number of steps in all."""
        return int(self.counts.sum())

    @property
    def lasts(self) -> Ints:
        """The time of the last step of each."""
        return self.firsts + (self.counts - 1) * self.stride

    def of(self, numbers: Any) -> Any:
        """Give each run the number of its stream."""
        return np.asarray(numbers)[0 if self.streams is None else self.streams]

    def nth(self, places: Ints) -> Anchors:
        """Give the steps at these places of one list of all."""
        ends = self.counts.cumsum()
        runs = ends.searchsorted(places, "right")
        return self.steps(runs, places - (ends - self.counts)[runs])

    def steps(self, runs: Ints, places: Ints) -> Anchors:
        """Give the steps at these places of these runs."""
        times = self.firsts[runs] + places * self.stride
        return Anchors(None if self.streams is None else self.streams[runs], times)

    def since(self, times: Any) -> Spans:
        """Keep what lies at or after a time, one for each stream."""
        gone = -((self.firsts - self.of(times)) // self.stride)
        gone = np.clip(gone, 0, self.counts)
        return self._some(self.firsts + gone * self.stride, self.counts - gone)

    def ids(self, out: Ints) -> int:
        """Write the ids of all steps to the front of ``out``; give their number."""
        total = self.total
        if total:
            firsts, lasts = self._ids(self.firsts), self._ids(self.lasts)
            out[:total] = self.stride
            out[self.counts.cumsum()[:-1]] = firsts[1:] - lasts[:-1]
            out[0] = firsts[0]
            np.cumsum(out[:total], out=out[:total])
        return total

    def _ids(self, times: Ints) -> Ints:
        return times if self.streams is None else self.streams << TIME_BITS | times

    def _some(self, firsts: Ints, counts: Ints) -> Spans:
        kept = counts > 0
        streams = None if self.streams is None else self.streams[kept]
        return Spans(streams, firsts[kept], counts[kept], self.stride)


class Legal:
    """Give the legal anchors of a view's window; worked out once as long as the ring stays as it is."""

    def __init__(self, timeline: Timeline, window: Window) -> None:
        self._timeline, self._window = timeline, window
        self._marks, self._spans = b"", Spans(None, *np.zeros((2, 0), np.int64))

    def at(self, look: Look) -> Spans:
        """Give what is legal by a look.

        Raises:
            NotEnoughData: Nothing is.
        """
        if look.marks != self._marks:
            self._marks, self._spans = look.marks, spans(self._timeline, look, self._window)
        if not len(self._spans.counts):
            raise self._timeline.refuse(look, self._window)
        return self._spans


def spans(timeline: Timeline, look: Look, window: Window) -> Spans:
    """Work out the legal anchors of a window."""
    tails, heads = np.asarray(look.tails), np.asarray(look.heads)
    streams = np.arange(timeline.streams)
    if window.trivial:
        firsts, lasts = tails, heads - 1
    elif window.short_start and window.stride == 1 and (not window.after or window.boundary == "pad"):
        firsts, lasts = tails + _lacking(timeline, look, window.before), heads - 1
    else:
        streams, firsts, lasts = _by_episode(timeline, look, window)
    counts = (lasts - firsts) // window.stride + 1
    kept = counts > 0
    return Spans(
        None if timeline.streams == 1 else streams[kept],
        firsts[kept].astype(np.int64),
        counts[kept].astype(np.int64),
        window.stride,
    )


def _lacking(timeline: Timeline, look: Look, before: int) -> Ints:
    """Count the steps at each stream's tail that lack earlier ones: the first of an episode whose beginning is gone."""
    depths = np.arange(before + 1)
    times = np.asarray(look.tails)[:, None] + depths
    ages = _ages(timeline, times)
    # the first of the depths at which another episode begins, or nothing is held
    other = (ages != ages[:, :1] + depths) | (times >= np.asarray(look.heads)[:, None])
    other[:, before] = True
    return np.where(ages[:, 0] > 0, other.argmax(axis=1), 0)


def _by_episode(timeline: Timeline, look: Look, window: Window) -> tuple[Ints, Ints, Ints]:
    """Give stream, first and last legal anchor of each episode; the last lies before the first where none is legal."""
    tails, heads = np.asarray(look.tails), np.asarray(look.heads)
    streams, ends = timeline.episodes(look)
    starts = np.empty_like(ends)
    starts[1:] = ends[:-1] + 1
    oldest = np.ones(len(ends), np.bool_)
    oldest[1:] = streams[1:] != streams[:-1]
    starts[oldest] = tails[streams[oldest]]
    # steps of the episode that are gone
    gone = np.where(oldest, _ages(timeline, tails[:, None])[streams, 0], 0)
    whole = 0 if window.short_start else window.before
    firsts = starts + np.where(gone > 0, window.before, whole)
    firsts += -(firsts - starts + gone) % window.stride
    lasts = ends
    if window.boundary == "stop":
        lasts = ends - window.after
    elif window.boundary == "cross":
        lasts = np.minimum(ends, heads[streams] - 1 - window.after)
    return streams, firsts, lasts


def _ages(timeline: Timeline, times: Ints) -> NDArray[np.int32]:
    """Give the ages of steps, one row a stream; of those that do not exist any number."""
    streams = None if timeline.streams == 1 else np.arange(timeline.streams)[:, None]
    return timeline.ages(timeline.rows(Anchors(streams, times)))
