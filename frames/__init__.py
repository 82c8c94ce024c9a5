"""frames: data-driven windows. Segments of a stream that its own values delimit, found, filled and summarised."""

from frames.detection import detect
from frames.specs import Aggregate, Boundary, Delta, Threshold

__all__ = ["Aggregate", "Boundary", "Delta", "Threshold", "detect"]
