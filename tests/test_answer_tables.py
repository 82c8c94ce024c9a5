"""Tables of answers: our own columns beside any names of the user's, and values of several queries in one column."""

import datetime as dt
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swag as sw

OURS = ["query", "tick", "value"]
EVERY = sw.Every(1)


def query(what: Any, name: str, **options: Any) -> sw.Query:
    return sw.Query(what, sw.Rows(9), name=name, **options)


def engine(*queries: sw.Query, events: Any = None, **options: Any) -> sw.Engine:
    made = sw.Engine(**options)
    made.register(queries)
    if events is not None:
        made.append(events)
    return made


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OURS)
def test_a_key_may_have_the_name_of_a_column_of_ours(name: str) -> None:
    events = {"ts": [1, 2], name: ["a", "b"], "x": [5, 6]}
    made = engine(
        query(sw.sum("x"), "n"), query(sw.sum("x"), "h", having=(">", 0)), query(sw.sum("x"), "e", every=EVERY),
        events=events, key=name,
    )  # fmt: skip
    ours = {each: f"{each}_" if each == name else each for each in OURS}
    assert made.lookup("n").to_pylist() == [{name: "a", ours["value"]: 5}, {name: "b", ours["value"]: 6}]
    assert made.filters().to_pylist() == [
        {ours["query"]: "h", name: "a", ours["value"]: 5},
        {ours["query"]: "h", name: "b", ours["value"]: 6},
    ]
    ticks = [(1, 1, "a", 5), (2, 2, "a", 5), (2, 2, "b", 6)]
    assert made.emitted().to_pylist() == [
        {ours["query"]: "e", ours["tick"]: tick, "ts": ts, name: key, ours["value"]: value}
        for tick, ts, key, value in ticks
    ]
    stored = sw.evaluate([query(sw.sum("x"), "e", every=EVERY)], events, key=name)
    assert stored.to_pylist() == [{ours["tick"]: t, "ts": ts, name: k, "e": v} for t, ts, k, v in ticks]


@pytest.mark.parametrize("name", OURS)
def test_so_may_ts(name: str) -> None:
    made = engine(query(sw.sum("x"), "e", every=EVERY), events={name: [7], "x": [5]}, ts=name)
    ours = {each: f"{each}_" if each == name else each for each in OURS}
    assert made.emitted().to_pylist() == [{ours["query"]: "e", ours["tick"]: 1, name: 7, ours["value"]: 5}]


def test_names_of_ours_give_way_to_both() -> None:
    made = engine(query(sw.count(), "e", every=EVERY), events={"tick": [7], "tick_": ["a"]}, ts="tick", key="tick_")
    assert made.emitted().column_names == ["query", "tick__", "tick", "tick_", "value"]


@pytest.mark.parametrize("per_key", [True, False])
def test_ticks_as_events_of_another_query_where_the_key_is_called_tick(per_key: bool) -> None:
    inner = sw.Query(sw.sum("x"), sw.Rows(1), name="n", every=sw.Every(1, per_key=per_key))
    outer = sw.Query(sw.sum("n"), sw.Rows(9), name="q", source=inner, every=sw.Every(2))
    events = {"ts": [1, 2, 3], "tick": ["b", "a", "b"], "x": [1, 2, 4]}
    made = engine(outer, events=events, key="tick")
    made.advance(9)
    found = made.emitted()
    assert found.column_names == ["query", "tick_", "ts", "tick", "value"]
    stored = sw.evaluate([outer], events, key="tick")
    assert found.drop_columns(["query"]).rename_columns(stored.column_names).to_pylist() == stored.to_pylist()


NAMED = [(each,) for each in ("k", "ts")] + [("j", "by j"), ("by j", "j")]


@pytest.mark.parametrize("names", NAMED)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_query_named_like_a_key_or_ts_is_refused_when_it_is_registered(names: tuple[str, ...], at_once: bool) -> None:
    events = {"ts": [1], "k": ["a"], "j": [5]}
    queries = [query(sw.count(), name, by="j" if name == "by j" else None) for name in names]
    made = engine(query(sw.count(), "n"), events=events, key="k")
    bad = next(name for name in names if name != "by j")
    refused = pytest.raises(sw.BadQuery, match=f'query "{bad}" has the name of a column that comes before the answers')
    with refused:
        sw.evaluate(queries, events, key="k")
    if not at_once and len(queries) > 1:
        made.register(queries.pop(0))
    with refused:
        made.register(queries)
    assert made.lookup_all().column_names[:2] == ["k", "n"]


def test_events_with_a_column_named_like_the_key_of_several_are_refused_whole() -> None:
    plain = {"ts": [1], "x": [1], "y": [2]}
    named = {**plain, "(x, y)": [7]}
    asked = query(sw.count("(x, y)"), "n")
    for lateness in (None, 1):
        made = engine(asked, key=("x", "y"), lateness=lateness)
        for events in (named, pa.table(named)):
            with pytest.raises(sw.BadEvents, match="as the key of several is called"):
                made.append(events)
        assert made.lookup_all().num_rows == made.stats()["events"] == 0
    made = engine(query(sw.count(), "m"), events=plain, key=("x", "y"))
    made.register(asked)
    for events in (named, pa.table(named)):
        with pytest.raises(sw.BadEvents, match="as the key of several is called"):
            made.append(events)
    assert made.stats()["events"] == 1
    with pytest.raises(sw.BadEvents, match="as the key of several is called"):
        sw.evaluate(asked, named, key=("x", "y"))


# -- types ------------------------------------------------------------------------------------------------------------

