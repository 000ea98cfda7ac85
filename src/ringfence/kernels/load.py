"""Whether the compiled loops are there; ``RINGFENCE_PURE=1`` in the environment leaves them out."""

from __future__ import annotations

import os
from typing import Any

native: Any = None
if os.environ.get("RINGFENCE_PURE", "") in ("", "0"):
    try:
        from ringfence.kernels import _native as native  # type: ignore[no-redef]
    except ImportError:  # no compiler when it was installed: NumPy serves
        native = None
