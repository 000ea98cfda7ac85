"""The buffer of IRIS: one environment's steps, and windows of them with the observation that follows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.draw import Seed
from ringfence.view.sequences import Sequences
from ringfence.worldmodels import given
from ringfence.worldmodels.settled import Settled
from ringfence.worldmodels.slotted import Slotted
from ringfence.worldmodels.snapshot import Kind
from ringfence.worldmodels.steps import Ends, schema_of

Array = NDArray[Any]
FLAG = "terminal"  # as it was given, numbers between 0 and 1 too: the core's own flag is a bool
KIND = Kind(
    "IRISReplayBuffer",
    lambda settings: schema_of(settings["obs_shape"], settings["action_size"], (FLAG,)),
    ("obs_shape", "action_size", "seq_len", "batch_size"),
)


class IRISReplayBuffer(Slotted):
    """Keep the newest steps of one environment, and sample windows of them with one observation more.

    Windows are uniform over all that lie inside one episode and whose last step's successor is known. Costs one image
    and about ``4 * action_size + 25`` bytes a step, all taken when the object is made. One thread may add and another
    one sample.

    Args:
        size: Steps that are kept; the oldest go first.
        obs_shape: Shape of an image, such as ``(3, 64, 64)``.
        action_size: Length of an action.
        seq_len: Steps of a window. It and ``batch_size`` may be changed at any time.
        batch_size: Windows of a sample.
        budget: Bytes, such as ``"2 GiB"``: as many steps as fit, or a bound on what ``size`` may take.
        seed: An int, a SeedSequence or a Generator; the global generator is never used.
        episode_length: Steps of an average episode: where episodes are shorter, the oldest steps go early, since one
            more image is kept for each. 64 unless given.

    Raises:
        BudgetExceeded: It does not fit the budget, or what the process may still take. Nothing was taken.
        SchemaError: A shape or a size makes no sense, or ``size`` is less than one window.
        ValueError: Neither size nor budget is given.
    """

    KIND, FLAG, SEQ_LEN = KIND, FLAG, 20

    def __init__(
        self,
        size: int | None = None,
        obs_shape: Iterable[int] | None = None,
        action_size: int | None = None,
        seq_len: int = SEQ_LEN,
        batch_size: int = 64,
        *,
        budget: float | str | None = None,
        seed: Seed = None,
        episode_length: int | None = None,
    ) -> None:
        settings = {"obs_shape": obs_shape, "action_size": action_size, "seq_len": seq_len, "batch_size": batch_size}
        self._make(size, settings, budget, seed, episode_length)

    # -- writing

    def add(
        self,
        obs: Any,
        action: Any,
        reward: Any,
        terminal: Any,
        *,
        next_obs: Any = None,
        truncated: Any = False,
    ) -> None:
        """Add a step: the action taken at an observation, and what came of it.

        Args:
            obs: A uint8 array of ``obs_shape``.
            action: Of shape ``(action_size,)``.
            reward: The reward.
            terminal: The episode reached its end with this step: a bool, or a number from 0 to 1.
            next_obs: The observation after the action, as ``obs``. Inside an episode the next step brings it. At an
                episode's end it is the only way to tell: where it is not given, ``obs`` is repeated in its place. Given
                always, a reset that nothing told of is noticed, and the episode is cut there.
            truncated: The episode was stopped with this step, by a time limit for example. Windows end there, and
                ``terminals`` stay 0.

        Raises:
            SchemaError: Anything is of another kind or shape. Nothing was changed.
        """
        end = given.share("terminal", terminal)
        ends = Ends(bool(end), bool(given.share("truncated", truncated)) and not end)
        action, reward = given.plain(action), given.plain(reward)
        self._steps.add(given.plain(obs), action, reward, given.plain(next_obs), ends, terminal=end)

    def cut(self) -> None:
        """End the open episode at its newest step: the environment was reset, though no step said so."""
        self._steps.cut()

    # -- reading

    def sample_sequence(self, seq_len: int | None = None) -> tuple[Array, Array, Array, Array]:
        """Draw ``batch_size`` windows, with replacement.

        Args:
            seq_len: Steps of a window; the buffer's own unless given.

        Returns:
            Fresh arrays: images (B, L + 1, ...) in uint8, actions (B, L, A), rewards (B, L) and terminals (B, L) in
            float32. The last image is what followed the last action, also where that ended the episode.

        Raises:
            NotEnoughData: There is no window that long; the text holds the counts.
            SchemaError: ``seq_len`` or ``batch_size`` is no such number.
        """
        view, _ = self._windows(self.seq_len if seq_len is None else seq_len)
        batch = view.sample(given.count("batch_size", self.batch_size))
        return batch.obs, batch.action, batch.reward, batch.terminal

    def sample_single(self) -> tuple[Array, Array, np.float32, np.float32]:
        """Draw one of the steps held, uniformly: image, action, reward and terminal, all copies.

        Raises:
            NotEnoughData: Nothing is held.
        """
        found = self._steps.starts(1, 0, ("obs", "action", "reward", FLAG))
        return found["obs"][0], found["action"][0], found["reward"][0], found[FLAG][0]

    def sample_with_burn_in(self, batch_size: int, burn_in: int) -> tuple[Array, Array]:
        """Draw images to imagine from, together with those before them.

        Drawn are steps whose ``burn_in`` predecessors are held, as far as their episode has that many; for those that
        it does not have, its first image is repeated.

        Returns:
            Fresh arrays in uint8: images (B, ...), and those before each, oldest first (B, burn_in, ...).

        Raises:
            NotEnoughData: There is no such step; the text holds the counts.
            SchemaError: One of the numbers makes no sense.
        """
        before = given.count("burn_in", burn_in, 0)
        found = self._steps.starts(given.count("batch_size", batch_size), before, ("obs",))
        none = np.zeros((int(batch_size), 0, *self.obs_shape), np.uint8)
        return found["obs"], found.get("earlier", none)

    def can_sample(self, n: int = 1) -> bool:
        """Tell whether at least ``n`` different windows can be drawn."""
        view, draw = self._windows(self.seq_len)
        return view.can_sample(n + draw.leaves_out())

    def _windows(self, seq_len: Any) -> tuple[Sequences, Settled]:
        """Give the view of windows of this length, and its draw: the last one again where it is of this length."""
        length = given.count("seq_len", seq_len)
        if self._view is None or self._view[0] != length:
            draw = Settled(self._steps.generator, self._steps.knows)
            self._view = length, self.replay.sequences(length, bootstrap=True, draw=draw), draw
        return self._view[1], self._view[2]

    @property
    def buffer_capacity(self) -> int:
        """Steps that are kept."""
        return self.size

    def _refill(self, obs: Array, action: Array, reward: Any, terminal: Any, terminated: Any) -> None:
        del terminated  # which IRIS's files do not have: their terminals are
        self.add(obs, action, reward, terminal)
