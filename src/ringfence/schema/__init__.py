"""What one step is: fields, shapes, dtypes, how they pack; strict, cheap validation."""

from ringfence.schema.field import Field
from ringfence.schema.layout import Layout
from ringfence.schema.schema import Leaf, Schema

__all__ = ["Field", "Layout", "Leaf", "Schema"]
