"""The events of open frames, of which a quantile is read: kept in the log for as long as their frame is open.

    key a   . . [. . . .      the last events of a key, as many as its open frame has rows
    key b   . . . . . [.

So a detector that is made again finds them in whatever the log still holds, and a segment can be swept of all others at
any time. For frames that nothing but their state is kept of, there is nothing to do.
"""

import numpy as np
import pyarrow as pa

from frames.detector import Detector
from frames.finding.intake import key_ids
from kernels.frames.framing import ROWS, START
from swag.spark.streams.log import Log
from swag.spark.streams.sweeping import Sweep
from swag.spark.streams.watermark import instants_of

Rows = tuple[np.ndarray, np.ndarray, pa.Table]  # as detectors keep what waits: times, ids of keys, columns


class OpenEvents:
    """batch: how many events came last."""

    def __init__(self, detector: Detector) -> None:
        self.detector, self.sweep, self.batch = detector, Sweep(), 0

    @property
    def active(self) -> bool:
        return self.detector._kept.active

    @property
    def count(self) -> int:
        return self.detector._kept.ids.size

    @property
    def bytes(self) -> int:
        table = self.detector._kept.table
        return 0 if table is None else table.nbytes

    def take_again(self, waited: list[Rows], logged: list[pa.Table], upto: int) -> None:
        """Events that were applied by others, after those that are here. The state of their keys is there already."""
        detector, kept, scan = self.detector, self.detector._kept, self.detector._scan
        assert scan is not None
        rows = [*waited, *map(self._read, logged)]
        if not rows:  # and no key's state is another
            return
        instants = np.concatenate([each[0] for each in rows])
        ids = np.concatenate([each[1] for each in rows])
        passed = np.flatnonzero(instants <= upto)
        order = passed[np.argsort(instants[passed], kind="stable")]
        table = pa.concat_tables([each[2] for each in rows]).take(pa.array(order))
        scan.add_keys(1 if detector._keys is None else max(detector._keys.count, 1))
        kept.add(table, ids[order] if ids.size else ids, scan.frames[:0])
        kept.drop(scan.state[:, ROWS], scan.frames[:0])
        kept.point(scan.frames)

    def _read(self, table: pa.Table) -> Rows:
        _, ids = key_ids(table, self.detector.key, self.detector._keys)
        columns = table.select(list(dict.fromkeys(self.detector.spec.columns)))
        return instants_of(table.column(self.detector.ts)), ids, columns

    def tend(self, log: Log, kind: str, upto: int) -> None:
        """Let go of the events of frames that have ended."""
        needed = self.count + self.detector.buffered
        self.sweep.tend(log, kind, needed, self.batch, lambda table: table.filter(pa.array(self._live(table, upto))))

    def _live(self, table: pa.Table, upto: int) -> np.ndarray:
        """Which logged events wait, or are in an open frame; those before it at the very time it began may be, too."""
        scan, keys = self.detector._scan, self.detector._keys
        assert scan is not None
        instants = instants_of(table.column(self.detector.ts))
        ids = np.zeros(instants.size, np.int64)
        if self.detector.key is not None and keys is not None:
            ids = keys.find(table.column(self.detector.key), self.detector.key)
        state = scan.state[ids]
        return (instants > upto) | ((ids >= 0) & (state[:, ROWS] > 0) & (instants >= state[:, START]))
