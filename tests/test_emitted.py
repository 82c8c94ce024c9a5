"""`engine.emitted()` against the oracle, with the input cut anywhere; and what happens around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swag as sw
from swag.ticks import ticker
from tests import oracle_ticks
from tests.oracle import agg, same
from tests.test_evaluate import HAVING, KEYS, WHERE, ranges, rows
from tests.test_frequency import AGGREGATES, EVENT, FREQUENCIES, UNTIL, both, our_every, table

WINDOWS = rows(UNTIL) | ranges(UNTIL, st.integers(1, 12) | st.sampled_from([40]))
NUMBERS = [each for each in AGGREGATES if each[0].columns != ("s",)]
QUERY = st.tuples(st.sampled_from(NUMBERS), WINDOWS, st.sampled_from([None, *WHERE]), HAVING)
STEPS = st.tuples(
    st.sampled_from([0, 0, 1, 1, 2, 5, 30]), EVENT, st.sampled_from(["on", "on", "cut", "fetch", "advance"])
)
LATENESS = st.sampled_from([None, None, 0, 3, 10])
FEW = st.sampled_from([ticker.FEW_WAITING, 0])  # rows that may wait for a tick in any case


class Driven:
    """An engine and the oracle's stream, given the same events."""

    def __init__(self, engine: sw.Engine, stream: oracle_ticks.Stream) -> None:
        self.engine, self.stream = engine, stream
        self.batch: list[dict[str, Any]] = []
        self.fetched: list[pa.Table] = []

    def event(self, e: dict[str, Any]) -> None:
        taken = self.stream.arrive(e)
        if taken or self.stream.lateness is not None:
            self.batch.append(e)

    def cut(self) -> None:
        if self.batch:
            self.engine.append(table(self.batch))
        self.batch = []

    def advance(self, ts: int) -> None:
        self.cut()
        self.stream.advance(ts)
        self.engine.advance(ts)

    def fetch(self) -> None:
        self.fetched.append(self.engine.emitted())

    def run(self, steps: list[Any]) -> None:
        clock = 0
        for gap, event, then in steps:
            clock += gap
            back = abs(event["ts"]) % 9 if self.stream.lateness is not None or not self.stream.together else 0
            self.event(event | {"ts": clock - back})
            if then == "advance":
                self.advance(clock + gap)
            elif then != "on":
                self.cut()
            if then == "fetch":
                self.fetch()
        self.cut()

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        self.fetch()
        whole = pa.concat_tables(self.fetched, promote_options="permissive")
        self.fetched = [whole]
        return [tuple(row.values())[1:] for row in whole.to_pylist() if row["query"] == name]


def assert_same(expected: list[tuple[Any, ...]], found: list[tuple[Any, ...]], in_order: bool) -> None:
    if not in_order:
        expected, found = (sorted(each, key=lambda row: row[:3]) for each in (expected, found))
    assert [row[:-1] for row in found] == [row[:-1] for row in expected]
    for want, got in zip(expected, found, strict=True):
        value = float(want[-1]) if isinstance(want[-1], int) and isinstance(got[-1], float) else want[-1]
        assert same(value, got[-1], 1e-9 if isinstance(value, float) else 0), (want, got)


@given(
    st.lists(st.tuples(QUERY, FREQUENCIES), min_size=1, max_size=3), st.lists(STEPS, max_size=24), KEYS, LATENESS, FEW
)
def test_cut_anywhere_ticks_are_those_of_the_oracle(
    asked: list[Any], steps: list[Any], key: str | None, lateness: int | None, few: int
) -> None:
    frequencies = [oracle_ticks.Every(e.rows, e.time, e.anchor, e.per_key and key is not None) for _, e in asked]
    whole = key is None or not all(e.per_key for e in frequencies)
    slots = [e.time for e in frequencies if e.time is not None]
    engine = sw.Engine(key=key, lateness=lateness)
    theirs = []
    for i, ((query, _), every) in enumerate(zip(asked, frequencies, strict=True)):
        ([ours], [oracles]) = both([query], our_every(every))
        engine.register(sw.Query(ours.aggregate, ours.window, f"q{i}", ours.where, ours.having, every=ours.every))
        theirs.append(oracles)
    driven = Driven(engine, oracle_ticks.Stream(key, lateness, slots, together=whole))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ticker, "FEW_WAITING", few)
        driven.run(steps)
    for i, (query, every) in enumerate(zip(theirs, frequencies, strict=True)):
        stream = driven.stream
        expected = oracle_ticks.ticks([query], every, stream.applied, key, stream.last(every))
        assert_same(expected, driven.rows(f"q{i}"), in_order=key is None or not every.per_key)
    assert engine.stats()["undelivered"] == 0


