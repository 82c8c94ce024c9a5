"""Unbounded windows and windows of the calendar in an engine, against the oracle and against stored events."""

from __future__ import annotations

import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swag as sw
from tests import oracle
from tests.oracle import Q
from tests.oracle_tolerance import same, tolerance
from tests.test_evaluate import AGGREGATES, SCHEMA, WHERE, WILD, ours
from tests.test_windows import INSTANTS, PERIODS, ZONES

FEWER = settings(max_examples=settings.default.max_examples // 3)  # each example is an engine or two

REFUSED = ("quantile", "count_distinct", "approx_count_distinct", "mode")  # the rows say; or only about
FOLDED = [each for each in AGGREGATES if each[0].kind not in REFUSED]
UNBOUNDED = st.builds(oracle.Unbounded, st.sampled_from([0, 0, 0, 2, 5]))
OTHERS = st.sampled_from([oracle.Rows(3), oracle.Range(4), oracle.Range(5, 1)])
ASKED = st.lists(
    st.tuples(st.sampled_from(FOLDED), UNBOUNDED | UNBOUNDED | OTHERS, st.sampled_from(list(WHERE))),
    min_size=1, max_size=4,
)  # fmt: skip


def events(times: st.SearchStrategy[int], values: Any = WILD) -> st.SearchStrategy[list[dict[str, Any]]]:
    event = st.fixed_dictionaries(
        {
            "ts": times, "k": st.sampled_from("abc"), "x": st.none() | values, "y": st.none() | values,
            "i": st.none() | st.integers(-5, 5), "b": st.none() | st.booleans(),
            "s": st.none() | st.sampled_from(["", "one", "two"]),
        }
    )  # fmt: skip
    return st.lists(event, max_size=20)


@FEWER
@given(
    ASKED, events(st.integers(0, 12)), st.sampled_from([None, "k"]),
    st.sampled_from([(None, True), (3, True), (3, False)]), st.integers(1, 7), st.integers(0, 5),
)  # fmt: skip
def test_unbounded_windows_are_as_the_oracle_says(asked, rows, key, late, cut, saved_after) -> None:
    lateness, hold = late
    if lateness is None:
        rows = sorted(rows, key=lambda e: e["ts"])
    theirs = [Q(of, window, WHERE[where]) for (_, of), window, where in asked]
    queries = [sw.Query(of, ours(w), f"q{n}", where=where) for n, ((of, _), w, where) in enumerate(asked)]
    engine = sw.Engine(key=key, lateness=lateness, hold=hold)
    engine.register(queries)
    known = oracle.Engine(key, lateness, hold)
    for begin in range(0, len(rows), cut):
        batch = rows[begin : begin + cut]
        engine.append(pa.Table.from_pylist(batch, SCHEMA))
        known.append(batch)
        if begin // cut == saved_after:
            engine = saved(engine, [query for query in queries if query.aggregate.user is not None])
        agree(engine, known, theirs)


def saved(engine: sw.Engine, own: list[sw.Query] | tuple[()] = ()) -> sw.Engine:
    with TemporaryDirectory() as folder:
        engine.save(Path(folder) / "engine")
        return sw.Engine.load(Path(folder) / "engine", own)


def agree(engine: sw.Engine, known: oracle.Engine, theirs: list[Q]) -> None:
    for n, query in enumerate(theirs):
        found = engine.lookup(f"q{n}")
        if known.key is None:
            assert same(known.lookup(query), found, tolerance(query.agg, known.window(query))), query
            continue
        got = dict(zip(found["k"].to_pylist(), found["value"].to_pylist(), strict=True))
        want = known.lookup(query)
        assert got.keys() == want.keys(), query
        for key, value in want.items():
            assert same(value, got[key], tolerance(query.agg, known.window(query, key))), (query, key)


def test_an_engine_keeps_no_rows_for_unbounded_windows() -> None:
    engine = sw.Engine(key="k")
    engine.register([sw.Query(sw.sum("x"), sw.Unbounded(), "s"), sw.Query(sw.last("x"), sw.Unbounded(), "l")])
    for begin in range(0, 200_000, 1000):
        ts = np.arange(begin, begin + 1000)
        engine.append({"ts": ts, "k": ts % 7, "x": ts * 0.1})
    assert engine.stats()["kept"] < 2000
    assert engine.lookup("l", key=3) == pytest.approx(0.1 * (199_999 - (199_999 - 3) % 7))
    assert engine.features({"k": [3, 9]})["s"].to_pylist() == [pytest.approx(0.1 * sum(range(3, 200_000, 7))), None]


def test_a_sum_of_ten_million_tenths_is_a_million() -> None:
    engine = sw.Engine()
    engine.register(sw.Query(sw.sum("x"), sw.Unbounded(), "s"))
    for begin in range(0, 10**7, 10**6):
        engine.append({"ts": np.arange(begin, begin + 10**6), "x": np.full(10**6, 0.1)})
    assert abs(engine.lookup("s") - 1e6) < 1e-6 * 1e-6


@pytest.mark.parametrize("key", [None, "k"])
def test_what_depends_on_the_time_is_told_of_any_later_one(key) -> None:
    ts = np.datetime64("2024-01-01", "s") + np.array([0, 60, 90, 200, 300])
    events = pa.table({"ts": ts, "x": [3, 4, None, 1, 6], "s": ["u", "v", None, "w", "x"], "k": list("aabba")})
    each = [
        sw.decayed_sum("x", "2m"), sw.decayed_mean("x", "2m"), sw.decayed_count("90s"), sw.age(), sw.last_n("s", 2),
        sw.first_n("x", 2), sw.last_n("x", 1), sw.decayed_sum("x * 2", "2m") / sw.decayed_count("2m"),
    ]  # fmt: skip
    asked = [(of, until, where) for of in each for until in (0, "1m") for where in (None, "x > 3")]
    queries = [sw.Query(of, sw.Unbounded(u), f"q{n}", where=where) for n, (of, u, where) in enumerate(asked)]
    engine = sw.Engine(key=key)
    engine.register(queries)
    assert engine.features({"k": ["a"]}).num_columns == len(queries) + 1 if key else engine.lookup("q0") is None
    engine.append(events)
    for at in ts[-1] + np.array([0, 77, 9999]):
        at_both = pa.table({"ts": pa.array([at, at]), "k": ["a", "b"]})
        wanted = sw.evaluate(queries, events, at=at_both, key=key).select([query.name for query in queries])
        for n, name in enumerate(wanted.column_names):
            of, wants = queries[n].aggregate, wanted[name].to_pylist()
            found = engine.features({"k": ["a", "b"]}, at=at)[name] if key else [engine.lookup(name, at=at)] * 2
            if key:
                assert found.type == wanted[name].type
                found = found.to_pylist()
            assert all(same(a, b, 1e-12) for a, b in zip(wants, found, strict=True)), of


def test_rules_over_what_depends_on_the_time_are_checked_as_it_passes() -> None:
    engine = sw.Engine(key="k")
    engine.register([sw.Query(sw.age(), sw.Unbounded(), "silent", having=(">", 10)),
                     sw.Query(sw.decayed_sum("x", half_life=2), sw.Unbounded(), "hot", having=(">", 1))])  # fmt: skip
    engine.append({"ts": [1, 2, 3], "k": list("aab"), "x": [5, 1, 1]})
    assert [(row["query"], row["k"]) for row in engine.changes().to_pylist()] == [("hot", "a")]
    engine.advance(13)
    assert engine.filters().select(["query", "k", "value"]).to_pylist() == [{"query": "silent", "k": "a", "value": 11}]
    told = engine.changes().select(["query", "k", "passing"]).to_pylist()
    assert sorted(map(tuple, map(dict.values, told))) == [("hot", "a", False), ("silent", "a", True)]


def test_the_past_of_an_unbounded_window_is_not_known() -> None:
    engine = sw.Engine()
    engine.register([sw.Query(sw.sum("x"), sw.Unbounded(), "s"), sw.Query(sw.sum("x"), sw.Unbounded(until=5), "u")])
    engine.append({"ts": [1, 5, 9], "x": [1, 2, 4]})
    assert (engine.lookup("s"), engine.lookup("u"), engine.lookup("u", at=10), engine.lookup("u", at=14)) == (
        7,
        1,
        3,
        7,
    )
    assert engine.lookup("s", at=100) == 7
    with pytest.raises(sw.TooFarBack, match="ask for 9 or later"):
        engine.lookup("s", at=8)
    with pytest.raises(sw.TooFarBack):
        engine.lookup_all(at=5)


def test_what_can_not_be_told_without_the_rows_is_refused() -> None:
    engine = sw.Engine()
    for of in (sw.median("x"), sw.quantile("x", 0.9), sw.count_distinct("x"), sw.mode("x")):
        with pytest.raises(sw.BadQuery, match=r"keeps no rows .* as quantiles, the mode and exact count_distinct do"):
            engine.register(sw.Query(of, sw.Unbounded()))
    with pytest.raises(sw.BadQuery, match="lies ahead"):
        engine.register(sw.Query(sw.sum("x"), sw.Range(5, until=-1)))
    with pytest.raises(sw.BadQuery, match="lies ahead"):
        engine.register(sw.Query(sw.sum("x"), sw.Rows(5, until=-1)))


def test_integers_that_do_not_fit_are_refused_and_come_back() -> None:
    engine = sw.Engine()
    engine.register([sw.Query(sw.sum("i"), sw.Unbounded(), "s"), sw.Query(sw.mean("i"), sw.Unbounded(), "m")])
    engine.append({"ts": [1, 2], "i": [2**62, 2**62]})
    with pytest.raises(OverflowError):
        engine.lookup("s")
    assert engine.lookup("m") == 2.0**62
    engine.append({"ts": [3], "i": [-(2**62)]})
    assert engine.lookup("s") == 2**62


def test_one_that_comes_later_begins_with_the_next_event_or_shares_what_is_there() -> None:
    engine = sw.Engine()
    engine.register(sw.Query(sw.sum("x"), sw.Unbounded(), "first"))
    engine.append({"ts": [1, 2], "x": [1, 2]})
    engine.register([sw.Query(sw.mean("x"), sw.Unbounded(), "shared"), sw.Query(sw.max("x"), sw.Unbounded(), "later")])
    engine.append({"ts": [3], "x": [0]})
    assert (engine.lookup("first"), engine.lookup("shared"), engine.lookup("later")) == (3, 1.0, 0)
    assert engine.stats()["complete_since"] == {"first": None, "shared": None, "later": 2}
    engine.unregister("first")
    engine.append({"ts": [4], "x": [5]})
    assert (engine.lookup("shared"), engine.lookup("later")) == (2.0, 5)


@pytest.mark.parametrize("stream", ["(SELECT * FROM t WHERE x > 0) [UNBOUNDED]", "t [UNBOUNDED, EVERY 2 TUPLES]"])
@pytest.mark.parametrize("day", [datetime.date(2024, 3, 1), datetime.datetime(2024, 3, 1)])
def test_one_over_ticks_or_chosen_events_that_comes_later_is_whole_since_then(stream: str, day: Any) -> None:
    engine = sw.Engine()
    engine.register("SELECT COUNT(*) AS n FROM t [ROWS 2]")
    engine.append({"ts": [day], "x": [1]})
    engine.register(f"SELECT SUM(x) AS later FROM {stream}")
    assert engine.stats()["complete_since"] == {"n": None, "later": day}


def test_rules_over_unbounded_windows_are_looked_up_and_told() -> None:
    engine = sw.Engine(key="k")
    engine.register([sw.Query(sw.count(), sw.Unbounded(), "many", having=(">", 2)),
                     sw.Query(sw.sum("x") / sw.count(), sw.Unbounded(), "mean", having=(">", 1))])  # fmt: skip
    engine.append({"ts": [1, 2, 3, 4], "k": ["a", "b", "a", "a"], "x": [1, 2, 3, 4]})
    assert engine.lookup("many").to_pylist() == [{"k": "a", "value": 3}]
    assert engine.filters("mean").sort_by("k")["value"].to_pylist() == [8 / 3, 2.0]
    assert engine.changes("many").select(["k", "ts", "value", "passing"]).to_pylist() == [
        {"k": "a", "ts": 4, "value": 3, "passing": True}
    ]
    assert engine.changes("many").num_rows == 0
    engine.append({"ts": [5, 6], "k": ["b", "b"], "x": [0, 0]})
    assert engine.changes().select(["query", "k", "passing"]).sort_by("query").to_pylist() == [
        {"query": "many", "k": "b", "passing": True}, {"query": "mean", "k": "a", "passing": True}
    ]  # fmt: skip


def test_words_that_only_a_total_holds_are_not_forgotten() -> None:
    engine = sw.Engine(key="k")
    engine.register([sw.Query(sw.first("s"), sw.Unbounded(), "f"), sw.Query(sw.last("s"), sw.Unbounded(until=2), "l"),
                     sw.Query(sw.last_n("s", 3), sw.Unbounded(), "n")])  # fmt: skip
    for begin in range(0, 50_000, 500):
        ts = np.arange(begin, begin + 500)
        engine.append({"ts": ts, "k": ts % 3, "s": [f"word {t}" for t in ts.tolist()]})
    assert engine.lookup("f")["value"].to_pylist() == ["word 0", "word 1", "word 2"]
    assert engine.lookup("n", key=2) == [f"word {t}" for t in (49_991, 49_994, 49_997)]
    assert sorted(engine.lookup("l")["value"].to_pylist()) == ["word 49995", "word 49996", "word 49997"]


# --- Since ------------------------------------------------------------------------------------------------------


@FEWER
@given(
    st.sampled_from(PERIODS), st.sampled_from(ZONES), st.lists(INSTANTS, min_size=1, max_size=20), st.integers(1, 6),
    st.sampled_from([None, "k"]), st.booleans(),
)  # fmt: skip
def test_windows_of_the_calendar_are_in_an_engine_as_over_stored_events(period, zone, seconds, cut, key, save) -> None:
    seconds = sorted(seconds)
    ts = pa.array(seconds, pa.int64()).cast(pa.timestamp("s"))
    table = pa.table({"ts": ts, "k": [s % 2 for s in seconds], "x": [float(n) for n in range(len(seconds))]})
    queries = [
        sw.Query(sw.sum("x"), sw.Since(period, zone), "s"), sw.Query(sw.max("x"), sw.Since(period, zone), "m"),
        sw.Query(sw.count(), sw.Since("1d"), "n"), sw.Query(sw.count(), sw.Range("1d"), "r"),
    ]  # fmt: skip
    engine = sw.Engine(key=key)
    engine.register(queries)
    for begin in range(0, len(seconds), cut):
        engine.append(table.slice(begin, cut))
        if save:
            engine = saved(engine)
        now = seconds[min(begin + cut, len(seconds)) - 1]
        for later in (0, 3600, 50_000):
            at = np.datetime64(now + later, "s")
            keys = [None] if key is None else [0, 1]
            requests = pa.table({"ts": pa.array([at] * len(keys)), "k": pa.array(keys, pa.int64())})
            want = sw.evaluate(queries, table.slice(0, begin + cut), at=requests, key=key)
            if key is None:
                assert [engine.lookup(q.name, at=at) for q in queries] == [want[q.name][0].as_py() for q in queries]
                continue
            names = [q.name for q in queries]
            assert engine.features({"k": keys}, at=at).select(names).to_pylist() == want.select(names).to_pylist()


def test_rules_over_the_calendar_cease_with_it() -> None:
    engine = sw.Engine(key="k")
    engine.register(sw.Query(sw.count(), sw.Since("1d"), "busy", having=(">=", 2)))
    ts = np.array(["2024-03-01T10", "2024-03-01T11"], "datetime64[s]")
    engine.append({"ts": ts, "k": ["a", "a"]})
    assert engine.changes()["passing"].to_pylist() == [True]
    engine.advance(np.datetime64("2024-03-01T23:59:59"))
    assert engine.changes().num_rows == 0
    engine.advance(np.datetime64("2024-03-02T00:00:00"))
    assert engine.filters().num_rows == 0
    assert engine.changes()["passing"].to_pylist() == [False]


def test_rows_of_earlier_days_are_let_go() -> None:
    engine = sw.Engine()
    engine.register(sw.Query(sw.count(), sw.Since("1d"), "n"))
    start = np.datetime64("2024-01-01", "s")
    for day in range(60):
        engine.append({"ts": start + np.arange(day * 86400, (day + 1) * 86400, 60)})
    assert engine.lookup("n") == 1440 and engine.stats()["kept"] < 4 * 1440


def test_explain_says_what_is_kept_of_unbounded_windows() -> None:
    engine = sw.Engine(key="k")
    engine.register([sw.Query(sw.sum("x"), sw.Unbounded(), "so far"), sw.Query(sw.count(), sw.Unbounded(), "n")])
    engine.append({"ts": [1, 2], "k": [1, 2], "x": [1.0, 2.0]})
    said = engine.explain()
    assert "running sum(x) over" in said and "one partial per key" in said and "no row, so none is kept" in said
    ends = [sw.age(), sw.last("x"), sw.first_n("x", 3)]
    engine.register([sw.Query(of, sw.Unbounded(), f"q{n}") for n, of in enumerate(ends)])
    said = engine.explain()
    assert "running last(ts) over" in said and "running last(x), first_n(x, 3) over" in said


# --- Ticks ------------------------------------------------------------------------------------------------------

LATER = st.builds(
    lambda u, n, c, p: oracle.Range(u + n, u, c, p),
    st.integers(-8, 1), st.integers(1, 9), st.sampled_from(["right", "left", "both", "none"]), st.booleans(),
)  # fmt: skip
FREQUENCIES = st.sampled_from(
    [sw.Every(2), sw.Every(3, per_key=True), sw.Every(time=4), sw.Every(time=3, anchor="tuple"),
     sw.Every(time=5, anchor="tuple", per_key=True), sw.Every(time=4, per_key=True)]
)  # fmt: skip


@FEWER
@given(
    st.lists(st.tuples(st.sampled_from(FOLDED), st.just(oracle.Unbounded()) | OTHERS, st.sampled_from(list(WHERE))),
             min_size=1, max_size=3),
    FREQUENCIES, events(st.integers(0, 20), st.integers(-9, 9).map(float)),
    st.sampled_from([None, "k"]), st.integers(1, 7), st.integers(0, 4),
)  # fmt: skip
def test_ticks_of_unbounded_windows_are_those_of_stored_events(asked, every, rows, key, cut, saved_after) -> None:
    check_ticks(asked, every, rows, key, cut, saved_after)


def check_ticks(asked, every, rows, key, cut, saved_after, lateness=None) -> None:
    rows = sorted(rows, key=lambda e: e["ts"])
    every = sw.Every(every.rows, every.time, every.anchor, every.per_key and key is not None)
    queries = [
        sw.Query(of, ours(window), f"q{n}", where=where, every=every)
        for n, ((of, _), window, where) in enumerate(asked)
    ]
    engine = sw.Engine(key=key, lateness=lateness)
    engine.register(queries)
    found: dict[str, list[Any]] = {query.name: [] for query in queries}
    for begin in range(0, len(rows), cut):
        engine.append(pa.Table.from_pylist(rows[begin : begin + cut], SCHEMA))
        if begin // cut == saved_after:
            engine = saved(engine, [query for query in queries if query.aggregate.user is not None])
        for name, emitted in found.items():
            emitted += ticks_of(engine.emitted(name), "value")
    if rows:
        engine.advance(1000)
    last = 10**9 if not every.by_time or not rows else -(-rows[-1]["ts"] // every.time) * every.time
    for query in queries:
        found[query.name] += ticks_of(engine.emitted(query.name), "value")
        got = sorted((row for row in found[query.name] if row[0] <= last), key=lambda row: row[:-1])
        want = ticks_of(sw.evaluate(query, pa.Table.from_pylist(rows, SCHEMA), key=key), query.name)
        assert [row[:-1] for row in got] == [row[:-1] for row in want]
        assert all(same(b[-1], a[-1], 1e-9) for a, b in zip(got, want, strict=True)), (query, got, want)


def ticks_of(table: pa.Table, value: str) -> list[Any]:
    names = [name for name in ("ts", "k", "tick", value) if name in table.column_names]
    rows = [tuple(row[name] for name in names) for row in table.to_pylist()]
    return sorted(rows, key=lambda row: row[:-1])


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("every", [sw.Every("6h"), sw.Every("6h", anchor="tuple"), sw.Every(3)])
def test_ticks_of_windows_of_the_calendar_are_those_of_stored_events(every, key) -> None:
    hours = np.datetime64("2024-03-09T00", "s") + np.array([1, 5, 20, 23, 40, 41, 42, 55, 90, 100, 101, 132]) * 3600
    events = pa.table({"ts": hours.astype("datetime64[s]"), "k": [1, 2] * 6, "x": np.arange(12)})
    for window in (sw.Since("1d", "America/New_York"), sw.Since("1w"), sw.Since("1h")):
        query = sw.Query(sw.sum("x"), window, "q", every=every)
        engine = sw.Engine(key=key)
        engine.register(query)
        found = []
        for begin in range(0, 12, 5):
            engine.append(events.slice(begin, 5))
            found += ticks_of(engine.emitted("q"), "value")
        engine.advance(np.datetime64("2024-03-14T12:00:01"))
        found += ticks_of(engine.emitted("q"), "value")
        assert sorted(found) == ticks_of(sw.evaluate(query, events, key=key), "q")


def test_what_an_engine_does_not_answer_at_ticks_is_refused_by_name() -> None:
    engine = sw.Engine()
    ahead = sw.Query(sw.sum("x"), sw.Range(5, until=-1), every=sw.Every(2))
    for query in (
        sw.Query(sw.sum("x"), sw.Rows(5, until=-1), every=sw.Every(2)),
        sw.Query(sw.sum("x"), sw.Unbounded(until=-1), every=sw.Every(2)),
        sw.Query(sw.sum("x"), sw.Unbounded(until=3), every=sw.Every(time=3)),
        sw.Query(sw.sum("x").over(sw.Rows(3)) + sw.sum("x").over(sw.Range(5, until=-1)), every=sw.Every(2)),
        sw.Query(sw.count("sum(x)"), sw.Rows(5), source=ahead, every=sw.Every(2)),
    ):
        with pytest.raises(sw.BadQuery, match="an engine does not answer"):
            engine.register(query)
    assert engine.stats()["events"] == 0


def test_a_tick_ahead_waits_until_its_window_has_ended() -> None:
    engine = sw.Engine()
    engine.register([sw.Query(sw.sum("x"), sw.Range(5, until=-3), "ahead", every=sw.Every(2)),
                     sw.Query(sw.sum("x"), sw.Range(5, peers=True), "peers", every=sw.Every(2))])  # fmt: skip
    engine.append({"ts": [1, 2, 2, 5], "x": [1, 2, 4, 8]})
    assert ticks_of(engine.emitted("peers"), "value") == [(2, 1, 7)]  # ts, tick, value
    assert ticks_of(engine.emitted("ahead"), "value") == []
    engine.append({"ts": [5, 6], "x": [16, 32]})
    assert ticks_of(engine.emitted("ahead"), "value") == [(2, 1, 31)]
    assert ticks_of(engine.emitted("peers"), "value") == [(5, 2, 31)]
    engine.advance(10)
    assert ticks_of(engine.emitted("ahead"), "value") == [(5, 2, 63), (6, 3, 62)]


def test_rows_that_no_tick_ahead_can_see_are_let_go() -> None:
    engine = sw.Engine(key="k")
    for every in (sw.Every(time=10), sw.Every(50), sw.Every(20, per_key=True), sw.Every(time=10, anchor="tuple")):
        engine.register(sw.Query(sw.sum("x"), sw.Range(30, until=-20), f"{every}", every=every))
    for begin in range(0, 100_000, 1000):
        ts = np.arange(begin, begin + 1000)
        engine.append({"ts": ts, "k": ts % 3, "x": ts})
        engine.emitted()
    assert engine.stats()["kept"] < 4 * 10_000


@FEWER
@given(
    st.lists(st.tuples(st.sampled_from(AGGREGATES), LATER, st.sampled_from(list(WHERE))), min_size=1, max_size=3),
    FREQUENCIES, events(st.integers(0, 20), st.integers(-9, 9).map(float)), st.sampled_from([None, "k"]),
    st.integers(1, 7), st.integers(0, 4), st.sampled_from([None, 3]),
)  # fmt: skip
def test_ticks_ahead_are_those_of_stored_events(asked, every, rows, key, cut, saved_after, lateness) -> None:
    asked = [each for each in asked if each[0][0].user is None]
    check_ticks(asked, every, rows, key, cut, saved_after, lateness)
