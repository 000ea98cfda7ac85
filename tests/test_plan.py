"""The plan says, before a byte is taken, what a ring will take, and it is right to the byte."""

import re
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence import BudgetExceeded, Field, MemoryLimit, Replay, Schema, SchemaError, plan
from ringfence.limits.rule import Rule
from ringfence.testing.strategies import schemas

NUMBER = Field((), np.int64)
CHEETAH = Schema(obs=Field((17,), np.float32), action=Field((6,), np.float32))
ATARI = Schema(obs=Field((84, 84), np.uint8, stack=4, stack_axis=-1), action=NUMBER)
STACKED = Schema(obs=Field((), np.int64, stack=4), action=NUMBER)


@settings(max_examples=60)
@given(schemas(), st.integers(1, 4), st.integers(1, 400), st.integers(1, 100))
def test_the_plan_is_right_to_the_byte(schema, streams, share, episode_length):
    """The lines add up to what a real ring of any schema, capacity and number of streams says it takes."""
    capacity = max(share, schema.stack) * streams + streams - 1
    planned = plan(schema, capacity, streams=streams, episode_length=episode_length)
    replay = Replay(schema, capacity, streams=streams, episode_length=episode_length)

    assert sum(line.nbytes for line in planned.lines) == planned.bytes == replay.nbytes == len(replay._store._map)
    assert planned.capacity == replay.capacity == capacity - (streams - 1)
    assert all(line.nbytes >= 0 for line in planned.lines)
    assert planned.step_bytes == planned.bytes / planned.capacity


def test_the_obvious_layout_costs_what_the_first_seed_counted():
    """Four 84x84 frames as float32, obs and next_obs: 225.8 kB a transition, 226 GB a million; as uint8 56 GB."""
    floats, bytes_ = plan(ATARI, 1_000_000).naive()

    assert round(floats.step_bytes / 1e3, 1) == 225.8
    assert round(floats.bytes / 1e9) == 226
    assert round(bytes_.bytes / 1e9) == 56
    assert (floats.name, bytes_.name) == ("obvious layout, as float32", "obvious layout, in its own dtypes")


def test_one_frame_a_step_takes_a_thirtieth():
    """The same million steps with each frame kept once: 7.2 GB, all overheads included."""
    planned = plan(ATARI, 1_000_000)

    assert 7.05e9 < planned.bytes < 7.3e9
    assert planned.step_bytes < 7300


def test_overheads_are_itemised():
    """Spare rows, the index, final observations and rounding have lines of their own, and little is spent on them."""
    planned = plan(CHEETAH, 1_000_000)
    lines = {line.name: line for line in planned.lines}

    assert lines["records"].nbytes == 104 * 1_000_000
    assert "104 B a step" in lines["records"].note
    assert {"records, spare rows", "ages", "marks", "final times", "final observations", "rounding"} <= lines.keys()
    assert planned.bytes < 1.06 * lines["records"].nbytes


def test_every_column_has_its_lines():
    """A big field is listed under its own name, with what a step of it takes."""
    lines = {line.name: line for line in plan(ATARI, 1000).lines}

    assert lines["obs"].nbytes == 84 * 84 * 1000
    assert "7056 B a step" in lines["obs"].note
    assert lines["obs, spare rows"].nbytes > 0


def test_rows_and_text_show_the_same_table():
    """The table has every line, the total before the obvious layouts, and the text shows it with the verdict."""
    planned = plan(CHEETAH, 1_000_000, budget="1 GiB")
    rows = planned.rows()
    text = str(planned)

    assert [name for name, *_ in rows[:-3]] == [line.name for line in planned.lines]
    assert rows[-3][:3] == ("total", planned.step_bytes, planned.bytes)
    assert "full at step 1,000,000" in text
    assert "fits: 1.00 GiB may be taken (budget='1 GiB')" in text
    assert all(name in text for name, *_ in rows)
    assert planned.full_at == 1_000_000


@settings(max_examples=40)
@given(st.sampled_from([CHEETAH, STACKED, ATARI]), st.integers(1, 5), st.integers(1, 100), st.integers(14, 30))
def test_a_budget_gives_the_largest_capacity_that_fits(schema, streams, episode_length, power):
    """What is planned fits the budget, and one more step a stream does not."""
    budget = 2**power
    options = {"budget": budget, "streams": streams, "episode_length": episode_length}
    planned = plan(schema, **options)
    if not planned.fits:
        assert planned.fitting == 0
        assert planned.capacity == schema.stack * streams
        return

    assert planned.bytes <= budget
    assert planned.fitting == planned.capacity
    assert plan(schema, planned.capacity + streams, **options).bytes > budget


def test_a_ring_takes_its_budget_and_no_more():
    """A ring built for a budget takes nearly all of it."""
    replay = Replay(CHEETAH, budget="1 MiB")

    assert 0.99 * 2**20 < replay.nbytes <= 2**20
    assert replay.capacity == plan(CHEETAH, budget=2**20).capacity