@given(QUERY, WINDOWS, HAVING, FREQUENCIES | st.none(), FREQUENCIES, st.lists(STEPS, max_size=20), KEYS, LATENESS)
def test_a_query_over_ticks_cut_anywhere(
    inner: Any, window: Any, having: Any, often: Any, seldom: Any, steps: list[Any], key: str | None, lateness: Any
) -> None:
    keyed = key is not None
    seldom = oracle_ticks.Every(seldom.rows, seldom.time, seldom.anchor, seldom.per_key and keyed)
    ticked = often or oracle_ticks.Every(rows=1, per_key=True)
    ticked = oracle_ticks.Every(ticked.rows, ticked.time, ticked.anchor, ticked.per_key and keyed)
    often = often and ticked
    ([source], [their_source]) = both([inner], often and our_every(often))
    source = sw.Query(source.aggregate.alias("n"), source.window, None, source.where, source.having, every=source.every)
    ([query], [their_query]) = both([((sw.count("n"), agg("count", "n")), window, None, having)], our_every(seldom))
    query = sw.Query(query.aggregate, query.window, "q", None, query.having, every=query.every, source=source)
    engine = sw.Engine(key=key, lateness=lateness)
    engine.register(query)
    together = not keyed or not (ticked.per_key and seldom.per_key)
    driven = Driven(engine, oracle_ticks.Stream(key, lateness, [1], together))
    driven.run(steps)
    driven.advance(max([0, *(e["ts"] for e in driven.stream.applied)]) + 100)
    stream = driven.stream
    known = int(stream.promise)
    if often is None:
        events = oracle_ticks.stream(their_source, None, stream.applied, "n", key)
    else:
        found = oracle_ticks.ticks([their_source], often, stream.applied, key, stream.last(often))
        columns = ("tick", "ts", "n") if not keyed else ("tick", "ts", key, "n")
        events = [dict(zip(columns, row, strict=True)) for row in found]
    over = oracle_ticks.Stream(key, None, [], together)
    over.applied, over.promised = events, oracle_ticks.promised_after(ticked, known)
    expected = oracle_ticks.ticks([their_query], seldom, events, key, over.last(seldom))
    assert_same(expected, driven.rows("q"), in_order=not seldom.per_key)


# --- By hand ------------------------------------------------------------------------------------------------


RANGE_20 = sw.Range(20)


def counting(*frequencies: sw.Every, window: Any = RANGE_20, **options: Any) -> sw.Engine:
    engine = sw.Engine(**options)
    for i, every in enumerate(frequencies):
        engine.register(sw.Query(sw.count(), window, f"q{i}", every=every))
    return engine


def at(*ts: int, k: str = "a") -> pa.Table:
    return pa.table({"ts": pa.array(ts, pa.int64()), "k": [k] * len(ts)})


def fetched(engine: sw.Engine) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in engine.emitted().to_pylist()]


def test_a_slot_is_decided_by_an_event_or_an_advance_past_its_end():
    engine = counting(sw.Every(time=10), sw.Every(time=10, anchor="tuple"))
    engine.append(at(3, 7))
    assert fetched(engine) == []
    engine.append(at(10))
    assert fetched(engine) == [("q1", 1, 10, 3)]  # the tuple at its end stands for the slot, whatever comes
    engine.append(at(10))
    engine.advance(10)  # nothing older than 10 comes; but another 10 may
    assert fetched(engine) == []
    engine.advance(11)
    assert fetched(engine) == [("q0", 1, 10, 4)]
    engine.advance(31)
    assert fetched(engine) == [("q0", 2, 20, 4)]
    assert fetched(engine) == []


def test_late_events_do_not_change_what_was_decided():
    engine = counting(sw.Every(time=10), lateness=5)
    engine.append(at(3, 16))  # everything up to 11 is applied
    assert fetched(engine) == [("q0", 1, 10, 1)]
    assert engine.append(at(9)) == 0  # of a slot that was decided
    assert engine.append(at(12)) == 1
    assert engine.stats()["late"] == 1
    engine.advance(26)
    assert fetched(engine) == [("q0", 2, 20, 3)]


def test_a_gap_of_a_trillion_slots_costs_nothing():
    engine = counting(sw.Every(time=1), sw.Every(time=1, anchor="tuple"), window=sw.Range(2))
    engine.append(at(5))
    engine.append(at(10**12))
    assert sorted(fetched(engine)) == [("q0", 5, 5, 1), ("q0", 6, 6, 1), ("q1", 5, 5, 1), ("q1", 10**12, 10**12, 1)]


def test_more_ticks_than_can_be_meant_are_an_error_of_emitted_not_of_append():
    engine = counting(sw.Every(time=1), window=sw.Rows(2))
    engine.append(at(5, 10**12))
    with pytest.raises(sw.BadQuery, match="ticks at once"):
        engine.emitted()
    engine.append(at(10**12 + 1))
    assert fetched(engine) == [("q0", 10**12, 10**12, 2)]


