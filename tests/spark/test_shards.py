"""Shards, against the oracle: any batch cut, any worker, attempts that fail. Without Spark (see stand_in)."""

import copy
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swag as sw
from swag.durable.state import table_from_array
from swag.spark.streams import cache as bodies
from swag.spark.streams.cache import Cache
from swag.spark.streams.log import HEADER_AT, PURPOSE_AT, BadState, Pieces
from swag.spark.streams.packing import Pack, partition_of, shard_numbers
from swag.spark.streams.shard_streams import EVENTS
from swag.spark.streams.shard_windows import REQUESTS
from swag.spark.streams.stream import windows_job
from tests import oracle, oracle_ticks
from tests.examples import share
from tests.spark.stand_in import Map, Stream

EVENT = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("x", pa.int64())])
REQUEST = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("id", pa.string())])
QUERIES = {
    "total": (sw.Query(sw.sum("x"), sw.Range(20), name="total"), oracle.Q(oracle.agg("sum", "x"), oracle.Range(20))),
    "rows": (sw.Query(sw.count(), sw.Rows(3), name="rows"), oracle.Q(oracle.agg("count"), oracle.Rows(3))),
    "top": (
        sw.Query(sw.max("x"), sw.Range(30, until=5), name="top", where="x < 8"),
        oracle.Q(oracle.agg("max", "x"), oracle.Range(30, 5), where=lambda e: e["x"] is not None and e["x"] < 8),
    ),
}
HOT = sw.Query(sw.sum("x"), sw.Range(25), name="hot", having=(">", 9))
HOT_ORACLE = oracle.Q(oracle.agg("sum", "x"), oracle.Range(25), having=(">", 9))

rows = st.fixed_dictionaries({"dt": st.integers(-12, 15), "k": st.integers(0, 3), "x": st.none() | st.integers(0, 9)})
batches = st.lists(st.tuples(st.lists(rows, max_size=6), st.integers(0, 2), st.booleans()), min_size=1, max_size=8)


