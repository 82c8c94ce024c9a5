"""frames: data-driven windows. Segments of a stream that its own values delimit, found, filled and summarised."""

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
