"""An engine and the truth, taken through the same steps."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import swag as sw
from tests.fuzz import clocks
from tests.fuzz.asking import Ask, code, columns_of, query
from tests.fuzz.compared import Compared
from tests.fuzz.target import calls, wrong
from tests.fuzz.truth import Truth

TYPES = {"x": pa.float64(), "y": pa.float64(), "i": pa.int64(), "n": pa.int64(), "p": pa.float64(), "s": pa.string()}
TYPES |= {"b": pa.bool_()}
HUGE = 10**30  # no time


class Ended(Exception):
    """The engine refused what it may refuse: from here on the truth is another."""


class Driven(Compared):
    """What a step means depends on what is there when it is taken.

    "Look up the third query" is that of those registered then: so steps can be left out, and a case is still one.
    """

    def __init__(self, key: str | None, lateness: int | None, hold: bool, algorithm: str, clock: str) -> None:
        hold = hold or lateness is None
        options = {"key": key, "lateness": lateness, "algorithm": algorithm, "hold": hold}
        shown = ", ".join(f"{name}={value!r}" for name, value in options.items())
        calls.append(f"engine = sw.Engine({shown})  # ts: {clock}")
        super().__init__(sw.Engine(**options), Truth(key, lateness, hold), clock)
        self.time = 0

    # -- steps --------------------------------------------------------------------------------------------------------

    def register(self, name: str, ask: Ask) -> None:
        if self._begins_behind(ask):
            return
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

    def _begins_behind(self, ask: Ask) -> bool:
        """Where events are not held, the first query that waits for them counts rows from when it comes."""
        known = [told.ask for told in self.truth.told.values()]
        first = not any(map(_is_decided_later, known)) and bool(self.truth.engine.taken)
        return not self.truth.engine.hold and _is_decided_later(ask) and first

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
        with self.allowed(back):
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
        with self.allowed(back):
            table = self.engine.lookup_all(at=moment)
            names = [name for name in table.column_names if name != self.key]
            if sorted(names) != sorted(asked):
                raise wrong("lookup_all answers other queries", f"{names}, expected {list(asked)}")
            found = {row.get(self.key): row for row in table.to_pylist()}
            for key, row in found.items():
                for name in names:
                    self.same_value(name, key, at, row[name])
            self._same_keys("lookup_all", asked, at, list(found))

    def filters(self, back: int | None) -> None:
        """All at once or, where their types do not go together, one by one."""
        if self.key is None:
            return
        at, moment = self._at(back)
        calls.append(f"engine.filters(at={moment!r})")
        asked = {n: t.ask for n, t in self.truth.told.items() if t.ask.having and t.ask.every is None}
        with self.allowed(back):
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
    def allowed(self, back: int | None) -> Iterator[None]:
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


def _is_decided_later(ask: Ask) -> bool:
    return ask.every is not None or ask.source is not None


def _is_looked_up(ask: Ask) -> bool:
    return ask.every is None and ask.source is None
