# ruff: noqa: D102, ARG002 - testing/views.py says what each of these does
"""Every view keeps the contract; and the contract finds each way to break it."""

from __future__ import annotations

import time

import numpy as np
import pytest

from ringfence import Batch, Epochs, Field, Fresh, NotEnoughData, Prioritized, Reservoir, Schema
from ringfence.draw import Drawn
from ringfence.testing.views import ViewContract

NAMES = [name for name in dir(ViewContract) if name.startswith("test_")]


class TestDefault(ViewContract):
    """The view that ``replay.sample`` draws from."""

    def make_view(self, replay):
        return replay._default


class TestTransitions(ViewContract):
    """A step and its successor."""

    def make_view(self, replay):
        return replay.transitions()


class TestNStep(ViewContract):
    """A step, and what comes up to five steps later."""

    def make_view(self, replay):
        return replay.transitions(n_step=5)


class TestSequences(ViewContract):
    """Windows inside one episode."""

    def make_view(self, replay):
        return replay.sequences(4)


class TestBootstrap(ViewContract):
    """Windows with the successor of their last step, time first."""

    def make_view(self, replay):
        return replay.sequences(3, burn_in=2, bootstrap=True, time_major=True)


class TestPadded(ViewContract):
    """Windows that end with the episode, however short."""

    def make_view(self, replay):
        return replay.sequences(6, boundary="pad", bootstrap=True)


class TestCrossing(ViewContract):
    """Windows that go on into the next episode."""

    def make_view(self, replay):
        return replay.sequences(5, boundary="cross")


class TestStrided(ViewContract):
    """Windows side by side."""

    def make_view(self, replay):
        return replay.sequences(3, stride=3)


class TestHindsight(ViewContract):
    """Transitions of which most have another goal."""

    def schema(self):
        goal = Field((1,), np.float32)
        plain = super().schema()
        return Schema(obs={**plain.obs, "achieved_goal": goal, "desired_goal": goal}, action=plain.action)

    def observe(self, number):
        return {**super().observe(number), "achieved_goal": [float(number)], "desired_goal": [-1.0]}

    def make_view(self, replay):
        return replay.hindsight(lambda achieved, desired, _: (achieved == desired)[:, 0].astype(np.float32))


class TestPrioritizedTransitions(ViewContract):
    """Transitions drawn by priority."""

    def make_view(self, replay):
        return replay.transitions(n_step=3, draw=Prioritized())


class TestFreshSequences(ViewContract):
    """Windows of new steps first."""

    def make_view(self, replay):
        return replay.sequences(4, draw=Fresh())


class TestEpochs(ViewContract):
    """Transitions without replacement."""

    def make_view(self, replay):
        return replay.transitions(draw=Epochs())


class TestReservoir(ViewContract):
    """Transitions from anywhere in time."""

    def make_replay(self, capacity, streams, seed):
        return Reservoir(self.schema(), capacity, seed=seed)

    def make_view(self, replay):
        return replay.transitions()


# -- the contract can fail


class Right:
    """A right view behind a door of its own, from which the wrong ones below are made."""

    def __init__(self, replay):
        self.view = replay.transitions()

    def sample(self, n):
        return self.view.sample(n)

    def can_sample(self, n=1):
        return self.view.can_sample(n)

    def ids(self):
        return self.view.ids()


class ListsLess(Right):
    """Leave the newest window out of the list."""

    def ids(self):
        return super().ids()[:-1]


class ListsMore(Right):
    """List what is never drawn."""

    def ids(self):
        ids = super().ids()
        return np.append(ids, ids[-1] + 1) if len(ids) else ids


class AlwaysSure(Right):
    """Say that anything can be drawn."""

    def can_sample(self, n=1):
        return True


class Empty(Right):
    """Give an empty batch instead of refusing."""

    def sample(self, n):
        try:
            return super().sample(n)
        except NotEnoughData:
            return Batch.of({"ids": np.zeros(0, np.int64)})


class Lenient(Right):
    """Round what is no number of windows."""

    def sample(self, n):
        return super().sample(max(int(float(n or 1)), 1))


class Fewer(Right):
    """Give each window once, however many were asked for."""

    def sample(self, n):
        return super().sample(min(n, 9))


class Mixed(Right):
    """Put the observations of other steps beside the actions."""

    def sample(self, n):
        fields = dict(super().sample(n))
        fields["obs"] = {name: np.roll(leaf, 1, axis=0) for name, leaf in fields["obs"].items()}
        return Batch.of(fields)


