"""What was seen while a script ran: plain values, which travel as JSON from the script's process to whoever judges."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Sample:
    """The memory of the script's process at one moment, in bytes."""

    seconds: float
    """Since the process was watched."""
    steps: int
    anonymous: int
    """What watching itself has cost is taken off."""
    file: int
    """Pages of mapped files: the kernel may take them back."""
    shared: int
    heap_used: int | None = None
    """What malloc has handed out; None where the C library does not tell."""
    heap_held: int | None = None
    """What malloc has from the system, used or not."""
    children: int = 0
    """Private memory of all processes below it."""
    device_used: int = 0
    device_held: int = 0

    @property
    def resident(self) -> int:
        """Count the pages that the process has in memory."""
        return self.anonymous + self.file + self.shared


@dataclass(frozen=True, slots=True)
class Holder:
    """Something that lived through the whole watch and whose contents grew."""

    path: str
    """How to reach it: `agent.buffer.steps`, `main().infos`."""
    kind: str
    """Its type's name."""
    first: int
    """Bytes below it at the first look, estimated from samples where it is large."""
    last: int
    length: int | None = None
    """Entries at the last look."""
    added: float = 0
    """Entries a step."""
    bound: int | None = None
    """Entries it will never exceed, where there is such a number."""
    bound_name: str = ""
    """What says so: `maxlen`, `self.capacity`."""
    inside: str = ""
    """The environment or the wrapper that holds it."""
    wrapper: bool = False
    element: str = ""
    """What its entries are, in words."""
    infos: float = 0
    """Share of the entries that are, or hold, the info dict of a step."""
    frames: float = 0
    """Share of the bytes that are rendered pictures."""
    arrays: float = 0
    """Share of the bytes that are arrays or tensors."""
    pinned: float = 0
    """Bytes an entry that only a view keeps alive: its base is larger than what it shows."""
    episodes: bool = False
    """Its entries come once an episode and hold many steps each; or it is a list that code means to empty."""
    emptied_by: str = ""
    """The line that would empty it and has not done so."""
    graphs: float = 0
    """Share of the entries that hold a tensor with its graph."""
    parts: int = 1
    """Containers inside that grow alike."""
    waiting: bool = False
    """It is a queue between threads."""

    @property
    def growth(self) -> int:
        """Bytes added between the first look and the last."""
        return self.last - self.first


@dataclass(frozen=True, slots=True)
class Buffer:
    """A large array or tensor, and how much of it lies in memory."""

    path: str
    kind: str
    """array, tensor or memmap."""
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    first: int
    """Bytes of it that were resident at the first look."""
    last: int
    narrower: str = ""
    """A smaller dtype that holds every value looked at."""
    stacked: int = 1
    """How many neighbours along its second axis repeat the row before: a stack of so many."""
    repeats: str = ""
    """The path of an array whose rows are this one's, one later."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A tensor that is still part of an autograd graph, and how many operations hang on it at each look."""

    path: str
    nodes: tuple[int, ...]
    operation: str = ""


@dataclass(frozen=True, slots=True)
class Child:
    """A process below the script's."""

    pid: int
    name: str
    role: str
    """loader for a worker of a DataLoader, process for any other."""
    resident: tuple[int, ...]
    """At each look."""
    private: tuple[int, ...]
    holders: tuple[Holder, ...] = ()
    """What grew inside it, where it could be looked into."""


@dataclass(frozen=True, slots=True)
class Alone:
    """What the environment does when nothing but it runs."""

    name: str
    steps: int
    growth: int
    late: int
    """Growth in the second half of those steps."""


@dataclass(frozen=True, slots=True)
class Line:
    """Memory allocated in one line of the script, and still held when looked at."""

    where: str
    nbytes: int
    count: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that was seen."""

    command: tuple[str, ...] = ()
    unit: str = "second"
    """What `steps` counts: step of an environment, update of an optimizer, or second."""
    ended: str = "stopped"
    """stopped by the doctor, finished by itself, or the error it ended with."""
    resets: int = 0
    samples: tuple[Sample, ...] = ()
    looks: tuple[Sample, ...] = ()
    """The samples at which the heap was looked through."""
    holders: tuple[Holder, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    graphs: tuple[Graph, ...] = ()
    children: tuple[Child, ...] = ()
    mapped: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Resident bytes of mapped files by name, first and last."""
    trimmed: int | None = None
    """Bytes that malloc gave back when asked at the end, after it had been asked at the beginning too."""
    alone: Alone | None = None
    lines: tuple[Line, ...] = ()
    types: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Objects by type that the collector knows, first and last, where they became many more."""
    limit: int = 0
    limit_rule: str = ""
    used: int = 0
    """Bytes counted against the limit."""
    host: int = 0
    """Bytes of memory the machine has."""

    @property
    def span(self) -> float:
        """Tell how many steps lie between the first look and the last."""
        return max(self.looks[-1].steps - self.looks[0].steps, 1e-9) if len(self.looks) > 1 else 1e-9

    @property
    def seconds(self) -> float:
        """Tell how many seconds lie between the first look and the last."""
        return max(self.looks[-1].seconds - self.looks[0].seconds, 1e-9) if len(self.looks) > 1 else 1e-9

    def to_json(self) -> str:
        """Write it all as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Evidence:
        """Read what `to_json` wrote."""
        return _revived(cls, json.loads(text))

    @classmethod
    def read(cls, path: Path) -> Evidence:
        """Read it from a file."""
        return cls.from_json(path.read_text(encoding="utf-8"))


NESTED: dict[str, type] = {
    "samples": Sample,
    "looks": Sample,
    "holders": Holder,
    "buffers": Buffer,
    "graphs": Graph,
    "children": Child,
    "alone": Alone,
    "lines": Line,
}


def _revived(cls: type, values: dict[str, Any]) -> Any:
    """Build a dataclass from plain values: lists are tuples again, and nested ones of their class."""
    known = {each.name for each in fields(cls)}
    return cls(**{name: _value(name, value) for name, value in values.items() if name in known})


def _value(name: str, value: Any) -> Any:
    if isinstance(value, list):
        nested = NESTED.get(name)
        return tuple(_revived(nested, each) if nested else _value("", each) for each in value)
    if isinstance(value, dict):
        nested = NESTED.get(name)
        return _revived(nested, value) if nested else {key: _value("", each) for key, each in value.items()}
    return value
