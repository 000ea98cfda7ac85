"""One file a library: what a careful user of it would write, in the fastest and leanest way it offers."""

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from benchmarks.peers.base import Ring

PEERS = ("ringfence", "naive", "sb3", "sb3-lean", "cpprb", "sheeprl", "sheeprl-lean", "tianshou", "tianshou-lean")
"""Names for the command line. `-lean` is the same library told to save memory on frames; it runs only there."""


class Unsupported(Exception):
    """The peer offers nothing for this workload."""


def builder(peer: str, kind: str) -> Callable[..., Ring]:
    """Return the peer's function that builds a `ring`, an `nstep` ring or a ring of `frames`."""
    library, _, variant = peer.partition("-")
    module = import_module(f"benchmarks.peers.{library}")
    found: Callable[..., Ring] | None = getattr(module, f"{variant}_{kind}" if variant else kind, None)
    if found is None:
        raise Unsupported(f"{peer} has no {kind}")
    return found


def versions(peer: str) -> dict[str, str]:
    """Return the versions of the packages the peer consists of; a checkout on the path, not installed, has none."""
    found = {}
    for package in import_module(f"benchmarks.peers.{peer.partition('-')[0]}").PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
