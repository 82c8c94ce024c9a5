"""Frames of a Structured Streaming source: `frames.spark.stream`. The shards of swag.spark, with detectors' cores."""

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from frames.finding.core import DetectorCore
from frames.finding.key_memory import keep_keys, keys_in_use
from frames.match_query import MatchQuery
from frames.query import FrameQuery
from frames.spark.batch.queries import portable, selected
from frames.spark.batch.stored_frames import portable_spec
from frames.spark.streams.filled_frames import MESSAGES, ShardFilledFrames
from frames.spark.streams.keyed_state import NO_KEYS, newest, record, restore, still_true
from frames.spark.streams.open_events import OpenEvents
from frames.spark.streams.said_frames import ShardSaidFrames
from frames.specs import Spec, check_spec
from frames.tables import check_key
from swag.durable.state import State, nested, part
from swag.errors import BadQuery, BadType
from swag.query.groupings import shown_by
from swag.query.over_frames import OverFrames
from swag.query.reading import Reading
from swag.spark.schema import key_names
from swag.spark.streams.cache import Step
from swag.spark.streams.joined_keys import apart, joined, name_of
from swag.spark.streams.log import Log
from swag.spark.streams.packing import Pack, shard_numbers
from swag.spark.streams.shard import Job
from swag.spark.streams.sharding import observed, pack, partitions_of, shard_count, sharded
from swag.spark.streams.stream import columns_of, event_time, normal
from swag.spark.streams.watermark import EventTime, instants_of
from swag.sql import sql
from swag.sql.places import placed
from swag.tables.expressions.derived import of_events
from swag.tables.times.durations import Duration

EVENTS, STATES = "events", "states"
OTHER = "events that frames are filled from"
NOTHING = np.iinfo(np.int64).min
REMEMBERED_KEYS = 512  # twice as many are remembered for ever: they take little memory


@dataclass(frozen=True)
class Options:
    """What a user says of a stream beside what is asked."""

    ts: str
    lateness: Duration | None
    fragments: bool
    shards: int | None
    metrics: str


def stream(
    spec: Spec | FrameQuery | MatchQuery | str,
    events: DataFrame,
    *,
    ts: str = "ts",
    key: str | list[str] | None = None,
    lateness: Duration | None = None,
    fragments: bool = True,
    shards: int | None = None,
    metrics: str = "swag",
    **streams: DataFrame,
) -> DataFrame:
    """Frames as the watermark decides them: frame_id, [key], start, end, rows, kind | cells | value, [final].

    fragments: a frame that is certain but still open is reported piece by piece, trigger by trigger; pieces of one
    frame have one frame_id and unite to it, and the last one is `final` (with rows 0 and no interval if nothing is left
    to report). Events that the watermark has passed are late: counted, and dropped. metrics: the name of the observed
    metrics; where several streams of frames or windows are in one query, each needs its own.

    A query over frames (fr.FrameQuery, or a FRAME statement, as text or by sw.sql) has a column per value instead of
    kind, cells or value: of the events of the frame, or of the piece. Its GROUP BY is the key, if none is given. Filled
    from another stream by its name, FILL FROM messages: stream(text, reports, messages=df), it has a row for each whole
    frame, once both streams have passed it. A MATCH_RECOGNIZE statement has the columns that it selects, of whole
    matches.

    >>> import frames as fr, frames.spark, swag as sw
    >>> loads = spark.readStream.schema("ts long, load double").parquet("loads")  # doctest: +SKIP
    >>> found = frames.spark.stream(fr.Threshold("load", ">", 0.3), loads, lateness=10)  # doctest: +SKIP
    >>> found.writeStream.format("console").option("checkpointLocation", "checkpoint").start()  # doctest: +SKIP
    """
    asked = _statement(spec) if isinstance(spec, str) else spec
    keys = key_names(key)
    if isinstance(asked, OverFrames):
        keys = list(asked.by) if key is None and asked.by else keys
        _check_grouping(asked, keys)
    other = _other(asked, streams)
    options = Options(ts, lateness, fragments and other is None, shards, metrics)
    with placed(spec):
        return _streamed(asked, events, other, keys, options)


