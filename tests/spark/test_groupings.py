"""Queries of several groupings on Spark give what sw.evaluate gives: at events and requests, cut or whole."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import swag as sw
import swag.spark
from swag.spark import Layout
from swag.spark.batch.groupings import in_turn
from tests.spark.compare import assert_same
from tests.spark.streams import run, source, write

CUT = Layout(tasks=3, sample=1.0, task_rows=20, block_rows=50)
WHOLE = Layout(sample=0, block_rows=70)
layouts = pytest.mark.parametrize("layout", [CUT, WHOLE], ids=["cut", "whole"])


def some_events(n: int = 900, seed: int = 0) -> pa.Table:
    """A hot card, ties, nulls; floats of which some are -0.0 or NaN; in no order."""
    rng = np.random.default_rng(seed)
    card = np.where(rng.random(n) < 0.5, 0, rng.integers(0, 6, n))
    return pa.table({
        "ts": rng.integers(0, 300, n),
        "card": [f"c{k}" for k in card],
        "land.code": rng.choice(["at", "ch", "de"], n),
        "rate": rng.choice([0.0, -0.0, 1.5, np.nan], n),
        "shop": pa.array(rng.integers(0, 9, n).astype(np.int16)),
        "x": pa.array(rng.normal(0, 10, n), mask=rng.random(n) < 0.1),
        "i": rng.integers(-5, 50, n),
        "id": np.arange(n),
    })  # fmt: skip


QUERIES = [
    sw.Query(sw.last("id"), sw.Rows(1), name="id", by=()),
    sw.Query(sw.sum("i"), sw.Range(40), name="per card"),
    sw.Query(sw.mean("x"), sw.Rows(20), name="per pair", by=("card", "land.code")),
    sw.Query(sw.count(), sw.Range(30, until=5), name="land", by="land.code", where="i > 3"),
    sw.Query(sw.max("x"), sw.Rows(15, until=2), name="per rate", by=("rate", "shop")),
    sw.Query(sw.median("i"), sw.Range(60), name="all", by=()),
    sw.Query(sw.first("id"), sw.Range(25), name="three", by=("card", "land.code", "shop")),
    sw.Query(sw.sum("i"), sw.Range(50), name="high", by="shop", having=(">", 300)),
]


@layouts
@pytest.mark.parametrize("key", ["card", None, ["shop", "card"]])
def test_at_every_event(spark: Any, key: Any, layout: Layout) -> None:
    events = some_events()
    found = swag.spark.evaluate(QUERIES, spark.createDataFrame(events), key=key, layout=layout).toArrow()
    assert_same(found, sw.evaluate(QUERIES, events, key=key), by="id")


@layouts
@pytest.mark.parametrize("key", ["card", None])
def test_at_requests(spark: Any, key: Any, layout: Layout) -> None:
    events, rng = some_events(), np.random.default_rng(1)
    rows = rng.integers(0, 900, 300)
    requests = events.select(["land.code", "card", "ts", "rate", "shop", "x"]).take(pa.array(rows))
    requests = requests.set_column(1, "card", pa.array([f"c{k}" for k in rng.integers(0, 8, 300)]))
    requests = requests.set_column(2, "ts", pa.array(rng.integers(-20, 350, 300)))
    requests = requests.append_column("request", pa.array(np.arange(300)))
    frames = spark.createDataFrame(events), spark.createDataFrame(requests)
    queries = [sw.Query(sw.last("id"), sw.Rows(1), name="last", by=()), *QUERIES[1:]]
    found = swag.spark.evaluate(queries, frames[0], at=frames[1], key=key, layout=layout).toArrow()
    assert_same(found, sw.evaluate(queries, events, at=requests, key=key), by="request")


def test_another_grouping_than_the_key_alone(spark: Any) -> None:
    events = some_events(200)
    queries = [sw.Query(sw.last("id"), sw.Rows(1), name="id", by="shop"), sw.Query(sw.count(), sw.Rows(9), by="shop")]
    for key in (None, "card", "shop"):
        found = swag.spark.evaluate(queries, spark.createDataFrame(events), key=key).toArrow()
        assert_same(found, sw.evaluate(queries, events, key=key), by="id")


def test_statements_with_another_group_by_than_the_key(spark: Any) -> None:
    events = some_events(200).rename_columns(["ts", "card", "land", "rate", "shop", "x", "i", "id"])
    text = """SELECT card, LAST(id) AS id FROM s [ROWS 1] GROUP BY card;
              SELECT card, land, SUM(i) AS total FROM s [RANGE 50] GROUP BY card, land;
              SELECT COUNT(*) AS n FROM s [RANGE 50]"""
    found = swag.spark.evaluate(text, spark.createDataFrame(events)).toArrow()
    assert_same(found, sw.evaluate(text, events), by="id")
    ticks = "SELECT land, COUNT(*) AS n FROM s [RANGE 50, FREQUENCY 10 TUPLES PARTITIONED BY land] GROUP BY land"
    found = swag.spark.evaluate(ticks, spark.createDataFrame(events), key="card").toArrow()
    key = [("land", "ascending"), ("tick", "ascending")]
    assert found.sort_by(key).to_pylist() == sw.evaluate(ticks, events).sort_by(key).to_pylist()
    frames = "SELECT land, COUNT(*) AS n FROM s [FRAME WHERE i > 20] GROUP BY land"
    found = swag.spark.evaluate(frames, spark.createDataFrame(events), key="card").toArrow()
    assert sorted(found["n"].to_pylist()) == sorted(sw.evaluate(frames, events)["n"].to_pylist())


def shuffles(frame: Any) -> int:
    """How often rows are sent to other partitions."""
    return frame._jdf.queryExecution().executedPlan().toString().count("Exchange ")


def test_a_grouping_within_another_needs_no_shuffle_of_its_own(spark: Any) -> None:
    frame = spark.createDataFrame(some_events(50))
    by = {"card": ("card",), "pair": ("land.code", "card"), "three": ("card", "shop", "land.code"), "shop": ("shop",)}
    counts = {name: sw.Query(sw.count(), sw.Range(5), name=f"n {name}", by=own) for name, own in by.items()}

    def asked(*names: str) -> int:
        return shuffles(swag.spark.evaluate([counts[name] for name in names], frame, layout=WHOLE))

    assert asked("card", "pair") == 1
    assert asked("three", "pair", "card") == 1
    assert asked("pair", "shop") == 2
    assert asked("card", "pair", "shop", "three") == 2


def test_groupings_take_turns() -> None:
    def queries(count: int) -> list[sw.Query]:
        return [sw.Query(sw.count(), sw.Rows(1), name=f"q{i}") for i in range(count)]

    groups = {("a", "b"): queries(5), ("c",): queries(2), (): queries(4), ("a",): queries(1), ("b", "c"): queries(1)}
    assert in_turn(groups) == [("c",), ("b", "c"), (), ("a",), ("a", "b")]


def test_a_null_is_refused_only_where_a_query_groups_by_its_column(spark: Any) -> None:
    events = some_events(60)
    holes = pa.array([None if i == 7 else f"c{i % 3}" for i in range(60)])
    frame = spark.createDataFrame(events.set_column(1, "card", holes))
    by_shop = [sw.Query(sw.count(), sw.Rows(3), name="n", by="shop")]
    assert swag.spark.evaluate(by_shop, frame, key="card").toArrow().num_rows == 60
    with pytest.raises(Exception, match='a row has no key: "card" is null'):
        swag.spark.evaluate([*by_shop, sw.Query(sw.count(), sw.Rows(3), name="m")], frame, key="card").toArrow()


def test_keys_of_all_groupings_that_pass(spark: Any) -> None:
    events = some_events().sort_by("ts")
    queries = [
        sw.Query(sw.count(), sw.Range(60), name="busy", having=(">", 30)),
        sw.Query(sw.mean("i"), sw.Range(60), name="high", by=["shop", "land.code"], having=(">", 24)),
        sw.Query(sw.sum("i"), sw.Range(60), name="large", by="shop", having=(">", 500), index=False),
    ]
    found = swag.spark.filter_substreams(queries, spark.createDataFrame(events), [90, 200], key="card").toArrow()
    wanted = []
    for at in (90, 200):
        engine = sw.Engine(key="card")
        engine.register(queries)
        engine.append(events.filter(pc.less_equal(events["ts"], at)))
        engine.advance(at)
        wanted += [{**row, "at": at} for row in engine.filters().to_pylist()]
    assert found.column_names == ["query", "at", "card", "shop", "land.code", "value"]
    assert {row["query"] for row in wanted} == {"busy", "high", "large"}
    order = [tuple(map(str, (row[name] for name in found.column_names))) for row in wanted]
    assert sorted(tuple(map(str, row.values())) for row in found.to_pylist()) == sorted(order)


def test_what_is_refused_before_any_job(spark: Any) -> None:
    frame = spark.createDataFrame(some_events(20))
    mixed = [sw.Query(sw.count(), sw.Range(9), name="n"), sw.Query(sw.count(), sw.Range(9), name="m", by="shop")]
    with pytest.raises(sw.BadQuery, match=r"ordered=True\) is for events that lie as all queries group them"):
        swag.spark.evaluate(mixed, frame, key="card", layout=Layout(ordered=True))
    with pytest.raises(sw.UnknownColumn, match='requests need a column "shop"'):
        swag.spark.evaluate(mixed, frame, at=frame.drop("shop"), key="card")
    with pytest.raises(sw.UnknownColumn, match='key is "shpo"'):
        swag.spark.evaluate([sw.Query(sw.count(), sw.Rows(2), by="shpo")], frame, key="card")
    with pytest.raises(sw.BadQuery, match='query "shop" has the name of a column'):
        swag.spark.evaluate([mixed[1], sw.Query(sw.count(), sw.Rows(2), name="shop")], frame, key="card")
    ticks = [sw.Query(sw.count(), sw.Range(9), name=f"n {by}", by=by, every=sw.Every(5)) for by in ("card", "shop")]
    with pytest.raises(sw.BadQuery, match="share one grouping, but these have card; shop"):
        swag.spark.evaluate(ticks, frame)
    passing = [sw.Query(sw.count(), sw.Range(9), name=f"n {by}", by=by, having=(">", 1)) for by in ("card", ())]
    with pytest.raises(sw.BadQuery, match="substreams are those of a key"):
        swag.spark.filter_substreams(passing, frame, [5], key="card")
    stream = spark.readStream.format("rate").load().withColumnRenamed("timestamp", "ts")
    several = [sw.Query(sw.count(), sw.Range("9s"), name="n"), sw.Query(sw.count(), sw.Range("9s"), name="m", by=())]
    for key in ("value", ["value"]):
        with pytest.raises(sw.BadQuery, match=r"in one way, not in several \(value; nothing \(the whole stream\)\)"):
            swag.spark.stream(several, stream, requests=stream, key=key)
    with pytest.raises(sw.BadQuery, match='query "value" has the name of a column'):
        swag.spark.stream([sw.Query(sw.count(), sw.Range("9s"), name="value", by=()), several[0]], stream, key="value")
    with pytest.raises(sw.BadType, match='query "sum" answers int64'):
        sums = [sw.Query(sw.mean("value"), sw.Range("9s")), sw.Query(sw.sum("value"), sw.Range("9s"), "sum", by=())]
        swag.spark.stream(sums, stream, key="value")


def test_kernels_of_several_groupings_are_compiled_ahead(spark: Any) -> None:
    assert swag.spark.warm(QUERIES, spark.createDataFrame(some_events(5)), key="card").exists()


def test_a_stream_has_the_answers_of_all_groupings(spark: Any, tmp_path: Any) -> None:
    """Each as an engine gives them that has been told of what the watermark has passed."""
    events = some_events(600)
    schema = "ts long, card string, shop int, x double"
    events = events.select(["ts", "card", "shop", "x"]).sort_by("ts")
    write(tmp_path / "in", [events.slice(i, 200) for i in (0, 200, 400)])
    every = sw.Every(time=50)
    queries = [
        sw.Query(sw.sum("x"), sw.Range(90), name="of card", every=every),
        sw.Query(sw.count(), sw.Range(90), name="of shop", by="shop", every=every),
        sw.Query(sw.max("x"), sw.Rows(9), name="of both", by=("shop", "card"), every=every),
        sw.Query(sw.count(), sw.Range(40), name="of all", by=(), every=every),
    ]
    frame = swag.spark.stream(queries, source(spark, tmp_path / "in", schema), key="card", lateness=5, shards=2)
    assert frame.columns == ["query", "tick", "ts", "card", "shop", "value"]
    sink, progress = run(frame, tmp_path / "checkpoint")
    engine = sw.Engine(key="card", lateness=5)
    engine.register(queries)
    engine.append(events)
    wanted = engine.emitted().select(frame.columns)
    assert len(set(wanted["query"].to_pylist())) == 4
    assert sorted(map(repr, sink.rows)) == sorted(repr(tuple(row.values())) for row in wanted.to_pylist())
    assert sum(each.observedMetrics["swag"]["events"] for each in progress) == 4 * events.num_rows
