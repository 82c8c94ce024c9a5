"""Decimals of any number of digits, against Python's whole numbers and fractions: exact in every way to ask."""

import math
import statistics
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swag as sw
from swag.live.vocabulary.dictionary import Dictionary
from swag.live.vocabulary.words import Words

FEWER = settings(max_examples=max(10, settings.default.max_examples // 3))  # each example is an engine or two
DIGITS = Context(prec=200)
WINDOWS = {
    "rows": sw.Rows(3), "past": sw.Rows(6, until=2), "time": sw.Range(4), "closed": sw.Range(5, closed="both"),
    "ever": sw.Unbounded(), "but": sw.Unbounded(until=2),
}  # fmt: skip
Of = Callable[[list[Any], list[Any]], Any]  # whole numbers and what stands beside them


def rank(xs: list[Any]) -> Any:
    return sorted(xs)[max(1, len(xs) // 2) - 1]


EXACT: dict[str, tuple[Any, Of]] = {
    "sum": (sw.sum("c"), lambda c, x: sum(c)), "min": (sw.min("c"), lambda c, x: min(c)),
    "max": (sw.max("c"), lambda c, x: max(c)), "first": (sw.first("c"), lambda c, x: c[0]),
    "last": (sw.last("c"), lambda c, x: c[-1]),
    "arg_max": (sw.arg_max("c", "x"), lambda c, x: c[x.index(max(x))]),
    "arg_min": (sw.arg_min("c", "c"), lambda c, x: min(c)),
    "mode": (sw.mode("c"), lambda c, x: max(c, key=lambda v: (c.count(v), -c.index(v)))),
    "floor": (sw.quantile("c", 0.5), lambda c, x: rank(c)),
}  # fmt: skip
OTHERS: dict[str, tuple[Any, Of]] = {
    "by": (sw.arg_max("x", "c"), lambda c, x: x[c.index(max(c))]),
    "distinct": (sw.count_distinct("c"), lambda c, x: len(set(c))), "count": (sw.count("c"), lambda c, x: len(c)),
}  # fmt: skip
FLOATS: dict[str, tuple[Any, Of, int]] = {
    "mean": (sw.mean("c"), lambda c, x: statistics.mean(c), 1),
    "median": (sw.median("c"), lambda c, x: statistics.median(c), 1),
    "std": (sw.std("c", ddof=0), lambda c, x: statistics.pvariance(c) ** Fraction(1, 2), 1),
    "cov": (sw.cov("c", "x", ddof=0), lambda c, x: covariance(c, x), 1),
    "wmean": (sw.wmean("c", "one"), lambda c, x: statistics.mean(c), 1),
}  # fmt: skip
SCALED: dict[str, tuple[Any, Of]] = {  # of the values themselves, where the others are of whole numbers of units
    "product": (sw.product("c"), lambda c, x: math.prod(c)),
    "largest": (
        sw.aggregate("c", lift=lambda v: v * v, combine=max, lower=math.sqrt, identity=0.0),
        lambda c, x: max(abs(v) for v in c),
    ),
}
AGGREGATES = {**EXACT, **OTHERS, **SCALED, **{name: each[:2] for name, each in FLOATS.items()}}
NO_TOTAL = {"mode", "floor", "distinct", "median"}


def covariance(c: list[Any], x: list[int]) -> Any:
    middle, beside = statistics.mean(c), Fraction(sum(x), len(x))
    return sum(((a - middle) * (b - beside) for a, b in zip(c, x, strict=True)), Fraction(0)) / len(c)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """A few events of two keys; values of every size that 1 to 38 digits have, whose sums fit 38."""
    digits = draw(st.integers(1, 38) | st.sampled_from([18, 19, 38]))
    kind = pa.decimal128(digits, draw(st.integers(0, digits)))
    if draw(st.integers(0, 3)) == 0:
        kind = pa.decimal256(draw(st.integers(digits, 76)), kind.scale)
    most = 10 ** min(digits, 36) - 1
    size = draw(st.integers(1, 25))
    some = st.integers(-most, most) | st.integers(0, 3).map(lambda n: min(most, n)) | st.integers(0, 120).map(
        lambda n: min(most, 2**n)) | st.sampled_from([most, -most])  # fmt: skip
    units = draw(st.lists(st.none() | some | some | some, min_size=size, max_size=size))
    times = np.cumsum(draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)))
    small = st.lists(st.integers(-3, 3), min_size=size, max_size=size)
    keys = draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
    schema = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("c", kind), ("x", pa.int64()), ("one", pa.int64())])
    columns = {"ts": times, "k": keys, "c": [decimal_of(u, kind) for u in units], "x": draw(small), "one": [1] * size}
    return pa.table(columns, schema)


