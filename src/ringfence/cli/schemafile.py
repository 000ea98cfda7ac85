"""A schema in a JSON file: which file, which key and what is wrong with it, where something is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ringfence.errors import SchemaError
from ringfence.schema import Schema
from ringfence.schema.described import described


def read(path: Path) -> Schema:
    """Read a schema.

    Raises:
        SchemaError: The file cannot be read or is no JSON, a key is missing, unknown or there twice, or a value is not
            what a field takes. The text names the file and the key.
    """
    try:
        return described(json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_once))
    except OSError as error:
        raise SchemaError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise SchemaError(f"{path}: is no text in UTF-8") from error
    except json.JSONDecodeError as error:
        raise SchemaError(f"{path}: is no JSON ({error.msg} in line {error.lineno}, column {error.colno})") from error
    except RecursionError as error:
        raise SchemaError(f"{path}: is nested too deeply") from error
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that is there twice, of which JSON would silently take the last."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise SchemaError(f"{key}: is there twice in one object")
        found[key] = value
    return found
