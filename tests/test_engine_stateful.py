"""An engine driven at random — register, append, advance, look up, unregister, save, load — against the oracle."""

import math
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import swag as sw
from tests import oracle

FLOATS = st.one_of(
    st.none(),
    st.sampled_from([0.0, 1.0, -1.0, 0.1, 1e9, 1e18, -1e18, math.nan, math.inf, -math.inf, 1e-9, 1e300]),
    st.floats(-1e3, 1e3),
)
EVENT = st.fixed_dictionaries(
    {
        "gap": st.sampled_from([0, 0, 1, 1, 2, 5, 30]),
        "k": st.sampled_from(["a", "b", "c", "d"]),
        "x": FLOATS,
        "y": st.one_of(st.none(), st.integers(-3, 3).map(float)),
        "i": st.one_of(st.none(), st.integers(-(2**40), 2**40), st.integers(-2, 2)),
        "s": st.none() | st.sampled_from(["", "bid", "ask"]) | st.text(max_size=3),
    }
)
SCHEMA = pa.schema(
    [
        ("ts", pa.int64()),
        ("k", pa.string()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("i", pa.int64()),
        ("s", pa.string()),
    ]
)
KINDS = [
    ("count", (), {}),
    ("count", ("x",), {}),
    ("sum", ("x",), {}),
    ("sum", ("i",), {}),
    ("mean", ("x",), {}),
    ("mean", ("i",), {}),
    ("min", ("x",), {}),
    ("max", ("x",), {}),
    ("max", ("i",), {}),
    ("first", ("x",), {}),
    ("last", ("i",), {}),
    ("first", ("s",), {}),
    ("last", ("s",), {}),
    ("var", ("x",), {"ddof": 1}),
    ("std", ("y",), {"ddof": 0}),
    ("sum", ("y",), {}),
    ("wmean", ("x", "y"), {}),
    ("cov", ("y", "i"), {"ddof": 1}),
    ("corr", ("x", "y"), {}),
    ("quantile", ("x",), {"phi": 0.3, "method": "floor"}),
    ("quantile", ("i",), {"phi": 0.9, "method": "linear"}),
    ("median", ("y",), {}),
]
WINDOWS = st.one_of(
    st.integers(1, 12).flatmap(
        lambda n: st.tuples(st.just("rows"), st.just(n), st.integers(0, n - 1), st.just("right"))
    ),
    st.integers(1, 40).flatmap(
        lambda t: st.tuples(
            st.just("range"), st.just(t), st.integers(0, t - 1), st.sampled_from(["right", "left", "both", "none"])
        )
    ),
)
WHERE = {None: None, "y > 0": lambda e: None if e["y"] is None else e["y"] > 0, "k = 'a'": lambda e: e["k"] == "a"}


def both(kind, columns, options, window, where):
    """The same query for swag and for the oracle."""
    what, far, near, closed = window
    aggregate = sw.count(*columns) if kind == "count" else getattr(sw, kind)(*columns, **options)
    theirs = oracle.Rows(far, near) if what == "rows" else oracle.Range(far, near, closed)
    ours = sw.Rows(far, near) if what == "rows" else sw.Range(far, near, closed=closed)
    query = sw.Query(aggregate, ours, where=where)
    return query, oracle.Q(oracle.agg(kind, *columns, **options), theirs, WHERE[where])


QUERIES = st.builds(
    lambda k, w, c: both(*k, w, c), st.sampled_from(KINDS), WINDOWS, st.sampled_from([None, None, *WHERE])
)


class EngineMachine(RuleBasedStateMachine):
    @initialize(
        keyed=st.booleans(),
        lateness=st.sampled_from([None, None, 0, 3, 20]),
        algorithm=st.sampled_from(
            ["auto", "auto", "b-int", "l-int", "r-int", "psoup", "materialize-all", "materialize-none"]
        ),
        queries=st.lists(QUERIES, max_size=6),
    )
    def start(self, keyed, lateness, algorithm, queries):
        keyed = keyed and algorithm in ("auto", "b-int", "l-int", "r-int")  # the others are for one stream
        self.key = "k" if keyed else None
        self.engine = sw.Engine(key=self.key, lateness=lateness, algorithm=algorithm)
        self.truth = oracle.Engine(key=self.key, lateness=lateness)
        self.lateness, self.clock, self.registered = lateness, 0, {}
        for query in queries:
            self.register(query)

    @rule(query=QUERIES)
    def register(self, query):
        ours, theirs = query
        if ours.label in self.registered:
            with pytest.raises(sw.BadQuery, match="named"):
                self.engine.register(ours)
            return
        if self.engine.algorithm == "r-int" and ours.aggregate.kind in ("min", "max"):
            with pytest.raises(sw.BadQuery, match="R-INT"):
                self.engine.register(ours)
            return
        assert self.engine.register(ours) == ours.label
        self.registered[ours.label] = theirs

    @precondition(lambda self: self.registered)
    @rule(data=st.data())
    def unregister(self, data):
        name = data.draw(st.sampled_from(sorted(self.registered)))
        self.engine.unregister(name)
        del self.registered[name]

    def events(self, drawn, back=0):
        rows = []
        for event in drawn:
            self.clock += event["gap"]
            rows.append({"ts": self.clock, **{name: event[name] for name in ("k", "x", "y", "i", "s")}})
        return rows

    @rule(drawn=st.lists(EVENT, max_size=25))
    def append(self, drawn):
        rows = self.events(drawn)
        assert self.engine.append(pa.Table.from_pylist(rows, SCHEMA)) == self.truth.append(rows)

    @rule(drawn=st.lists(EVENT, min_size=1, max_size=10), data=st.data())
    def append_in_disorder(self, drawn, data):
        rows = self.events(drawn)
        for row in rows:
            row["ts"] = max(0, row["ts"] - data.draw(st.sampled_from([0, 1, 4, 25])))
        table = pa.Table.from_pylist(rows, SCHEMA)
        try:
            taken = self.truth.append(rows)
        except oracle.BadBatch:
            before = self.engine.stats()
            with pytest.raises(sw.OutOfOrder):
                self.engine.append(table)
            assert self.engine.stats() | {"bytes": 0} == before | {"bytes": 0}
        else:
            assert self.engine.append(table) == taken
            assert self.engine.stats()["late"] == self.truth.late

    @rule(gap=st.sampled_from([0, 1, 10, 100]))
    def advance(self, gap):
        self.clock += gap
        self.engine.advance(self.clock)
        self.truth.advance(self.clock)

    @rule()
    def save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "engine.swag"
            before = self.engine.lookup_all()
            self.engine.save(path)
            self.engine = sw.Engine.load(path)
            assert_identical(self.engine.lookup_all(), before)

    def complete(self, name, at):
        """Does the engine claim a full answer?"""
        since = self.engine.stats()["complete_since"][name]
        return since is None or (isinstance(self.registered[name].window, oracle.Range) and at >= since)

    def check(self, name, actual, key, at):
        if not self.complete(name, at):
            return
        query = self.registered[name]
        expected = self.truth.lookup(query, key, at)
        allowed = oracle.tolerance(query.agg, self.truth.window(query, key, at))
        assert oracle.same(expected, actual, allowed), (
            f"{name} of {key} at {at}: {actual!r}, expected {expected!r}\n{self.engine.explain()}"
        )

    @precondition(lambda self: self.registered and self.truth.taken)
    @rule(data=st.data(), back=st.sampled_from([None, 0, 1, 5, 20, -7]))
    def lookup(self, data, back):
        name = data.draw(st.sampled_from(sorted(self.registered)))
        at = None if back is None else int(self.truth.now) - back
        key = None if self.key is None else data.draw(st.sampled_from(["a", "b", "c", "d", "never seen"]))
        try:
            actual = self.engine.lookup(name, key=key, at=at) if self.key else self.engine.lookup(name, at=at)
        except sw.TooFarBack:
            assert back is not None and back > 0
            return
        self.check(name, actual, key, self.truth.now if at is None else at)

    @precondition(lambda self: self.registered and self.truth.taken)
    @rule()
    def lookup_all(self):
        table = self.engine.lookup_all()
        assert table.column_names == ([self.key] if self.key else []) + list(self.registered)
        for row in table.to_pylist():
            for name in self.registered:
                self.check(name, row[name], row[self.key] if self.key else None, self.truth.now)
        if self.key and all(self.complete(name, self.truth.now) for name in self.registered):
            queries = list(self.registered.values())
            assert sorted(row["k"] for row in table.to_pylist()) == sorted(self.truth.lookup_all(queries))

    @precondition(lambda self: self.registered and self.key and self.truth.taken)
    @rule(data=st.data())
    def lookup_by_key(self, data):
        name = data.draw(st.sampled_from(sorted(self.registered)))
        table = self.engine.lookup(name)
        for row in table.to_pylist():
            self.check(name, row["value"], row["k"], self.truth.now)
        if self.complete(name, self.truth.now):
            assert sorted(row["k"] for row in table.to_pylist()) == sorted(self.truth.lookup(self.registered[name]))

    @invariant()
    def counts_are_right(self):
        if hasattr(self, "engine"):
            stats = self.engine.stats()
            assert stats["events"] == len(self.truth.taken) and stats["late"] == self.truth.late


def assert_identical(left, right):
    """Equal bit for bit, NaN included."""
    assert left.schema == right.schema
    for a, b in zip(left.columns, right.columns, strict=True):
        assert a.is_valid().to_pylist() == b.is_valid().to_pylist()
        assert list(map(repr, a.to_pylist())) == list(map(repr, b.to_pylist()))


TestEngine = EngineMachine.TestCase
TestEngine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None, report_multiple_bugs=False)
