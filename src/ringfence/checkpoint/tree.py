"""Nested data with arrays in it as JSON: small arrays lie in the text, large ones are files beside it.

Dicts with text keys, lists, whole numbers of any size, floats, bools, None, text and arrays of bool, integer, float or
raw bytes are known; nothing else is, so that reading never runs anything.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import CheckpointError

SMALL = 4096  # bytes; from here on an array is a file
DTYPE = re.compile(r"\|b1|\|[iu]1|[<>][iuf][248]|\|V[1-9]\d{0,8}")
ARRAY, BLOB, FLOAT = "$array", "$file", "$float"
MOST = 1 << 62  # bytes; no array is larger, and sizes are multiplied below it
Array = NDArray[Any]
Fetch = Callable[[str, np.dtype[Any], tuple[int, ...]], Array]


def encode(value: Any, put: Callable[[Array], str]) -> Any:
    """Give what JSON can hold; ``put`` takes each large array and gives it a name.

    Raises:
        TypeError: A value is of a kind that is not known; the text says where it is.
    """
    return _encode(value, put, "")


def _encode(value: Any, put: Callable[[Array], str], where: str) -> Any:
    if value is None or isinstance(value, bool | str) or (isinstance(value, int) and not isinstance(value, np.generic)):
        return value
    if isinstance(value, float) and not isinstance(value, np.generic):
        return value if math.isfinite(value) else {FLOAT: repr(value)}
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or key.startswith("$"):
                raise TypeError(f"{where or 'value'}: expected names as keys, got {key!r}")
        return {key: _encode(part, put, f"{where}.{key}" if where else key) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(part, put, f"{where}.{at}") for at, part in enumerate(value)]
    if isinstance(value, np.ndarray | np.generic):
        return _encode_array(np.asarray(value), put, where)
    raise TypeError(f"{where or 'value'}: a {type(value).__name__} cannot be saved; give numbers, text and arrays")


def _encode_array(array: Array, put: Callable[[Array], str], where: str) -> Any:
    if not DTYPE.fullmatch(array.dtype.str):
        raise TypeError(f"{where}: an array of {array.dtype} cannot be saved")
    plain = {"dtype": array.dtype.str, "shape": list(array.shape)}
    if array.nbytes <= SMALL:
        return {ARRAY: base64.b64encode(np.ascontiguousarray(array).tobytes()).decode(), **plain}
    return {BLOB: put(array), **plain}


def decode(value: Any, fetch: Fetch) -> Any:
    """Give back what was encoded; ``fetch`` gives the large arrays by name, dtype and shape.

    Raises:
        CheckpointError: The value was not made by :func:`encode`.
    """
    if isinstance(value, list):
        return [decode(part, fetch) for part in value]
    if not isinstance(value, dict):
        return value
    if FLOAT in value:
        return _float(value)
    if ARRAY in value or BLOB in value:
        return _decode_array(value, fetch)
    return {key: decode(part, fetch) for key, part in value.items()}


def _float(value: dict[str, Any]) -> float:
    if value.keys() != {FLOAT} or value[FLOAT] not in ("nan", "inf", "-inf"):
        raise CheckpointError(f"expected nan, inf or -inf, got {str(value)[:60]}")
    return float(value[FLOAT])


def _decode_array(value: dict[str, Any], fetch: Fetch) -> Array:
    kind = ARRAY if ARRAY in value else BLOB
    text, name, shape = value[kind], value.get("dtype"), value.get("shape")
    if value.keys() != {kind, "dtype", "shape"} or not isinstance(text, str) or not isinstance(name, str):
        raise CheckpointError(f"not an array: {str(value)[:60]}")
    if not DTYPE.fullmatch(name):
        raise CheckpointError(f"an array of dtype {name[:20]!r} is not known")
    dtype, sizes = np.dtype(name), sizes_of(shape)
    if kind == BLOB:
        return fetch(text, dtype, sizes)
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise CheckpointError(f"an array's text is damaged: {error}") from error
    if len(data) != nbytes_of(dtype, sizes):
        raise CheckpointError(f"an array of {len(data)} bytes is not {sizes} of {name}")
    return np.frombuffer(data, dtype).reshape(sizes).copy()


def sizes_of(shape: Any) -> tuple[int, ...]:
    """Give a shape of unknown origin, if it is one.

    Raises:
        CheckpointError: It is none.
    """
    if not isinstance(shape, list) or len(shape) > 32:
        raise CheckpointError(f"not a shape: {str(shape)[:60]}")
    for size in shape:
        if size.__class__ is not int or not 0 <= size < MOST:
            raise CheckpointError(f"not a shape: {str(shape)[:60]}")
    if math.prod(max(size, 1) for size in shape) >= MOST >> 10:  # NumPy refuses even an empty array of such sizes
        raise CheckpointError(f"not a shape: {str(shape)[:60]}")
    return tuple(shape)


def nbytes_of(dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    """Give the bytes of an array."""
    return math.prod(shape) * dtype.itemsize
