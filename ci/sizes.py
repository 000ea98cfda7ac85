"""Hold the code to its size targets: short files, short functions, few parameters, plain names."""

import argparse
import ast
import re
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FILE_WARN, FILE_MAX = 400, 500
FUNCTION_MAX = 60
PARAMETERS_MAX = 7
VAGUE = frozenset({"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"})
VAGUE_MODULES = VAGUE - {"base"}  # base.py says a room's contract; a class called Base says nothing

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Finding:
    """Say what breaks a target, and where."""

    path: Path
    line: int
    text: str
    fatal: bool = True

    def __str__(self) -> str:
        """Format it as editors and CI logs expect it."""
        return f"{self.path}:{self.line}: {'' if self.fatal else 'warning: '}{self.text}"


def function_lines(function: Function) -> int:
    """Count the lines of a function, its docstring left out."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function, clean=False) is not None:
        docstring = function.body[0]
        lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
    return lines


def parameters(function: Function) -> int:
    """Count the parameters that can be given by position, self and cls left out."""
    names = [argument.arg for argument in function.args.posonlyargs + function.args.args]
    return len(names[1:] if names[:1] in (["self"], ["cls"]) else names)


def check_functions(path: Path, functions: list[Function]) -> Iterator[Finding]:
    """Find functions that are too long or take too much."""
    for function in functions:
        lines, count = function_lines(function), parameters(function)
        if lines > FUNCTION_MAX:
            yield Finding(path, function.lineno, f"{function.name} has {lines} lines, at most {FUNCTION_MAX}: split it")
        if count > PARAMETERS_MAX:
            text = f"{function.name} has {count} parameters by position, at most {PARAMETERS_MAX}: put a * before some"
            yield Finding(path, function.lineno, text)


def check_names(path: Path, tree: ast.Module) -> Iterator[Finding]:
    """Find names that say nothing; below a folder src, modules and packages also have to be one word."""
    parts = path.with_suffix("").parts
    inner = parts[parts.index("src") + 1 :] if "src" in parts else parts[-1:]
    for word in inner:
        if "src" in parts and not re.fullmatch(r"_?[a-z0-9]+|__[a-z]+__", word):
            yield Finding(path, 1, f"the name {word} is not one lower-case word")
        if word in VAGUE_MODULES:
            yield Finding(path, 1, f"the name {word} says nothing: name the subject")
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for word in re.findall(r"[A-Z][a-z0-9]*", node.name):
                if word.lower() in VAGUE:
                    yield Finding(path, node.lineno, f"class {node.name}: {word} says nothing, name what it is or does")


def check_file(path: Path) -> tuple[list[Finding], list[int]]:
    """Check one file; return what was found and the length of each of its functions."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source, filename=str(path))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    findings = [*check_functions(path, functions), *check_names(path, tree)]
    lines = len(source.splitlines())
    if lines > FILE_WARN:
        text = f"{lines} lines, the target is {FILE_WARN} and the end {FILE_MAX}: is it two subjects?"
        findings.append(Finding(path, 1, text, fatal=lines > FILE_MAX))
    return findings, [function_lines(function) for function in functions]


def main() -> int:
    """Check every Python file below the given paths; return 1 when a target is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, default=[Path("src")], help="files or folders (default: src)")
    paths: list[Path] = parser.parse_args().paths
    files = sorted(file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path]))
    findings, lengths = [], []
    for file in files:
        found, lines = check_file(file)
        findings += found
        lengths += lines
    for finding in findings:
        print(finding)
    if lengths:
        lengths.sort()
        middle, late = statistics.median_low(lengths), lengths[len(lengths) * 9 // 10]
        figures = f"median {middle}, 90th percentile {late}, longest {lengths[-1]} lines"
        print(f"sizes: {len(files)} files, {len(lengths)} functions: {figures}")
    return int(any(finding.fatal for finding in findings))


if __name__ == "__main__":
    sys.exit(main())
