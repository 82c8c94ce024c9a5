"""An engine driven at random — register, append, advance, look up, unregister, save, load — against the oracle.

Queries of all kinds come and go while events flow, are held and are forgotten: plain ones, with `where`, with `having`
and an index, over expressions. An answer is compared wherever the engine says that it is complete.
"""

import math
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import swag as sw
from swag.live import store
from swag.query.kind import KINDS as kind_of
from tests import oracle
from tests.every_kind import options_of, others
from tests.examples import share

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
        "b": st.none() | st.booleans(),
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
        ("b", pa.bool_()),
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
    ("skew", ("x",), {}),
    ("kurtosis", ("y",), {}),
    ("slope", ("x", "y"), {}),
    ("intercept", ("y", "i"), {}),
    ("r2", ("y", "x"), {}),
    ("product", ("x",), {}),
    ("any", ("b",), {}),
    ("all", ("b",), {}),
    ("count_if", ("b",), {}),
    ("arg_max", ("s", "x"), {}),
    ("arg_max", ("i", "y"), {}),
    ("arg_min", ("b", "i"), {}),
    ("decayed_sum", ("x",), {"half_life": 3}),
    ("decayed_mean", ("x",), {"half_life": 3}),
    ("decayed_count", (), {"half_life": 10}),
    ("age", (), {}),
    ("first_n", ("s",), {"n": 2}),
    ("last_n", ("x",), {"n": 3}),
    *((kind, (c,), {}) for kind in ("count_distinct", "mode") for c in "xisb"),
    ("count_distinct", ("s",), {"approx": True}),
]
KINDS += [(each.kind, each.columns, options_of(each)) for each in others((name for name, *_ in KINDS), "y")]
NOT_TAKEN_OFF = ("min", "max", "product", "arg_max", "arg_min")  # partials that R-INT refuses
NO_R_INT = {kind.name for kind in kind_of.values() if kind.family in NOT_TAKEN_OFF}
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


def windows(window):
    """The same window for swag and for the oracle."""
    what, far, near, closed = window
    if what == "rows":
        return sw.Rows(far, near), oracle.Rows(far, near)
    return sw.Range(far, near, closed=closed), oracle.Range(far, near, closed)


def plain(kind, columns, options, window, where, having=None, index=True):
    """The same query for swag and for the oracle."""
    ours, theirs = windows(window)
    aggregate = sw.count(*columns) if kind == "count" else getattr(sw, kind)(*columns, **options)
    options = {name: value for name, value in options.items() if name != "approx"}  # over rows it is exact
    query = sw.Query(aggregate, ours, where=where, having=having, index=index)
    return query, Expected((oracle.Q(oracle.agg(kind, *columns, **options), theirs, WHERE[where], having),))


class Expected:
    """What a query answers: one aggregate, or what is computed of several over one window."""

    def __init__(self, leaves, compute=lambda value: value):
        self.leaves, self.compute = leaves, compute
        self.having = leaves[0].having

    def value(self, truth, key, at):
        return self.compute(*(truth.lookup(leaf, key, at) for leaf in self.leaves))

    def keys(self, truth):
        """Those in the answer: they have an event in the window, and pass `having`."""
        return sorted(set().union(*(truth.lookup(leaf) for leaf in self.leaves)))

    def tolerance(self, truth, key, at):
        if len(self.leaves) > 1:
            return 0.0
        return oracle.tolerance(self.leaves[0].agg, truth.window(self.leaves[0], key, at))


def of_both(function):
    return lambda *values: None if None in values else function(*values)


EXPRESSIONS = [
    (sw.max("i") - sw.min("i"), [("max", "i"), ("min", "i")], of_both(lambda a, b: a - b)),
    (sw.count("x") + 2 * sw.count(), [("count", "x"), ("count",)], lambda a, b: a + 2 * b),
    (sw.count("s") - sw.count("i"), [("count", "s"), ("count", "i")], lambda a, b: a - b),
    (sw.last("i").coalesce(sw.count("y")), [("last", "i"), ("count", "y")], lambda a, b: b if a is None else a),
]


def computed(expression, window, where):
    ours, theirs = windows(window)
    term, leaves, compute = expression
    found = tuple(oracle.Q(oracle.agg(*leaf), theirs, WHERE[where]) for leaf in leaves)
    return sw.Query(term, ours, where=where), Expected(found, compute)


