"""Filters driven at random against the oracle: exact answers, and the guarantees of the indexes' supersets."""

import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import swag as sw
from swag.windows import reach
from tests import oracle

EVENT = st.fixed_dictionaries(
    {
        "gap": st.sampled_from([0, 0, 0, 1, 1, 3, 40]),
        "k": st.integers(0, 5),
        "x": st.one_of(
            st.none(), st.sampled_from([0.0, 0.5, 1.0, 7.25, 1e6, float("nan"), float("inf")]), st.floats(0, 100)
        ),
        "i": st.one_of(st.none(), st.integers(0, 9), st.just(2**40)),
        "z": st.one_of(st.none(), st.floats(-9, 9)),
    }
)
SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("x", pa.float64()), ("i", pa.int64()), ("z", pa.float64())])
AGGREGATES = [("count", ()), ("count", ("x",)), ("sum", ("x",)), ("sum", ("i",)), ("max", ("z",)), ("min", ("z",)),
              ("max", ("i",)), ("min", ("x",)), ("mean", ("z",))]  # fmt: skip
CONDITIONS = st.one_of(
    st.tuples(
        st.sampled_from([">", ">=", "<", "<="]), st.one_of(st.integers(-1, 12), st.sampled_from([0.5, 7.25, 2**41]))
    ),
    st.tuples(st.just("between"), st.integers(0, 3), st.integers(3, 9)),
)
WHERE = {None: None, "i > 2": lambda e: None if e["i"] is None else e["i"] > 2}


@st.composite
def filters(draw):
    """The same filter for swag and for the oracle."""
    kind, columns = draw(st.sampled_from(AGGREGATES))
    t, until = draw(st.integers(1, 60)), draw(st.sampled_from([0, 0, 0, 0, 1]))
    until = until if until < t else 0
    closed, having = draw(st.sampled_from(["right", "right", "left", "both", "none"])), draw(CONDITIONS)
    where, index = draw(st.sampled_from([None, None, "i > 2"])), draw(st.sampled_from([True, True, True, False]))
    aggregate = sw.count(*columns) if kind == "count" else getattr(sw, kind)(*columns)
    ours = sw.Query(aggregate, sw.Range(t, until, closed), where=where, having=having, index=index)
    return ours, oracle.Q(oracle.agg(kind, *columns), oracle.Range(t, until, closed), WHERE[where], having)


class FilterMachine(RuleBasedStateMachine):
    @initialize(epsilon=st.sampled_from([0.9, 0.5, 0.2, 0.05]), chosen=st.lists(filters(), max_size=5))
    def start(self, epsilon, chosen):
        self.engine, self.truth = sw.Engine(key="k", epsilon=epsilon), oracle.Engine(key="k")
        self.epsilon, self.clock, self.filters = epsilon, 0, {}
        for each in chosen:
            self.register(each)

    @precondition(lambda self: not self.truth.taken)
    @rule(chosen=filters())
    def register(self, chosen):
        ours, theirs = chosen
        if ours.label not in self.filters:
            self.engine.register(ours)
            self.filters[ours.label] = (ours, theirs)

    @rule(drawn=st.lists(EVENT, min_size=1, max_size=30))
    def append(self, drawn):
        rows = []
        for event in drawn:
            self.clock += event["gap"]
            rows.append({"ts": self.clock} | {name: event[name] for name in ("k", "x", "i", "z")})
        assert self.engine.append(pa.Table.from_pylist(rows, SCHEMA)) == self.truth.append(rows)

    @rule(gap=st.sampled_from([0, 1, 20, 100]))
    def advance(self, gap):
        self.clock += gap
        self.engine.advance(self.clock)
        self.truth.advance(self.clock)

    @precondition(lambda self: self.filters and self.truth.taken)
    @rule(data=st.data(), later=st.sampled_from([None, None, 0, 5, 70]))
    def look_up(self, data, later):
        ours, theirs = self.filters[data.draw(st.sampled_from(sorted(self.filters)))]
        at = None if later is None else int(self.truth.now) + later
        table = self.engine.lookup(ours.label, at=at)
        found = dict(zip(table["k"].to_pylist(), table["value"].to_pylist(), strict=True))
        expected = self.truth.lookup(theirs, at=at)
        assert sorted(found) == sorted(expected), self.engine.explain()
        for key, value in expected.items():
            assert oracle.same(value, found[key], oracle.tolerance(theirs.agg, self.truth.window(theirs, key, at)))
        candidates = self.engine.lookup(ours.label, at=at, exact=False)["k"].to_pylist()
        assert set(candidates) >= set(found)
        self.check_relaxed(ours, theirs, candidates, at)

    @precondition(lambda self: self.filters and self.truth.taken)
    @rule()
    def look_at_all(self):
        table = self.engine.filters()
        found = set(zip(table["query"].to_pylist(), table["k"].to_pylist(), strict=True))
        asked = self.filters.items()
        assert found == {(name, key) for name, (_, theirs) in asked for key in self.truth.lookup(theirs)}

    def check_relaxed(self, ours, theirs, candidates, at):
        """Every key that an index returns satisfies the condition relaxed by epsilon; of floats, units come into it."""
        op, v, *_ = ours.having
        filters, kind = self.engine._filters, ours.aggregate.kind
        ends_now = reach(ours.window, self.engine._store.clock.unit).near == 0
        if filters.why_not(ours) or kind not in ("count", "sum") or v < 1 or at is not None or not ends_now:
            return
        scale = getattr(filters.entries[filters.key(ours)].index, "scale", 0.0)
        unit, whole = 1 / scale if scale else 0.0, ours.aggregate.columns != ("x",)
        plain = oracle.Q(theirs.agg, theirs.window, theirs.where)
        for key in candidates:
            value = self.truth.lookup(plain, key, at)
            if kind == "sum" and not whole and (not scale or value != value):
                continue
            if op in (">", ">="):
                assert (value or 0) >= v * (1 - self.epsilon) - 4 * unit - 1e-9
            else:
                most = v + 1 if op == "<=" and whole else v
                assert (value or 0) <= (most + 8 * unit) * (1 + self.epsilon) + 1e-9

    @precondition(lambda self: self.truth.taken)
    @rule()
    def save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            names = list(self.filters)
            before = [self.engine.lookup(name, exact=False) for name in names]
            self.engine.save(Path(folder) / "snapshot")
            self.engine = sw.Engine.load(Path(folder) / "snapshot")
            assert [self.engine.lookup(name, exact=False) for name in names] == before


