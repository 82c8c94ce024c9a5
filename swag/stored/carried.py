"""Rows carried from block to block: events of which only some are at hand at a time, each block behind what is needed.

    block 1        |  kept |  block 2      |  kept |  block 3 …
    answered       |       |  answered     |       |

So memory is that of a block and of the rows kept, whatever there is in all. Which rows windows of later blocks can
still hold, `first_needed` says, key by key; frames keep others, which their own tasks know.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kernels.operators.numbers import EARLIEST
from swag.query.windows import Depth


@dataclass(eq=False)
class CarriedRows:
    """The rows that the next block has before its own. It owns them.

    Asked of it: a block behind them (`before`), or blocks of some size from batches (`blocks`). It is told what to keep
    of a block (`keep`) before the next one is asked for.
    """

    rows: pa.Table | None = None

    @property
    def count(self) -> int:
        return 0 if self.rows is None else self.rows.num_rows

    def before(self, new: pa.Table) -> pa.Table:
        return new if self.rows is None else pa.concat_tables([self.rows, new])

    def keep(self, rows: pa.Table) -> None:
        self.rows = rows

    def blocks(
        self, batches: Iterable[pa.RecordBatch], least: int, prepared: Callable[[pa.Table], pa.Table]
    ) -> Iterator[tuple[pa.Table, bool]]:
        """Blocks of so many new rows, at least, and of as many as were kept: many are worth a long block.

        prepared: new rows as they are to be carried on. With each block: is it the last? What is kept is in it, if
        nothing new is.
        """
        waiting: list[pa.RecordBatch] = []
        rows = 0
        for batch in batches:
            waiting.append(batch)
            rows += batch.num_rows
            if rows >= max(least, self.count):
                yield self.before(prepared(pa.Table.from_batches(waiting))), False
                waiting, rows = [], 0
        if rows:
            yield self.before(prepared(pa.Table.from_batches(waiting))), True
        elif self.rows is not None and self.count:
            yield self.rows, True


def first_needed(depth: Depth, t: np.ndarray, starts: np.ndarray, now: int) -> np.ndarray:
    """Of each key, the first row that a window may hold which ends at `now`, or later.

    Rows lie key by key, each key's in order of time t; starts: where each key's begin, and the end of the last. Windows
    by rows that end at `now` do not count what is later.
    """
    by_time, by_rows = _behind(t, starts, now - depth.time), _behind(t, starts, now) - min(depth.rows, t.size)
    return np.maximum(starts[:-1], np.minimum(by_time, by_rows))


def _behind(t: np.ndarray, starts: np.ndarray, instant: int) -> np.ndarray:
    """Of each key, the position behind its rows up to an instant."""
    if instant < EARLIEST:
        return starts[:-1]
    passed = np.concatenate([[0], np.cumsum(t <= instant)])[starts]
    return starts[:-1] + np.diff(passed)
