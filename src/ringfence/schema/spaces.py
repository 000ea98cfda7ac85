"""Gymnasium spaces to fields; Gymnasium itself is imported only when one is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.errors import SchemaError
from ringfence.schema import tree
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
        try:
            return Field(tuple(space.shape or ()), dtype)
        except SchemaError as error:
            raise SchemaError(f"{name}: {error}") from None
    raise SchemaError(
        f"{name}: a {type(space).__name__} space has no fixed shape; Box, Discrete, MultiDiscrete, MultiBinary, Dict "
        "and Tuple can be stored (encode the others into one of these)"
    )


def unstack(spec: Any, name: str, stack: int, stack_axis: int, pad: Pad) -> Any:
    """Turn fields that hold stacks of frames into fields that keep one frame and present the stack."""
    if isinstance(spec, dict):
        return {key: unstack(part, f"{name}.{key}", stack, stack_axis, pad) for key, part in spec.items()}
    if isinstance(spec, tuple):
        return tuple(unstack(part, f"{name}.{place}", stack, stack_axis, pad) for place, part in enumerate(spec))
    shape = spec.shape
    if not shape or shape[0 if stack_axis == 0 else -1] != stack:
        raise SchemaError(f"{name}: stack={stack} on axis {stack_axis} does not match the space's shape {shape}")
    frame = shape[1:] if stack_axis == 0 else shape[:-1]
    return Field(frame, spec.dtype, stack=stack, stack_axis=stack_axis, pad=pad)


def found_stack(env: Any) -> dict[str, Any]:
    """Give the ``from_spaces`` options of the frame stack among an environment's wrappers; empty where none is.

    A stack is only found where what it gives reaches us as it is: another wrapper may have changed the frames since,
    and then the stack is stored whole. So is one that is padded with anything but its first frame or zeros.
    """
    from gymnasium import ObservationWrapper

    space = getattr(env, "single_observation_space", None) or env.observation_space
    inner = getattr(env, "unwrapped", env)
    layer = inner.envs[0] if getattr(inner, "envs", None) else env
    while layer is not None and not isinstance(layer, ObservationWrapper):
        if type(layer).__name__ == "FrameStackObservation":
            pads = {"reset": "first"} if _any(layer.padding_value) else {"reset": "first", "zero": "zero"}
            if layer.observation_space == space and layer.padding_type in pads:
                return {"stack": int(layer.stack_size), "pad": pads[layer.padding_type]}
            return {}
        layer = getattr(layer, "env", None)
    return {}


def _any(value: Any) -> bool:
    """Tell whether an observation has anything but zeros."""
    return any(np.any(leaf) for _, leaf in tree.leaves(value, ""))
