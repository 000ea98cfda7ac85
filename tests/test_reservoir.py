"""A reservoir holds a uniform sample of all that was ever added, whole, in the memory that its plan says."""

import re
import threading
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from ringfence import BudgetExceeded, CheckpointError, Field, MemoryLimit, NotEnoughData, Replay, Schema, SchemaError
from ringfence.limits.rule import Rule
from ringfence.reservoir import Reservoir, plan
from ringfence.testing.machine import same
from ringfence.testing.reference import leaves
from ringfence.testing.strategies import schemas, values

NUMBER = Field((), np.int64)
PLAIN = Schema(obs=NUMBER, action=NUMBER)
WIDE = Schema(
    obs={"image": Field((24, 24), np.uint8), "state": (Field((3,), np.float32), Field((), np.uint16))},
    action=Field((2,), np.float32),
    extras={"hidden": Field((200,), np.float32), "log_prob": Field((), np.float32, stored=np.float16)},
)


def wide(tag, *lead):
    """Make a step of the wide schema from a number, or from several."""
    tags = np.asarray(tag)

    def full(shape, dtype, value):
        return np.broadcast_to(value.reshape((*lead, *(1,) * len(shape))), (*lead, *shape)).astype(dtype)

    def obs(tags):
        state = full((3,), np.float32, tags), full((), np.uint16, tags)
        return {"image": full((24, 24), np.uint8, tags % 256), "state": state}

    flags = {"terminated": tags % 5 == 4, "truncated": tags % 7 == 6}
    step = {"obs": obs(tags), "action": full((2,), np.float32, tags), "reward": tags / 4, "next_obs": obs(tags + 1)}
    return {**step, **flags, "hidden": full((200,), np.float32, -tags), "log_prob": full((), np.float32, tags / 8)}


def check_rows(batch):
    """Require every field of every row to be that of the step that its id names."""
    tags = batch.ids
    assert batch.obs["image"].shape == (len(tags), 24, 24)
    for name, of in (("obs", tags), ("next_obs", tags + 1)):
        assert (batch[name]["image"] == (of % 256)[:, None, None]).all()
        assert (batch[name]["state"][0] == of[:, None]).all()
        assert (batch[name]["state"][1] == of).all()
    assert (batch.action == tags[:, None]).all()
    assert (batch.reward == tags / 4).all()
    assert (batch.terminated == (tags % 5 == 4)).all()
    assert (batch.truncated == (tags % 7 == 6)).all()
    assert (batch.hidden == -tags[:, None]).all()
    assert (batch.log_prob == tags / 8).all()
    assert (batch.discount == np.float32(0.99) * ~batch.terminated).all()


def numbered(reservoir, count, start=0):
    """Offer so many plain steps, each with its number as observation; give the ids."""
    return [reservoir.add(tag, tag, tag / 2, tag + 1, tag % 9 == 8) for tag in range(start, start + count)]


# -- what is held


def test_what_fits_is_kept():
    """Up to its capacity it holds everything, each with its own successor."""
    reservoir = Reservoir(PLAIN, 20, seed=0)
    assert numbered(reservoir, 20) == list(range(20))
    batch = reservoir.sample(500)

    assert len(reservoir) == 20
    assert set(batch.obs.tolist()) == set(range(20))
    assert (batch.next_obs == batch.obs + 1).all()
    assert (batch.ids == batch.obs).all()
    assert (batch.terminated == (batch.obs % 9 == 8)).all()


@pytest.mark.parametrize("by", ["add", "extend"])
def test_rows_stay_whole(by):
    """Through hundreds of replacements every field of every row is that of one step, added alone or with others."""
    reservoir = Reservoir(WIDE, 30, seed=1)
    tag = 0
    for turn in range(60):
        many = 1 if by == "add" else turn % 12
        if by == "add":
            assert reservoir.add(**wide(tag)) == tag
        else:
            tags = np.arange(tag, tag + many)
            assert reservoir.extend(**wide(tags, many)).tolist() == tags.tolist()
        tag += many
        if len(reservoir):
            check_rows(reservoir.sample(64))
    held = reservoir.transitions().ids()

    assert len(reservoir) == len(set(held.tolist())) == 30
    assert held.max() < tag
    assert set(reservoir.sample(1000).ids.tolist()) == set(held.tolist())


