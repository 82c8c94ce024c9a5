"""Registered queries over a Structured Streaming source: `swag.spark.stream`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from swag.engine import Engine
from swag.errors import BadQuery, BadType, UnknownColumn, nearest
from swag.evaluate import asked_queries, evaluate
from swag.query.groupings import By, by_grouping, one_or_several, shown_by
from swag.query.lowering import readers, simple_ones
from swag.query.query import Query
from swag.query.reading import Reading
from swag.query.windows import Unbounded, sees_later
from swag.spark.answer_types import streamed_type
from swag.spark.asked import over_windows
from swag.spark.places import named
from swag.spark.portable import fingerprint, portable
from swag.spark.schema import arrow_schema, key_names, refuse_pandas
from swag.spark.streams.joined_keys import apart, joined, name_of, without
from swag.spark.streams.packing import COUNTS, Pack, in_utc, shard_numbers
from swag.spark.streams.shard_streams import EVENTS
from swag.spark.streams.shard_windows import REQUESTS, Windows, frequencies
from swag.spark.streams.sharding import observed, pack, partitions_of, shard_count, sharded
from swag.spark.streams.watermark import EventTime
from swag.spark.together import all_keys, together
from swag.sql.places import placed
from swag.tables.answers import own_name
from swag.tables.times.durations import Duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from swag.spark.streams.shard import Job

STREAM = "swag.spark.stream"


def stream(
    queries: Query | Iterable[Query],
    events: "DataFrame",
    *,
    requests: "DataFrame | None" = None,
    ts: str = "ts",
    key: str | list[str] | None = None,
    lateness: Duration | None = None,
    shards: int | None = None,
    metrics: str = "swag",
) -> "DataFrame":
    """The answers of queries over a stream, trigger by trigger: query, tick, ts, [key], value.

    Events are applied when the watermark (the latest ts seen, less `lateness`) passes them. Each trigger then answers
    as of the watermark: a query for the keys whose events were applied, a query with `having` for all keys that pass,
    a query with `every` for the ticks that the watermark decided. With `requests`, a stream with ts (and key): the
    requests' own columns, then one per query, once the watermark has passed the request's ts (and the slot it is in,
    where a query reads slots that are anchored at tuples).

    Queries may be grouped in several ways, each by its own `by`: then each grouping has shards of its own, and the
    table the key columns of all, null where a query does not group by one. At requests there is one grouping.

    shards: how many parts the keys are dealt to; spark.sql.shuffle.partitions if not given. A checkpoint keeps it.
    metrics: the name of the observed metrics; where several such streams are in one query, each needs its own.

    >>> import swag as sw, swag.spark
    >>> trades = spark.readStream.schema("ts long, k string, x double").parquet("trades")  # doctest: +SKIP
    >>> query = sw.Query(sw.sum("x"), sw.Range(60), name="s", every=sw.Every(time=60))
    >>> answers = swag.spark.stream(query, trades, key="k", lateness=10)  # doctest: +SKIP
    >>> answers.writeStream.format("console").option("checkpointLocation", "checkpoint").start()  # doctest: +SKIP
    """
    asked, keys = asked_queries(queries), key_names(key)
    with placed(queries):
        if not all(isinstance(query, Query) for query in asked):
            raise BadQuery("a statement over frames is not streamed as windows are.", "frames.spark.stream(query, …)")
        groups = by_grouping(over_windows(asked, tuple(keys)), tuple(keys))
        if requests is not None:
            one_of(groups)
        value = _value_of_all(asked, groups, events, ts, keys) if len(groups) > 1 else None
        asking = Asking(events, requests, ts, lateness, shards, value)
        answers = {by: _by_keys(own, list(by), asking) for by, own in groups.items()}
        if len(groups) == 1:
            return observed(answers[next(iter(groups))], metrics)
        query, tick, own = (own_name(name, ts, *all_keys(groups)) for name in ("query", "tick", "value"))
        return observed(together(answers, [COUNTS, query, tick, ts], own, events), metrics)


@dataclass(frozen=True)
class Asking:
    """What a user says beside the queries. value: the type of all answers, if those of others are beside them."""

    events: "DataFrame"
    requests: "DataFrame | None"
    ts: str
    lateness: Duration | None
    shards: int | None
    value: pa.DataType | None


def one_of(groups: dict[By, list[Query]]) -> None:
    """Refuse several groupings: the answers at a request are one row."""
    if len(groups) > 1:
        shown = "; ".join(map(shown_by, groups))
        raise BadQuery(f"queries at requests are grouped in one way, not in several ({shown}).", "a call for each")


def _value_of_all(
    asked: list[Query], groups: dict[By, list[Query]], events: "DataFrame", ts: str, keys: list[str]
) -> pa.DataType:
    """The type of the answers of several groupings. Refused is what could not be in one table with the others."""
    table = columns_of(
        events, Reading(_all_readers(asked), ts, *keys, *all_keys(groups)).of_events(events.columns), "events"
    )
    default = one_or_several(tuple(keys))
    Engine(ts=ts, key=default).register(asked)
    return streamed_type(asked, _kinds(asked, table, ts, default), STREAM)


def _by_keys(asked: list[Query], keys: list[str], asking: Asking) -> "DataFrame":
    """Counts and answers by a list of key columns: several are joined into one on the way."""
    if len(keys) < 2:
        return _answered(asked, keys[0] if keys else None, asking)
    events, requests, ts = asking.events, asking.requests, asking.ts
    columns_of(events, {}, "events")
    one = name_of(keys, [*events.columns, *(requests.columns if requests is not None else [])])
    if requests is not None:
        requests = joined(requests, keys, "requests", one)
    found = _answered(asked, one, replace(asking, events=joined(events, keys, "events", one), requests=requests))
    if requests is not None:
        return without(found, one)
    found = apart(found, keys, events, one)
    query, tick, value = (own_name(name, ts, *keys) for name in ("query", "tick", "value"))
    return named(found, [COUNTS, query, tick, ts, *keys, value])


def _answered(asked: list[Query], key: str | None, asking: Asking) -> "DataFrame":
    """The same by one column, or none."""
    events, requests, ts = asking.events, asking.requests, asking.ts
    wanted = Reading(_all_readers(asked), ts, key).of_events(events.columns)
    table = columns_of(events, wanted, "events")
    front = None if requests is None else requests_schema(requests, table, asked, ts, key)
    count = shard_count(events, 1 if key is None or any(map(_needs_all, asked)) else asking.shards)
    job = windows_job(asked, table, front, ts, key, count, asking.value)
    numbers = shard_numbers(count, partitions_of(events))
    packed = pack(events, Pack(EVENTS, ts, key, job.time, names=tuple(table.names)), numbers)
    if requests is not None:
        packer = Pack(REQUESTS, ts, key, job.time, tells_time=False, names=tuple(requests.columns))
        kind = None if key is None else events.schema[key].dataType
        packed = packed.unionByName(pack(requests, packer, numbers, kind))
    return sharded([packed], replace(job, delay=job.time.delay(asking.lateness)))


def _all_readers(asked: list[Query]) -> Iterator[Query]:
    return (each for query in asked for each in readers(query))


def _kinds(asked: list[Query], table: pa.Schema, ts: str, key: Any) -> dict[str, pa.DataType]:
    """The types of answers; by the code that answers, which also says what can not be asked."""
    nothing = table.empty_table()
    return {q.label: evaluate([q], nothing, ts=ts, key=key).schema.field(q.label).type for q in asked}


def windows_job(
    asked: list[Query], table: pa.Schema, front: pa.Schema | None, ts: str, key: str | None, shards: int,
    value: pa.DataType | None = None,
) -> "Job":  # fmt: skip
    """What the shards are to do. table, front: the columns of events and of requests. value: the type of answers, if
    those of others are beside them."""
    from swag.spark.streams.shard import Job

    Engine(ts=ts, key=key).register(asked)  # what no engine takes is said here
    for each in simple_ones(asked):
        if sees_later(each.window):
            raise BadQuery(
                f'query "{each.title}": {each.window!r} takes what comes after a tick; no stream of Spark waits.',
                "swag.spark.evaluate over stored events",
            )
        if isinstance(each.window, Unbounded):
            raise BadQuery(
                f'query "{each.title}": a stream of Spark keeps the events that windows hold, and {each.window!r} lets '
                "go of none.",
                "a window that ends: sw.Range(…)",
            )
    if front is not None and any(query.every is not None for query in asked):
        raise BadQuery("queries with `every` answer at ticks, not at requests.", "leave out every, or requests")
    time = event_time(table, ts)
    kinds = _kinds(asked, table, ts, key)
    if value is None:
        value = pa.null() if front is not None else streamed_type(asked, kinds, STREAM)
    output = answer_schema(table, ts, key, value) if front is None else with_answers(front, kinds)
    plan = Windows(portable(asked), ts, key, time, normal(table, ts, time), front and normal(front, ts, time), value)
    purpose = {
        "what": "windows" if front is None else "windows at requests",
        "ts": f"{ts} {table.field(ts).type}",
        "key": key and f"{key} {table.field(key).type}",
        "shards": shards,
        "parts": {query.label: fingerprint(query) for query in asked},
    }
    return Job(plan, purpose, time, output)


# -- schemas ----------------------------------------------------------------------------------------------------------


def columns_of(frame: "DataFrame", wanted: dict[str, str], what: str) -> pa.Schema:
    """The Arrow types of the columns that are read, by name."""
    refuse_pandas(frame, f"the {what}")
    if not getattr(frame, "isStreaming", False):
        found = "stored DataFrame" if hasattr(frame, "isStreaming") else type(frame).__name__
        raise BadType(
            f"the {what} are a {found}, not a stream.",
            "spark.readStream; for stored ones swag.spark.evaluate(…), frames.spark.detect(…)",
        )
    every = in_utc(arrow_schema(frame))
    for name, asked_by in wanted.items():
        found, have = every.names.count(name), ", ".join(every.names)
        if found > 1:
            raise UnknownColumn(f'the {what} have {found} columns "{name}": {have}.', "rename one")
        if not found:
            raise UnknownColumn(f'{asked_by} "{name}", but the {what} have: {have}.', nearest(name, every.names))
    return pa.schema([every.field(name) for name in wanted])


def event_time(table: pa.Schema, ts: str) -> EventTime:
    kind = table.field(ts).type
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
        return EventTime(integer=bool(pa.types.is_integer(kind)))
    raise BadType(f'ts column "{ts}" is {kind}; a stream needs an integer or a timestamp.', 'cast("timestamp")')


def normal(table: pa.Schema, ts: str, time: EventTime) -> pa.Schema:
    """A schema as shards keep it."""
    return pa.schema([pa.field(each.name, time.type if each.name == ts else each.type) for each in table])


def requests_schema(
    requests: "DataFrame", events: pa.Schema, queries: list[Query], ts: str, key: str | None
) -> pa.Schema:
    """The Arrow types of the requests' columns; refused if ts is not as in the events, or a query is named like one."""
    wanted = {ts: "ts is"} | ({} if key is None else {key: "key is"})
    columns_of(requests, wanted, "requests")
    every = columns_of(requests, dict.fromkeys(requests.columns, ""), "requests")
    if every.field(ts).type != events.field(ts).type:
        raise BadType(
            f'"{ts}" is {every.field(ts).type} in the requests, {events.field(ts).type} in the events.', "cast one"
        )
    for query in queries:
        if query.label in every.names:
            raise BadQuery(
                f'query "{query.label}" has the name of a column that comes before the answers: '
                f"{', '.join(every.names)}.",
                'name it apart: sw.Query(…, name="…")',
            )
    return every


def answer_schema(table: pa.Schema, ts: str, key: str | None, value: pa.DataType) -> pa.Schema:
    query, tick, own = (own_name(name, ts, key) for name in ("query", "tick", "value"))
    fields = [pa.field(query, pa.string()), pa.field(tick, pa.int64()), table.field(ts)]
    fields += [] if key is None else [table.field(key)]
    return pa.schema([*fields, pa.field(own, value)])


def with_answers(front: pa.Schema, kinds: dict[str, pa.DataType]) -> pa.Schema:
    return pa.schema([*front, *(pa.field(name, kind) for name, kind in kinds.items())])


# -- shards -----------------------------------------------------------------------------------------------------------


def _needs_all(query: Query) -> bool:
    """Does it take the whole stream to say when this query, or one that it reads, ticks?"""
    return any(not e.per_key and not (e.by_time and e.anchor == "tick") for e in frequencies(query))