def test_a_sum_that_does_not_fit_is_an_error_of_its_tick():
    engine = sw.Engine()
    engine.register(sw.Query(sw.sum("i"), sw.Rows(2), "s", every=sw.Every(2)))
    engine.append({"ts": [1, 2], "i": [2**62, 2**62]})
    with pytest.raises(sw.SumOverflow):
        engine.emitted()
    engine.append({"ts": [3, 4], "i": [1, 2]})
    assert fetched(engine) == [("s", 2, 4, 3)]


def test_an_error_in_one_stream_inside_loses_no_ticks_of_another():
    engine = sw.Engine()
    engine.register(sw.Query(sw.count(), sw.Rows(2), "n", every=sw.Every(2), source=sw.Events("i > 0")))
    engine.register(sw.Query(sw.sum("i"), sw.Rows(2), "s", every=sw.Every(2), source=sw.Events("i > 1")))
    engine.append({"ts": [1, 2], "i": [2**62, 2**62]})
    with pytest.raises(sw.SumOverflow):
        engine.emitted()
    assert fetched(engine) == [("n", 1, 2, 2)]


def test_between_ticks_rows_wait_and_those_that_no_tick_will_see_do_not_even_that():
    engine = counting(sw.Every(1000), window=sw.Rows(10))
    for start in range(0, 950, 50):
        engine.append(at(*range(start, start + 50)))
    assert engine.stats()["kept"] <= 1  # rows 991 to 1000 will be seen
    engine.append(at(*range(950, 1000)))
    assert fetched(engine) == [("q0", 1, 999, 10)]


def aggregated(engine: sw.Engine) -> int:
    """Rows that any structure was told of."""
    return sum(ticker.lookback.core.plan.updates for ticker in engine._stream.emission.tickers.values())


@pytest.mark.parametrize(("every", "window", "seen"), [
    (sw.Every(100), sw.Rows(10), 10), (sw.Every(100), sw.Range(10), 10), (sw.Every(time=100), sw.Range(10), 10),
    (sw.Every(time=100, anchor="tuple"), sw.Range(10), 10), (sw.Every(100), sw.Rows(100), 100),
    (sw.Every(50, per_key=True), sw.Rows(10), 20),
])  # fmt: skip
@pytest.mark.parametrize("cut", [1, 37, 401])
@pytest.mark.parametrize("key", [None, "k"])
def test_a_row_that_no_window_sees_is_never_aggregated_and_another_once(
    every: sw.Every, window: Any, seen: int, cut: int, key: str | None
) -> None:
    if every.per_key and key is None:
        return
    engine = sw.Engine(key=key)
    engine.register(sw.Query(sw.sum("i"), window, "s", every=every))
    for first in range(0, 401, cut):
        ts = np.arange(first, min(first + cut, 401)) + 1
        engine.append({"ts": ts, "i": ts, "k": ts % 2})
    if key is not None and isinstance(window, sw.Rows):  # which rows are the last of a key, nobody knows before
        assert aggregated(engine) <= 401
    else:
        assert aggregated(engine) == 4 * seen


def test_the_order_of_keys_matters_only_where_all_are_counted_together():
    apart, together = counting(sw.Every(2, per_key=True), key="k"), counting(sw.Every(2), key="k")
    for engine in (apart, together):
        engine.append(at(10, k="a"))
    apart.append(at(5, k="b"))
    with pytest.raises(sw.OutOfOrder, match="of another key"):
        together.append(at(5, k="b"))
    together.append(at(10, k="b"))
    assert fetched(together) == [("q0", 1, 10, "a", 1), ("q0", 1, 10, "b", 1)]


def test_a_bad_batch_changes_nothing():
    engine = sw.Engine()
    engine.register(sw.Query(sw.sum("x"), sw.Rows(2), "s", where="x > 0", every=sw.Every(2)))
    engine.append({"ts": [1], "x": [1.0]})
    for bad, error in (
        ({"ts": [2]}, sw.UnknownColumn),
        ({"ts": [2], "x": ["one"]}, sw.BadType),
        ({"ts": [0], "x": [2.0]}, sw.OutOfOrder),
    ):
        with pytest.raises(error):
            engine.append(bad)
    engine.append({"ts": [2], "x": [2.0]})
    assert fetched(engine) == [("s", 1, 2, 3.0)]


def test_queries_with_every_answer_at_ticks_not_on_lookup():
    engine = counting(sw.Every(2))
    with pytest.raises(sw.BadQuery, match="emitted"):
        engine.lookup("q0")
    engine.unregister("q0")
    assert engine.append(at(1, 2)) == 2
    assert fetched(engine) == []


