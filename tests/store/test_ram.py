"""Rings in memory: priced to the byte, committed when made, and read as if they were endless."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memory.measure import MIB, fresh, on_linux, usage

from ringfence.kernels import load
from ringfence.kernels.gather import gather_numpy
from ringfence.kernels.nstep import nstep_numpy
from ringfence.schema import Field, Layout, Schema
from ringfence.store import Ram, RingShape, cost
from ringfence.store import ram as ram_module
from ringfence.store.base import MIRROR, SPARE
from ringfence.testing.strategies import schemas

VECTOR = Layout.of(Schema(obs=Field((3,), np.int16), action=Field((), np.int64)))
FRAMED = Layout.of(
    Schema(
        obs={"image": Field((24, 24), np.uint8), "state": Field((2,), np.float32)},
        action=Field((), np.int64),
        extras={"hidden": Field((200,), np.float32)},
    )
)
NO_SMALL_OBS = Layout.of(Schema(obs=Field((24, 24), np.uint8, stack=4), action=Field((), np.int8)))
VECTOR_REWARD = Layout.of(Schema(Field((3,), np.int16), Field((), np.int64), reward=Field((2,), np.float32)))
LAYOUTS = [VECTOR, FRAMED, NO_SMALL_OBS]


def shapes(max_capacity: int = 40) -> st.SearchStrategy[RingShape]:
    """Draw how many steps of how many streams."""
    return st.builds(RingShape, st.integers(1, 5), st.integers(1, max_capacity), st.integers(1, 70))


def scribbled(layout: Layout, shape: RingShape, seed: int = 0) -> tuple[Ram, np.ndarray]:
    """Make a store whose rings hold random bytes, mirrored; give it and those bytes, (streams, slots, itemsize)."""
    ram = Ram(layout, shape)
    rng = np.random.default_rng(seed)
    content = rng.integers(0, 256, (shape.streams, shape.slots, layout.itemsize), np.uint8)
    places = ram.records.reshape(shape.streams, shape.rows)
    places[:, : shape.slots] = content.view((np.void, layout.itemsize))[..., 0]
    for stream in range(shape.streams):
        ram.mirror(stream)
    return ram, content


def as_bytes(items: np.ndarray) -> np.ndarray:
    """Give opaque items as a matrix of bytes, one item a row."""
    return np.frombuffer(items.tobytes(), np.uint8).reshape(len(items), -1)


# -- what it costs


@settings(max_examples=40)
@given(schema=schemas(), shape=shapes())
def test_the_price_is_the_mapping_to_the_byte(schema, shape):
    """The lines of the price are none below zero, and add up to the size of the mapping and to nbytes."""
    layout = Layout.of(schema)
    ram = Ram(layout, shape)

    lines = cost(layout, shape)

    assert sum(line.nbytes for line in lines) == len(ram._map) == ram.nbytes
    assert min(line.nbytes for line in lines) >= 0
    assert len({line.name for line in lines}) == len(lines)


@settings(max_examples=40)
@given(schema=schemas(), shape=shapes())
def test_the_parts_of_a_ring_do_not_overlap(schema, shape):
    """Writing to every byte of one part changes none of any other."""
    ram = Ram(Layout.of(schema), shape)
    arrays = [ram.marks, ram.ages, ram.final_times, ram.records, *ram.columns]
    parts = [array.view(np.uint8) for array in arrays if array.dtype.kind != "V"]
    parts.append(np.ndarray((ram.records.nbytes,), np.uint8, ram.records))
    if ram._final_obs is not None:
        parts.append(np.ndarray((ram._final_obs.nbytes,), np.uint8, ram._final_obs))

    for number, part in enumerate(parts, 1):
        part[...] = number

    assert all((part == number).all() for number, part in enumerate(parts, 1))
    assert sum(part.nbytes for part in parts) <= ram.nbytes


@pytest.mark.parametrize(
    ("capacity", "streams", "episode_length", "expected"),
    [
        (1_000_000, 1, 64, RingShape(1, 1_000_000, 15_626)),
        (1_000_000, 64, 64, RingShape(64, 15_625, 246)),
        (1_000_000, 1, 1000, RingShape(1, 1_000_000, 1001)),
        (103, 10, 64, RingShape(10, 10, 11)),
        (64, 1, 64, RingShape(1, 64, 65)),
        (1, 1, 64, RingShape(1, 1, 2)),
        (200, 1, 1, RingShape(1, 200, 201)),
    ],
)
def test_capacity_is_shared_evenly_and_final_observations_follow_the_episodes(
    capacity, streams, episode_length, expected
):
    """Each stream gets an equal share, rounded down, and finals for its episodes, small ones for one-step episodes."""
    assert RingShape.of(capacity, streams, episode_length) == expected


@pytest.mark.parametrize("capacity", [1, 2, 5, 6, 7, 500])
def test_a_ring_has_its_spare_slots_and_at_least_a_mirror(capacity):
    """Beyond the capacity lie the spare slots; no ring is shorter than the mirror that repeats its first rows."""
    shape = RingShape(1, capacity, 1)

    assert shape.slots == max(capacity + SPARE, MIRROR)
    assert shape.rows == shape.slots + MIRROR


# -- when it is paid


def made(advice: int | None) -> dict[str, Any]:
    """Make a store of about 64 MiB, with another advice number for the kernel if given; give what was paid."""
    from ringfence.store import ram

    if advice is not None:
        ram.POPULATE_WRITE = advice
    Ram(VECTOR, RingShape(1, 10, 10))
    before = usage()
    store = Ram(VECTOR, RingShape(4, 500_000, 1000))
    after = usage()
    store.records.view(np.uint8)[:] = 1
    return {"nbytes": store.nbytes, "made": after.rss - before.rss, "written": usage().rss - after.rss}


@on_linux
@pytest.mark.parametrize("advice", [None, 9999])
def test_every_page_is_paid_when_the_store_is_made(advice):
    """Making a store takes its size within 2 %, writing to it no more, also where the kernel knows no such advice."""
    paid = fresh(made, advice)

    assert paid["nbytes"] > 48 * MIB
    assert abs(paid["made"] - paid["nbytes"]) <= 0.02 * paid["nbytes"], paid
    assert abs(paid["written"]) < MIB // 4, paid


# -- what is read


@pytest.fixture(params=["compiled", "pure"], scope="module")
def _kernels(request) -> Iterator[None]:
    """Read with the compiled loops, where there are any, and with those that serve everywhere."""
    if request.param == "compiled" and load.native is None:
        pytest.skip("there was no compiler")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "pure":
            patch.setattr(ram_module, "gather", gather_numpy)
            patch.setattr(ram_module, "nstep", nstep_numpy)
        yield


def gathered(ram: Ram, rows: np.ndarray, offset: int, nbytes: int) -> np.ndarray:
    """Read one span of bytes of each row."""
    out = np.full((len(rows), nbytes), 0xEE, np.uint8)
    ram.gather(rows, np.array([[offset, nbytes]]), (out,))
    return out


@pytest.mark.usefixtures("_kernels")
@pytest.mark.parametrize("capacity", [1, MIRROR - 1, MIRROR + 1, 40])
@pytest.mark.parametrize("layout", LAYOUTS, ids=["small", "both", "big"])
def test_from_every_slot_a_record_and_the_next_one_are_read_as_if_there_were_no_end(layout, capacity):
    """A row and its successor are plain indexing that wraps, also at each last slot, and in the mirror."""
    shape = RingShape(3, capacity, 4)
    ram, content = scribbled(layout, shape)
    streams, slots = np.divmod(np.arange(3 * (shape.rows - 1)), shape.rows - 1)

    pairs = gathered(ram, streams * shape.rows + slots, 0, 2 * layout.itemsize)

    wrapped = (slots[:, None] + np.arange(2)) % shape.slots
    assert (pairs == content[streams[:, None], wrapped].reshape(len(slots), -1)).all()


@pytest.mark.usefixtures("_kernels")
@settings(max_examples=60)
@given(shape=shapes(), data=st.data(), layout=st.sampled_from(LAYOUTS))
def test_any_spans_are_plain_indexing(shape, data, layout):
    """Whatever spans of a record and its successor are asked for, each output holds exactly those bytes."""
    ram, content = scribbled(layout, shape)
    row = st.tuples(st.integers(0, shape.streams - 1), st.integers(0, shape.slots - 1))
    streams, slots = np.array(data.draw(st.lists(row, min_size=1, max_size=80), "rows")).T
    end = 2 * layout.itemsize
    starts = data.draw(st.lists(st.integers(0, end - 1), min_size=1, max_size=6), "offsets")
    spans = np.array([(start, data.draw(st.integers(1, end - start), "bytes")) for start in starts])
    outs = tuple(np.full((len(slots), nbytes), 0xEE, np.uint8) for _, nbytes in spans)

    ram.gather(streams * shape.rows + slots, spans, outs)

    wrapped = (slots[:, None] + np.arange(2)) % shape.slots
    pairs = content[streams[:, None], wrapped].reshape(len(slots), -1)
    for (start, nbytes), out in zip(spans, outs, strict=True):
        assert (out == pairs[:, start : start + nbytes]).all()


@pytest.mark.usefixtures("_kernels")
@settings(max_examples=60)
@given(shape=shapes(20), data=st.data(), layout=st.sampled_from([VECTOR, VECTOR_REWARD]))
def test_returns_of_any_number_of_steps_are_a_loop_that_wraps(shape, data, layout):
    """Sums go on for n steps, to an end, or to the newest step, however often n is the length of the ring."""
    ram, _ = scribbled(layout, shape)
    reward, field = layout.place("reward").offset, layout.place("reward").leaf.field
    numbers = np.random.default_rng(data.draw(st.integers(0, 9), "seed"))
    places = [(stream, slot) for stream in range(shape.streams) for slot in range(shape.slots)]
    rewards = {place: numbers.normal(size=field.shape).astype(field.kept) for place in places}
    ends = {place: int(numbers.integers(-6, 2)) for place in places}
    for stream, slot in places:
        row = ram.records[stream * shape.rows + slot : stream * shape.rows + slot + 1].view(np.uint8)
        row[reward : reward + field.nbytes] = np.frombuffer(rewards[stream, slot].tobytes(), np.uint8)
        row[layout.final_offset :][:4] = np.frombuffer(np.int32(ends[stream, slot]).tobytes(), np.uint8)
    for stream in range(shape.streams):
        ram.mirror(stream)
    chosen = data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=60), "rows")
    room = np.array([data.draw(st.integers(1, shape.capacity), "room") for _ in chosen])
    gammas = 0.9 ** np.arange(data.draw(st.integers(2, 70), "n"), dtype=np.float64)

    rows = np.array([stream * shape.rows + slot for stream, slot in chosen])
    returns, steps, lasts = ram.nstep(rows, room, gammas)

    for at, (stream, slot) in enumerate(chosen):
        total, used = np.zeros(field.shape), 0
        for ahead in range(min(len(gammas), room[at])):
            place = (stream, (slot + ahead) % shape.slots)
            total, used = total + gammas[ahead] * rewards[place].astype(np.float64), used + 1
            if ends[place] >= 0:
                break
        assert steps[at] == used
        assert lasts[at] == stream * shape.rows + (slot + used - 1) % shape.slots
        close = 1e-12 if returns.dtype == np.float64 else 1e-6
        assert np.allclose(returns[at], total, rtol=close, atol=close)


def test_what_is_read_is_a_copy():
    """Writing to spans, to frames or to final observations that were read does not reach the ring."""
    ram, content = scribbled(FRAMED, RingShape(2, 20, 5))
    rows = np.arange(5)

    gathered(ram, rows, 0, FRAMED.itemsize)[:] = 77
    ram.frames(0, rows)[:] = 77
    ram.final_obs(rows).view(np.uint8)[:] = 77

    assert (gathered(ram, rows, 0, FRAMED.itemsize) == content[0, :5]).all()
    assert not ram.frames(0, rows).any()
    assert not as_bytes(ram.final_obs(rows)).any()


@settings(max_examples=40)
@given(shape=shapes())
def test_the_mirror_repeats_the_first_rows(shape):
    """After a ring's end its first rows follow, of that ring and not of the next."""
    ram, content = scribbled(VECTOR, shape)

    rings = as_bytes(ram.records).reshape(shape.streams, shape.rows, -1)

    assert (rings[:, shape.slots :] == content[:, :MIRROR]).all()


