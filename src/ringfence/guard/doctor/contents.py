"""What arrays, tensors and dicts are, as far as memory is concerned."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ringfence.guard.doctor.counting import Counter

PINNING = 4  # a base so many times larger than the view of it is held for nothing


def tensor_class() -> type | None:
    """Give torch's tensor, if the script has loaded torch."""
    torch = sys.modules.get("torch")
    found = getattr(torch, "Tensor", None)
    return found if isinstance(found, type) else None


class Contents:
    """Measure arrays and tensors, and recognise infos and pictures by what the environments have given so far."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def is_info(self, thing: dict[Any, Any]) -> bool:
        """Tell whether a dict has all the keys of an info that an environment gave."""
        try:
            return any(len(keys) <= len(thing) and keys <= thing.keys() for keys in self._counter.info_keys)
        except Exception:  # noqa: BLE001  # a dict of a kind of its own
            return False

    def is_picture(self, array: Any) -> bool:
        """Tell whether an array looks like what `render` gave, or like a picture in three colours."""
        if (array.shape, str(array.dtype)) in self._counter.pictures:
            return True
        return array.dtype == np.uint8 and array.ndim == 3 and array.shape[2] in (3, 4) and min(array.shape[:2]) >= 8

    def array(self, array: Any, seen: Any) -> tuple[float, float]:
        """Give the bytes that an array keeps alive, and how many of them nobody can see through it.

        A base counts in equal parts for all that refer to it, and not at all where it is reached by itself.
        """
        base = array.base
        if base is None:
            return array.nbytes, 0
        if not isinstance(base, np.ndarray):
            return (0.0 if isinstance(array, np.memmap) else array.nbytes), 0
        if seen(base):
            return 0, 0
        share = base.nbytes / max(1, sys.getrefcount(base) - 2)
        return share, share - array.nbytes if share > PINNING * max(array.nbytes, 1) else 0

    def tensor(self, tensor: Any) -> tuple[float, float, bool]:
        """Give the bytes that a tensor keeps alive in this process, those unseen, and whether it has a graph."""
        try:
            graph = tensor.grad_fn is not None
            if tensor.device.type != "cpu" or tensor.layout is not sys.modules["torch"].strided:
                return 0, 0, graph
            storage = tensor.untyped_storage()
            shown = tensor.numel() * tensor.element_size()
            share = storage.nbytes() / max(1, _uses(storage))
        except Exception:  # noqa: BLE001  # a tensor of a kind that has no storage
            return 0, 0, False
        return share, share - shown if share > PINNING * max(shown, 1) else 0, graph


def _uses(storage: Any) -> int:
    """Count the tensors on a storage."""
    try:
        return int(sys.modules["torch"]._C._storage_Use_Count(storage._cdata)) - 1  # noqa: SLF001
    except Exception:  # noqa: BLE001  # private, and may go
        return 1