@settings(max_examples=40, deadline=None)
@given(schema=schemas().filter(lambda schema: all(leaf.field.stack is None for leaf in schema.leaves())))
def test_any_schema_comes_back(schema):
    """Values of any dtype, nested in any way, packed or beside the record, come back to the bit."""
    reservoir, replay = Reservoir(schema, 4, seed=0), Replay(schema, 9)
    for tag in range(9):
        parts = {"obs": schema.obs, "action": schema.action, "reward": schema.reward, "next_obs": schema.obs}
        step = {name: values(part, 4 * tag + at) for at, (name, part) in enumerate(parts.items())}
        step |= {name: values(field, 4 * tag) for name, field in schema.extras.items()}
        for memory in (reservoir, replay):
            memory.add(**step, terminated=tag % 2 == 0)
    batch, every = reservoir.sample(20), replay.sample(300)
    twins = [every.ids.tolist().index(id) for id in batch.ids]
    for name in ("obs", "action", "reward", "next_obs", *schema.extras, "terminated", "discount"):
        for actual, wanted in zip(leaves(batch[name]), leaves(every[name]), strict=True):
            same(actual, wanted[twins], name)


def chi_squared(counts, share):
    """Give Pearson's statistic against equal shares, divided by what a right sampler stays below but once in 30,000."""
    counts = np.asarray(counts, float)
    expected = counts.sum() / len(counts)
    degrees = len(counts) - 1
    spread = 2 / (9 * degrees)
    # held or not is a draw without replacement: its variance is smaller by what is not held
    return ((counts - expected) ** 2).sum() / (expected * (1 - share)) / (degrees * (1 - spread + 4 * spread**0.5) ** 3)


def held_counts(make, capacity, added, rounds):
    """Count how often each of so many transitions is held at the end."""
    counts = np.zeros(added)
    fill = make(capacity, added)
    for _ in range(rounds):
        counts[fill()] += 1
    return counts


def by_add(capacity, added):
    """Fill a reservoir one by one, from the beginning each time; give what it holds."""
    reservoir = Reservoir(PLAIN, capacity, seed=0)

    def fill():
        reservoir.clear()
        first = numbered(reservoir, added)[0]
        return reservoir.transitions().ids() - first

    return fill


def by_extend(capacity, added):
    """Fill a reservoir several at a time, likewise."""
    reservoir = Reservoir(PLAIN, capacity, seed=0)

    def fill():
        reservoir.clear()
        first = reservoir.stats()["added"]
        for start in range(0, added, 7):
            tags = np.arange(start, min(start + 7, added))
            reservoir.extend(tags, tags, tags * 0.0, tags + 1, tags < 0, tags < 0)
        return reservoir.transitions().ids() - first

    return fill


def always_kept(capacity, added):
    """Stand for a rule that keeps every new one in a random slot: the old ones fade."""
    random = np.random.default_rng(0)

    def fill():
        held = np.arange(capacity)
        for number in range(capacity, added):
            held[random.integers(capacity)] = number
        return held

    return fill


def one_off(capacity, added):
    """Stand for an index drawn up to the number seen, not counting the new one."""
    random = np.random.default_rng(0)

    def fill():
        held = np.arange(capacity)
        for number in range(capacity, added):
            slot = random.integers(number)
            if slot < capacity:
                held[slot] = number
        return held

    return fill


@pytest.mark.parametrize("make", [by_add, by_extend])
def test_each_of_all_ever_added_is_equally_likely_to_be_held(make):
    """Over many seeds each of 60 transitions is held by a reservoir of 10 as often as any other."""
    counts = held_counts(make, 10, 60, 1500)

    assert counts.sum() == 15_000
    assert chi_squared(counts, 10 / 60) < 1


@pytest.mark.parametrize("make", [always_kept, one_off])
def test_a_wrong_rule_would_be_seen(make):
    """The statistic tells a rule that favours the new, and one whose index is off by one."""
    assert chi_squared(held_counts(make, 10, 60, 1500 if make is always_kept else 8000), 10 / 60) > 1


