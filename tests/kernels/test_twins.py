"""The compiled loops beside their NumPy twins: the same bits, and no write where an index is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.kernels.gather import gather_numpy
from ringfence.kernels.load import native
from ringfence.kernels.nstep import Ring, nstep, nstep_numpy

compiled = pytest.mark.skipif(native is None, reason="installed without a compiler, or RINGFENCE_PURE is set")


def outputs(count, spans):
    """Give an empty output for each span."""
    return tuple(np.zeros((count, nbytes), np.uint8) for _, nbytes in spans)


@compiled
@given(data=st.data())
def test_gather_copies_the_same_bytes_as_its_twin(data):
    """Spans of any size, within a record or into those that follow, come out alike."""
    itemsize = data.draw(st.integers(1, 40))
    total = data.draw(st.integers(3, 60))
    records = np.random.default_rng(0).integers(0, 256, itemsize * total, dtype=np.uint8)
    reach = st.integers(1, 2 * itemsize)
    spans = [(end - nbytes, nbytes) for end in data.draw(st.lists(reach, min_size=1)) for nbytes in [(end + 1) // 2]]
    rows = np.array(data.draw(st.lists(st.integers(0, total - 2), min_size=1, max_size=50)), np.int64)
    ours, twins = outputs(len(rows), spans), outputs(len(rows), spans)

    native.gather(records, itemsize, rows, np.array(spans, np.int64), ours)
    gather_numpy(records, itemsize, rows, np.array(spans, np.int64), twins)

    for (offset, nbytes), one, other in zip(spans, ours, twins, strict=True):
        expected = [records[row * itemsize + offset :][:nbytes] for row in rows]
        assert np.array_equal(one, other)
        assert np.array_equal(one, np.array(expected, np.uint8).reshape(len(rows), nbytes))


@compiled
def test_gather_copies_windows_wider_than_its_stage():
    """A span of 40 kB is more than the staging block holds, and is copied all the same."""
    records = np.random.default_rng(0).integers(0, 256, 200_000, dtype=np.uint8)
    rows, spans = np.array([0, 3, 1], np.int64), np.array([(5, 40_000), (0, 4)], np.int64)
    out = outputs(3, spans.tolist())

    native.gather(records, 50_000, rows, spans, out)

    for row, wide, narrow in zip(rows, *out, strict=True):
        assert np.array_equal(wide, records[row * 50_000 + 5 :][:40_000])
        assert np.array_equal(narrow, records[row * 50_000 :][:4])


@compiled
@pytest.mark.parametrize(
    ("rows", "spans"),
    [([10], [(0, 8)]), ([-1], [(0, 8)]), ([9], [(4, 8)]), ([0], [(-1, 8)]), ([0], [(0, 0)]), ([0], [(0, 17)])],
    ids=["row beyond", "row before", "span beyond", "span before", "empty span", "output too short"],
)
def test_gather_refuses_what_lies_outside_and_writes_nothing(rows, spans):
    """A wrong row, span or output is an IndexError before the first byte is written."""
    records, out = np.ones(80, np.uint8), np.zeros((len(rows), 16), np.uint8)

    with pytest.raises(IndexError, match="outside its buffer"):
        native.gather(records, 8, np.array(rows, np.int64), np.array(spans, np.int64), (out,))

    assert not out.any()


@compiled
def test_gather_wants_an_output_for_each_span():
    """Fewer outputs than spans are refused."""
    with pytest.raises(ValueError, match="one output a span"):
        native.gather(np.ones(80, np.uint8), 8, np.zeros(1, np.int64), np.array([(0, 8), (0, 4)], np.int64), ())


def brute(record, ring, row, room, gammas):
    """Walk one window step by step."""
    total, base, slot = 0.0, row - row % ring.rows_each, row % ring.rows_each
    for k in range(min(room, len(gammas))):
        final, reward = record[base + (slot + k) % ring.slots]
        total += gammas[k] * float(reward)
        if final >= 0:
            return total, k + 1, base + (slot + k) % ring.slots
    used = min(room, len(gammas))
    return total, used, base + (slot + used - 1) % ring.slots


@given(data=st.data(), width=st.sampled_from(["f4", "f8"]))
def test_nstep_walks_rings_as_a_plain_loop_does(data, width):
    """Ends, the newest step and the ring's seam stop or wrap the sum where a loop in Python does, to the last bit."""
    dtype = np.dtype([("final", "i4"), ("reward", width)])
    slots, streams = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 3))
    ring = Ring(dtype.itemsize, slots, slots + 3, 0, 4, np.dtype(width), ())
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    record = np.zeros(streams * ring.rows_each, dtype)
    record["final"] = np.where(generator.random(len(record)) < 0.2, 3, -1)
    record["reward"] = generator.standard_normal(len(record))
    rows = np.array([s * ring.rows_each + slot for s in range(streams) for slot in range(slots)], np.int64)
    room = generator.integers(1, 9, len(rows))
    gammas = data.draw(st.sampled_from([0.0, 0.9, 1.0])) ** np.arange(data.draw(st.integers(1, 20)), dtype=np.float64)
    expected = [brute(record, ring, row, left, gammas) for row, left in zip(rows, room, strict=True)]

    for way in (nstep, nstep_numpy):
        returns, steps, lasts = way(record.view(np.uint8), ring, rows, room, gammas)

        assert returns.dtype == width
        assert returns.tolist() == [float(np.dtype(width).type(total)) for total, _, _ in expected]
        assert steps.tolist() == [used for _, used, _ in expected]
        assert lasts.tolist() == [last for _, _, last in expected]
