"""Frames of shards that are filled from another stream, against those of sw.evaluate: any cut, any worker, attempts
that fail. Without Spark."""

from dataclasses import replace
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from frames.spark.streams.filled_frames import MESSAGES
from frames.spark.streams.stream import EVENTS, frames_job
from swag.spark.streams import sweeping
from swag.spark.streams.packing import Pack
from tests.examples import share
from tests.spark.stand_in import Stream
from tests.spark.test_frame_shards import EVENT, comparable

MESSAGE = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("bytes", pa.int64()), ("t", pa.string())])
SPECS = {
    "threshold": fr.Threshold("x", ">", 3, min_rows=2),
    "partition": fr.Threshold("x", ">", 3, min_duration=2, partition=True),
    "open": fr.Threshold("x", ">", 3, extent="open"),
    "delta": fr.Delta("x", 3, op=">=", extent="open"),
    "session": fr.Session(2, max_rows=3),
    "pattern": fr.Pattern("A B+", {"A": "x > 3", "B": "x <= 3"}),
    "overlapping": fr.Custom(
        "n", state=0, open=lambda e, s: e.n > s % 3, update=lambda e, s: s + 1, close=lambda e, s: 2 * (s == 2),
        overlap=True, min_rows=2, max_duration=9,
    ),
}  # fmt: skip
MERGED = {"n": sw.count(), "sum": sw.sum("bytes"), "first": sw.first("bytes"), "u": sw.max("ts").filter("t = 'u'")}
HELD = {"n": sw.count(), "mid": sw.median("bytes * 2"), "most": sw.max("t"), "age": sw.age()}

times, keys = st.integers(-6, 9), st.integers(0, 2)
events = st.tuples(times, keys, st.none() | st.sampled_from([0.0, 4.0, 5.0, 9.0]), st.integers(0, 5))
messages = st.tuples(times, keys, st.none() | st.integers(0, 9), st.sampled_from(["u", "v", None]))
batches = st.lists(
    st.tuples(st.lists(events, max_size=6), st.lists(messages, max_size=6), st.integers(0, 2), st.booleans()),
    min_size=1,
    max_size=8,
)


def streamed(query: fr.FrameQuery, key: str | None = "k", shards: int = 2, workers: int = 3, many: int = 512) -> Stream:
    other = None if query.fills_itself else MESSAGE
    job = frames_job(query, EVENT, "ts", key, False, list(range(shards)), other)
    job = replace(job, make=replace(job.make, many_keys=many))
    kinds = [EVENTS] if other is None else [EVENTS, MESSAGES]
    return Stream(job, {kind: Pack(kind, "ts", key, job.time) for kind in kinds}, delay=5, shards=shards,
                  workers=workers)  # fmt: skip


def taken(rows: pa.Table, upto: int | None) -> list[dict]:
    return [row for row in rows.to_pylist() if upto is None or row["ts"] > upto]


def ended(query: fr.FrameQuery, reports: list[dict], other: list[dict], upto: int, key: str | None) -> list[dict]:
    """What an engine says that was given everything at once, of what both streams have decided at `upto`."""
    engine = sw.Engine(key=key, lateness=1000)
    engine.register(query)
    engine.append(pa.Table.from_pylist(reports, EVENT))
    if not query.fills_itself:
        engine.append(pa.Table.from_pylist(other, MESSAGE), stream="messages")
    engine.advance(upto + 1001)
    found: list[dict] = engine.emitted(query.label).to_pylist()
    return found


