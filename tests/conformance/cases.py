"""What every way of running must answer alike: many small streams, side by side in one table: one job checks them all.

A case is a stream of its own: its keys are (case, key). What is expected is said by tests/oracle.py and frames.theory.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

import frames as fr
import swag as sw
from tests import oracle
from tests.oracle import agg
from tests.oracle_ticks import Every, stream, ticks

NAN, INF = math.nan, math.inf
SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": pa.float64(), "i": pa.int64(), "s": pa.string(),
                    "row": pa.int64()})  # fmt: skip

# Windows and aggregates: for us, and for the oracle.
WINDOWS = [
    (sw.Rows(1), oracle.Rows(1, 0)),
    (sw.Rows(5), oracle.Rows(5, 0)),
    (sw.Rows(7, until=2), oracle.Rows(7, 2)),
    (sw.Range(3), oracle.Range(3, 0, "right")),
    (sw.Range(6, closed="left"), oracle.Range(6, 0, "left")),
    (sw.Range(9, until=4, closed="both"), oracle.Range(9, 4, "both")),
    (sw.Range(5, until=1, closed="none"), oracle.Range(5, 1, "none")),
    (sw.Range(2**62), oracle.Range(2**62, 0, "right")),
]
AGGREGATES = [
    (sw.count(), agg("count")),
    (sw.count("s"), agg("count", "s")),
    (sw.sum("x"), agg("sum", "x")),
    (sw.sum("i"), agg("sum", "i")),
    (sw.mean("i"), agg("mean", "i")),
    (sw.min("x"), agg("min", "x")),
    (sw.max("i"), agg("max", "i")),
    (sw.first("s"), agg("first", "s")),
    (sw.last("x"), agg("last", "x")),
    (sw.std("x"), agg("std", "x", ddof=1)),
    (sw.var("i", ddof=0), agg("var", "i", ddof=0)),
    (sw.wmean("x", "i"), agg("wmean", "x", "i")),
    (sw.corr("x", "i"), agg("corr", "x", "i")),
    (sw.quantile("x", 0.9), agg("quantile", "x", phi=0.9)),
    (sw.median("i"), agg("median", "i")),
    (sw.sum("i + 0"), agg("sum", "i")),  # SQL over columns
    (sw.last("LOWER(s)"), agg("last", "s")),
    (sw.max("s"), agg("max", "s")),
    (sw.arg_min("x", "s"), agg("arg_min", "x", "s")),
]
WHERE = {None: None, "i > 0": lambda e: e["i"] is not None and e["i"] > 0}
HAVING = {"count": (">=", 2), "max": ("<", 3), "sum": (">", 1)}


def queries() -> list[tuple[sw.Query, oracle.Q]]:
    """Every aggregate over every window, some with a filter; the same for us and for the oracle."""
    found = []
    for n, (ours, theirs) in enumerate(AGGREGATES):
        for m, (window, same) in enumerate(WINDOWS):
            where = "i > 0" if (n + m) % 4 == 0 else None
            having = HAVING.get(ours.kind) if m == 3 and ours.columns in ((), ("i",)) else None
            name = f"q{n}_{m}"
            found.append((sw.Query(ours, window, name, where=where, having=having, index=ours.kind != "sum"),
                          oracle.Q(theirs, same, where=WHERE[where], having=having)))  # fmt: skip
    return found


GROUPINGS: list[tuple[str, ...] | None] = [None, ("case",), ("case", "k"), ("k", "half"), ()]


def in_groupings() -> list[tuple[sw.Query, oracle.Q]]:
    """Some of the queries, in every grouping in turn; None: by the key."""
    return [
        (replace(query, by=GROUPINGS[n % len(GROUPINGS)]), q)
        for n, (query, q) in enumerate([pair for i, pair in enumerate(queries()) if i % 4 == 0 or pair[0].having])
    ]


def with_other_keys(table: pa.Table) -> pa.Table:
    """Two columns more to group by: the case, and a float that is -0.0 here and there."""
    rows = table["row"].to_pylist()
    case = pa.array([int(key.split("/")[0]) for key in table["k"].to_pylist()], pa.int32())
    return table.append_column("case", case).append_column("half", pa.array([[0.0, -0.0, 1.5][n % 3] for n in rows]))


def key_of(row: dict[str, Any], by: tuple[str, ...] | None) -> tuple[Any, ...]:
    return tuple(row[name] + 0 if name == "half" else row[name] for name in (("k",) if by is None else by))


def streams(count: int = 16, seed: int = 7) -> list[list[dict[str, Any]]]:
    """Small streams with all that is awkward: nothing at all, one event, ties, gaps, null, NaN, inf, disorder."""
    rng = np.random.default_rng(seed)
    floats = [0.0, 0.5, 1.0, -1.5, 3.25, 1e9, None, None, NAN, INF]
    found: list[list[dict[str, Any]]] = []
    for n in range(count):
        size = [0, 1, 2, 60][n] if n < 4 else int(rng.integers(3, 40))
        spread = [1, 10, 30, 10**12][n % 4]
        plain = n % 3 == 0  # without NaN and inf, which would hide everything else
        found.append([{
            "ts": int(rng.integers(0, spread + 1)), "k": "abc"[int(rng.integers(0, 3 if n % 2 else 1))],
            "x": floats[int(rng.integers(0, 8 if plain else 10))], "i": [None, -1, 0, 1, 2, 5][int(rng.integers(0, 6))],
            "s": [None, "p", "q"][int(rng.integers(0, 3))],
        } for _ in range(size)])  # fmt: skip
    return found


def in_one_table(cases: list[list[dict[str, Any]]]) -> pa.Table:
    """All cases side by side: case c's keys are "c/k"."""
    rows = [{**event, "k": f"{c}/{event['k']}"} for c, events in enumerate(cases) for event in events]
    return pa.Table.from_pylist([{**row, "row": n} for n, row in enumerate(rows)], schema=SCHEMA)


