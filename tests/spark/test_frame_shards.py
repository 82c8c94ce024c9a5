"""Frames of shards, against the oracle of frames: any batch cut, any worker, attempts that fail. Without Spark."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from frames.spark.streaming import EVENTS, frames_job
from swag.spark.packing import Pack
from tests.spark.stand_in import Stream

EVENT = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("x", pa.float64()), ("n", pa.int64())])
SPECS = {
    "threshold": fr.Threshold("x", ">", 3, min_rows=2),
    "partition": fr.Threshold("x", ">", 3, min_duration=4, partition=True),
    "boundary": fr.Boundary({"x": 2.5, "n": 3}),
    "delta": fr.Delta("x", 3, measure="range"),
    "deltas": fr.Delta({"x": 3, "n": 2}),
    "sum": fr.Aggregate(sw.sum("n"), ">=", 9),
    "std": fr.Aggregate(sw.std("x"), "<", 2),
}
rows = st.tuples(
    st.integers(-6, 9), st.integers(0, 2), st.none() | st.sampled_from([0.0, 1.5, 4.0, 5.0, 9.0]), st.integers(0, 5)
)
batches = st.lists(st.tuples(st.lists(rows, max_size=6), st.integers(0, 2), st.booleans()), min_size=1, max_size=8)


def streamed(spec, fragments: bool, key: str | None = "k", shards: int = 2) -> Stream:
    job = frames_job(spec, EVENT, "ts", key, fragments, list(range(shards)))
    return Stream(job, {EVENTS: Pack(EVENTS, "ts", key, job.time)}, delay=5, shards=shards, workers=3)


def framed(spec, events: pa.Table, watermark: int, key: str | None) -> list:
    """What an embedded detector says, given everything at once."""
    detector = fr.Detector(spec, ts="ts", key=key)
    detector.push(events)
    return comparable(detector.punctuate(watermark).to_pylist())


def comparable(frames: list[dict]) -> list:
    return sorted(repr({k: v for k, v in row.items() if k not in ("frame_id", "final")}) for row in frames)


@pytest.mark.parametrize("name", SPECS)
@settings(max_examples=15)
@given(batches=batches, fragments=st.booleans(), key=st.sampled_from(["k", None]))
def test_frames_are_those_of_one_detector_whatever_happens_on_the_way(name, batches, fragments, key):
    stream, now, found, taken = streamed(SPECS[name], fragments, key, 2 if key else 1), 100, [], []
    for drawn, worker, fails in [*batches, ([], 1, False)]:
        events = pa.Table.from_pylist([{"ts": now + t, "k": k, "x": x, "n": n} for t, k, x, n in drawn], EVENT)
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


def test_what_is_kept_of_many_keys_is_merged():
    stream = streamed(SPECS["boundary"], True, shards=1)
    for i in range(150):
        rows = [{"ts": 100 + 10 * i, "k": (i * j) % 40, "x": float(i % 3), "n": j} for j in range(3)]
        stream.trigger({EVENTS: pa.Table.from_pylist(rows, EVENT)}, worker=i % 3)
    assert stream.total("segments") < 50
