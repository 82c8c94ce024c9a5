"""Time ends frames: once no event that is still to come can belong to one, it comes out, and nobody waits for the next.

session(3)   1 2 . . .|       punctuated up to 5: whatever comes is more than 3 after 2
"""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from frames import theory
from frames.finding.intake import with_read
from tests.examples import share
from tests.frames.cases import SPECS, interval, streams, table
from tests.frames.test_continuous import reloaded

NAMES = [
    "session", "session, split, short", "threshold, split", "threshold, split, short", "predicate, split",
    "boundary, rows", "delta <, rows", "sum <, split", "quantile, rows", "state, split", "between, split",
    "threshold >=, rows",
    "partition, split", "predicate, partition", "delta >, split", "sum >=, split", "distinct of text >=",
    "partition, open", "state, open", "session, open", "boundary, durations", "sum >=, open",
]  # fmt: skip
TRIED = {type(SPECS[name]) for name in NAMES}
OTHERS = [name for name, spec in SPECS.items() if not isinstance(spec, (*TRIED, fr.Pattern, fr.Custom))]  # new kinds
NEXT = [{"x": x, "i": i} for x, i in itertools.product([None, -1.0, 0.5, 1.0, 2.0, 7.25], [-1, 0, 1, 2, 3, None])]


def certain(spec, rows, t):
    """Of the events of one key up to t: the frames that there are whatever comes next, if anything does, after t."""
    own = theory.in_order([row for row in rows if row["ts"] <= t])
    nexts = [[{**own[0], **event, "ts": t + later}] for event in NEXT for later in (1, 4, 40)] if own else []
    return set.intersection(*(set(framing(spec, own + some)) for some in [[], *nexts])) if own else set()


def framing(spec, own):
    read = with_read(spec, table(own)).to_pylist() if spec.texts else own
    found = theory.final(spec, read)
    if isinstance(spec, fr.Threshold) and spec.partition:  # gaps: where one ends, only the frame behind it says
        found = found + theory.gaps(found, read)
    return [(*interval(spec, own, s, e), s) for s, e in found]


def decided(spec, rows, t, key):
    """(key, start, end, rows) of all frames that are certain once all events up to t have come."""
    groups = {row[key] if key else None for row in rows}
    own = {value: [row for row in rows if key is None or row[key] == value] for value in groups}
    return sorted((str(value), *frame[:3]) for value, some in own.items() for frame in certain(spec, some, t))


def told(found, key):
    return [(str(row.get(key)), row["start"], row["end"], row["rows"]) for row in found.to_pylist()]


def test_a_session_ends_when_it_has_been_silent_for_long_enough():
    detector = fr.Detector(fr.Session(3), key="k")
    detector.push({"ts": [1, 2], "k": ["a", "a"], "x": [7, 7]})
    assert detector.punctuate(4).num_rows == 0
    assert (detector.promised, detector.promised_end) == (0, 1)
    assert told(detector.punctuate(5), "k") == [("a", 1, 2, 2)]
    assert (detector.promised, detector.promised_end) == (5, 5)


def test_what_is_as_long_as_it_may_be_is_decided_with_its_last_event():
    detector = fr.Detector(fr.Threshold("x", ">", 0, max_rows=2))
    detector.push({"ts": [1, 2, 3], "x": [1, 1, 1]})
    assert told(detector.punctuate(2), None) == [("None", 1, 2, 2)]
    engine = sw.Engine()
    engine.register(fr.FrameQuery(fr.Threshold("x", ">", 0, max_rows=2), [sw.sum("x")], name="q"))
    engine.append({"ts": [1, 2, 3], "x": [1, 2, 3]})
    assert engine.emitted("q").to_pylist() == [{"frame_id": 0, "start": 1, "end": 2, "rows": 2, "sum(x)": 3}]


@pytest.mark.parametrize("name", NAMES + OTHERS)
@given(data=st.data(), rows=streams(most=10, keys=2))
@settings(max_examples=share(8), deadline=None)
def test_all_frames_that_are_certain_come_out_and_no_others(name, data, rows):
    spec, key = SPECS[name], data.draw(st.sampled_from([None, "k"]))
    detector, found = fr.Detector(spec, key=key, fragments=False), []
    detector.push(table(rows))
    for t in sorted(data.draw(st.sets(st.integers(-1, 14), min_size=1, max_size=3))):
        found += told(detector.punctuate(t), key)
        assert sorted(found) == decided(spec, rows, t, key)
    found += told(detector.finish(), key)
    assert sorted(found) == sorted(told(fr.detect(spec, table(rows), key=key), key))


