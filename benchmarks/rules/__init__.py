"""What a replay buffer should keep: one function a rule, whose docstring's first line is the rule."""

from benchmarks.rules import chance, memory, refusals, transitions, windows
from benchmarks.rules.base import Rule, Verdict

RULES: dict[str, Rule] = {
    rule.__name__: rule for part in (transitions, windows, refusals, chance, memory) for rule in part.RULES
}
"""In the order of the table."""


def statement(rule: Rule) -> str:
    """Give a rule in words."""
    return (rule.__doc__ or "").splitlines()[0]


__all__ = ["RULES", "Rule", "Verdict", "statement"]
