# ruff: noqa: D102 - Way says what each of these does
"""The ways in which libraries save a ring and bring it back, each as its documentation does it."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import Array, Frames, Steps
from benchmarks.peers import builder
from benchmarks.peers.base import Ring

Wait = Callable[[], object]


class Way:
    """How a ring of one library is built, saved to a folder of its own, and loaded."""

    peer = ""
    lean = ""
    """The peer that keeps frames in its leanest way, where that is another one."""

    def ready(self) -> None:
        """Import the library, so that a load does not have to."""
        import_module(f"benchmarks.peers.{self.peer}")

    def build(self, work: str, capacity: int, folder: Path) -> Ring:  # noqa: ARG002 - some need the folder
        """Make an empty ring for `control` or `atari`."""
        return self.kind(work)(capacity)

    def kind(self, work: str) -> Callable[..., Ring]:
        """Give what builds a ring of this library for a workload."""
        return builder(self.peer, "ring") if work == "control" else builder(self.lean or self.peer, "frames")

    def save(self, ring: Any, folder: Path) -> Wait | None:
        """Save, or begin to and give what waits for the end."""
        raise NotImplementedError

    def load(self, work: str, capacity: int, folder: Path) -> Ring:
        """Bring back what was saved last."""
        raise NotImplementedError


@dataclass
class Ringfence(Way):
    """This project's `save` and `load`."""

    compress: bool = False
    background: bool = False
    peer = "ringfence"

    def ready(self) -> None:
        super().ready()
        if self.compress:
            import_module("zstandard")

    def save(self, ring: Any, folder: Path) -> Wait | None:
        saving = ring.replay.save(folder / "save", compress=self.compress, background=self.background)
        return saving.wait if self.background else None

    def load(self, work: str, capacity: int, folder: Path) -> Ring:  # noqa: ARG002
        from benchmarks.peers.ringfence import Ring as Ours
        from ringfence import Replay

        replay = Replay.load(folder / "save")
        return Ours(replay, replay)


class StableBaselines(Way):
    """What `save_replay_buffer` and `load_replay_buffer` of an algorithm do."""

    peer, lean = "sb3", "sb3-lean"

    def save(self, ring: Any, folder: Path) -> None:
        from stable_baselines3.common.save_util import save_to_pkl

        save_to_pkl(folder / "buffer.pkl", ring.buffer)

    def load(self, work: str, capacity: int, folder: Path) -> Ring:  # noqa: ARG002
        from stable_baselines3.common.save_util import load_from_pkl

        from benchmarks.peers.sb3 import Ring as Theirs

        return Theirs(load_from_pkl(folder / "buffer.pkl"))


class Sheeprl(Way):
    """What its checkpoint callback does: `torch.save` of the buffer."""

    peer, lean = "sheeprl", "sheeprl-lean"

    def save(self, ring: Any, folder: Path) -> None:
        import torch

        torch.save(ring.buffer, folder / "buffer.ckpt")

    def load(self, work: str, capacity: int, folder: Path) -> Ring:
        import torch

        ring: Any = self.kind(work)(capacity)
        ring.buffer = torch.load(folder / "buffer.ckpt", weights_only=False)
        return ring  # type: ignore[no-any-return]


class SheeprlMemmap(Sheeprl):
    """The same with memory-mapped arrays, its default: the checkpoint names their files, which go on changing."""

    def build(self, work: str, capacity: int, folder: Path) -> Ring:
        from sheeprl.data.buffers import ReplayBuffer

        ring: Any = super().build(work, capacity, folder)
        ring.buffer = ReplayBuffer(capacity, seed=0, memmap=True, memmap_dir=folder / "memmap")
        return ring  # type: ignore[no-any-return]


class Tianshou(Way):
    """`save_hdf5` and `load_hdf5`."""

    peer, lean = "tianshou", "tianshou-lean"

    def save(self, ring: Any, folder: Path) -> None:
        ring.buffer.save_hdf5(str(folder / "buffer.hdf5"))

    def load(self, work: str, capacity: int, folder: Path) -> Ring:  # noqa: ARG002
        from tianshou.data import ReplayBuffer

        from benchmarks.peers.tianshou import Ring as Theirs

        return Theirs(ReplayBuffer.load_hdf5(str(folder / "buffer.hdf5")))


