"""Late events that are put into their place (hold=False): answers are those of the events in order, at every step."""

import datetime as dt
import math
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis.stateful import initialize, precondition, rule

import swag as sw
from swag.live import store
from tests import oracle
from tests.examples import share
from tests.test_engine import engine_of
from tests.test_engine_stateful import QUERIES, STEPS, EngineMachine

LATENESS = 20


# -- driven at random, against the oracle -----------------------------------------------------------------------------


class LateMachine(EngineMachine):
    """Events that are out of order by as much as is allowed, and by more; everything else as in order."""

    @initialize(
        keyed=st.booleans(),
        lateness=st.sampled_from([0, 3, LATENESS, 200]),
        algorithm=st.sampled_from(["auto", "auto", "b-int", "l-int", "r-int"]),
        queries=st.lists(QUERIES, max_size=6),
    )
    def start(self, keyed, lateness, algorithm, queries):
        self.key = "k" if keyed else None
        self.engine = sw.Engine(key=self.key, lateness=lateness, hold=False, algorithm=algorithm)
        self.truth = oracle.Engine(key=self.key, lateness=lateness, hold=False)
        self.clock, self.registered, self.fetched = 0, {}, 0
        for query in queries:
            self.register(query)

    @precondition(lambda self: self.registered and self.truth.taken)
    @rule(data=st.data(), share=st.sampled_from([0.0, 0.3, 1.0]))
    def lookup_as_far_back_as_events_may_come(self, data, share):
        name = data.draw(st.sampled_from(sorted(self.registered)))
        at = int(self.truth.now) - int(share * self.truth.lateness)
        if self.complete(name, at):
            key = {} if self.key is None else {"key": data.draw(st.sampled_from(self.keys))}
            self.check(name, self.engine.lookup(name, at=at, **key), key.get("key"), at)

    @rule()
    def fetch_what_was_refused(self):
        self.fetched += self.engine.refused().num_rows
        assert self.fetched == self.truth.late


class ForgetfulLateMachine(LateMachine):
    """Many keys that come and go."""

    keys = tuple(f"{letter}{n}" for n in range(5) for letter in "abcd")

    def __init__(self):
        super().__init__()
        self.many, store.MANY_KEYS = store.MANY_KEYS, 2

    def teardown(self):
        store.MANY_KEYS = self.many

    def events(self, drawn, back=0):
        rows = super().events(drawn, back)
        return [row | {"k": f"{row['k']}{row['ts'] // 7 % 5}"} for row in rows]


TestLate, TestForgetfulLate = LateMachine.TestCase, ForgetfulLateMachine.TestCase
TestLate.settings = TestForgetfulLate.settings = STEPS


# -- against an engine that got the same events in order --------------------------------------------------------------


@cache
def spread() -> Any:
    return sw.aggregate(
        "x",
        lift=lambda x: (x, x),
        combine=lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
        lower=lambda a: a[1] - a[0],
        identity=(math.inf, -math.inf),
    )


@cache
def total() -> Any:
    return sw.aggregate(
        "v", lift=lambda v: v, combine=lambda a, b: a + b, lower=lambda a: a, identity=0, invert=lambda a, b: a - b
    )


@cache
def all_queries(algorithm: str) -> list[sw.Query]:
    """Every aggregate, by rows and by time, with and without `where`; a filter for each kind of index."""
    aggregates = [sw.count(), sw.count("n"), sw.sum("x"), sw.sum("v"), sw.mean("n"), sw.var("x"), sw.first("x"),
                  sw.last("s"), sw.wmean("x", "v"), sw.cov("x", "v"), sw.quantile("x", 0.4),
                  sw.median("n")]  # fmt: skip
    if algorithm != "r-int":
        aggregates += [sw.min("x"), sw.max("n"), sw.max("v")]
    windows = [sw.Rows(5), sw.Rows(9, until=3), sw.Range(15), sw.Range(40, until=10)]
    found = [
        sw.Query(aggregate, window, where=where)
        for aggregate in aggregates
        for window in windows
        for where in (None, "v > 3")
    ]
    found += [sw.Query(total(), windows[2], name="own sum")]
    if algorithm != "r-int":
        found += [sw.Query(spread(), windows[0], name="own spread")]
        found += [sw.Query(sw.max("x"), sw.Range(30), name=f"max {op}", having=(op, 3.0)) for op in (">", "<=")]
        found += [sw.Query(sw.min("v"), sw.Range(30), name="min", having=("<", 3), where="v > 1")]
    for op in (">", "<"):
        found += [sw.Query(sw.count(), sw.Range(30), name=f"count {op}", having=(op, 3))]
        found += [sw.Query(sw.count("n"), sw.Range(20), name=f"count n {op}", having=(op, 2), where="v > 1")]
        found += [sw.Query(sw.sum("v"), sw.Range(30), name=f"sum {op}", having=(op, 12))]
        found += [sw.Query(sw.sum("w"), sw.Range(30), name=f"sum of floats {op}", having=(op, 1.5))]
    return found