def test_a_successor_behind_the_end_is_brought_to_the_start():
    """The pair written at the last slot leaves its second half behind the end; unmirror brings it to the first row."""
    shape = RingShape(3, 20, 4)
    ram, content = scribbled(VECTOR, shape)
    pair = bytes(range(VECTOR.itemsize)) + b"\x55" * VECTOR.obs_nbytes
    ram.put(shape.rows + shape.slots - 1, pair)

    ram.unmirror(1)
    ram.mirror(1)

    content[1, -1] = np.frombuffer(pair, np.uint8)[: VECTOR.itemsize]
    content[1, 0, : VECTOR.obs_nbytes] = 0x55
    rings = as_bytes(ram.records).reshape(3, shape.rows, -1)
    assert (rings[:, : shape.slots] == content).all()
    assert (rings[:, shape.slots :] == content[:, :MIRROR]).all()


# -- what is written


@settings(max_examples=40)
@given(shape=shapes(), data=st.data(), layout=st.sampled_from(LAYOUTS))
def test_one_by_one_many_and_level_writes_agree(shape, data, layout):
    """The same pairs at the same slot of every stream leave the same bytes, whichever way they were written."""
    slot = data.draw(st.integers(0, shape.slots - 1), "slot")
    seed = data.draw(st.integers(0, 9), "seed")
    block = np.random.default_rng(seed).integers(0, 256, (shape.streams, 2 * layout.itemsize), np.uint8)
    items = block.view((np.void, 2 * layout.itemsize))[:, 0]
    rows = np.arange(shape.streams) * shape.rows + slot
    single, many, level = (scribbled(layout, shape, seed)[0] for _ in range(3))

    for row, pair in zip(rows.tolist(), block, strict=True):
        single.put(row, pair.tobytes())
    many.put_many(rows, items)
    level.put_level(slot, items)

    assert bytes(single._map) == bytes(many._map) == bytes(level._map)
    assert (gathered(single, rows, 0, layout.itemsize) == block[:, : layout.itemsize]).all()


