"""How a step is packed: one record of all small fields, and a column for each big one.

A record, byte by byte: small observations (widest dtype first), small arrays, single numbers and the two end flags, and
last the number of the episode's final observation (int32, -1 inside an episode). Observations come first, so that a
record and its successor's observation are one run of bytes: one write adds a step, one read gathers it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ringfence.schema.field import Field
from ringfence.schema.schema import Leaf, Schema

BIG = 512  # bytes; from here on a field is copied faster from its own column than as part of a record
FINAL = np.dtype(np.int32)
INSIDE = FINAL.type(-1).tobytes()  # in place of the final observation's number while the episode goes on
FINAL_FIELD = Field((), FINAL)
FLAG = Field((), np.bool_)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a leaf lies in the record."""

    leaf: Leaf
    offset: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The packed form of a schema."""

    schema: Schema
    packed: tuple[Place, ...]
    """Every small leaf, observations first; the end flags are the leaves ``terminated`` and ``truncated``."""
    columns: tuple[Leaf, ...]
    """Every big leaf; stacked observations are always big, since a stack reads many steps."""
    obs_nbytes: int
    """Bytes of a record that are observation."""
    final_offset: int
    itemsize: int

    @classmethod
    def of(cls, schema: Schema) -> Layout:
        """Pack a schema."""
        columns = tuple(leaf for leaf in schema.leaves() if _is_big(leaf))
        small = [leaf for leaf in schema.leaves() if not _is_big(leaf)]
        small += [Leaf("terminated", FLAG, "extra"), Leaf("truncated", FLAG, "extra")]
        obs = _widest_first([leaf for leaf in small if leaf.role == "obs"])
        arrays = _widest_first([leaf for leaf in small if leaf.role != "obs" and leaf.field.shape])
        numbers = _widest_first([leaf for leaf in small if leaf.role != "obs" and not leaf.field.shape])
        width = max(FINAL.itemsize, *(leaf.field.kept.itemsize for leaf in small))
        packed: list[Place] = []
        end = _put(packed, obs, 0)
        obs_nbytes = end
        end = _put(packed, arrays, end)
        end = _put(packed, numbers, end)
        itemsize = _round_up(end + FINAL.itemsize, width)
        return cls(schema, tuple(packed), columns, obs_nbytes, itemsize - FINAL.itemsize, itemsize)

    def place(self, name: str) -> Place:
        """Find a small leaf by name."""
        return next(place for place in self.packed if place.leaf.name == name)

    @property
    def record(self) -> np.dtype[Any]:
        """The dtype of a record, with a name for each leaf; ``_final`` is the final observation's number."""
        parts = [
            (place.offset, place.leaf.name, (place.leaf.field.kept, place.leaf.field.shape)) for place in self.packed
        ]
        offsets, names, formats = zip(*sorted([*parts, (self.final_offset, "_final", (FINAL, ()))]), strict=True)
        spec: Any = {"names": names, "formats": formats, "offsets": offsets, "itemsize": self.itemsize}
        return np.dtype(spec)

    @property
    def small_obs(self) -> np.dtype[Any]:
        """The dtype of the part of a record that is observation."""
        some = [place for place in self.packed if place.leaf.role == "obs"]
        return np.dtype(
            {
                "names": [place.leaf.name for place in some],
                "formats": [(place.leaf.field.kept, place.leaf.field.shape) for place in some],
                "offsets": [place.offset for place in some],
                "itemsize": self.obs_nbytes,
            }
        )

    @property
    def obs_columns(self) -> tuple[Leaf, ...]:
        """The big leaves that are observations, and so have a successor."""
        return tuple(leaf for leaf in self.columns if leaf.role == "obs")


def _is_big(leaf: Leaf) -> bool:
    # the reward is always in the record, where n-step returns read it
    return leaf.role != "reward" and (leaf.field.nbytes >= BIG or leaf.field.stack is not None)


def _widest_first(leaves: list[Leaf]) -> list[Leaf]:
    return sorted(leaves, key=lambda leaf: -leaf.field.kept.itemsize)


def _put(packed: list[Place], leaves: list[Leaf], offset: int) -> int:
    """Place leaves from ``offset`` on, each on a multiple of its own width; give the end."""
    for leaf in leaves:
        offset = _round_up(offset, leaf.field.kept.itemsize)
        packed.append(Place(leaf, offset))
        offset += leaf.field.nbytes
    return offset


def _round_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
