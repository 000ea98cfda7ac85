"""One file a library: what a careful user of it would write, in the fastest and leanest way it offers."""

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from benchmarks.peers.base import Ring

PEERS = ("ringfence", "naive", "sb3", "sb3-lean", "cpprb", "sheeprl", "sheeprl-lean")
PEERS += ("sheeprl-episodes", "tianshou", "tianshou-lean", "ringfence-pure")
"""Names for the command line. `-lean` is the same library told to save memory on frames; it runs only there.
`-pure` is ours without its compiled loops, and `-episodes` another class of the same library."""

ENVIRONMENT = {"ringfence-pure": {"RINGFENCE_PURE": "1"}}
"""Variables a peer's process must have before the library is imported."""


class Unsupported(Exception):
    """The peer offers nothing for this workload."""


def builder(peer: str, kind: str) -> Callable[..., Ring]:
    """Return the peer's function that builds a ring of some kind: `ring`, `nstep`, `frames`, `per` or `windows`."""
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
