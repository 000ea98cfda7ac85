"""What hangs on an object, with the name that leads there: the doctor's way through a heap.

Large containers are sampled: 64 entries spread over them and the last 16, each of which stands for its share of all.
Modules, code and the classes of libraries end the walk: all of the interpreter hangs on them.
"""

from __future__ import annotations

import functools
import gc
import itertools
import types
import weakref
from collections import deque
from collections.abc import Collection, Iterator
from typing import Any

LARGE = 128  # entries, above which a container is sampled
SPREAD, NEWEST = 64, 16

Branch = tuple[str, Any, float]
"""The step that leads there, what is there, and for how many like it that stands."""

CLOSED = (
    types.ModuleType,
    types.CodeType,
    types.BuiltinFunctionType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    weakref.ref,
    weakref.ProxyType,
    property,
)
LEAVES = frozenset({int, float, complex, str, bytes, bytearray, bool, type(None), type(Ellipsis), range, slice})
CACHE = type(functools.lru_cache(lambda: None))


def branches(thing: Any) -> Iterator[Branch]:
    """Give what hangs on an object."""
    cls = type(thing)
    if cls in LEAVES or issubclass(cls, CLOSED):
        return
    if issubclass(cls, dict):
        yield from _entries(thing)
    elif issubclass(cls, (list, tuple, set, frozenset, deque)):
        yield from _items(thing)
    elif issubclass(cls, (types.FunctionType, types.MethodType, functools.partial, types.CellType)):
        yield from _callable(thing)
        return
    elif cls is CACHE:
        for each in gc.get_referents(thing):
            if type(each) is dict:
                yield "", each, 1.0
        return
    elif issubclass(cls, BaseException):
        yield ".__traceback__", thing.__traceback__, 1.0
        yield ".__context__", thing.__context__, 1.0
        yield ".args", thing.args, 1.0
    elif issubclass(cls, (types.TracebackType, types.FrameType, types.GeneratorType, types.CoroutineType)):
        for each in gc.get_referents(thing):
            yield ".tb_next" if isinstance(each, types.TracebackType) else " frame", each, 1.0
        return
    yield from _attributes(thing, cls)


def class_branches(cls: type) -> Iterator[Branch]:
    """Give what hangs on a class of the script: what its methods share."""
    for name, value in tuple(vars(cls).items()):
        if not name.startswith("__") or name == "__init__":
            yield f".{name}", value.__func__ if isinstance(value, staticmethod | classmethod) else value, 1.0


def _attributes(thing: Any, cls: type) -> Iterator[Branch]:
    try:
        names = object.__getattribute__(thing, "__dict__")
    except (AttributeError, TypeError):
        names = None
    if isinstance(names, dict):
        for name, value in tuple(names.items()):
            yield f".{name}", value, 1.0
    for owner in cls.__mro__:
        for name in _slots(owner):
            try:
                yield f".{name}", object.__getattribute__(thing, name), 1.0
            except (AttributeError, TypeError):
                continue
    if names is None and not hasattr(cls, "__slots__") and not issubclass(cls, Collection) and gc.is_tracked(thing):
        for each in gc.get_referents(thing):
            if not isinstance(each, type):
                yield "", each, 1.0


def _slots(owner: type) -> tuple[str, ...]:
    named = vars(owner).get("__slots__", ())
    named = (named,) if isinstance(named, str) else tuple(named)
    return tuple(name for name in named if name not in ("__dict__", "__weakref__") and not name.startswith("__"))


def _callable(thing: Any) -> Iterator[Branch]:
    cls = type(thing)
    if issubclass(cls, types.CellType):
        try:
            yield "", thing.cell_contents, 1.0
        except ValueError:  # empty
            return
    elif issubclass(cls, types.MethodType):
        yield ".__self__", thing.__self__, 1.0
    elif issubclass(cls, functools.partial):
        yield ".args", thing.args, 1.0
        yield ".keywords", thing.keywords, 1.0
        yield ".func", thing.func, 1.0
    else:
        for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=False):
            yield f" closure {name}", cell, 1.0
        yield " defaults", thing.__defaults__, 1.0
        yield " defaults", thing.__kwdefaults__, 1.0
        for name, value in tuple(vars(thing).items()):
            yield f".{name}", value, 1.0


def _entries(thing: dict[Any, Any]) -> Iterator[Branch]:
    pairs, share = _sampled(dict.items(thing), len(thing), pairs=True)
    for key, value in pairs:
        yield "key", key, share
        yield (f"[{key!r}]" if type(key) in (str, int) else "[...]"), value, share


def _items(thing: Any) -> Iterator[Branch]:
    entries, share = _sampled(thing, len(thing))
    for number, value in enumerate(entries):
        yield (f"[{number}]" if share == 1.0 else "[...]"), value, share


def _sampled(things: Any, count: int, *, pairs: bool = False) -> tuple[list[Any], float]:
    """Take all entries, or some of them; copies are made in C, so that no other thread comes between."""
    for _ in range(3):
        try:
            if count <= LARGE:
                return list(things), 1.0
            taken = list(itertools.islice(things, 0, count - NEWEST, max(1, count // SPREAD)))
            taken += newest(things, count)
        except RuntimeError:  # it changed all the same
            continue
        distinct = len({id(each[1] if pairs else each) for each in taken})
        return taken, count / len(taken) if distinct > len(taken) // 2 else 1.0
    return [], 1.0


def newest(things: Any, count: int) -> list[Any]:
    """Give the last entries of a container that has an order, the last ones of an iteration otherwise."""
    try:
        return list(itertools.islice(reversed(things), NEWEST))
    except TypeError:
        return list(itertools.islice(things, max(0, count - NEWEST), None))
