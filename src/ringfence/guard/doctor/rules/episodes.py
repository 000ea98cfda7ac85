"""Episodes that are all kept, or one that never ends."""

from __future__ import annotations

from ringfence.guard.doctor.evidence import Evidence
from ringfence.guard.doctor.finding import Finding
from ringfence.guard.doctor.rules.held import holders, leak

ALL = """Keep a bounded number of steps rather than episodes: a ring of transitions (ringfence.Replay), or a deque \
with maxlen."""
ENDLESS = "End the episode on `terminated or truncated`: most environments end by truncation alone."


def episodes(evidence: Evidence) -> list[Finding]:
    """Find lists of whole episodes, and lists of one episode that the ends of episodes do not empty."""
    found = []
    for each in holders(evidence, "episodes"):
        if each.episodes:
            found.append(leak(evidence, each, "episodes", f"every episode since the first is kept in {each.path}", ALL))
        else:
            title = f"{each.path} is to hold one episode, and is not emptied when episodes end"
            found.append(leak(evidence, each, "episodes", title, ENDLESS))
    return found
