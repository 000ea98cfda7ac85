"""Replays that are filled step by step, and compared with others to the last byte."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence import Epochs, Field, Fresh, Mix, Newest, Prioritized, Ranked, Recency, Replay, Schema, Uniform

SMALL = Schema(obs=Field((3,), np.float32), action=Field((), np.int64))
FRAMED = Schema(
    obs={"state": Field((2,), np.float32), "image": Field((24, 24), np.uint8, stack=2)},
    action=Field((), np.int64),
    extras={"hidden": Field((200,), np.float32), "number": Field((), np.int64)},
)
SCHEMAS = {"small": SMALL, "framed": FRAMED}


class Filler:
    """Add steps to a replay, the same ones for the same seed, with ends, cuts and breaks among them."""

    def __init__(self, replay: Replay, seed: int = 0, ends: float = 0.1) -> None:
        self.replay, self.random, self.ends = replay, np.random.default_rng(seed), ends
        self.obs: dict[int, Any] = {}
        self.count = 0

    def step(self, stream: int = 0) -> int:
        """Add one."""
        random, schema = self.random, self.replay.schema
        obs = self.obs.get(stream)
        if obs is None or random.random() < 0.02:  # reset without an end
            obs = self._obs()
        after = self._obs()
        terminated, truncated = random.random(2) < self.ends
        extras = {}
        if schema.extras:
            extras = {"hidden": np.full(200, self.count, np.float32), "number": self.count}
        number = self.replay.add(
            obs, self.count, float(random.random()), after, terminated, truncated, stream, **extras
        )
        self.obs[stream] = None if terminated or truncated else after
        self.count += 1
        return number

    def steps(self, count: int) -> None:
        """Add some, to streams by chance."""
        for _ in range(count):
            self.step(int(self.random.integers(self.replay.streams)))

    def _obs(self) -> Any:
        if isinstance(self.replay.schema.obs, dict):
            return {
                "state": self.random.random(2, np.float32),
                "image": self.random.integers(0, 256, (24, 24), np.uint8),
            }
        return self.random.random(3, np.float32)


def views(replay: Replay) -> list[Any]:
    """Give a view with each kind of draw, and of each kind."""
    draws = [
        Uniform(),
        Prioritized(),
        Prioritized(normalise="memory"),
        Ranked(),
        Recency(50.0),
        Newest(40),
        Epochs(),
        Fresh(),
        Fresh(Prioritized(), share=0.5),
        Mix([(Uniform(), 3), (Prioritized(), 1), (Epochs(), 1)]),
    ]
    made: list[Any] = [replay.transitions(n_step=2, draw=draw) for draw in draws]
    made.append(replay.sequences(4, bootstrap=True))
    made.append(replay.sequences(3, boundary="pad", draw=Prioritized()))
    made.append(replay.sequences(3, boundary="cross", draw=Epochs()))
    return made


def use(some: list[Any], random: np.random.Generator) -> None:
    """Draw from each view, and give those that take them new priorities."""
    for view in some:
        if not view.can_sample(4):
            continue
        batch = view.sample(4)
        try:
            view.update_priorities(batch.ids, random.random(4))
        except TypeError:
            continue


def arrays(batch: Any) -> dict[str, Any]:
    """Give every array of a batch by name."""
    found = {}
    for name, value in dict(batch).items():
        if isinstance(value, dict):
            found |= {f"{name}.{key}": part for key, part in value.items()}
        else:
            found[name] = value
    return found


def assert_same_batches(left: list[Any], right: list[Any], rounds: int = 3) -> None:
    """Draw from both, and find the same rows, weights and all."""
    for _ in range(rounds):
        for at, (mine, theirs) in enumerate(zip(left, right, strict=True)):
            if not mine.can_sample(1):
                continue
            expected, got = arrays(mine.sample(5)), arrays(theirs.sample(5))
            assert expected.keys() == got.keys()
            for name, value in expected.items():
                np.testing.assert_array_equal(value, got[name], err_msg=f"view {at}: {name}")


def assert_same_ring(left: Replay, right: Replay) -> None:
    """Find the same steps, ends, counts and figures in both."""
    assert left.stats() == right.stats()
    for stream in range(left.streams):
        assert left.episode_lengths(stream) == right.episode_lengths(stream)
    for make in (
        lambda ring: ring.transitions(n_step=3),
        lambda ring: ring.sequences(2, boundary="cross", bootstrap=True),
    ):
        mine, theirs = make(left), make(right)
        np.testing.assert_array_equal(mine.ids(), theirs.ids())


def content(replay: Replay) -> dict[str, Any]:
    """Give every held transition, in the order of ids, through the public door."""
    from ringfence.draw import Drawn

    view = replay.transitions()
    names = view.ids()
    if not len(names):
        return {}
    timeline = replay._timeline
    taken = view.take(timeline.look(), Drawn(timeline.anchors(names)))
    return arrays(view._batch(taken))


def assert_same_content(left: Replay, right: Replay) -> None:
    """Find every transition equal to the last byte, its successor among it."""
    mine, theirs = content(left), content(right)
    assert mine.keys() == theirs.keys()
    for name, value in mine.items():
        assert value.tobytes() == theirs[name].tobytes(), name
