"""A process that holds one peer and times it when asked: one CPU, one thread, nothing else in it."""

import os
import warnings
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.checks import Verdict
from benchmarks.meter import calibrate, chunk
from benchmarks.peers import ENVIRONMENT, Unsupported, versions
from benchmarks.works import WORKS, Bench, Size

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass
class Ready:
    """What a worker answers once: what it found, what it can time, or why it cannot."""

    verdict: Verdict = field(default_factory=Verdict)
    cases: list[str] = field(default_factory=list)
    facts: dict[str, float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    unsupported: bool = False
    failed: str = ""


def serve(pipe: Connection, peer: str, work: str, size: Size, cpu: int, seconds: float) -> None:
    """Build, report Ready, then answer each case asked for with microseconds a call, until None comes."""
    alone(cpu)
    os.environ.update(ENVIRONMENT.get(peer, {}))
    try:
        bench = WORKS[work](peer, size)
        ready = Ready(bench.verdict, list(bench.cases), bench.facts, versions(peer))
    except Unsupported:
        bench, ready = Bench(Verdict()), Ready(unsupported=True)
    except Exception as error:  # noqa: BLE001 - a peer's failure is a result, whatever its kind
        bench, ready = Bench(Verdict()), Ready(failed=f"{type(error).__name__}: {error}")
    pipe.send(ready)
    counts: dict[str, int] = {}
    while (case := pipe.recv()) is not None:
        timer = bench.cases[case]
        if case not in counts:
            counts[case] = calibrate(timer, seconds)
        pipe.send(chunk(timer, counts[case]))


def alone(cpu: int) -> None:
    """Pin this process, silence its libraries, and let it be the first to go if memory runs out."""
    os.sched_setaffinity(0, {cpu})
    warnings.filterwarnings("ignore")
    Path("/proc/self/oom_score_adj").write_text("1000")
