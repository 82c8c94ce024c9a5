"""The streams of a shard: the events, and those inside it, which other queries read. Each has a core, and its rows
in the log for as long as anything can reach them.

    events --> engine --> ticks of an inner query --> engine --> …       an engine is made again from its own rows, as
                     \\-> events for which a condition holds --> engine   they were: what feeds it has long let go of
                                                                         what they were computed from
"""

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.rings.timeline import HEAD, TAIL
from swag.durable.state import State, nested, part
from swag.live import intake
from swag.live.arena import Batch
from swag.live.filtered.checked_rows import Incoming
from swag.query.every import Every
from swag.query.kinds import count
from swag.query.lowering import depth, simple_ones
from swag.query.query import Query
from swag.query.windows import Range, Rows, reach
from swag.spark.places import free
from swag.spark.portable import digest, fingerprint
from swag.spark.streams.log import Log
from swag.spark.streams.sweeping import Sweep
from swag.spark.streams.watermark import instants_of
from swag.tables.columns import Clock, one_chunk
from swag.tables.keys import KeyTable
from swag.ticks.live_stream import LiveStream

EVENTS, COUNTS = "events", "counts"
NOTHING = int(np.iinfo(np.int64).min)


class RecordedStream(LiveStream):
    """A stream that notes what it, and those inside, are given, for the log.

    It owns these tables until they are forgotten, and the rows of each by key. replaying: it takes nothing now, as its
    own rows are in the log. watermark: slots that could be known to be over are, once it has passed them.
    """

    def __init__(self, ts: str, key: str | None, algorithm: str = "auto", epsilon: float = 0.2) -> None:
        super().__init__(ts, key, algorithm, epsilon)
        self.emission.views = False  # ticks are taken from tickers as they are
        self.given: list[pa.Table] = []
        self._batches: list[tuple[int, Batch]] = []  # each with the numbering of keys that it is by
        self.replaying, self.watermark = False, NOTHING

    def take(self, table: pa.Table, checked: bool = False) -> Incoming | None:
        """Take rows and note them for the log; nothing while replaying, as its own rows are in the log."""
        if self.replaying or table.num_rows == 0:
            return None
        table = self.reading.extended(table) if self.reading.derived else table
        self.given.append(table)
        batch = super().take(table, checked)
        if batch is not None and batch.by_key is not None:
            self._batches.append((self.core.grouping.numbering, batch.by_key))
        return batch

    def pass_time(self, now: int, closed: int, kept: bool = True) -> None:
        """No further than the watermark. Rows are let go in passing, some with every batch: time passes here with every
        trigger, and to look at all keys each time would take as long as to apply a tenth of them."""
        super().pass_time(min(now, self.watermark), min(closed, self.watermark), kept)
        self.forget_keys()

    def forget_given(self) -> None:
        self.given, self._batches = [], []

    def touched(self) -> tuple[np.ndarray, pa.Array | None]:
        """The keys that were given rows and are not forgotten yet, in order of id: as they lie in memory."""
        keys, key = self.core.store.keys, self.key
        if key is None or keys is None:
            return np.zeros(1, np.int64), None
        given = one_chunk(pa.chunked_array([chunk for table in self.given for chunk in table.column(key).chunks]))
        current = [batch for numbering, batch in self._batches if numbering == self.core.grouping.numbering]
        if len(self.given) == len(current) == 1:
            ids, first = current[0].keys, current[0].order[current[0].starts[:-1]]
        else:
            ids, first = np.unique(keys.find(given, key), return_index=True)
            ids, first = ids[ids >= 0], first[ids >= 0]
        return ids, given.take(pa.array(first))


