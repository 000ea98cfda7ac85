"""Mass follows the ring: exactly the legal anchors have some, after any history, for every kind of window."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence import Field, NotEnoughData, Replay, Schema
from ringfence.draw.prioritized import Prioritized
from ringfence.timeline import Anchors, Window

NUMBER = Field((), np.int64)
SCHEMA = Schema(obs=NUMBER, action=NUMBER)
ALPHA, EPS = 0.6, 1e-3
WINDOWS = [
    Window(),
    Window(before=3, short_start=True),
    Window(before=2),
    Window(after=2),
    Window(after=2, boundary="cross"),
    Window(after=3, boundary="pad"),
    Window(before=1, after=2, boundary="cross", short_start=True),
    Window(before=2, after=1, stride=2),
    Window(stride=3),
]


class Model:
    """Know each legal anchor and its priority from the definitions alone, in a dict."""

    def __init__(self, window, capacity, streams, **options):
        self.window, self.capacity, self.streams = window, capacity, streams
        self.replay = Replay(SCHEMA, capacity=capacity * streams, streams=streams, **options)
        self.draw = self.started()
        self.starts = [[] for _ in range(streams)]  # of each step, the time at which its episode began
        self.floors, self.waiting = [0] * streams, [None] * streams  # the observation that would continue each
        self.known, self.largest, self.number = {}, 1.0, 0

    def started(self, seed=5):
        """Bind a new draw to the ring."""
        draw = Prioritized(ALPHA, eps=EPS, seed=seed, normalise="memory")
        draw.start(self.replay._timeline, self.window, np.random.default_rng(0))
        return draw

    def add(self, stream, end=False):
        """Add a step, of a new episode if the last one ended."""
        starts, waiting = self.starts[stream], self.waiting[stream]
        starts.append(len(starts) if waiting is None else starts[-1])
        self.number += 2
        self.replay.add(self.number if waiting is None else waiting, 0, 0.0, self.number + 1, end, stream=stream)
        self.waiting[stream] = None if end else self.number + 1
        self.refresh()

    def extend(self, streams, end):
        """Add a step to each of some streams at once, none of which continues the step before."""
        obs = self.number + 2 + 2 * np.arange(len(streams))
        self.number = int(obs[-1])
        none = np.zeros(len(streams), np.int64)
        self.replay.extend(
            obs, none, none * 0.0, obs + 1, np.full(len(streams), end), none > 0, streams=np.array(streams)
        )
        for stream, number in zip(streams, obs.tolist(), strict=True):
            self.starts[stream].append(len(self.starts[stream]))
            self.waiting[stream] = None if end else number + 1
        self.refresh()

    def clear(self):
        """Drop every step."""
        self.replay.clear()
        self.floors, self.waiting = [len(starts) for starts in self.starts], [None] * self.streams
        self.refresh()

    def update(self, keys, priorities):
        """Give priorities to steps that may be gone, or not there yet; the last one of a step stays."""
        streams, times = (np.array(part, np.int64) for part in zip(*keys, strict=True))
        anchors = Anchors(None if self.streams == 1 else streams, times)
        applied = self.draw.update(anchors, np.array(priorities))
        assert applied == sum(key in self.known for key in keys)
        for key, priority in zip(keys, priorities, strict=True):
            if key in self.known:
                self.known[key] = priority
                self.largest = max(self.largest, priority)

    def refresh(self):
        """Let steps enter at the largest priority as they become legal, and forget those that no longer are."""
        legal = {(stream, time) for stream in range(self.streams) for time in self.held(stream)}
        legal = {key for key in legal if self.legal(*key)}
        self.known = {key: self.known.get(key, self.largest) for key in legal}

    def held(self, stream):
        """Give the times that a stream holds."""
        head = len(self.starts[stream])
        return range(max(head - self.capacity, self.floors[stream]), head)

    def legal(self, stream, time):
        """Tell whether a held step is an anchor, from the meaning of each of the window's numbers."""
        window, starts, held = self.window, self.starts[stream], self.held(stream)
        age = time - starts[time]
        before = min(age, window.before) if window.short_start else window.before
        if age < before or time - before < held.start or age % window.stride:
            return False
        if window.boundary == "pad" or not window.after:
            return True
        last = time + window.after
        return last < held.stop and (window.boundary == "cross" or starts[last] == starts[time])

    def check(self):
        """Compare the mass of every row, and what is drawn, with the model."""
        timeline, look = self.replay._timeline, self.replay._timeline.look()
        self.draw.stats()  # looks at the ring
        leaves = self.draw._mass.tree.leaves
        expected = np.zeros(len(leaves))
        keys = sorted(self.known)
        values = (np.array([self.known[key] for key in keys]) + EPS) ** ALPHA
        for (stream, time), value in zip(keys, values.tolist(), strict=True):
            expected[stream * timeline.rows_each + time % timeline.slots] = value
        assert leaves.tolist() == expected.tolist()
        if not keys:
            with pytest.raises(NotEnoughData, match="no step can be drawn"):
                self.draw.draw(look, 3)
            return
        self.check_drawn(dict(zip(keys, values.tolist(), strict=True)), self.draw.draw(look, 13))

    def check_drawn(self, leaves, drawn):
        """Compare anchors, probabilities and weights with exact fractions."""
        total = sum(map(Fraction, leaves.values()))
        streams = [0] * 13 if drawn.anchors.streams is None else drawn.anchors.streams.tolist()
        for stream, time, chance, weight in zip(
            streams, drawn.anchors.times.tolist(), drawn.probabilities, drawn.weights, strict=True
        ):
            assert chance == pytest.approx(float(Fraction(leaves[stream, time]) / total), rel=1e-14)
            assert weight == pytest.approx((min(leaves.values()) / leaves[stream, time]) ** 0.4, rel=1e-6)


