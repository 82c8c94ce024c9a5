"""What swag needs of frames, by the names of swag/query/over_frames.py."""

from frames.chunks import frames_by_chunk
from frames.detection import detect
from frames.plotting import plot
from frames.query import FrameQuery
from frames.specs import Aggregate, Boundary, Delta, Threshold

__all__ = ["Aggregate", "Boundary", "Delta", "FrameQuery", "Threshold", "detect", "frames_by_chunk", "plot"]
