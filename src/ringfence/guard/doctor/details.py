"""What a growing object holds, who holds it, and whether there is an end to it."""

from __future__ import annotations

import queue
from collections import Counter, deque
from typing import Any

import numpy as np

from ringfence.guard.doctor.branches import CACHE, newest
from ringfence.guard.doctor.code import Code
from ringfence.guard.doctor.evidence import Holder
from ringfence.guard.doctor.holders import Grown
from ringfence.guard.doctor.look import Look, key_of, length
from ringfence.guard.doctor.walk import COLUMNS, Walk

MANY = 5  # steps inside of an entry that make it an episode
SELDOM = 0.5  # entries a step, above which they are no episodes


def detail(grown: Grown, looks: list[Look], walk: Walk, code: Code, environments: set[type]) -> Holder:
    """Describe a holder."""
    thing = walk.things[grown.row]
    above = walk.ancestors(grown.row)
    figures = dict(zip(COLUMNS, walk.figures[grown.row], strict=True))
    count, added = length(thing), _added(thing, looks)
    entries = max(1, count or 1)
    bound, bound_name = _bound(thing, grown.row, walk, code)
    environment = next((row for row in above if type(walk.things[row]) in environments), None)
    elements = _elements(thing)
    nbytes = max(1.0, figures["nbytes"])
    return Holder(
        path=walk.path(grown.row),
        kind=type(thing).__name__,
        first=int(grown.first),
        last=int(grown.last),
        length=count,
        added=added,
        bound=bound,
        bound_name=bound_name,
        inside="" if environment is None else type(walk.things[environment]).__name__,
        wrapper=environment is not None and _wraps(walk.things[environment]),
        element=describe(elements[0]) if elements else "",
        infos=figures["infos"] / entries,
        frames=figures["pictures"] / nbytes,
        arrays=figures["arrays"] / nbytes,
        pinned=figures["pinned"] / entries,
        episodes=0 < added < SELDOM and bool(elements) and all(_steps_in(each) >= MANY for each in elements[:4]),
        emptied_by=code.empties(walk.labels[grown.row]),
        graphs=figures["graphs"] / entries,
        parts=grown.parts,
        waiting=any(isinstance(walk.things[row], queue.Queue) for row in above[:2]),
    )


def describe(thing: Any) -> str:
    """Say in a few words what an object is."""
    if isinstance(thing, np.ndarray):
        return f"{thing.dtype} array {thing.shape}"
    if hasattr(thing, "grad_fn") and hasattr(thing, "shape"):
        graph = ", with its graph" if thing.grad_fn is not None else ""
        return f"tensor {tuple(thing.shape)}{graph}"
    if isinstance(thing, dict) and all(isinstance(key, str) for key in thing):
        return f"dict with {', '.join(list(thing)[:6])}" if thing else "empty dict"
    if isinstance(thing, tuple | list) and thing:
        kinds = Counter(describe(each) if isinstance(each, np.ndarray) else type(each).__name__ for each in thing[:16])
        return f"{type(thing).__name__} of {len(thing)}: {', '.join(list(kinds)[:4])}"
    return type(thing).__name__


def _elements(thing: Any) -> list[Any]:
    try:
        if isinstance(thing, dict):
            return newest(dict.values(thing), len(thing))
        if isinstance(thing, list | tuple | deque):
            return newest(thing, len(thing))
    except RuntimeError:  # it changed
        pass
    return []


def _added(thing: Any, looks: list[Look]) -> float:
    counts = [look.lengths.get(key_of(thing)) for look in looks]
    steps = looks[-1].sample.steps - looks[0].sample.steps
    if counts[0] is None or counts[-1] is None or not steps:
        return 0.0
    return (counts[-1] - counts[0]) / steps


def _steps_in(element: Any) -> int:
    """Count the steps that an entry holds, if it is an episode: the length of the longest sequence in it."""
    if isinstance(element, list | tuple):
        return (
            len(element)
            if (element and isinstance(element[0], list | tuple | dict)) or len(element) > 32
            else _longest(element)
        )
    if isinstance(element, dict):
        return _longest(element.values())
    return _longest(vars(element).values()) if hasattr(element, "__dict__") else 0


def _longest(values: Any) -> int:
    """Find the longest sequence; arrays count where two or more begin with the same axis, as fields of steps do."""
    lists = [len(each) for each in values if isinstance(each, list | tuple | deque)]
    arrays = Counter(each.shape[0] for each in values if isinstance(each, np.ndarray) and each.ndim)
    return max([*lists, *(size for size, count in arrays.items() if count >= 2), 0])


def _wraps(thing: Any) -> bool:
    return hasattr(type(thing), "unwrapped") and "env" in getattr(thing, "__dict__", {})


def _bound(thing: Any, row: int, walk: Walk, code: Code) -> tuple[int | None, str]:
    """Find the number of entries that it will never exceed."""
    if isinstance(thing, deque):
        if thing.maxlen is not None:
            return thing.maxlen, "maxlen"
        parent = walk.things[walk.parents[row]] if walk.parents[row] >= 0 else None
        if isinstance(parent, queue.Queue) and parent.maxsize > 0:
            return parent.maxsize, "maxsize"
    if type(thing) is CACHE:
        size = thing.cache_info().maxsize
        return (size, "maxsize") if size is not None else (None, "")
    cached = walk.things[walk.parents[row]] if walk.parents[row] >= 0 else None
    if type(cached) is CACHE:
        size = cached.cache_info().maxsize
        return (size, "maxsize") if size is not None else (None, "")
    owner = cached
    names = getattr(owner, "__dict__", None)
    if isinstance(thing, list | dict) and isinstance(names, dict):
        numbers = {name: value for name, value in names.items() if type(value) is int and value >= len(thing)}
        name = code.caps(type(owner), walk.labels[row].removeprefix("."), numbers)
        if name:
            return numbers[name], f"self.{name}"
    return None, ""
