"""What every view must keep, as tests to inherit.

Give the class a name that pytest collects, and say how the view is made of a replay::

    class TestPairs(ViewContract):
        def make_view(self, replay):
            return Pairs(replay)

Every observation has a number, and so have its big frame, the action taken there and the step's id: whatever a view
draws is true where all of them agree. A view whose schema must be another one overrides ``schema`` and ``observe``.
"""

from __future__ import annotations

import gc
import pickle
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import NotEnoughData
from ringfence.replay import Replay
from ringfence.schema import Field, Schema
from ringfence.testing.reference import leaves
from ringfence.view import Batch

FRAME = (130,)
"""Float32 enough for a column of its own, beside the records."""
STREAM = 1_000_000
"""Where the numbers of the next stream begin."""


class View(Protocol):
    """Whatever gives batches of a ring."""

    def sample(self, n: int) -> Batch:
        """Draw ``n`` windows."""
        ...

    def can_sample(self, n: int = 1) -> bool:
        """Tell whether at least ``n`` different windows can be drawn."""
        ...

    def ids(self) -> NDArray[np.int64]:
        """List the id of every window that can be drawn."""
        ...


class Story:
    """Add numbered steps to a replay, and know the number behind each id."""

    def __init__(self, contract: ViewContract, capacity: int = 48, streams: int = 2, seed: int = 0) -> None:
        self._contract = contract
        self.streams = streams
        self.replay = contract.make_replay(capacity, streams, seed)
        self.numbers: dict[int, int] = {}
        """Of each step ever added, by id."""
        self._next = [STREAM * stream for stream in range(streams)]

    def episode(self, length: int, stream: int = 0, *, ends: bool = True) -> None:
        """Add an episode; its final observation has a number of its own."""
        for left in reversed(range(length)):
            number = self._next[stream]
            last = ends and not left
            obs, successor = self._contract.observe(number), self._contract.observe(number + 1)
            flags = (last and length % 2 == 0, last and length % 2 == 1)
            id = self.replay.add(obs, number, 0.0, successor, *flags, stream=stream)
            self.numbers[id] = number
            self._next[stream] += 2 if last else 1
        if not ends:
            self._next[stream] += 1  # and the next one begins with a break

    def fill(self) -> Story:
        """Turn both streams, with episodes of one to fourteen steps, and leave one open."""
        for length in (9, 1, 14, 5, 2, 11):
            for stream in range(self.streams):
                self.episode(length, stream)
        self.episode(7, 0, ends=False)
        return self

    def check(self, batch: Batch) -> None:
        """Require that number, frame, action, successor and id of all that was drawn belong together."""
        ids = np.asarray(batch["step_ids"] if "step_ids" in batch else batch["ids"])
        action, real = np.asarray(batch["action"]), ids >= 0
        numbers, frames = (np.asarray(batch["obs"][key]) for key in ("number", "frame"))
        expected = np.array([self.numbers[id] for id in ids[real].tolist()])
        assert np.array_equal(action[real], expected), f"actions {action[real]} are of steps {expected}"
        # a view may give one observation more than actions: the successor of the last step
        shown = numbers[tuple(slice(size) for size in action.shape)][real]
        assert np.array_equal(shown, expected), f"observations {shown} are of steps {expected}"
        torn = (frames != numbers[..., None]).any(axis=-1)
        assert not torn.any(), f"frames of observations {numbers[torn]} hold other numbers"
        if "next_obs" in batch:
            later, steps = np.asarray(batch["next_obs"]["number"]), np.asarray(batch["steps"])
            assert np.array_equal(later, numbers + steps), f"successors of {numbers} over {steps} steps are {later}"


