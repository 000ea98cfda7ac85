"""Replay memory for reinforcement learning that never outgrows the memory you gave it."""

from ringfence.draw import Uniform
from ringfence.errors import BudgetExceeded, CheckpointError, MemoryPressure, NotEnoughData, SchemaError
from ringfence.limits import MemoryLimit, memory_limit
from ringfence.plan import Plan, plan
from ringfence.replay import Replay
from ringfence.schema import Field, Schema
from ringfence.view import Batch

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "BudgetExceeded",
    "CheckpointError",
    "Field",
    "MemoryLimit",
    "MemoryPressure",
    "NotEnoughData",
    "Plan",
    "Replay",
    "Schema",
    "SchemaError",
    "Uniform",
    "memory_limit",
    "plan",
]
