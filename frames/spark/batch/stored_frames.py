"""Frames of stored events on Spark: keys are spread over tasks, each reads its rows once, sorted by key and time.

A key with most of the events, or a stream without a key, is cut in time (spark/batch/cutting.py), so that all cores
work on it. Not all frames can be found so: where they can not, a key is one task's (spark/batch/joining.py).
"""

import hashlib
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from frames import detection, filling
from frames.finding.intake import END_OF_TIME
from frames.owning.origin import filled_by
from frames.spark.batch import cutting, joining
from frames.spark.batch import tasks as workers
from frames.spark.batch.finding_again import empty_frames, extent_of, noted, spec_of, with_own
from frames.spark.batch.tasks import CLOSES, EVENT, OPENS, FrameTask
from frames.specs import Custom, Spec, check_spec
from frames.specs.lengths import Extent
from frames.tables import check_key, margins
from swag.errors import BadType
from swag.query.expression import Operators, leaves
from swag.query.reading import aggregated_texts
from swag.spark import schema
from swag.spark.batch.cuts import CutPieces, Halo
from swag.spark.batch.layout import Layout, pieces_of
from swag.spark.places import all_columns, col, free, named, numbered, placed
from swag.spark.portable import in_workers, portable_aggregate, portable_term
from swag.tables.columns import Clock
from swag.tables.expressions.derived import of_events
from swag.tables.predicate import columns_of
from swag.tables.times.durations import Duration

DEFAULT = Layout()
Key = str | list[str] | None


def detect(spec: Spec, events: DataFrame, *, ts: str = "ts", key: Key = None, layout: Layout = DEFAULT) -> DataFrame:
    """As frames.detect, over a DataFrame: frame_id, [key], start, end, rows, and kind, cells or value.

    Without a key, frames are numbered 0, 1, 2 …; with one, frame_id is a fingerprint of the key and of the frame's
    number within it: the same however the work was spread.

    >>> import frames as fr, frames.spark, swag as sw
    >>> loads = spark.createDataFrame([(1, 0.5), (2, 0.6), (3, 0.1)], "ts long, load double")  # doctest: +SKIP
    >>> found = frames.spark.detect(fr.Threshold("load", ">", 0.3), loads)  # doctest: +SKIP
    >>> found.collect()  # doctest: +SKIP
    [Row(frame_id=0, start=1, end=2, rows=2)]
    """
    check_spec(spec)
    stream = FrameStream.of(events, ts, key, layout)
    detection.detect(spec, schema.empty_table(events), ts=ts)  # finds mistakes before any job
    return noted(detected(stream.cut() if spec.cuts else stream, spec), spec, ts, stream.keys)


def detected(stream: "FrameStream", spec: Spec, skips: bool = False) -> DataFrame:
    """The frames of a stream, cut or not; one that can not be cut for this spec is taken whole.

    skips: with a column of them, the last (frames/finding/ties.py).
    """
    found = detection.detect(spec, schema.empty_table(stream.events), ts=stream.ts).schema
    spec = portable_spec(spec)
    read = list(of_events(dict.fromkeys(spec.columns, "it reads"), spec.texts, stream.events.columns))
    rest = [StructField(f"f{i}", each.dataType) for i, each in enumerate(schema.spark_fields(found)[1:])]
    last = [StructField("skip", LongType())] if skips else []
    out = StructType([StructField("frame_id", LongType()), *stream.key_fields, *rest, *last])
    stream = stream if spec.cuts else replace(stream, pieces=None)
    task = replace(stream.task(read, out), by=stream.by, spec=spec, skips=skips)
    rows = stream.spread(stream.rows([col(stream.events, name) for name in read]))
    rows = rows.sortWithinPartitions(*stream.by, "t", "seq").drop("seq")
    if stream.pieces is None:
        frames = in_workers(rows, partial(workers.detected, task), out)
    else:
        frames = _joined(stream, rows, task, out)
    number = F.shiftrightunsigned(F.xxhash64(*stream.names, "frame_id"), 1) if stream.keys else F.col("frame_id")
    frames = frames.select(number.alias("frame_id"), *(each.name for each in out.fields[1:]))
    names = ["frame_id", *stream.keys, *found.names[1:]]
    return named(frames, [*names, free("skip", names)] if skips else names)


def portable_spec(spec: Spec) -> Spec:
    """A spec that means the same in any process. Functions are compiled once in each, whatever task they come with."""
    if not isinstance(spec, Custom):
        return spec.with_aggregates(portable_aggregate)
    found, content = copy(spec), cloudpickle.dumps((spec.open, spec.update, spec.close))
    object.__setattr__(found, "fingerprint", hashlib.sha256(content).hexdigest())
    return found


