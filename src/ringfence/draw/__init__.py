"""Which steps to take."""

from ringfence.draw.base import Draw
from ringfence.draw.uniform import Uniform

__all__ = ["Draw", "Uniform"]