EVENTS = pa.table({
    "ts": [1], "i": [2**53 + 1], "f": [0.5], "s": ["x"], "b": [True], "d": [dt.date(2020, 1, 1)],
    "t": pa.array([5], pa.timestamp("ms", "UTC")), "n": pa.array([7], pa.int8()), "g": pa.array([0.5], pa.float32()),
})  # fmt: skip
TYPES = {"i": pa.int64(), "f": pa.float64(), "s": pa.string(), "b": pa.bool_(), "d": pa.date32()}
TYPES |= {"t": pa.timestamp("ms", "UTC"), "n": pa.int8(), "g": pa.float32()}


COMMON = {**TYPES, "in": pa.int64(), "fg": pa.float64(), "nf": pa.float64(), "ng": pa.float64()}


@pytest.mark.parametrize(("columns", "kind"), COMMON.items(), ids=COMMON)
@pytest.mark.parametrize("key", [None, "k"])
def test_values_have_the_common_type_of_the_queries(columns: str, kind: pa.DataType, key: str | None) -> None:
    events = EVENTS.append_column("k", pa.array(["a"]))
    passing = {name: sw.last(name).is_null() | ~sw.last(name).is_null() for name in columns}
    filters = [query(sw.last(name), name, having=passing[name]) for name in columns]
    ticks = [query(sw.last(name), f"{name} ticks", every=EVERY) for name in columns]
    made = engine(*filters, *ticks, events=events, key=key)
    for table in (made.filters(), made.emitted()):
        assert table.schema.field("value").type == kind
        assert table["value"].to_pylist() == [EVENTS[name][0].as_py() for name in columns]


@pytest.mark.parametrize("columns", ["if", "sf", "bi", "bf", "di", "dt", "ds"])
@pytest.mark.parametrize("key", [None, "k"])
def test_other_mixtures_are_asked_for_by_name_and_nothing_is_lost(columns: str, key: str | None) -> None:
    events = EVENTS.append_column("k", pa.array(["a"]))
    queries = [query(sw.last(name), name, having=~sw.last(name).is_null()) for name in columns]
    made = engine(
        *queries, *(query(sw.last(name), f"{name}e", every=EVERY) for name in columns), events=events, key=key
    )
    for call, suffix in ((made.filters, ""), (made.emitted, "e")):
        for _ in range(2):
            with pytest.raises(sw.BadType, match=rf'engine.{call.__name__}\("{columns[0]}{suffix}"\)'):
                call()
        for name in columns:
            found = call(f"{name}{suffix}")
            assert found["value"].to_pylist() == EVENTS[name].to_pylist()
            assert found.schema.field("value").type == TYPES[name]
    assert made.stats()["undelivered"] == 0
    assert made.emitted("fe" if "f" in columns else f"{columns[0]}e").num_rows == 0


EDGES = [0, 2**53, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1]


@given(kind=st.sampled_from([pa.int64(), pa.uint64()]), data=st.data())
def test_integers_beside_floats_are_floats_as_long_as_each_is_exact(kind: pa.DataType, data: Any) -> None:
    low, high = (-(2**63), 2**63 - 1) if kind == pa.int64() else (0, 2**64 - 1)
    edges = st.sampled_from([each for each in EDGES if each <= high])
    ints = data.draw(st.lists(st.integers(low, high) | edges, min_size=1, max_size=5))
    queries = [sw.Query(sw.last(name), sw.Rows(1), name=name, every=EVERY) for name in ("i", "f")]
    events = pa.table({"ts": range(len(ints)), "i": pa.array(ints, kind), "f": [0.5] * len(ints)})
    made = engine(*queries, events=events)
    if all(Fraction(float(i)) == i for i in ints):
        assert [row["value"] for row in made.emitted().to_pylist() if row["query"] == "i"] == ints
        return
    with pytest.raises(sw.BadType, match=r'can not hold. Hint: ask for one query at a time: engine.emitted\("i"\)'):
        made.emitted()
    assert made.emitted("i")["value"].to_pylist() == ints
    assert made.emitted()["value"].to_pylist() == [0.5] * len(ints)


def test_a_query_that_is_gone_leaves_its_ticks_and_no_type() -> None:
    made = engine(query(sw.last("s"), "s", every=EVERY), query(sw.last("f"), "f", every=EVERY), events=EVENTS)
    made.unregister("s")
    assert made.emitted("s")["value"].to_pylist() == ["x"]
    assert made.emitted()["value"].to_pylist() == [0.5]


def test_only_queries_with_ticks_or_conditions_can_be_asked_for_by_name() -> None:
    made = engine(query(sw.count(), "n"), query(sw.count(), "h", having=(">", 0)), query(sw.count(), "e", every=EVERY))
    for call, name, error in [(made.filters, "n", "is no filter"), (made.filters, "e", "is no filter"),
                              (made.emitted, "n", "no ticks"), (made.emitted, "h", "no ticks")]:  # fmt: skip
        with pytest.raises(sw.BadQuery, match=error):
            call(name)
    for call in (made.filters, made.emitted):
        with pytest.raises(sw.UnknownQuery):
            call("no such query")


def test_answers_over_answers_by_name() -> None:
    inner = query(sw.sum("i"), "n", every=EVERY)
    outer = [
        query(sw.max("n"), "m", source=inner, having=(">", 0)),
        query(sw.last("s"), "s", having=~sw.last("s").is_null()),
    ]
    made = engine(*outer, events=EVENTS)
    made.advance(5)
    assert made.filters("m")["value"].to_pylist() == [2**53 + 1]
    with pytest.raises(sw.BadType, match="one column can not hold the answers of all queries"):
        made.filters()
