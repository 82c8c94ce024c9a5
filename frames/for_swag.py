"""What swag needs of frames, by the names of swag/query/over_frames.py."""

from frames.chunks import frames_by_chunk
from frames.detection import detect
from frames.detector import Detector
from frames.filling import fill, summarize
from frames.match_query import FRONT as MATCH_COLUMNS
from frames.match_query import MatchQuery, query_from_json
from frames.pictures.plotting import plot
from frames.query import FrameQuery
from frames.specs import Aggregate, Between, Boundary, Delta, Pattern, Session, State, Threshold

__all__ = [
    "MATCH_COLUMNS", "Aggregate", "Between", "Boundary", "Delta", "Detector", "FrameQuery", "MatchQuery", "Pattern",
    "Session", "State", "Threshold", "detect", "fill", "frames_by_chunk", "plot", "query_from_json", "summarize",
]  # fmt: skip