def stream(count: int, seed: int, disorder: int, keys: int = 3) -> pa.Table:
    """Events as they arrive: in order of when they were sent on, with a ts that is up to `disorder` earlier."""
    rng = np.random.default_rng(seed)
    sent = np.cumsum(rng.choice([0, 0, 1, 2, 7], count))
    late = rng.random(count) < 0.3
    ts = sent - np.where(late, rng.integers(0, disorder + 1, count), 0)
    return pa.table(
        {
            "ts": ts,
            "k": pa.array(rng.choice([f"key {i}" for i in range(keys)], count)),
            "c": rng.integers(0, 2, count),
            "x": np.round(rng.normal(0, 3, count), 2),
            "v": rng.integers(0, 9, count),
            "w": rng.random(count),
            "n": pa.array(rng.integers(-5, 5, count), mask=rng.random(count) < 0.3),
            "s": pa.array(rng.choice(["a", "b", "c"], count)),
        }
    )


def in_order(events: pa.Table) -> pa.Table:
    return events.take(pa.array(np.argsort(events["ts"].to_numpy(), kind="stable")))


def as_of(events: pa.Table, queries: list[sw.Query], at: int, **options: Any) -> sw.Engine:
    """An engine that got all events up to a time, in order."""
    engine = sw.Engine(**options)
    engine.register(queries)
    sorted_events = in_order(events)
    engine.append(sorted_events.filter(pc.less_equal(sorted_events["ts"], at)))
    return engine


def assert_same_answers(late: sw.Engine, other: sw.Engine, at: Any = None) -> None:
    left, right = late.lookup_all(at=at), other.lookup_all(at=at)
    if late.key is not None:
        left, right = left.sort_by(late.key), right.sort_by(late.key)
    assert left.column_names == right.column_names and left.num_rows == right.num_rows
    for name in left.column_names:
        for one, two in zip(left[name].to_pylist(), right[name].to_pylist(), strict=True):
            assert oracle.same(two, one, 1e-9 * (1 + abs(two) if isinstance(two, float) else 0)), (name, at, one, two)
    for query in late.queries:
        if query.having is not None and late.key is not None:
            keys = [set(each.lookup(query.label, at=at)[late.key].to_pylist()) for each in (late, other)]
            assert keys[0] == keys[1], (query.label, at, keys)


@pytest.mark.parametrize("algorithm", ["auto", "r-int", "b-int", "l-int"])
@given(
    seed=st.integers(0, 2**20),
    cuts=st.lists(st.integers(1, 60), min_size=1, max_size=5),
    chosen=st.lists(st.integers(0, 999), min_size=1, max_size=12),
    keyed=st.booleans(),
    looks=st.booleans(),
)
@settings(max_examples=share(40), deadline=None)
def test_after_a_late_event_answers_are_as_if_it_had_come_in_time(algorithm, seed, cuts, chosen, keyed, looks):
    events, key = stream(sum(cuts), seed, LATENESS), "k" if keyed else None
    known = all_queries(algorithm)
    queries = list({query.label: query for query in (known[-1 - i % len(known)] for i in chosen)}.values())
    late = sw.Engine(key=key, lateness=LATENESS, hold=False, algorithm=algorithm)
    late.register(queries)
    first = 0
    for number, size in enumerate(cuts):
        assert late.append(events.slice(first, size)) == size
        first += size
        if looks or number == len(cuts) - 1:  # indexes and landmarks are made when asked for
            now = int(np.max(events["ts"].to_numpy()[:first]))
            for at in (now, now - LATENESS, now - 7):
                other = as_of(events.slice(0, first), queries, at, key=key, algorithm=algorithm)
                assert_same_answers(late, other, at)
    assert late.stats()["late"] == 0


