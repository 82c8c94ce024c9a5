"""How far a stream is, and how far back its rows are kept."""

from dataclasses import dataclass, field

from kernels.operators.numbers import EARLIEST, LATEST
from swag.query.windows import Depth
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


@dataclass(frozen=True)
class Retention:
    """For how long rows are kept: as many of each key, and as far back, as windows that end now can reach.

    since: windows that end before now, but not before this, are still to be asked for. everything: nothing goes for
    the moment, as answers of the recent past are still to be given.
    """

    depth: Depth = field(default_factory=Depth)
    since: int = LATEST
    everything: bool = False
