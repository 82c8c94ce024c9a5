"""One suite for every way of running: windows, requests, filters, ticks and frames give the answers of the oracle."""

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import frames as fr
import frames.spark as on_spark
import swag as sw
import swag.spark
from tests import oracle
from tests.conformance import cases
from tests.conformance.runners import RUNNERS
from tests.frames.cases import actual as frame_rows
from tests.frames.cases import expected as expected_frames
from tests.frames.cases import same as same_frames
from tests.oracle_ticks import ticks as expected_ticks

STREAMS = cases.streams()
IDENTITY = sw.Query(sw.last("row"), sw.Rows(1), "row")


every_way = pytest.mark.parametrize("make", RUNNERS, ids=lambda runner: runner.name)
every_stored_way = pytest.mark.parametrize(
    "make", [runner for runner in RUNNERS if hasattr(runner, "fill")], ids=lambda runner: runner.name
)


def values(table: pa.Table, queries: list[sw.Query]) -> list[list[Any]]:
    return [list(row) for row in zip(*(table[query.label].to_pylist() for query in queries), strict=True)]


@every_way
def test_at_every_event(make, spark):
    """Each case with its keys, and once more as one stream: all in one job."""
    pairs = cases.queries()[:: make.share]
    streams = [*STREAMS, *([{**event, "k": ""} for event in stream] for stream in STREAMS)]
    events = cases.in_one_table(streams)
    asked = [query for query, _ in pairs]
    found = make(spark).at_events([IDENTITY, *asked], events, "ts", "k").sort_by("row")
    assert found["row"].to_pylist() == events["row"].to_pylist()
    for case, answers in zip(cases.by_case(events, streams), cases.by_case(found, streams)):
        rows = [[row[query.label] for query in asked] for row in answers]
        assert oracle.mismatches(rows, [q for _, q in pairs], case, key="k") == []


