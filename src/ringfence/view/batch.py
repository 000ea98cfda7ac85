"""What a sample gives: arrays by name, each made when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

Recipe = Callable[[Any], Any]


class Batch(Mapping[str, Any]):
    """Hold the arrays of a sample, as attributes and as a mapping.

    All bytes were copied out of the ring when the batch was drawn; a field is cut from that copy on first access. So a
    field that nobody reads costs nothing, and nothing here ever refers to the ring.
    """

    _recipes: Mapping[str, Recipe] = MappingProxyType({})
    _as_tensors: type[Batch]

    def __init__(self, taken: Any) -> None:
        self._taken = taken

    @classmethod
    def kind(cls, recipes: Mapping[str, Recipe]) -> type[Batch]:
        """Give the class of the batches whose fields are made by these recipes."""
        fields: dict[str, Any] = {name: _Made(name, recipe) for name, recipe in recipes.items()}
        return type("Batch", (cls,), {**fields, "_recipes": MappingProxyType(dict(recipes)), "__doc__": cls.__doc__})

    @classmethod
    def of(cls, arrays: Mapping[str, Any]) -> Batch:
        """Make a batch of arrays that exist."""
        batch = cls.kind(dict.fromkeys(arrays, _nothing))(None)
        batch.__dict__.update(arrays)
        return batch

    def __getattr__(self, name: str) -> Any:
        """Refuse an unknown field by the names of those there are."""
        raise AttributeError(f"{name!r} is not in this batch, which has {', '.join(self._recipes)}")

    def __getitem__(self, name: str) -> Any:
        """Give a field; KeyError names the fields there are."""
        if name not in self._recipes:
            raise KeyError(f"{name!r} is not in this batch, which has {', '.join(self._recipes)}")
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the fields."""
        return iter(self._recipes)

    def __len__(self) -> int:
        """Count the fields; the number of steps is ``len(batch.ids)``."""
        return len(self._recipes)

    def __eq__(self, other: object) -> bool:
        """Tell whether it is the same batch; arrays are compared by NumPy."""
        return self is other

    __hash__ = object.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arrays alone."""
        return (Batch.of, (dict(self),))

    def __repr__(self) -> str:
        """Name the fields."""
        return f"Batch({', '.join(self._recipes)})"

    def torch(self, device: Any = None) -> Batch:
        """Give the same batch as tensors, made on access: on the CPU without a copy, elsewhere by one transfer each.

        Raises:
            ImportError: PyTorch is not installed: ``pip install ringfence[torch]``.
        """
        try:
            import torch
        except ImportError as error:
            raise ImportError("Batch.torch() needs PyTorch: pip install 'ringfence[torch]'") from error

        def move(array: np.ndarray[Any, Any]) -> Any:
            tensor = torch.from_numpy(array)
            return tensor if device is None else tensor.to(device)

        return self._tensors()((self, move))

    @classmethod
    def _tensors(cls) -> type[Batch]:
        """Give the class of batches that turn fields of another one into tensors; it is made once a view."""
        kind = cls.__dict__.get("_as_tensors")
        if kind is None:
            kind = cls.kind({name: _moved(name) for name in cls._recipes})
            cls._as_tensors = kind
        return kind


def _moved(name: str) -> Recipe:
    def recipe(taken: tuple[Batch, Callable[[Any], Any]]) -> Any:
        batch, move = taken
        value = getattr(batch, name)
        return move(value) if type(value) is np.ndarray else _each(value, move)

    return recipe


class _Made:
    """Make a field on first access; from then on it is an ordinary attribute, found before this one."""

    __slots__ = ("_name", "_recipe")

    def __init__(self, name: str, recipe: Recipe) -> None:
        self._name, self._recipe = name, recipe

    def __get__(self, batch: Any, owner: type) -> Any:
        if batch is None:
            return self
        value = batch.__dict__[self._name] = self._recipe(batch._taken)  # noqa: SLF001  (a part of Batch)
        return value


def _each(tree: Any, move: Callable[[Any], Any]) -> Any:
    if isinstance(tree, dict):
        return {key: _each(part, move) for key, part in tree.items()}
    if isinstance(tree, tuple):
        return tuple(_each(part, move) for part in tree)
    return move(tree)


def _nothing(_: object) -> None:
    """Stand in for the recipe of a field that is made already."""
