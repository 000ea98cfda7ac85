"""What the buffers of Dreamer and IRIS have in common: a ring of one environment's steps that is shown by slot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ringfence.draw import Seed
from ringfence.errors import SchemaError
from ringfence.replay import Replay
from ringfence.saving import Saved, Saving
from ringfence.worldmodels import given
from ringfence.worldmodels.column import Column
from ringfence.worldmodels.reading import Ring
from ringfence.worldmodels.snapshot import Kind
from ringfence.worldmodels.steps import Ending, Steps

if TYPE_CHECKING:
    from typing_extensions import Self

Array = NDArray[Any]


class Slotted:
    """Keep steps in slots, the next one in the slot of the oldest; save them, load them, and tell how many they are."""

    KIND: ClassVar[Kind]
    FLAG: ClassVar[str]
    """Which extra ``terminals`` are."""
    SEQ_LEN: ClassVar[int]
    """Steps of a window, unless given."""

    def _make(self, size: Any, settings: dict[str, Any], budget: Any, seed: Seed, episode_length: Any) -> None:
        """Check what a new buffer is to be like, and take its memory."""
        for name in ("action_size", "seq_len", "batch_size"):
            settings[name] = given.count(name, settings[name])
        if isinstance(settings["obs_shape"], Iterable):
            settings["obs_shape"] = list(settings["obs_shape"])
        if size is not None and given.count("size", size) < settings["seq_len"]:
            raise SchemaError(
                f"size: expected at least the {settings['seq_len']} steps of one window (seq_len), got {size}"
            )
        self._begin(Steps.make(self.KIND.schema(settings), size, budget, seed, episode_length), settings)

    def _begin(self, steps: Steps, settings: Mapping[str, Any]) -> None:
        """Serve a ring."""
        self._steps = steps
        self.size: int = steps.replay.capacity
        """Steps that are kept."""
        self.obs_shape: tuple[int, ...] = steps.replay.schema.obs.shape
        """Shape of an image."""
        self.action_size: int = settings["action_size"]
        """Length of an action."""
        self.seq_len: int = settings["seq_len"]
        """Steps of a window."""
        self.batch_size: int = settings["batch_size"]
        """Windows of a sample."""
        self.notes: Any = None
        """What the save that this was loaded from was given as ``notes``."""
        self._view: Any = None

    def clear(self) -> None:
        """Forget every step."""
        self._steps.clear()

    @property
    def replay(self) -> Replay:
        """The ring beneath, for other views of the same steps; flags as they were given are its extras."""
        return self._steps.replay

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
        """Save everything to a directory; arguments and errors as of :meth:`ringfence.Replay.save`."""
        options = {"background": background, "keep": keep, "compress": compress}
        return self.KIND.save(self._steps, self._settings(), path, notes, **options)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        *,
        size: int | None = None,
        budget: float | str | None = None,
        save: int | None = None,
        open: Ending = "truncate",  # noqa: A002, the word for what the episode is
    ) -> Self:
        """Bring a saved buffer back, so that the next samples are those of a run that never stopped.

        Args:
            path: The directory.
            size: Another size than it had; the newest steps are kept.
            budget: As of a new buffer.
            save: The number of an older save that was kept.
            open: ``"truncate"`` begins a new episode with the next step, since the environment will have been reset;
                ``"continue"`` goes on with the one that was open. Where ``next_obs`` was given, it decides.

        Raises:
            CheckpointError: The save is missing or damaged, holds something else, or does not fit.
            ValueError: ``open`` is neither of the two.
        """
        found = cls.KIND.open(path, open, size, budget, save)
        steps = Steps(found.replay, np.random.default_rng())
        steps.load(found.state, open)
        buffer = cls.__new__(cls)
        buffer._begin(steps, found.settings)  # noqa: SLF001, it is of this class
        buffer.notes = found.notes
        return buffer

    def state_dict(self) -> dict[str, Any]:
        """Copy everything into plain numbers, text and tensors (arrays without PyTorch), for ``torch.save``.

        ``torch.load(weights_only=True)`` reads it.
        """
        return self.KIND.state(self._steps, self._settings())

    def load_state_dict(self, state: Mapping[str, Any], open: Ending = "truncate") -> None:  # noqa: A002
        """Take back what :meth:`state_dict` gave, in place of all that is held; ``open`` as of :meth:`load`.

        ``seq_len`` and ``batch_size`` stay as they are.

        Raises:
            CheckpointError: The state is damaged, or of another size or shape. Nothing was changed.
            ValueError: ``open`` is neither of the two.
        """
        self.KIND.load_state(self._steps, self._settings(), state, open)
        self._view = None

    @classmethod
    def from_npz(cls, path: str | PathLike[str], size: int | None = None, **options: Any) -> Self:
        """Read the ``replay.npz`` that simulusion writes beside a checkpoint. Takes no memory beside the buffer's.

        Episodes end where ``terminals`` is not 0, and at the newest step.

        Args:
            path: The file.
            size: Steps to have room for; as many as the file holds unless given.
            options: As of a new buffer, such as ``seq_len`` and ``seed``.

        Raises:
            CheckpointError: The file is missing or damaged, or holds something else; the text names the array.
        """
        with closing(Ring(path)) as ring:
            wanted = max(ring.held, options.get("seq_len", cls.SEQ_LEN)) if size is None else size
            buffer = cls(wanted, ring.obs_shape, ring.action_size, **options)  # type: ignore[call-arg]
            for row in ring.rows():
                buffer._refill(*row)
            buffer._steps.resume(ring.slot, ring.steps, ring.episodes)
        return buffer

    def _refill(self, obs: Array, action: Array, reward: Any, terminal: Any, terminated: Any) -> None:
        """Add a step of a file."""
        raise NotImplementedError

    def _settings(self) -> dict[str, Any]:
        """Give all that a new buffer like this one is made with."""
        return {
            "obs_shape": list(self.obs_shape),
            "action_size": self.action_size,
            "seq_len": int(self.seq_len),
            "batch_size": int(self.batch_size),
        }

    # -- figures

    def __len__(self) -> int:
        """Count the steps held."""
        return len(self.replay)

    @property
    def nbytes(self) -> int:
        """Bytes that the process pays for the buffer, from its construction on."""
        return self.replay.nbytes

    @property
    def idx(self) -> int:
        """The slot that the next step goes to."""
        return self._steps.place.slot

    @property
    def full(self) -> bool:
        """Whether every slot was taken."""
        return self._steps.place.filled == self.size

    @property
    def steps(self) -> int:
        """Steps ever added."""
        return self._steps.steps

    @property
    def episodes(self) -> int:
        """Episodes that ended so far."""
        return self._steps.episodes

    @property
    def observations(self) -> Column:
        """Images by slot, zeros where nothing was put: copied where it is indexed, and not before."""
        return self._steps.column("obs")

    @property
    def actions(self) -> Array:
        """A copy of the actions by slot, zeros where nothing was put; it cannot be written to."""
        return self._steps.array("action")

    @property
    def rewards(self) -> Array:
        """A copy of the rewards by slot, likewise."""
        return self._steps.array("reward")

    @property
    def terminals(self) -> Array:
        """A copy of the flag by slot that says that an episode ended, as it was given, likewise."""
        return self._steps.array(self.FLAG)

    def __repr__(self) -> str:
        """Say how full it is."""
        name = type(self).__name__
        return f"{name}({len(self):,} of {self.size:,} steps of {self.obs_shape}, {self.nbytes:,} bytes)"
