"""An environment that keeps its own history, to compare with what a recorder has put into a replay."""

from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

import ringfence as rf


class Entry(NamedTuple):
    """One transition, as plain numbers that compare exactly."""

    obs: tuple[float, ...]
    action: int
    reward: float
    next_obs: tuple[float, ...]
    terminated: bool
    truncated: bool


class Chronicle(gymnasium.Env[Any, Any]):
    """Observe (number, episode, t); episodes have 1 to 5 steps and end either way, by the generator of `number`.

    With `reuse` all observations are written into one array. `infos` is called with (episode, t) for each info.
    `nested` puts the observation into a dict with a tuple in it.
    """

    action_space = spaces.Discrete(4)

    def __init__(self, number=0, *, reuse=False, infos=None, nested=False, length=None):
        box = spaces.Box(-1e6, 1e6, (3,), np.float32)
        self.observation_space = box
        if nested:
            self.observation_space = spaces.Dict(place=box, parts=spaces.Tuple((spaces.Discrete(1000), box)))
        self.number, self.reuse, self.infos, self.nested, self.length = number, reuse, infos, nested, length
        self.rng = np.random.default_rng(number)
        self.buffer = np.zeros(3, np.float32)
        self.episode = self.t = 0
        self.history: list[Entry] = []

    def reset(self, *, seed=None, options=None):
        """Begin the next episode."""
        super().reset(seed=seed, options=options)
        self.episode += 1
        self.t = 0
        self.last = self.length or int(self.rng.integers(1, 6))
        self.terminates = bool(self.rng.random() < 0.5)
        return self._observe(), self._info()

    def step(self, action):
        """Step, and write the transition into the history."""
        before = (self.number, self.episode, self.t)
        self.t += 1
        end = self.t == self.last
        terminated, truncated = end and self.terminates, end and not self.terminates
        reward = float(100 * self.episode + self.t)
        after = (self.number, self.episode, self.t)
        self.history.append(Entry(before, int(action), reward, after, terminated, truncated))
        return self._observe(), reward, terminated, truncated, self._info()

    def _observe(self):
        obs = self.buffer if self.reuse else np.zeros(3, np.float32)
        obs[:] = self.number, self.episode, self.t
        return {"place": obs, "parts": (self.episode, obs * 2)} if self.nested else obs

    def _info(self):
        return {} if self.infos is None else self.infos(self.episode, self.t)


def contents(replay: rf.Replay) -> list[dict[str, Any]]:
    """Read every transition of a replay, oldest first in each stream, by sampling until each was seen."""
    found: dict[int, dict[str, Any]] = {}
    while len(found) < len(replay):
        batch = replay.sample(256)
        for row, number in enumerate(batch.ids.tolist()):
            found[number] = {name: picked(batch[name], row) for name in batch if batch[name] is not None}
    return [found[number] for number in sorted(found)]


def picked(values: Any, row: int) -> Any:
    """Take one row of a batch of arrays, nested as they are."""
    if isinstance(values, dict):
        return {key: picked(part, row) for key, part in values.items()}
    if isinstance(values, tuple):
        return tuple(picked(part, row) for part in values)
    return values[row].copy()


def entries(replay: rf.Replay) -> dict[int, list[Entry]]:
    """Read a replay of flat observations as the histories of its sub-environments, by their number."""
    histories: dict[int, list[Entry]] = {}
    for step in contents(replay):
        entry = Entry(
            tuple(step["obs"].tolist()),
            int(step["action"]),
            float(step["reward"]),
            tuple(step["next_obs"].tolist()),
            bool(step["terminated"]),
            bool(step["truncated"]),
        )
        histories.setdefault(int(entry.obs[0]), []).append(entry)
    return histories


def lengths(history: list[Entry]) -> list[int]:
    """Count the steps of each episode of a history; the last one may still run."""
    ends = [0, *(i + 1 for i, entry in enumerate(history) if entry.terminated or entry.truncated)]
    if ends[-1] != len(history):
        ends.append(len(history))
    return np.diff(ends).tolist()
