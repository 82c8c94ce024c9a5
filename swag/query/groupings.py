"""Which way the events of a query are grouped: as its `by` says, else by the key of the engine or call.

A query and the one that it reads may be grouped differently. Each level is grouped as it says, else as the one that it
reads, else as the one that reads it, else by default; PARTITIONED BY adds the columns that it counts by.
"""

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from swag.errors import BadQuery
from swag.query.query import Events, Query, Several, Source, queries_in

By = tuple[str, ...]  # the key columns of a grouping; none: the whole stream


def stages(query: Any) -> Iterator[Any]:
    """A query, what it reads, and so on: queries, several at once, and events that are chosen."""
    inside = query
    while inside is not None:
        yield inside
        inside = getattr(inside, "source", None)  # a query over frames has none


def levels(query: Any) -> Iterator[Any]:
    """A query, those that it reads, and so on."""
    for stage in stages(query):
        if isinstance(stage, Several):
            yield from stage.queries
        elif not isinstance(stage, Events):
            yield stage


def streams_of(query: Any) -> set[str]:
    """What it calls the events that it reads, at the innermost; nothing if it does not say."""
    *_, innermost = stages(query)
    named = [innermost] if isinstance(innermost, Events) else queries_in(innermost)
    return {each.stream for each in named if each.stream is not None}


def _groupings(query: Any, default: By) -> list[By]:
    """Of each stage that groups, from the outermost to the innermost."""
    asking = [stage for stage in stages(query) if not isinstance(stage, Events)]
    said = [stage.by for stage in asking]
    found = []
    for i, stage in enumerate(asking):
        near = [by for by in (*said[i:], *reversed(said[:i])) if by is not None]
        by, every = near[0] if near else default, getattr(stage, "every", None)
        counted = () if every is None else every.by or ()
        found.append((*by, *(name for name in counted if name not in by)))
    return found or [default]


def grouping_of(query: Any, default: By) -> By:
    """The key columns that a query reports."""
    return _groupings(query, default)[0]


def check_apart(
    queries: Iterable[Any], ts: str, default: By, known: Mapping[str, Any], groupings: Iterable[By]
) -> None:
    """Refuse a query that is named like a column which comes before the answers: ts, or one of the key of any query, as
    all are answered together (those over frames are not). known: those that are there already, in these groupings."""
    added = dict.fromkeys(name for query in queries for name in grouping_of(query, default))
    taken = dict.fromkeys((ts, *default, *(name for by in groupings for name in by), *added))
    for query in (*queries, *(known[name] for name in added if name in known)):
        if isinstance(query, Query) and (name := query.label) in taken:
            raise BadQuery(
                f'query "{name}" has the name of a column that comes before the answers: {", ".join(taken)}.',
                'name it apart: sw.Query(…, name="…")',
            )


def home_of(query: Any, default: By) -> By:
    """Those by which the events are grouped that a query, or the innermost that it reads, is answered from."""
    return _groupings(query, default)[-1]


def settled(query: Any, default: By = ()) -> Any:
    """The same in a stream that is grouped as `home_of` says: `by` stands only where it is another than inside."""
    groupings = _groupings(query, default)
    found: Any = None
    below: By | None = None
    for stage in reversed(list(stages(query))):
        if isinstance(stage, Events):
            found = stage if stage.source is found else replace(stage, source=found)
            continue
        by = groupings.pop()
        found = _settled(stage, by, None if by == below or below is None else by, found)
        below = by
    return found


def _settled(stage: Any, by: By, said: By | None, source: Source | None) -> Any:
    if isinstance(stage, Several):
        return Several(tuple(_settled(each, by, said, source) for each in stage.queries))
    every = stage.every
    if every is not None and every.by is not None and set(every.by) == set(by):
        every = replace(every, per_key=True, by=None)
    as_it_is = stage.by == said and every == stage.every and stage.source is source
    return stage if as_it_is else replace(stage, by=said, every=every, source=source)


def answers_by(source: Source, home: By) -> By:
    """The key columns of what a settled query, or what it reads, gives."""
    return next((each.by for each in levels(source) if each.by is not None), home)


def by_grouping(queries: Iterable[Query], default: By) -> dict[By, list[Query]]:
    """Queries by the way the events are grouped that they are answered from, settled there; the default comes first."""
    found: dict[By, list[Query]] = {default: []}
    for query in queries:
        if query.source is None and (query.every is None or query.every.by is None):
            by = default if query.by is None else query.by
            found.setdefault(by, []).append(query if query.by is None else _without_by(query))
        else:
            found.setdefault(home_of(query, default), []).append(settled(query, default))
    return {by: some for by, some in found.items() if some}


def _without_by(query: Query) -> Query:
    """As `replace` has it, which would check all the rest again; thousands may be registered at once."""
    found = copy(query)
    object.__setattr__(found, "by", None)
    return found


def shown_by(by: By) -> str:
    """As messages have it."""
    return ", ".join(by) if by else "nothing (the whole stream)"


def one_or_several(by: By) -> str | By | None:
    """As a user says it: a name, several, or none."""
    return None if not by else by[0] if len(by) == 1 else by
