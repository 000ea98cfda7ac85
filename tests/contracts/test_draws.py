# ruff: noqa: D102, ARG002 - draw/base.py says what each of these does
"""Every draw keeps the contract; and the contract finds each way to break it."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence import Epochs, Fresh, Mix, Newest, Prioritized, Ranked, Recency, Uniform
from ringfence.draw import Bound, Drawn
from ringfence.testing.draws import DrawContract, PriorityContract
from ringfence.timeline import Anchors

NAMES = [name for name in dir(DrawContract) if name.startswith("test_")]


class TestUniform(DrawContract):
    """Every legal anchor equally likely."""

    def make_draw(self, seed=None):
        return Uniform(seed)


class TestEpochs(DrawContract):
    """Every legal anchor once before any comes again."""

    def make_draw(self, seed=None):
        return Epochs(seed)


class TestRecency(DrawContract):
    """Older steps less often."""

    def make_draw(self, seed=None):
        return Recency(9.5, seed)


class TestSteepRecency(DrawContract):
    """Older steps hardly ever."""

    def make_draw(self, seed=None):
        return Recency(1, seed)


class TestNewest(DrawContract):
    """Only the newest steps of each stream: here 35 of all, and at least one."""

    def make_draw(self, seed=None):
        return Newest(35, seed)

    def eligible(self, ring, window):
        heads, share = ring.look().heads, 35 // ring.streams
        return [(stream, time) for stream, time in ring.legal(window) if time >= heads[stream] - share]


class TestEre(DrawContract):
    """The newest steps, fewer from batch to batch."""

    steady = False

    def make_draw(self, seed=None):
        return Newest.ere(10, least=60, seed=seed)


class TestFresh(DrawContract):
    """Each new step once, and others to fill up the batch."""

    def make_draw(self, seed=None):
        return Fresh(Uniform(seed))


class TestHalfFresh(DrawContract):
    """New steps take half of a batch at most."""

    def make_draw(self, seed=None):
        return Fresh(Recency(20, seed), share=0.5)


class TestMix(DrawContract):
    """Two parts of one draw, one of another."""

    def make_draw(self, seed=None):
        return Mix([(Uniform(seed), 2), (Recency(10, seed), 1)])


class TestMixOfEpochs(DrawContract):
    """Draws that choose evenly are even together."""

    def make_draw(self, seed=None):
        return Mix([(Uniform(seed), 0.5), (Epochs(seed), 0.5)])


class TestPrioritized(PriorityContract):
    """In proportion to priorities, one from each part of the mass."""

    def make_draw(self, seed=None):
        return Prioritized(seed=seed)


class TestUnstratified(PriorityContract):
    """In proportion to priorities, each draw for itself."""

    def make_draw(self, seed=None):
        return Prioritized(alpha=1, beta=1, stratified=False, normalise="memory", seed=seed)


class TestRanked(PriorityContract):
    """By the rank of priorities."""

    def make_draw(self, seed=None):
        return Ranked(seed=seed)


class TestFreshAndPrioritized(DrawContract):
    """New steps first; the others by priority."""

    def make_draw(self, seed=None):
        return Fresh(Prioritized(seed=seed))


class TestMixWithPriorities(PriorityContract):
    """Half by priority, half evenly."""

    def make_draw(self, seed=None):
        return Mix([(Prioritized(seed=seed), 1), (Uniform(seed), 1)])


# -- the contract can fail


class Listed:
    """A right and slow draw, from which the wrong ones below are made."""

    def __init__(self, seed=None):
        self.bound = Bound(seed)

    def start(self, timeline, window, generator):
        self.bound.start(timeline, window, generator)

    def legal(self, look):
        every = self.bound.timeline.every(look, self.bound.window)
        if not len(every.times):
            raise self.bound.timeline.refuse(look, self.bound.window)
        return every

    def places(self, count, legal):
        return self.bound.random.integers(0, legal, count)

    def draw(self, look, count):
        every = self.legal(look)
        return Drawn(every.at(self.places(count, len(every.times))))

    def stats(self):
        return {}

    def state(self):
        return self.bound.state()

    def load(self, state):
        self.bound.load(state)


class AnyHeld(Listed):
    """Take steps that are held but begin no whole window."""

    def legal(self, look):
        super().legal(look)
        return self.bound.timeline.every(look, type(self.bound.window)())


class NeverNewest(Listed):
    """End a range one too early."""

    def places(self, count, legal):
        return self.bound.random.integers(0, max(legal - 1, 1), count)


class OldestTwice(Listed):
    """Favour the oldest one, and not say so."""

    def places(self, count, legal):
        return np.maximum(self.bound.random.integers(-1, legal, count), 0)


class TooSure(Listed):
    """Say probabilities that are not those of the draw."""

    def draw(self, look, count):
        every = self.legal(look)
        return Drawn(every.at(self.places(count, len(every.times))), np.full(count, 0.9 / len(every.times)))


class NoneHeld(Listed):
    """Give nothing instead of refusing."""

    def legal(self, look):
        return self.bound.timeline.every(look, self.bound.window)

    def places(self, count, legal):
        return super().places(count, legal) if legal else np.zeros(0, np.int64)


class Remembers(Listed):
    """List the legal anchors once and draw from that list for ever."""

    every = None

    def legal(self, look):
        if self.every is None:
            self.every = super().legal(look)
        return self.every


class Global(Listed):
    """Draw from NumPy's hidden generator."""

    def places(self, count, legal):
        return np.random.randint(0, legal, count)  # noqa: NPY002


