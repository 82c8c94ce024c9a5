"""Ticks and nested queries, three ways: an engine that is given the events piece by piece, `evaluate` over all of them,
and the oracle. However the input is cut and whenever time is told to pass, they agree.

The last event is at a multiple of all slots, so that its end decides the same ones for those who are given all events
at once and for those who wait for time to pass.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swag as sw
from swag.live import store
from swag.ticks import ticker
from tests import oracle, oracle_ticks
from tests.oracle import agg
from tests.oracle_ticks import Every
from tests.test_emitted import FEW, assert_same
from tests.test_evaluate import ours
from tests.test_frequency import our_every

ROUND = 12
SLOTS = st.sampled_from([1, 2, 3, 4, 6, 12])
BY_ROWS = st.builds(Every, rows=st.integers(1, 5), per_key=st.booleans())
BY_TIME = st.builds(Every, time=SLOTS, anchor=st.sampled_from(["tick", "tuple"]), per_key=st.booleans())
UNTIL = st.sampled_from([0, 0, 0, 1, 2])
RANGES = st.builds(
    lambda t, until, closed: oracle.Range(t + until, until, closed),
    st.integers(1, 15), UNTIL, st.sampled_from(["right", "left", "both", "none"]),
)  # fmt: skip
WINDOWS = st.builds(lambda n, until: oracle.Rows(n + until, until), st.integers(1, 5), UNTIL) | RANGES
AGGREGATES = st.sampled_from(["count", "sum", "max", "last"])
KEYED = st.sampled_from([None, "k"])
STEPS = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, 1, 1, 2, 5, 17]),  # how long after the one before
        st.sampled_from("badc"),
        st.sampled_from([None, -1, 0, 1, 2]),
        st.sampled_from(["on", "on", "cut", "cut", "advance", "fetch", "save"]),
    ),
    max_size=20,
)


@dataclass(frozen=True)
class Level:
    """A query; `chosen`: of the events (or answers) for which n > 0. every: None, at each of them."""

    kind: str
    window: Any
    every: Every | None
    chosen: bool

    def of(self, key: str | None) -> Level:
        every = self.every and replace(self.every, per_key=self.every.per_key and key is not None)
        return replace(self, every=every)


LEVELS = st.builds(Level, AGGREGATES, WINDOWS, BY_ROWS | BY_TIME | st.none(), st.booleans())
TOPS = st.builds(Level, AGGREGATES, WINDOWS, BY_ROWS | BY_TIME, st.booleans())


def our_query(levels: list[Level]) -> sw.Query:
    """The first level reads the events, the next its answers …"""
    source: Any = None
    for n, level in enumerate(levels):
        column = "n" if level.kind != "count" else None
        what = getattr(sw, level.kind)(*([column] if column else [])).alias("n")
        if level.chosen:
            source = sw.Events("n > 0", source)
        name = "q" if n + 1 == len(levels) else None
        every = level.every and our_every(level.every)
        source = sw.Query(what, ours(level.window), name, every=every, source=source)
    return source


def theirs(level: Level) -> oracle.Q:
    return oracle.Q(agg(level.kind, *([] if level.kind == "count" else ["n"])), level.window)


def expected_rows(levels: list[Level], events: list[dict[str, Any]], key: str | None) -> list[tuple[Any, ...]]:
    end = oracle_ticks.end_of(events)
    for n, level in enumerate(levels):
        if level.chosen:
            events = [e for e in events if e["n"] is not None and e["n"] > 0]
        last = None
        if level.every is not None and level.every.time is not None:
            end = max(end, oracle_ticks.end_of(events))
            last = oracle_ticks.slot(end, level.every.time)
        if n + 1 == len(levels):
            return oracle_ticks.ticks([theirs(level)], level.every, events, key, last)
        events = oracle_ticks.stream(theirs(level), level.every, events, "n", key, last)
    raise AssertionError


def events_of(steps: list[Any], behind: int) -> list[dict[str, Any]]:
    """behind: how much later events of key a come than they should."""
    now, found = 0, []
    for gap, k, n, _ in steps:
        now += gap
        found.append({"ts": now - behind * (k == "a"), "k": k, "n": n})
    return [*found, {"ts": (now // ROUND + 1) * ROUND, "k": "b", "n": 1}]


def table(events: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(events, pa.schema({"ts": pa.int64(), "k": pa.string(), "n": pa.int64()}))


def batches(steps: list[Any], events: list[dict[str, Any]]) -> Iterator[tuple[list[dict[str, Any]], str]]:
    batch: list[dict[str, Any]] = []
    for event, then in zip(events, [*(step[3] for step in steps), "cut"], strict=True):
        batch.append(event)
        if then != "on":
            yield batch, then
            batch = []


class Run:
    """An engine that is given events piece by piece, saved and loaded in between; and what it emits."""

    def __init__(self, engine: sw.Engine, folder: Path, behind: int = 0) -> None:
        self.engine, self.path, self.behind = engine, folder / "engine.swag", behind
        self.emitted: list[dict[str, Any]] = []

    def take(self, batch: list[dict[str, Any]], then: str) -> None:
        self.engine.append(table(batch))
        if then == "advance":
            self.engine.advance(max(e["ts"] for e in batch) - self.behind)
        if then == "fetch":
            self.fetch()
        if then == "save":
            self.engine.save(self.path)
            self.engine = sw.Engine.load(self.path)

    def fetch(self) -> None:
        self.emitted += self.engine.emitted().to_pylist()

    def finish(self, end: int) -> list[tuple[Any, ...]]:
        """Rows of the ticks up to `end`, other than the query's name."""
        self.engine.advance(end + 1 + (self.engine.lateness or 0))
        self.fetch()
        assert self.engine.stats()["late"] == 0
        return [tuple(row.values())[1:] for row in self.emitted if row["ts"] <= end]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@given(
    inner=st.lists(LEVELS, max_size=2),
    top=TOPS,
    steps=STEPS,
    key=KEYED,
    lateness=st.sampled_from([None, None, 0, 4]),
    behind=st.sampled_from([0, 0, 4]),
    few=FEW,
    many=st.sampled_from([1, store.MANY_KEYS]),
)
def test_engine_evaluate_and_the_oracle_give_the_same_ticks(
    folder: Path,
    inner: list[Level],
    top: Level,
    steps: list[Any],
    key: str | None,
    lateness: int | None,
    behind: int,
    few: int,
    many: int,
) -> None:
    """few: rows may wait for a tick. many: keys, so many that those that no window holds are forgotten."""
    levels = [level.of(key) for level in [*inner, top]]
    query, engine = our_query(levels), sw.Engine(key=key, lateness=lateness)
    engine.register(query)
    apart = key is not None and not engine._stream.emission.ordered  # each key is in order by itself
    behind = behind if (apart and lateness is None) or (lateness or 0) >= behind else 0
    events = events_of(steps, behind)
    expected = expected_rows(levels, events, key)
    in_order = key is None or not top.every.per_key
    stored = sw.evaluate([query], table(events), key=key)
    assert_same(expected, [tuple(row.values()) for row in stored.to_pylist()], in_order)
    run = Run(engine, folder, behind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ticker, "FEW_WAITING", few)
        patch.setattr(store, "MANY_KEYS", many)
        for batch, then in batches(steps, events):
            run.take(batch, then)
        assert_same(expected, run.finish(events[-1]["ts"]), in_order)