class Cpprb(Way):
    """`save_transitions` and `load_transitions`; `safe=False` keeps frames once, as the buffer does."""

    peer = "cpprb"

    def save(self, ring: Any, folder: Path) -> None:
        ring.buffer.save_transitions(str(folder / "buffer.npz"), safe=False)

    def load(self, work: str, capacity: int, folder: Path) -> Ring:
        ring: Any = self.kind(work)(capacity)
        ring.buffer.load_transitions(str(folder / "buffer.npz"))
        return ring  # type: ignore[no-any-return]


class TorchrlRing(Ring):
    """A TensorDict a step; of stacked frames the newest alone, as for its CatFrames at sampling."""

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer

    def fill(self, data: Steps | Frames) -> None:
        assert isinstance(data, Steps)
        self.put(*data.fields)

    def add(self, obs: Array, action: Any, reward: float, next_obs: Array, terminated: bool, truncated: bool) -> None:
        action, number = np.array([action]), np.array([reward], np.float32)
        self.put(obs[-1:], action, number, next_obs[-1:], np.array([terminated]), np.array([truncated]))

    def put(self, *columns: Array) -> None:
        from tensordict import TensorDict
        from torch import from_numpy

        obs, action, reward, next_obs, terminated, truncated = (from_numpy(column.copy()) for column in columns)
        flags = {"terminated": terminated[:, None], "truncated": truncated[:, None]}
        after = {"observation": next_obs, "reward": reward[:, None], "done": (terminated | truncated)[:, None], **flags}
        self.buffer.extend(TensorDict({"observation": obs, "action": action, "next": after}, [len(obs)]))

    def numpy(self, count: int) -> dict[str, Array]:
        batch = self.buffer.sample(count)
        found = {"obs": batch["observation"], "action": batch["action"], "reward": batch["next", "reward"]}
        return {name: value.numpy() for name, value in found.items()}


class Torchrl(Way):
    """`dumps` and `loads`, from memory."""

    def ready(self) -> None:
        import_module("torchrl.data")

    def build(self, work: str, capacity: int, folder: Path) -> Ring:  # noqa: ARG002
        from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer

        return TorchrlRing(TensorDictReplayBuffer(storage=LazyTensorStorage(capacity)))

    def save(self, ring: Any, folder: Path) -> None:
        ring.buffer.dumps(folder / "buffer")

    def load(self, work: str, capacity: int, folder: Path) -> Ring:
        ring: Any = self.build(work, capacity, folder)
        ring.buffer.loads(folder / "buffer")
        return ring  # type: ignore[no-any-return]


class TorchrlMemmap(Torchrl):
    """The same with files mapped in the very place that is saved to: nothing is copied, and they go on changing."""

    def build(self, work: str, capacity: int, folder: Path) -> Ring:  # noqa: ARG002
        from torchrl.data import LazyMemmapStorage, TensorDictReplayBuffer

        storage = LazyMemmapStorage(capacity, scratch_dir=str(folder / "buffer" / "storage"))
        return TorchrlRing(TensorDictReplayBuffer(storage=storage))

    def load(self, work: str, capacity: int, folder: Path) -> Ring:
        ring: Any = super().build(work, capacity, folder)
        ring.buffer.loads(folder / "buffer")
        return ring  # type: ignore[no-any-return]


WAYS: dict[str, Way] = {
    "ringfence": Ringfence(),
    "ringfence compressed": Ringfence(compress=True),
    "ringfence background": Ringfence(background=True),
    "sb3": StableBaselines(),
    "torchrl": Torchrl(),
    "torchrl memmap": TorchrlMemmap(),
    "sheeprl": Sheeprl(),
    "sheeprl memmap": SheeprlMemmap(),
    "tianshou": Tianshou(),
    "cpprb": Cpprb(),
}
"""By the names of the rows."""
