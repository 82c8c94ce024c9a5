"""Thresholds of one column (`x > c`, for many c) share sorted rows, or have rows of their own: the same answers."""

import operator
from collections.abc import Iterator
from contextlib import contextmanager

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis.stateful import initialize, precondition, rule

import swag as sw
from swag.live import planner
from swag.live.filtered import thresholds
from tests import oracle
from tests.examples import share
from tests.test_engine_stateful import (
    EXPRESSIONS,
    KINDS,
    QUERIES,
    WHERE,
    WINDOWS,
    EngineMachine,
    ForgetfulMachine,
    computed,
    plain,
)

OPERATORS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
CONSTANTS = ["0", "1", "-1", "0.5", "2.5", "-0.1", "1e9", "-1e18", "1e300", "1e400", f"{2**40}", f"{-(2**63)}"]
SHARING = [kind for kind in KINDS if kind[0] in ("count", "sum", "mean", "min", "max", "wmean", "count_if", "any")]


def compared(column: str, op: str, constant: str) -> str:
    """The predicate, which the oracle knows from then on."""
    text, number = f"{column} {op} {constant}", int(constant) if constant.lstrip("-").isdigit() else float(constant)
    WHERE[text] = lambda e: None if e[column] is None else OPERATORS[op](e[column], number)
    return text


WHERES = st.builds(
    compared, st.sampled_from(["x", "x", "i", "y"]), st.sampled_from([*OPERATORS]), st.sampled_from(CONSTANTS)
)
HAVING = st.none() | st.tuples(st.sampled_from([">", "<="]), st.sampled_from([0, 1, 2.5]))
THRESHOLDS = st.builds(
    lambda k, w, c, h: plain(*k, w, c, None if k[0] == "any" else h, k[0] != "sum"),
    st.sampled_from(SHARING),
    WINDOWS,
    WHERES,
    HAVING,
)
OTHERS = st.builds(lambda k, w, c: plain(*k, w, c), st.sampled_from(KINDS), WINDOWS, WHERES)
COMPUTED = st.builds(computed, st.sampled_from(EXPRESSIONS), WINDOWS, WHERES)
MIXED = st.one_of(THRESHOLDS, THRESHOLDS, THRESHOLDS, OTHERS, COMPUTED, QUERIES)


class ThresholdMachine(EngineMachine):
    """Thresholds that share from the first on, from the third on, or never; late rows in their place, too."""

    def __init__(self):
        super().__init__()
        self.before = thresholds.MANY_THRESHOLDS, planner.RECONSIDER

    def teardown(self):
        super().teardown()
        thresholds.MANY_THRESHOLDS, planner.RECONSIDER = self.before

    @initialize(
        keyed=st.booleans(),
        late=st.sampled_from([(None, True), (None, True), (3, True), (3, False), (20, False)]),
        many=st.sampled_from([1, 1, 1, 3, 10**9]),
        reconsider=st.sampled_from([planner.RECONSIDER, 40]),
        queries=st.lists(MIXED, max_size=8),
    )
    def start(self, keyed, late, many, reconsider, queries):
        (lateness, hold), thresholds.MANY_THRESHOLDS, planner.RECONSIDER = late, many, reconsider
        self.key = "k" if keyed else None
        self.engine = sw.Engine(key=self.key, lateness=lateness, hold=hold)
        self.truth = oracle.Engine(key=self.key, lateness=lateness, hold=hold)
        self.clock, self.registered = 0, {}
        for query in queries:
            self.register(query)

    @rule(query=MIXED)
    def register(self, query):
        EngineMachine.register(self, query)

    @precondition(lambda self: self.registered and self.key and self.truth.taken)
    @rule()
    def look_up_features(self):
        shown = [name for name in self.registered if name not in self.filters]
        table = self.engine.features({"k": list(self.keys)}, queries=shown) if shown else pa.table({})
        for row in table.to_pylist():
            for name in shown:
                self.check(name, row[name], row["k"], self.truth.watermark)


class ForgetfulThresholds(ThresholdMachine, ForgetfulMachine):
    """Many keys that come and go."""


TestThresholds, TestForgetfulThresholds = ThresholdMachine.TestCase, ForgetfulThresholds.TestCase
TestThresholds.settings = TestForgetfulThresholds.settings = settings(
    max_examples=share(30), stateful_step_count=25, deadline=None, report_multiple_bugs=False
)


# -- one by one -------------------------------------------------------------------------------------------------------


@contextmanager
def sharing(many: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thresholds, "MANY_THRESHOLDS", many)
        yield


def both(queries: list[sw.Query], batches: list[pa.Table], **options: object) -> list[sw.Engine]:
    """An engine whose thresholds share, and one whose thresholds do not."""
    engines = []
    for many in (1, 10**9):
        engine = sw.Engine(**options)
        with sharing(many):
            engine.register(queries)
            for batch in batches:
                engine.append(batch)
        engines.append(engine)
    return engines


def asked(count: int, aggregate: object, column: str = "p", **options: object) -> list[sw.Query]:
    wheres = [f"{column} {'><'[i % 2]}{'='[: i // 2 % 2]} {i - count // 2}" for i in range(count)]
    return [sw.Query(aggregate, sw.Rows(40), f"q{i}", where=w, **options) for i, w in enumerate(wheres)]


def rows(count: int, start: int = 0, **columns: object) -> pa.Table:
    rng = np.random.default_rng(start)
    known = {"ts": np.arange(count) + start, "p": rng.integers(-9, 9, count), "v": rng.integers(0, 99, count)}
    return pa.table(known | columns)


