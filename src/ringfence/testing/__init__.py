"""What ringfence is tested with, public so that others can test their own stores, draws and views.

``strategies`` and ``machine`` need hypothesis and are imported by their own names.
"""

from ringfence.testing.reference import ReferenceReplay

__all__ = ["ReferenceReplay"]
