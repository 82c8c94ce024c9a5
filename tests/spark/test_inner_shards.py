"""Queries over the answers of others, and over chosen events, in shards: against the oracle, without Spark."""

import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swag as sw
from swag.spark.streams.shard_streams import EVENTS
from swag.spark.streams.shard_windows import REQUESTS
from tests import oracle, oracle_ticks
from tests.examples import share
from tests.oracle import Q, agg
from tests.oracle_ticks import Every
from tests.spark.test_shards import EVENT, REQUEST, Truth, batches, rows, streamed, table, timed

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """query reads a stream inside: `inner`, of the events applied and the watermark; all of it up to `settled`."""

    query: sw.Query
    inner: Callable[[Rows, int], Rows]
    outer: Q
    every: Every | None = None
    settled: Callable[[int], int] = lambda watermark: watermark
    shards: int = 2


def ticks(query: Q, every: Every) -> Callable[[Rows, int], Rows]:
    def found(events: Rows, watermark: int) -> Rows:
        last = None if every.time is None else watermark // every.time
        answers = oracle_ticks.ticks([query], every, events, "k", last)
        return [dict(zip(("tick", "ts", "k", "n"), row, strict=True)) for row in answers]

    return found


def large(e: dict[str, Any]) -> bool:
    return e["x"] is not None and e["x"] > 4


SUM, COUNT = Q(agg("sum", "x"), oracle.Range(20)), Q(agg("count"), oracle.Rows(3))
SLOTS = sw.Query(sw.sum("x").alias("n"), sw.Range(20), every=sw.Every(time=10))
PAIRS = sw.Query(sw.sum("x").alias("n"), sw.Range(20), every=sw.Every(2, per_key=True))
TUPLES = sw.Query(sw.sum("x").alias("n"), sw.Range(20), every=sw.Every(time=10, anchor="tuple", per_key=True))
EACH = sw.Query(sw.count().alias("n"), sw.Rows(3), having=(">", 1))
AT_EACH = Q(agg("count"), oracle.Rows(3), having=(">", 1))
SEVERAL = Q(agg("sum", "n"), oracle.Rows(2))


def query(aggregate: Any, window: Any, source: Any, **options: Any) -> sw.Query:
    return sw.Query(aggregate, window, "q", source=source, **options)


LAST = Q(agg("last", "x"), oracle.Range(20))


