"""A query over frames on Spark: frames are found, then each is answered for, in one pass over events for all values.

Predicates, expressions and `having` are the query's own code (frames/query.py), run in the workers: Spark's SQL would
mean something else by NaN, by overflow and by division. So what `where` leaves out is shuffled nevertheless.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from frames.match_query import MatchQuery
from frames.spark.batch.stored_frames import (
    FrameStream,
    answered_per_frame,
    detected,
    own_margins,
    portable_spec,
    spans_of,
)
from frames.tables import margins
from swag.spark import schema
from swag.spark.batch.layout import Layout
from swag.spark.places import all_columns, col, named, placed
from swag.spark.portable import portable_term
from swag.tables.expressions.derived import of_events

if TYPE_CHECKING:
    from frames.query import FrameQuery


def evaluate(
    query: "FrameQuery | MatchQuery", events: DataFrame, ts: str, keys: list[str], layout: Layout,
    streams: Mapping[str, DataFrame],
) -> DataFrame:  # fmt: skip
    """One row per frame: frame_id, the key's columns, start, end, rows, one column per value. streams: others."""
    stream = FrameStream.of(events, ts, keys, layout)
    if isinstance(query, MatchQuery):
        query.check_streams(streams)
        return _matched(query, stream, ts)
    query, empty = portable(query), {name: schema.empty_table(each) for name, each in streams.items()}
    types = query.evaluate(schema.empty_table(events), ts, streams=empty).schema  # mistakes are found before any job
    query.check_key(keys)
    said = StructType(schema.spark_fields(types)[-len(query.values) :])
    if query.fill_from is not None:
        return _filled(query, stream, FrameStream.of(streams.get(query.fill_from, events), ts, keys, layout), said)
    stream = stream.cut()
    found = detected(stream, query.spec, skips=True)
    found = _front(found, keys, [all_columns(found)[-1], col(found, "rows")], ["skip", "rows"])
    spans = spans_of(found, keys, *own_margins(query.spec.extent), query.spec.extent, all_columns(found))
    return _answered(query, stream, spans, StructType([*found.schema.fields[:-2], *said.fields]), skips=True)


def _filled(query: "FrameQuery", stream: FrameStream, other: FrameStream, said: StructType) -> DataFrame:
    """Frames of one stream, and what is said of the events of another in each."""
    found = _front(detected(stream.cut() if query.spec.cuts else stream, query.spec), stream.keys, [], [])
    other.check(found)
    edges = margins(query.before, query.after, stream.clock.unit)
    spans = spans_of(found, stream.keys, *edges, query.spec.extent, all_columns(found))
    out = StructType([*found.schema.fields, *said.fields])
    return _answered(replace(query, before=0, after=0), other.cut(), spans, out)


def _front(found: DataFrame, keys: list[str], also: list[Column], names: list[str]) -> DataFrame:
    """Of frames, which they are and where; and other columns."""
    front = ["frame_id", *keys, "start", "end", "rows"]
    return named(placed(found).select(*all_columns(found)[: len(front)], *also), [*front, *names])


def _answered(
    query: "FrameQuery", stream: FrameStream, spans: DataFrame, out: StructType, skips: bool = False
) -> DataFrame:
    """What a query says of the events that a stream has in each frame. skips: see FrameTask."""
    read = of_events(dict.fromkeys(query.aggregated, "it reads"), query.texts, stream.events.columns)
    task = replace(stream.task(list(read), out), query=query, skips=skips, half_open=query.spec.extent == "open")
    return answered_per_frame(stream, spans, task, out)


def _matched(query: MatchQuery, stream: FrameStream, ts: str) -> DataFrame:
    """The matches of a pattern, as the statement selects them."""
    query.check_time(ts)
    return selected(query, detected(stream, query.spec), stream.keys)


def selected(query: MatchQuery, found: DataFrame, keys: list[str]) -> DataFrame:
    """The columns of matches that a statement selects, as it calls them."""
    found = named(found, list(query.names(tuple(keys)).values()))
    return found.select(*query.select) if query.select else found


def portable(query: "FrameQuery") -> "FrameQuery":
    """What means the same in any process."""
    values = tuple((name, portable_term(value)) for name, value in query.values)
    having = None if query.having is None else portable_term(query.having)
    return replace(query, spec=portable_spec(query.spec), values=values, having=having)