def _joined(stream: "FrameStream", rows: DataFrame, task: FrameTask, out: StructType) -> DataFrame:
    """Segments of pieces, then frames of keys."""
    front = 1 + len(stream.keys) + len(("start", "end", "rows"))
    assert task.spec is not None
    reported = zip(task.spec.reported, out.fields[front:], strict=False)  # the skip, if there is one, comes last
    own = [field for name, field in reported if name != "kind"]
    numbers = [StructField(name, LongType()) for name in ("piece", *joining.NUMBERS)]
    between = StructType([*stream.key_fields, *stream.apart_fields, *numbers, *own])
    first = replace(task, by=stream.apart, out=schema.arrow_of(between, stream.events))
    found = in_workers(rows, partial(joining.segments, first), between)
    found = found.repartition(*stream.by) if stream.by else found.repartition(1)
    found = found.sortWithinPartitions(*stream.apart, "n")
    return in_workers(found, partial(joining.joined, task), out)


def fill(
    frames: DataFrame, events: DataFrame, *, ts: str = "ts", key: Key = None, before: Duration = 0,
    after: Duration = 0, own: bool | None = None, extent: Extent | None = None, layout: Layout = DEFAULT,
) -> DataFrame:  # fmt: skip
    """As frames.fill: the events that lie in a frame of their key, once for each, with its frame_id.

    Frames from `detect` that are found again in these events hold their own events and no others (see
    spark/batch/finding_again.py); others all from start to end. own=False: all frames do; own=True: every frame must be
    found again. extent: as frames were found with that do not say so.

    >>> import frames as fr, frames.spark, swag as sw
    >>> loads = spark.createDataFrame([(1, 0.5), (2, 0.6), (3, 0.1)], "ts long, load double")  # doctest: +SKIP
    >>> found = frames.spark.detect(fr.Threshold("load", ">", 0.3), loads)  # doctest: +SKIP
    >>> frames.spark.fill(found, loads).orderBy("ts").collect()  # doctest: +SKIP
    [Row(ts=1, load=0.5, frame_id=0), Row(ts=2, load=0.6, frame_id=0)]
    """
    stream = _filling(frames, events, ts, key, layout)
    filling.fill(empty_frames(frames), schema.empty_table(events), ts=ts, key=(), before=before, after=after)
    met = FramesAndEvents.of(frames, stream, margins(before, after, stream.clock.unit), own, extent)
    out = StructType([*events.schema.fields, StructField("frame_id", LongType())])
    if met.spec is not None:
        return met.answered(replace(stream.task(events.columns, out), fills=True), out, [col(met.whole, "frame_id")])
    columns, _ = schema.key_columns(met.whole, stream.keys)
    early, late = met.margins
    a, b = schema.instant(met.whole, "start") - early, _last_instant(met.whole, late, met.extent)
    number = col(met.whole, "frame_id").alias("frame_id")
    opening = placed(met.whole).select(*columns, a.alias("t"), b.alias("b"), F.lit(OPENS).alias("kind"), number)
    stream = stream.cut()
    opening = opening.where("t <= b")  # those that hold any time at all
    if stream.pieces is not None:
        opening = cutting.told(opening, stream.by, stream.pieces.table)
    rows = stream.among(all_columns(events), opening).sortWithinPartitions(*stream.by, "t", "kind", "seq").drop("seq")
    return in_workers(rows, partial(workers.filled, stream.task(events.columns, out)), out)


def summarize(
    frames: DataFrame, events: DataFrame, aggregates: Sequence[Operators] | Operators, *, ts: str = "ts",
    key: Key = None, before: Duration = 0, after: Duration = 0, own: bool | None = None, extent: Extent | None = None,
    layout: Layout = DEFAULT,
) -> DataFrame:  # fmt: skip
    """As frames.summarize: the frames, with a column per aggregate of the events in each.

    Which events these are, and what `own` and `extent` mean, is as in `fill`.

    >>> import frames as fr, frames.spark, swag as sw
    >>> loads = spark.createDataFrame([(1, 0.5), (2, 0.6), (3, 0.1)], "ts long, load double")  # doctest: +SKIP
    >>> found = frames.spark.detect(fr.Threshold("load", ">", 0.3), loads)  # doctest: +SKIP
    >>> frames.spark.summarize(found, loads, sw.max("load").alias("m")).collect()  # doctest: +SKIP
    [Row(frame_id=0, start=1, end=2, rows=2, m=0.6)]
    """
    stream = _filling(frames, events, ts, key, layout)
    wanted = filling.checked_aggregates(aggregates)
    types = filling.summarize(
        empty_frames(frames), schema.empty_table(events), wanted, ts=ts, key=(), before=before, after=after
    ).schema
    met = FramesAndEvents.of(frames, stream, margins(before, after, stream.clock.unit), own, extent)
    answered = schema.spark_fields(pa.schema([types.field(str(aggregate)) for aggregate in wanted]))
    out = StructType([*met.whole.schema.fields, *answered])
    asked = [leaf for value in wanted for leaf in leaves(value)]
    names = [name for leaf in asked for name in (*leaf.aggregate.columns, *columns_of(leaf.where or "TRUE"))]
    texts = aggregated_texts(leaf.aggregate for leaf in asked)
    read = list(of_events(dict.fromkeys(names, "it reads"), texts, events.columns))
    task = replace(stream.task(read, out), aggregates=tuple(map(portable_term, wanted)))
    return met.answered(task, out, all_columns(met.whole))


