"""Rows that wait: whatever comes and goes, they leave in order of time, and those that stay are as they came."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swag as sw
from swag.tables.waiting import MANY_PARTS, Arrived, TimedRows, Waiting

TIMES = st.lists(st.integers(0, 20), max_size=6)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.one_of(TIMES, TIMES.map(sorted))),
        st.tuples(st.just("due"), st.integers(-1, 21)),
        st.tuples(st.just("leave"), st.integers(-1, 21)),
        st.tuples(st.just("drop"), st.integers(0, 5)),
        st.tuples(st.just("table"), st.none()),
        st.tuples(st.just("saved"), st.none()),
    ),
    max_size=30,
)


def told(rows: TimedRows | None) -> list[tuple[int, int, int]]:
    if rows is None or not rows.ts.size:
        return []
    return list(zip(rows.ts.tolist(), rows.ids.tolist(), rows.table["x"].to_pylist(), strict=True))


@given(steps=STEPS)
def test_rows_leave_in_order_of_time_and_stay_in_order_of_arrival(steps: list[tuple[str, Any]]) -> None:
    waiting, model, number = Waiting(), [], 0
    for what, given_ in steps:
        if what == "add":
            ts = np.array(given_, np.int64)
            x = np.arange(number, number + ts.size)
            waiting.add(pa.table({"x": x}), ts, x % 3)
            model += list(zip(ts.tolist(), (x % 3).tolist(), x.tolist(), strict=True))
            number += ts.size
        elif what in ("due", "leave"):
            due = sorted((row for row in model if row[0] <= given_), key=lambda row: row[0])
            ids = waiting.ids_due(given_)
            assert sorted({row[1] for row in due}) == ([] if ids is None else ids.tolist())
            assert told(waiting.due(given_) if what == "due" else waiting.leave(given_)) == due
            model = model if what == "due" else [row for row in model if row[0] > given_]
        elif what == "drop":
            gone, model = model[:given_], model[given_:]
            assert waiting.drop(len(gone)) == (gone[-1][0] if gone else 0)
        elif what == "table":
            assert told(waiting.rows) == model
        else:
            saved, waiting = waiting.state(), Waiting()
            waiting.restore(saved)
        assert waiting.count == len(model)
        assert waiting.first == min((row[0] for row in model), default=None)
    assert told(waiting.rows) == model


def test_of_many_small_parts_few_are_made_and_large_ones_stay() -> None:
    waiting, large = Waiting(), np.arange(10**6)
    waiting.add(pa.table({"x": large}), large)
    for i in range(20 * MANY_PARTS):
        waiting.add(pa.table({"x": [i]}), np.array([10**6 + i]))
    due = waiting.due(10**6 - 1)
    assert due is not None and np.shares_memory(due.ts, large)  # it was not copied along with the small ones
    assert waiting.rows.ts.tolist() == list(range(10**6 + 20 * MANY_PARTS))


def test_rows_that_left_are_not_kept_in_memory() -> None:
    waiting, ts = Waiting(), np.arange(1000)
    waiting.add(pa.table({"x": ts}), ts)
    waiting.leave(100)
    assert np.shares_memory(waiting.rows.ts, ts)  # to copy the rest each time would cost its square
    waiting.leave(600)
    assert not np.shares_memory(waiting.rows.ts, ts)
    assert waiting.rows.table["x"].to_pylist() == list(range(601, 1000))


def test_rows_without_keys() -> None:
    waiting = Waiting()
    for ts in ([3, 1], [2]):
        waiting.add(pa.table({"x": ts}), np.array(ts))
    due = waiting.due(2)
    assert due is not None and due.ts.tolist() == [1, 2] == due.table["x"].to_pylist() and due.ids.size == 0
    assert waiting.ids_due(2).tolist() == [] and waiting.ids_due(0) is None
    assert waiting.leave(None) is None and waiting.count == 3


@pytest.mark.parametrize(("narrow", "expected"), [(True, {"b": [None, 2]}), (False, {"a": [1, None], "b": [None, 2]})])
def test_columns_that_only_some_rows_have(narrow: bool, expected: dict[str, list]) -> None:
    waiting, one = Waiting(), np.array([1])
    waiting.add(pa.table({"a": [1]}), one, one)
    waiting.add(pa.table({"b": [2]}), one, one, narrow=narrow)
    assert waiting.rows.table.to_pydict() == expected


def test_types_that_do_not_go_together_are_refused_and_change_nothing() -> None:
    waiting, one = Waiting(), np.array([1])
    waiting.add(pa.table({"a": [1], "b": [1]}), one, one)
    with pytest.raises(sw.BadType, match="but is int64 in events that wait"):
        waiting.add(pa.table({"a": ["text"]}), one, one, narrow=True)
    assert waiting.rows.table.to_pydict() == {"a": [1], "b": [1]}


def test_states_of_earlier_versions_and_damaged_ones() -> None:
    waiting, one = Waiting(), np.array([5])
    waiting.add(pa.table({"a": [1]}), one, one)
    header, arrays = waiting.state()
    other = Waiting()
    other.restore(({}, {"table": arrays["table"], "instants": one, "ids": one}))
    assert other.rows.ts.tolist() == [5]
    other.restore(({}, {"ts": one[:0], "ids": one[:0]}))  # of an engine where nothing waits
    assert other.count == 0
    with pytest.raises(ValueError, match="1 rows wait"):
        other.restore((header, arrays | {"ts": np.array([5, 6])}))


def test_a_part_says_of_how_many_rows_the_memory_is() -> None:
    ts = np.arange(10)
    part = Arrived(TimedRows(pa.table({"x": ts}), ts, ts), 0, 10)
    assert (part.only(np.arange(3, 10)).behind, part.only(np.arange(6, 10)).behind) == (10, 4)
    assert part.only(np.array([3, 8, 9])).behind == 3


def test_words_wait_beside_words_in_a_dictionary():
    plain, coded = pa.array(["a", None]), pa.array(["b", "a"]).dictionary_encode()
    for batches in ([plain, coded], [coded, plain], [coded, plain, coded]):
        engine = sw.Engine(lateness=100)
        engine.register(sw.Query(sw.last("s"), sw.Rows(9), "q"))
        for i, words in enumerate(batches):
            engine.append(pa.table({"ts": [2 * i, 2 * i + 1], "s": words}))
        engine.advance(1000)
        assert engine.lookup("q") == [w for words in batches for w in words.to_pylist() if w is not None][-1]
