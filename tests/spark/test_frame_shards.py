"""Frames of shards, against the oracle of frames: any batch cut, any worker, attempts that fail. Without Spark."""

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from frames.spark.streams import stream as streaming
from frames.spark.streams.stream import EVENTS, frames_job
from swag.spark.streams import sweeping
from swag.spark.streams.log import Header, Log, Pieces
from swag.spark.streams.packing import Pack
from tests.examples import share
from tests.spark.stand_in import Map, Stream

EVENT = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("x", pa.float64()), ("n", pa.int64())])
SPECS = {
    "threshold": fr.Threshold("x", ">", 3, min_rows=2),
    "partition": fr.Threshold("x", ">", 3, min_duration=4, partition=True),
    "boundary": fr.Boundary({"x": 2.5, "n": 3}),
    "delta": fr.Delta("x", 3, measure="range"),
    "deltas": fr.Delta({"x": 3, "n": 2}),
    "sum": fr.Aggregate(sw.sum("n"), ">=", 9),
    "std": fr.Aggregate(sw.std("x"), "<", 2),
    "median": fr.Aggregate(sw.median("x"), "<", 4.5),
    "quantile": fr.Aggregate(sw.quantile("n", 0.7), ">=", 4),
    "distinct": fr.Aggregate(sw.count_distinct("CASE WHEN x > 3 THEN 'high' WHEN n > 1 THEN 'low' END"), ">=", 2),
    "mode and decay": fr.Aggregate((sw.mode("n") < 3) & (sw.decayed_sum("x", half_life=3) < 9.3)),
    "pattern": fr.Pattern("A B+ C", {"B": "x < PREV(x)", "C": "x > PREV(x)"}, {"low": "LAST(B.x)", "n": "SUM(n)"}),
    "pattern of the match so far": fr.Pattern("A B+", {"B": "x >= AVG(A.x) AND n > PREV(n, 2)"}, {"a": "A.n"}),
    "predicate": fr.Threshold("x > 3 OR n = 5", min_rows=2, max_rows=3, partition=True),
    "session": fr.Session(2, max_duration=4),
    "state": fr.State("CASE WHEN x > 3 THEN 'high' WHEN x > 1 THEN 'low' END", min_rows=2),
    "between": fr.Between("x > 3", "n < 2", max_rows=4, extent="open"),
    "pattern, open": fr.Pattern("A (B* C)?", {"A": "n > 0", "B": "x > 1", "C": "n < 2"}, extent="open"),
    "custom": fr.Custom(
        "x", state=0, open=lambda e, s: s % 3 == 0, update=lambda e, s: s + 1, close=lambda e, s: e.x > 4
    ),
    "overlapping, open": fr.Custom(
        "n",
        state=0,
        open=lambda e, s: e.n > s % 3,
        update=lambda e, s: s + 1,
        close=lambda e, s: 2 * (s == 2),
        overlap=True,
        extent="open",
    ),
    "overlapping, of lengths": fr.Custom(
        {"load": "x * n"},
        state=0,
        open=lambda e, s: e.load > s % 3,
        update=lambda e, s: s + 1,
        close=lambda e, s: 2 * (e.load < 1),
        overlap=True,
        min_rows=2,
        min_duration=1,
        max_duration=9,
    ),
    "custom, of lengths": fr.Custom(
        "n",
        state=0,
        open=lambda e, s: True,
        update=lambda e, s: s + e.n,
        close=lambda e, s: s > 7,
        min_rows=2,
        max_rows=4,
        unfinished=False,
    ),
    "pattern, of lengths": fr.Pattern(
        "A+ (B | C){1,3}",
        {"A": "n > 1", "B": "x <= 4", "C": "n > PREV(n)"},
        {"n": "COUNT(*)", "b": "MAX(B.x)"},
        min_rows=3,
        max_rows=5,
        max_duration=9,
    ),
    "quantile, open": fr.Aggregate(sw.quantile("n", 0.7), ">=", 4, max_rows=3, extent="open"),
}
rows = st.tuples(
    st.integers(-6, 9), st.integers(0, 2), st.none() | st.sampled_from([0.0, 1.5, 4.0, 5.0, 9.0]), st.integers(0, 5)
)
batches = st.lists(st.tuples(st.lists(rows, max_size=6), st.integers(0, 2), st.booleans()), min_size=1, max_size=8)


def streamed(spec, fragments: bool, key: str | None = "k", shards: int = 2, workers: int = 3) -> Stream:
    job = frames_job(spec, EVENT, "ts", key, fragments, list(range(shards)))
    return Stream(job, {EVENTS: Pack(EVENTS, "ts", key, job.time)}, delay=5, shards=shards, workers=workers)


def framed(spec, events: pa.Table, watermark: int, key: str | None) -> list:
    """What an embedded detector says, given everything at once."""
    detector = fr.Detector(spec, ts="ts", key=key)
    detector.push(events)
    return comparable(detector.punctuate(watermark).to_pylist())


