"""Compare what a peer draws with what it was fed, before any clock starts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from benchmarks.data import PLACES, Array
from benchmarks.peers.base import FIELDS

Batch = dict[str, Any]
TERMINATION = PLACES.index("termination")


class Truth(Protocol):
    """What `check` needs to know of a data set."""

    window: int

    def ids(self, batch: dict[str, Array]) -> Array:
        """Read the row ids out of a drawn batch."""

    def want(self, ids: Array) -> dict[str, Array]:
        """Return what a batch of these rows must hold."""

    def places(self, ids: Array) -> Array:
        """Tell where each row lies, as an index into PLACES."""


@dataclass
class Verdict:
    """What the checks found; anything wrong spoils the peer's figures, notes only explain them."""

    drawn: Array = field(default_factory=lambda: np.zeros(len(PLACES), np.int64))
    """Rows looked at, by place."""
    bad: dict[str, Array] = field(default_factory=dict)
    """Rows whose field was not what was put in, by place."""
    faults: list[str] = field(default_factory=list)
    """What else is wrong."""
    notes: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> list[str]:
        """Say all that is wrong, a line each."""
        lines = list(self.faults)
        for name, counts in self.bad.items():
            where = [f"{PLACES[i]} {counts[i]}/{self.drawn[i]}" for i in np.flatnonzero(counts)]
            lines += [f"{name} ({', '.join(where)})"] if where else []
        return lines

    def merge(self, other: "Verdict") -> None:
        """Add what another check found."""
        self.drawn = self.drawn + other.drawn
        for name, counts in other.bad.items():
            self.bad[name] = self.bad.get(name, 0) + counts
        self.faults += [line for line in other.faults if line not in self.faults]
        self.notes += [line for line in other.notes if line not in self.notes]


def check(draw: Callable[[int], Batch], truth: Truth, live: range, count: int, times: int) -> Verdict:
    """Draw `times` batches of `count` and hold each field of each row against the truth.

    Also wrong: rows that the ring must have dropped, fields that are not contiguous arrays of their own, and batches
    that share memory with the one before. Noted: fields that the peer does not give, live rows never drawn (looked at
    only where so much is drawn that each must have come).
    """
    verdict, seen, before = Verdict(), set[int](), Batch()
    for _ in range(times):
        batch = {name: np.asarray(value) for name, value in draw(count).items()}
        faults = apart(batch, before)
        ids = truth.ids(batch)
        # A buffer that sums n rewards before it stores a step is n - 1 steps behind, so it may hold older ones.
        stale = (ids <= live.start - truth.window) | (ids >= live.stop)
        if stale.any():
            faults.append("draws rows that are not in the ring")
            ids = np.where(stale, live.start, ids)
        seen.update(ids.tolist())
        places = truth.places(ids)
        bad = {
            name: np.bincount(places[rows & ~stale], minlength=len(PLACES))
            for name, rows in differences(batch, truth.want(ids)).items()
        }
        missing = [name for name in FIELDS if name not in batch]
        notes = [f"gives no {', '.join(missing)}"] if missing else []
        if bad["next_obs"][TERMINATION]:
            bad["next_obs"][TERMINATION] = 0  # no learner bootstraps from it
            notes.append("next_obs at termination is something else")
        verdict.merge(Verdict(np.bincount(places, minlength=len(PLACES)), bad, faults, notes))
        before = batch
    unseen = len(set(live) - seen) if count * times > 20 * len(live) else 0
    verdict.notes += [f"cannot draw {unseen} of {len(live)}"] if unseen else []
    return verdict


def differences(batch: Batch, want: dict[str, Array]) -> dict[str, Array]:
    """Tell for each field which rows differ; sizes, and the dtypes of arrays, must be the same too."""
    found = {}
    for name, expected in want.items():
        if name not in batch:
            continue
        got = batch[name]
        if name == "discount":
            # Some peers leave the zero at termination to the flag beside it: both are usable, so both are right.
            got = got.reshape(-1) * ~batch["terminated"].reshape(-1).astype(bool)
        if got.size != expected.size or (expected.ndim > 1 and got.dtype != expected.dtype):
            raise TypeError(f"{name}: expected {expected.dtype}{expected.shape}, got {got.dtype}{got.shape}")
        got = got.reshape(expected.shape)
        same = np.isclose(got, expected, rtol=1e-4, atol=1e-5) if name in {"reward", "discount"} else got == expected
        found[name] = ~same.reshape(len(expected), -1).all(axis=1)
    return found


def apart(batch: Batch, before: Batch) -> list[str]:
    """Hold that each field is contiguous and shares no memory with its neighbours or the last batch."""
    faults, fields = [], list(batch.items())
    for i, (name, array) in enumerate(fields):
        if not array.flags.c_contiguous:
            faults.append(f"{name} is not contiguous")
        if any(np.may_share_memory(array, other) for _, other in fields[:i]):
            faults.append(f"{name} shares memory with another field")
        if name in before and np.may_share_memory(array, before[name]):
            faults.append(f"{name} shares memory with the batch before")
    return faults
