"""A query over frames in an engine gives, as events come, what `sw.evaluate` gives of all of them at the end."""

import math
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from tests.examples import share
from tests.frames.cases import FLOATS, INTEGERS, LATEST, SPECS
from tests.frames.test_fill import AGGREGATES
from tests.frames.test_fill import FURTHER as FURTHER_AGGREGATES

FEWER = settings(max_examples=share(8), deadline=None)  # of each kind; an example is an engine
NAMES = [
    "threshold >=, rows", "partition, rows", "partition, open", "threshold of SQL", "predicate", "boundary, grid",
    "delta range >=", "delta <=, open", "whole sum <=", "sum >=, open", "median", "user-defined, ordered",
    "session, split, short", "state, open", "between, split", "between, open", "distinct of text >=",
]  # fmt: skip
TYPES = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": pa.float64(), "i": pa.int64(), "t": pa.string()})
VALUES = {
    "n": sw.count(), "xs": sw.count("x"), "sum": sw.sum("i"), "mean": sw.mean("x"), "least": sw.min("x"),
    "most": sw.max("i"), "first": sw.first("i"), "last": sw.last("x"), "spread": sw.max("i") - sw.min("i"),
    "var": sw.var("x"), "where": sw.sum("i").filter("x > 0"), "sql": sw.sum("i * 2"), "any": sw.any("i > 1"),
    "when": sw.max("ts"),
}  # fmt: skip
HOLISTIC = {
    "median": sw.median("x"), "distinct": sw.count_distinct("t"), "text": sw.min("t"), "mode": sw.mode("i"),
    "age": sw.age(), "lists": sw.last_n("i", 2), "user": LATEST, "n": sw.count(),
}  # fmt: skip


@st.composite
def streams(draw, most=24):
    """Events of a few keys in order of ts, most of which share theirs with others."""
    size, step = draw(st.integers(0, most)), st.sampled_from([0, 0, 1, 1, 4])
    ts, rows = 0, []
    for _ in range(size):
        ts += draw(step)
        text = draw(st.sampled_from(["a", "b", "", None]))
        rows.append({"ts": ts, "k": draw(st.sampled_from("abc")), "x": draw(FLOATS), "i": draw(INTEGERS), "t": text})
    return rows


def table(rows):
    return pa.Table.from_pylist(rows, schema=TYPES)


def cut(draw, rows):
    """Rows in pieces, some of which are empty."""
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    return [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


def same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or a == pytest.approx(b, rel=1e-9, abs=1e-12)
    return a == b


def assert_same(found, wanted):
    assert found.column_names == wanted.column_names
    assert found.num_rows == wanted.num_rows
    for one, other in zip(found.to_pylist(), wanted.to_pylist(), strict=True):
        assert all(same(one[name], other[name]) for name in one), (one, other)


def reloaded(engine, queries):
    with tempfile.TemporaryDirectory() as folder:
        engine.save(Path(folder) / "snapshot")
        return sw.Engine.load(Path(folder) / "snapshot", queries)


def rows_of(engine, name="q"):
    """The rows so far, and the frames that are open."""
    rows, changes = engine.emitted(name), engine.changes(name)
    return rows, {row["value"]: row for row in changes.to_pylist()}


def assert_as_stored(rows, still_open, query, events, key):
    """Rows are those of the frames that have ended; the others are open, or only the end of a stream makes them."""
    wanted = sw.evaluate(query, events, key=key)
    ended = set(rows["frame_id"].to_pylist())
    assert not ended & still_open.keys()
    assert ended | still_open.keys() == set(range(len(ended) + len(still_open)))
    assert_same(
        rows.sort_by("frame_id"),
        wanted.filter(pa.array([number in ended for number in wanted["frame_id"].to_pylist()], pa.bool_())),
    )
    for row in wanted.to_pylist():
        if row["frame_id"] in still_open:
            known = still_open[row["frame_id"]]
            assert known["ts"] == row["start"] and known["passing"] and (key is None or known["k"] == row["k"])
        elif row["frame_id"] not in ended:
            assert getattr(query.spec, "partition", False)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data(), rows=streams())
