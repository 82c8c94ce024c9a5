"""The value of frames that are cut by a quantile: read off their events, once the frames are known."""

import numpy as np
import pyarrow as pa

from frames.intervals import Intervals
from frames.specs import BEFORE, Aggregate, Spec
from kernels.framing import AT, COUNT


def is_quantile(spec: Spec) -> bool:
    return isinstance(spec, Aggregate) and spec.aggregate.kind == "quantile"


def with_quantiles(
    spec: Spec, table: pa.Table, ids: np.ndarray, frames: np.ndarray, extra: dict[str, pa.Array]
) -> dict[str, pa.Array]:
    """Replace `value` where it is a quantile: kernels/frame_aggregates.py decides such frames without knowing it.

    table, ids: the events, in order of ts within each key; frames[:, AT] are rows of it: the first of a frame that closes
    before, the last of one that closes with, an event.
    """
    if not is_quantile(spec):
        return extra
    assert isinstance(spec, Aggregate)
    order = np.argsort(ids, kind="stable") if ids.size else np.arange(table.num_rows)
    position = np.empty(order.size, np.int64)
    position[order] = np.arange(order.size)
    at = position[frames[:, AT]] if frames.shape[0] else np.zeros(0, np.int64)
    lo = at if spec.op in BEFORE else at + 1 - frames[:, COUNT]
    return {**extra, "value": Intervals(table, order).answer(spec.aggregate, lo, lo + frames[:, COUNT])}
