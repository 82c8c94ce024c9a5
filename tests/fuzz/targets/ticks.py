"""Jumping windows three ways: stored events, an engine that is given them in pieces, and the oracle.

Queries share a frequency, and read all events, those for which a condition holds, or the answers of another query.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import swag as sw
from tests import oracle_ticks
from tests.fuzz import drawing
from tests.fuzz.asking import WHERE, Ask, Of, code, columns_of, query, simple
from tests.fuzz.target import Target, calls, plain, wrong
from tests.oracle_ticks import Every, slot

TYPES = {"x": pa.float64(), "y": pa.float64(), "i": pa.int64(), "n": pa.int64(), "p": pa.float64(), "s": pa.string()}
TYPES |= {"b": pa.bool_()}
CONDITION = st.none() | st.tuples(st.sampled_from([">", "<="]), st.integers(0, 3))
OFTEN = drawing.FREQUENCIES
OF_ANSWERS = st.sampled_from([Of("count"), *(Of(kind, ("v",)) for kind in ("count", "max", "first", "last"))])


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    every, source = draw(OFTEN), draw(st.sampled_from(["events", "chosen", "answers"]))
    if source == "answers":
        of, where = draw(drawing.EXACT), draw(drawing.FILTERS)
        inner = Ask(of, draw(drawing.WINDOWS), where, draw(CONDITION), every=draw(st.none() | OFTEN), name="v")
        asks = [Ask(draw(OF_ANSWERS), draw(drawing.WINDOWS), None, draw(CONDITION), every=every, source=inner)]
    else:
        chosen = draw(st.sampled_from(drawing.CONDITIONS)) if source == "chosen" else None
        asked = st.builds(Ask, drawing.EXACT, drawing.WINDOWS, drawing.FILTERS, CONDITION)
        asks = draw(st.lists(asked, min_size=1, max_size=3))
        asks = [Ask(a.term, a.window, a.where, a.having, every=every, source=chosen) for a in asks]
    events = draw(st.lists(st.tuples(st.booleans(), drawing.EVENT), max_size=25))  # is it the last of its batch?
    return {"key": draw(st.sampled_from([None, "k"])), "asks": asks, "events": events}


def check(case: dict[str, Any]) -> None:
    asks = [with_key(ask, case["key"]) for ask in case["asks"]]
    if is_refused(asks[0], case["key"]):
        return
    three = Three(asks, case["key"], case["events"])
    stored, pushed, expected = three.evaluated(), three.pushed(), three.expected()
    for name in stored:
        three.same("evaluate", name, expected[name], stored[name])
        three.same("engine", name, expected[name], pushed[name])


def with_key(ask: Ask, key: str | None) -> Ask:
    """Nothing is counted by key where there is none."""
    every, source = ask.every, ask.source
    if every is not None:
        every = Every(every.rows, every.time, every.anchor, every.per_key and key is not None)
    source = with_key(source, key) if isinstance(source, Ask) else source
    return Ask(ask.term, ask.window, ask.where, ask.having, ask.index, every, source, ask.name)


def is_refused(ask: Ask, key: str | None) -> bool:
    """Answers that come key by key, while the outer query counts those of all keys: a silent key would hold all up."""
    inner = ask.source.every if isinstance(ask.source, Ask) else None
    late = inner is not None and inner.per_key and inner.time is not None and inner.anchor == "tick"
    return bool(late and key is not None and ask.every is not None and not ask.every.per_key)


class Three:
    def __init__(self, asks: list[Ask], key: str | None, drawn: list[Any]) -> None:
        self.asks, self.key, self.every = {f"q{i}": ask for i, ask in enumerate(asks)}, key, asks[0].every
        self.events: list[dict[str, Any]] = []
        self.cuts: list[int] = []
        time = 0
        for cut, (gap, k, *values) in drawn:
            time += gap
            self.events.append({"ts": time, "k": k, **dict(zip(TYPES, values, strict=True))})
            self.cuts += [len(self.events)] * cut
        self.queries = [query(ask, name) for name, ask in self.asks.items()]
        read = {"ts", "k", *(name for ask in asks for name in columns_of(ask))}
        told = {name: [event[name] for event in self.events] for name in ("ts", "k", *TYPES) if name in read}
        calls.append(f"queries = [{', '.join(code(ask, name) for name, ask in self.asks.items())}]")
        calls.append(f"events = {told}  # cut after {self.cuts}")

    @property
    def nested(self) -> bool:
        return isinstance(self.queries[0].source, sw.Query)

    @property
    def end(self) -> int:
        return self.events[-1]["ts"] if self.events else 0

    # -- three ways ---------------------------------------------------------------------------------------------------

    def evaluated(self) -> dict[str, list[Any]]:
        """One row for all queries: where one has nothing to say, and others do, it is null."""
        calls.append(f"sw.evaluate(queries, events, key={self.key!r})")
        rows = sw.evaluate(self.queries, self._table(self.events), key=self.key).to_pylist()
        front = ["tick", "ts"] + [self.key] * (self.key is not None)
        return {name: [(*(row[c] for c in front), row[name]) for row in rows] for name in self.asks}

    def pushed(self) -> dict[str, list[Any]]:
        calls.append(f"engine = sw.Engine(key={self.key!r}); engine.register(queries); ...; engine.emitted()")
        found: dict[str, list[Any]] = {name: [] for name in self.asks}
        for name, each in zip(self.asks, self.queries, strict=True):  # one by one: their types differ
            engine, start = sw.Engine(key=self.key), 0
            engine.register(each)
            for cut in [*self.cuts, len(self.events)]:
                engine.append(self._table(self.events[start:cut]))
                found[name] += self._emitted(engine)
                start = cut
            if self.events:
                engine.advance(self.end + 1000 if self.nested else self._last * self._length + 1)
            found[name] += self._emitted(engine)
        return found

    def expected(self) -> dict[str, list[Any]]:
        return {name: self._ticks(ask) for name, ask in self.asks.items()}

    def _ticks(self, ask: Ask) -> list[Any]:
        """The end of stored events decides the last slot, whatever the query reads of them."""
        assert ask.every is not None
        events: list[Any] = self.events
        if isinstance(ask.source, Ask):
            inner, every = ask.source, ask.source.every
            if every is None:
                events = oracle_ticks.stream(simple(inner), None, events, "v", self.key)
            else:
                far = None if every.time is None else slot(self.end + 1000, every.time)
                names = ("tick", "ts", *([self.key] if self.key else []), "v")
                found = oracle_ticks.ticks([simple(inner)], every, events, self.key, self._each(every, events, far))
                events = [dict(zip(names, row, strict=True)) for row in found]
        elif ask.source is not None:
            events = [event for event in events if WHERE[ask.source](event)]
        last = self._last if ask.every.time is not None else None
        return oracle_ticks.ticks([simple(ask)], ask.every, events, self.key, self._each(ask.every, events, last))

    def _each(self, every: Every, events: list[Any], last: int | None) -> Any:
        """The last slot, of each key where they are on their own."""
        return {event[self.key]: last for event in events} if every.per_key and last is not None else last

    # -- comparing ----------------------------------------------------------------------------------------------------

    def same(self, by: str, name: str, want: list[Any], found: list[Any]) -> None:
        """What the oracle says nothing of may be null beside others. Of answers that are read, the last of them are
        not certain: only ticks that the stored events have passed are looked at."""
        wanted, got = {t[:-1]: t[-1] for t in want}, {t[:-1]: t[-1] for t in found}
        if self.nested:
            wanted, got = ({t: v for t, v in each.items() if self._is_over(t)} for each in (wanted, got))
        if len(found) != len({t[:-1] for t in found}):
            raise wrong(f"{by}: {self.about(name)}, twice", f"{name}: {found}")
        for tick, value in got.items():
            others = by == "evaluate" and len(self.asks) > 1
            if tick not in wanted and not (others and value in (None, 0)):
                raise wrong(f"{by}: {self.about(name)}, one too many", f"{name}: {tick}: {value}, expected {want}")
            if tick in wanted and wanted[tick] != value:
                raise wrong(f"{by}: {self.about(name)}", f"{name}: {tick}: {value}, expected {wanted[tick]}")
        if set(wanted) - set(got):
            raise wrong(f"{by}: {self.about(name)}, missing", f"{name}: {sorted(set(wanted) - set(got))} of {want}")

    def _is_over(self, tick: tuple[Any, ...]) -> bool:
        assert self.every is not None
        return (tick[1] if self.every.time is None else tick[0] * self.every.time) <= self.end

    def about(self, name: str) -> str:
        ask = self.asks[name]
        source = "answers" if self.nested else "chosen" if ask.source is not None else "events"
        inner = f" ({frequency(ask.source.every)})" if self.nested else ""
        return f"{frequency(ask.every)} of {source}{inner}"

    # -- inside -------------------------------------------------------------------------------------------------------

    @property
    def _length(self) -> int:
        return 1 if self.every is None or self.every.time is None else self.every.time

    @property
    def _last(self) -> int:
        return slot(self.end, self._length)

    def _table(self, events: list[dict[str, Any]]) -> pa.Table:
        kinds = {"ts": pa.int64(), "k": pa.string(), **TYPES}
        return pa.table({name: pa.array([e[name] for e in events], kind) for name, kind in kinds.items()})

    def _emitted(self, engine: sw.Engine) -> list[Any]:
        return [tuple(row.values())[1:] for row in engine.emitted().to_pylist()]


def frequency(every: Every | None) -> str:
    if every is None:
        return "each"
    return f"{'rows' if every.time is None else every.anchor}{' per key' if every.per_key else ''}"


def target() -> Target:
    return plain("ticks", cases(), check, lambda case: len(case["events"]))