@FEWER
def test_rows_are_those_of_all_events_however_the_stream_is_cut(name, data, rows):
    values = data.draw(st.sampled_from([VALUES, HOLISTIC, VALUES | HOLISTIC]))
    query = fr.FrameQuery(SPECS[name], values, data.draw(st.sampled_from([None, "i <> 2"])), name="q")
    for key in (None, "k"):
        engine = sw.Engine(key=key)
        assert engine.register(query) == "q"
        tables = []
        for part in cut(data.draw, rows):
            assert engine.append(table(part)) == len(part)
            if data.draw(st.booleans()):
                tables.append(engine.emitted("q"))
            if data.draw(st.booleans()):
                engine = reloaded(engine, [query])
        last, still_open = rows_of(engine)
        if rows:
            tables = [each for each in tables if not pa.types.is_null(each.schema.field("start").type)]
            assert_as_stored(pa.concat_tables([*tables, last]), still_open, query, table(rows), key)


@pytest.mark.parametrize("by", [(), ("k",)])
def test_every_aggregate_has_the_answer_that_stored_events_give(by):
    """Also what is of products of columns, and of SQL, in batches that cut frames in two."""
    sql = [sw.wmean("x * 2", "y"), sw.wmean("i", "i"), sw.cov("x * 2", "i"), sw.sum("x * y")]
    every = [each.alias(f"q{n}") for n, each in enumerate([*AGGREGATES, *FURTHER_AGGREGATES, *sql])]
    query = fr.FrameQuery(fr.Threshold("x", ">", 2), every, by=by, name="q")
    events = pa.table({
        "ts": range(10), "x": [3.0, 4, 5, 1, 6, 7, None, 8, 1, 1], "y": [1.0, 2, 3, 4, 5, None, 6, 7, 8, 9],
        "i": [2, None, 1, 3, 3, 5, 2, 2, 1, 1], "b": [True, False, None, True, True, False, None, True, False, True],
        "k": list("aabaababab"),
    })  # fmt: skip
    engine = sw.Engine()
    engine.register(query)
    for at in range(0, 10, 2):
        engine.append(events.slice(at, 2))
    assert_same(engine.emitted("q").sort_by("frame_id"), sw.evaluate(query, events))


@pytest.mark.parametrize("hold", [True, False])
@pytest.mark.parametrize("name", ["threshold >=, rows", "partition, rows", "boundary, grid", "sum >="])
@given(data=st.data(), rows=streams())
@FEWER
def test_late_events_are_put_in_order_first(name, hold, data, rows):
    query = fr.FrameQuery(SPECS[name], VALUES | HOLISTIC, name="q")
    came = sorted(rows, key=lambda row: row["ts"] + data.draw(st.integers(0, 3)))
    engine = sw.Engine(key="k", lateness=3, hold=hold)
    engine.register(query)
    tables = []
    for part in cut(data.draw, came):
        engine.append(table(part))
        tables.append(engine.emitted("q"))
        if data.draw(st.booleans()):
            engine = reloaded(engine, [query])
    if not rows:
        return
    engine.advance(rows[-1]["ts"] + 3)
    last, still_open = rows_of(engine)
    tables = [each for each in tables if not pa.types.is_null(each.schema.field("start").type)]
    ordered = sorted(came, key=lambda row: row["ts"])
    assert engine.stats()["late"] == 0
    assert_as_stored(pa.concat_tables([*tables, last]), still_open, query, table(ordered), "k")


