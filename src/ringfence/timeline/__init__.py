"""Which steps exist: streams, absolute time, episode ends, legal windows."""

from ringfence.timeline.timeline import Anchors, Ints, Look, Timeline
from ringfence.timeline.wide import WideWriter
from ringfence.timeline.window import Boundary, Window
from ringfence.timeline.writer import Writer

__all__ = ["Anchors", "Boundary", "Ints", "Look", "Timeline", "WideWriter", "Window", "Writer"]