def test_draws_are_uniform_over_what_is_held():
    """Each is drawn equally often, and probabilities say so."""
    reservoir = Reservoir(PLAIN, 25, seed=3)
    numbered(reservoir, 200)
    batch = reservoir.sample(50_000)
    counts = Counter(batch.ids.tolist())

    assert len(counts) == 25
    assert chi_squared(list(counts.values()), 0) < 1
    assert (batch.probabilities == 1 / 25).all()
    assert (batch.weights == 1).all()
    assert (batch.steps == 1).all()


def test_clear_begins_a_new_sample():
    """Nothing from before comes again, ids go on, and the new sample is filled anew."""
    reservoir = Reservoir(PLAIN, 10, seed=0)
    numbered(reservoir, 25)
    reservoir.clear()
    assert len(reservoir) == 0
    with pytest.raises(NotEnoughData, match="no transition can be drawn: 0 of 10 are held"):
        reservoir.sample(1)
    assert numbered(reservoir, 4, start=100) == [25, 26, 27, 28]

    assert set(reservoir.sample(100).obs.tolist()) == {100, 101, 102, 103}
    assert not reservoir.holds(np.arange(25)).any()
    assert reservoir.holds([25, 28, 29]).tolist() == [True, True, False]


# -- seeds, figures, memory


def test_equal_seeds_hold_and_draw_equally():
    """What is kept does not depend on how often is sampled; a reservoir without a seed differs."""
    one, other, free = (Reservoir(PLAIN, 10, seed=seed) for seed in (5, np.random.SeedSequence(5), None))
    for reservoir in (one, other, free):
        numbered(reservoir, 80)
    one.transitions().sample(4)

    assert one.transitions().ids().tolist() == other.transitions().ids().tolist()
    assert one.sample(30).ids.tolist() == other.sample(30).ids.tolist()
    assert free.transitions().ids().tolist() != one.transitions().ids().tolist()


@pytest.mark.parametrize("compress", [False, True])
def test_a_loaded_reservoir_goes_on_as_one_that_never_stopped(tmp_path, compress):
    """What it holds, its next batches, and what it keeps of the steps to come are the same."""
    one = Reservoir(WIDE, 16, seed=5)
    for count in (0, 10, 50):
        if count:
            one.extend(**wide(np.arange(count), count))
        one.save(tmp_path / "save", compress=compress, notes={"count": count})
        other = Reservoir.load(tmp_path / "save")

        assert other.notes == {"count": count}
        assert other.stats() == one.stats()
        if count:
            for mine, theirs in zip(dict(one.sample(30)).values(), dict(other.sample(30)).values(), strict=True):
                np.testing.assert_equal(mine, theirs)
    for reservoir in (one, other):
        reservoir.extend(**wide(np.arange(90), 90))

    assert one.transitions().ids().tolist() == other.transitions().ids().tolist()


def test_a_damaged_or_foreign_save_is_refused(tmp_path):
    """A replay's save is no reservoir's, nor the other way round, and a flipped bit is found."""
    Replay(PLAIN, 10).save(tmp_path / "replay")
    reservoir = Reservoir(PLAIN, 10, seed=0)
    numbered(reservoir, 30)
    reservoir.save(tmp_path / "save")
    with pytest.raises(CheckpointError, match="expected 'reservoir', got 'replay'"):
        Reservoir.load(tmp_path / "replay")
    with pytest.raises(CheckpointError, match="expected 'replay', got 'reservoir'"):
        Replay.load(tmp_path / "save")
    for path in (tmp_path / "save").glob("*.npy"):
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
        with pytest.raises(CheckpointError, match=path.name):
            Reservoir.load(tmp_path / "save")
        data[-1] ^= 1
        path.write_bytes(data)
    assert len(Reservoir.load(tmp_path / "save")) == 10


