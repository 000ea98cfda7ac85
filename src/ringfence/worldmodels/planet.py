"""The memory of PlaNet: whole episodes, and windows of them with the observation that follows."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, overload

import numpy as np
from numpy.typing import NDArray

from ringfence.draw import Seed
from ringfence.errors import BudgetExceeded, CheckpointError, NotEnoughData
from ringfence.limits import memory_limit
from ringfence.replay import Replay
from ringfence.saving import Saved, Saving, generator_of
from ringfence.saving.generator import state_of
from ringfence.units import format_bytes, parse_bytes
from ringfence.worldmodels import given
from ringfence.worldmodels.episode import Episode, Record
from ringfence.worldmodels.form import Form
from ringfence.worldmodels.reading import read_episode
from ringfence.worldmodels.saved import from_saved, to_saved
from ringfence.worldmodels.shelf import By, Room, Shelf

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Episode", "Memory"]
Array = NDArray[Any]
NAME = "Memory"
LIMIT = "200 MiB"  # of a batch: what simulusion's documentation names
BESIDE = 64  # bytes a step of a batch at most for flags and ages that are not handed out


class Memory:
    """Keep the newest episodes, whole, and sample windows of them.

    The first episode tells what a step is; only then the memory is taken. With ``steps`` or only a ``budget`` it is
    taken once. With ``size`` there is room for ``size`` episodes as long as the longest of the first ``append``; longer
    ones that come later make the ring grow, which takes both rings for a moment, and is refused where that does not
    fit. Costs one observation, one action, a reward, a terminal and about 25 bytes a step, and one observation an
    episode. Any number of threads may append and sample: they wait for each other, and nobody sees half an episode.

    Args:
        size: Episodes that are kept; the oldest go first, whole.
        budget: Bytes, such as ``"2 GiB"``: as many steps as fit, or a bound on what ``size`` or ``steps`` may take.
            With a bound the oldest episodes go where the ring may not grow.
        steps: Steps that are kept, for a ring that never grows.
        seed: An int, a SeedSequence or a Generator; the global generator is never used.
        draw: ``"episodes"``, each long enough is as likely as any other, whatever its length; ``"windows"``, each
            window is.
        limit: Bytes that a batch may take; None for whatever the process may still take.

    Raises:
        ValueError: Neither size nor budget nor steps is given, or one of the arguments makes no sense.
    """

    def __init__(
        self,
        size: int | None = None,
        *,
        budget: float | str | None = None,
        steps: int | None = None,
        seed: Seed = None,
        draw: By = "episodes",
        limit: float | str | None = LIMIT,
    ) -> None:
        if size is None and budget is None and steps is None:
            raise ValueError('size: give a number of episodes, or steps=100_000, or budget="2 GiB"')
        if draw not in get_args(By):
            raise ValueError(f'draw: expected "episodes" or "windows", got {draw!r}')
        if budget is not None:
            parse_bytes(budget)
        self._room = Room(
            None if size is None else given.count("size", size),
            None if steps is None else given.count("steps", steps),
            budget,
        )
        self._draw: By = draw
        self._limit = None if limit is None else parse_bytes(limit)
        self._generator = np.random.default_rng(seed)
        self._shelf: Shelf | None = None
        self._lock = threading.RLock()
        self.notes: Any = None
        """What the save that this was loaded from was given as ``notes``."""

    # -- writing

    def append(self, episodes: Any) -> None:
        """Add an episode that was terminated, or a list of them.

        Raises:
            BudgetExceeded: One is longer than the memory, or the memory cannot grow. Nothing was changed.
            SchemaError: One is not complete, or not like the first one. Nothing was changed, of a list neither.
            ValueError: It is neither an episode nor a list of episodes.
        """
        found = episodes if isinstance(episodes, list) else [episodes]
        records = [Record.of(episode) for episode in found]
        if records:
            with self._lock:
                self._put(records)

    def _put(self, records: list[Record]) -> None:
        form = Form.of(records[0]) if self._shelf is None else self._shelf.form
        records = [form.fit(record) for record in records]
        size = self._room.size
        records = records if size is None else records[-size:]
        lengths = [*self.eps_lengths, *(record.steps for record in records)]
        kept = lengths if size is None else lengths[-size:]
        now = 0 if self._shelf is None else self._shelf.replay.capacity
        capacity = self._room.capacity(form, kept, len(records), now)
        shelf = self._shelf
        if shelf is None or capacity > now:
            shelf = Shelf(self._room.ring(form, capacity), form)
            for old in () if self._shelf is None else self._shelf.records():
                shelf.put(old, size)
        for record in records:
            shelf.put(record, size)
        self._shelf = shelf

    def clear(self) -> None:
        """Forget every episode. What a step is, and the memory, stay."""
        with self._lock:
            if self._shelf is not None:
                self._shelf.replay.clear()

    # -- reading

    def sample(self, batch_size: int, tracelen: int = 1, time_first: bool = False) -> tuple[list[Array], Array]:
        """Draw windows, with replacement, from the episodes that are long enough.

        Args:
            batch_size: Windows.
            tracelen: Steps of a window.
            time_first: Give (T, B, ...) in place of (B, T, ...).

        Returns:
            Fresh arrays in the dtypes that were given: ``[x, u, r, t]`` of (B, T + 1, ...), (B, T, A), (B, T) and
            (B, T), and the lengths of the episodes that they are of, (B,) int64. With ``tracelen=1``, u, r and t have
            no axis of time. The last of x is what followed the last action, also where that ended the episode.

        Raises:
            BudgetExceeded: The batch would take more than ``limit``, or than the process may still take. It was not
                begun.
            NotEnoughData: Nothing is held, or no episode is that long.
            SchemaError: ``batch_size`` or ``tracelen`` is no such number.
        """
        count, length = given.count("batch_size", batch_size), given.count("tracelen", tracelen)
        with self._lock:
            lengths = self.eps_lengths
            shelf = self._shelf
            if shelf is None or not lengths:
                raise NotEnoughData("Memory is empty; append an episode before sampling")
            if max(lengths) < length:
                raise NotEnoughData(
                    f"No episodes with length >= {length} available to sample: the longest of {len(lengths)} has "
                    f"{max(lengths)} steps"
                )
            self._check(shelf.form, count, length)
            batch = shelf.windows(length, self._draw, self._generator).sample(count)
        parts = [batch.action, batch.reward, batch.terminal]
        if length == 1:
            parts = [part[:, 0] for part in parts]
        elif time_first:
            parts = [part.swapaxes(0, 1) for part in parts]
        # turned, not copied, as simulusion's are: gathering with time first took 1.8 times as long
        return [batch.obs.swapaxes(0, 1) if time_first else batch.obs, *parts], batch.length

    def _check(self, form: Form, count: int, length: int) -> None:
        """Refuse a batch that is too large, before anything is taken for it."""
        x, u = (np.dtype(dtype).itemsize * int(np.prod(shape, dtype=object)) for shape, dtype in (form.x, form.u))
        step = u + np.dtype(form.r).itemsize + np.dtype(form.t).itemsize + BESIDE
        wanted = count * ((length + 1) * x + length * step)
        may, why = self._limit, "limit= of this memory"
        # asking the machine takes longer than drawing a small batch does, which it can hardly lack the room for
        if may is None or parse_bytes(LIMIT) < wanted <= may:
            may, why = memory_limit().headroom, "what the process may still take"
        if wanted > may:
            raise BudgetExceeded(
                f"a batch of {count} windows of {length} steps takes {format_bytes(wanted)}, and {format_bytes(may)} "
                f"may be taken ({why}); ask for fewer or shorter windows, or give a larger limit="
            )

    def can_sample(self, n: int = 1, tracelen: int = 1) -> bool:
        """Tell whether at least ``n`` different windows of this length can be drawn."""
        length = given.count("tracelen", tracelen)
        return sum(max(0, steps - length + 1) for steps in self.eps_lengths) >= n

    # -- saving

    def save(
        self,
        path: str | PathLike[str],
        *,
        background: bool = False,
        keep: int = 1,
        compress: bool = False,
        notes: Any = None,
    ) -> Saved | Saving:
        """Save everything to a directory; arguments and errors as of :meth:`ringfence.Replay.save`.

        Raises:
            NotEnoughData: No episode was ever appended, so that there is nothing to save.
        """
        with self._lock:
            shelf = self._known("save")
            beside = {**self._state(shelf), "notes": notes}
            return shelf.replay.save(path, background=background, keep=keep, compress=compress, notes=beside)

    @classmethod
    def load(cls, path: str | PathLike[str], *, save: int | None = None, limit: float | str | None = LIMIT) -> Self:
        """Bring a saved memory back, so that the next samples are those of a run that never stopped.

        Args:
            path: The directory.
            save: The number of an older save that was kept.
            limit: As of a new memory.

        Raises:
            CheckpointError: The save is missing or damaged, holds something else, or does not fit.
        """
        replay = Replay.load(path, save=save)
        notes = replay.notes
        if not isinstance(notes, dict) or notes.get("buffer") != NAME:
            raise CheckpointError(f"{path}: holds no {NAME} of PlaNet")
        memory = cls(steps=1, limit=limit)
        memory._take(notes, replay)
        memory.notes = notes.get("notes")
        return memory

    def state_dict(self) -> dict[str, Any]:
        """Copy everything into plain numbers, text and tensors (arrays without PyTorch), for ``torch.save``.

        ``torch.load(weights_only=True)`` reads it.

        Raises:
            NotEnoughData: No episode was ever appended.
        """
        with self._lock:
            shelf = self._known("state_dict")
            ring = {"capacity": shelf.replay.capacity, "replay": shelf.replay.state_dict()}
            return to_saved({**self._state(shelf), **ring})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what :meth:`state_dict` gave, in place of all that is held, with its ``size`` and ``draw``.

        Takes the memory of a second ring until it is done.

        Raises:
            CheckpointError: The state is damaged. Nothing was changed.
            BudgetExceeded: A second ring does not fit. Nothing was changed.
        """
        found = from_saved(state)
        capacity = found.get("capacity")
        if found.get("buffer") != NAME or type(capacity) is not int or capacity < 1:
            raise CheckpointError(f"state: expected what state_dict() of a {NAME} gives, got {', '.join(found)}")
        form, room = Form.load(found.get("form")), _room(found.get("room"))
        with self._lock:
            replay = room.ring(form, capacity)
            replay.load_state_dict(found.get("replay") or {})
            self._take(found, replay)

    def _known(self, call: str) -> Shelf:
        if self._shelf is None:
            raise NotEnoughData(f"{call}: no episode was ever appended, so there is nothing to keep")
        return self._shelf

    def _state(self, shelf: Shelf) -> dict[str, Any]:
        """Give all that is not in the ring."""
        room = dict(self._room._asdict())
        generator = state_of(self._generator)
        return {"buffer": NAME, "room": room, "draw": self._draw, "form": shelf.form.state(), "generator": generator}

    def _take(self, state: Mapping[str, Any], replay: Replay) -> None:
        """Check what stood beside a ring, and serve both."""
        form, room = Form.load(state.get("form")), _room(state.get("room"))
        if replay.schema != form.schema() or replay.streams != 1:
            raise CheckpointError(f"the ring holds {replay.schema}, and the form is of {form.schema()}")
        if state.get("draw") not in get_args(By):
            raise CheckpointError(f'draw: expected "episodes" or "windows", got {state.get("draw")!r}')
        generator = generator_of(state.get("generator"))
        self._room, self._draw, self._generator = room, state["draw"], generator
        self._shelf = Shelf(replay, form)

    @classmethod
    def from_npz(cls, path: str | PathLike[str], size: int | None = None, **options: Any) -> Self:
        """Read the ``episode_000000.npz`` files that simulusion writes to a directory, in the order of their names.

        Args:
            path: The directory.
            size: Episodes to have room for; as many as there are files unless given, or what ``options`` say.
            options: As of a new memory.

        Raises:
            CheckpointError: There is no such file, or one is damaged; the text names it.
        """
        files = sorted(Path(path).glob("episode_*.npz"))
        if not files:
            raise CheckpointError(f"{path}: holds no episode_*.npz")
        free = size is None and options.get("budget") is None and options.get("steps") is None
        memory = cls(len(files) if free else size, **options)
        for file in files:
            episode = Episode()
            episode.x, episode.u, episode.r, episode.t = read_episode(file)
            memory.append(episode)
        return memory

    # -- figures

    def __len__(self) -> int:
        """Count the episodes held."""
        return len(self.eps_lengths)

    @property
    def size(self) -> int:
        """Steps of all episodes held."""
        return 0 if self._shelf is None else len(self._shelf.replay)

    @property
    def episodes(self) -> Episodes:
        """The episodes held, oldest first: copied where one is asked for, and not before."""
        return Episodes(self)

    @property
    def eps_lengths(self) -> Lengths:
        """Steps of each episode held, oldest first."""
        return Lengths(self, [] if self._shelf is None else self._shelf.lengths)

    @property
    def nbytes(self) -> int:
        """Bytes that the process pays for the ring; 0 until the first episode comes."""
        return 0 if self._shelf is None else self._shelf.replay.nbytes

    def __repr__(self) -> str:
        """Say how full it is."""
        return f"Memory({len(self):,} episodes of {self.size:,} steps, {self.nbytes:,} bytes)"