def both(events: Rows, watermark: int) -> Rows:
    """Two answers at each tick, as columns."""
    found = oracle_ticks.ticks([SUM, LAST], Every(time=10), events, "k", watermark // 10)
    return [dict(zip(("tick", "ts", "k", "n", "m"), row, strict=True)) for row in found]


TWO = [SLOTS, sw.Query(sw.last("x").alias("m"), sw.Range(20), every=sw.Every(time=10))]
TOGETHER = query(sw.max("m"), sw.Rows(1), TWO).source
CASES = {
    "slots": Case(
        query(sw.max("n"), sw.Range(35), SLOTS), ticks(SUM, Every(time=10)), Q(agg("max", "n"), oracle.Range(35)),
    ),
    "rows of slots": Case(query(sw.sum("n"), sw.Rows(2), SLOTS), ticks(SUM, Every(time=10)), SEVERAL),
    "pairs": Case(query(sw.sum("n"), sw.Rows(2), PAIRS), ticks(SUM, Every(2, per_key=True)), SEVERAL),
    "tuples": Case(
        query(sw.sum("n"), sw.Rows(2), TUPLES), ticks(SUM, Every(time=10, anchor="tuple", per_key=True)), SEVERAL,
        settled=lambda watermark: watermark // 10 * 10,
    ),
    "each event": Case(
        query(sw.sum("n"), sw.Range(15), EACH), lambda events, _: oracle_ticks.stream(AT_EACH, None, events, "n", "k"),
        Q(agg("sum", "n"), oracle.Range(15)),
    ),
    "slots of pairs": Case(
        query(sw.sum("n"), sw.Range(40), PAIRS, every=sw.Every(time=15)), ticks(SUM, Every(2, per_key=True)),
        Q(agg("sum", "n"), oracle.Range(40)), Every(time=15),
    ),
    "pairs of slots": Case(
        query(sw.sum("n"), sw.Rows(3), SLOTS, every=sw.Every(2, per_key=True)), ticks(SUM, Every(time=10)),
        Q(agg("sum", "n"), oracle.Rows(3)), Every(2, per_key=True),
    ),
    "all, by rows, of tuples": Case(
        query(sw.sum("n"), sw.Rows(3), TUPLES, every=sw.Every(2)),
        ticks(SUM, Every(time=10, anchor="tuple", per_key=True)), Q(agg("sum", "n"), oracle.Rows(3)), Every(2),
        settled=lambda watermark: watermark // 10 * 10, shards=1,
    ),
    "two answers at once": Case(
        query(sw.sum("n"), sw.Rows(2), TWO, where="m > 3"), both,
        replace(SEVERAL, where=lambda e: e["m"] is not None and e["m"] > 3),
    ),
    "slots of two answers at once": Case(
        query(sw.max("m"), sw.Range(40), TWO, every=sw.Every(time=15)), both,
        Q(agg("max", "m"), oracle.Range(40)), Every(time=15),
    ),
    "chosen of two answers at once": Case(
        query(sw.count("n"), sw.Rows(2), sw.Events("m > 3", source=TOGETHER)),
        lambda events, w: [e for e in both(events, w) if e["m"] is not None and e["m"] > 3],
        Q(agg("count", "n"), oracle.Rows(2)),
    ),
    "chosen": Case(
        query(sw.sum("x"), sw.Rows(2), sw.Events("x > 4")), lambda events, _: [e for e in events if large(e)],
        Q(agg("sum", "x"), oracle.Rows(2)),
    ),
    "pairs of chosen": Case(
        query(sw.sum("x"), sw.Range(40), sw.Events("x > 4"), every=sw.Every(2, per_key=True)),
        lambda events, _: [e for e in events if large(e)], Q(agg("sum", "x"), oracle.Range(40)), Every(2, per_key=True),
    ),
    "chosen answers": Case(
        query(sw.count("n"), sw.Rows(2), sw.Events("n > 6", source=PAIRS)),
        lambda events, w: [e for e in ticks(SUM, Every(2, per_key=True))(events, w) if e["n"] and e["n"] > 6],
        Q(agg("count", "n"), oracle.Rows(2)),
    ),
    "slots of pairs of chosen": Case(
        query(sw.sum("n"), sw.Rows(2), replace(PAIRS, source=sw.Events("x > 1")), every=sw.Every(time=10)),
        lambda events, w: ticks(SUM, Every(2, per_key=True))([e for e in events if e["x"] and e["x"] > 1], w),
        SEVERAL, Every(time=10),
    ),
}  # fmt: skip


def answers(case: Case, inner: Rows, touched: set[int], instant: int) -> set[tuple[Any, ...]]:
    """Of a query without `every`: for the keys that it touched."""
    found = set()
    for k in touched:
        window = oracle.window_at_time(case.outer, oracle.substream(inner, "k", k), instant)
        if oracle.in_relation(case.outer, window):
            found.add((None, instant, k, oracle.answer(case.outer, window)))
    return found


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=share(20))
@given(batches=batches, delay=st.integers(0, 15))
def test_streams_inside_answer_as_if_nothing_had_happened_on_the_way(name, batches, delay):
    case, truth, now = CASES[name], Truth(), 100
    stream, before, sent = streamed([case.query], delay, shards=case.shards), [], []
    for drawn, worker, fails in [*batches, ([], 1, False)]:
        events = timed(drawn, now)
        if fails:
            stream.trigger({EVENTS: table(EVENT, events)}, worker, fails=True)
        found = stream.trigger({EVENTS: table(EVENT, events)}, worker)
        sent += found
        watermark = stream.job.time.from_watermark(stream.before)
        truth.trigger(events, watermark)
        now += 7
        if watermark is None:
            assert found == []
            continue
        inner, instant = case.inner(truth.applied(), watermark), case.settled(watermark)
        if case.every is None:
            touched = {e["k"] for e in inner if e not in before} if len(inner) > len(before) else set()
            assert {tuple(row.values())[1:] for row in found} == answers(case, inner, touched, instant)
        before = inner
    if case.every is not None and watermark is not None:
        last = None if case.every.time is None else instant // case.every.time
        expected = oracle_ticks.ticks(
            [case.outer], case.every, sorted(inner, key=lambda e: (e["ts"], e["k"])), "k", last
        )
        assert sorted(tuple(row.values())[1:] for row in sent) == sorted(expected)


