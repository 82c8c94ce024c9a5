"""Event time on both sides: `ts` as engines count it, and Spark's watermark, which is in milliseconds since 1970.

An integer ts is one millisecond per unit there, moved far from 0, where Spark's watermark begins. Spark's promise is
the engines' own: with a watermark of w, no event with ts <= w is still to come.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from swag.errors import BadQuery, BadType
from swag.tables.times.durations import Duration, in_units, nanoseconds

INTEGER_SHIFT = 1 << 52
TIME = pa.timestamp("us", tz="UTC")  # the column that Spark's watermark follows
_WORDS = {
    "nanosecond": "ns", "microsecond": "us", "millisecond": "ms", "second": "s", "sec": "s", "minute": "m", "min": "m",
    "hour": "h", "day": "d",
}  # fmt: skip
_SPOKEN = re.compile(r"\s*(?:interval\s+)?(\d+(?:\.\d+)?)\s*([a-z]+?)s?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class EventTime:
    """integer: ts is a number of any unit; otherwise a timestamp, in microseconds as everywhere in Spark."""

    integer: bool

    @property
    def type(self) -> pa.DataType:
        """The type of ts within shards."""
        return pa.int64() if self.integer else pa.timestamp("us")

    @property
    def unit(self) -> str | None:
        return None if self.integer else "us"

    def normal(self, array: pa.ChunkedArray) -> pa.ChunkedArray:
        """The ts column as shards keep it: without a zone, which a session may change."""
        return array.cast(pa.int64()).cast(self.type) if not self.integer else array.cast(pa.int64())

    def spark_time(self, instant: int) -> int:
        """An instant as Spark's timestamp, in microseconds."""
        if not self.integer:
            return instant
        if abs(instant) >= INTEGER_SHIFT:
            raise BadType(f"ts {instant} is beyond 2^52, where Spark can not follow.", "cast ts to a timestamp")
        return (instant + INTEGER_SHIFT) * 1000

    def from_watermark(self, milliseconds: int) -> int | None:
        """Up to when nothing more is to come; None before the first watermark."""
        if milliseconds <= 0:
            return None
        return milliseconds - INTEGER_SHIFT if self.integer else milliseconds * 1000

    def timer(self, instant: int) -> int:
        """The first watermark that passes an instant."""
        return instant + INTEGER_SHIFT if self.integer else -(-instant // 1000)

    def delay(self, lateness: Duration | None) -> int:
        """Lateness as Spark wants it, in milliseconds."""
        spoken = ours(lateness) if isinstance(lateness, str) else lateness
        if spoken is None:
            return 0
        if isinstance(spoken, bool | float):
            raise BadQuery(f"lateness={lateness!r} is no duration.", 'lateness="10 seconds"')
        if self.integer:
            return in_units(spoken, None)
        ns = int(spoken) * 1000 if isinstance(spoken, int | np.integer) else nanoseconds(spoken)
        if ns % 10**6 or ns < 0:
            raise BadQuery(
                f"lateness={lateness!r}: Spark's watermark is in whole milliseconds.", 'lateness="10 seconds"'
            )
        return ns // 10**6


def ours(duration: str) -> str:
    """ "10 seconds", as Spark says it, is "10s" here."""
    match = _SPOKEN.fullmatch(duration)
    word = match[2].lower() if match else ""
    return f"{match[1]}{_WORDS[word]}" if match and word in _WORDS else duration


def instants_of(array: Any) -> np.ndarray:
    """A normal ts column as int64."""
    joined = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return np.asarray(joined.cast(pa.int64()))