@pytest.mark.parametrize("name", ["session", "session, split, short", "threshold, split", "between, split"])
@given(data=st.data(), rows=streams(most=12, keys=2))
@settings(max_examples=share(8), deadline=None)
def test_a_punctuation_of_one_key_ends_its_frames(name, data, rows):
    spec, t = SPECS[name], data.draw(st.integers(-1, 14))
    detector = fr.Detector(spec, key="k")
    detector.push(table(rows))
    if rows:
        found = told(detector.punctuate(t, key="a"), "k")
        assert sorted(found) == decided(spec, [row for row in rows if row["k"] == "a"], t, "k")
        assert sorted(found + told(detector.finish(), "k")) == sorted(told(fr.detect(spec, table(rows), key="k"), "k"))


@pytest.mark.parametrize(
    "name", ["session", "threshold, split, short", "sum <, split", "quantile, rows", "between, split"]
)
@given(data=st.data(), rows=streams(most=12, keys=2))
@settings(max_examples=share(6), deadline=None)
def test_in_an_engine_time_that_passes_ends_frames(name, data, rows):
    rows, key = theory.in_order(rows), data.draw(st.sampled_from([None, "k"]))
    late = data.draw(st.sampled_from([None, 2]))
    query = fr.FrameQuery(
        SPECS[name], {"n": sw.count(), "first": sw.first("i"), "mid": sw.median("x")}, "i <> 2", name="q"
    )
    engine, found, at = sw.Engine(key=key, lateness=late), [], -5
    engine.register(query)
    for t in sorted(data.draw(st.sets(st.integers(-1, 14), max_size=4))) + [40]:
        engine.append(table([row for row in rows if at < row["ts"] <= t]))
        engine.advance(t + 1 + (late or 0))
        at = t
        found += [] if not rows else engine.emitted("q").to_pylist()
        assert sorted(told(pa.Table.from_pylist(found), key)) == decided(query.spec, rows, t, key)
        if data.draw(st.booleans()):
            engine = reloaded(engine, [query])
    stored = {row["frame_id"]: row for row in sw.evaluate(query, table(rows), key=key).to_pylist()} if rows else {}
    for row in found:
        same = next(r for r in stored.values() if all(r[n] == row[n] for n in row if n not in ("frame_id", "mid")))
        assert same["mid"] == row["mid"] or same["mid"] != same["mid"]
    assert len({row["frame_id"] for row in found}) == len(found)


def test_an_engine_tells_that_time_ended_a_frame():
    engine = sw.Engine(key="k", lateness=3)
    engine.register(fr.FrameQuery(fr.Session(4), [sw.count()], name="q"))
    engine.append({"ts": [1, 2], "k": ["a", "a"]})
    engine.append({"ts": [6], "k": ["b"]})
    assert [(row["value"], row["ts"], row["passing"]) for row in engine.changes().to_pylist()] == [(0, 1, True)]
    engine.append({"ts": [9], "k": ["b"]})  # the watermark is 6: one of a may come at 6 still
    assert [(row["k"], row["passing"]) for row in engine.changes("q").to_pylist()] == [("b", True)]
    engine.append({"ts": [10], "k": ["b"]})
    assert [(row["value"], row["ts"], row["passing"]) for row in engine.changes("q").to_pylist()] == [(0, 2, False)]
    assert engine.emitted("q")["k"].to_pylist() == ["a"]


@pytest.mark.parametrize(
    "spec", [fr.Session(10), fr.Threshold("x", ">", 0, max_duration=10), fr.State("x", max_rows=1)]
)
def test_of_users_that_come_once_nothing_is_kept(spec):
    engine, out, sizes = sw.Engine(key="k", lateness=5), 0, []
    engine.register(fr.FrameQuery(spec, [sw.count()], name="q"))
    for batch in range(60):
        ts = 100 * batch + np.arange(1000) // 10
        engine.append({"ts": ts, "k": 1000 * batch + np.arange(1000), "x": np.ones(1000)})
        out += engine.emitted("q").num_rows
        sizes.append(engine.stats()["bytes"])
    assert out >= 59_000 - 200
    assert max(sizes[40:]) <= 1.2 * max(sizes[:20])
