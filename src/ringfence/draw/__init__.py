"""Which steps to take."""

from ringfence.draw.base import Bound, Draw, Drawn, Seed, Updatable
from ringfence.draw.uniform import Uniform

__all__ = ["Bound", "Draw", "Drawn", "Seed", "Uniform", "Updatable"]
