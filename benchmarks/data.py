"""The transitions that every peer is fed, and what each of them must give back.

A row is known by its id, which travels in the data (first observation value, or the reward), so a drawn batch tells
by itself what it should hold.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Row = tuple[Any, ...]
"""obs, action, reward, next_obs, terminated, truncated: as one `env.step` leaves them in a user's hands."""

OBS, ACTION = 17, 6
STACK, FRAME = 4, (84, 84)
GAMES = ("pong", "breakout", "ms_pacman", "qbert")
PLACES = ("inside", "first steps", "termination", "truncation")
"""Where in an episode a row lies; wrong rows are counted by it."""


@dataclass
class Steps:
    """HalfCheetah-sized steps of several environments, float32, time-major: row id = tick * streams + stream.

    `obs[id, 0] == id`. Episodes end in turn by termination and truncation, the environments' ends staggered.
    """

    streams: int
    obs: Array
    action: Array
    reward: Array
    next_obs: Array
    terminated: Array
    truncated: Array
    window: int = 1
    """Steps whose rewards a drawn transition sums up, with"""
    gamma: float = 1.0

    @classmethod
    def generate(
        cls, ticks: int, streams: int = 1, episode: int = 1000, closed: bool = True, window: int = 1, gamma: float = 1.0
    ) -> "Steps":
        """Make `ticks` steps of each stream; every `episode` ticks an episode ends.

        In a closed set the last tick ends all of them, so that going round and round stays a legal history.
        """
        rng = np.random.default_rng(0)
        count = ticks * streams
        obs = rng.standard_normal((count, OBS), dtype=np.float32)
        obs[:, 0] = np.arange(count)
        tick, stream = np.divmod(np.arange(count), streams)
        age = tick + stream * (episode // streams)
        ends = age % episode == episode - 1
        terminated = ends & (age // episode % 2 == 0)
        truncated = (ends | (closed & (tick == ticks - 1))) & ~terminated
        next_obs = rng.standard_normal((count, OBS), dtype=np.float32)
        going = np.flatnonzero(~(terminated | truncated) & (tick < ticks - 1))
        next_obs[going] = obs[going + streams]
        action = rng.uniform(-1, 1, (count, ACTION)).astype(np.float32)
        reward = rng.standard_normal(count, dtype=np.float32)
        return cls(streams, obs, action, reward, next_obs, terminated, truncated, window, gamma)

    def __len__(self) -> int:
        return len(self.obs)

    @property
    def fields(self) -> Row:
        """All rows, column by column, in the order of a row."""
        return self.obs, self.action, self.reward, self.next_obs, self.terminated, self.truncated

    def rows(self, count: int | None = None) -> Iterator[Row]:
        """Yield rows of one stream, with Python scalars, the next observation handed on as a training loop does."""
        obs = self.obs[0].copy()
        for i in range(len(self) if count is None else count):
            next_obs = self.next_obs[i].copy()
            ended = bool(self.terminated[i]), bool(self.truncated[i])
            yield obs, self.action[i].copy(), float(self.reward[i]), next_obs, *ended
            obs = self.obs[(i + 1) % len(self)].copy() if any(ended) else next_obs

    def ticks(self, count: int | None = None) -> Iterator[Row]:
        """Yield the steps of all streams at once, a leading axis of streams in each array."""
        for i in range(len(self) // self.streams if count is None else count):
            at = slice(i * self.streams, (i + 1) * self.streams)
            yield tuple(column[at] for column in self.fields)

    def ids(self, batch: dict[str, Array]) -> Array:
        """Read the row ids out of a drawn batch."""
        return np.rint(np.asarray(batch["obs"])[:, 0]).astype(np.int64)

    def want(self, ids: Array) -> dict[str, Array]:
        """Return what a batch of these rows must hold; a window stops at an end, and at the newest row."""
        last, count = ids.copy(), np.ones(len(ids), np.int64)
        reward = self.reward[ids].astype(np.float64)
        for power in range(1, self.window):
            more = ~(self.terminated[last] | self.truncated[last]) & (last + self.streams < len(self))
            last[more] += self.streams
            count[more] += 1
            reward[more] += self.gamma**power * self.reward[last[more]]
        terminated = self.terminated[last]
        return {
            "obs": self.obs[ids],
            "action": self.action[ids],
            "reward": reward.astype(np.float32),
            "next_obs": self.next_obs[last],
            "terminated": terminated,
            "truncated": self.truncated[last],
            "discount": (self.gamma**count * ~terminated).astype(np.float32),
        }

    def places(self, ids: Array) -> Array:
        """Tell where each row's window lies, as an index into PLACES."""
        place = np.zeros(len(ids), np.int64)
        for ahead in reversed(range(self.window)):
            at = np.minimum(ids + ahead * self.streams, len(self) - 1)
            place[self.terminated[at]], place[self.truncated[at]] = 2, 3
        return place


@dataclass
class Frames:
    """Stacked 84x84 frames in episodes of one length; the reward is the row id, which ends alternate as in `Steps`."""

    frames: Array
    """(episodes, frames of one, 84, 84)"""
    count: int
    """Rows; the last one is truncated, so that going round stays a legal history."""
    window: int = 1

    def __len__(self) -> int:
        return self.count

    @classmethod
    def generate(cls, count: int, episode: int = 98) -> "Frames":
        """Make frames of random bytes: enough for checks, not for weighing."""
        shape = (-(-count // (episode - 1)), episode, *FRAME)
        return cls(np.random.default_rng(0).integers(0, 256, shape, np.uint8), count)

    @classmethod
    def recorded(cls, count: int, episode: int = 1000) -> "Frames":
        """Open frames of real games, recorded on first use (half a minute) and kept in the user's cache folder."""
        episodes = -(-count // (episode - 1))
        path = cache() / f"frames-{episodes}x{episode}.npy"
        if not path.exists():
            record(path, episodes, episode)
        return cls(np.load(path, mmap_mode="r").view(np.ndarray), count)

    def short(self, count: int, episode: int = 98) -> "Frames":
        """Cut `count` rows of shorter episodes out of these."""
        pieces = self.frames.shape[1] // episode
        pool = self.frames[: -(-count // ((episode - 1) * pieces)), : pieces * episode]
        cut = pool.reshape(-1, episode, *FRAME)
        return Frames(cut, count)

    def stack(self, ids: Array, ahead: int = 0) -> Array:
        """Return the stacks of rows, or those `ahead` steps later; the first frame repeats where there is none yet."""
        episode, at = np.divmod(np.asarray(ids), self.frames.shape[1] - 1)
        window = np.maximum(at[..., None] + np.arange(ahead - STACK + 1, ahead + 1), 0)
        return self.frames[episode[..., None], window]

    def ends(self, ids: Array) -> tuple[Array, Array]:
        """Return the terminated and truncated flags of rows."""
        episode, at = np.divmod(np.asarray(ids), self.frames.shape[1] - 1)
        terminated = (at == self.frames.shape[1] - 2) & (episode % 2 == 0)
        truncated = (at == self.frames.shape[1] - 2) | (np.asarray(ids) == self.count - 1)
        return terminated, truncated & ~terminated

    def rows(self, count: int | None = None) -> Iterator[Row]:
        """Yield rows as a frame-stacking wrapper gives them: each stack its own array, handed on to the next step."""
        total = self.count if count is None else count
        terminated, truncated = self.ends(np.arange(total))
        obs = self.stack(0)
        for i in range(total):
            next_obs = self.stack(i, ahead=1)
            yield obs, i % 6, float(i), next_obs, bool(terminated[i]), bool(truncated[i])
            obs = self.stack((i + 1) % self.count) if terminated[i] or truncated[i] else next_obs

    def ids(self, batch: dict[str, Array]) -> Array:
        """Read the row ids out of a drawn batch."""
        return np.rint(np.asarray(batch["reward"]).reshape(-1)).astype(np.int64)

    def want(self, ids: Array) -> dict[str, Array]:
        """Return what a batch of these rows must hold."""
        terminated, truncated = self.ends(ids)
        found = {"obs": self.stack(ids), "action": ids % 6, "reward": ids.astype(np.float32)}
        return found | {"next_obs": self.stack(ids, 1), "terminated": terminated, "truncated": truncated}

    def places(self, ids: Array) -> Array:
        """Tell where each row lies, as an index into PLACES."""
        terminated, truncated = self.ends(ids)
        place = np.where(ids % (self.frames.shape[1] - 1) < STACK - 1, 1, 0)
        place[terminated], place[truncated] = 2, 3
        return place


def cache() -> Path:
    """Return the folder where recorded frames are kept, made if need be."""
    path = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ringfence" / "benchmarks"
    path.mkdir(parents=True, exist_ok=True)
    return path


def record(path: Path, episodes: int, length: int) -> None:
    """Play random actions in each of GAMES in turn and write what was seen, whole or not at all."""
    from ale_py.vector_env import AtariVectorEnv

    each = -(-episodes // len(GAMES))
    rng = np.random.default_rng(0)
    partial = path.with_suffix(".partial")
    seen = np.lib.format.open_memmap(partial, "w+", np.uint8, (each * len(GAMES), length, *FRAME))
    for number, game in enumerate(GAMES):
        env = AtariVectorEnv(game, num_envs=each, num_threads=1, stack_num=1)
        obs, _ = env.reset(seed=number)
        for at in range(length):
            seen[number * each : (number + 1) * each, at] = obs[:, 0]
            obs, *_ = env.step(rng.integers(0, env.single_action_space.n, each))
        env.close()
    seen.flush()
    partial.rename(path)
