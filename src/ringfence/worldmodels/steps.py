"""Steps of one environment, recorded by callers who learn of an observation's successor one step late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringfence.draw import Seed, Uniform, child
from ringfence.errors import CheckpointError, SchemaError
from ringfence.plan import EPISODE
from ringfence.replay import Replay
from ringfence.saving import generator_of
from ringfence.saving.generator import state_of
from ringfence.schema import Field, Schema
from ringfence.timeline import Anchors, Ints, Window
from ringfence.view.gathering import Gathering, Part
from ringfence.view.sampler import Sampler
from ringfence.view.writing import Writing
from ringfence.worldmodels.column import Column

Array = NDArray[Any]
Ending = Literal["truncate", "continue"]
KNOWN = "known"


class Place(NamedTuple):
    """Where the next step goes. One object, so that a reader never sees half of a change."""

    head: int
    """The ring's time of the next step."""
    slot: int
    """The place that the buffer shows it at: it counts from 0 to ``size - 1``, and begins anew."""
    filled: int
    """How many slots hold steps."""


class Ends(NamedTuple):
    """How a step ends its episode, if it does."""

    terminated: bool
    truncated: bool


class Steps:
    """Record the steps of one environment in a ring, and show them by slot, as a buffer of plain arrays would.

    Costs what the ring costs. A step whose successor is not given gets the next step's observation as its successor;
    where its episode ends there, its own observation is repeated, since nothing else is known.
    """

    def __init__(self, replay: Replay, generator: np.random.Generator) -> None:
        """Serve a replay of one stream whose schema :func:`schema_of` made."""
        self.replay, self.generator = replay, generator
        # parts of the core that a buffer may use and that its callers should not: they read and write single steps
        self._store, self._timeline, self._record = replay._store, replay._timeline, replay._record  # noqa: SLF001
        self._writing = Writing(self._store, self._timeline)
        self._columns = {leaf.name: at for at, leaf in enumerate(self._store.layout.columns)}
        self._packed = {
            place.leaf.name: Gathering(self._store, [Part(place.leaf.name, place.leaf.field, place.offset)])
            for place in self._store.layout.packed
        }
        self.place = Place(0, 0, 0)
        self.steps = 0
        """Steps ever added."""
        self.episodes = 0
        """Episodes that ended so far."""
        self._open, self._left = False, False

    @classmethod
    def make(cls, schema: Schema, size: Any, budget: Any, seed: Seed, episode_length: Any) -> Steps:
        """Take the memory for so many steps, or for as many as fit a budget.

        Raises:
            BudgetExceeded: It does not fit.
            ValueError: Neither size nor budget is given, or one of the numbers makes no sense.
        """
        if size is None and budget is None:
            raise ValueError('size: give a number of steps, or budget="2 GiB"')
        generator = np.random.default_rng(seed)
        length = EPISODE if episode_length is None else episode_length
        return cls(Replay(schema, size, budget=budget, seed=child(generator), episode_length=length), generator)

    # -- writing

    def add(self, obs: Any, action: Any, reward: Any, next_obs: Any, ends: Ends, **extras: Any) -> bool:
        """Add a step, in the slot of the oldest one where all are taken; tell whether the open episode was cut for it.

        That is so where the successor of the step before was given, and is not this step's observation; and where it
        was not given, and the buffer was loaded in between.
        """
        size, place = self.replay.capacity, self.place
        late = self._open and not self.knows(place.head - 1)
        resumed = late and self._left
        if resumed:
            self.cut()
            late = False
        write = self._record if late else self.replay.add
        extras[KNOWN] = next_obs is not None or any(ends)
        successor = obs if next_obs is None else next_obs
        time = write(obs, action, reward, successor, *ends, **extras)
        broken = self._open and not self._timeline.ages(self._rows(np.array([time])))[0]  # as the core found
        self.place = Place(time + 1, (place.slot + 1) % size, min(place.filled + 1, size))
        self.steps, self.episodes = self.steps + 1, self.episodes + any(ends) + broken
        self._open, self._left = not any(ends), False
        return broken or resumed

    def cut(self) -> bool:
        """End the open episode at its newest step; tell whether there was one."""
        was, self._open, self._left = self._open, False, False
        if was:
            self.replay.cut()
            self.write(1, **{KNOWN: True})
            self.episodes += 1
        return was

    def write(self, back: int, **extras: Any) -> None:
        """Overwrite extras of the step that was added so many steps before the next one."""
        self._writing.write(self.place.head - back, extras)

    def resume(self, slot: int, steps: int, episodes: int) -> None:
        """Take the counts of a buffer whose steps were all added just now; its open episode ends with the next step."""
        whole = self.place.filled == self.replay.capacity
        self.place = self.place._replace(slot=slot if whole else self.place.slot)
        self.steps, self.episodes, self._left = steps, episodes, True

    def clear(self) -> None:
        """Forget every step, and begin with slot 0."""
        self.replay.clear()
        self.place, self.steps, self.episodes = Place(self.place.head, 0, 0), 0, 0
        self._open = self._left = False

    # -- reading

    def knows(self, time: int) -> bool:
        """Tell whether the true successor of a stream's newest step, at this time, is in the ring."""
        return bool(self.take(KNOWN, np.array([time]))[0])

    def take(self, name: str, times: Ints) -> Array:
        """Copy a field of steps that are in the ring, laid out as their times are."""
        rows = self._rows(times)
        if name in self._columns:
            return self._store.frames(self._columns[name], rows)
        array = self._packed[name].take(rows.reshape(-1))[name]
        return array.reshape(*times.shape, *array.shape[1:])

    def starts(self, n: int, before: int, fields: tuple[str, ...]) -> dict[str, Array]:
        """Draw steps uniformly among those whose ``before`` predecessors are held, as far as their episodes have them.

        Gives fields of them, and ``"earlier"``: the observations before each, oldest first, of which the episode's
        first one is repeated in place of those that it does not have.

        Raises:
            NotEnoughData: There is no such step.
        """
        window = Window(before=before, short_start=True)
        draw = Uniform(self.generator)
        draw.start(self._timeline, window, self.generator)

        def read(_: Any, drawn: Any) -> dict[str, Array]:
            times = drawn.anchors.times
            found = {name: self.take(name, times) for name in fields}
            if before:
                reach = np.minimum(self._timeline.ages(self._rows(times)), before)
                found["earlier"] = self.take(
                    "obs", times[:, None] - np.minimum(np.arange(before, 0, -1), reach[:, None])
                )
            return found

        return Sampler(self._timeline, draw, window, reach=0).sample(n, read)

    def column(self, name: str) -> Column:
        """Show a field of all slots."""
        field = next(leaf.field for leaf in self.replay.schema.leaves() if leaf.name == name)
        return Column((self.replay.capacity, *field.shape), field.dtype, lambda slots: self._slots(name, slots))

    def array(self, name: str) -> Array:
        """Copy a field of all slots; it cannot be written to, so that nobody takes it for the ring itself."""
        array = np.asarray(self.column(name))
        array.flags.writeable = False
        return array

    def _slots(self, name: str, slots: Ints) -> Array:
        """Copy a field of some slots; of one that holds nothing yet, zeros."""
        size, place = self.replay.capacity, self.place
        back = (place.slot - 1 - slots) % size
        array = self.take(name, place.head - 1 - back)
        array[back >= place.filled] = 0
        passed = self.place.head - place.head
        stale = np.flatnonzero(back >= size - passed)
        if passed and len(stale):  # a writer put newer steps there meanwhile
            array[stale] = self._slots(name, slots[stale])
        return array

    def _rows(self, times: Ints) -> Ints:
        return self._timeline.rows(Anchors(None, times))

    # -- saving

    def state(self) -> dict[str, Any]:
        """Give all that is not in the ring, as plain numbers and text."""
        return {
            "slot": self.place.slot,
            "filled": self.place.filled,
            "steps": self.steps,
            "episodes": self.episodes,
            "open": self._open,
            "generator": state_of(self.generator),
        }

    def load(self, state: Mapping[str, Any], ending: Ending) -> None:
        """Take it back, where the ring is filled already.

        An episode that is open goes on if the next step's observation is the successor that was given. Where none was,
        it ends, since the environment will have been reset; with ``"continue"`` it goes on.

        Raises:
            CheckpointError: It is no such state.
        """
        generator, numbers = _checked(state)
        size, held = self.replay.capacity, len(self.replay)
        head = int(self.replay.stats()["added"])
        whole = numbers["filled"] == held and numbers["slot"] < size and (held == size or numbers["slot"] == held)
        self.place = Place(head, numbers["slot"] if whole else held % size, held)
        self.steps, self.episodes = numbers["steps"], numbers["episodes"]
        self._open = bool(state["open"]) and held > 0
        self._left = ending == "truncate"
        self.generator = generator


