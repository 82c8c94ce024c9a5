"""How far a stream is."""

from dataclasses import dataclass

from kernels.operators.numbers import EARLIEST
from swag.tables.columns import Clock


@dataclass(eq=False)
class Time:
    """The time of a stream, for all its groupings: what `ts` counts in, the latest time, and what is over.

    closed: every event with ts <= closed has come (EARLIEST: nobody has promised anything). There is one promise, which
    includes its instant: whoever promises that nothing *older* than t comes has closed t - 1.

    lateness: an event may come so much behind the latest, and is put into its place among the others. None: events come
    in order.
    """

    clock: Clock | None = None
    now: int = EARLIEST
    closed: int = EARLIEST
    lateness: int | None = None

    @property
    def promised(self) -> int:
        """Nothing older than this comes."""
        return EARLIEST if self.closed == EARLIEST else self.closed + 1

    def go_on(self, now: int, closed: int = EARLIEST) -> None:
        """Time never goes back."""
        self.now, self.closed = max(self.now, now), max(self.closed, closed)
