"""Registered queries over a Structured Streaming source: `swag.spark.stream`."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from swag.engine import Engine
from swag.errors import BadQuery, BadType, UnknownColumn, nearest
from swag.evaluate import asked_queries, evaluate
from swag.query.groupings import stages
from swag.query.lowering import readers, simple_ones
from swag.query.query import Query, Several
from swag.query.reading import Reading
from swag.query.windows import Unbounded, sees_later
from swag.spark.answer_types import streamed_type
from swag.spark.asked import grouped_by
from swag.spark.places import col, named, numbered, placed
from swag.spark.portable import fingerprint, in_workers, own_python, portable
from swag.spark.schema import arrow_schema, key_names, refuse_pandas
from swag.spark.streams.joined_keys import apart, joined, name_of, without
from swag.spark.streams.packing import PACKED_SPARK, Pack, in_utc, shard_numbers
from swag.spark.streams.shard_streams import EVENTS
from swag.spark.streams.shard_windows import REQUESTS, Windows, frequencies
from swag.spark.streams.watermark import EventTime
from swag.tables.answers import own_name
from swag.tables.times.durations import Duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from swag.spark.streams.shard import Job


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

    shards: how many parts the keys are dealt to; spark.sql.shuffle.partitions if not given. A checkpoint keeps it.
    metrics: the name of the observed metrics; where several such streams are in one query, each needs its own.

    >>> import swag as sw, swag.spark
    >>> trades = spark.readStream.schema("ts long, k string, x double").parquet("trades")  # doctest: +SKIP
    >>> query = sw.Query(sw.sum("x"), sw.Range(60), name="s", every=sw.Every(time=60))
    >>> answers = swag.spark.stream(query, trades, key="k", lateness=10)  # doctest: +SKIP
    >>> answers.writeStream.format("console").option("checkpointLocation", "checkpoint").start()  # doctest: +SKIP
    """
    asked = asked_queries(queries)
    if not all(isinstance(query, Query) for query in asked):
        raise BadQuery("a statement over frames is not streamed as windows are.", "frames.spark.stream(query, …)")
    asked = grouped_by(asked, key_names(key))
    if any(isinstance(stage, Several) for query in asked for stage in stages(query)):
        raise BadQuery("a Spark stream reads one aggregate of a statement in FROM.", "a statement for each of them")
    if key is not None and not isinstance(key, str):
        return _keyed_by_several(asked, events, requests, ts, key, lateness, shards, metrics)
    wanted = Reading((each for query in asked for each in readers(query)), ts, key).of_events(events.columns)
    table = columns_of(events, wanted, "events")
    front = None if requests is None else requests_schema(requests, table, asked, ts, key)
    count = shard_count(events, 1 if key is None or any(map(_needs_all, asked)) else shards)
    job = windows_job(asked, table, front, ts, key, count)
    numbers = shard_numbers(count, partitions_of(events))
    packed = pack(events, Pack(EVENTS, ts, key, job.time, names=tuple(table.names)), numbers)
    if requests is not None:
        asking = Pack(REQUESTS, ts, key, job.time, tells_time=False, names=tuple(requests.columns))
        kind = None if key is None else events.schema[key].dataType
        packed = packed.unionByName(pack(requests, asking, numbers, kind))
    return sharded([packed], replace(job, delay=job.time.delay(lateness)), metrics)


def _keyed_by_several(
    asked: list[Query], events: "DataFrame", requests: "DataFrame | None", ts: str, key: list[str],
    lateness: Duration | None, shards: int | None, metrics: str,
) -> "DataFrame":  # fmt: skip
    """A stream by a list of key columns: several are joined into one for the shards, and taken apart in the answers."""
    keys = key_names(key)
    if len(keys) < 2:
        one = keys[0] if keys else None
        return stream(
            asked, events, requests=requests, ts=ts, key=one, lateness=lateness, shards=shards, metrics=metrics
        )
    columns_of(events, {}, "events")
    one = name_of(keys, [*events.columns, *(requests.columns if requests is not None else [])])
    asking = None if requests is None else joined(requests, keys, "requests", one)
    found = stream(
        asked, joined(events, keys, "events", one), requests=asking, ts=ts, key=one, lateness=lateness,
        shards=shards, metrics=metrics,
    )  # fmt: skip
    if requests is not None:
        return without(found, one)
    found = apart(found, keys, events, one)
    query, tick, value = (own_name(name, ts, *keys) for name in ("query", "tick", "value"))
    return named(found, [query, tick, ts, *keys, value])


