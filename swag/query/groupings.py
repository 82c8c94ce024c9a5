"""Which way the events of a query are grouped: as its `by` says, else by the key of the engine or call."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from swag.errors import BadQuery
from swag.query.query import Events, Query

By = tuple[str, ...]  # the key columns of a grouping; none: the whole stream


def levels(query: Any) -> Iterator[Any]:
    """A query, the one that it reads, and so on."""
    inside = query
    while inside is not None:
        if not isinstance(inside, Events):
            yield inside
        inside = getattr(inside, "source", None)  # a query over frames has none


def grouping_of(query: Any, default: By) -> By:
    """The key columns by which a query, and all that it reads, is answered."""
    said = dict.fromkeys(each.by for each in levels(query) if each.by is not None)
    if len(said) > 1:
        shown = " within ".join(shown_by(by) for by in said)
        raise BadQuery(
            f'query "{query.label}" groups by {shown}: a query and the one that it reads are grouped alike.',
            "the same `by` (or GROUP BY) for both",
        )
    return next(iter(said), default)


def ungrouped(query: Query) -> Query:
    """Without `by`, its own and those of what it reads: in a stream of one grouping all have the same."""
    source = query.source
    if isinstance(source, Query):
        source = ungrouped(source)
    elif source is not None and isinstance(source.source, Query):
        source = replace(source, source=ungrouped(source.source))
    return query if query.by is None and source is query.source else replace(query, by=None, source=source)


def by_grouping(queries: Iterable[Query], default: By) -> dict[By, list[Query]]:
    """Queries by the way their events are grouped, without their `by`; the default grouping comes first."""
    found: dict[By, list[Query]] = {default: []}
    for query in queries:
        found.setdefault(grouping_of(query, default), []).append(ungrouped(query))
    return {by: some for by, some in found.items() if some}


def shown_by(by: By) -> str:
    """As messages have it."""
    return ", ".join(by) if by else "nothing (the whole stream)"


def one_or_several(by: By) -> str | By | None:
    """As a user says it: a name, several, or none."""
    return None if not by else by[0] if len(by) == 1 else by
