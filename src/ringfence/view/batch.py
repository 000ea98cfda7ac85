"""What a sample gives: arrays by name, each made when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

Recipe = Callable[[Any], Any]


class Batch(Mapping[str, Any]):
    """Hold the arrays of a sample, as attributes and as a mapping.

    All bytes were copied out of the ring when the batch was drawn; a field is cut from that copy on first access. So a
    field that nobody reads costs nothing, and nothing here ever refers to the ring.
    """

    __slots__ = ("_made", "_recipes", "_taken")

    def __init__(self, recipes: Mapping[str, Recipe], taken: Any) -> None:  # noqa: ANN401  (what the recipes read)
        self._recipes, self._taken = recipes, taken
        self._made: dict[str, Any] = {}

    @classmethod
    def of(cls, arrays: Mapping[str, Any]) -> Batch:
        """Make a batch of arrays that exist."""
        batch = cls(dict.fromkeys(arrays, _nothing), None)
        batch._made.update(arrays)
        return batch

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  (an array, or a tree of them)
        """Give a field; KeyError names the fields there are."""
        made = self._made
        if name in made:
            return made[name]
        recipe = self._recipes.get(name)
        if recipe is None:
            raise KeyError(f"{name!r} is not in this batch, which has {', '.join(self._recipes)}")
        value = made[name] = recipe(self._taken)
        return value

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """Give a field as an attribute."""
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the fields."""
        return iter(self._recipes)

    def __len__(self) -> int:
        """Count the fields; the number of steps is ``len(batch.ids)``."""
        return len(self._recipes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arrays alone."""
        return (Batch.of, (dict(self),))

    def __repr__(self) -> str:
        """Name the fields."""
        return f"Batch({', '.join(self._recipes)})"

    def torch(self, device: Any = None) -> Batch:  # noqa: ANN401  (a torch.device, or its name)
        """Give the same batch as tensors, on the CPU without a further copy, elsewhere with one transfer a field.

        Raises:
            ImportError: PyTorch is not installed: ``pip install ringfence[torch]``.
        """
        try:
            import torch  # noqa: PLC0415  (the core imports without it)
        except ImportError as error:
            raise ImportError("Batch.torch() needs PyTorch: pip install 'ringfence[torch]'") from error
        if device is None:
            move: Callable[[np.ndarray[Any, Any]], Any] = torch.from_numpy
        else:

            def move(array: np.ndarray[Any, Any]) -> Any:  # noqa: ANN401
                return torch.from_numpy(array).to(device)

        return Batch.of({name: _each(self[name], move) for name in self._recipes})


def _each(tree: Any, move: Callable[[Any], Any]) -> Any:  # noqa: ANN401
    if isinstance(tree, dict):
        return {key: _each(part, move) for key, part in tree.items()}
    if isinstance(tree, tuple):
        return tuple(_each(part, move) for part in tree)
    return move(tree)


def _nothing(_: object) -> None:
    """Stand in for the recipe of a field that is made already."""
