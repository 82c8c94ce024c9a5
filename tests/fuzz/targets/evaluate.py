"""Stored events of any types, at every event and at requests, against the oracle; the same table given to an engine.

Answers are the oracle's, or an error of ours where a column is of no number or a sum does not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import swag as sw
from tests import oracle
from tests.fuzz import drawing, typed
from tests.fuzz.asking import Ask, Expected, Of, aggregates_of, code, columns_of, expected, is_same, query
from tests.fuzz.target import Target, calls, plain, wrong
from tests.test_evaluate import pieces

ASKS = st.one_of(drawing.simple_asks(), drawing.simple_asks(), drawing.computed_asks())
CASES = st.fixed_dictionaries(
    {
        "table": typed.tables(),
        "key": st.sampled_from([None, "k"]),
        "asks": st.lists(ASKS, min_size=1, max_size=4),
        "at": st.none() | st.lists(st.tuples(st.integers(-5, 50), st.integers(0, 3)), max_size=8),
        "pieces": st.sampled_from([(10**6, 10**6, 1), (10**6, 10**6, 1), (5, 2, 1), (1, 1, 2)]),
        "chunks": st.integers(1, 3),
    }
)
Answers = list[Expected] | None  # None: there is none, as a sum does not fit int64, or is one of text


def check(case: dict[str, Any]) -> None:
    stored = Stored(case["table"], case["key"], case["chunks"], case["asks"])
    keys = typed.KEYS[stored.types["k"]]
    requests = None if case["at"] is None else [{"ts": ts, "k": keys[n % len(keys)]} for ts, n in case["at"]]
    with pieces(*case["pieces"]):
        stored.evaluated(requests)
    stored.appended()


class Stored:
    """Queries over a table."""

    def __init__(self, table: dict[str, Any], key: str | None, chunks: int, asks: list[Ask]) -> None:
        self.rows, self.types, self.key = table["rows"], table["types"], key
        self.table = typed.made(self.rows, self.types, chunks)
        self.asks = {f"q{i}": ask for i, ask in enumerate(asks)}
        read = {"k", *(name for ask in asks for name in columns_of(ask))}
        calls.append(f"events = {typed.code(self.rows, self.types, read)}")

    def evaluated(self, requests: list[dict[str, Any]] | None) -> None:
        """At each event, or at requests."""
        kinds = pa.schema({"ts": pa.int64(), "k": typed.arrow(self.types["k"])})
        at = None if requests is None else pa.Table.from_pylist(requests, kinds)
        told = "" if requests is None else f", at={[tuple(row.values()) for row in requests]}"

        def answers(names: list[str]) -> dict[str, list[Any]]:
            queries = [query(self.asks[name], name) for name in names]
            texts = ", ".join(code(self.asks[name], name) for name in names)
            calls.append(f"sw.evaluate([{texts}], events{told}, key={self.key!r})")
            return sw.evaluate(queries, self.table, at=at, key=self.key).to_pydict()

        self.compare("evaluate", answers, requests)

    def appended(self) -> None:
        """All of it at once to an engine, in order; looked up now, key by key."""
        events = oracle.in_order(self.rows)
        keys = list(dict.fromkeys(e["k"] for e in events)) if self.key else [None]
        requests = [{"ts": events[-1]["ts"] if events else 0, "k": key} for key in keys]

        def answers(names: list[str]) -> dict[str, list[Any]]:
            texts = ", ".join(code(self.asks[name], name) for name in names)
            calls.append(f"engine = sw.Engine(key={self.key!r}); engine.register([{texts}])")
            calls.append("engine.append(events.sort_by('ts')); engine.lookup_all()")
            engine = sw.Engine(key=self.key)
            engine.register([query(self.asks[name], name) for name in names])
            engine.append(self.table.sort_by("ts"))
            return {name: [engine.lookup(name, key=key) for key in keys] for name in names}

        self.compare("engine", answers, requests)

    def compare(self, by: str, answers: Callable[[list[str]], dict[str, list[Any]]], requests: Any) -> None:
        """All queries together or, where one is refused, each on its own."""
        wanted = {name: self.expected(ask, requests) for name, ask in self.asks.items()}
        try:
            found = answers(list(self.asks))
        except sw.SwagError:
            found = {}
        for name, want in wanted.items():
            try:
                got = found[name] if found else answers([name])[name]
            except sw.SwagError as why:
                self.refused(self.asks[name], want, why)
                continue
            if want is None:
                raise wrong(f"{by}: there is no {self.about(name)}", f"{name}: {got}")
            for row, (each, value) in enumerate(zip(want, got, strict=True)):
                self.same(by, name, row, each, value)

    def expected(self, ask: Ask, requests: list[dict[str, Any]] | None) -> Answers:
        known: dict[Any, list[Any]] = {}

        def window(asked: oracle.Q, row: int) -> list[Any]:
            which = asked.window, asked.where
            if which not in known:
                known[which] = oracle.windows(asked, self.rows, requests, self.key)
            return known[which][row]

        count = len(self.rows if requests is None else requests)
        try:
            with np.errstate(all="ignore"):
                return [expected(ask, lambda q, row=row: window(q, row)) for row in range(count)]
        except (OverflowError, TypeError, ValueError):
            return None

    def refused(self, ask: Ask, want: Answers, why: sw.SwagError) -> None:
        """Only for a reason."""
        kinds = {self.types[name] for of in aggregates_of(ask) for name in of.columns}
        overflow = isinstance(why, sw.SumOverflow) and (want is None or kinds & {"int64", "uint64"})
        negative = isinstance(why, sw.BadEvents) and ask.having is not None and ask.index
        if not (kinds - typed.NUMBERS or overflow or negative):
            raise why

    def same(self, by: str, name: str, row: int, want: Expected, got: Any) -> None:
        ask = self.asks[name]
        if ask.having is not None and want.passes is None:
            return
        if ask.having is not None and not (want.present and want.passes):
            want = Expected(None, 0.0, want.present, False)
        kinds = {self.types[name] for of in aggregates_of(ask) for name in of.columns}
        if not is_same(want, got) and not (kinds & {"bool", "date32", "timestamp"} and want.value == got):
            raise wrong(f"{by}: {self.about(name)}", f"row {row}, {name}: {got!r}, expected {want.value!r}")

    def about(self, name: str) -> str:
        ask = self.asks[name]
        kinds = sorted({self.types[name] for of in aggregates_of(ask) for name in of.columns})
        what = ask.term.kind if isinstance(ask.term, Of) else "expression"
        return f"{what}({', '.join(kinds)})" + (" having" if ask.having is not None else "")


def target() -> Target:
    return plain("evaluate", CASES, check, lambda case: len(case["table"]["rows"]) * len(case["asks"]))
