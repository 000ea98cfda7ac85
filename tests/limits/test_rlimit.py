"""Resource limits: injected ones, and real ones in a process of their own."""

import subprocess
import sys
import textwrap

import pytest

from ringfence.limits.rlimit import rlimit_rules
from ringfence.limits.tree import Tree

STATUS = {"/proc/self/status": "Name:\tpython\nVmPeak:\t  9000 kB\nVmSize:\t  3060 kB\nVmData:\t   360 kB\n"}

PRELUDE = """
import mmap, re, resource
from ringfence.limits import memory_limit

MIB = 2**20

def limit(name, figure, room):
    status = open("/proc/self/status").read()
    soft = int(re.search(figure + r":\\s+(\\d+) kB", status)[1]) * 1024 + room
    resource.setrlimit(name, (soft, resource.getrlimit(name)[1]))
    return soft
"""

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux enforces these limits as described")


def run_limited(code: str) -> str:
    """Run code in a process of its own, and return what it printed."""
    program = PRELUDE + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_address_space_is_compared_with_its_own_figure(plant):
    """The limit on address space counts every mapping, shared ones too."""
    (rule,) = rlimit_rules(Tree(plant(STATUS)), {"RLIMIT_AS": 2**22})

    assert (rule.name, rule.limit, rule.used, rule.shared) == ("RLIMIT_AS", 2**22, 3060 * 1024, True)


def test_the_data_limit_does_not_bind_shared_mappings(plant):
    """The limit on data counts private memory only, and says so."""
    (rule,) = rlimit_rules(Tree(plant(STATUS)), {"RLIMIT_DATA": 2**20})

    assert (rule.name, rule.headroom, rule.shared) == ("RLIMIT_DATA", 2**20 - 360 * 1024, False)


@pytest.mark.parametrize("unlimited", [-1, 2**63 - 1, 2**64 - 1])
def test_infinity_is_no_rule(plant, unlimited):
    """However a system writes "unlimited", it is left out."""
    assert not list(rlimit_rules(Tree(plant(STATUS)), {"RLIMIT_AS": unlimited, "RLIMIT_DATA": unlimited}))


def test_other_limits_are_ignored(plant):
    """A limit on open files or on the stack bounds no memory that we take."""
    assert not list(rlimit_rules(Tree(plant(STATUS)), {"RLIMIT_NOFILE": 10, "RLIMIT_STACK": 2**20}))


@pytest.mark.parametrize("status", [{}, {"/proc/self/status": ""}, {"/proc/self/status": "VmSize:\tmany kB\n"}])
def test_without_a_figure_of_use_there_is_no_rule(plant, status):
    """A limit without the use to compare it with says nothing about headroom."""
    assert not list(rlimit_rules(Tree(plant(status)), {"RLIMIT_AS": 2**22}))


def test_a_system_without_resource_limits_has_no_rule(plant, monkeypatch):
    """On Windows there is no such module, and nothing fails for it."""
    monkeypatch.setitem(sys.modules, "resource", None)

    assert not list(rlimit_rules(Tree(plant(STATUS))))


@on_linux
def test_a_real_address_space_limit_leaves_what_was_said():
    """Under a real limit the headroom can be mapped, and 1 MiB more cannot."""
    out = run_limited(
        """
        soft = limit(resource.RLIMIT_AS, "VmSize", 64 * MIB)
        said = memory_limit()
        print(said.rule, said.limit == soft, said.shared.rule)
        try:
            mmap.mmap(-1, memory_limit().headroom + MIB)
        except OSError:
            print("refused")
        mmap.mmap(-1, memory_limit().headroom - MIB)
        print("mapped")
        """
    )

    assert out == "RLIMIT_AS True RLIMIT_AS\nrefused\nmapped\n"


@on_linux
def test_a_real_data_limit_binds_private_memory_only():
    """Under a real limit on data a shared mapping above the headroom succeeds, and a private one fails."""
    out = run_limited(
        """
        soft = limit(resource.RLIMIT_DATA, "VmData", 32 * MIB)
        said = memory_limit()
        print(said.rule, said.limit == soft, said.shared.rule != said.rule)
        try:
            mmap.mmap(-1, said.headroom + MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError:
            print("refused")
        mmap.mmap(-1, said.headroom + MIB)
        print("mapped")
        """
    )

    assert out == "RLIMIT_DATA True True\nrefused\nmapped\n"
