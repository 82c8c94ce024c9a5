"""Frames cut by how many values are different, by the most frequent one, and by sums that decay: what is kept for them.

count_distinct(user) >= 3      a b a c | c d a | …      a of the second frame is new to it: it was last seen before
"""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from frames.scans import told_apart
from tests.examples import share
from tests.frames.cases import SPECS, streams, table
from tests.frames.test_continuous import reloaded
from tests.frames.test_detector import assert_same_rows

TWO = fr.Aggregate((sw.count_distinct("k") >= 2) & (sw.mode("i") >= 0))


def test_a_frame_ends_with_the_event_that_brings_the_third_value():
    events = {"ts": [1, 2, 3, 4, 5, 6, 7], "user": ["a", "b", "a", "c", "c", "d", "a"]}
    found = fr.detect(fr.Aggregate(sw.count_distinct("user"), ">=", 3), events)
    assert found.select(["start", "end", "value"]).to_pylist() == [
        {"start": 1, "end": 4, "value": 3},
        {"start": 5, "end": 7, "value": 3},
    ]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, 1, None, 2, 3], pa.uint64()),
        pa.array([0.0, float("nan"), -0.0, None, float("nan"), 1.0]),
        pa.array([1, 2, 1, None, 2, 3], pa.timestamp("us", "UTC")),
        pa.array([b"x", b"y", b"x", None, b"y", b""]),
        pa.array(["1.5", "2.5", "1.5", None, "2.5", "3"]).cast(pa.decimal128(9, 2)),
        pa.array(["a", "b", "a", None, "b", "c"]).dictionary_encode(),
        pa.array([True, False, True, None, False, None]),
    ],
    ids=lambda values: str(values.type),
)
def test_values_of_any_type_are_told_apart(values):
    events = pa.table({"ts": range(6), "v": values})
    found = fr.detect(fr.Aggregate(sw.count_distinct("v"), "<=", 2), events)
    assert found["value"].to_pylist() == ([2] if values.type == pa.bool_() else [2, 1])
    assert found["rows"].to_pylist() == ([6] if values.type == pa.bool_() else [5, 1])


def test_an_event_without_a_value_lets_a_sum_decay():
    spec = fr.Aggregate(sw.decayed_sum("x", half_life=2), "<", 3, close="with")
    events = {"ts": [0, 1, 2, 3, 4], "x": pa.array([8.0, None, None, None, 1.0])}
    assert fr.detect(spec, events).select(["end", "value"]).to_pylist() == [
        {"end": 3, "value": pytest.approx(8 * 2**-1.5)},
        {"end": 4, "value": 1.0},
    ]
    timed = pa.table({"ts": pa.array([0, 1, 2, 3, 4], pa.timestamp("s")), "x": events["x"]})
    again = fr.detect(fr.Aggregate(sw.decayed_sum("x", half_life="2s"), "<", 3, close="with"), timed)
    assert again["rows"].to_pylist() == [4, 1]


def test_a_count_of_no_values_is_zero():
    events = {"ts": [1, 2], "b": pa.array([None, None], pa.bool_())}
    for kind in (sw.count_if, sw.count_distinct):
        assert fr.detect(fr.Aggregate(kind("b"), "<", 3), events)["value"].to_pylist() == [0]


@pytest.mark.parametrize("spec", [TWO, SPECS["distinct of text >="]], ids=["condition", "text"])
@given(rows=streams(most=30, keys=3, ordered=True), data=st.data())
@settings(max_examples=share(25), deadline=None)
def test_what_no_frame_has_is_forgotten_and_never_missed(spec, rows, data):
    """Pairs are forgotten as soon as half of them are of no use, and states are taken between any two batches."""
    found, few = [], told_apart.FEW_PAIRS
    told_apart.FEW_PAIRS = 0
    try:
        detector, times = fr.Detector(spec, key="k"), sorted({row["ts"] for row in rows})
        for t in times:
            detector.push(table([row for row in rows if row["ts"] == t]))
            found.append(detector.punctuate(t))
            if data.draw(st.booleans()):
                state, detector = detector.state(), fr.Detector(spec, key="k")
                detector.restore(state)
        found.append(detector.finish())
    finally:
        told_apart.FEW_PAIRS = few
    full = [each for each in found if each.num_rows]
    wanted = fr.detect(spec, table(rows), key="k").sort_by([("k", "ascending"), ("start", "ascending")])
    if not full:
        assert wanted.num_rows == 0
        return
    mine = pa.concat_tables(full).sort_by([("k", "ascending"), ("start", "ascending")])
    assert_same_rows(mine.drop_columns(["frame_id"]), wanted.drop_columns(["frame_id"]))


