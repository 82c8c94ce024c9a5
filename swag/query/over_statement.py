"""A statement with OVER ( … ), as a frozen value: columns that windows answer at every event, and what is made of them.

SELECT *, x - AVG(x) OVER w AS above FROM events WINDOW w AS (PARTITION BY k ORDER BY ts) QUALIFY above > 0

    calls    AVG(x) OVER w, a column of answers for each that is different: "· AVG(x) OVER w"
    items    *, and x - "· AVG(x) OVER w", called "above"
    rest     what is kept of the rows, and in which order
"""

from dataclasses import dataclass, field

from swag.query.aggregates import Aggregate
from swag.query.as_call import shown
from swag.query.windows import Rows, Window
from swag.tables.expressions.derived import derived
from swag.tables.expressions.expression import compiled

ENDLESS_ROWS = 2**62  # more than anybody has
WHOLE = Rows(ENDLESS_ROWS, until=-ENDLESS_ROWS)  # all of the partition, before and after
ROW, TIME = "row·", "ts·"  # columns that are put beside those of the events: the number of the row, and its time


@dataclass(frozen=True)
class Call:
    """An aggregate over a window at every event: what one column of answers is of, and its name.

    partition: SQL over the columns of an event, whose values a window keeps apart, null being one. order: the column
    that windows are in order of; None: events as they came. takes: the answers are numbers of rows, and what is wanted
    is the value of an expression there; if there are several, each but the last is again the number of a row.
    """

    name: str
    aggregate: Aggregate
    window: Window
    where: str | None = None
    partition: tuple[str, ...] = ()
    order: str | None = None
    takes: tuple[str, ...] = ()
    start: int = field(default=0, compare=False)
    order_start: int = field(default=0, compare=False)

    @property
    def texts(self) -> tuple[str, ...]:
        """SQL over events that is in it, but for what is aggregated."""
        return (*self.partition, *self.takes, *([] if self.where is None else [self.where]))

    @property
    def reads(self) -> frozenset[str]:
        """The columns that it names: of its aggregate, of its order, and of SQL."""
        found = {name for text in self.texts for name in compiled(text).columns}
        for text in self.aggregate.texts:
            expression = derived(text)
            found |= {text} if expression is None else expression.columns
        return frozenset(found | ({self.order} if self.order is not None else set()))


@dataclass(frozen=True)
class Item:
    """A column of the result: its name, and SQL over the columns of events and of answers. written: as the user did."""

    name: str
    text: str
    start: int = field(default=0, compare=False)
    written: str = field(default="", compare=False)


@dataclass(frozen=True)
class Star:
    """All columns of the events, but for some, and others instead of some."""

    without: tuple[str, ...] = ()
    replaced: tuple[Item, ...] = ()
    start: int = field(default=0, compare=False)


@dataclass(frozen=True)
class SortKey:
    """What rows are sorted by: SQL, or the number of a column of the result, from 1."""

    text: str | int
    descending: bool = False
    nulls_first: bool = False
    start: int = field(default=0, compare=False)


@dataclass(frozen=True)
class OverStatement:
    """What is asked: one row per event for which `where` holds, in input order, with what was selected.

    >>> import swag as sw
    >>> text = "SELECT x, SUM(x) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM events"
    >>> sw.evaluate(text, {"ts": [1, 2, 3], "x": [5, 7, 9]}).to_pylist()
    [{'x': 5, 's': 5}, {'x': 7, 's': 12}, {'x': 9, 's': 16}]
    """

    text: str
    stream: str
    calls: tuple[Call, ...]
    items: tuple[Item | Star, ...]
    where: str | None = None
    qualify: str | None = None
    order: tuple[SortKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    number: int = field(default=0, compare=False)  # among the queries of the text
    where_start: int = field(default=0, compare=False)
    qualify_start: int = field(default=0, compare=False)

    @property
    def label(self) -> str:
        """What it selects, by name."""
        return ", ".join("*" if isinstance(item, Star) else item.name for item in self.items)

    def __repr__(self) -> str:
        return f"sw.sql({shown(self.text)})[{self.number}]"

    def __str__(self) -> str:
        return " ".join(self.text.split())

    def by_partition(self) -> dict[tuple[str, ...], list[Call]]:
        """Its columns of answers, by what keeps their windows apart: those of one partition share."""
        found: dict[tuple[str, ...], list[Call]] = {}
        for call in self.calls:
            found.setdefault(call.partition, []).append(call)
        return found

    @property
    def columns(self) -> frozenset[str] | None:
        """The columns that are read of the events, as far as the statement tells; None: all of them."""
        return None if any(isinstance(item, Star) for item in self.items) else self.named

    @property
    def named(self) -> frozenset[str]:
        """The columns that are named, of the events or of the result."""
        found = {name for text in self._texts() for name in compiled(text).columns}
        found |= {name for call in self.calls for name in call.reads}
        return frozenset(found - {call.name for call in self.calls} - {ROW, TIME})

    def _texts(self) -> list[str]:
        """All SQL over events that is in it, but for that of its window functions."""
        found = [item.text for item in self.items if isinstance(item, Item)]
        found += [key.text for key in self.order if isinstance(key.text, str)]
        return found + [text for text in (self.where, self.qualify) if text is not None]
