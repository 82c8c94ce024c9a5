"""What fails in the middle of a batch loses one frame in an engine, and nothing in a detector.

a   [5  5]  [2^62  2^62 !        the sum leaves int64 with !: that frame is lost, and the next one begins behind it
b   [9]  [4     5]               as if a had never been
"""

import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from frames.continuous import refused_rows
from tests.examples import share
from tests.frames.test_continuous import cut, reloaded

BIG = 2**62
POISON = 99.0


def too_much(a, b):
    if a + b > 50:
        raise ValueError("too much")
    return a + b


def last_word(e, s):
    if e.x == POISON:
        raise ValueError("too much")
    return 2 * (e.x >= 3)


GROWING = sw.aggregate("x", lift=lambda x: x, combine=too_much, lower=lambda a: a, identity=0.0)
SPECS = {
    "sum": fr.Aggregate(sw.sum("n"), ">=", 9),
    "condition": fr.Aggregate((sw.sum("n") >= 9) & (sw.count_distinct("n") >= 1)),
    "custom": fr.Custom("x", open=lambda e, s: e.x > 0, close=last_word, unfinished=False),
}
FAILS = {"sum": ("n", sw.SumOverflow), "condition": ("n", sw.SumOverflow), "custom": ("x", sw.BadFunction)}


def frames_of(rows):
    """(start, end, rows) of one key's frames, and how many were lost: event by event, in Python's own numbers."""
    found, lost, open_, total = [], 0, [], 0
    for row in rows:
        total += row["n"]
        if not -(2**63) <= total < 2**63:
            open_, total, lost = [], 0, lost + 1
            continue
        open_.append(row)
        if total >= 9:
            found.append((open_[0]["ts"], row["ts"], len(open_)))
            open_, total = [], 0
    return found, lost


@st.composite
def streams(draw):
    ts, rows = 0, []
    for _ in range(draw(st.integers(0, 24))):
        ts += draw(st.sampled_from([0, 1, 3]))
        n = draw(st.sampled_from([1, 4, -BIG, -BIG]))
        rows.append({"ts": ts, "k": draw(st.sampled_from("abc")), "n": n, "x": float(n)})
    return rows


def table(rows):
    return pa.Table.from_pylist(
        rows, pa.schema({"ts": pa.int64(), "k": pa.string(), "n": pa.int64(), "x": pa.float64()})
    )


def fetched(engine, kind):
    """The rows, and how often something was wrong."""
    wrong = 0
    while True:
        try:
            return engine.emitted("q").to_pylist(), wrong
        except kind:
            wrong += 1


@pytest.mark.parametrize("name", ["sum", "condition"])
@given(rows=streams(), data=st.data())
@settings(max_examples=share(25), deadline=None)
def test_a_sum_that_leaves_int64_loses_its_frame_and_no_other(name, rows, data):
    query = fr.FrameQuery(SPECS[name], {"n": sw.count(), "last": sw.last("x"), "mid": sw.median("x")}, name="q")
    for key in (None, "k"):
        engine, found, wrong = sw.Engine(key=key), [], 0
        engine.register(query)
        for part in cut(data.draw, rows):
            assert engine.append(table(part)) == len(part)
            more, errors = fetched(engine, sw.SumOverflow)
            found, wrong = found + more, wrong + errors
            if data.draw(st.booleans()):
                engine = reloaded(engine, [query])
        expected, lost = [], 0
        for value in dict.fromkeys(row["k"] if key else None for row in rows):
            own, missing = frames_of([row for row in rows if key is None or row["k"] == value])
            expected += [(value, *frame) for frame in own]
            lost += missing
        assert sorted((str(row.get("k")), row["start"], row["end"], row["n"]) for row in found) == sorted(
            (str(value), *frame) for value, *frame in expected
        )
        assert all(row["rows"] == row["n"] for row in found)
        assert len({row["frame_id"] for row in found}) == len(found)
        assert (wrong > 0) == (lost > 0) and wrong <= lost


