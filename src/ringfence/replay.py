"""The class most people meet. It composes the rooms below and holds no logic of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ringfence.draw import Draw, Seed, Uniform, child
from ringfence.errors import BudgetExceeded, LargeCheckpoint, SchemaError
from ringfence.plan import EPISODE, Plan, plan
from ringfence.saving import Ending, Keeper, Opened, Ring, Saved, Saving, Shape, episodes
from ringfence.schema import Layout, Schema
from ringfence.schema.check import step_check
from ringfence.schema.rows import RowsCheck
from ringfence.store import Ram
from ringfence.timeline import Boundary, Ints, Timeline, WideWriter, Writer
from ringfence.timeline import wide as many
from ringfence.view import Batch, Transitions, transitions
from ringfence.view.goals import Strategy
from ringfence.view.hindsight import Hindsight
from ringfence.view.relabel import Relabel, Reward, Terminate
from ringfence.view.sequences import Sequences
from ringfence.view.span import Span


class Replay:
    """Keep the newest transitions of one or more environments in a fixed amount of memory.

    All memory is taken when the object is made, and none after. Nothing that is passed in stays referenced, and nothing
    that is given out refers to the ring.

    One thread may add to a stream at a time; any number of threads and forked processes may sample meanwhile.

    Args:
        schema: What one step is.
        capacity: Transitions in all, evenly shared by the streams and rounded down.
        budget: Bytes, such as ``"2 GiB"``: as many steps as fit, or a bound on what ``capacity`` may take.
        streams: Environments that are recorded side by side; each has its own time line.
        seed: An int, a SeedSequence or a Generator; the global generator is never used.
        store: Where the bytes live; ``"ram"``.
        episode_length: Steps of an average episode. Final observations are kept beside the ring; where episodes are
            shorter on average, the oldest steps go early, and ``stats()["early"]`` counts them.

    Raises:
        BudgetExceeded: The ring does not fit the budget, or what the process may still take. Nothing was taken.
        SchemaError: A stream's share is shorter than one stack of frames.
        ValueError: Neither capacity nor budget is given, or one of the numbers makes no sense.
    """

    def __init__(
        self,
        schema: Schema,
        capacity: float | str | None = None,
        *,
        budget: float | str | None = None,
        streams: int = 1,
        seed: Seed = None,
        store: Literal["ram"] = "ram",
        episode_length: int = EPISODE,
    ) -> None:
        if store != "ram":
            raise ValueError(f'store: expected "ram", got {store!r}')
        self.plan: Plan = plan(schema, capacity, budget=budget, streams=streams, episode_length=episode_length)
        self.plan.check()
        ram = Ram(Layout.of(schema), self.plan.shape)
        ring = Ring(ram, Timeline(ram), Writer(ram))
        self._compose(ring, WideWriter(ram, ring.writer), int(episode_length), seed)

    def _compose(self, ring: Ring, wide: WideWriter, episode_length: int, seed: Seed) -> None:
        """Put the rooms together."""
        self._store, self._timeline, self._writer = ring
        self._append, self._wide = self._writer.append, wide
        layout = self._store.layout
        self.schema, self._streams = layout.schema, self.plan.streams
        self._check, self._rows_check = step_check(layout), RowsCheck(layout)
        self._generator = np.random.default_rng(seed)
        self._keeper = Keeper(ring, Shape(self.capacity, self._streams, episode_length), self._generator)
        self._default = self._transitions(Uniform(), 1, 0.99, self._generator)

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
        """Add one transition of one stream; give its id.

        An observation that does not continue the stream's last ``next_obs`` cuts the episode there: no window crosses
        the cut, and ``stats()["breaks"]`` counts it.

        Args:
            obs: As the schema says; of a stacked field either one frame, or the stack, whose newest frame is kept.
            action: As the schema says.
            reward: As the schema says.
            next_obs: The observation after the action, also where the episode ended: the true last one.
            terminated: The episode reached its end.
            truncated: The episode was stopped, for example by a time limit.
            stream: Which environment.
            extras: The declared extras, by name.

        Raises:
            SchemaError: Anything does not match the schema. Nothing was changed.
        """
        step = self._check(obs, action, reward, next_obs, terminated, truncated, extras)
        if stream.__class__ is not int or not 0 <= stream < self._streams:
            stream = self._checked_stream(stream)
        return self._append(stream, step)

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
        """Add one transition to each of several streams; give their ids.

        Every argument is as in :meth:`add`, with one more axis in front: the streams.

        Args:
            obs: (streams, ...).
            action: (streams, ...).
            reward: (streams,).
            next_obs: (streams, ...); where an episode ended its true last observation, not the next one's first.
            terminated: (streams,) bool.
            truncated: (streams,) bool.
            streams: Which streams, each at most once, in the order of the rows; every stream in order unless given.
            extras: The declared extras, by name, each (streams, ...).

        Raises:
            SchemaError: Anything does not match the schema. Nothing was changed, in no stream.
        """
        who = None if streams is None else many.chosen(streams, self._streams)
        count = self._streams if who is None else len(who)
        with self._writer.lock:  # the staging block is one for all streams
            rows = self._rows_check.rows(count, (obs, action, reward, next_obs, terminated, truncated), extras)
            return self._wide.append(who, rows) if count else np.zeros(0, np.int64)

    def _record(
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
        """Add a transition that continues the stream's open episode, for those who learn of ``next_obs`` late.

        Without ``next_obs``, ``obs`` stands in its place until the stream's next step brings it.
        """
        step = self._check(obs, action, reward, obs if next_obs is None else next_obs, terminated, truncated, extras)
        return self._writer.follow(self._checked_stream(stream), step)

    def cut(self, stream: int | None = None) -> None:
        """End the open episode of a stream, or of all, where it stands: its environment was reset without an end.

        The newest transition keeps its flags and its successor; no window reaches across. Only needed where the next
        episode may begin with the very observation at which this one was left, since any other one is noticed.
        """
        for number in range(self._streams) if stream is None else [self._checked_stream(stream)]:
            self._writer.cut(number)

    def drop(self, episodes: int, stream: int = 0) -> int:
        """Drop the oldest held episodes of a stream, whole; give the number of transitions dropped.

        Ids of dropped steps stay stale for ever.

        Raises:
            ValueError: ``episodes`` is no number of episodes, or more than are held.
        """
        lengths = self.episode_lengths(stream)
        if (
            isinstance(episodes, bool)
            or not isinstance(episodes, int | np.integer)
            or not 0 <= episodes <= len(lengths)
        ):
            raise ValueError(f"episodes: expected a number from 0 to the {len(lengths)} held, got {episodes!r}")
        dropped = sum(lengths[:episodes])
        if dropped:
            self._writer.drop(int(stream), self._timeline.look().tail(int(stream)) + dropped)
        return dropped

    def clear(self) -> None:
        """Drop every step. Ids given out before stay stale for ever."""
        self._writer.clear()

    # -- reading

    def sample(self, n: int) -> Batch:
        """Draw ``n`` one-step transitions, uniformly and with replacement; fields as in :meth:`transitions`.

        Raises:
            NotEnoughData: Nothing can be drawn; the text holds the counts.
        """
        return self._default.sample(n)

    def transitions(self, n_step: int = 1, gamma: float = 0.99, draw: Draw | None = None) -> Transitions:
        """Give a view of the ring as transitions over ``n_step`` steps.

        Its batches hold ``obs``, ``action``, ``reward`` (the discounted sum over the steps used), ``next_obs``,
        ``terminated`` and ``truncated`` (of the last step used), the declared extras, ``discount`` (what to multiply
        the value of ``next_obs`` by: ``gamma ** steps``, 0 where terminated), ``steps`` (used: n, or fewer at an
        episode's end and at the newest step), ``ids``, ``weights`` and ``probabilities``.

        Args:
            n_step: Steps of one transition.
            gamma: Discount a step.
            draw: Which steps to take; uniform unless given.
        """
        view = self._transitions(draw, transitions.steps(n_step), transitions.factor(gamma), child(self._generator))
        self._keeper.views.add(view)
        return view

    def _transitions(self, draw: Draw | None, n_step: int, gamma: float, generator: np.random.Generator) -> Transitions:
        chosen = Uniform() if draw is None else draw
        chosen.start(self._timeline, transitions.window(self._store.layout), generator)
        return Transitions(self._store, self._timeline, chosen, n_step=n_step, gamma=gamma)

    def sequences(
        self,
        length: int,
        burn_in: int = 0,
        boundary: Boundary = "stop",
        *,
        time_major: bool = False,
        bootstrap: bool = False,
        stride: int = 1,
        state: Iterable[str] = (),
        gamma: float = 0.99,
        draw: Draw | None = None,
    ) -> Sequences:
        """Give a view of the ring as windows of consecutive steps, for recurrent networks and world models.

        Its batches are (B, T, ...) with T = burn_in + length. They hold ``obs``, ``action``, ``reward``,
        ``terminated``, ``truncated`` and the declared extras, ``is_first`` (a step begins its episode), ``mask`` (not
        padding), ``learning`` (neither padding nor burn-in), ``discount`` (``gamma``, 0 where terminated), ``ids`` (of
        the first steps, (B,)), ``step_ids`` (B, T), ``weights`` and ``probabilities``.

        Args:
            length: Steps to learn from.
            burn_in: Steps before them, to warm up a recurrent state.
            boundary: ``"stop"``, windows lie inside one episode; ``"cross"``, they go on into the next one; ``"pad"``,
                any step begins one, and what is missing after an episode's end is zeros with ``mask`` false.
            time_major: Give (T, B, ...).
            bootstrap: Give one observation more: the true successor of the last step.
            stride: Only every so-many-th step of an episode begins a window.
            state: Extras of which the first step's value alone is given, such as a stored recurrent state.
            gamma: Discount a step.
            draw: Which windows to take; uniform unless given.
        """
        span = Span(length, burn_in, boundary, time_major, bootstrap, stride, state, gamma)
        chosen = Uniform() if draw is None else draw
        chosen.start(self._timeline, span.window(self.schema), child(self._generator))
        view = Sequences(self._store, self._timeline, chosen, span)
        self._keeper.views.add(view)
        return view

    def hindsight(
        self,
        reward: Reward,
        strategy: Strategy = "future",
        ratio: float = 0.8,
        *,
        k: int | None = None,
        achieved: str = "achieved_goal",
        desired: str = "desired_goal",
        terminate: Terminate | None = None,
        n_step: int = 1,
        gamma: float = 0.99,
        draw: Draw | None = None,
    ) -> Hindsight:
        """Give a view of transitions some of which get a goal that was reached (Andrychowicz et al. 2017).

        Its batches are those of :meth:`transitions`, and ``relabelled`` tells which rows have another goal.

        Args:
            reward: ``reward(achieved, desired, info) -> (n,)`` on arrays, as Gymnasium-Robotics' ``compute_reward``.
            strategy: Which goal: reached later in the episode (``"future"``), at its end (``"final"``), anywhere in it
                (``"episode"``) or anywhere in memory (``"random"``). An open episode ends at its newest step.
            ratio: Probability that a transition is relabelled.
            k: Relabelled transitions for each that is not, in place of ``ratio``.
            achieved: Key of the observation that holds what was achieved.
            desired: Key of the observation that holds the goal.
            terminate: ``terminate(achieved, desired) -> (n,) bool``; the stored flags stand unless given.
            n_step: Steps of one transition.
            gamma: Discount a step.
            draw: Which steps to take; uniform unless given.
        """
        relabel = Relabel.of(
            self.schema, reward, strategy, ratio, k=k, achieved=achieved, desired=desired, terminate=terminate
        )
        n_step, gamma = transitions.steps(n_step), transitions.factor(gamma)
        chosen = Uniform() if draw is None else draw
        chosen.start(self._timeline, transitions.window(self._store.layout), child(self._generator))
        own = child(self._generator)
        view = Hindsight(self._store, self._timeline, chosen, own, relabel, n_step=n_step, gamma=gamma)
        self._keeper.views.add(view)
        return view

    def holds(self, ids: Any) -> NDArray[np.bool_]:
        """Tell which ids name a transition that is still held."""
        return self._timeline.holds(np.asarray(ids, np.int64))

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
        """Save everything to a directory: steps, open episodes, priorities, counts, generators.

        A second save to the same directory writes only what changed. Takes a few megabytes of memory, whatever the size
        of the ring. Killed at any instant, the last save that came to its end is the one that loads.

        Views that are in use are saved with their draws. Other threads may add meanwhile. With ``background`` the save
        is of the moment of the call; where adds overwrite old steps before these could be written, they are left out,
        as the ring itself has done by then, and counted as ``lost``. Values that a view's ``write`` changes meanwhile
        are saved as they were or as they are.

        Args:
            path: A directory of its own; it is made if need be.
            background: Return at once, and write in a thread: ``wait()`` on what is given tells the end.
            keep: How many saves to keep there, this one included.
            compress: Squeeze files with zstandard.
            notes: Numbers, text, lists, dicts and arrays to keep beside it, such as the step count of the training.

        Raises:
            CheckpointError: The directory holds something else, or the disk refuses. Saves that were there still load.
            TypeError: ``notes`` hold something else.
            ValueError: ``keep`` is no number of saves.
        """
        return self._keeper.save(path, background=background, keep=keep, compress=compress, notes=notes)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        store: Literal["ram", "mmap"] = "ram",
        capacity: float | str | None = None,
        *,
        budget: float | str | None = None,
        save: int | None = None,
        open: Ending = "continue",  # noqa: A002, the word for what an episode is
        schema: Schema | None = None,
    ) -> Replay:
        """Bring a saved replay back, so that the next batches are those of a run that never stopped.

        Views are made again as they were: each takes up where the one of its kind was left that was made first and has
        not been taken up yet.

        Args:
            path: The directory.
            store: ``"ram"``; or ``"mmap"``, to sample from the files where they lie, and never to change anything.
            capacity: Another capacity than it had; the newest steps are kept.
            budget: As of a new replay.
            save: The number of an older save that was kept.
            open: ``"continue"`` goes on with an open episode if the stream's next observation continues it;
                ``"truncate"`` ends it here, as truncated, since the environment will be reset.
            schema: Refuse a save of other steps.

        Raises:
            CheckpointError: The save is missing, damaged, or of another schema (then also a SchemaError), or its ring
                does not fit (then also a BudgetExceeded).
            ValueError: ``open`` is neither of the two.
        """
        if open not in ("continue", "truncate"):
            raise ValueError(f'open: expected "continue" or "truncate", got {open!r}')
        opened = Opened.at(path, save, schema)
        body = opened.body
        if store == "mmap":
            return cls.__new__(cls)._read_from(opened)  # noqa: SLF001, our own
        try:
            replay = cls(
                body.schema,
                body.shape.capacity if capacity is None and budget is None else capacity,
                budget=budget,
                streams=body.shape.streams,
                seed=opened.generator(),
                store=store,
                episode_length=body.shape.episode_length,
            )
        except BudgetExceeded as error:
            raise LargeCheckpoint(f"{error}; give load() a capacity or a budget") from error
        replay._keeper.fill(opened, open)
        return replay

    @classmethod
    def from_minari(cls, dataset: Any, capacity: float | str | None = None, **options: Any) -> Replay:
        """Fill a new replay with the episodes of a Minari data set; without a bound it holds every step."""
        whole = capacity is None and options.get("budget") is None
        replay = cls(episodes.described(dataset), dataset.total_steps if whole else capacity, **options)
        episodes.fill(replay, dataset)
        return replay

    def _read_from(self, opened: Opened) -> Replay:
        """Serve a save from its files; what would add to them refuses."""
        capacity, streams, episode_length = opened.body.shape
        self.plan = plan(opened.body.schema, capacity, streams=streams, episode_length=episode_length)
        ring, wide = opened.mapped(self.plan.shape)
        self._compose(ring, wide, episode_length, opened.generator())
        self._keeper.serve(opened)
        return self

    @property
    def notes(self) -> Any:
        """What the save that this was loaded from was given as ``notes``."""
        return self._keeper.notes

    def state_dict(self) -> dict[str, Any]:
        """Copy everything into a dict of plain arrays and text, as large as the steps held."""
        return self._keeper.state()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what :meth:`state_dict` gave, in place of all that is held. Arrays may be CPU tensors.

        Views of this replay take their states too. Nobody may add or sample meanwhile.

        Raises:
            CheckpointError: The state is damaged, or of another schema, capacity or number of streams. Nothing was
                changed.
        """
        self._keeper.load_state(self.schema, state)

    # -- figures

    def __len__(self) -> int:
        """Count the transitions held."""
        return self._timeline.look().total

    @property
    def capacity(self) -> int:
        """Transitions that the ring holds when full."""
        return self.plan.capacity

    @property
    def streams(self) -> int:
        """Environments recorded side by side."""
        return self._streams

    @property
    def nbytes(self) -> int:
        """Bytes that the process pays for the ring, from its construction on."""
        return self._store.nbytes

    def stats(self) -> dict[str, Any]:
        """Give figures for a log: plain numbers, and lists with one number a stream."""
        look = self._timeline.look()
        return {
            "size": look.total,
            "capacity": self.capacity,
            "nbytes": self.nbytes,
            "added": sum(map(int, look.heads)),
            "episodes": int(self._store.marks[2].sum()),
            "breaks": self._writer.breaks,
            "early": self._writer.early,
            "held": [int(head - tail) for head, tail in zip(look.heads, look.tails, strict=True)],
        }

    def episode_lengths(self, stream: int = 0) -> list[int]:
        """Give the number of held transitions of each episode of a stream, oldest first, the open one last."""
        return self._timeline.episode_lengths(self._checked_stream(stream))

    def __repr__(self) -> str:
        """Say how full the ring is."""
        return (
            f"Replay({len(self):,} of {self.capacity:,} transitions, {self._streams} stream(s), {self.nbytes:,} bytes)"
        )

    # -- checks

    def _checked_stream(self, stream: Any) -> int:
        if isinstance(stream, bool) or not isinstance(stream, int | np.integer) or not 0 <= stream < self._streams:
            raise SchemaError(f"stream: expected a number from 0 to {self._streams - 1}, got {stream!r}")
        return int(stream)
