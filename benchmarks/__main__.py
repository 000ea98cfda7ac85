"""The command line: `python -m benchmarks --help`."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.harness import measure
from benchmarks.peers import PEERS
from benchmarks.report import save, show
from benchmarks.works import WORKS, Size

EXAMPLE = "Example: python -m benchmarks add sample --peers ringfence,sb3 --rounds 7 --json out.json"

WIDTH = 100
"""Columns a table needs, also where the output is no terminal."""

app = typer.Typer(add_completion=False)


@app.command(epilog=EXAMPLE)
def main(
    works: Annotated[list[str] | None, typer.Argument(metavar="[WORK]...", help=f"Of: {', '.join(WORKS)}.")] = None,
    *,
    peers: Annotated[str, typer.Option(help="Names with commas between.")] = ",".join(PEERS),
    rounds: Annotated[int, typer.Option(min=1, help="How often each peer is timed.")] = 7,
    seconds: Annotated[float, typer.Option(help="How long each time.")] = 0.2,
    cpu: Annotated[int, typer.Option(help="The one CPU that all workers are pinned to.")] = 1,
    capacity: Annotated[int, typer.Option(help="Transitions in the rings of small steps.")] = 1_000_000,
    frames: Annotated[int, typer.Option(min=2000, help="Transitions in the rings of Atari frames.")] = 50_000,
    screens: Annotated[int, typer.Option(min=2000, help="Steps with colour frames in `sequences`.")] = 100_000,
    json: Annotated[Path | None, typer.Option(help="Also write every figure here.")] = None,
) -> None:
    """Measure ringfence beside other replay buffers, all in one run, after checking what each of them returns."""
    chosen = peers.split(",")
    for name, known in [(work, WORKS) for work in works or ()] + [(peer, PEERS) for peer in chosen]:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is not one of: {', '.join(known)}")
    if cpu not in os.sched_getaffinity(0):
        raise typer.BadParameter(f"there is no CPU {cpu} here, only {sorted(os.sched_getaffinity(0))}")
    console, results = Console(), []
    console.width = max(console.width, WIDTH)
    with Console(stderr=True).status("") as status:
        for work in works or list(WORKS):
            found = measure(work, chosen, Size(capacity, frames, screens=screens), rounds, cpu, seconds, status.update)
            show(console, work, found)
            results += found
    if json:
        sizes = {"capacity": capacity, "frames": frames, "screens": screens}
        save(json, {"rounds": rounds, "seconds": seconds} | sizes, results)


if __name__ == "__main__":
    app()