def test_a_function_that_raises_loses_the_frame_that_it_was_asked_about():
    for spec in (SPECS["custom"], fr.Aggregate(GROWING, ">=", 3)):
        engine = sw.Engine(key="k")
        engine.register(fr.FrameQuery(spec, {"n": sw.count(), "sum": sw.sum("x")}, name="q"))
        engine.register(sw.Query(sw.sum("x"), sw.Rows(3), name="other"))
        engine.append({"ts": [1, 1, 1], "k": ["a", "b", "c"], "x": [1.0, 1.0, 1.0]})
        batch = {"ts": [2, 2, 3, 3, 4], "k": ["a", "b", "a", "c", "a"], "x": [POISON, 3.0, 1.0, 3.0, 5.0]}
        assert engine.append(batch) == 5
        with pytest.raises(sw.BadFunction, match=r"too much.*frame of 'a' at 2, which is lost"):
            engine.emitted("q")
        rows = engine.emitted("q").sort_by("k").to_pylist()
        assert [(row["k"], row["start"], row["end"], row["n"], row["sum"]) for row in rows] == [
            ("a", 3, 4, 2, 6.0), ("b", 1, 2, 2, 4.0), ("c", 1, 3, 2, 4.0),
        ]  # fmt: skip
        assert engine.lookup("other").sort_by("k")["value"].to_pylist() == [POISON + 6.0, 4.0, 4.0]


def test_several_frames_that_are_lost_at_once_are_one_error():
    engine = sw.Engine(key="k")
    engine.register(fr.FrameQuery(SPECS["sum"], sw.count(), name="q"))
    engine.append({"ts": [1] * 4, "k": [0, 1, 2, 3], "n": [-BIG, -BIG, -BIG, 5]})
    engine.append({"ts": [2] * 4 + [3] * 4, "k": [0, 1, 2, 3] * 2, "n": [-BIG, -BIG, -BIG, 4] + [-BIG, -BIG, 9, 1]})
    with pytest.raises(sw.SumOverflow, match=r"of 0 at 3, which is lost.*With it 1 more were lost"):
        engine.emitted("q")
    assert engine.emitted("q")["k"].to_pylist() == [3]


def test_a_frame_that_was_told_to_be_open_is_told_to_be_over():
    engine = sw.Engine(key="k")
    engine.register(fr.FrameQuery(fr.Aggregate(GROWING, "<", 60), sw.count(), name="q"))
    engine.append({"ts": [1, 1], "k": ["a", "b"], "x": [1.0, 1.0]})
    assert [(row["k"], row["passing"]) for row in engine.changes("q").to_pylist()] == [("a", True), ("b", True)]
    engine.append({"ts": [2, 2], "k": ["a", "b"], "x": [POISON, 2.0]})
    assert [(row["k"], row["ts"], row["passing"]) for row in engine.changes("q").to_pylist()] == [("a", 2, False)]


def test_a_value_that_can_not_grow_loses_its_frame():
    engine = sw.Engine(key="k")
    engine.register(fr.FrameQuery(fr.Threshold("x", ">", 0), {"own": GROWING, "n": sw.count()}, name="q"))
    engine.append({"ts": [1, 1], "k": ["a", "b"], "x": [1.0, 2.0]})
    engine.append({"ts": [2, 2, 3, 3, 4], "k": ["a", "b", "a", "b", "a"], "x": [POISON, 5.0, 4.0, 0.0, 0.0]})
    with pytest.raises(sw.BadFunction, match="too much"):
        engine.emitted("q")
    rows = engine.emitted("q").sort_by("k").to_pylist()
    assert [(row["k"], row["start"], row["own"], row["n"]) for row in rows] == [("a", 3, 4.0, 1), ("b", 1, 7.0, 2)]


MEASURED = fr.Pattern("A B", {"A": "x > 0", "B": "x <= 0"}, {"s": "SUM(n)"})
MATCHES = """SELECT k, s FROM e MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES SUM(n) AS s PATTERN (A B)
             DEFINE A AS x > 0, B AS x <= 0)"""


def test_a_measure_that_does_not_fit_loses_its_match_alone():
    engine = sw.Engine(key="k")
    engine.register(MATCHES)
    name = engine.queries[0].label
    engine.append({"ts": [1, 1, 1], "k": ["a", "b", "c"], "x": [1, 1, 1], "n": [BIG, 1, 5]})
    engine.append({"ts": [2, 2, 3, 4], "k": ["a", "b", "a", "a"], "x": [0, 0, 1, 0], "n": [BIG, 1, 1, 1]})
    with pytest.raises(sw.SumOverflow):
        engine.emitted(name)
    engine.append({"ts": [5], "k": ["c"], "x": [0], "n": [5]})
    assert engine.emitted(name).sort_by("k").to_pylist() == [
        {"k": "a", "s": 2},
        {"k": "b", "s": 2},
        {"k": "c", "s": 10},
    ]


