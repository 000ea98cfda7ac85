"""What a drawn step turns into."""

from ringfence.view.batch import Batch
from ringfence.view.transitions import Transitions

__all__ = ["Batch", "Transitions"]