def table(schema: pa.Schema, events: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(events, schema)


def streamed(queries: list[sw.Query], delay: int, workers: int = 3, requests: bool = False, shards: int = 2,
             key: str | None = "k", held_back: int = 0) -> Stream:  # fmt: skip
    job = windows_job(queries, EVENT, REQUEST if requests else None, "ts", key, shards)
    packers = {EVENTS: Pack(EVENTS, "ts", key, job.time), REQUESTS: Pack(REQUESTS, "ts", key, job.time, False)}
    return Stream(job, packers, delay, shards, workers, held_back)


def timed(drawn: list[dict[str, Any]], now: int) -> list[dict[str, Any]]:
    return [{"ts": now + each["dt"], "k": each["k"], "x": each["x"]} for each in drawn]


class Truth:
    """What has been applied, by the rule in one line: not late when it came, and the watermark has passed it."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.upto: int | None = None
        self.late = 0

    def trigger(self, events: list[dict[str, Any]], upto: int | None) -> list[dict[str, Any]]:
        """The events that are applied now."""
        fresh = [e for e in events if upto is None or e["ts"] > upto]
        self.late += len(events) - len(fresh)
        before = {id(e) for e in self.applied()}
        self.taken += fresh
        self.upto = upto
        return [e for e in self.applied() if id(e) not in before]

    def applied(self) -> list[dict[str, Any]]:
        return oracle.in_order([e for e in self.taken if self.upto is not None and e["ts"] <= self.upto])


@settings(max_examples=share(60))
@given(batches=batches, delay=st.integers(0, 15), held_back=st.sampled_from([0, 4]), idle=st.booleans())
def test_each_trigger_answers_for_the_keys_it_touched_as_of_the_watermark(batches, delay, held_back, idle):
    stream, truth, now = streamed([q for q, _ in QUERIES.values()], delay, held_back=held_back), Truth(), 100
    for drawn, worker, fails in batches:
        events = timed(drawn, now)
        if fails:  # an attempt that is not committed, and then again
            stream.trigger({EVENTS: table(EVENT, events)}, worker, fails=True)
        found = stream.trigger({EVENTS: table(EVENT, events)}, worker)
        watermark = stream.job.time.from_watermark(stream.before)
        touched = {e["k"] for e in truth.trigger(events, watermark)}
        expected = {}
        for name, (_, query) in QUERIES.items():
            for k in touched:
                window = oracle.window_at_time(query, oracle.substream(truth.applied(), "k", k), watermark)
                if oracle.in_relation(query, window):
                    expected[name, k] = oracle.answer(query, window)
        assert {(row["query"], row["k"]): row["value"] for row in found} == expected
        assert all(row["ts"] == watermark and row["tick"] is None for row in found)
        if idle:
            stream.settle()
        now += 7


@settings(max_examples=share(40))
@given(batches=batches, delay=st.integers(0, 15), held_back=st.sampled_from([0, 4]))
def test_a_filter_is_the_set_of_keys_that_pass_in_all_shards_whenever_the_watermark_moves(batches, delay, held_back):
    stream, truth, now, last = streamed([HOT], delay, held_back=held_back), Truth(), 100, None
    for drawn, worker, _ in batches:
        events = timed(drawn, now)
        found = stream.trigger({EVENTS: table(EVENT, events)}, worker)
        watermark = stream.job.time.from_watermark(stream.before)
        truth.trigger(events, watermark)
        expected = {}
        for k in range(4):
            window = oracle.window_at_time(HOT_ORACLE, oracle.substream(truth.applied(), "k", k), watermark or 0)
            if oracle.in_relation(HOT_ORACLE, window) and (oracle.answer(HOT_ORACLE, window) or 0) > 9:
                expected[k] = oracle.answer(HOT_ORACLE, window)
        if watermark != last:
            assert {row["k"]: row["value"] for row in found} == expected
        last = watermark
        now += 7


@settings(max_examples=share(60))
@given(batches=batches, asked=st.lists(st.lists(rows, max_size=4), min_size=8, max_size=8), delay=st.integers(0, 15))
def test_requests_are_answered_as_of_their_own_time_once_the_watermark_has_passed_it(batches, asked, delay):
    queries = [q for q, _ in QUERIES.values()]
    stream, truth, now, waiting, number = streamed(queries, delay, requests=True), Truth(), 100, [], 0
    for (drawn, worker, fails), wanted in zip(batches, asked, strict=False):
        events = timed(drawn, now)
        requests = [{"ts": now + r["dt"], "k": r["k"] + 1, "id": f"r{number + i}"} for i, r in enumerate(wanted)]
        number += len(requests)
        given = {EVENTS: table(EVENT, events), REQUESTS: table(REQUEST, requests)}
        if fails:
            stream.trigger(given, worker, fails=True)
        late = [r for r in requests if r["ts"] <= stream.upto(r["k"])]
        found = stream.trigger(given, worker)
        watermark = stream.job.time.from_watermark(stream.before)
        truth.trigger(events, watermark)
        waiting += [r for r in requests if r not in late]
        due = [r for r in waiting if watermark is not None and r["ts"] <= watermark]
        waiting = [r for r in waiting if r not in due]
        expected = [r | dict.fromkeys(QUERIES) for r in late]
        for r in due:
            own = oracle.substream(truth.applied(), "k", r["k"])
            answers = {n: oracle.answer(q, oracle.window_at_time(q, own, r["ts"])) for n, (_, q) in QUERIES.items()}
            expected.append(r | answers)
        by_id = lambda row: row["id"]  # noqa: E731
        assert sorted(found, key=by_id) == sorted(expected, key=by_id)
        now += 7


EVERY = {
    "rows": (sw.Every(3), oracle_ticks.Every(rows=3), 1),
    "rows per key": (sw.Every(2, per_key=True), oracle_ticks.Every(rows=2, per_key=True), 2),
    "time": (sw.Every(time=10), oracle_ticks.Every(time=10), 2),
    "tuples": (sw.Every(time=10, anchor="tuple"), oracle_ticks.Every(time=10, anchor="tuple"), 1),
    "time per key": (sw.Every(time=10, per_key=True), oracle_ticks.Every(time=10, per_key=True), 2),
}


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=share(25))
@given(batches=batches, delay=st.integers(0, 15))
def test_ticks_come_once_each_as_soon_as_the_watermark_decides_them(name, batches, delay):
    every, plain, shards = EVERY[name]
    queries = [replace(QUERIES[n][0], every=every) for n in ("total", "rows")]
    stream, truth, now, found = streamed(queries, delay, shards=shards), Truth(), 100, []
    for drawn, worker, fails in [*batches, ([], 0, False)]:
        events = timed(drawn, now)
        if fails:
            stream.trigger({EVENTS: table(EVENT, events)}, worker, fails=True)
        found += stream.trigger({EVENTS: table(EVENT, events)}, worker)
        watermark = stream.job.time.from_watermark(stream.before)
        truth.trigger(events, watermark)
        now += 7
    for n in ("total", "rows"):
        last = None if plain.time is None else (watermark or 0) // plain.time
        expected = oracle_ticks.ticks([QUERIES[n][1]], plain, truth.applied(), "k", last)
        rows = [(r["tick"], r["ts"], r["k"], r["value"]) for r in found if r["query"] == n]
        assert sorted(rows) == sorted(expected)


@pytest.mark.parametrize("name", ["rows", "rows per key", "tuples"])
@pytest.mark.parametrize("windows", [("total",), ("total", "rows")])
def test_rows_that_are_long_gone_still_count(name, windows):
    every, plain, _ = EVERY[name]
    stream = streamed([replace(QUERIES[n][0], every=every) for n in windows], 0, workers=30, shards=1)
    events, found = [], []
    for i in range(120):
        batch = [{"ts": 100 + 10 * i + j, "k": (i * j) % 5, "x": j} for j in range(1 + i % 4)]
        events += batch
        found += stream.trigger({EVENTS: table(EVENT, batch)}, worker=(i * i) % 30)
    assert stream.total("segments") < 50
    found += stream.trigger({}, worker=29)
    watermark = stream.job.time.from_watermark(stream.before)
    last = None if plain.time is None else watermark // plain.time
    for n in windows:
        expected = oracle_ticks.ticks([QUERIES[n][1]], plain, [e for e in events if e["ts"] <= watermark], "k", last)
        rows = [(r["tick"], r["ts"], r["k"], r["value"]) for r in found if r["query"] == n]
        assert sorted(rows) == sorted(expected)


def test_late_events_are_counted_and_change_nothing():
    stream = streamed([QUERIES["total"][0]], delay=0)
    stream.trigger({EVENTS: table(EVENT, [{"ts": 100, "k": 1, "x": 1}])})
    stream.trigger({EVENTS: table(EVENT, [{"ts": 110, "k": 1, "x": 1}])})
    late = [{"ts": 100, "k": 1, "x": 5}, {"ts": 111, "k": 1, "x": 2}]
    assert stream.trigger({EVENTS: table(EVENT, late)}) == [
        {"query": "total", "tick": None, "ts": 110, "k": 1, "value": 2}
    ]
    assert (stream.total("events"), stream.total("late")) == (1, 1)


def test_state_stays_small_while_time_passes_and_a_new_worker_answers_the_same():
    stream = streamed([QUERIES["total"][0], QUERIES["rows"][0]], delay=0, workers=40, shards=1)
    for i in range(200):
        events = [{"ts": 100 + 5 * i + j, "k": 7 if i == 0 else j % 3, "x": i} for j in range(5)]
        last = stream.trigger({EVENTS: table(EVENT, events)}, worker=0 if i % 2 else i % 40)
    assert stream.total("segments") < 40
    assert stream.total("bytes") < 40_000
    again = stream.trigger({}, worker=39)
    stream.trigger({EVENTS: table(EVENT, [{"ts": 2000, "k": 7, "x": 1}])}, worker=38)
    answered = stream.trigger({EVENTS: table(EVENT, [{"ts": 2001, "k": 9, "x": 1}])}, worker=37)
    assert [row["value"] for row in answered if row["k"] == 7 and row["query"] == "rows"] == [3]  # two are very old
    assert last and again


@pytest.mark.parametrize(("shards", "partitions"), [(1, 1), (1, 8), (8, 8), (20, 8), (200, 200), (3, 200)])
def test_shards_are_dealt_evenly_to_partitions(shards, partitions):
    numbers = shard_numbers(shards, partitions)
    counts = [0] * partitions
    for number in numbers:
        counts[partition_of(number, partitions)] += 1
    assert len(set(numbers)) == shards
    assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize(
    ("held_back", "totals", "replayed"),
    [(0, [[], [1], [2], [2]], [0, 0, 0, 0]), (5, [[], [], [1], [2]], [0, 1, 0, 0])],
)
def test_events_are_applied_ahead_of_the_watermark_unless_it_turns_out_to_be_held_back(held_back, totals, replayed):
    stream = streamed([QUERIES["total"][0]], delay=0, workers=1, shards=1, held_back=held_back)
    for i, read_again in enumerate(replayed):
        found = stream.trigger({EVENTS: table(EVENT, [{"ts": 110 + 10 * i, "k": 1, "x": 1}])})
        assert [row["value"] for row in found] == totals[i]
        assert stream.metrics[0]["replayed"] == read_again
        (cached,) = stream.caches[0]._kept
        goes_ahead = not (held_back and i)
        assert (cached.busy is not None) == goes_ahead
        if goes_ahead:
            cached.busy.result()
            assert cached.body.ahead == 110 + 10 * i
            assert cached.body.events.count == 0  # none waits


def test_an_older_engine_that_went_further_than_the_step_after_it_is_not_brought_up_to_date():
    stream = streamed([QUERIES["total"][0]], delay=0, workers=2, shards=1, held_back=5)
    stream.trigger({EVENTS: table(EVENT, [{"ts": 110, "k": 1, "x": 1}])}, worker=0)
    stream.settle()  # has applied what is up to 110
    stream.trigger({EVENTS: table(EVENT, [{"ts": 107, "k": 1, "x": 2}])}, worker=1)  # at 105, so this is not late
    stream.trigger({EVENTS: table(EVENT, [{"ts": 117, "k": 1, "x": 4}])}, worker=1)
    stream.trigger({EVENTS: table(EVENT, [{"ts": 130, "k": 1, "x": 8}])}, worker=1)  # at 112
    found = stream.trigger({EVENTS: table(EVENT, [{"ts": 131, "k": 1, "x": 16}])}, worker=0)  # at 125
    assert [(row["ts"], row["value"]) for row in found] == [(125, 7)]
    assert stream.metrics[0]["replayed"] == 4  # all, by a new engine


def test_an_engine_that_is_wanted_before_it_has_gone_ahead_is_as_it_was(monkeypatch):
    monkeypatch.setattr(bodies, "DELAY", 60.0)  # whoever waited for that would notice
    stream = streamed([QUERIES["total"][0]], delay=0, workers=1, shards=2)
    for i, total in enumerate([[], [1, 1], [2, 2]]):
        found = stream.trigger({EVENTS: table(EVENT, [{"ts": 110 + 10 * i, "k": k, "x": 1} for k in (0, 1)])})
        assert [row["value"] for row in found] == total
        assert [counts["replayed"] for counts in stream.metrics] == [0, 0]


def test_every_piece_is_a_sealed_state_and_what_is_damaged_or_foreign_is_refused_by_name():
    stream = streamed([QUERIES["total"][0]], delay=0, workers=9, shards=1)
    for ts in (100, 110):
        stream.trigger({EVENTS: table(EVENT, [{"ts": ts, "k": 1, "x": 1}])})
    pieces = stream.stores[0]["pieces"]
    names = {
        HEADER_AT: "the header of shard 0", PURPOSE_AT: "the purpose of shard 0", 0: "segment 0 of shard 0",
        1: "segment 1 of shard 0",
    }  # fmt: skip
    assert {number for (number,) in pieces} == set(names)
    other = streamed([QUERIES["total"][0], QUERIES["rows"][0]], delay=0, shards=1)  # looks at the purpose, too
    for number, name in names.items():
        (content,) = pieces[number,]
        header, arrays = Pieces(Map(stream.stores[0], "pieces"), "").read(number)
        assert table_from_array(arrays["rows"]).num_rows == 1 if number >= 0 else header and not arrays
        flipped = content[:-3] + bytes([content[-3] ^ 4]) + content[-2:]
        foreign = content[:8] + b"\x09" + content[9:]
        for damaged, says in (
            (flipped, "its checksum"), (foreign, "of version 9"), (b"x" + content[1:], "does not begin with"),
        ):  # fmt: skip
            other.caches, other.watermark = [Cache()], stream.watermark
            other.stores = {0: copy.deepcopy(stream.stores[0])}
            other.stores[0]["pieces"][number,] = (damaged,)
            with pytest.raises(BadState, match=f"{name} is .*{says}"):
                other.trigger({EVENTS: table(EVENT, [{"ts": 120, "k": 1, "x": 1}])})