def by_case(table: pa.Table, cases: list[list[dict[str, Any]]]) -> Iterator[list[dict[str, Any]]]:
    """The rows of each case."""
    rows = table.to_pylist()
    found: dict[int, list[dict[str, Any]]] = {c: [] for c in range(len(cases))}
    for row in rows:
        found[int(row["k"].split("/")[0])].append(row)
    return iter(found.values())


EVERY = [
    (sw.Every(3, per_key=True), Every(rows=3, per_key=True)),
    (sw.Every(time=4, per_key=True), Every(time=4, per_key=True)),
    (sw.Every(time=4, anchor="tuple", per_key=True), Every(time=4, anchor="tuple", per_key=True)),
]
EVERY_OF_ALL = [
    (sw.Every(3), Every(rows=3)),
    (sw.Every(time=4), Every(time=4)),
    (sw.Every(time=4, anchor="tuple"), Every(time=4, anchor="tuple")),
]


def _of_pairs(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    pairs = stream(oracle.Q(agg("sum", "i"), oracle.Range(9)), Every(rows=2, per_key=True), events, "n", "k")
    return ticks([oracle.Q(agg("max", "n"), oracle.Rows(3))], Every(rows=2, per_key=True), pairs, "k")


def _of_slots(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    slots = stream(
        oracle.Q(agg("count"), oracle.Rows(5)), Every(time=4, anchor="tuple", per_key=True), events, "n", "k"
    )
    return ticks([oracle.Q(agg("sum", "n"), oracle.Range(20))], Every(rows=1, per_key=True), slots, "k")


def _of_chosen(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    chosen = [event for event in events if event["i"] is not None and event["i"] > 0]
    return ticks([oracle.Q(agg("last", "i"), oracle.Rows(2))], Every(rows=2, per_key=True), chosen, "k")


# Queries that read the answers of others, or chosen events; and all they answer.
PAIRS = sw.Query(sw.sum("i"), sw.Range(9), "n", every=sw.Every(2, per_key=True))
SLOTS = sw.Query(sw.count(), sw.Rows(5), "n", every=sw.Every(time=4, anchor="tuple", per_key=True))
NESTED = [
    (sw.Query(sw.max("n"), sw.Rows(3), "q", every=sw.Every(2, per_key=True), source=PAIRS), _of_pairs),
    (sw.Query(sw.sum("n"), sw.Range(20), "q", every=sw.Every(1, per_key=True), source=SLOTS), _of_slots),
    (sw.Query(sw.last("i"), sw.Rows(2), "q", every=sw.Every(2, per_key=True), source=sw.Events("i > 0")), _of_chosen),
]
SPECS = [
    fr.Threshold("x", ">", 0.2, min_rows=2),
    fr.Threshold("i", ">=", 1, min_duration=2, partition=True),
    fr.Boundary({"x": 1.5, "i": [0, 2]}),
    fr.Delta("x", 1.0),
    fr.Delta("i", 2, measure="range", op=">="),
    fr.Aggregate(sw.sum("i"), ">=", 3),
    fr.Aggregate(sw.median("x"), "<", 1.25),
    fr.Pattern("A B+", {"B": "x > PREV(x)"}, {"high": "LAST(B.x)", "n": "COUNT(B.*)"}),
    fr.Pattern("A B*", {"A": "i > 0", "B": "x >= AVG(A.x)"}, {"mean": "AVG(B.x)"}),
    fr.Session(2, max_rows=3),
    fr.Between("x > 0.2", "i < 1"),
]