@pytest.mark.parametrize("layout", LAYOUTS, ids=["small", "both", "big"])
def test_the_three_ways_to_read_what_waits_agree(layout):
    """The small observations of a slot are the same read one by one, by rows, and level with all streams."""
    shape = RingShape(4, 10, 3)
    ram, content = scribbled(layout, shape)
    for slot in range(shape.slots):
        rows = np.arange(4) * shape.rows + slot

        one_by_one = b"".join(ram.obs(int(row)) for row in rows)

        assert one_by_one == content[:, slot, : layout.obs_nbytes].tobytes()
        if layout.obs_nbytes:  # nobody asks for observations that are not there
            assert one_by_one == ram.waiting(rows) == ram.waiting_level(slot)


@pytest.mark.parametrize("layout", [FRAMED, NO_SMALL_OBS], ids=["both", "big"])
def test_frames_are_read_back_where_they_were_written(layout):
    """A frame is what was put at its row, in every column, up to the last final observation; its neighbours stay."""
    shape = RingShape(2, 10, 3)
    ram = Ram(layout, shape)
    for column, leaf in enumerate(layout.columns):
        last = ram.final_row(1, 2) if leaf.role == "obs" else 2 * shape.rows - 1
        for row in (0, shape.rows, last):
            frame = np.random.default_rng(row).integers(0, 99, leaf.field.shape).astype(leaf.field.kept)

            ram.put_frame(column, row, frame.tobytes())

            assert ram.frame(column, row) == frame.tobytes()
            assert (ram.frames(column, np.array([[row]]))[0, 0] == frame).all()
        assert last == len(ram.columns[column]) - 1
        assert not ram.frames(column, np.array([1, shape.rows - 1, shape.rows + 1, last - 1])).any()


def test_final_observations_are_kept_by_stream_and_number():
    """A small final observation is read at stream times finals plus its number, and no other changes."""
    shape = RingShape(3, 10, 4)
    ram = Ram(VECTOR, shape)
    for place in range(12):
        ram.put_final(*divmod(place, 4), obs=bytes([place + 1] * VECTOR.obs_nbytes))

    assert (as_bytes(ram.final_obs(np.arange(12))) == np.arange(1, 13)[:, None]).all()


def test_marking_a_final_changes_its_four_bytes_alone():
    """The number of a final observation is put into a record without touching the rest."""
    shape = RingShape(2, 10, 4)
    ram, content = scribbled(VECTOR, shape)
    before = as_bytes(ram.records).copy()

    ram.mark_final(shape.rows + 3, 2)

    before[shape.rows + 3, VECTOR.final_offset : VECTOR.final_offset + 4] = 2, 0, 0, 0
    assert (as_bytes(ram.records) == before).all()
    assert not (content[1, 3] == before[shape.rows + 3]).all()