def check_state(state: Mapping[str, Any]) -> None:
    """Refuse what :meth:`Steps.load` would refuse, before anything is changed.

    Raises:
        CheckpointError: It is no such state.
    """
    _checked(state)


def check_ending(ending: Any) -> None:
    """Refuse a word that says nothing about open episodes.

    Raises:
        ValueError: It is neither of the two.
    """
    if ending not in ("truncate", "continue"):
        raise ValueError(f'open: expected "truncate" or "continue", got {ending!r}')


def schema_of(obs_shape: Any, action_size: int, flags: tuple[str, ...]) -> Schema:
    """Describe a step: an image, a vector of actions, and flags as the caller gave them, beside those of the core.

    Raises:
        SchemaError: The shape is none.
    """
    if obs_shape is None:
        raise SchemaError("obs_shape: expected a shape such as (3, 64, 64), got None")
    try:
        obs = Field(obs_shape, np.uint8)
    except SchemaError as error:
        raise SchemaError(f"obs_{error}") from None
    extras = {name: Field((), np.float32) for name in flags}
    return Schema(obs, Field((action_size,), np.float32), extras={**extras, KNOWN: Field((), np.bool_)})


def _checked(state: Mapping[str, Any]) -> tuple[np.random.Generator, dict[str, int]]:
    numbers = {}
    for name in ("slot", "filled", "steps", "episodes"):
        value = state.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise CheckpointError(f"{name}: expected a whole number of at least 0, got {value!r}")
        numbers[name] = value
    if not isinstance(state.get("open"), bool):
        raise CheckpointError(f"open: expected a bool, got {state.get('open')!r}")
    return generator_of(state.get("generator")), numbers
