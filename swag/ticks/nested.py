"""Queries with `every`, and queries over the answers of others, over stored events."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kernels.operators.numbers import EARLIEST
from swag.errors import BadQuery
from swag.query.every import Every
from swag.query.groupings import By, answers_by, grouping_of, home_of, settled
from swag.query.lowering import choosers, components
from swag.query.query import Events, Query, Several, Source, queries_in
from swag.query.reading import Reading
from swag.stored.evaluation import answered_by, keep_apart
from swag.tables.answers import own_name
from swag.tables.columns import clock_of, column, instants
from swag.tables.key_columns import apart, joined, key_name
from swag.tables.predicate import holds
from swag.ticks.inside.picking import partition_columns, picked
from swag.ticks.inside.relations import relations
from swag.ticks.stored_ticks import Stretch, jump


def evaluate_ticks(
    queries: list[Query], table: pa.Table, at: Any, ts: str, home: By, end: int | None = None
) -> pa.Table:
    """What `evaluate` does where there is an `every` or a `source`: settled queries, of events that are grouped by
    `home`.

    end: the time of the last event of all; slots up to its own are decided, also where this stream ends before.
    """
    source, every = _shared(queries, "source"), _shared(queries, "every")
    if source is not None:
        return _over_answers(queries, source, table, at, ts, home, last_of(table, ts, end))
    assert isinstance(every, Every)
    if at is not None:
        raise BadQuery(
            "queries with `every` say themselves when they answer; `at` asks for other times.", "leave one out"
        )
    if every.per_key and not home:
        raise BadQuery(f"{every!r} counts per key, but there is no key.", 'sw.evaluate(…, key="…")')
    wanted = Reading((each for query in queries for each in components(query)), ts, *home)
    key, whole = key_name(home), bool(home) and not every.per_key
    rows = Stretch.of(joined(_columns(table, wanted), home), ts, key, ordered=whole, end=end)
    jumped = jump(queries, every, rows)
    front = apart(jumped.front(rows.clock, every, own_name("tick", ts, key), ts, key), home)
    keep_apart(queries, front)
    names = [*front.column_names, *(query.label for query in queries)]
    return pa.table([*front.columns, *jumped.columns], names=names)


def _over_answers(
    queries: list[Query], source: Source, table: pa.Table, at: Any, ts: str, home: By, end: int
) -> pa.Table:
    """Over a stream inside; grouped as it is, or otherwise."""
    said = queries[0].by
    by = answers_by(source, home) if said is None else said
    if any(query.is_relation for query in queries):
        return _relations(queries, source, table, at, ts, home, by, end)
    wanted = Reading((each for query in queries for each in components(query)), ts, *by)
    outer = [replace(query, source=None, name=query.label, by=None) for query in queries]
    return _evaluate(outer, read_from(source, table, ts, home, by, wanted, end), at, ts, by, end)


def _relations(
    queries: list[Query], source: Source, table: pa.Table, at: Any, ts: str, home: By, by: By, end: int
) -> pa.Table:
    """Queries without a window, over stored events: relations over the answers at each tick of what they read."""
    if at is not None or not all(query.is_relation for query in queries):
        raise BadQuery(
            "queries without a window answer at each tick of what they read; others, and `at`, at other times.",
            "evaluate them by themselves, without `at`",
        )
    assert not isinstance(source, Events)
    ticks = answers_as_stream(source, table, ts, home, end)
    found = relations(queries, ticks, ticks.column_names[0], ts, by)
    return found.rename_columns([own_name("tick", ts, *by), *found.column_names[1:]])


def _evaluate(queries: list[Query], table: pa.Table, at: Any, ts: str, by: By, end: int) -> pa.Table:
    if all(query.is_plain for query in queries):
        return answered_by(queries, table, at, ts, by)
    return evaluate_ticks(queries, table, at, ts, by, end)


def last_of(table: pa.Table, ts: str, end: int | None) -> int:
    """The time of the last event, or `end` if that is later."""
    times = column(table, ts, "ts is")
    clock_of(times, ts)
    return int(instants(times, ts).max(initial=EARLIEST if end is None else end))


def read_from(source: Source, table: pa.Table, ts: str, home: By, by: By, wanted: Reading | None, end: int) -> pa.Table:
    """The events of a stream inside: those that are chosen, or the answers of queries. by: how who reads them groups
    them. wanted: what is read of those, where that is not all of them; what is SQL over it is computed by who reads."""
    if not isinstance(source, Events):
        return answers_as_stream(source, table, ts, home, end)
    if source.source is not None:
        needed = None if wanted is None else Reading([*wanted.queries, *choosers(source)], wanted.ts, *wanted.keys)
        table = read_from(source.source, table, ts, home, by, needed, end)
    if source.every is not None:
        table = table.take(pa.array(_picked(source.every, table, ts, by)))
    table = table if source.where is None else table.filter(pa.array(holds(source.where, table)))
    return table if wanted is None else _select(table, wanted.of_events(table.column_names))


def chosen_events(events: Events, table: pa.Table, ts: str, default: By) -> pa.Table:
    """SELECT * FROM …, by itself: the events that it chooses, as they are."""
    by = grouping_of(events, default)
    return read_from(settled(events, default), table, ts, home_of(events, default), by, None, last_of(table, ts, None))


def answers_as_stream(source: Query | Several, table: pa.Table, ts: str, home: By, end: int) -> pa.Table:
    """The answers of queries as events: their ticks, or their answers at every event. With `having`: those that
    pass."""
    queries = [replace(query, name=query.column) for query in queries_in(source)]
    table = _evaluate(queries, table, None, ts, home, end)
    if source.having is not None and not source.at_ticks:
        said = [np.asarray(pc.is_valid(table.column(query.column))) for query in queries]
        table = table.filter(pa.array(np.logical_or.reduce(said)))
    return table


def _picked(every: Every, table: pa.Table, ts: str, key: By) -> np.ndarray:
    """The places of the tuples that a frequency picks."""
    times = column(table, ts, "ts is")
    by = key if every.per_key and key else partition_columns(every, None)
    return picked(every, table, instants(times, ts), by, every.step(clock_of(times, ts).unit))


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
    return _select(table, wanted.columns)


def _select(table: pa.Table, wanted: dict[str, str]) -> pa.Table:
    return pa.table({name: column(table, name, asked_by) for name, asked_by in wanted.items()})
