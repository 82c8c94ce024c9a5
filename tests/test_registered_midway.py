"""A query that comes while events flow starts from kept rows that have its columns: expressions, filters, groupings.

What an engine says is complete is what the oracle says of all events; and what kept rows tell is complete.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swag as sw
from tests import oracle

FEWER = settings(max_examples=max(1, settings.default.max_examples // 3))  # each example is an engine or two
TYPES = {"ts": pa.int64(), "k": pa.string(), "g": pa.int32(), "x": pa.int64(), "y": pa.float64(), "s": pa.string()}
SCHEMA = pa.schema(TYPES.items())
GROUPINGS: dict[tuple[str, ...], str | None] = {("k",): "k", ("g",): "g", (): None, ("g", "k"): "g k"}
WHAT = {
    "count()": (sw.count(), oracle.agg("count")),
    "sum(x)": (sw.sum("x"), oracle.agg("sum", "x")),
    "max(y)": (sw.max("y"), oracle.agg("max", "y")),
    "last(s)": (sw.last("s"), oracle.agg("last", "s")),
    "count_distinct(g)": (sw.count_distinct("g"), oracle.agg("count_distinct", "g")),
    "sum(x * 3 - g)": (sw.sum("x * 3 - g"), oracle.agg("sum", "3x - g")),
    "max(x + y)": (sw.max("x + y"), oracle.agg("max", "x + y")),
    "first(upper(s))": (sw.first("upper(s)"), oracle.agg("first", "upper")),
    "count(case)": (sw.count("CASE WHEN x > 1 THEN s END"), oracle.agg("count", "some")),
    "wmean(y, x)": (sw.wmean("y", "x"), oracle.agg("wmean", "y", "x")),
    "median(ts - x)": (sw.median("ts - x"), oracle.agg("median", "ts - x")),
    "age()": (sw.age(), oracle.agg("age")),
}
WHERE: dict[str | None, Any] = {
    None: None,
    "x > 1": lambda e: e["x"] is not None and e["x"] > 1,
    "k = 'a'": lambda e: e["k"] == "a",
    "s <> 'u' OR x < 0": lambda e: (e["s"] is not None and e["s"] != "u") or (e["x"] is not None and e["x"] < 0),
    "g = 1 AND ts % 2 = 0": lambda e: e["g"] == 1 and e["ts"] % 2 == 0,
}
WINDOWS = [
    (sw.Range(7), oracle.Range(7)), (sw.Range(40), oracle.Range(40)), (sw.Rows(3), oracle.Rows(3)),
    (sw.Range(30, until=4), oracle.Range(30, 4)), (sw.Rows(6, until=2), oracle.Rows(6, 2)),
]  # fmt: skip
ROWS = st.fixed_dictionaries(
    {
        "dt": st.integers(0, 4), "k": st.sampled_from("ab"), "g": st.integers(0, 2),
        "x": st.sampled_from([None, -3, 0, 1, 2, 7]), "y": st.sampled_from([None, 0.5, -2.0, 8.25, 3.0]),
        "s": st.sampled_from([None, "u", "v"]),
    }
)  # fmt: skip
ASKED = st.tuples(*map(st.sampled_from, (list(WHAT), WINDOWS, list(WHERE), list(GROUPINGS))))


def both(*values: Any) -> bool:
    return all(value is not None for value in values)


def events_of(drawn: list[dict[str, Any]], now: int = 100) -> list[dict[str, Any]]:
    """With what is computed of their columns."""
    found = []
    for row in drawn:
        now, x, y, s = now + row["dt"], row["x"], row["y"], row["s"]
        found.append({"ts": now} | {name: row[name] for name in "kgxys"} | {
            "g k": (row["g"], row["k"]), "3x - g": x * 3 - row["g"] if both(x) else None,
            "x + y": x + y if both(x, y) else None, "upper": s.upper() if both(s) else None,
            "some": s if both(x) and x > 1 else None, "ts - x": now - x if both(x) else None,
        })  # fmt: skip
    return found


def table(events: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(events, SCHEMA)


def queries_of(drawn: list[Any], letter: str) -> list[tuple[sw.Query, oracle.Q, tuple[str, ...]]]:
    found = []
    for i, (what, (ours, theirs), where, by) in enumerate(drawn):
        aggregate, truth = WHAT[what]
        query = sw.Query(aggregate, ours, name=f"{letter}{i}", where=where, by=by)
        found.append((query, oracle.Q(truth, theirs, where=WHERE[where]), by))
    return found


def check(engine: sw.Engine, query: sw.Query, truth: oracle.Q, by: tuple[str, ...], seen: list[Any], now: int) -> None:
    """Its answers are those of all events, if it says so."""
    since = engine.stats()["complete_since"][query.name]
    last = max(e["ts"] for e in seen)
    if since is not None and since > (last if isinstance(truth.window, oracle.Rows) else now):
        return
    name, found = GROUPINGS[by], engine.lookup(query.name)
    wanted = {}
    for key in dict.fromkeys(() if name is None else e[name] for e in seen):
        window = oracle.window_at_time(truth, oracle.substream(seen, name, key), now)
        if by == () or oracle.in_relation(truth, window):
            wanted[key if len(by) != 1 else (key,)] = oracle.answer(truth, window)
    ours = {(): found} if by == () else {tuple(r[c] for c in by): r["value"] for r in found.to_pylist()}
    assert ours.keys() == wanted.keys(), (query, since, engine.explain())
    for key, value in ours.items():
        assert oracle.same(wanted[key], value, 1e-9), (query, key, value, wanted[key], since, engine.explain())


@FEWER
@given(
    before=st.lists(ROWS, min_size=1, max_size=14), after=st.lists(ROWS, max_size=6), first=st.lists(ASKED, max_size=5),
    midway=st.lists(ASKED, min_size=1, max_size=5), later=st.lists(ASKED, max_size=3), data=st.data(),
)  # fmt: skip
def test_what_is_complete_is_what_all_events_say(before, after, first, midway, later, data, tmp_path_factory):
    events = events_of(before + after)
    asked = [queries_of(each, letter) for each, letter in zip((first, midway, later), "fml", strict=True)]
    options = data.draw(st.sampled_from([{}, {}, {"lateness": 3}, {"lateness": 3, "hold": False}]))
    engine = sw.Engine(key="k", **options)
    engine.register([query for query, _, _ in asked[0]])
    cuts = sorted(data.draw(st.integers(0, len(events))) for _ in range(3))
    for which, (start, end) in enumerate(zip([0, *cuts], [*cuts, len(events)], strict=True)):
        engine.append(table(events[start:end]))
        if which in (0, 1):
            engine.register([query for query, _, _ in asked[which + 1]])
        if which == 2 and data.draw(st.booleans()):
            path = Path(tmp_path_factory.mktemp("midway")) / "engine.swag"
            engine.save(path)
            engine = sw.Engine.load(path)
        if start < end and not options:
            for query, truth, by in (each for some in asked[: which + 2] for each in some):
                check(engine, query, truth, by, events[:end], events[end - 1]["ts"])
    if options:
        engine.advance(events[-1]["ts"] + 3)
        now = events[-1]["ts"] + 3 * ("hold" in options)
        for query, truth, by in (each for some in asked for each in some):
            check(engine, query, truth, by, events, now)


KEEPING = [
    sw.Query(sw.sum("x"), sw.Range(1000)),
    sw.Query(sw.max("y"), sw.Range(1000)),
    sw.Query(sw.last("s"), sw.Rows(99)),
]
SIX = {
    "ts": [1, 2, 3, 4, 5, 6], "k": list("abaabb"), "x": [1, None, 3, 4, 5, 6], "y": [1.0, 2.0, 3.0, None, 5.0, 6.0],
    "s": list("uvuvuv"),
}  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"lateness": 100}, {"lateness": 100, "hold": False}])
@pytest.mark.parametrize(
    ("query", "value"),
    [
        (sw.Query(sw.sum("x * y"), sw.Range(99), "q"), 1 + 9 + 25 + 36),
        (sw.Query(sw.sum("x * y"), sw.Range(99), "q", where="s = 'v'"), 36),
        (sw.Query(sw.count(), sw.Rows(4), "q", where="s = 'v' AND k = 'b'"), 1),
        (sw.Query(sw.count("x"), sw.Rows(5), "q", where="y < 6"), 2),
        (sw.Query(sw.wmean("y", "x"), sw.Range(99), "q"), (1 + 9 + 25 + 36) / 15),
        (sw.Query(sw.median("ts + x"), sw.Range(99), "q"), 8.0),
        (sw.Query(sw.decayed_sum("x", half_life=1), sw.Range(3), "q", where="ts > 4"), 8.5),
        (sw.Query(sw.max("length(s || k)"), sw.Range(99), "q"), 2),
    ],
)
def test_an_expression_or_filter_over_kept_columns_is_complete_at_once(query, value, options):
    engine = sw.Engine(**options)
    engine.register(KEEPING + [sw.Query(sw.last("k"), sw.Rows(99))])
    engine.append(SIX)
    engine.register(query)
    if "hold" not in options and options:
        engine.advance(106)
    assert engine.stats()["complete_since"]["q"] is None
    assert engine.lookup("q") == pytest.approx(value)


def test_one_that_reads_a_column_which_nobody_kept_begins_with_the_next_event():
    engine = sw.Engine()
    engine.register([sw.Query(sw.sum("x"), sw.Range(100)), sw.Query(sw.max("y"), sw.Range(100), where="s = 'u'")])
    engine.append(SIX)
    engine.register(sw.Query(sw.sum("x + y"), sw.Range(100), "no"))
    engine.register(sw.Query(sw.max("x + y"), sw.Range(100), "yes", where="s = 'u'"))  # of those rows y was kept
    since = engine.stats()["complete_since"]
    assert (since["no"], since["yes"]) == (106, None)
    assert (engine.lookup("no"), engine.lookup("yes")) == (None, 10.0)


def test_what_fails_of_a_kept_row_begins_with_the_next_event_and_nothing_is_lost():
    engine = sw.Engine()
    engine.register(sw.Query(sw.sum("x"), sw.Range(100), "s"))
    engine.append({"ts": [1, 2], "x": [0, 1]})
    engine.register(sw.Query(sw.sum("7 % x"), sw.Range(100), "q"))
    engine.append({"ts": [3], "x": [4]})
    assert (engine.lookup("q"), engine.lookup("s"), engine.stats()["complete_since"]["q"]) == (3, 5, 102)


def test_a_column_of_exactly_that_name_is_meant_midway_as_well():
    engine = sw.Engine()
    engine.register([sw.Query(sw.sum("a"), sw.Range(100)), sw.Query(sw.sum("b"), sw.Range(100))])
    engine.append({"ts": [1], "a": [5], "b": [3], "a-b": [100]})
    engine.register(sw.Query(sw.sum("a-b"), sw.Range(100), "q"))
    engine.append({"ts": [2], "a": [5], "b": [3], "a-b": [100]})
    assert (engine.lookup("q"), engine.stats()["complete_since"]["q"]) == (100, 101)


def test_a_grouping_that_comes_later_starts_from_the_rows_of_another():
    engine = sw.Engine(key="k")
    engine.register([sw.Query(sw.sum("x"), sw.Range(100)), sw.Query(sw.last("s"), sw.Range(100))])
    engine.append(SIX)
    engine.register(sw.Query(sw.sum("x + 1"), sw.Range(100), "by s", by="s"))
    engine.register(sw.Query(sw.count(), sw.Rows(4), "all", by=(), where="x > 3"))
    engine.register(sw.Query(sw.last("x"), sw.Range(3), "both", by=("s", "k")))
    since = engine.stats()["complete_since"]
    assert (since["by s"], since["all"], since["both"]) == (None, None, None)
    assert engine.lookup("by s").to_pylist() == [{"s": "u", "value": 12}, {"s": "v", "value": 12}]
    assert engine.lookup("all") == 3
    assert [engine.lookup("both", key=key) for key in (("v", "a"), ("u", "a"))] == [4, None]
    engine.append({"ts": [7], "k": ["c"], "x": [9], "y": [1.0], "s": ["v"]})
    assert (engine.lookup("by s", key="v"), engine.lookup("all")) == (22, 4)
    engine.register(sw.Query(sw.max("y"), sw.Range(9), "no", by=()))
    assert engine.stats()["complete_since"]["no"] == 7 + 9


def test_events_of_one_time_whose_order_is_not_known_do_not_count_for_another_grouping():
    engine = sw.Engine(key="k")
    engine.register(sw.Query(sw.sum("x"), sw.Range(100)))
    engine.append({"ts": [1, 2, 2, 3], "k": ["a", "b", "a", "b"], "x": [1, 2, 3, 4]})
    engine.register(
        [sw.Query(sw.last("x"), sw.Rows(2), "last", by=()), sw.Query(sw.sum("x"), sw.Range(9), "sum", by=())]
    )
    assert (engine.lookup("sum"), engine.stats()["complete_since"]["sum"]) == (4, 2 + 9)


def test_a_grouping_that_nobody_read_for_a_while_has_missed_events():
    engine = sw.Engine(key="k")
    engine.register([sw.Query(sw.sum("x"), sw.Range(100), "own"), sw.Query(sw.sum("y"), sw.Range(100), "all", by=())])
    engine.append({"ts": [1], "k": ["a"], "x": [1], "y": [1]})
    engine.unregister("own")
    engine.append({"ts": [2], "k": ["a"], "x": [1], "y": [1]})
    engine.register(sw.Query(sw.sum("x"), sw.Range(100), "again"))
    engine.append({"ts": [3], "k": ["a"], "x": [1], "y": [1]})
    assert (engine.lookup("again", key="a"), engine.stats()["complete_since"]["again"]) == (1, 102)