@pytest.mark.parametrize("name", ["threshold >", "threshold <, duration", "boundary, grid", "delta first <", "sum <"])
@given(data=st.data(), rows=streams())
@FEWER
def test_changes_are_the_difference_of_open_frames(name, data, rows):
    engine = sw.Engine(key="k")
    engine.register(fr.FrameQuery(SPECS[name], sw.count(), name="q"))
    seen, ended, told = [], set(), {}
    for part in cut(data.draw, rows):
        engine.append(table(part))
        seen += part
        if data.draw(st.booleans()):
            engine = reloaded(engine, [])
        if not data.draw(st.booleans()):
            continue
        ended |= set(engine.emitted("q")["frame_id"].to_pylist())
        found = {row["frame_id"]: row for row in fr.detect(SPECS[name], table(seen), key="k").to_pylist()}
        now = {number: row for number, row in found.items() if number not in ended}
        wanted = [("q", told[n]["k"], found[n]["end"], n, False) for n in sorted(told.keys() - now.keys())]
        wanted += [("q", now[n]["k"], now[n]["start"], n, True) for n in sorted(now.keys() - told.keys())]
        assert [tuple(row.values()) for row in engine.changes().to_pylist()] == wanted
        told = now


@pytest.mark.parametrize("name", ["threshold >=, rows", "partition, rows", "sum <", "sum >=, open", "between, split"])
@given(data=st.data(), rows=streams())
@FEWER
def test_pieces_hold_the_events_of_their_frame_once(name, data, rows):
    """Of every piece: how many events, which is first and last, and which values; together those of the frame."""
    values = {"n": sw.count(), "sum": sw.sum("i"), "list": sw.last_n("ts", 99), "median": sw.median("x")}
    query = fr.FrameQuery(SPECS[name], values, fragments=True, name="q")
    engine = sw.Engine(key="k")
    engine.register(query)
    tables = []
    for part in cut(data.draw, rows):
        engine.append(table(part))
        tables.append(engine.emitted("q"))
        if data.draw(st.booleans()):
            engine = reloaded(engine, [])
    whole = {row["frame_id"]: row for row in sw.evaluate(query, table(rows), key="k").to_pylist()}
    pieces = {}
    for row in (row for each in tables for row in each.to_pylist()):
        assert row["rows"] == row["n"]
        pieces.setdefault(row["frame_id"], []).append(row)
    for number, some in pieces.items():
        assert [row["final"] for row in some[:-1]] == [False] * (len(some) - 1)
        frame = whole[number]
        if some[-1]["final"]:
            assert sum(row["n"] for row in some) == frame["n"]
            assert sum(row["sum"] or 0 for row in some) == (frame["sum"] or 0)
            assert [ts for row in some for ts in row["list"] or ()] == frame["list"]


def test_memory_follows_open_frames_not_their_length():
    engine = sw.Engine(key="k")
    values = {"n": sw.count(), "mean": sw.mean("x"), "most": sw.max("x"), "spread": sw.std("x")}
    engine.register(fr.FrameQuery(fr.Threshold("x", ">", 0.5, min_duration=10), values, name="q"))
    sizes = []
    for batch in range(40):
        ts = np.arange(batch * 5000, (batch + 1) * 5000)
        engine.append({"ts": ts, "k": ts % 50, "x": np.ones(5000)})
        sizes.append((engine.stats()["bytes"], engine.stats()["kept"]))
    assert sizes[1] == sizes[-1] and sizes[-1][1] == 0
    engine.append({"ts": np.full(50, 200_000), "k": np.arange(50), "x": np.zeros(50)})
    assert engine.emitted("q")["n"].to_pylist() == [4000] * 50


def test_events_are_kept_for_what_needs_them_until_their_frame_ends():
    engine = sw.Engine()
    engine.register(fr.FrameQuery(fr.Threshold("x", ">", 0.5), [sw.median("x"), sw.count()], name="q"))
    for batch in range(20):
        engine.append({"ts": np.arange(batch * 1000, (batch + 1) * 1000), "x": np.ones(1000)})
    assert engine.stats()["kept"] == 20_000
    assert "median(x): of the events, 20,000 of which are kept" in engine.explain()
    engine.append({"ts": [20_000, 20_001], "x": [0.0, 0.0]})
    engine.append({"ts": [20_002], "x": [0.0]})
    assert engine.stats()["kept"] < 10
    assert engine.emitted("q").to_pylist() == [
        {"frame_id": 0, "start": 0, "end": 19_999, "rows": 20_000, "median(x)": 1.0, "count()": 20_000}
    ]


