"""Draw schemas, values and programs of steps for property tests (needs hypothesis).

Values are numbered: ``value(field, tag)`` is a plain function of a tag, so a failing program prints as a few small
numbers and a misplaced value names the step it came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ringfence.schema import Field, Schema
from ringfence.testing.reference import Tree, each

End = Literal["", "terminated", "truncated", "both"]
"""How a step ends its episode; the empty string is a step that does not."""

ENDS: tuple[End, ...] = ("", "terminated", "truncated", "both")

GOLDEN = 0x9E3779B97F4A7C15
"""2**64 over the golden ratio: the top bits of its multiples are spread out, so neighbouring tags differ widely."""


@dataclass(frozen=True, slots=True)
class Move:
    """One transition of a program."""

    stream: int
    """Whose time line it goes to."""
    end: End = ""
    """How it ends its episode."""
    jump: bool = False
    """Whether its obs is not the next_obs of the stream's previous step."""


def ends() -> SearchStrategy[End]:
    """Draw how a step ends; most do not."""
    return st.sampled_from((*ENDS[:1] * 5, *ENDS[1:]))


def moves(streams: int) -> SearchStrategy[Move]:
    """Draw one transition for one of so many streams; about one in eight jumps."""
    jumps = st.sampled_from((False,) * 7 + (True,))
    return st.builds(Move, stream=st.integers(0, streams - 1), end=ends(), jump=jumps)


def programs(streams: int, max_size: int = 60) -> SearchStrategy[list[Move]]:
    """Draw a list of transitions over so many streams, of every length up to ``max_size``."""
    # Lists with no least size are about five long: too short to turn a ring.
    sizes = st.integers(0, max_size)
    return sizes.flatmap(lambda size: st.lists(moves(streams), min_size=size, max_size=size))


def frames() -> SearchStrategy[Field]:
    """Draw an image-like field, stacked or not, beside or inside the packed record (576 and 16 bytes)."""
    return st.builds(
        lambda shape, stack, axis, pad: Field(shape, np.uint8, stack=stack, stack_axis=axis, pad=pad),
        shape=st.sampled_from([(24, 24), (4, 4)]),
        stack=st.sampled_from([None, 1, 2, 3, 4]),
        axis=st.sampled_from([0, -1]),
        pad=st.sampled_from(["first", "zero"]),
    )


def vectors() -> SearchStrategy[Field]:
    """Draw a small field of any kind of number, stored as presented or narrower."""
    narrow = st.builds(
        lambda shape, kinds: Field(shape, kinds[0], stored=kinds[1]),
        shape=st.sampled_from([(), (5,)]),
        kinds=st.sampled_from([(np.float32, np.float16), (np.int64, np.uint8), (np.float64, np.float32)]),
    )
    stacks = st.builds(
        lambda stack, pad: Field((3,), np.float32, stack=stack, pad=pad),
        stack=st.integers(2, 4),
        pad=st.sampled_from(["first", "zero"]),
    )
    plain = st.builds(
        Field,
        st.sampled_from([(), (1,), (3,), (2, 3), (130,)]),
        st.sampled_from([np.float32, np.float64, np.int64, np.int8, np.uint16, np.bool_]),
    )
    return plain | narrow | stacks


def observations() -> SearchStrategy[Tree]:
    """Draw the field or the nest of fields that an observation is."""
    leaf = frames() | vectors()
    pair = st.tuples(leaf, leaf)
    flat = st.fixed_dictionaries({"image": frames(), "state": vectors()})
    deep = st.fixed_dictionaries({"pair": pair, "inner": flat})
    return leaf | pair | flat | deep


@st.composite
def schemas(draw: DrawFn) -> Schema:
    """Draw a whole schema: flat or nested observation, any action, scalar or vector reward, some extras."""
    discrete, continuous = Field((), np.int64), Field((2,), np.float32)
    action = draw(st.sampled_from([discrete, continuous, {"move": continuous, "tool": discrete}]))
    rewards = [Field((), np.float32), Field((), np.float64), Field((2,), np.float32)]
    extra = vectors().filter(lambda field: not field.stack)
    extras = draw(st.dictionaries(st.sampled_from(["log_prob", "hidden"]), extra, max_size=2))
    return Schema(obs=draw(observations()), action=action, reward=draw(st.sampled_from(rewards)), extras=extras)


def value(field: Field, tag: int, strange: bool = True) -> Any:
    """Make the field's value number ``tag``: one frame, of a kind that the field stores without refusing.

    Whole numbers use the stored dtype's whole range. With ``strange``, every seventh value of a float field holds NaN,
    inf or -0.0.
    """
    dtype = field.dtype
    place = np.arange(int(np.prod(field.shape)), dtype=np.int64)
    if dtype.kind == "b":
        return ((tag + place) % 3 == 0).reshape(field.shape)
    if dtype.kind in "iu":
        spread = (2 * place + 1).astype(np.uint64) * np.uint64((tag + 1) * GOLDEN % 2**64)
        bits = spread >> np.uint64(64 - 8 * field.kept.itemsize)
        return bits.astype(f"u{field.kept.itemsize}").view(field.kept).astype(dtype).reshape(field.shape)
    # Tenths, because a value that float16 holds exactly would not show a wrong rounding.
    numbers = ((tag * 37 + place * 11) % 997 / 10).astype(dtype)
    if strange and tag % 7 == 6:
        numbers[tag % numbers.size] = (np.nan, np.inf, -0.0)[tag % 3]
    return numbers.reshape(field.shape)


def presented(field: Field, tag: int) -> Any:
    """Make value ``tag`` in the shape that a learner sees: where stacked, other frames lie before the newest."""
    if not field.stack:
        return value(field, tag)
    older = [value(field, tag + 100 + i) for i in range(1, field.stack)]
    return np.stack([*older, value(field, tag)], axis=field.stack_axis)


def values(fields: Tree, tag: int, *, whole: bool = False) -> Tree:
    """Make a tree of values, each leaf from a tag of its own; ``whole`` gives stacked leaves as full stacks."""
    count = iter(range(1000))
    make = presented if whole else value
    return each(fields, lambda field: make(field, tag * 5 + next(count)))
