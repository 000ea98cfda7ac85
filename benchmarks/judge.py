"""Try rules on a library in a process of its own, which is stopped where it hangs or fills memory."""

import json
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Literal

from benchmarks.peers import Unsupported
from benchmarks.rules import RULES
from benchmarks.rules.base import PAGE
from benchmarks.subjects import subject, versions

PATIENCE = 60.0
"""Seconds for one rule. The slowest take 15, in which a library compiles itself."""
START = 120.0
"""Seconds for a library to be imported."""
ROOM = 1_500_000_000
"""Bytes that a process may grow by in one rule; none needs a tenth of it, but for the one that asks for too much."""

Tell = Callable[[str], None]
"""Called with a few words before each rule."""


@dataclass
class Outcome:
    """What became of one rule in one library."""

    verdict: Literal["keeps", "breaks", "cannot", "failed"]
    """``cannot``: the library offers nothing of the kind. ``failed``: an error came that the adapter did not expect."""
    detail: str


@dataclass
class Report:
    """What became of all rules in one library."""

    name: str
    modes: str = ""
    """How the library was used, in the words of its adapter."""
    versions: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    failed: str = ""
    """Why it could not be tried."""


class Worker:
    """A library in a process of its own."""

    def __init__(self, name: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, name), daemon=True)
        self.process.start()
        theirs.close()
        answer = self._wait(START, math.inf)
        self.report = answer if isinstance(answer, Report) else Report(name, failed=str(answer))

    def judge(self, rule: str) -> Outcome:
        """Try a rule; a worker that had to be stopped is dead afterwards."""
        self.pipe.send(rule)
        answer = self._wait(PATIENCE, ROOM)
        return answer if isinstance(answer, Outcome) else Outcome("breaks", str(answer))

    def _wait(self, seconds: float, room: float) -> Outcome | Report | str:
        """Wait for an answer; say why there was none, and stop the process then."""
        start, before, reason = time.monotonic(), self._resident(), ""
        while not reason:
            try:
                if self.pipe.poll(0.02):
                    return self.pipe.recv()  # type: ignore[no-any-return]
            except (EOFError, OSError):
                reason = "the process died"
                break
            grown = self._resident() - before
            if grown > room:
                reason = f"did not refuse: stopped when it had filled {grown / 1e9:.1f} GB"
            elif time.monotonic() - start > seconds:
                reason = f"no answer within {seconds:.0f} s"
        self.process.kill()
        self.process.join()
        return reason

    def _resident(self) -> int:
        try:
            return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * PAGE
        except (OSError, IndexError):
            return 0

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self.process.is_alive()

    def close(self) -> None:
        """Let the process end, or end it."""
        self.pipe.close()
        self.process.join(5)
        self.process.kill()
        self.process.join()


def judge(name: str, rules: Iterable[str], tell: Tell) -> Report:
    """Try rules on a library."""
    worker = Worker(name)
    report = worker.report
    try:
        for rule in rules if not report.failed else ():
            tell(f"{name}: {rule}")
            if not worker.alive:
                worker = Worker(name)
            report.outcomes[rule] = worker.judge(rule)
    finally:
        worker.close()
    return report


def serve(pipe: Connection, name: str) -> None:
    """Import a library, tell what it is, and try each rule that is asked for."""
    quiet()
    try:
        module = subject(name)
        pipe.send(Report(name, " ".join((module.__doc__ or "").split()), versions(module)))
    except Exception as error:  # noqa: BLE001 - whatever keeps a library from being imported
        pipe.send(Report(name, failed=f"{type(error).__name__}: {error}"))
        return
    while True:
        try:
            rule = pipe.recv()
        except EOFError:
            return
        pipe.send(attempt(module, rule))


def attempt(module: ModuleType, rule: str) -> Outcome:
    """Try a rule on a subject."""
    try:
        keeps, detail = RULES[rule](module)
    except Unsupported as error:
        return Outcome("cannot", str(error))
    except Exception as error:  # noqa: BLE001 - shown in the table, so that it is looked into
        return Outcome("failed", f"{type(error).__name__}: {error}"[:200])
    return Outcome("keeps" if keeps else "breaks", detail)


def quiet() -> None:
    """Silence what libraries print, and let this process be the first to go if memory runs out."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    Path("/proc/self/oom_score_adj").write_text("1000")


def save(path: Path, statements: dict[str, str], reports: list[Report]) -> None:
    """Write everything as JSON."""
    path.write_text(json.dumps({"rules": statements, "reports": [asdict(one) for one in reports]}, indent=1) + "\n")