TENS, SEVENS = (Every(time=t, anchor="tuple", per_key=True) for t in (10, 7))
OTHERS = replace(TUPLES, every=sw.Every(time=7, anchor="tuple", per_key=True))
ANY = replace(TUPLES, every=sw.Every(time=10, anchor="tuple"))


def tens(watermark: int) -> int:
    return watermark // 10 * 10


def sevens_of_tens(events: Rows, watermark: int) -> Rows:
    return ticks(Q(agg("sum", "n"), oracle.Range(20)), SEVENS)(ticks(SUM, TENS)(events, watermark), tens(watermark))


# Asked for by requests only: one stream, or streams that are known to different times.
WAITING = {
    "events": Case(query(sw.sum("x"), sw.Rows(3), None), lambda events, _: events, Q(agg("sum", "x"), oracle.Rows(3))),
    "sevens": Case(
        query(sw.max("n"), sw.Range(30), OTHERS), ticks(SUM, SEVENS), Q(agg("max", "n"), oracle.Range(30)),
        settled=lambda watermark: watermark // 7 * 7,
    ),
    "sevens of tens": Case(
        query(sw.sum("n"), sw.Rows(2), replace(OTHERS, aggregate=sw.sum("n").alias("n"), source=TUPLES)),
        sevens_of_tens, SEVERAL, settled=lambda watermark: tens(watermark) // 7 * 7,
    ),
    "chosen tens": Case(
        query(sw.count("n"), sw.Rows(2), sw.Events("n > 6", source=TUPLES)),
        lambda events, w: [e for e in ticks(SUM, TENS)(events, w) if e["n"] and e["n"] > 6],
        Q(agg("count", "n"), oracle.Rows(2)), settled=tens,
    ),
    "tens of all": Case(
        query(sw.sum("n"), sw.Rows(2), ANY), ticks(SUM, Every(time=10, anchor="tuple")), SEVERAL, settled=tens,
        shards=1,
    ),
}  # fmt: skip
ASKED = [
    ["slots", "pairs", "each event", "chosen", "chosen answers"],
    ["tuples"],
    ["sevens of tens"],
    ["events", "tuples", "sevens", "chosen tens", "chosen"],
    ["tens of all", "slots", "events"],
]


def asked_for(cases: dict[str, Case], events: Rows, upto: int, r: dict[str, Any]) -> dict[str, Any]:
    """A request, and its answers by all that has come."""
    found = dict(r)
    for name, case in cases.items():
        own = oracle.substream(case.inner(events, upto), "k", r["k"])
        found[name] = oracle.answer(case.outer, oracle.window_at_time(case.outer, own, r["ts"]))
    return found


