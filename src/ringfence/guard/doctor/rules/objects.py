"""Python objects that become more and more."""

from __future__ import annotations

from ringfence.guard.doctor.evidence import Evidence, Holder
from ringfence.guard.doctor.finding import Finding
from ringfence.guard.doctor.rules.graph import graph
from ringfence.guard.doctor.rules.growth import grown, held, steady
from ringfence.guard.doctor.rules.held import allocated, holders, leak

KEPT = "Bound it (a deque with maxlen, a running mean, a file), or empty it where an episode or an epoch ends."
CREATED = """Look a missing key up with `.get`, and make keys coarse enough to come again: reading a defaultdict \
creates an entry."""
CACHED = "Give the cache a maxsize, or leave it out where arguments do not come again."
HIDDEN = """No variable of the script leads to them: look at the lines above, at libraries that keep a history, at \
reference cycles."""
OBJECT = 200  # bytes of an object and what it refers to alone, at the least
SHARE = 0.3


def objects(evidence: Evidence) -> list[Finding]:
    """Find containers of plain objects that only grow, and types that become more with no container to show."""
    found = [
        leak(evidence, each, "objects", f"Python objects are kept in {each.path}", _advice(each))
        for each in holders(evidence, "objects")
    ]
    return found or _hidden(evidence)


def _advice(holder: Holder) -> str:
    if holder.bound_name == "maxsize":
        return CACHED
    return {"defaultdict": CREATED, "_lru_cache_wrapper": CACHED}.get(holder.kind, KEPT)


def _hidden(evidence: Evidence) -> list[Finding]:
    rest = grown(evidence) - held(evidence)
    more = {name: last - first for name, (first, last) in evidence.types.items()}
    nbytes = OBJECT * sum(more.values())
    if graph(evidence) or not more or not steady(evidence) or nbytes < SHARE * rest or rest < SHARE * grown(evidence):
        return []
    names = sorted(more, key=lambda name: -more[name])[:4]
    seen = [f"{name}: {evidence.types[name][0]:,} → {evidence.types[name][1]:,} objects" for name in names]
    title = f"objects of type {names[0]} become more and more"
    per_step = rest / evidence.span if evidence.unit != "second" else 0.0
    seen += allocated(evidence)
    return [Finding("objects", "leak", title, per_step, rest / evidence.seconds, tuple(seen), HIDDEN, rest)]