def filters(count: int) -> list[sw.Query]:
    """So many different ones, some over a column with nulls, some with a condition on keys."""
    found = []
    for i in range(count):
        where = f"v > {i % 9} AND x < {i - 2}" if i % 3 else f"n = {i % 5} OR v = {i % 8}"
        what = [sw.sum("v"), sw.count(), sw.max("n"), sw.median("x"), sw.last("s"), sw.min("w")][i % 6]
        having = (">", 2) if what.kind in ("sum", "count") and i % 4 == 0 else None
        found.append(sw.Query(what, [sw.Rows(9), sw.Range(30)][i % 2], name=f"f{i}", where=where, having=having))
    return found


@pytest.mark.parametrize("count", [3, 24])  # rings by slots of each key, and numbered as they come
@given(
    seed=st.integers(0, 2**20), cuts=st.lists(st.integers(1, 50), min_size=2, max_size=5), keyed=st.booleans(),
    saved=st.booleans(),
)  # fmt: skip
@settings(max_examples=20, deadline=None)
def test_late_rows_of_many_filters_lie_in_one_arena(count, seed, cuts, keyed, saved, tmp_path_factory):
    events, key = stream(sum(cuts), seed, LATENESS), "k" if keyed else None
    late, first = sw.Engine(key=key, lateness=LATENESS, hold=False), 0
    late.register(filters(count)[: count - 1])
    for number, size in enumerate(cuts):
        late.append(events.slice(first, size))
        first += size
        now = int(np.max(events["ts"].to_numpy()[:first]))
        for at in (now, now - 7):
            assert_same_answers(late, as_of(events.slice(0, first), filters(count)[: count - 1], at, key=key), at)
        if saved and number == 0:
            path = tmp_path_factory.mktemp("late") / "engine.swag"
            late.save(path)
            late = sw.Engine.load(path)
    assert len(late._stream.core.store.families) <= 2  # with and without the nulls of n


@pytest.mark.parametrize("algorithm", ["auto", "r-int", "b-int", "l-int"])
def test_thousands_of_rows_are_displaced_right(algorithm):
    """Rings that grow and let go, stretches and blocks of landmarks, levels of base intervals."""
    rng = np.random.default_rng(5)
    count, disorder = 24_000, 5_000
    sent = np.arange(count)
    ts = sent - np.where(rng.random(count) < 0.01, rng.integers(0, disorder, count), 0)
    events = pa.table({"ts": ts, "x": rng.normal(0, 1, count), "v": rng.integers(0, 9, count)})
    aggregates = [sw.sum("x"), sw.sum("v"), sw.quantile("x", 0.9), sw.var("x")]
    aggregates += [] if algorithm == "r-int" else [sw.max("x")]
    queries = [
        sw.Query(a, w, where=where)
        for a in aggregates
        for w in (sw.Rows(37), sw.Range(3000), sw.Rows(9000, until=4000))
        for where in (None, "v > 6")
    ]
    late = sw.Engine(lateness=disorder, hold=False, algorithm=algorithm)
    late.register(queries)
    for first in range(0, count, 3_000):
        late.append(events.slice(first, 3_000))
        late.lookup_all()
        late.lookup_all(at=first - 2_000)
    for at in (count - 1, count - 1_500, count - disorder):
        assert_same_answers(late, as_of(events, queries, at, algorithm=algorithm), at)


