"""A query: an aggregate over a window, under a name. A frozen value; it runs when evaluated or registered."""

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from swag.aggregates import Aggregate
from swag.errors import BadQuery
from swag.frequency import EXAMPLES, Every
from swag.having import Condition, condition
from swag.windows import Range, Rows, Window


@dataclass(frozen=True)
class Query:
    """`where`: an SQL predicate on the event, applied after the window (the matching ones among its rows).

    `having`: a condition on the answer, e.g. (">", 10_000): on a keyed stream, the keys that pass. `index`: False
    answers it without an index over the keys. `every`: answers at ticks only, a jumping window. `source`: a query whose
    answers are the stream that this one reads: their ts, key, and the value under that query's name.
    """

    aggregate: Aggregate
    window: Window
    name: str | None = None
    where: str | None = None
    having: tuple[Any, ...] | None = None
    index: bool = True
    every: Every | None = None
    source: "Query | None" = None

    def __post_init__(self) -> None:
        if not isinstance(self.aggregate, Aggregate):
            raise BadQuery(
                f"a query aggregates something; {self.aggregate!r} is no aggregate.",
                'sw.Query(sw.sum("volume"), sw.Rows(100))',
            )
        if not isinstance(self.window, Rows | Range):
            raise BadQuery(f"{self.window!r} is no window.", 'sw.Rows(1000) or sw.Range("5m")')
        if self.where is not None:
            from swag.predicate import columns_of

            columns_of(self.where)  # a predicate that can not be read is refused now, not at the first event
        if self.every is not None and not isinstance(self.every, Every):
            raise BadQuery(f"every={self.every!r} is no frequency.", EXAMPLES)
        if self.source is not None and not isinstance(self.source, Query):
            raise BadQuery(f"source={self.source!r} is no query.", "sw.Query(…, source=sw.Query(…))")
        if self.having is not None:
            condition(self.having)
            object.__setattr__(self, "having", tuple(self.having))

    @property
    def condition(self) -> Condition | None:
        return None if self.having is None else condition(self.having)

    @property
    def label(self) -> str:
        """The name of the answer's column: the given one, or what the query says."""
        if self.name is not None:
            return self.name
        window = f"{self.window}" if self.every is None else f"{str(self.window)[:-1]}, {self.every}]"
        source = f" FROM ({self.source})" if self.source else ""
        where = f" WHERE {self.where}" if self.where else ""
        having = f" HAVING {self.condition}" if self.having else ""
        return f"{self.aggregate}{window}{source}{where}{having}"

    @property
    def column(self) -> str:
        """What the answers are called as the stream of another query: the query's name, or that of its aggregate."""
        return self.name if self.name is not None else str(self.aggregate)

    def __str__(self) -> str:
        return self.label


def check_names(queries: "list[Query]", taken: "Container[str]" = ()) -> None:
    """A name can be taken once."""
    seen: set[str] = set()
    for query in queries:
        if not isinstance(query, Query):
            raise BadQuery(f"{query!r} is not a query.", 'sw.Query(sw.sum("volume"), sw.Range("5m"))')
        if query.label in seen or query.label in taken:
            raise BadQuery(f'two queries are named "{query.label}".', 'name them apart: sw.Query(…, name="…")')
        seen.add(query.label)
