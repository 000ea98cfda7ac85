"""A learner's day: random steps through a recorded environment, and a batch every few of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gymnasium.vector.utils import batch_space, iterate

from ringfence.integrations.gymnasium import SingleRecorder, VectorRecorder
from ringfence.replay import Replay

BATCH = 256
BLOCK = 256  # actions drawn at once: NumPy draws them for the price of a few
FIELDS = ("obs", "action", "reward", "next_obs", "discount")


def walk(env: SingleRecorder | VectorRecorder, *, sample_every: int, seed: int) -> Iterator[int]:
    """Step the environments with random actions for ever, yielding how many steps they have made together.

    Every ``sample_every`` steps a batch is drawn and its fields are made, as a learner would.
    """
    replay, width = env.replay, env.replay.streams
    single = isinstance(env, SingleRecorder)
    made, due = 0, sample_every
    env.reset(seed=seed)
    for action in _actions(env.action_space, seed):
        _, _, terminated, truncated, _ = env.step(action)
        if single and (terminated or truncated):
            env.reset()
        made += width
        while made >= due:
            due += sample_every
            _learn(replay)
        yield made


def _learn(replay: Replay) -> None:
    batch = replay.sample(BATCH)
    for name in FIELDS:
        batch[name]


def _actions(space: Any, seed: int) -> Iterator[Any]:
    block = batch_space(space, BLOCK)
    block.seed(seed)
    while True:
        yield from iterate(block, block.sample())
