"""Bodies in a worker's memory: every run of a stream finds its own, and memory has a limit. Without Spark."""

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from frames.spark.streams.stream import EVENTS as FRAME_EVENTS
from frames.spark.streams.stream import frames_job
from swag.spark.streams import cache as bodies
from swag.spark.streams.cache import TAKEN_BEFORE, Cache
from swag.spark.streams.packing import Pack
from swag.spark.streams.shard_streams import EVENTS
from tests.examples import share
from tests.spark.stand_in import Stream
from tests.spark.test_shards import EVENT, QUERIES, streamed, table

ALL = [query for query, _ in QUERIES.values()]
COUNTED = [replace(QUERIES["rows"][0], every=sw.Every(2, per_key=True))]  # how many rows were dropped matters here


def some(i: int) -> pa.Table:
    return table(EVENT, [{"ts": 100 + 10 * i + j, "k": (i * j) % 5, "x": j} for j in range(1 + i % 7)])


def replayed(stream: Stream) -> list[int]:
    """Of every action, all shards together."""
    return [counts["replayed"] for counts in stream.metrics]


def framed() -> Stream:
    job = frames_job(fr.Aggregate(sw.median("x"), "<", 4), EVENT, "ts", "k", True, [0])
    return Stream(job, {FRAME_EVENTS: Pack(FRAME_EVENTS, "ts", "k", job.time)}, 0)


MAKE = {
    "windows": lambda: streamed(ALL, 0, workers=1, shards=1),
    "ticks": lambda: streamed(COUNTED, 0, workers=1, shards=1),
    "frames": framed,
}


@pytest.mark.parametrize("committed", [0, 1, 2])
@pytest.mark.parametrize("name", MAKE)
def test_actions_of_one_trigger_each_find_an_engine(name, committed):
    """From the second trigger on, which makes them; whichever is committed."""
    one, three = MAKE[name](), MAKE[name]()
    for i in range(40):
        found = three.trigger({EVENTS: some(i)}, actions=3, committed=committed)
        assert found == one.trigger({EVENTS: some(i)})
        assert i < 2 or replayed(three) == [0, 0, 0]


@pytest.mark.parametrize("name", MAKE)
def test_runs_of_one_stream_each_find_their_engine(name):
    """Two checkpoints, one job, one worker: the second run begins later, with all that the first has had."""
    first, second, alone = (MAKE[name]() for _ in range(3))
    second.job, second.caches = first.job, first.caches
    for i in range(30):
        first.trigger({EVENTS: some(i)})
        assert replayed(first) == [0]
        if i >= 5:
            rows = {EVENTS: pa.concat_tables([some(j) for j in range(6)] if i == 5 else [some(i)])}
            assert second.trigger(rows) == alone.trigger(rows)
            assert replayed(second) == [0]
    assert len(first.caches[0]._kept) == 2


steps = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.integers(0, 2), st.booleans()), max_size=10)


@pytest.mark.parametrize("name", MAKE)
@settings(max_examples=share(15))
@given(steps=steps)
def test_answers_do_not_depend_on_workers_actions_and_attempts(name, steps):
    """Two runs of one job in turns, on workers that both use, some attempts fail: as two streams alone."""
    runs, alone = [MAKE[name]() for _ in range(2)], [MAKE[name]() for _ in range(2)]
    for run in runs:
        run.job, run.caches = runs[0].job, runs[0].caches
    runs[0].caches += [Cache(), Cache()]
    for i, (worker, actions, committed, fails) in enumerate(steps):
        for which in (0, 1) if i % 3 else (0,):
            rows = {EVENTS: some(i + 7 * which)}
            runs[which].trigger(rows, worker, fails=True) if fails else None
            found = runs[which].trigger(rows, worker, actions=actions, committed=min(committed, actions - 1))
            assert found == alone[which].trigger(rows)


def test_a_body_that_nobody_comes_for_goes():
    stream = streamed(ALL, 0, workers=1, shards=1)
    for i in range(3):
        stream.trigger({EVENTS: some(i)}, actions=2)
    assert len(stream.caches[0]._kept) == 2
    for i in range(3, 3 + TAKEN_BEFORE):
        stream.trigger({EVENTS: some(i)})
        assert replayed(stream) == [0]
    assert len(stream.caches[0]._kept) == 1


def test_memory_is_limited_and_a_body_that_is_larger_is_not_kept(monkeypatch):
    stream = streamed(ALL, 0, workers=1, shards=3)
    for i in range(5):
        stream.trigger({EVENTS: some(i)})
    sizes = [cached.bytes for cached in stream.caches[0]._kept]
    assert len(sizes) == 3 and replayed(stream) == [0, 0, 0]
    limits = [sum(sizes) - min(sizes) // 2, max(sizes), min(sizes) // 2, min(sizes) // 2]
    for i, (limit, held) in enumerate(zip(limits, (2, 1, 0, 0), strict=True)):
        monkeypatch.setattr(bodies, "cache_limit", lambda limit=limit: limit)
        stream.trigger({EVENTS: some(6 + 7 * i)})
        assert len(stream.caches[0]._kept) <= held
    assert min(replayed(stream)) > 0


def test_what_waits_for_the_watermark_weighs_too():
    stream = streamed(ALL, 1000, workers=1, shards=1)
    stream.trigger({EVENTS: some(6)})
    (before,) = (cached.bytes for cached in stream.caches[0]._kept)
    stream.trigger({EVENTS: pa.concat_tables([some(6)] * 1000)})
    (after,) = (cached.bytes for cached in stream.caches[0]._kept)
    assert after - before >= 7000 * 24