def test_values_that_no_frame_has_are_not_kept():
    """New users with every batch: what is kept follows the frames that are open."""
    query = fr.FrameQuery(fr.Aggregate(sw.count_distinct("user"), ">=", 50), [sw.count()], name="q")
    engine, sizes, ends = sw.Engine(key="k"), [], []
    engine.register(query)
    for batch in range(150):
        users = [f"user {batch * 200 + i}" for i in range(200)]
        engine.append({"ts": np.full(200, batch), "k": np.arange(200) % 7, "user": users})
        ends += engine.emitted("q")["end"].to_pylist()
        sizes.append(engine.stats()["bytes"])
        if batch % 50 == 49:
            engine = reloaded(engine, [query])
    assert len(ends) == 4 * (29 * 150 // 50) + 3 * (28 * 150 // 50)
    assert max(sizes[100:]) <= 1.3 * max(sizes[40:80])


def test_keys_that_come_and_go_find_their_values_again():
    """An engine forgets keys of which nothing is open, and numbers the others anew."""
    query = fr.FrameQuery(fr.Aggregate(sw.count_distinct("user"), ">=", 3), [sw.count()], name="q")
    engine, rng, rows = sw.Engine(key="k"), np.random.default_rng(5), []
    engine.register(query)
    found = []
    for batch in range(120):
        size = 60
        keys = np.where(rng.random(size) < 0.3, rng.integers(0, 5, size), 1000 * batch + rng.integers(0, 40, size))
        part = pa.table({"ts": np.full(size, batch), "k": keys, "user": rng.integers(0, 4, size).astype(str)})
        rows.append(part)
        engine.append(part)
        found += engine.emitted("q").to_pylist()
        if batch % 37 == 36:
            engine = reloaded(engine, [query])
    wanted = sw.evaluate(query, pa.concat_tables(rows), key="k").to_pylist()
    assert sorted(repr({**row, "frame_id": 0}) for row in found) == sorted(
        repr({**row, "frame_id": 0}) for row in wanted
    )


@pytest.mark.parametrize("layout", ["mixed", "one key after the other", "no key"])
def test_on_several_cores_values_are_those_of_one(layout, monkeypatch):
    monkeypatch.setenv("SWAG_THREADS", "2")
    rng, size = np.random.default_rng(3), 150_000
    keys = rng.integers(0, 9, size)
    keys = np.sort(keys) if layout == "one key after the other" else keys
    events = pa.table({"ts": np.arange(size), "k": keys, "v": rng.integers(0, 40, size)})
    key = None if layout == "no key" else "k"
    spec = fr.Aggregate((sw.count_distinct("v") < 20) & (sw.mode("v") < 39))
    found = fr.detect(spec, events, key=key)
    monkeypatch.setattr("frames.detection.ONE_THREAD_BELOW", 1 << 30)
    once = fr.detect(spec, events, key=key)
    assert found.num_rows > 5_000
    order = [("start", "ascending"), ("end", "ascending")]
    assert found.drop_columns(["frame_id"]).sort_by(order) == once.drop_columns(["frame_id"]).sort_by(order)
    values, own = events["v"].to_numpy(), np.zeros(size) if key is None else keys
    frame = once.slice(700, 1).to_pylist()[0]
    mine = values[(own == frame.get("k", 0)) & (events["ts"].to_numpy() >= frame["start"])]
    assert len(set(mine[: frame["rows"]])) <= 19 and frame["rows"] > 1


def test_the_time_since_an_event_of_one_sort_is_a_difference():
    events = {"ts": [1, 2, 3, 4, 5, 6, 9], "side": ["buy", "sell", "sell", "sell", "buy", "sell", "sell"]}
    since = sw.last("ts") - sw.last("CASE WHEN side = 'buy' THEN ts END")
    assert fr.detect(fr.Aggregate(since, ">", 2), events)["end"].to_pylist() == [4, 9]


def test_a_half_life_that_ts_can_not_tell_is_refused_at_once():
    spec = fr.Aggregate(sw.decayed_count(half_life="1h"), ">", 3)
    for refuse in (lambda: fr.detect(spec, {"ts": [1]}), lambda: fr.Detector(spec).push({"ts": [1]})):
        with pytest.raises(sw.BadQuery, match="ts is an integer column"):
            refuse()


def test_frames_own_the_events_that_they_told_apart():
    events = pa.table({"ts": [1, 2, 2, 2, 3, 4], "user": ["a", "b", "c", "a", "b", "c"], "v": [1, 2, 3, 4, 5, 6]})
    spec = fr.Aggregate(sw.count_distinct("user"), ">=", 3)
    detector, found = fr.Detector(spec), []
    for part, upto in ((events.slice(0, 4), 2), (events.slice(4), 3)):
        detector.push(part)
        found.append(detector.punctuate(upto))
    found.append(detector.finish())
    whole = pa.concat_tables(found).replace_schema_metadata(found[-1].schema.metadata)
    for frames in (fr.detect(spec, events), whole):
        assert fr.summarize(frames, events, sw.sum("v"), own=True)["sum(v)"].to_pylist() == [6, 15]


@pytest.mark.parametrize(
    ("aggregate", "says"),
    [
        (sw.age(), "age of a frame's last event is 0"),
        (sw.last_n("x", 3), "a list is compared with no number"),
        (sw.first_n("x", 3), "a list is compared with no number"),
    ],
)
def test_what_has_no_meaning_is_refused_with_a_reason(aggregate, says):
    with pytest.raises(sw.BadQuery, match=says):
        fr.Aggregate(aggregate, ">", 3)
    with pytest.raises(sw.BadType, match="is string, and is compared"):
        fr.detect(fr.Aggregate(sw.mode("u"), ">", 3), {"ts": [1], "u": ["a"]})
