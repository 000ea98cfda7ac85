"""Mixtures of replays and views: exact splits, joined fields, priorities that find their way back."""

import pickle
import re

import numpy as np
import pytest

from ringfence import Batch, Field, NotEnoughData, Replay, Schema, SchemaError, Uniform
from ringfence.draw import child
from ringfence.view.mixture import Mixture
from ringfence.view.sequences import Sequences
from ringfence.view.span import Span

NUMBER = Field((), np.int64)
SCHEMA = Schema(obs=NUMBER, action=NUMBER)
NESTED = Schema(
    obs={"image": Field((24, 24), np.uint8, stack=2), "state": (Field((3,), np.float32), NUMBER)},
    action=NUMBER,
    extras={"log_prob": Field((), np.float32)},
)


class Ranked(Uniform):
    """Take priorities, and remember them."""

    def __init__(self):
        super().__init__()
        self.taken = []

    def update(self, anchors, priorities):
        """Take all but the first."""
        self.taken.append((anchors.times.tolist(), priorities.tolist()))
        return max(len(priorities) - 1, 0)


def filled(start, schema=SCHEMA, steps=30, **options):
    """Build a replay whose observations are numbers from ``start`` on."""
    replay = Replay(schema, 50, seed=start, **options)
    for step in range(start, start + steps):
        replay.add(step, step, 0.0, step + 1, step % 9 == 8)
    return replay


def sequences(replay, length, draw=None, **options):
    """Give a view of windows."""
    draw, span = draw or Uniform(), Span(length, **options)
    draw.start(replay._timeline, span.window(replay.schema), child(replay._generator))
    return Sequences(replay._store, replay._timeline, draw, span)


def nested(start):
    """Build a replay of nested observations."""
    replay = Replay(NESTED, 50, seed=start)

    def obs(step):
        return {"image": np.full((24, 24), step % 256, np.uint8), "state": (np.full(3, step, np.float32), step)}

    for step in range(start, start + 30):
        replay.add(obs(step), step, 0.0, obs(step + 1), step % 9 == 8, log_prob=step / 2)
    return replay


def halves(**options):
    """Mix two replays, half and half: one holds 0 to 29, one 1000 to 1029."""
    return Mixture([(filled(0), 0.5), (filled(1000), 0.5)], **options)


