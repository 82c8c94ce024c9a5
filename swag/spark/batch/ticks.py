"""Queries that answer at ticks, or read the answers of others: a task's rows are taken as a whole, as a stored table.

A frequency that counts the whole stream is counted by one task; one that counts per key is spread over tasks by key.
A task holds all of its rows at once, so use Layout(tasks=…) for as many as make them small.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from swag.errors import BadQuery
from swag.evaluate import evaluate as embedded
from swag.query.groupings import levels
from swag.query.lowering import components, readers
from swag.query.query import Events, Query
from swag.spark import process, schema
from swag.spark.asked import columns_read
from swag.spark.batch.layout import Layout
from swag.spark.batch.tasks import of_type
from swag.spark.key_rows import KeyRows
from swag.spark.key_runs import refuse_nulls
from swag.spark.places import col, free, numbered, placed
from swag.spark.portable import in_workers, portable
from swag.stored.evaluation import keep_apart
from swag.tables.answers import own_name
from swag.tables.columns import Clock
from swag.ticks.nested import evaluate_ticks, last_of


@dataclass(frozen=True)
class TickTask:
    """key: what it is called in here: a key of one column by its own name, others are numbers under another."""

    queries: tuple[Query, ...]
    keys: list[str]
    known_by: str
    key: str | None
    ts: str
    read: list[str]
    clock: Clock
    out: pa.Schema


def evaluate(
    asked: list[Query], events: DataFrame, at: DataFrame | None, ts: str, keys: list[str], layout: Layout
) -> DataFrame:
    """Queries with `every` or `source` over a DataFrame: spread by key where all count per key, else in one task."""
    if at is not None:
        if any(query.every is not None for query in asked):
            raise BadQuery("queries with `every` say themselves when they answer; `at` asks for other times.")
        raise BadQuery(
            "on Spark a query with `source` answers at its events, not `at` requests.",
            "sw.evaluate, or evaluate its events as a DataFrame of their own: events.where(…)",
        )
    read = _columns(asked, events, ts)
    for name in keys:
        schema.check_key(schema.field(events, name, "key is"))
        keep_apart(asked, pa.table({name: []}))
    columns, known_by = schema.one_key(events, keys) if keys else ([], "")
    key = _key_name(asked, keys, known_by, [*read, ts])
    empty = schema.empty_table(events).select(list(dict.fromkeys([*read, ts])))
    if key is not None and key not in empty.column_names:
        own = schema.empty_table(events).column(key) if key in keys else pa.array([], pa.int64())
        empty = empty.append_column(key, own)
    types = embedded(asked, empty, ts=ts, key=key).schema
    when, arrival = schema.instant(events, ts).alias("t"), F.monotonically_increasing_id().alias("seq")
    rows = placed(events).select(*columns, when, arrival, *numbered("e", [col(events, name) for name in read]))
    apart = keys and all(_counts_per_key(query) for query in asked)
    if apart and any(_ticks_on(query) for query in asked):
        rows = rows.crossJoin(F.broadcast(rows.agg(F.max("t").alias("end"))))
    spread = [layout.tasks, known_by] if layout.tasks else [known_by]
    rows = (rows.repartition(*spread) if apart else rows.repartition(1)).sortWithinPartitions("t", "seq").drop("seq")
    out = StructType(_fields(types, events, key, keys))
    clock, wanted = Clock(empty.schema.field(ts).type), schema.arrow_of(out, events)
    return in_workers(
        rows, partial(answers, TickTask(portable(asked), keys, known_by, key, ts, read, clock, wanted)), out
    )


def _key_name(asked: list[Query], keys: list[str], known_by: str, taken: list[str]) -> str | None:
    """What a task calls the key: its column, or a free name for numbers, which no query may read as that column."""
    if not keys:
        return None
    if known_by == "k0":
        return keys[0]
    for query in (each for one in asked for each in levels(one) if each.source is not None):
        for name in columns_read(components(query)):
            if name in keys and not isinstance(query.source, Events):
                raise BadQuery(
                    f'query "{query.title}" reads "{name}" of the answers of another, where keys are numbers: '
                    "they have several columns, or a type of their own.",
                    f'a key of one column of text: key="…"; or count "{name}" among the events',
                )
    return free(" k", taken)


def _counts_per_key(query: Query) -> bool:
    inner = query.source.source if isinstance(query.source, Events) else query.source
    return (query.every is None or query.every.per_key) and (inner is None or _counts_per_key(inner))  # type: ignore[arg-type]


def _ticks_on(query: Query) -> bool:
    """Do slots tick that have no event, up to the last event of any key? A task can not know when that is."""
    inner = query.source.source if isinstance(query.source, Events) else query.source
    own = query.every is not None and query.every.by_time and query.every.anchor == "tick"
    return own or (inner is not None and _ticks_on(inner))  # type: ignore[arg-type]


def _columns(asked: list[Query], events: DataFrame, ts: str) -> list[str]:
    """The columns of the events that queries, and the queries they read, read."""
    known, found = set(events.columns), []
    for query in asked:
        found += [name for name in columns_read(readers(query), events.columns) if name != ts]
    for name in found:
        if name not in known:
            schema.field(events, name, "a query reads")
    return list(dict.fromkeys(found))


def _fields(types: pa.Schema, events: DataFrame, key: str | None, keys: list[str]) -> list[StructField]:
    fields = []
    for field in schema.spark_fields(types):
        if field.name == key:
            fields += [StructField(name, events.schema[name].dataType) for name in keys]
        else:  # "tick" beside a key of that name
            fields.append(StructField(own_name(field.name, *keys), field.dataType))
    return fields


def _end(task: TickTask, table: pa.Table) -> int | None:
    """The time of the last event of all tasks, where that matters."""
    if "end" not in table.column_names:
        return None
    return last_of(pa.table({task.ts: of_type(table.column("end"), task.clock.type)}), task.ts, None)


def answers(task: TickTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker: all rows of a task as one stored table, and its ticks; numbered keys get their columns back."""
    process.begin()
    kept = list(batches)
    if not sum(batch.num_rows for batch in kept):
        return
    table = pa.Table.from_batches(kept)
    names = {f"k{i}": name for i, name in enumerate(task.keys)}
    refuse_nulls(table, names, task.ts)
    columns = {name: table.column(f"e{i}") for i, name in enumerate(task.read)}
    events = pa.table({**columns, task.ts: of_type(table.column("t"), task.clock.type)})
    keys, by_number = KeyRows(list(names), task.known_by), task.key not in (None, *task.keys)
    if task.key is not None:
        who = pa.array(keys.ids(table)) if by_number else table.column(task.known_by)
        events = events if task.key in events.column_names else events.append_column(task.key, who)
    found = evaluate_ticks(
        list(task.queries), events, None, task.ts, () if task.key is None else (task.key,), _end(task, table)
    )
    out = []
    for name, column in zip(found.column_names, found.columns, strict=True):
        out += keys.columns(column.to_numpy()) if by_number and name == task.key else [column]
    out = [of_type(column, want.type) for column, want in zip(out, task.out, strict=True)]
    yield from pa.Table.from_arrays(out, schema=task.out).to_batches(max_chunksize=1 << 16)