def _filling(frames: DataFrame, events: DataFrame, ts: str, key: Key, layout: Layout) -> "FrameStream":
    """The events that frames are filled with. key: None: what the frames were found per, where the events have it."""
    for each, what in ((events, "events"), (frames, "frames")):
        schema.check_frame(each, what)
    by = [*filled_by(None, empty_frames(frames), events.columns)] if key is None else key
    stream = FrameStream.of(events, ts, by, layout)
    stream.check(frames)
    return stream


@dataclass(frozen=True)
class FramesAndEvents:
    """Frames, put together from their pieces, and the events that they meet. margins: in the unit of ts.

    spec: by what the frames are found again, to tell which events are their own; None: all from start to end are.
    """

    whole: DataFrame
    stream: "FrameStream"
    margins: tuple[int, int]
    own: bool | None
    extent: Extent
    spec: Spec | None

    @classmethod
    def of(
        cls, frames: DataFrame, stream: "FrameStream", margins: tuple[int, int], own: bool | None, extent: Extent | None
    ) -> "FramesAndEvents":
        spec = spec_of(frames, stream.events, stream.ts, stream.keys, own, any(margins))
        return cls(united(frames, stream.keys), stream, margins, own, extent_of(frames, extent), spec)

    def answered(self, task: FrameTask, out: StructType, handed_on: list[Column]) -> DataFrame:
        """What a task says of each frame, of which it is handed these columns of placed(whole)."""
        stream, frames, edges = self.stream.cut(), self.whole, self.margins
        task = replace(task, half_open=self.extent == "open")
        if self.spec is not None:
            frames = with_own(frames, detected(stream, self.spec, skips=True), stream.keys, self.own)
            handed_on, edges = [*handed_on, *all_columns(frames)[-2:]], own_margins(self.extent)
            task = replace(task, skips=True)
        return answered_per_frame(stream, spans_of(frames, stream.keys, *edges, self.extent, handed_on), task, out)


def own_margins(extent: Extent) -> tuple[int, int]:
    """A half-open frame may end where its last event is: it is answered once the events at its end have come."""
    return 0, int(extent == "open")


def answered_per_frame(stream: "FrameStream", spans: DataFrame, task: FrameTask, out: StructType) -> DataFrame:
    """One pass over events and frames: what a task says of the events in each frame. spans: as `spans_of` has them."""
    if stream.pieces is not None:
        spans, pieces = cutting.with_spans(spans, stream.by, stream.pieces.table)
        stream = replace(stream, pieces=replace(stream.pieces, table=pieces))
    rows = stream.among([col(stream.events, name) for name in task.read], _both_ends(spans))
    rows = rows.sortWithinPartitions(*stream.apart, "t", "kind", "seq").drop("seq")
    return in_workers(rows, partial(workers.summarized, replace(task, by=stream.apart)), out)


def _last_instant(frames: DataFrame, late: int, extent: Extent) -> Column:
    """The last instant of each frame, its end moved by so much; null where it has no interval."""
    if extent == "closed":
        return schema.instant(frames, "end") + late
    endless = F.when(schema.instant(frames, "start").isNotNull(), F.lit(END_OF_TIME))
    return F.coalesce(schema.instant(frames, "end") + (late - 1), endless)


def spans_of(
    frames: DataFrame, keys: list[str], early: int, late: int, extent: Extent, handed_on: list[Column]
) -> DataFrame:
    """Frames as a .. b, both inside and moved by so much, with these columns of placed(frames) as r0, r1 …"""
    columns, _ = schema.key_columns(frames, keys)
    a = F.coalesce(schema.instant(frames, "start") - early, F.lit(1))  # a frame without an interval: from 1 to 0
    b = F.coalesce(_last_instant(frames, late, extent), F.lit(0))
    return placed(frames).select(*columns, a.alias("a"), b.alias("b"), *numbered("r", handed_on))


def _both_ends(spans: DataFrame) -> DataFrame:
    """A row where each frame opens, so that a worker knows what to keep, and one where it closes, to be answered."""
    ends = [F.struct(F.col(at).alias("t"), F.lit(kind).alias("kind")) for at, kind in (("a", OPENS), ("b", CLOSES))]
    return spans.select("*", F.explode(F.array(*ends)).alias("at")).select("*", "at.t", "at.kind").drop("at")


