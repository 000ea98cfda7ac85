"""What every draw must keep, as tests to inherit.

Give the class a name that pytest collects, and say how the draw is made::

    class TestNewest(DrawContract):
        def make_draw(self, seed=None):
            return Newest(seed=seed)

Each draw is tried on rings that fill, turn, were cleared, or lost steps early, with windows of every kind. A draw that
takes priorities inherits :class:`PriorityContract`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.draw import Draw, Drawn
from ringfence.errors import NotEnoughData
from ringfence.testing import plain
from ringfence.testing.rings import PASTS, WINDOWS, Key, TrialRing, filling, unequal, wrapped
from ringfence.testing.tally import Tally
from ringfence.timeline import Window

Past = Callable[[], TrialRing]
BATCH = 500  # anchors of one draw where many are counted


class Trial:
    """A draw at work on a ring."""

    def __init__(self, draw: Draw, ring: TrialRing, window: Window = WINDOWS[0], seed: int = 0) -> None:
        self.thing, self.ring, self.window = draw, ring, window
        draw.start(ring.timeline, window, np.random.default_rng(seed))

    def draw(self, count: int) -> Drawn:
        """Draw by a look of now."""
        return self.thing.draw(self.ring.look(), count)

    def keys(self, count: int) -> list[Key]:
        """Draw, and give the anchors as (stream, time)."""
        return keys(self.draw(count))


def keys(drawn: Drawn) -> list[Key]:
    """Give anchors as (stream, time)."""
    streams, times = drawn.anchors
    numbers = np.zeros(len(times), np.int64) if streams is None else streams
    return list(zip(numbers.tolist(), times.tolist(), strict=True))


class DrawContract:
    """Prove that a draw takes legal anchors only, all of them, as often as it says, and repeatably."""

    draws = 20_000
    """How many anchors are counted where frequencies are judged."""
    settle = 0
    """Draws to let pass before frequencies are judged: for a draw that owes some steps first."""
    steady = True
    """Whether an idle ring's probabilities stay as they are; where not, frequencies are not judged."""

    def make_draw(self, seed: int | None = None) -> Draw:
        """Make a draw that serves no view yet; without a seed it must use the generator of its view."""
        raise NotImplementedError

    def eligible(self, ring: TrialRing, window: Window) -> list[Key]:
        """List the anchors that the draw may give now: the legal ones, or some of them."""
        return ring.legal(window)

    def trial(self, past: Past = wrapped, window: Window = WINDOWS[0], seed: int | None = 0) -> Trial:
        """Start a new draw on a new ring."""
        return Trial(self.make_draw(seed), past(), window)

    def allowed(self, trial: Trial) -> list[Key]:
        """List the anchors that a draw at work may give now."""
        return self.eligible(trial.ring, trial.window)

    def tally(self, trial: Trial, draws: int) -> Tally:
        """Draw many times and count."""
        tally = Tally(self.allowed(trial), steady=self.steady)
        for _ in range(draws // BATCH):
            tally.note(trial.draw(BATCH))
        return tally

    def trials(self) -> Iterator[tuple[str, Trial]]:
        """Start a draw on every kind of ring with every kind of window."""
        for past in PASTS:
            for window in WINDOWS:
                yield f"on the ring {past.__name__!r} with {window}", self.trial(past, window)

    # -- what is drawn

    def test_only_legal_anchors_are_drawn(self) -> None:
        """Draw what is asked for, and nothing that is no legal anchor."""
        for where, trial in self.trials():
            legal = set(self.allowed(trial))
            for count in (1, 3, 40) if legal else ():
                drawn = trial.keys(count)
                assert len(drawn) == count, f"asked for {count}, got {len(drawn)} {where}"
                assert set(drawn) <= legal, f"drew {sorted(set(drawn) - legal)}, no legal anchors, {where}"

    def test_what_is_drawn_has_its_form(self) -> None:
        """Give int64 anchors, streams where there are several, and one weight and probability each, or none."""
        for where, trial in self.trials():
            if not self.allowed(trial):
                continue
            (streams, times), probabilities, weights = trial.draw(5)
            alone = trial.ring.streams == 1
            assert (streams is None) == alone, f"streams are {streams} in a ring of {trial.ring.streams} {where}"
            assert times.dtype == np.int64, f"times are {times.dtype} {where}"
            assert times.shape == (5,), f"times have shape {times.shape} {where}"
            for name, array, dtype in (
                ("probabilities", probabilities, np.float64),
                ("weights", weights, np.float32),
            ):
                if array is not None:
                    assert array.dtype == dtype, f"{name} are {array.dtype} {where}"
                    assert array.shape == (5,), f"{name} have shape {array.shape} {where}"
                    # NaN is the probability of what was not drawn by chance
                    known = array[~np.isnan(array)] if name == "probabilities" else array
                    assert (np.isfinite(known) & (known > 0)).all(), f"{name} are {array} {where}"

    def test_nothing_legal_is_refused(self) -> None:
        """Raise NotEnoughData, at once, where no step is a legal anchor."""
        for where, trial in self.trials():
            if self.allowed(trial):
                trial.draw(2)
                trial.ring.clear()
            for _ in range(2):
                self._refused(trial, where)

    def _refused(self, trial: Trial, where: str) -> None:
        try:
            drawn = trial.keys(2)
        except NotEnoughData:
            return
        raise AssertionError(f"drew {drawn} although nothing is legal {where}")

    def test_every_legal_anchor_is_reachable(self) -> None:
        """Draw every legal anchor, the oldest and the newest too, or say that its probability is zero."""
        for where, trial in self.trials():
            if self.allowed(trial):
                self.tally(trial, 3000).check_reach(where)

    def test_frequencies_match_the_probabilities(self) -> None:
        """Draw each anchor as often as its probability says; all equally often where none is given."""
        for past in (filling, wrapped, unequal) if self.steady else ():
            for window in WINDOWS[:3]:
                trial = self.trial(past, window)
                if not self.allowed(trial):
                    continue
                if self.settle:
                    trial.draw(self.settle)
                self.tally(trial, self.draws).check_law(f"on the ring {past.__name__!r} with {window}")

    def test_a_living_ring_is_followed(self) -> None:
        """Draw legal anchors at every moment, however much was added, or dropped, since the last draw."""
        for window in WINDOWS:
            trial = Trial(self.make_draw(0), TrialRing(12, streams=3, finals=5), window)
            for moment in range(60):
                self._go_on(trial.ring, moment)
                legal = set(self.allowed(trial))
                if legal:
                    drawn = set(trial.keys(30))
                    assert drawn <= legal, f"drew {sorted(drawn - legal)}, not legal, at moment {moment} with {window}"
                else:
                    self._refused(trial, f"at moment {moment} with {window}")

    def test_what_was_just_added_is_reachable(self) -> None:
        """Draw from the steps of now: those that came since the last draw too."""
        trial = Trial(self.make_draw(0), TrialRing(12, streams=3, finals=5))
        for moment in range(12):
            self._go_on(trial.ring, moment)
            if self.allowed(trial):
                self.tally(trial, 1500).check_reach(f"at moment {moment}")

    @staticmethod
    def _go_on(ring: TrialRing, moment: int) -> None:
        """Do the next thing to a ring: a little, much more than it holds, nothing, or drop all."""
        if moment % 17 == 16:
            ring.clear()
        else:
            length = (1, 5, 2, 40, 0, 9)[moment % 6]
            ring.episode(length, moment % ring.streams, ends=moment % 4 > 0)

    # -- how it repeats

    def test_equal_seeds_draw_equally(self) -> None:
        """Draw the same from the same seed; another batch each time, and others from another seed."""
        one, other, third = (self.trial(filling, seed=seed) for seed in (5, 5, 6))
        drawn = [one.keys(16) for _ in range(3)]
        assert drawn == [other.keys(16) for _ in range(3)], "two draws of seed 5 drew differently"
        assert drawn != [third.keys(16) for _ in range(3)], "seeds 5 and 6 drew the same"

    def test_without_a_seed_the_generator_of_the_view_is_used(self) -> None:
        """Take all chance from the generator that ``start`` was given."""
        drawn = [Trial(self.make_draw(None), filling(), seed=seed).keys(16) for seed in (5, 5, 6)]
        assert drawn[0] == drawn[1], "two views of one seed drew differently"
        assert drawn[0] != drawn[2], "views of two seeds drew the same"

    def test_the_global_generator_is_left_alone(self) -> None:
        """Neither read nor move NumPy's hidden generator."""
        before = np.random.get_state()  # noqa: NPY002  (the state that must not matter)
        drawn = []
        for hidden in (0, 1):
            np.random.seed(hidden)  # noqa: NPY002
            drawn.append(self.trial().keys(16))
        moved: Any = np.random.get_state()  # noqa: NPY002
        np.random.seed(1)  # noqa: NPY002
        untouched: Any = np.random.get_state()  # noqa: NPY002
        np.random.set_state(before)  # noqa: NPY002
        assert drawn[0] == drawn[1], "the global generator's seed changed what was drawn"
        assert all(np.array_equal(a, b) for a, b in zip(moved, untouched, strict=True)), "drew from the global one"

    def test_what_was_drawn_belongs_to_the_caller(self) -> None:
        """Give arrays that the caller may overwrite: the next draws are the same."""
        quiet, loud = self.trial(unequal), self.trial(unequal)
        for _ in range(4):
            expected, drawn = quiet.draw(10), loud.draw(10)
            assert keys(drawn) == keys(expected), "overwriting what was drawn changed later draws"
            for array in (*drawn.anchors, drawn.probabilities, drawn.weights):
                if array is not None:
                    array[:] = 0

    # -- how it is kept

    def test_a_draw_serves_one_view(self) -> None:
        """Refuse to be started twice."""
        trial = self.trial()
        raised(lambda: trial.thing.start(trial.ring.timeline, trial.window, np.random.default_rng(0)), ValueError)

    def test_a_loaded_state_draws_what_would_have_come(self) -> None:
        """Go on from a state, on another ring with the same past, exactly as the draw that gave it."""
        for past in (wrapped, unequal, filling):
            one = self.trial(past)
            one.keys(10)
            self._go_on(one.ring, 1)
            one.keys(10)
            other = Trial(self.make_draw(99), past())
            self._go_on(other.ring, 1)
            other.thing.load(one.thing.state())
            for moment in (0, 2, 3, 5):
                drawn, expected = other.draw(12), one.draw(12)
                assert keys(drawn) == keys(expected), f"after load() the draws differ, on the ring {past.__name__!r}"
                assert equal(drawn.probabilities, expected.probabilities), "after load() the probabilities differ"
                assert equal(drawn.weights, expected.weights), "after load() the weights differ"
                for trial in (one, other):
                    trial.ring.episode((3, 0, 4, 25, 0, 7)[moment], 0)

    def test_a_state_is_plain_and_of_its_moment(self) -> None:
        """Give numbers, texts and arrays only, which later draws and adds do not change."""
        trial = self.trial(unequal)
        trial.draw(10)
        state = trial.thing.state()
        plain.check(state)
        kept = plain.copied(state)
        trial.draw(10)
        trial.ring.episode(9, 0)
        trial.draw(10)
        assert plain.same(state, kept), "what state() gave changed with later draws"

    def test_loading_does_not_tie_draws_together(self) -> None:
        """Copy what ``load`` is given: two draws of one state do not disturb each other."""
        one, other, third = (self.trial(seed=seed) for seed in (1, 2, 3))
        state = one.thing.state()
        other.thing.load(state)
        third.thing.load(state)
        drawn = [other.keys(9) for _ in range(3)]
        assert [third.keys(9) for _ in range(3)] == drawn, "a draw that loaded a state changed it for another"

    def test_nothing_grows(self) -> None:
        """Remember no more after a hundred turns of the ring than after twenty."""
        trial = Trial(self.make_draw(0), TrialRing(16, streams=2))
        sizes = []
        for turn in range(120):
            trial.ring.episode(16, turn % 2)
            trial.draw(20)
            sizes.append(plain.nbytes(trial.thing.state()))
        few, many = max(sizes[:20]), max(sizes[20:])
        assert many <= few + 64, f"the state grew from {few} to {many} bytes"

    def test_figures_are_plain(self) -> None:
        """Give figures by name, before and after something was drawn."""
        trial = self.trial()
        plain.check(trial.thing.stats())
        trial.draw(10)
        plain.check(trial.thing.stats())


class PriorityContract(DrawContract):
    """Prove, beyond that, that priorities are taken whole, by those they are meant for, and followed."""

    def updated(self, past: Past = wrapped) -> tuple[Trial, dict[Key, float]]:
        """Start a draw and give each anchor a priority of its own, the newest the highest."""
        trial = self.trial(past)
        every = trial.ring.timeline.every(trial.ring.look(), trial.window)
        priorities = np.linspace(0.1, 2.0, len(every.times))
        applied = self.update(trial, every, priorities)
        assert applied == len(priorities), f"applied {applied} of {len(priorities)} priorities of held steps"
        return trial, dict(zip(trial.ring.legal(trial.window), priorities.tolist(), strict=True))

    @staticmethod
    def update(trial: Trial, anchors: Any, priorities: NDArray[np.float64]) -> int:
        """Give the draw priorities."""
        thing: Any = trial.thing
        return int(thing.update(anchors, priorities))

    def test_a_higher_priority_is_never_less_likely(self) -> None:
        """Follow priorities: probabilities rise with them, and frequencies with the probabilities."""
        for past in (filling, wrapped, unequal):
            trial, priorities = self.updated(past)
            tally = self.tally(trial, self.draws)
            tally.check_law(f"on the ring {past.__name__!r} after an update")
            tally.check_order(priorities)

    def test_priorities_stay_with_their_steps(self) -> None:
        """Keep the priorities of steps that are still held as the ring turns under them."""
        trial, priorities = self.updated()
        trial.ring.episode(7)
        tally = self.tally(trial, self.draws)
        tally.check_law("after the ring turned on")
        tally.check_order({key: priority for key, priority in priorities.items() if key in tally.legal})

    def test_a_bad_priority_is_refused_whole(self) -> None:
        """Refuse NaN, infinite and negative priorities with ValueError, and take none of the others."""
        for bad in (np.nan, np.inf, -np.inf, -0.5):
            trial, twin = (self.updated()[0] for _ in range(2))
            every = trial.ring.timeline.every(trial.ring.look(), trial.window)
            values = np.linspace(3.0, 0.1, len(every.times))
            values[len(values) // 2] = bad
            raised(partial(self.update, trial, every, values), ValueError)
            self._alike(trial, twin, f"a refused update ({bad}) changed what is drawn")

    def test_late_updates_are_skipped_and_counted(self) -> None:
        """Skip priorities of steps that are gone, however many come, and say how many were applied."""
        trial, twin = (self.updated()[0] for _ in range(2))
        every = trial.ring.timeline.every(trial.ring.look(), trial.window)
        for one in (trial, twin):
            one.ring.episode(45)
            one.draw(4)
        before = plain.nbytes(trial.thing.state())
        gone = every.at(np.resize(np.arange(len(every.times)), 1000))
        for _ in range(20):
            applied = self.update(trial, gone, np.full(1000, 50.0))
            assert applied == 0, f"{applied} priorities of steps that are gone were applied"
        assert plain.nbytes(trial.thing.state()) <= before + 64, "late updates made the state grow"
        for one in (trial, twin):
            one.ring.episode(5)
        self._alike(trial, twin, "late updates changed what is drawn")

    @staticmethod
    def _alike(trial: Trial, twin: Trial, text: str) -> None:
        for _ in range(3):
            drawn, expected = trial.draw(30), twin.draw(30)
            assert keys(drawn) == keys(expected), text
            assert equal(drawn.probabilities, expected.probabilities), text


def equal(left: Any, right: Any) -> bool:
    """Tell whether both are None, or the same numbers; NaN equals itself."""
    return (left is None and right is None) or np.array_equal(left, right, equal_nan=left is not None)


def raised(call: Callable[[], Any], kind: type[Exception]) -> None:
    """Require an error of a kind, with a text."""
    text: str | None = None
    given = None
    try:
        given = call()
    except kind as error:
        text = str(error)
    assert text is not None, f"expected {kind.__name__}, got {given!r}"
    assert text, f"a {kind.__name__} without a text"