def _streamed(
    asked: Spec | FrameQuery | MatchQuery, events: DataFrame, other: DataFrame | None, keys: list[str], options: Options
) -> DataFrame:
    """Frames of a spec, of a query, or matches of a pattern, as what is asked wants them reported."""
    if isinstance(asked, MatchQuery):
        asked.check_time(options.ts)
        found = _by_keys(portable_spec(asked.spec), events, None, keys, replace(options, fragments=False))
        return selected(asked, found, keys)
    if isinstance(asked, FrameQuery):
        asked.check_key(keys)
        fragments = options.fragments and asked.fill_from is None  # frames that are filled are reported as a whole
        asked = replace(portable(asked), by=None, fragments=fragments, name=asked.label)
        return _by_keys(asked, events, other, keys, replace(options, fragments=fragments))
    check_spec(asked)
    return _by_keys(portable_spec(asked), events, None, keys, options)


def _statement(text: str) -> FrameQuery | MatchQuery:
    asked = sql(text)
    if len(asked) > 1 or not isinstance(asked[0], FrameQuery | MatchQuery):
        raise BadQuery(
            "frames are found by one statement with FRAME or MATCH_RECOGNIZE.",
            "swag.spark.stream(sw.sql(text), …) for windows; a call for each statement",
        )
    return asked[0]


def _check_grouping(query: OverFrames, keys: list[str]) -> None:
    if query.by is not None and list(query.by) != keys:
        raise BadQuery(
            f"the statement groups by {shown_by(query.by)}, but the stream has key={keys or None!r}.",
            f"key={list(query.by)!r}",
        )


def _other(asked: Spec | OverFrames, streams: dict[str, DataFrame]) -> DataFrame | None:
    """The stream that frames are filled from, if it is another one; it has to be there, and no further ones."""
    wanted = asked.other if isinstance(asked, OverFrames) else None
    for name in streams:
        if name != wanted:
            raise BadQuery(
                f'"{name}" is no stream that frames are filled from.', f"leave {name}=… out; FILL FROM {name}"
            )
    if wanted is not None and wanted not in streams:
        raise BadQuery(
            f'frames are filled from "{wanted}", which is not there.', f"frames.spark.stream(…, {wanted}=df)"
        )
    return streams.get(wanted or "")


def _by_keys(
    spec: Spec | FrameQuery, events: DataFrame, other: DataFrame | None, keys: list[str], options: Options
) -> DataFrame:
    """Frames by a list of key columns: several are joined into one for the shards, and taken apart in what is found."""
    for name in keys:
        check_key(name)
    if len(keys) < 2:
        return observed(_found(spec, events, other, keys[0] if keys else None, options), options.metrics)
    columns_of(events, {}, "events")
    one = name_of(keys, [*events.columns, *(other.columns if other is not None else [])])
    if other is not None:
        columns_of(other, {}, OTHER)
        other = joined(other, keys, OTHER, one)
    found = _found(spec, joined(events, keys, "events", one), other, one, options)
    return observed(apart(found, keys, events, one), options.metrics)