def test_an_event_is_sorted_in_once_and_explain_says_why():
    engine = sw.Engine()
    many = [sw.Query(sw.sum("v"), sw.Rows(90), f"q{i}", where=f"p > {i}") for i in range(thresholds.MANY_THRESHOLDS)]
    few = [sw.Query(sw.sum("v"), sw.Rows(90), f"few{i}", where=f"p < {i}") for i in range(3)]
    engine.register([*many, *few, sw.Query(sw.count(), sw.Rows(9), "odd", where="p % 2 = 1")])
    engine.append(rows(100, p=np.full(100, 1000)))
    said = str(engine.explain())
    assert f"sum(v) where p > c over every event: q0, q1, q2, q3, … ({thresholds.MANY_THRESHOLDS} queries)" in said
    assert "because: thresholds: an event is sorted in once, whatever their number" in said
    assert f"3 thresholds of p among them share no structure: fewer than {thresholds.MANY_THRESHOLDS}" in said
    assert engine.stats()["updates"] == 100


def test_a_column_that_becomes_of_another_type_is_compared_as_before():
    """Whole numbers, then what can not be sorted among them: thresholds get rows of their own, with what was kept."""
    others = [rows(30, 100), rows(30, 200, p=np.linspace(-9, 9, 30)), rows(30, 300, p=np.arange(30, dtype=np.uint64))]
    queries = [*asked(30, sw.sum("v")), sw.Query(sw.sum("v"), sw.Rows(40), "also", where="p > 1 OR p < -5")]
    for n in range(1, 4):
        engines = both(queries, [rows(50), *others[:n]])
        assert engines[0].lookup_all().equals(engines[1].lookup_all())


def test_whole_numbers_are_sorted_among_floats_as_long_as_floats_hold_them():
    small, large = rows(30, 100), rows(30, 200, p=np.full(30, 2**53 + 1))
    queries = [*asked(30, sw.count()), sw.Query(sw.count(), sw.Rows(40), "edge", where=f"p > {2**53}")]
    for batches in ([small], [large]):
        engines = both(queries, [rows(50, p=np.linspace(-9, 9, 50)), *batches])
        assert engines[0].lookup_all().equals(engines[1].lookup_all())
        shares = "where p > c" in str(engines[0].explain())
        assert shares == (batches == [small])


def test_a_sum_of_whole_numbers_raises_where_its_own_rows_do_not_fit():
    events = pa.table({"ts": [1, 2, 3, 4], "p": [1, 2, 3, 4], "v": [2**62, 2**62, 2**62, -(2**62)]})
    wheres = {"first": "p < 2", "two": "p > 2", "three": "p <= 3"}
    sums = [sw.Query(sw.sum("v"), sw.Rows(9), name, where=where) for name, where in wheres.items()]
    mean = sw.Query(sw.mean("v"), sw.Rows(9), "mean", where="p < 4")
    for engine in both([*sums, mean], [events]):
        assert (engine.lookup("first"), engine.lookup("two")) == (2**62, 0)
        assert engine.lookup("mean") == 2.0**62
        with pytest.raises(OverflowError, match="does not fit int64"):
            engine.lookup("three")


def test_changes_are_the_same():
    queries = asked(20, sw.sum("v"), having=(">", 500), index=False)
    engines = both(queries, [rows(1, k=["a"])], key="k")
    for start in (10, 60, 110):
        batch = rows(50, start, k=[*"abcde"] * 10)
        found = []
        for engine in engines:
            engine.append(batch)
            found.append(engine.changes())
        assert found[0].equals(found[1]) and found[0].num_rows


def test_thresholds_registered_midway_start_from_what_is_kept():
    """Of the column that is compared, or of what rows are sorted by."""
    for first in (sw.Query(sw.sum("p"), sw.Rows(40), "all"), *asked(1, sw.count())):
        with sharing(1):
            engine = sw.Engine()
            engine.register([first, sw.Query(sw.sum("v"), sw.Rows(40), "volume")])
            engine.append(rows(100))
            engine.register([sw.Query(sw.sum("v"), sw.Rows(40), "late", where="p > 0")])
        kept = rows(100).slice(60).to_pylist()
        assert engine.lookup("late") == sum(row["v"] for row in kept if row["p"] > 0)
        assert engine.stats()["complete_since"]["late"] is None or engine.stats()["complete_since"]["late"] <= 99


def test_where_lookups_outweigh_rows_thresholds_get_rows_of_their_own():
    queries = [sw.Query(sw.sum("v"), sw.Rows(40), f"q{i}", where=f"p > {i + 4}") for i in range(20)]
    engines = both(queries, [rows(100)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "RECONSIDER", 1000)
        for start in range(100, 400, 4):
            found = []
            for engine in engines:
                engine.append(rows(4, start))
                found.append(engine.lookup_all())
            assert found[0].equals(found[1])
    said = str(engines[0].explain())
    assert "where p > c" not in said and "thresholds: rows of their own pay" in said


def test_an_index_that_was_made_before_events_came_is_not_asked_for_what_shares():
    queries = [sw.Query(sw.sum("v"), sw.Range(9), f"q{i}", where=f"p > {i}", having=(">", 3)) for i in range(2)]
    with sharing(1):
        engine = sw.Engine(key="k")
        engine.register(queries)
        engine.explain()
        engine.append(rows(4, k=[*"abab"], p=[0, 1, 2, 3], v=[1, 1, 9, 1]))
    assert engine.lookup("q1").to_pylist() == [{"k": "a", "value": 9}]
