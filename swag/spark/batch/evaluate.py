"""`swag.spark.evaluate`: every query at every event or request of a DataFrame, in one pass over sorted rows."""

from collections.abc import Iterable
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from swag.errors import BadQuery, BadType, UnknownColumn, nearest
from swag.evaluate import asked_queries as checked
from swag.evaluate import evaluate as embedded
from swag.evaluate import one_over_frames
from swag.query.lowering import components, depth
from swag.query.over_frames import frames_on_spark
from swag.query.query import Query
from swag.query.windows import Range
from swag.spark import schema
from swag.spark.asked import check_grouping, columns_read, grouped_by
from swag.spark.batch import ticks as whole
from swag.spark.batch.cuts import Halo
from swag.spark.batch.layout import Columns, Layout, laid_out
from swag.spark.batch.ordered_input import Promise
from swag.spark.batch.tasks import WindowTask, answers
from swag.spark.places import all_columns, col, numbered, placed
from swag.spark.portable import in_workers, portable
from swag.tables.columns import Clock

IN_ORDER = {"first", "last", "aggregate"}  # aggregates that tell equal timestamps apart


def evaluate(
    queries: Iterable[Query] | Query | str,
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
    Queries that answer at ticks, or read another's answers, take a task's rows as a whole: see spark/batch/ticks.py.
    A query over frames: one row per frame, as frames.spark.detect finds them.
    """
    schema.check_frame(events, "events")
    layout, keys = Layout.of(layout), schema.key_names(key)
    asked = checked(queries)
    check_grouping(asked, keys)
    of_frames = one_over_frames(asked, at)
    if of_frames is not None:
        return frames_on_spark().evaluate(of_frames, events, ts, keys, layout)
    asked = grouped_by(asked, keys)
    if not all(query.is_plain for query in asked):
        return whole.evaluate(asked, events, at, ts, keys, layout)
    rows, task, out = planned(asked, events, at, ts, keys, layout)
    return in_workers(rows, partial(answers, task), out)


def planned(
    asked: list[Query], events: DataFrame, at: DataFrame | None, ts: str, keys: list[str], layout: Layout
) -> tuple[DataFrame, WindowTask, StructType]:
    """Rows as workers want them, what workers are told, and what they will give."""
    if layout.ordered and at is not None:
        raise BadQuery("Layout(ordered=True) is for events alone: requests are sorted in among them.", "leave it out")
    answered = _checked(asked, events, at, ts, keys)
    front = at.schema.fields if at is not None else [schema.field(events, name, "key is") for name in [*keys, ts]]
    out = StructType([StructField(each.name, each.dataType, True) for each in front] + schema.spark_fields(answered))
    simple = [each for query in asked for each in components(query)]
    clock = Clock(schema.arrow_schema(events).field(ts).type)
    far = depth(asked, clock.unit)
    halo = Halo(far.time, far.rows, columns=len(out))
    read = columns_read(simple)
    rows, requests, columns = _inputs(simple, events, at, ts, keys, read, layout.ordered)
    names, promise = dict(zip(columns.keys, keys, strict=True)), None
    if layout.ordered:
        said = Promise(names, columns.by[0] if keys else None, ts, clock)
        rows, promise = said.looked_at(rows.select(*columns.all))
    else:
        rows, columns = laid_out(rows, requests, columns, halo, layout)
    types = schema.arrow_of(out, events)
    return (
        rows,
        WindowTask(portable(asked), columns, names, ts, tuple(read), clock, halo, types, layout.block_rows, promise),
        out,
    )


def _checked(asked: list[Query], events: DataFrame, at: DataFrame | None, ts: str, keys: list[str]) -> pa.Schema:
    """All mistakes are found before any job, on empty tables, by the code that answers. Returns the answers' types."""
    if at is not None:
        schema.check_frame(at, "requests")
    for name in keys:
        schema.check_key(schema.field(events, name, "key is"))
        if at is not None:
            _same_key(events, at, name)
        elif any(query.label == name for query in asked):
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


def _inputs(
    simple: list[Query], events: DataFrame, at: DataFrame | None, ts: str, keys: list[str], read: list[str],
    ordered: bool,
) -> tuple[DataFrame, DataFrame | None, Columns]:  # fmt: skip
    """Events and requests under the names of the layout."""
    key, by = schema.key_columns(events, keys)
    if ordered and keys:
        key, known_by = schema.one_key(events, keys)
        by = (known_by,)
    ties = at is None or any(not isinstance(q.window, Range) or q.aggregate.kind in IN_ORDER for q in simple)
    seq = [F.monotonically_increasing_id().alias("seq")] if ties else []
    columns = numbered("e", [col(events, name) for name in read])
    taken = placed(events).select(*key, schema.instant(events, ts).alias("t"), *seq, *columns)
    others = tuple(f"e{i}" for i in range(len(read)))
    if at is None:
        return taken, None, Columns(tuple(f"k{i}" for i in range(len(keys))), by, ties, False, others)
    own = tuple(f"r{i}" for i in range(len(at.columns)))
    key, _ = schema.key_columns(at, keys)
    asking = placed(at).select(*key, schema.instant(at, ts).alias("t"), *numbered("r", all_columns(at)))
    return taken, asking, Columns(tuple(f"k{i}" for i in range(len(keys))), by, ties, True, others + own)