def _found(
    spec: Spec | FrameQuery, events: DataFrame, other: DataFrame | None, key: str | None, options: Options
) -> DataFrame:
    """Counts and frames by one column, or none."""
    ts = options.ts
    wanted = {ts: "ts is"} | ({} if key is None else {key: "key is"})
    asked_by = f"{type(spec).__name__} reads"
    read = of_events(dict.fromkeys(spec.columns, asked_by), spec.texts, events.columns)
    table = columns_of(events, wanted | read, "events")
    messages = None
    if isinstance(spec, FrameQuery) and other is not None:
        own = Reading(spec.filling, ts, key).of_events(other.columns)
        messages = _like(columns_of(other, own, OTHER), table, ts, key)
    numbers = shard_numbers(shard_count(events, 1 if key is None else options.shards), partitions_of(events))
    job = frames_job(spec, table, ts, key, options.fragments, numbers, messages)
    packed = [pack(events, Pack(EVENTS, ts, key, job.time, names=tuple(table.names)), numbers)]
    if other is not None and messages is not None:
        filling = Pack(MESSAGES, ts, key, job.time, names=tuple(messages.names))
        packed.append(pack(other, filling, numbers, None if key is None else events.schema[key].dataType))
    return sharded(packed, replace(job, delay=job.time.delay(options.lateness)))


def _like(messages: pa.Schema, events: pa.Schema, ts: str, key: str | None) -> pa.Schema:
    """The types of messages, whose key is to be of the type that it is of in events; ts has to be."""
    theirs, ours = messages.field(ts).type, events.field(ts).type
    if theirs != ours:
        raise BadType(f'"{ts}" is {theirs} in {OTHER}, {ours} in the events.', "cast one")
    return pa.schema([events.field(key) if each.name == key else each for each in messages])


def frames_job(
    spec: Spec | FrameQuery, table: pa.Schema, ts: str, key: str | None, fragments: bool, numbers: list[int],
    messages: pa.Schema | None = None,
) -> Job:  # fmt: skip
    """What the shards of a stream of frames do: their plan, the purpose a checkpoint is held to, and what comes out.
    messages: the columns of the stream that frames are filled from, if that is another one."""
    time = event_time(table, ts)
    query = spec if isinstance(spec, FrameQuery) else None
    what = spec.spec if isinstance(spec, FrameQuery) else spec
    other = None if messages is None else normal(messages, ts, time)
    plan = FramePlan(what, ts, key, fragments, time, normal(table, ts, time), tuple(numbers), query, other)
    shard = plan(numbers[0])
    output = shard.core.advance(0).schema if isinstance(shard, ShardFrames) else shard.output
    zoned = {"start": table.field(ts).type, "end": table.field(ts).type}
    output = pa.schema([pa.field(each.name, zoned.get(each.name, each.type)) for each in output])
    digest = hashlib.blake2b(f"{spec!r} {fragments}".encode(), digest_size=8).hexdigest()
    purpose = {
        "what": "frames",
        "ts": f"{ts} {table.field(ts).type}",
        "key": key and f"{key} {table.field(key).type}",
        "shards": len(numbers),
        "parts": {type(spec).__name__: digest},
    }
    return Job(plan, purpose, time, output)


@dataclass(frozen=True)
class FramePlan:
    """What to find; events: their columns as shards keep them. numbers: the names of the shards. messages: the columns
    of the stream that frames are filled from, if that is another one."""

    spec: Spec
    ts: str
    key: str | None
    fragments: bool
    time: EventTime
    events: pa.Schema
    numbers: tuple[int, ...]
    query: FrameQuery | None = None
    messages: pa.Schema | None = None
    many_keys: int = REMEMBERED_KEYS

    def __call__(self, shard: int) -> "ShardFrames | ShardSaidFrames":
        if self.query is None:
            return ShardFrames(self, shard)
        return (ShardSaidFrames if self.query.fill_from is None else ShardFilledFrames)(self, shard)

    def core(self) -> DetectorCore:
        """One that knows the types of all columns."""
        core = DetectorCore(self.spec, self.ts, self.key, self.fragments)
        core.take(self.events.empty_table())
        return core


