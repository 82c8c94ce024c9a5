"""Many different `where` clauses over one stream: answers are the oracle's, whatever shares what.

Filters come and go while events flow, keys come and go, columns get their first nulls; engines are saved and loaded.
"""

import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import swag as sw
from swag.live import store
from swag.live.filtered import pairs, substreams
from swag.live.indexing import key_filters
from tests import oracle
from tests.oracle_tolerance import same, tolerance

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("s", pa.string()), ("p", pa.float64()), ("v", pa.int64())])
EVENT = st.fixed_dictionaries(
    {
        "gap": st.sampled_from([0, 0, 1, 1, 2, 30]),
        "k": st.integers(0, 3),
        "s": st.sampled_from(["A", "B", "C", "D", None]),
        "p": st.sampled_from([0.0, 1.0, 2.5, 7.0, float("nan"), None]),
        "v": st.integers(0, 9),
    }
)


def above(name: str, least: float) -> Any:
    return lambda e: e[name] is not None and e[name] > least  # NaN is not


ATOMS = st.one_of(
    st.sampled_from("ABCE").map(lambda c: (f"s = '{c}'", lambda e: e["s"] == c)),
    st.sampled_from(["AB", "BCE"]).map(lambda cs: (f"s IN ({', '.join(map(repr, cs))})", lambda e: e["s"] in [*cs])),
    st.integers(0, 8).map(lambda c: (f"p > {c}", above("p", c))),
    st.integers(0, 8).map(lambda c: (f"v > {c}", above("v", c))),
    st.integers(0, 8).map(lambda c: (f"v BETWEEN {c} AND {c + 2}", lambda e: c <= e["v"] <= c + 2)),
    st.integers(0, 8).map(lambda c: (f"v + 1 <> {c}", lambda e: e["v"] + 1 != c)),
    st.just(("s IS NULL", lambda e: e["s"] is None)),
    st.just(("s LIKE 'A%'", lambda e: e["s"] == "A")),
)
AGGREGATES = [("count",), ("count", "p"), ("sum", "p"), ("sum", "v"), ("mean", "v"), ("max", "p"), ("last", "s"),
              ("first", "v"), ("median", "v"), ("var", "v"), ("wmean", "p", "v")]  # fmt: skip


@st.composite
def filters(draw: st.DrawFn, rows: bool) -> tuple[sw.Query, oracle.Q]:
    """rows: some windows are by rows, and keep those of every key."""
    atoms = draw(st.lists(ATOMS, min_size=1, max_size=3))
    kind, *columns = draw(st.sampled_from(AGGREGATES))
    by_rows, length = rows and draw(st.booleans()), draw(st.sampled_from([1, 3, 9, 40]))
    window = (sw.Rows(length), oracle.Rows(length)) if by_rows else (sw.Range(length), oracle.Range(length))
    having = draw(st.sampled_from([None, None, (">", 1)])) if kind in ("count", "sum") else None
    query = sw.Query(getattr(sw, kind)(*columns), window[0], where=" AND ".join(a for a, _ in atoms), having=having)
    tests = [test for _, test in atoms]
    return query, oracle.Q(oracle.agg(kind, *columns), window[1], lambda e: all(test(e) for test in tests), having)


def steps(rows: bool) -> st.SearchStrategy[list[tuple[str, Any]]]:
    return st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.lists(EVENT, max_size=12)),
            st.tuples(st.just("append"), st.lists(EVENT, max_size=12)),
            st.tuples(st.just("register"), st.lists(filters(rows), min_size=1, max_size=4)),
            st.tuples(st.just("unregister"), st.integers(0, 99)),
            st.tuples(st.just("reload"), st.none()),
            st.tuples(st.just("advance"), st.sampled_from([1, 50])),
        ),
        max_size=10,
    )


class Driven:
    """An engine, the oracle's of all events, and from which event on each query counts."""

    def __init__(self, key: str | None, algorithm: str) -> None:
        self.engine, self.truth = sw.Engine(key=key, algorithm=algorithm), oracle.Engine(key)
        self.key, self.now, self.came, self.names = key, 0, 0, 0
        self.asked: dict[str, oracle.Q] = {}
        self.used: set[str] = set()

    def append(self, events: list[dict[str, Any]]) -> None:
        rows = []
        for event in events:
            self.now += event["gap"]
            shift = self.now // 25 * 4  # keys come and go
            rows.append({**event, "ts": self.now, "k": event["k"] + shift, "n": self.came})
            self.came += 1
        self.engine.append(pa.Table.from_pylist(rows, SCHEMA))
        self.truth.append(rows)

    def register(self, queries: list[tuple[sw.Query, oracle.Q]]) -> None:
        """A `where` that was there before is left out: of that, rows may have been kept."""
        for query, truth in queries:
            assert query.where is not None
            if self.came and query.where in self.used:
                continue
            self.used.add(query.where)
            self.names += 1
            name, first, where = f"q{self.names}", self.came, truth.where
            since = oracle.Q(truth.agg, truth.window, lambda e, f=first, w=where: e["n"] >= f and w(e), truth.having)
            named = sw.Query(query.aggregate, query.window, name, where=query.where, having=query.having)
            self.engine.register(named)
            self.asked[name] = since

    def unregister(self, which: int) -> None:
        if self.asked:
            name = list(self.asked)[which % len(self.asked)]
            self.engine.unregister(name)
            del self.asked[name]

    def reload(self, _: None) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.engine.save(Path(folder) / "snapshot")
            self.engine = sw.Engine.load(Path(folder) / "snapshot")

    def advance(self, by: int) -> None:
        self.now += by
        self.engine.advance(self.now)
        self.truth.advance(self.now)

    def check(self) -> None:
        if not self.came:
            return
        for name, query in self.asked.items():
            found, expected = self.engine.lookup(name), self.truth.lookup(query)
            if self.key is None:
                found, expected = {None: found}, {None: expected}
            else:
                found = dict(zip(*found.to_pydict().values(), strict=True))
            assert found.keys() == expected.keys(), (name, query, found, expected)
            for key, value in expected.items():
                within = tolerance(query.agg, self.truth.window(query, key))
                assert same(value, found[key], within), (name, query, key, found[key], value)
        plain = [name for name, query in self.asked.items() if query.having is None]
        if plain and self.key is not None:
            every = self.truth.lookup_all([self.asked[name] for name in plain])
            assert sorted(self.engine.lookup_all().column("k").to_pylist()) == sorted(every)


