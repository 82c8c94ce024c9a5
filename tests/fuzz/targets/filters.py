"""Filters with an index against the same filters without one: whatever is registered when, and looked up whenever."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import swag as sw
from tests.fuzz import drawing
from tests.fuzz.asking import Ask, Of, code, query
from tests.fuzz.target import Target, calls, plain, wrong
from tests.oracle import Range

NOT_NEGATIVE = [0.0, 0.5, 1.0, 2.5, 7.25, 1e-3, 1e6, 1e-300, 1e300, 5e-324, math.inf, math.nan]
COLUMNS: dict[str, tuple[pa.DataType, Any]] = {
    "p": (pa.float64(), st.sampled_from([None, *NOT_NEGATIVE, 0.1, 33.3, 98.6])),
    "n": (pa.int64(), st.sampled_from([None, *range(8), 2**40, 2**53 + 1])),
    "z": (pa.float64(), drawing.COLUMNS["x"]),
}
AGGREGATES = st.sampled_from(
    [Of("count"), Of("count", ("p",)), *(Of(kind, (c,)) for kind in ("sum", "max", "min", "mean") for c in "pnz")]
)
BOUNDS = st.integers(-1, 12) | st.sampled_from([0.5, 7.25, 2**41, 2**53 + 1, *NOT_NEGATIVE[7:-1], -math.inf, 1e18, 0.1])
CONDITIONS = st.tuples(st.sampled_from([">", ">=", "<", "<="]), BOUNDS)
WINDOWS = st.builds(
    lambda t, closed: Range(t, 0, closed),
    st.integers(1, 60) | st.sampled_from([1000, 10**6]),
    st.sampled_from(["right", "right", "right", "left", "both"]),
)
WHERE = st.sampled_from([None, None, "n > 2", "p IS NULL"])
ASKS = st.builds(Ask, AGGREGATES, WINDOWS, WHERE, CONDITIONS)
EVENT = st.tuples(st.sampled_from([0, 0, 1, 3, 40]), st.integers(0, 5), *(values for _, values in COLUMNS.values()))
STEP = st.one_of(
    st.tuples(st.just("append"), st.lists(EVENT, max_size=10)),
    st.tuples(st.just("append"), st.lists(EVENT, max_size=10)),
    st.tuples(st.just("register"), st.integers(0, 4), ASKS),
    st.tuples(st.just("unregister"), st.integers(0, 4)),
    st.tuples(st.just("advance"), st.sampled_from([0, 1, 20, 100, 10**4])),
    st.tuples(st.just("lookup"), st.integers(0, 4), st.sampled_from([None, None, 0, 5, 70, 10**5])),
    st.tuples(st.just("lookup"), st.integers(0, 4), st.none()),
    st.tuples(st.just("filters")),
    st.tuples(st.just("save")),
)
CASES = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["k", "k", "k", "value", "query"]),
        "epsilon": st.sampled_from([0.2, 0.9, 0.5, 0.05]),
        "asks": st.lists(ASKS, max_size=4),
        "steps": drawing.programs(STEP),
    }
)


def check(case: dict[str, Any]) -> None:
    pair = Pair(case["key"], case["epsilon"])
    for number, ask in enumerate(case["asks"]):
        pair.register(number, ask)
    for what, *arguments in case["steps"]:
        getattr(pair, what)(*arguments)


class Pair:
    """An engine with indexes, and one without."""

    def __init__(self, key: str, epsilon: float) -> None:
        calls.append(f"engine = sw.Engine(key={key!r}, epsilon={epsilon})")
        self.key, self.indexed, self.plain = key, sw.Engine(key=key, epsilon=epsilon), sw.Engine(key=key)
        self.asks: dict[int, Ask] = {}
        self.midway: set[int] = set()
        self.time, self.events = 0, 0

    def register(self, number: int, ask: Ask) -> None:
        if number in self.asks:
            return
        calls.append(f"engine.register({code(ask, f'q{number}')})")
        self.indexed.register(query(ask, f"q{number}"))
        self.plain.register(query(Ask(ask.term, ask.window, ask.where, ask.having, index=False), f"q{number}"))
        self.asks[number] = ask
        self.midway = self.midway | {number} if self.events else self.midway - {number}

    def unregister(self, number: int) -> None:
        if number in self.asks:
            calls.append(f"engine.unregister('q{number}')")
            self.indexed.unregister(f"q{number}")
            self.plain.unregister(f"q{number}")
            del self.asks[number]

    def append(self, drawn: list[Any]) -> None:
        columns: dict[str, list[Any]] = {name: [] for name in ("ts", self.key, *COLUMNS)}
        for gap, *values in drawn:
            self.time += gap
            for name, value in zip(columns, (self.time, *values), strict=True):
                columns[name].append(value)
        calls.append(f"engine.append({columns})")
        kinds = {"ts": pa.int64(), self.key: pa.int64(), **{name: kind for name, (kind, _) in COLUMNS.items()}}
        table = pa.table({name: pa.array(columns[name], kind) for name, kind in kinds.items()})
        try:
            taken = self.indexed.append(table)
        except sw.BadEvents:
            if not any(ask.term.kind == "sum" and ask.term.columns == ("z",) for ask in self.asks.values()):
                raise
            return
        if self.plain.append(table) != taken:
            raise wrong("an index changes what is taken", f"{taken}")
        self.events += taken

    def advance(self, gap: int) -> None:
        self.time += gap
        calls.append(f"engine.advance({self.time})")
        self.indexed.advance(self.time)
        self.plain.advance(self.time)

    def lookup(self, number: int, later: int | None) -> None:
        if number not in self.asks:
            return
        at, name = None if later is None or not self.events else self.time + later, f"q{number}"
        calls.append(f"engine.lookup({name!r}, at={at})")
        try:
            found = self.answers(self.indexed.lookup(name, at=at))
            candidates = self.indexed.lookup(name, at=at, exact=False)[self.key].to_pylist()
        except sw.BadEvents:
            if self.asks[number].term != Of("sum", ("z",)):
                raise
            return
        self.same(number, self.answers(self.plain.lookup(name, at=at)), found, f"at {at}")
        if not set(candidates) >= set(found):
            raise wrong(f"candidates: {self.about(number)}", f"{name} at {at}: {candidates}, without some of {found}")

    def filters(self) -> None:
        if any(ask.term == Of("sum", ("z",)) for ask in self.asks.values()):
            return
        calls.append("engine.filters()")
        for number in self.asks:
            both = (self.answers(engine.filters(f"q{number}")) for engine in (self.plain, self.indexed))
            self.same(number, *both, "filters")

    def save(self) -> None:
        """Both: one that was restored may hold fewer rows that nobody asks for, and later queries start from these."""
        calls.append("engine.save(path); engine = sw.Engine.load(path)")
        with tempfile.TemporaryDirectory() as folder:
            for name in ("indexed", "plain"):
                getattr(self, name).save(Path(folder) / name)
                setattr(self, name, sw.Engine.load(Path(folder) / name))

    def same(self, number: int, want: dict[Any, Any], found: dict[Any, Any], how: str) -> None:
        if sorted(want) != sorted(found) or not all(close(want[key], found[key]) for key in want):
            raise wrong(f"index: {self.about(number)}", f"q{number} {how}: {found}, without an index {want}")

    def answers(self, table: pa.Table) -> dict[Any, Any]:
        """A column of ours gives way to the key's."""
        value = "value_" if self.key == "value" else "value"
        return dict(zip(table[self.key].to_pylist(), table[value].to_pylist(), strict=True))

    def about(self, number: int) -> str:
        ask = self.asks[number]
        column = "".join(ask.term.columns)
        return f"{ask.term.kind}({column}) {ask.having[0]}{' midway' if number in self.midway else ''}"


def close(a: float, b: float) -> bool:
    """Structures may differ, and the last digits of sums with them."""
    return a == b or abs(a - b) <= 1e-9 * abs(a)


def target() -> Target:
    return plain("filters", CASES, check, lambda case: len(case["steps"]))
