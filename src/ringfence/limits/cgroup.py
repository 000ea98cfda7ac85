"""Rules of control groups: containers, job schedulers and systemd bound memory with them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ringfence.limits.rule import UNLIMITED, Rule
from ringfence.limits.tree import Tree, field


@dataclass(frozen=True, slots=True)
class _Version:
    """The names that one version of control groups gives to the same things."""

    name: str
    fstype: str
    controller: str
    """How /proc/self/cgroup names the hierarchy, in its list of controllers and in the options of the mount."""
    point: str
    """Where it is mounted if no one says."""
    limits: tuple[str, ...]
    current: str
    reclaimable: str


# Why memory.high is a rule although nobody is killed for crossing it: above it the kernel puts every allocation to
# sleep while it reclaims, and a ring that is in use cannot be reclaimed. The run would not die, it would stand still.
_V2 = _Version(
    name="cgroup v2",
    fstype="cgroup2",
    controller="",
    point="/sys/fs/cgroup",
    limits=("memory.max", "memory.high"),
    current="memory.current",
    reclaimable="inactive_file",
)
# Version 1 counts subgroups in the `total_` figures only; version 2 always does.
_V1 = _Version(
    name="cgroup v1",
    fstype="cgroup",
    controller="memory",
    point="/sys/fs/cgroup/memory",
    limits=("memory.limit_in_bytes",),
    current="memory.usage_in_bytes",
    reclaimable="total_inactive_file",
)


def cgroup_rules(tree: Tree) -> Iterator[Rule]:
    """Yield the limits of our control group and of each of its ancestors, in both versions: a hybrid host has both.

    Used is what cannot be reclaimed: inactive file pages are handed back before anything is refused.
    Groups without a limit, or whose files cannot be read, yield nothing.
    """
    memberships = tree.read("/proc/self/cgroup")
    mounts = tree.read("/proc/self/mountinfo")
    for version in (_V2, _V1):
        path = _membership(memberships, version)
        if path is None:
            continue
        point, names = _locate(tree, path, _mounts(mounts, version) or {version.point: "/"})
        for depth in range(len(names), -1, -1):
            yield from _group_rules(tree, version, "/".join([point, *names[:depth]]), ancestor=depth < len(names))


def _group_rules(tree: Tree, version: _Version, group: str, ancestor: bool) -> Iterator[Rule]:
    limits = {file: tree.number(f"{group}/{file}") for file in version.limits}
    bounds = {file: limit for file, limit in limits.items() if limit is not None and limit < UNLIMITED}
    # Usage is read for limited groups only: each file costs 10 to 20 µs, and most groups have no limit.
    if not bounds:
        return
    # Kernels before 5.11 have groups that do not count what their subgroups use; those bound only their own processes.
    if ancestor and tree.number(f"{group}/memory.use_hierarchy") == 0:
        return
    current = tree.number(f"{group}/{version.current}")
    if current is None:
        return
    reclaimable = field(tree.read(f"{group}/memory.stat"), version.reclaimable) or 0
    for file, limit in bounds.items():
        yield Rule(f"{version.name} {file}", limit, max(0, current - reclaimable), f"{group}/{file}")


def _membership(text: str, version: _Version) -> str | None:
    """Find the path of our group in lines such as `4:memory:/job/7` or, for version 2, `0::/job/7`."""
    for line in text.split("\n"):
        _, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")  # only the path may hold more colons
        if colon and version.controller in controllers.split(","):
            return path
    return None


def _mounts(text: str, version: _Version) -> dict[str, str]:
    """Map each mount point of the hierarchy to the group that is mounted there; a later mount hides an earlier one."""
    found = {}
    for line in text.split("\n"):
        place, dash, kind = line.partition(" - ")
        place_fields, kind_fields = place.split(" "), kind.split(" ")
        if not dash or len(place_fields) < 5 or len(kind_fields) < 3 or kind_fields[0] != version.fstype:
            continue
        if not version.controller or version.controller in kind_fields[2].split(","):
            found[_unescape(place_fields[4]).rstrip("/")] = _unescape(place_fields[3])
    return found


def _unescape(text: str) -> str:
    """Undo the octal escapes that the kernel writes for spaces, tabs, newlines and backslashes in paths."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def _locate(tree: Tree, path: str, mounts: dict[str, str]) -> tuple[str, list[str]]:
    """Return the mount point that shows our group, and the names that lead from there to the group.

    Inside a container the path may be the one that the host sees, which is not there: then the mount is our group.
    """
    for point, root in mounts.items():
        names = _descend(path, root)
        if names is not None and tree.holds("/".join([point, *names])):
            return point, names
    return next(iter(mounts)), []


def _descend(path: str, root: str) -> list[str] | None:
    """Return the names that lead from the mounted group down to ours, or None if ours is not below it."""
    names, above = ([name for name in text.split("/") if name] for text in (path, root))
    below = names[len(above) :]
    # A `..` is how a namespace shows a group outside of it: the way there has no name on our side.
    if names[: len(above)] != above or ".." in names:
        return None
    return below
