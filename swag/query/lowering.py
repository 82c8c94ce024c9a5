"""From a query over expressions to simple ones: each aggregate over its window, by itself, is what structures answer.

    LAST(price) OVER [RANGE 20m] < 0.98 * FIRST(price) OVER [RANGE 20m] AND SUM(volume) OVER [RANGE 2m] > 1000
    component: last(price)[RANGE 20m]                                                  \
    component: first(price)[RANGE 20m]                                                  > columns, then `calculate`
    component: sum(volume)[RANGE 2m]                                                   /
    guard:     sum(volume)[RANGE 2m] HAVING > 1000      an index over the keys names the few that are worth a look
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from swag.errors import SwagError
from swag.query.aggregates import Aggregate
from swag.query.calculation import calculate, holds
from swag.query.expression import COMPARISONS, Expression, Windowed, conjuncts, leaves
from swag.query.families import check_unit
from swag.query.kind import KINDS
from swag.query.query import ALL, HIDDEN, Events, Query, Source, queries_in
from swag.query.windows import Depth, Range, Reach, Rows, reach
from swag.tables.constants import is_number
from swag.tables.predicate import conjunction

_GUARDS = {"count": 0, "max": 1, "min": 1, "sum": 2}  # kinds with an index; sums last: theirs refuses negative values


@dataclass(frozen=True)
class Lowered:
    """`components`: a simple query for each leaf. `presence`: those that say whether there is any event at all."""

    query: Query
    components: Mapping[Windowed, Query]
    presence: tuple[Query, ...]
    guard: Query | None

    @property
    def hidden(self) -> list[Query]:
        """All the simple queries that have to be kept for this one."""
        guard = [] if self.guard is None else [self.guard]
        return list(dict.fromkeys([*self.answered, *guard]))

    @property
    def answered(self) -> list[Query]:
        return list(dict.fromkeys([*self.components.values(), *self.presence]))

    def value(self, answers: Mapping[Query, Any], wanted: np.ndarray | None = None) -> Any:
        """The answers. wanted: where there is one; elsewhere it need not be to be computed."""
        return calculate(self.query.aggregate, self._columns(answers), wanted, self._asked_by)

    def passing(self, answers: Mapping[Query, Any], wanted: np.ndarray | None = None) -> np.ndarray | None:
        """Where `having` is true; None: there is none."""
        having = self.query.having
        return None if having is None else holds(having, self._columns(answers), wanted, self._asked_by)

    @property
    def _asked_by(self) -> str:
        return f'query "{self.query.title}": '

    def answer_before_events(self) -> Any:
        """The answer where there has been no event yet."""
        empty = {query: nothing(query) for query in self.components.values()}
        try:
            return self.value(empty)[0].as_py()
        except SwagError:  # of text, say: nothing is known of its columns yet
            return None

    def _columns(self, answers: Mapping[Query, Any]) -> dict[Windowed, Any]:
        return {leaf: answers[query] for leaf, query in self.components.items()}


def nothing(query: Query) -> pa.Array:
    """What a simple query answers before the first event."""
    return pa.array([0], pa.int64()) if KINDS[query.aggregate.kind].counts else pa.nulls(1)


def lower(query: Query) -> Lowered:
    return _lowered(query, _texts(query))


@lru_cache(maxsize=65536)
def _lowered(query: Query, texts: tuple[str, ...]) -> Lowered:
    """texts: its columns as they were named, by which those are called that it is computed from."""
    found = dict.fromkeys([*leaves(query.aggregate), *leaves(query.having)])
    components = {leaf: _component(query, leaf) for leaf in found}
    presence = dict.fromkeys(_presence(query, leaf, components) for leaf in found)
    return Lowered(query, components, tuple(presence), _guard(query, components))


def components(query: Query) -> tuple[Query, ...]:
    """The simple queries that a query is computed from, each one aggregate over one window: itself, if it is one."""
    return _components(query, _texts(query))


@lru_cache(maxsize=65536)
def _components(query: Query, texts: tuple[str, ...]) -> tuple[Query, ...]:
    return (query,) if query.is_simple else tuple(_lowered(query, texts).answered)


def _texts(query: Query) -> tuple[str, ...]:
    """Queries are equal that name the same SQL in other words."""
    if not query.reads_sql:
        return ()
    terms = (query.aggregate, query.having)
    return tuple(text for term in terms for leaf in leaves(term) for text in leaf.aggregate.texts)


def simple_ones(queries: Iterable[Query]) -> list[Query]:
    """All simple queries that have to be kept for these: their components, and those that an index answers."""
    return [each for query in queries for each in ([query] if query.is_simple else lower(query).hidden)]


def depth(queries: Iterable[Query], unit: str | None) -> Depth:
    """How far back the windows of these queries reach. unit: of ts."""
    return Depth.of(measured(query, unit) for query in simple_ones(queries))


def measured(query: Query, unit: str | None) -> Reach:
    """The window of a simple query in the unit of ts; lengths of time that are none in it are refused."""
    check_unit(query.aggregate, unit)
    return reach(query.window, unit)


def readers(query: Query) -> list[Query]:
    """Simple queries that read the columns of events that this one, and what it reads, read."""
    source = query.source
    if source is None:
        return simple_ones([query])
    if not isinstance(source, Events):
        return [each for query in queries_in(source) for each in readers(query)]
    if source.source is not None:
        inside = readers(replace(query, source=source.source))
        return inside if _of_answers(source.source) else [*inside, *choosers(source)]
    return [*simple_ones([query]), *choosers(source)]


def _of_answers(source: Source) -> bool:
    """Are its columns those of answers, not of the events?"""
    return not isinstance(source, Events) or (source.source is not None and _of_answers(source.source))


def choosers(events: Events) -> list[Query]:
    """Simple queries that read what it takes to choose these events."""
    columns = events.every.by or () if events.every is not None else ()
    partition = [Query(Aggregate("count", (name,)), Rows(1), f"PARTITIONED BY {name}") for name in columns]
    if events.where is None:
        return partition
    return [*partition, Query(Aggregate("count"), Rows(1), f"* WHERE {events.where}", events.where)]


def _component(query: Query, leaf: Windowed) -> Query:
    where = conjunction(query.where, leaf.where)
    aggregate = leaf.aggregate if leaf.aggregate.user is not None else replace(leaf.aggregate, name=None)
    window = ALL if query.is_relation else leaf.window or query.window  # of the relation's rows at a tick it is all
    bare = Query(aggregate, window, where=where)
    return replace(bare, name=f"{HIDDEN}{_owner(query, leaf)}{bare.label}")


def _owner(query: Query, leaf: Windowed) -> str:
    """Functions have no name that is theirs alone: they have that of the query that they are in, and a number there."""
    if leaf.aggregate.user is None:
        return ""
    users = [each.aggregate.user for each in (*leaves(query.aggregate), *leaves(query.having))]
    number = list(dict.fromkeys(user for user in users if user is not None)).index(leaf.aggregate.user)
    return f"{query.label} · " + f"{number + 1} · " * (number > 0)


def _presence(query: Query, leaf: Windowed, components: Mapping[Windowed, Query]) -> Query:
    """A key is in the answer if it has an event in some window, be it one that a FILTER does not count."""
    if leaf.where is None:
        return components[leaf]
    return _component(query, Windowed(Aggregate("count"), leaf.window))


def _guard(query: Query, components: Mapping[Windowed, Query]) -> Query | None:
    """The conjunct whose index will name the candidates."""
    if not isinstance(query.having, Expression) or not query.index:
        return None
    guards = [g for part in conjuncts(query.having) if (g := _indexed(part, components)) is not None]
    return min(guards, key=lambda g: _GUARDS[g.aggregate.kind], default=None)


def _indexed(part: Expression, components: Mapping[Windowed, Query]) -> Query | None:
    """An aggregate with an index, over a window of time that ends now, against a number."""
    if part.op not in COMPARISONS or part.op in ("=", "<>"):
        return None
    first, threshold = part.operands
    if isinstance(first, Expression) or not is_number(threshold):
        return None
    leaf = first if isinstance(first, Windowed) else Windowed(first)
    component = components[leaf]
    window = component.window
    if component.aggregate.kind not in _GUARDS or not isinstance(window, Range) or window.until != 0:
        return None
    guard = replace(component, having=(part.op, threshold))
    alone = leaf.where is None and len({(each.window, each.where) for each in components.values()}) == 1
    zero_passes = guard.condition is not None and bool(guard.condition.holds(pa.array([0]))[0])
    if component.aggregate.kind == "count" and zero_passes and not alone:
        return None  # keys without an event in this window pass, and no index sees those
    return replace(guard, name=f"{component.name} HAVING {guard.condition}")
