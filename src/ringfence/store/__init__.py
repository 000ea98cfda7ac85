"""Where bytes live: which rows exist, written and read; never what they mean."""

from ringfence.store.base import Cost, RingShape, Store
from ringfence.store.ram import Ram, cost

__all__ = ["Cost", "Ram", "RingShape", "Store", "cost"]
