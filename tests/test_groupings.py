"""Several groupings of one stream in an engine, and all features of some keys, against the oracle."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swag as sw
from tests import oracle
from tests.examples import share

GROUPINGS: dict[tuple[str, ...], str | None] = {  # and what the column of the key is called in the oracle's events
    ("card",): "card",
    ("shop",): "shop",
    ("card", "country"): "card country",
    ("shop", "card", "country"): "shop card country",
    (): None,
}
WHAT = {
    "count": (sw.count(), oracle.agg("count")),
    "sum": (sw.sum("x"), oracle.agg("sum", "x")),
    "mean": (sw.mean("x"), oracle.agg("mean", "x")),
    "max": (sw.max("x"), oracle.agg("max", "x")),
    "last": (sw.last("x"), oracle.agg("last", "x")),
    "var": (sw.var("x"), oracle.agg("var", "x")),
    "median": (sw.median("x"), oracle.agg("median", "x")),
}
WINDOWS = [
    (sw.Range(7), oracle.Range(7)), (sw.Range(20), oracle.Range(20)), (sw.Rows(3), oracle.Rows(3)),
    (sw.Range(30, until=4), oracle.Range(30, 4)), (sw.Rows(5, until=2), oracle.Rows(5, 2)),
]  # fmt: skip

rows = st.fixed_dictionaries(
    {
        "dt": st.integers(0, 6),
        "card": st.sampled_from("ab"),
        "shop": st.integers(0, 2),
        "country": st.sampled_from([0.0, -0.0, 1.5]),
        "x": st.none() | st.integers(-5, 9),
    }
)
batches = st.lists(st.lists(rows, max_size=6), min_size=1, max_size=6)
asked = st.lists(
    st.tuples(st.sampled_from(list(GROUPINGS)), st.sampled_from(list(WHAT)), st.sampled_from(WINDOWS), st.booleans()),
    min_size=1, max_size=8,
)  # fmt: skip


def queries_of(drawn: list[Any]) -> list[tuple[sw.Query, oracle.Q, tuple[str, ...]]]:
    found = []
    for i, (by, what, (ours, theirs), some) in enumerate(drawn):
        aggregate, truth = WHAT[what]
        where = (lambda e: e["x"] is not None and e["x"] > 1) if some else None
        query = sw.Query(aggregate, ours, name=f"q{i}", where="x > 1" if some else None, by=by)
        found.append((query, oracle.Q(truth, theirs, where=where), by))
    return found


def table(events: list[dict[str, Any]]) -> pa.Table:
    schema = pa.schema([("ts", pa.int64()), ("card", pa.string()), ("shop", pa.int32()), ("country", pa.float64()),
                        ("x", pa.int64())])  # fmt: skip
    return pa.Table.from_pylist(events, schema)


def timed(drawn: list[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    now, found = 100, []
    for batch in drawn:
        found.append([])
        for row in batch:
            now += row["dt"]
            event = {"ts": now} | {name: row[name] for name in ("card", "shop", "country", "x")}
            for by, name in GROUPINGS.items():
                if len(by) > 1:
                    event[name] = tuple(event[each] for each in by)
            found[-1].append(event)
    return found


def expected(query: oracle.Q, by: tuple[str, ...], events: list[dict[str, Any]], now: int) -> dict[Any, Any]:
    """Answers by key, of those that are in the relation."""
    name = GROUPINGS[by]
    keys = dict.fromkeys(() if name is None else e[name] for e in events)
    found = {}
    for key in keys:
        window = oracle.window_at_time(query, oracle.substream(events, name, key), now)
        if oracle.in_relation(query, window):
            found[key] = oracle.answer(query, window)
    return found


def same(ours: Any, theirs: Any) -> bool:
    return ours == theirs or (ours is not None and theirs is not None and ours == pytest.approx(theirs))


@settings(max_examples=share(60))
@given(drawn=batches, of=asked, late=st.lists(st.booleans(), min_size=8, max_size=8), saved=st.booleans())
def test_each_query_is_answered_by_its_own_grouping(drawn, of, late, saved, tmp_path_factory):
    queries, engine, seen = queries_of(of), sw.Engine(key="card"), []
    engine.register([query for (query, _, _), waits in zip(queries, late, strict=False) if not waits])
    assert engine.register([]) == []
    midway = [query for (query, _, _), waits in zip(queries, late, strict=False) if waits]
    whole = {query.name for (query, _, _), waits in zip(queries, late, strict=False) if not waits}
    for i, batch in enumerate(timed(drawn)):
        engine.append(table(batch))
        seen += batch
        if i == 0 and midway:
            engine.register(midway)
        if saved and i == 1:
            path = Path(tmp_path_factory.mktemp("grouped")) / "engine.swag"
            engine.save(path)
            engine = sw.Engine.load(path)
        if not seen:
            continue
        for query, truth, by in queries:
            if query.name in whole:
                check(engine, query, expected(truth, by, seen, seen[-1]["ts"]), by)


def check(engine: sw.Engine, query: sw.Query, wanted: dict[Any, Any], by: tuple[str, ...]) -> None:
    found = engine.lookup(query.name)
    if not by:
        theirs = wanted.get((), 0 if query.aggregate.kind == "count" else None)
        assert same(found, theirs)
        return
    assert found.column_names == [*by, "value"]
    ours = {tuple(row[name] for name in by): row["value"] for row in found.to_pylist()}
    theirs = {key if len(by) > 1 else (key,): value for key, value in wanted.items()}
    assert ours.keys() == theirs.keys()
    for key, value in ours.items():
        assert same(value, theirs[key])
        assert same(engine.lookup(query.name, key=key if len(by) > 1 else key[0]), theirs[key])


entities = st.lists(
    st.fixed_dictionaries(
        {
            "card": st.sampled_from(["a", "b", "?", None]),
            "shop": st.integers(0, 3),
            "country": st.sampled_from([0.0, 9.0]),
        }
    ),
    max_size=5,
)  # fmt: skip


@settings(max_examples=share(80))
@given(drawn=batches, of=asked, who=entities, back=st.none() | st.lists(st.integers(0, 12), min_size=5, max_size=5))
def test_features_are_what_lookups_of_each_key_give(drawn, of, who, back):
    queries, engine = queries_of(of), sw.Engine(key="card")
    engine.register([query for query, _, _ in queries])
    seen = []
    for batch in timed(drawn):
        engine.append(table(batch))
        seen += batch
    now = seen[-1]["ts"] if seen else 100
    asked_for = pa.Table.from_pylist(
        [each | {"when": now - (0 if back is None else back[i])} for i, each in enumerate(who)],
        pa.schema([("card", pa.string()), ("shop", pa.int32()), ("country", pa.float64()), ("when", pa.int64())]),
    )
    try:
        found = engine.features(asked_for, at=None if back is None else sw.col("when"))
    except sw.TooFarBack:
        assert back is not None
        return
    assert found.column_names == [*asked_for.column_names, *(query.name for query, _, _ in queries)]
    for row in found.to_pylist():
        for query, truth, by in queries:
            key = tuple(row[name] for name in by)
            own = oracle.substream(seen, GROUPINGS[by], key if len(by) > 1 else (key or [None])[0])
            window = oracle.window_at_time(truth, [] if None in key else own, row["when"])
            assert same(row[query.name], oracle.answer(truth, window)), (query, row)


def test_one_entity_and_many_are_answered_alike():
    rng = np.random.default_rng(5)
    engine = sw.Engine(key="card")
    kinds = (sw.count(), sw.sum("x"), sw.mean("x"), sw.max("x"), sw.std("x"), sw.first("t"))
    engine.register([sw.Query(what, sw.Range(50 * i), name=f"{what.kind}_{i}") for i in (1, 2, 3) for what in kinds])
    engine.append({"ts": np.arange(500), "card": rng.integers(0, 40, 500), "x": rng.random(500),
                   "t": rng.choice(["u", "v"], 500)})  # fmt: skip
    many = engine.features({"card": np.arange(100)})
    for i in (0, 3, 39, 40, 99):
        one = engine.features({"card": [i]})
        one.validate(full=True)
        assert one.schema == many.schema
        assert one.to_pylist() == many.slice(i, 1).to_pylist()
    assert many.num_rows == 100 and engine.features({"card": pa.array([], pa.int64())}).num_rows == 0


def test_the_columns_of_entities_come_back_as_they_were_whatever_their_types():
    engine = sw.Engine(key="card")
    engine.register([sw.Query(sw.sum("x"), sw.Range(9), name="s"), sw.Query(sw.count(), sw.Range(9), name="n")])
    engine.append({"ts": [1, 2], "card": [1, 2], "x": [0.5, 1.5]})
    cards = pa.array([2, 7, 1])
    others = [
        pa.array([0.25, -1.0, 1e300]),
        pa.array([None, 3, 4]),
        pa.array(["a", None, "c"]),
        pa.array([1, 2, 3], pa.timestamp("us", "UTC")),
        pa.chunked_array([[1, 2], [3]]),
        pa.array([9, 1, 2, 3])[1:],
    ]
    for other in others:
        found = engine.features({"card": cards, "with": other})
        assert found.column_names == ["card", "with", "s", "n"] and found.schema.field("with").type == other.type
        assert found["card"].to_pylist() == [2, 7, 1] and found["with"].to_pylist() == other.to_pylist()
        assert found["s"].to_pylist() == [1.5, None, 0.5] and found["n"].to_pylist() == [1, 0, 1]
        found.validate(full=True)


def test_features_take_keys_of_other_types_and_nothing_that_is_none():
    engine = sw.Engine(key="card")
    engine.register(sw.Query(sw.count(), sw.Rows(3), name="n"))
    assert engine.features({"card": [1]}).to_pylist() == [{"card": 1, "n": 0}]  # before the first event
    engine.append({"ts": [1, 2], "card": pa.array([1, 2], pa.int8())})
    assert engine.features({"card": [1, 300, None]})["n"].to_pylist() == [1, 0, 0]
    assert engine.features({"card": ["1"]})["n"].to_pylist() == [0]
    with pytest.raises(sw.UnknownColumn, match=r'query "n" is by "card", but the entities have: kard'):
        engine.features({"kard": [1]}, queries=["n"])
    with pytest.raises(sw.UnknownQuery, match='no query is named "m"'):
        engine.features({"card": [1]}, queries=["m"])
    with pytest.raises(sw.BadQuery, match="names one twice"):
        engine.features({"card": [1]}, queries=["n", "n"])
    with pytest.raises(sw.BadQuery, match="has the name of a column of the entities"):
        engine.features({"card": [1], "n": [1]})
    with pytest.raises(sw.UnknownColumn, match='at is "when"'):
        engine.features({"card": [1]}, at=sw.col("when"))
    with pytest.raises(sw.BadEvents, match="2 times for 1 entities"):
        engine.features({"card": [1]}, at=[1, 2])
    engine.register(sw.Query(sw.count(), sw.Rows(3), name="t", every=sw.Every(2)))
    with pytest.raises(sw.BadQuery, match="answers at its ticks"):
        engine.features({"card": [1]}, queries=["t"])
    assert engine.features({"shop": [1]}).column_names == ["shop"]  # nothing is by shop


def test_features_of_what_can_be_read_once_only_are_those_of_a_table():
    queries = [sw.Query(sw.count(), sw.Range(5), name="n"), sw.Query(sw.sum("x"), sw.Range(5), name="s")]
    table = pa.table({"card": [1, 2, 1]})
    made = [
        lambda: pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
        lambda: {"card": iter([1, 2, 1])},
    ]
    for entities in made:
        engine = sw.Engine(key="card")
        engine.register(queries)
        engine.append({"ts": [1, 2], "card": [1, 1], "x": [3, 4]})
        wanted = [{"card": 1, "s": 7}, {"card": 2, "s": None}, {"card": 1, "s": 7}]
        for _ in range(2):  # the first time, what these features need is worked out
            assert engine.features(entities(), queries=iter(["s"])).to_pylist() == wanted


@pytest.mark.parametrize("events", [[], [{"ts": 5, "card": 1}]])
def test_what_is_asked_of_features_is_checked_before_the_first_event_too(events):
    engine = sw.Engine(key="card")
    engine.register(sw.Query(sw.count(), sw.Rows(3), name="n"))
    engine.append(events or {"ts": [], "card": []})
    for at, message in ((sw.col("when"), 'at is "when"'), ([1, 2], "2 times for 1 entities"), ("then", "at='then'"),
                        (1.5, r"at=1\.5"), ([1.5], '"at" is double'), (sw.col("note"), '"at" is string')):  # fmt: skip
        with pytest.raises(sw.SwagError, match=message):
            engine.features({"card": [1], "note": ["x"]}, at=at)
    assert engine.features({"card": [1]}, at=[7])["n"].to_pylist() == [len(events)]
    with pytest.raises(sw.UnknownQuery, match="no query is named"):
        engine.features({"card": [1]}, queries=[["n"]])
    for names in (["card", "card", "a"], ["card", "a", "a"]):
        with pytest.raises(sw.BadEvents, match="two columns of the entities have one name"):
            engine.features(pa.table([[1], [1], ["x"]], names))


def test_a_filter_is_a_feature_only_if_named_and_null_where_it_does_not_hold():
    engine = sw.Engine(key="card")
    engine.register(sw.Query(sw.sum("x"), sw.Rows(9), name="hot", having=(">", 3)))
    engine.append({"ts": [1, 2], "card": ["a", "b"], "x": [2, 5]})
    assert engine.features({"card": ["a", "b", "c"]}).column_names == ["card"]
    assert engine.features({"card": ["a", "b", "c"]}, queries=["hot"])["hot"].to_pylist() == [None, 5, None]


def test_what_several_groupings_give_together_has_all_key_columns():
    engine = sw.Engine(key="card")
    engine.register([
        sw.Query(sw.count(), sw.Rows(2), name="ticks", by=("card", "shop"), every=sw.Every(2)),
        sw.Query(sw.count(), sw.Rows(2), name="all", by=(), every=sw.Every(3)),
        sw.Query(sw.count(), sw.Rows(9), name="often", having=(">", 1)),
        sw.Query(sw.count(), sw.Rows(9), name="busy", by="shop", having=(">", 1)),
    ])  # fmt: skip
    engine.append({"ts": [1, 2, 3], "card": ["a", "b", "a"], "shop": [7, 7, 8]})
    assert engine.emitted("all").to_pylist() == [{"query": "all", "tick": 1, "ts": 3, "value": 2}]
    engine.append({"ts": [4], "card": ["a"], "shop": [7]})
    assert engine.emitted().select(["query", "tick", "card", "shop", "value"]).to_pylist() == [
        {"query": "ticks", "tick": 1, "card": "a", "shop": 7, "value": 1},
        {"query": "ticks", "tick": 1, "card": "b", "shop": 7, "value": 1},
        {"query": "ticks", "tick": 2, "card": "a", "shop": 7, "value": 2},
        {"query": "ticks", "tick": 2, "card": "a", "shop": 8, "value": 1},
        {"query": "ticks", "tick": 2, "card": "b", "shop": 7, "value": 1},
    ]
    assert engine.filters().to_pylist() == [
        {"query": "often", "card": "a", "shop": None, "value": 3},
        {"query": "busy", "card": None, "shop": 7, "value": 3},
    ]
    assert list(engine.stats()["groupings"]) == [("card",), ("card", "shop"), (), ("shop",)]
    assert "by card, shop" in engine.explain() and "by nothing: the whole stream" in engine.explain()


def test_a_batch_that_one_grouping_refuses_is_taken_by_none():
    engine = sw.Engine(key="card")
    engine.register(
        [sw.Query(sw.count(), sw.Rows(9), name=n, by=by) for n, by in (("a", "card"), ("b", ("card", "shop")))]
    )
    engine.append({"ts": [5, 6], "card": ["a", "b"], "shop": [1, 2]})
    before = engine.stats()
    with pytest.raises(sw.BadEvents, match='row 1 has no key: "shop" is null'):
        engine.append({"ts": [7, 8], "card": ["c", "d"], "shop": [1, None]})
    with pytest.raises(sw.OutOfOrder):
        engine.append({"ts": [7, 4], "card": ["c", "a"], "shop": [9, 9]})
    assert engine.stats() | {"bytes": 0} == before | {"bytes": 0}
    assert engine.lookup("b").num_rows == 2


def test_order_is_that_of_the_groupings_with_queries():
    engine = sw.Engine(key="card")
    engine.register(sw.Query(sw.count(), sw.Rows(9), name="n", by="shop"))
    engine.append({"ts": [5, 3], "card": ["a", "a"], "shop": [1, 2]})  # each shop by itself is in order
    engine.register(sw.Query(sw.count(), sw.Rows(9), name="all", by=()))
    with pytest.raises(sw.OutOfOrder):
        engine.append({"ts": [4], "card": ["a"], "shop": [2]})
    assert engine.append({"ts": [5], "card": [None], "shop": [2]}) == 1  # nobody groups by card
    assert (engine.lookup("n", key=2), engine.lookup("all")) == (2, 3)  # which starts from the rows kept for shops
    assert engine.stats()["complete_since"] == {"n": None, "all": None}


def test_events_that_wait_are_judged_together_and_counted_by_every_grouping():
    engine = sw.Engine(key="card", lateness=3)
    engine.register(sw.Query(sw.count(), sw.Range(100), name="n"))
    engine.append({"ts": [1, 5], "card": ["a", "b"]})
    engine.register(
        sw.Query(sw.count(), sw.Range(100), name="pairs", by=("card", "shop"))
    )  # the 5 waits without a shop
    engine.append({"ts": [4, 9], "card": ["a", "b"], "shop": [1, 1]})
    engine.append({"ts": [4, 20], "card": ["c", "b"], "shop": [1, 1]})  # 5 was applied: 4 is late, also of a new card
    assert engine.stats()["late"] == 1
    assert engine.lookup("n").to_pylist() == [{"card": "a", "value": 2}, {"card": "b", "value": 2}]
    assert engine.lookup("pairs").to_pylist() == [
        {"card": "a", "shop": 1, "value": 1}, {"card": "b", "shop": 1, "value": 1}
    ]  # fmt: skip


def test_a_key_of_several_columns_is_a_tuple_of_all_of_them():
    engine = sw.Engine(key=["card", "shop"])
    engine.register(sw.Query(sw.count(), sw.Rows(9), name="n"))
    engine.append({"ts": [1, 2], "card": ["a", "a"], "shop": [1, 2]})
    assert engine.lookup("n", key=("a", 2)) == 1
    assert engine.lookup("n", key=("z", 2)) == 0
    with pytest.raises(sw.BadQuery, match=r"is no tuple of \(card, shop\)"):
        engine.lookup("n", key="a")
    assert repr(engine) == '<sw.Engine ts="ts", key=("card", "shop"): 1 query, 2 events, 2 keys>'
    with pytest.raises(sw.BadQuery, match="which is the time"):
        engine.register(sw.Query(sw.count(), sw.Rows(9), name="m", by="ts"))
    with pytest.raises(sw.BadQuery, match='"ts" is the time'):
        sw.Engine(key=("card", "ts"))
    with pytest.raises(sw.BadQuery, match="no query groups by shop"):
        engine.lookup_all(by="shop")


def test_ticks_of_a_grouping_that_is_gone_are_handed_out_after_loading(tmp_path):
    engine = sw.Engine(key="card")
    engine.register([sw.Query(sw.count(), sw.Rows(9), name="n"), sw.Query(sw.count(), sw.Rows(9), name="t", by="shop",
                                                                          every=sw.Every(2))])  # fmt: skip
    engine.append({"ts": [1, 2], "card": ["a", "b"], "shop": [7, 7]})
    engine.unregister("t")
    engine.save(tmp_path / "engine.swag")
    loaded = sw.Engine.load(tmp_path / "engine.swag")
    assert loaded.emitted("t").to_pylist() == [{"query": "t", "tick": 1, "ts": 2, "shop": 7, "value": 2}]
    assert loaded.append({"ts": [3], "card": ["a"]}) == 1  # nobody groups by shop any more


@pytest.mark.parametrize("saved", [False, True])
def test_a_grouping_that_comes_while_all_events_wait_answers_of_none(tmp_path, saved):
    engine = sw.Engine(key="k", lateness=9)
    engine.register(sw.Query(sw.count(), sw.Range(3), name="per key"))
    engine.append({"ts": [5], "k": [1]})
    engine.register([
        sw.Query(sw.count(), sw.Range(3), name="of all", by=()),
        sw.Query(sw.count(), sw.Range(3), name="many", by=(), having=(">", -1)),
    ])  # fmt: skip
    if saved:
        engine.save(tmp_path / "snapshot")
        engine = sw.Engine.load(tmp_path / "snapshot")
    assert engine.lookup("of all") == 0
    assert engine.filters("many").num_rows == 0
    engine.append({"ts": [14], "k": [2]})
    assert engine.lookup("of all") == 1