def comparable(frames: list[dict]) -> list:
    return sorted(repr({k: v for k, v in row.items() if k not in ("frame_id", "final")}) for row in frames)


@pytest.fixture(scope="module", params=[1, 512], ids=["forgetful", ""])
def forgetful(request):
    """Keys of which nothing is open are forgotten as soon as they are half of all, or once they are many."""
    before, streaming.REMEMBERED_KEYS = streaming.REMEMBERED_KEYS, request.param
    yield
    streaming.REMEMBERED_KEYS = before


@pytest.mark.parametrize("name", SPECS)
@settings(max_examples=share(15))
@given(batches=batches, fragments=st.booleans(), key=st.sampled_from(["k", None]), new_keys=st.sampled_from([0, 3]))
def test_frames_are_those_of_one_detector_whatever_happens_on_the_way(
    name, forgetful, batches, fragments, key, new_keys
):
    stream, now, found, taken = streamed(SPECS[name], fragments, key, 2 if key else 1), 100, [], []
    for i, (drawn, worker, fails) in enumerate([*batches, ([], 1, False)]):
        rows = [{"ts": now + t, "k": k + new_keys * (i // 2), "x": x, "n": n} for t, k, x, n in drawn]
        events = pa.Table.from_pylist(rows, EVENT)
        if fails:
            stream.trigger({EVENTS: events}, worker, fails=True)
        found += stream.trigger({EVENTS: events}, worker)
        upto = stream.job.time.from_watermark(stream.before)
        taken += [row for row in events.to_pylist() if upto is None or row["ts"] > upto]
        now += 6
    if upto is None:
        assert found == []
        return
    expected = framed(SPECS[name], pa.Table.from_pylist(taken, EVENT), upto, key)
    if fragments:
        done = {row["frame_id"] for row in found if row["final"]}
        pieces = pa.Table.from_pylist([row for row in found if row["frame_id"] in done], stream.job.output)
        found = fr.united(pieces).to_pylist()
    assert comparable(found) == expected


@pytest.mark.parametrize("spec", [fr.Session(2), fr.Threshold("x", ">", 3, max_duration=2)])
@pytest.mark.parametrize("values", [None, [sw.count(), sw.sum("n")]])
def test_time_ends_frames_of_keys_that_never_come_back(spec, values):
    spec = spec if values is None else fr.FrameQuery(spec, values, name="q", fragments=False)
    stream, found = streamed(spec, False, shards=2, workers=2), []
    for i in range(12):
        rows = [{"ts": 100 + 10 * i, "k": 2 * i + j, "x": 5.0, "n": i} for j in (0, 1)]
        found += stream.trigger({EVENTS: pa.Table.from_pylist(rows, EVENT)}, worker=i % 2)
    found += stream.trigger({}, worker=0)
    upto = stream.job.time.from_watermark(stream.before)
    assert sorted(row["start"] for row in found) == [
        100 + 10 * (i // 2) for i in range(24) if 102 + 10 * (i // 2) <= upto
    ]
    assert all(row["rows"] == 1 and (values is None or row["count()"] == 1) for row in found)


@pytest.mark.parametrize("name", ["threshold", "sum", "delta of two"])
def test_what_is_kept_follows_the_keys_of_which_something_is_open(name, monkeypatch):
    """Twenty new keys with every trigger, one of which has a frame that stays open; the others are done with."""
    monkeypatch.setattr(streaming, "REMEMBERED_KEYS", 16)
    specs = SPECS | {"delta of two": fr.Delta("x", 3, op=">=")}
    stream, sizes = streamed(specs[name], True, shards=1, workers=2), []
    for i in range(160):
        rows = [
            {"ts": 100 + 10 * i + j, "k": 20 * i + k, "x": 5.0 * (1 - j), "n": 9} for j in (0, 1) for k in range(20)
        ]
        stream.trigger({EVENTS: pa.Table.from_pylist(rows[: 40 - (i % 8 == 0)], EVENT)}, worker=i % 2)
        (cached,) = stream.caches[i % 2]._kept
        sizes.append((cached.body.core.keys.count, stream.total("bytes")))
    assert max(keys for keys, _ in sizes) < 400
    assert max(size for _, size in sizes[120:]) <= 1.3 * max(size for _, size in sizes[40:80])


def test_what_is_kept_of_many_keys_is_merged():
    stream = streamed(SPECS["boundary"], True, shards=1)
    for i in range(150):
        rows = [{"ts": 100 + 10 * i, "k": (i * j) % 40, "x": float(i % 3), "n": j} for j in range(3)]
        stream.trigger({EVENTS: pa.Table.from_pylist(rows, EVENT)}, worker=i % 3)
    assert stream.total("segments") < 50


@pytest.mark.parametrize("fragments", [True, False])
@pytest.mark.parametrize("name", ["median", "quantile"])
def test_events_of_open_frames_are_kept_and_those_of_others_are_not(name, fragments, monkeypatch):
    """Key 9 is silent for long while its frame is open: its events lie in the oldest segments, among others that go."""
    monkeypatch.setattr(sweeping, "SWEPT", 16)
    stream, found, taken = streamed(SPECS[name], fragments, shards=1, workers=30), [], []
    for i in range(120):
        rows = [{"ts": 100 + 10 * i + j, "k": j % 3, "x": float((i * j) % 11), "n": (i + j) % 6} for j in (1, 2, 3, 5)]
        rows += [{"ts": 109 + 10 * i, "k": 9, "x": 1.0 + i, "n": i}] * (1 if i < 3 else 4 if i == 110 else 0)
        taken += rows
        found += stream.trigger({EVENTS: pa.Table.from_pylist(rows, EVENT)}, worker=(i * i) % 30 if i < 70 else i % 2)
    assert stream.total("segments") < 70
    pieces = Pieces(Map(stream.stores[0], "pieces"), "")
    logged = Log(Header.of(pieces), pieces)
    events = logged.read(entry for entry in logged.header.entries if entry.kind == EVENTS)[EVENTS]
    assert 4 <= sum(table.num_rows for table in events) < 150 < len(taken)
    upto = stream.job.time.from_watermark(stream.before)
    if fragments:
        done = {row["frame_id"] for row in found if row["final"]}
        pieces = [row for row in found if row["frame_id"] in done]
        found = fr.united(pa.Table.from_pylist(pieces, stream.job.output)).to_pylist()
    assert comparable(found) == framed(SPECS[name], pa.Table.from_pylist(taken, EVENT), upto, "k")


SAID = {
    "n": sw.count(), "sum": sw.sum("n"), "mean": sw.mean("x"), "median": sw.median("x"), "most": sw.max("n"),
}  # fmt: skip


OF_QUERIES = ["threshold", "partition", "sum", "pattern, open", "overlapping, open", "overlapping, of lengths",
              "custom, of lengths", "pattern, of lengths"]  # fmt: skip


@pytest.mark.parametrize("name", OF_QUERIES)
@settings(max_examples=15)
@given(batches=batches, key=st.sampled_from(["k", None]), new_keys=st.sampled_from([0, 3]))
def test_what_is_said_of_frames_is_what_an_engine_says_whatever_happens_on_the_way(name, batches, key, new_keys):
    query = fr.FrameQuery(SPECS[name], SAID, name="q")
    stream, now, found, taken = streamed(query, False, key, 2 if key else 1), 100, [], []
    for i, (drawn, worker, fails) in enumerate([*batches, ([], 1, False)]):
        rows = [{"ts": now + t, "k": k + new_keys * (i // 2), "x": x, "n": n} for t, k, x, n in drawn]
        events = pa.Table.from_pylist(rows, EVENT)
        if fails:
            stream.trigger({EVENTS: events}, worker, fails=True)
        found += stream.trigger({EVENTS: events}, worker)
        upto = stream.job.time.from_watermark(stream.before)
        taken += [row for row in events.to_pylist() if upto is None or row["ts"] > upto]
        now += 6
    engine = sw.Engine(key=key)
    engine.register(query)
    passed = [row for row in taken if upto is not None and row["ts"] <= upto]
    engine.append(pa.Table.from_pylist(sorted(passed, key=lambda row: row["ts"]), EVENT))
    assert comparable(found) == comparable(engine.emitted("q").to_pylist())


@pytest.mark.parametrize("name", [each for each in OF_QUERIES if "partition" not in each])
@settings(max_examples=share(10))
@given(batches=batches, key=st.sampled_from(["k", None]))
def test_what_is_said_of_pieces_adds_up_to_what_is_said_of_frames(name, batches, key):
    query = fr.FrameQuery(SPECS[name], {"n": sw.count(), "sum": sw.sum("n")}, name="q")
    found: list[list[dict]] = [[], []]
    for fragments in (True, False):
        stream, now = streamed(replace(query, fragments=fragments), fragments, key, 2 if key else 1), 100
        for drawn, worker, _ in [*batches, ([], 1, False)]:
            rows = [{"ts": now + t, "k": k, "x": x, "n": n} for t, k, x, n in drawn]
            found[fragments] += stream.trigger({EVENTS: pa.Table.from_pylist(rows, EVENT)}, worker)
            now += 6
    added: dict[int, list] = {}
    for row in found[True]:
        whole = added.setdefault(row["frame_id"], [row["start"], row["end"], 0, 0, None, False])
        whole[1] = row["end"] if row["end"] is not None else whole[1]
        whole[2:4] = whole[2] + row["rows"], whole[3] + row["n"]
        whole[4] = row["sum"] if whole[4] is None else whole[4] + (row["sum"] or 0)
        whole[5] |= row["final"]
    assert sorted(map(repr, (whole[:5] for whole in added.values() if whole[5]))) == sorted(
        repr([row["start"], row["end"], row["rows"], row["n"], row["sum"]]) for row in found[False]
    )
