"""Specs and small streams to try everything on, and what `detect` must say about them, from frames.theory."""

from typing import Any

import numba
import pyarrow as pa
from hypothesis import strategies as st

import frames as fr
import swag as sw
from frames import theory
from frames.finding.intake import with_read
from frames.theory import exact
from frames.theory import patterns as theory_of_patterns

SUM_OF_SQUARES = sw.aggregate("x", lift=lambda x: x * x, combine=lambda a, b: a + b, lower=lambda a: a, identity=0.0)
LATEST = sw.aggregate(
    "x", lift=lambda x: (x, 1), combine=lambda a, b: (b[0], a[1] + b[1]), lower=lambda a: a[0] * a[1], identity=(0.0, 0)
)

LEVEL = "CASE WHEN x > 1 THEN 'high' WHEN x > 0 THEN 'low' END"

SPECS: dict[str, Any] = {
    "threshold >": fr.Threshold("x", ">", 1),
    "threshold >=, rows": fr.Threshold("x", ">=", 1, min_rows=2),
    "threshold <, duration": fr.Threshold("x", "<", 2, min_duration=2),
    "threshold <=, both": fr.Threshold("x", "<=", 1.5, min_rows=2, min_duration=1),
    "threshold ==": fr.Threshold("x", "==", 1),
    "partition": fr.Threshold("x", ">", 1, partition=True),
    "partition, rows": fr.Threshold("x", ">", 0, min_rows=3, partition=True),
    "partition, duration": fr.Threshold("i", ">", 0, min_duration=2, partition=True),
    "threshold of SQL": fr.Threshold("CASE WHEN i > 0 THEN x * i END", ">", 1),
    "boundary, width": fr.Boundary("x", 1.5),
    "boundary, whole width": fr.Boundary("i", 2),
    "boundary, breaks": fr.Boundary("x", breaks=[0, 1, 2.5]),
    "boundary, grid": fr.Boundary({"x": 1.5, "i": [0, 2]}),
    "boundary, mixed grid": fr.Boundary({"x": 1.5, "i": [0, 1.5]}),
    "delta first <": fr.Delta("x", 1.5),
    "delta first <=": fr.Delta("i", 2, op="<="),
    "delta first >": fr.Delta("x", 1, op=">"),
    "delta range <": fr.Delta("x", 2, measure="range"),
    "delta range >, two": fr.Delta({"i": 1, "x": 2}, measure="range", op=">"),
    "delta range >=": fr.Delta("i", 2, measure="range", op=">="),
    "delta range <=, two": fr.Delta({"x": 1.5, "i": 2}, measure="range", op="<="),
    "delta first >=, two": fr.Delta({"x": 1.5, "i": 2}, op=">="),
    "count": fr.Aggregate(sw.count(), ">=", 3),
    "count of values": fr.Aggregate(sw.count("x"), "<=", 2),
    "count >= 0": fr.Aggregate(sw.count("x"), ">=", 0),
    "sum >=": fr.Aggregate(sw.sum("x"), ">=", 3),
    "sum <": fr.Aggregate(sw.sum("x"), "<", 2.5),
    "whole sum >": fr.Aggregate(sw.sum("i"), ">", 3.5),
    "whole sum <=": fr.Aggregate(sw.sum("i"), "<=", 2),
    "mean <": fr.Aggregate(sw.mean("x"), "<", 1),
    "whole mean >=": fr.Aggregate(sw.mean("i"), ">=", 1),
    "min": fr.Aggregate(sw.min("x"), ">", 0),
    "max": fr.Aggregate(sw.max("i"), "<", 3),
    "first": fr.Aggregate(sw.first("x"), "<=", 1),
    "last": fr.Aggregate(sw.last("x"), ">=", 2),
    "var": fr.Aggregate(sw.var("x"), "<", 1.3),
    "std": fr.Aggregate(sw.std("x", ddof=0), ">", 0.9),
    "wmean": fr.Aggregate(sw.wmean("x", "i"), ">", 0.7),
    "cov": fr.Aggregate(sw.cov("x", "i"), "<", 0.45),
    "corr": fr.Aggregate(sw.corr("x", "i"), ">=", 0.55),
    "quantile": fr.Aggregate(sw.quantile("x", 0.6), "<=", 1),
    "quantile >": fr.Aggregate(sw.quantile("x", 0.3), ">", 0),
    "median": fr.Aggregate(sw.median("x"), "<", 1.25),
    "median >=": fr.Aggregate(sw.median("i"), ">=", 1.5),
    "median >, before": fr.Aggregate(sw.median("x"), ">", 0.5, close="before"),
    "quantile <, with": fr.Aggregate(sw.quantile("x", 0.6), "<", 1, close="with", max_rows=4),
    "spread >": fr.Aggregate(sw.max("x") - sw.min("i"), ">", 1.2),
    "both ways, before": fr.Aggregate((sw.var("x") < 1.3) & (sw.min("i") > 0), close="before"),
    "either, with": fr.Aggregate((sw.last("x") > sw.first("x")) | (sw.count() >= 4)),
    "filtered": fr.Aggregate(sw.sum("i").filter("x > 0") * 2 - sw.count().filter("i > 1"), "<=", 3),
    "skew, arg_max": fr.Aggregate(sw.skew("x") + sw.arg_max("i", "x"), ">", 1.2),
    "user-defined": fr.Aggregate(SUM_OF_SQUARES, "<", 5),
    "user-defined, ordered": fr.Aggregate(LATEST, ">=", 4),
    "predicate": fr.Threshold("x > 0 AND i < 3 OR k = 'a'"),
    "predicate, partition": fr.Threshold("k IN ('a', 'b') AND x IS NOT NULL", partition=True, min_rows=2),
    "session": fr.Session(1),
    "state": fr.State("i"),
    "state of text": fr.State(LEVEL),
    "between": fr.Between("x > 1", "x < 1"),
    "between, same": fr.Between("i > 0", "x > 0", same=True),
}
LIMITED: dict[str, Any] = {
    "threshold, split": fr.Threshold("x", ">", 0, max_rows=2),
    "threshold, split, short": fr.Threshold("x", ">=", 0, min_rows=2, max_rows=3, min_duration=1),
    "threshold, open": fr.Threshold("x", ">", 1, min_rows=2, extent="open"),
    "partition, split": fr.Threshold("x", ">", 0, max_rows=3, min_duration=2, partition=True),
    "partition, open": fr.Threshold("i", ">", 0, min_rows=2, max_duration=3, partition=True, extent="open"),
    "predicate, split": fr.Threshold("x <> 1", max_duration=2),
    "boundary, rows": fr.Boundary("x", 1.5, min_rows=2, max_rows=3),
    "boundary, durations": fr.Boundary({"x": 1.5, "i": [0, 2]}, min_duration=1, max_duration=4, extent="open"),
    "delta <, rows": fr.Delta("x", 1.5, min_rows=2, max_rows=2),
    "delta <=, open": fr.Delta("i", 2, measure="range", op="<=", max_duration=3, extent="open"),
    "delta >, split": fr.Delta("x", 1, op=">", max_rows=3),
    "delta >=, open": fr.Delta({"x": 1.5, "i": 2}, op=">=", min_rows=2, max_duration=4, extent="open"),
    "sum <, split": fr.Aggregate(sw.sum("x"), "<", 2.5, max_rows=2, min_duration=1),
    "sum >=, split": fr.Aggregate(sw.sum("i"), ">=", 3, min_rows=2, max_rows=3),
    "mean <, open": fr.Aggregate(sw.mean("x"), "<", 1, max_duration=3, extent="open"),
    "sum >=, open": fr.Aggregate(sw.sum("i"), ">=", 2, max_duration=3, extent="open"),
    "quantile, rows": fr.Aggregate(sw.quantile("x", 0.6), "<=", 1, min_rows=2, max_rows=3),
    "quantile >, open": fr.Aggregate(sw.quantile("x", 0.3), ">", 0, max_rows=3, extent="open"),
    "session, split, short": fr.Session(2, min_rows=2, max_duration=3),
    "session, open": fr.Session(0, max_rows=3, extent="open"),
    "state, split": fr.State("i", max_rows=2, min_duration=1),
    "state, open": fr.State(LEVEL, min_rows=2, extent="open"),
    "between, split": fr.Between("i >= 1", "i <= 0", max_rows=2),
    "between, open": fr.Between("x >= 1", "x < 1", min_rows=2, max_duration=3, extent="open"),
}
SPECS |= LIMITED