def test_keys_of_which_no_frame_is_open_are_forgotten():
    engine = sw.Engine(key="k")
    engine.register(fr.FrameQuery(fr.Threshold("x", ">", 0.5), [sw.count(), sw.mean("x")], name="q"))
    open_ones = {"ts": np.zeros(3, int), "k": np.arange(3), "x": np.ones(3)}
    engine.append(open_ones)
    for batch in range(1, 30):
        keys = np.arange(batch * 1000, (batch + 1) * 1000)
        engine.append({"ts": np.full(2000, batch), "k": np.repeat(keys, 2), "x": np.tile([1.0, 0.0], 1000)})
        engine.advance(batch)
    assert engine.stats()["keys"] < 5000
    assert engine.emitted("q").num_rows == 29_000
    engine.append({"ts": np.full(3, 50), "k": np.arange(3), "x": np.zeros(3)})
    assert [row["k"] for row in engine.emitted("q").to_pylist()] == [0, 1, 2]


def test_a_statement_registers_and_is_known_by_its_text():
    engine = sw.Engine(key="other")
    (name,) = engine.register(
        "SELECT router, AVG(total) AS total FROM reports [FRAME WHERE pct > 0.3 FOR 2 TUPLES] GROUP BY router"
    )
    assert name.startswith("SELECT router, AVG(total)")
    rows = {"ts": [1, 2, 3, 4], "router": list("aaaa"), "pct": [0.5, 0.6, 0.7, 0.1], "total": [1, 2, 6, 9]}
    engine.append(rows | {"other": [1, 2, 3, 4]})
    assert engine.emitted(name).to_pylist() == [
        {"frame_id": 0, "router": "a", "start": 1, "end": 3, "rows": 3, "total": 3.0}
    ]
    assert engine.emitted(name).num_rows == 0
    assert engine.emitted().num_rows == 0
    engine.unregister(name)
    with pytest.raises(sw.UnknownQuery, match="no query is named"):
        engine.emitted(name)
    engine.append({"ts": [5], "other": [1]})


def test_one_of_another_grouping_that_comes_later_begins_with_the_next_event():
    engine = sw.Engine()
    engine.register(sw.Query(sw.count(), sw.Range(5), name="c"))
    engine.append({"ts": [1], "k": ["a"], "x": [1.0]})
    engine.register(fr.FrameQuery(fr.Threshold("x", ">", 0.5), sw.count(), name="q", by="k"))
    engine.append({"ts": [3, 4], "k": ["a", "a"], "x": [1.0, 0.0]})
    assert engine.emitted("q")["count()"].to_pylist() == [1]


def test_pieces_by_a_statement():
    text = "SELECT k, COUNT(*) AS n FROM s [FRAME WHERE x > 0 FOR 2 TUPLES FRAGMENTS] GROUP BY k"
    (query,) = sw.sql(text)
    assert query.fragments and sw.sql(str(query)) == [query] and "FRAGMENTS]" in str(query)
    engine = sw.Engine()
    (name,) = engine.register(text)
    for ts, x in enumerate([1, 1, 1, 0]):
        engine.append({"ts": [ts], "k": ["a"], "x": [x]})
    assert engine.emitted(name).select(["frame_id", "start", "rows", "final", "n"]).to_pylist() == [
        {"frame_id": 0, "start": 0, "rows": 2, "final": False, "n": 2},
        {"frame_id": 0, "start": 2, "rows": 1, "final": False, "n": 1},
        {"frame_id": 0, "start": None, "rows": 0, "final": True, "n": 0},
    ]
    rows = {"ts": [0, 1, 2, 3], "k": list("aaaa"), "x": [1, 1, 1, 0]}
    assert sw.evaluate(text, rows).column_names == [
        "frame_id",
        "k",
        "start",
        "end",
        "rows",
        "n",
    ]  # stored ones are whole


