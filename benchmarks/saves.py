"""Save full rings of several libraries and bring them back: `python -m benchmarks.saves --help`.

One process fills a ring, saves it, adds half a per cent of new steps and saves again; a fresh one loads. Meanwhile this
process reads every millisecond what theirs occupies, so that nothing they hold, such as a lock, hides a peak.
"""

import json
import multiprocessing
import os
import platform
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks import ways
from benchmarks.data import FRAME, Array, Frames, Steps
from benchmarks.meter import resident
from benchmarks.peers.base import Ring
from benchmarks.report import processor

NEW = 200
"""One step in so many is new at the second save."""

DRAWN = 4, 500
"""Batches, and steps of each, that are compared after a load."""

PATIENCE = 600.0
"""Seconds to wait for a process before its library counts as failed."""

BASE = "ringfence"
"""Whom the others are compared with."""

app = typer.Typer(add_completion=False)


@dataclass(frozen=True)
class Work:
    """What a ring is filled with."""

    name: str
    steps: int
    recorded: bool = True
    """Frames are of real games, not random bytes."""

    @property
    def new(self) -> int:
        """Steps that come between the two saves."""
        return max(1, self.steps // NEW)

    def data(self) -> Steps | Frames:
        """Make the rows of the full ring and the new ones."""
        if self.name == "control":
            return Steps.generate(self.steps + self.new)
        return (Frames.recorded if self.recorded else Frames.generate)(self.steps + self.new)

    def title(self) -> str:
        """Say it in a few words."""
        what = "17 + 17 + 6 float32" if self.name == "control" else f"{FRAME[0]} x {FRAME[1]} frames, stacks of 4"
        return f"{self.name}, {self.steps:,} steps ({what})"


@dataclass
class Span:
    """One save or load, in seconds and bytes."""

    begun: float
    returned: float
    """Until the caller goes on."""
    ended: float
    """Until all of it is on the disk, an fsync of every file included; of a load, until the ring is there."""
    before: int
    after: int
    written: int
    """Bytes dirtied in files since the span before it, by new steps too where the ring lies in files."""
    peak: int = 0
    """Resident memory at most, as seen from outside."""


@dataclass
class Row:
    """What one library did in one round."""

    work: str
    library: str
    failed: str = ""
    wrong: list[str] = field(default_factory=list)
    spans: dict[str, Span] = field(default_factory=dict)
    """``save``, ``again`` and ``load``."""
    disk: int = 0
    """Bytes of all files after the second save."""

    def figures(self) -> dict[str, float]:
        """Give what the tables show: seconds, and bytes."""
        save, again, load = (self.spans[name] for name in ("save", "again", "load"))
        return {
            "returns": save.returned - save.begun,
            "on disk": save.ended - save.begun,
            "again": again.returned - again.begun,
            "again on disk": again.ended - again.begun,
            "load": load.ended - load.begun,
            "save memory": max(0, save.peak - save.before, again.peak - again.before),
            "load memory": max(0, load.peak - load.after),
            "bytes": save.written,
            "again bytes": again.written,
            "disk": self.disk,
        }


# -- in the processes that are measured


def fill(pipe: Connection, library: str, work: Work, folder: Path) -> None:
    """Fill a ring, save it, add a few steps, save it again; send both spans, and what is wrong with the ring itself."""
    way, data, dirtied = ways.WAYS[library], work.data(), written()
    way.ready()
    ring = way.build(work.name, work.steps, folder)
    parts = feed(ring, data, work.steps)
    next(parts)
    spans = {}
    for name in ("save", "again"):
        before, begun = resident(), time.perf_counter()
        wait = way.save(ring, folder)
        returned = time.perf_counter()
        if wait is not None:
            wait()
        flush(folder)
        ended = time.perf_counter()
        spans[name] = Span(begun, returned, ended, before, resident(), written() - dirtied)
        dirtied = written()
        next(parts, None)
    pipe.send((spans, faults(ring, data, work)))


def feed(ring: Ring, data: Steps | Frames, steps: int) -> Iterator[None]:
    """Add so many steps, and when asked again the rest."""
    if isinstance(data, Steps):
        for part in (slice(steps), slice(steps, None)):
            obs, action, reward, next_obs, terminated, truncated = (column[part] for column in data.fields)
            flags = {"terminated": terminated, "truncated": truncated}
            ring.fill(replace(data, obs=obs, action=action, reward=reward, next_obs=next_obs, **flags))
            yield
    else:
        rows = data.rows()
        for count in (steps, len(data) - steps):
            for row in islice(rows, count):
                ring.add(*row)
            yield


def load(pipe: Connection, library: str, work: Work, folder: Path) -> None:
    """Load what the other process saved and compare it; send the span and what is wrong."""
    way = ways.WAYS[library]
    way.ready()
    before, begun = resident(), time.perf_counter()
    ring = way.load(work.name, work.steps, folder)
    ended = time.perf_counter()
    span = Span(begun, ended, ended, before, resident(), 0)
    pipe.send(({"load": span}, faults(ring, work.data(), work)))


def faults(ring: Ring, data: Steps | Frames, work: Work) -> list[str]:
    """Compare drawn steps with what was added; a library may give the newest frame alone in place of a stack."""
    found: dict[str, None] = {}
    newest = 0
    for _ in range(DRAWN[0]):
        batch = ring.numpy(DRAWN[1])
        ids = data.ids(batch)
        if ids.min() < work.new or ids.max() >= len(data):
            return ["draws steps that are not the newest"]
        newest = max(newest, int(ids.max()))
        want = data.want(ids)
        for name in ("obs", "action", "reward"):
            if not same(np.asarray(batch[name]), want[name]):
                found[f"{name} differs"] = None
    if newest < work.steps:
        found["the new steps are missing"] = None
    return list(found)


def same(got: Array, want: Array) -> bool:
    """Tell whether all values are equal, whatever axes of length one there are."""
    if got.size < want.size:
        want = want[:, -1]
    return got.size == want.size and bool((got.reshape(want.shape) == want).all())


def written() -> int:
    """Return the bytes that this process has dirtied in files so far, whole pages, mapped ones too."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["write_bytes"])


def flush(folder: Path) -> None:
    """Wait until every file is on the disk."""
    for path in files(folder):
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)


def files(folder: Path) -> list[Path]:
    """List all files in a folder, however deep."""
    return [path for path in folder.rglob("*") if path.is_file()]


def guarded(pipe: Connection, stage: Callable[..., None], library: str, work: Work, folder: Path) -> None:
    """Run a stage; what goes wrong in it is its result."""
    try:
        stage(pipe, library, work, folder)
    except Exception as error:  # noqa: BLE001 - a peer's failure is a result, whatever its kind
        where = traceback.extract_tb(error.__traceback__)[-1].name
        pipe.send(f"{type(error).__name__} in {where}: {str(error).splitlines()[0] if str(error) else ''}")


# -- in the process that measures


def measure(library: str, work: Work) -> Row:
    """Do one round of one library."""
    row = Row(work.title(), library)
    with tempfile.TemporaryDirectory(prefix="saves-") as name:
        folder = Path(name)
        for stage in (fill, load):
            sent = watched(stage, library, work, folder)
            if isinstance(sent, str):
                return replace(row, failed=sent)
            spans, found = sent
            row.spans |= spans
            if stage is fill:
                known, row.disk = found, sum(path.stat().st_blocks * 512 for path in files(folder))
            else:
                row.wrong = [text for text in found if text not in known]
    return row


def watched(stage: Callable[..., None], library: str, work: Work, folder: Path) -> Any:
    """Run a stage in a fresh process; give what it sends, the peaks of its spans filled in."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=guarded, args=(theirs, stage, library, work, folder), daemon=True)
    process.start()
    theirs.close()
    seen: list[tuple[float, int]] = []
    over = threading.Event()
    thread = threading.Thread(target=watch, args=(Path(f"/proc/{process.pid}/status"), seen, over))
    thread.start()
    try:
        sent = mine.recv() if mine.poll(PATIENCE) else f"no answer after {PATIENCE:.0f} s"
    except EOFError:
        sent = "the process died"
    finally:
        over.set()
        thread.join()
        process.kill()
        process.join()
        mine.close()
    for span in () if isinstance(sent, str) else sent[0].values():
        span.peak = max([span.after] + [nbytes for moment, nbytes in seen if span.begun <= moment <= span.ended])
    return sent


def watch(status: Path, seen: list[tuple[float, int]], over: threading.Event) -> None:
    """Note every millisecond what a process occupies, pages of files left out as in `resident`."""
    while not over.wait(0.001):
        try:
            lines = status.read_text().splitlines()
        except OSError:
            return
        sizes = [int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "RssShmem"))]
        seen.append((time.perf_counter(), sum(sizes) * 1024))