def test_where_everything_fails_it_is_not_sought_event_by_event(monkeypatch):
    monkeypatch.setattr(refused_rows, "MOST", 10)
    engine = sw.Engine(key="k")
    engine.register(fr.FrameQuery(SPECS["custom"], sw.count(), name="q"))
    size, began = 20_000, time.process_time()
    engine.append({"ts": np.arange(size), "k": np.arange(size) % 50, "x": np.full(size, 1.0)})
    engine.append({"ts": np.arange(size, 2 * size), "k": np.arange(size) % 50, "x": np.full(size, POISON)})
    assert time.process_time() - began < 60
    with pytest.raises(sw.BadFunction):
        engine.emitted("q")
    engine.append({"ts": [50_000, 50_001], "k": [7, 7], "x": [1.0, 3.0]})
    assert engine.emitted("q").select(["k", "start", "rows"]).to_pylist() == [{"k": 7, "start": 50_000, "rows": 2}]


# -- Detectors ---------------------------------------------------------------------------------------------------------


def same_state(one, other):
    assert repr(one[0]) == repr(other[0])
    assert one[1].keys() == other[1].keys()
    assert all(one[1][name].tobytes() == other[1][name].tobytes() for name in one[1] if "scan/" not in name)


@pytest.mark.parametrize("fragments", [False, True])
@pytest.mark.parametrize("name", [*SPECS, "measures", "measures, going back"])
def test_a_punctuation_that_raises_leaves_the_detector_as_it_was(name, fragments):
    back = fr.Pattern("A B+ C", {"A": "x > 0", "B": "x > A.x", "C": "x <= 0"}, {"s": "SUM(n)"})
    spec = {**SPECS, "measures": MEASURED, "measures, going back": back}[name]
    kind = FAILS.get(name, ("", sw.SumOverflow))[1]
    early = {"ts": [1, 1, 2, 2], "k": ["a", "b", "a", "b"], "x": [1.0, 1.0, 2.0, 2.0], "n": [4, 4, -BIG, 1]}
    late = {
        "ts": [3, 3, 4, 5, 5, 6], "k": ["a", "b", "b", "a", "b", "b"], "x": [POISON, 0.0, 1.0, 0.0, 3.0, 0.0],
        "n": [-BIG, 6, 7, -BIG - 1, 1, 1],
    }  # fmt: skip
    detector, calm = (fr.Detector(spec, key="k", fragments=fragments) for _ in range(2))
    for each in (detector, calm):
        each.push(early)
        each.punctuate(2)
        each.push(late)
    before = detector.state()
    for ask in (lambda: detector.punctuate(5), lambda: detector.punctuate(9), detector.finish):
        with pytest.raises(kind):
            ask()
        same_state(detector.state(), before)
    for t, key in ((6, "b"), (2, "a"), (2, None)):
        assert detector.punctuate(t, key=key).equals(calm.punctuate(t, key=key))
    assert detector.promised == calm.promised and detector.buffered == calm.buffered


def test_what_a_search_can_not_read_is_refused_when_it_is_pushed():
    spec = fr.Pattern("A B+", {"B": "n > FIRST(n)"})
    detector = fr.Detector(spec)
    detector.push({"ts": [1], "n": [3]})
    with pytest.raises(sw.BadEvents, match="beyond 2\\^53"):
        detector.push({"ts": [2], "n": [BIG]})
    detector.push({"ts": [2, 3], "n": [4, 3]})
    assert detector.finish()["rows"].to_pylist() == [2]


@pytest.mark.parametrize("define", ["n * PREV(n) > 5", "n * PREV(n) > FIRST(n)"])
def test_what_only_the_row_before_makes_too_large_is_found_out_key_by_key(define):
    query = fr.FrameQuery(fr.Pattern("A B", {"B": define}), sw.count(), name="q")
    engine, large = sw.Engine(key="k"), 2**40
    engine.register(query)
    engine.append({"ts": [1, 1, 1], "k": ["a", "b", "c"], "n": [large, large, 2]})
    engine.append({"ts": [2, 2, 2, 3, 4], "k": ["b", "a", "c", "a", "a"], "n": [2, large, 9, 3, 4]})
    with pytest.raises(sw.BadEvents, match=r"overflow\. It is the frame of 'a' at 2"):
        engine.emitted("q")
    assert sorted((row["k"], row["start"], row["end"]) for row in engine.emitted("q").to_pylist()) == [
        ("a", 3, 4), ("b", 1, 2), ("c", 1, 2),
    ]  # fmt: skip