MATCH_SO_FAR = {"B": "x < AVG(A.x) AND COUNT(*) < 5", "C": "C.x >= A.x AND i > FIRST(A.i)"}
SPECS |= {
    "pattern": fr.Pattern("A B+ C", {"B": "x < PREV(x)", "C": "x > PREV(x)"}),
    "pattern, measures": fr.Pattern(
        "A B* (C | D){1,2}",
        {"A": "i > 0", "B": "x < 1.5", "C": "PREV(x, 2) > 0 AND i > 1", "D": "i = 0"},
        {"first": "FIRST(B.x)", "n": "COUNT(*) - COUNT(A.*)", "mean": "AVG(B.x)", "last": "LAST(i)", "b": "MAX(D.i)"},
    ),
    "pattern, lengths": fr.Pattern("A+", {"A": "x > 0"}, min_rows=2, max_rows=4, max_duration=5),
    "pattern that waits": fr.Pattern("A (B* C)?", {"A": "i >= 0", "B": "x >= 0.5", "C": "x < 0.5"}),
    "pattern, match so far": fr.Pattern("A B+ C?", MATCH_SO_FAR, {"b": "SUM(B.x)", "a": "A.x"}),
    "pattern over text": fr.Pattern("A B+", {"B": "k <> PREV(k)"}),
    "pattern, open": fr.Pattern("A (B* C)?", {"A": "i >= 0", "B": "x >= 0.5", "C": "x < 0.5"}, extent="open"),
    "pattern, match so far, open": fr.Pattern("A B+ C?", MATCH_SO_FAR, {"b": "SUM(B.x)"}, extent="open"),
}

