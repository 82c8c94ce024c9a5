"""How events come to the streams of an engine: at once, in order; after a wait for the watermark; or each in its place.

hold=True, no lateness    in order, or refused; the first batch tells what time is
hold=True, lateness       they wait in front of the streams, until the watermark has passed them
hold=False                at once, late ones in their place (swag/ticks/in_place.py)
"""

from typing import Any

import numpy as np
import pyarrow as pa

from kernels.operators.numbers import EARLIEST
from swag.durable.state import State, nested, part, table_from_array, table_to_array, with_arrays
from swag.live import intake
from swag.live.vocabulary.known_decimals import KnownDecimals
from swag.query.groupings import By
from swag.query.lowering import simple_ones
from swag.query.query import Query
from swag.tables.columns import clock_of, taken
from swag.tables.times.durations import Duration, in_units
from swag.tables.waiting import NO_IDS, TimedRows
from swag.ticks.grouped_stream import GroupedStream
from swag.ticks.held import Held, later_of
from swag.ticks.refused import Refused, due_before


class Arrivals:
    """The way of events into `streams`. It owns those that wait, those that were refused, the types of decimals, and a
    time that was given before the first event.

    Asked of it: to `take` a batch, that time passes (`advance`), to `add` and `remove` queries (which may read what
    waits), and its `state`.
    """

    def __init__(self, streams: GroupedStream, lateness: Duration | None, hold: bool) -> None:
        self.streams, self.ts, self.lateness, self.hold = streams, streams.ts, lateness, hold
        self.held: Held | None = None  # once there is a first event, where events wait
        self.refused = Refused()
        self._decimals = KnownDecimals()
        self._advanced: Any = None  # whose type nobody knows yet

    @property
    def waiting(self) -> int:
        """How many events wait in front of the streams."""
        return 0 if self.held is None else self.held.waiting.count

    # -- queries ------------------------------------------------------------------------------------------------------

    def add(self, queries: list[Query]) -> None:
        """All or none of them."""
        before = list(self.streams.active)
        if self.held is not None:
            self.held.compute(simple_ones(query for query in queries if query.source is None))
        self.streams.add(queries, self.held)
        self._regrouped(before)

    def remove(self, name: str) -> None:
        before = list(self.streams.active)
        self.streams.remove(name)
        self._regrouped(before)

    def _regrouped(self, before: list[By]) -> None:
        """Events that wait know their keys by the numbers of the one grouping that there was when they came."""
        if self.held is not None and list(self.streams.active) != before:
            self.held.forget_ids()

    # -- events -------------------------------------------------------------------------------------------------------

    def take(self, table: pa.Table) -> int:
        """A batch with all that the streams read, whole or not at all; returns how many events were taken."""
        table = self._decimals.fitted(table)
        count = self._take(table)
        self._decimals.note(table)
        return count

    def _take(self, table: pa.Table) -> int:
        streams = self.streams
        first = streams.time.clock is None
        try:
            if first:
                self._start(table)
            if self.held is not None:
                return self._hold(self.held, table)
            return streams.take(table) if self.hold else self._place(table)
        except Exception:
            if first:
                streams.restart()
                self.held = None
            raise

    def advance(self, ts: Any) -> None:
        """Nothing older than `ts` is to come, other than what lateness allows; what nobody reaches any more goes."""
        clock = self.streams.time.clock
        if clock is None:
            self._advanced = later_of(self._advanced, ts)
            return
        self._pass(clock.instant(ts, "advance"))
        self.streams.let_go()
        self._forget_keys()

    def _start(self, table: pa.Table) -> None:
        """The first batch tells what time is."""
        clock, time = clock_of(table.column(self.ts), self.ts), self.streams.time
        self.streams.start(clock)
        promised = EARLIEST if self._advanced is None else clock.instant(self._advanced, "advance")
        if self.lateness is None:
            time.go_on(promised, promised - 1 if promised > EARLIEST else EARLIEST)
        elif self.hold:
            self.held = Held(in_units(self.lateness, clock.unit), self.refused)
            self.held.now = promised
            time.go_on(self.held.watermark)
        else:
            time.lateness = in_units(self.lateness, clock.unit)
            time.go_on(promised)

    def _place(self, table: pa.Table) -> int:
        """Events are applied as they come, each in its place; what is too late for that is refused, of any key."""
        streams, time = self.streams, self.streams.time
        assert time.clock is not None and time.lateness is not None
        ts = intake.timestamps(table, self.ts, time.clock)
        late = ts < due_before(ts, time.now, time.lateness)
        fresh = table
        if late.any():
            with streams.trying(table):  # a batch with something else wrong is refused as a whole
                fresh = taken(table, np.flatnonzero(~late))
        if fresh.num_rows:
            streams.take(fresh)
        self.refused.add(table, late, f"more than lateness={self.lateness!r} behind the latest ts")
        return fresh.num_rows

    def _hold(self, held: Held, table: pa.Table) -> int:
        """Events wait until the watermark passes them. Where they are grouped in several ways, they are judged as one:
        late is what is older than anything applied."""
        self._forget_keys()
        streams = self.streams
        with streams.trying(table) as batches:
            active = list(streams.active.values())
            assert streams.time.clock is not None
            unit = streams.time.clock.unit
            slots = set().union(*(stream.emission.steps(unit) for stream in active))
            together = len(active) > 1 or active[0].emission.ordered
            batch, store = batches[0], active[0].core.store
            ids = batch.ids if len(active) == 1 and held.has_ids else NO_IDS
            latest = np.array([max(each.core.latest for each in active)]) if together else store.latest
            empty = intake.empty_columns(table)
            for stream in active:
                table = intake.without_foreign_nulls(table, stream.core.dictionary, empty)
            taken = held.add(table, batch.ts, ids, latest, store.seen, slots, together)
        for stream, each in zip(active, batches, strict=True):
            stream.core.dictionary.note_types(each.fields)
            stream.core.dictionary.note_columns(each.table, stream.reading)
        self._pass(int(batch.ts.max(initial=EARLIEST)))
        return taken

    def _pass(self, instant: int) -> None:
        """Time goes on to `instant`; what waited for that is applied."""
        held, streams = self.held, self.streams
        if held is None:
            streams.pass_time(instant, instant - 1 if self.hold and instant > EARLIEST else EARLIEST)
            return
        held.now = max(held.now, instant)
        streams.time.go_on(held.watermark)
        due = held.due()
        if due is not None:
            table = intake.with_missing(due.table, streams.reading, keys=True)
            streams.take_known(TimedRows(table, due.ts, due.ids))
            held.released()
        streams.tidy()
        streams.decide(max(EARLIEST, held.watermark - 1), kept=False)

    def _forget_keys(self) -> None:
        """Keys that nobody asks for any more: memory follows what windows hold."""
        self.streams.forget_keys(None if self.held is None else self.held.waiting)

    # -- state --------------------------------------------------------------------------------------------------------

    def state(self) -> State:
        held = None if self.held is None else self.held.state()
        early = {} if self._advanced is None else {"advanced": table_to_array(pa.table({"ts": [self._advanced]}))}
        inside = {"held": held, "refused": self.refused.state(), "decimals": self._decimals.state()}
        return with_arrays(nested({}, inside), early)

    def restore(self, state: State) -> None:
        """The streams have been restored."""
        header, arrays = state
        if header["held"] is not None:
            self.held = Held(0, self.refused)
            self.held.restore(part(state, "held"))
        if header.get("refused") is not None:
            self.refused.restore(part(state, "refused"))
        if header.get("decimals") is not None:
            self._decimals.restore(part(state, "decimals"))
        for stream in self.streams.every_stream:  # in older files they are those that aggregates read
            self._decimals.note_types(stream.core.dictionary.types.items())
        time = self.streams.time
        if not self.hold and self.lateness is not None and time.clock is not None:
            time.lateness = in_units(self.lateness, time.clock.unit)
        if "advanced" in arrays:
            self._advanced = table_from_array(arrays["advanced"]).column(0)[0].as_py()
