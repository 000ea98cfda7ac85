"""Which objects grew from look to look: the innermost ones that lived through all of them."""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.guard.doctor.look import Key, Look, key_of
from ringfence.guard.doctor.walk import Walk

LEAST = 128 * 1024  # bytes added while watched
LEAST_STEP = 50.0  # bytes a step: a number in a list for each step costs 40, and starves nobody
LEAST_SECOND = 16 * 1024.0  # bytes a second
SHARE = 0.6  # of a growth, from which on what is inside explains it
ALIKE = 3  # siblings that grow are one finding, named after what holds them
EVEN = 0.15  # of the mean rate: the least rate between two looks of something that grows all the time


@dataclass(frozen=True, slots=True)
class Grown:
    """An object that grew, as a row of the last walk."""

    row: int
    first: float
    last: float
    parts: int = 1

    @property
    def growth(self) -> float:
        """Bytes added."""
        return self.last - self.first


def grown(looks: list[Look], walk: Walk) -> list[Grown]:
    """Find what holds the growth, the largest first."""
    rows = {
        row: rise for row in _persistent(looks, walk) if (rise := _rise(looks, key_of(walk.things[row]))) is not None
    }
    inner: dict[int, list[int]] = {}
    for row in rows:
        above = next((each for each in walk.ancestors(row)[1:] if each in rows), None)
        if above is not None:
            inner.setdefault(above, []).append(row)
    found: list[Grown] = []
    for row in sorted(rows, reverse=True):  # children come after their parents in a walk
        first, last = rows[row]
        below = inner.get(row, [])
        explained = sum(rows[each][1] - rows[each][0] for each in below)
        if _alike(row, below, walk) and (len(below) >= ALIKE or explained < SHARE * (last - first)):
            under = _under(row, inner)
            found = [each for each in found if each.row not in under]
            found.append(Grown(row, first, last, _parts(row, looks, walk)))
        elif explained < SHARE * (last - first):
            found.append(Grown(row, first + explained, last))
    return sorted(found, key=lambda each: -each.growth)


def _alike(row: int, below: list[int], walk: Walk) -> bool:
    """Tell whether what grows inside of a container are entries of one type: they are told of together."""
    kinds = {type(walk.things[each]) for each in below}
    return (
        isinstance(walk.things[row], list | dict)
        and len(kinds) == 1
        and all(walk.parents[each] == row for each in below)
    )


def _parts(row: int, looks: list[Look], walk: Walk) -> int:
    """Count the entries that grew."""
    entries = [key_of(thing) for thing, parent in zip(walk.things, walk.parents, strict=True) if parent == row]
    sizes = [[look.below.get(key) for look in (looks[0], looks[-1])] for key in entries]
    return sum(first is not None and last is not None and last > first for first, last in sizes) or 1


def _under(row: int, inner: dict[int, list[int]]) -> set[int]:
    return {each for child in inner.get(row, []) for each in (child, *_under(child, inner))}


def _persistent(looks: list[Look], walk: Walk) -> list[int]:
    keys: set[Key] = set(looks[0].below)
    for look in looks[1:]:
        keys &= look.below.keys()
    return [row for row, thing in enumerate(walk.things) if walk.weights[row] == 1.0 and key_of(thing) in keys]


def _rise(looks: list[Look], key: Key) -> tuple[float, float] | None:
    """Give the first and the last size of something that grew all the time, and by so much that it matters."""
    sizes = [look.below[key] for look in looks]
    times = [look.sample.seconds for look in looks]
    growth, span = sizes[-1] - sizes[0], times[-1] - times[0]
    steps = looks[-1].sample.steps - looks[0].sample.steps
    if span <= 0 or growth < LEAST or growth / span < LEAST_SECOND or (steps and growth / steps < LEAST_STEP):
        return None
    rates = [(b - a) / (t - s) for a, b, s, t in zip(sizes, sizes[1:], times, times[1:], strict=False)]
    if min(rates) < 0 or min(rates[1:] or rates) < EVEN * growth / span:
        return None
    counts = [look.lengths.get(key) for look in looks]
    if counts[-1] is not None and counts[0] is not None and counts[-1] > 128 and counts[-1] <= counts[0]:
        return (sizes[0], sizes[-1]) if growth > 0.5 * sizes[0] else None  # a sample's error, else
    return sizes[0], sizes[-1]