def moves(streams):
    """Draw what may happen to a ring."""
    stream = st.integers(0, streams - 1)
    several = st.lists(stream, min_size=1, unique=True)
    anchor = st.tuples(st.floats(-0.2, 1.2), st.floats(0, 9))
    return st.lists(
        st.one_of(
            st.tuples(st.just("add"), stream, st.booleans()),
            st.tuples(st.just("burst"), stream, st.integers(1, 40), st.integers(1, 9)),
            st.tuples(st.just("extend"), several, st.booleans()),
            st.tuples(st.just("update"), stream, st.lists(anchor, min_size=1, max_size=6)),
            st.tuples(st.just("check")),
            st.tuples(st.just("clear")),
            st.tuples(st.just("reload")),
        ),
        max_size=30,
    )


def play(model, program):
    """Do all this to a ring and its model."""
    for name, *rest in program:
        if name == "burst":
            stream, count, length = rest
            for step in range(count):
                model.add(stream, step % length == length - 1)
        elif name == "update":
            stream, wanted = rest
            head = len(model.starts[stream])
            first = max(head - 2 * model.capacity, 0)  # half of the range is gone, and a fifth beyond each end
            keys = [(stream, max(0, first + int(share * (head - first)))) for share, _ in wanted]
            model.update(keys, [priority for _, priority in wanted])
        elif name == "reload":
            fresh = model.started(seed=9)
            fresh.load(model.draw.state())
            model.draw = fresh
        else:
            getattr(model, name)(*rest)
    model.check()


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@settings(max_examples=60)
@given(data=st.data())
def test_exactly_the_legal_anchors_have_mass_after_any_history(window, data):
    """Adds, updates, laps and clears in any order, looked at rarely or often: leaves equal the model's to the bit."""
    streams = data.draw(st.sampled_from([1, 3]))
    capacity = data.draw(st.integers(4, 20))

    play(Model(window, capacity, streams), data.draw(moves(streams)))


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("streams", [1, 2])
def test_long_catching_up_is_as_good_as_short(window, streams):
    """A ring that was filled and turned unseen has the same mass as one that was looked at all the while."""
    often, once = Model(window, 500, streams), Model(window, 500, streams)
    for model in (often, once):
        for step in range(1300):
            for stream in range(streams):
                age = step % 17
                model.replay.add(age, 0, 0.0, age + 1, age == 16, stream=stream)
            if model is often and step % 3 == 0:
                model.draw.stats()
        model.draw.stats()

    assert often.draw._mass.tree.leaves.tolist() == once.draw._mass.tree.leaves.tolist()
    assert np.count_nonzero(once.draw._mass.tree.leaves) == once.replay._timeline.count(
        once.replay._timeline.look(), window
    )


@pytest.mark.parametrize("streams", [1, 3])
def test_steps_that_go_early_lose_their_mass(streams):
    """Where more episodes end than final observations are kept, the oldest steps cannot be drawn any more."""
    replay = Replay(SCHEMA, capacity=200 * streams, streams=streams)
    draw = Prioritized(seed=0)
    draw.start(replay._timeline, Window(), np.random.default_rng(0))
    for step in range(190):
        replay.add(step, 0, 0.0, step + 1, True, stream=streams - 1)
        if step % 50 == 0:
            draw.stats()
    assert replay.stats()["early"] > 0

    draw.stats()
    assert np.count_nonzero(draw._mass.tree.leaves) == len(replay)
    drawn = draw.draw(replay._timeline.look(), 400)
    assert set(drawn.anchors.times.tolist()) == set(range(190 - len(replay), 190))