def test_half_comes_from_each():
    """Rows lie in the order of the parts, and ``source`` tells which each came from."""
    batch = halves().sample(8)

    assert batch.source.tolist() == [0] * 4 + [1] * 4
    assert batch.source.dtype == np.int64
    assert (batch.obs // 1000).tolist() == batch.source.tolist()
    assert (batch.next_obs == batch.obs + 1).all()
    assert list(batch)[-1] == "source"
    assert isinstance(batch, Batch)


def test_long_run_shares_are_exact():
    """A fraction of a row is carried over: after any number of batches each part is within two rows of its share."""
    mixture = Mixture([(filled(0), 0.5), (filled(1000), 0.3), (filled(2000), 0.2)])
    counts = np.zeros(3)
    for turn in range(1, 60):
        counts += np.bincount(mixture.sample(7).source, minlength=3)
        assert np.abs(counts - 7 * turn * np.array([0.5, 0.3, 0.2])).max() < 2
    for _ in range(11):
        counts += np.bincount(mixture.sample(7).source, minlength=3)
    assert counts.tolist() == [245, 147, 98]
    assert mixture.stats() == {"batches": 70, "rows": [245, 147, 98]}


def test_every_field_is_joined():
    """Nested observations, stacks, extras and what the views add: each row is that of its part."""
    mixture = Mixture([(nested(0).transitions(3), 1), (nested(100).transitions(3), 1)])
    batch = mixture.sample(10)
    step = batch.action

    assert (step // 100).tolist() == batch.source.tolist()
    assert batch.obs["image"].shape == (10, 2, 24, 24)
    assert (batch.obs["image"][:, -1, 0, 0] == step % 256).all()
    assert (batch.obs["state"][0] == step[:, None]).all()
    assert (batch.obs["state"][1] == step).all()
    assert (batch.log_prob == step / 2).all()
    assert (batch.next_obs["state"][1] == step + batch.steps).all()
    assert {name: len(batch[name]) for name in ("discount", "ids", "weights", "probabilities")} == dict.fromkeys(
        ("discount", "ids", "weights", "probabilities"), 10
    )
    assert (batch.ids == step % 100).all()


def test_sequences_are_joined():
    """Parts may be views of sequences, rows first."""
    mixture = Mixture([(sequences(filled(0), 4), 1), (sequences(filled(1000), 4), 2)])
    batch = mixture.sample(6)

    assert batch.obs.shape == (6, 4)
    assert (batch.obs[:, 0] // 1000).tolist() == batch.source.tolist() == [0] * 2 + [1] * 4


def test_a_batch_is_a_batch():
    """It can be pickled, fields that are not read are not made, and a field twice read is the same array."""
    batch = halves().sample(4)
    copy = pickle.loads(pickle.dumps(batch))  # noqa: S301  (our own bytes)

    assert copy.source.tolist() == batch.source.tolist()
    assert batch.obs is batch.obs
    assert "reward" not in halves().sample(4).__dict__
    with pytest.raises(AttributeError, match=r"'origin' is not in this batch, which has obs, .*, source"):
        _ = batch.origin


def test_a_part_whose_share_is_none_is_not_asked():
    """An empty replay does no harm as long as nothing is wanted of it; a single part's arrays are passed on."""
    empty = Replay(SCHEMA, 10)
    mixture = Mixture([(filled(0), 1), (empty, 0)])

    assert mixture.sample(5).source.tolist() == [0] * 5
    assert mixture.can_sample(5)
    with pytest.raises(NotEnoughData, match="no step can be drawn: 0 transitions"):
        Mixture([(filled(0), 1), (empty, 0.1)]).sample(11)


def test_a_schedule_changes_the_shares():
    """It is asked with the batches drawn so far: here from all old to all new in four batches."""
    mixture = halves(schedule=lambda drawn: [max(4 - drawn, 0), min(drawn, 4)])
    rows = [np.bincount(mixture.sample(8).source, minlength=2).tolist() for _ in range(6)]

    assert rows == [[8, 0], [6, 2], [4, 4], [2, 6], [0, 8], [0, 8]]


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ([1], r"schedule: expected 2 shares, one a part, got \[1\]"),
        ([1, -1], r"shares: expected numbers of 0 or more .* got \[1, -1\]"),
        ([0, 0], r"shares: expected numbers of 0 or more and at least one above 0, got \[0, 0\]"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(shares, words):
    """What is wrong is said when the batch is asked for, and nothing is counted."""
    mixture = halves(schedule=lambda drawn: shares if drawn else [1, 1])
    mixture.sample(2)
    with pytest.raises(ValueError, match=words):
        mixture.sample(2)
    assert mixture.stats() == {"batches": 1, "rows": [1, 1]}


def test_can_sample_asks_every_part_for_its_rows():
    """It is true when each part holds as many as the next batch takes from it."""
    small = Replay(SCHEMA, 10)
    mixture = Mixture([(filled(0).transitions(), 0.5), (small, 0.5)])
    assert not mixture.can_sample(2)
    for step in range(3):
        small.add(step, step, 0.0, step + 1, False)
    assert mixture.can_sample()
    assert [mixture.can_sample(n) for n in (2, 6, 8, 60)] == [True, True, False, False]


def test_a_refused_batch_is_not_counted():
    """Where one part has nothing to give, the split and the counts stay."""
    small = Replay(SCHEMA, 10)
    mixture = Mixture([(filled(0), 2), (small, 1)])
    before = str(mixture.state())
    with pytest.raises(NotEnoughData, match="0 transitions are held"):
        mixture.sample(4)
    assert str(mixture.state()) == before


@pytest.mark.parametrize("n", [0, -1, 2.5, True, None, "3"])
def test_n_is_a_number_of_rows(n):
    """Anything but a whole number from 1 on is refused."""
    with pytest.raises(ValueError, match=re.escape(f"n: expected a whole number of at least 1, got {n!r}")):
        halves().sample(n)


def test_priorities_go_to_the_part_that_a_row_came_from():
    """Each part gets its own rows; parts without priorities are left out; counts are summed."""
    draws = Ranked(), Ranked()
    views = [filled(start).transitions(draw=draw) for start, draw in zip((0, 1000), draws, strict=True)]
    mixture = Mixture([(views[0], 2), (filled(2000), 1), (views[1], 1)])
    batch = mixture.sample(8)
    for draw in draws:
        draw.taken.clear()

    assert mixture.update_priorities(batch, np.arange(8)) == (4, 2)
    assert draws[0].taken[-1] == (batch.ids[:4].tolist(), [0, 1, 2, 3])
    assert draws[1].taken[-1] == (batch.ids[6:].tolist(), [6, 7])


def test_errors_of_sequences_find_their_part():
    """TD errors of each step of each window are split by rows, and what is learned from with them."""
    draw = Ranked()
    mixture = Mixture([(sequences(filled(0), 4), 1), (sequences(filled(1000), 4, draw=draw), 1)])
    batch = mixture.sample(4)
    errors = np.array([[0, 0, 0, 0], [9, 9, 9, 9], [1, 1, 1, 1], [-2, 2, -2, 2]])

    assert sum(mixture.update_priorities(batch, errors)) == 2
    assert draw.taken[-1] == (batch.ids[2:].tolist(), [1, 2])


@pytest.mark.parametrize(
    ("td", "words"),
    [
        ([1.0] * 7, r"td: expected 8 rows, one for each of the batch, got shape \(7,\)"),
        ([1.0] * 7 + [float("nan")], "td: expected finite priorities of 0 or more; nothing was updated"),
        ([1.0] * 7 + [-1.0], "td: expected finite priorities of 0 or more; nothing was updated"),
    ],
)
def test_priorities_are_refused_whole(td, words):
    """A bad one in the last part leaves the first part's as they were."""
    draws = Ranked(), Ranked()
    mixture = Mixture([(filled(0).transitions(draw=draw), 1) for draw in draws])
    batch = mixture.sample(8)
    with pytest.raises(ValueError, match=words):
        mixture.update_priorities(batch, td)
    assert all(not times for draw in draws for times, _ in draw.taken)


def test_without_priorities_the_error_says_so():
    """No part takes them."""
    mixture = halves()
    with pytest.raises(TypeError, match="no part has priorities; make one a view with draw=Prioritized"):
        mixture.update_priorities(mixture.sample(2), [1, 2])


def other(**changes):
    """Build a replay that differs from the others in one thing."""
    return filled(0, Schema(**{"obs": NUMBER, "action": NUMBER, **changes}))


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (other(obs=Field((), np.int32)), "obs: part 0 gives int64 (), part 1 gives int32 ()"),
        (other(reward=Field((), np.float64)), "reward: part 0 gives float32 (), part 1 gives float64 ()"),
        (nested(0), "obs: part 0 has it, part 1 has not"),
        (sequences(filled(0), 3), "obs: part 0 gives int64 (), part 1 gives int64 (3,)"),
    ],
)
def test_parts_that_differ_are_refused_by_name(part, words):
    """A field that one part has and another has not, or in another shape or dtype, is named."""
    mixture = Mixture([(filled(0), 1), (part, 1)])
    with pytest.raises(SchemaError, match=re.escape(words)):
        mixture.sample(4)


def test_parts_with_a_field_more_are_refused_by_name():
    """It does not matter which of the two has it."""
    plain, more = Replay(SCHEMA, 9), Replay(Schema(obs=NUMBER, action=NUMBER, extras={"value": NUMBER}), 9)
    plain.add(1, 1, 0.0, 2, False)
    more.add(1, 1, 0.0, 2, False, value=3)
    with pytest.raises(SchemaError, match="value: part 1 has it, part 0 has not"):
        Mixture([(plain, 1), (more, 1)]).sample(2)
    with pytest.raises(SchemaError, match="value: part 0 has it, part 1 has not"):
        Mixture([(more, 1), (plain, 1)]).sample(2)


def test_parts_that_have_a_source_are_refused():
    """A mixture of mixtures would not know whose rows they are."""
    with pytest.raises(SchemaError, match="source: part 0 has a field of this name"):
        Mixture([(halves(), 1), (filled(0), 1)]).sample(2)


class Short:
    """Give one row, whatever is asked for."""

    def sample(self, n):
        """Give one."""
        del n
        return Batch.of({"ids": np.zeros(1, np.int64)})


def test_parts_that_give_another_number_of_rows_are_refused():
    """Such as arrays with another axis first."""
    with pytest.raises(SchemaError, match=r"ids: part 0 was asked for 2 row\(s\) and gave shape \(1,\)"):
        Mixture([(Short(), 1)]).sample(2)


def test_time_major_sequences_are_refused():
    """Their rows do not come first."""
    with pytest.raises(SchemaError, match="part 1: is time-major; make its view with time_major=False"):
        Mixture([(sequences(filled(0), 3), 1), (sequences(filled(0), 3, time_major=True), 1)])


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([(SCHEMA, 1)], "part 0: expected a replay or a view, got Schema"),
        ([(None, 1)], "part 0: expected a replay or a view, got NoneType"),
    ],
)
def test_parts_can_sample(parts, words):
    """Anything else is refused when the mixture is made."""
    with pytest.raises(TypeError, match=words):
        Mixture(parts)


@pytest.mark.parametrize("shares", [[], [0.0], [1, -1], [1, float("nan")]])
def test_shares_are_numbers_with_a_sum(shares):
    """Anything else is refused when the mixture is made."""
    with pytest.raises(ValueError, match="shares: expected numbers of 0 or more and at least one above 0"):
        Mixture([(filled(0), share) for share in shares])


def test_what_is_owed_can_be_saved():
    """After ``load`` the splits are those that would have come."""
    mixture, twin = (Mixture([(filled(0), 0.7), (filled(1000), 0.3)]) for _ in range(2))
    mixture.sample(3)
    twin.load(mixture.state())

    assert [mixture.sample(3).source.tolist() for _ in range(6)] == [twin.sample(3).source.tolist() for _ in range(6)]
    assert twin.stats() == mixture.stats()
    with pytest.raises(ValueError, match="state: is of 2 parts, and there are 1"):
        Mixture([(filled(0), 1)]).load(mixture.state())


def test_tensors_come_from_a_mixture_too():
    """``batch.torch()`` gives the same fields as tensors."""
    torch = pytest.importorskip("torch")
    batch = halves().sample(4).torch()

    assert batch.source.dtype == torch.int64
    assert batch.obs.shape == (4,)
