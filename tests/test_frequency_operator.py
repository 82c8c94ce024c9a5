"""The frequency operator of the paper to the letter: on tuples, by partitions, on results, over other groupings."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swag as sw
from tests import oracle, oracle_ticks
from tests.oracle import agg, same

FEWER = settings(max_examples=settings.default.max_examples // 3)  # each example is an engine or two

SCHEMA = pa.schema({"ts": pa.int64(), "id": pa.string(), "site": pa.string(), "load": pa.int64()})
EVENT = st.fixed_dictionaries(
    {
        "gap": st.sampled_from([0, 0, 1, 1, 2, 3, 9]),
        "id": st.sampled_from("abc"),
        "site": st.sampled_from("nm"),
        "load": st.none() | st.integers(-5, 99),
        "late": st.sampled_from([0, 0, 2, 5]),
        "then": st.sampled_from(["on", "on", "cut", "fetch", "save"]),
    }
)
STREAM = st.lists(EVENT, max_size=24)
PARTITIONS = st.sampled_from([(), ("id",), ("site",), ("id", "site")])
GROUPS = st.sampled_from([(), ("id",), ("site",)])
LONGEST = 9
EVERY = st.builds(oracle_ticks.Every, rows=st.integers(1, 5)) | st.builds(
    oracle_ticks.Every, time=st.integers(1, LONGEST), anchor=st.sampled_from(["tick", "tuple"])
)
WINDOWS = st.builds(oracle.Rows, st.integers(1, 4)) | st.builds(oracle.Range, st.integers(1, 30))
LATENESS = st.sampled_from([None, 5])
LOADS = {None: None, "load < 30": lambda e: e["load"] is not None and e["load"] < 30}
BEYOND = 40  # how long after the last event ticks are compared


def of(stream: list[dict[str, Any]]) -> list[dict[str, Any]]:
    clock, found = -3, []
    for event in stream:
        clock += event["gap"]
        found.append({"ts": clock, "id": event["id"], "site": event["site"], "load": event["load"]})
    return found


def table(events: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(events, SCHEMA)


def ours(every: oracle_ticks.Every, by: tuple[str, ...] = ()) -> sw.Every:
    return sw.Every(every.rows, every.time, every.anchor, by=by or None)  # type: ignore[arg-type]


def window(of: Any) -> Any:
    return sw.Rows(of.n) if isinstance(of, oracle.Rows) else sw.Range(of.t)


def flown(
    queries: list[sw.Query], stream: list[dict[str, Any]], lateness: int | None, hold: bool = True
) -> tuple[list[dict[str, Any]], Callable[[str], list[tuple[Any, ...]]], sw.Engine]:
    """An engine that was given a stream in pieces, late by no more than it may be, saved and loaded in between: the
    events in the order in which they were applied, what it emitted, and itself."""
    engine, events = sw.Engine(lateness=lateness, hold=hold or lateness is None), of(stream)
    engine.register(queries)
    order = range(len(events))
    if lateness is not None:
        order = sorted(order, key=lambda i: events[i]["ts"] + stream[i]["late"])  # type: ignore[assignment]
    batch: list[dict[str, Any]] = []
    fetched: dict[str, list[tuple[Any, ...]]] = {query.label: [] for query in queries}

    def fetch() -> None:
        for name, rows in fetched.items():
            if engine._known(name).at_ticks:
                rows += [tuple(row.values())[1:] for row in engine.emitted(name).to_pylist()]

    for i in order:
        batch.append(events[i])
        if stream[i]["then"] != "on":
            engine.append(table(batch))
            batch = []
        if stream[i]["then"] == "fetch":
            fetch()
        if stream[i]["then"] == "save":
            with tempfile.TemporaryDirectory() as folder:
                engine.save(Path(folder) / "s")
                engine = sw.Engine.load(Path(folder) / "s")
    if batch:
        engine.append(table(batch))
    engine.advance(max([0, *(e["ts"] for e in events)]) + 10 * BEYOND)
    fetch()
    applied = oracle.in_order([events[i] for i in order])
    return applied, lambda name: fetched[name], engine


def assert_same(expected: list[tuple[Any, ...]], found: list[tuple[Any, ...]]) -> None:
    expected, found = (sorted(each, key=lambda row: row[:-1]) for each in (expected, found))
    assert [row[:-1] for row in found] == [row[:-1] for row in expected]
    for want, got in zip(expected, found, strict=True):
        assert same(want[-1], got[-1], 1e-9 if isinstance(want[-1], float) else 0), (want, got)


@FEWER
@given(EVERY, PARTITIONS, st.sampled_from(list(LOADS)), STREAM)
def test_picked_tuples_are_those_of_the_oracle(every: Any, by: Any, where: Any, stream: Any) -> None:
    events = of(stream)
    chosen = sw.Events(where, every=ours(every, by))
    found = sw.evaluate(chosen, table(events)).to_pylist()
    assert found == [e for e in oracle_ticks.picked(every, by, events) if where is None or LOADS[where](e)]
    assert sw.sql(str(chosen)) == [chosen]


@FEWER
@given(EVERY, PARTITIONS, WINDOWS, GROUPS, STREAM)
def test_windows_over_picked_tuples_know_no_others(every: Any, by: Any, over: Any, group: Any, stream: Any) -> None:
    events = of(stream)
    query = sw.Query(sw.sum("load"), window(over), "q", source=sw.Events(every=ours(every, by)), by=group)
    found = sw.evaluate(query, table(events))
    picked = oracle_ticks.picked(every, by, events)
    expected = oracle.evaluate([oracle.Q(agg("sum", "load"), over)], picked, None, group[0] if group else None)
    assert found["q"].to_pylist() == [row[0] for row in expected]


@FEWER
@given(EVERY, PARTITIONS, WINDOWS, EVERY, GROUPS, STREAM, LATENESS, st.booleans())
def test_cut_anywhere_ticks_over_picked_tuples_are_those_of_the_oracle(
    pick: Any, by: Any, over: Any, every: Any, group: Any, stream: Any, lateness: int | None, hold: bool
) -> None:
    source = sw.Events("load < 30", every=ours(pick, by))
    asked = {"every": ours(every), "source": source, "by": group}
    queries = [sw.Query(sw.sum("load"), window(over), "q", **asked), sw.Query(sw.count(), sw.Rows(3), "n", **asked)]
    events, emitted, _ = flown(queries, stream, lateness, hold)
    picked = [e for e in oracle_ticks.picked(pick, by, events) if LOADS["load < 30"](e)]
    upto = oracle_ticks.end_of(events, 0) + BEYOND
    last = None if every.time is None else oracle_ticks.slot(upto, every.time)
    for name, query in (("q", oracle.Q(agg("sum", "load"), over)), ("n", oracle.Q(agg("count"), oracle.Rows(3)))):
        expected = oracle_ticks.ticks([query], every, picked, group[0] if group else None, last)
        found = [row for row in emitted(name) if row[1] <= upto]
        assert_same([row for row in expected if row[1] <= upto], found)


@FEWER
@given(EVERY, PARTITIONS, WINDOWS, st.sampled_from([("id",), ("site",), ("id", "site")]), STREAM, LATENESS)
def test_lookups_over_picked_tuples_see_what_is_decided(
    every: Any, by: Any, over: Any, group: Any, stream: Any, lateness: int | None
) -> None:
    query = sw.Query(sw.count(), window(over), "q", source=sw.Events(every=ours(every, by)), by=group)
    events, _, engine = flown([query], stream, lateness)
    picked = oracle_ticks.picked(every, by, events)
    now = int(engine._streams.time.now) if events else 0
    expected = {
        key: len(found)
        for key, own in oracle_ticks.parted(picked, group).items()
        if (found := oracle.window_events(own, over, now))
    }
    rows = engine.lookup("q").to_pylist() if events else []
    assert {tuple(row[name] for name in group): row["value"] for row in rows} == expected


BOTH = ("id", "site")


def with_both(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [e | {"both": (e["id"], e["site"])} for e in events]


def apart(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [(*row[:2], *row[2], *row[3:]) for row in rows]


@FEWER
@given(EVERY, st.sampled_from([("id",), ("site",)]), WINDOWS, st.sampled_from(list(LOADS)), STREAM, LATENESS)
def test_a_tick_of_a_partition_reports_the_groups_in_it(
    every: Any, by: Any, over: Any, where: Any, stream: Any, lateness: int | None
) -> None:
    asked = {"where": where, "every": ours(every, by), "by": BOTH}
    queries = [sw.Query(sw.sum("load"), window(over), "q", **asked), sw.Query(sw.count(), sw.Rows(2), "n", **asked)]
    theirs = [oracle.Q(agg("sum", "load"), over, LOADS[where]), oracle.Q(agg("count"), oracle.Rows(2), LOADS[where])]
    events, emitted, _ = flown(queries, stream, lateness)
    for query, own in zip(queries, theirs, strict=True):
        stored = [tuple(row.values()) for row in sw.evaluate(query, table(events)).to_pylist()]
        assert stored == apart(oracle_ticks.of_partitions([own], every, by, with_both(events), "both"))
        upto = oracle_ticks.end_of(events, 0) + BEYOND
        last = None if every.time is None else oracle_ticks.slot(upto, every.time)
        expected = apart(oracle_ticks.of_partitions([own], every, by, with_both(events), "both", last))
        found = [row for row in emitted(query.label) if row[1] <= upto]
        assert_same([row for row in expected if row[1] <= upto], found)


HAVING = st.sampled_from([None, None, (">", 1)])


@FEWER
@given(EVERY, WINDOWS, GROUPS, st.sampled_from(list(LOADS)), HAVING, WINDOWS, EVERY, STREAM, LATENESS, st.booleans())
def test_other_groupings_aggregate_the_relation_of_the_answers_at_each_tick(
    every: Any, over: Any, by: Any, where: Any, having: Any, outer: Any, seldom: Any, stream: Any,
    lateness: int | None, hold: bool,
) -> None:  # fmt: skip
    latest = [
        sw.Query(sw.last("load"), window(over), "load", every=ours(every), by=BOTH),
        sw.Query(sw.count(), window(over), "readings", every=ours(every), by=BOTH),
    ]
    machines = sw.Query(sw.count(), name="machines", where=where, having=having, source=latest, by=by)
    passing = None if having is None else sw.count() > having[1]
    twice = sw.Query(sw.count() * 2, name="twice", where=where, having=passing, source=latest, by=by)
    most = sw.Query(sw.sum("machines"), window(outer), "most", every=ours(seldom), source=machines, by=())
    regrouped = sw.Query(sw.sum("readings"), window(outer), "read", every=ours(seldom), source=latest, by=by)
    events, emitted, _ = flown([machines, twice, most, regrouped], stream, lateness, hold)
    upto = oracle_ticks.end_of(events, 0) + BEYOND

    def slots(of: Any, end: int) -> Any:
        return None if of.time is None else oracle_ticks.slot(end, of.time)

    further = upto + LONGEST  # the slot that `upto` is in has been decided by then
    for end, check in ((oracle_ticks.end_of(events, *[0] * (not events)), "stored"), (further, "live")):
        theirs = [oracle.Q(agg("last", "load"), over), oracle.Q(agg("count"), over)]
        rows = apart(oracle_ticks.ticks(theirs, every, with_both(events), "both", slots(every, end)))
        relation = [dict(zip(("tick", "ts", *BOTH, "load", "readings"), row, strict=True)) for row in rows]
        counted = oracle_ticks.related(oracle.Q(agg("count"), over, LOADS[where], having), by, relation, "machines")
        last = slots(seldom, oracle_ticks.end_of(counted, end))
        of_most = oracle_ticks.ticks([oracle.Q(agg("sum", "machines"), outer)], seldom, counted, None, last)
        key, last = by[0] if by else None, slots(seldom, oracle_ticks.end_of(relation, end))
        of_read = oracle_ticks.ticks([oracle.Q(agg("sum", "readings"), outer)], seldom, relation, key, last)
        found = {"machines": [tuple(row.values()) for row in counted], "most": of_most, "read": of_read}
        found["twice"] = [(*row[:-1], 2 * row[-1]) for row in found["machines"]]
        for query in (machines, twice, most, regrouped):
            got = (
                [tuple(row.values()) for row in sw.evaluate(query, table(events)).to_pylist()]
                if check == "stored"
                else emitted(query.label)
            )
            expected = [row for row in found[query.label] if row[1] <= upto]
            assert_same(expected, [row for row in got if row[1] <= upto])


def test_keys_come_and_go_and_are_forgotten() -> None:
    rng, count = np.random.default_rng(1), 8000
    ts = np.sort(rng.integers(0, count, count))
    sites = pa.array(rng.choice(list("nsew"), count))
    events = pa.table({"ts": ts, "id": ts // 20, "site": sites, "load": rng.integers(0, 99, count)})
    inner = "SELECT id, site, LAST(load) AS load FROM cpu [RANGE 100, FREQUENCY 50 TUPLES] GROUP BY id, site"
    by, picked = "GROUP BY id, site", "SELECT * FROM cpu [FREQUENCY 20 PARTITIONED BY id]"
    texts = {
        "a": f"SELECT id, site, SUM(load) AS a FROM cpu [RANGE 50, FREQUENCY 7 TUPLES PARTITIONED BY site] {by}",
        "b": f"SELECT id, site, COUNT(*) AS b FROM cpu [RANGE 50, FREQUENCY 33 PARTITIONED BY site] {by}",
        "n": f"SELECT site, COUNT(*) AS n FROM ({inner}) WHERE load < 30 GROUP BY site",
        "p": f"SELECT id, SUM(load) AS p FROM ({picked}) [RANGE 90, FREQUENCY 5 TUPLES] GROUP BY id",
    }
    engine = sw.Engine()
    engine.register("; ".join(texts.values()))
    for i in range(0, count, 400):
        engine.append(events.slice(i, 400))
    engine.advance(2 * count)
    assert engine.stats()["groupings"]["id", "site"]["keys"] < 1000  # of 1,600
    for name, text in texts.items():
        stored = sorted(tuple(row.values()) for row in sw.evaluate(text, events).to_pylist())
        assert sorted(tuple(row.values())[1:] for row in engine.emitted(name).to_pylist()) == stored


# --- Containment -------------------------------------------------------------------------------------------------


@FEWER
@given(EVERY, st.integers(2, 4), WINDOWS, GROUPS, st.booleans(), STREAM, LATENESS, st.booleans())
def test_a_query_whose_ticks_are_among_those_of_another_reads_them(
    every: Any, factor: int, over: Any, by: Any, key: bool, stream: Any, lateness: int | None, before: bool
) -> None:
    often = oracle_ticks.Every(every.rows, every.time, every.anchor, key and bool(by))
    seldom = oracle_ticks.Every(every.rows and factor * every.rows, every.time and factor * every.time, *_rest(often))
    queries = [
        sw.Query(sw.sum("load"), window(over), name, every=sw.Every(e.rows, e.time, *_rest(e)), by=by)
        for name, e in (("view", often), ("q", seldom))
    ]
    events, emitted, engine = flown(queries[::-1] if before else queries, stream, lateness)
    is_contained = every.time is None or every.anchor == "tick"
    if events:
        assert ("contained in view" in engine.explain()) == is_contained
    upto = oracle_ticks.end_of(events, 0) + BEYOND
    last = None if seldom.time is None else oracle_ticks.slot(upto, seldom.time)
    asked = oracle.Q(agg("sum", "load"), over)
    expected = oracle_ticks.ticks([asked], seldom, events, by[0] if by else None, last)
    assert_same([row for row in expected if row[1] <= upto], [row for row in emitted("q") if row[1] <= upto])


def _rest(every: oracle_ticks.Every) -> tuple[Any, ...]:
    return every.anchor, every.per_key


def test_views_that_come_before_any_event_are_read_whatever_the_order(tmp_path: Any) -> None:
    frequencies = {"a": 40, "b": 20, "c": 60, "d": 10}
    queries = [sw.Query(sw.sum("load"), sw.Rows(3), name, every=sw.Every(n)) for name, n in frequencies.items()]
    engine, events = sw.Engine(), {"ts": range(200), "load": range(200)}
    for query in queries:
        engine.register(query)
    other = sw.Query(sw.count(), sw.Rows(3), "n", every=sw.Every(20))
    engine.register(other)
    engine.append({name: values[:90] for name, values in events.items()})
    assert engine.explain().count("contained in d") == 3
    engine.save(tmp_path / "saved")
    engine = sw.Engine.load(tmp_path / "saved")
    assert engine.explain().count("contained in d") == 3
    engine.append({name: values[90:] for name, values in events.items()})
    for query in (*queries, other):
        stored = sw.evaluate(query, events).rename_columns(["tick", "ts", "value"])
        assert engine.emitted(query.name).drop_columns("query").to_pylist() == stored.to_pylist()


def test_a_ticker_whose_answers_are_read_or_that_others_share_stays() -> None:
    def query(name: str, n: int, of: Any = None) -> sw.Query:
        return sw.Query(of or sw.sum("load"), sw.Rows(3), name, every=sw.Every(n))

    engine, read = sw.Engine(), query("read", 20)
    engine.register([read, sw.Query(sw.mean("read"), sw.Rows(2), "reader", source=read, every=sw.Every(1))])
    engine.register([query("shared", 30), query("other", 30, sw.count()), query("fine", 10)])
    assert "contained" not in engine.explain()
    engine.append({"ts": range(60), "load": range(60)})
    assert engine.emitted("reader")["value"].to_pylist() == [54.0, 84.0, 144.0]


def test_other_windows_filters_and_frequencies_are_not_contained() -> None:
    engine = sw.Engine()
    engine.register(sw.Query(sw.sum("load"), sw.Rows(3), "view", every=sw.Every(4)))
    for name, change in {"a": {"every": sw.Every(6)}, "b": {"where": "load > 1"}, "c": {"every": sw.Every(5)}}.items():
        engine.register(sw.Query(**{"aggregate": sw.sum("load"), "window": sw.Rows(3), "name": name,
                                    "every": sw.Every(8)} | change))  # fmt: skip
    engine.register(sw.Query(sw.sum("load"), sw.Rows(4), "d", every=sw.Every(8)))
    engine.append({"ts": [1], "load": [1]})
    assert "contained" not in engine.explain()


def test_a_view_that_others_read_is_not_forgotten() -> None:
    engine = sw.Engine()
    engine.register("SELECT COUNT(*) AS view FROM cpu [RANGE 10, FREQUENCY 2 TUPLES]")
    engine.register(
        "SELECT COUNT(*) AS q FROM cpu [RANGE 10, FREQUENCY 4 TUPLES]; SELECT MAX(view) AS m FROM view [ROWS 2]"
    )
    for reader in ("m", "q"):
        with pytest.raises(sw.BadQuery, match=f'"view" is read by "{reader}"'):
            engine.unregister("view")
        engine.unregister(reader)
    engine.unregister("view")
    assert engine.queries == []


# --- The paper's scenario ----------------------------------------------------------------------------------------

LATEST = "SELECT id, site, LAST(load) AS load FROM cpu [RANGE 1 HOUR, FREQUENCY 4 TUPLES] GROUP BY id, site"
MINUTES = [0, 10, 20, 30, 40, 50, 65, 70, 75, 80, 110, 119, 121]
CPU = pa.table(
    {
        "ts": pa.array([60 * m for m in MINUTES], pa.timestamp("s")),
        "id": list("abcdabcdabcda"),
        "site": ["hw", "hw", "ed", "ed"] * 3 + ["hw"],
        "load": [10, 20, 25, 90, 80, 15, 20, 95, 5, 60, 20, 10, 1],
    }
)


def test_query_1_counts_machines_by_their_latest_load_not_readings() -> None:
    text = f"SELECT site, COUNT(*) AS n FROM ({LATEST}) WHERE load < 30 GROUP BY site"
    found = sw.evaluate(text, CPU)
    # At 00:30 a, b and c are idle; at 01:10 a (80) and d (95) are not; at 01:59 a (5), c (20) and d (10) are.
    assert found.select(["tick", "site", "n"]).to_pylist() == [
        {"tick": 1, "site": "ed", "n": 1},
        {"tick": 1, "site": "hw", "n": 2},
        {"tick": 2, "site": "ed", "n": 1},
        {"tick": 2, "site": "hw", "n": 1},
        {"tick": 3, "site": "ed", "n": 2},
        {"tick": 3, "site": "hw", "n": 1},
    ]
    readings = "SELECT site, COUNT(*) AS n FROM cpu [RANGE 1 HOUR, FREQUENCY 4 TUPLES] WHERE load < 30 GROUP BY site"
    assert sw.evaluate(readings, CPU)["n"].to_pylist() != found["n"].to_pylist()
    assert sw.sql(str(sw.sql(text)[0])) == sw.sql(text)


def test_query_2_over_query_1_inline_or_by_name() -> None:
    one = f"SELECT site, COUNT(*) AS n FROM ({LATEST}) WHERE load < 30 GROUP BY site"
    two = "SELECT AVG(n) AS idle FROM {source} [RANGE 1 HOUR, FREQUENCY 1 HOUR] WHERE site = 'hw'"
    stored = sw.evaluate(two.format(source=f"({one})"), CPU)
    assert stored["idle"].to_pylist() == [2.0, 1.0]
    engine = sw.Engine()
    engine.register(LATEST)
    engine.register("SELECT site, COUNT(*) AS n FROM load WHERE load < 30 GROUP BY site")
    engine.register(two.format(source="n"))
    for i in range(CPU.num_rows):
        engine.append(CPU.slice(i, 1))
    assert (
        engine.emitted("idle").select(["tick", "ts", "value"]).to_pylist()
        == stored.rename_columns(["tick", "ts", "value"]).to_pylist()
    )
    text = engine.explain()
    assert "computed once: these are the ticks of that query" in text
    assert "the relation at each tick, by site: n (local" in text and "non-local" in text


def test_a_name_that_is_both_a_query_and_a_stream_is_refused() -> None:
    engine = sw.Engine()
    engine.register("SELECT COUNT(*) AS cpu FROM cpu [ROWS 9]")
    with pytest.raises(sw.BadSQL, match='both a query and the events that queries read are called "cpu"'):
        engine.register("SELECT MAX(cpu) FROM cpu [ROWS 9]")


# --- Results -----------------------------------------------------------------------------------------------------


@FEWER
@given(EVERY, PARTITIONS.filter(lambda by: "id" not in by), WINDOWS, st.booleans(), st.booleans(), STREAM, LATENESS)
def test_a_frequency_in_select_picks_results(
    every: Any, by: Any, over: Any, at_end: bool, chosen: bool, stream: Any, lateness: int | None
) -> None:
    """Their number is that among all that are picked, whatever their key; of slots of time, that of the slot."""
    often = f"FREQUENCY {f'{every.rows} TUPLES' if every.rows else every.time}" + (" PARTITIONED BY site" if by else "")
    clause = f"ROWS {over.n}" if isinstance(over, oracle.Rows) else f"RANGE {over.t}"
    ends = ("", f" {often}") if at_end else (f" {often}", "")
    having = " HAVING COUNT(*) <> 2" * chosen
    text = f"SELECT site, COUNT(*) AS n{ends[0]} FROM cpu [{clause}] GROUP BY site{having}{ends[1]}"
    [query] = sw.sql(text)
    assert sw.sql(str(query)) == [query]
    events, emitted, _ = flown([query], stream, lateness)
    answers = oracle.evaluate([oracle.Q(agg("count"), over)], events, None, "site")
    results = [e | {"n": answer[0]} for e, answer in zip(events, answers, strict=True)]
    results = [each for each in results if not chosen or each["n"] != 2]
    expected = [(e["ts"], e["site"], e["n"]) for e in oracle_ticks.picked(every, by, results)]
    numbers = range(1, len(expected) + 1) if every.rows else [-(-ts // every.time) for ts, _, _ in expected]
    stored = [tuple(row.values()) for row in sw.evaluate(query, table(events)).to_pylist()]
    assert sorted(row[1:] for row in stored) == sorted(row[1:] for row in emitted("n")) == sorted(expected)
    assert sorted(stored) == sorted(emitted("n"))
    if not by:
        assert stored == [(number, *each) for number, each in zip(numbers, expected, strict=True)]


@pytest.mark.parametrize("often", ["FREQUENCY 2 TUPLES", "FREQUENCY 4", "FREQUENCY 1 TUPLE"])
@pytest.mark.parametrize("grouped", ["", " GROUP BY site"])
def test_to_pick_from_the_results_of_windows_is_to_jump(often: str, grouped: str) -> None:
    """The same ticks under the same numbers: for slots of time, those of the slots."""
    events = {"ts": [1, 2, 6, 17, 17, 18], "site": list("abaabb"), "x": [1, 2, 3, 4, 5, 6]}
    by = " PARTITIONED BY site" if grouped else ""
    front = "site, " if grouped else ""
    picked = f"SELECT {front}SUM(x) AS s {often}{by} FROM t [ROWS 2]{grouped}"
    jumping = f"SELECT {front}SUM(x) AS s FROM t [ROWS 2, {often}{by}]{grouped}"
    assert sw.evaluate(picked, events) == sw.evaluate(jumping, events)
