"""Patterns, and frames that overlap, in an engine: as events come, what is found in all of them at the end."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from tests.examples import share
from tests.frames.cases import CUSTOM, SPECS
from tests.frames.test_continuous import HOLISTIC, VALUES, assert_same, cut, reloaded, streams, table
from tests.frames.uncompiled import only_uncompiled, run_uncompiled

FEWER = settings(max_examples=share(8), deadline=None)
PATTERNS = ["pattern", "pattern, measures", "pattern, open", "pattern, match so far", "pattern over text"]
DIP = """SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES FIRST(A.ts) AS start, LAST(B.x) AS low
         PATTERN (A B+ C) DEFINE B AS x < PREV(x), C AS x > PREV(x))"""


def matched(spec):
    """The same pattern, as a statement over its matches."""
    if spec.measures:
        measures = ", ".join(f'{text} AS "{name}"' for name, text in spec.measures.items())
    else:
        measures = "COUNT(*) AS n"
    define = ", ".join(f"{name} AS {text}" for name, text in spec.define.items())
    return sw.sql(f"SELECT * FROM s MATCH_RECOGNIZE (MEASURES {measures} PATTERN ({spec.pattern}) DEFINE {define})")[0]


def frames_so_far(spec, rows, key):
    """What a detector says that has been told of all these events, key by key as they came, and of no end."""
    detector = fr.Detector(spec, key=key)
    detector.push(table(rows))
    return detector.punctuate(10**9)


def run(query, rows, key, draw, lateness=None, hold=True):
    """The rows that an engine has of a stream that is cut anywhere, and saved and loaded anywhere."""
    engine, tables = sw.Engine(key=key, lateness=lateness, hold=hold), []
    engine.register(query)
    for part in cut(draw, rows):
        engine.append(table(part))
        if draw(st.booleans()):
            tables.append(engine.emitted("q"))
        if draw(st.booleans()):
            engine = reloaded(engine, [query])
    if rows and lateness is not None:
        engine.advance(max(row["ts"] for row in rows) + lateness)
    assert engine.changes().num_rows == 0  # nothing is certain before it is over
    tables = [each for each in (*tables, engine.emitted("q")) if each.num_rows]
    return pa.concat_tables(tables) if tables else engine.emitted("q")


def assert_rows_are_those_of_the_frames_so_far(spec, query, found, rows, key):
    frames = frames_so_far(spec, rows, key)
    assert found.num_rows == frames.num_rows
    if frames.num_rows == 0:
        return
    whole = query.evaluate(table(rows), key=key)  # has those that only the end decides, or ends, too
    names = ["frame_id", *[key] * (key is not None), "start", "end", "rows"]
    assert_same(found.sort_by("frame_id").select(names), frames.sort_by("frame_id").select(names))
    assert_same(found.sort_by("frame_id"), whole.filter(pc.is_in(whole["frame_id"], found["frame_id"])))


@pytest.mark.parametrize("name", PATTERNS)
@given(data=st.data(), rows=streams())
@FEWER
def test_what_is_said_of_matches_is_that_of_all_events_however_the_stream_is_cut(name, data, rows):
    spec = SPECS[name]
    values, where = data.draw(st.sampled_from([(VALUES | HOLISTIC, "i <> 2"), ({"n": sw.count()}, None)]))
    query = fr.FrameQuery(spec, values, where, name="q")
    for key in (None, "k") if name != "pattern over text" else (None,):
        found = run(query, rows, key, data.draw)
        assert_rows_are_those_of_the_frames_so_far(spec, query, found, rows, key)


@pytest.mark.parametrize("name", PATTERNS[:4])
@given(data=st.data(), rows=streams(), late=st.sampled_from([None, True, False]))
@FEWER
def test_a_statement_over_matches_gives_its_measures(name, data, rows, late):
    query = matched(SPECS[name])
    query = type(query)(query.spec, name="q")
    if late is not None:
        rows = sorted(rows, key=lambda row: row["ts"] + data.draw(st.integers(0, 3)))
    found = run(query, rows, "k", data.draw, None if late is None else 3, late is not False)
    ordered = sorted(rows, key=lambda row: row["ts"])
    assert_rows_are_those_of_the_frames_so_far(query.spec, query, found, ordered, "k")


@only_uncompiled
@pytest.mark.parametrize("name", CUSTOM)
@given(data=st.data(), rows=streams())
@FEWER
def test_property_what_is_said_of_custom_frames_is_that_of_all_events(name, data, rows):
    query = fr.FrameQuery(CUSTOM[name], VALUES | HOLISTIC, "i <> 2", name="q")
    for key in (None, "k"):
        found = run(query, rows, key, data.draw)
        assert_rows_are_those_of_the_frames_so_far(CUSTOM[name], query, found, rows, key)


def test_custom_frames_are_summarised_as_they_come():
    run_uncompiled(__file__)


def test_a_match_is_reported_with_the_event_that_decides_it():
    engine = sw.Engine()
    (name,) = engine.register(DIP)
    assert engine.emitted(name).column_names == ["frame_id", "k", "start_", "end", "rows", "start", "low"]
    told = []
    for ts, (k, x) in enumerate([("a", 9), ("b", 5), ("a", 7), ("a", 8), ("b", 4), ("b", 3), ("b", 9)]):
        engine.append({"ts": [ts], "k": [k], "x": [x]})
        told += [(ts, row["k"], row["start"], row["low"]) for row in engine.emitted(name).to_pylist()]
    assert told == [(3, "a", 0, 7), (6, "b", 1, 3)]
    assert [query.label for query in engine.queries] == [name]


def test_a_statement_selects_some_columns_of_matches_by_several_keys():
    engine = sw.Engine()
    clause = "PARTITION BY a, b MEASURES LAST(x) AS low PATTERN (A A) DEFINE A AS x > 0"
    (name,) = engine.register(f"SELECT b, low FROM s MATCH_RECOGNIZE ({clause})")
    engine.append({"ts": [1, 2, 3], "a": [1, 1, 1], "b": ["u", "v", "v"], "x": [1, 2, 3]})
    assert reloaded(engine, []).emitted(name).to_pylist() == [{"b": "v", "low": 3}]
    with pytest.raises(sw.BadQuery, match='in order of "time"'):
        engine.register("SELECT * FROM s MATCH_RECOGNIZE (ORDER BY time PATTERN (A) DEFINE A AS x > 0)")
    assert engine.emitted(name).schema.names == ["b", "low"]


def test_events_of_which_a_condition_can_not_be_computed_are_refused():
    engine = sw.Engine()
    engine.register(fr.FrameQuery(fr.Pattern("A B", {"A": "CAST(t AS BIGINT) > 1"}), sw.count(), name="q"))
    engine.append({"ts": [1], "t": ["2"]})
    with pytest.raises(sw.BadEvents, match="row 1, where t = 'no'"):
        engine.append({"ts": [2, 3], "t": ["2", "no"]})
    engine.append({"ts": [2], "t": ["7"]})
    assert engine.emitted("q")["rows"].to_pylist() == [2]
    detector = fr.Detector(fr.Pattern("A B", {"A": "CAST(t AS BIGINT) > 1"}))
    with pytest.raises(sw.BadEvents, match="row 0, where t = 'no'"):
        detector.push({"ts": [2], "t": ["no"]})


def test_memory_follows_what_is_undecided():
    """Of endless events that match nothing, and of matches that are found, hardly any are kept."""
    engine = sw.Engine(key="k")
    dip = fr.Pattern("A B+ C", {"B": "x < PREV(x)", "C": "x > PREV(x)"}, {"low": "LAST(B.x)"})
    engine.register(fr.FrameQuery(dip, {"mean": sw.mean("x"), "n": sw.count()}, name="q"))
    engine.register(f"{DIP}")
    sizes = []
    for batch in range(20):
        ts = np.arange(batch * 5000, (batch + 1) * 5000)
        engine.append({"ts": ts, "k": ts % 50, "x": (ts // 50 % 7).astype(float)})
        assert engine.emitted("q").num_rows > 0
        sizes.append(engine.stats()["kept"])
    assert max(sizes) < 3 * 5000
    assert "are kept, as frames or matches that are not certain yet may have them" in engine.explain()


def test_keys_are_forgotten_when_nothing_of_them_is_undecided_and_remembered_while_their_state_counts():
    for update, most in ((None, 5000), (lambda e, s: s + 1, 40_000)):
        engine = sw.Engine(key="k")
        third = fr.Custom("x", open=lambda e, s: e.x > s, close=lambda e, s: 2, update=update)
        engine.register(fr.FrameQuery(third, sw.count(), name="q"))
        for batch in range(30):
            keys = np.arange(batch * 1000, (batch + 1) * 1000)
            engine.append({"ts": np.full(1000, batch), "k": keys, "x": np.full(1000, 0.5)})
            engine.advance(batch)
        assert engine.stats()["keys"] <= most
        engine.append({"ts": [50], "k": [0], "x": [0.7]})
        engine.emitted("q")
        engine.append({"ts": [51], "k": [0], "x": [0.7]})
        assert engine.emitted("q").num_rows == (update is None)