def test_batch_cuts_do_not_matter_and_neither_do_snapshots(tmp_path):
    events, queries = stream(400, 3, 60), [q for q in all_queries("auto") if not q.label.startswith("own")]
    whole, cut = (sw.Engine(key="k", lateness=LATENESS, hold=False) for _ in range(2))
    whole.register(queries)
    whole.append(events)
    cut.register(queries)
    for first in range(0, 400, 7):
        cut.append(events.slice(first, 7))
        if first % 70 == 0:
            cut.filters("count >")
            cut.save(tmp_path / "engine")
            cut = sw.Engine.load(tmp_path / "engine")
            assert cut.hold is False
    assert_same_answers(whole, cut)
    assert whole.stats()["late"] == cut.stats()["late"] > 0
    assert whole.refused() == cut.refused()
    assert whole.refused().num_rows == 0


def test_a_late_event_is_put_in_place_in_every_grouping():
    by = [("k",), ("c",), ("k", "c"), ()]
    queries = [
        sw.Query(a, w, name=f"{a} {w} {each}", by=each)
        for each in by
        for a in (sw.sum("v"), sw.last("x"))
        for w in (sw.Rows(4), sw.Range(25))
    ]
    events = stream(300, 8, LATENESS)
    late, other = sw.Engine(key="k", lateness=LATENESS, hold=False), sw.Engine(key="k")
    for engine in (late, other):
        engine.register(queries)
    for first in range(0, 300, 30):
        late.append(events.slice(first, 30))
    other.append(in_order(events))
    for each in by:
        ours, theirs = (
            [tuple(row.items()) for row in engine.lookup_all(by=each).to_pylist()] for engine in (late, other)
        )
        assert sorted(ours) == sorted(theirs)


# -- what is refused --------------------------------------------------------------------------------------------------


def test_what_is_later_than_allowed_is_refused_whatever_its_key():
    engine = engine_of(sw.Query(sw.sum("x"), sw.Rows(9), name="q"), key="k", lateness=10, hold=False)
    assert engine.append({"ts": [100, 90, 89, 105, 94, 95], "k": list("abcabc"), "x": [1, 2, 3, 4, 5, 6]}) == 4
    assert engine.lookup("q").to_pylist() == [
        {"k": "a", "value": 5},
        {"k": "b", "value": 2},
        {"k": "c", "value": 6},
    ]
    assert engine.stats()["late"] == 2
    refused = engine.refused()
    assert refused.select(["ts", "k", "x"]).to_pylist() == [
        {"ts": 89, "k": "c", "x": 3},
        {"ts": 94, "k": "b", "x": 5},
    ]
    assert refused["reason"].to_pylist() == ["more than lateness=10 behind the latest ts"] * 2
    assert engine.refused().schema == refused.schema and engine.refused().num_rows == 0
    engine.advance(200)
    assert engine.append({"ts": [189, 190], "k": ["a", "b"], "x": [1, 1]}) == 1


def test_an_engine_that_holds_events_hands_out_the_late_ones_too(tmp_path):
    engine = engine_of(sw.Query(sw.count(), sw.Rows(9), name="n", where="side = 'ask'"), lateness="10s")
    times = [dt.datetime(2024, 1, 1, 0, 0, second) for second in (0, 30, 5, 25)]
    assert engine.append({"ts": times, "side": ["ask"] * 4, "other": [1] * 4}) == 4
    engine.advance(dt.datetime(2024, 1, 1, 0, 1))
    engine.append({"ts": times[:1], "side": pa.array(["bid"]).dictionary_encode()})
    engine.save(tmp_path / "engine")
    for each in (engine, sw.Engine.load(tmp_path / "engine")):
        refused = each.refused()
        assert refused.column_names == ["ts", "side", "reason"] and each.stats()["late"] == 1
        assert refused.to_pylist()[0] | {"reason": ""} == {"ts": times[0], "side": "bid", "reason": ""}
        assert each.refused().num_rows == 0


def test_only_the_last_million_of_refused_rows_are_kept(monkeypatch):
    from swag.ticks import refused

    monkeypatch.setattr(refused, "MOST_KEPT", 10)
    engine = engine_of(sw.Query(sw.count(), sw.Rows(9), name="n"), lateness=0, hold=False, rows={"ts": [100]})
    for first in range(0, 30, 3):
        engine.append({"ts": range(first, first + 3)})
    assert engine.refused()["ts"].to_pylist() == list(range(20, 30)) and engine.stats()["late"] == 30