class Own(Listed):
    """Ignore the generator of the view."""

    def start(self, timeline, window, generator):
        super().start(timeline, window, np.random.default_rng(7))


class Seedless(Listed):
    """Ignore its own seed."""

    def __init__(self, seed=None):
        super().__init__(None)


class Forgets(Listed):
    """Leave the generator out of the state."""

    def state(self):
        return {}

    def load(self, state):
        pass


class Shares(Listed):
    """Hand out its own memory: the caller's writes change later draws."""

    mine = None

    def draw(self, look, count):
        if self.mine is None or len(self.mine.times) != count:
            self.mine = super().draw(look, count).anchors
        return Drawn(self.mine)


class Anyone(Listed):
    """Serve a second view with what it knows of the first."""

    def start(self, timeline, window, generator):
        self.bound = Bound(generator)
        self.bound.start(timeline, window, generator)


class Diary(Listed):
    """Keep a note of every draw."""

    def __init__(self, seed=None):
        super().__init__(seed)
        self.notes = []

    def draw(self, look, count):
        drawn = super().draw(look, count)
        self.notes.append(drawn.anchors.times.copy())
        return drawn

    def state(self):
        return {**super().state(), "notes": self.notes}


class Objects(Listed):
    """Put an object into the state."""

    def state(self):
        return {"generator": self.bound.random}


class Floats(Listed):
    """Give times that are no whole numbers."""

    def draw(self, look, count):
        anchors = super().draw(look, count).anchors
        return Drawn(Anchors(anchors.streams, anchors.times.astype(np.float64)))


def contract(draw):
    """Make the contract of a draw."""

    class Contract(DrawContract):
        def make_draw(self, seed=None):
            return draw(seed)

    return Contract()


@pytest.mark.parametrize("name", NAMES)
def test_a_right_draw_passes(name):
    """The slow and plain draw that the wrong ones are made from keeps every rule."""
    getattr(contract(Listed), name)()


@pytest.mark.parametrize(
    ("draw", "name", "text"),
    [
        (AnyHeld, "test_only_legal_anchors_are_drawn", "no legal anchors"),
        (NeverNewest, "test_every_legal_anchor_is_reachable", "never drew"),
        (NeverNewest, "test_what_was_just_added_is_reachable", "never drew"),
        (OldestTwice, "test_frequencies_match_the_probabilities", "do not follow"),
        (TooSure, "test_frequencies_match_the_probabilities", "sum to|never drew|do not follow"),
        (NoneHeld, "test_nothing_legal_is_refused", "although nothing is legal"),
        (Remembers, "test_a_living_ring_is_followed", "not legal"),
        (Remembers, "test_what_was_just_added_is_reachable", "no legal anchors|never drew"),
        (Global, "test_the_global_generator_is_left_alone", "the global"),
        (Global, "test_equal_seeds_draw_equally", "drew differently"),
        (Own, "test_without_a_seed_the_generator_of_the_view_is_used", "drew the same"),
        (Seedless, "test_equal_seeds_draw_equally", "drew the same"),
        (Forgets, "test_a_loaded_state_draws_what_would_have_come", "the draws differ"),
        (Shares, "test_what_was_drawn_belongs_to_the_caller", "changed later draws"),
        (Anyone, "test_a_draw_serves_one_view", "expected ValueError"),
        (Diary, "test_nothing_grows", "the state grew"),
        (Diary, "test_a_state_is_plain_and_of_its_moment", "changed with later draws"),
        (Objects, "test_a_state_is_plain_and_of_its_moment", "neither a number nor an array"),
        (Floats, "test_what_is_drawn_has_its_form", "times are float64"),
    ],
)
def test_a_broken_draw_fails(draw, name, text):
    """Each of these breaks one rule, and the test of that rule says so."""
    with pytest.raises(AssertionError, match=text):
        getattr(contract(draw), name)()