@pytest.mark.parametrize("key", [None, "k"])
@given(
    case=st.booleans().flatmap(lambda r: st.tuples(st.lists(filters(r), min_size=1, max_size=8), steps(r))),
    algorithm=st.sampled_from(["auto", "auto", "b-int", "l-int", "psoup", "materialize-all"]),
)
def test_answers_of_many_filters_are_those_of_the_oracle(key, case, algorithm, forgetful):
    first, then = case
    driven = Driven(key, algorithm if key is None or algorithm in ("auto", "b-int", "l-int") else "auto")
    driven.register(first)
    for step, drawn in then:
        getattr(driven, step)(drawn)
        driven.check()


@pytest.fixture(scope="module")
def forgetful():
    """Keys and substreams without rows are forgotten from the first on, and a few filters are many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "FEW_WITH_RINGS", 4)
        patch.setattr(key_filters, "FEW_FOR_INDEXES", 4)
        patch.setattr(store, "MANY_KEYS", 2)
        patch.setattr(substreams, "MANY_SUBSTREAMS", 2)
        yield


def engine_of(count: int, key: str | None = None) -> sw.Engine:
    engine = sw.Engine(key=key)
    wheres = [f"s = 's{i // 4}' AND p > {i % 4}" for i in range(count)]
    engine.register([sw.Query(sw.sum("p"), sw.Range(100), f"q{i}", where=w) for i, w in enumerate(wheres)])
    return engine


def test_a_filter_that_matched_nothing_takes_little_memory():
    sizes = []
    for count in (1000, 2000):
        engine = engine_of(count)
        engine.append({"ts": [1], "s": ["none of them"], "p": [1.0]})
        sizes.append(engine.stats()["bytes"])
    assert sizes[1] - sizes[0] <= 200 * 1000


def test_one_structure_serves_all_filters_and_explain_says_so():
    engine = engine_of(100)
    engine.register(sw.Query(sw.count(), sw.Range(9), "odd", where="s LIKE 's1%' AND p > 2"))
    engine.register(sw.Query(sw.count(), sw.Range(9), "computed", where="p * 2 > 3"))
    engine.append({"ts": [1, 2], "s": ["s3", "s4"], "p": [2.5, 9.0]})
    assert engine.stats()["structures"] == 1
    said = str(engine.explain())
    assert "sum(p) over each of 102 filters" in said
    ways = "100 found by constants alone, 1 by constants, then a rest that is tried, 1 tried on every event"
    assert f"102 wheres: {ways}" in said
    assert "8 (filter, key) with rows of their own, in 1 arena" in said


def test_memory_follows_the_pairs_that_have_rows():
    """Filters and keys meet once each, and never again."""
    engine, sizes = engine_of(40, key="k"), []
    for i in range(120):
        at = np.arange(200) + 1000 * i
        words = [f"s{(i + j) % 10}" for j in range(200)]
        engine.append({"ts": at, "k": i * 200 + np.arange(200), "s": words, "p": np.full(200, 9.0)})
        sizes.append(engine.stats()["bytes"])
    assert max(sizes[60:]) <= 1.5 * max(sizes[30:60])


def test_of_many_filters_with_having_the_keys_that_met_them_are_looked_at():
    wheres = [f"s = 's{i}'" for i in range(30)]
    engine = sw.Engine(key="k")
    engine.register(
        [sw.Query(sw.sum("p"), sw.Range(50), f"q{i}", where=w, having=(">", 3)) for i, w in enumerate(wheres)]
    )
    plain = sw.Engine(key="k")
    plain.register([sw.Query(sw.sum("p"), sw.Range(50), "q3", where=wheres[3], having=(">", 3), index=False)])
    rng = np.random.default_rng(1)
    for i in range(9):
        rows = {"ts": np.full(300, 10 * i), "k": rng.integers(0, 200, 300), "p": rng.random(300) * 3}
        words = [f"s{j}" for j in rng.integers(0, 30, 300)]
        engine.append(rows | {"s": words})
        plain.append(rows | {"s": words})
        assert engine.lookup("q3").equals(plain.lookup("q3"))
    said = str(engine.explain())
    assert "no index: looked up for the keys that have rows of their where" in said
    assert "30 wheres: 30 found by constants alone" in said


def test_filters_that_went_take_their_rows_with_them():
    engine = engine_of(400)
    engine.append({"ts": np.arange(5000) // 100, "s": [f"s{i % 100}" for i in range(5000)], "p": np.full(5000, 9.0)})
    before = engine.stats()["bytes"]
    for i in range(1, 400):
        engine.unregister(f"q{i}")
    assert engine.lookup("q0") == 50 * 9.0
    assert engine.stats()["bytes"] < before / 2
