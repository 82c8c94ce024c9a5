"""A statement over frames gives on Spark the rows that it gives in memory."""

import numpy as np
import pyarrow as pa
import pytest

import frames as fr
import frames.spark
import swag as sw
import swag.spark
from swag.spark import Layout
from tests.spark.compare import assert_same
from tests.spark.streams import run, source, write
from tests.spark.test_frames import SMALL, SPECS, pieces, some_events, told_apart

SECOND = 1_000_000
CUT = Layout(tasks=3, sample=1.0, block_rows=60)  # one key is cut; pieces fill many blocks

STATEMENTS = [
    "SELECT AVG(x), COUNT(*) AS n FROM s [FRAME WHERE x > 0.3 FOR 3 AND 2 TUPLES]",
    "SELECT MAX(x), COUNT(x) FROM s [FRAME DELTA x 0.8] WHERE n <> 4",
    "SELECT SUM(n) FILTER (WHERE x > 0) AS high, SUM(n) AS n FROM s [FRAME UNTIL SUM(n) >= 25] WHERE ts < 800",
    "SELECT (MAX(x) - MIN(x)) / COUNT(*) AS spread FROM s [FRAME GRID x 0.5, n (2, 5)] HAVING COUNT(*) > 1",
    """SELECT AVG(x) FILTER (WHERE NOT n > 6) AS low, COALESCE(SUM(n) FILTER (WHERE x IS NULL), 0) AS lost, MEDIAN(x),
              LAST(id) FROM s [FRAME WHERE x <= 0 FOR 3 TUPLES PARTITION] WHERE id > 20 AND x < 0.9 OR x IS NULL
       HAVING NOT (AVG(x) > -0.5 AND SUM(n) FILTER (WHERE n < 8) > 40)""",
]
TIED = [
    f"SELECT FIRST(id) AS first, LAST(id) AS last, COUNT(*) AS n, SUM(n) AS s FROM s [FRAME {clause}]"
    for clause in (
        "WHERE x > 0.3 FOR 2 TUPLES", "WHERE x <= 0 FOR 3 TUPLES PARTITION", "DELTA x 0.8", "UNTIL SUM(n) >= 25",
        "WHILE SUM(n) < 12", "GRID x 0.5, n (2, 5)", "WHERE x > 0.3 EXTENT OPEN",
    )
]  # fmt: skip


def grouped(text: str) -> str:
    asked, having, condition = text.partition("HAVING")
    return f"{asked.replace('SELECT', 'SELECT key,', 1)} GROUP BY key {having}{condition}"


def test_a_row_per_frame_of_a_stream(spark):
    events = some_events()
    df = spark.createDataFrame(events).cache()
    for text in (STATEMENTS[1], STATEMENTS[4]):
        expected = sw.evaluate(text, events)
        assert expected.num_rows > 10
        assert_same(swag.spark.evaluate(text, df, layout=CUT).toArrow(), expected, by="frame_id")


def test_a_row_per_frame_of_each_key(spark):
    events = some_events()
    df = spark.createDataFrame(events).cache()
    assert pieces(df, "key", CUT) >= 2
    for text in map(grouped, STATEMENTS):
        found = swag.spark.evaluate(text, df, key="key", layout=CUT).toArrow()
        expected = sw.evaluate(text, events, key="key")
        assert expected.num_rows > 10
        assert_same(told_apart(found, "key"), told_apart(expected, "key"), by="number")


