"""Replay memory for reinforcement learning that never outgrows the memory you gave it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ringfence.draw import Epochs, Fresh, Mix, Newest, PerEpisode, Prioritized, Ranked, Recency, Uniform, linear
from ringfence.errors import BudgetExceeded, CheckpointError, MemoryPressure, NotEnoughData, SchemaError
from ringfence.guard import Guard, trim
from ringfence.limits import MemoryLimit, memory_limit
from ringfence.plan import Plan, plan
from ringfence.replay import Replay
from ringfence.reservoir import Reservoir
from ringfence.schema import Field, Schema
from ringfence.version import VERSION
from ringfence.view import Batch
from ringfence.view.mixture import Mixture

if TYPE_CHECKING:
    from ringfence import worldmodels as worldmodels

__version__ = VERSION

__all__ = [
    "Batch",
    "BudgetExceeded",
    "CheckpointError",
    "Epochs",
    "Field",
    "Fresh",
    "Guard",
    "MemoryLimit",
    "MemoryPressure",
    "Mix",
    "Mixture",
    "Newest",
    "NotEnoughData",
    "PerEpisode",
    "Plan",
    "Prioritized",
    "Ranked",
    "Recency",
    "Replay",
    "Reservoir",
    "Schema",
    "SchemaError",
    "Uniform",
    "linear",
    "memory_limit",
    "plan",
    "trim",
]

if not TYPE_CHECKING:  # to a type checker it would make every name one of ours

    def __getattr__(name: str) -> Any:
        if name == "worldmodels":  # loaded when it is asked for: most runs do without
            return import_module("ringfence.worldmodels")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
