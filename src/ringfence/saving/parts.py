"""What files a segment has: one for the records, one for each big field, and the same of final observations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ringfence.saving.log import Segment
from ringfence.schema import Layout


def shapes(segment: Segment, layout: Layout) -> Iterator[tuple[str, np.dtype[Any], tuple[int, ...]]]:
    """Give name, dtype and shape of each part that has anything in it."""
    count, finals = segment.count, segment.finals_count
    if count:
        yield "records", layout.record, (count,)
        for at, leaf in enumerate(layout.columns):
            yield f"column {at}", leaf.field.kept, (count, *leaf.field.shape)
    if finals and layout.obs_nbytes:
        yield "finals", layout.small_obs, (finals,)
    for at, leaf in enumerate(layout.columns):
        if finals and leaf.role == "obs":
            yield f"finals {at}", leaf.field.kept, (finals, *leaf.field.shape)
