"""One file a library: what a careful user of it would write to keep the rules, in the modes it documents."""

from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

SUBJECTS = ("ringfence", "sb3", "tianshou", "cpprb", "torchrl", "sheeprl", "simulusion")
"""Names for the command line."""


def subject(name: str) -> ModuleType:
    """Import the adapter of a library, and the library with it.

    A module has ``PACKAGES``, and any of these functions; what it lacks it cannot do:

    - ``ring(capacity, seed)``: steps with both their observations
    - ``lean(capacity)``: the same, each observation kept once
    - ``pixels(capacity)``: a ring of uint8 observations
    - ``nstep(capacity, n, gamma)``: draws have the field ``target``
    - ``stacks(capacity, k, side)``: draws have k numbers an observation, one a frame of ``side`` by ``side`` bytes
    - ``sequences(capacity, length)``: draws have ``obs`` of shape (windows, length)
    - ``priorities(capacity, seed)``: a :class:`benchmarks.subjects.base.Priorities`
    - ``big(nbytes)``: builds a ring of two big arrays, and adds one step
    """
    return import_module(f"benchmarks.subjects.{name}")


def versions(module: ModuleType) -> dict[str, str]:
    """Give the versions of the packages that an adapter consists of; a checkout that is not installed has none."""
    found = {}
    for package in module.PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
