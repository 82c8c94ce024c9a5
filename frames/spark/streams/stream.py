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
from frames.spark.streams.keyed_state import NO_KEYS, newest, record, restore, still_true
from frames.spark.streams.open_events import OpenEvents
from frames.spark.streams.said_frames import ShardSaidFrames
from frames.specs import Spec, check_spec
from frames.tables import check_key
from swag.durable.state import State, nested, part
from swag.errors import BadQuery
from swag.query.groupings import shown_by
from swag.spark.schema import key_names
from swag.spark.streams.cache import Step
from swag.spark.streams.joined_keys import apart, joined, name_of
from swag.spark.streams.log import Log
from swag.spark.streams.packing import Pack, shard_numbers
from swag.spark.streams.shard import Job
from swag.spark.streams.stream import columns_of, event_time, normal, pack, partitions_of, shard_count, sharded
from swag.spark.streams.watermark import EventTime, instants_of
from swag.tables.expressions.derived import of_events
from swag.tables.times.durations import Duration

EVENTS, STATES = "events", "states"
NOTHING = np.iinfo(np.int64).min
REMEMBERED_KEYS = 512  # twice as many are remembered for ever: they take little memory


def stream(
    spec: Spec | FrameQuery | MatchQuery,
    events: DataFrame,
    *,
    ts: str = "ts",
    key: str | list[str] | None = None,
    lateness: Duration | None = None,
    fragments: bool = True,
    shards: int | None = None,
    metrics: str = "swag",
) -> DataFrame:
    """Frames as the watermark decides them: frame_id, [key], start, end, rows, kind | cells | value, [final].

    fragments: a frame that is certain but still open is reported piece by piece, trigger by trigger; pieces of one
    frame have one frame_id and unite to it, and the last one is `final` (with rows 0 and no interval if nothing is left
    to report). Events that the watermark has passed are late: counted, and dropped. metrics: the name of the observed
    metrics; where several streams of frames or windows are in one query, each needs its own.

    A query over frames (fr.FrameQuery, or a FRAME statement by sw.sql) has a column per value instead of kind, cells or
    value: of the events of the frame, or of the piece. Its GROUP BY is the key, if none is given. A MATCH_RECOGNIZE
    statement has the columns that it selects, of whole matches.

    >>> import frames as fr, frames.spark, swag as sw
    >>> loads = spark.readStream.schema("ts long, load double").parquet("loads")  # doctest: +SKIP
    >>> found = frames.spark.stream(fr.Threshold("load", ">", 0.3), loads, lateness=10)  # doctest: +SKIP
    >>> found.writeStream.format("console").option("checkpointLocation", "checkpoint").start()  # doctest: +SKIP
    """
    if isinstance(spec, MatchQuery):
        spec.check_time(ts)
        key = key if key is not None or not spec.by else list(spec.by)
        _check_grouping(spec, key_names(key))
        found = stream(spec.spec, events, ts=ts, key=key, lateness=lateness, fragments=False, shards=shards,
                       metrics=metrics)  # fmt: skip
        return selected(spec, found, key_names(key))
    if isinstance(spec, FrameQuery):
        key = key if key is not None or not spec.by else list(spec.by)
        spec = _of_shards(spec, key, fragments)
    else:
        check_spec(spec)
        spec = portable_spec(spec)
    if key is not None and not isinstance(key, str):
        return _keyed_by_several(spec, events, ts, key, lateness, fragments, shards, metrics)
    check_key(key)
    wanted = {ts: "ts is"} | ({} if key is None else {key: "key is"})
    asked_by = f"{type(spec).__name__} reads"
    read = of_events(dict.fromkeys(spec.columns, asked_by), spec.texts, events.columns)
    table = columns_of(events, wanted | read, "events")
    numbers = shard_numbers(shard_count(events, 1 if key is None else shards), partitions_of(events))
    job = frames_job(spec, table, ts, key, fragments, numbers)
    packed = pack(events, Pack(EVENTS, ts, key, job.time, names=tuple(table.names)), numbers)
    return sharded(packed, replace(job, delay=job.time.delay(lateness)), metrics)


def _check_grouping(query: FrameQuery | MatchQuery, keys: list[str]) -> None:
    if query.by is not None and list(query.by) != keys:
        raise BadQuery(
            f"the statement groups by {shown_by(query.by)}, but the stream has key={keys or None!r}.",
            f"key={list(query.by)!r}",
        )


def _of_shards(query: FrameQuery, key: str | list[str] | None, fragments: bool) -> FrameQuery:
    """As shards run it, found to be such as they can."""
    keys = key_names(key)
    _check_grouping(query, keys)
    query.check_key(keys)
    if query.fill_from is not None:
        raise BadQuery(
            f'frames are filled from "{query.fill_from}", which is no stream here.', "sw.Engine, or frames.spark.fill"
        )
    return replace(portable(query), by=None, fragments=fragments, name=query.label)


def _keyed_by_several(
    spec: Spec | FrameQuery, events: DataFrame, ts: str, key: list[str], lateness: Duration | None, fragments: bool,
    shards: int | None, metrics: str,
) -> DataFrame:  # fmt: skip
    """Frames of a stream whose key is a list: its columns are joined into one for the shards, then taken apart."""
    keys = key_names(key)
    for name in keys:
        check_key(name)
    if len(keys) < 2:
        one = keys[0] if keys else None
        return stream(
            spec, events, ts=ts, key=one, lateness=lateness, fragments=fragments, shards=shards, metrics=metrics
        )
    columns_of(events, {}, "events")
    one = name_of(keys, events.columns)
    rows = joined(events, keys, "events", one)
    found = stream(spec, rows, ts=ts, key=one, lateness=lateness, fragments=fragments, shards=shards, metrics=metrics)
    return apart(found, keys, events, one)


def frames_job(
    spec: Spec | FrameQuery, table: pa.Schema, ts: str, key: str | None, fragments: bool, numbers: list[int]
) -> Job:
    """What the shards of a stream of frames do: their plan, the purpose a checkpoint is held to, and what comes out."""
    time = event_time(table, ts)
    query = spec if isinstance(spec, FrameQuery) else None
    what = spec.spec if isinstance(spec, FrameQuery) else spec
    plan = FramePlan(what, ts, key, fragments, time, normal(table, ts, time), tuple(numbers), query)
    output = plan.core().advance(0).schema if query is None else ShardSaidFrames(plan, numbers[0]).output
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
    """What to find; events: their columns as shards keep them. numbers: the names of the shards."""

    spec: Spec
    ts: str
    key: str | None
    fragments: bool
    time: EventTime
    events: pa.Schema
    numbers: tuple[int, ...]
    query: FrameQuery | None = None
    many_keys: int = REMEMBERED_KEYS

    def __call__(self, shard: int) -> "ShardFrames | ShardSaidFrames":
        return ShardFrames(self, shard) if self.query is None else ShardSaidFrames(self, shard)

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
