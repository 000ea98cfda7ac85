"""The slow, obvious replay that the real one must equal.

Plain lists of time-stamped steps, one list a stream. It knows no slots, no reserve, no closing records and no
wrapping: every answer is read off the list of the newest steps, in the words of the promise itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringfence.schema import Field, Schema

Tree = Any
"""One value, or a dict or tuple of trees: the nesting of a schema's observation."""

Key = tuple[int, int]
"""A step's name here: its stream, and how many steps that stream had seen before it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One transition as it was added, cast to what the schema stores."""

    time: int
    """How many steps the stream had seen before this one; ``clear`` does not set it back."""
    episode: int
    """Which episode of the stream this belongs to; an end, a break or ``clear`` starts the next."""
    first: bool
    """Whether the episode begins with this step."""
    obs: Tree
    action: Tree
    reward: Any
    next_obs: Tree
    terminated: bool
    truncated: bool
    extras: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Transition:
    """What a learner must see for one anchor."""

    obs: Tree
    action: Tree
    reward: Any
    """The n-step sum, in float64 when it has more than one term."""
    next_obs: Tree
    terminated: bool
    truncated: bool
    discount: float
    steps: int
    extras: dict[str, Any]


class ReferenceReplay:
    """Answer what a replay holds, what it may draw and what each draw must contain.

    It checks nothing: give it only what a replay accepts. For tests: it keeps every step since the last ``clear``
    and each answer reads the whole list.

    Args:
        schema: what one step is.
        capacity: transitions over all streams together; each stream holds ``capacity // streams``.
        streams: how many time lines there are.
    """

    def __init__(self, schema: Schema, capacity: int, streams: int = 1) -> None:
        self.schema = schema
        self.streams = streams
        self.per_stream = capacity // streams
        self.stack = schema.stack
        self.breaks = 0
        self._steps: list[list[Step]] = [[] for _ in range(streams)]
        self._times = [0] * streams
        self._episodes = [0] * streams

    def __len__(self) -> int:
        return sum(len(self.held(stream)) for stream in range(self.streams))

    def add(
        self,
        obs: Tree,
        action: Tree,
        reward: Any,
        next_obs: Tree,
        terminated: bool,
        truncated: bool = False,
        stream: int = 0,
        **extras: Any,
    ) -> Key:
        """Append one transition to a stream and return its key."""
        obs = each(self.schema.obs, frame, obs)
        first = self._begins(stream, obs)
        self._episodes[stream] += first
        step = Step(
            time=self._times[stream],
            episode=self._episodes[stream],
            first=first,
            obs=obs,
            action=each(self.schema.action, frame, action),
            reward=frame(self.schema.reward, reward),
            next_obs=each(self.schema.obs, frame, next_obs),
            terminated=bool(terminated),
            truncated=bool(truncated),
            extras={name: frame(field, extras[name]) for name, field in self.schema.extras.items()},
        )
        self._steps[stream].append(step)
        self._times[stream] += 1
        return stream, step.time

    def extend(
        self,
        obs: Tree,
        action: Tree,
        reward: Any,
        next_obs: Tree,
        terminated: Any,
        truncated: Any,
        streams: Sequence[int] | None = None,
        **extras: Any,
    ) -> list[Key]:
        """Append one transition to each of the named streams (all in order for None), rows on the leading axis."""
        schema = self.schema
        numbers = range(self.streams) if streams is None else streams
        return [
            self.add(
                each(schema.obs, lambda _, value, row=row: value[row], obs),
                each(schema.action, lambda _, value, row=row: value[row], action),
                reward[row],
                each(schema.obs, lambda _, value, row=row: value[row], next_obs),
                terminated[row],
                truncated[row],
                stream=int(stream),
                **{name: value[row] for name, value in extras.items()},
            )
            for row, stream in enumerate(numbers)
        ]

    def clear(self) -> None:
        """Forget every step; times go on."""
        self._steps = [[] for _ in range(self.streams)]

    def held(self, stream: int = 0) -> list[Step]:
        """List the transitions a stream must hold, oldest first: its newest ``capacity // streams``."""
        return self._steps[stream][-self.per_stream :]

    def anchors(self) -> list[Key]:
        """List every step that may be drawn, stream by stream, oldest first."""
        return [
            (stream, step.time)
            for stream in range(self.streams)
            for step in self.held(stream)
            if self._legal(self._until(stream, step.time))
        ]

    def transition(self, anchor: Key, n_step: int = 1, gamma: float = 0.99) -> Transition:
        """Derive what a draw of this anchor must contain.

        Raises:
            KeyError: the anchor is not one of ``anchors()``.
        """
        stream, time = anchor
        past = self._until(stream, time)
        if not self._legal(past):
            raise KeyError(anchor)
        start = past[-1]
        used = [s for s in self.held(stream) if s.episode == start.episode and time <= s.time < time + n_step]
        last = used[-1]
        seen = [step.obs for step in past]
        later = [step.obs for step in used[1:]]
        return Transition(
            obs=self._present(seen),
            action=each(self.schema.action, widened, start.action),
            reward=self._total([step.reward for step in used], gamma),
            next_obs=self._present([*seen, *later, last.next_obs]),
            terminated=last.terminated,
            truncated=last.truncated,
            discount=0.0 if last.terminated else gamma ** len(used),
            steps=len(used),
            extras={name: widened(field, start.extras[name]) for name, field in self.schema.extras.items()},
        )

    def episode_lengths(self, stream: int = 0) -> list[int]:
        """Count the held transitions of each episode of which any is held, oldest episode first."""
        counts: dict[int, int] = {}
        for step in self.held(stream):
            counts[step.episode] = counts.get(step.episode, 0) + 1
        return list(counts.values())

    def _begins(self, stream: int, obs: Tree) -> bool:
        if not self._steps[stream]:
            return True
        previous = self._steps[stream][-1]
        if previous.terminated or previous.truncated:
            return True
        broken = not same_bits(previous.next_obs, obs)
        self.breaks += broken
        return broken

    def _until(self, stream: int, time: int) -> list[Step]:
        """List the held steps of one episode up to and with the one at ``time``; empty where that is not held."""
        held = self.held(stream)
        episodes = [step.episode for step in held if step.time == time]
        return [step for step in held if step.time <= time and step.episode in episodes]

    def _legal(self, past: list[Step]) -> bool:
        return bool(past) and (past[0].first or len(past) >= self.stack)

    def _present(self, frames: list[Tree]) -> Tree:
        return each(self.schema.obs, lambda field, *column: stacked(field, column), *frames)

    def _total(self, rewards: list[Any], gamma: float) -> Any:
        if len(rewards) == 1:
            return widened(self.schema.reward, rewards[0])
        return sum(gamma**i * np.asarray(reward, np.float64) for i, reward in enumerate(rewards))


