"""The doctor called by the script itself: the same looks and the same rules, while training goes on."""

from __future__ import annotations

import threading
from types import TracebackType

from ringfence.guard.doctor.evidence import Evidence
from ringfence.guard.doctor.finding import Finding
from ringfence.guard.doctor.html import html
from ringfence.guard.doctor.probe import Order, Probe
from ringfence.guard.doctor.report import text
from ringfence.guard.doctor.rules import diagnose


class Visit:
    """A watch over this process, in a thread of its own; leave it with `with`, or ask it when it is done.

    Costs what the probe costs: a few megabytes, and some half a second for each of its five looks.
    """

    def __init__(self, order: Order) -> None:
        self._probe = Probe(order)
        self._thread = threading.Thread(
            target=self._probe.run, args=(lambda: None,), name="ringfence doctor", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Visit:  # noqa: PYI034  # typing has no Self before 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.finish()

    @property
    def done(self) -> bool:
        """Tell whether it has seen enough."""
        return self._probe.done.is_set()

    def finish(self) -> None:
        """End the watch now, and wait for the last look; no effect where it has ended already."""
        self._probe.leave()
        self._thread.join()

    @property
    def evidence(self) -> Evidence:
        """Give what was seen so far."""
        return self._probe.evidence

    def findings(self) -> list[Finding]:
        """Say what the memory goes to, the worst first, as far as it was watched."""
        return diagnose(self.evidence)

    def text(self) -> str:
        """Write the report as text."""
        return text(self.evidence, self.findings())

    def html(self) -> str:
        """Write the report as a page, in one string."""
        return html(self.evidence, self.findings())


def doctor(*, seconds: float = 20.0, steps: int | None = None, deep: bool = False, limit: int | None = None) -> Visit:
    """Watch this process for a while, and tell what its memory goes to; training goes on meanwhile.

    Start it where training starts, from any thread. Environments are counted from then on by methods put into their
    classes, which stay there. What grows is looked for in this script's modules and running functions.

    Args:
        seconds: How long to watch, counted from the first step.
        steps: Watch for so many steps, `seconds` being the most.
        deep: Trace allocations for longer and deeper.
        limit: Bytes to take for the limit in place of what the machine says.

    Returns:
        The visit: `with ringfence.guard.doctor() as visit: train()`, then `print(visit.text())`.

    Raises:
        ValueError: `seconds` or `steps` is not positive.
    """
    if seconds <= 0 or (steps is not None and steps <= 0):
        given = f"seconds={seconds}" if seconds <= 0 else f"steps={steps}"
        raise ValueError(f"{given}: expected more than 0; give how long to watch")
    return Visit(Order(None, seconds, steps, deep, limit))
