"""Colour frames of world models, in episodes, and what windows of them must hold."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.checks import Verdict, apart
from benchmarks.data import ACTION, PLACES, Array, Row

SCREEN = (64, 64, 3)
LENGTH, WINDOWS = 64, 16
FIELDS = ("obs", "action", "reward", "terminated", "truncated")
PATTERNS = 251


@dataclass
class Screens:
    """Steps with a frame each, made when asked for. The reward is the row id, and the kinds of end alternate."""

    count: int
    episode: int = 1000

    def __post_init__(self) -> None:
        rng = np.random.default_rng(0)
        self.patterns = rng.integers(0, 256, (PATTERNS, *SCREEN), np.uint8)
        self.action = rng.uniform(-1, 1, (self.count, ACTION)).astype(np.float32)

    def __len__(self) -> int:
        return self.count

    def frames(self, ids: Array, final: bool = False) -> Array:
        """Return the frames of rows, or those seen after them where they end an episode; no two are the same."""
        ids = np.asarray(ids)
        found: Array = np.take(self.patterns, ids % PATTERNS, axis=0)  # a copy, of a single one too
        found[..., 0, 0, :] = ids[..., None] >> np.array([0, 8, 16]) & 255
        found[..., 0, 1, 0] = final
        return found

    def ends(self, ids: Array) -> tuple[Array, Array]:
        """Return the terminated and truncated flags of rows."""
        number, age = np.divmod(np.asarray(ids), self.episode)
        last = age == self.episode - 1
        terminated = last & (number % 2 == 0)
        return terminated, last & ~terminated

    def columns(self, ids: Array) -> Row:
        """Return rows column by column, without next observations: in the order of FIELDS."""
        return self.frames(ids), self.action[ids], np.asarray(ids).astype(np.float32), *self.ends(ids)

    def rows(self) -> Iterator[Row]:
        """Yield rows as a training loop has them, the next observation handed on."""
        obs = self.frames(np.int64(0))
        for i in range(self.count):
            terminated, truncated = map(bool, self.ends(np.int64(i)))
            ended = terminated or truncated
            next_obs = self.frames(np.int64(i if ended else i + 1), final=ended)
            yield obs, self.action[i], float(i), next_obs, terminated, truncated
            obs = self.frames(np.int64(i + 1)) if ended else next_obs


def check_windows(verdict: Verdict, batches: Iterator[dict[str, Array]], truth: Screens, held: int) -> None:
    """Hold that each window is consecutive rows as they were put in; note how many cross an episode's end.

    Crossing is no fault by itself: a learner can be told where to reset. The ring may hold the `held` last rows, and as
    many more as an open episode can have that is kept elsewhere.
    """
    drawn = crossing = 0
    before: dict[str, Array] = {}
    for batch in batches:
        faults = apart(batch, before)
        before = batch
        ids = np.rint(batch["reward"].reshape(-1, LENGTH)).astype(np.int64)
        if (np.diff(ids, axis=1) != 1).any():
            faults.append("draws windows with a gap")
        if ids.min() < len(truth) - held - truth.episode or ids.max() >= len(truth):
            faults.append("draws rows that are not in the ring")
            ids = ids.clip(0, len(truth) - 1)
        terminated, truncated = truth.ends(ids)
        drawn += len(ids)
        crossing += int((terminated | truncated)[:, :-1].any(axis=1).sum())
        places = np.where(terminated, 2, np.where(truncated, 3, 0)).reshape(-1)
        bad = {}
        for name, expected in zip(FIELDS, truth.columns(ids.reshape(-1)), strict=True):
            same = batch[name].reshape(expected.shape) == expected
            wrong = ~same.reshape(len(expected), -1).all(axis=1)
            bad[name] = np.bincount(places[wrong], minlength=len(PLACES))
        verdict.merge(Verdict(np.bincount(places, minlength=len(PLACES)), bad, faults))
    if crossing:
        verdict.notes.append(f"{crossing} of {drawn} windows of {len(truth):,} steps cross an episode's end")
