"""What the script's source says about a container: which line would empty it, and which number is never exceeded."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterable, Iterator
from pathlib import Path

DROPPING = frozenset({"clear", "pop", "popleft", "popitem"})


class Code:
    """Read the script's files once, when asked."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = tuple(paths)
        self._trees: dict[str, ast.AST] | None = None

    def empties(self, label: str) -> str:
        """Name the line that empties what has this name, outside of where it is made."""
        name = _name(label)
        if not name:
            return ""
        for path, tree in self._read().items():
            for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
                if function.name == "__init__":
                    continue
                for line in _emptying(function, name):
                    return f"{Path(path).name}:{line}"
        return ""

    def caps(self, cls: type, name: str, numbers: dict[str, int]) -> str:
        """Name the number, of those that the object has, that one of its methods holds the container's length to."""
        for method in vars(cls).values():
            if isinstance(method, types.FunctionType) and method.__name__ != "__init__":
                names = method.__code__.co_names
                if name in names and "len" in names:
                    for number in numbers:
                        if number in names:
                            return number
        return ""

    def _read(self) -> dict[str, ast.AST]:
        if self._trees is None:
            self._trees = {}
            for path in self._paths:
                try:
                    self._trees[path] = ast.parse(Path(path).read_text(encoding="utf-8"))
                except (OSError, ValueError, SyntaxError):
                    continue
        return self._trees


def _name(label: str) -> str:
    last = label.rpartition(".")[2].strip()
    return last if last.isidentifier() else ""


def _emptying(function: ast.FunctionDef, name: str) -> Iterator[int]:
    """Give the lines of `x.clear()` and, inside of a branch, of `x = []`."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "clear":
            if _is(node.func.value, name):
                yield node.lineno
        elif isinstance(node, ast.If):
            for inner in node.body:
                if (
                    isinstance(inner, ast.Assign)
                    and _empty(inner.value)
                    and any(_is(each, name) for each in inner.targets)
                ):
                    yield inner.lineno


def _is(node: ast.AST, name: str) -> bool:
    return (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.Attribute) and node.attr == name)


def _empty(node: ast.AST) -> bool:
    if isinstance(node, ast.List | ast.Dict):
        return not (node.elts if isinstance(node, ast.List) else node.keys)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("list", "dict", "deque")
