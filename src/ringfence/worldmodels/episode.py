"""One episode of PlaNet: collected step by step, then checked and brought to one form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import SchemaError
from ringfence.worldmodels import given

Array = NDArray[Any]
WRONG = "can only append <Episode> or list of <Episode>"


def identity(x: Any) -> Any:
    """Give what was given."""
    return x


class Episode:
    """Collect the steps of one episode: lists that grow, and arrays once it is terminated.

    Tensors and arrays are taken alike, and copied. ``x`` has one observation more than there are steps: the last one,
    which :meth:`terminate` brings.

    Args:
        postprocess_fn: Called with each observation as an array, as soon as it comes; what it gives is kept.
    """

    def __init__(self, postprocess_fn: Callable[[Any], Any] | None = None) -> None:
        self.x: Any = []
        """Observations."""
        self.u: Any = []
        """Actions, each the one that was taken at the observation of the same place."""
        self.r: Any = []
        """Their rewards."""
        self.t: Any = []
        """Whether the episode had reached its end after them."""
        self.postprocess_fn = identity if postprocess_fn is None else postprocess_fn
        self._size = 0

    @property
    def size(self) -> int:
        """Count the steps."""
        return self._size

    def append(self, obs: Any, act: Any, reward: Any, terminal: Any) -> None:
        """Add a step: an observation, the action taken at it, and what came of it.

        Raises:
            SchemaError: A shape is not that of the steps before, a number is none, or the episode is terminated.
                Nothing was changed.
        """
        step = self._observation(obs), np.array(given.plain(act)), _number("reward", reward), _number("t", terminal)
        if self.u and step[1].shape != self.u[0].shape:
            raise SchemaError(f"act: expected shape {self.u[0].shape}, as the actions before, got {step[1].shape}")
        for values, value in zip((self.x, self.u, self.r, self.t), step, strict=True):
            values.append(value)
        self._size += 1

    def terminate(self, obs: Any) -> None:
        """Add the last observation, and make arrays of the lists.

        Raises:
            SchemaError: There is no step yet, the shape is another one, or it is terminated. Nothing was changed.
        """
        last = self._observation(obs)
        if not self.u:
            raise SchemaError("terminate: the episode has no step yet; append one first")
        self.x = np.stack([*self.x, last])
        self.u, self.r, self.t = np.stack(self.u), np.stack(self.r), np.stack(self.t)

    def _observation(self, obs: Any) -> Array:
        if not isinstance(self.x, list):
            raise SchemaError(f"the episode was terminated after {self._size} steps; begin another one")
        # a copy before, so that the function may write into what it gets, and one after, so that it may keep it
        found = np.array(self.postprocess_fn(np.array(given.plain(obs))))
        if self.x and found.shape != self.x[0].shape:
            raise SchemaError(f"obs: expected shape {self.x[0].shape}, as the observations before, got {found.shape}")
        return found


class Record(NamedTuple):
    """An episode that is complete: T steps."""

    x: Array
    """(T + 1, ...)."""
    u: Array
    """(T, ...), at least two axes."""
    r: Array
    """(T,)."""
    t: Array
    """(T,)."""
    flat: bool = False
    """Whether actions were given as single numbers."""

    @property
    def steps(self) -> int:
        """Count the steps."""
        return len(self.u)

    @classmethod
    def of(cls, episode: Any) -> Record:
        """Bring an episode to this form; anything with ``x``, ``u``, ``r`` and ``t`` is one.

        Raises:
            ValueError: It is no episode.
            SchemaError: It is not complete, or its parts do not fit each other.
        """
        if any(not hasattr(episode, name) for name in "xurt"):
            raise ValueError(WRONG)
        x, u, r, t = (_whole(name, getattr(episode, name)) for name in "xurt")
        if not u.ndim or not len(u):
            raise SchemaError("u: the episode has no step")
        steps = len(u)
        if x.ndim and len(x) == steps:
            raise SchemaError(f"x: {steps} steps need {steps + 1} observations; call terminate(obs) with the last one")
        for name, array, rows in (("x", x, steps + 1), ("r", r, steps), ("t", t, steps)):
            if not array.ndim or len(array) != rows or (name != "x" and array.size != rows):
                raise SchemaError(f"{name}: expected {rows} beside {steps} actions, got shape {array.shape}")
        return cls(x, u.reshape(steps, -1) if u.ndim == 1 else u, r.reshape(-1), t.reshape(-1), u.ndim == 1)


def _whole(name: str, values: Any) -> Array:
    try:
        array = np.stack(values) if isinstance(values, list) and values else np.asarray(given.plain(values))
    except (TypeError, ValueError) as error:
        raise SchemaError(f"{name}: the steps have different shapes: {error}") from error
    if array.dtype.kind not in "biuf":
        raise SchemaError(f"{name}: expected numbers, got {array.dtype}")
    return array


def _number(name: str, value: Any) -> Any:
    number = np.asarray(given.plain(value))
    if number.dtype.kind not in "biuf" or number.size != 1:
        raise SchemaError(f"{name}: expected a number, got {number.dtype} of shape {number.shape}")
    return value if isinstance(value, bool | int | float) else np.array(number)