def windows_job(
    asked: list[Query], table: pa.Schema, front: pa.Schema | None, ts: str, key: str | None, shards: int
) -> "Job":
    """What the shards are to do. table, front: the columns of events and of requests."""
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
    nothing = table.empty_table()  # the code that answers says of what types answers are, and what can not be asked
    kinds = {q.label: evaluate([q], nothing, ts=ts, key=key).schema.field(q.label).type for q in asked}
    value = pa.null() if front is not None else streamed_type(asked, kinds, "swag.spark.stream")
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


def sharded(packed: "list[DataFrame]", job: "Job", metrics: str) -> "DataFrame":
    """Packed rows through the shards: answers, with the counts of the shards as observed metrics of this name. packed:
    of one stream, or of several with a watermark each; the shards are told the earliest."""
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import LongType, StructField, StructType

    from swag.spark.streams.shard import COUNTS, METRICS, WHICH, Shards

    if not isinstance(metrics, str) or not metrics:
        raise BadQuery(f"metrics={metrics!r} is no name that counts could be reported by.", 'metrics="trades"')
    fields = [StructField(f"c{i}", each.dataType) for i, each in enumerate(from_arrow_schema(job.output))]
    schema = StructType([StructField(COUNTS, LongType()), *fields])
    delay = f"{job.delay} milliseconds"
    each = [rows.withWatermark("time", delay).select("shard", "kind", "place", "piece") for rows in packed]
    timed = reduce(DataFrame.unionAll, each)
    if job.purpose["shards"] == partitions_of(timed) == 1:
        timed = timed.coalesce(1)  # one stage, no shuffle: where all ends up in one task, that packs the rows, too
    with own_workers(timed), own_python(timed):
        found = timed.groupBy("shard").transformWithStateInPandas(Shards(job), schema, "Append", "EventTime")
    # Every answer passes these sums, too. From one text, to be split and parsed, they took some 20 ms more per 190,000.
    number, which = F.col(COUNTS).bitwiseAND((1 << WHICH) - 1), F.shiftright(COUNTS, WHICH)
    sums = [F.sum(F.when(which == F.lit(i), number)).alias(name) for i, name in enumerate(METRICS)]
    counted = found.observe(metrics, *sums)
    return named(counted.where(F.col(COUNTS).isNull()).select(*(each.name for each in fields)), job.output.names)


@contextmanager
def own_workers(frame: "DataFrame") -> Iterator[None]:
    """Functions that Spark wraps in here run in Python workers of their own.

    Spark hands tasks the worker that has been idle for longest, so where others use them too, a shard would meet
    another worker with every trigger, and engines that are behind. It keeps workers apart by their environment.
    """
    context = getattr(frame.sparkSession, "_sc", None)  # none under Spark Connect
    if context is None:
        yield
        return
    context.environment["SWAG_SPARK_SHARDS"] = "1"
    try:
        yield
    finally:
        del context.environment["SWAG_SPARK_SHARDS"]


def pack(rows: "DataFrame", packer: Pack, numbers: list[int], key_type: "DataType | None" = None) -> "DataFrame":
    """Rows in pieces for the shards of these numbers. key_type: what the key is to be: equal ones must be of one type
    to meet in one shard."""
    from pyspark.sql import functions as F

    columns = {name: col(rows, name) for name in packer.names}
    if key_type is not None and packer.key is not None:
        columns[packer.key] = columns[packer.key].cast(key_type)
    taken = placed(rows).select(*numbered("c", list(columns.values())))
    if packer.key is None or len(numbers) == 1:
        taken = taken.coalesce(1) if partitions_of(rows) == 1 else taken  # see `sharded`; before, so places count on
        return in_workers(taken, replace(packer, shard=numbers[0]), PACKED_SPARK)
    which = F.pmod(F.xxhash64(f"c{packer.names.index(packer.key)}"), F.lit(len(numbers))).cast("int")
    shard = F.element_at(F.array(*map(F.lit, numbers)), which + F.lit(1))
    return in_workers(taken.withColumn("shard", shard.cast("int")), packer, PACKED_SPARK)


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


def partitions_of(frame: "DataFrame") -> int:
    return int(str(frame.sparkSession.conf.get("spark.sql.shuffle.partitions")))


def shard_count(frame: "DataFrame", shards: int | None) -> int:
    count = partitions_of(frame) if shards is None else shards
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise BadQuery(f"shards={shards!r} is not a whole number >= 1.", "shards=64")
    return count