def table(rows: Sequence[Row]) -> str:
    """Lay out one workload: medians over the rounds, and in brackets how many times ours that is."""
    libraries: dict[str, list[Row]] = {}
    for row in rows:
        libraries.setdefault(row.library, []).append(row)
    base = middle(libraries[BASE]) if BASE in libraries else {}
    heads = ("library", "save returns, s", "on disk, s", "second returns, s", "on disk, s", "of the first")
    heads += ("load, s", "save memory, MiB", "load memory, MiB", "files, MiB", "second writes, MiB", "of the first")
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    for library, rounds in libraries.items():
        found = middle(rounds)
        if failed := next((row.failed for row in rounds if row.failed), ""):
            cells = [f"failed: {failed}"]
        elif wrong := next((row.wrong for row in rounds if row.wrong), []):
            cells = [f"wrong after the load: {', '.join(wrong)}"]
        else:
            cells = line(found, {} if library == BASE else base)
        lines.append("| " + " | ".join([library, *cells, *[""] * (len(heads) - 1 - len(cells))]) + " |")
    return "\n".join(lines)


def middle(rounds: Sequence[Row]) -> dict[str, float]:
    """Take the median of each figure over the rounds that went well."""
    found = [row.figures() for row in rounds if "load" in row.spans and not row.wrong]
    return {name: median(one[name] for one in found) for name in found[0]} if found else {}


