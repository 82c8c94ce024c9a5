"""Kinds of frames that are not known by their scan alone: what is read off their events, and which events are kept."""

import numpy as np
import pyarrow as pa

from frames.finding.measures import MatchEvents, with_measures
from frames.finding.quantiles import FrameEvents, is_quantile, with_quantiles
from frames.specs import Pattern, Spec
from kernels.frames.framing import AT, COUNT


def read_off(
    spec: Spec, table: pa.Table, ids: np.ndarray, fields: np.ndarray, extra: dict[str, pa.Array]
) -> dict[str, pa.Array]:
    """What is reported of frames, rows KEY … AT of `fields`. table, ids: the events, in order of ts per key."""
    if isinstance(spec, Pattern):
        return with_measures(spec, table, ids, fields, extra)
    return with_quantiles(spec, table, ids, fields[AT], fields[COUNT], extra)


def events_of(spec: Spec) -> FrameEvents | MatchEvents | None:
    """Who keeps events of frames that are not certain or not over; None: for this kind, nobody has to."""
    if isinstance(spec, Pattern):
        pattern = spec.compiled()
        needed = spec.measures or pattern.machine is None or pattern.shifted  # PREV of text is read off rows
        return MatchEvents(spec) if needed else None
    return FrameEvents(spec) if is_quantile(spec) else None