@pytest.mark.parametrize("names", ASKED, ids="+".join)
@settings(max_examples=share(20))
@given(batches=batches, asked=st.lists(st.lists(rows, max_size=4), min_size=8, max_size=8), delay=st.integers(0, 15))
def test_requests_are_answered_once_every_stream_that_they_read_is_known_up_to_them(names, batches, asked, delay):
    cases = {f"q{i}": (CASES | WAITING)[name] for i, name in enumerate(names)}
    queries = [replace(case.query, name=name) for name, case in cases.items()]
    shards = min(case.shards for case in cases.values())
    stream, truth, now, waiting = streamed(queries, delay, requests=True, shards=shards), Truth(), 100, []
    for (drawn, worker, fails), wanted in zip([*batches, ([], 2, False)], asked, strict=False):
        events = timed(drawn, now)
        requests = [{"ts": now + r["dt"], "k": r["k"] + 1, "id": f"{now} {i}"} for i, r in enumerate(wanted)]
        given = {EVENTS: table(EVENT, events), REQUESTS: table(REQUEST, requests)}
        if fails:
            stream.trigger(given, worker, fails=True)
        late = [r for r in requests if r["ts"] <= stream.upto(r["k"])]
        found = stream.trigger(given, worker)
        upto = stream.job.time.from_watermark(stream.before)
        truth.trigger(events, upto)
        settled = float("-inf") if upto is None else min(case.settled(upto) for case in cases.values())
        waiting += [r for r in requests if r not in late]
        due = [r for r in waiting if r["ts"] <= settled]
        waiting = [r for r in waiting if r not in due]
        expected = [r | dict.fromkeys(cases) for r in late]
        expected += [asked_for(cases, truth.applied(), upto, r) for r in due]
        assert sorted(found, key=lambda row: row["id"]) == sorted(expected, key=lambda row: row["id"])
        assert stream.total("late") == len(late) + len(events) - sum(upto is None or e["ts"] > upto for e in events)
        now += 7


@pytest.mark.parametrize(("window", "inside"), [(sw.Rows(3), sw.Rows(2)), (sw.Range(95), sw.Range(20))], ids=str)
def test_requests_that_wait_through_many_triggers_are_answered_as_evaluate_does_and_the_log_stays_small(window, inside):
    slow = replace(TUPLES, window=inside, every=sw.Every(time=100, anchor="tuple", per_key=True))
    queries = [sw.Query(sw.sum("x"), window, "events"), query(sw.sum("n"), sw.Range(200), slow)]
    stream, events, requests, found = streamed(queries, 0, workers=30, requests=True, shards=1), [], [], []
    for i in range(120):
        batch = [{"ts": 100 + 10 * i + j, "k": (i + j) % 2, "x": (i + 3 * j) % 9} for j in range(5 + i % 4)]
        asked = [{"ts": 102 + 10 * i, "k": i % 2, "id": f"{i}"}]
        events, requests = events + batch, requests + asked
        given = {EVENTS: table(EVENT, batch), REQUESTS: table(REQUEST, asked)}
        found += stream.trigger(given, worker=(i * i) % 30 if i < 60 else 0)
        assert stream.total("segments") < 90
    settled = stream.job.time.from_watermark(stream.before) // 100 * 100
    asked = table(REQUEST, [r for r in requests if r["ts"] <= settled])
    assert [row["id"] for row in found] == asked["id"].to_pylist()
    assert len(found) > 100
    for each in queries:
        expected = sw.evaluate(each, table(EVENT, events), at=asked, ts="ts", key="k")
        assert [row[each.name] for row in found] == expected[each.name].to_pylist()


def test_a_query_that_is_added_does_not_answer_requests_again():
    fast, slow = replace(WAITING["events"].query, name="fast"), replace(CASES["tuples"].query, name="slow")
    stream = streamed([fast], 0, requests=True, shards=1)

    def trigger(on: Any, ts: int, *asked: int) -> list[int]:
        requests = table(REQUEST, [{"ts": at, "k": 1, "id": ""} for at in asked])
        found = on.trigger({EVENTS: table(EVENT, [{"ts": ts, "k": 1, "x": 1}]), REQUESTS: requests}, worker=ts % 3)
        return [row["ts"] for row in found if row["fast"] is not None]

    assert [trigger(stream, 103, 104, 116), trigger(stream, 105), trigger(stream, 107)] == [[], [], [104]]
    grown = streamed([fast, slow], 0, requests=True, shards=1)
    grown.stores, grown.watermark, grown.latest = stream.stores, stream.watermark, stream.latest
    assert trigger(grown, 109, 105, 108) == []  # 105: the fast query has let go of it
    assert [trigger(grown, ts) for ts in (112, 118, 121, 122)] == [[], [108], [], [116]]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.every is not None])
