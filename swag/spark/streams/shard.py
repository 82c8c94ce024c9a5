"""A shard at work: Spark calls it with the pieces that came, it brings its engine (or detector) up to date and answers.

    trigger:   header -> token known to this worker? -> yes: the cached body, and the segments since
                                                        no:  a new body, and all segments
               body.step(rows, watermark) -> answers; one more segment, a new header

The body lives in a cache between triggers (streams/cache.py); it is taken out while it changes, and a version that
the header does not name (a retry, another run, an older worker) is never trusted.

A version is named by all that led to it: a digest of the version before, the rows that came, and the watermark. So
where Spark computes a trigger twice, both give the same version, and it does not matter which of them is committed.
"""

import hashlib
import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import wait
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from swag.durable.state import table_from_array
from swag.spark import process
from swag.spark.streams.cache import Body, Cache, Cached, Step, thread
from swag.spark.streams.log import HEADER_AT, HISTORY, PURPOSE_AT, BadState, Header, Log, Pieces, Version
from swag.spark.streams.packing import COUNTS
from swag.spark.streams.watermark import EventTime

METRICS = ("events", "late", "requests", "lookups", "held", "kept", "bytes", "segments", "replayed", "milliseconds")
WHICH = 56  # the bits of a count; those above say which one it is


@dataclass(frozen=True)
class Job:
    """What all shards of a stream run. Frozen; Spark sends it to the workers with every trigger."""

    make: Callable[[int], Body]  # of a shard's number
    purpose: dict[str, Any]  # whose state this is; "parts" may grow from one run to the next
    time: EventTime
    output: pa.Schema
    delay: int = 0  # of the watermark, in milliseconds
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def digest(self) -> str:
        return hashlib.blake2b(json.dumps(self.purpose, sort_keys=True).encode(), digest_size=16).hexdigest()


CACHE = Cache()


class Shards(StatefulProcessor):
    """The shards of a partition, as Spark runs them."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def init(self, handle: Any) -> None:
        process.begin()
        self._handle = handle
        self._known: dict[int, int] = {}  # what the next watermark will be, for some shards
        number, content = StructField("number", LongType()), StructField("content", BinaryType())
        # One variable for all: Spark takes ten milliseconds per variable and trigger to set it up.
        self._store = handle.getMapState("pieces", StructType([number]), StructType([content]))

    def handleInputRows(self, key: Any, rows: Iterable[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """Called by Spark where rows came: their pieces as tables, in order of kind and place, and a step over them."""
        frames = list(rows)
        pieces = [
            piece for frame in frames for piece in zip(frame["kind"], frame["place"], frame["piece"], strict=True)
        ]
        fresh: dict[str, list[pa.Table]] = {}
        came = hashlib.blake2b(digest_size=16)
        for kind, place, piece in sorted(pieces, key=lambda each: (each[0], each[1])):
            fresh.setdefault(kind, []).append(table_from_array(np.frombuffer(piece, np.uint8)))
            came.update(f"{kind} {place} {len(piece)} ".encode())
            came.update(piece)
        tables = {kind: pa.concat_tables(each) for kind, each in fresh.items()}
        yield from self._step(int(key[0]), tables, came.hexdigest(), timerValues.getCurrentWatermarkInMs(), None)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        expired = expiredTimerInfo.getExpiryTimeInMs()
        yield from self._step(int(key[0]), {}, "", timerValues.getCurrentWatermarkInMs(), expired)

    def close(self) -> None:
        """Spark has all answers and all state."""
        CACHE.go_ahead(self.job.id, self._known)

    def _step(
        self, shard: int, fresh: dict[str, pa.Table], came: str, watermark: int, expired: int | None
    ) -> Iterator[pd.DataFrame]:
        """came: a digest of the fresh rows."""
        began = time.perf_counter()
        log = Log(*self._load(shard))
        header = log.header
        passed = self.job.time.from_watermark(watermark)
        upto = passed if header.upto is None or passed is None else max(passed, header.upto)
        body, replayed = self._body(shard, log, upto)
        step = body.step(fresh, upto)
        header.upto = upto
        header.history = [*header.history, Version(header.token, log.behind, upto)][-HISTORY:]
        header.token = hashlib.blake2b(f"{header.token} {came} {upto}".encode(), digest_size=16).hexdigest()
        timer = self._timer(body.wakes(), watermark)
        saved = thread("state").submit(self._save, log, body, step, timer, expired)
        try:
            for table in chain(step.answers, step.further):
                if table.num_rows:
                    yield answer_rows(table, self.job.output)
        finally:  # whatever happens to the answers: nobody writes state behind the back of the next attempt
            wait([saved])
        saved.result()
        CACHE.keep(self.job.id, shard, header.token, body)
        self._expect(shard, body, upto)
        counts = step.counts | {"bytes": header.bytes, "segments": len(header.entries), "replayed": replayed}
        counts["milliseconds"] = round(1000 * (time.perf_counter() - began))
        yield counts_rows(counts, self.job.output)

    def _save(self, log: Log, body: Body, step: Step, timer: int | None, expired: int | None) -> None:
        """The state as it is after a step.

        Runs beside the lookups of that step: neither changes what the other reads, and either waits for Spark most of
        the time, at a socket of its own. When it came after them, it was a tenth of a trigger.
        """
        header = log.header
        for kind, table, instants in step.log:
            log.append(kind, table, instants)
        body.tend(log)
        header.body = body.state()
        self._set_timer(header, timer, expired)
        log.pieces.write(HEADER_AT, header.state())

    def _load(self, shard: int) -> tuple[Header, Pieces]:
        """The header of a shard, and the pieces that it names."""
        pieces = Pieces(self._store, f"shard {shard}")
        header = Header.of(pieces)
        if header is None:
            header = Header("")
        elif header.purpose != self.job.digest:
            check_purpose(pieces.read(PURPOSE_AT)[0], self.job.purpose)
        if header.purpose != self.job.digest:
            pieces.write(PURPOSE_AT, (self.job.purpose, {}))
            header.purpose = self.job.digest
        return header, pieces

    def _body(self, shard: int, log: Log, upto: int | None) -> tuple[Body, int]:
        """The body at the version that the header names, and how many rows had to be replayed for it."""
        header = log.header
        versions = {each.token: each for each in [*header.history, Version(header.token, header.following, upto)]}
        cached = CACHE.take(
            self.job.id, shard, reversed(versions), lambda each: self._usable(each, versions[each.token], header)
        )
        if cached is not None and cached.token == header.token:
            cached.body.restore(header.body)
            return cached.body, 0
        if cached is not None:
            body, missed = cached.body, log.since(versions[cached.token].following)
        else:
            body, missed = self.job.make(shard), list(header.entries)
        if header.token:
            body.replay(log.read(missed), header.body, header.upto)
        return body, sum(entry.rows for entry in missed)

    def _usable(self, cached: Cached, version: Version, header: Header) -> bool:
        """A body that went ahead may have applied rows later than some that came after it, where the next step's
        watermark was an earlier one; that the watermark is further now does not put those rows in order."""
        if version.following < header.floor:
            return False
        if cached.body.ahead is None or (version.passed is not None and cached.body.ahead <= version.passed):
            return True
        CACHE.surprised.add(self.job.id)
        return False

    def _expect(self, shard: int, body: Body, upto: int | None) -> None:
        """What the next watermark will say if this shard's events decide it: others can only make it later."""
        if body.latest is not None:
            next_one = self.job.time.spark_time(body.latest) // 1000 - self.job.delay
            expected = self.job.time.from_watermark(next_one)
            if expected is not None and (upto is None or expected > upto):
                self._known[shard] = expected

    def _timer(self, wakes: int | None, watermark: int) -> int | None:
        return None if wakes is None else max(self.job.time.timer(wakes), watermark + 1)

    def _set_timer(self, header: Header, timer: int | None, expired: int | None) -> None:
        """One timer per shard. Spark itself removes the one that has just fired."""
        if timer == header.timer:
            return
        if header.timer is not None and header.timer != expired:
            self._handle.deleteTimer(header.timer)
        if timer is not None:
            self._handle.registerTimer(timer)
        header.timer = timer