class ShardFrames:
    """The frames of one shard, as swag.spark.streams.cache asks for them.

    Owns the core that finds them, and the tending of logged events that its open frames need. It logs the events that
    came and what is remembered of the keys that a trigger touched; by these it is made again elsewhere.
    """

    latest: int | None = None
    ahead: int | None = None  # never: what a detector finds is to be sent at once

    def __init__(self, plan: FramePlan, shard: int) -> None:
        self.plan, self.core = plan, plan.core()
        self.opened = OpenEvents(self.core)
        self.place = plan.numbers.index(shard)
        self.upto: int | None = None
        self._keys_used = REMEMBERED_KEYS

    def restore(self, state: State) -> None:
        self.opened.sweep.restore(part(state, "sweep"))

    def replay(self, tables: dict[str, list[pa.Table]], state: State, upto: int | None) -> None:
        """The shard is made again from its log: what keys remember, events of open frames, and events that wait."""
        core = self.core
        if tables.get(STATES):
            restore(core, newest(pa.concat_tables(tables[STATES])))
        core.go_on(part(state, "core"), upto)
        floor = NOTHING if upto is None else upto
        self.restore(state)
        if self.opened.active:
            self.opened.take_again(tables.get(EVENTS, []), floor)
        core.waiting.let_go(floor)
        for table in tables.get(EVENTS, []):
            core.take(table.filter(pa.array(instants_of(table.column(self.plan.ts)) > floor)))
        self.upto = upto

    def step(self, fresh: dict[str, pa.Table], upto: int | None) -> Step:
        """One trigger of a shard: takes and logs events that are not late, and punctuates as far as the watermark."""
        step, events = Step(counts={EVENTS: 0, "late": 0}), fresh.get(EVENTS)
        if events is not None:
            instants = instants_of(events.column(self.plan.ts))
            late = instants <= (NOTHING if upto is None else upto)
            events, instants = events.filter(pa.array(~late)), instants[~late]
            step.counts = {EVENTS: events.num_rows, "late": int(late.sum())}
            step.log.append((EVENTS, events, instants))
            self.core.take(events)
        self.opened.batch = step.counts[EVENTS]
        if upto is not None and upto != self.upto:
            self._punctuate(step, upto)
        self.upto = upto
        self._forget_keys()
        step.counts["held"] = self.core.waiting.count
        step.counts["kept"] = self.core.numbers.size + self.opened.count
        return step

    def go_ahead(self, upto: int) -> None: ...

    def _forget_keys(self) -> None:
        """Those of which nothing is open, once there are twice as many keys as were in use."""
        known = self.core.keys
        if known is None or known.count < 2 * self._keys_used:
            return
        used = keys_in_use(self.core)
        self._keys_used = max(used.size, REMEMBERED_KEYS)
        if known.count >= 2 * used.size:
            keep_keys(self.core, used)

    def _punctuate(self, step: Step, upto: int) -> None:
        """Frames that the watermark decides, with numbers of this shard's own; logs what touched keys remember."""
        due = self.core.waiting.ids_due(upto)
        found = self.core.advance(upto)
        numbers = np.asarray(found.column("frame_id")) * len(self.plan.numbers) + self.place
        step.answers.append(found.set_column(0, "frame_id", pa.array(numbers, pa.int64())))
        step.counts["lookups"] = found.num_rows
        if due is not None or self.core.closed.size:
            touched = np.union1d(NO_KEYS if due is None else due, self.core.closed)
            states = record(self.core, np.zeros(1, np.int64) if self.plan.key is None else touched)
            step.log.append((STATES, states, np.full(states.num_rows, np.iinfo(np.int64).max)))

    def tend(self, log: Log) -> None:
        if self.upto is not None:
            if self.opened.active:
                self.opened.tend(log, EVENTS, self.upto)
            else:
                log.drop_until(EVENTS, self.upto)
            log.merge(STATES, newest, large=1 << 62, oldest=lambda table: still_true(self.core, table))

    def state(self) -> State:
        return nested({}, {"core": self.core.rest(), "sweep": self.opened.sweep.state()})

    def wakes(self) -> int | None:
        return min((each for each in (self.core.waiting.first, self.core.due) if each is not None), default=None)

    @property
    def bytes(self) -> int:
        return self.core.bytes
