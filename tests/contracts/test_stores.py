# ruff: noqa: D102, ARG002 - store/base.py says what each of these does
"""Every store keeps the contract; and the contract finds each way to break it."""

from __future__ import annotations

import pytest

from ringfence.store import Ram
from ringfence.store.base import MIRROR
from ringfence.testing.stores import StoreContract

NAMES = [name for name in dir(StoreContract) if name.startswith("test_")]


class TestRam(StoreContract):
    """Rings in memory."""

    def make_store(self, layout, shape):
        return Ram(layout, shape)


# -- the contract can fail


class Marked(Ram):
    """Begin with a step."""

    def __init__(self, layout, shape):
        super().__init__(layout, shape)
        self.marks[0] = 1


class Modest(Ram):
    """Leave the columns out of the bill."""

    @property
    def nbytes(self):
        return super().nbytes - sum(column.nbytes for column in self.columns) - self.records.nbytes // 2


class Short(Ram):
    """Write a record without what follows it."""

    def put(self, row, record):
        super().put(row, record[: self.layout.itemsize])


class Neighbour(Ram):
    """Read the observation of the row before."""

    def obs(self, row):
        return super().obs(max(row - 1, 0))


class Within(Ram):
    """Gather no further than the record's own end."""

    def gather(self, rows, spans, outs):
        super().gather(rows, spans, outs)
        for (offset, nbytes), out in zip(spans.tolist(), outs, strict=True):
            out[:, max(self.layout.itemsize - offset, 0) : nbytes] = 0


class Flat(Ram):
    """Forget the shape of the rows."""

    def frames(self, column, rows, out=None):
        return super().frames(column, rows.ravel())


class Unlent(Ram):
    """Leave the array that was lent as it is."""

    def frames(self, column, rows, out=None):
        return super().frames(column, rows)


class OneFinal(Ram):
    """Keep the last final observation of each stream only."""

    def put_final(self, stream, number, obs):
        super().put_final(stream, 0, obs)


class Crowded(Ram):
    """Put final observations where steps lie."""

    def final_row(self, stream, number):
        return stream * self.shape.rows + number


class Halved(Ram):
    """Mirror fewer rows than readers rely on."""

    def mirror(self, stream):
        first = stream * self.shape.rows
        end = first + self.shape.slots
        self.records[end : end + MIRROR // 2] = self.records[first : first + MIRROR // 2]


class Everywhere(Ram):
    """Mirror the first ring for all."""

    def mirror(self, stream):
        for number in range(self.shape.streams):
            super().mirror(number)


class Forgotten(Ram):
    """Leave what was written behind a ring's end there."""

    def unmirror(self, stream):
        pass


class Pairless(Ram):
    """Write the first record of each pair only."""

    def put_many(self, rows, block):
        for row, pair in zip(rows.tolist(), block, strict=True):
            self.put(row, pair.tobytes()[: self.layout.itemsize])


class Viewed(Ram):
    """Hand out the ring's own memory."""

    def frames(self, column, rows, out=None):
        if out is None and rows.ndim == 1:
            return self.columns[column][rows[0] : rows[-1] + 1]
        return super().frames(column, rows, out)


def contract(store):
    """Make the contract of a store."""

    class Contract(StoreContract):
        def make_store(self, layout, shape):
            return store(layout, shape)

    return Contract()


@pytest.mark.parametrize(
    ("store", "name", "text"),
    [
        (Marked, "test_a_new_store_holds_no_steps", "marks of a new store"),
        (Modest, "test_bytes_are_counted", "nbytes is"),
        (Short, "test_observations_are_read_back", "gives other bytes"),
        (Short, "test_records_are_gathered", "gives other bytes"),
        (Neighbour, "test_observations_are_read_back", r"obs\(\) gives other bytes"),
        (Within, "test_records_are_gathered", "gives other bytes"),
        (Flat, "test_frames_are_read_back", "frames are"),
        (Unlent, "test_frames_are_read_back", "left the lent array"),
        (OneFinal, "test_final_observations_are_read_back", "gives other bytes"),
        (Crowded, "test_final_observations_are_read_back", "shares the row of a step"),
        (Halved, "test_a_mirror_repeats_the_first_rows", "records differ after mirror"),
        (Everywhere, "test_a_mirror_repeats_the_first_rows", "records differ after mirror"),
        (Forgotten, "test_a_successor_behind_the_end_is_brought_to_the_front", "records differ after unmirror"),
        (Pairless, "test_many_streams_are_written_at_once", "records differ after put_many"),
        (Viewed, "test_what_was_read_is_the_callers_own", "changed with later writes"),
    ],
)
def test_a_broken_store_fails(store, name, text):
    """Each of these breaks one rule, and the test of that rule says so."""
    with pytest.raises(AssertionError, match=text):
        getattr(contract(store), name)()
