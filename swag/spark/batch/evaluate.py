"""`swag.spark.evaluate`: every query at every event or request of a DataFrame, in one pass over sorted rows."""

from collections.abc import Iterable, Mapping
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from swag.errors import BadQuery
from swag.evaluate import asked_queries as checked
from swag.evaluate import one_alone, one_of
from swag.query.groupings import by_grouping, grouping_of
from swag.query.lowering import components, depth
from swag.query.over_frames import frames_on_spark
from swag.query.over_statement import OverStatement
from swag.query.query import Query
from swag.spark import schema
from swag.spark.asked import columns_read, refuse_embedded_only
from swag.spark.batch import groupings
from swag.spark.batch import ticks as whole
from swag.spark.batch.cuts import Halo
from swag.spark.batch.inputs import checked_inputs, inputs
from swag.spark.batch.layout import Layout, laid_out
from swag.spark.batch.ordered_input import Promise
from swag.spark.batch.tasks import WindowTask, answers
from swag.spark.portable import in_workers, portable
from swag.sql.places import placed
from swag.tables.columns import Clock

NO_STREAMS: Mapping[str, DataFrame] = {}


def evaluate(
    queries: Iterable[Query] | Query | str,
    events: DataFrame,
    at: DataFrame | None = None,
    ts: str = "ts",
    key: str | list[str] | None = None,
    *,
    layout: Layout | None = None,
    **streams: DataFrame,
) -> DataFrame:
    """As sw.evaluate, over DataFrames: same rows, values and types; the order of rows is Spark's own, that is, none.

    At each event: columns key, ts, then one per query; with `at`, the requests' own columns, then one per query. Events
    of one key with the same ts are taken in the order of the input's partitions and rows. `key` may name several
    columns. Queries that are grouped otherwise (`by`) are answered in the same table, which then has their key columns,
    too: rows go from grouping to grouping, see spark/batch/groupings.py. Events are looked at once beforehand, for
    substreams that are too large for a task: see `Layout`.
    Queries that answer at ticks, or read another's answers, take a task's rows as a whole: see spark/batch/ticks.py.
    A query over frames: one row per frame, as frames.spark.detect finds them; filled from another DataFrame by its
    name, FILL FROM messages: evaluate(text, reports, messages=df).

    >>> import swag as sw, swag.spark
    >>> trades = spark.createDataFrame([(1, "a", 2.0), (2, "a", 3.0)], "ts long, k string, x double")  # doctest: +SKIP
    >>> query = sw.Query(sw.sum("x"), sw.Rows(2), name="s")
    >>> swag.spark.evaluate(query, trades, key="k").orderBy("ts").collect()  # doctest: +SKIP
    [Row(k='a', ts=1, s=2.0), Row(k='a', ts=2, s=5.0)]
    """
    with placed(queries):
        return evaluated(queries, events, at, ts, key, layout, streams)


def evaluated(
    queries: Iterable[Query] | Query | str, events: DataFrame, at: DataFrame | None = None, ts: str = "ts",
    key: str | list[str] | None = None, layout: Layout | None = None, streams: Mapping[str, DataFrame] = NO_STREAMS,
) -> DataFrame:  # fmt: skip
    """The same. streams: other DataFrames, by any name."""
    schema.check_frame(events, "events")
    layout, keys = Layout.of(layout), schema.key_names(key)
    asked, default = checked(queries), tuple(keys)
    alone = one_alone(asked, at)
    if isinstance(alone, OverStatement):
        raise BadQuery("it is a statement with OVER ( … ).", 'swag.spark.sql("SELECT …", events=df)')
    if alone is not None:
        return frames_on_spark().evaluate(alone, events, ts, list(grouping_of(alone, default)), layout, streams)
    for name in streams:
        raise BadQuery(f'no query reads "{name}".', f"leave {name}=… out; FILL FROM {name}, of frames")
    for query in asked:
        refuse_embedded_only(query, default)
    groups = by_grouping(asked, default)
    if not all(query.is_plain for query in asked):
        by, queries = one_of(groups)
        return whole.evaluate(queries, events, at, ts, list(by), layout)
    if set(groups) != {default}:
        return groupings.evaluate(groups, [query.label for query in asked], events, at, ts, default, layout)
    rows, task, out = planned(groups[default], events, at, ts, keys, layout)
    return in_workers(rows, partial(answers, task), out)


def planned(
    asked: list[Query], events: DataFrame, at: DataFrame | None, ts: str, keys: list[str], layout: Layout
) -> tuple[DataFrame, WindowTask, StructType]:
    """Rows as workers want them, what workers are told, and what they will give."""
    if layout.ordered and at is not None:
        raise BadQuery("Layout(ordered=True) is for events alone: requests are sorted in among them.", "leave it out")
    answered = checked_inputs(asked, events, at, ts, keys)
    front = at.schema.fields if at is not None else [schema.field(events, name, "key is") for name in [*keys, ts]]
    out = StructType([StructField(each.name, each.dataType, True) for each in front] + schema.spark_fields(answered))
    simple = [each for query in asked for each in components(query)]
    layout = layout.for_windows(each.window for each in simple)
    clock = Clock(schema.arrow_schema(events).field(ts).type)
    far = depth(asked, clock.unit)
    halo = Halo(far.time, far.rows, columns=len(out))
    read = columns_read(simple, events.columns)
    rows, requests, columns = inputs(simple, events, at, ts, keys, read, layout.ordered)
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