def test_refused_rows_of_other_columns_are_handed_out_together():
    engine = engine_of(sw.Query(sw.sum("x"), sw.Rows(9), name="q"), lateness=0, hold=False)
    engine.append({"ts": [10, 1], "x": [1, 2]})
    engine.register(sw.Query(sw.max("reason"), sw.Rows(9), name="r"))
    engine.append({"ts": [2], "x": [3], "reason": [7]})
    found = engine.refused()
    assert (found["x"].to_pylist(), found["reason"].null_count, found["reason_"].null_count) == ([2, 3], 1, 0)


def test_a_bad_batch_changes_nothing():
    engine = engine_of(sw.Query(sw.sum("x"), sw.Range(50), name="q"), key="k", lateness=10, hold=False)
    engine.append({"ts": [100, 95], "k": ["a", "a"], "x": [1, 2]})
    before = engine.stats()
    for wrong in (
        {"ts": [93, 50], "k": ["a", None], "x": [3, 4]},
        {"ts": [93, 50], "k": ["a", "b"], "x": ["text", "text"]},
        {"ts": [93, None], "k": ["a", "b"], "x": [3, 4]},
        {"ts": [93], "k": ["a"]},
    ):
        with pytest.raises(sw.SwagError):
            engine.append(wrong)
    assert engine.stats() == before and engine.refused().num_rows == 0
    assert engine.lookup("q", key="a") == 3


def test_what_hold_can_not_be_is_said():
    with pytest.raises(sw.BadQuery, match=r'without `lateness` none may be late. Hint: sw.Engine\(lateness="10s"'):
        sw.Engine(hold=False)
    with pytest.raises(sw.BadQuery, match="hold"):
        sw.Engine(lateness=5, hold="no")  # type: ignore[arg-type]
    with pytest.raises(sw.BadQuery, match="in order, not hold=False"):
        sw.Engine(lateness=5, hold=False, algorithm="psoup")


def test_a_query_that_comes_midway_gets_late_events_too():
    engine = engine_of(sw.Query(sw.sum("x"), sw.Range(100), name="q"), lateness=50, hold=False)
    engine.append({"ts": [10, 40], "x": [1, 2]})
    engine.register(
        [sw.Query(sw.sum("x"), sw.Rows(2), name="two"), sw.Query(sw.max("x"), sw.Range(100), name="m", where="x > 3")]
    )
    engine.append({"ts": [20, 5], "x": [4, 8]})
    assert (engine.lookup("two"), engine.lookup("q"), engine.lookup("m")) == (6, 15, 8)
    assert engine.lookup("two", at=20) == 5
    engine.unregister("two")
    engine.append({"ts": [45, 44], "x": [16, 32]})
    assert (engine.lookup("q"), engine.lookup("m")) == (63, 32)


def test_an_old_snapshot_holds_events():
    for path in sorted((Path(__file__).parent / "snapshots").glob("*")):
        if path.is_file() and path.suffix == ".swag":
            assert sw.Engine.load(path).hold is True


def test_a_function_that_raises_of_a_late_row_leaves_other_windows_right():
    def lift(x: float) -> float:
        return x

    def combine(a: float, b: float) -> float:
        if a + b > 100:
            raise ValueError("too much")
        return a + b

    own = sw.aggregate("x", lift=lift, combine=combine, lower=lambda a: a, identity=0.0)
    engine = engine_of(sw.Query(own, sw.Rows(2), name="q"), lateness=50, hold=False)
    engine.append({"ts": [10, 20, 30, 40], "x": [1.0, 60.0, 2.0, 3.0]})
    engine.append({"ts": [15], "x": [50.0]})
    assert engine.lookup("q") == 5.0 and engine.lookup("q", at=15) == 51.0
    with pytest.raises(sw.BadFunction):
        engine.lookup("q", at=20)
    engine.append({"ts": [41], "x": [4.0]})
    assert engine.lookup("q") == 7.0
