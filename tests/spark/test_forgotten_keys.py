"""Keys that come and go: what shards keep follows those that are there, and nobody notices when one is forgotten."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swag as sw
from swag.live import store
from swag.spark.streams.shard_streams import EVENTS
from swag.spark.streams.shard_windows import REQUESTS
from tests.examples import share
from tests.spark.stand_in import Stream
from tests.spark.test_shards import EVENT, HOT, QUERIES, REQUEST, batches, streamed, table, timed

BY_TIME = [QUERIES["total"][0], QUERIES["top"][0]]
NESTED = sw.Query(sw.sum("n"), sw.Range(30), "nested",
                  source=sw.Query(sw.count(), sw.Range(10), "n", every=sw.Every(time=5)))  # fmt: skip
CHOSEN = sw.Query(sw.sum("x"), sw.Range(9), "chosen", source=sw.Events("x > 2"))
CASES: dict[str, Any] = {
    "windows": (BY_TIME, False),
    "filters": ([HOT, *BY_TIME], False),
    "requests": (BY_TIME, True),
    "ticks": ([replace(BY_TIME[0], every=sw.Every(time=10))], False),
    "streams inside": ([NESTED, CHOSEN], False),
}


@contextmanager
def forgetting_from(count: int) -> Iterator[None]:
    """Keys are forgotten as soon as half of them have no rows, if there are so many."""
    before, store.MANY_KEYS = store.MANY_KEYS, count
    try:
        yield
    finally:
        store.MANY_KEYS = before


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=share(25))
@given(batches=batches, delay=st.sampled_from([0, 7]), jump=st.sampled_from([7, 40]))
def test_a_key_that_was_forgotten_is_one_that_never_was(name, batches, delay, jump):
    """The same stream twice, by engines that forget and by engines that do not; on many workers, and on one."""
    queries, asks = CASES[name]
    forgetting, reference = (streamed(queries, delay, workers=2, requests=asks) for _ in range(2))
    now = 100
    for i, (drawn, worker, _) in enumerate(batches):
        events = [each | {"k": each["k"] + 4 * (i // 3)} for each in timed(drawn, now)]  # new keys now and then
        rows = {EVENTS: table(EVENT, events)}
        if asks:
            asked = [{"ts": e["ts"], "k": e["k"] - 4 * (j % 2), "id": f"{i} {j}"} for j, e in enumerate(events)]
            rows[REQUESTS] = table(REQUEST, asked)
        with forgetting_from(1):
            found = forgetting.trigger(rows, worker % 2)
            for cached in (each for cache in forgetting.caches for each in cache._kept):
                cached.is_sound()  # has gone ahead, or will not
        assert sorted(map(str, found)) == sorted(map(str, reference.trigger(rows, 0)))
        now += jump


def sizes(stream: Stream) -> tuple[int, int]:
    (cached,) = stream.caches[0]._kept
    return cached.body.stream.core.store.key_count, stream.total("bytes")


@pytest.mark.parametrize("queries", [BY_TIME, [CHOSEN]], ids=["windows", "stream inside"])
def test_memory_follows_the_keys_that_are_there(queries, monkeypatch):
    monkeypatch.setattr(store, "MANY_KEYS", 16)
    stream = streamed(queries, 0, workers=1, shards=1)
    most = []
    for i in range(60):
        keys = range(20 * i, 20 * i + 20)
        stream.trigger({EVENTS: pa.table({"ts": [100 + 10 * i] * 20, "k": keys, "x": [3] * 20}, schema=EVENT)})
        most.append(sizes(stream))
    assert max(keys for keys, _ in most) < 200
    assert max(size for _, size in most[40:]) <= 1.2 * max(size for _, size in most[20:40])