@pytest.mark.parametrize(
    ("layout", "asked"),
    [
        (CUT, [("key", text) for text in TIED]),
        (SMALL, [("key", TIED[1]), ("key", TIED[2]), (None, TIED[6]), (None, TIED[4])]),
    ],
    ids=["cut", "blocks"],
)
def test_frames_hold_their_own_events_where_others_share_a_ts(spark, layout, asked):
    events = some_events()
    events = events.set_column(0, "ts", pa.array(np.asarray(events["ts"]) // 90))  # each ts a dozen times, a key's too
    df = spark.createDataFrame(events).cache()
    for key, text in asked:
        statement = text if key is None else grouped(text)
        found = swag.spark.evaluate(statement, df, key=key, layout=layout).toArrow()
        expected = sw.evaluate(statement, events, key=key)
        assert expected["n"].to_pylist() == expected["rows"].to_pylist()
        assert_same(*(in_one_order(table, key) for table in (found, expected)), by="number")


def in_one_order(table: pa.Table, key: str | None) -> pa.Table:
    """Frames by their first event, of which no two have the same; numbered in place of frame_id."""
    order = [(name, "ascending") for name in ([key] if key else []) + ["first"]]
    table = table.drop_columns(["frame_id"]).sort_by(order)
    return table.append_column("number", pa.array(np.arange(table.num_rows)))


def test_no_events_have_no_frames(spark):
    empty = spark.createDataFrame(some_events().slice(0, 0))
    found = swag.spark.evaluate(STATEMENTS[4], empty).toArrow()
    expected = sw.evaluate(STATEMENTS[4], some_events().slice(0, 0))
    assert_same(found, expected, by="frame_id")


def test_keys_of_several_columns_and_aggregates_of_users(spark):
    events = some_events()
    sites = pa.array(np.arange(events.num_rows) % 2)
    both = pa.array([f"{k} {s}" for k, s in zip(events["key"].to_pylist(), sites.to_pylist())])
    events = events.append_column("site", sites).append_column("both", both)
    bits = sw.aggregate("n", lambda x: x, lambda a, b: a | b, lambda a: a, identity=0)
    query = fr.FrameQuery(fr.Delta("x", 0.8), {"bits": 2 * bits.filter("x > 0") + sw.count(), "n": bits}, "n < 7")
    found = swag.spark.evaluate(query, spark.createDataFrame(events), key=["key", "site"]).toArrow()
    expected = told_apart(sw.evaluate(query, events, key="both"), "both")
    assert found.column_names == ["frame_id", "key", "site", "start", "end", "rows", "bits", "n"]
    both = pa.array([f"{k} {s}" for k, s in zip(found["key"].to_pylist(), found["site"].to_pylist())])
    found = found.drop_columns(["key", "site"]).add_column(1, "both", both)
    assert_same(told_apart(found, "both"), expected, by="number")


def test_what_is_refused_before_any_job(spark):
    df = spark.createDataFrame(some_events())
    with pytest.raises(sw.BadQuery, match="one row per frame, which no other query has"):
        swag.spark.evaluate(f"{STATEMENTS[0]}; SELECT MAX(x) AS high FROM s [ROWS 2]", df)
    with pytest.raises(sw.BadQuery, match="nor does it take requests"):
        swag.spark.evaluate(STATEMENTS[0], df, at=df)
    with pytest.raises(sw.UnknownColumn, match='reads "m", but the events have: ts, key, x, n, id'):
        swag.spark.evaluate("SELECT COUNT(*) FROM s [FRAME DELTA x 1] WHERE m > 1", df)
    with pytest.raises(sw.BadType, match="can not be computed: key is"):
        swag.spark.evaluate("SELECT COUNT(*) FROM s [FRAME DELTA x 1] WHERE key > 1", df)
    for evaluate, events in ((swag.spark.evaluate, df), (sw.evaluate, some_events())):
        with pytest.raises(sw.BadQuery, match=r'max\(x\) is named "key", as the key is'):
            evaluate("SELECT key, MAX(x) AS key FROM s [FRAME DELTA x 1] GROUP BY key", events, key="key")
        place = "line 1, column 21: "
        with pytest.raises(
            sw.UnknownColumn, match=rf'^{place}mean\(depht\) reads "depht", but the events have: ts, key, x, n, id'
        ):
            evaluate("SELECT SUM(x) + AVG(depht) AS sum FROM s [FRAME DELTA x 1]", events)


def test_frames_that_overlap_hold_their_own_events(spark):
    events = some_events()
    events = events.set_column(0, "ts", pa.array(np.asarray(events["ts"]) // 90))
    values = {"first": sw.first("id"), "last": sw.last("id"), "n": sw.count(), "s": sw.sum("n")}
    query = fr.FrameQuery(SPECS[-1], values)
    found = swag.spark.evaluate(query, spark.createDataFrame(events), key="key", layout=SMALL).toArrow()
    expected = sw.evaluate(query, events, key="key")
    assert expected["n"].to_pylist() == expected["rows"].to_pylist()
    order = [(name, "ascending") for name in ("key", "first", "last", "rows")]
    assert_same(*(_numbered(each.drop_columns(["frame_id"]).sort_by(order)) for each in (found, expected)), by="number")


def _numbered(table: pa.Table) -> pa.Table:
    return table.append_column("number", pa.array(np.arange(table.num_rows)))


def test_frames_are_filled_from_another_stream(spark):
    reports, messages = some_events(), some_events(1)
    df, other = spark.createDataFrame(reports), spark.createDataFrame(messages)
    for extent in ("", " EXTENT OPEN"):
        text = f"""SELECT key, COUNT(*) AS c, SUM(m.n) FILTER (WHERE m.x > 0) AS s, MEDIAN(m.x) AS mid, AGE() AS age
            FROM reports [FRAME WHERE x > 0.3 FOR 2 TUPLES{extent}] FILL FROM messages AS m BEFORE 20 AFTER - 3
            WHERE id > 20 GROUP BY key HAVING COUNT(*) <> 1"""
        expected = told_apart(sw.evaluate(text, reports, messages=messages), "key")
        assert expected.num_rows > 10
        found = swag.spark.sql(text, reports=df, messages=other).toArrow()
        assert_same(told_apart(found, "key"), expected, by="number")
    with pytest.raises(sw.BadQuery, match='filled from "messages", which is not there'):
        swag.spark.sql(text, reports=df)
    with pytest.raises(sw.BadQuery, match='no query reads "messages"'):
        swag.spark.evaluate("SELECT SUM(n) FROM reports [ROWS 2]", df, messages=other)


def test_matches_of_a_pattern_are_those_of_sw_evaluate(spark):
    text = """SELECT k, low, "end", start FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts
        MEASURES LAST(B.x) AS low, FIRST(A.ts) AS start PATTERN (A B+) DEFINE B AS x < PREV(x))"""
    events = pa.table(
        {"ts": range(40), "k": ["ab"[i % 3 == 0] for i in range(40)], "x": [i * 7 % 10 for i in range(40)]}
    )
    found = swag.spark.evaluate(text, spark.createDataFrame(events)).toArrow()
    order = [("k", "ascending"), ("start", "ascending")]
    assert found.sort_by(order).to_pylist() == sw.evaluate(text, events).sort_by(order).to_pylist()


def test_a_stream_of_a_query_has_the_rows_that_an_engine_has(spark, tmp_path):
    second, count = 1_000_000, 40
    at = np.arange(count)
    events = pa.table({"ts": pa.array(at * 2 * second, pa.timestamp("us", "UTC")), "k": at % 3, "x": (at // 5) % 2,
                       "y": at * 0.5})  # fmt: skip
    write(tmp_path / "in", [events.slice(i, 20) for i in (0, 20)])
    (query,) = sw.sql("SELECT k, AVG(y) AS y, COUNT(*) AS n FROM s [FRAME WHERE x > 0 FOR 2 TUPLES] GROUP BY k")
    stream = source(spark, tmp_path / "in", "ts timestamp, k long, x long, y double")
    said = frames.spark.stream(query, stream, ts="ts", lateness="1 second", fragments=False)
    assert said.columns == ["frame_id", "k", "start", "end", "rows", "y", "n"]
    sink, _ = run(said, tmp_path / "checkpoint")
    engine = sw.Engine()
    (name,) = engine.register([query])
    engine.append(events.filter(pa.array(at * 2 < at[-1] * 2 - 1)))
    wanted = engine.emitted(name).to_pylist()
    assert len(wanted) > 5
    assert sorted((row[1], *row[4:]) for row in sink.rows) == sorted(
        (row["k"], row["rows"], row["y"], row["n"]) for row in wanted
    )
    clause = "PARTITION BY k MEASURES LAST(y) AS y PATTERN (A B) DEFINE B AS x < PREV(x)"
    dips = f"SELECT y, k FROM s MATCH_RECOGNIZE ({clause})"
    found, _ = run(frames.spark.stream(dips, stream, lateness="1 second"), tmp_path / "matches")
    matches = sw.evaluate(dips, events.filter(pa.array(at * 2 < at[-1] * 2 - 1))).to_pylist()
    assert sorted(found.rows) == sorted((row["y"], row["k"]) for row in matches) != []
    with pytest.raises(sw.BadQuery, match="groups by k, but the stream has key"):
        frames.spark.stream(query, stream, ts="ts", key="x")


def test_a_stream_of_frames_is_filled_from_another_as_an_engine_does_it(spark, tmp_path):
    """Messages are ten seconds behind, so that reports wait for them; keys of two columns; stopped, begun again."""
    at = np.arange(60)
    names = ["ab", "c"]
    reports = pa.table({"ts": pa.array(at * 2 * SECOND, pa.timestamp("us", "UTC")), "k": at % 3,
                        "name": [names[i % 2] for i in at], "x": (at // 9) % 2})  # fmt: skip
    messages = pa.table({"ts": pa.array(at * 2 * SECOND - 10 * SECOND, pa.timestamp("us", "UTC")), "bytes": at * 0.5,
                         "k": pa.array((at // 2) % 3, pa.int32()), "name": [names[i % 2] for i in at]})  # fmt: skip
    both = (("reports", reports), ("messages", messages))
    for name, table in both:
        write(tmp_path / name, [table.slice(i, 20) for i in (0, 20)])
    text = """SELECT k, name, SUM(m.bytes * 2) AS s, COUNT(*) AS n FROM reports [FRAME WHERE x > 0 FOR 2 TUPLES]
        FILL FROM messages AS m BEFORE 7 SECONDS GROUP BY k, name HAVING COUNT(*) <> 1"""
    found = source(spark, tmp_path / "reports", "ts timestamp, k long, name string, x long")
    other = source(spark, tmp_path / "messages", "ts timestamp, k int, name string, bytes double")
    said = frames.spark.stream(text, found, messages=other, lateness="1 second")
    assert said.columns == ["frame_id", "k", "name", "start", "end", "rows", "s", "n"]
    sink, reported = run(said, tmp_path / "checkpoint")
    for name, table in both:
        write(tmp_path / name, [table.slice(40)], first=2)
    sink, further = run(said, tmp_path / "checkpoint", sink)
    engine = sw.Engine()
    (name,) = engine.register(text)
    engine.append(reports.filter(pa.array(at * 2 <= 107)))  # as far as the watermark goes, that of messages
    engine.append(messages.set_column(2, "k", messages["k"].cast(pa.int64())), stream="messages")
    engine.advance(messages["ts"][-1].as_py())
    wanted = engine.emitted(name).to_pylist()
    assert len(wanted) > 3 < len(sink.batches)
    assert sorted(row[1:3] + row[5:] for row in sink.rows) == sorted(
        (row["k"], row["name"], row["rows"], row["s"], row["n"]) for row in wanted
    )
    metrics = [
        each.observedMetrics["swag"].asDict() for each in (*reported, *further) if "swag" in each.observedMetrics
    ]
    assert sum(each["events"] for each in metrics) == 120 and sum(each["late"] for each in metrics) == 0
    with pytest.raises(sw.BadQuery, match='filled from "messages", which is not there'):
        frames.spark.stream(text, found)
    with pytest.raises(sw.BadQuery, match='"words" is no stream that frames are filled from'):
        frames.spark.stream(text, found, messages=other, words=other)
    with pytest.raises(sw.BadType, match="is int64 in events that frames are filled from"):
        frames.spark.stream(text, found, messages=other.withColumn("ts", other.ts.cast("long")))
    with pytest.raises(sw.BadQuery, match="by one statement with FRAME"):
        frames.spark.stream("SELECT COUNT(*) FROM reports [RANGE 1 MINUTE]", found)
