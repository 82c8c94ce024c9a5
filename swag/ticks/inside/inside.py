"""Inside: the tickers of a stream, and the streams inside of it, each with tickers of its own; so queries nest.

events --> ticker of an inner query --> Answers: streams of its ticks, relations (swag/ticks/inside/answer_streams.py)
      \\-> a condition, a frequency ---> Chosen: a stream of the events chosen  (swag/ticks/inside/chosen_events.py)
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from swag.live.core import Core
from swag.live.intake import check_there
from swag.query.every import Every
from swag.query.groupings import By
from swag.query.query import Events, Query, Several, Source, alone, queries_in
from swag.query.reading import Reading
from swag.ticks.inside.answer_streams import Answers
from swag.ticks.inside.chosen_events import Chosen
from swag.ticks.later_ticker import LaterTicker
from swag.ticks.lookback import Lookback
from swag.ticks.ticker import Ticker

if TYPE_CHECKING:
    from swag.ticks.emission import Emission
    from swag.ticks.live_stream import LiveStream


@dataclass(eq=False)
class Inside:
    """Who reads the events of a stream at ticks: its tickers, answers that others read, chosen events. It owns them.

    Asked of it: the stream of what a query reads (`over`), to `forget` what nobody reads. core: the stream's; by: its
    key columns; make: a stream for answers, or for chosen events, by its key columns.
    """

    core: Core
    by: By
    make: "Callable[[By], LiveStream]"
    tickers: dict[Every, Ticker] = field(default_factory=dict)
    later: dict[str, LaterTicker] = field(default_factory=dict)  # by query: of windows that see what comes after a tick
    inner: dict[Query | Several, Answers] = field(default_factory=dict)
    chosen: dict[Events, Chosen] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ts, self.key = self.core.ts, self.core.key

    @property
    def ordered(self) -> bool:
        """Is the order of events of different keys of importance?"""
        if self.key is None:
            return False
        parts: list[Any] = [*self.all_tickers, *self.chosen.values(), *self.inner.values(), *self.inside()]
        return any(each.ordered for each in parts)

    @property
    def streams(self) -> "list[LiveStream]":
        """Those inside."""
        found = []
        for answers in self.inner.values():
            found += answers.all_streams
        for chosen in self.chosen.values():
            found.append(chosen.stream)
        return found

    def inside(self) -> "list[Emission]":
        return [stream.emission for stream in self.streams]

    @property
    def all_tickers(self) -> list[Ticker]:
        """Its own, and those whose answers are streams."""
        found = self.own_tickers
        for answers in self.inner.values():
            if answers.ticker is not None and not answers.shared:
                found.append(answers.ticker)
        return found

    @property
    def own_tickers(self) -> list[Ticker]:
        """Those whose answers are emitted."""
        return [*self.tickers.values(), *self.later.values()]

    def over(self, source: Source, flowing: bool, by: By | None = None) -> "LiveStream":
        """The stream whose events are those of `source`; by: where they are grouped otherwise than that."""
        if not isinstance(source, Events):
            return self.answers(source, flowing).stream(by)
        of = self if source.source is None else self.over(source.source, flowing, by).emission
        events = source if source.source is None else replace(source, source=None)
        if events not in of.chosen:
            chosen = Chosen(events, of.make(of.by))
            check_there(of.core.columns, Reading(chosen.readers))
            chosen.stream.core.columns = of.core.columns
            of.chosen[events] = chosen
        return of.chosen[events].stream

    def answers(self, source: Query | Several, flowing: bool) -> Answers:
        """The answers of queries, for others to read."""
        if source.is_relation:
            over = self.answers(source.source, flowing)  # type: ignore[arg-type]  # no events: a relation has ticks
            return over.relation(source)
        if source.source is not None:
            return self.over(source.source, flowing, source.by).emission.answers(alone(source), flowing)
        if source not in self.inner:
            self.inner[source] = self._made_answers(source, flowing)
        return self.inner[source]

    def _made_answers(self, source: Query | Several, flowing: bool) -> Answers:
        queries = queries_in(source)
        registered = self.tickers.get(source.every) if source.every is not None else None
        names = tuple(query.label for query in queries)
        if registered is not None and all(registered.queries.get(query.label) == query for query in queries):
            return Answers(source, self.by, self.ts, self.make, registered, names, shared=True)
        made = Answers(source, self.by, self.ts, self.make)
        self._give_ticker(made, flowing)
        return made

    def _give_ticker(self, answers: Answers, flowing: bool) -> None:
        """One of its own."""
        source = answers.source
        every = source.every or Every(1, per_key=self.key is not None)
        answers.ticker = self._new_ticker(every, empty=source.every is None)
        answers.shared, answers.names = False, tuple(query.column for query in queries_in(source))
        for query in queries_in(source):
            self.give(answers.ticker, replace(query, name=query.column), flowing)

    def _new_ticker(self, every: Every, empty: bool = False) -> Ticker:
        return Ticker(every, self.key, Lookback(every, self.key, empty))

    def give(self, ticker: Ticker, query: Query, flowing: bool) -> None:
        """Rows that were before count, but are not there any more."""
        if flowing and ticker.counters.next.size == 0:
            rows = self.core.store.main.arena.rings[: self.core.store.key_count, 3]
            before = np.array([self.core.store.events + self.core.missed]) if ticker.whole else rows
            if ticker.partitions is not None:
                keys = self.core.store.keys
                of_key = ticker.partitions.of_keys(keys.column()) if keys is not None else np.zeros(0, np.int64)
                before = np.bincount(of_key, rows[: of_key.size], ticker.partitions.count).astype(np.int64)
            ticker.counters.grow(before.size, before)
        ticker.add(query)

    def forget(self) -> None:
        """Streams inside that nobody reads any more."""
        for chosen in self.chosen.values():
            chosen.stream.emission.forget()
        for answers in self.inner.values():
            answers.forget()
        self.inner = {source: each for source, each in self.inner.items() if each.is_read}
        self.chosen = {events: each for events, each in self.chosen.items() if each.stream.is_read}
