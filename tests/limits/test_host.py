"""The machine's own memory, from the kernel's file or, elsewhere, from psutil."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from ringfence.limits import host
from ringfence.limits.host import host_rules
from ringfence.limits.tree import Tree

MEMINFO = "MemTotal:  1000 kB\nMemFree:  10 kB\nMemAvailable:  400 kB\nSwapTotal:  5000 kB\nSwapFree:  5000 kB\n"


def test_available_memory_is_the_headroom_and_swap_is_not(plant):
    """What the kernel can hand out without swapping may be taken; free pages say less, swap would say more."""
    (rule,) = host_rules(Tree(plant({"/proc/meminfo": MEMINFO})))

    assert (rule.limit, rule.used, rule.headroom) == (1000 * 1024, 600 * 1024, 400 * 1024)


@pytest.mark.parametrize(
    "text", [None, "", "MemTotal: 1000 kB\n", "MemTotal: x kB\nMemAvailable: 400 kB\n", "\x00\xff"]
)
@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_a_made_up_machine_without_figures_has_no_rule(plant, monkeypatch, platform, text):
    """A missing or garbled file is no rule, and the real machine never answers for a made-up one."""
    monkeypatch.setattr(host, "sys", SimpleNamespace(platform=platform))

    assert not list(host_rules(Tree(plant({} if text is None else {"/proc/meminfo": text}))))


def test_other_systems_are_asked_through_psutil(monkeypatch):
    """Where there is no such file, psutil gives the same two figures."""
    psutil = pytest.importorskip("psutil")
    monkeypatch.setattr(host, "sys", SimpleNamespace(platform="darwin"))
    monkeypatch.setattr(Tree, "read", lambda *_: "")

    (rule,) = host_rules(Tree())

    assert rule.limit == psutil.virtual_memory().total
    assert 0 < rule.headroom < rule.limit
    assert rule.where == "psutil.virtual_memory"


@pytest.mark.skipif(sys.platform != "linux", reason="psutil is the source elsewhere")
def test_psutil_is_not_loaded_on_linux():
    """The answer costs no import on Linux."""
    code = "import sys; from ringfence.limits import memory_limit; memory_limit(); print('psutil' in sys.modules)"

    assert subprocess.check_output([sys.executable, "-c", code], text=True, timeout=60) == "False\n"