SPECS |= {  # of values that are told apart, and of sums that decay
    "distinct": fr.Aggregate(sw.count_distinct("x"), "<", 3),
    "distinct of text >=": fr.Aggregate(sw.count_distinct("k"), ">=", 2, max_rows=3),
    "distinct <=": fr.Aggregate(sw.count_distinct(LEVEL), "<=", 1, min_rows=2),
    "distinct, two": fr.Aggregate(sw.count_distinct("x") - sw.count_distinct("i") > 0),
    "mode": fr.Aggregate(sw.mode("x"), "<=", 1),
    "mode of whole": fr.Aggregate((sw.mode("i") < 2) & (sw.count_distinct("i") <= 3) & (sw.sum("i") < 9)),
    "mode >=, open": fr.Aggregate(sw.mode("i"), ">=", 1, max_rows=4, extent="open"),
    "decayed sum": fr.Aggregate(sw.decayed_sum("x", half_life=3), "<", 2.83),
    "decayed mean >": fr.Aggregate(sw.decayed_mean("x", half_life=2), ">", 0.71),
    "decayed count": fr.Aggregate(sw.decayed_count(half_life=2), "<", 2.17, max_duration=5),
    "decayed, filtered": fr.Aggregate(
        sw.decayed_count(half_life=2).filter("x > 0.5") - sw.decayed_sum("i", half_life=3), ">", 0.31
    ),
    "counted if": fr.Aggregate(sw.count_if("x > 1"), "<", 1, close="with"),
}

