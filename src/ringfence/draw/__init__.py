"""Which steps to take."""

from ringfence.draw.base import Bound, Draw, Drawn, Seed, Updatable, child
from ringfence.draw.epochs import Epochs
from ringfence.draw.fresh import Fresh
from ringfence.draw.importance import linear
from ringfence.draw.mix import Mix
from ringfence.draw.perepisode import PerEpisode
from ringfence.draw.prioritized import Prioritized
from ringfence.draw.ranked import Ranked
from ringfence.draw.recency import Newest, Recency
from ringfence.draw.uniform import Uniform

__all__ = [
    "Bound",
    "Draw",
    "Drawn",
    "Epochs",
    "Fresh",
    "Mix",
    "Newest",
    "PerEpisode",
    "Prioritized",
    "Ranked",
    "Recency",
    "Seed",
    "Uniform",
    "Updatable",
    "child",
    "linear",
]
