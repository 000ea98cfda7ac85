"""The gauge, beside the kernel's own files."""

import mmap
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from ringfence.guard import gauge, trim

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's files are Linux's")
MIB = 1 << 20


def status(name):
    """Read a figure of /proc/self/status, in bytes."""
    found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found[1]) * 1024


def test_it_agrees_with_the_kernel():
    """Each kind of resident memory is what the kernel says, up to what a reading itself moves."""
    split = gauge().split

    for name, told in (("RssAnon", split.anonymous), ("RssFile", split.file), ("RssShmem", split.shared)):
        assert abs(status(name) - told) < 2 * MIB, name


def test_private_and_shared_memory_are_told_apart():
    """Memory of the process alone, and memory that workers share, each raise their own figure by their size."""
    before = gauge().split
    private = np.ones(32 * MIB, np.uint8)
    shared = mmap.mmap(-1, 16 * MIB)
    shared.write(bytes(16 * MIB))
    after = gauge().split

    assert abs(after.anonymous - before.anonymous - private.nbytes) < 20 * MIB
    assert after.anonymous - before.anonymous > 28 * MIB
    assert abs(after.shared - before.shared - 16 * MIB) < MIB
    shared.close()


def test_what_is_not_asked_for_is_absent():
    """No children are told where none are looked at, and no device where torch has none in use."""
    reading = gauge(children=False)

    assert reading.children is None
    assert reading.cuda_allocated is None
    assert "memory/children" not in reading.metrics()
    assert reading.metrics()["memory/held"] == reading.held


def test_a_trim_gives_free_memory_back():
    """What many small blocks leave behind is given back, and the figure is what the process lost."""
    if trim() is None:
        pytest.skip("no glibc")
    blocks = [bytes(2000) for _ in range(50_000)]
    last = bytes(2000)  # keeps the top of the heap where it is
    del blocks
    before = gauge().split.anonymous
    given = trim()

    assert given > 50 * MIB
    assert before - gauge().split.anonymous > 50 * MIB
    assert last