class Behind(Right):
    """Give each step's own observation as its successor's."""

    def sample(self, n):
        fields = dict(super().sample(n))
        return Batch.of(fields | {"next_obs": fields["obs"]})


class Reused(Right):
    """Hand out the same arrays again and again."""

    batches: dict

    def __init__(self, replay):
        super().__init__(replay)
        self.batches = {}

    def sample(self, n):
        batch = super().sample(n)
        kept = self.batches.setdefault(n, batch)
        for name in ("number", "frame"):
            kept.obs[name][...] = batch.obs[name]
        return Batch.of(dict(batch) | {"obs": kept.obs})


class Late(Right):
    """Read actions when they are first looked at."""

    def __init__(self, replay):
        super().__init__(replay)
        recipes = {name: (lambda batch, name=name: batch[name]) for name in self.view._batch._recipes}
        self.batch = Batch.kind({**recipes, "action": self.action})

    def action(self, batch):
        view = self.view
        anchors = view._timeline.anchors(batch.ids)
        return view.take(view._timeline.look(), Drawn(anchors)).arrays["action"]

    def sample(self, n):
        return self.batch(super().sample(n))


class Keeper(Right):
    """Keep the view in each batch."""

    def sample(self, n):
        batch = super().sample(n)
        batch.__dict__["view"] = self.view
        return batch


class Diary(Right):
    """Note every batch."""

    def __init__(self, replay):
        super().__init__(replay)
        self.notes = []

    def sample(self, n):
        batch = super().sample(n)
        self.notes.append({"ids": [batch.ids]})
        return batch


class Seedless(Right):
    """Shuffle by chance of its own."""

    def sample(self, n):
        order = np.random.default_rng().permutation(n)
        return Batch.of({"ids": super().sample(n).ids[order]})


class Copies(dict):
    """A mapping whose attributes are copies."""

    def __getattr__(self, name):
        if name not in self:
            raise AttributeError(name)
        return self[name].copy()


class Unsteady(Right):
    """Give another array each time a field is asked for."""

    def sample(self, n):
        return Copies(super().sample(n))


class Torn(Right):
    """Read without looking again whether a writer went over it."""

    def __init__(self, replay):
        super().__init__(replay)
        take = self.view.take
        self.view._timeline.untouched = lambda *_: True

        def slowly(look, drawn):
            time.sleep(0.0002)
            return take(look, drawn)

        self.view.take = slowly


def contract(view):
    """Make the contract of a view."""

    class Contract(ViewContract):
        def make_view(self, replay):
            return view(replay)

    return Contract()


@pytest.mark.parametrize("name", NAMES)
def test_a_right_view_passes(name):
    """The view that the wrong ones are made from keeps every rule."""
    getattr(contract(Right), name)()


@pytest.mark.parametrize(
    ("view", "name", "text"),
    [
        (ListsLess, "test_ids_list_what_is_drawn", "ids does not list"),
        (ListsLess, "test_can_sample_counts_what_ids_lists", "can_sample says"),
        (ListsMore, "test_ids_list_what_is_drawn", "never drew"),
        (AlwaysSure, "test_can_sample_counts_what_ids_lists", "can_sample says"),
        (Empty, "test_nothing_to_draw_is_refused", "was not refused"),
        (Lenient, "test_a_number_of_windows_is_asked_for", "was not refused"),
        (Fewer, "test_a_number_of_windows_is_asked_for", "asked for 200, got 9"),
        (Mixed, "test_what_is_drawn_is_true", "are of steps"),
        (Behind, "test_what_is_drawn_is_true", "successors of"),
        (Reused, "test_a_batch_is_the_callers_own", "changed another one"),
        (Reused, "test_a_kept_batch_does_not_change", "changed while"),
        (Late, "test_a_kept_batch_does_not_change", "action.* changed while"),
        (Late, "test_a_batch_keeps_no_ring_alive", "keeps the ring alive"),
        (Keeper, "test_a_batch_keeps_no_ring_alive", "keeps the ring alive"),
        (Diary, "test_sampling_leaves_nothing_behind", "objects behind"),
        (Seedless, "test_equal_seeds_give_equal_batches", "gave different batches"),
        (Unsteady, "test_a_batch_is_a_mapping_and_has_attributes", "is not batch"),
        (Torn, "test_a_writer_may_overtake", "are of steps|hold other numbers|successors of"),
    ],
)
def test_a_broken_view_fails(view, name, text):
    """Each of these breaks one rule, and the test of that rule says so."""
    with pytest.raises(AssertionError, match=text):
        getattr(contract(view), name)()
