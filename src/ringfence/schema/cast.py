"""Values to exactly the shape and dtype that memory keeps, or a refusal that says why not.

A cast may lose nothing, with two exceptions by rule: float64 may round to a narrower float, and so may any float that a
field declares to store narrower. What would overflow is refused. A float never becomes an integer or a bool, not even a
whole one: a picture scaled to [0, 1] would otherwise slip into uint8 as zeros and ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import SchemaError
from ringfence.schema.field import Field

F4, F8 = np.dtype(np.float32), np.dtype(np.float64)
# The square of float32's largest value: a sum of squares below it proves that each element fits, in one pass.
FITS_F4 = float(np.finfo(np.float32).max) ** 2


def fit(name: str, value: Any, shape: tuple[int, ...], field: Field) -> NDArray[Any]:
    """Give ``value`` as an array of this shape in the field's kept dtype.

    Raises:
        SchemaError: Another shape (nothing is broadcast), a dtype that would lose something, a value that does not
            fit, NaN or infinity where the field is finite, Python objects, or a tensor that carries a graph.
    """
    kept = field.kept
    if type(value) is np.ndarray and value.dtype is F8 and kept is F4 and value.shape == shape:
        flat = value.ravel()  # MuJoCo's observations, each step: a third of the time of the general way below
        with np.errstate(over="ignore"):
            small = flat.dot(flat) <= FITS_F4
        if small:  # not so with NaN and infinity, which the general way sorts out
            return value.astype(F4)
    array = as_array(name, value)
    if array.shape != shape:
        raise SchemaError(f"{name}: expected shape {shape}, got {array.shape}; nothing is broadcast or squeezed")
    if not array.size:  # no streams: whatever dtype an empty list has, nothing of it is lost
        return array.astype(kept)
    if field.finite and array.dtype.kind == "f":
        _check(name, np.isfinite(array), array, "a finite value")
    if array.dtype == kept:
        return array
    return _cast(name, array, kept)


def as_array(name: str, value: Any) -> NDArray[Any]:
    """Give ``value`` as an array of plain values.

    Raises:
        SchemaError: It is a tensor with a graph, a ragged list, or refers to Python objects or text.
    """
    if getattr(value, "requires_grad", False):
        raise SchemaError(
            f"{name}: this tensor requires grad; a graph kept in memory grows for ever. Pass value.detach()"
        )
    if isinstance(value, np.ma.MaskedArray):
        raise SchemaError(f"{name}: a masked array has values that are not there; pass value.filled(...)")
    if isinstance(value, np.ndarray):
        array: NDArray[Any] = value
    else:
        try:
            array = np.asarray(value)
        except (ValueError, TypeError, RuntimeError) as error:  # ragged lists, tensors on a device
            raise SchemaError(f"{name}: {type(value).__name__} cannot be read as an array ({error})") from error
    if array.dtype.kind not in "biuf":
        if isinstance(value, int):
            raise SchemaError(f"{name}: expected a value that fits 64 bits, got {value}")
        raise SchemaError(f"{name}: expected numbers, got dtype {array.dtype} ({type(value).__name__})")
    return array


def _cast(name: str, array: NDArray[Any], kept: np.dtype[Any]) -> NDArray[Any]:
    if kept.kind == "f" and array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            cast = array.astype(kept)
        _check(name, ~np.isinf(cast) | np.isinf(array), array, f"a value that fits {kept}")
        return cast
    if array.dtype.kind == "f":
        raise SchemaError(
            f"{name}: expected {kept}, got {array.dtype} (for example {_example(array)}); floats are not cut to {kept}"
        )
    if kept.kind in "iu":
        limits = np.iinfo(kept)
        wide = array.astype(np.uint8) if array.dtype.kind == "b" else array
        _check(name, (wide >= limits.min) & (wide <= limits.max), array, f"a value that fits {kept}")
        return array.astype(kept)
    with np.errstate(over="ignore"):
        cast = array.astype(kept)
    exact = cast == array if kept.kind == "b" else _exact(array, cast)
    _check(name, exact, array, f"a value that {kept} holds exactly")
    return cast


def _exact(integers: NDArray[Any], floats: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which integers a float holds to the last digit; NumPy would compare them as float64, which rounds too."""
    digits = np.finfo(floats.dtype).nmant + 1
    wide = integers.astype(np.uint8) if integers.dtype.kind == "b" else integers
    small = (wide <= 2**digits) & (wide >= (-(2**digits) if wide.dtype.kind == "i" else 0))
    if small.all():
        return small
    finite = np.isfinite(floats)
    pairs = zip(wide.ravel().tolist(), np.where(finite, floats, 0.5).ravel().tolist(), strict=True)
    return np.array([number == float_ for number, float_ in pairs], np.bool_).reshape(wide.shape)


def _check(name: str, good: NDArray[np.bool_], array: NDArray[Any], expected: str) -> None:
    if good.all():
        return
    where = tuple(int(place) for place in np.argwhere(~good)[0])
    at = f" at {list(where)}" if where else ""
    raise SchemaError(f"{name}: expected {expected}, got {array[where]}{at}")


def _example(array: NDArray[Any]) -> str:
    return str(array.flat[0]) if array.size else "nothing"
