"""Whether the compiled loops are there; ``RINGFENCE_PURE=1`` in the environment leaves them out."""

from __future__ import annotations

import importlib
import os
from typing import Any


def _load() -> Any:
    if os.environ.get("RINGFENCE_PURE", "") not in ("", "0"):
        return None
    try:
        return importlib.import_module("ringfence.kernels._native")
    except ImportError:  # no compiler when it was installed: NumPy serves
        return None


native: Any = _load()
