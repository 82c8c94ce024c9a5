"""Statements and the queries that they are: the same objects that Python makes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import frames as fr
import swag as sw
from swag.query.groupings import settled

M5, R3 = sw.Range("5m"), sw.Rows(3)


def one(text: str) -> Any:
    """The query of a statement, without what it says after GROUP BY: see the tests of groupings below."""
    [query] = sw.sql(text)
    return settled(query) if isinstance(query, sw.Query) else query


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("SELECT AVG(shares) FROM trades [ROWS 10000]", sw.Query(sw.mean("shares"), sw.Rows(10_000))),
        (
            "SELECT AVG(shares) FROM trades [RANGE BETWEEN 2 MINUTES AND 1 MINUTE PRECEDING]",
            sw.Query(sw.mean("shares"), sw.Range("2m", until="1m")),
        ),
        (
            "SELECT symbol, SUM(volume) FROM trades [RANGE 300] GROUP BY symbol HAVING SUM(volume) > 1000",
            sw.Query(sw.sum("volume"), sw.Range(300), having=(">", 1000)),
        ),
        (
            "SELECT site, COUNT(*) FROM cpu [RANGE 1 HOUR, FREQUENCY 1000 TUPLES] WHERE load < 30 GROUP BY site",
            sw.Query(sw.count(), sw.Range("1h"), where="load < 30", every=sw.Every(1000)),
        ),
        (
            "SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM cpu [RANGE 1 HOUR, FREQUENCY 1000 TUPLES] WHERE load < 30) "
            "[RANGE 1 HOUR, FREQUENCY 1 HOUR]",
            sw.Query(
                sw.mean("n"),
                sw.Range("1h"),
                every=sw.Every("1h", anchor="tuple"),
                source=sw.Query(sw.count(), sw.Range("1h"), "n", "load < 30", every=sw.Every(1000)),
            ),
        ),
        (
            "SELECT K, SUM(A) FROM S [RANGE 300, FREQUENCY 10 TUPLES PARTITIONED BY K] GROUP BY K",
            sw.Query(sw.sum("A"), sw.Range(300), every=sw.Every(10, per_key=True)),
        ),
    ],
)
def test_windows_and_frequencies(text: str, query: sw.Query) -> None:
    assert one(text) == query


DOWN = """
    SELECT symbol FROM trades WHERE exchange = 'NASDAQ' GROUP BY symbol
    HAVING LAST(price) OVER [RANGE 20 MINUTES] BETWEEN 20 AND 200
       AND LAST(price) OVER [RANGE 20 MINUTES] < 0.98 * FIRST(price) OVER [RANGE 20 MINUTES]
       AND SUM(volume) FILTER (WHERE side = 'ask') OVER [RANGE 2 MINUTES] >= 0.7 * SUM(volume) OVER [RANGE 2 MINUTES]
"""
SURGE = """
    SELECT symbol FROM trades [RANGE 30 MINUTES] GROUP BY symbol
    HAVING LAST(price) BETWEEN 20 AND 200 AND (MAX(price) - MIN(price)) / LAST(price) > 0.03
       AND AVG(volume) OVER [RANGE 5 MINUTES] > 4 * AVG(volume) OVER [RANGE 30 MINUTES UNTIL 5 MINUTES]