def test_registered_later_ticks_are_still_those_of_the_stream():
    engine = sw.Engine(key="k")
    engine.register(sw.Query(sw.count(), sw.Rows(5), "n"))
    engine.append(at(1, 2, 3))
    engine.register(sw.Query(sw.count(), sw.Rows(5), "all", every=sw.Every(2)))
    engine.register(sw.Query(sw.count(), sw.Rows(5), "own", every=sw.Every(2, per_key=True)))
    engine.append(at(4, 5))
    assert fetched(engine) == [("all", 2, 4, "a", 1), ("own", 2, 4, "a", 1)]
    assert engine.stats()["complete_since"] == {"n": None, "all": 6, "own": 6}  # not yet
    assert "every 2 rows, key by key: own" in engine.explain()


PER_1000 = sw.Query(sw.count().alias("n"), sw.Range(60), where="load < 30", every=sw.Every(3))
PER_HOUR = sw.Query(sw.mean("n"), sw.Range(60), "idle", every=sw.Every(time=60), source=PER_1000)


def test_the_average_per_hour_of_a_count_per_so_many_measurements():
    ts = np.arange(0, 200, 7)
    load = np.arange(ts.size) * 37 % 100
    stored = sw.evaluate([PER_HOUR], {"ts": ts, "load": load})
    engine = sw.Engine()
    engine.register(PER_HOUR)
    for i in range(0, ts.size, 4):
        engine.append({"ts": ts[i : i + 4], "load": load[i : i + 4]})
    engine.advance(241)
    assert engine.emitted().drop_columns(["query"]).to_pylist() == [
        {"tick": row["tick"], "ts": row["ts"], "value": row["idle"]} for row in stored.to_pylist()
    ]
    assert stored.num_rows == 4


def test_three_deep_and_looked_up():
    middle = sw.Query(sw.sum("n").alias("m"), sw.Rows(2), source=sw.Query(sw.count().alias("n"), sw.Rows(3)))
    engine = sw.Engine()
    engine.register(sw.Query(sw.max("m"), sw.Rows(10), "top", source=middle))
    engine.register(sw.Query(sw.count(), sw.Rows(2), "n", every=sw.Every(2)))
    assert engine.lookup("top") is None
    engine.append(at(1, 2, 3, 4))
    assert engine.lookup("top") == 6  # counts 1 2 3 3, in pairs 1 3 5 6
    engine.unregister("top")
    assert not engine._stream.emission.inner
    assert fetched(engine) == [("n", 1, 2, 2), ("n", 2, 4, 2)]


def test_a_silent_key_holds_nobody_up():
    inner = sw.Query(sw.count().alias("n"), sw.Range(9), every=sw.Every(time=5, per_key=True))
    engine = sw.Engine(key="k")
    engine.register(sw.Query(sw.sum("n"), sw.Rows(2), "s", every=sw.Every(2), source=inner))
    engine.append(at(1, k="a"))  # and no more
    engine.append(at(2, 7, k="b"))
    assert fetched(engine) == [("s", 1, 5, "a", 1), ("s", 1, 5, "b", 1)]
    engine.append(at(11, 16, k="b"))  # at 10 and 15 of b alone: the window of a is empty
    assert fetched(engine) == [("s", 2, 15, "a", 1), ("s", 2, 15, "b", 4)]


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("lateness", [None, 4])
def test_a_snapshot_keeps_counters_rows_and_ticks_that_nobody_fetched(tmp_path: Path, key: Any, lateness: Any) -> None:
    def start() -> sw.Engine:
        engine = counting(sw.Every(4), sw.Every(time=6), sw.Every(time=6, anchor="tuple"), key=key, lateness=lateness)
        engine.register(sw.Query(sw.sum("ts"), sw.Rows(3), "own", every=sw.Every(2, per_key=key is not None)))
        inner = sw.Query(sw.count().alias("n"), sw.Range(9), every=sw.Every(3, per_key=key is not None))
        engine.register(sw.Query(sw.mean("n"), sw.Range(20), "outer", every=sw.Every(2), source=inner))
        engine.register(sw.Query(sw.max("n"), sw.Rows(4), "looked up", source=inner))
        engine.register(sw.Query(sw.count(), sw.Rows(4), "plain"))
        return engine

    once, again = start(), start()
    for i in range(12):
        batch = pa.concat_tables([at(3 * i, 3 * i + 1, k="a"), at(3 * i + 1, k="b")])
        once.append(batch)
        again.append(batch)
        again.save(tmp_path / "engine.swag")
        again = sw.Engine.load(tmp_path / "engine.swag")
    assert again.stats() | {"bytes": 0} == once.stats() | {"bytes": 0}
    for name in ("looked up", "plain"):
        assert again.lookup(name) == once.lookup(name)
    assert again.emitted().equals(once.emitted())
    assert once.emitted().num_rows == 0
