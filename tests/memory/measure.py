"""Run a function in a process of its own, and read there what the kernel says that memory is paid for."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

MIB = 2**20
SECONDS = 120  # far beyond what any of them takes on an idle machine

on_linux = pytest.mark.skipif(
    not Path("/proc/self/smaps_rollup").exists(), reason="only Linux says in /proc/self/smaps_rollup what is paid for"
)

_CALL = """
import importlib, json, sys
path, module, name, arguments = json.loads(sys.argv[1])
sys.path[:] = path
print(json.dumps(getattr(importlib.import_module(module), name)(*arguments)))
"""


class Usage(NamedTuple):
    """What a process pays, in bytes, counted page by page."""

    rss: int
    """All its pages in memory, those that it shares included."""
    pss: int
    """Likewise, each divided by the number of processes that have it: these may be added up."""
    shmem: int
    """The part of ``pss`` that is shared mappings, such as a ring."""
    anonymous: int
    """The heap, stacks and private mappings."""
    dirty: int
    """Written pages that no other process has: what would be gained by ending it."""


def usage(pid: int | str = "self") -> Usage:
    """Read what a process pays now; takes a millisecond for each GiB."""
    fields = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]:
        name, kibibytes = line.split(":")
        fields[name] = int(kibibytes.split()[0]) * 1024
    return Usage(*(fields[name] for name in ("Rss", "Pss", "Pss_Shmem", "Anonymous", "Private_Dirty")))


def fresh(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of a test module in a fresh interpreter, and give what it returned; all of it as JSON."""
    call = json.dumps([sys.path, function.__module__, function.__name__, arguments])
    command = [sys.executable, "-c", _CALL, call]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, f"{function.__name__} ended with {done.returncode}:\n{done.stderr}"
    return json.loads(done.stdout)
