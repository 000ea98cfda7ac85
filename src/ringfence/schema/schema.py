"""What one step is: observation, action, reward, the two end flags, and declared extras."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ringfence.errors import SchemaError
from ringfence.schema import spaces, tree
from ringfence.schema.field import Field, Pad

Role = Literal["obs", "action", "reward", "extra"]
MOST = 500  # arrays of a step
IN_A_STEP = ("obs", "action", "reward", "next_obs", "terminated", "truncated", "stream", "streams")
IN_A_BATCH = ("discount", "steps", "ids", "weights", "probabilities", "is_first", "mask", "learning", "step_ids")
OF_SOME = ("relabelled", "source")  # fields of hindsight batches and of mixtures
OF_A_BATCH = ("torch", "kind", "of", "keys", "values", "items", "get")  # its methods
RESERVED = frozenset((*IN_A_STEP, *IN_A_BATCH, *OF_SOME, *OF_A_BATCH))


@dataclass(frozen=True, slots=True)
class Leaf:
    """One array of a step, with the name that errors and plans use."""

    name: str
    field: Field
    role: Role


class Schema:
    """Describe a step.

    Args:
        obs: A ``Field``, or a dict or tuple of them, nested as deep as the environment's observation.
        action: Likewise.
        reward: A ``Field``; one float32 number unless given.
        extras: Further values of a step by name, for example ``{"log_prob": Field((), np.float32)}``. They are given to
            ``add`` by keyword and copied by value.

    Raises:
        SchemaError: A part is no field, an extra has a name that a batch already uses, or something other than an
            observation is stacked.
    """

    def __init__(
        self,
        obs: Any,
        action: Any,
        reward: Field | None = None,
        extras: Mapping[str, Field] | None = None,
    ) -> None:
        self.obs = tree.copied(obs)
        self.action = tree.copied(action)
        self.reward = Field((), np.float32) if reward is None else reward
        self.extras = dict(extras or {})
        self._leaves = tuple(self._collect())

    def _collect(self) -> list[Leaf]:
        self._check_extras()
        if not isinstance(self.reward, Field):
            raise SchemaError(f"reward: expected a Field, got {self.reward!r}")
        parts: list[tuple[str, Any, Role]] = [
            ("obs", self.obs, "obs"),
            ("action", self.action, "action"),
            ("reward", self.reward, "reward"),
        ]
        parts += [(name, field, "extra") for name, field in self.extras.items()]
        found: list[Leaf] = []
        for top, part, role in parts:
            for name, field in tree.leaves(part, top):
                if not isinstance(field, Field):
                    raise SchemaError(f"{name}: expected a Field, or a dict or tuple of them, got {field!r}")
                if field.stack is not None and role != "obs":
                    raise SchemaError(f"{name}: only observations can be stacked")
                if any(leaf.name == name for leaf in found):
                    raise SchemaError(f"{name}: two fields have this name once the keys are joined by dots")
                found.append(Leaf(name, field, role))
        for top, role in (("obs", "obs"), ("action", "action")):
            if not any(leaf.role == role for leaf in found):
                raise SchemaError(f"{top}: has no field")
        if len(found) > MOST:
            raise SchemaError(f"a step of {len(found)} arrays is more than the {MOST} that can be checked; join some")
        return found

    def _check_extras(self) -> None:
        for name, field in self.extras.items():
            if not isinstance(name, str) or not name.isidentifier() or name.startswith("_") or name == "self":
                raise SchemaError(f"extras: {name!r} cannot be passed by keyword; choose a plain name")
            if name in RESERVED:
                raise SchemaError(f"extras: {name} is a name that a batch already uses; choose another")
            if not isinstance(field, Field):
                raise SchemaError(f"extras: {name}: expected a Field, got {field!r}")

    @classmethod
    def from_spaces(
        cls,
        obs_space: Any,
        action_space: Any,
        *,
        extras: Mapping[str, Field] | None = None,
        keep_float64: bool = False,
        stack: int | None = None,
        stack_axis: int = 0,
        pad: Pad = "first",
    ) -> Schema:
        """Describe the step of an environment with these Gymnasium spaces.

        Box, Discrete, MultiDiscrete, MultiBinary and nested Dict and Tuple are known. float64 becomes float32.

        Args:
            obs_space: The observation space of *one* environment.
            action_space: Its action space.
            extras: Declared values beyond Gymnasium's five.
            keep_float64: Keep float64 as it is.
            stack: The observations are stacks of this many frames along ``stack_axis``: keep one of each.
            stack_axis: 0 or -1.
            pad: What stands before an episode's first frame.

        Raises:
            SchemaError: A space without a fixed shape (Text, Sequence, Graph), or one that is not stacked as told.
        """
        obs = spaces.fields(obs_space, "obs", keep_float64=keep_float64)
        if stack is not None:
            obs = spaces.unstack(obs, "obs", stack, stack_axis, pad)
        return cls(obs=obs, action=spaces.fields(action_space, "action", keep_float64=keep_float64), extras=extras)

    @classmethod
    def from_env(cls, env: Any, **options: Any) -> Schema:
        """Describe the step of a Gymnasium environment, single or vector; options as in :meth:`from_spaces`.

        A stack made by ``gymnasium.wrappers.FrameStackObservation`` is found by itself: one frame is kept.
        """
        options = {**spaces.found_stack(env), **options}
        obs_space = getattr(env, "single_observation_space", None) or env.observation_space
        action_space = getattr(env, "single_action_space", None) or env.action_space
        return cls.from_spaces(obs_space, action_space, **options)

    def leaves(self) -> tuple[Leaf, ...]:
        """Give every array of a step: observations, actions, reward, extras."""
        return self._leaves

    @property
    def stack(self) -> int:
        """The longest stack of any observation; 1 where nothing is stacked."""
        return max(leaf.field.stack or 1 for leaf in self._leaves)

    def __eq__(self, other: object) -> bool:
        """Compare field by field."""
        return isinstance(other, Schema) and self._leaves == other._leaves

    def __hash__(self) -> int:
        """Hash the fields."""
        return hash(self._leaves)

    def __repr__(self) -> str:
        """List the fields."""
        return "Schema(" + "; ".join(f"{leaf.name} {leaf.field}" for leaf in self._leaves) + ")"
