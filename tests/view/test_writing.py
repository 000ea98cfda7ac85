"""Extras are overwritten by id: of held steps alone, checked as they are when added."""

import numpy as np
import pytest
from tests.view.test_sequences import HIDDEN, hidden
from tests.view.test_transitions import play, ring

from ringfence import Field, SchemaError


@pytest.mark.parametrize("size", [2, 300], ids=["in the record", "in a column"])
@pytest.mark.parametrize("streams", [1, 3])
def test_extras_can_be_written_later(size, streams):
    """``write`` overwrites extras of steps by id, wherever they lie in the ring, and of no other step."""
    replay = ring(capacity=20 * streams, streams=streams, extras={"hidden": Field((size,), np.float32)})
    for now in range(50):
        for stream in range(streams):
            replay.add(now, 100 * stream + now, 0.0, now + 1, now % 7 == 6, stream=stream, hidden=np.full(size, -1.0))
    view, every = replay.sequences(1), replay.transitions().ids()
    chosen = every[::3]
    values = np.arange(len(chosen) * size, dtype=np.float32).reshape(-1, size)

    assert view.write(chosen, hidden=values) == (len(chosen), 0)
    batch = replay.transitions().sample(2000)
    assert set(batch.ids.tolist()) == set(every.tolist())
    written = dict(zip(chosen.tolist(), values.tolist(), strict=True))
    for id, value in zip(batch.ids.tolist(), batch.hidden.tolist(), strict=True):
        assert value == written.get(id, [-1.0] * size)


def test_rows_behind_the_ring_s_end_are_written_too():
    """The first rows of a ring are repeated behind its end; both are the step, and both are written."""
    replay = ring(capacity=20, extras=HIDDEN)
    play(replay, range(60), hidden=hidden)
    every = replay.transitions().ids()
    replay.sequences(1).write(every, hidden=np.full((20, 2), 7.0))
    store = replay._store

    assert (
        store.records[: store.shape.rows - store.shape.slots].tobytes() == store.records[store.shape.slots :].tobytes()
    )


def test_stale_ids_are_skipped_and_counted():
    """A step that is gone is not written, nor is what took its place; padding is neither written nor counted."""
    replay = ring(capacity=8, extras=HIDDEN)
    play(replay, range(20), hidden=hidden)
    view = replay.sequences(2)
    ids = np.array([3, 12, 18, 999, -1, -1])

    written = view.write(ids, hidden=np.full((6, 2), -5.0))
    assert (written.applied, written.stale) == (2, 2)
    batch = replay.transitions().sample(200)
    assert set(batch.ids[batch.hidden[:, 0] == -5].tolist()) == {12, 18}


def test_steps_of_windows_are_written_in_one_call():
    """``step_ids`` of a padded batch name what to write, in the batch's own layout."""
    replay = ring(extras=HIDDEN)
    play(replay, range(6), "terminated", hidden=hidden)
    view = replay.sequences(4, boundary="pad", time_major=True)
    batch = view.sample(50)
    values = np.where(batch.mask[..., None], batch.hidden + 100, np.float32(0))

    written = view.write(batch.step_ids, hidden=values)
    assert written == (int(batch.mask.sum()), 0)
    assert sorted(set(replay.transitions().sample(100).hidden[:, 0].tolist())) == [100, 101, 102, 103, 104]


@pytest.mark.parametrize(
    ("extras", "text"),
    [
        ({"hidden": np.zeros((2, 3))}, r"hidden: expected shape \(2, 2\), got \(2, 3\)"),
        ({"hidden": np.zeros(2)}, r"hidden: expected shape \(2, 2\), got \(2,\)"),
        ({"hidden": np.zeros((2, 2)), "more": np.zeros(2)}, r"more: is no declared extra; the schema has hidden"),
        ({"hidden": np.full((2, 2), 1e300)}, r"hidden: expected a value that fits float32"),
        ({"obs": np.zeros(2)}, r"obs: is no declared extra"),
        ({}, r"name what to write: hidden"),
    ],
)
def test_what_does_not_fit_is_not_written(extras, text):
    """Values are checked as ``add`` checks them, and a refused write changes nothing."""
    replay = ring(extras=HIDDEN)
    play(replay, range(6), hidden=hidden)
    view, before = replay.sequences(2), replay._store.records.tobytes()

    with pytest.raises(SchemaError, match=text):
        view.write(np.array([0, 1]), **extras)
    with pytest.raises(ValueError, match="ids: expected whole numbers, got dtype float64"):
        view.write(np.array([0.0, 1.0]), hidden=np.zeros((2, 2)))
    assert replay._store.records.tobytes() == before
