"""States as ``torch.save`` keeps them and ``torch.load(weights_only=True)`` reads them: tensors in place of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import CheckpointError

Array = NDArray[Any]
BYTES, DTYPE = "$bytes", "$dtype"
# what every release of PyTorch that we serve has tensors of; anything else goes as bytes
PLAIN = frozenset(np.dtype(kind) for kind in ("b1", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8"))


def to_saved(state: Mapping[str, Any]) -> dict[str, Any]:
    """Give a state with tensors in place of its arrays, which share their memory; as it is where PyTorch is missing.

    Arrays of dtypes that tensors do not have become their bytes, with the dtype beside them.
    """
    try:
        import torch
    except ImportError:
        return dict(state)

    def tensor(array: Array) -> Any:
        whole = np.ascontiguousarray(array).reshape(array.shape)
        if whole.dtype in PLAIN and whole.dtype.isnative:
            return torch.from_numpy(whole if whole.flags.writeable else whole.copy())
        flat = np.frombuffer(whole.tobytes(), np.uint8).copy()
        return {BYTES: torch.from_numpy(flat), DTYPE: whole.dtype.str, "shape": list(whole.shape)}

    return {name: _mapped(value, tensor) for name, value in state.items()}


def from_saved(state: Any) -> dict[str, Any]:
    """Give a state with arrays in place of its tensors.

    Raises:
        CheckpointError: It is no dict, or an array in it is damaged.
    """
    if not isinstance(state, Mapping):
        raise CheckpointError(f"state: expected a dict, as state_dict() gives it, got {type(state).__name__}")
    return {name: _restored(value) for name, value in state.items()}


def _mapped(value: Any, change: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _mapped(part, change) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(part, change) for part in value]
    return change(value) if isinstance(value, np.ndarray) else value


def _restored(value: Any) -> Any:
    if isinstance(value, Mapping):
        if BYTES in value:
            return _array(value)
        return {name: _restored(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_restored(part) for part in value]
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def _array(value: Mapping[str, Any]) -> Array:
    flat = np.asarray(_restored(value[BYTES]))
    try:
        dtype = np.dtype(value[DTYPE])
        if not dtype.hasobject and flat.dtype == np.uint8:
            return np.frombuffer(flat.tobytes(), dtype).reshape(value["shape"]).copy()
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"state: an array is damaged: {error}") from error
    raise CheckpointError(f"state: an array is damaged: {flat.dtype} for {dtype}")