# Every other aggregate compiles for seconds what differs in a function or two: they are tried uncompiled, all of them
# (test_without_jit.py). Compiled are some of one partial and of several, of integers and floats, closed both ways.
UNCOMPILED = (
    "count", "count of values", "count >= 0", "whole sum >", "mean <", "whole mean >=", "min", "max", "first", "last",
    "var", "std", "wmean", "corr", "quantile >", "median >=", "both ways, before", "either, with", "filtered",
    "skew, arg_max", "user-defined", "delta first <=", "delta first >", "delta range >, two", "delta range <=, two",
    "delta first >=, two", "mean <, open", "quantile >, open", "boundary, whole width", "boundary, mixed grid",
    "distinct", "distinct <=", "mode", "mode >=, open", "decayed sum", "decayed mean >", "decayed count", "counted if",
    "pattern, lengths", "pattern that waits", "pattern over text", "pattern, match so far, open",
)  # fmt: skip
COMPILED = [name for name in SPECS if numba.config.DISABLE_JIT or name not in UNCOMPILED]
FURTHER: dict[str, Any] = {  # of these shapes each compiles for ten seconds: they are tried without
    "either": fr.Aggregate((sw.last("x") > sw.first("x")) | (sw.count() >= 4)),
    "shape": fr.Aggregate((sw.skew("x") < 0.7) & (sw.kurtosis("x") < 1.1) & (sw.product("x") <= 2.1)),
    "line": fr.Aggregate(sw.slope("x", "i") + sw.intercept("x", "i") * sw.r2("x", "i"), ">", 1.2),
    "between": fr.Aggregate(abs(sw.mean("i") * 2 - 1).between(0, 3.5), close="before"),
    "flags and rows": fr.Aggregate(
        (abs(-sw.arg_max("i", "x") + sw.arg_min("x", "i")) > 0.7) & (sw.count_if("x > 1") >= 1)
        & (sw.any("x > 1") + sw.all("x > 0") >= 1)
    ),
    "functions": fr.Aggregate((SUM_OF_SQUARES / sw.count("x") > 1.3) & (LATEST - sw.sum("x") > 0.2)),
}  # fmt: skip

CUSTOM: dict[str, Any] = {  # the built-in kinds, stated in the logical operator
    "custom threshold": fr.Custom("x", open=lambda e, s: e.x > 1, close=lambda e, s: not e.x > 1, min_rows=2),
    "custom, open": fr.Custom(
        "x", open=lambda e, s: e.x > 0, close=lambda e, s: 2 if e.x > 1.5 else e.x < 1, extent="open",
    ),
    "custom sum >=": fr.Custom(
        "x", state=0.0, update=lambda e, s: s + (e.x if e.x == e.x else 0.0), open=lambda e, s: True,
        close=lambda e, s: 2 * (s + (e.x if e.x == e.x else 0.0) >= 3), unfinished=False,
    ),
    "custom delta": fr.Custom(
        "x", state=(0, 0.0), open=lambda e, s: True,
        update=lambda e, s: (1, e.x) if s[0] == 0 and e.x == e.x else s,
        close=lambda e, s: s[0] == 1 and abs(e.x - s[1]) >= 1.5,
    ),
    "custom, overlapping": fr.Custom(
        "x", state=0, open=lambda e, s: s % 2 == 0 or e.x > 1.5, update=lambda e, s: s + 1,
        close=lambda e, s: 2 if s == 2 else -1 if e.x < 0 else e.x > 5, overlap=True, max_duration=4,
    ),
    "custom, overlapping, open": fr.Custom(
        "x", state=0, open=lambda e, s: e.x >= 0.5, update=lambda e, s: s + 1,
        close=lambda e, s: 2 * (s == 2 or e.x > 2), overlap=True, extent="open",
    ),
}  # fmt: skip