def decimal_of(units: int | None, kind: pa.DataType) -> Decimal | None:
    return None if units is None else Decimal(units).scaleb(-kind.scale, DIGITS)


def units_of(value: Decimal | None, kind: pa.DataType) -> int | None:
    return None if value is None else int(value.scaleb(kind.scale, DIGITS))


def windows_at(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Of the last of these rows of one key, those in its window."""
    now = rows[-1]["ts"]
    return {
        "rows": lambda: rows[-3:], "past": lambda: rows[:-2][-4:], "ever": lambda: rows,
        "time": lambda: [r for r in rows if now - 4 < r["ts"]],
        "closed": lambda: [r for r in rows if now - 5 <= r["ts"]],
        "but": lambda: [r for r in rows if r["ts"] <= now - 2],
    }[name]()  # fmt: skip


def right(rows: list[dict[str, Any]], aggregate: str, kind: pa.DataType) -> Any:
    """The answer over some rows: a whole number of units, a fraction of them, or another number."""
    there = [row for row in rows if row["c"] is not None]
    if not there:
        return 0 if aggregate in ("distinct", "count") else None
    c, x = [units_of(row["c"], kind) for row in there], [row["x"] for row in there]
    unit = Fraction(1, 10**kind.scale) if aggregate in SCALED else 1
    numbers = [Fraction(v) * unit for v in c] if aggregate in FLOATS or aggregate in SCALED else c  # type: ignore[operator]
    return AGGREGATES[aggregate][1](numbers, x)


def check(found: Any, rows: list[dict[str, Any]], aggregate: str, kind: pa.DataType) -> None:
    wanted = right(rows, aggregate, kind)
    if wanted is None or aggregate in OTHERS:
        assert found == wanted
    elif aggregate in EXACT:
        assert isinstance(found, Decimal)
        assert units_of(found, kind) == wanted
    elif aggregate in SCALED:
        try:
            assert found == pytest.approx(float(wanted), rel=1e-13, abs=1e-320)
        except OverflowError:  # of Python, whose fractions have no end
            assert math.isinf(found) and (found > 0) == (wanted > 0)
    else:
        there = [abs(units_of(row["c"], kind) or 0) for row in rows if row["c"] is not None]
        widest = 3 * 10.0**-kind.scale * max(there)
        assert abs(found - float(wanted) * 10.0**-kind.scale) <= (1e-7 if aggregate == "std" else 1e-11) * widest


def asked(names: Any = AGGREGATES) -> list[sw.Query]:
    return [
        sw.Query(AGGREGATES[name][0], window, name=f"{name} {w}")
        for w, window in WINDOWS.items()
        for name in names
        if not (w in ("ever", "but") and name in NO_TOTAL)
    ]


@given(table=tables())
def test_stored_decimals_are_exact_and_the_rest_are_floats(table: pa.Table) -> None:
    queries, kind = asked(), table.schema.field("c").type
    found, rows = sw.evaluate(queries, table, key="k").to_pylist(), table.to_pylist()
    for i, answers in enumerate(found):
        seen = [row for row in rows[: i + 1] if row["k"] == rows[i]["k"]]
        for query in queries:
            name, window = query.label.split()
            check(answers[query.label], windows_at(seen, window), name, kind)


@FEWER
@given(
    table=tables(), saved=st.integers(0, 25), late=st.integers(0, 10), step=st.integers(1, 6), backwards=st.booleans()
)
def test_decimals_of_a_stream_are_what_stored_ones_are(
    table: pa.Table, saved: int, late: int, step: int, backwards: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Some queries come when events flow, and start from the rows that others have kept."""
    queries, kind, rows = asked(), table.schema.field("c").type, table.to_pylist()
    queries = queries[:: -1 if backwards else 1]
    engine = sw.Engine(key="k")
    engine.register(queries[::2])
    engine.register(
        [sw.Query(sw.last("x"), sw.Range(30), name="long"), sw.Query(sw.last("k"), sw.Rows(30), name="wide")]
    )
    began = 0
    for first in range(0, table.num_rows, step):
        if began == 0 and first >= late:
            engine.register(queries[1::2])
            began = first + 1
        if first <= saved < first + step:
            path = tmp_path_factory.mktemp("wide") / "snapshot"
            engine.save(path)
            engine = sw.Engine.load(path, queries=queries if began else queries[::2])
        engine.append(table.slice(first, step))
        now = max(row["ts"] for row in rows[: first + step])
        for answers in engine.lookup_all().to_pylist():
            own = [row for row in rows[: first + step] if row["k"] == answers["k"]]
            for query in queries[::2] if began != 1 else queries:
                name, window = query.label.split()
                seen = own if window in ("rows", "past") else [*own, {"ts": now, "c": None, "x": 0}]
                if answers[query.label] is not None or right(windows_at(seen, window), name, kind) is not None:
                    check(answers[query.label], windows_at(seen, window), name, kind)


@given(table=tables(), bound=st.integers(-(10**20), 10**20), scale=st.integers(0, 20))
def test_conditions_on_decimals_compare_exactly(table: pa.Table, bound: int, scale: int) -> None:
    kind, rows, limit = table.schema.field("c").type, table.to_pylist(), Decimal(bound).scaleb(-scale, DIGITS)
    queries = [
        sw.Query(AGGREGATES[name][0], sw.Rows(30), name=name, having=(">=", limit)) for name in ("sum", "max", "last")
    ]
    engine = sw.Engine(key="k")
    engine.register(queries)
    engine.append(table)
    stored = sw.evaluate(queries, table, key="k")
    for query in queries:
        passing = {row["k"]: row["value"] for row in engine.lookup(query.label).to_pylist()}
        for k in set(table["k"].to_pylist()):
            own = [row for row in rows if row["k"] == k]
            wanted = right(own, query.label, kind)
            passes = wanted is not None and Fraction(wanted, 10**kind.scale) >= Fraction(bound, 10**scale)
            at = max(i for i, row in enumerate(rows) if row["k"] == k)
            assert (k in passing) == passes == (stored[query.label][at].as_py() is not None)
            if passes:
                assert units_of(passing[k], kind) == wanted


def test_sums_of_few_digits_go_on_where_int64_ends() -> None:
    kind = pa.decimal128(18, 2)
    most = 10**18 - 1
    units = [most] * 12 + [-most] * 30 + [7]
    table = pa.table({"ts": range(len(units)), "c": pa.array([decimal_of(u, kind) for u in units], kind)})
    queries = [sw.Query(sw.sum("c"), sw.Rows(n), name=f"s{n}") for n in (2, 11, 25, 60)]
    queries += [sw.Query(sw.mean("c"), sw.Rows(25), name="m25"), sw.Query(sw.var("c"), sw.Rows(25), name="v25")]
    queries += [sw.Query(of("c"), sw.Unbounded(), name=f"{of.__name__[0]}99") for of in (sw.sum, sw.mean)]
    stored, engine = sw.evaluate(queries, table), sw.Engine()
    engine.register(queries)
    for i in range(len(units)):
        engine.append(table.slice(i, 1))
        live = engine.lookup_all().to_pylist()[0]
        for n in (2, 11, 25, 60, 99):
            wanted = decimal_of(sum(units[max(0, i + 1 - n) : i + 1]), kind)
            assert live[f"s{n}"] == stored[f"s{n}"][i].as_py() == wanted
        for n in (25, 99):
            window = units[max(0, i + 1 - n) : i + 1]
            wanted_mean = sum(window) / len(window) / 100
            assert live[f"m{n}"] == pytest.approx(wanted_mean) == stored[f"m{n}"][i].as_py()
        assert live["v25"] == pytest.approx(stored["v25"][i].as_py())


@pytest.mark.parametrize("window", [sw.Rows(50), sw.Unbounded(), sw.Range(50)], ids=str)
def test_a_sum_of_more_than_38_digits_raises_and_is_exact_again_when_they_have_left(window: Any) -> None:
    kind = pa.decimal128(38, 5)
    most = 10**38 - 1
    units = [most, -most, most, 1, -1, -most]
    table = pa.table({"ts": range(6), "c": pa.array([decimal_of(u, kind) for u in units], kind)})
    query, mean = sw.Query(sw.sum("c"), window, name="q"), sw.Query(sw.mean("c"), window, name="m")
    with pytest.raises(sw.SumOverflow, match=r'"q".*"c" at row 3.*38 digits'):
        sw.evaluate(query, table)
    engine = sw.Engine()
    engine.register([query, mean])
    engine.append(table.slice(0, 4))
    with pytest.raises(sw.SumOverflow, match='"c" has more than 38 digits'):
        engine.lookup("q")
    assert engine.lookup("m") == pytest.approx(10**33 / 4)
    engine.append(table.slice(4))
    assert engine.lookup("q") == 0


def test_decimals_of_256_bits_are_refused_where_they_are_added_up_and_have_no_38_digits() -> None:
    kind = pa.decimal256(60, 2)
    table = pa.table({"ts": [1, 2], "c": pa.array([Decimal(1), Decimal(10) ** 45], kind)})
    for what in (sw.sum("c"), sw.mean("c"), sw.var("c")):
        engine = sw.Engine()
        engine.register(sw.Query(what, sw.Rows(2), name="q"))
        for call in (
            lambda what=what: sw.evaluate(sw.Query(what, sw.Rows(2)), table),
            lambda e=engine: e.append(table),
        ):
            with pytest.raises(sw.BadType, match=r'"c" .* in row 1: .*38 digits.*CAST\("c" AS DOUBLE\)'):
                call()
    for what, wanted in ((sw.max("c"), Decimal(10) ** 45), (sw.min("c"), 1), (sw.last("c"), Decimal(10) ** 45)):
        engine = sw.Engine()
        engine.register(sw.Query(what, sw.Rows(2), name="q"))
        engine.append(table)
        assert engine.lookup("q") == sw.evaluate(sw.Query(what, sw.Rows(2), name="q"), table)["q"][1].as_py() == wanted


@given(units=st.lists(st.integers(-(10**38) + 1, 10**38 - 1), min_size=1, max_size=40, unique=True))
def test_numbers_of_decimals_compare_as_these_do(units: list[int]) -> None:
    kind = pa.decimal128(38, 3)
    words, numbers = Words(kind), np.zeros(0, np.int64)
    words.order()
    for unit in units:
        new, renumbering = words.encode(pa.array([decimal_of(unit, kind)], kind), "c")
        if renumbering is not None:
            renumbering.apply(numbers)
        numbers = np.append(numbers, new)
    assert [units[i] for i in np.argsort(numbers)] == sorted(units)


@FEWER
@given(table=tables(), first=st.sampled_from(["sum", "mean", "last", "max", "distinct"]), cut=st.integers(1, 20))
def test_queries_that_come_later_start_from_the_decimals_that_are_kept(table: pa.Table, first: str, cut: int) -> None:
    engine, kind = sw.Engine(key="k"), table.schema.field("c").type
    engine.register(sw.Query(AGGREGATES[first][0], sw.Rows(30), name="kept"))
    engine.register([sw.Query(sw.last(name), sw.Rows(30), name=f"kept {name}") for name in ("x", "one")])
    engine.append(table.slice(0, cut))
    rows = [sw.Query(what, sw.Rows(30), name=name) for name, (what, _) in AGGREGATES.items()]
    engine.register(rows)
    engine.append(table.slice(cut))
    for answers in engine.lookup_all().to_pylist():
        own = [row for row in table.to_pylist() if row["k"] == answers["k"]]
        for query in rows:
            check(answers[query.label], own, query.label, kind)


@FEWER
@given(table=tables(), algorithm=st.sampled_from(["r-int", "b-int", "l-int"]))
def test_every_structure_gives_the_same_decimals(table: pa.Table, algorithm: str) -> None:
    names = ["sum", "mean"] if algorithm == "r-int" else ["sum", "mean", "min", "arg_max", "by", "std", *SCALED]
    queries = [sw.Query(AGGREGATES[name][0], sw.Rows(4), name=f"{name} rows") for name in names]
    engine, kind = sw.Engine(key="k", algorithm=algorithm), table.schema.field("c").type
    engine.register(queries)
    for i in range(table.num_rows):
        engine.append(table.slice(i, 1))
    for answers in engine.lookup_all().to_pylist():
        own = [row for row in table.to_pylist() if row["k"] == answers["k"]]
        for query in queries:
            check(answers[query.label], own[-4:], query.label.split()[0], kind)


@FEWER
@given(table=tables(), step=st.integers(1, 5), order=st.randoms(use_true_random=False))
def test_filters_late_rows_ticks_features_and_changes_agree_with_stored_decimals(
    table: pa.Table, step: int, order: Any
) -> None:
    filters = [None, "x > 0", "x > 1", "c > 0", "one = 1"]
    queries = [
        sw.Query(AGGREGATES[name][0], sw.Range(4), name=f"{name} {i}", where=where)
        for i, where in enumerate(filters)
        for name in ("sum", "mean", "max", "arg_max", "first", *SCALED)
    ]
    having = [sw.Query(AGGREGATES[name][0], sw.Range(4), name=name, having=(">", 0)) for name in ("sum", "max")]
    ticking = [sw.Query(query.aggregate, sw.Range(4), name=f"t {query.label}", every=sw.Every(2)) for query in having]
    engine = sw.Engine(key="k", lateness=1000, hold=False)
    engine.register([*queries, *having])
    places = list(range(table.num_rows))
    order.shuffle(places)
    for first in range(0, len(places), step):
        engine.append(table.take(pa.array(places[first : first + step])))
        for query in having:
            engine.changes(query.label)
    in_order = sw.Engine(key="k")
    in_order.register([*queries, *having, *ticking])
    in_order.append(table.slice(0, step))
    in_order.append(table.slice(step))
    now = max(table["ts"].to_pylist())
    keys = sorted(set(table["k"].to_pylist()))
    at = {"k": keys, "ts": [now] * len(keys)}
    right = {row["k"]: row for row in sw.evaluate(queries, table, key="k", at=at).to_pylist()}
    features = {row["k"]: row for row in in_order.features({"k": keys}).to_pylist()}
    for answers in in_order.lookup_all().to_pylist():
        for query in queries:
            assert close(answers[query.label], right[answers["k"]][query.label])
            assert close(features[answers["k"]][query.label], right[answers["k"]][query.label])
    late = {row["k"]: row for row in engine.lookup_all().to_pylist()}
    for k, answers in late.items():
        for query in queries:
            if query.aggregate.kind in ("sum", "mean", "max"):  # of equal times the order is another
                assert close(answers[query.label], right[k][query.label])
    ticks = sw.evaluate(ticking, table, key="k")
    in_order.advance(now + 10)
    for query in ticking:
        assert in_order.emitted(query.label)["value"].to_pylist()[: ticks.num_rows] == ticks[query.label].to_pylist()


def close(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, float):
        return bool(found == pytest.approx(wanted, rel=1e-9, abs=1e-30) or abs(found - wanted) < 1e20)
    return bool(found == wanted)


def test_a_state_from_before_there_were_words_for_them_is_refused() -> None:
    known = Dictionary()
    known.types["c"] = pa.decimal128(38, 2)
    header, arrays = known.state()
    Dictionary().restore((header, arrays))
    del header["decimals"]
    with pytest.raises(sw.BadSnapshot, match=r'"c" \(decimal128\(38, 2\)\) are kept in it as int64'):
        Dictionary().restore((header, arrays))
