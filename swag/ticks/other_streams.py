"""Streams beside that of an engine, by name: frames are filled from them. Each keeps its own order and its own time.

    engine.append(messages, stream="messages") --> every query over frames that is filled from it

With `lateness` all events of a stream up to that much behind its latest have come; else those are known to have come
that are before the latest of their key, and those that `engine.advance` says.

An engine has one stream of its own, which its queries read whatever they call it: only where it is to be told from
another do they have to agree on its name.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from kernels.operators.numbers import EARLIEST
from swag.durable.state import State, nested, parts
from swag.errors import BadQuery, BadType, nearest
from swag.live.vocabulary.known_decimals import KnownDecimals
from swag.query.groupings import streams_of
from swag.query.over_frames import ContinuousFrames, OverFrames
from swag.query.query import Query
from swag.tables.columns import Clock, as_table, clock_of, column, instants, taken
from swag.tables.times.durations import in_units
from swag.ticks.arrivals import Arrivals
from swag.ticks.grouped_stream import GroupedStream
from swag.ticks.refused import due_before


class OtherStreams:
    """Owns the latest time of each other stream, and the types of its decimals. Asked of it: to `take` a batch of one;
    that time passes for all; and whether queries go with those that are there (`check`), of which it is told (`note`,
    `forget`)."""

    def __init__(self, streams: GroupedStream, arrivals: Arrivals) -> None:
        self.streams, self.arrivals = streams, arrivals
        self.now: dict[str, int] = {}
        self._decimals: dict[str, KnownDecimals] = {}
        self._names: Names | None = None  # of the queries that are registered, once somebody has asked

    def readers(self, name: str | None = None) -> list[ContinuousFrames]:
        """Who is filled from a stream, or from any."""
        return [each for stream in self.streams.every_stream for each in stream.frames.filled_from(name)]

    def check(self, new: Iterable[Query]) -> None:
        """Refuse queries that would read another stream than the engine's own."""
        known = self._known()
        why = known.with_more(new).wrong
        if why is not None and known.wrong is None:
            raise why

    def note(self, new: Iterable[Query]) -> None:
        """These were registered."""
        self._names = self._known().with_more(new)

    def forget(self) -> None:
        """Some query went."""
        self._names = None

    def _known(self) -> "Names":
        if self._names is None:
            self._names = Names({}, {}).with_more(self.streams.queries.values())
        return self._names

    def is_own(self, name: Any) -> bool:
        """Is it the stream of the engine itself? Raises if it is none that anybody reads."""
        known = {str(each.other) for each in self.readers()}
        if isinstance(name, str) and name in known:
            return False
        own = self._known().own.keys()
        if name in own:
            return True
        there = ", ".join(sorted(known | own)) or "there is one, without a name"
        raise BadQuery(
            f"stream={name!r} is none that a query reads: {there}.",
            nearest(str(name), sorted(known | own)) or "engine.append(events), or FILL FROM in a statement",
        )

    def take(self, name: str, events: Any) -> int:
        """A batch of another stream, whole or not at all; returns how many events were taken."""
        decimals = self._decimals.setdefault(name, KnownDecimals())
        table = decimals.fitted(as_table(events, keep=True))
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
        came = [
            (each, each.check_other(fresh, clock, stream.core.store.keys, ordered=lateness is None))
            for stream in self.streams.every_stream
            for each in stream.frames.filled_from(name)
        ]
        decimals.note(table)
        for each, rows in came:  # which were right for all of them
            each.take_other(rows, clock)
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
        for stream in self.streams.every_stream:
            stream.frames.let_go()

    def _pass(self, name: str, clock: Clock, promised: int = EARLIEST) -> None:
        """Up to when all events of a stream have come, and what that decides."""
        lateness = self._lateness(clock)
        closed = promised - 1 if promised > EARLIEST else EARLIEST
        if lateness is not None:
            now = self.now[name]
            closed = now - lateness - 1 if now > EARLIEST + lateness else EARLIEST
        for each in self.readers(name):
            each.close_other(closed)
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
        known = [(name, each.state()) for name, each in self._decimals.items()]
        saved = {name: state for name, state in known if state is not None}
        return nested({"now": self.now, "decimals": list(saved)}, {"types": list(saved.values())})

    def restore(self, state: State) -> None:
        self.now = dict(state[0]["now"])
        if "decimals" in state[0]:
            for name, saved in zip(state[0]["decimals"], parts(state, "types"), strict=True):
                self._decimals.setdefault(name, KnownDecimals()).restore(saved)


class Names(NamedTuple):
    """What queries call the stream that they read, and those that frames are filled from; each with one that does."""

    own: dict[str, str]
    other: dict[str, str]

    def with_more(self, queries: Iterable[Query]) -> "Names":
        """The same of more queries."""
        own, other = dict(self.own), dict(self.other)
        for each in queries:
            own |= {name: each.label for name in streams_of(each) if name not in own}
            if isinstance(each, OverFrames) and each.other is not None:
                other.setdefault(each.other, each.label)
        return Names(own, other)

    @property
    def wrong(self) -> BadQuery | None:
        """Some read a stream that frames of others are filled from, or they call the one that they read by several
        names. Where no frames are filled from another, names say nothing."""
        hint = "an engine for each stream that queries read"
        for name in self.own.keys() & self.other.keys():
            return BadQuery(
                f'"{self.own[name]}" reads "{name}", which frames of "{self.other[name]}" are filled from. An engine '
                "has one stream that its queries read, and others that frames are filled from.",
                hint,
            )
        if not self.other or len(self.own) < 2:
            return None
        (one, reader), (another, its), *_ = self.own.items()
        return BadQuery(
            f'"{reader}" reads "{one}", and "{its}" reads "{another}"; an engine has one stream that its queries read, '
            f'beside those that frames are filled from ("{next(iter(self.other))}").',
            f"FROM {one} in both if they are the same, else {hint}",
        )