WHERES = st.sampled_from([None, None, *WHERE])
PLAIN = st.builds(lambda k, w, c: plain(*k, w, c), st.sampled_from(KINDS), WINDOWS, WHERES)
COMPUTED = st.builds(computed, st.sampled_from(EXPRESSIONS), WINDOWS, WHERES)
FILTERS = st.builds(
    lambda k, w, c, op, v, index: plain(*k, w, c, (op, v), index and k[0] != "sum"),  # x and i may be negative
    st.sampled_from([kind for kind in KINDS if kind[0] in ("count", "sum", "min", "max", "mean")]),
    WINDOWS,
    WHERES,
    st.sampled_from([">", ">=", "<", "<="]),
    st.sampled_from([0, 1, 2, 3, -1.0, 0.1, 2.5, 1e9]),
    st.booleans(),
)
QUERIES = st.one_of(PLAIN, PLAIN, COMPUTED, FILTERS)


class EngineMachine(RuleBasedStateMachine):
    keys, forgets = ("a", "b", "c", "d"), False

    @initialize(
        keyed=st.booleans(),
        lateness=st.sampled_from([None, None, 0, 3, 20]),
        algorithm=st.sampled_from(
            ["auto", "auto", "b-int", "l-int", "r-int", "psoup", "materialize-all", "materialize-none"]
        ),
        queries=st.lists(QUERIES, max_size=6),
        clock=st.sampled_from([0, -500]),
    )
    def start(self, keyed, lateness, algorithm, queries, clock):
        keyed = keyed and algorithm in ("auto", "b-int", "l-int", "r-int")  # the others are for one stream
        self.key = "k" if keyed else None
        self.engine = sw.Engine(key=self.key, lateness=lateness, algorithm=algorithm)
        self.truth = oracle.Engine(key=self.key, lateness=lateness)
        self.clock, self.registered = clock, {}
        for query in queries:
            self.register(query)

    @rule(query=QUERIES)
    def register(self, query):
        ours, theirs = query
        if ours.label in self.registered:
            with pytest.raises(sw.BadQuery, match="named"):
                self.engine.register(ours)
            return
        if self.engine.algorithm == "r-int" and any(leaf.agg.kind in NO_R_INT for leaf in theirs.leaves):
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
            rows.append({"ts": self.clock, **{name: event[name] for name in ("k", "x", "y", "i", "s", "b")}})
        return rows

    @rule(drawn=st.lists(EVENT, max_size=25))
    def append(self, drawn):
        rows = self.events(drawn)
        assert self.engine.append(pa.Table.from_pylist(rows, SCHEMA)) == self.truth.append(rows)

    @precondition(lambda self: not self.forgets)  # of a key that was forgotten nobody knows how far it was
    @rule(drawn=st.lists(EVENT, min_size=1, max_size=10), data=st.data())
    def append_in_disorder(self, drawn, data):
        rows = self.events(drawn)
        for row in rows:
            row["ts"] -= data.draw(st.sampled_from([0, 1, 4, 25]))
        table = pa.Table.from_pylist(rows, SCHEMA)
        try:
            taken = self.truth.append(rows)
        except oracle.BadBatch:
            before = self.engine.stats()
            with pytest.raises(sw.OutOfOrder):
                self.engine.append(table)
            assert without_bytes(self.engine.stats()) == without_bytes(before)
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
            before = [self.engine.lookup_all(), *(self.engine.lookup(name) for name in self.filters)]
            since = self.engine.stats()["complete_since"]
            self.engine.save(path)
            self.engine = sw.Engine.load(path)
            for left, right in zip([self.engine.lookup_all(), *map(self.engine.lookup, self.filters)], before):
                assert_identical(left, right)
            assert self.engine.stats()["complete_since"] == since

    @property
    def filters(self):
        return [name for name, query in self.registered.items() if query.having is not None]

    def complete(self, name, at):
        """Does the engine claim a full answer?"""
        since = self.engine.stats()["complete_since"][name]
        if isinstance(self.registered[name].leaves[0].window, oracle.Rows):  # filled by events, not by time passing
            at = min(at, self.truth.watermark)
        return since is None or at >= since

    def check(self, name, actual, key, at):
        if not self.complete(name, at):
            return
        query = self.registered[name]
        expected = query.value(self.truth, key, at)
        assert oracle.same(expected, actual, query.tolerance(self.truth, key, at)), (
            f"{name} of {key} at {at}: {actual!r}, expected {expected!r}\n{self.engine.explain()}"
        )

    @precondition(lambda self: self.registered and self.truth.taken)
    @rule(data=st.data(), back=st.sampled_from([None, 0, 1, 5, 20, -7]))
    def lookup(self, data, back):
        name = data.draw(st.sampled_from(sorted(self.registered)))
        at = None if back is None else int(self.truth.watermark) - back
        key = None if self.key is None else data.draw(st.sampled_from([*self.keys, "never seen"]))
        try:
            actual = self.engine.lookup(name, key=key, at=at) if self.key else self.engine.lookup(name, at=at)
        except sw.TooFarBack:
            assert back is not None and back > 0
            return
        self.check(name, actual, key, self.truth.watermark if at is None else at)

    @precondition(lambda self: self.registered and self.truth.taken)
    @rule()
    def lookup_all(self):
        table, now = self.engine.lookup_all(), self.truth.watermark
        shown = [name for name in self.registered if name not in self.filters]
        assert table.column_names == ([self.key] if self.key else []) + shown
        for row in table.to_pylist():
            for name in shown:
                self.check(name, row[name], row[self.key] if self.key else None, now)
        if self.key and all(self.complete(name, now) for name in shown):
            present = set().union(*(self.registered[name].keys(self.truth) for name in shown))
            assert sorted(row["k"] for row in table.to_pylist()) == sorted(present)

    @precondition(lambda self: self.registered and self.key and self.truth.taken)
    @rule(data=st.data())
    def lookup_by_key(self, data):
        name = data.draw(st.sampled_from(sorted(self.registered)))
        table, now = self.engine.lookup(name), self.truth.watermark
        for row in table.to_pylist():
            self.check(name, row["value"], row["k"], now)
        if self.complete(name, now):
            assert sorted(row["k"] for row in table.to_pylist()) == self.registered[name].keys(self.truth)

    @precondition(lambda self: self.key and self.truth.taken and self.filters)
    @rule()
    def look_at_all_filters(self):
        found = {}
        for row in self.engine.filters().to_pylist():
            found.setdefault(row["query"], []).append(row["k"])
        for name in self.filters:
            if self.complete(name, self.truth.watermark):
                assert sorted(found.get(name, [])) == self.registered[name].keys(self.truth)

    @invariant()
    def counts_are_right(self):
        if hasattr(self, "engine"):
            stats = self.engine.stats()
            assert stats["events"] == len(self.truth.taken) and stats["late"] == self.truth.late


