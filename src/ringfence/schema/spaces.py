"""Gymnasium spaces to fields; Gymnasium itself is imported only when one is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.errors import SchemaError
from ringfence.schema.field import Field, Pad


def fields(space: Any, name: str, *, keep_float64: bool) -> Any:
    """Give the field, or the nested dict or tuple of fields, that holds a value of ``space``."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        return {key: fields(part, f"{name}.{key}", keep_float64=keep_float64) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(
            fields(part, f"{name}.{place}", keep_float64=keep_float64) for place, part in enumerate(space.spaces)
        )
    if isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        dtype = np.dtype(space.dtype)
        if dtype == np.float64 and not keep_float64:
            dtype = np.dtype(np.float32)
        return Field(tuple(space.shape or ()), dtype)
    raise SchemaError(
        f"{name}: a {type(space).__name__} space has no fixed shape; Box, Discrete, MultiDiscrete, MultiBinary, Dict "
        "and Tuple can be stored (encode the others into one of these)"
    )


def unstack(tree: Any, name: str, stack: int, stack_axis: int, pad: Pad) -> Any:
    """Turn fields that hold stacks of frames into fields that keep one frame and present the stack."""
    if isinstance(tree, dict):
        return {key: unstack(part, f"{name}.{key}", stack, stack_axis, pad) for key, part in tree.items()}
    if isinstance(tree, tuple):
        return tuple(unstack(part, f"{name}.{place}", stack, stack_axis, pad) for place, part in enumerate(tree))
    shape = tree.shape
    if not shape or shape[0 if stack_axis == 0 else -1] != stack:
        raise SchemaError(f"{name}: stack={stack} on axis {stack_axis} does not match the space's shape {shape}")
    frame = shape[1:] if stack_axis == 0 else shape[:-1]
    return Field(frame, tree.dtype, stack=stack, stack_axis=stack_axis, pad=pad)


def found_stack(env: Any) -> dict[str, Any]:
    """Give the ``from_spaces`` options of the outermost frame stack among the wrappers, empty where there is none.

    A stack padded with a custom observation is left alone: it is stored whole, since nothing else would be true.
    """
    pads = {"reset": "first", "zero": "zero"}
    while env is not None:
        if type(env).__name__ == "FrameStackObservation" and env.padding_type in pads:
            return {"stack": int(env.stack_size), "pad": pads[env.padding_type]}
        env = getattr(env, "env", None)
    return {}