def test_over_budget_is_refused_at_once_with_what_would_fit():
    """A capacity far beyond the budget is refused within milliseconds, and the capacity named does fit."""
    begin = time.perf_counter()
    words = r"1.00 MiB may be taken \(budget='1 MiB'\); capacity=[\d,]+ would fit"
    with pytest.raises(BudgetExceeded, match=words) as refusal:
        Replay(CHEETAH, 1_000_000_000, budget="1 MiB", streams=3)
    seconds = time.perf_counter() - begin

    assert seconds < 0.05
    fitting = int(re.search(r"capacity=([\d,]+)", str(refusal.value))[1].replace(",", ""))
    assert Replay(CHEETAH, fitting, budget="1 MiB", streams=3).capacity == fitting
    with pytest.raises(BudgetExceeded, match=f"capacity={fitting:,} would fit"):
        Replay(CHEETAH, fitting + 3, budget="1 MiB", streams=3)


def test_more_than_the_process_may_take_is_refused_at_once():
    """Without a budget, what the machine leaves this process is the bound, and the text names the rule."""
    begin = time.perf_counter()
    with pytest.raises(BudgetExceeded, match=r"may be taken \(.+\); capacity=[\d,]+ would fit"):
        Replay(ATARI, 10**12)

    assert time.perf_counter() - begin < 0.05


def test_where_not_even_the_smallest_ring_fits_the_text_says_so():
    """A budget below one step's ring is refused with advice, whether or not a capacity is given."""
    for options in ({"budget": 4000}, {"capacity": 100, "budget": 4000}):
        with pytest.raises(BudgetExceeded, match="not even the smallest ring fits; store less a step"):
            Replay(ATARI, **options)


def test_a_budget_above_the_limit_does_not_lift_it():
    """The limit of the process holds whatever the budget says, and the text names the limit."""
    limit = made_up(available=2**20)
    planned = plan(CHEETAH, budget="1 GiB", limit=limit)

    assert not planned.fits
    assert planned.available == 2**20
    assert planned.fitting == plan(CHEETAH, budget=2**20).capacity
    with pytest.raises(BudgetExceeded, match=r"1.00 MiB may be taken"):
        planned.check()


def made_up(available):
    """Make a limit that leaves so many bytes."""
    return MemoryLimit.of([Rule("made up", limit=available, used=0, where="a test")])


@pytest.mark.parametrize(
    ("schema", "capacity", "streams", "words"),
    [
        (STACKED, 3, 1, "leave 3 each, but a stack of 4 frames needs 4 steps; the minimum is capacity=4"),
        (STACKED, 11, 3, "leave 3 each, but a stack of 4 frames needs 4 steps; the minimum is capacity=12"),
        (CHEETAH, 7, 8, "leave 0 each, but each stream needs a step; the minimum is capacity=8"),
    ],
)
def test_a_share_shorter_than_a_stack_is_refused(schema, capacity, streams, words):
    """Each stream has to hold one whole stack: less is refused with the minimum, and the minimum works."""
    text = f"capacity: {capacity} transitions in {streams} stream(s) {words}"
    for build in (plan, Replay):
        with pytest.raises(SchemaError, match=re.escape(text)):
            build(schema, capacity, streams=streams)
    least = int(words.rpartition("=")[2])
    assert Replay(schema, least, streams=streams).capacity == least


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, 'give capacity=1_000_000 or budget="2 GiB"'),
        ({"capacity": 0}, "cannot read 0 as a count"),
        ({"capacity": -5}, "cannot read -5 as a count"),
        ({"capacity": 1.5}, "cannot read 1.5 as a count"),
        ({"capacity": "lots"}, "cannot read 'lots' as a count"),
        ({"budget": "2 apples"}, "cannot read '2 apples' as a size in bytes"),
        ({"budget": 0}, "cannot read 0 as a size in bytes"),
        ({"capacity": 10, "streams": 0}, "streams: expected a whole number of at least 1, got 0"),
        ({"capacity": 10, "streams": 2.0}, "streams: expected a whole number of at least 1, got 2.0"),
        ({"capacity": 10, "streams": True}, "streams: expected a whole number of at least 1, got True"),
        ({"capacity": 10, "episode_length": 0}, "episode_length: expected a whole number of at least 1, got 0"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(options, words):
    """Capacity, budget, streams and episode length are refused by name, by the plan and by the ring."""
    for build in (plan, Replay):
        with pytest.raises(ValueError, match=re.escape(words)):
            build(CHEETAH, **options)


def test_numbers_may_be_written_as_people_do():
    """Capacities and budgets may be texts."""
    assert {plan(CHEETAH, capacity).capacity for capacity in ("1e6", 1e6, "1_000_000", "1M")} == {1_000_000}
    assert plan(CHEETAH, budget="1 MiB").capacity == plan(CHEETAH, budget=2**20).capacity


def test_shorter_episodes_cost_room_for_their_ends():
    """Planned for shorter episodes, a ring takes more; for longer ones no less than its small reserve."""
    taken = [plan(CHEETAH, 100_000, episode_length=length).bytes for length in (1, 10, 64, 1000)]

    assert taken == sorted(taken, reverse=True)
    assert len(set(taken)) == 4


def test_planning_takes_nothing():
    """A plan for more memory than there is costs milliseconds, and no memory."""
    begin = time.perf_counter()
    planned = plan(ATARI, 10**13, streams=1000)

    assert time.perf_counter() - begin < 0.05
    assert planned.bytes > 7e16
    assert not planned.fits
