"""Buffers for world models, with the names and conventions of simulusion's; DIAMOND's are in ``worldmodels.diamond``.

A name is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringfence.worldmodels.dreamer import ReplayBuffer
    from ringfence.worldmodels.iris import IRISReplayBuffer
    from ringfence.worldmodels.onpolicy import IRISOnPolicyBuffer
    from ringfence.worldmodels.planet import Episode, Memory

__all__ = ["Episode", "IRISOnPolicyBuffer", "IRISReplayBuffer", "Memory", "ReplayBuffer"]
FILES = {
    "Episode": "planet",
    "IRISOnPolicyBuffer": "onpolicy",
    "IRISReplayBuffer": "iris",
    "Memory": "planet",
    "ReplayBuffer": "dreamer",
}
MODULES = frozenset({"diamond", "dreamer", "iris", "onpolicy", "planet"})


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{FILES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *MODULES})
