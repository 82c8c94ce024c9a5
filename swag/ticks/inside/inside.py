"""Inside: the tickers of a stream, and the streams inside of it, each with tickers of its own; so queries nest.

events --> ticker of an inner query --> Answers: streams of its ticks, relations (swag/ticks/inside/answer_streams.py)
      \\-> a condition, a frequency ---> Chosen: a stream of the events chosen  (swag/ticks/inside/chosen_events.py)
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from kernels.operators.numbers import EARLIEST
from swag.errors import BadQuery, SwagError
from swag.live.core import Core
from swag.live.intake import check_there
from swag.query.every import Every
from swag.query.groupings import By, stages
from swag.query.lowering import simple_ones
from swag.query.query import Events, Query, Several, Source, alone, queries_in
from swag.query.reading import Reading
from swag.query.try_out import try_out
from swag.query.windows import reach
from swag.ticks.inside.answer_streams import Answers
from swag.ticks.inside.chosen_events import Chosen
from swag.ticks.inside.containment import Contained, contained, multiple
from swag.ticks.later_ticker import LaterTicker, waits_for_later
from swag.ticks.lookback import Lookback
from swag.ticks.ticker import Ticker

if TYPE_CHECKING:
    from swag.ticks.live_stream import LiveStream


@dataclass(eq=False)
class Inside:
    """Who reads the events of a stream at ticks: its tickers, answers that others read, chosen events. It owns them.

    Asked of it: to `add` and `remove` queries, the stream of what one reads (`over`), to `forget` what nobody reads.
    What they do with events, an Emission knows. core: the stream's; by: its key columns; make: a stream for answers, or
    for chosen events, by its key columns.
    """

    core: Core
    by: By
    make: "Callable[[By], LiveStream]"
    tickers: dict[Every, Ticker] = field(default_factory=dict)
    later: dict[str, LaterTicker] = field(default_factory=dict)  # by query: of windows that see what comes after a tick
    inner: dict[Query | Several, Answers] = field(default_factory=dict)
    chosen: dict[Events, Chosen] = field(default_factory=dict)
    contained: dict[str, Contained] = field(default_factory=dict)  # queries that read the ticks of others
    views: bool = True  # may they?
    outer: "dict[str, LiveStream]" = field(default_factory=dict)  # queries over answers: who answers them
    relations: dict[str, Answers] = field(default_factory=dict)  # queries without a window: who answers them
    since: dict[str, int] = field(default_factory=dict)  # queries that came later: the time then
    top: int = EARLIEST  # the latest time of any event

    def __post_init__(self) -> None:
        self.ts, self.key = self.core.ts, self.core.key

    def check_queries(self, queries: list[Query]) -> None:
        """What can be known to be wrong at registration."""
        for query in queries:
            for inside in stages(query):
                if not isinstance(inside, Events):
                    for each in queries_in(inside):
                        self._check(each)
                elif inside.every is not None:
                    self._check_step(inside.every)

    def _check(self, query: Query) -> None:
        """Refuse a query whose ticks, aggregates or windows do not go with this stream, its key and its time."""
        if query.every is not None and query.every.per_key and self.key is None and query.by is None:
            raise BadQuery(
                f'query "{query.label}": {query.every!r} counts per key, but this engine has none.', 'key="…"'
            )
        if query.every is not None:
            self._check_step(query.every)
        for simple in simple_ones([query]):
            try_out(simple.aggregate)
            if self.core.time.clock is not None and not query.is_relation:
                reach(simple.window, self.core.time.clock.unit)

    def _check_step(self, every: Every) -> None:
        if self.core.time.clock is not None:
            every.step(self.core.time.clock.unit)

    def add(self, queries: list[Query], flowing: bool) -> None:
        """flowing: events have come before these."""
        for query in queries:
            if query.source is not None:
                try:
                    self._add_over(query, flowing)
                except SwagError:
                    self.forget()
                    raise
            elif query.every is not None:
                view = contained(query, self.tickers.values()) if self.views else None
                if view is not None and query.every not in self.tickers:
                    self.contained[query.label] = view
                else:
                    self._add_ticking(query, query.every, flowing)
                    if self.views and not flowing:
                        self._contain(query.every)
            if flowing:
                self.since[query.label] = self.core.time.now
                store = self.core.store  # nobody has followed the events that came before
                self.top = max(self.top, store.forgotten, int(store.latest.max(initial=EARLIEST)))

    def _add_ticking(self, query: Query, every: Every, flowing: bool) -> None:
        """To those that share its ticks; one whose windows see later rows waits for no other's."""
        if waits_for_later(query):
            later = LaterTicker(every, self.key, Lookback(every, self.key))
            self.give(later, query, flowing)
            self.later[query.label] = later
        else:
            ticker = self.tickers.get(every) or self._new_ticker(every)
            self.give(ticker, query, flowing)
            self.tickers[every] = ticker

    def _contain(self, finer: Every) -> None:
        """Before any event: tickers whose queries are all contained in others go, now that there is a `finer` one."""
        for every, ticker in [(e, ticker) for e, ticker in self.tickers.items() if multiple(e, finer) > 1]:
            others = [each for each in self.tickers.values() if each is not ticker]
            found = {label: contained(query, others) for label, query in ticker.queries.items()}
            if None in found.values() or any(each.ticker is ticker for each in self.inner.values()):
                continue
            del self.tickers[every]
            for label, view in self.contained.items():
                found |= {label: contained(view.query, others)} if view.every == every else {}
            self.contained |= {label: view for label, view in found.items() if view is not None}

    def _add_over(self, query: Query, flowing: bool) -> None:
        """A query over the answers of others, or over chosen events."""
        assert query.source is not None
        if query.is_relation:
            self.relations[query.label] = answers = self.answers(query, flowing)
            answers.labels.append(query.label)
            return
        over = self.over(query.source, flowing, query.by)
        over.add([replace(query, source=None, by=None, name=query.label)])
        self.outer[query.label] = over

    def note_unread(self, query: Query, instant: int) -> None:
        """Events up to this time wait without what a query reads: its windows are whole once they begin after it."""
        if query.label in self.since:
            self.since[query.label] = max(self.since[query.label], instant)

    def remove(self, query: Query) -> None:
        """A query goes; tickers and streams inside that only it has read go with it."""
        self.since.pop(query.label, None)
        if query.label in self.relations:
            self.relations.pop(query.label).labels.remove(query.label)
            self.forget()
        elif query.source is not None:
            self.outer.pop(query.label).remove(query.label)
            self.forget()
        elif query.label in self.contained:
            del self.contained[query.label]
        elif query.every is not None:
            if self.later.pop(query.label, None) is not None:
                return
            ticker = self.tickers[query.every]
            ticker.remove(query.label)
            if not ticker.queries:
                del self.tickers[query.every]

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
        """Answers from a ticker that is registered, where it has all of these queries; else with one of their own."""
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
