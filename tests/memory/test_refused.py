"""A ring that does not fit is refused before any memory is touched."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.memory.measure import MIB, fresh, on_linux, usage

from ringfence.errors import BudgetExceeded
from ringfence.replay import Replay
from ringfence.schema import Field, Schema

pytestmark = on_linux

SCHEMA = Schema(obs=Field((17,), np.float32), action=Field((6,), np.float32))
SECONDS = 0.05


def mapped() -> int:
    """Give the size of the address space that this process has taken."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(r"VmSize:\s+(\d+) kB", status)
    assert found
    return int(found[1]) * 1024


def refusal(capacity: float | None, budget: str | None = None) -> dict[str, Any]:
    """Ask for a ring; give the error, what was paid for it, and the quickest of three refusals."""
    Replay(SCHEMA, capacity=100)
    before, size = usage(), mapped()
    text, best = "", float("inf")
    for _ in range(3):  # a busy machine slows one; slow code slows all
        begin = time.perf_counter()
        try:
            Replay(SCHEMA, capacity=capacity, budget=budget)
        except BudgetExceeded as error:
            text = str(error)
        best = min(best, time.perf_counter() - begin)
    after = usage()
    return {"text": text, "rss": after.rss - before.rss, "mapped": mapped() - size, "seconds": best}


def limited() -> dict[str, Any]:
    """Ask for a ring of about 1 GiB with 256 MiB of address space left, and then for one that the error says fits."""
    import resource

    Replay(SCHEMA, capacity=100)
    resource.setrlimit(resource.RLIMIT_AS, (mapped() + 256 * MIB, resource.getrlimit(resource.RLIMIT_AS)[1]))
    paid = refusal(10**7)
    fitting = int(re.search(r"capacity=([\d,]+) would fit", paid["text"])[1].replace(",", ""))
    replay = Replay(SCHEMA, capacity=fitting * 0.98 // 1)  # the rest is what refusing has itself mapped since
    return paid | {"fitting": replay.nbytes}


def assert_refused(paid: dict[str, Any], reason: str) -> None:
    """Require the error, and that nothing was paid for it."""
    assert re.search(reason, paid["text"]), paid
    assert abs(paid["rss"]) < MIB, paid
    assert paid["mapped"] < MIB, paid
    assert paid["seconds"] < SECONDS, paid


def test_a_ring_beyond_the_limit_of_the_process_is_refused_untouched():
    """Under a limit on address space the error names it and a capacity that fits; nothing was mapped or touched."""
    paid = fresh(limited)

    assert_refused(paid, r"10,000,000 transitions takes 1\.0\d GiB, and 25\d\.\d+ MiB may be taken \(RLIMIT_AS\)")
    assert 240 * MIB < paid["fitting"] < 256 * MIB


def test_a_ring_beyond_the_budget_is_refused_untouched():
    """With capacity and budget the budget is a bound: the error names it, and nothing was mapped or touched."""
    paid = fresh(refusal, 10**6, "100 MiB")

    assert_refused(paid, r"1,000,000 transitions takes 104\.14 MiB, and 100\.00 MiB may be taken \(budget='100 MiB'\)")


@pytest.mark.parametrize("capacity", [1e12, 1e15, 9e18])
def test_a_ring_beyond_any_machine_is_refused_untouched(capacity):
    """However absurd the capacity, the answer is the same error, at once."""
    assert_refused(fresh(refusal, capacity), "may be taken")


def test_a_budget_too_small_for_any_ring_is_refused_untouched():
    """A budget that not even one step fits is refused with that advice."""
    assert_refused(fresh(refusal, None, "2 kB"), "not even the smallest ring fits")