def test_one_that_comes_later_begins_with_the_next_event():
    engine = sw.Engine()
    engine.register(sw.Query(sw.count(), sw.Range(5), name="c"))
    engine.append({"ts": [1, 2], "x": [1.0, 1.0]})
    engine.register(fr.FrameQuery(fr.Threshold("x", ">", 0.5), sw.count(), name="q"))
    engine.append({"ts": [3, 4, 5], "x": [1.0, 1.0, 0.0]})
    assert engine.emitted("q").to_pylist() == [{"frame_id": 0, "start": 3, "end": 4, "rows": 2, "count()": 2}]
    assert engine.stats()["complete_since"] == {"c": None, "q": 2}


def test_a_key_of_several_columns_and_groupings_beside_each_other():
    engine = sw.Engine(key="a")
    spec = fr.Threshold("x", ">", 0)
    engine.register([
        fr.FrameQuery(spec, sw.sum("x"), by=("a", "b"), name="pairs"), fr.FrameQuery(spec, sw.sum("x"), name="a"),
        fr.FrameQuery(spec, sw.sum("x"), by=(), name="all"),
    ])  # fmt: skip
    events = {"ts": [1, 2, 3, 4], "a": [1, 1, 2, 1], "b": ["u", "v", "u", "u"], "x": [1, 2, 3, 0]}
    engine.append(events)
    assert engine.emitted("pairs").to_pylist() == [
        {"frame_id": 0, "a": 1, "b": "u", "start": 1, "end": 1, "rows": 1, "sum(x)": 1}
    ]
    assert [row["sum(x)"] for row in engine.emitted("a").to_pylist()] == [3]
    assert [row["sum(x)"] for row in engine.emitted("all").to_pylist()] == [6]
    assert engine.changes("pairs").select(["a", "b", "value", "passing"]).to_pylist() == [
        {"a": 1, "b": "v", "value": 1, "passing": True}, {"a": 2, "b": "u", "value": 2, "passing": True},
    ]  # fmt: skip


def test_columns_without_a_type_wait_for_one():
    engine = sw.Engine()
    query = fr.FrameQuery(fr.Threshold("x", ">", 0, partition=True), [sw.count(), sw.sum("y")], name="q")
    engine.register(query)
    engine.append({"ts": [1, 2], "x": [None, None], "y": [None, None]})
    assert engine.emitted("q").num_rows == 0
    engine = reloaded(engine, [])
    engine.append({"ts": [3, 4], "x": [0, 1], "y": [5, 6]})
    engine.append({"ts": [5], "x": [None], "y": [None]})
    assert engine.emitted("q").to_pylist() == [
        {"frame_id": 0, "start": 1, "end": 3, "rows": 3, "count()": 3, "sum(y)": 5},
        {"frame_id": 1, "start": 4, "end": 4, "rows": 1, "count()": 1, "sum(y)": 6},
    ]


def test_a_batch_that_frames_can_not_take_changes_nothing():
    engine = sw.Engine()
    engine.register(fr.FrameQuery(fr.Threshold("x", ">", 0), [sw.sum("y")], name="q", where="CAST(t AS BIGINT) > 0"))
    engine.append({"ts": [1], "x": [1], "y": [1], "t": ["1"]})
    for wrong in ({"x": ["a"]}, {"x": [1.5]}, {"y": ["a"]}, {"t": ["no number"]}):
        with pytest.raises(sw.SwagError):
            engine.append({"ts": [2], "x": [1], "y": [1], "t": ["1"]} | wrong)
    engine.append({"ts": [2, 3], "x": [1, 0], "y": [1, 1], "t": ["1", "1"]})
    assert engine.emitted("q")["sum(y)"].to_pylist() == [2]


def test_a_sum_that_does_not_fit_is_told_once_and_takes_no_other_frame_along():
    engine = sw.Engine(key="k")
    engine.register(fr.FrameQuery(fr.Threshold("x", ">", 0), sw.sum("y"), name="q"))
    engine.append({"ts": [1, 1, 2], "k": [0, 1, 0], "x": [1, 1, 1], "y": [2**62, 1, 2**62]})
    engine.append({"ts": [3, 3], "k": [0, 1], "x": [0, 0], "y": [0, 0]})
    with pytest.raises(sw.SumOverflow):
        engine.emitted("q")
    assert [row["k"] for row in engine.emitted("q").to_pylist()] == [1]


