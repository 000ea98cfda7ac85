"""The thread inside the script's process: it looks at the heap a few times, notes what it saw, and ends the run."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
from collections import Counter as Tally
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ringfence.guard.doctor import reading
from ringfence.guard.doctor.alone import alone
from ringfence.guard.doctor.buffers import buffers
from ringfence.guard.doctor.code import Code
from ringfence.guard.doctor.contents import Contents
from ringfence.guard.doctor.counting import Counter
from ringfence.guard.doctor.details import detail
from ringfence.guard.doctor.evidence import Child, Evidence, Graph, Holder, Sample
from ringfence.guard.doctor.family import Family
from ringfence.guard.doctor.holders import grown
from ringfence.guard.doctor.lines import lines
from ringfence.guard.doctor.look import Look
from ringfence.guard.doctor.roots import Roots
from ringfence.guard.doctor.walk import Walk
from ringfence.limits import memory_limit

LOOKS = 5
PERIOD = 0.1  # seconds between two samples
SETTLED = 0.5  # seconds without a new module, after which the script has done its imports
PATIENCE = 5.0  # seconds to wait for the first step after that
WARM = 0.2  # share of the watch that passes before the first look
ROOM = 600  # samples, above which every other one is dropped
HOLDERS = 8
MORE = 1.25  # times as many objects of a type, from which on they are told of


@dataclass(frozen=True, slots=True)
class Order:
    """How long to watch, and where to write what was seen."""

    out: Path | None
    """None where nobody but this process reads it."""
    seconds: float = 20.0
    steps: int | None = None
    """Watch for so many steps instead, seconds being the most."""
    deep: bool = False
    limit: int | None = None
    """Bytes to take for the limit in place of what the machine says."""
    command: tuple[str, ...] = ()


class Probe:
    """Watch this process.

    Costs a few megabytes, about half a second of computing for each of five looks, and under a thousandth of the time
    in between.
    """

    def __init__(self, order: Order) -> None:
        self.order = order
        self.counter = Counter()
        self.contents = Contents(self.counter)
        self.roots = Roots()
        self.family = Family()
        self.evidence = Evidence(command=order.command)
        self.looks: list[Look] = []
        self.done = threading.Event()
        self._began = time.monotonic()
        self._samples: list[Sample] = []
        self._every = 1
        self._ticks = 0
        self._own = 0
        self._over = threading.Event()
        self._asked = threading.Event()
        self._types: list[Tally[str]] = []
        self._lock = threading.RLock()

    def run(self, stop: Callable[[], None]) -> None:
        """Watch until the time is over or the script has ended, write the evidence, and stop the script."""
        try:
            self._wait_for_steps()
            self._watch()
            self.conclude("stopped")
        finally:
            self.done.set()
        stop()

    def leave(self) -> None:
        """Have the thread that watches take its last look now."""
        self._asked.set()

    def conclude(self, ended: str) -> None:
        """Take the last look, try what can be tried only at the end, and write the evidence; once."""
        with self._lock:
            if self._over.is_set():
                return
            self._over.set()
            self._asked.set()
            walk = self._look() if self._enough() else None
            self._gather(ended, walk)

    def _wait_for_steps(self) -> None:
        """Let the script import and build: what grows before the first step is no leak."""
        count, since = -1, time.monotonic()
        while not self._asked.is_set():
            now = time.monotonic()
            if len(sys.modules) != count:
                count, since = len(sys.modules), now
            elif now - since > SETTLED:
                self.counter.look()
                self._pause(0.2)
                if self.counter.steps > 1 or now - since > PATIENCE:
                    return
            self._pause(PERIOD)

    def _watch(self) -> None:
        began, first = time.monotonic(), self.counter.steps
        share = 0.0
        marks = [WARM + (1 - WARM) * number / (LOOKS - 1) for number in range(LOOKS - 1)]
        warmed = False
        while share < 1 and not self._asked.is_set():
            self._sample()
            self._pause(PERIOD)
            share = (time.monotonic() - began) / self.order.seconds
            if self.order.steps:
                share = max(share, (self.counter.steps - first) / self.order.steps)
            if not warmed and share >= WARM / 2:
                warmed = True
                self._walk()  # what walking costs is paid before anything is compared
                reading.trim()
            if marks and share >= marks[0]:
                marks.pop(0)
                self._visit()

    def _visit(self) -> None:
        """Take a look, and count what it leaves behind as the doctor's own: some megabytes of notes."""
        with self._lock:
            if self._over.is_set():
                return
            before = reading.split()[0]
            self._look()
            self._own += max(0, reading.split()[0] - before)
            self._write(self.evidence)

    def _enough(self) -> bool:
        """Tell whether another look is worth it: the last one is a while ago."""
        return not self.looks or self._now() - self.looks[-1].sample.seconds > PERIOD

    def _look(self) -> Walk:
        self.counter.look()
        look = Look(self._sample(keep=True))  # before the walk: what that takes is ours, not the script's
        walk = self._walk()
        look.take(walk)
        look.children = self.family.read()
        self.looks.append(look)
        self._types.append(Tally(type(each).__name__ for each in gc.get_objects()))
        del self._types[1:-1]
        self.evidence = replace(self.evidence, looks=tuple(each.sample for each in self.looks))
        return walk

    def _walk(self) -> Walk:
        walk = Walk(self.roots.user_class, self.contents)
        return walk.run(self.roots.list(threading.get_ident()))

    def _gather(self, ended: str, walk: Walk | None) -> None:
        limit = memory_limit()
        host = max(
            (rule.limit for rule in limit.rules if "host" in rule.name or "machine" in rule.name), default=limit.limit
        )
        evidence = replace(
            self.evidence,
            unit=self.counter.unit,
            ended=ended,
            resets=self.counter.resets,
            samples=tuple(self._samples),
            limit=self.order.limit or limit.limit,
            limit_rule="the limit that was given" if self.order.limit else limit.rule,
            used=sum(reading.split()) if self.order.limit else limit.used,
            host=host,
        )
        if walk is None or len(self.looks) < 2:
            self._write(evidence)
            return
        evidence = replace(
            evidence,
            holders=self._holders(walk),
            buffers=tuple(buffers(self.looks, walk)),
            graphs=self._graphs(),
            children=self._children(walk),
            types=self._more(),
        )
        environments = [
            thing for thing in walk.things if type(thing) in self.counter.classes and hasattr(thing, "action_space")
        ]
        del walk
        self._write(evidence)
        evidence = replace(evidence, trimmed=reading.trim(), mapped=self.family.files())
        self._write(evidence)
        self._write(
            replace(evidence, lines=lines(self.roots.user_file, deep=self.order.deep), alone=alone(environments))
        )

    def _holders(self, walk: Walk) -> tuple[Holder, ...]:
        code = Code(
            str(getattr(module, "__file__", ""))
            for name, module in tuple(sys.modules.items())
            if self.roots.user_module(name)
        )
        found = grown(self.looks, walk)[:HOLDERS]
        return tuple(detail(each, self.looks, walk, code, self.counter.classes) for each in found)

    def _graphs(self) -> tuple[Graph, ...]:
        paths = set(self.looks[-1].graphs)
        for look in self.looks:
            paths &= set(look.graphs)
        return tuple(
            Graph(path, tuple(look.graphs[path][0] for look in self.looks), self.looks[-1].graphs[path][1])
            for path in sorted(paths)
        )

    def _children(self, walk: Walk) -> tuple[Child, ...]:
        loaders = self.family.loaders(walk.things)
        found = []
        for pid in self.looks[-1].children:
            series = [look.children[pid] for look in self.looks if pid in look.children]
            role = "loader" if pid in loaders else "process"
            resident, private = zip(*series, strict=True)
            found.append(Child(pid, self.family.name(pid), role, resident, private, self.family.told(pid)))
        return tuple(found)

    def _more(self) -> dict[str, tuple[int, int]]:
        first, last = self._types[0], self._types[-1]
        return {
            name: (first[name], count)
            for name, count in last.most_common(40)
            if count > MORE * first[name] and count - first[name] > 1000
        }

    def _sample(self, *, keep: bool = False) -> Sample:
        anonymous, file, shared = reading.split()
        used, held = reading.heap()
        steps = self.counter.steps or int(self._now())
        sample = Sample(
            self._now(),
            steps,
            max(0, anonymous - self._own),
            file,
            shared,
            used,
            held,
            self.family.private(),
            *reading.device(),
        )
        self._ticks += 1
        if keep or self._ticks % self._every == 0:
            self._samples.append(sample)
        if len(self._samples) > ROOM:
            self._samples = self._samples[::2]
            self._every *= 2
        return sample

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _pause(self, seconds: float) -> None:
        self._asked.wait(seconds)

    def _write(self, evidence: Evidence) -> None:
        self.evidence = evidence
        if self.order.out is None:
            return
        part = self.order.out.with_suffix(".part")
        with contextlib.suppress(OSError):
            part.write_text(evidence.to_json(), encoding="utf-8")
            os.replace(part, self.order.out)  # noqa: PTH105  # a reader never sees half of it
