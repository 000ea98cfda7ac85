"""A ring on disk and back: what changed since the last save, how it lies there, and how a ring is made of it."""

from ringfence.saving.body import Shape
from ringfence.saving.generator import generator_of
from ringfence.saving.keeper import Ending, Keeper, Opened
from ringfence.saving.ring import Ring
from ringfence.saving.save import Saved, Saving

__all__ = ["Ending", "Keeper", "Opened", "Ring", "Saved", "Saving", "Shape", "generator_of"]
