"""The same integers as times of any type: what a stream's `ts` may be."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa

TYPES = {
    "integer": pa.int64(),
    "seconds": pa.timestamp("s"),
    "milliseconds": pa.timestamp("ms", "UTC"),
    "New York": pa.timestamp("us", "America/New_York"),
    "days": pa.date32(),
}

UNITS = {
    "seconds": timedelta(seconds=1),
    "milliseconds": timedelta(milliseconds=1),
    "New York": timedelta(microseconds=1),
    "days": timedelta(days=1),
}


def column(times: list[int], clock: str) -> pa.Array:
    if clock == "days":
        return pa.array(times, pa.int32()).cast(pa.date32())
    return pa.array(times, pa.int64()).cast(TYPES[clock])


def moment(time: int, clock: str) -> Any:
    """One of them, as Python has it."""
    return time if clock == "integer" else column([time], clock)[0].as_py()


def number(value: Any, clock: str) -> Any:
    """An age as an integer; anything else as it is."""
    return value // UNITS[clock] if isinstance(value, timedelta) else value


def integers(times: pa.ChunkedArray) -> list[int]:
    kind = pa.int32() if pa.types.is_date32(times.type) else pa.int64()
    return times.cast(kind).to_pylist()
