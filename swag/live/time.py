"""How far a stream is."""

from dataclasses import dataclass

import numpy as np

from swag.tables.columns import Clock

MIN, MAX = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)


@dataclass(eq=False)
class Time:
    """The time of a stream, for all its groupings: what `ts` counts in, the latest time, and what is over.

    closed: every event with ts <= closed has come (MIN: nobody has promised anything). There is one promise, and it
    includes its instant: whoever promises that nothing *older* than t comes has closed t - 1.
    """

    clock: Clock | None = None
    now: int = MIN
    closed: int = MIN

    @property
    def promised(self) -> int:
        """Nothing older than this comes."""
        return MIN if self.closed == MIN else self.closed + 1

    def go_on(self, now: int, closed: int = MIN) -> None:
        """Time never goes back."""
        self.now, self.closed = max(self.now, now), max(self.closed, closed)
