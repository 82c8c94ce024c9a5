"""swag.spark.stream on Spark itself. What shards answer is checked at length in test_shards, without it."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

import frames as fr
import frames.spark
import swag as sw
import swag.spark
from swag.spark.streams.log import BadState
from tests.spark.streams import run, source, write

SCHEMA = "ts timestamp, sym string, x double"
SECOND = 1_000_000
QUERIES = [
    sw.Query(sw.sum("x"), sw.Range("50s"), name="total"),
    sw.Query(sw.count(), sw.Rows(7), name="rows"),
    sw.Query(sw.sum("x"), sw.Range("100s"), name="hot", having=(">", 300)),
]


def trades(batch: int, rows: int = 60, start: int = 1_700_000_000) -> pa.Table:
    rng = np.random.default_rng(batch)
    seconds = start + 100 * batch + np.sort(rng.integers(-8, 100, rows))
    x = rng.integers(0, 50, rows).astype(float)
    return pa.table(
        {
            "ts": pa.array(seconds * SECOND, pa.timestamp("us", "UTC")),
            "sym": pa.array(rng.choice(["a", "bb", "c", "é", ""], rows)),
            "x": pa.array(x, mask=rng.random(rows) < 0.1),
        }
    )


def engine_at(tables: list[pa.Table], watermark: datetime.datetime) -> sw.Engine:
    engine = sw.Engine(ts="ts", key="sym")
    engine.register(QUERIES)
    events = pa.concat_tables(tables).sort_by("ts")
    upto = int(watermark.replace(tzinfo=datetime.UTC).timestamp() * SECOND)
    due = np.asarray(events.column("ts").cast(pa.int64())) <= upto
    engine.append(events.filter(pa.array(due)))
    engine.advance(upto)
    return engine


def test_answers_are_those_of_an_engine_at_the_watermark_and_spark_reports_the_counts(spark, tmp_path):
    tables = [trades(i) for i in range(4)]
    write(tmp_path / "in", tables)
    frame = swag.spark.stream(
        QUERIES, source(spark, tmp_path / "in", SCHEMA), ts="ts", key="sym", lateness="10 seconds"
    )
    assert frame.schema.simpleString() == "struct<query:string,tick:bigint,ts:timestamp,sym:string,value:double>"
    sink, progress = run(frame, tmp_path / "checkpoint")
    answered = 0
    for rows in sink.batches.values():
        if not rows:
            continue
        (watermark,) = {row[2] for row in rows}
        engine = engine_at(tables, watermark)
        for name in ("total", "rows", "hot"):
            answer = dict(zip(*engine.lookup(name).to_pydict().values(), strict=True))
            found = {row[3]: row[4] for row in rows if row[0] == name}
            assert found == answer
            answered += len(found)
    assert answered > 40
    reported = [each.observedMetrics["swag"] for each in progress]
    assert sum(each["events"] for each in reported) == 240
    assert sum(each["late"] for each in reported) == 0
    assert sum(each["lookups"] for each in reported) == answered
    assert reported[-1]["bytes"] > 0


def test_a_batch_that_is_used_twice_is_the_same_both_times(spark, tmp_path):
    """Spark computes it twice, each time from the state before."""
    write(tmp_path / "in", [trades(i) for i in range(4)])
    found: dict[int, tuple[int, list[tuple]]] = {}

    def both(frame, batch: int) -> None:
        found[batch] = frame.count(), sorted(map(tuple, frame.collect()))

    events = source(spark, tmp_path / "in", SCHEMA)
    run(swag.spark.stream(QUERIES[:2], events, key="sym", shards=2), tmp_path / "twice", both)
    once, _ = run(swag.spark.stream(QUERIES[:2], events, key="sym", shards=2), tmp_path / "once")
    assert found == {batch: (len(rows), sorted(rows)) for batch, rows in once.batches.items()}
    assert sum(count for count, _ in found.values()) > 20


def test_requests_are_answered_as_evaluate_does(spark, tmp_path):
    tables = [trades(i) for i in range(3)]
    asked = [
        pa.table({"sym": t["sym"], "n": np.arange(t.num_rows) + 1000 * i, "ts": t["ts"], "note": [b"x"] * t.num_rows})
        for i, t in enumerate(tables)
    ]
    write(tmp_path / "events", tables)
    write(tmp_path / "requests", asked)
    queries = [*QUERIES, sw.Query(sw.max("ts"), sw.Rows(3, until=1), name="before")]
    frame = swag.spark.stream(
        queries,
        source(spark, tmp_path / "events", SCHEMA),
        requests=source(spark, tmp_path / "requests", "sym string, n long, ts timestamp, note binary"),
        ts="ts",
        key="sym",
        lateness="10 seconds",
    )
    sink, progress = run(frame, tmp_path / "checkpoint")
    expected = sw.evaluate(queries, pa.concat_tables(tables), at=pa.concat_tables(asked), ts="ts", key="sym")
    assert frame.columns == expected.column_names
    found = {row[1]: row for row in sink.rows}
    assert sum(each.observedMetrics["swag"]["requests"] for each in progress) == 180
    watermark = max(row["ts"] for row in expected.to_pylist()) - datetime.timedelta(seconds=10)
    due = [row for row in expected.to_pylist() if row["ts"] <= watermark]
    assert len(found) == len(sink.rows) == len(due) > 150
    for row in due:
        plain = [v.replace(tzinfo=None) if isinstance(v, datetime.datetime) else v for v in row.values()]
        assert list(found[row["n"]]) == plain


def test_keys_of_several_columns(spark, tmp_path):
    rows = [
        [(10, 'a"', 1, 5), (11, 'a"', 2, 7), (12, "b", 1, 1), (13, 'a"', 1, 3), (20, "b", 2, 9)],
        [(40, "c", 1, 1)],
    ]
    write(tmp_path / "in", [pa.table(dict(zip("tabx", zip(*each, strict=True), strict=True))) for each in rows])
    write(tmp_path / "asked", [pa.table({"b": [1, 2, 1], "t": [12, 20, 13], "a": ['a"', "b", 'a"'], "n": [0, 1, 2]})])
    events, total = source(spark, tmp_path / "in", "t long, a string, b long, x long"), sw.sum("x")
    asked = source(spark, tmp_path / "asked", "b long, t long, a string, n long")
    (query,) = sw.sql("SELECT a, b, SUM(x) AS total FROM s [RANGE 30] GROUP BY a, b")
    frame = swag.spark.stream([query], events, ts="t", key=["a", "b"])
    assert frame.schema.simpleString() == "struct<query:string,tick:bigint,t:bigint,a:string,b:bigint,value:bigint>"
    sink, _ = run(frame, tmp_path / "checkpoint")
    assert {row[3:] for row in sink.rows if row[2] == 20} == {('a"', 1, 8), ('a"', 2, 7), ("b", 1, 1), ("b", 2, 9)}
    answers = swag.spark.stream([query], events, requests=asked, ts="t", key=["a", "b"])
    assert answers.columns == ["b", "t", "a", "n", "total"]
    sink, _ = run(answers, tmp_path / "of requests")
    assert sorted(row[3:] for row in sink.rows) == [(0, 5), (1, 9), (2, 8)]
    found = frames.spark.stream(fr.Aggregate(total, ">=", 8), events, ts="t", key=["a", "b"], fragments=False)
    assert found.columns == ["frame_id", "a", "b", "start", "end", "rows", "value"]
    sink, _ = run(found, tmp_path / "of frames")
    assert sorted(row[1:] for row in sink.rows) == [('a"', 1, 10, 13, 2, 8), ("b", 2, 20, 20, 1, 9)]
    with pytest.raises(sw.BadType, match='"x" is double; of several key columns, streams take'):
        decimal = events.withColumn("x", events["x"].cast("double"))
        swag.spark.stream([sw.Query(total, sw.Range(30), name="total")], decimal, ts="t", key=["a", "x"])


def test_time_without_a_zone_and_one_stream_without_a_key(spark, tmp_path):
    rows = [[100, 103, 101], [140], [141]]
    tables = [pa.table({"at": pa.array([s * SECOND for s in each], pa.timestamp("us"))}) for each in rows]
    write(tmp_path / "in", tables)
    queries = [sw.Query(sw.count(), sw.Range("30s"), name="n"), sw.Query(sw.first("at"), sw.Rows(2), name="first")]
    with pytest.raises(sw.BadType, match=r"n \(int64\), first \(timestamp\[us\]\)"):
        swag.spark.stream(queries, source(spark, tmp_path / "in", "at timestamp_ntz"), ts="at")
    frame = swag.spark.stream(queries[:1], source(spark, tmp_path / "in", "at timestamp_ntz"), ts="at")
    sink, _ = run(frame, tmp_path / "checkpoint")
    assert [row[2:] for row in sink.rows] == [
        (datetime.datetime(1970, 1, 1, 0, 1, 43), 3),
        (datetime.datetime(1970, 1, 1, 0, 2, 20), 1),
        (datetime.datetime(1970, 1, 1, 0, 2, 21), 2),
    ]


def test_what_can_not_be_streamed_is_said_before_anything_runs(spark, tmp_path):
    write(tmp_path / "in", [trades(0)])
    events = source(spark, tmp_path / "in", SCHEMA)
    query = sw.Query(sw.sum("x"), sw.Range("1m"))
    with pytest.raises(sw.UnknownColumn, match='reads "y", but the events have: ts, sym, x'):
        swag.spark.stream(sw.Query(sw.sum("y"), sw.Rows(3)), events, key="sym")
    with pytest.raises(sw.BadType, match='ts column "sym" is string'):
        swag.spark.stream(query, events, ts="sym")
    with pytest.raises(sw.BadType, match="stored DataFrame"):
        swag.spark.stream(query, spark.read.parquet(str(tmp_path / "in")), key="sym")
    with pytest.raises(sw.BadQuery, match="shards=0"):
        swag.spark.stream(query, events, key="sym", shards=0)
    with pytest.raises(sw.BadQuery, match="whole milliseconds"):
        swag.spark.stream(query, events, key="sym", lateness="10us")
    with pytest.raises(sw.BadQuery, match=r"lateness=1\.5 is no duration"):
        swag.spark.stream(query, events, key="sym", lateness=1.5)
    with pytest.raises(sw.BadQuery, match="metrics='' is no name"):
        swag.spark.stream(query, events, key="sym", metrics="")
    with pytest.raises(sw.BadQuery, match="metrics=3 is no name"):
        frames.spark.stream(fr.Threshold("x", ">", 1), events, key=["sym", "ts"][:1], metrics=3)
    with pytest.raises(sw.BadType, match="the requests are a dict, not a stream"):
        swag.spark.stream(query, events, key="sym", requests={"ts": [1], "sym": ["a"]})
    with pytest.raises(sw.BadQuery, match=r"over frames .* frames\.spark\.stream"):
        swag.spark.stream("SELECT sym, COUNT(*) FROM s [FRAME WHERE x > 1] GROUP BY sym", events, key="sym")
    with pytest.raises(sw.BadQuery, match=r'key is "sim", .* Hint: "sym"'):
        swag.spark.stream(query, events, key=["sim", "x"])
    inner = "(SELECT sym, COUNT(*) AS n FROM s [ROWS 5, EVERY 1 MINUTE] GROUP BY sym)"
    with pytest.raises(sw.UnknownColumn, match='reads "m", but the events have: tick, ts, sym, n'):
        swag.spark.stream(f"SELECT sym, MAX(m) AS q FROM {inner} [ROWS 2] GROUP BY sym", events, key="sym")
    with pytest.raises(sw.BadQuery, match=r"events are a stream.*frames\.spark\.stream"):
        frames.spark.detect(fr.Threshold("x", ">", 1), events, key="sym")
    assert issubclass(BadState, sw.SwagError)


def test_two_streams_in_one_query_are_counted_by_their_own_names(spark, tmp_path):
    write(tmp_path / "in", [trades(0)])
    events, top = source(spark, tmp_path / "in", SCHEMA), sw.Query(sw.max("x"), sw.Rows(5), "top")
    one = swag.spark.stream(QUERIES[:1], events, key="sym", shards=1)
    other = swag.spark.stream(top, events.where("x > 25"), key=["sym"], shards=1, metrics="loud")
    sink, progress = run(one.union(other), tmp_path / "checkpoint")
    assert {row[0] for row in sink.rows} == {"total", "top"}
    loud = sum(x is not None and x > 25 for x in trades(0)["x"].to_pylist())
    for name, total in (("swag", 60), ("loud", loud)):
        assert sum(each.observedMetrics[name]["events"] for each in progress) == total > 0


def test_ticks_and_frames_close_where_nothing_comes_any_more(spark, tmp_path):
    tables = [trades(0), trades(1), trades(30, rows=2)]  # a long silence: idle shards still go on
    write(tmp_path / "in", tables)
    events = source(spark, tmp_path / "in", SCHEMA)
    query = sw.Query(sw.sum("x"), sw.Range("2m"), name="total", every=sw.Every("1m"))
    ticks, _ = run(swag.spark.stream(query, events, ts="ts", key="sym", lateness="10s"), tmp_path / "ticks")
    spec = fr.Threshold("x", ">", 10)
    pieces, _ = run(frames.spark.stream(spec, events, ts="ts", key="sym", lateness="10s"), tmp_path / "frames")

    engine, detector = sw.Engine(ts="ts", key="sym"), fr.Detector(spec, ts="ts", key="sym")
    engine.register(query)
    stored = pa.concat_tables(tables).sort_by("ts")
    watermark = int(stored["ts"].cast(pa.int64())[-1].as_py()) - 10 * SECOND
    due = np.asarray(stored["ts"].cast(pa.int64())) <= watermark
    engine.append(stored.filter(pa.array(due)))
    engine.advance(watermark + 1)
    expected = [(*row.values(),) for row in engine.emitted().to_pylist()]
    assert sorted(ticks.rows) == sorted((q, tick, ts.replace(tzinfo=None), k, v) for q, tick, ts, k, v in expected)
    detector.push(stored)
    whole = detector.punctuate(watermark).to_pylist()
    done = {row[0] for row in pieces.rows if row[5]}
    names = ["frame_id", "sym", "start", "end", "rows", "final"]
    columns = zip(*(row for row in pieces.rows if row[0] in done), strict=True)
    found = fr.united(pa.table(dict(zip(names, map(pa.array, columns), strict=True))))
    assert sorted((f["sym"], f["start"], f["end"], f["rows"]) for f in found.to_pylist()) == sorted(
        (f["sym"], f["start"].replace(tzinfo=None), f["end"].replace(tzinfo=None), f["rows"]) for f in whole
    )
    assert len(whole) > 10
