"""Control groups of every shape: version 2, version 1, both, containers, and files that lie."""

import pytest

from ringfence.limits.cgroup import cgroup_rules
from ringfence.limits.rule import Rule
from ringfence.limits.tree import Tree

GIB = 2**30
V2 = "/sys/fs/cgroup"
V1 = "/sys/fs/cgroup/memory"
V2_MOUNT = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1_MOUNT = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
KERNEL_NONE = "9223372036854771712\n"


def group_v2(
    path: str, limit: int | str = "max", current: int = 0, inactive: int = 0, high: int | str = "max"
) -> dict[str, str]:
    """Return the memory files of one group of version 2."""
    return {
        f"{path}/memory.max": f"{limit}\n",
        f"{path}/memory.high": f"{high}\n",
        f"{path}/memory.current": f"{current}\n",
        f"{path}/memory.stat": f"anon 1\nfile 2\ninactive_anon 7\ninactive_file {inactive}\nactive_file 9\n",
    }


def group_v1(path: str, limit: int | str, current: int = 0, inactive: int = 0, hierarchy: int = 1) -> dict[str, str]:
    """Return the memory files of one group of version 1."""
    return {
        f"{path}/memory.limit_in_bytes": f"{limit}\n",
        f"{path}/memory.usage_in_bytes": f"{current}\n",
        f"{path}/memory.stat": f"cache 5\ninactive_file 3\ntotal_cache 5\ntotal_inactive_file {inactive}\n",
        f"{path}/memory.use_hierarchy": f"{hierarchy}\n",
    }


def proc(cgroup: str, mountinfo: str | None) -> dict[str, str]:
    """Return the files that say where our group is."""
    files = {"/proc/self/cgroup": cgroup}
    return files if mountinfo is None else {**files, "/proc/self/mountinfo": mountinfo}


def rules(plant, *parts: dict[str, str]) -> list[Rule]:
    """Return the rules found on a machine with these files."""
    return list(cgroup_rules(Tree(plant({path: text for part in parts for path, text in part.items()}))))


def test_limits_of_our_group_and_all_ancestors_are_found(plant):
    """A limit binds wherever it sits between our group and the top, and the groups without one are left out."""
    found = rules(
        plant,
        proc("0::/a/b/c\n", V2_MOUNT),
        group_v2(f"{V2}/a/b/c", 4 * GIB, GIB),
        group_v2(f"{V2}/a/b"),
        group_v2(f"{V2}/a", 8 * GIB, 7 * GIB),
        group_v2(V2, 64 * GIB, 9 * GIB),
        group_v2(f"{V2}/other", 1, 1),
    )

    assert [(rule.where, rule.limit, rule.used) for rule in found] == [
        (f"{V2}/a/b/c/memory.max", 4 * GIB, GIB),
        (f"{V2}/a/memory.max", 8 * GIB, 7 * GIB),
        (f"{V2}/memory.max", 64 * GIB, 9 * GIB),
    ]


def test_inactive_file_pages_are_not_used_memory(plant):
    """File pages that the kernel drops before it refuses anything leave their bytes to us."""
    (rule,) = rules(
        plant, proc("0::/a\n", V2_MOUNT), group_v2(f"{V2}/a", 4 * GIB, current=4 * GIB - 10, inactive=3 * GIB)
    )

    assert rule.used == GIB - 10
    assert rule.headroom == 3 * GIB + 10


def test_reclaimable_pages_never_make_use_negative(plant):
    """Two files read a moment apart may disagree, and still no use is below zero."""
    (rule,) = rules(plant, proc("0::/a\n", V2_MOUNT), group_v2(f"{V2}/a", GIB, current=10, inactive=4096))

    assert rule.used == 0


def test_memory_high_is_a_rule_of_its_own(plant):
    """The mark above which a process only crawls is told apart from the one above which it dies."""
    found = rules(plant, proc("0::/a\n", V2_MOUNT), group_v2(f"{V2}/a", 4 * GIB, GIB, high=2 * GIB))

    assert {rule.name: rule.headroom for rule in found} == {
        "cgroup v2 memory.max": 3 * GIB,
        "cgroup v2 memory.high": GIB,
    }


