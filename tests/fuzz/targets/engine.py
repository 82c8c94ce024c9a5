"""An engine through anything: queries of every kind come and go while events do, time passes, and it is saved and loaded.

A case is an engine and a list of steps. What a step means depends on what is there when it is taken: "look up the third
query" is that of those registered then, so that steps can be left out and a case is still one.
"""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import swag as sw
from tests.fuzz import clocks, drawing
from tests.fuzz.asking import Ask, Expected, Of, aggregates_of, code, columns_of, is_same, query
from tests.fuzz.target import Target, calls, plain, wrong
from tests.fuzz.truth import Truth
from tests.oracle import Rows


NAMES = ("q0", "q1", "q2", "q3", "q4")
TYPES = {"x": pa.float64(), "y": pa.float64(), "i": pa.int64(), "n": pa.int64(), "p": pa.float64(), "s": pa.string()}
HUGE = 10**30

# --- Cases --------------------------------------------------------------------------------------------------


@st.composite
def ticking_asks(draw: st.DrawFn) -> Ask:
    of = draw(drawing.EXACT | st.sampled_from([Of("sum", ("i",)), Of("max", ("i",)), Of("last", ("s",))]))
    having, where = draw(st.none() | st.tuples(st.sampled_from([">", "<="]), st.integers(0, 3))), draw(drawing.FILTERS)
    source = draw(st.none() | st.sampled_from(drawing.CONDITIONS))
    having = None if of.columns == ("s",) else having
    return Ask(of, draw(drawing.WINDOWS), where, having, every=draw(drawing.FREQUENCIES), source=source)


@st.composite
def chosen_asks(draw: st.DrawFn) -> Ask:
    of = draw(drawing.AGGREGATES)
    return Ask(of, draw(drawing.WINDOWS), draw(drawing.FILTERS), source=draw(st.sampled_from(drawing.CONDITIONS)))


ASKS = st.one_of(
    drawing.simple_asks(), drawing.simple_asks(drawing.EXACT), drawing.computed_asks(), ticking_asks(), chosen_asks()
)
BACK = st.sampled_from([None, None, 0, 1, 5, 20, -1, -7, -100])
NUMBER = st.integers(0, 9)
LATE = st.sampled_from([0, 0, 0, 0, 1, 4, 25])
EVENTS = st.lists(st.tuples(LATE, drawing.EVENT), max_size=10)
IN_ORDER = st.lists(st.tuples(st.just(0), drawing.EVENT), max_size=10)
STEP = st.one_of(
    st.tuples(st.just("append"), IN_ORDER),
    st.tuples(st.just("append"), IN_ORDER),
    st.tuples(st.just("append"), EVENTS),
    st.tuples(st.just("register"), st.sampled_from(NAMES), ASKS),
    st.tuples(st.just("unregister"), NUMBER),
    st.tuples(st.just("advance"), st.sampled_from([0, 1, 10, 100, HUGE])),
    st.tuples(st.just("lookup"), NUMBER, st.sampled_from(["a", "b", "never seen"]), BACK),
    st.tuples(st.just("lookup"), NUMBER, st.none(), BACK),
    st.tuples(st.just("lookup_all"), BACK),
    st.tuples(st.just("filters"), BACK),
    st.tuples(st.just("emitted")),
    st.tuples(st.just("save")),
)
CASES = st.fixed_dictionaries(
    {
        "key": st.sampled_from([None, "k"]),
        "lateness": st.sampled_from([None, None, 0, 3, 20]),
        "algorithm": st.sampled_from(["auto", "auto", "auto", "b-int", "l-int", "r-int"]),
        "clock": st.sampled_from(["integer", "integer", *clocks.TYPES]),
        "queries": st.lists(ASKS, max_size=4),
        "steps": drawing.programs(STEP),
    }
)


# --- Running one --------------------------------------------------------------------------------------------


def check(case: dict[str, Any]) -> None:
    driven = Driven(case["key"], case["lateness"], case["algorithm"], case["clock"])
    for name, ask in zip(NAMES, case["queries"], strict=False):
        driven.register(name, ask)
    for what, *arguments in case["steps"]:
        getattr(driven, what)(*arguments)
        driven.counted()
    driven.conclude()


