"""Which steps a save has to write, and which it finds written already.

The steps of a save lie in segments that never change once written. One save writes what came since the last one as new
segments; a segment goes when nothing in it is held any more, when steps in it were changed after the fact, or when it
is joined with later ones so that their number stays small. A step that has to be written again is read from the ring,
never from the disk.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.timeline import Ints

TARGET = 64 << 20  # bytes of a segment, at most
LEAST = 4 << 20  # and of a whole ring's, at least
PARTS = 64  # segments that a full ring is written in, unless they would be larger or smaller than that
RUN = 256  # steps of one stream that lie side by side, where streams share a segment
STREAM, FIRST, COUNT = 0, 1, 2  # of a piece


def none() -> Ints:
    """Give no pieces."""
    return np.zeros((0, 3), np.int64)


@dataclass(slots=True)
class Segment:
    """Runs of steps and final observations that were written together."""

    steps: Ints
    """(n, 3): stream, time of the first, and number of the steps that follow each other in the file, run by run."""
    finals: Ints
    """(n, 3): stream, number of the first, and how many final observations, likewise."""
    files: dict[str, str] = field(default_factory=dict)
    """File names by part."""

    @property
    def count(self) -> int:
        """Steps in the file."""
        return int(self.steps[:, COUNT].sum())

    @property
    def finals_count(self) -> int:
        """Final observations in the file."""
        return int(self.finals[:, COUNT].sum())

    def live(self, tails: Ints) -> int:
        """Count the steps that are still held."""
        return int(clipped(self.steps, tails)[:, COUNT].sum())

    def plain(self) -> dict[str, Any]:
        """Give all that a manifest holds of it."""
        return {"steps": self.steps, "finals": self.finals, "files": self.files}


@dataclass(frozen=True, slots=True)
class Work:
    """What one save does."""

    kept: list[Segment]
    new: list[Segment]


def clipped(pieces: Ints, lows: Ints) -> Ints:
    """Give what of some runs is not before ``lows``, by stream."""
    if not len(pieces):
        return pieces
    streams, firsts, counts = pieces.T
    begin = np.maximum(firsts, lows[streams])
    kept = np.stack([streams, begin, firsts + counts - begin], axis=1)
    return kept[kept[:, COUNT] > 0]


def steps_a_segment(capacity: int, step_bytes: int) -> int:
    """Give the steps that one segment of a ring holds."""
    return max(1, min(max(capacity * step_bytes // PARTS, LEAST), TARGET) // step_bytes)


def plan(
    saved: list[Segment],
    changed: NDArray[np.bool_],
    ranges: tuple[Ints, Ints, Ints, Ints],
    target: int,
) -> Work:
    """Choose what to keep of what is saved, and what to write.

    Args:
        saved: The segments of the last save, oldest first.
        changed: Which of them hold steps that were changed since.
        ranges: By stream, the first step held and the last plus one, the number of the first final observation held and
            of the last plus one.
        target: Steps of a segment; see :func:`steps_a_segment`.
    """
    tails, ends, firsts, lasts = ranges
    total = int((ends - tails).sum())
    kept = [one for one, gone in zip(saved, changed, strict=True) if not gone and _counts(one, tails, firsts)]
    kept = _thinned(kept, tails)
    due = total - sum(one.live(tails) for one in kept)
    while kept and kept[-1].live(tails) <= 2 * due and kept[-1].count < target // 2:
        due += kept.pop().live(tails)
    missing = _missing(kept, tails, ends, "steps")
    finals = _missing(kept, firsts, lasts, "finals")
    new = [Segment(steps, none()) for steps in _cut(missing, target)]
    if len(finals):
        if not new:
            new = [Segment(none(), none())]
        new[-1].finals = finals
    return Work(kept, new)


def _counts(segment: Segment, tails: Ints, firsts: Ints) -> bool:
    """Tell whether anything in it is still held."""
    return bool(len(clipped(segment.steps, tails)) or len(clipped(segment.finals, firsts)))


def _thinned(kept: list[Segment], tails: Ints) -> list[Segment]:
    """Leave out the emptiest ones until files hold at most twice the steps that are held."""
    lives = [one.live(tails) for one in kept]
    order = sorted(range(len(kept)), key=lambda at: lives[at] / max(1, kept[at].count))
    held, written = sum(lives), sum(one.count for one in kept)
    out = set()
    for at in order:
        if written <= 2 * held or lives[at] == kept[at].count:
            break
        out.add(at)
        held, written = held - lives[at], written - kept[at].count
    return [one for at, one in enumerate(kept) if at not in out]


def _missing(kept: list[Segment], lows: Ints, ends: Ints, part: str) -> Ints:
    """Give the runs from ``lows`` to ``ends`` that no kept segment has, stream by stream."""
    have = np.concatenate([none(), *(clipped(getattr(one, part), lows) for one in kept)])
    have = have[np.lexsort((have[:, FIRST], have[:, STREAM]))]
    streams = np.arange(len(lows))
    # what is there ends a gap, and so does the end of the stream
    stops = np.concatenate([have[:, :2], np.stack([streams, ends], axis=1)])
    starts = np.concatenate(
        [np.stack([have[:, STREAM], have[:, FIRST] + have[:, COUNT]], axis=1), np.stack([streams, lows], axis=1)]
    )
    stops = stops[np.lexsort((stops[:, 1], stops[:, 0]))]
    starts = starts[np.lexsort((starts[:, 1], starts[:, 0]))]
    gaps = np.stack([starts[:, 0], starts[:, 1], stops[:, 1] - starts[:, 1]], axis=1)
    return gaps[gaps[:, COUNT] > 0]


def _cut(missing: Ints, target: int) -> list[Ints]:
    """Share runs out to segments of ``target`` steps, so that streams grow old side by side."""
    total = int(missing[:, COUNT].sum())
    if not total:
        return []
    longest = int(missing[:, COUNT].max())
    slices = max(1, min(-(-total // target), longest // RUN))
    parts: list[Ints] = []
    for number in range(slices):
        begin = missing[:, COUNT] * number // slices
        end = missing[:, COUNT] * (number + 1) // slices
        some = np.stack([missing[:, STREAM], missing[:, FIRST] + begin, end - begin], axis=1)
        parts += _packed(some[some[:, COUNT] > 0], target)
    return parts


def _packed(pieces: Ints, target: int) -> list[Ints]:
    """Cut a list of runs after every ``target`` steps."""
    sums = np.concatenate([[0], pieces[:, COUNT].cumsum()])
    found = []
    for begin in range(0, int(sums[-1]), target):
        end = min(begin + target, int(sums[-1]))
        low = np.clip(begin - sums[:-1], 0, pieces[:, COUNT])
        high = np.clip(end - sums[:-1], 0, pieces[:, COUNT])
        some = np.stack([pieces[:, STREAM], pieces[:, FIRST] + low, high - low], axis=1)
        found.append(some[some[:, COUNT] > 0])
    return found