def test_rows_inside_that_are_long_gone_still_count_and_the_log_stays_small(name):
    case, stream, events, sent = CASES[name], streamed([CASES[name].query], 0, workers=30, shards=1), [], []
    for i in range(120):
        batch = [{"ts": 100 + 10 * i + j, "k": (i * j) % 5, "x": (i + 3 * j) % 9} for j in range(1 + i % 4)]
        events += batch
        sent += stream.trigger({EVENTS: table(EVENT, batch)}, worker=(i * i) % 30)
    assert stream.total("segments") < 70
    watermark = stream.job.time.from_watermark(stream.before)
    inner, instant = case.inner([e for e in events if e["ts"] <= watermark], watermark), case.settled(watermark)
    last = None if case.every.time is None else instant // case.every.time
    expected = oracle_ticks.ticks([case.outer], case.every, sorted(inner, key=lambda e: (e["ts"], e["k"])), "k", last)
    assert sorted(tuple(row.values())[1:] for row in sent) == sorted(expected)


@settings(max_examples=share(20))
@given(batches=batches, delay=st.integers(0, 15))
def test_keys_that_pass_by_the_answers_of_another_query(batches, delay):
    hot = query(sw.max("n"), sw.Range(35), SLOTS, having=(">", 6))
    alone = query(sw.max("n"), sw.Range(35), replace(SLOTS, every=sw.Every(time=10)), every=None)
    stream, one, truth, now, last = streamed([hot], delay), streamed([alone], delay, key=None), Truth(), 100, None
    for drawn, worker, _ in batches:
        events = timed(drawn, now)
        found = stream.trigger({EVENTS: table(EVENT, events)}, worker)
        single = one.trigger({EVENTS: table(EVENT, events)}, worker)
        watermark = stream.job.time.from_watermark(stream.before)
        truth.trigger(events, watermark)
        now += 7
        if watermark is None or watermark == last:
            continue
        inner, last = CASES["slots"].inner(truth.applied(), watermark), watermark
        passing = {row for row in answers(CASES["slots"], inner, {0, 1, 2, 3}, watermark) if row[3] and row[3] > 6}
        assert {tuple(row.values())[1:] for row in found} == passing
        ticks = oracle_ticks.ticks([SUM], Every(time=10), truth.applied(), None, watermark // 10)
        window = [n for _, ts, n in ticks if watermark - 35 < ts <= watermark and n is not None]
        assert all((row["ts"], row["value"]) == (watermark, max(window, default=None)) for row in single)


def test_a_query_that_is_added_reads_the_answers_from_then_on():
    first, more = CASES["pairs"].query, replace(CASES["slots"].query, name="more")
    stream = streamed([first], 0, workers=3, shards=1)
    for i in range(4):
        stream.trigger({EVENTS: table(EVENT, [{"ts": 100 + 10 * i, "k": 1, "x": i}])})
    grown = streamed([first, more], 0, workers=3, shards=1)
    grown.stores, grown.watermark, grown.latest = stream.stores, stream.watermark, stream.latest
    answered = []
    for i in range(4, 8):
        answered += grown.trigger({EVENTS: table(EVENT, [{"ts": 100 + 10 * i, "k": 1, "x": i}])}, worker=i % 3)
    assert [row["value"] for row in answered if row["query"] == "q"] == [1 + 5, 5 + 9]
    assert [row["value"] for row in answered if row["query"] == "more"] == [2 + 3, 3 + 4, 4 + 5, 5 + 6]


def test_a_body_with_streams_inside_is_let_go_without_the_garbage_collector():
    """Workers set apart from the collector what they have; an engine in a cycle would then stay for good."""
    queries = [replace(CASES[name].query, name=name) for name in ("slots", "pairs of chosen")]
    job = streamed(queries, delay=0).job
    gc.collect()
    gc.disable()
    try:
        body = job.make(0)
        engines = [weakref.ref(kept.stream.core.store) for kept in body.streams]
        assert len(engines) > 2
        del body
        assert [engine() for engine in engines] == [None] * len(engines)
    finally:
        gc.enable()
