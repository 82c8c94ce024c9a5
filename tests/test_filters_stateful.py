"""Filters driven at random: an index answers as structures without one do, and the oracle; supersets keep their word.

Filters and plain queries come and go while events flow, with nulls, negative values and lateness; engines are saved and
loaded, indexes dropped. Every filter is registered twice, with index=False the second time.
"""

import math
import tempfile
from decimal import Decimal
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import swag as sw
from swag.live import store
from swag.query.windows import reach
from tests import oracle
from tests.test_engine_stateful import assert_identical, without_bytes

MOST, LEAST = 2**63 - 1, -(2**63)
EVENT = st.fixed_dictionaries(
    {
        "gap": st.sampled_from([0, 0, 0, 1, 1, 3, 40]),
        "back": st.integers(0, 9),
        "k": st.integers(0, 5),
        "x": st.one_of(
            st.none(),
            st.sampled_from([0.0, 0.5, 1.0, 7.25, 1e6, 5e-324, 1e300, math.nan, math.inf]),
            st.floats(0, 100),
        ),
        "i": st.one_of(st.none(), st.integers(0, 9), st.sampled_from([2**40, 2**53, 2**53 + 1])),
        "z": st.one_of(st.none(), st.floats(-9, 9), st.sampled_from([0.0, -0.0, 5e-324, 1e300, math.inf, -math.inf])),
        "j": st.one_of(st.integers(-3, 3), st.sampled_from([2**53 + 1, MOST, LEAST])),
    }
)
NAMES = ("k", "x", "i", "z", "j")
SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("x", pa.float64()), ("i", pa.int64()),
                    ("z", pa.float64()), ("j", pa.int64())])  # fmt: skip
AGGREGATES = [("count", ()), ("count", ()), ("count", ("x",)), ("sum", ("x",)), ("sum", ("x",)), ("sum", ("i",)),
              ("max", ("z",)), ("min", ("z",)), ("max", ("i",)), ("min", ("x",)), ("max", ("j",)), ("min", ("j",)),
              ("mean", ("z",))]  # fmt: skip
THRESHOLDS = st.one_of(
    st.integers(-1, 5),
    st.integers(0, 12),
    st.sampled_from([0.5, 7.25, 2**41, math.inf, -math.inf, 5e-324, -5e-324, 1e300, Decimal("0.5")]),
    st.sampled_from([2**53 + 1, float(2**53), 2**63, MOST, LEAST, -(2**63) - 1, 10**400]),
)
CONDITIONS = st.tuples(st.sampled_from([">", ">=", "<", "<=", "<", "<=", "between"]), THRESHOLDS).map(
    lambda drawn: ("between", 0, 7) if drawn[0] == "between" else drawn
)
WHERE = {None: None, "i > 2": lambda e: None if e["i"] is None else e["i"] > 2, "k < 3": lambda e: e["k"] < 3}
PLAIN = st.builds(
    lambda aggregate, window, where: sw.Query(aggregate, window, where=where),
    st.sampled_from([sw.count(), sw.count("x"), sw.sum("x"), sw.sum("i"), sw.mean("z"), sw.max("j"), sw.last("x")]),
    st.one_of(st.integers(1, 300).map(sw.Range), st.integers(1, 5).map(sw.Rows)),
    st.sampled_from([None, None, *WHERE]),
)


FILTERS = st.tuples(  # which of the aggregates and predicates of a run, the window, the condition
    st.integers(0, 1),
    st.integers(0, 2),
    st.one_of(st.sampled_from([3, 10, 50, 200]), st.integers(1, 60)),
    st.sampled_from([0, 0, 0, 0, 0, 0, 0, 1]),
    st.sampled_from(["right", "right", "right", "left", "both", "none"]),
    CONDITIONS,
)


def both(aggregate, where, t, until, closed, having):
    """The same filter for swag and for the oracle."""
    kind, columns = aggregate
    until = until if until < t else 0
    ours = sw.count(*columns) if kind == "count" else getattr(sw, kind)(*columns)
    query = sw.Query(ours, sw.Range(t, until, closed), where=where, having=having)
    return query, oracle.Q(oracle.agg(kind, *columns), oracle.Range(t, until, closed), WHERE[where], having)


