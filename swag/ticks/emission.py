"""What a stream emits: its tickers, queries over the answers of others, and the ticks that nobody has fetched yet.

events --> ticker (every 1000 rows) -----------------------------------------> emitted()
      \\-> streams inside (swag/ticks/inside/inside.py), each with its own ------> emitted(), lookups
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kernels.operators.numbers import EARLIEST, LATEST
from swag import errors
from swag.durable.state import State, nested, part, parts, table_from_array, table_to_array, with_arrays
from swag.errors import OutOfOrder, SwagError
from swag.query.as_json import every_to_json, source_to_json
from swag.query.every import Every
from swag.query.groupings import By, levels
from swag.query.lowering import simple_ones
from swag.query.query import Query
from swag.query.reading import Reading
from swag.query.windows import Rows, whole_from
from swag.tables.answers import own_name
from swag.tables.columns import Clock
from swag.ticks.inside.answer_streams import Answers
from swag.ticks.inside.chosen_events import chosen_to_json
from swag.ticks.inside.inside import Inside
from swag.ticks.later_ticker import LaterTicker
from swag.ticks.restoring import is_of, restored
from swag.ticks.schedule import StreamProgress, TickAnswers
from swag.ticks.ticker import Ticker

if TYPE_CHECKING:
    from swag.ticks.live_stream import LiveStream


@dataclass(eq=False)
class Emission(Inside):
    """The ticks of a stream. It owns its tickers, the streams inside, and what nobody has fetched.

    Asked of it: to follow queries and batches, to `decide` ticks as time passes, and what is `waiting` to be fetched.
    core, by, make: see Inside.
    """

    outbox: list[tuple[str, pa.Table, By]] = field(default_factory=list)  # by: the key columns of each
    errors: list[SwagError] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._tick, self._value = (own_name(name, self.ts, self.key) for name in ("tick", "value"))

    @property
    def queries(self) -> list[Query]:
        """All that read this engine's events here, as simple ones."""
        own = [query for ticker in self.all_tickers for query in ticker.reading.queries]
        return [*own, *(query for each in self.chosen.values() for query in each.readers)]

    @property
    def readings(self) -> list[Reading]:
        """The same, by who reads: others if any of them reads something else than before."""
        readings = [ticker.reading for ticker in self.all_tickers]
        for each in self.chosen.values():
            readings.append(each.stream.reading)
        return readings

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
        found = []
        for stream in self.streams:
            found.append(stream.emission)
        return found

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

    def steps(self, unit: str | None) -> set[int]:
        """The lengths of slots: an event in one that was decided is late. Where answers are a stream, so is any event
        older than what was promised to it."""
        own = {1} if self.inner else {t.every.step(unit) for t in self.all_tickers if t.every.by_time}
        own |= {step for each in self.chosen.values() if (step := each.step(unit)) is not None}
        return own.union(*(each.stream.emission.steps(unit) for each in self.chosen.values()))

    def contained_in(self, name: str) -> str | None:
        """A query that reads the ticks of this one, if any does."""
        found = (label for label, view in self.contained.items() if view.view == name)
        return next(found, None) or next(filter(None, (each.contained_in(name) for each in self.inside())), None)

    # -- keys that come and go ----------------------------------------------------------------------------------------

    def needs(self, count: int) -> np.ndarray:
        """Which of the first `count` keys ticks have still to do with."""
        return np.logical_or.reduce([np.zeros(count, bool), *(ticker.needs(count) for ticker in self.all_tickers)])

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on. Streams inside have tables of keys of their own."""
        for ticker in self.all_tickers:
            ticker.renumber(kept)

    # -- events -------------------------------------------------------------------------------------------------------

    def check(self, table: pa.Table, clock: Clock) -> None:
        for ticker in self.all_tickers:
            ticker.check(table, clock)
        for each in self.chosen.values():
            each.check(table)

    def check_functions(self, table: pa.Table) -> None:
        """Raise if a function of a user's does; streams of chosen events do so in `check`."""
        for ticker in self.all_tickers:
            ticker.check_functions(table)

    def check_order(self, ts: np.ndarray) -> None:
        """Where all keys count together, they are in order together. What was promised to be over, the core knows."""
        if not self.ordered or ts.size == 0:
            return
        before = np.maximum.accumulate(np.concatenate([[self.top], ts]))[:-1]
        early = np.flatnonzero(ts < before)
        if early.size:
            clock, row = self.core.time.clock, int(early[0])
            assert clock is not None
            raise OutOfOrder(
                f"event {row} has ts {clock.show(int(ts[row]))}, after ts {clock.show(int(before[row]))} of another "
                "key was applied; queries with `every` count the rows of all keys.",
                "sort the batch by ts, or Engine(lateness=…), or sw.Every(…, per_key=True)",
            )

    def take(self, table: pa.Table, ts: np.ndarray, ids: np.ndarray) -> None:
        """Rows that were applied."""
        assert self.core.time.clock is not None
        self.top = max(self.top, int(ts.max(initial=EARLIEST)))
        for ticker in self.all_tickers:
            ticker.take(table, ts, ids, self.core.store.key_count, self.core.time.clock)
        for each in self.chosen.values():
            each.take(table, ts, self.core.time.clock)

    def decide(self, closed: int, kept: bool) -> None:
        """Answer what is decided. An error waits for `emitted`.

        closed: every event up to this time has come. kept: and none of them is taken any more; else late ones may be
        that are newer than all that was applied.
        """
        if self.core.time.clock is None:
            return
        progress = self._progress(closed, kept)
        for chosen in self.chosen.values():
            in_order = self.key is None or self.ordered
            done = progress.done_of_all if in_order else closed
            chosen.pass_time(self.core.time.now, done, kept, self.core.time.clock)
        for ticker in self.all_tickers:
            self._decide_for(ticker, progress)

    def _decide_for(self, ticker: Ticker, progress: StreamProgress) -> None:
        """The ticks of one ticker, to all that want them."""
        readers = []
        for each in self.inner.values():
            if each.ticker is ticker:
                readers.append(each)
        if readers:
            together = any(one.stream.emission.ordered for each in readers for one in each.streams.values())
            progress = replace(progress, together=together or any(each.ordered for each in readers))
        answers = self._decide(ticker, progress)
        if answers is not None and (isinstance(ticker, LaterTicker) or self.tickers.get(ticker.every) is ticker):
            self._send(ticker, answers)
        for each in readers:
            self._feed(each, answers, progress)

    def _feed(self, reader: Answers, answers: TickAnswers | None, progress: StreamProgress) -> None:
        """Who reads the answers of a ticker is given its ticks, and told up to when they have come."""
        clock, ticker = self.core.time.clock, reader.ticker
        assert clock is not None and ticker is not None
        try:
            table = None if answers is None or not answers.number.size else reader.table(answers, clock)
            reader.feed(table, ticker.closed(progress, clock), self._send_related)
        except SwagError as why:
            self.errors.append(why)

    def _send_related(self, name: str, ticks: pa.Table, by: By) -> None:
        self.outbox.append((name, ticks, by))

    def decided(self, closed: int, kept: bool) -> Iterator[TickAnswers]:
        """What its own tickers answer: as `decide`, for who takes that as it is, of all queries at once."""
        if self.core.time.clock is not None:
            progress = self._progress(closed, kept)
            yield from filter(None, [self._decide(ticker, progress) for ticker in self.own_tickers])

    def _progress(self, closed: int, kept: bool) -> StreamProgress:
        latest = self.core.store.latest[: self.core.store.key_count]
        return StreamProgress(latest, self.top, closed, kept or bool(self.inner))

    def _decide(self, ticker: Ticker, progress: StreamProgress) -> TickAnswers | None:
        """The answers of the ticks of a ticker that are decided by now; what is wrong with them waits to be told."""
        assert self.core.time.clock is not None
        try:
            answers = ticker.decide(progress, self.core.time.clock, self.core.store.keys)
        except SwagError as why:
            self.errors.append(why)
            return None
        self.errors += [] if answers is None else answers.errors
        return answers

    def front(self, answers: TickAnswers, every: Every) -> pa.Table:
        """Which ticks they are of: number, time, and key."""
        assert self.core.time.clock is not None
        return answers.front(self.core.time.clock, every, self._tick, self.ts, self.key)

    def _send(self, ticker: Ticker, answers: TickAnswers) -> None:
        """The answers of a ticker, and of the queries contained in its own, to where `emitted` fetches them."""
        front = self.front(answers, ticker.every)
        for query, values, speaks in zip(ticker.queries.values(), answers.columns, answers.speaks, strict=True):
            self._put(query.label, front.append_column(self._value, values), speaks)
        for label, view in self.contained.items():
            if view.every == ticker.every:
                place = list(ticker.queries).index(view.view)
                own, speaks = view.of(answers, place)
                ticks = self.front(own, view.query.every or ticker.every)
                self._put(label, ticks.append_column(self._value, own.columns[place]), speaks)

    def _put(self, label: str, ticks: pa.Table, speaks: np.ndarray) -> None:
        ticks = ticks if speaks.all() else ticks.filter(pa.array(speaks))
        if ticks.num_rows:
            self.outbox.append((label, ticks, self.by))

    # -- out ----------------------------------------------------------------------------------------------------------

    def raise_error(self) -> None:
        """An error in a tick is told once."""
        why = self.next_error()
        if why is not None:
            raise why

    def waiting(self, name: str | None = None) -> list[tuple[str, pa.Table, By]]:
        """What nobody has fetched yet, of all queries or of one, and by what each is grouped."""
        own = [part for part in self.outbox if name in (None, part[0])]
        return own + [part for each in self.inside() for part in each.waiting(name)]

    def fetched(self, name: str | None = None) -> None:
        """What waited is somebody's now."""
        self.outbox = [part for part in self.outbox if name not in (None, part[0])]
        for each in self.inside():
            each.fetched(name)

    def next_error(self) -> SwagError | None:
        """The first error that nobody was told of: it is told with that."""
        if self.errors:
            return self.errors.pop(0)
        return next(filter(None, (each.next_error() for each in self.inside())), None)

    @property
    def kinds(self) -> dict[str, pa.DataType]:
        """The types of the answers, as far as they are known."""
        found: dict[str, pa.DataType] = {}
        for ticker in self.own_tickers:
            found |= {name: kind for name, kind in ticker.kinds.items() if name in ticker.queries}
        found |= {label: found[view.view] for label, view in self.contained.items() if view.view in found}
        for label, each in self.relations.items():
            if each.kinds:
                found[label] = next(iter(each.kinds.values()))
        for inside in self.inside():
            found |= inside.kinds
        return found

    @property
    def key_types(self) -> dict[By, list[pa.DataType]]:
        """Of the key columns by which its answers, and those of the streams inside, are grouped, as far as known."""
        found = {each.by: [pa.null()] * len(each.by) for each in self.relations.values()}
        for inside in self.inside():
            found |= inside.key_types
        return found | {self.by: self.core.key_types}

    def complete_since(self) -> dict[str, Any]:
        """Per query: None if complete from the first event, else the time since which its rows are all kept."""
        clock, found = self.core.time.clock, {name: over.queries[name] for name, over in self.outer.items()}
        for ticker in self.own_tickers:
            found |= ticker.queries
        found |= {label: view.query for label, view in self.contained.items()}
        for label, answers in self.relations.items():
            found[label] = next(each for each in levels(answers.source) if not each.is_relation)
        return {name: self._whole_since(name, query, clock) for name, query in found.items()}

    def _whole_since(self, name: str, query: Query, clock: Clock | None) -> Any:
        """Windows by time are whole when they begin after the query came. Of windows by rows nobody here knows which
        rows there were before, so that they are never claimed to be: it is always later than now."""
        if clock is None or name not in self.since:
            return None
        since, windows = self.since[name], [each.window for each in simple_ones([query])]
        if any(isinstance(each, Rows) for each in windows):
            return clock.value(min(max(self.core.time.now, since) + 1, LATEST))
        return clock.value(min(max(whole_from(each, since, clock) for each in windows), LATEST))

    @property
    def undelivered(self) -> int:
        own = sum(ticks.num_rows for _, ticks, _ in self.outbox)
        return own + sum(each.undelivered for each in self.inside())

    @property
    def bytes(self) -> int:
        own = sum(ticker.bytes for ticker in self.all_tickers) + sum(ticks.nbytes for _, ticks, _ in self.outbox)
        own += sum(each.picks.bytes for each in self.chosen.values() if each.picks is not None)
        return own + sum(stream.bytes for stream in self.streams)

    @property
    def kept(self) -> int:
        return sum(ticker.kept for ticker in self.all_tickers)

    # -- state --------------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Its tickers, the streams inside, errors that nobody was told of, and the ticks that nobody has fetched."""
        header = {
            "since": self.since, "top": self.top, "contained": list(self.contained),
            "errors": [[type(why).__name__, why.message, why.hint] for why in self.errors],
            "outbox": [name for name, _, _ in self.outbox], "outbox_by": [list(by) for _, _, by in self.outbox],
        }  # fmt: skip
        inside = {
            "tickers": [ticker.state() for ticker in self.tickers.values()],
            "later": [nested({"query": name}, {"ticker": each.state()}) for name, each in self.later.items()],
            "inner": [each.state() for each in self.inner.values()],
            "chosen": [each.state() for each in self.chosen.values()],
        }
        ticks = {f"outbox/{i}": table_to_array(ticks) for i, (_, ticks, _) in enumerate(self.outbox)}
        return with_arrays(nested(header, inside), ticks)

    def _keep_apart(self, saved: State) -> None:
        """Answers that were there before the query was registered whose ticks these are have a ticker of their own."""
        for source, answers in self.inner.items():
            if answers.shared and saved[0].get("ticker") is not None and is_of(saved, source):
                self._give_ticker(answers, flowing=False)

    def restore(self, state: State) -> None:
        """Its queries have been added: there is a ticker and a stream for each that was handed over."""
        header, arrays = state
        self.since, self.top = header["since"], header["top"]
        self.errors = [getattr(errors, kind)(message, hint) for kind, message, hint in header["errors"]]
        grouped = [tuple(by) for by in header.get("outbox_by", [self.by] * len(header["outbox"]))]
        ticks = [table_from_array(arrays[f"outbox/{i}"]) for i in range(len(grouped))]
        self.outbox = list(zip(header["outbox"], ticks, grouped, strict=True))
        for label in [label for label in self.contained if label not in header.get("contained", ())]:
            query = self.contained.pop(label).query  # as older files have it, by a ticker of its own
            assert query.every is not None
            self._add_ticking(query, query.every, flowing=False)
        self.tickers = restored(self.tickers, parts(state, "tickers"), "every", every_to_json)
        for saved in parts(state, "later") if self.later else ():
            self.later[saved[0]["query"]].restore(part(saved, "ticker"))
        for saved in parts(state, "inner"):
            self._keep_apart(saved)
        self.inner = restored(self.inner, parts(state, "inner"), "query", source_to_json)
        self.chosen = restored(self.chosen, parts(state, "chosen"), "where", chosen_to_json)