def test_a_group_over_its_limit_has_no_headroom(plant):
    """A limit lowered below what is used leaves zero, not a negative number."""
    (rule,) = rules(plant, proc("0::/a\n", V2_MOUNT), group_v2(f"{V2}/a", GIB, 2 * GIB))

    assert rule.headroom == 0


def test_version_one_counts_subgroups_and_ancestors(plant):
    """In version 1 the `total_` figure is what can be reclaimed, and ancestors bind as well."""
    found = rules(
        plant,
        proc("5:cpu:/x\n4:memory,hugetlb:/job/7\n", V1_MOUNT),
        group_v1(f"{V1}/job/7", 4 * GIB, 2 * GIB, inactive=GIB),
        group_v1(f"{V1}/job", 3 * GIB, 3 * GIB),
        group_v1(V1, KERNEL_NONE),
    )

    assert [(rule.name, rule.where, rule.headroom) for rule in found] == [
        ("cgroup v1 memory.limit_in_bytes", f"{V1}/job/7/memory.limit_in_bytes", 3 * GIB),
        ("cgroup v1 memory.limit_in_bytes", f"{V1}/job/memory.limit_in_bytes", 0),
    ]


@pytest.mark.parametrize("limit", ["9223372036854771712", "9223372036854710272", "9223372036854775807", "-1"])
def test_the_largest_number_means_no_limit(plant, limit):
    """What version 1 writes for "none", with pages of 4 or 64 KiB, is no rule."""
    assert not rules(plant, proc("4:memory:/\n", V1_MOUNT), group_v1(V1, limit))


def test_an_ancestor_without_hierarchy_does_not_bind(plant):
    """A version 1 ancestor that does not count its subgroups is left out, and our own group never is."""
    (rule,) = rules(
        plant,
        proc("4:memory:/job\n", V1_MOUNT),
        group_v1(f"{V1}/job", 4 * GIB, hierarchy=0),
        group_v1(V1, GIB, hierarchy=0),
    )

    assert rule.where == f"{V1}/job/memory.limit_in_bytes"


def test_a_hybrid_host_has_rules_of_both_versions(plant):
    """Where both versions are mounted, limits of both are found."""
    mounts = V1_MOUNT + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"

    found = rules(
        plant,
        proc("4:memory:/old\n1:name=systemd:/s\n0::/new\n", mounts),
        group_v1(f"{V1}/old", 2 * GIB),
        group_v2("/sys/fs/cgroup/unified/new", 3 * GIB),
    )

    assert [(rule.name, rule.limit) for rule in found] == [
        ("cgroup v2 memory.max", 3 * GIB),
        ("cgroup v1 memory.limit_in_bytes", 2 * GIB),
    ]


def test_a_path_of_the_host_inside_a_container_means_the_mounted_group(plant):
    """A container told the path that the host sees takes what is mounted as its group."""
    (rule,) = rules(plant, proc("0::/docker/f00d\n", V2_MOUNT), group_v2(V2, 2 * GIB, GIB))

    assert (rule.where, rule.headroom) == (f"{V2}/memory.max", GIB)


def test_a_path_that_exists_in_part_is_not_followed_in_part(plant):
    """A child that happens to share its first name with the host's path is not taken for an ancestor."""
    (rule,) = rules(
        plant,
        proc("0::/docker/f00d\n", V2_MOUNT),
        group_v2(f"{V2}/docker", 7, 7),
        group_v2(V2, 2 * GIB),
    )

    assert rule.where == f"{V2}/memory.max"


def test_a_mount_that_starts_below_the_top_is_walked_from_there(plant):
    """When only a part of the hierarchy is mounted, that part is cut from our path."""
    mounts = "35 31 0:32 /docker/f00d /sys/fs/cgroup/memory ro master:9 - cgroup cgroup rw,memory\n"

    found = rules(
        plant,
        proc("4:memory:/docker/f00d/worker\n", mounts),
        group_v1(f"{V1}/worker", GIB),
        group_v1(V1, 2 * GIB),
    )

    assert [rule.limit for rule in found] == [GIB, 2 * GIB]


