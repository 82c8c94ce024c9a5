"""The oracle itself, on examples worked by hand. [ ] is a closed edge of a window, ( ) an open one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import oracle
from tests.oracle import Agg, BadBatch, Engine, Event, Q, Range, Rows, agg, evaluate, same, tolerance

NAN, INF = math.nan, math.inf
COUNT, SUM = agg("count"), agg("sum", "x")
LIST = Agg("user", ("x",), lift=lambda x: [x], combine=lambda a, b: a + b, lower=lambda s: s, identity=[])


def stream(*points: tuple[Any, ...]) -> list[Event]:
    """Events from (ts, x) or (ts, x, k)."""
    return [dict(zip(("ts", "x", "k"), p, strict=False)) for p in points]


def column(a: Agg, xs: list[Any], ys: list[Any] | None = None) -> Any:
    """The aggregate of one window."""
    return oracle.aggregate(a, [{"x": x, "y": y} for x, y in zip(xs, ys or xs, strict=True)])


def at(*times: int) -> list[Event]:
    return [{"ts": t} for t in times]


# --- Windows ---------------------------------------------------------------------------------------------


def test_rows_with_until_is_a_window_in_the_past() -> None:
    """
    positions   1   2   3   4   5
    x           1   2   4   8  16
    j = 2      [.] ^                   Rows(3, until=1): positions max(j-2, 1) .. j-1
    j = 4          [.   .] ^
    j = 5              [.   .] ^
    """
    events = stream((1, 1), (2, 2), (3, 4), (4, 8), (5, 16))
    assert evaluate([Q(LIST, Rows(3, until=1))], events) == [[None], [[1]], [[1, 2]], [[2, 4]], [[4, 8]]]
    assert evaluate([Q(LIST, Rows(2))], events, at=at(0, 3, 99)) == [[None], [[2, 4]], [[8, 16]]]


@pytest.mark.parametrize(
    ("closed", "expected"), [("right", [4, 6]), ("left", [2, 4]), ("both", [2, 4, 6]), ("none", [4])]
)
def test_closed_picks_the_edges_of_a_range(closed: str, expected: list[int]) -> None:
    """
    ts       2   4   6   8
    event    *   *   *   *
    right    (-------]   now         Range(6, until=2) at now = 8: from 2 to 6
    left     [-------)
    both     [-------]
    none     (-------)
    """
    events = stream((2, 2), (4, 4), (6, 6), (8, 8))
    assert evaluate([Q(LIST, Range(6, 2, closed))], events, at=at(8)) == [[expected]]
    assert evaluate([Q(LIST, Range(6, 2, closed))], events)[3] == [expected]


def test_an_event_sees_no_later_event_of_its_ts_but_a_request_sees_all() -> None:
    """
    ts       1   5   5   5   7
    x        a   b   c   d   e
    at b     [---]                   the sequence model
    at c     [-------]
    at 5     [-----------]           the request
    """
    events = stream((1, "a"), (5, "b"), (5, "c"), (5, "d"), (7, "e"))
    per_event = evaluate([Q(LIST, Range(10)), Q(LIST, Range(10, closed="left"))], events)
    assert per_event[1] == [["a", "b"], ["a"]]
    assert per_event[2] == [["a", "b", "c"], ["a"]]
    assert evaluate([Q(LIST, Range(10))], events, at=at(5)) == [[["a", "b", "c", "d"]]]


def test_time_passes_without_events_until_the_window_is_empty() -> None:
    """
    ts    1  2  3  4  5  6  7
          *  *
    at 4  (--------]                 Range(3): (1, 4]
    at 5     (--------]              (2, 5]: empty, count 0 and null
    """
    queries = [Q(COUNT, Range(3)), Q(SUM, Range(3)), Q(SUM, Rows(1))]
    assert evaluate(queries, stream((1, 10), (2, 20)), at=at(4, 5)) == [[1, 20, 20], [0, None, 20]]


def test_stored_events_in_any_order_are_sorted_stably_and_answered_in_input_order() -> None:
    """Arrival 5:a 1:b 5:c 3:d; in order b d a c."""
    events = stream((5, "a"), (1, "b"), (5, "c"), (3, "d"))
    assert evaluate([Q(LIST, Rows(2))], events) == [[["d", "a"]], [["b"]], [["a", "c"]], [["b", "d"]]]


def test_windows_of_a_keyed_stream_are_of_the_substream() -> None:
    """
    ts   1  2  3  4
    u    1     4
    v       2     8                  an unknown key w sees an empty window
    """
    events = stream((1, 1, "u"), (2, 2, "v"), (3, 4, "u"), (4, 8, "v"))
    queries = [Q(SUM, Rows(2)), Q(COUNT, Range(2))]
    assert evaluate(queries, events, key="k") == [[1, 1], [2, 1], [5, 1], [10, 1]]
    requests = [{"ts": 3, "k": k} for k in "uvw"]
    assert evaluate(queries, events, at=requests, key="k") == [[5, 1], [2, 1], [None, 0]]


def test_where_is_applied_after_the_window() -> None:
    """x   1  2  3  4: the even ones among the last three rows, not the last three even ones."""
    even = Q(LIST, Rows(3), where=lambda e: None if e["x"] is None else e["x"] % 2 == 0)
    assert evaluate([even], stream((1, 2), (2, 2), (3, 3), (4, 4), (5, None))) == [
        [[2]], [[2, 2]], [[2, 2]], [[2, 4]], [[4]]
    ]  # fmt: skip


# --- Aggregates ------------------------------------------------------------------------------------------


def test_nulls_are_skipped_and_first_and_last_go_by_position() -> None:
    """x   .  7  5  9  ."""
    xs = [None, 7, 5, 9, None]
    kinds = ("count", "sum", "mean", "min", "max", "first", "last", "median")
    assert [column(agg(kind, "x"), xs) for kind in kinds] == [3, 21, 7.0, 5, 9, 7, 9, 7.0]
    assert column(COUNT, xs) == 5
    assert [column(agg(kind, "x"), [None]) for kind in kinds] == [0] + [None] * 7


def test_nan_rules_while_it_is_in_the_window_and_leaves_no_residue() -> None:
    """
    x    1   2  NaN  3   4
            [-------]                NaN
                    [----]           3, 4: as if it had never been
    """
    queries = [Q(agg(k, "x"), Rows(2)) for k in ("sum", "mean", "min", "max", "var", "median")]
    rows = evaluate(queries, stream((1, 1.0), (2, 2.0), (3, NAN), (4, 3.0), (5, 4.0)))
    assert all(math.isnan(v) for v in rows[2] + rows[3])
    assert rows[4] == [7.0, 3.5, 3.0, 4.0, 0.5, 3.5]


def test_infinities_are_values() -> None:
    assert column(SUM, [1.0, INF]) == INF
    assert math.isnan(column(SUM, [INF, -INF]))
    assert column(agg("min", "x"), [1.0, -INF]) == -INF
    assert math.isnan(column(agg("std", "x"), [1.0, INF, 2.0]))
    assert column(agg("median", "x"), [1.0, 2.0, INF]) == 2.0
    assert column(SUM, [1e308, 1e308]) == INF
    assert column(SUM, [1e308, 1e308, -1e308]) == 1e308


def test_integer_sums_are_exact_and_overflow_is_an_error() -> None:
    assert column(SUM, [2**62, 2**62, -1]) == 2**63 - 1
    assert column(agg("mean", "x"), [2**62, 2**62]) == 2.0**62
    with pytest.raises(OverflowError):
        column(SUM, [2**62, 2**62])


def test_floor_quantile_positions() -> None:
    """
    sorted    10 20 30 40 50         N = 5
    position   1  2  3  4  5
    phi .1 -> max(1, floor .5) = 1   .4 -> 2   .59 -> 2   .6 -> 3   1 -> 5
    """
    xs = [30, 50, 10, 20, 40]
    positions = {0.1: 10, 0.4: 20, 0.59: 20, 0.6: 30, 1.0: 50}
    assert {phi: column(agg("quantile", "x", phi=phi), xs) for phi in positions} == positions
    assert column(agg("quantile", "x", phi=0.6, method="linear"), xs) == pytest.approx(34)
    assert column(agg("median", "x"), [1, 2]) == 1.5


def test_moments_of_two_columns_use_the_rows_where_both_are_there() -> None:
    """(1, 2) (2, 4) (3, 6), and two rows that do not count: y = 2x."""
    xs, ys = [1, 2, None, 3, 9], [2, 4, 5, 6, None]
    assert column(agg("cov", "x", "y"), xs, ys) == 2.0
    assert column(agg("cov", "x", "y", ddof=0), xs, ys) == 4 / 3
    assert column(agg("corr", "x", "y"), xs, ys) == 1.0
    assert column(agg("wmean", "x", "y"), xs, ys) == 28 / 12
    assert math.isnan(column(agg("wmean", "x", "y"), [5, 5], [1, -1]))
    assert math.isnan(column(agg("corr", "x", "y"), [1, 2], [7, 7]))
    assert math.isnan(column(agg("corr", "x", "y"), [1], [7]))
    assert column(agg("var", "x"), [3.0]) is None
    assert column(agg("var", "x", ddof=0), [3.0]) == 0.0
    assert column(agg("std", "x"), [1e9, 1e9 + 1, 1e9 + 2]) == 1.0


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.floats(0, 1, exclude_min=True))
def test_linear_quantiles_are_numpys(xs: list[float], phi: float) -> None:
    a, window = agg("quantile", "x", phi=phi, method="linear"), [{"x": x} for x in xs]
    assert same(oracle.aggregate(a, window), np.quantile(xs, phi), tolerance(a, window))


# --- The engine ------------------------------------------------------------------------------------------


def test_a_batch_out_of_order_changes_nothing() -> None:
    """Order is per key; a promise by `advance` holds for all keys."""
    engine = Engine(key="k")
    engine.append(stream((5, 1, "u"), (3, 2, "v")))
    with pytest.raises(BadBatch, match="event 1 has ts 4, after ts 5"):
        engine.append(stream((9, 4, "v"), (4, 8, "u")))
    assert (engine.now, engine.lookup(Q(LIST, Range(9)))) == (5, {"u": [1], "v": [2]})
    engine.advance(7)
    with pytest.raises(BadBatch, match="after ts 7"):
        engine.append(stream((6, 1, "w")))
    with pytest.raises(BadBatch, match="null"):
        engine.append(stream((8, 1, None)))
    assert engine.append(stream((7, 1, "w"))) == 1


def test_late_events_are_counted_and_dropped() -> None:
    """
    lateness 3     ts  1  2  3  4  5  6  7
    arrive 1, 4        A        h               now - L = 1: 1 is applied, 4 is held
    arrive 2           A  h     h               nothing newer is applied: not late
    arrive 6           A  A     h     h         now - L = 3: 2 is applied
    arrive 1           A  A     h     h         older than 2: late
    arrive 2           A  AA    h     h         as old as the newest applied: not late
    arrive 3           A  AA A  h     h
    advance 7          A  AA A  A     h
    """
    engine, q = Engine(lateness=3), Q(LIST, Rows(10))
    assert engine.append(stream((1, "a"), (4, "d"), (2, "b"), (6, "f"))) == 4
    assert engine.lookup(q) == ["a", "b"]
    assert engine.append(stream((1, "late"), (2, "c"), (3, "e"))) == 2
    assert (engine.late, engine.now, engine.lookup(q)) == (1, 6, ["a", "b", "c", "e"])
    engine.advance(7)
    assert engine.lookup(q) == ["a", "b", "c", "e", "d"]
    assert engine.lookup(q, at=2) == ["a", "b", "c"]


def test_lateness_is_judged_by_the_events_own_key() -> None:
    """now - L = 9: u has 5 applied and v nothing, so a v of ts 2 is old but not late."""
    engine = Engine(key="k", lateness=1)
    engine.append(stream((5, 1, "u"), (10, 2, "u"), (2, 3, "v"), (2, 4, "u")))
    assert engine.late == 1
    assert engine.lookup(Q(LIST, Rows(9))) == {"u": [1], "v": [3]}


EVENTS = st.lists(st.tuples(st.integers(0, 20), st.integers(), st.sampled_from("uv")), max_size=15)


@given(EVENTS, st.data(), st.integers(0, 8), st.sampled_from([None, "k"]))
def test_cutting_a_stream_into_batches_changes_nothing(
    points: list[tuple[Any, ...]], data: st.DataObject, lateness: int, key: str | None
) -> None:
    whole, cut, events = Engine(key, lateness), Engine(key, lateness), stream(*points)
    middle = data.draw(st.integers(0, len(events)))
    whole.append(events)
    cut.append(events[:middle])
    cut.append(events[middle:])
    assert (whole.taken, whole.late, whole.now) == (cut.taken, cut.late, cut.now)


@given(EVENTS, st.integers(0, 25))
def test_the_engine_answers_as_a_request_over_stored_events(points: list[tuple[Any, ...]], now: int) -> None:
    engine, events, q = Engine(key="k"), oracle.in_order(stream(*points)), Q(LIST, Range(7, until=2))
    engine.append(events)
    requests = [{"ts": now, "k": k} for k in "uv"]
    assert evaluate([q], events, at=requests, key="k") == [[engine.lookup(q, k, at=now)] for k in "uv"]


def test_having_keeps_the_keys_with_an_event_whose_answer_satisfies_it() -> None:
    """
    ts   1  2  3  4  5
    u          1     2               Range(3) at 5: (2, 5]
    v       5                        empty: in no relation, even for count < 5
    w         NaN                    satisfies no condition
    n           null                 count("x") is 0, and there is an event
    """
    engine = Engine(key="k")
    engine.append(stream((3, 1.0, "u"), (5, 2.0, "u"), (2, 5.0, "v"), (3, NAN, "w"), (4, None, "n")))
    few, large = Q(COUNT, Range(3), having=("<", 5)), Q(SUM, Range(3), having=("between", 3, 4))
    assert engine.lookup(few) == {"u": 2, "w": 1, "n": 1}
    assert engine.lookup(large) == {"u": 3.0}
    assert engine.lookup(Q(agg("count", "x"), Range(3), having=("<", 1))) == {"n": 0}
    assert engine.lookup(large, key="w") is None
    everything = engine.lookup_all([Q(COUNT, Range(3)), Q(SUM, Rows(1)), few], at=6)
    assert math.isnan(everything.pop("w")[1])
    assert everything == {"u": [1, 2.0], "v": [0, 5.0], "n": [1, None]}


def test_having_that_does_not_hold_is_null_in_evaluate() -> None:
    q = Q(SUM, Rows(2), having=(">=", 3))
    assert evaluate([q], stream((1, 1), (2, 2), (3, 0))) == [[None], [3], [None]]


# --- Comparison ------------------------------------------------------------------------------------------


def test_same_is_exact_but_for_the_allowed_error() -> None:
    assert same(None, None) and not same(None, 0) and not same(0, None)
    assert same(3, np.int64(3)) and not same(3, 3.0) and not same(3, 4)
    assert same(NAN, NAN) and not same(NAN, 1.0) and not same(1.0, NAN)
    assert same(INF, INF) and not same(INF, 1e308, 1.0) and not same(1.0, INF, 1.0)
    assert same("a", "a") and not same("a", "b")
    window = [{"x": x} for x in (1e6, -1e6, 1.0)]
    assert same(1.0, 1.0 + 1e-7, tolerance(SUM, window)) and not same(1.0, 1.0 + 1e-5, tolerance(SUM, window))
    assert tolerance(SUM, [{"x": 1}]) == tolerance(agg("max", "x"), window) == 0


def test_mismatches_names_the_wrong_row() -> None:
    events, queries = stream((1, 1), (2, 2)), [Q(SUM, Rows(2))]
    assert oracle.mismatches([[1], [3]], queries, events) == []
    (wrong,) = oracle.mismatches([[1], [4]], queries, events)
    assert wrong.startswith("row 1") and "expected 3, got 4" in wrong