class ViewContract:
    """Prove that a view draws what it lists, draws it whole, and leaves nothing shared or kept."""

    reach = True
    """Whether the view's draw gives every window that can be drawn sooner or later."""

    def make_view(self, replay: Any) -> View:
        """Make the view under test of a replay."""
        raise NotImplementedError

    def make_replay(self, capacity: int, streams: int, seed: int) -> Any:
        """Make what the view is of: an empty replay, or something else with ``add``, ``clear`` and perhaps ``cut``."""
        return Replay(self.schema(), capacity=capacity, streams=streams, seed=seed)

    def schema(self) -> Schema:
        """Say what a step is; the observation has the leaves ``number`` and ``frame``."""
        obs = {"number": Field((), np.int64), "frame": Field(FRAME, np.float32)}
        return Schema(obs=obs, action=Field((), np.int64))

    def observe(self, number: int) -> Any:
        """Make the observation of a number."""
        return {"number": number, "frame": np.full(FRAME, number, np.float32)}

    def story(self, seed: int = 0) -> tuple[Story, View]:
        """Make a view of a ring that turned."""
        story = Story(self, seed=seed).fill()
        return story, self.make_view(story.replay)

    def moments(self) -> Iterator[tuple[Story, View]]:
        """Go through the life of a ring: it fills, turns, is cut short, cleared, and fills again."""
        story = Story(self)
        view = self.make_view(story.replay)
        yield story, view
        for moment in range(24):
            if moment == 15:
                story.replay.clear()
            elif moment % 5 == 4 and hasattr(story.replay, "cut"):
                story.replay.cut(moment % 2)
            else:
                story.episode((3, 12, 1, 30, 6)[moment % 5], moment % 2, ends=moment % 3 > 0)
            yield story, view

    # -- what can be drawn

    def test_ids_list_what_is_drawn(self) -> None:
        """Draw only what ``ids`` lists, at every moment of a ring's life, and all of it in time."""
        for _, view in self.moments():
            listed = view.ids()
            assert listed.dtype == np.int64, f"ids are {listed.dtype}"
            assert len(np.unique(listed)) == len(listed), f"ids lists one twice: {listed}"
            if not len(listed):
                continue
            drawn = {id for _ in range(12 if self.reach else 1) for id in view.sample(100).ids.tolist()}
            assert drawn <= set(listed.tolist()), (
                f"drew {sorted(drawn - set(listed.tolist()))}, which ids does not list"
            )
            if self.reach:
                missing = set(listed.tolist()) - drawn
                assert not missing, f"never drew {sorted(missing)} of {len(listed)} windows in 1200 draws"

    def test_can_sample_counts_what_ids_lists(self) -> None:
        """Say that n windows can be drawn exactly where ``ids`` lists as many."""
        for _, view in self.moments():
            count = len(view.ids())
            told = [view.can_sample(n) for n in (1, max(count, 1), count + 1)]
            assert told == [count > 0, count > 0, False], f"can_sample says {told} of {count} windows"
            assert view.can_sample() == (count > 0), "can_sample() is not can_sample(1)"

    def test_nothing_to_draw_is_refused(self) -> None:
        """Raise NotEnoughData where nothing can be drawn, with the counts in the text."""
        story, view = self.story()
        for _ in range(2):
            story.replay.clear()
            assert not view.can_sample()
            assert not len(view.ids())
            text = _refusal(view, 4, NotEnoughData)
            assert any(letter.isdigit() for letter in text), f"the text has no counts: {text!r}"
            story.episode(20)
            view.sample(4)

    def test_a_number_of_windows_is_asked_for(self) -> None:
        """Give as many windows as asked for; refuse what is no number of windows with ValueError."""
        _, view = self.story()
        for n in (1, 7, 200, np.int64(5)):
            got = len(view.sample(n).ids)
            assert got == n, f"asked for {n}, got {got}"
        for bad in (0, -1, 2.5, True, "3", None):
            assert "n" in _refusal(view, bad, ValueError)

    # -- what is drawn

    def test_what_is_drawn_is_true(self) -> None:
        """Give observation, frame, action, successor and id of one step, at every moment of a ring's life."""
        for story, view in self.moments():
            if view.can_sample():
                story.check(view.sample(60))

    def test_a_batch_is_a_mapping_and_has_attributes(self) -> None:
        """Give each field by its name, as item and as attribute, the same object each time; refuse unknown names."""
        batch = self.story()[1].sample(5)
        assert list(batch) == list(batch.keys())
        assert len(batch) == len(list(batch))
        for name, value in batch.items():
            assert getattr(batch, name) is value, f"batch.{name} is not batch[{name!r}]"
            assert batch.get(name) is value, f"batch[{name!r}] is another object each time"
            assert name in batch
        for name, leaf in fields(batch):
            assert 5 in leaf.shape[:2], f"{name} of 5 windows has shape {leaf.shape}"
            assert leaf.dtype.kind != "O", f"{name} holds objects"
        assert not hasattr(batch, "no_such_field")
        assert batch.get("no_such_field") is None

    def test_equal_seeds_give_equal_batches(self) -> None:
        """Give the same batches from replays of one seed, field by field, and others from another seed."""
        views = [self.story(seed)[1] for seed in (4, 4, 5)]
        drawn = [[contents(view.sample(20)) for _ in range(3)] for view in views]
        assert all(map(same, drawn[0], drawn[1])), "two views of one seed gave different batches"
        assert not all(map(same, drawn[0], drawn[2])), "seeds 4 and 5 gave the same batches"

    def test_a_batch_can_be_sent(self) -> None:
        """Pickle a batch, as loaders in other processes do: it comes out with the same fields."""
        batch = self.story()[1].sample(6)
        there = pickle.loads(pickle.dumps(batch))  # noqa: S301  (our own bytes)
        assert same(contents(there), contents(batch)), "a pickled batch came out different"

    # -- what is left behind

    def test_a_batch_is_the_callers_own(self) -> None:
        """Share no memory: whatever is written into a batch, ring and other batches stay as they are."""
        story, view = self.story()
        other = view.sample(30)
        kept = contents(other)
        for _ in range(4):
            for _, leaf in fields(view.sample(30)):
                if leaf.flags.writeable:
                    leaf.view(np.uint8 if leaf.ndim and leaf.flags.c_contiguous else leaf.dtype)[...] = 1
        assert same(contents(other), kept), "writing into one batch changed another one"
        story.check(view.sample(60))

    def test_a_kept_batch_does_not_change(self) -> None:
        """Hold what was drawn when it was drawn, however late a field is first looked at."""
        (one, early), (other, late) = self.story(), self.story()
        batches = early.sample(20), late.sample(20)
        expected = contents(batches[0])
        for story, view in ((one, early), (other, late)):
            story.replay.clear()
            story.fill()
            view.sample(20)
        got = contents(batches[1])
        changed = [name for name in expected if not np.array_equal(got[name], expected[name])]
        assert not changed, f"{', '.join(changed)} changed while the ring turned"
        assert same(contents(batches[0]), expected), "fields that had been looked at changed while the ring turned"

    def test_a_batch_keeps_no_ring_alive(self) -> None:
        """Let the ring go although batches are kept, looked at or not."""
        story, view = self.story()
        batches = view.sample(20), view.sample(20)
        contents(batches[0])
        ring = weakref.ref(story.replay._store)  # noqa: SLF001  (what must go is inside)
        del story, view
        gc.collect()
        assert ring() is None, "a batch keeps the ring alive"
        assert len(batches[1].ids) == 20

    def test_sampling_leaves_nothing_behind(self) -> None:
        """Have as many objects after three hundred batches as after ten."""
        view = self.story()[1]
        counts = []
        for rounds in (10, 300):
            for _ in range(rounds):
                view.sample(4)
            gc.collect()
            counts.append(len(gc.get_objects()))
        assert counts[1] <= counts[0] + 30, f"300 batches left {counts[1] - counts[0]} objects behind"

    # -- beside a writer

    def test_a_writer_may_overtake(self) -> None:
        """Draw whole windows while a thread adds as fast as it can."""
        story = Story(self, capacity=80).fill()
        view = self.make_view(story.replay)
        done = threading.Event()

        def write() -> None:
            number = 0
            while not done.is_set():
                story.episode((9, 30, 4, 17)[number % 4], number % 2, ends=number % 3 > 0)
                number += 1

        before, drawn = sys.getswitchinterval(), []
        sys.setswitchinterval(1e-5)
        writer = threading.Thread(target=write)
        writer.start()
        try:
            drawn = [view.sample(6) for _ in range(150)]
        finally:
            done.set()
            writer.join()
            sys.setswitchinterval(before)
        for batch in drawn:
            story.check(batch)


def fields(batch: Batch) -> Iterator[tuple[str, NDArray[Any]]]:
    """Go through the arrays of a batch, those of nested fields too."""
    for name, value in batch.items():
        for at, leaf in enumerate(leaves(value)):
            yield f"{name}[{at}]", leaf


def contents(batch: Batch) -> dict[str, NDArray[Any]]:
    """Copy all arrays of a batch."""
    return {name: np.array(leaf) for name, leaf in fields(batch)}


def same(left: dict[str, NDArray[Any]], right: dict[str, NDArray[Any]]) -> bool:
    """Tell whether two batches hold the same."""
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


def _refusal(view: View, n: Any, kind: type[Exception]) -> str:
    """Require that a request is refused by an error of a kind; give its text."""
    text: str | None = None
    try:
        view.sample(n)
    except kind as error:
        text = str(error)
    assert text is not None, f"sample({n!r}) was not refused with {kind.__name__}"
    return text