def test_figures_add_up():
    """What was added is held or gone; nothing grows."""
    reservoir = Reservoir(WIDE, 16, seed=0)
    nbytes = reservoir.nbytes
    reservoir.extend(**wide(np.arange(50), 50))
    reservoir.add(**wide(50))

    assert reservoir.stats() == {"size": 16, "capacity": 16, "nbytes": nbytes, "added": 51, "gone": 35}
    assert repr(reservoir) == f"Reservoir(16 of 16 transitions, {nbytes:,} bytes)"


def test_the_plan_is_right_to_the_byte():
    """Its lines add up to what the reservoir takes, successors and arrival numbers among them."""
    for schema in (PLAIN, WIDE):
        planned = plan(schema, 1000)
        reservoir = Reservoir(schema, 1000)
        lines = {line.name: line for line in planned.lines}

        assert planned.bytes == reservoir.nbytes == reservoir.plan.bytes
        assert lines["ids"].nbytes == 8 * 1000
        assert ("next_obs.image" in lines) == (schema is WIDE)
        assert "next_obs" in str(planned)
    assert lines["next_obs.image"].nbytes == lines["obs.image"].nbytes == 576_000


def test_it_costs_little_more_than_what_it_keeps():
    """A transition of 17 + 17 + 6 float32 takes at most 16 bytes beside its fields."""
    schema = Schema(obs=Field((17,), np.float32), action=Field((6,), np.float32))

    assert plan(schema, 1_000_000).step_bytes < 4 * (17 + 17 + 6 + 1) + 2 + 16 + 8


@pytest.mark.parametrize("schema", [PLAIN, WIDE])
def test_a_budget_is_filled_and_kept(schema):
    """As many transitions as fit, and not one more."""
    reservoir = Reservoir(schema, budget="1 MiB")

    assert reservoir.nbytes <= 2**20 < plan(schema, reservoir.capacity + 1).bytes
    assert plan(schema, 10, budget="1 MiB").fitting == reservoir.capacity


