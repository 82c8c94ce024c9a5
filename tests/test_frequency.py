"""Jumping windows over stored events against the oracle: rows and time, both anchors, whole streams and keys."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swag as sw
from swag.ticks import stored_ticks as jumping
from tests import oracle, oracle_ticks
from tests.oracle import agg, same
from tests.test_evaluate import HAVING, KEYS, WHERE, ours, ranges, rows

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": pa.float64(), "i": pa.int64(), "s": pa.string()})
AGGREGATES = [
    (sw.count(), agg("count")),
    (sw.count("x"), agg("count", "x")),
    (sw.sum("x"), agg("sum", "x")),
    (sw.sum("i"), agg("sum", "i")),
    (sw.mean("i"), agg("mean", "i")),
    (sw.max("x"), agg("max", "x")),
    (sw.first("s"), agg("first", "s")),
    (sw.last("i"), agg("last", "i")),
    (sw.median("x"), agg("median", "x")),
]
EXACT = {"count", "max"}
UNTIL = st.sampled_from([0, 0, 0, 1, 3])
WINDOWS = rows(UNTIL) | ranges(UNTIL, st.integers(1, 12) | st.sampled_from([40, 2**62, 2**70]))
QUERY = st.tuples(st.sampled_from(AGGREGATES), WINDOWS, st.sampled_from([None, *WHERE]), HAVING)
EVENT = st.fixed_dictionaries(
    {
        "ts": st.integers(-9, 12) | st.integers(40, 60),
        "k": st.sampled_from("abc"),
        "x": st.none() | st.integers(-50, 50).map(float),
        "i": st.none() | st.integers(-5, 5),
        "s": st.none() | st.sampled_from(["", "one", "two"]),
    }
)
EVENTS = st.lists(EVENT, max_size=24)
ANCHORS = st.sampled_from(["tick", "tuple"])
FREQUENCIES = st.builds(oracle_ticks.Every, rows=st.integers(1, 9), per_key=st.booleans()) | st.builds(
    oracle_ticks.Every, time=st.integers(1, 9), anchor=ANCHORS, per_key=st.booleans()
)


def our_every(every: oracle_ticks.Every) -> sw.Every:
    return sw.Every(every.rows, every.time, every.anchor, every.per_key)  # type: ignore[arg-type]


def both(asked: list[Any], every: Any) -> tuple[list[sw.Query], list[oracle.Q]]:
    """The same queries for us and for the oracle."""
    queries, theirs = [], []
    for (aggregate, same_one), window, where, having in asked:
        having = having if aggregate.kind in EXACT else None
        queries.append(sw.Query(aggregate, ours(window), f"q{len(queries)}", where, having, every=every))
        theirs.append(oracle.Q(same_one, window, WHERE[where], having))
    return queries, theirs


def table(events: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(events, SCHEMA)


def assert_rows(expected: list[tuple[Any, ...]], actual: pa.Table) -> None:
    found = [tuple(row.values()) for row in actual.to_pylist()]
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    for want, got in zip(expected, found, strict=True):
        assert all(same(w, g, 1e-9 if isinstance(w, float) else 0) for w, g in zip(want, got, strict=True)), (want, got)


@given(
    st.lists(QUERY, min_size=1, max_size=3),
    FREQUENCIES,
    EVENTS,
    KEYS,
    st.sampled_from([0.75, 0.0, 2.0]),
    st.sampled_from([1.5, 0.0, 99.0]),
)
def test_ticks_are_those_of_the_oracle(
    asked: list[Any],
    every: oracle_ticks.Every,
    events: list[dict[str, Any]],
    key: str | None,
    skipping: float,
    hardly: float,
) -> None:
    every = oracle_ticks.Every(every.rows, every.time, every.anchor, every.per_key and key is not None)
    queries, theirs = both(asked, our_every(every))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jumping, "WORTH_SKIPPING", skipping)  # never skip a row, or always, or where it pays
        patch.setattr(jumping, "HARDLY", hardly)
        found = sw.evaluate(queries, table(events), key=key)
    assert_rows(oracle_ticks.ticks(theirs, every, events, key), found)


@given(QUERY, QUERY, FREQUENCIES | st.none(), FREQUENCIES | st.none(), EVENTS, KEYS)
def test_a_query_over_the_answers_of_another(
    inner: Any, outer: Any, often: Any, seldom: Any, events: list[dict[str, Any]], key: str | None
) -> None:
    often, seldom = (
        e and oracle_ticks.Every(e.rows, e.time, e.anchor, e.per_key and key is not None) for e in (often, seldom)
    )
    (aggregate, counted), *rest = inner
    ([source], [their_source]) = both([((aggregate.alias("n"), counted), *rest)], often and our_every(often))
    source = sw.Query(source.aggregate, source.window, None, source.where, source.having, every=source.every)
    outer = ((sw.count("n"), agg("count", "n")), outer[1], None, outer[3])
    ([query], [their_query]) = both([outer], seldom and our_every(seldom))
    query = sw.Query(query.aggregate, query.window, "q", None, query.having, every=query.every, source=source)
    found = sw.evaluate([query], table(events), key=key)
    stream = oracle_ticks.stream(their_source, often, events, "n", key)
    if seldom is not None:
        last = seldom.time and oracle_ticks.slot(oracle_ticks.end_of([*events, *stream]), seldom.time)
        assert_rows(oracle_ticks.ticks([their_query], seldom, stream, key, last), found)
    else:
        in_order = sorted(found.to_pylist(), key=lambda row: row["ts"])
        expected = oracle.evaluate([their_query], stream, None, key)
        assert sorted(map(str, [row["q"] for row in in_order])) == sorted(str(row[0]) for row in expected)


# --- By hand ------------------------------------------------------------------------------------------------


def jumped(window: Any, every: sw.Every, ts: list[int], **options: Any) -> list[tuple[int, int, int]]:
    query = sw.Query(sw.count(), window, "n", every=every)
    found = sw.evaluate([query], {"ts": np.array(ts, np.int64)}, **options)
    return [tuple(row.values()) for row in found.to_pylist()]


def test_every_third_row():
    # ts     1 2 3 4 5 6 7
    # ticks      1     2
    assert jumped(sw.Rows(2), sw.Every(3), [1, 2, 3, 4, 5, 6, 7]) == [(1, 3, 2), (2, 6, 2)]


def test_a_slot_is_stood_for_by_the_first_tuple_at_its_end_else_by_its_last():
    # slots  (0, 10]         (10, 20]     (20, 30]   (30, 40]
    # ts      4 10 10         12 17        -          31
    ts = [4, 10, 10, 12, 17, 31]
    assert jumped(sw.Rows(9), sw.Every(time=10, anchor="tuple"), ts) == [(1, 10, 2), (2, 17, 5), (4, 31, 6)]


def test_a_slot_ends_where_it_ends_and_ticks_while_its_window_holds_an_event():
    # slots  (0, 10] (10, 20] (20, 30] (30, 40] (40, 50]      windows of 20
    # ts      4 10                               41
    assert jumped(sw.Range(20), sw.Every(time=10), [4, 10, 41]) == [(1, 10, 2), (2, 20, 2), (5, 50, 1)]


def test_a_gap_of_a_trillion_slots_is_jumped_over():
    ts = [5, 2 * 10**12 + 5, 2 * 10**12 + 6]
    assert jumped(sw.Range(3), sw.Every(time=2), ts) == [
        (3, 6, 1), (10**12 + 3, 2 * 10**12 + 6, 2)
    ]  # fmt: skip
    assert jumped(sw.Range(3), sw.Every(time=2, anchor="tuple"), ts) == [
        (3, 5, 1), (10**12 + 3, 2 * 10**12 + 6, 2)
    ]  # fmt: skip


def test_more_ticks_than_can_be_meant_are_refused():
    with pytest.raises(sw.BadQuery, match="ticks at once"):
        jumped(sw.Rows(3), sw.Every(time=2), [5, 2 * 10**12])


def test_slots_of_timestamps_are_counted_from_the_epoch():
    start = datetime.datetime(2024, 3, 1, 9, 30, tzinfo=datetime.UTC)
    ts = pa.array([start, start + datetime.timedelta(seconds=61)], pa.timestamp("ms", "UTC"))
    query = sw.Query(sw.count(), sw.Range("1m"), "n", every=sw.Every("1m"))
    found = sw.evaluate([query], {"ts": ts})
    minute = int(start.timestamp()) // 60
    assert found.schema.field("ts").type == ts.type
    assert found.column("tick").to_pylist() == [minute, minute + 2]
    assert found.column("ts").to_pylist() == [start, start + datetime.timedelta(seconds=120)]


def test_one_event_or_none():
    assert jumped(sw.Rows(3), sw.Every(1), [7]) == [(1, 7, 1)]
    for every in (sw.Every(2), sw.Every(time=2), sw.Every(time=2, anchor="tuple")):
        assert jumped(sw.Range(3), every, []) == []


# --- Mistakes -----------------------------------------------------------------------------------------------

X = {"ts": np.arange(5), "x": np.ones(5)}


@pytest.mark.parametrize(
    ("every", "says"),
    [
        ({}, "says nothing"),
        ({"rows": 0}, "rows > 0"),
        ({"rows": 1.5}, "neither a whole number"),
        ({"rows": True}, "neither a whole number"),
        ({"time": -1}, "time > 0"),
        ({"rows": 1, "time": 2}, "both rows and time"),
        ({"rows": "0s"}, "never passes"),
        ({"rows": "often"}, "not a duration"),
        ({"rows": 3, "anchor": "end"}, "neither"),
        ({"rows": 3, "per_key": 1}, "neither True nor False"),
    ],
)
def test_a_frequency_that_means_nothing_is_refused(every: dict[str, Any], says: str) -> None:
    with pytest.raises(sw.BadQuery, match=says):
        sw.Every(**every)


def test_a_bare_number_counts_rows_and_a_duration_is_time():
    assert sw.Every(1000) == sw.Every(rows=1000, anchor="tuple")
    assert sw.Every("1m") == sw.Every(time="1m") != sw.Every("1m", anchor="tuple")
    assert sw.Every(datetime.timedelta(minutes=1)).by_time


def test_queries_evaluated_together_share_one_frequency():
    queries = [sw.Query(sw.count(), sw.Rows(2), f"q{n}", every=sw.Every(n)) for n in (2, 3)]
    with pytest.raises(sw.BadQuery, match="share one `every`"):
        sw.evaluate(queries, X)
    with pytest.raises(sw.BadQuery, match="share one `every`"):
        sw.evaluate([queries[0], sw.Query(sw.count(), sw.Rows(2))], X)


def test_what_can_not_be_meant_says_so():
    query = sw.Query(sw.count(), sw.Rows(2), "n", every=sw.Every(2))
    with pytest.raises(sw.BadQuery, match="`at`"):
        sw.evaluate([query], X, at={"ts": np.array([3])})
    with pytest.raises(sw.BadQuery, match="no key"):
        sw.evaluate([sw.Query(sw.count(), sw.Rows(2), every=sw.Every(2, per_key=True))], X)
    with pytest.raises(sw.BadQuery, match="integer column"):
        sw.evaluate([sw.Query(sw.count(), sw.Rows(2), every=sw.Every("1m"))], X)
    with pytest.raises(sw.BadQuery, match="is no frequency"):
        sw.Query(sw.count(), sw.Rows(2), every=100)  # type: ignore[arg-type]
    with pytest.raises(sw.BadQuery, match="is no stream"):
        sw.Query(sw.count(), sw.Rows(2), source="SELECT 1")  # type: ignore[arg-type]
    with pytest.raises(sw.BadQuery, match="name of a column"):
        sw.evaluate([sw.Query(sw.count(), sw.Rows(2), "tick", every=sw.Every(2))], X)
    with pytest.raises(sw.UnknownColumn, match="reads"):
        sw.evaluate([sw.Query(sw.sum("y"), sw.Rows(2), every=sw.Every(2))], X)


def test_ticks_are_not_claimed_to_see_what_nobody_read_when_it_came():
    """The event at 59 waits without its i: windows are whole once they begin after it, not after the watermark."""
    engine = sw.Engine(lateness=3)
    engine.append({"ts": [29, 59], "i": [5, 7]})
    engine.register(sw.Query(sw.sum("i"), sw.Range(50), "total", every=sw.Every(time=1)))
    assert engine.stats()["complete_since"] == {"total": 109}
    engine.append({"ts": [108], "i": [1]})
    engine.advance(120)
    assert dict(zip(*engine.emitted().select(["ts", "value"]).to_pydict().values()))[109] == 1


# --- Windows that lie ahead, see peers, never end, or begin with the calendar ---------------------------------------

AHEAD = st.integers(-9, 3)
FURTHER = (
    st.builds(lambda u, n: oracle.Rows(u + n, u), AHEAD, st.integers(1, 9))
    | st.builds(lambda u, n, p: oracle.Range(u + n, u, "both", p), AHEAD, st.integers(1, 9), st.booleans())
    | st.builds(oracle.Range, st.integers(1, 9), st.just(0), st.just("right"), st.just(True))
    | st.builds(oracle.Unbounded, AHEAD, st.booleans())
)
FURTHER_QUERY = st.tuples(st.sampled_from(AGGREGATES), FURTHER | WINDOWS, st.sampled_from([None, *WHERE]), HAVING)


@given(st.lists(FURTHER_QUERY, min_size=1, max_size=3), FREQUENCIES, EVENTS, KEYS)
def test_ticks_of_windows_that_lie_ahead_see_peers_or_never_end_are_those_of_the_oracle(asked, every, events, key):
    every = oracle_ticks.Every(every.rows, every.time, every.anchor, every.per_key and key is not None)
    queries, theirs = both(asked, our_every(every))
    assert_rows(oracle_ticks.ticks(theirs, every, events, key), sw.evaluate(queries, table(events), key=key))


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("every", [sw.Every("6h"), sw.Every("6h", anchor="tuple"), sw.Every(5)])
def test_ticks_of_windows_of_the_calendar_are_lookups_at_those_times(every, key):
    hours = np.datetime64("2024-03-09T00", "s") + np.array([1, 5, 20, 23, 40, 41, 42, 55, 90, 100, 101, 130]) * 3600
    events = pa.table({"ts": hours.astype("datetime64[s]"), "k": [1, 2] * 6, "x": np.arange(12)})
    windows = [sw.Since("1d", "America/New_York"), sw.Since("1w"), sw.Since("1h")]
    plain = [sw.Query(sw.sum("x"), window, f"q{i}") for i, window in enumerate(windows)]
    found = sw.evaluate([sw.Query(q.aggregate, q.window, q.name, every=every) for q in plain], events, key=key)
    names = [query.name for query in plain]
    want = sw.evaluate(plain, events, at=found.drop_columns(["tick", *names]), key=key)
    assert found.num_rows and found.select(names).to_pylist() == want.select(names).to_pylist()