"""


def test_the_traderbot_queries_are_one_statement_each() -> None:
    """Section 1.1.2 of Arasu & Widom: moved down 2 % in 20 minutes under buying pressure; a spread with a surge."""
    last, first = sw.last("price").over(sw.Range("20m")), sw.first("price").over(sw.Range("20m"))
    volume = sw.sum("volume").over(sw.Range("2m"))
    wanted = last.between(20, 200) & (last < 0.98 * first) & (volume.filter("side = 'ask'") >= 0.7 * volume)
    assert one(DOWN) == sw.Query(having=wanted, where="exchange = 'NASDAQ'")

    price, recent, before = sw.last("price"), sw.Range("5m"), sw.Range("30m", until="5m")
    spread = (sw.max("price") - sw.min("price")) / price > 0.03
    wanted = price.between(20, 200) & spread & (sw.mean("volume").over(recent) > 4 * sw.mean("volume").over(before))
    assert one(SURGE) == sw.Query(having=wanted, window=sw.Range("30m"))


def test_the_traderbot_queries_name_the_stocks_they_ask_for() -> None:
    minutes: list[tuple[Any, ...]] = [
        (0, "old", "NASDAQ", 100.0, 10, "ask"),  # its first price is out of reach at minute 21
        (5, "old", "NASDAQ", 97.0, 10, "ask"),
        *((5, name, "NASDAQ", 100.0, 10, "bid") for name in ("down", "bid", "calm", "slow", "loud")),
        (5, "else", "NYSE", 100.0, 10, "bid"),
        (5, "cheap", "NASDAQ", 10.0, 10, "bid"),
        (20, "down", "NASDAQ", 97.0, 30, "bid"),
        (20, "bid", "NASDAQ", 97.0, 31, "bid"),
        *((21, name, "NASDAQ", 97.0, 70, "ask") for name in ("old", "down", "bid")),
        (21, "else", "NYSE", 97.0, 70, "ask"),
        (21, "cheap", "NASDAQ", 9.0, 70, "ask"),
        (21, "calm", "NASDAQ", 98.0, 41, "ask"),
        (21, "slow", "NASDAQ", 104.0, 40, "bid"),
        (21, "loud", "NASDAQ", 104.0, 41, "bid"),
    ]
    columns = dict(
        zip(("ts", "symbol", "exchange", "price", "volume", "side"), zip(*minutes, strict=True), strict=True)
    )
    trades = pa.table({**columns, "ts": pa.array([60 * ts for ts in columns["ts"]], pa.timestamp("s"))})
    engine = sw.Engine(key="symbol")
    down, surge = engine.register(f"{DOWN};{SURGE}")
    engine.append(trades)
    assert engine.lookup(down)["symbol"].to_pylist() == ["down"]
    assert sorted(engine.lookup(surge)["symbol"].to_pylist()) == ["bid", "down", "else", "loud", "old"]
    passed = sw.evaluate(DOWN, trades, key="symbol")
    assert [row["symbol"] for row in passed.to_pylist() if row[down]] == ["old", "down"]  # old: at minute 5


@pytest.mark.parametrize(
    ("clause", "window"),
    [
        ("RANGE 5m", M5),
        ("range 5 minute", M5),
        ("RANGE 5 MINUTES PRECEDING", M5),
        ("RANGE INTERVAL '5' MINUTE", M5),
        ("RANGE INTERVAL '5 minutes'", M5),
        ("RANGE BETWEEN 5 MINUTES PRECEDING AND CURRENT ROW", M5),
        ("RANGE 1.5 HOURS", sw.Range("1.5h")),
        ("RANGE 2 WEEKS", sw.Range("14d")),
        ("RANGE 250 MILLISECONDS UNTIL 3 us", sw.Range("250ms", until="3us")),
        ("RANGE 5 MINUTES CLOSED LEFT", sw.Range("5m", closed="left")),
        ("RANGE 300 UNTIL 60 CLOSED BOTH", sw.Range(300, until=60, closed="both")),
        ("ROWS 3", R3),
        ("ROWS 3 ROWS PRECEDING", R3),
        ("ROWS 3 TUPLES UNTIL 1", sw.Rows(3, until=1)),
        ("ROWS BETWEEN 3 AND 1 PRECEDING", sw.Rows(3, until=1)),
    ],
)
def test_windows(clause: str, window: Any) -> None:
    assert one(f"SELECT SUM(x) FROM t [{clause}]") == sw.Query(sw.sum("x"), window)
    assert one(f"SELECT SUM(x) OVER [{clause}] FROM t") == sw.Query(sw.sum("x"), window)


@pytest.mark.parametrize(
    ("clause", "every"),
    [
        ("10 TUPLES", sw.Every(10)),
        ("1 ROW", sw.Every(1)),
        ("60", sw.Every(time=60, anchor="tuple")),
        ("1 MINUTE", sw.Every("1m", anchor="tuple")),
        ("1 MINUTE ANCHOR TUPLE", sw.Every("1m", anchor="tuple")),
        ("1m ANCHORED AT TICK", sw.Every("1m")),
        ("10 TUPLES PARTITIONED", sw.Every(10, per_key=True)),
    ],
)
def test_frequencies(clause: str, every: sw.Every) -> None:
    assert one(f"SELECT SUM(x) FROM t [ROWS 3, FREQUENCY {clause}]") == sw.Query(sw.sum("x"), R3, every=every)
    assert one(f"SELECT SUM(x) FROM t [FREQUENCY {clause}, ROWS 3]") == sw.Query(sw.sum("x"), R3, every=every)


@pytest.mark.parametrize("clause", ["60", "1 MINUTE", "1 MINUTE PARTITIONED BY k"])
def test_frequency_is_anchored_at_the_tuple_and_every_at_the_tick_unless_told_otherwise(clause: str) -> None:
    amount, _, partitioned = clause.partition(" PARTITIONED")
    partitioned = " PARTITIONED" + partitioned if partitioned else ""
    grouped = "GROUP BY k" if partitioned else ""

    def anchor(often: str) -> str:
        query = one(f"SELECT SUM(x) FROM t [ROWS 3, {often}{partitioned}] {grouped}")
        assert query.every is not None and one(str(query)) == query
        return query.every.anchor

    assert anchor(f"FREQUENCY {amount}") == anchor(f"EVERY {amount} ANCHOR TUPLE") == "tuple"
    assert anchor(f"EVERY {amount}") == anchor(f"FREQUENCY {amount} ANCHOR TICK") == "tick"


@pytest.mark.parametrize(
    ("text", "aggregate"),
    [
        ("COUNT(*)", sw.count()),
        ("count()", sw.count()),
        ("COUNT(1)", sw.count()),
        ("COUNT(x)", sw.count("x")),
        ("sum(x)", sw.sum("x")),
        ("Avg(x)", sw.mean("x")),
        ("MEAN(x)", sw.mean("x")),
        ("MIN(x)", sw.min("x")),
        ("MAX(x)", sw.max("x")),
        ("FIRST(x)", sw.first("x")),
        ("LAST_VALUE(x)", sw.last("x")),
        ("VAR(x)", sw.var("x")),
        ("VARIANCE(x)", sw.var("x")),
        ("VAR_POP(x)", sw.var("x", ddof=0)),
        ("STDDEV(x)", sw.std("x")),
        ("STDDEV_SAMP(x)", sw.std("x")),
        ("STDDEV_POP(x)", sw.std("x", ddof=0)),
        ("STD(x, 2)", sw.std("x", ddof=2)),
        ("WMEAN(x, y)", sw.wmean("x", "y")),
        ("COVAR(x, y)", sw.cov("x", "y")),
        ("COVAR_POP(x, y)", sw.cov("x", "y", ddof=0)),
        ("CORR(x, y)", sw.corr("x", "y")),
        ("QUANTILE(x, 0.99)", sw.quantile("x", 0.99)),
        ("QUANTILE(x, 0.99, 'linear')", sw.quantile("x", 0.99, method="linear")),
        ("PERCENTILE_CONT(0.99) WITHIN GROUP (ORDER BY x)", sw.quantile("x", 0.99, method="linear")),
        ("MEDIAN(x)", sw.median("x")),
        ('SUM("Total Volume")', sw.sum("Total Volume")),
        ("SUM(t.x)", sw.sum("x")),
    ],
)
def test_aggregates(text: str, aggregate: sw.Aggregate) -> None:
    assert one(f"SELECT {text} FROM t [ROWS 3]") == sw.Query(aggregate, R3)


X, N = sw.sum("x"), sw.count()


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("SUM(x) / COUNT(*)", X / N),
        ("SUM(x) - 1 - COUNT(*) * 2", X - 1 - N * 2),
        ("SUM(x) - (1 - COUNT(*))", X - (1 - N)),
        ("-SUM(x) + -2", -X + -2),
        ("SUM(x) * (60 * 1000)", X * 60_000),
        ("ABS(SUM(x)) + COALESCE(SUM(y), 0)", abs(X) + sw.sum("y").coalesce(0)),
        ("SUM(x) FILTER (WHERE a = 1)", X.filter("a = 1")),
        ("SUM(x) OVER [ROWS 5] / SUM(x)", X.over(sw.Rows(5)) / X),
        ("SUM(x) FILTER (WHERE a = 1) OVER [ROWS 5] - SUM(x)", X.filter("a = 1").over(sw.Rows(5)) - X),
        ("LAST(side) = 'it''s'", sw.last("side").eq("it's")),
        ("SUM(x) > 1 AND SUM(x) < 5 OR NOT COUNT(*) IN (1, 2)", ((X > 1) & (X < 5)) | ~N.isin([1, 2])),
        ("SUM(x) NOT BETWEEN 1 AND 5", ~X.between(1, 5)),
        ("SUM(x) IS NOT NULL", ~X.is_null()),
        ("SUM(x) != 5 AND 5 < SUM(x)", X.ne(5) & (X > 5)),
        ("SUM(x) > 1e3", X > 1000.0),
    ],
)
def test_expressions(text: str, term: Any) -> None:
    assert one(f"SELECT {text} FROM t [ROWS 3]") == sw.Query(term, R3)


def test_several_aggregates_statements_names_and_comments() -> None:
    text = """
        -- two answers per symbol
        SELECT symbol, SUM(volume) AS vol, AVG(price) "mean price" /* per share */
        FROM trades [RANGE 5 MINUTES] AS t WHERE t.price > 0 GROUP BY t.symbol HAVING vol > 1000;
        select count(*) n from t [rows 3];
    """
    vol, price, n = sw.sql(text)
    assert vol == sw.Query(sw.sum("volume"), M5, "vol", "price > 0", (">", 1000), by="symbol")
    assert price == sw.Query(sw.mean("price"), M5, "mean price", "price > 0", sw.sum("volume") > 1000, by=("symbol",))
    assert n == sw.Query(sw.count(), R3, "n", by=())
    assert (vol.stream, n.stream) == ("trades", "t")


def test_group_by_is_the_grouping_of_a_query_also_of_several_columns() -> None:
    [query] = sw.sql("SELECT card, country, SUM(x) AS s FROM t [ROWS 3] GROUP BY card, country")
    assert query == sw.Query(sw.sum("x"), R3, "s", by=["card", "country"])
    assert sw.sql(str(query)) == [query]


def test_a_condition_has_a_name_if_it_is_selected_too() -> None:
    text = "SELECT k, COUNT(*) > 3 AND SUM(x) > 1 AS hot FROM t [ROWS 3] GROUP BY k HAVING hot"
    assert one(text) == sw.Query(name="hot", window=R3, having=(N > 3) & (X > 1))


def test_an_index_can_be_declined() -> None:
    text = "SELECT /*+ NO_INDEX */ k, SUM(x) FROM t [RANGE 9] GROUP BY k HAVING SUM(x) > 5"
    assert one(text) == sw.Query(X, sw.Range(9), having=(">", 5), index=False)


EITHER = fr.Threshold("level IN ('warn', 'error') OR hot", partition=True)
PREDICATE = fr.Threshold("drop_pct > 0.3 AND load > 2", min_duration="2m")
LATER = fr.Between("x > 5 OR hot", "x < 2 AND y = 1", same=True, min_duration="2m")


@pytest.mark.parametrize(
    ("clause", "spec"),
    [
        ("WHERE drop_pct > 0.3 FOR 2 MINUTES", fr.Threshold("drop_pct", ">", 0.3, min_duration="2m")),
        ("WHERE drop_pct >= 1 FOR 20 TUPLES", fr.Threshold("drop_pct", ">=", 1, min_rows=20)),
        ("WHERE 0 = a FOR AT LEAST 2 ROWS AND 60", fr.Threshold("a", "==", 0, min_rows=2, min_duration=60)),
        ("WHERE a < -1 PARTITION", fr.Threshold("a", "<", -1, partition=True)),
        ("UNTIL SUM(volume) >= 25", fr.Aggregate(sw.sum("volume"), ">=", 25)),
        ("WHILE MAX(x) <= 2.5", fr.Aggregate(sw.max("x"), "<=", 2.5)),
        ("WHILE MIN(x) > 0", fr.Aggregate(sw.min("x"), ">", 0, close="before")),
        ("UNTIL MAX(x) - MIN(x) > 3", fr.Aggregate(sw.max("x") - sw.min("x"), ">", 3)),
        ("UNTIL COUNT(DISTINCT x) >= 3", fr.Aggregate(sw.count_distinct("x"), ">=", 3)),
        ("WHILE DECAYED_SUM(x, INTERVAL '1' HOUR) < 9", fr.Aggregate(sw.decayed_sum("x", half_life="1h"), "<", 9)),
        (
            "UNTIL COUNT(DISTINCT x) - COUNT(DISTINCT y) > 3 OR MODE(y) > 2",
            fr.Aggregate((sw.count_distinct("x") - sw.count_distinct("y") > 3) | (sw.mode("y") > 2)),
        ),
        ("WHILE SUM(x) < 9 AND COUNT(*) <= 3", fr.Aggregate((sw.sum("x") < 9) & (sw.count() <= 3))),
        (
            "UNTIL SUM(x) FILTER (WHERE y > 1) >= 2 * COUNT(*) OR COUNT(*) > 9",
            fr.Aggregate((sw.sum("x").filter("y > 1") >= 2 * sw.count()) | (sw.count() > 9)),
        ),
        ("DELTA fl 0.05", fr.Delta("fl", 0.05)),
        ("DELTA temp * 0.8 + sal 0.1", fr.Delta("temp * 0.8 + sal", 0.1)),
        ("DELTA ABS(x) > 2", fr.Delta("ABS(x)", 2, op=">")),
        ("GRID x / 2 4.25, y 4.2", fr.Boundary({"x / 2": 4.25, "y": 4.2})),
        ("GRID (x - y) BREAKS (1, 2)", fr.Boundary("x - y", breaks=[1, 2])),
        ("DELTA rho 0.1, dye 0.2 MEASURE RANGE", fr.Delta({"rho": 0.1, "dye": 0.2}, measure="range")),
        ("DELTA x >= 3", fr.Delta("x", 3, op=">=")),
        ("GRID x 4.25, y 4.2", fr.Boundary({"x": 4.25, "y": 4.2})),
        ("GRID speed (-20, 40, 60)", fr.Boundary("speed", breaks=[-20, 40, 60])),
        ('GRID "Top Speed" BREAKS (1)', fr.Boundary("Top Speed", breaks=[1])),
        ("WHERE drop_pct > 0.3 AND load > 2 FOR 2 MINUTES", PREDICATE),
        (
            "WHERE level IN ('warn', 'error') OR hot PARTITION",
            fr.Threshold("level IN ('warn', 'error') OR hot", partition=True),
        ),
        ("WHERE x > y FOR AT MOST 9 ROWS AND 60", fr.Threshold("x > y", max_rows=9, max_duration=60)),
        ("SESSION 30 MINUTES", fr.Session("30m")),
        ("SESSION 30 FOR 2 TUPLES EXTENT OPEN", fr.Session(30, min_rows=2, extent="open")),
        ("STATE status FOR AT LEAST 3 ROWS AT MOST 1 HOUR", fr.State("status", min_rows=3, max_duration="1h")),
        ("FROM x > 5 TO x < 2", fr.Between("x > 5", "x < 2")),
        ("FROM x > 5 OR hot TO x < 2 AND y = 1 SAME FOR 2 MINUTES", LATER),
        ("UNTIL SUM(volume) >= 25 FOR AT MOST 1 HOUR", fr.Aggregate(sw.sum("volume"), ">=", 25, max_duration="1h")),
        ("DELTA x 3 MEASURE RANGE FOR 2 ROWS", fr.Delta("x", 3, measure="range", min_rows=2)),
        ("GRID x 4 FOR AT MOST 3 ROWS EXTENT OPEN", fr.Boundary("x", 4, max_rows=3, extent="open")),
    ],
)
def test_frames(clause: str, spec: Any) -> None:
    text = f"SELECT k, AVG(a), COUNT(*) AS n FROM t [FRAME {clause}] GROUP BY k"
    query = fr.FrameQuery(spec, [sw.mean("a"), ("n", sw.count())])
    assert one(text) == query
    assert sw.sql(str(query)) == [query]


REPORTS = {
    "ts": [1, 2, 3, 4, 5, 6, 7],
    "k": list("abababa"),
    "v": [0, 5, 9, 8, 7, 0, 1],
    "w": [1.0, 2.0, None, 4.0, 5.0, 6.0, 7.0],
}


def test_frame_statements_give_a_row_per_frame() -> None:
    text = "SELECT AVG(w), COUNT(*) FILTER (WHERE v > 7) AS high FROM t [FRAME WHERE v >= 5 FOR 3 TUPLES]"
    assert sw.evaluate(text, REPORTS).to_pylist() == [
        {"frame_id": 0, "start": 2, "end": 5, "rows": 4, "mean(w)": 11 / 3, "high": 2}
    ]
    # a: v 0 | 9 7 | 1 at ts 1 | 3 5 | 7; b: v 5 8 0 at ts 2 4 6, where 0 is within 6 of 5
    keyed = "SELECT k, MAX(v) - MIN(v) AS spread FROM t [FRAME DELTA v 6] WHERE v < 8 GROUP BY k HAVING COUNT(*) >= 2"
    answer = sw.evaluate(keyed, REPORTS, key="k")
    assert answer.column_names == ["frame_id", "k", "start", "end", "rows", "spread"]
    assert answer.drop_columns(["frame_id"]).to_pylist() == [{"k": "b", "start": 2, "end": 6, "rows": 3, "spread": 5}]


def test_frames_are_asked_for_alone() -> None:
    text = "SELECT COUNT(*) FROM t [FRAME DELTA v 6]"
    with pytest.raises(sw.BadQuery, match="one row per frame"):
        sw.evaluate([*sw.sql(text), sw.Query(N, R3)], REPORTS)
    with pytest.raises(sw.BadQuery, match="one row per frame"):
        sw.evaluate(text, REPORTS, at={"ts": [3]})
    assert sw.evaluate(text, REPORTS, key="k") == sw.evaluate(text, REPORTS)  # it has no GROUP BY


def test_queries_run_as_text() -> None:
    text = "SELECT k, SUM(v) AS s FROM t [ROWS 2] GROUP BY k; SELECT k, COUNT(*) AS n FROM t [RANGE 4] GROUP BY k"
    assert sw.evaluate(text, REPORTS, key="k").column_names == ["k", "ts", "s", "n"]
    engine = sw.Engine(key="k")
    assert engine.register(text) == ["s", "n"]
    engine.append(REPORTS)
    assert engine.lookup("s", key="a") == 8