class ForgetfulMachine(EngineMachine):
    """Many keys that come and go: those that no window can reach are forgotten as soon as they are half of all."""

    keys, forgets = tuple(f"{letter}{n}" for n in range(5) for letter in "abcd"), True

    def __init__(self):
        super().__init__()
        self.many, store.MANY_KEYS = store.MANY_KEYS, 2

    def teardown(self):
        store.MANY_KEYS = self.many

    def events(self, drawn, back=0):
        rows = super().events(drawn, back)
        return [row | {"k": f"{row['k']}{row['ts'] // 7 % 5}"} for row in rows]


def without_bytes(stats):
    """Scratch, room for keys and what is made when needed may stay when a batch is refused, and are not saved."""
    return stats | {"bytes": 0, "groupings": {by: about | {"bytes": 0} for by, about in stats["groupings"].items()}}


def assert_identical(left, right):
    """Equal bit for bit, NaN included."""
    if not isinstance(left, pa.Table):
        assert repr(left) == repr(right)
        return
    assert left.schema == right.schema
    for a, b in zip(left.columns, right.columns, strict=True):
        assert a.is_valid().to_pylist() == b.is_valid().to_pylist()
        assert list(map(repr, a.to_pylist())) == list(map(repr, b.to_pylist()))


STEPS = settings(max_examples=share(60), stateful_step_count=30, deadline=None, report_multiple_bugs=False)
TestEngine, TestForgetfulEngine = EngineMachine.TestCase, ForgetfulMachine.TestCase
TestEngine.settings = TestForgetfulEngine.settings = STEPS