@every_way
def test_at_requests(make, spark):
    pairs = cases.queries()
    asked = [query for query, _ in pairs]
    events = cases.in_one_table(STREAMS)
    rng = np.random.default_rng(5)
    requests = pa.table({
        "k": [f"{c}/{k}" for c in range(len(STREAMS)) for k in "abd"],
        "ts": rng.choice([-1, 0, 3, 7, 10, 31, 10**12 // 2, 2 * 10**12], 3 * len(STREAMS)),
        "request": np.arange(3 * len(STREAMS)),
    })  # fmt: skip
    found = make(spark).at_requests(asked, events, requests, "ts", "k").sort_by("request")
    assert found.select(["k", "ts", "request"]).to_pylist() == requests.to_pylist()
    assert (
        oracle.mismatches(values(found, asked), [q for _, q in pairs], events.to_pylist(), requests.to_pylist(), "k")
        == []
    )


@every_stored_way
def test_at_every_event_in_several_groupings(make, spark):
    grouped, events = cases.in_groupings(), cases.with_other_keys(cases.in_one_table(STREAMS))
    found = make(spark).at_events([IDENTITY, *(query for query, _ in grouped)], events, "ts", "k").sort_by("row")
    assert found.column_names == ["k", "case", "half", "ts", "row", *(query.label for query, _ in grouped)]
    assert found["k"].to_pylist() == events["k"].to_pylist()
    assert_grouped(found, grouped, events, None)


@every_stored_way
def test_at_requests_in_several_groupings(make, spark):
    grouped, events = cases.in_groupings(), cases.with_other_keys(cases.in_one_table(STREAMS))
    keys, rng = (
        events.select(["half", "k", "case"]).take(pa.array(range(0, events.num_rows, 3))),
        np.random.default_rng(5),
    )
    times = rng.choice([-1, 0, 3, 7, 10, 31, 10**12 // 2, 2 * 10**12], keys.num_rows)
    requests = keys.append_column("ts", pa.array(times)).append_column("request", pa.array(range(keys.num_rows)))
    found = make(spark).at_requests([query for query, _ in grouped], events, requests, "ts", "k").sort_by("request")
    assert found.column_names == [*requests.column_names, *(query.label for query, _ in grouped)]
    assert_grouped(found, grouped, events, requests)


def assert_grouped(found: pa.Table, grouped: Any, events: pa.Table, requests: pa.Table | None) -> None:
    """The oracle's key is one value: here, that of all columns of a grouping."""
    for by in dict.fromkeys(query.by for query, _ in grouped):
        of_group = [(query, q) for query, q in grouped if query.by == by]
        keyed = [
            None if table is None else [{**row, "key": cases.key_of(row, by)} for row in table.to_pylist()]
            for table in (events, requests)
        ]
        answers = values(found, [query for query, _ in of_group])
        assert oracle.mismatches(answers, [q for _, q in of_group], *keyed, "key") == []


@every_way
def test_one_stream_without_a_key(make, spark):
    pairs = cases.queries()[:: make.share]
    asked = [query for query, _ in pairs]
    events = cases.in_one_table([max(STREAMS, key=len)])
    found = make(spark).at_events([IDENTITY, *asked], events, "ts", None).sort_by("row")
    assert oracle.mismatches(values(found, asked), [q for _, q in pairs], events.to_pylist()) == []


@every_way
def test_keys_that_pass(make, spark):
    events = cases.in_one_table(STREAMS)
    pairs = [(query, q) for query, q in cases.queries() if query.having is not None]
    assert len(pairs) == 3
    times = [0, 2, 9, 10**12]
    found = make(spark).filters([query for query, _ in pairs], events, times, "ts", "k")
    assert found.column_names == ["query", "at", "k", "value"]
    expected = []
    for query, q in pairs:
        for time in times:
            for key in dict.fromkeys(events["k"].to_pylist()):
                window = oracle.window_at_time(q, oracle.substream(events.to_pylist(), "k", key), time)
                if oracle.in_relation(q, window):
                    expected.append((query.label, time, key, oracle.answer(q, window)))
    assert len(expected) > 20
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == sorted(expected)


@every_way
def test_ticks(make, spark):
    near = [stream for stream in STREAMS if all(event["ts"] < 100 for event in stream)]
    events = cases.in_one_table(near)
    expected = [expected_ticks(theirs, same, events.to_pylist(), "k") for _, theirs, same in asked_at(cases.EVERY)]
    found = make(spark).ticks([ours for ours, _, _ in asked_at(cases.EVERY)], events, "ts", "k")
    for table, wanted in zip(found, expected, strict=True):
        assert_ticks(table, wanted, ["k"])


@every_way
@pytest.mark.parametrize("key", ["k", None])
def test_ticks_of_all_keys_together_and_of_one_stream(make, spark, key):
    events = cases.in_one_table([max((stream for stream in STREAMS if 20 < max_ts(stream) < 100), key=len)])
    expected = [
        expected_ticks(theirs, same, events.to_pylist(), key)
        for _, theirs, same in asked_at(cases.EVERY_OF_ALL, of=float)
    ]
    found = make(spark).ticks([ours for ours, _, _ in asked_at(cases.EVERY_OF_ALL, of=float)], events, "ts", key)
    for table, wanted in zip(found, expected, strict=True):
        assert_ticks(table, wanted, [] if key is None else [key])


@every_way
def test_ticks_of_queries_over_other_queries_and_over_chosen_events(make, spark):
    events = cases.in_one_table(STREAMS)
    found = make(spark).ticks([[query] for query, _ in cases.NESTED], events, "ts", "k")
    for table, (query, rows_of) in zip(found, cases.NESTED, strict=True):
        assert query.source is not None
        assert_ticks(table, rows_of(events.to_pylist()), ["k"])


def max_ts(stream: list[dict[str, Any]]) -> int:
    return max((event["ts"] for event in stream), default=0)


def asked_at(frequencies: list[Any], of: type = object) -> list[tuple[list[sw.Query], list[oracle.Q], Any]]:
    """Some of the queries at each frequency, without those of text if `of` is float: ours, the oracle's."""
    pairs = [pair for pair in cases.queries() if pair[0].having is None][::9]
    pairs = [pair for pair in pairs if of is object or pair[0].aggregate.columns != ("s",)]
    return [
        ([sw.Query(q.aggregate, q.window, q.name, where=q.where, every=every) for q, _ in pairs],
         [q for _, q in pairs], same)
        for every, same in frequencies
    ]  # fmt: skip


def assert_ticks(found: pa.Table, expected: list[tuple[Any, ...]], keys: list[str]) -> None:
    assert found.column_names[: 2 + len(keys)] == ["tick", "ts", *keys]
    by = (lambda row: (row[2], row[0])) if keys else (lambda row: row[0])
    rows, wanted = sorted((tuple(row.values()) for row in found.to_pylist()), key=by), sorted(expected, key=by)
    assert len(rows) == len(wanted) > 5
    for row, want in zip(rows, wanted, strict=True):
        assert all(map(nearly, want, row)), (want, row)


def nearly(want: Any, found: Any) -> bool:
    return oracle.same(want, found, 1e-9 * max(1.0, abs(want)) if isinstance(want, float) else 0)


@every_way
def test_frames(make, spark):
    events, runner, specs = cases.in_one_table(STREAMS), make(spark), cases.SPECS[:: min(make.share, 2)]  # of each kind
    for spec, found in zip(specs, runner.detect(specs, events, "ts", "k"), strict=True):
        expected = expected_frames(spec, events.to_pylist(), "k")
        assert len(expected) > 20
        assert same_frames(_in_order(frame_rows(found, "k")), _in_order(expected)), spec


def _in_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """By key and time, and of those that share both, by what can be compared."""
    return sorted(rows, key=lambda row: (*row[:4], *(repr(value) for value in row[4:])))


@every_stored_way
def test_frames_filled_and_summarised(make, spark):
    events, runner = cases.in_one_table(STREAMS), make(spark)
    frames = fr.detect(cases.SPECS[1], events, ts="ts", key="k")
    inside = runner.fill(frames, events, "ts", "k", before=2, after=1)
    pairs = [(event["row"], frame["frame_id"]) for event in events.to_pylist() for frame in frames.to_pylist()
             if event["k"] == frame["k"] and frame["start"] - 2 <= event["ts"] <= frame["end"] + 1]  # fmt: skip
    assert sorted(zip(inside["row"].to_pylist(), inside["frame_id"].to_pylist())) == sorted(pairs)
    answers = runner.summarize(frames, events, [sw.count(), sw.sum("i")], "ts", "k", before=2, after=1)
    i = dict(zip(events["row"].to_pylist(), events["i"].to_pylist()))
    for frame in answers.to_pylist():
        own = [i[row] for row, number in pairs if number == frame["frame_id"]]
        known = [value for value in own if value is not None]
        assert (frame["count()"], frame["sum(i)"]) == (len(own), sum(known) if known else None)


def test_frames_of_streams_are_not_filled_and_it_says_so(spark):
    events = spark.readStream.format("rate").load().withColumnRenamed("timestamp", "ts")
    for call in (on_spark.fill, partial(on_spark.summarize, aggregates=[sw.count()])):
        with pytest.raises(sw.BadQuery, match="events are a stream"):
            call(events, events, ts="ts")
