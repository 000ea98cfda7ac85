"""What memory this process may use, read from the machine it runs on."""

from ringfence.limits.memory import MemoryLimit, memory_limit
from ringfence.limits.rule import Rule

__all__ = ["MemoryLimit", "Rule", "memory_limit"]
