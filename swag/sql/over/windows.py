"""What stands in the parentheses after OVER, and which of our windows it is.

(PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL 5 MINUTES PRECEDING AND CURRENT ROW)

    ROWS BETWEEN 9 PRECEDING AND 2 FOLLOWING        Rows(10, until=-2)
    RANGE BETWEEN 9 PRECEDING AND 2 FOLLOWING       Range(9, until=-2, closed="both", peers=True)
    ORDER BY ts                                     Unbounded(peers=True)
    nothing                                         all of the partition
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from swag.query.over_statement import ENDLESS_ROWS, WHOLE
from swag.query.windows import Range, Rows, Unbounded, Window
from swag.tables.times.durations import distance

ENDLESS_TIME = "-1000000000d"  # further ahead than any two timestamps lie apart
ENDLESS_UNITS = -(2**64)


class Bound(NamedTuple):
    """Where a frame begins or ends: so far from the current row (None: for ever), which way (-1: back, 1: ahead)."""

    size: int | str | None
    way: int

    @property
    def back(self) -> int | str:
        """As our windows count it: from now back, negative where it lies ahead."""
        if self.size is None or distance(self.size, "frame") == 0:
            return 0
        return self.size if self.way < 0 else -self.size if isinstance(self.size, int) else f"-{self.size}"


CURRENT = Bound(0, 0)
FOREVER = Bound(None, -1)


class Frame(NamedTuple):
    """ROWS or RANGE BETWEEN start AND end."""

    by_rows: bool
    start: Bound
    end: Bound

    @property
    def window(self) -> Window | None:
        """None: it is empty, as it ends before it begins."""
        if self.start.size is None and self.end.size is None:
            return WHOLE
        return self._rows() if self.by_rows else self._range()

    def _rows(self) -> Window | None:
        ends = (self.start, self.end)
        far, near = (-each.way * ENDLESS_ROWS if each.size is None else int(each.back) for each in ends)
        if self.start.size is None and near == 0:
            return Unbounded()
        return Rows(far + 1, until=near) if far >= near else None

    def _range(self) -> Window | None:
        """The window by time of a RANGE frame, which takes equal ts together; None: it is empty."""
        if self.start.size is None:
            return Unbounded(self.end.back, peers=True)
        far, near = self.start.back, self.end.back
        if self.end.size is None:
            near = ENDLESS_UNITS if isinstance(far, int) else ENDLESS_TIME
        alike = isinstance(far or near, int) == isinstance(near or far, int)  # else Range says what is wrong
        if alike and distance(far, "frame") < distance(near, "frame"):
            return None
        return Range(far, until=near, closed="both", peers=True)


@dataclass
class WindowSpec:
    """A window as it was written. base: the name of the one that it begins with. Trees come with their offsets."""

    start: int
    base: str | None = None
    base_start: int = 0
    partition: list[tuple[Any, int]] | None = None
    order: tuple[Any, int] | None = None
    frame: Frame | None = None
    bare: bool = False  # OVER w: the window itself

    def inherits(self, base: "WindowSpec") -> "WindowSpec":
        return replace(
            self, base=None, partition=self.partition if base.partition is None else base.partition,
            order=base.order or self.order, frame=self.frame or base.frame,
        )  # fmt: skip

    @property
    def window(self) -> Window | None:
        """None: it is empty."""
        if self.frame is not None:
            return self.frame.window
        return WHOLE if self.order is None else Unbounded(peers=True)
