"""Run workloads: one worker a peer, all alive at once, each asked in turn for one short chunk, round after round."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.worker import THREADS, Ready, serve
from benchmarks.works import Size

PATIENCE = 600.0
"""Seconds to wait for a worker's answer before it counts as failed."""

Tell = Callable[[str], None]
"""Called with a few words each time something is done."""


@dataclass
class Result:
    """One peer in one workload."""

    work: str
    peer: str
    ready: Ready
    times: dict[str, list[float]] = field(default_factory=dict)
    """Microseconds a call, one figure a round, by case."""


class Worker:
    """A peer in its own process."""

    def __init__(self, peer: str, work: str, size: Size, cpu: int, seconds: float) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        arguments = (theirs, peer, work, size, cpu, seconds)
        self.process = context.Process(target=serve, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        self.result = Result(work, peer, self.receive() or Ready(failed="the worker died"))

    def receive(self) -> Ready | None:
        """Return what the worker reports, or None if it died or hangs."""
        try:
            return self.pipe.recv() if self.pipe.poll(PATIENCE) else None
        except EOFError:
            return None

    def time(self, case: str) -> None:
        """Have one more chunk of a case timed; a worker that dies of it is out."""
        try:
            self.pipe.send(case)
            self.result.times.setdefault(case, []).append(self.pipe.recv())
        except (EOFError, ConnectionError):
            self.result.ready = Ready(failed=f"the worker died in {case}")

    def close(self) -> None:
        """End the process; what it holds is gone when this returns."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def measure(
    work: str, peers: Sequence[str], size: Size, rounds: int, cpu: int, seconds: float, tell: Tell
) -> list[Result]:
    """Check all peers, then time all cases of a workload; `memory` has none, so its workers go one by one."""
    quiet(cpu)
    workers: list[Worker] = []
    results: list[Result] = []
    try:
        for peer in peers:
            tell(f"{work}: filling and checking {peer}")
            worker = Worker(peer, work, size, cpu, seconds)
            results.append(worker.result)
            if worker.result.ready.cases:
                workers.append(worker)
            else:
                worker.close()
        for turn in range(rounds):
            for case in dict.fromkeys(case for worker in workers for case in worker.result.ready.cases):
                able = [worker for worker in workers if case in worker.result.ready.cases]
                first = turn % max(1, len(able))  # nobody always follows the same neighbour
                for worker in able[first:] + able[:first]:
                    tell(f"{work}: round {turn + 1} of {rounds}, {case}, {worker.result.peer}")
                    worker.time(case)
    finally:
        for worker in workers:
            worker.close()
    return [result for result in results if not result.ready.unsupported]


def quiet(cpu: int) -> None:
    """Keep this process off the workers' CPU, and their libraries to one thread each."""
    os.environ.update(dict.fromkeys(THREADS, "1"))
    if others := os.sched_getaffinity(0) - {cpu}:
        os.sched_setaffinity(0, others)