def test_a_mount_of_a_neighbour_by_name_prefix_is_not_ours(plant):
    """The mounted group `/job` is not above `/job2`."""
    mounts = "30 23 0:26 /job /elsewhere rw - cgroup2 cgroup2 rw\n" + V2_MOUNT

    (rule,) = rules(
        plant,
        proc("0::/job2\n", mounts),
        group_v2("/elsewhere", 1),
        group_v2(f"{V2}/job2", GIB),
    )

    assert rule.where == f"{V2}/job2/memory.max"


def test_the_mount_that_shows_our_group_is_preferred(plant):
    """Of a second view from outside our namespace and our own one, the one that leads to us is read."""
    mounts = "29 23 0:26 /../.. /host/cgroup ro - cgroup2 cgroup2 rw\n" + V2_MOUNT

    (rule,) = rules(plant, proc("0::/\n", mounts), group_v2("/host/cgroup", 1), group_v2(V2, GIB))

    assert rule.where == f"{V2}/memory.max"


def test_the_last_mount_on_a_point_counts(plant):
    """A mount hides what was mounted on the same point before it."""
    mounts = V2_MOUNT.replace("0:26 /", "0:26 /hidden") + V2_MOUNT

    (rule,) = rules(plant, proc("0::/a\n", mounts), group_v2(f"{V2}/a", GIB))

    assert rule.where == f"{V2}/a/memory.max"


def test_a_path_out_of_the_namespace_does_not_leave_the_mount(plant):
    """A group outside of our namespace has no path on our side; the mounted group stands for it."""
    found = rules(
        plant, proc("0::/../b\n", V2_MOUNT), group_v2("/sys/fs/b", 1), group_v2(f"{V2}/x", 2), group_v2(V2, GIB)
    )

    assert [rule.where for rule in found] == [f"{V2}/memory.max"]


def test_odd_names_are_followed(plant):
    """Spaces in a mount point and colons in a path do not confuse the reader."""
    mounts = "30 23 0:26 / /my\\040groups rw - cgroup2 cgroup2 rw\n"

    (rule,) = rules(plant, proc("0::/a:b/c d\n", mounts), group_v2("/my groups/a:b/c d", GIB))

    assert rule.where == "/my groups/a:b/c d/memory.max"


@pytest.mark.parametrize("mountinfo", [None, "", "rubbish\n - - \n1 2 3 - cgroup2\n\n"])
def test_without_mounts_the_usual_places_are_tried(plant, mountinfo):
    """A sandbox that hides the mount table still has its groups where everyone has them."""
    found = rules(
        plant,
        proc("4:memory:/old\n0::/new\n", mountinfo),
        group_v1(f"{V1}/old", 2 * GIB),
        group_v2(f"{V2}/new", 3 * GIB),
    )

    assert [rule.limit for rule in found] == [3 * GIB, 2 * GIB]


@pytest.mark.parametrize("text", ["", "\n", "0\n", "0:\n", "memory\n", ":::\x00\n", "4:cpu:/a\n"])
def test_no_membership_means_no_rule(plant, text):
    """Without a line that names our group there is nothing to report, and nothing fails."""
    assert not rules(plant, proc(text, V1_MOUNT), group_v1(V1, GIB))


@pytest.mark.parametrize("file", ["memory.max", "memory.current"])
@pytest.mark.parametrize("text", [None, "", "lots", "-5", "1.5", "12 13", "²", "9" * 5000])
def test_a_missing_or_garbled_figure_drops_the_rule(plant, file, text):
    """Half a rule is none: without its limit or its use a group is passed over."""
    files = group_v2(f"{V2}/a", GIB)
    if text is None:
        del files[f"{V2}/a/{file}"]
    else:
        files[f"{V2}/a/{file}"] = text

    assert not rules(plant, proc("0::/a\n", V2_MOUNT), files)


@pytest.mark.parametrize("stat", ["", "inactive_file\n", "inactive_file much\n", "total_inactive_file 9\n"])
def test_without_statistics_everything_counts_as_used(plant, stat):
    """When it is not known what could be reclaimed, the careful answer is nothing."""
    (rule,) = rules(
        plant, proc("0::/a\n", V2_MOUNT), group_v2(f"{V2}/a", GIB, current=100), {f"{V2}/a/memory.stat": stat}
    )

    assert rule.used == 100
