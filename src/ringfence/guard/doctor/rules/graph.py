"""Autograd graphs that chain: each update hangs on the one before."""

from __future__ import annotations

from ringfence.guard.doctor.evidence import Evidence
from ringfence.guard.doctor.finding import Finding
from ringfence.guard.doctor.rules.growth import GRAPH_NODE, chained, chains, grown, held
from ringfence.guard.doctor.rules.held import holders, leak

CHAIN = """Cut the tensor off where it is carried on: the update of a target network or of a running figure belongs \
under `torch.no_grad()` (ringfence.integrations.torch.polyak_ does so), a sum of losses takes `loss.item()`, a hidden \
state `hidden.detach()`."""
KEPT = """Store `tensor.detach()`, or the plain number or array: an entry that has its graph keeps everything it was \
computed from."""
SHOWN = 4


def graph(evidence: Evidence) -> list[Finding]:
    """Find graphs that grow, and containers of tensors that have theirs."""
    found = [
        leak(evidence, each, "graph", f"tensors are kept with their autograd graphs in {each.path}", KEPT)
        for each in holders(evidence, "graph")
    ]
    chain = [each for each in evidence.graphs if chains(each.nodes)]
    if chain:
        nbytes = max(grown(evidence) - held(evidence), GRAPH_NODE * chained(evidence), 0)
        names = ", ".join(each.path for each in chain[:SHOWN])
        seen = [
            f"{each.path} ends a graph of {_counts(each.nodes)} operations ({each.operation})" for each in chain[:SHOWN]
        ]
        per_step = nbytes / evidence.span if evidence.unit != "second" else 0.0
        title = f"an autograd graph grows without an end: {names} hangs on all updates before"
        found.append(Finding("graph", "leak", title, per_step, nbytes / evidence.seconds, tuple(seen), CHAIN, nbytes))
    return found


def _counts(nodes: tuple[int, ...]) -> str:
    return " → ".join(f"{count:,}" for count in nodes)
