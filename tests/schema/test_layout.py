"""Packing: every field aligned, observations first, big fields in columns, not a byte too many."""

import numpy as np
import pytest
from hypothesis import given, settings

from ringfence import Field, Replay, Schema
from ringfence.schema import Layout
from ringfence.schema.layout import BIG, FINAL
from ringfence.testing.strategies import schemas

NUMBER = Field((), np.int64)


def spans(layout):
    """List begin, end and width of each packed field, in the order of their places."""
    sizes = [(place.offset, place.leaf.field) for place in layout.packed]
    return [
        (offset, offset + field.nbytes, field.kept.itemsize) for offset, field in sorted(sizes, key=lambda at: at[0])
    ]


@settings(max_examples=40)
@given(schemas())
def test_every_field_is_aligned_and_none_overlap(schema):
    """Each packed field lies on a multiple of its width, after the one before, and records end on the widest one."""
    layout = Layout.of(schema)
    end = 0
    for begin, finish, width in spans(layout):
        assert begin % width == 0
        assert begin >= end
        end = finish

    assert end <= layout.final_offset
    assert layout.final_offset % FINAL.itemsize == 0
    assert layout.itemsize == layout.final_offset + FINAL.itemsize
    assert layout.itemsize % max(4, *(width for _, _, width in spans(layout))) == 0


@settings(max_examples=40)
@given(schemas())
def test_every_leaf_has_one_place(schema):
    """Each leaf is either packed or a column, never both, and the two end flags are packed."""
    layout = Layout.of(schema)
    packed = [place.leaf.name for place in layout.packed]
    columns = [leaf.name for leaf in layout.columns]

    assert sorted(packed + columns) == sorted([leaf.name for leaf in schema.leaves()] + ["terminated", "truncated"])
    assert [leaf.name for leaf in layout.obs_columns] == [name for name in columns if name.startswith("obs")]


@settings(max_examples=40)
@given(schemas())
def test_observations_come_first_and_little_is_wasted(schema):
    """The small observations are the first bytes of a record; padding comes only where the width of fields changes."""
    layout = Layout.of(schema)
    for place in layout.packed:
        inside = place.offset + place.leaf.field.nbytes <= layout.obs_nbytes
        assert inside == (place.leaf.role == "obs")
    used = sum(end - begin for begin, end, _ in spans(layout)) + FINAL.itemsize

    assert layout.itemsize - used < 4 * 8


def test_the_usual_record_has_no_gap():
    """HalfCheetah's step, 17 + 6 float32, reward, two flags and the final number, takes 104 bytes."""
    layout = Layout.of(Schema(obs=Field((17,), np.float32), action=Field((6,), np.float32)))

    assert (layout.obs_nbytes, layout.itemsize) == (68, 104)


@pytest.mark.parametrize(
    ("field", "big"),
    [
        (Field((BIG - 1,), np.uint8), False),
        (Field((BIG,), np.uint8), True),
        (Field((BIG // 4,), np.float64, stored=np.float32), True),
        (Field((BIG // 4,), np.float32, stored=np.float16), False),
        (Field((2,), np.uint8, stack=2), True),
        (Field((), np.uint8, stack=1), True),
    ],
)
def test_big_and_stacked_fields_have_a_column(field, big):
    """From 512 stored bytes on a field has a column of its own; a stacked one always has."""
    layout = Layout.of(Schema(obs=field, action=NUMBER))

    assert [leaf.name for leaf in layout.columns] == (["obs"] if big else [])


def test_big_actions_and_extras_have_a_column_but_the_reward_never():
    """The reward is in the record however large, since n-step returns read it there."""
    large = Field((200,), np.float32)
    layout = Layout.of(Schema(obs=NUMBER, action=large, reward=large, extras={"hidden": large}))

    assert [leaf.name for leaf in layout.columns] == ["action", "hidden"]
    assert layout.place("reward").leaf.field == large


@settings(max_examples=30)
@given(schemas())
def test_any_layout_can_be_filled(schema):
    """A ring can be built for every schema, and its lines add up to what it takes."""
    replay = Replay(schema, capacity=max(schema.stack, 2))

    assert sum(line.nbytes for line in replay.plan.lines) == replay.nbytes
