"""Alerts that time alone turns on and off: windows that end in the past, and several windows in one rule.

What was told adds up to `filters()` at every call, however often one asks.
"""

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import swag as sw
from swag.durable.state import part
from tests.examples import share


class Told:
    """An engine, and who passes by what it has told: at every call the same as by `filters()`."""

    def __init__(self, *rules: sw.Query, **options: object) -> None:
        self.engine, self.passing = sw.Engine(key="k", **options), set()
        self.engine.register(rules)

    def ask(self) -> list[tuple[object, ...]]:
        rows = [(row["query"], row["k"], row["ts"], row["passing"]) for row in self.engine.changes().to_pylist()]
        for query, key, _, passes in rows:
            assert ((query, key) in self.passing) is not passes
            self.passing ^= {(query, key)}
        assert self.passing == {(row["query"], row["k"]) for row in self.engine.filters().to_pylist()}
        return rows

    def append(self, *events: tuple[int, int]) -> list[tuple[object, ...]]:
        """(ts, key) of each."""
        ts, k = zip(*events, strict=True)
        self.engine.append({"ts": ts, "k": k, "x": np.array(ts) % 4})
        return self.ask()

    def advance(self, ts: int) -> list[tuple[object, ...]]:
        self.engine.advance(ts)
        return self.ask()

    @property
    def queued(self) -> int:
        return part(self.engine._stream.core.alerts.state(), "watch")[1]["due"].size


@pytest.mark.parametrize("aggregate", [sw.count(), sw.count().coalesce(0)])  # one structure for all rules, or alone
def test_an_event_enters_a_window_that_ends_in_the_past_before_an_older_one_leaves_it(aggregate):
    #   ts     12 . 17 . 28 . 33 ..... 52        (now - 40, now - 5]: 12 is in it from 17 to 51, 28 from 33 on
    told = Told(sw.Query(aggregate, sw.Range(40, until=5), name="q", having=(">=", 2)))
    assert told.append((12, 0)) == told.advance(20) == told.append((28, 0)) == told.advance(32) == []
    assert told.advance(35) == [("q", 0, 33, True)]
    assert told.advance(51) == []
    assert told.advance(54) == [("q", 0, 52, False)]


def counted(t: int, until: int = 0) -> sw.Aggregate:
    return sw.count().over(sw.Range(t, until=until))


@pytest.mark.parametrize("others", [[100], [2, 5, 7, 100, 101]])
def test_an_event_leaves_the_shorter_of_two_windows_before_older_ones_leave_the_longer_one(others):
    told = Told(sw.Query(100 * counted(10) + sum(map(counted, others)), name="both", having=(">=", 100)))
    assert told.append((0, 0)) == [("both", 0, 0, True)]
    assert told.advance(20) == [("both", 0, 10, False)]
    assert told.append((30, 0)) == [("both", 0, 30, True)]
    assert told.advance(39) == []
    assert told.advance(45) == [("both", 0, 40, False)]


edges = st.lists(st.sampled_from([0, 1, 2, 5, 9, 14, 25, 40]), min_size=2, max_size=2, unique=True).map(sorted)
closed = st.sampled_from(["right", "left", "both", "none"])
windows = st.builds(lambda edge, closed: sw.Range(edge[1] + 1, until=edge[0], closed=closed), edges, closed)
having = st.one_of(st.tuples(st.sampled_from([">=", "<="]), st.integers(0, 3)), st.just(("between", 1, 2)))
aggregates = st.sampled_from(
    [sw.count(), sw.count(), sw.sum("x"), sw.max("x"), sw.mean("x"), sw.max("x") - sw.min("x")]
)
simple = st.builds(lambda what, over, having: sw.Query(what, over, having=having), aggregates, windows, having)
of_several = st.builds(
    lambda over, having: sw.Query(sum(sw.count().over(each) * (-1) ** i for i, each in enumerate(over)), having=having),
    st.lists(windows, min_size=2, max_size=5), having,
)  # fmt: skip
orders = st.sampled_from([{}, {}, {"lateness": 4}, {"lateness": 4, "hold": False}])
steps = st.lists(
    st.one_of(
        st.lists(st.tuples(st.sampled_from([0, 0, 1, 3]), st.integers(0, 2)), min_size=1, max_size=3),
        st.sampled_from([1, 1, 2, 3, 8, 30]),
    ),
    min_size=5, max_size=40,
)  # fmt: skip


@settings(max_examples=share(150))
@given(rules=st.lists(st.one_of(simple, of_several), min_size=1, max_size=4), order=orders, steps=steps)
def test_what_was_told_is_what_filters_gives_at_every_moment(rules, order, steps):
    told = Told(*(replace(rule, name=f"rule {i}") for i, rule in enumerate(rules)), **order)
    now = 0
    for step in steps:
        if isinstance(step, int):
            now += step
            told.advance(now)
        else:
            ts = np.sort([now - back * ("lateness" in order) for back, _ in step])
            told.append(*zip(ts.tolist(), (key for _, key in step), strict=True))


@pytest.mark.parametrize(
    ("what", "most"),
    [
        (counted(40, 5), 2),
        (counted(10) - counted(40) + counted(99, 60), 4),
        (sum(map(counted, (2, 5, 9, 20, 40, 50))), 3 + 4 * 50),  # those of 20, 40, 50 share a side
    ],
)
def test_a_pair_is_in_the_queue_once_for_each_edge_and_not_once_for_each_event(what, most):
    told = Told(sw.Query(what, name="q", having=(">=", 2)), sw.Query(sw.count(), sw.Range(9), "r", having=(">", 99)))
    for ts in range(300):  # two events of each key in two units of time
        told.append((ts, ts % 2), (ts, ts % 2))
        assert told.queued <= 2 * most


def test_a_key_whose_events_pass_no_edge_is_not_looked_at(monkeypatch):
    told = Told(sw.Query(sw.count(), sw.Range(50, until=20), name="q", having=(">=", 2)))
    told.append(*((0, key) for key in range(100)), *((0, key) for key in range(100)))
    lookups, asked = told.engine._stream.core.grouping.lookups, []
    numbers = lookups.numbers
    monkeypatch.setattr(lookups, "numbers", lambda query, ids, edges: asked.append(ids) or numbers(query, ids, edges))
    told.engine.append({"ts": [1, 1], "k": [3, 3], "x": [0, 0]})
    for ts in range(1, 20):
        told.engine.advance(ts)
        assert told.engine.changes().num_rows == 0
    assert set(np.concatenate(asked)) == {3}
    told.engine.advance(20)
    assert told.engine.changes().num_rows == 100
