"""The buffer of Dreamer: one environment's steps, and windows of them in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numpy.typing import NDArray

from ringfence.draw import Seed
from ringfence.timeline import Boundary
from ringfence.view.sequences import Sequences
from ringfence.worldmodels import given
from ringfence.worldmodels.settled import Settled
from ringfence.worldmodels.slotted import Slotted
from ringfence.worldmodels.snapshot import Kind
from ringfence.worldmodels.steps import Ends, Steps, schema_of

Array = NDArray[Any]
FLAGS = ("done", "ended")  # as they were given, numbers between 0 and 1 too: the core's own flags are bools
KIND = Kind(
    "ReplayBuffer",
    lambda settings: schema_of(settings["obs_shape"], settings["action_size"], FLAGS),
    ("obs_shape", "action_size", "seq_len", "batch_size", "cross_boundaries"),
)


class ReplayBuffer(Slotted):
    """Keep the newest steps of one environment, and sample windows of ``seq_len`` steps for a world model.

    Windows are uniform over all that lie inside one episode, the newest step's among them. Costs one image and about
    ``4 * action_size + 30`` bytes a step, all taken when the object is made. One thread may add and another one sample.

    Args:
        size: Steps that are kept; the oldest go first.
        obs_shape: Shape of an image, such as ``(3, 64, 64)``.
        action_size: Length of an action.
        seq_len: Steps of a window. It and ``batch_size`` may be changed at any time.
        batch_size: Windows of a sample.
        budget: Bytes, such as ``"2 GiB"``: as many steps as fit, or a bound on what ``size`` may take.
        seed: An int, a SeedSequence or a Generator; the global generator is never used.
        cross_boundaries: Let windows go on into the next episode; ``terminals`` tells where one ends.
        episode_length: Steps of an average episode: where episodes are shorter, the oldest steps go early, since one
            more image is kept for each. 64 unless given.

    Raises:
        BudgetExceeded: It does not fit the budget, or what the process may still take. Nothing was taken.
        SchemaError: A shape or a size makes no sense, or ``size`` is less than one window.
        ValueError: Neither size nor budget is given.
    """

    KIND, FLAG, SEQ_LEN = KIND, "done", 50

    def __init__(
        self,
        size: int | None = None,
        obs_shape: Iterable[int] | None = None,
        action_size: int | None = None,
        seq_len: int = SEQ_LEN,
        batch_size: int = 50,
        *,
        budget: float | str | None = None,
        seed: Seed = None,
        cross_boundaries: bool = False,
        episode_length: int | None = None,
    ) -> None:
        settings = {"obs_shape": obs_shape, "action_size": action_size, "seq_len": seq_len, "batch_size": batch_size}
        self._make(size, settings | {"cross_boundaries": cross_boundaries}, budget, seed, episode_length)

    def _begin(self, steps: Steps, settings: Mapping[str, Any]) -> None:
        super()._begin(steps, settings)
        self.cross_boundaries = bool(settings["cross_boundaries"])
        """Whether windows may go on into the next episode. It may be changed at any time."""

    # -- writing

    def add(self, obs: Any, ac: Any, rew: Any, done: Any, terminated: Any = None, next_obs: Any = None) -> None:
        """Add a step: the action taken at an observation, and what came of it.

        Args:
            obs: A dict whose ``"image"`` is a uint8 array of ``obs_shape``; other keys are not looked at.
            ac: The action, of shape ``(action_size,)``.
            rew: The reward.
            done: The episode ended with this step, for whatever reason: a bool, or a number from 0 to 1.
            terminated: It reached its end, and was not merely stopped; ``done`` unless given.
            next_obs: The observation after the action, as ``obs``. Not needed: the next step brings it. Given at an
                episode's end, the last observation is kept, for ``replay.sequences(..., bootstrap=True)``; given
                always, a reset that no ``done`` told of is noticed, and the episode is cut there.

        Raises:
            SchemaError: Anything is of another kind or shape. Nothing was changed.
        """
        picture = given.image("obs", obs)
        successor = None if next_obs is None else given.image("next_obs", next_obs)
        end = given.share("done", done)
        final = end if terminated is None else given.share("terminated", terminated)
        ends = Ends(bool(end and final), bool(end and not final))
        action, reward = given.plain(ac), given.plain(rew)
        if self._steps.add(picture, action, reward, successor, ends, done=end, ended=final):
            self._steps.write(2, done=1.0)

    def cut(self) -> None:
        """End the open episode at its newest step: the environment was reset, though no step said so."""
        if self._steps.cut():
            self._steps.write(1, done=1.0)

    # -- reading

    def sample(self, include_terminated: bool = False) -> tuple[Array, ...]:
        """Draw ``batch_size`` windows, with replacement.

        Args:
            include_terminated: Give ``terminated`` too.

        Returns:
            Fresh arrays, time first: images (L, B, ...) in uint8, actions (L, B, A), rewards (L, B), terminals (L, B)
            and, if asked for, terminated (L, B), in float32. Terminals are ``done`` as it was given.

        Raises:
            NotEnoughData: There is no window that long; the text holds the counts.
            SchemaError: ``seq_len`` or ``batch_size`` was changed to something that is no number.
        """
        batch = self._windows().sample(given.count("batch_size", self.batch_size))
        found = batch.obs, batch.action, batch.reward, batch.done
        return (*found, batch.ended) if include_terminated else found

    def can_sample(self, n: int = 1) -> bool:
        """Tell whether at least ``n`` different windows can be drawn."""
        return self._windows().can_sample(n)

    def _windows(self) -> Sequences:
        """Give the view of windows as long as is asked for now."""
        key = given.count("seq_len", self.seq_len), bool(self.cross_boundaries)
        if self._view is None or self._view[0] != key:
            boundary: Boundary = "cross" if key[1] else "stop"
            draw = Settled(self._steps.generator)
            self._view = key, self.replay.sequences(key[0], boundary=boundary, time_major=True, draw=draw)
        view: Sequences = self._view[1]
        return view

    @property
    def terminated(self) -> Array:
        """A copy of ``terminated`` by slot: the episode reached its end. It cannot be written to."""
        return self._steps.array("ended")

    def _refill(self, obs: Array, action: Array, reward: Any, terminal: Any, terminated: Any) -> None:
        self.add({"image": obs}, action, reward, terminal, terminated)

    def _settings(self) -> dict[str, Any]:
        return {**super()._settings(), "cross_boundaries": bool(self.cross_boundaries)}
