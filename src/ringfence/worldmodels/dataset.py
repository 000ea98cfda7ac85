"""Windows of a ring for a ``DataLoader``, whose workers read the ring where it is."""

from __future__ import annotations

from multiprocessing import reduction
from multiprocessing.context import get_spawning_popen
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import Dataset, get_worker_info

from ringfence.errors import SchemaError
from ringfence.replay import Replay
from ringfence.schema import Layout, Schema
from ringfence.store import Ram
from ringfence.store.base import RingShape
from ringfence.store.ram import Shared
from ringfence.timeline import Ints, Look, Timeline
from ringfence.view.span import Span
from ringfence.worldmodels import given
from ringfence.worldmodels.chosen import Reader
from ringfence.worldmodels.pixels import channels_first

STALE = 64  # a list of windows is made anew where the ring moved by one part in so many: it takes a pass over all ages


class Listed(NamedTuple):
    """The legal windows of one moment."""

    look: Look
    starts: Ints


class SequenceDataset(Dataset[dict[str, torch.Tensor]]):
    """Show every legal window of a buffer, oldest first, as the ring turns.

    Window ``i`` is the i-th of those that lie inside one episode and are held when it is asked for, so that an index
    names a newer window after the ring turned. One of an epoch that began with more windows than there are now gives
    another of them (the remainder by their number); any other one that is too large is an IndexError. While steps are
    added, the list may lag by one part in 64 of the ring; what it gives is held and whole in any case.

    Workers, forked or spawned, read the buffer's own memory, and see what is added later. Each holds the list of
    starts: 8 bytes a window. Spawned ones need Linux.

    Args:
        replay_buffer: Whose steps to show.
        sequence_length: Steps of a window, the burn-in among them.
        burn_in: How many of these, at its beginning, are there as context: ``learning`` is false for them.

    Raises:
        SchemaError: One of the numbers makes no sense.
    """

    def __init__(self, replay_buffer: Any, sequence_length: int = 5, burn_in: int = 4) -> None:
        self.replay_buffer = replay_buffer
        self.sequence_length = given.count("sequence_length", sequence_length)
        self.burn_in = context(burn_in, self.sequence_length)
        self._ring: Replay | None = None
        self._told = 0
        self._attach()

    def _attach(self) -> None:
        """Serve the buffer's ring, which is another one after its first action was no integer."""
        ring = None if self.replay_buffer is None else self.replay_buffer.replay
        if ring is not None and ring is not self._ring:
            self._ring = ring
            self._serve(ring._store, ring._timeline)  # noqa: SLF001, the parts that read

    def _serve(self, store: Ram, timeline: Timeline) -> None:
        span = Span(self.sequence_length, bootstrap=True)
        self._store, self._timeline = store, timeline
        self._window = span.window(store.layout.schema)
        self._reader = Reader(store, timeline, span)
        self._listed: Listed | None = None

    # -- reading

    def __len__(self) -> int:
        """Count the legal windows of now."""
        self._attach()
        self._told = len(self._list(self._timeline.look(), lag=0))
        return self._told

    def __getitem__(self, idx: int) -> dict[str, torch.Tensor]:
        """Copy a window: ``obs_seq`` and ``next_obs`` in float32 from -1 to 1, actions, rewards, dones, learning.

        Raises:
            IndexError: There is no such window, and was none when the length was last asked for.
        """
        return self.__getitems__([idx])[0]

    def __getitems__(self, indices: list[int]) -> list[dict[str, torch.Tensor]]:
        """Copy the windows of a batch at once, which is how PyTorch's loader asks for them."""
        self._attach()
        batch = self._reader.read(len(indices), lambda look: self._starts(look, indices))
        frames = channels_first(torch.from_numpy(batch.obs))  # a window's own and what follows: no frame is in two
        actions, rewards = plain_actions(torch.from_numpy(batch.action)), torch.from_numpy(batch.reward)
        dones, learning = torch.from_numpy(batch.terminated), torch.arange(self.sequence_length) >= self.burn_in
        rows = zip(frames.unbind(), actions.unbind(), rewards.unbind(), dones.unbind(), strict=True)
        return [
            {
                "obs_seq": obs[:-1],
                "action_seq": action,
                "actions": action,
                "rewards": reward,
                "dones": done,
                "next_obs": obs[-1],
                "learning": learning,
            }
            for obs, action, reward, done in rows
        ]

    def _starts(self, look: Look, indices: list[int]) -> Ints:
        """Give the times of the first steps of windows that are legal by this look."""
        starts = self._list(look, len(self._listed.starts) // STALE if self._listed else 0)
        count = len(starts)
        # a worker was not told how many there were when its indices were drawn
        most = max(count, self._told) if get_worker_info() is None else self._timeline.capacity
        for idx in (min(indices), max(indices)):
            if not -count <= idx < most:
                raise IndexError(
                    f"index {idx} is out of range: {count} windows of {self.sequence_length} steps are held"
                )
        if not count:
            raise self._timeline.refuse(look, self._window)
        return starts[np.array(indices) % count]

    def _list(self, look: Look, lag: int) -> Ints:
        """List the windows, at most so many steps behind a look."""
        listed = self._listed
        if listed is None or listed.look.marks != look.marks:
            moved = lag + 1 if listed is None else look.heads[0] - listed.look.heads[0]
            if moved > lag or moved < 0:
                listed = Listed(look, self._timeline.every(look, self._window).times)
            elif listed is not None and len(listed.starts) and listed.starts[0] < look.tails[0]:
                gone = int(np.searchsorted(listed.starts, look.tails[0]))
                listed = listed._replace(starts=listed.starts[gone:])
            assert listed is not None
            self._listed = listed
        return listed.starts

    # -- workers

    def __getstate__(self) -> dict[str, Any]:
        """Give what a spawned worker reads the ring with: the way to its memory, and none of what is in it.

        Raises:
            TypeError: It is pickled for anything else, or this machine cannot share memory so.
        """
        self._attach()
        shared = self._store.shared
        if shared is None or get_spawning_popen() is None:
            raise TypeError(
                "SequenceDataset can be pickled for a process that is being spawned, on Linux; to keep its steps, use "
                "the buffer's save() or state_dict()"
            )
        return {
            "memory": reduction.DupFd(shared.fd),
            "nbytes": len(shared),
            "schema": self._store.layout.schema,
            "shape": self._store.shape,
            "sequence_length": self.sequence_length,
            "burn_in": self.burn_in,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Map the memory of the process that spawned this one."""
        schema: Schema = state["schema"]
        shape: RingShape = state["shape"]
        self.replay_buffer, self._ring, self._told = None, None, 0
        self.sequence_length, self.burn_in = state["sequence_length"], state["burn_in"]
        store = Ram(Layout.of(schema), shape, Shared(state["nbytes"], state["memory"].detach()))
        self._serve(store, Timeline(store))


def context(burn_in: Any, length: int) -> int:
    """Give the number of steps of a window that are context.

    Raises:
        SchemaError: It is none, or more than the window has.
    """
    steps = given.count("burn_in", burn_in, 0)
    if steps > length:
        raise SchemaError(
            f"burn_in: expected at most the {length} steps of the window, which it is part of, got {steps}"
        )
    return steps


def plain_actions(actions: torch.Tensor) -> torch.Tensor:
    """Give integers as int64, and one action a step without an axis of its own."""
    whole = actions if actions.is_floating_point() else actions.long()
    return whole.squeeze(-1) if whole.shape[-1] == 1 else whole