@pytest.mark.parametrize("values", [MERGED, HELD], ids=["merged", "held"])
@pytest.mark.parametrize("name", SPECS)
@settings(max_examples=share(15))
@given(
    batches=batches, key=st.sampled_from(["k", None]), new_keys=st.sampled_from([0, 3]), many=st.sampled_from([1, 512]),
    before=st.integers(-2, 4), after=st.integers(-2, 4), itself=st.booleans(), small=st.sampled_from([0, 9]),
)  # fmt: skip
def test_filled_frames_are_those_of_an_engine_whatever_happens_on_the_way(
    name, values, batches, key, new_keys, many, before, after, itself, small
):
    query = fr.FrameQuery(SPECS[name], values, fill_from="messages", before=before, after=after, name="q")
    if itself and (before or after):
        values = {"n": sw.count(), "sum": sw.sum("n"), "most": sw.median("x")}
        query = replace(query, values=values, stream="messages")
    stream, now, found = streamed(query, key, 2 if key else 1, many=many), 100, []
    reports, other = [], []
    with patch("frames.continuous.filled.SMALL", small):
        for i, (drawn, messaged, worker, fails) in enumerate([*batches, ([], [], 1, False)]):
            rows = [{"ts": now + t, "k": k + new_keys * (i // 2), "x": x, "n": n} for t, k, x, n in drawn]
            said = [{"ts": now + t, "k": k + new_keys * (i // 2), "bytes": b, "t": u} for t, k, b, u in messaged]
            fresh = {EVENTS: pa.Table.from_pylist(rows, EVENT), MESSAGES: pa.Table.from_pylist(said, MESSAGE)}
            fresh = {kind: table for kind, table in fresh.items() if kind in stream.packers}
            if fails:
                stream.trigger(fresh, worker, fails=True)
            found += stream.trigger(fresh, worker)
            upto = stream.job.time.from_watermark(stream.before)
            reports += taken(fresh[EVENTS], upto)
            other += taken(fresh.get(MESSAGES, MESSAGE.empty_table()), upto)
            now += 6
    if upto is None:
        assert found == []
        return
    assert comparable(found) == comparable(ended(query, reports, other, upto, key))


@pytest.mark.parametrize("workers", [1, 2, 40])
@pytest.mark.parametrize("values", [MERGED, HELD], ids=["merged", "held"])
def test_state_follows_open_frames_and_not_how_many_messages_have_come(values, workers, monkeypatch):
    """Key 9 has a frame that stays open throughout; six keys with every trigger come, and never again."""
    monkeypatch.setattr("frames.continuous.filled.SMALL", 16)
    monkeypatch.setattr(sweeping, "SWEPT", 16)
    query = fr.FrameQuery(SPECS["threshold"], values, fill_from="messages", before=4, after=3, name="q")
    stream, found, reports, other, sizes = streamed(query, shards=1, workers=workers, many=16), [], [], [], []
    for i in range(160):
        now, own = 100 + 10 * i, [10 * i + k for k in range(10, 16)]
        rows = [{"ts": now + j, "k": k, "x": 5.0 - 3 * (j > 2), "n": 1} for j in range(4) for k in own]
        rows += [{"ts": now, "k": 9, "x": 5.0 if i < 155 else 0.0, "n": 1}]
        said = [{"ts": now + j, "k": k, "bytes": i + j, "t": "u"} for j in range(6) for k in (*own, 9)]
        fresh = {EVENTS: pa.Table.from_pylist(rows, EVENT), MESSAGES: pa.Table.from_pylist(said, MESSAGE)}
        found += stream.trigger(fresh, (i * i) % workers)
        reports, other = reports + rows, other + said
        (cached,) = stream.caches[(i * i) % workers]._kept[-1:]
        sizes.append((cached.body.running.known.count, cached.body.running.kept, stream.total("bytes")))
        assert i < 40 or cached.body.running.known.count < 120
    upto = stream.job.time.from_watermark(stream.before)
    assert comparable(found) == comparable(ended(query, reports, other, upto, "k"))
    assert max(row["rows"] for row in found) == 155
    if values is MERGED:
        assert max(kept for _, kept, _ in sizes) < 200
        assert max(size for *_, size in sizes[120:]) <= 1.3 * max(size for *_, size in sizes[40:80])
