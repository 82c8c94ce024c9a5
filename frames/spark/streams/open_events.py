"""The events of open frames, of which a quantile is read: kept in the log for as long as their frame is open.

    key a   . . [. . . .      the last events of a key, as many as its open frame has rows
    key b   . . . . . [.

So a detector that is made again finds them in whatever the log still holds, and a segment can be swept of all others at
any time. For frames that nothing but their state is kept of, there is nothing to do.
"""

import pyarrow as pa

from frames.finding.core import DetectorCore
from swag.spark.streams.log import Log
from swag.spark.streams.sweeping import Sweep


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
        """Events that were applied by others, after those that are here. The state of their keys is there already."""
        if logged or self.core.waiting.count:  # else no key's state is another
            self.core.take_again(logged, upto)

    def tend(self, log: Log, kind: str, upto: int) -> None:
        """Let go of the events of frames that have ended."""
        needed = self.count + self.core.waiting.count
        self.sweep.tend(
            log, kind, needed, self.batch, lambda table: table.filter(pa.array(self.core.may_need(table, upto)))
        )
