"""Frames that are filled from another stream: stored, and in an engine that is given both as they come."""

import datetime as dt
import tempfile
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from tests.examples import share
from tests.frames.test_continuous import assert_same, cut

FEWER = settings(max_examples=settings().max_examples // 3, deadline=None)
REPORTS = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": pa.int64()})
MESSAGES = pa.schema({"ts": pa.int64(), "k": pa.string(), "bytes": pa.int64(), "t": pa.string()})
SPEC = fr.Threshold("x", ">", 0, min_rows=2)
SPECS = [
    SPEC, fr.Threshold("x", ">", 0, partition=True, min_rows=2), fr.State("x"),
    fr.Threshold("x", ">", 0, extent="open"), fr.Delta("x", 0, op=">", extent="open"), fr.Session(2, max_rows=3),
    fr.Pattern("A B", {"A": "x > 0", "B": "x <= 0"}),
]  # fmt: skip
VALUES = {"n": sw.count(), "sum": sw.sum("bytes"), "most": sw.max("t"), "median": sw.median("bytes")}
MERGED = {
    "n": sw.count(),
    "sum": sw.sum("bytes"),
    "first": sw.first("bytes"),
    "u": sw.sum("ts").filter("t = 'u'"),
}


@st.composite
def both(draw):
    """Reports and messages of a few keys, each in order of ts."""
    found = []
    for schema in (REPORTS, MESSAGES):
        ts, rows = 0, []
        for _ in range(draw(st.integers(0, 20))):
            ts += draw(st.sampled_from([0, 1, 1, 3]))
            row = {"ts": ts, "k": draw(st.sampled_from("ab")), "x": draw(st.sampled_from([0, 1, 1, 1, None]))}
            row |= {"bytes": draw(st.sampled_from([1, 2, 5, None])), "t": draw(st.sampled_from(["u", "v", None]))}
            rows.append({name: row[name] for name in schema.names})
        found.append(rows)
    return found


def query(before, after, **options):
    return fr.FrameQuery(SPEC, VALUES, fill_from="messages", before=before, after=after, name="q", **options)


def reloaded(engine):
    with tempfile.TemporaryDirectory() as folder:
        engine.save(Path(folder) / "snapshot")
        return sw.Engine.load(Path(folder) / "snapshot")


@given(streams=both(), before=st.integers(-2, 4), after=st.integers(-2, 4), key=st.sampled_from([None, "k"]))
@FEWER
def test_stored_frames_hold_the_events_from_before_their_start_to_after_their_end(streams, before, after, key):
    reports, messages = pa.Table.from_pylist(streams[0], REPORTS), pa.Table.from_pylist(streams[1], MESSAGES)
    said = sw.evaluate(query(before, after, where="bytes <> 2"), reports, key=key, messages=messages)
    frames = fr.detect(SPEC, reports, key=key)
    assert said.select(frames.column_names).equals(frames.replace_schema_metadata(said.schema.metadata))
    for row in said.to_pylist():
        inside = [
            m["bytes"] for m in streams[1]
            if row["start"] - before <= m["ts"] <= row["end"] + after and (key is None or m["k"] == row["k"])
            and m["bytes"] not in (None, 2)
        ]  # fmt: skip
        assert row["n"] == len(inside) and row["sum"] == (sum(inside) if inside else None)


WRONG = [{"t": [7]}, {"k": [5], "t": [7]}, {"k": [None]}, {"ts": [2, 1], "k": [5, 5], "bytes": [1, 1], "t": ["u", "u"]}]


def try_wrong(engine, rows, lateness):
    """Messages that only the second query refuses, or that none can take: whole batches, and nothing has come."""
    for wrong in WRONG[: len(WRONG) - (lateness is not None)]:
        batch = {"ts": [rows[0]["ts"]], "k": ["a"], "bytes": [1], "t": ["u"]} | wrong
        with pytest.raises(sw.SwagError):
            engine.append(batch, stream="messages")


@given(
    data=st.data(), streams=both(), before=st.integers(-2, 4), after=st.integers(-2, 4), kept=st.sampled_from([0, 9])
)
@settings(max_examples=share(60), deadline=None)
def test_an_engine_says_the_same_of_each_frame_as_soon_as_both_streams_have_passed_it(
    data, streams, before, after, kept
):
    """Whatever comes first, however late it is, and however the streams are cut. Nothing that was said has to be taken
    back, and batches that are refused leave nothing behind. kept: so many messages and keys are kept without a look at
    who may need them."""
    spec, values = data.draw(st.sampled_from(SPECS)), data.draw(st.sampled_from([VALUES, MERGED]))
    asked = fr.FrameQuery(spec, values, fill_from="messages", before=before, after=after, name="q")
    key, lateness = data.draw(st.sampled_from([None, "k"])), data.draw(st.none() | st.integers(0, 8))
    engine = sw.Engine(key=key, lateness=lateness, hold=lateness is None or data.draw(st.booleans()))
    engine.register(asked)
    engine.register(
        fr.FrameQuery(fr.Session(9), {"u": sw.count().filter("t = 'u'")}, fill_from="messages", by="k", name="o")
    )
    jitter = st.integers(0, lateness or 0)
    came = [sorted(rows, key=lambda row: row["ts"] + data.draw(jitter)) if lateness else list(rows) for rows in streams]
    parts = [cut(data.draw, rows) for rows in came]
    tables = []
    with patch("frames.continuous.filled.SMALL", kept), patch("frames.continuous.filled.MANY_KEYS", kept):
        while any(parts):
            if data.draw(st.booleans()):
                try_wrong(engine, streams[1][-1:] or streams[0][-1:] or [{"ts": 0}], lateness)
            which = data.draw(st.sampled_from([i for i in (0, 1) if parts[i]]))
            events = pa.Table.from_pylist(parts[which].pop(0), (REPORTS, MESSAGES)[which])
            engine.append(events, stream=(None, "messages")[which])
            tables.append(engine.emitted("q"))
            if data.draw(st.booleans()):
                engine = reloaded(engine)
        if not streams[0]:
            return
        engine.advance(10_000)
        tables.append(engine.emitted("q"))
    assert engine.stats()["late"] == 0
    reports, messages = (pa.Table.from_pylist(sorted(rows, key=lambda row: row["ts"]), schema)
                         for rows, schema in zip(came, (REPORTS, MESSAGES), strict=True))  # fmt: skip
    check_ended(engine, tables, sw.evaluate(asked, reports, key=key, messages=messages), spec, key)


def check_ended(engine, tables, wanted, spec, key):
    """These rows are of the frames that have ended. Of a partition, the last one of a key has not."""
    rows = pa.concat_tables([each for each in tables if each.num_rows] or tables[-1:])
    said, open_ = wanted.to_pylist(), set(engine.changes("q")["value"].to_pylist())
    if isinstance(spec, fr.Threshold) and spec.partition:
        open_ |= set({row.get(key): row["frame_id"] for row in said}.values())
    known = [row["frame_id"] not in open_ and row["end"] is not None for row in said]
    if rows.num_rows or any(known):
        assert_same(rows.sort_by("frame_id"), wanted.filter(pa.array(known, pa.bool_())))


@given(data=st.data(), streams=both(), before=st.integers(-2, 4), after=st.integers(-2, 4))
@settings(max_examples=share(20), deadline=None)
def test_frames_filled_from_their_own_stream_are_what_they_are_with_it_given_twice(data, streams, before, after):
    """By the name that queries call it, or by none."""
    spec, key = data.draw(st.sampled_from(SPECS)), data.draw(st.sampled_from([None, "k"]))
    values = data.draw(st.sampled_from([{"n": sw.count(), "x": sw.sum("x")}, {"k_": sw.max("k"), "x": sw.median("x")}]))
    asked = fr.FrameQuery(spec, values, stream="reports", fill_from="reports", before=before, after=after, name="q")
    reports, tables = pa.Table.from_pylist(streams[0], REPORTS), []
    lateness = data.draw(st.none() | st.integers(0, 3))
    engine = sw.Engine(key=key, lateness=lateness)
    engine.register(asked)
    for part in cut(data.draw, streams[0]):
        name = data.draw(st.sampled_from([None, "reports"]))
        engine.append(pa.Table.from_pylist(part, REPORTS), stream=name)
        tables.append(engine.emitted("q"))
        engine = reloaded(engine) if data.draw(st.booleans()) else engine
    if not streams[0]:
        return
    engine.advance(10_000)
    tables.append(engine.emitted("q"))
    check_ended(engine, tables, sw.evaluate(asked, reports, key=key), spec, key)
    other = fr.FrameQuery(spec, values, fill_from="again", before=before, after=after)
    if before or after:
        assert sw.evaluate(asked, reports, key=key).equals(sw.evaluate(other, reports, key=key, again=reports))


@pytest.mark.parametrize("fill_from", ["messages", "reports"])
def test_the_key_may_be_of_several_columns(fill_from):
    values = {"n": sw.count(), "sum": sw.sum("bytes + 1"), "most": sw.max("t"), "middle": sw.median("bytes")}
    asked = fr.FrameQuery(SPEC, values, stream="reports", fill_from=fill_from, before=1, after=1, name="q")
    rows = [{"ts": i // 2, "k": "ab"[i % 2], "j": i % 3, "x": i % 7, "bytes": i, "t": "uv"[i % 2]} for i in range(90)]
    events, by = pa.Table.from_pylist(rows), ["k", "j"]
    engine, tables = sw.Engine(key=by, lateness=3), []
    engine.register(asked)
    for at in range(0, 90, 15):
        engine.append(events[at : at + 15])
        if fill_from == "messages":
            engine.append(events[at : at + 15], stream="messages")
        tables.append(engine.emitted("q"))
        engine = reloaded(engine)
    engine.advance(1000)
    tables.append(engine.emitted("q"))
    streams = {} if fill_from == "reports" else {"messages": events}
    check_ended(engine, tables, sw.evaluate(asked, events, key=by, **streams), SPEC, by)
    assert sum(each.num_rows for each in tables) > 8


def test_frames_own_their_events_in_the_stream_that_they_are_found_in_unless_edges_are_moved():
    reports = {"ts": [1, 1, 2, 2, 3, 3], "x": [0, 9, 9, 9, 9, 0]}
    text = "SELECT COUNT(*) AS n FROM a [FRAME WHERE x > 5] FILL FROM a"
    assert sw.evaluate(text, reports)["n"].to_pylist() == [4]
    assert sw.evaluate(text + " BEFORE 1", reports, a=reports)["n"].to_pylist() == [6]
    with pytest.raises(sw.BadQuery, match="a=… is another table"):
        sw.evaluate(text + " BEFORE 1", reports, a={"ts": [1], "x": [2]})


def test_messages_that_may_still_be_late_are_waited_for():
    engine = sw.Engine(key="k", lateness=8)
    engine.register(fr.FrameQuery(fr.State("x"), {"n": sw.count()}, fill_from="m", name="q"))
    for ts, x in ([5, 8], 0), ([20, 40], 1):
        engine.append({"ts": ts, "k": ["a"] * 2, "x": [x] * 2})
    engine.append({"ts": [4, 13], "k": ["a"] * 2}, stream="m")
    assert engine.emitted("q").num_rows == 0
    engine.append({"ts": [6, 7, 14, 17], "k": ["a"] * 4}, stream="m")
    assert engine.emitted("q")["n"].to_pylist() == [2]


FROM_A = "SELECT COUNT(*) AS n FROM a [FRAME WHERE x > 5] FILL FROM m"
OTHERS = [
    "SELECT COUNT(*) AS c FROM m [ROWS 9]", "SELECT COUNT(*) AS c FROM b [RANGE 9, EVERY 3]",
    "SELECT COUNT(*) AS c FROM (SELECT * FROM b WHERE x > 1) [ROWS 3]", FROM_A.replace("FROM a", "FROM b"),
    fr.FrameQuery(fr.State("x"), sw.count(), stream="m", name="c"),
    "SELECT COUNT(*) FROM c [FRAME STATE x] FILL FROM a",
]  # fmt: skip


@pytest.mark.parametrize("other", OTHERS)
def test_one_engine_has_one_stream_that_its_queries_read(other, tmp_path):
    for first, second in (FROM_A, other), (other, FROM_A):
        engine = sw.Engine()
        name = engine.register(first)
        with pytest.raises(sw.BadQuery, match="n engine has one stream"):
            engine.register(second)
        engine = reloaded(engine)
        with pytest.raises(sw.BadQuery, match="an engine for each"):
            engine.register(second)
        engine.unregister(name if isinstance(name, str) else name[0])
        engine.register(second)


def test_names_of_streams_are_free_where_they_tell_nothing_apart():
    engine = sw.Engine()
    engine.register("SELECT COUNT(*) AS one FROM a [ROWS 9]")
    engine.register("SELECT COUNT(*) AS two FROM b [ROWS 9, FREQUENCY 2]")
    engine.register("SELECT MAX(two) AS three FROM two [ROWS 2]")
    assert engine.append({"ts": [1], "x": [1]}, stream="a") == engine.append({"ts": [1], "x": [1]}, stream="b") == 1
    assert engine.lookup("one") == 2
    engine.unregister("one")
    engine.register(fr.FrameQuery(fr.State("x"), sw.count(), fill_from="a", name="c"))
    engine.register(sw.Query(sw.sum("x"), sw.Rows(9), name="four"))
    with pytest.raises(sw.BadQuery, match='"one" reads "a", which frames of "c" are filled from'):
        engine.register("SELECT COUNT(*) AS one FROM a [ROWS 9]")


def test_messages_that_no_frame_can_reach_are_let_go():
    engine = sw.Engine(key="k", lateness=10)
    engine.register(fr.FrameQuery(SPEC, sw.count(), fill_from="messages", before=100, name="q"))
    for at in range(0, 100_000, 1000):
        ts = list(range(at, at + 1000))
        engine.append({"ts": ts, "k": ["a"] * 1000}, stream="messages")
        engine.append({"ts": [at + 500, at + 600, at + 700], "k": ["a"] * 3, "x": [1, 1, 0]})
    assert engine.stats()["kept"] < 10_000
    assert engine.emitted("q")["count()"].to_pylist()[1:] == [201] * 98
    assert "wait to be filled from messages" in engine.explain()


@pytest.mark.parametrize("lateness", [None, 5])
@pytest.mark.parametrize("spec", [
    fr.State("x"), fr.Threshold("x", "<", 0, partition=True), fr.Delta("x", 1, op=">", extent="open"),
])  # fmt: skip
def test_messages_of_an_open_frame_are_kept_as_partials_however_long_it_is(spec, lateness):
    engine, size = sw.Engine(key="k", lateness=lateness), 500
    values = {"n": sw.count(), "sum": sw.sum("b"), "last": sw.last("b")}
    engine.register(fr.FrameQuery(spec, values, fill_from="messages", before=3, after=-2, name="q"))
    with patch("frames.continuous.filled.SMALL", 0):
        for at in range(0, 20 * size, size):
            ts = list(range(at, at + size))
            engine.append({"ts": ts, "k": ["a"] * size, "x": [1] * size})
            engine.append({"ts": ts, "k": ["a"] * size, "b": ts}, stream="messages")
            assert engine.stats()["kept"] <= 3 * size
            engine = reloaded(engine) if at == size else engine
    engine.append({"ts": [at + size, at + size + 1], "k": ["a"] * 2, "x": [-9, -9]})
    engine.advance(10 * at)
    (row,) = engine.emitted("q").to_pylist()
    end = row["end"] - 2 - (spec.extent == "open")
    assert (row["n"], row["sum"], row["last"]) == (end + 1, end * (end + 1) // 2, end)
    assert engine.stats()["kept"] < 9


def test_no_more_is_kept_than_is_asked_for_once_time_has_passed():
    engine = sw.Engine(key="k")
    engine.register(fr.FrameQuery(SPEC, sw.median("b"), fill_from="messages", name="q"))
    engine.append({"ts": [1], "k": ["a"], "x": [0]})
    engine.append({"ts": range(1000), "k": ["a"] * 1000, "b": range(1000)}, stream="messages")
    engine.advance(1000)
    assert engine.stats()["kept"] == 0


def test_a_gap_has_the_messages_of_its_beginning():
    """And so has a frame that has ended, but for the event that tells where."""
    for spec in fr.Threshold("x", ">", 5, partition=True), fr.Delta("x", 0, op=">", extent="open"):
        engine = sw.Engine()
        engine.register(fr.FrameQuery(spec, {"n": sw.count(), "middle": sw.median("b")}, fill_from="m", name="q"))
        with patch("frames.continuous.filled.SMALL", 0):
            for ts in range(4):
                engine.append({"ts": [ts], "x": [9 * (ts == 3)]})
                engine.append({"ts": [ts], "b": [ts]}, stream="m")
                engine.append({"ts": [ts], "b": [ts]}, stream="m")
            engine.append({"ts": [9], "x": [0]})
            engine.advance(10)
        assert engine.emitted("q").to_pylist()[0]["n"] == (6 if isinstance(spec, fr.Threshold) else 8)


def test_a_sum_that_does_not_fit_takes_no_other_frame_with_it():
    engine = sw.Engine()
    engine.register(fr.FrameQuery(fr.State("x"), {"sum": sw.sum("b")}, fill_from="m", name="q"))
    engine.append({"ts": [1, 2, 3, 4], "x": [0, 1, 2, 3]})
    engine.append({"ts": [1, 2, 2, 3, 9], "b": [7, 2**62, 2**62, 8, 0]}, stream="m")
    with pytest.raises(OverflowError):
        engine.emitted("q")
    assert engine.emitted("q")["sum"].to_pylist() == [7, 8]


@pytest.mark.parametrize("spec", [
    fr.Threshold("x", ">", 0, extent="open"), fr.Pattern("A+", {"A": "x > 0"}, extent="open"),
    fr.Pattern("A B", {"A": "x > 0", "B": "x <= 0"}),
])  # fmt: skip
def test_half_open_frames_and_matches_are_filled_as_stored_ones_are(spec):
    asked = fr.FrameQuery(spec, sw.count(), fill_from="messages", after=-1, name="q", by="k")
    reports = {"ts": [1, 2, 4, 6, 7, 9, 10], "k": ["a"] * 7, "x": [1, 1, 0, 1, 1, 0, 0]}
    messages = {"ts": list(range(10)), "k": ["a"] * 10}
    engine = sw.Engine()
    engine.register(asked)
    for row in range(7):
        engine.append({name: column[row : row + 1] for name, column in reports.items()})
    engine.append(messages, stream="messages")
    assert engine.emitted("q").to_pylist() == sw.evaluate(asked, reports, messages=messages).to_pylist()


def test_a_frame_waits_for_the_slower_stream():
    engine = sw.Engine(key="k")
    engine.register(query(before=2, after=1))
    engine.append({"ts": [1, 4, 5, 6], "k": ["a"] * 4, "x": [0, 1, 1, 0]})
    assert engine.changes().num_rows == 0
    message = {"k": ["a"], "bytes": [1], "t": ["u"]}
    engine.append({"ts": [2]} | message, stream="messages")
    engine.append({"ts": [6]} | message, stream="messages")
    assert engine.emitted("q").num_rows == 0  # another at 6 may come
    engine.append({"ts": [9], "k": ["b"], "bytes": [1], "t": ["u"]}, stream="messages")
    assert engine.emitted("q").num_rows == 0  # of another key
    engine.append({"ts": [7]} | message, stream="messages")
    assert engine.emitted("q").select(["start", "end", "rows", "n"]).to_pylist() == [
        {"start": 4, "end": 5, "rows": 2, "n": 2}
    ]
    with pytest.raises(sw.OutOfOrder, match='event 0 of "messages"'):
        engine.append({"ts": [3]} | message, stream="messages")
    engine.append({"ts": [10, 11, 12], "k": ["a"] * 3, "x": [1, 1, 0]}, stream=None)
    engine.advance(13)
    assert engine.emitted("q")["n"].to_pylist() == [0]


def test_statements_name_the_streams():
    fill = "FILL FROM messages AS m BEFORE 2"
    text = f"SELECT k, COUNT(*) AS n, AVG(m.bytes) AS b FROM r [FRAME WHERE x > 0] {fill} GROUP BY k"
    (asked,) = sw.sql(text)
    assert (asked.fill_from, asked.before, asked.after, asked.stream) == ("messages", 2, 0, "r")
    assert sw.sql(str(asked)) == [asked]
    assert "FILL FROM messages BEFORE 2" in str(asked)
    both = query(before=2, after=-1)
    assert sw.sql(str(both))[0].after == -1
    (other,) = sw.sql("SELECT COUNT(*) FROM r [FRAME WHERE x > 0] FILL FROM m AFTER - 2 MINUTES WHERE bytes > 1")
    assert (other.before, other.after, other.where) == (0, "-2m", "bytes > 1")
    assert sw.sql(str(other)) == [other]
    engine = sw.Engine()
    engine.register(text)
    assert engine.append({"ts": [1], "k": ["a"], "x": [1]}, stream="r") == 1
    assert engine.append({"ts": [1], "k": ["a"], "bytes": [1]}, stream="messages") == 1
    with pytest.raises(sw.BadQuery, match="none that a query reads: messages, r"):
        engine.append({"ts": [1]}, stream="reports")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT COUNT(*) FROM r [ROWS 5] FILL FROM m", "FILL FROM without a frame"),
        ("SELECT AVG(r.x) FROM r [FRAME WHERE x > 0] FILL FROM m", '"r" is not the stream'),
        ("SELECT COUNT(*) FROM r [FRAME WHERE x > 0] FILL FROM", "the name of a stream"),
        ("SELECT COUNT(*) FROM r [FRAME WHERE x > 0] FILL FROM m BEFORE GROUP BY k", "expected a number"),
    ],
)
def test_mistakes_in_statements_are_named(text, why):
    with pytest.raises(sw.BadSQL, match=why):
        sw.sql(text)


def test_streams_that_are_missing_or_not_meant_are_named():
    reports = {"ts": [1, 2], "k": ["a", "a"], "x": [1, 1]}
    with pytest.raises(sw.BadQuery, match='filled from "messages", which is not there'):
        sw.evaluate(query(0, 0), reports)
    with pytest.raises(sw.BadQuery, match='"others" is no stream'):
        sw.evaluate(query(0, 0), reports, messages=reports, others=reports)
    with pytest.raises(sw.BadQuery, match="outt=… is no option"):
        sw.evaluate(sw.Query(sw.count(), sw.Rows(1)), reports, outt="pandas")
    with pytest.raises(sw.BadQuery, match="move the edges"):
        fr.FrameQuery(SPEC, sw.count(), before=2)
    engine = sw.Engine(key="k")
    engine.register(query(0, 0))
    engine.append(reports)
    stamped = {"ts": [dt.datetime(2024, 1, 1)], "k": ["a"], "bytes": [1], "t": ["u"]}
    for wrong in (stamped, {"ts": [1], "k": ["a"], "t": ["u"]}, {"ts": [1], "k": ["a"], "bytes": ["x"], "t": ["u"]}):
        with pytest.raises(sw.SwagError):
            engine.append(wrong, stream="messages")
    assert "0 of its events are kept" in engine.explain()


def test_messages_that_one_query_refuses_are_taken_by_none():
    engine = sw.Engine()
    engine.register(fr.FrameQuery(fr.State("x"), {"n": sw.count()}, fill_from="m", name="a"))
    engine.register(fr.FrameQuery(fr.State("x"), {"sum": sw.sum("b")}, fill_from="m", name="b"))
    engine.append({"ts": [1, 2], "x": [0, 1]})
    with pytest.raises(sw.BadType):
        engine.append({"ts": [1, 1], "b": ["u", "v"]}, stream="m")
    engine.advance(5)
    assert engine.emitted("a")["n"].to_pylist() == [0]


@pytest.mark.parametrize("by", ["k", ("k", "j")])
@pytest.mark.parametrize("lateness", [None, 9])
def test_keys_of_both_streams_are_of_one_type_whichever_comes_first(by, lateness):
    """One of another type is refused with its batch; otherwise frames could not be told from those of other keys."""
    words = {"ts": [1, 2], "k": ["a", "a"], "j": [1, 1], "x": [0, 1]}
    numbers = words | {"k": [1, 1]}
    for first in (None, "m"):
        engine = sw.Engine(key=by, lateness=lateness)
        engine.register(fr.FrameQuery(fr.State("x"), sw.count(), fill_from="m", name="q"))
        engine.append(words, stream=first)
        with pytest.raises(sw.BadType, match='"k" is int64, but keys have been string so far'):
            engine.append(numbers, stream="m" if first is None else None)
        engine.append(words, stream="m" if first is None else None)
        engine.advance(20)
        assert engine.emitted("q")["count()"].to_pylist() == [1]


@pytest.mark.parametrize("lateness", [None, 5])
@pytest.mark.parametrize("fill_from", ["m", "r"])
def test_keys_that_pass_are_forgotten_with_their_messages(fill_from, lateness):
    engine, sizes = sw.Engine(key="k", lateness=lateness), []
    spec = fr.Threshold("x", ">", 0.5)
    engine.register(fr.FrameQuery(spec, {"n": sw.count()}, fill_from=fill_from, stream="r", before=5, name="q"))
    for at in range(0, 300, 10):
        keys = np.arange(at * 100, at * 100 + 1000)
        rows = {"ts": np.repeat([at, at + 1], 1000), "k": np.tile(keys, 2), "x": np.repeat([1.0, 0.0], 1000)}
        engine.append(rows)
        if fill_from == "m":
            engine.append(rows, stream="m")
        engine.advance(at + 3)
        engine.emitted("q")
        sizes.append(engine.stats()["bytes"])
    assert max(sizes[10:]) <= max(sizes[:10])
