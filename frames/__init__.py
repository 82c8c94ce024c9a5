"""frames: data-driven windows. Segments of a stream that its own values delimit, found, filled and summarised.

Here are the public functions and classes, a module each (detection: stored events, detector: events that arrive,
filling and filler: events of any stream in frames, query: what is said of each frame, metrics, plotting, theory), the
tables that frames are handed out in (tables) and how state is saved (state), which rooms use too. The rooms, each of
which needs only those above it:

specs       what a frame is: the kinds of frames as frozen values
scans       how the frames of each kind are found, in one pass over events
finding     from events to frames: reading, ordering, waiting, numbering, what is remembered between punctuations
owning      which events are a frame's own: fingerprints of streams, frames and events on one clock
spark       the same over Spark's DataFrames, stored (batch) and streaming (streams)
"""

from frames import metrics, theory
from frames.detection import detect
from frames.detector import Detector
from frames.filler import Filler
from frames.filling import fill, summarize
from frames.plotting import plot
from frames.query import FrameQuery
from frames.specs import Aggregate, Boundary, Delta, Threshold
from frames.tables import united

__all__ = [
    "Aggregate", "Boundary", "Delta", "Detector", "Filler", "FrameQuery", "Threshold", "detect", "fill", "metrics",
    "plot", "summarize", "theory", "united",
]  # fmt: skip