AT_ONCE = st.builds(Level, AGGREGATES, WINDOWS, st.builds(Every, rows=st.integers(1, 3)) | st.none(), st.booleans())
LOOKED_UP = st.builds(Level, AGGREGATES, WINDOWS, st.none(), st.booleans())


@given(inner=st.lists(AT_ONCE, min_size=1, max_size=2), top=LOOKED_UP, beside=TOPS | st.none(), steps=STEPS, key=KEYED)
def test_a_lookup_over_answers_sees_those_of_now(
    folder: Path, inner: list[Level], top: Level, beside: Level | None, steps: list[Any], key: str | None
) -> None:
    """beside: a query over the same answers that may count those of all keys."""
    levels = [level.of(key) for level in [*inner, top]]
    query, run, seen = our_query(levels), Run(sw.Engine(key=key), folder), []
    if beside is not None:
        run.engine.register(replace(our_query([*levels[:-1], beside.of(key)]), name="beside"))
    run.engine.register(query)
    for batch, then in batches(steps, events_of(steps, 0)):
        run.take(batch, then)
        seen += batch
        request = {"ts": [batch[-1]["ts"]] * 4, "k": list("abcd")}
        stored = sw.evaluate([query], table(seen), at=request, key=key)["q"].to_pylist()
        found = [run.engine.lookup("q", key=each) for each in "abcd"] if key else [run.engine.lookup("q")] * 4
        assert found == stored


OVER_TIME = st.builds(Level, AGGREGATES, RANGES, BY_ROWS | BY_TIME, st.just(False))


@given(before=STEPS, steps=STEPS, level=OVER_TIME, key=KEYED, lateness=st.sampled_from([None, 0, 4]))
def test_registered_midway_ticks_are_those_of_the_stream(
    folder: Path, before: list[Any], steps: list[Any], level: Level, key: str | None, lateness: int | None
) -> None:
    """Where their windows hold no event from before."""
    level = level.of(key)
    query, run = our_query([level]), Run(sw.Engine(key=key, lateness=lateness), folder)
    run.engine.register(sw.Query(sw.count(), sw.Rows(3), "other"))
    run.engine.register(sw.Query(sw.count(), sw.Rows(3), "ticks", every=sw.Every(5)))
    early = events_of(before, 0)
    for batch, then in batches(before, early):
        run.take(batch, then)
    run.engine.register(query)
    start = early[-1]["ts"]
    events = [{**event, "ts": event["ts"] + start} for event in events_of(steps, 0)]
    for batch, then in batches(steps, events):
        run.take(batch, then)
    since = start + level.window.t
    expected = [row for row in expected_rows([level], early + events, key) if row[1] > since]
    run.finish(events[-1]["ts"])
    found = [row for row in run.emitted if row["query"] == "q" and since < row["ts"] <= events[-1]["ts"]]
    in_order = key is None or not level.every.per_key
    assert_same(expected, [tuple(row.values())[1:] for row in found], in_order)
