"""Frames out, and frames in again: a table of frame_id, [key], start, end, rows, and what goes with them."""

from typing import Any

import numpy as np
import pyarrow as pa

from kernels.framing import BEGIN, COUNT, END, KEY
from swag.columns import Clock, to_arrow
from swag.keys import KeyTable


def frames_table(
    numbers: np.ndarray,
    frames: np.ndarray,
    keys: tuple[str, KeyTable] | None,
    clock: Clock,
    extra: dict[str, pa.Array],
    empty: np.ndarray | None = None,
) -> pa.Table:
    """One row per frame. empty: pieces without events, whose interval is null."""
    valid = None if empty is None else ~empty
    columns: dict[str, Any] = {"frame_id": pa.array(numbers.astype(np.int64))}
    if keys is not None:
        columns[keys[0]] = keys[1].column(frames[:, KEY].copy())
    columns["start"] = to_arrow(frames[:, BEGIN].copy(), valid, clock.type)
    columns["end"] = to_arrow(frames[:, END].copy(), valid, clock.type)
    columns["rows"] = pa.array(frames[:, COUNT].copy())
    return pa.table({**columns, **extra})
