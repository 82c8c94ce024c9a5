"""What swag needs of frames, by the names of swag/query/over_frames.py."""

from frames.chunks import frames_by_chunk
from frames.detection import detect
from frames.detector import Detector
from frames.filling import fill, summarize
from frames.plotting import plot
from frames.query import FrameQuery
from frames.specs import Aggregate, Between, Boundary, Delta, Session, State, Threshold

__all__ = [
    "Aggregate", "Between", "Boundary", "Delta", "Detector", "FrameQuery", "Session", "State", "Threshold", "detect",
    "fill", "frames_by_chunk", "plot", "summarize",
]  # fmt: skip
