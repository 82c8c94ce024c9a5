"""`swag.spark.evaluate`: every query at every event or request of a DataFrame, in one pass over sorted rows."""

from collections.abc import Iterable
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from swag.columns import Clock
from swag.errors import BadQuery, BadType, UnknownColumn, nearest
from swag.evaluate import evaluate as embedded
from swag.predicate import columns_of
from swag.query import Query
from swag.spark import schema
from swag.spark.cuts import Halo
from swag.spark.layout import Columns, Layout, laid_out
from swag.spark.shipping import portable
from swag.spark.worker import Task, answers
from swag.windows import Range, reach

IN_ORDER = {"first", "last", "aggregate"}  # aggregates that tell equal timestamps apart


def evaluate(
    queries: Iterable[Query] | Query,
    events: DataFrame,
    at: DataFrame | None = None,
    ts: str = "ts",
    key: str | list[str] | None = None,
    *,
    layout: Layout | None = None,
) -> DataFrame:
    """As sw.evaluate, over DataFrames: same rows, values and types; the order of rows is Spark's own, that is, none.

    At each event: columns key, ts, then one per query; with `at`, the requests' own columns, then one per query. Events
    of one key with the same ts are taken in the order of the input's partitions and rows. `key` may name several
    columns. Events are looked at once beforehand, for substreams that are too large for a task: see `Layout`.
    """
    schema.check_frame(events, "events")
    layout = layout or Layout()
    asked = [queries] if isinstance(queries, Query) else list(queries)
    keys = schema.key_names(key)
    answered = _checked(asked, events, at, ts, keys)
    front = at.schema.fields if at is not None else [schema.field(events, name, "key is") for name in [*keys, ts]]
    out = StructType([StructField(each.name, each.dataType, True) for each in front] + schema.spark_fields(answered))
    clock = Clock(schema.arrow_schema(events).field(ts).type)
    halo = Halo.of(reach(query.window, clock.unit) for query in asked)
    read = list(dict.fromkeys(name for query in asked for name in columns_read(query)))
    rows, columns = laid_out(*_inputs(asked, events, at, ts, keys, read), halo, layout)
    names, types = dict(zip(columns.keys, keys, strict=True)), schema.arrow_of(out, events)
    task = Task(portable(asked), columns, names, ts, tuple(read), clock, halo, types, at is not None, layout.block_rows)
    return rows.mapInArrow(partial(answers, task), out)


def _checked(asked: list[Query], events: DataFrame, at: DataFrame | None, ts: str, keys: list[str]) -> pa.Schema:
    """All mistakes are found before any job, on empty tables, by the code that answers. Returns the answers' types."""
    for query in asked:
        if isinstance(query, Query) and (query.every is not None or query.source is not None):
            raise BadQuery(
                f'query "{query.label}" answers at ticks, or reads another query: not over DataFrames.',
                "swag.spark.stream, or sw.evaluate",
            )
    if at is not None:
        schema.check_frame(at, "requests")
    for name in keys:
        schema.check_key(schema.field(events, name, "key is"))
        if at is not None:
            _same_key(events, at, name)
        elif any(isinstance(query, Query) and query.label == name for query in asked):
            raise BadQuery(
                f'query "{name}" has the name of a column that comes before the answers.',
                'name it apart: sw.Query(…, name="…")',
            )
    requests = None if at is None else schema.empty_table(at)
    types = embedded(asked, schema.empty_table(events), at=requests, ts=ts).schema
    return pa.schema([types.field(i) for i in range(len(types) - len(asked), len(types))])


def _same_key(events: DataFrame, at: DataFrame, name: str) -> None:
    if name not in at.columns:
        raise UnknownColumn(
            f'requests need a column "{name}", but have: {", ".join(at.columns)}.', nearest(name, at.columns)
        )
    theirs, ours = at.schema[name].dataType, events.schema[name].dataType
    if theirs.simpleString() != ours.simpleString():
        raise BadType(
            f'key column "{name}" of the requests is {theirs.simpleString()}, that of the events '
            f"{ours.simpleString()}.",
            f'requests.withColumn("{name}", F.col("{name}").cast("{ours.simpleString()}"))',
        )


def columns_read(query: Query) -> list[str]:
    return [*query.aggregate.columns, *(sorted(columns_of(query.where)) if query.where else [])]


def _inputs(
    asked: list[Query], events: DataFrame, at: DataFrame | None, ts: str, keys: list[str], read: list[str]
) -> tuple[DataFrame, DataFrame | None, Columns]:
    """Events and requests under the names of the layout."""
    key, by = schema.key_columns(events, keys)
    ties = at is None or any(not isinstance(q.window, Range) or q.aggregate.kind in IN_ORDER for q in asked)
    seq = [F.monotonically_increasing_id().alias("seq")] if ties else []
    columns = [schema.col(name).alias(f"e{i}") for i, name in enumerate(read)]
    taken = events.select(*key, schema.instant(events, ts).alias("t"), *seq, *columns)
    others = tuple(f"e{i}" for i in range(len(read)))
    if at is None:
        return taken, None, Columns(tuple(f"k{i}" for i in range(len(keys))), by, ties, False, others)
    own = tuple(f"r{i}" for i in range(len(at.columns)))
    key, _ = schema.key_columns(at, keys)
    asking = at.select(
        *key, schema.instant(at, ts).alias("t"), *(schema.col(name).alias(r) for name, r in zip(at.columns, own))
    )
    return taken, asking, Columns(tuple(f"k{i}" for i in range(len(keys))), by, ties, True, others + own)
