"""What is said of frames that overlap, and of matches: computed of events, kept while a frame may still have them.

      rows of a key   . . . [. . . . .        from the bracket on they may be in a frame that is not certain yet
      frames          [---]   [---]           each is known by the numbers of its first and of its last row

A partial of the last run (frames/continuous/summaries.py) would be of no use: when a match is found, it need not be
all of what was undecided. So memory follows what is undecided here: see Spec.in_runs.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from frames.continuous.batches import KeyedBatch
from frames.continuous.kept_events import EventSpan, KeptEvents
from frames.continuous.partials import Asked
from frames.scans.scan import Scan
from kernels.frames.framing import AT, COUNT, KEY, LEAD, ROWS
from swag.durable.state import State, nested, part, types_from_array, types_to_array, with_arrays
from swag.live.arena import Batch
from swag.tables.columns import Clock
from swag.tables.waiting import NO_IDS, TimedRows

NONE = EventSpan(NO_IDS, NO_IDS, NO_IDS)


class EventSummary:
    """As FrameSummary, which it stands in for: told of every batch, and of the frames that come out, it is asked for
    their `answers`. Owns the events that undecided frames may have. types: as there."""

    def __init__(self, asked: Sequence[Asked]) -> None:
        self.asked = self.kept = list(asked)
        self.may_fail = False  # functions are called when all is known
        self.types: dict[str, pa.DataType] | None = None
        self.by_key: Batch | None = None
        self._seen, self._found, self._span = NO_IDS, NONE, NONE

    def start(self, types: dict[str, pa.DataType]) -> None:
        """The first events tell of which types columns are."""
        self.types, self.events = types, KeptEvents(self.asked, list(types))

    def begin(self, rows: TimedRows, scan: Scan) -> None:
        """Rows that are about to be scanned."""
        by_key, self.by_key, keys = self.by_key, None, scan.keyed.shape[0]
        self._seen = self._seen if keys <= self._seen.size else np.zeros(keys, np.int64)
        self.batch = KeyedBatch(rows, scan, self._seen, by_key)

    def join(self, keys: np.ndarray, scan: Scan) -> None:
        """Frames of these keys end with this batch, too."""
        self.batch.join(keys, scan)

    def cut(self, scan: Scan, carried: int, scanned: TimedRows) -> None:
        """They were scanned, maybe with some of before: which events frames have that were found."""
        self.events.let_go()
        self.events.grow(scan.keyed.shape[0])
        self.events.add(self.batch)
        scan.touch()
        self.events.need(self.batch.keys, np.maximum(scan.keyed[self.batch.keys, ROWS], 0))
        self._found = self._events_of(scan.frames[carried:], scanned.ids)

    def _events_of(self, frames: np.ndarray, ids: np.ndarray) -> EventSpan:
        """By the row that made each frame certain, AT. The last row of a key is the last of its events."""
        keys, behind = frames[:, KEY], frames[:, AT]
        if ids.size and keys.size:
            order, place = np.argsort(ids, kind="stable"), np.empty(ids.size, np.int64)
            place[order] = np.arange(ids.size)
            behind = np.cumsum(np.bincount(ids))[keys] - place[frames[:, AT]]
        elif keys.size:
            behind = self.batch.order.size - frames[:, AT]
        first = self.events.count[keys] - behind - frames[:, LEAD]
        return EventSpan(keys, first, first + frames[:, COUNT])

    def report(self, frames: np.ndarray, chosen: np.ndarray, keyed: np.ndarray) -> None:
        """Frames in these slots come out: all that were found, in some order."""
        self._span = self._found.some(chosen)

    def forget_report(self) -> None:
        """No frame came out last."""
        self._span = NONE

    def answers(self, which: np.ndarray, clock: Clock) -> list[Any]:
        """A column per aggregate, of some of the frames that came out last. Raises if a sum does not fit."""
        return self.events.answers(self._span.some(which), clock)

    def forget(self, keys: np.ndarray) -> None:
        """Nothing of these keys is undecided."""
        if self.types is not None:
            self.events.grow(int(keys.max(initial=-1)) + 1)
            self.events.need(keys, np.zeros(keys.size, np.int64))

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on, and there are no others."""
        self._seen = NO_IDS
        if self.types is not None:
            self.events.renumber(kept)

    @property
    def rows(self) -> int:
        """Events that are kept."""
        return 0 if self.types is None else self.events.kept

    @property
    def bytes(self) -> int:
        return 0 if self.types is None else self.events.bytes

    def state(self) -> State:
        if self.types is None:
            return {}, {}
        return with_arrays(nested({}, {"events": self.events.state()}), {"types": types_to_array(self.types)})

    def restore(self, state: State) -> None:
        if "types" in state[1]:
            self.start(types_from_array(state[1]["types"]))
            self.events.restore(part(state, "events"))
