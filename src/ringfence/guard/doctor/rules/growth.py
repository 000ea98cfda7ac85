"""How much the process itself grew, and how much of it the other rules explain."""

from __future__ import annotations

from itertools import pairwise

from ringfence.guard.doctor.evidence import Evidence
from ringfence.guard.slope import Slope, slope

GRAPH_NODE = 400  # bytes of an operation of a graph with the little that it saves: measured at 300 to 700


def trend(evidence: Evidence) -> Slope | None:
    """Give the growth of the process's own memory in bytes a second, between the first look and the last."""
    first, last = evidence.looks[0].seconds, evidence.looks[-1].seconds
    samples = [each for each in evidence.samples if first <= each.seconds <= last]
    if len({each.seconds for each in samples}) < 2:
        samples = list(evidence.looks)
    return slope([each.seconds for each in samples], [each.anonymous for each in samples])


def steady(evidence: Evidence, share: float = 0.15) -> bool:
    """Tell whether the process grew between any two looks, at a like rate: what only warms up does not."""
    looks = evidence.looks
    rates = [(b.anonymous - a.anonymous) / max(b.seconds - a.seconds, 1e-9) for a, b in pairwise(looks)]
    mean = (looks[-1].anonymous - looks[0].anonymous) / evidence.seconds
    return mean > 0 and min(rates) > share * mean


def grown(evidence: Evidence) -> int:
    """Give the bytes that the process added between the first look and the last."""
    return evidence.looks[-1].anonymous - evidence.looks[0].anonymous


def held(evidence: Evidence) -> int:
    """Give the bytes added that containers and large arrays explain."""
    return sum(each.growth for each in evidence.holders) + sum(
        each.last - each.first for each in evidence.buffers if each.kind != "memmap"
    )


def chained(evidence: Evidence) -> int:
    """Count the operations that were added to living graphs, and stayed."""
    return sum(each.nodes[-1] - each.nodes[0] for each in evidence.graphs if chains(each.nodes))


MOST, LEAST = 20_000, 16


def chains(nodes: tuple[int, ...]) -> bool:
    """Tell whether a graph grew from look to look; one that is larger than is counted has done so before."""
    if len(nodes) < 2:
        return False
    rises = [b - a for a, b in pairwise(nodes)]
    return nodes[-1] >= MOST or (min(rises) > 0 and nodes[-1] - nodes[0] >= LEAST * len(rises))
