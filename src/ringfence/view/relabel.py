"""What a view of hindsight was asked for, and how the caller's functions are called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import SchemaError
from ringfence.schema import Schema, cast
from ringfence.schema.field import Field
from ringfence.schema.layout import FLAG
from ringfence.view.goals import STRATEGIES, Strategy

Array = NDArray[Any]
Reward = Callable[[Array, Array, dict[str, Array]], Any]
"""``reward(achieved, desired, info) -> rewards``, as Gymnasium-Robotics' ``compute_reward`` on arrays: achieved is that
of the observation after the step; both are (n, ...), info holds the declared extras by name, rewards are (n,)."""
Terminate = Callable[[Array, Array], Any]
"""``terminate(achieved, desired) -> (n,) bool``."""


@dataclass(frozen=True, slots=True)
class Relabel:
    """Say which transitions get another goal, which one, and what they are then worth."""

    reward: Reward
    terminate: Terminate | None
    strategy: Strategy
    ratio: float
    """Probability that a transition is relabelled."""
    achieved: str
    """Leaf of the observation that holds what was achieved."""
    desired: str
    """Leaf of the observation that holds the goal."""
    goal: Field
    """Of both leaves."""
    paid: Field
    """Of the reward, as it is presented."""

    @classmethod
    def of(
        cls,
        schema: Schema,
        reward: Reward,
        strategy: Strategy = "future",
        ratio: float = 0.8,
        *,
        k: int | None = None,
        achieved: str = "achieved_goal",
        desired: str = "desired_goal",
        terminate: Terminate | None = None,
    ) -> Relabel:
        """Check what was asked against the schema.

        Raises:
            SchemaError: The observation is no dict, or has no such keys, or what they hold is nested, stacked, or not
                the same field twice.
            ValueError: A function cannot be called, the strategy is none of the four, or a number makes no sense.
        """
        for name, function in (("reward", reward), ("terminate", terminate)):
            if not callable(function) and not (name == "terminate" and function is None):
                raise ValueError(f"{name}: expected a function, got {function!r}")
        if strategy not in STRATEGIES:
            raise ValueError(f"strategy: expected one of {', '.join(STRATEGIES)}, got {strategy!r}")
        goal = _goal(schema, achieved, desired)
        names = f"obs.{achieved}", f"obs.{desired}"
        paid = Field(schema.reward.shape, schema.reward.dtype, finite=schema.reward.finite)
        return cls(reward, terminate, strategy, _ratio(ratio, k), *names, goal, paid)

    def rewards(self, achieved: Array, desired: Array, info: dict[str, Array]) -> Array:
        """Call the reward function; give (n,) rewards in the declared dtype.

        Raises:
            SchemaError: What it gave is not one reward a row, or would lose something in the declared dtype.
        """
        came = self.reward(achieved, desired, info)
        return cast.fit("what the reward function gave", came, (len(achieved), *self.paid.shape), self.paid)

    def ends(self, achieved: Array, desired: Array) -> NDArray[np.bool_]:
        """Call the terminate function; give (n,) flags.

        Raises:
            SchemaError: What it gave is not one flag a row.
        """
        assert self.terminate is not None
        came = self.terminate(achieved, desired)
        return cast.fit("what the terminate function gave", came, (len(achieved),), FLAG)

    def shown(self, goals: Array) -> Array:
        """Give goals, as memory keeps them, in the declared dtype."""
        return goals.astype(self.goal.dtype, copy=False)


def _ratio(ratio: Any, k: Any) -> float:
    if k is not None:
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 0:
            raise ValueError(f"k: expected a whole number of goals for each transition, got {k!r}")
        return 1 - 1 / (int(k) + 1)
    if isinstance(ratio, bool) or not isinstance(ratio, int | float | np.number) or not 0 <= ratio <= 1:
        raise ValueError(f"ratio: expected a number from 0 to 1, got {ratio!r}")
    return float(ratio)


def _goal(schema: Schema, achieved: str, desired: str) -> Field:
    """Give the field of both goals."""
    if not isinstance(schema.obs, dict):
        raise SchemaError(
            f"obs: hindsight needs a dict with the keys {achieved!r} and {desired!r}, and this one is "
            f"{'a tuple' if isinstance(schema.obs, tuple) else 'a single field'}"
        )
    fields = []
    for role, key in (("achieved", achieved), ("desired", desired)):
        if key not in schema.obs:
            keys = ", ".join(map(repr, schema.obs))
            raise SchemaError(f"{role}: {key!r} is no key of the observation, which has {keys}")
        field = schema.obs[key]
        if not isinstance(field, Field):
            raise SchemaError(f"obs.{key}: a goal is one array, and this is a {type(field).__name__} of several")
        if field.stack is not None:
            raise SchemaError(f"obs.{key}: a goal cannot be a stack of frames; declare this field without stack=")
        fields.append(field)
    if achieved == desired:
        raise SchemaError(f"obs.{achieved}: expected different keys for what was achieved and what is desired")
    first, second = ((field.shape, field.dtype, field.stored) for field in fields)
    if first != second:
        raise SchemaError(
            f"obs.{achieved} is {fields[0]} and obs.{desired} is {fields[1]}: one becomes the other, so they must agree"
        )
    return fields[0]