class Lengths(list[int]):
    """A list of lengths; ``clear`` forgets the episodes that they are of, as one clears simulusion's."""

    def __init__(self, memory: Memory, lengths: list[int]) -> None:
        super().__init__(lengths)
        self._memory = memory

    def clear(self) -> None:
        """Forget every episode."""
        self._memory.clear()
        super().clear()


class Episodes(Sequence[Episode]):
    """The episodes of a memory, oldest first. Costs nothing: each one that is asked for is a copy."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def __len__(self) -> int:
        return len(self._memory)

    @overload
    def __getitem__(self, key: int) -> Episode: ...
    @overload
    def __getitem__(self, key: slice) -> list[Episode]: ...
    def __getitem__(self, key: int | slice) -> Episode | list[Episode]:
        numbers = range(len(self))[key]
        return [self._read(number) for number in numbers] if isinstance(numbers, range) else self._read(numbers)

    def __iter__(self) -> Iterator[Episode]:
        return (self._read(number) for number in range(len(self)))

    def clear(self) -> None:
        """Forget every episode."""
        self._memory.clear()

    def _read(self, number: int) -> Episode:
        with self._memory._lock:  # noqa: SLF001, its own part
            record = self._memory._known("episodes").read(number)  # noqa: SLF001
        episode = Episode()
        episode.x, episode.r, episode.t = record.x, record.r, record.t
        episode.u = record.u[:, 0] if record.flat else record.u
        episode._size = record.steps  # noqa: SLF001, built whole
        return episode


def _room(state: Any) -> Room:
    try:
        room = Room(**state)
        for name in ("size", "steps"):
            if getattr(room, name) is not None:
                given.count(name, getattr(room, name))
        if room.budget is not None:
            parse_bytes(room.budget)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"room: is damaged: {error}") from error
    return room
