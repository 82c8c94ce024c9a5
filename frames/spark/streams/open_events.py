"""The events of open frames, of which a quantile is read: kept in the log for as long as their frame is open.

    key a   . . [. . . .      the last events of a key, as many as its open frame has rows
    key b   . . . . . [.

So a detector that is made again finds them in whatever the log still holds, and a segment can be swept of all others at
any time. For frames that nothing but their state is kept of, there is nothing to do.
"""

import numpy as np
import pyarrow as pa

from frames.finding.core import DetectorCore
from swag.spark.streams.log import Log
from swag.spark.streams.sweeping import Sweep
from swag.tables.columns import timed
from swag.tables.waiting import Waiting


class OpenEvents:
    """Which logged events are still needed. Owns the sweep of the log; the events are the core's.

    active: are any needed at all, but those that wait? batch: how many events came last.
    """

    def __init__(self, core: DetectorCore) -> None:
        self.core, self.sweep, self.batch = core, Sweep(), 0
        self.active = core.events is not None

    @property
    def count(self) -> int:
        """How many events open frames have."""
        return 0 if self.core.events is None else self.core.events.ids.size

    def take_again(self, logged: list[pa.Table], upto: int) -> None:
        """Of events that wait, and of those that came after them, the ones up to `upto` were scanned elsewhere.

        Events of open frames are among them; what is remembered of their keys is there already.
        """
        core = self.core
        if not logged and not core.waiting.count:  # no key's state is another
            return
        assert core.scan is not None and core.events is not None
        again = Waiting()
        again.add(*core.waiting.rows)
        for table in logged:
            again.add(*core.read(table))
        rows = again.due(upto)
        core.scan.add_keys(core.key_count)
        if rows is not None:
            core.events.take(rows)
        core.events.drop(core.scan, core.scan.frames[:0])
        core.events.point(core.scan.frames)

    def tend(self, log: Log, kind: str, upto: int) -> None:
        """Let go of the events of frames that have ended."""
        needed = self.count + self.core.waiting.count
        self.sweep.tend(
            log, kind, needed, self.batch, lambda table: table.filter(pa.array(self._may_need(table, upto)))
        )

    def _may_need(self, events: pa.Table, upto: int) -> np.ndarray:
        """Which events wait, or are in an open frame; those before it at the very time it began may be, too."""
        core = self.core
        assert core.scan is not None and core.events is not None
        _, instants = timed(events, core.ts)
        ids = np.zeros(instants.size, np.int64)
        if core.key is not None and core.keys is not None:
            ids = core.keys.find(events.column(core.key), core.key)
        return (instants > upto) | ((ids >= 0) & (instants >= core.events.since(core.scan)[ids]))
