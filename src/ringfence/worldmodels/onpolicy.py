"""The steps of the episode at hand, as lists, before they go to a replay buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.worldmodels import given

Array = NDArray[Any]


class IRISOnPolicyBuffer:
    """Collect the steps of an episode in lists that may be read.

    Everything is copied. Beyond ``max_steps`` the oldest steps go, as they do in a ring, and ``dropped`` counts them:
    an episode is then kept without its beginning.

    Args:
        max_steps: Steps that are kept.

    Raises:
        SchemaError: ``max_steps`` is no number of steps.
    """

    def __init__(self, max_steps: int = 1000) -> None:
        self.max_steps = given.count("max_steps", max_steps)
        """Steps that are kept."""
        self.clear()

    def add(self, obs: Any, action: Any, reward: Any, terminal: Any) -> None:
        """Add a step.

        Raises:
            SchemaError: ``terminal`` is no bool or number from 0 to 1. Nothing was changed.
            TypeError: The reward is no number. Nothing was changed.
        """
        step = (
            np.array(given.plain(obs)),
            np.array(given.plain(action)),
            float(given.plain(reward)),
            given.share("terminal", terminal),
        )
        lists: tuple[list[Any], ...] = (self.observations, self.actions, self.rewards, self.terminals)
        for kept, value in zip(lists, step, strict=True):
            kept.append(value)
        if len(self.observations) > self.max_steps:
            self.dropped += 1
            for kept in lists:
                del kept[0]

    def clear(self) -> None:
        """Forget every step."""
        self.observations: list[Array] = []
        """Images, oldest first."""
        self.actions: list[Array] = []
        """Actions."""
        self.rewards: list[float] = []
        """Rewards."""
        self.terminals: list[float] = []
        """Whether each step ended the episode: 0 or 1."""
        self.dropped = 0
        """Steps that went since the last ``clear``, because there were more than ``max_steps``."""

    def get_arrays(self) -> tuple[Array, Array, Array, Array]:
        """Copy everything: images, actions, rewards and terminals, each as one array."""
        return np.array(self.observations), np.array(self.actions), np.array(self.rewards), np.array(self.terminals)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that are kept now."""
        return sum(array.nbytes for array in (*self.observations, *self.actions))

    def __len__(self) -> int:
        """Count the steps kept."""
        return len(self.observations)