FLOATS = st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, -1.0, None, float("nan"), 0.1, 7.25])
INTEGERS = st.sampled_from([-1, 0, 1, 2, 3, None])
TYPES = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": pa.float64(), "i": pa.int64()})


@st.composite
def streams(draw: Any, most: int = 14, keys: int = 3, ordered: bool = False) -> list[dict[str, Any]]:
    """A few events, with ties, nulls and NaN, of a few keys."""
    size = draw(st.integers(0, most))
    ts = draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))
    rows = [
        {"ts": t, "k": "abc"[draw(st.integers(0, keys - 1))], "x": draw(FLOATS), "i": draw(INTEGERS)}
        for t in (sorted(ts) if ordered else ts)
    ]
    return rows


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=TYPES)


def expected(spec: Any, rows: list[dict[str, Any]], key: str | None) -> list[tuple[Any, ...]]:
    """(key, start, end, rows, extra) of every frame, per key in order of time."""
    found = []
    if spec.texts and rows:
        rows = with_read(spec, table(rows)).to_pylist()
    for value in dict.fromkeys(row[key] if key else None for row in rows):
        own = theory.in_order([row for row in rows if key is None or row[key] == value])
        if isinstance(spec, fr.Pattern):
            all_ = theory_of_patterns.matches(spec, own)
            found += [(value, *interval(spec, own, *m[:2]), *theory_of_patterns.measured(spec, own, m)) for m in all_]
            continue
        framing = [(frame, "frame") for frame in theory.final(spec, own)]
        if isinstance(spec, fr.Threshold) and spec.partition:
            framing += [(gap, "gap") for gap in theory.gaps([frame for frame, _ in framing], own)]
        for (s, e), kind in framing if isinstance(spec, fr.Custom) else sorted(framing):
            found.append((value, *interval(spec, own, s, e), *extra(spec, own[s : e + 1], kind)))
    return found


def interval(spec: Any, own: list[dict[str, Any]], s: int, e: int) -> tuple[int, int | None, int]:
    end = own[e]["ts"] if spec.extent == "closed" else own[e + 1]["ts"] if e + 1 < len(own) else None
    return own[s]["ts"], end, e - s + 1


def extra(spec: Any, extent: list[dict[str, Any]], kind: str) -> tuple[Any, ...]:
    if isinstance(spec, fr.Threshold):
        return (kind,) if spec.partition else ()
    if isinstance(spec, fr.Boundary):
        return theory.cell(spec, extent[0])
    if isinstance(spec, fr.State):
        return (extent[0]["i"] if spec.column == "i" else level(extent[0]["x"]),)
    return (exact.value(spec.term, extent),) if isinstance(spec, fr.Aggregate) and spec.reported else ()


def level(x: float | None) -> str | None:
    """LEVEL of an event."""
    if x is None or x != x:
        return None
    return "high" if x > 1 else "low" if x > 0 else None


def actual(frames: pa.Table, key: str | None) -> list[tuple[Any, ...]]:
    """The same of a table of frames."""
    names = [name for name in frames.column_names if name not in ("frame_id", "final", key)]
    rows = frames.to_pylist()
    order = list(dict.fromkeys(row[key] if key else None for row in rows))
    return [
        (row[key] if key else None, *(row[name] for name in names))
        for value in order
        for row in rows
        if (row[key] if key else None) == value
    ]


def same(a: list[tuple[Any, ...]], b: list[tuple[Any, ...]]) -> bool:
    """Keys in any order; floats but for the last digits."""

    def order(row: tuple[Any, ...]) -> Any:
        return str(row[0])

    a, b = sorted(a, key=order), sorted(b, key=order)
    return len(a) == len(b) and all(len(x) == len(y) and all(map(equal, x, y)) for x, y in zip(a, b, strict=True))


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float | int):
        return a == b or (a != a and b != b) or abs(a - b) <= 1e-12 * max(1.0, abs(a))
    return bool(a == b)
