"""A stream whose late events are put into their place, with queries that are decided when nothing older may come.

    event --> its place --> lookups            at once, as of the latest time
         \\-> waits -------> ticks, answers     when the watermark has passed it, `lateness` behind

What answers at ticks, or over the answers of others, can not be taken back. Such queries are those of a second stream,
which is there once one is registered, and is given events as those of an engine are that holds them.
"""

from typing import Any

import pyarrow as pa

from kernels.operators.numbers import EARLIEST
from swag.durable.state import State, nested, part
from swag.live import intake
from swag.query.groupings import By
from swag.query.query import Query
from swag.query.reading import Reading
from swag.tables.columns import Clock
from swag.tables.waiting import TimedRows, Waiting
from swag.ticks.emission import Emission
from swag.ticks.grouped_stream import GroupedStream
from swag.ticks.held import Held
from swag.ticks.live_stream import LiveStream
from swag.ticks.refused import Refused


class InPlaceStream(GroupedStream):
    """As its base, of events that are late by no more than `time.lateness` says.

    It also owns the stream of what is decided later (`behind`), None while nobody asks for it, and the events that wait
    for that (`held`).
    """

    def __init__(self, ts: str, default: By, algorithm: str = "auto", epsilon: float = 0.2) -> None:
        self.behind: GroupedStream | None = None
        super().__init__(ts, default, algorithm, epsilon)
        self.held = Held(0, Refused())

    # -- queries ------------------------------------------------------------------------------------------------------

    def add(self, queries: list[Query], held: Held | None = None) -> None:
        """Here no plain query finds events that wait."""
        known = dict(self.queries)
        later = [query for query in queries if not query.is_plain]
        behind = (self.behind or self._begun_behind()) if later else self.behind
        if behind is not None:
            behind.add(later, self.held)
        try:
            super().add([query for query in queries if query.is_plain])
        except Exception:
            for query in later:
                assert behind is not None
                behind.remove(query.label)
            raise
        self.behind, self.held.missed = behind, EARLIEST
        self.queries = known | {query.label: query for query in queries}
        self._note_groupings(later)
        self._follow()

    def _begun_behind(self) -> GroupedStream:
        """Where events have come before, those are missing: also the ones that would wait still."""
        made = GroupedStream(self.ts, self.default, *self._options)
        self.held.waiting, self.held.missed = Waiting(), self.time.now if self.events else EARLIEST
        if self.time.clock is not None:
            self._follow_time()
            made.time.go_on(self.held.watermark)
            made.start(self.time.clock)
            made.events = self.events
            if self.events:
                made.main.begin_at(self.held.watermark, self.events)
        return made

    def remove(self, name: str) -> None:
        """A query goes, here or behind; with its last one that stream goes, unless ticks are still to be fetched."""
        if self.behind is None or name not in self.behind.queries:
            super().remove(name)
            return
        self.behind.remove(name)
        del self.queries[name], self._where[name], self._home[name]
        if not self.behind.queries and not any(each.undelivered for each in self.behind.emissions.values()):
            self.behind, self.held.waiting = None, Waiting()
        self._follow()

    def of(self, name: str) -> LiveStream:
        later = self.behind is not None and name in self.behind.queries
        return self.behind.of(name) if self.behind is not None and later else super().of(name)

    def _follow(self) -> None:
        """There are ticks where events are taken later as well."""
        super()._follow()
        self.is_ticking = self.behind is not None

    def _read(self) -> Reading:
        """What is read of an event is read now or later."""
        own = super()._read()
        if self.behind is None:
            return own
        theirs = self.behind.reading
        return Reading([*own.queries, *theirs.queries], self.ts, *dict.fromkeys((*own.keys, *theirs.keys)))

    @property
    def emissions(self) -> dict[By, Emission]:
        return super().emissions if self.behind is None else self.behind.emissions

    def emission(self, by: By) -> Emission:
        return super().emission(by) if self.behind is None else self.behind.emission(by)

    def key_types(self, by: By) -> list[pa.DataType]:
        known = [super().key_types(by)] + ([] if self.behind is None else [self.behind.key_types(by)])
        return next((types for types in known if not pa.types.is_null(types[0])), known[0]) if by else known[0]

    # -- events -------------------------------------------------------------------------------------------------------

    def start(self, clock: Clock) -> None:
        super().start(clock)
        if self.behind is not None:
            self.behind.start(clock)

    def restart(self) -> None:
        super().restart()
        if self.behind is not None:
            self.behind.restart()

    def take(self, table: pa.Table) -> int:
        """Events into their places at once; where something is decided later, they also wait for the stream behind."""
        if self.behind is None:
            return super().take(table)
        self.forget_keys()
        with self.trying(table, ordered=True) as batches:
            self._wait(self.behind, table)
        self.apply(batches)
        self._pass_behind(self.behind)
        return table.num_rows

    def _wait(self, behind: GroupedStream, table: pa.Table) -> None:
        with behind.trying(table) as batches:
            self.held.waiting.add(table, batches[0].ts, narrow=True)
        for stream, batch in zip(behind.active.values(), batches, strict=True):
            stream.core.dictionary.note_types(batch.fields)
            stream.core.dictionary.note_columns(batch.table, stream.reading)

    def pass_time(self, now: int, closed: int) -> None:
        super().pass_time(now, closed)
        if self.behind is not None:
            self._pass_behind(self.behind)

    def _follow_time(self) -> None:
        assert self.time.lateness is not None
        self.held.lateness, self.held.now = self.time.lateness, self.time.now

    def _pass_behind(self, behind: GroupedStream) -> None:
        """What waited for the watermark is given to those who did."""
        self._follow_time()
        behind.time.go_on(self.held.watermark)
        due = self.held.due()
        if due is not None:
            behind.take_known(TimedRows(intake.with_missing(due.table, behind.reading, keys=True), due.ts, due.ids))
            self.held.released()
        behind.tidy()
        behind.decide(max(EARLIEST, self.held.watermark - 1), kept=False)

    # -- letting go ---------------------------------------------------------------------------------------------------

    def forget_keys(self, waiting: Waiting | None = None) -> None:
        super().forget_keys(waiting)
        if self.behind is not None:
            self.behind.forget_keys()

    def let_go(self) -> None:
        super().let_go()
        if self.behind is not None:
            self.behind.let_go()

    # -- about itself -------------------------------------------------------------------------------------------------

    @property
    def every_stream(self) -> list[LiveStream]:
        return [stream for each, _ in self.parts for stream in each.streams.values()]

    @property
    def parts(self) -> list[tuple[GroupedStream, int]]:
        return super().parts if self.behind is None else [(self, 0), (self.behind, self.held.waiting.count)]

    @property
    def kept(self) -> int:
        return sum(stream.kept for stream in self.every_stream)

    @property
    def bytes(self) -> int:
        return sum(stream.bytes for stream in self.every_stream) + self.held.waiting.bytes

    def complete_since(self) -> dict[str, Any]:
        since = {name: when for stream in self.every_stream for name, when in stream.complete_since().items()}
        return {name: since[name] for name in self.queries}

    def state(self) -> State:
        header, arrays = super().state()
        later = {"behind": None, "held": None} if self.behind is None else {
            "behind": self.behind.state(), "held": self.held.state()
        }  # fmt: skip
        added = nested({}, later)
        return header | added[0], arrays | added[1]

    def restore(self, state: State) -> None:
        super().restore(state)
        if state[0]["behind"] is not None:
            self.behind = self.behind or GroupedStream(self.ts, self.default, *self._options)
            self.behind.restore(part(state, "behind"))
            self.held.restore(part(state, "held"))
            self._follow()
