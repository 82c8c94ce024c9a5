"""The value of frames that are cut by a quantile: read off their events, once the frames are known.

kernels/frames/aggregates.py decides such frames without knowing the quantile itself. Events are known by position:
frames[:, AT] is the event that made a frame certain, LEAD how many of its events came before that one.
"""

import numpy as np
import pyarrow as pa

from frames.finding.intake import ID, NO_KEY
from frames.finding.intervals import over_intervals
from frames.specs import Aggregate, Spec
from kernels.frames.framing import AT, COUNT, KEY, LEAD, OPEN
from swag.durable.state import State, table_from_array, table_to_array


def with_quantiles(
    spec: Spec, table: pa.Table, ids: np.ndarray, found: tuple[np.ndarray, ...], extra: dict[str, pa.Array]
) -> dict[str, pa.Array]:
    """Replace the `value` of frames where it is a quantile. table, ids: the events, in order of ts per key.

    found: AT, LEAD and COUNT of the frames.
    """
    if not is_quantile(spec):
        return extra
    assert isinstance(spec, Aggregate)
    at, leads, counts = found
    order = np.argsort(ids, kind="stable") if ids.size else np.arange(table.num_rows)
    position = np.empty(order.size, np.int64)
    position[order] = np.arange(order.size)
    lo = position[at] - leads if at.size else at
    (value,) = over_intervals([(spec.aggregate, None)], table, order, (lo, lo + counts))
    return {**extra, "value": value}


def is_quantile(spec: Spec) -> bool:
    """Are the frames of this spec cut by a quantile?"""
    return isinstance(spec, Aggregate) and spec.aggregate.kind == "quantile"


class FrameEvents:
    """The events of frames that are still open, while events arrive: their quantile is read when they close.

    Owns the columns that the spec reads and the key of each event, in order of ts. It is told of events that were
    scanned (`add`), asked for the `values` of frames, and told which events are no longer needed (`drop`).
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.ids = NO_KEY
        self.table: pa.Table | None = None

    @property
    def bytes(self) -> int:
        return 0 if self.table is None else int(self.table.nbytes)

    def add(self, table: pa.Table, ids: np.ndarray, new: np.ndarray) -> None:
        """Events just scanned, and the frames found in them; AT is from here on the first event of a frame."""
        new[:, AT] += 0 if self.table is None else self.table.num_rows
        self.table = table if self.table is None else pa.concat_tables([self.table, table])
        self.ids = np.concatenate([self.ids, ids if ids.size else np.zeros(table.num_rows, ID)])
        if new.size:
            order = np.argsort(self.ids, kind="stable")
            position = np.empty(order.size, np.int64)
            position[order] = np.arange(order.size)
            new[:, AT] = order[position[new[:, AT]] - new[:, LEAD]]

    def values(self, extra: dict[str, pa.Array], frames: np.ndarray) -> dict[str, pa.Array]:
        """What is reported of these frames, with their quantiles."""
        if self.table is None:
            return extra
        first = frames[:, AT]
        return with_quantiles(self.spec, self.table, self.ids, (first, np.zeros_like(first), frames[:, COUNT]), extra)

    def drop(self, rows: np.ndarray, frames: np.ndarray) -> None:
        """Keep the last rows[k] events of key k; frames that are open move along."""
        if self.table is None:
            return
        order = np.argsort(self.ids, kind="stable")
        counts = np.bincount(self.ids, minlength=rows.size)
        rank = np.arange(order.size) - np.repeat(np.cumsum(counts) - counts, counts)
        keep = np.zeros(order.size, bool)
        keep[order] = rank >= np.repeat(counts - rows[: counts.size], counts)
        still = frames[:, OPEN] == 1
        frames[still, AT] = (np.cumsum(keep) - 1)[frames[still, AT]]
        self.table, self.ids = self.table.filter(pa.array(keep)), self.ids[keep]

    def point(self, frames: np.ndarray) -> None:
        """Open frames find their events again: they are all that is kept of their key."""
        keys, first = np.unique(self.ids, return_index=True)
        frames[:, AT] = first[np.searchsorted(keys, frames[:, KEY])]

    def renumber(self, ids: np.ndarray) -> None:
        """Keys have other ids now: ids[k] is what k has become."""
        self.ids = ids[self.ids]

    def state(self) -> State:
        return {}, {} if self.table is None else {"ids": self.ids, "table": table_to_array(self.table)}

    def restore(self, state: State) -> None:
        _, arrays = state
        self.ids, self.table = NO_KEY, None
        if arrays:
            self.ids, self.table = arrays["ids"], table_from_array(arrays["table"])
