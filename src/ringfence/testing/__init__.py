"""What ringfence is tested with, public so that others can test their own stores, draws and views.

``strategies`` and ``machine`` need hypothesis and are imported by their own names.
"""

from ringfence.testing.draws import DrawContract, PriorityContract
from ringfence.testing.reference import ReferenceReplay
from ringfence.testing.stores import StoreContract
from ringfence.testing.views import ViewContract

__all__ = ["DrawContract", "PriorityContract", "ReferenceReplay", "StoreContract", "ViewContract"]
