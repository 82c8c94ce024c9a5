"""What a detector and those who follow it tell each other: batches and frames as they come, and up to when all events
have come.
"""

from typing import NamedTuple, Protocol

import numpy as np

from frames.scans.scan import Scan
from swag.durable.state import State
from swag.tables.waiting import TimedRows


class Closed(NamedTuple):
    """All events have come: up to `until` of the keys that have some now, and of `key`; up to `upto` of all keys."""

    until: int
    upto: int
    key: int | None = None


class FrameFollower(Protocol):
    """Who follows the frames of a detector batch by batch, as what is said of them grows (frames/continuous)."""

    may_fail: bool  # may a batch be refused half way?

    def begin(self, rows: TimedRows, scan: Scan) -> None:
        """Rows that are about to be scanned."""

    def cut(self, scan: Scan, carried: int, scanned: TimedRows) -> None:
        """They were scanned, maybe with some of before (`scanned`); `carried` frames were there before."""

    def join(self, keys: np.ndarray, scan: Scan) -> None:
        """Frames of these keys end, too, as time has passed; what they remember says nothing of that yet."""

    def report(self, frames: np.ndarray, chosen: np.ndarray, keyed: np.ndarray) -> None:
        """Frames in these slots come out."""

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on."""

    def state(self) -> State:
        """All that it knows."""

    def restore(self, state: State) -> None:
        """It is as it was."""