TestFilters = FilterMachine.TestCase
TestFilters.settings = settings(max_examples=60, stateful_step_count=25, deadline=None, report_multiple_bugs=False)


def test_negative_values_are_refused_by_the_row_and_the_way_out():
    hot = sw.Query(sw.sum("x"), sw.Range(9), name="hot", having=(">", 3), where="k > 0")
    engine = sw.Engine(key="k")
    engine.register(hot)
    engine.append({"ts": [1, 2], "k": [0, 1], "x": [-1, 4]})
    before = engine.stats()
    with pytest.raises(
        sw.BadEvents, match=r'event 1 has x = -5, but query "hot" has an index over its sums.*index=False'
    ):
        engine.append({"ts": [3, 3], "k": [0, 1], "x": [-9, -5]})
    assert engine.stats() == before
    assert engine.lookup("hot").to_pydict() == {"k": [1], "value": [4]}
    plain = sw.Engine(key="k")
    plain.register(sw.Query(sw.sum("x"), sw.Range(9), name="hot", having=(">", 3), index=False))
    plain.append({"ts": [3, 3], "k": [0, 0], "x": [-9, 20]})
    assert plain.lookup("hot").to_pydict() == {"k": [0], "value": [11]}


def test_a_filter_that_comes_later_knows_what_is_kept():
    engine = sw.Engine(key="k")
    engine.register(sw.Query(sw.sum("x"), sw.Range(100), name="s"))
    engine.append({"ts": list(range(60)), "k": [i % 3 for i in range(60)], "x": [i % 3 for i in range(60)]})
    engine.register([sw.Query(sw.count(), sw.Range(t), name=str(t), having=(">=", 10)) for t in (30, 100)])
    engine.register(sw.Query(sw.max("x"), sw.Range(50), name="high", having=(">=", 2)))
    engine.append({"ts": [60, 61], "k": [1, 1], "x": [1, 1]})
    assert engine.lookup("30").to_pydict() == {"k": [1, 2], "value": [11, 10]}
    assert engine.lookup("100")["k"].to_pylist() == [0, 1, 2]
    assert engine.lookup("high")["k"].to_pylist() == [2]


X, N = sw.max("x"), sw.count()
CHOICES = {
    "CI-COUNT": sw.Query(N, sw.Range(9), having=(">", 5)),
    "CI-SUM": sw.Query(sw.sum("x"), sw.Range(9), having=("<=", 5)),
    "CI-MAX": sw.Query(X, sw.Range(9), having=(">", 5)),
    "CI-MIN": sw.Query(sw.min("x"), sw.Range(9), having=("<", 5)),
    "every key is looked at (index=False)": sw.Query(N, sw.Range(9), having=(">", 5), index=False),
    "every key is looked at (no index knows mean)": sw.Query(sw.mean("x"), sw.Range(9), having=(">", 5)),
    "every key is looked at (no index knows quantile)": sw.Query(sw.median("x"), sw.Range(9), having=(">", 5)),
    "every key is looked at (indexes know time windows that end now)": sw.Query(N, sw.Range(9, 3), having=(">", 5)),
    "every key is looked at (indexes know one-sided conditions on numbers)": sw.Query(
        N, sw.Range(9), having=("between", 1, 5)
    ),
    "every key is looked at (no condition with an index)": sw.Query(
        N, sw.Range(9), having=(X - sw.min("x")) / sw.last("x") > 0.03
    ),
    "CI-COUNT names the candidates for count()[RANGE 9] HAVING > 5; the rest is checked over these alone": sw.Query(
        N, sw.Range(9), having=(N > 5) & (sw.mean("x") > 1) & (X - sw.min("x") > 1)
    ),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_explain_tells_the_choice_for_every_kind_of_condition(choice):
    engine = sw.Engine(key="k")
    engine.register(CHOICES[choice])
    engine.append({"ts": [1], "k": [1], "x": [1.0]})
    assert choice in engine.explain()


def test_explain_tells_which_index_serves_whom():
    engine = sw.Engine(key="k", epsilon=0.25)
    engine.register([sw.Query(sw.count(), sw.Range(t), name=f"busy {t}", having=(">", 5)) for t in range(10, 20)])
    engine.register(sw.Query(sw.mean("x"), sw.Range(9), name="high", having=(">", 5)))
    engine.append({"ts": [1], "k": [1], "x": [1.0]})
    text = engine.explain()
    assert "CI-COUNT, p = 8 (ε = 0.25)" in text
    assert "filter high: every key is looked at (no index knows mean)" in text