class FilterMachine(RuleBasedStateMachine):
    @initialize(
        epsilon=st.sampled_from([0.9, 0.5, 0.2, 0.05]),
        lateness=st.sampled_from([None, None, 0, 9]),
        aggregates=st.lists(st.sampled_from(AGGREGATES), min_size=2, max_size=2),
        where=st.sampled_from([None, *WHERE]),
        chosen=st.lists(FILTERS, max_size=3),
        clock=st.sampled_from([0, -500]),
    )
    def start(self, epsilon, lateness, aggregates, where, chosen, clock):
        """Few aggregates and predicates in a run, so that most of its filters share an index."""
        self.engine = sw.Engine(key="k", epsilon=epsilon, lateness=lateness)
        self.truth = oracle.Engine(key="k", lateness=lateness)
        self.aggregates, self.wheres = aggregates, (None, None, where)
        self.epsilon, self.clock, self.filters, self.plain, self.steps = epsilon, clock, {}, [], 0
        for each in chosen:
            self.register(each)

    # -- queries ------------------------------------------------------------------------------------------------------

    @rule(chosen=FILTERS)
    def register(self, chosen):
        which, where, *rest = chosen
        ours, theirs = both(self.aggregates[which], self.wheres[where], *rest)
        if ours.label not in self.filters:
            self.add(ours, theirs)

    def add(self, ours, theirs):
        self.engine.register([ours, without_index(ours)])
        self.filters[ours.label] = (ours, theirs)

    @rule(query=PLAIN)
    def register_plain(self, query):
        if query.label not in self.plain:
            self.engine.register(query)
            self.plain.append(query.label)

    @precondition(lambda self: self.filters)
    @rule(data=st.data())
    def unregister(self, data):
        self.let_go(data.draw(st.sampled_from(sorted(self.filters))))

    def let_go(self, name):
        ours, theirs = self.filters.pop(name)
        self.engine.unregister(ours.label)
        self.engine.unregister(without_index(ours).label)
        return ours, theirs

    @precondition(lambda self: self.filters)
    @rule(data=st.data(), gap=st.sampled_from([0, 1, 20]))
    def come_back(self, data, gap):
        """What only the filter reached may be gone when it is there again."""
        ours, theirs = self.let_go(data.draw(st.sampled_from(sorted(self.filters))))
        self.advance(gap)
        self.add(ours, theirs)

    @precondition(lambda self: self.plain)
    @rule(data=st.data())
    def unregister_plain(self, data):
        self.engine.unregister(self.plain.pop(data.draw(st.integers(0, len(self.plain) - 1))))

    # -- events -------------------------------------------------------------------------------------------------------

    def events(self, drawn):
        rows = []
        for event in drawn:
            self.clock += event["gap"]
            back = min(event["back"], self.truth.lateness or 0)
            rows.append({"ts": self.clock - back} | {name: event[name] for name in NAMES})
        return rows

    @rule(drawn=st.lists(EVENT, min_size=1, max_size=20))
    def append(self, drawn):
        rows = self.events(drawn)
        assert self.engine.append(pa.Table.from_pylist(rows, SCHEMA)) == self.truth.append(rows)

    @rule(drawn=st.lists(EVENT, min_size=1, max_size=5), which=st.integers(0, 1), rid=st.booleans())
    def append_negative(self, drawn, which, rid):
        """Refused by an index over sums. rid: so filters with one make way, and come back to find what was kept."""
        kind, columns = self.aggregates[which]
        column = columns[0] if kind == "sum" else "x"
        self.register_plain(sw.Query(sw.sum(column), sw.Range(300)))
        gone = [name for name, (_, theirs) in self.filters.items() if rid and theirs.agg.kind == "sum"]
        gone = [self.let_go(name) for name in gone]
        rows = [row | {column: -2.0 if column == "x" else -2} for row in self.events(drawn)]
        table = pa.Table.from_pylist(rows, SCHEMA)
        if any(self.is_refused(theirs, column, row) for _, theirs in self.filters.values() for row in rows):
            before = self.engine.stats()
            with pytest.raises(sw.BadEvents, match="index=False"):
                self.engine.append(table)
            assert without_bytes(self.engine.stats()) == without_bytes(before)
        else:
            assert self.engine.append(table) == self.truth.append(rows)
        for filter in gone:
            self.add(*filter)

    def is_refused(self, theirs, column, row):
        indexed = theirs.agg == oracle.agg("sum", column) and not theirs.window.until and theirs.having[0] != "between"
        return indexed and (theirs.where is None or theirs.where(row))

    @rule(gap=st.sampled_from([0, 1, 20, 60]))
    def advance(self, gap):
        self.clock += gap
        self.engine.advance(self.clock)
        self.truth.advance(self.clock)

    @rule()
    def forget(self):
        self.engine._stream.core.filters.forget()

    @rule(look=st.booleans())
    def save_and_load(self, look):
        """look: so that nothing that was registered or unregistered is still to be followed."""
        with tempfile.TemporaryDirectory() as folder:
            names = list(self.filters) if look else []
            before = [self.engine.lookup(name, exact=False) for name in names]
            self.engine.save(Path(folder) / "snapshot")
            self.engine = sw.Engine.load(Path(folder) / "snapshot")
            assert [self.engine.lookup(name, exact=False) for name in names] == before

    # -- answers ------------------------------------------------------------------------------------------------------

    @invariant()
    def an_index_makes_no_difference(self):
        """Seen at every other step only: a lookup brings an index up to date with what was registered before."""
        self.steps += 1
        if self.steps % 2 and self.truth.taken:
            for ours, _ in self.filters.values():
                self.answer(ours, None)

    @precondition(lambda self: self.filters and self.truth.taken)
    @rule(data=st.data(), later=st.sampled_from([None, None, 0, 5, 70, 10**6, -1, -20]))
    def look_up(self, data, later):
        ours, theirs = self.filters[data.draw(st.sampled_from(sorted(self.filters)))]
        self.check(ours, theirs, None if later is None else int(self.truth.watermark) + later)

    def answer(self, ours, at):
        """With an index, as without; None: there is none."""
        try:
            plain = self.engine.lookup(without_index(ours).label, at=at)
        except (sw.TooFarBack, OverflowError):  # an index may spare the look at a sum that does not fit
            return None
        table = self.engine.lookup(ours.label, at=at)
        assert_identical(table, plain)
        return dict(zip(table["k"].to_pylist(), table["value"].to_pylist(), strict=True))

    def check(self, ours, theirs, at):
        found = self.answer(ours, at)
        if found is None:
            return
        candidates = self.engine.lookup(ours.label, at=at, exact=False)["k"].to_pylist()
        assert set(candidates) >= set(found)
        if self.complete(ours.label, self.truth.watermark if at is None else at):
            self.check_exact(theirs, found, at)
            self.check_relaxed(ours, theirs, candidates, at)

    def complete(self, name, at):
        """Does the engine claim a full answer?"""
        since = self.engine.stats()["complete_since"][name]
        return since is None or at >= since

    def check_exact(self, theirs, found, at):
        expected = self.truth.lookup(theirs, at=at)
        assert sorted(found) == sorted(expected), self.engine.explain()
        for key, value in expected.items():
            window = self.truth.window(theirs, key, at)
            assert oracle.same(value, found[key], oracle.tolerance(theirs.agg, window)), (value, found[key], window)

    @precondition(lambda self: self.filters and self.truth.taken)
    @rule()
    def look_at_all(self):
        for ours, theirs in self.filters.values():
            self.check(ours, theirs, None)

    def check_relaxed(self, ours, theirs, candidates, at):
        """Every key that an index returns satisfies the condition relaxed by epsilon; of floats, units come into it."""
        op, v, *_ = ours.having
        filters, kind = self.engine._stream.core.filters, ours.aggregate.kind
        ends_now = reach(ours.window, self.engine._stream.core.time.clock.unit).near == 0
        if filters.why_not(ours) or kind not in ("count", "sum") or v < 1 or at is not None or not ends_now:
            return
        scale = getattr(filters.entries[filters.key(ours)].index, "scale", 0.0)
        unit, whole = 1 / scale if scale else 0.0, ours.aggregate.columns != ("x",)
        if v > (2.0**50 * unit if unit else 2**50):
            return
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


class ForgetfulFilterMachine(FilterMachine):
    """Keys that come and go, and are numbered anew as soon as half of them have gone."""

    def __init__(self):
        super().__init__()
        self.many, store.MANY_KEYS = store.MANY_KEYS, 2

    def teardown(self):
        store.MANY_KEYS = self.many

    def events(self, drawn):
        return [row | {"k": row["k"] % 3 + 3 * (row["ts"] // 50)} for row in super().events(drawn)]


def without_index(ours):
    return sw.Query(ours.aggregate, ours.window, f"{ours.label}, plain", ours.where, ours.having, index=False)


RUN = settings(
    max_examples=settings().max_examples * 6 // 10, stateful_step_count=25, deadline=None, report_multiple_bugs=False
)
TestFilters = FilterMachine.TestCase
TestFilters.settings = RUN
TestForgetfulFilters = ForgetfulFilterMachine.TestCase
TestForgetfulFilters.settings = RUN


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
