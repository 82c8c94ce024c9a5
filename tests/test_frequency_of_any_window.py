"""The frequency operator beside windows that lie ahead, see peers or never end, and SQL over columns inside."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swag as sw
from tests import oracle, oracle_ticks
from tests.oracle import agg
from tests.test_frequency_operator import (
    BEYOND,
    BOTH,
    EVERY,
    LATENESS,
    LOADS,
    STREAM,
    apart,
    assert_same,
    flown,
    of,
    ours,
    table,
    with_both,
)

FEWER = settings(max_examples=settings.default.max_examples // 3)  # each example is an engine or two

EDGE = st.integers(-6, 6)
LENGTH = st.integers(1, 9)
CLOSED = st.sampled_from(["right", "left", "both", "none"])
ROWS = st.builds(lambda u, n: oracle.Rows(u + n, u), EDGE, LENGTH)
RANGES = st.builds(lambda u, n, c, p: oracle.Range(u + n, u, c, p), EDGE, LENGTH, CLOSED, st.booleans())
UNBOUNDED = st.builds(oracle.Unbounded, EDGE, st.booleans())
PARTITION = st.sampled_from([("id",), ("site",)])


def window(over: Any) -> Any:
    if isinstance(over, oracle.Rows):
        return sw.Rows(over.n, until=over.until)
    if isinstance(over, oracle.Unbounded):
        return sw.Unbounded(until=over.until, peers=over.peers)
    return sw.Range(over.t, until=over.until, closed=over.closed, peers=over.peers)


@FEWER
@given(EVERY, PARTITION, ROWS | RANGES | UNBOUNDED, st.sampled_from(list(LOADS)), STREAM)
def test_a_tick_of_a_partition_sees_what_comes_after_it(
    every: Any, by: Any, over: Any, where: Any, stream: Any
) -> None:
    events = of(stream)
    query = sw.Query(sw.sum("load"), window(over), "q", where, every=ours(every, by), by=BOTH)
    expected = oracle_ticks.of_partitions(
        [oracle.Q(agg("sum", "load"), over, LOADS[where])], every, by, with_both(events), "both"
    )
    assert [tuple(row.values()) for row in sw.evaluate(query, table(events)).to_pylist()] == apart(expected)


@FEWER
@given(EVERY, PARTITION, STREAM, LATENESS)
def test_partitions_tick_over_all_that_has_come(every: Any, by: Any, stream: Any, lateness: int | None) -> None:
    query = sw.Query(sw.sum("load + 1"), sw.Unbounded(), "q", every=ours(every, by), by=BOTH)
    events, emitted, _ = flown([query], stream, lateness)
    more = [e | {"load": None if e["load"] is None else e["load"] + 1} for e in with_both(events)]
    upto = oracle_ticks.end_of(events, 0) + BEYOND
    last = None if every.time is None else oracle_ticks.slot(upto, every.time)
    own = oracle.Q(agg("sum", "load"), oracle.Unbounded())
    expected = apart(oracle_ticks.of_partitions([own], every, by, more, "both", last))
    assert_same([row for row in expected if row[1] <= upto], [row for row in emitted("q") if row[1] <= upto])


INSIDE = (
    "SELECT id, site, LAST(load * 2) AS last, COUNT(*) AS n FROM s [RANGE 12, FREQUENCY 3 TUPLES] GROUP BY id, site"
)
STATEMENTS = {
    "picked": "SELECT site, SUM(load * 2) AS picked FROM (SELECT * FROM s [FREQUENCY 2 TUPLES PARTITIONED BY id] "
    "WHERE load + 1 > 3) [RANGE 20, FREQUENCY 2 TUPLES] GROUP BY site",
    "ahead": "SELECT site, SUM(load * 2) AS ahead FROM (SELECT * FROM s [FREQUENCY 2 TUPLES]) "
    "[RANGE BETWEEN 9 PRECEDING AND 4 FOLLOWING, FREQUENCY 3 TUPLES] GROUP BY site",
    "over": f"SELECT id, site, SUM(last + n) AS over FROM ({INSIDE}) [ROWS 3, FREQUENCY 2 TUPLES] GROUP BY id, site",
    "otherwise": f"SELECT site, MAX(last - n) AS otherwise FROM ({INSIDE}) [RANGE 9, FREQUENCY 4 TUPLES] GROUP BY site",
    "relation": f"SELECT site, SUM(last * n) AS relation FROM ({INSIDE}) WHERE last + n < 90 GROUP BY site",
}  # fmt: skip


@FEWER
@given(STREAM, LATENESS, st.booleans())
def test_sql_over_columns_reads_chosen_events_and_answers_as_it_does_events(
    stream: Any, lateness: int | None, hold: bool
) -> None:
    queries = sw.sql("; ".join(STATEMENTS.values()))
    events, emitted, _ = flown(queries, stream, lateness, hold)
    for query in queries:
        stored = [tuple(row.values()) for row in sw.evaluate(query, table(events)).to_pylist()]
        assert_same(stored, emitted(query.label))


def test_what_is_not_chosen_is_not_computed() -> None:
    events = {"ts": [1, 2, 3], "x": ["1", "none", "3"]}
    chosen = sw.Events("x <> 'none'", sw.Events(every=sw.Every(1)))
    query = sw.Query(sw.sum("CAST(x AS BIGINT)"), sw.Rows(9), "q", source=chosen)
    assert sw.evaluate(query, events)["q"].to_pylist() == [1, 4]


def test_an_engine_refuses_partitions_of_windows_that_lie_ahead() -> None:
    query = sw.Query(sw.count(), sw.Range(5, until=-5), "q", every=sw.Every(3, by="site"), by=BOTH)
    with pytest.raises(sw.BadQuery, match=r'query "q".*does not count by site'):
        sw.Engine().register(query)