def check_purpose(written: dict[str, Any], wanted: dict[str, Any]) -> None:
    """State goes on under other queries if all it was written for are still there; otherwise it is refused."""
    hint = "the queries that the checkpoint was written for, or another checkpointLocation"
    for name in ("what", "ts", "key", "shards"):
        if written.get(name) != wanted.get(name):
            raise BadState(
                f"the checkpoint was written with {name}={written.get(name)!r}, this stream has {wanted.get(name)!r}.",
                f"shards={written.get(name)}" if name == "shards" else hint,
            )
    gone = [name for name in written["parts"] if name not in wanted["parts"]]
    changed = [name for name, digest in written["parts"].items() if wanted["parts"].get(name, digest) != digest]
    for names, what in ((gone, "has, and this stream lacks,"), (changed, "knows differently")):
        if names:
            raise BadState(f"the checkpoint is of other queries: it {what} {', '.join(map(repr, names))}.", hint)


def counts_rows(counts: dict[str, int], output: pa.Schema) -> pd.DataFrame:
    """A row per count beside the answers: Spark adds them up, and drops them (see streaming.py)."""
    numbers = [counts.get(name, 0) | i << WHICH for i, name in enumerate(METRICS)]
    columns = {f"c{i}": pa.nulls(len(numbers), each.type) for i, each in enumerate(output)}
    return as_pandas({COUNTS: pa.array(numbers, pa.int64())} | columns)


def counted(numbers: list[int]) -> dict[str, int]:
    """What rows of counts say."""
    return {METRICS[number >> WHICH]: number & (1 << WHICH) - 1 for number in numbers}


def answer_rows(table: pa.Table, output: pa.Schema) -> pd.DataFrame:
    """Under the names of their places: those of users come back behind the shards."""
    columns: dict[str, Any] = {COUNTS: pa.nulls(table.num_rows, pa.int64())}
    for i, each in enumerate(output):
        columns[f"c{i}"] = table.column(each.name).cast(each.type)
    return as_pandas(columns)


def as_pandas(columns: dict[str, Any]) -> pd.DataFrame:
    """Arrow arrays as they are: pandas' own would lose what is null and what NaN."""
    return pd.DataFrame({name: pd.Series(_one(a), dtype=pd.ArrowDtype(a.type)) for name, a in columns.items()})


def _one(array: Any) -> pd.arrays.ArrowExtensionArray:
    joined = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return pd.arrays.ArrowExtensionArray(joined)
