"""Hold the front door to its promise: few public names, and each with a docstring of its own."""

import argparse
import importlib
import sys

NAMES_MAX = 30


def missing_docstring(name: str, value: object) -> bool:
    """Tell whether a public object lacks a docstring that somebody wrote."""
    if not (isinstance(value, type) or callable(value)):
        return False  # a constant has the docstring of its type
    text = (value.__doc__ or "").strip()
    return not text or text.startswith(f"{name}(")  # a dataclass without docstring gets its signature as one


def check(package: str) -> list[str]:
    """Return what is wrong with the names that a package exports."""
    module = importlib.import_module(package)
    names: list[str] = list(module.__all__)
    problems = [
        f"{package}.{name} is listed in __all__ and does not exist" for name in names if not hasattr(module, name)
    ]
    problems += [
        f"{package}.{name} is listed twice" for name in sorted({name for name in names if names.count(name) > 1})
    ]
    if len(names) > NAMES_MAX:
        problems.append(f"{package} exports {len(names)} names, at most {NAMES_MAX}: reach the others by their module")
    problems += [
        f"{package}.{name} has no docstring" for name in names if missing_docstring(name, getattr(module, name, ...))
    ]
    return problems


def main() -> int:
    """Check the package; return 1 when a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package", nargs="?", default="ringfence", help="importable package (default: ringfence)")
    package: str = parser.parse_args().package
    problems = check(package)
    print("\n".join(problems) or f"exports: {len(importlib.import_module(package).__all__)} names, each documented")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