class Driven:
    """An engine and the truth, given the same."""

    def __init__(self, key: str | None, lateness: int | None, algorithm: str, clock: str) -> None:
        calls.append(f"engine = sw.Engine(key={key!r}, lateness={lateness!r}, algorithm={algorithm!r})  # ts: {clock}")
        self.engine = sw.Engine(key=key, lateness=lateness, algorithm=algorithm)
        self.truth = Truth(key, lateness)
        self.key, self.clock, self.time = key, clock, 0

    # -- steps --------------------------------------------------------------------------------------------------------

    def register(self, name: str, ask: Ask) -> None:
        calls.append(f"engine.register({code(ask, name)})")
        refused = name in self.truth.told or self._is_refused(ask)
        try:
            self.engine.register(query(ask, name))
        except sw.BadQuery:
            if not refused:
                raise
            return
        if name in self.truth.told:
            raise wrong("a name is taken twice", name)
        self.truth.register(name, ask)

    def _is_refused(self, ask: Ask) -> bool:
        per_key = ask.every is not None and ask.every.per_key and self.key is None
        return per_key or self.engine.algorithm == "r-int"  # which can not take off what min and max need

    def unregister(self, number: int) -> None:
        name = self._name(number)
        if name is not None:
            calls.append(f"engine.unregister({name!r})")
            self.engine.unregister(name)
            self.truth.unregister(name)
            self.fetched()  # what it has said is of no interest any more

    def append(self, drawn: list[Any]) -> None:
        events = [self._event(late, *event) for late, event in drawn]
        table = self._table(events)
        calls.append(f"engine.append({self._told(events)})")
        before = self.engine.stats()
        want = self.truth.append(events)
        try:
            taken = self.engine.append(table)
        except sw.OutOfOrder:
            if want is not None:
                raise
            self.unchanged(before)
        except sw.BadEvents as why:
            if not self._may_refuse_sums():
                raise
            self.unchanged(before)
            raise Ended from why
        else:
            if taken != want:
                raise wrong("not the events that should be are taken", f"{taken} are taken, expected {want}")

    def advance(self, gap: int) -> None:
        if gap == HUGE:
            return self._advance_too_far()
        self.time += gap
        moment = clocks.moment(self.time, self.clock)
        calls.append(f"engine.advance({moment!r})")
        self.engine.advance(moment)
        self.truth.advance(self.time)

    def _advance_too_far(self) -> None:
        """There is no such time: it is refused now, or by the first event, and nothing else is."""
        if self.clock != "integer" or not self.truth.engine.taken:
            return
        calls.append(f"engine.advance({HUGE})")
        with contextlib.suppress(sw.SwagError):
            self.engine.advance(HUGE)
            raise wrong("a time that does not fit int64 is taken", str(HUGE))

    def lookup(self, number: int, key: str | None, back: int | None) -> None:
        name = self._name(number)
        if name is None or (key is not None and self.key is None):
            return
        at, moment = self._at(back)
        shown = f", at={moment!r}" if at is not None else ""
        calls.append(f"engine.lookup({name!r}{f', key={key!r}' if key else ''}{shown})")
        ask = self.truth.told[name].ask
        with self.allowed(ask, back):
            if ask.every is not None:
                with contextlib.suppress(sw.BadQuery):
                    self.engine.lookup(name, at=moment)
                    raise wrong("a query that ticks is looked up", name)
                return
            found = self.engine.lookup(name, key=key, at=moment)
            if self.key is None or key is not None:
                self.same_value(name, key, at, found)
            else:
                self.same_table(name, at, found)

    def lookup_all(self, back: int | None) -> None:
        at, moment = self._at(back)
        calls.append(f"engine.lookup_all(at={moment!r})")
        asked = {n: t.ask for n, t in self.truth.told.items() if _is_looked_up(t.ask) and not t.ask.having}
        with self.allowed(None, back):
            table = self.engine.lookup_all(at=moment)
            names = [name for name in table.column_names if name != self.key]
            if sorted(names) != sorted(asked):
                raise wrong("lookup_all answers other queries", f"{names}, expected {list(asked)}")
            found = {row.get(self.key): row for row in table.to_pylist()}
            for key, row in found.items():
                for name in names:
                    self.same_value(name, key, at, row[name])
            self._same_keys("lookup_all", {n: t for n, t in asked.items()}, at, list(found))

    def filters(self, back: int | None) -> None:
        """All at once or, where their types do not go together, one by one."""
        if self.key is None:
            return
        at, moment = self._at(back)
        calls.append(f"engine.filters(at={moment!r})")
        asked = {n: t.ask for n, t in self.truth.told.items() if t.ask.having and t.ask.every is None}
        with self.allowed(None, back):
            try:
                table = self.engine.filters(at=moment)
            except sw.BadType:
                table = pa.concat_tables([self.engine.filters(name, at=moment) for name in asked])
            for name in asked:
                self.same_table(name, at, table.filter(pa.compute.equal(table["query"], name)), "filters")

    def emitted(self) -> None:
        calls.append("engine.emitted()")
        self.fetched()
        for name, told in self.truth.told.items():
            if told.ask.every is not None and told.ask.source is None:
                self.same_ticks(name)

    def save(self) -> None:
        calls.append("engine.save(path); engine = sw.Engine.load(path)")
        stats = self.engine.stats()
        with tempfile.TemporaryDirectory() as folder:
            self.engine.save(Path(folder) / "snapshot")
            own = [query(told.ask, name) for name, told in self.truth.told.items()]
            self.engine = sw.Engine.load(Path(folder) / "snapshot", queries=own)
        self.unchanged(stats)

    # -- comparing ----------------------------------------------------------------------------------------------------

    def same_value(self, name: str, key: Any, at: int | None, found: Any, by: str = "lookup") -> None:
        ask = self.truth.told[name].ask
        if not self._is_complete(name, at):
            return
        want = self.truth.answer(ask, key, at)
        if ask.having is not None:
            if want.passes is None:
                return
            if not (want.present and want.passes):
                want = Expected(None, 0.0, want.present, False)
        if by == "filters" and isinstance(want.value, int) and isinstance(found, float):
            want = replace(want, value=float(want.value))  # beside floats, as long as nothing is lost by it
        if not is_same(want, found):
            raise wrong(f"{by}: {self._about(name)}", f"{name} of {key!r} at {at}: {found!r}, expected {want.value!r}")

    def same_table(self, name: str, at: int | None, table: pa.Table, by: str = "lookup") -> None:
        """Of every key that is in the answer."""
        if not self._is_complete(name, at):
            return
        keys = table[self.key].to_pylist()
        for key, value in zip(keys, table["value"].to_pylist(), strict=True):
            self.same_value(name, key, at, value, by)
        self._same_keys(by, {name: self.truth.told[name].ask}, at, keys)

    def _same_keys(self, by: str, asked: dict[str, Ask], at: int | None, found: list[Any]) -> None:
        if self.key is None or not all(self._is_complete(name, at) for name in asked):
            return
        if len(set(found)) != len(found):
            raise wrong(f"{by}: a key comes twice", str(found))
        for key in "abcd":
            answers = [(ask, self.truth.answer(ask, key, at)) for ask in asked.values()]
            there = [want.present and (ask.having is None or want.passes) for ask, want in answers]
            if None not in there and any(there) != (key in found):
                about = " and ".join(self._about(name) for name in asked) if len(asked) == 1 else "several"
                raise wrong(f"{by}: keys of {about}", f"{asked} at {at}: {found}, {key!r} expected: {any(there)}")

    def same_ticks(self, name: str) -> None:
        told = self.truth.told[name]
        expected = {t[:-1]: t[-1] for t in self.truth.ticks(told.ask) if t[:-1] not in told.decided}
        found = {t[:-1]: t[-1] for t in told.ticks}
        about = f"ticks: {self._about(name)}"
        if len(found) != len(told.ticks):
            raise wrong(f"{about}, twice", f"{name}: {told.ticks}")
        for tick, value in found.items():
            if tick not in expected and (told.before == 0 or self.truth.whole(told, (*tick, None))):
                raise wrong(f"{about}, one too many", f"{name}: {tick}, expected {expected}")
            if tick in expected and self.truth.whole(told, (*tick, None)) and not _same(expected[tick], value):
                raise wrong(about, f"{name}: {tick} is {value}, expected {expected[tick]}")
        for tick in expected:
            if tick not in found and self.truth.whole(told, (*tick, None)):
                raise wrong(f"{about}, missing", f"{name}: {tick}, found {found}")

    def counted(self) -> None:
        stats, truth = self.engine.stats(), self.truth.engine
        if (stats["events"], stats["late"]) != (len(truth.taken), truth.late):
            raise wrong("stats", f"{stats}, expected {len(truth.taken)} events, {truth.late} late")

    def unchanged(self, before: dict[str, Any]) -> None:
        now = self.engine.stats()
        if now | {"bytes": 0} != before | {"bytes": 0}:
            raise wrong("the engine is not as it was", f"{now}, before {before}")

    def conclude(self) -> None:
        """Time passes until all ticks are decided."""
        self.advance(100 + (self.truth.stream.lateness or 0))
        self.fetched()
        for name, told in self.truth.told.items():
            if told.ask.every is not None:
                self.same_ticks(name)

    def fetched(self) -> None:
        """All at once or, where their types do not go together, one by one."""
        told = {name: told for name, told in self.truth.told.items() if told.ask.every is not None}
        try:
            tables = [self.engine.emitted()]
        except sw.BadType:
            tables = [self.engine.emitted(name) for name in told]
        for table in tables:
            columns = [table["tick"].to_pylist(), clocks.integers(table["ts"])]
            columns += [table[self.key].to_pylist()] if self.key else []
            for name, *tick in zip(table["query"].to_pylist(), *columns, table["value"].to_pylist(), strict=True):
                if name in told:
                    told[name].ticks.append(tuple(tick))

    # -- inside -------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def allowed(self, ask: Ask | None, back: int | None) -> Any:
        """What a lookup may refuse: what is no longer kept, and sums that an index can not hold."""
        try:
            yield
        except sw.TooFarBack:
            if back is None or back <= 0:
                raise
        except sw.BadEvents:
            if not self._may_refuse_sums():
                raise

    def _may_refuse_sums(self) -> bool:
        """An index over sums takes no negative values."""
        asks = [told.ask for told in self.truth.told.values()]
        return any(ask.having is not None and ask.index and "'sum'" in repr(ask) for ask in asks)

    def _is_complete(self, name: str, at: int | None) -> bool:
        """Does the engine say so?"""
        since = self.engine.stats()["complete_since"][name]
        if since is None:
            return True
        time, ask = self.truth.engine.watermark if at is None else at, self.truth.told[name].ask
        if any(isinstance(of.window or ask.window, Rows) for of in aggregates_of(ask)):
            time = min(time, self.truth.engine.watermark)  # those are filled by events, not by time that passes
        column = pa.array([since], clocks.TYPES[self.clock])
        return time >= clocks.integers(pa.chunked_array([column]))[0]

    def _about(self, name: str) -> str:
        """What sort of query: failures of different sorts are different ones."""
        ask, midway = self.truth.told[name].ask, self.truth.told[name].before > 0
        window = ask.window or (ask.term.window if isinstance(ask.term, Of) else None)
        kind = "" if midway else ask.term.kind if isinstance(ask.term, Of) else "expression"
        parts = [*filter(None, [kind]), type(window).__name__.lower()]
        parts += ["where"] * (ask.where is not None) + ["having"] * (ask.having is not None)
        parts += ["index"] * (ask.having is not None and ask.index) + ["every"] * (ask.every is not None)
        parts += ["chosen"] * (ask.source is not None) + ["midway"] * midway
        parts += ["lateness"] * (self.truth.stream.lateness is not None)
        return " ".join(parts)

    def _name(self, number: int) -> str | None:
        names = list(self.truth.told)
        return names[number % len(names)] if names else None

    def _at(self, back: int | None) -> tuple[int | None, Any]:
        if back is None or not self.truth.engine.taken:
            return None, None
        at = int(self.truth.engine.watermark) - back
        return at, clocks.moment(at, self.clock)

    def _event(self, late: int, gap: int, k: str, *values: Any) -> dict[str, Any]:
        self.time += gap
        return {"ts": self.time - late, "k": k, **dict(zip(TYPES, values, strict=True))}

    def _told(self, events: list[dict[str, Any]]) -> dict[str, list[Any]]:
        """Without columns of nulls that nobody reads."""
        read = {"ts", "k", *(name for told in self.truth.told.values() for name in columns_of(told.ask))}
        columns = {name: [event[name] for event in events] for name in ("ts", "k", *TYPES)}
        return {name: each for name, each in columns.items() if name in read or any(v is not None for v in each)}

    def _table(self, events: list[dict[str, Any]]) -> pa.Table:
        columns = {name: pa.array([e[name] for e in events], kind) for name, kind in TYPES.items()}
        ts = clocks.column([e["ts"] for e in events], self.clock)
        return pa.table({"ts": ts, "k": pa.array([e["k"] for e in events], pa.string()), **columns})


def _is_looked_up(ask: Ask) -> bool:
    return ask.every is None and ask.source is None


def _same(want: Any, got: Any) -> bool:
    """Of ticks whose queries are exact: as floats, where others are."""
    return want == got or (want is not None and got is not None and (want != want) and (got != got))


class Ended(Exception):
    """The engine refused what it may refuse: from here on the truth is another."""


def checked(case: dict[str, Any]) -> None:
    with contextlib.suppress(Ended):
        check(case)


def target() -> Target:
    return plain("engine", CASES, checked, lambda case: len(case["steps"]))
