"""Streams beside that of an engine, by name: frames are filled from them. Each keeps its own order and its own time.

    engine.append(messages, stream="messages") --> every query over frames that is filled from it

With `lateness` all events of a stream up to that much behind its latest have come; else those are known to have come
that are before the latest of their key, and those that `engine.advance` says.
"""

from typing import Any

import numpy as np

from kernels.operators.numbers import EARLIEST
from swag.durable.state import State
from swag.errors import BadQuery, BadType, nearest
from swag.query.over_frames import ContinuousFrames
from swag.tables.columns import Clock, as_table, clock_of, column, instants, taken
from swag.tables.times.durations import in_units
from swag.ticks.arrivals import Arrivals
from swag.ticks.grouped_stream import GroupedStream
from swag.ticks.refused import due_before


class OtherStreams:
    """Owns the latest time of each other stream. Asked of it: to `take` a batch of one; that time passes for all."""

    def __init__(self, streams: GroupedStream, arrivals: Arrivals) -> None:
        self.streams, self.arrivals = streams, arrivals
        self.now: dict[str, int] = {}

    def readers(self, name: str | None = None) -> list[ContinuousFrames]:
        """Who is filled from a stream, or from any."""
        running = [each for stream in self.streams.every_stream for each in stream.frames.running.values()]
        return [each for each in running if each.other is not None and name in (None, each.other)]

    def is_own(self, name: Any) -> bool:
        """Is it the stream of the engine itself? Raises if it is none that anybody reads."""
        known = {str(each.other) for each in self.readers()}
        if isinstance(name, str) and name in known:
            return False
        own = {query.stream for query in self.streams.queries.values() if query.stream is not None}
        if name in own:
            return True
        there = ", ".join(sorted(known | own)) or "there is one, without a name"
        raise BadQuery(
            f"stream={name!r} is none that a query reads: {there}.",
            nearest(str(name), sorted(known | own)) or "engine.append(events), or FILL FROM in a statement",
        )

    def take(self, name: str, events: Any) -> int:
        """A batch of another stream, whole or not at all; returns how many events were taken."""
        table = as_table(events, keep=True)
        times = column(table, self.streams.ts, "ts is")
        if table.num_rows == 0:
            return 0
        clock, known = clock_of(times, self.streams.ts), self.streams.time.clock
        if known is not None and clock != known:
            raise BadType(
                f'"{self.streams.ts}" is {clock.type}, but {known.type} in other streams.', f"cast to {known.type}"
            )
        lateness = self._lateness(clock)
        ts = instants(times, self.streams.ts)
        late = np.zeros(ts.size, bool)
        if lateness is not None:
            late = ts < due_before(ts, self.now.get(name, EARLIEST), lateness)
        fresh = taken(table, np.flatnonzero(~late)) if late.any() else table
        for each in self.readers(name):
            each.check_other(fresh, clock, ordered=lateness is None)
        self.now[name] = max(self.now.get(name, EARLIEST), int(ts.max()))
        self._pass(name, clock)
        self.arrivals.refused.add(table, late, f'more than lateness={self.arrivals.lateness!r} behind "{name}"')
        return fresh.num_rows

    def advance(self, ts: Any) -> None:
        """Nothing older than `ts` is to come in any stream, other than what lateness allows."""
        clock = self.streams.time.clock
        if clock is None:
            return
        instant = clock.instant(ts, "advance")
        for name in {str(each.other) for each in self.readers()}:
            self.now[name] = max(self.now.get(name, EARLIEST), instant)
            self._pass(name, clock, instant)

    def _pass(self, name: str, clock: Clock, promised: int = EARLIEST) -> None:
        """Up to when all events of a stream have come, and what that decides."""
        lateness = self._lateness(clock)
        closed = promised - 1 if promised > EARLIEST else EARLIEST
        if lateness is not None:
            now = self.now[name]
            closed = now - lateness - 1 if now > EARLIEST + lateness else EARLIEST
        for each in self.readers(name):
            each.take_other(closed, clock)
        for stream in self.streams.every_stream:
            stream.frames.decide(self._closed(lateness))

    def _closed(self, lateness: int | None) -> int:
        """Up to when all events of the engine's own stream have come."""
        time, held = self.streams.time, self.arrivals.held
        if lateness is None:
            return time.closed
        now = time.now if held is None else held.now
        return now - lateness - 1 if now > EARLIEST + lateness else EARLIEST

    def _lateness(self, clock: Clock) -> int | None:
        lateness = self.arrivals.lateness
        return None if lateness is None else in_units(lateness, clock.unit)

    def state(self) -> State:
        return {"now": self.now}, {}

    def restore(self, state: State) -> None:
        self.now = dict(state[0]["now"])
