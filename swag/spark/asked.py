"""What queries ask for: by which keys, and of which columns."""

from collections.abc import Iterable
from typing import Any

from swag.errors import BadQuery
from swag.evaluate import asked_queries as checked
from swag.query.groupings import levels, ungrouped
from swag.query.over_frames import OverFrames
from swag.query.query import Query
from swag.tables.predicate import columns_of


def grouped_by(queries: Any, keys: list[str]) -> list[Query]:
    """Queries as a list; those from SQL without their GROUP BY, once it was found to be the key."""
    asked = checked(queries)
    for query in asked:
        if isinstance(query, OverFrames):
            raise BadQuery(f'"{query.label}" is a query over frames.', "swag.spark.evaluate, frames.spark.stream(…)")
    check_grouping(asked, keys)
    return [ungrouped(query) for query in asked]


def check_grouping(asked: list[Query], keys: list[str]) -> None:
    for query in (each for one in asked for each in levels(one)):
        if query.by is not None and query.by != tuple(keys):
            said = f"GROUP BY {', '.join(query.by)}" if query.by else "no GROUP BY"
            raise BadQuery(
                f'query "{query.label}" has {said}, but the stream has key={keys or None!r}.',
                f"key={list(query.by) or None!r}",
            )


def columns_read(simple: Iterable[Query]) -> list[str]:
    """The columns that simple queries read, each once."""
    by_query = [[*q.aggregate.columns, *(sorted(columns_of(q.where)) if q.where else [])] for q in simple]
    return list(dict.fromkeys(name for names in by_query for name in names))
