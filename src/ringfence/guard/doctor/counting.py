"""Steps counted from outside the script: whatever has `step` and `reset` is an environment, unless it is a framework's.

The methods are replaced in their class, once, by ones that count; the script's objects stay as they are. Of nested
environments (a wrapper's, a vector's) only the outermost call counts. Where there is no environment, the steps of
torch's optimizers are counted instead.
"""

from __future__ import annotations

import functools
import gc
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

FOREIGN = frozenset(
    {"torch", "torchvision", "numpy", "jax", "optax", "tensorflow", "transformers", "accelerate", "tqdm"}
)
COUNTED = "_counted_by_the_doctor"
REMEMBERED = 64
"""Different sets of info keys, and shapes of pictures, that are remembered."""


class Counting(threading.local):
    """How deep this thread is inside of environments."""

    depth = 0


class Counter:
    """Count steps and resets, and remember what infos and pictures look like."""

    def __init__(self) -> None:
        self.env_steps = self.updates = self.resets = 0
        self.info_keys: set[frozenset[Any]] = set()
        self.pictures: set[tuple[tuple[int, ...], str]] = set()
        self.classes: set[type] = set()
        self._seen: dict[type, bool] = {}
        self._inside = Counting()
        self._optimizers = False

    @property
    def unit(self) -> str:
        """Say what `steps` counts."""
        return "step" if self.env_steps else "update" if self.updates else "second"

    @property
    def steps(self) -> int:
        """Give the steps so far, of the unit that is there."""
        return self.env_steps or self.updates

    def look(self) -> None:
        """Find environments, and count their steps from now on."""
        for thing in gc.get_objects():
            cls = type(thing)
            if cls not in self._seen:
                self._seen[cls] = steps_like_an_environment(cls)
                if self._seen[cls]:
                    self._watch(cls)
        self._watch_optimizers()

    def _watch(self, cls: type) -> None:
        self.classes.add(cls)
        for name, note in (("step", self._note_step), ("reset", self._note_reset), ("render", self._note_picture)):
            owner = next((each for each in cls.__mro__ if name in vars(each)), None)
            method = vars(owner).get(name) if owner else None
            if isinstance(method, types.FunctionType) and not hasattr(method, COUNTED):
                setattr(owner, name, self._counted(method, note))

    def _counted(self, method: Callable[..., Any], note: Callable[[Any], None]) -> Callable[..., Any]:
        inside = self._inside

        @functools.wraps(method)
        def counted(*args: Any, **kwargs: Any) -> Any:
            if inside.depth:
                return method(*args, **kwargs)
            inside.depth = 1
            try:
                result = method(*args, **kwargs)
            finally:
                inside.depth = 0
            note(result)
            return result

        vars(counted)[COUNTED] = True
        return counted

    def _note_step(self, result: Any) -> None:
        self.env_steps += 1
        if type(result) is tuple and len(result) in (4, 5):
            for info in result[-1][:8] if isinstance(result[-1], list | tuple) else (result[-1],):
                if isinstance(info, dict) and info and len(self.info_keys) < REMEMBERED:
                    self.info_keys.add(frozenset(info))

    def _note_reset(self, _result: Any) -> None:
        self.resets += 1

    def _note_picture(self, result: Any) -> None:
        for picture in result[-1:] if isinstance(result, list) else (result,):
            shape, dtype = getattr(picture, "shape", None), getattr(picture, "dtype", None)
            if shape and dtype is not None and len(self.pictures) < REMEMBERED:
                self.pictures.add((tuple(shape), str(dtype)))

    def _watch_optimizers(self) -> None:
        optimizer = sys.modules.get("torch.optim.optimizer")
        hook = getattr(optimizer, "register_optimizer_step_post_hook", None)
        if hook is not None and not self._optimizers:
            self._optimizers = True
            hook(self._note_update)

    def _note_update(self, *_args: Any) -> None:
        self.updates += 1


def steps_like_an_environment(cls: type) -> bool:
    """Tell whether a class has `step` and `reset` of its own, as environments do and optimizers do not."""
    try:
        if cls.__module__.partition(".")[0] in FOREIGN:
            return False
        return all(callable(getattr(cls, name, None)) for name in ("step", "reset")) and not any(
            each.__module__.partition(".")[0] in FOREIGN for each in cls.__mro__
        )
    except Exception:  # noqa: BLE001  # a metaclass may do as it likes
        return False