def leaves(fields: Tree) -> Iterator[Any]:
    """Go through the leaves of a tree in order."""
    if isinstance(fields, Mapping):
        fields = tuple(fields.values())
    if isinstance(fields, tuple):
        for part in fields:
            yield from leaves(part)
    else:
        yield fields


def each(fields: Tree, function: Callable[..., Any], *trees: Tree) -> Tree:
    """Call ``function(field, *values)`` leaf by leaf and keep the nesting of ``fields``."""
    if isinstance(fields, Mapping):
        return {key: each(part, function, *(tree[key] for tree in trees)) for key, part in fields.items()}
    if isinstance(fields, tuple):
        return tuple(each(part, function, *(tree[i] for tree in trees)) for i, part in enumerate(fields))
    return function(fields, *trees)


def frame(field: Field, value: Any) -> Any:
    """Copy a value as it is stored: of a stack that was passed whole only the newest frame."""
    array = np.asarray(value)
    if field.stack and array.ndim > len(field.shape):
        array = array.take(-1, axis=field.stack_axis)
    return np.array(array, dtype=field.kept)


def widened(field: Field, value: Any) -> Any:
    """Give a stored value the dtype that the schema presents."""
    return np.array(value, dtype=field.dtype)


def stacked(field: Field, frames: Sequence[Any]) -> Any:
    """Present the newest frames of an episode, padded in front where the episode is younger than the stack."""
    if not field.stack:
        return widened(field, frames[-1])
    newest = list(frames[-field.stack :])
    padding = newest[0] if field.pad == "first" else np.zeros_like(newest[0])
    return widened(field, np.stack([padding] * (field.stack - len(newest)) + newest, axis=field.stack_axis))


def same_bits(left: Tree, right: Tree) -> bool:
    """Tell whether two stored observations agree bit by bit; NaN equals itself and 0.0 is not -0.0."""
    pairs = zip(leaves(left), leaves(right), strict=True)
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)
