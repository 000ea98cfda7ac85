"""What a running process really uses, what grows, and an end before memory ends."""

from ringfence.guard.gauge import Reading, gauge
from ringfence.guard.heap import trim
from ringfence.guard.pressure import Pressure
from ringfence.guard.slope import Slope, slope
from ringfence.guard.watchdog import Guard

__all__ = ["Guard", "Pressure", "Reading", "Slope", "gauge", "slope", "trim"]
