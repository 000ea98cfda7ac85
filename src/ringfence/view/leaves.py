"""How what was taken is presented: in the declared dtype, the frames on the declared axis, nested as declared."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.schema import tree
from ringfence.schema.field import Field
from ringfence.view.batch import Recipe


def present(field: Field, name: str) -> Recipe:
    """Give the recipe of one leaf."""
    widen = field.stored is not None
    turn = field.stack is not None and field.stack_axis != 0
    if not widen and not turn:
        return lambda taken: taken.arrays[name]

    def recipe(taken: Any) -> Any:
        array = taken.arrays[name]
        array = array.astype(field.dtype) if widen else array
        return np.moveaxis(array, 1, -1) if turn else array

    return recipe


def tree_of(spec: Any, name: str) -> Recipe:
    """Give the recipe of an observation or an action, nested as its spec."""
    if isinstance(spec, Field):
        return present(spec, name)
    parts = {leaf: present(field, leaf) for leaf, field in tree.leaves(spec, name)}
    return lambda taken: tree.rebuild(spec, lambda leaf: parts[leaf](taken), name)
