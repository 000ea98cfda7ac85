"""Replay memory for reinforcement learning that never outgrows the memory you gave it."""

from ringfence.draw import Epochs, Fresh, Mix, Newest, Prioritized, Ranked, Recency, Uniform, linear
from ringfence.errors import BudgetExceeded, CheckpointError, MemoryPressure, NotEnoughData, SchemaError
from ringfence.limits import MemoryLimit, memory_limit
from ringfence.plan import Plan, plan
from ringfence.replay import Replay
from ringfence.reservoir import Reservoir
from ringfence.schema import Field, Schema
from ringfence.version import VERSION
from ringfence.view import Batch
from ringfence.view.mixture import Mixture

__version__ = VERSION

__all__ = [
    "Batch",
    "BudgetExceeded",
    "CheckpointError",
    "Epochs",
    "Field",
    "Fresh",
    "MemoryLimit",
    "MemoryPressure",
    "Mix",
    "Mixture",
    "Newest",
    "NotEnoughData",
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
]
