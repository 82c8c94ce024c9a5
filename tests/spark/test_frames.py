"""frames.spark finds, fills and summarises what frames does, however rows fall into blocks, and cut or not."""

import numpy as np
import pyarrow as pa
import pytest

import frames as fr
import frames.spark
import swag as sw
from frames.spark.batch.stored_frames import FrameStream
from swag.spark import Layout
from tests.spark.compare import assert_same

SMALL = Layout(tasks=3, block_rows=60)  # some keys fill many blocks, some blocks hold many keys
CUT = Layout(tasks=3, sample=1.0, block_rows=60)
SPECS = [
    fr.Threshold("x", ">", 0.3, min_rows=2, min_duration=3),
    fr.Threshold("x", "<=", 0.0, min_rows=3, partition=True),
    fr.Boundary({"x": 0.5, "n": [2, 5]}),
    fr.Delta("x", 0.8),
    fr.Delta("x", 1.5, measure="range", op=">="),
    fr.Aggregate(sw.sum("n"), ">=", 25),
    fr.Aggregate(sw.quantile("x", 0.5), "<", 0.5),
    fr.Pattern("A B+ C", {"B": "x < PREV(x)", "C": "n > AVG(B.n)"}, {"low": "LAST(B.x)"}),
    fr.State("CASE WHEN x > 0 THEN 'up' WHEN x < -0.5 THEN 'down' END", min_rows=2),
    fr.Session(5, max_rows=20),
    fr.Between("x > 0.5", "n > 6 AND x < 0", extent="open"),
    fr.Custom(
        ("x", "n"),
        state=0,
        open=lambda e, s: s % 3 == 0 or e.x > 0.8,
        update=lambda e, s: s + 1,
        overlap=True,
        close=lambda e, s: 2 if s == 2 else -1 if e.n > 7 else e.x < -0.8,
        extent="open",
    ),
]
DISTINCT = fr.Aggregate(sw.count_distinct("CASE WHEN x > 0 THEN n END") + sw.decayed_count(half_life=10) / 4, ">=", 4.3)
AGGREGATES = [sw.count(), sw.sum("n"), sw.mean("x"), sw.max("x"), sw.median("x"), sw.last("n")]


def some_events(seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    n = 1200
    walk = np.cumsum(rng.normal(0, 0.4, n)) % 2 - 1
    walk[rng.random(n) < 0.02] = np.nan
    return pa.table({
        "ts": np.sort(rng.integers(0, 900, n)),
        "key": pa.array([f"k{k}" for k in np.where(rng.random(n) < 0.5, 0, rng.integers(0, 30, n))]),
        "x": pa.array(walk, mask=rng.random(n) < 0.05),
        "n": rng.integers(0, 9, n),
        "id": np.arange(n),
    })  # fmt: skip


def told_apart(table: pa.Table, key: str | None) -> pa.Table:
    """Frames with their number within the key in place of frame_id, and a column that tells all of them apart."""
    assert len(set(table["frame_id"].to_pylist())) == table.num_rows
    order = [("start", "ascending"), ("end", "ascending"), ("rows", "ascending")]
    table = table.drop_columns(["frame_id"]).sort_by([(key, "ascending"), *order] if key else order)
    return table.append_column("number", pa.array(np.arange(table.num_rows)))


def pieces(df, key: str | None, layout: Layout) -> int:
    cut = FrameStream.of(df, "ts", key, layout).cut().pieces
    return 0 if cut is None else cut.table.count()


@pytest.mark.parametrize(
    ("key", "layout", "specs"), [("key", CUT, [*SPECS, DISTINCT]), (None, CUT, SPECS), ("key", SMALL, SPECS[:3])]
)
def test_frames_are_found(spark, key, layout, specs):
    events = some_events()
    df = spark.createDataFrame(events).cache()
    assert pieces(df, key, layout) >= (2 if layout is CUT else 0)
    for spec in specs:
        found = frames.spark.detect(spec, df, key=key, layout=layout).toArrow()
        expected = fr.detect(spec, events, key=key)
        assert expected.num_rows > 10
        assert_same(told_apart(found, key), told_apart(expected, key), by="number")
        if key is None:
            in_order = found.sort_by("frame_id")
            assert in_order["frame_id"].to_pylist() == list(range(found.num_rows))
            assert in_order["rows"].to_pylist() == expected["rows"].to_pylist()


@pytest.mark.parametrize(("key", "layout"), [("key", CUT), (None, CUT), ("key", SMALL)])
def test_frames_are_filled_and_summarised(spark, key, layout):
    events, other = some_events(), some_events(1)
    found = fr.detect(SPECS[1], events, key=key)
    dfs = spark.createDataFrame(found), spark.createDataFrame(other)
    margins = {"before": 40, "after": 7}
    inside = frames.spark.fill(*dfs, key=key, layout=layout, **margins).toArrow()
    expected = fr.fill(found, other, key=key, **margins)
    apart = [table.append_column("apart", pa.array([f"{a} {b}" for a, b in zip(
        table["id"].to_pylist(), table["frame_id"].to_pylist())])) for table in (inside, expected)]  # fmt: skip
    assert_same(*apart, by="apart")
    answers = frames.spark.summarize(*dfs, AGGREGATES, key=key, layout=layout, **margins).toArrow()
    assert_same(answers, fr.summarize(found, other, AGGREGATES, key=key, **margins), by="frame_id")


def test_fragments_are_put_together(spark):
    events = some_events()
    detector = fr.Detector(SPECS[3], key="key", fragments=True)
    detector.push(events)
    pieces = pa.concat_tables([detector.punctuate(300), detector.punctuate(600), detector.finish()])
    dfs = spark.createDataFrame(pieces), spark.createDataFrame(events)
    answers = frames.spark.summarize(*dfs, [sw.count()], key="key", layout=SMALL).toArrow()
    assert_same(answers, fr.summarize(pieces, events, [sw.count()], key="key", own=False), by="frame_id")


def test_keys_of_several_columns(spark):
    events = some_events()
    wide = events.append_column("site", pa.array(np.arange(events.num_rows) % 2 == 0))
    found = frames.spark.detect(SPECS[0], spark.createDataFrame(wide), key=["key", "site"]).toArrow()
    both = pa.array([f"{k} {s}" for k, s in zip(wide["key"].to_pylist(), wide["site"].to_pylist())])
    expected = fr.detect(SPECS[0], wide.append_column("both", both), key="both")
    assert found.column_names == ["frame_id", "key", "site", "start", "end", "rows"]
    rows = sorted((f"{r['key']} {r['site']}", r["start"], r["end"], r["rows"]) for r in found.to_pylist())
    assert rows == sorted(tuple(row.values())[1:] for row in expected.to_pylist())
