"""Whole episodes, such as a Minari data set gives, added to a replay step by step; no library of data sets is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from ringfence.errors import SchemaError
from ringfence.schema import Schema


class Adding(Protocol):
    """A replay, as far as it is needed here."""

    def add(self, obs: Any, action: Any, reward: Any, next_obs: Any, terminated: Any, truncated: Any) -> int:
        """Add one transition."""
        ...

    def cut(self, stream: int | None = None) -> None:
        """End the open episode."""
        ...


def described(dataset: Any) -> Schema:
    """Describe the step of a data set by its ``observation_space`` and ``action_space``.

    Raises:
        SchemaError: A space has no fixed shape.
    """
    return Schema.from_spaces(dataset.observation_space, dataset.action_space)


def fill(replay: Adding, episodes: Iterable[Any]) -> int:
    """Add episodes one after the other, each an end of its own; give how many steps were added.

    An episode has ``observations`` (T + 1 of them, nested as the schema), ``actions``, ``rewards``, ``terminations``
    and ``truncations`` (T each). Only one is in memory at a time. One that ends with neither flag is cut where it
    stands.

    Raises:
        SchemaError: An episode has parts of other lengths, or a step does not match the schema. Steps before it stay.
    """
    added = 0
    for number, episode in enumerate(episodes):
        steps = len(episode.rewards)
        _check(number, episode, steps)
        for at in range(steps):
            replay.add(
                _row(episode.observations, at),
                _row(episode.actions, at),
                episode.rewards[at],
                _row(episode.observations, at + 1),
                bool(episode.terminations[at]),
                bool(episode.truncations[at]),
            )
        if steps and not (episode.terminations[-1] or episode.truncations[-1]):
            replay.cut(0)
        added += steps
    return added


def _check(number: int, episode: Any, steps: int) -> None:
    """Refuse an episode whose parts do not belong together."""
    expected = {"observations": steps + 1, "actions": steps, "terminations": steps, "truncations": steps}
    for name, count in expected.items():
        for part in _leaves(getattr(episode, name)):
            if len(part) != count:
                raise SchemaError(
                    f"episode {number}: {name}: expected {count} for its {steps} rewards, got {len(part)}; "
                    "observations hold the one after the last step too"
                )


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [leaf for part in value.values() for leaf in _leaves(part)]
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, tuple) else [np.asarray(value)]


def _row(value: Any, at: int) -> Any:
    """Give one step of nested arrays."""
    if isinstance(value, Mapping):
        return {key: _row(part, at) for key, part in value.items()}
    return tuple(_row(part, at) for part in value) if isinstance(value, tuple) else value[at]
