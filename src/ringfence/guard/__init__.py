"""What grows: figures about the memory of a running process, for whoever watches one."""

from ringfence.guard.slope import Slope, slope

__all__ = ["Slope", "slope"]
