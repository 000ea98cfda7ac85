"""The arithmetic: what a ring will take, what fits, and what the obvious layout would take. Nothing is allocated."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ringfence.errors import BudgetExceeded, SchemaError
from ringfence.limits import MemoryLimit, memory_limit
from ringfence.schema import Layout, Schema
from ringfence.store import Cost, RingShape, cost
from ringfence.units import format_bytes, parse_bytes, parse_count

EPISODE = 64  # steps; rings keep their full capacity while episodes are at least this long on average


@dataclass(frozen=True, slots=True)
class Naive:
    """What a layout with a column for each of obs, action, reward, next_obs and the flags would take."""

    name: str
    step_bytes: int
    bytes: int


@dataclass(frozen=True)
class Plan:
    """What a ring takes, line by line, beside what may be taken. Printing it gives a table."""

    schema: Schema
    capacity: int
    """Transitions, evenly shared by the streams; the step at which the ring is full."""
    streams: int
    shape: RingShape
    lines: tuple[Cost, ...]
    """Their sum is ``bytes``, to the byte."""
    available: int
    """Bytes that may be taken: the budget, or what the process has left, whichever is less."""
    reason: str
    """Which rule ``available`` comes from."""
    fitting: int
    """The largest capacity that fits ``available``; 0 where none does."""

    @property
    def bytes(self) -> int:
        """Bytes in all: what ``Replay.nbytes`` will say."""
        return sum(line.nbytes for line in self.lines)

    @property
    def step_bytes(self) -> float:
        """Bytes a transition, all overheads included."""
        return self.bytes / self.capacity

    @property
    def fits(self) -> bool:
        """Tell whether the ring fits what may be taken."""
        return self.bytes <= self.available

    @property
    def full_at(self) -> int:
        """The number of steps, over all streams together, at which the ring is full."""
        return self.capacity

    def naive(self) -> list[Naive]:
        """Price the obvious layouts: stacks stored whole and twice, in float32 and in their own dtypes."""
        leaves = self.schema.leaves()
        rows = []
        for name, fixed in (("as float32", 4), ("in its own dtypes", 0)):
            step = 2  # the end flags
            for leaf in leaves:
                size = math.prod(leaf.field.presented)
                width = fixed if fixed and leaf.role == "obs" else leaf.field.dtype.itemsize
                step += size * width * (2 if leaf.role == "obs" else 1)
            rows.append(Naive(f"obvious layout, {name}", step, step * self.capacity))
        return rows

    def rows(self) -> list[tuple[str, float, int, str]]:
        """Give the table: name, bytes a step, bytes in all, and a note, with the total before the obvious layouts."""
        table = [(line.name, line.nbytes / self.capacity, line.nbytes, line.note) for line in self.lines]
        table.append(("total", self.step_bytes, self.bytes, f"full at step {self.full_at:,}"))
        table += [(row.name, row.step_bytes, row.bytes, f"{row.bytes / self.bytes:.1f} x") for row in self.naive()]
        return table

    def check(self) -> None:
        """Raise BudgetExceeded, with the capacity that would fit, if the ring does not fit."""
        if self.fits:
            return
        advice = (
            f"capacity={self.fitting:,} would fit"
            if self.fitting
            else "not even the smallest ring fits; store less a step (uint8, stack=, stored=), or use fewer streams"
        )
        raise BudgetExceeded(
            f"a ring of {self.capacity:,} transitions takes {format_bytes(self.bytes)}, and "
            f"{format_bytes(self.available)} may be taken ({self.reason}); {advice}"
        )

    def __str__(self) -> str:
        """Give the table as text."""
        head = f"{self.capacity:,} transitions in {self.streams} stream(s), {format_bytes(self.bytes)}"
        width = max(len(name) for name, _, _, _ in self.rows())
        body = [
            f"  {name:<{width}}  {step:>12,.1f} B a step  {format_bytes(total):>12}  {note}".rstrip()
            for name, step, total, note in self.rows()
        ]
        verdict = "fits" if self.fits else "DOES NOT FIT"
        foot = f"{verdict}: {format_bytes(self.available)} may be taken ({self.reason}); {self.fitting:,} would fit"
        return "\n".join([head, *body, foot])


def plan(
    schema: Schema,
    capacity: float | str | None = None,
    *,
    budget: float | str | None = None,
    streams: int = 1,
    episode_length: int = EPISODE,
    limit: MemoryLimit | None = None,
) -> Plan:
    """Work out what a ring would take, without taking it.

    Args:
        schema: What one step is.
        capacity: Transitions in all, evenly shared by the streams and rounded down (``1_000_000``, ``"1e6"``).
        budget: Bytes (``"2 GiB"``); without ``capacity`` as many steps as fit are planned.
        streams: Environments that are recorded side by side.
        episode_length: Steps of an average episode; shorter ones cost capacity, longer ones nothing.
        limit: The limit to compare with; what this process may take unless given.

    Raises:
        ValueError: Neither capacity nor budget is given, or one of the numbers makes no sense.
        SchemaError: A stream's share is shorter than one stack of frames.
    """
    streams, episode_length = _count("streams", streams), _count("episode_length", episode_length)
    layout = Layout.of(schema)
    found = memory_limit().shared if limit is None else limit
    available, reason = found.headroom, f"{found.rule}"
    if budget is not None and parse_bytes(budget) <= available:
        available, reason = parse_bytes(budget), f"budget={budget!r}"
    fitting = _fitting(layout, streams, episode_length, available)
    if capacity is None:
        if budget is None:
            raise ValueError('give capacity=1_000_000 or budget="2 GiB"')
        share = _fitting(layout, streams, episode_length, parse_bytes(budget)) // streams
        share = max(share, schema.stack)  # the smallest ring there is: ``check`` says if even that is too much
    else:
        share = parse_count(capacity) // streams
        _check_share(schema, share, parse_count(capacity), streams)
    shape = RingShape.of(share * streams, streams, episode_length)
    lines = tuple(cost(layout, shape))
    return Plan(schema, share * streams, streams, shape, lines, available, reason, fitting)


def _check_share(schema: Schema, share: int, capacity: int, streams: int) -> None:
    least = schema.stack
    if share < least:
        why = f"a stack of {least} frames needs {least} steps" if least > 1 else "each stream needs a step"
        raise SchemaError(
            f"capacity: {capacity:,} transitions in {streams} stream(s) leave {share} each, but {why}; "
            f"the minimum is capacity={least * streams:,}"
        )


def _fitting(layout: Layout, streams: int, episode_length: int, available: int) -> int:
    """Give the largest capacity whose ring takes at most ``available`` bytes; cost grows with capacity."""

    def fits(share: int) -> bool:
        shape = RingShape.of(share * streams, streams, episode_length)
        return sum(line.nbytes for line in cost(layout, shape)) <= available

    low = layout.schema.stack
    if not fits(low):
        return 0
    high = max(low + 1, available // (layout.itemsize * streams) + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low * streams


def _count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name}: expected a whole number of at least 1, got {value!r}")
    return int(value)
