"""Where a walk begins: the script's modules, the functions that are running, and what libraries hold in containers."""

from __future__ import annotations

import site
import sys
import sysconfig
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from ringfence.guard.doctor.branches import CACHE

DEPTH = 60  # frames of a thread
FEW = 32  # entries, below which a library's container is not looked at


class Roots:
    """Tell the script's own modules and classes from those of libraries, and list where its objects hang."""

    def __init__(self) -> None:
        paths = [*site.getsitepackages(), site.getusersitepackages(), *sysconfig.get_paths().values()]
        self._libraries = tuple(
            str(Path(path).resolve()) for path in paths if path and Path(path).name not in ("", "bin")
        )
        self._own = str(Path(__file__).resolve().parents[2])
        self._known: dict[str, bool] = {}

    def user_module(self, name: str) -> bool:
        """Tell whether a module is the script's own."""
        if name not in self._known:
            if name not in sys.modules:
                return False
            self._known[name] = name == "__main__" or self.user_file(getattr(sys.modules[name], "__file__", None))
        return self._known[name]

    def user_file(self, path: Any) -> bool:
        """Tell whether a file belongs to the script rather than to a library or to this package."""
        if not isinstance(path, str) or path.startswith("<"):
            return False
        full = str(Path(path).resolve())
        return not full.startswith((*self._libraries, self._own))

    def user_class(self, cls: type) -> bool:
        """Tell whether a class is the script's own."""
        return self.user_module(getattr(cls, "__module__", ""))

    def list(self, skip: int) -> Iterator[tuple[str, Any]]:
        """Give the roots by name; the thread that asks is left out."""
        modules = [
            (name, module) for name, module in tuple(sys.modules.items()) if issubclass(type(module), ModuleType)
        ]
        for name, module in modules:
            if self.user_module(name):
                prefix = "" if name == "__main__" else f"{name}."
                for key, value in tuple(vars(module).items()):
                    if not key.startswith("__"):
                        yield f"{prefix}{key}", value
        yield from self._running(skip)
        for name, module in modules:
            if not self.user_module(name) and not name.startswith("ringfence"):
                for key, value in tuple(vars(module).items()):
                    if (
                        issubclass(type(value), (list, dict, set, deque))
                        and len(value) >= FEW
                        and not key.startswith("__")
                    ) or type(value) is CACHE:
                        yield f"{name}.{key}", value

    def _running(self, skip: int) -> Iterator[tuple[str, Any]]:
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():  # noqa: SLF001  # documented all the same
            if ident == skip:
                continue
            thread = "" if names.get(ident) == "MainThread" else f" in thread {names.get(ident, ident)}"
            for each in _stack(frame):
                label = f"{each.f_code.co_name}(){thread}."
                for name, value in _locals(each):
                    yield label + name, value


def _stack(frame: FrameType | None) -> list[FrameType]:
    found: list[FrameType] = []
    while frame is not None and len(found) < DEPTH:
        found.append(frame)
        frame = frame.f_back
    return found[::-1]


def _locals(frame: FrameType) -> list[tuple[str, Any]]:
    """Copy the variables of a running function, and leave no reference to them in it.

    Python before 3.13 fills a dict that lives as long as the frame: what stands there would be held by our look.
    """
    if frame.f_code.co_name == "<module>":
        return []
    names = frame.f_locals
    found = [(name, value) for name, value in tuple(names.items()) if not name.startswith("__")]
    if type(names) is dict and frame.f_code.co_flags & 2:  # CO_NEWLOCALS: a function's, not the module's own dict
        names.clear()
    return found
