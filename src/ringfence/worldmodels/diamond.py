"""The buffer of DIAMOND: one environment's steps as tensors, and a dataset of their windows. Needs PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

from ringfence.draw import Seed
from ringfence.errors import SchemaError
from ringfence.replay import Replay
from ringfence.saving import Saved, Saving
from ringfence.schema import Field, Schema
from ringfence.view.batch import Batch
from ringfence.view.pool import Pool
from ringfence.view.sequences import Sequences
from ringfence.view.span import Span
from ringfence.view.transitions import Transitions
from ringfence.view.transitions import window as window_of
from ringfence.worldmodels import given
from ringfence.worldmodels.chosen import view
from ringfence.worldmodels.dataset import SequenceDataset, context, plain_actions
from ringfence.worldmodels.pixels import channels_first, to_model_domain, to_pixel_domain
from ringfence.worldmodels.settled import Settled
from ringfence.worldmodels.snapshot import Kind
from ringfence.worldmodels.steps import KNOWN, Ending, Ends, Steps

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ReplayBuffer", "SequenceDataset", "to_model_domain", "to_pixel_domain"]
Tensors = dict[str, torch.Tensor]


def _schema(settings: Mapping[str, Any]) -> Schema:
    shape = settings["obs_shape"]
    if not isinstance(shape, Iterable) or len(tuple(shape)) != 3:
        raise SchemaError(f"obs_shape: expected (height, width, channels), got {shape!r}")
    action = Field((settings["action_size"],), settings["action_dtype"])
    return Schema(Field(shape, np.uint8), action, extras={KNOWN: Field((), np.bool_)})


KIND = Kind("diamond.ReplayBuffer", _schema, ("obs_shape", "action_size", "action_dtype"))


class ReplayBuffer:
    """Keep the newest steps of one environment, and sample single ones and windows of them as tensors.

    Each image is kept once, and one more for each episode. Costs one image and about ``8 * action_dim + 25`` bytes a
    step, all taken when the object is made. One thread may add and another one sample.

    Args:
        capacity: Steps that are kept; the oldest go first.
        obs_shape: Shape of an image: height, width, channels.
        action_dim: Numbers of an action; a plain number will do for 1.
        device: Where samples go; the accelerator if there is one unless given.
        budget: Bytes, such as ``"2 GiB"``: a bound on what ``capacity`` may take, or, where that is None, as many steps
            as fit.
        seed: An int, a SeedSequence or a Generator; the global generator is never used.
        action_dtype: Of actions; unless given, int64 or float32 as the first action is.
        episode_length: Steps of an average episode: where episodes are shorter, the oldest steps go early, since one
            more image is kept for each. 64 unless given.

    Raises:
        BudgetExceeded: It does not fit the budget, or what the process may still take. Nothing was taken.
        SchemaError: A shape, a size or a dtype makes no sense.
    """

    def __init__(
        self,
        capacity: int | None = 1000,
        obs_shape: Iterable[int] = (64, 64, 3),
        action_dim: int = 1,
        device: str | torch.device | None = None,
        *,
        budget: float | str | None = None,
        seed: Seed = None,
        action_dtype: DTypeLike | None = None,
        episode_length: int | None = None,
    ) -> None:
        settings = {
            "obs_shape": list(obs_shape) if isinstance(obs_shape, Iterable) else obs_shape,
            "action_size": given.count("action_dim", action_dim),
            "action_dtype": np.dtype(np.int64 if action_dtype is None else action_dtype).str,
        }
        if capacity is not None:
            given.count("capacity", capacity)
        steps = Steps.make(_schema(settings), capacity, budget, seed, episode_length)
        self._begin(steps, settings, device)
        self._inferred, self._episode_length = action_dtype is None, episode_length

    def _begin(self, steps: Steps, settings: dict[str, Any], device: Any) -> None:
        """Serve a ring."""
        self._steps, self._settings = steps, settings
        self._view: tuple[Any, Sequences] | None = None
        self._single: tuple[Any, Transitions] | None = None
        self.capacity: int = steps.replay.capacity
        """Steps that are kept."""
        self.obs_shape: tuple[int, ...] = steps.replay.schema.obs.shape
        """Shape of an image."""
        self._pool = Pool(self.obs_shape, np.dtype(np.float32))
        self.action_dim: int = settings["action_size"]
        """Numbers of an action."""
        self.device: Any = default_device() if device is None else device
        """Where samples go."""
        self.notes: Any = None
        """What the save that this was loaded from was given as ``notes``."""
        self._inferred, self._episode_length = False, None

    def _retype(self, dtype: np.dtype[Any]) -> None:
        """Take another ring for actions of another dtype, in place of one that never held a step."""
        settings = {**self._settings, "action_dtype": dtype.str}
        generator, schema = self._steps.generator, _schema(settings)
        self._view = self._single = None
        del self._steps  # before the other one is taken, so that there never are two
        self._steps = Steps.make(schema, self.capacity, None, generator, self._episode_length)
        self._settings = settings

    # -- writing

    def add(self, obs: Any, action: Any, reward: Any, done: Any, next_obs: Any, truncated: Any = False) -> None:
        """Add a step: the action taken at an observation, and what came of it.

        A step whose ``obs`` is not the ``next_obs`` of the one before begins a new episode.

        Args:
            obs: A uint8 array or tensor of ``obs_shape``.
            action: Of shape ``(action_dim,)``, or a plain number where that is 1.
            reward: The reward.
            done: The episode reached its end with this step.
            next_obs: The observation after the action, as ``obs``, also where the episode ended.
            truncated: The episode was stopped with this step, by a time limit for example. Windows end there, and
                ``dones`` stay false.

        Raises:
            SchemaError: Anything is of another kind or shape. Nothing was changed.
        """
        before, after = _frame("obs", obs), _frame("next_obs", next_obs)
        end = bool(given.share("done", done))
        ends = Ends(end, bool(given.share("truncated", truncated)) and not end)
        act, rew = np.asarray(given.plain(action)), given.plain(reward)
        if not act.ndim and self.action_dim == 1:
            act = act.reshape(1)
        if self._inferred and act.dtype.kind == "f" and act.shape == (self.action_dim,):
            self._retype(np.dtype(np.float32))
        self._steps.add(before, act, rew, after, ends)
        self._inferred = False

    def clear(self) -> None:
        """Forget every step."""
        self._steps.clear()

    # -- reading

    def sample(self, batch_size: int) -> Tensors:
        """Draw single steps, uniformly and with replacement.

        Returns:
            Fresh tensors on ``device``: ``obs`` and ``next_obs`` (B, C, H, W) in float32 from -1 to 1, ``actions`` (B,)
            or (B, action_dim), ``rewards`` (B,) in float32 and ``dones`` (B,) in bool.

        Raises:
            NotEnoughData: Nothing is held.
            SchemaError: ``batch_size`` is no such number.
        """
        batch = self._singles().sample(given.count("batch_size", batch_size))
        obs, after = (torch.from_numpy(frames).to(self.device) for frames in (batch.obs, batch.next_obs))
        return {
            "obs": channels_first(obs, self._pool),
            **self._rest(batch),
            "next_obs": channels_first(after, self._pool),
        }

    def sample_sequence(self, batch_size: int, sequence_length: int, burn_in: int = 0) -> Tensors:
        """Draw windows, uniformly over all that lie inside one episode, with replacement.

        Args:
            batch_size: How many.
            sequence_length: Steps of a window, the burn-in among them.
            burn_in: How many of these, at its beginning, are there as context: ``learning`` (B, T) is false for them.

        Returns:
            As :meth:`sample`, with an axis of T steps after the first.

        Raises:
            NotEnoughData: There is no window that long; the text holds the counts.
            SchemaError: One of the numbers makes no sense.
        """
        length = given.count("sequence_length", sequence_length)
        first = context(burn_in, length)
        batch = self._windows(length).sample(given.count("batch_size", batch_size))
        obs = torch.from_numpy(batch.obs).to(self.device)
        learning = torch.arange(length, device=self.device) >= first
        return {
            "obs": channels_first(obs[:, :-1], self._pool),
            **self._rest(batch),
            "next_obs": channels_first(
                obs[:, 1:], self._pool
            ),  # once more: a frame that is in both may be written to in one
            "learning": learning.repeat(len(obs), 1),
        }

    def _rest(self, batch: Batch) -> Tensors:
        """Give what is no image."""
        return {
            "actions": plain_actions(torch.from_numpy(batch.action).to(self.device)),
            "rewards": torch.from_numpy(batch.reward).to(self.device),
            "dones": torch.from_numpy(batch.terminated).to(self.device),
        }

    def _singles(self) -> Transitions:
        """Give the view of single steps: a third faster than windows of one."""
        if self._single is None or self._single[0] is not self._steps.generator:
            store, timeline, generator = self.replay._store, self.replay._timeline, self._steps.generator  # noqa: SLF001
            draw = Settled(generator)
            draw.start(timeline, window_of(store.layout), generator)
            self._single = generator, Transitions(store, timeline, draw, n_step=1, gamma=0.99)
        return self._single[1]

    def _windows(self, length: int) -> Sequences:
        """Give the view of windows of this length: the last one again where it is of this length."""
        key = length, self._steps.generator
        if self._view is None or self._view[0] != key:
            replay, generator = self.replay, self._steps.generator
            parts = replay._store, replay._timeline  # noqa: SLF001, the parts that read
            self._view = key, view(*parts, Span(length, bootstrap=True), Settled(generator), generator)
        return self._view[1]

    def can_sample(self, n: int = 1, sequence_length: int = 1) -> bool:
        """Tell whether at least ``n`` different windows of this length can be drawn."""
        return self._windows(given.count("sequence_length", sequence_length)).can_sample(n)

    def is_ready(self, min_size: int) -> bool:
        """Tell whether at least so many steps are held."""
        return len(self) >= min_size

    def episode_boundaries(self) -> NDArray[np.bool_]:
        """Tell for each slot whether an episode ended with its step, for whatever reason."""
        timeline, place = self.replay._timeline, self._steps.place  # noqa: SLF001, a read
        ended = np.zeros(self.capacity, np.bool_)
        last = timeline.episodes(timeline.look())[1]
        slots = (place.slot - place.head + last) % self.capacity
        ended[slots] = True
        if len(slots):  # the newest step is listed in any case
            ended[slots[-1]] = not self._steps.state()["open"]
        return ended

    # -- saving

    def save(self, path: str | PathLike[str], *, notes: Any = None, **options: Any) -> Saved | Saving:
        """Save everything to a directory; arguments and errors as of :meth:`ringfence.Replay.save`."""
        return KIND.save(self._steps, self._settings, path, notes, **options)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        *,
        capacity: int | None = None,
        device: str | torch.device | None = None,
        budget: float | str | None = None,
        save: int | None = None,
        open: Ending = "truncate",  # noqa: A002, the word for what the episode is
    ) -> Self:
        """Bring a saved buffer back; ``capacity`` may be another one, and the newest steps are kept.

        Raises:
            CheckpointError: The save is missing or damaged, holds something else, or does not fit.
        """
        found = KIND.open(path, open, capacity, budget, save)
        steps = Steps(found.replay, np.random.default_rng())
        steps.load(found.state, open)
        buffer = cls.__new__(cls)
        buffer._begin(steps, found.settings, device)  # noqa: SLF001, it is of this class
        buffer.notes = found.notes
        return buffer

    def state_dict(self) -> dict[str, Any]:
        """Copy everything into plain numbers, text and tensors; ``torch.load(weights_only=True)`` reads it back."""
        return KIND.state(self._steps, self._settings)

    def load_state_dict(self, state: Mapping[str, Any], open: Ending = "truncate") -> None:  # noqa: A002
        """Take back what :meth:`state_dict` gave, in place of all that is held.

        Raises:
            CheckpointError: The state is damaged, or of another capacity, shape or dtype. Nothing was changed.
            ValueError: ``open`` is neither ``"truncate"`` nor ``"continue"``.
        """
        mine = np.dtype(self._settings["action_dtype"])
        float32 = np.dtype(np.float32)
        inferred = self._inferred
        if inferred and _dtype_of(state) == float32.str:
            self._retype(float32)
        try:
            KIND.load_state(self._steps, self._settings, state, open)
        except BaseException:
            if mine.str != self._settings["action_dtype"]:
                self._retype(mine)
            raise
        self._view = self._single = None
        self._inferred = False

    # -- figures

    def __len__(self) -> int:
        """Count the steps held."""
        return len(self.replay)

    @property
    def size(self) -> int:
        """Steps held."""
        return len(self)

    @property
    def position(self) -> int:
        """The slot that the next step goes to."""
        return self._steps.place.slot

    @property
    def replay(self) -> Replay:
        """The ring beneath, for other views of the same steps."""
        return self._steps.replay

    @property
    def nbytes(self) -> int:
        """Bytes that the process pays for the buffer, from its construction on."""
        return self.replay.nbytes

    def __repr__(self) -> str:
        """Say how full it is."""
        return f"ReplayBuffer({len(self):,} of {self.capacity:,} steps of {self.obs_shape}, {self.nbytes:,} bytes)"


def default_device() -> str:
    """Name the accelerator that PyTorch finds, or the processor."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _frame(name: str, value: Any) -> Any:
    """Give an image; floats are refused even where they are whole, since they may well be scaled ones."""
    frame = np.asarray(given.plain(value))
    if frame.dtype != np.uint8:
        raise SchemaError(f"{name}: expected uint8 pixels from 0 to 255, got {frame.shape} {frame.dtype}")
    return frame


def _dtype_of(state: Any) -> Any:
    settings = state.get("settings") if isinstance(state, Mapping) else None
    return settings.get("action_dtype") if isinstance(settings, Mapping) else None
