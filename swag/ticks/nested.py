"""Queries with `every`, and queries over the answers of others, over stored events."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kernels.operators.numbers import EARLIEST
from swag.errors import BadQuery
from swag.query.every import Every
from swag.query.lowering import components
from swag.query.query import Events, Query
from swag.query.reading import Reading
from swag.stored.evaluation import answered, keep_apart
from swag.tables.answers import own_name
from swag.tables.columns import clock_of, column, instants
from swag.tables.predicate import holds
from swag.ticks.stored_ticks import Stretch, jump


def evaluate_ticks(
    queries: list[Query], table: pa.Table, at: Any, ts: str, key: str | None, end: int | None = None
) -> pa.Table:
    """What `evaluate` does where there is an `every` or a `source`.

    end: the time of the last event of all; slots up to its own are decided, also where this stream ends before.
    """
    source, every = _shared(queries, "source"), _shared(queries, "every")
    wanted = Reading((each for query in queries for each in components(query)), ts, key)
    if source is not None:
        outer = [replace(query, source=None, name=query.label) for query in queries]
        end = last_of(table, ts, end)
        return _evaluate(outer, read_from(source, table, ts, key, wanted, end), at, ts, key, end)
    assert isinstance(every, Every)
    if at is not None:
        raise BadQuery(
            "queries with `every` say themselves when they answer; `at` asks for other times.", "leave one out"
        )
    if every.per_key and key is None:
        raise BadQuery(f"{every!r} counts per key, but there is no key.", 'sw.evaluate(…, key="…")')
    whole = key is not None and not every.per_key
    rows = Stretch.of(_columns(table, wanted), ts, key, ordered=whole, end=end)
    jumped = jump(queries, every, rows)
    front = jumped.front(rows.clock, every, own_name("tick", ts, key), ts, key)
    keep_apart(queries, front)
    names = [*front.column_names, *(query.label for query in queries)]
    return pa.table([*front.columns, *jumped.columns], names=names)


def _evaluate(queries: list[Query], table: pa.Table, at: Any, ts: str, key: str | None, end: int) -> pa.Table:
    if all(query.is_plain for query in queries):
        return answered(queries, table, at, ts, key)
    return evaluate_ticks(queries, table, at, ts, key, end)


def last_of(table: pa.Table, ts: str, end: int | None) -> int:
    """The time of the last event, or `end` if that is later."""
    times = column(table, ts, "ts is")
    clock_of(times, ts)
    return int(instants(times, ts).max(initial=EARLIEST if end is None else end))


def read_from(source: Query | Events, table: pa.Table, ts: str, key: str | None, wanted: Reading, end: int) -> pa.Table:
    """The events of a stream inside: those for which a condition holds, or the answers of a query."""
    if isinstance(source, Query):
        return answers_as_stream(source, table, ts, key, end)
    if source.source is not None:
        table = answers_as_stream(source.source, table, ts, key, end)  # type: ignore[arg-type]
    return _columns(table, wanted).filter(pa.array(holds(source.where, table)))


def answers_as_stream(source: Query, table: pa.Table, ts: str, key: str | None, end: int) -> pa.Table:
    """The answers of a query as events: its ticks, or its answer at every event. With `having`: those that pass."""
    table = _evaluate([replace(source, name=source.column)], table, None, ts, key, end)
    if source.having is not None and source.every is None:
        table = table.filter(pc.is_valid(table.column(source.column)))
    return table


def _shared(queries: list[Query], what: str) -> Any:
    """The `every` or `source` that queries evaluated together have in common."""
    found = list(dict.fromkeys(getattr(query, what) for query in queries))
    if len(found) > 1:
        shown = "; ".join(str(each) for each in found[:3])
        raise BadQuery(
            f"queries evaluated together share one `{what}`, but these have {len(found)}: {shown}.",
            f"one sw.evaluate, or one file of SQL, for each `{what}`; or an engine",
        )
    return found[0]


def _columns(table: pa.Table, wanted: Reading) -> pa.Table:
    table = wanted.extended(table) if wanted.derived else table
    return pa.table({name: column(table, name, asked_by) for name, asked_by in wanted.columns.items()})
