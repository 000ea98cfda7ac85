"""Whether memory kept its promise: what was measured, what is allowed, and how the two compare."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ringfence.guard import Slope
from ringfence.units import format_bytes

MIB = 2**20
BUILD_SHARE, BUILD_SLACK = 0.02, MIB  # the kernel counts resident pages in batches, on each processor by itself
GROWTH = 8 * MIB  # after the ring is full
# A slope fails when its whole interval lies above both of these: a byte a step, ten megabytes in ten million steps,
# starves nobody, and a run in which less than a MiB is certain has seen no more than a page of the allocator's.
SLOPE = 1.0
RISE = MIB


@dataclass(frozen=True, slots=True)
class Marks:
    """Resident memory of the process at the four moments that matter, in bytes."""

    before: int
    """Everything is warm and the ring not there yet."""
    built: int
    full: int | None
    """The ring began to drop its oldest steps; None where the run ended earlier."""
    end: int


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the verdict; ``passed`` is None where nothing is asked of the figure."""

    name: str
    figure: str
    allowed: str = ""
    passed: bool | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run showed about the memory of its ring."""

    env: str
    asked: int
    """Steps that were to be made."""
    made: int
    planned: int
    nbytes: int
    marks: Marks
    full_at: int | None
    """The step at which the ring was full."""
    capacity: int
    held: int
    """Transitions held at the end."""
    early: int
    """Transitions that went while there was room for them, since episodes were shorter than planned for."""
    slope: Slope | None
    """None where too few measurements were taken to draw a line."""
    watched: int
    """Steps that the slope was measured over."""
    seconds: float

    @property
    def partial(self) -> bool:
        """Tell whether the run was stopped before its last step."""
        return self.made < self.asked

    @property
    def passed(self) -> bool:
        """Tell whether nothing that was measured breaks a rule."""
        return all(line.passed is not False for line in self.lines())

    @property
    def cost(self) -> int:
        """Resident bytes that building the ring added."""
        return self.marks.built - self.marks.before

    @property
    def growth(self) -> int:
        """Resident bytes added since the ring was full, or since it was built if it never was."""
        return self.marks.end - (self.marks.built if self.marks.full is None else self.marks.full)

    @property
    def beyond(self) -> int:
        """Resident bytes at the end beyond the ring and all that was there before it."""
        return self.marks.end - self.marks.before - self.nbytes

    @property
    def title(self) -> str:
        """Say in one line which run this was."""
        done = f"{self.made:,} of {self.asked:,} steps, stopped early" if self.partial else f"{self.made:,} steps"
        return f"{self.env}: {done} in {self.seconds:,.0f} s, {self.made / max(self.seconds, 1e-9):,.0f} steps/s"

    @property
    def summary(self) -> str:
        """Say pass or fail, and which lines failed."""
        failed = [line.name for line in self.lines() if line.passed is False]
        word = f"FAIL: {', '.join(failed)}" if failed else "PASS: memory stayed as planned"
        return f"{word} (partial: {self.made:,} of {self.asked:,} steps)" if self.partial else word

    def lines(self) -> list[Line]:
        """Give the verdict line by line."""
        return [*self._sizes(), *self._moments(), *self._trend()]

    def _sizes(self) -> list[Line]:
        exact = self.planned == self.nbytes
        near = abs(self.cost - self.nbytes) <= BUILD_SHARE * self.nbytes + BUILD_SLACK
        return [
            Line("planned", _both(self.planned)),
            Line("nbytes", _both(self.nbytes), "exactly as planned", exact),
            Line("cost of building the ring", _signed(self.cost), "nbytes, 2 % and 1 MiB more or less", near),
        ]

    def _moments(self) -> list[Line]:
        marks = self.marks
        moments = [("before the ring", marks.before), ("with the ring", marks.built)]
        if marks.full is not None:
            moments.append((f"ring full, step {self.full_at:,}", marks.full))
        moments.append((f"end, step {self.made:,}", marks.end))
        return [Line(f"resident, {moment}", format_bytes(nbytes)) for moment, nbytes in moments]

    def _trend(self) -> list[Line]:
        since = "the ring was built" if self.marks.full is None else "the ring was full"
        short = "episodes are shorter than --episode-length, so the oldest go early" if self.early else ""
        lines = [
            Line(
                f"growth since {since}", _signed(self.growth), f"less than {format_bytes(GROWTH)}", self.growth < GROWTH
            ),
            Line("beyond nbytes at the end", _signed(self.beyond)),
            Line("transitions held", f"{self.held:,} of {self.capacity:,}", short),
        ]
        if self.slope is None or math.isinf(self.slope.low):
            return [*lines, Line("slope", "too few measurements")]
        slope = self.slope
        figure = f"{slope.per_step:+,.2f} B a step [{slope.low:+,.2f}, {slope.high:+,.2f}]"
        allowed = f"low end at most {SLOPE:g} B a step, or {format_bytes(RISE)} over these {self.watched:,} steps"
        flat = slope.low <= SLOPE or slope.low * self.watched <= RISE
        return [*lines, Line("slope, 95 % interval", figure, allowed, flat)]


def _both(nbytes: int) -> str:
    return f"{format_bytes(nbytes)} ({nbytes:,} B)"


def _signed(nbytes: int) -> str:
    return f"{'-' if nbytes < 0 else '+'}{format_bytes(abs(nbytes))}"