class Kept:
    """A stream of a shard, and which rows of it are kept in the log. held, batch: rows that wait for the watermark, and
    those that it got last.

    name: how its part of the log is named; nothing for the events themselves. above: the stream that it is made of, by
    the ticks of an inner query with `every`; it refers to that one weakly, so that no cycle keeps engines in memory.
    """

    def __init__(self, stream: RecordedStream, unit: str | None, name: str = "", above: "Kept | None" = None,
                 every: Every | None = None) -> None:  # fmt: skip
        self.stream, self.unit, self.above = stream, unit, above
        slow = every is not None and every.by_time and every.anchor == "tuple"
        self.slot = every.step(unit) if every is not None and slow else 1
        self.rows, self.counts = EVENTS + name, COUNTS + name
        self.held, self.batch, self.gone, self.sweep = 0, 0, 0, Sweep()
        self._noted: list[pa.Table] = []
        self.inside = [Kept(*part) for part in self._parts(name)]
        stream.add(self._keeping())
        self._depth = depth([query for query in stream.queries.values() if query.is_plain], unit)
        tickers = [*stream.emission.tickers, *(query.every for query in stream.emission.inner if query.every)]
        self.counting = any(not every.by_time for every in tickers)  # does a tick depend on how many rows there were?

    def _parts(self, name: str) -> Iterator[tuple[Any, ...]]:
        above = weakref.proxy(self)
        for query, answers in self.stream.emission.inner.items():
            yield answers.stream(None), self.unit, f"{name} {fingerprint(query)}", above, query.every
        for events, chosen in self.stream.emission.chosen.items():
            yield chosen.stream, self.unit, f"{name} {digest(str(events.where))}", above, None

    def _keeping(self) -> list[Query]:
        """What undecided ticks, and lookups of a part that is a moment ahead, can still see, as windows that end now:
        so the engine keeps it, and the log."""
        windows: set[Rows | Range] = set()
        seen = [
            (ticker.every.step(self.unit) if ticker.every.by_time else 0, query)
            for ticker in self.stream.emission.all_tickers for query in ticker.queries.values()
        ]  # fmt: skip
        if self.above is not None:
            seen += [(0, query) for query in self.stream.queries.values() if query.is_plain]
        for step, query in seen:
            for far in (reach(leaf.window, self.unit) for leaf in simple_ones([query])):
                windows.add(Range(far.far + step + 1) if far.by_time else Rows(far.far))
        return [Query(count(), window, name=f"kept {window}\0") for window in windows]

    def all(self) -> "list[Kept]":
        """This stream and those inside it, each after what it is made of."""
        return [self, *(kept for part in self.inside for kept in part.all())]

    def upto(self, watermark: int) -> int:
        """Everything in this stream with ts <= this has come."""
        above = watermark if self.above is None else self.above.upto(watermark)
        return above // self.slot * self.slot  # the tuple that stands for a slot is known when the slot is over

    def known_at(self, instant: int) -> int:
        """The first watermark at which everything in this stream up to an instant has come."""
        over = -(-instant // self.slot) * self.slot
        return over if self.above is None else self.above.known_at(over)

    # -- into the log -------------------------------------------------------------------------------------------------

    def given(self) -> Iterator[tuple[str, pa.Table, np.ndarray]]:
        """What this part was given by the one above, to be logged."""
        needed = list(self.stream.reading.columns)
        for table in self.stream.given:
            yield self.rows, table.select(needed), instants_of(table.column(self.stream.ts))

    def tend(self, log: Log, watermark: int) -> None:
        """Let go of rows that nothing can reach; put small segments together."""
        upto = min(self.upto(watermark), self.stream.core.store.retention.since)
        gone = self._note_gone if self.counting else None
        if self._depth.rows == 0:
            log.drop_until(self.rows, upto - self._depth.time, gone)
            log.merge(self.rows)
        else:
            needed = self.stream.kept + self.held  # of a segment, known row by row only
            self.sweep.tend(log, self.rows, needed, self.batch, lambda table: self._needed(table, upto))
        for table in self._noted:
            log.append(self.counts, table, np.zeros(1, np.int64))
        self._noted = []
        log.merge(self.counts, self._added_up)

    def _needed(self, table: pa.Table, upto: int) -> pa.Table:
        live = self._live(table, upto)
        if self.counting:
            self._note_gone(table.filter(pa.array(~live)))
        return table.filter(pa.array(live))

    def _live(self, table: pa.Table, upto: int) -> np.ndarray:
        """Which logged rows the engine still keeps, or has not yet been given."""
        store, key = self.stream.core.store, self.stream.key
        instants = instants_of(table.column(self.stream.ts))
        if store.clock is None:
            return np.ones(instants.size, bool)
        ids = np.zeros(instants.size, np.int64)
        if key is not None and store.keys is not None:
            ids = store.keys.find(table.column(key), key)
        if store.key_count == 0:  # all were forgotten
            return instants > upto
        rings = store.main.arena.rings[ids]
        oldest = store.ts.data[rings[:, 0] + (rings[:, HEAD] & (rings[:, 1] - 1))]
        return (instants > upto) | ((rings[:, TAIL] > rings[:, HEAD]) & (instants >= oldest) & (ids >= 0))

    def _note_gone(self, table: pa.Table) -> None:
        """Ticks that count rows count those that are gone, too."""
        self.gone += table.num_rows
        key = self.stream.key
        if key is not None and table.num_rows:
            ones = pa.array(np.ones(table.num_rows, np.int64))
            self._noted.append(self._added_up(pa.table([table.column(key), ones], [free(key, ["rows"]), "rows"])))

    def _added_up(self, table: pa.Table) -> pa.Table:
        """Rows by key. Arrow would take a key of the name ".x" for a path, so it is called otherwise meanwhile."""
        counted = table.rename_columns(["key", "rows"]).group_by("key").aggregate([("rows", "sum")])
        return counted.rename_columns(table.column_names)

    # -- and out of it ------------------------------------------------------------------------------------------------

    def start(self, clock: Clock) -> None:
        """Time passes for it, and for the streams inside, even if none of its rows is left."""
        self.stream.start(clock)
        self.stream.core.store.grow_keys()

    def count_on(self, counts: list[pa.Table]) -> None:
        """A new stream goes on where the rows that are gone left its tickers."""
        store, key, tickers = self.stream.core.store, self.stream.key, self.stream.emission.all_tickers
        before = np.zeros(0, np.int64)
        if key is not None and counts and tickers:
            keys, rows = self._added_up(pa.concat_tables(counts)).columns
            store.keys = KeyTable(keys.type)
            before = np.zeros(len(keys), np.int64)
            before[store.keys.encode(keys, key)] = np.asarray(rows)
        for ticker in tickers:
            own = np.array([self.gone]) if ticker.whole else before
            ticker.counters.grow(own.size, own)

    def take_again(self, tables: list[pa.Table]) -> None:
        """Rows that the stream above gave once; columns that only later queries read are null in them."""
        stream = self.stream
        if tables:
            rows = pa.concat_tables(tables, promote_options="permissive")
            stream.take(intake.with_missing(rows, stream.reading), checked=True)

    def state(self) -> State:
        """What its part of the log is tended by."""
        return nested({"rows": self.rows, "gone": self.gone}, {"sweep": self.sweep.state()})

    def restore(self, state: State) -> None:
        self.gone = state[0]["gone"]
        self.sweep.restore(part(state, "sweep"))