def line(found: dict[str, float], base: dict[str, float]) -> list[str]:
    """Write the cells of a row."""

    def cell(name: str, unit: float = 1.0) -> str:
        text = number(found[name] / unit)
        return f"{text} ({number(found[name] / base[name])}x)" if base.get(name) else text

    mib = 2.0**20
    return [
        *(cell(name) for name in ("returns", "on disk", "again", "again on disk")),
        f"{found['again on disk'] / found['on disk']:.1%}",
        cell("load"),
        *(number(found[name] / mib) for name in ("save memory", "load memory")),
        *(cell("disk", mib), cell("again bytes", mib)),
        f"{found['again bytes'] / found['bytes']:.1%}" if found["bytes"] else "",
    ]


def number(value: float) -> str:
    """Write three digits, or whole numbers."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}" if value >= 0.001 else f"{value:.1g}"


@app.command(epilog="Example: python -m benchmarks.saves --steps 200000 --steps 1000000 --out saves.json")
def main(
    *,
    steps: Annotated[list[int], typer.Option(help="Sizes of the rings of small steps.")] = [200_000],  # noqa: B006
    frames: Annotated[int, typer.Option(help="Size of the ring of Atari frames; 0 leaves it out.")] = 20_000,
    libraries: Annotated[str, typer.Option(help="Names with commas between.")] = ",".join(ways.WAYS),
    rounds: Annotated[int, typer.Option(min=1, help="How often each is measured.")] = 3,
    out: Annotated[Path | None, typer.Option(help="Also write every figure here, as JSON.")] = None,
) -> None:
    """Measure what it takes to save a full ring, to save it again after 0.5 % new steps, and to load it."""
    chosen = libraries.split(",")
    for name in chosen:
        if name not in ways.WAYS:
            raise typer.BadParameter(f"{name!r} is not one of: {', '.join(ways.WAYS)}")
    works = [Work("control", count) for count in steps] + [Work("atari", frames)] * (frames > 0)
    rows: list[Row] = []
    for work in works:
        found = []
        for turn in range(rounds):
            first = turn % len(chosen)  # nobody always follows the same neighbour
            found += [measure(library, work) for library in chosen[first:] + chosen[:first]]
        found.sort(key=lambda row: chosen.index(row.library))
        print(f"{work.title()}\n\n{table(found)}\n", flush=True)
        rows += found
    if out:
        machine = {"python": platform.python_version(), "platform": platform.platform(), "processor": processor()}
        document = {"machine": machine, "rounds": rounds, "rows": [asdict(row) for row in rows]}
        out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    app()