def test_frames_that_can_not_be_cut_any_further_begin_anew():
    engine = sw.Engine()
    engine.register(fr.FrameQuery(fr.Aggregate(sw.sum("y"), ">=", 2**62), sw.count(), name="q"))
    engine.append({"ts": [1], "y": [-(2**62)]})
    engine.append({"ts": [2, 3], "y": [-(2**62), -(2**62)]})
    with pytest.raises(sw.SumOverflow):
        engine.emitted("q")
    engine.append({"ts": [4], "y": [2**62]})
    assert engine.emitted("q").to_pylist() == [{"frame_id": 0, "start": 4, "end": 4, "rows": 1, "count()": 1}]


def test_what_is_asked_of_frames_otherwise_is_refused():
    engine = sw.Engine(key="k")
    engine.register(fr.FrameQuery(fr.Threshold("x", ">", 0), sw.count(), name="q"))
    with pytest.raises(sw.BadQuery, match="a row for each frame"):
        engine.lookup("q")
    with pytest.raises(sw.BadQuery):
        engine.features({"k": [1]}, queries=["q"])
    with pytest.raises(sw.BadQuery, match="two queries are named"):
        engine.register(fr.FrameQuery(fr.Threshold("x", ">", 1), sw.count(), name="q"))
    with pytest.raises(sw.BadQuery, match="as the key is"):
        engine.register(fr.FrameQuery(fr.Threshold("x", ">", 1), sw.count().alias("k"), name="r"))
    with pytest.raises(sw.BadQuery, match="as a column of every table of frames is"):
        engine.register(fr.FrameQuery(fr.Threshold("x", ">", 1), sw.count(), by="start", name="r"))
    with pytest.raises(sw.BadQuery, match="'count' is no aggregate"):
        fr.FrameQuery(fr.Threshold("x", ">", 1), "count")
    assert [query.label for query in engine.queries] == ["q"]
    assert engine.lookup_all().num_rows == engine.filters().num_rows == 0


def test_frames_are_no_features_and_queries_without_sql_need_a_name():
    engine = sw.Engine(key="k")
    engine.register(fr.FrameQuery(fr.State("x"), [sw.count()], name="q"))
    engine.append({"ts": [1], "k": ["a"], "x": [1]})
    with pytest.raises(sw.BadQuery, match="has a row for each frame, so it is no feature"):
        engine.features({"k": ["a"]}, queries=["q"])
    matches = fr.Pattern("A B", {"B": "x > PREV(x)"})
    with pytest.raises(sw.BadQuery, match=r'Pattern has no FRAME clause in SQL\. Hint: .*name="q"'):
        engine.register(fr.FrameQuery(matches, [sw.count()]))
    assert engine.register(fr.FrameQuery(matches, [sw.count()], name="p")) == "p"


@pytest.mark.parametrize("by", [None, "k", ()], ids=str)
@pytest.mark.parametrize("spec", [fr.Threshold("x", ">", 0), fr.Aggregate(LATEST, ">", 1)], ids=["values", "spec"])
def test_a_query_without_a_name_is_loaded_with_its_functions(spec, by):
    query = fr.FrameQuery(spec, [LATEST, sw.sum("i")], by=by)
    events = table([{"ts": t, "k": "ab"[t % 2], "x": float(t % 5), "i": t, "t": None} for t in range(20)])
    engine = sw.Engine(key="k")
    name = engine.register(query)
    engine.append(events.slice(0, 9))
    engine = reloaded(engine, [query])
    assert [each.label for each in engine.queries] == [name]
    engine.append(events.slice(9))
    found = engine.emitted(name).drop_columns(["frame_id"]).to_pylist()
    wanted = sw.evaluate(query, events, key="k").drop_columns(["frame_id"]).to_pylist()
    assert found and all(row in wanted for row in found)
    with pytest.raises(sw.BadSnapshot, match="whose functions are not in the file"):
        reloaded(engine, [])
