"""Autograd graphs that hang on living tensors, counted operation by operation."""

from __future__ import annotations

from typing import Any

MOST = 20_000  # operations that are counted


def nodes(tensor: Any, seen: set[int]) -> tuple[int, str]:
    """Count the operations that hang on a tensor and were not seen before; name the last one."""
    first = getattr(tensor, "grad_fn", None)
    if first is None:
        return 0, ""
    todo, alive, count = [first], [], 0
    while todo and count < MOST:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        alive.append(node)  # an operation's object is made anew when nobody holds it, and its id with it
        count += 1
        todo.extend(each for each, _ in node.next_functions if each is not None)
    return count, type(first).__name__