def test_too_much_is_refused_before_anything_is_taken():
    """The error says what would fit; a budget too small for anything says so."""
    with pytest.raises(BudgetExceeded, match=r"1,000,000 transitions .* may be taken .*; capacity=[\d,]+ would fit"):
        Reservoir(PLAIN, 1e6, budget="1 MiB")
    with pytest.raises(BudgetExceeded, match="not even the smallest ring fits"):
        Reservoir(PLAIN, budget="1 kiB")
    limit = MemoryLimit.of([Rule("made up", limit=2**20, used=0, where="here")])
    assert not plan(PLAIN, 1_000_000, limit=limit).fits


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ({}, 'give capacity=1_000_000 or budget="2 GiB"'),
        ({"capacity": 0}, "cannot read 0 as a count"),
        ({"capacity": 2.5}, r"cannot read 2\.5 as a count"),
        ({"budget": "much"}, "cannot read 'much' as a size in bytes"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(size, words):
    """Neither capacity nor budget, or one that is no number."""
    with pytest.raises(ValueError, match=words):
        Reservoir(PLAIN, **size)


# -- refusals


def test_stacks_are_refused_with_the_reason():
    """The frames before a step would not be there; the text says how to keep them."""
    schema = Schema(obs={"image": Field((84, 84), np.uint8, stack=4)}, action=NUMBER)
    words = "obs.image: stack=4 needs the frames before a step, .*; keep the stack whole: Field((4, 84, 84), ...)"
    with pytest.raises(SchemaError, match=re.escape(words).replace(r"\.\*", ".*")):
        Reservoir(schema, 10)


@pytest.mark.parametrize("n_step", [3, 0, "1"])
def test_returns_over_several_steps_are_refused_with_the_reason(n_step):
    """What followed a transition is mostly gone."""
    with pytest.raises(SchemaError, match=r"n_step: a reservoir keeps single transitions .* expected 1, got"):
        Reservoir(PLAIN, 10).transitions(n_step)


def test_a_view_has_a_discount_of_its_own():
    """``gamma`` is that of the view, and 0 where the episode ended."""
    reservoir = Reservoir(PLAIN, 10, seed=0)
    numbered(reservoir, 9)
    view = reservoir.transitions(gamma=0.5)
    batch = view.sample(100)

    assert (batch.discount == np.where(batch.obs == 8, 0, 0.5)).all()
    assert [view.can_sample(n) for n in (1, 9, 10)] == [True, True, False]
    assert view.stats() == {}
    with pytest.raises(ValueError, match="gamma: expected a number from 0 to 1, got 2"):
        reservoir.transitions(gamma=2)


@pytest.mark.parametrize("n", [0, -1, 2.5, True, None])
def test_n_is_a_number_of_rows(n):
    """Anything but a whole number from 1 on is refused."""
    reservoir = Reservoir(PLAIN, 10)
    numbered(reservoir, 3)
    with pytest.raises(ValueError, match=re.escape(f"n: expected a whole number of at least 1, got {n!r}")):
        reservoir.sample(n)


BAD = [
    ({"obs": 0.5}, "obs: "),
    ({"reward": "much"}, "reward: "),
    ({"next_obs": [1, 2]}, "next_obs: "),
    ({"terminated": 2}, "terminated: "),
    ({"surplus": 1}, "unknown key surplus"),
]


@pytest.mark.parametrize(("change", "words"), BAD)
@pytest.mark.parametrize("by", ["add", "extend"])
def test_a_step_that_does_not_match_changes_nothing(by, change, words):
    """It is refused by name as a replay refuses it; what is held and what will be chosen stay."""
    reservoir, twin = (Reservoir(PLAIN, 5, seed=0) for _ in range(2))
    for one in (reservoir, twin):
        numbered(one, 30)
    step = {"obs": 1, "action": 1, "reward": 0.0, "next_obs": 2, "terminated": False, "truncated": False, **change}
    if by == "extend":
        step = {name: [value] for name, value in step.items()}
    with pytest.raises(SchemaError, match=words):
        getattr(reservoir, by)(**step)
    for one in (reservoir, twin):
        numbered(one, 30, start=30)

    assert reservoir.sample(20).obs.tolist() == twin.sample(20).obs.tolist()


def test_extend_needs_rows():
    """A single flag has no rows; empty arrays are fine, and no transition."""
    reservoir = Reservoir(PLAIN, 5)
    with pytest.raises(SchemaError, match="terminated: expected a flag for each transition, got False"):
        reservoir.extend([1], [1], [0.0], [2], False, False)
    assert reservoir.extend([], [], [], [], [], []).tolist() == []
    assert len(reservoir) == 0


def test_what_fills_a_replay_fills_a_reservoir():
    """Streams are taken and of no account."""
    reservoir, replay = Reservoir(PLAIN, 20, seed=0), Replay(PLAIN, 20, streams=2, seed=0)
    for memory in (reservoir, replay):
        memory.add(1, 1, 0.0, 2, False, stream=1)
        memory.extend([3, 4], [3, 4], [0, 0], [5, 6], [False] * 2, [False] * 2, streams=[1, 0])
        assert set(memory.sample(100).obs.tolist()) == {1, 3, 4}
    assert list(reservoir.sample(1)) == list(replay.sample(1))


def test_nothing_is_shared_with_the_caller():
    """Arrays passed in, and arrays given out, can be scribbled over."""
    reservoir = Reservoir(WIDE, 8, seed=0)
    step = wide(np.arange(8), 8)
    step["obs"]["image"] = step["obs"]["image"].copy()
    reservoir.extend(**step)
    step["obs"]["image"][:] = 77
    batch = reservoir.sample(32)
    batch.obs["image"][:] = 99

    check_rows(reservoir.sample(32))


def test_readers_get_whole_rows_while_a_writer_replaces_them():
    """A thread that samples a small reservoir at full speed never sees a row that is made of two."""
    reservoir = Reservoir(WIDE, 8, seed=0)
    reservoir.extend(**wide(np.arange(8), 8))
    done = threading.Event()

    def write():
        try:
            for tag in range(8, 400, 8):
                reservoir.clear()  # so that each is kept
                for number in range(tag, tag + 8):
                    reservoir.add(**wide(number))
        finally:
            done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        try:
            check_rows(reservoir.sample(4))
        except NotEnoughData:
            continue
    writer.join()
