"""The save format: named arrays in a directory, each save whole or not there at all. What they mean is not known."""

from ringfence.checkpoint.directory import Directory, Draft
from ringfence.checkpoint.manifest import Manifest
from ringfence.checkpoint.npy import Entry
from ringfence.checkpoint.tree import decode, encode

__all__ = ["Directory", "Draft", "Entry", "Manifest", "decode", "encode"]