def united(frames: DataFrame, keys: list[str]) -> DataFrame:
    """Frames from their fragments; a table without `final` as it is."""
    if "final" not in frames.columns:
        return frames
    same, names = ["frame_id", *keys], [name for name in frames.columns if name != "final"]
    last = col(frames, "final").cast("int")
    whole = {"start": F.min(col(frames, "start")), "end": F.max(col(frames, "end")), "rows": F.sum(col(frames, "rows"))}
    rest = {name: F.max_by(col(frames, name), last) for name in names if name not in (*same, *whole)}
    parts = whole | rest
    grouped = placed(frames).groupBy(*(col(frames, name) for name in same)).agg(*numbered("a", list(parts.values())))
    order = [[*same, *parts].index(name) for name in names]
    return named(grouped.select(*(grouped.columns[i] for i in order)), names)


@dataclass(frozen=True)
class FrameStream:
    """Events and how they are read. names: the user's, of k0, k1 …; by: the columns that tell keys apart.

    pieces: of the substreams that are cut, if there are any.
    """

    events: DataFrame
    ts: str
    keys: list[str]
    key_columns: list[Column]
    by: tuple[str, ...]
    clock: Clock
    layout: Layout
    pieces: CutPieces | None = None

    @classmethod
    def of(cls, events: DataFrame, ts: str, key: Key, layout: Layout) -> "FrameStream":
        """Stored events as frames are found in them: ts and key columns are checked; nothing is cut yet."""
        schema.check_frame(events, "events")
        keys = schema.key_names(key)
        for name in keys:
            check_key(name)
            schema.check_key(schema.field(events, name, "key is"))
        schema.field(events, ts, "ts is")
        clock = Clock(schema.arrow_schema(events).field(ts).type)
        return cls(events, ts, keys, *schema.key_columns(events, keys), clock, Layout.of(layout))

    @property
    def names(self) -> dict[str, str]:
        return {f"k{i}": name for i, name in enumerate(self.keys)}

    @property
    def key_fields(self) -> list[StructField]:
        return [StructField(ours, self.events.schema[name].dataType) for ours, name in self.names.items()]

    @property
    def apart_fields(self) -> list[StructField]:
        """Of the columns that tell keys apart and are not the key's own."""
        pairs = zip(self.by, self.key_fields, strict=True)
        return [StructField(name, own.dataType) for name, own in pairs if name != own.name]

    @property
    def apart(self) -> tuple[str, ...]:
        """What tells substreams apart, and their pieces."""
        return self.by if self.pieces is None else (*self.by, "piece")

    def cut(self) -> "FrameStream":
        """With the substreams that are too large for one task in pieces; a look at the events, or at some of them."""
        rows = placed(self.events).select(*self.key_columns, schema.instant(self.events, self.ts).alias("t"))
        return replace(self, pieces=pieces_of(rows, self.by, Halo(), self.layout))

    def check(self, frames: DataFrame) -> None:
        """Are the frames of these keys?"""
        schema.check_frame(frames, "frames")
        for name in self.keys:
            theirs = schema.field(frames, name, "frames are found per").dataType.simpleString()
            ours = self.events.schema[name].dataType.simpleString()
            if theirs != ours:
                raise BadType(f'"{name}" of the frames is {theirs}, that of the events {ours}.', f"cast it to {ours}")

    def rows(self, read: list[Column]) -> DataFrame:
        """read: columns of placed(events)."""
        arrival = F.monotonically_increasing_id().alias("seq")
        when = schema.instant(self.events, self.ts).alias("t")
        rows = placed(self.events).select(*self.key_columns, when, arrival, *numbered("e", read))
        return rows if self.pieces is None else cutting.placed(rows, self.by, self.pieces)

    def among(self, read: list[Column], frames: DataFrame) -> DataFrame:
        """Events and frames, for a worker that passes over them once."""
        events = self.rows(read).withColumn("kind", F.lit(EVENT))
        return self.spread(events.unionByName(frames, allowMissingColumns=True))

    def spread(self, rows: DataFrame) -> DataFrame:
        if self.pieces is not None:
            return cutting.spread(rows, self.by, self.pieces.tasks)
        if not self.by:
            return rows.repartition(1)
        tasks = self.layout.tasks
        return rows.repartition(*self.by) if tasks is None else rows.repartition(tasks, *self.by)

    def task(self, read: list[str], out: StructType) -> FrameTask:
        types = schema.arrow_of(out, self.events)
        return FrameTask(self.apart, self.names, self.ts, tuple(read), self.clock, types, self.layout.block_rows)
