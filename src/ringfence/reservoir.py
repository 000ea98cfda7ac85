"""A uniform sample of everything ever seen, in fixed memory."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.draw import Drawn, Seed, child
from ringfence.errors import BudgetExceeded, CheckpointError, LargeCheckpoint, NotEnoughData, SchemaError
from ringfence.limits import MemoryLimit, memory_limit
from ringfence.plan import Plan
from ringfence.saving import Saved, arrays, generator_of
from ringfence.saving.generator import state_of
from ringfence.schema import Field, Layout, Leaf, Schema
from ringfence.schema.check import Step, step_check
from ringfence.schema.described import describe, described
from ringfence.schema.layout import INSIDE, Place
from ringfence.schema.rows import Rows, RowsCheck
from ringfence.store import Ram, RingShape, cost
from ringfence.timeline import Anchors, Ints
from ringfence.units import parse_bytes, parse_count
from ringfence.view.batch import Batch
from ringfence.view.gathering import Gathering, Part
from ringfence.view.pool import Pool
from ringfence.view.transitions import Taken, recipes_of, successor

KIND = "reservoir"
ATTEMPTS = 1000  # batches in which a writer replaces a row while it is read
NUMBER = Leaf("ids", Field((), np.int64), "extra")


class Reservoir:
    """Keep a uniform sample of all transitions ever added, in a fixed amount of memory.

    Of M transitions added, each is held with probability ``capacity / M``, the first as much as the newest (Vitter
    1985, algorithm R), whatever stream it came from. Each is kept with its own successor: there are no neighbours in
    time, and so neither stacks of frames nor n-step returns.

    All memory is taken when the object is made, and none after. One thread at a time may add; any number of threads and
    forked processes may sample meanwhile.

    Args:
        schema: What one step is, without stacked fields.
        capacity: Transitions.
        budget: Bytes, such as ``"2 GiB"``: as many transitions as fit, or a bound on what ``capacity`` may take.
        seed: An int, a SeedSequence or a Generator; the global generator is never used.

    Raises:
        BudgetExceeded: It does not fit the budget, or what the process may still take. Nothing was taken.
        SchemaError: A field is stacked.
        ValueError: Neither capacity nor budget is given, or one of them makes no sense.
    """

    def __init__(
        self,
        schema: Schema,
        capacity: float | str | None = None,
        *,
        budget: float | str | None = None,
        seed: Seed = None,
    ) -> None:
        self.plan: Plan = plan(schema, capacity, budget=budget)
        self.plan.check()
        self.schema, self._plain = schema, Layout.of(schema)
        self._store = Ram(paired(self._plain), self.plan.shape)
        self._number = self._store.columns[-1]
        self._check, self._rows_check = step_check(self._plain), RowsCheck(self._plain)
        self._generator = np.random.default_rng(seed)
        self._default = self.transitions()
        self.notes: Any = None
        """What the save that this was loaded from was given as ``notes``."""

    # -- writing

    def add(
        self,
        obs: Any,
        action: Any,
        reward: Any,
        next_obs: Any,
        terminated: Any,
        truncated: Any = False,
        stream: int = 0,
        **extras: Any,
    ) -> int:
        """Offer one transition; give its id, whether it is kept or not.

        Args:
            obs: As the schema says.
            action: As the schema says.
            reward: As the schema says.
            next_obs: The observation after the action, also where the episode ended: the true last one.
            terminated: The episode reached its end.
            truncated: The episode was stopped, for example by a time limit.
            stream: Of no account; taken so that what fills a replay can fill a reservoir.
            extras: The declared extras, by name.

        Raises:
            SchemaError: Anything does not match the schema. Nothing was changed.
        """
        del stream
        step = self._check(obs, action, reward, next_obs, terminated, truncated, extras)
        marks = self._store.marks
        number = int(marks[0, 0])
        seen = number - int(marks[1, 0])
        slot = seen if seen < self.capacity else int(self._generator.integers(seen + 1))
        if slot < self.capacity:
            self._put(slot, step, number)
        marks[0, 0] = number + 1
        return number

    def extend(
        self,
        obs: Any,
        action: Any,
        reward: Any,
        next_obs: Any,
        terminated: Any,
        truncated: Any,
        streams: Any = None,
        **extras: Any,
    ) -> Ints:
        """Offer any number of transitions; give their ids, whether they are kept or not.

        Every argument is as in :meth:`add`, with one more axis in front: the transitions.

        Args:
            obs: (n, ...).
            action: (n, ...).
            reward: (n,).
            next_obs: (n, ...); where an episode ended its true last observation, not the next one's first.
            terminated: (n,) bool.
            truncated: (n,) bool.
            streams: Of no account.
            extras: The declared extras, by name, each (n, ...).

        Raises:
            SchemaError: Anything does not match the schema. Nothing was changed.
        """
        del streams
        try:
            count = len(terminated)
        except TypeError as error:
            raise SchemaError(f"terminated: expected a flag for each transition, got {terminated!r}") from error
        rows = self._rows_check.rows(count, (obs, action, reward, next_obs, terminated, truncated), extras)
        marks = self._store.marks
        number = int(marks[0, 0])
        seen = number - int(marks[1, 0]) + np.arange(count)
        slots, full = seen.copy(), seen >= self.capacity
        slots[full] = self._generator.integers(0, seen[full] + 1)
        kept = np.flatnonzero(slots < self.capacity)
        # of two that go to one slot the later one stays
        slots, last = np.unique(slots[kept][::-1], return_index=True)
        if len(slots):
            self._put_many(slots, rows, kept[::-1][last], number)
        marks[0, 0] = number + count
        return number + np.arange(count)

    def clear(self) -> None:
        """Drop every transition, and begin a new sample. Ids given out before stay stale for ever."""
        self._store.marks[1] = self._store.marks[0]

    def _put(self, slot: int, step: Step, number: int) -> None:
        """Write a step; while it is written its slot has no number, so that a reader knows."""
        obs, body, after, frames, frames_after, others, _ = step
        self._number[slot] = -1
        self._store.put(slot, obs + body + INSIDE + after)
        mine, others_left = iter(frames), iter(others)
        for column, leaf in enumerate(self._plain.columns):
            self._store.put_frame(column, slot, next(mine if leaf.role == "obs" else others_left))
        for column, frame in enumerate(frames_after, len(self._plain.columns)):
            self._store.put_frame(column, slot, frame)
        self._number[slot] = number

    def _put_many(self, slots: Ints, rows: Rows, chosen: Ints, number: int) -> None:
        """Write some of many steps, likewise."""
        self._number[slots] = -1
        layout = self._store.layout
        block = np.zeros(len(slots), (np.void, layout.itemsize))
        for place in layout.packed:
            kept = place.leaf.field.kept
            strides = (layout.itemsize, *np.empty(place.leaf.field.shape, kept).strides)
            part: NDArray[Any] = np.ndarray((len(slots), *place.leaf.field.shape), kept, block, place.offset, strides)
            part[...] = _given(rows, place.leaf.name)[chosen]
        self._store.records[slots] = block
        for column, leaf in zip(self._store.columns, layout.columns[:-1], strict=False):
            column[slots] = _given(rows, leaf.name)[chosen]
        self._number[slots] = number + chosen

    # -- reading

    def sample(self, n: int) -> Batch:
        """Draw ``n`` transitions, uniformly and with replacement; fields as in :meth:`Replay.transitions`.

        Raises:
            NotEnoughData: Nothing is held.
            ValueError: ``n`` is no number of rows.
        """
        return self._default.sample(n)

    def transitions(self, n_step: int = 1, gamma: float = 0.99) -> Kept:
        """Give a view with another discount.

        Raises:
            SchemaError: ``n_step`` is not 1.
            ValueError: ``gamma`` is no number from 0 to 1.
        """
        if n_step != 1:
            raise SchemaError(
                f"n_step: a reservoir keeps single transitions from anywhere in time, and what followed one is mostly "
                f"gone; expected 1, got {n_step!r}. A Replay gives n-step returns"
            )
        if isinstance(gamma, bool) or not 0 <= gamma <= 1:
            raise ValueError(f"gamma: expected a number from 0 to 1, got {gamma!r}")
        return Kept(self._store, self._plain, self.capacity, float(gamma), child(self._generator))

    def holds(self, ids: Any) -> NDArray[np.bool_]:
        """Tell which ids name a transition that is held now. Takes time in proportion to what is held."""
        return np.isin(np.asarray(ids, np.int64), self._default.ids())

    # -- saving

    def save(self, path: str | PathLike[str], *, keep: int = 1, compress: bool = False, notes: Any = None) -> Saved:
        """Save everything to a directory, whole each time, since any place may have changed.

        Nobody may add meanwhile. Killed at any instant, the last save that came to its end is the one that loads.

        Args:
            path: A directory of its own; it is made if need be.
            keep: How many saves to keep there, this one included.
            compress: Squeeze files with zstandard.
            notes: Numbers, text, lists, dicts and arrays to keep beside it.

        Raises:
            CheckpointError: The directory holds something else, or the disk refuses. Saves that were there still load.
            TypeError: ``notes`` hold something else.
        """
        about = {
            "schema": describe(self.schema),
            "capacity": self.capacity,
            "marks": self._store.marks[:2, 0].copy(),
            "keep": state_of(self._generator),
            "draw": state_of(self._default.random),
            "notes": notes,
        }
        return arrays.save(path, KIND, about, self._parts(len(self)), keep=keep, compress=compress)

    @classmethod
    def load(cls, path: str | PathLike[str], *, save: int | None = None) -> Reservoir:
        """Bring a saved reservoir back: the next choices, and the next batches, are those of one that never stopped.

        Args:
            path: The directory.
            save: The number of an older save that was kept.

        Raises:
            CheckpointError: The save is missing or damaged, holds something else, or does not fit into memory.
        """
        found = arrays.Arrays(path, KIND, save)
        about = found.about
        marks = about.ints("marks", (2,))
        try:
            schema, capacity = described(about["schema"]), about.number("capacity", 1, 1 << 62)
            made = cls(schema, capacity, seed=generator_of(about["keep"]))
        except SchemaError as error:
            raise CheckpointError(f"schema: {error}") from error
        except BudgetExceeded as error:
            raise LargeCheckpoint(str(error)) from error
        made._default.random.bit_generator.state = generator_of(about["draw"]).bit_generator.state
        held = int(marks[0] - marks[1])
        if held < 0:
            raise CheckpointError(f"marks: expected no more cleared than added, got {marks.tolist()}")
        for name, part in made._parts(min(held, capacity)).items():
            found.fill(name, part)
        numbers = made._number[: min(held, capacity)]
        if len(numbers) and (numbers.min() < marks[1] or numbers.max() >= marks[0]):
            raise CheckpointError("arrays: ids that were never given out")
        made._store.marks[:2, 0], made.notes = marks, about["notes"]
        return made

    def _parts(self, held: int) -> dict[str, NDArray[Any]]:
        """Give what is held by name, in the memory where it lies."""
        parts = {"records": self._store.records[:held].view(self._store.layout.record)}
        return parts | {f"column {at}": column[:held] for at, column in enumerate(self._store.columns)}

    # -- figures

    def __len__(self) -> int:
        """Count the transitions held."""
        return self._default.held()

    @property
    def capacity(self) -> int:
        """Transitions that are held when it is full."""
        return self.plan.capacity

    @property
    def nbytes(self) -> int:
        """Bytes that the process pays, from its construction on."""
        return self._store.nbytes

    def stats(self) -> dict[str, Any]:
        """Give figures for a log; ``gone`` counts what was offered since the last ``clear`` and is not held."""
        size, (added, cleared) = len(self), self._store.marks[:2, 0].tolist()
        return {
            "size": size,
            "capacity": self.capacity,
            "nbytes": self.nbytes,
            "added": added,
            "gone": added - cleared - size,
        }

    def __repr__(self) -> str:
        """Say how full it is."""
        return f"Reservoir({len(self):,} of {self.capacity:,} transitions, {self.nbytes:,} bytes)"


class Kept:
    """Sample what a reservoir holds."""

    def __init__(self, store: Ram, plain: Layout, capacity: int, gamma: float, random: np.random.Generator) -> None:
        self._store, self._capacity, self.random = store, capacity, random
        layout = store.layout
        self._number = store.columns[-1]
        self._gathering = Gathering(store, [Part(at.leaf.name, at.leaf.field, at.offset) for at in layout.packed])
        self._columns = [
            (column, leaf.name, Pool(leaf.field.shape, leaf.field.kept))
            for column, leaf in enumerate(layout.columns[:-1])
        ]
        self._batch = Batch.kind(recipes_of(plain, 1, gamma))

    def held(self) -> int:
        """Count the transitions held."""
        added, cleared = self._store.marks[:2, 0].tolist()
        return min(added - cleared, self._capacity)

    def sample(self, n: int) -> Batch:
        """Draw ``n`` transitions, uniformly and with replacement.

        Raises:
            NotEnoughData: Nothing is held.
            ValueError: ``n`` is no number of rows.
        """
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"n: expected a whole number of at least 1, got {n!r}")
        for _ in range(ATTEMPTS):
            held = self.held()
            if not held:
                raise NotEnoughData(f"no transition can be drawn: 0 of {self._capacity} are held")
            slots = self.random.integers(0, held, int(n))
            numbers = self._number.take(slots)
            taken = Taken(Drawn(Anchors(None, numbers)), held)
            taken.arrays = self._gathering.take(slots)
            for column, name, pool in self._columns:
                taken.arrays[name] = self._store.frames(column, slots, pool.take(len(slots)))
            # a slot that a writer was at had no number at first, or has another one now
            if numbers.min() >= 0 and numbers.tobytes() == self._number.take(slots).tobytes():
                return self._batch(taken)
        raise NotEnoughData(
            f"a reservoir of {self._capacity} was overtaken {ATTEMPTS} times while {n} transitions were being read; "
            "give it more capacity, or draw fewer at a time"
        )

    def can_sample(self, n: int = 1) -> bool:
        """Tell whether at least ``n`` different transitions can be drawn."""
        return self.held() >= n

    def ids(self) -> Ints:
        """List the id of every transition held, in the order in which they were added."""
        numbers = self._number[: self.held()]
        return np.sort(numbers[numbers >= 0])

    def stats(self) -> dict[str, Any]:
        """Give nothing: draws are uniform."""
        return {}


def plan(
    schema: Schema,
    capacity: float | str | None = None,
    *,
    budget: float | str | None = None,
    limit: MemoryLimit | None = None,
) -> Plan:
    """Work out what a reservoir would take, without taking it.

    Raises:
        SchemaError: A field is stacked.
        ValueError: Neither capacity nor budget is given, or one of them makes no sense.
    """
    for leaf in schema.leaves():
        if leaf.field.stack is not None:
            raise SchemaError(
                f"{leaf.name}: stack={leaf.field.stack} needs the frames before a step, and a reservoir keeps single "
                f"transitions from anywhere in time; keep the stack whole: Field({leaf.field.presented}, ...)"
            )
    layout = paired(Layout.of(schema))
    found = memory_limit().shared if limit is None else limit
    available, reason = found.headroom, f"{found.rule}"
    if budget is not None and parse_bytes(budget) <= available:
        available, reason = parse_bytes(budget), f"budget={budget!r}"
    if capacity is not None:
        count = parse_count(capacity)
    elif budget is not None:
        count = max(_fitting(layout, parse_bytes(budget)), 1)  # ``check`` says if even that is too much
    else:
        raise ValueError('give capacity=1_000_000 or budget="2 GiB"')
    lines = tuple(cost(layout, _shape(count)))
    return Plan(schema, count, 1, _shape(count), lines, available, reason, _fitting(layout, available))


def paired(plain: Layout) -> Layout:
    """Give the layout of records that hold their successor's observation too, with a column of arrival numbers."""
    start = plain.itemsize
    after = [
        Place(Leaf(successor(place.leaf.name), place.leaf.field, "extra"), start + place.offset)
        for place in plain.packed
        if place.leaf.role == "obs"
    ]
    width = max(place.leaf.field.kept.itemsize for place in plain.packed)
    return Layout(
        plain.schema,
        (*plain.packed, *after),
        (*plain.columns, *(Leaf(successor(leaf.name), leaf.field, "extra") for leaf in plain.obs_columns), NUMBER),
        plain.obs_nbytes,
        plain.final_offset,
        start + -(-plain.obs_nbytes // width) * width,
    )


def _shape(capacity: int) -> RingShape:
    return RingShape(streams=1, capacity=capacity, finals=1)


def _fitting(layout: Layout, available: int) -> int:
    """Give the largest capacity that takes at most ``available`` bytes; cost grows with capacity."""

    def fits(capacity: int) -> bool:
        return sum(line.nbytes for line in cost(layout, _shape(capacity))) <= available

    low, high = 0, available // layout.itemsize + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _given(rows: Rows, name: str) -> NDArray[Any]:
    """Find what was given for a leaf, or for the successor of one."""
    values, successors = rows
    return values[name] if name in values else successors[name.removeprefix(successor(""))]
