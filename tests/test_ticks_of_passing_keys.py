"""Keys come and go: tickers say which they have still to do with, and follow when the others are forgotten."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swag as sw
from swag.live import store
from swag.tables.waiting import Waiting
from swag.ticks.lookback import Recency
from swag.ticks.schedule import NEVER, Counters
from swag.ticks.ticker import Ticker

KEYS = 6
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, KEYS - 1)), max_size=30)


def recency(rows: list[tuple[int, int]]) -> Recency:
    made = Recency()
    made.grow(KEYS)
    made.note(*timed(rows, 0))
    return made


def timed(rows: list[tuple[int, int]], start: int) -> tuple[np.ndarray, np.ndarray]:
    gaps, ids = np.array(rows, np.int64).reshape(-1, 2).T
    return start + np.cumsum(gaps), np.ascontiguousarray(ids)


def reported(made: Recency, ts: np.ndarray, ids: np.ndarray, since: int) -> set[tuple[int, int]]:
    """Key and rows of a tick after these."""
    _, keys, rows = made.reported(ts, ids, np.array([ts.size]), np.array([since]))
    return set(zip(keys.tolist(), rows.tolist(), strict=True))


@given(ROWS, ROWS, st.sets(st.integers(0, KEYS - 1)), st.integers(-1, 60))
def test_recent_keys_under_new_numbers(before: Any, after: Any, keys: set[int], since: int) -> None:
    kept = np.array(sorted(keys), np.int64)
    new = {old: i for i, old in enumerate(kept.tolist())}
    one, other = recency(before), recency([])
    other.note(*(each[np.isin(timed(before, 0)[1], kept)] for each in timed(before, 0)))
    one.renumber(kept)
    ts, ids = timed([row for row in after if row[1] in new], 100)
    renamed = np.array([new[old] for old in ids.tolist()], np.int64)
    one.grow(kept.size)
    expected = {(new[key], rows) for key, rows in reported(other, ts, ids, since)}
    assert reported(one, ts, renamed, since) == expected


def test_counters_and_rows_that_wait_under_new_numbers():
    counters = Counters()
    counters.grow(2, np.array([5, 7]))
    counters.renumber(np.array([1, 3]))  # more keys than have been counted
    assert [each.tolist() for each in counters.state()[1].values()] == [
        [NEVER, NEVER], [7, 0], [7, 0], [np.iinfo(np.int64).min] * 2
    ]  # fmt: skip
    pending = Waiting()
    pending.add(pa.table({"x": [1, 2, 3]}), np.array([1, 2, 3]), np.array([4, 1, 4]))
    pending.renumber(np.array([1, 4]))
    assert pending.rows.ids.tolist() == [1, 0, 1]


def ticker_of(every: sw.Every, window: Any, ts: list[int], advance: int) -> Ticker:
    """After an event of key i at ts[i]."""
    engine = sw.Engine(key="k")
    engine.register(sw.Query(sw.count(), window, "n", every=every))
    for k, at in enumerate(ts):
        engine.append({"ts": [at], "k": [k]})
    engine.advance(advance)
    (ticker,) = engine._stream.emission.tickers.values()
    return ticker


@pytest.mark.parametrize(("every", "window", "advance", "needed"), [
    (sw.Every(2), sw.Range(5), 12, [False, False, True]),  # key 2, at 11, waits
    (sw.Every(2), sw.Rows(1), 12, [True, True, True]),  # the last row of a key is in its window for ever
    (sw.Every(time=4), sw.Range(5), 9, [False, False, True]),
    (sw.Every(time=4), sw.Range(6), 13, [False, False, True]),  # seen at 16
    (sw.Every(time=4), sw.Range(5), 13, [False, False, False]),
    (sw.Every(time=4, anchor="tuple"), sw.Range(5), 12, [False, False, True]),  # slot 12 is not over
    (sw.Every(time=4, anchor="tuple"), sw.Range(5), 20, [False, False, False]),
    (sw.Every(2, per_key=True), sw.Range(1), 99, [True, True, True]),  # their rows are counted
    (sw.Every(time=4, per_key=True), sw.Range(6), 13, [False, False, True]),
    (sw.Every(time=4, per_key=True), sw.Range(5), 13, [False, False, False]),
    (sw.Every(time=4, per_key=True), sw.Rows(1), 99, [True, True, True]),
    (sw.Every(time=4, per_key=True, anchor="tuple"), sw.Range(1), 12, [False, False, True]),
    (sw.Every(time=4, per_key=True, anchor="tuple"), sw.Range(9), 12, [False, True, True]),  # one at 12 would see 4
    (sw.Every(time=4, per_key=True, anchor="tuple"), sw.Range(9), 20, [False, False, False]),
])  # fmt: skip
def test_keys_that_a_tick_may_still_see(every: sw.Every, window: Any, advance: int, needed: list[bool]) -> None:
    ticker = ticker_of(every, window, [1, 4, 11], advance)
    assert ticker.needs(3).tolist() == needed
    assert ticker.needs(4).tolist() == [*needed, False]  # one that nobody has seen


@pytest.mark.parametrize("window", [sw.Range(5), sw.Range(9, until=3)])
@pytest.mark.parametrize("every", [
    sw.Every(3), sw.Every(time=4), sw.Every(time=4, anchor="tuple"), sw.Every(time=4, per_key=True),
    sw.Every(time=4, anchor="tuple", per_key=True),
])  # fmt: skip
def test_what_keys_take_follows_those_that_windows_hold(every: sw.Every, window: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(store, "MANY_KEYS", 4)
    query, rng = sw.Query(sw.sum("x"), window, "q", every=every), np.random.default_rng(1)
    engine, batches, found = sw.Engine(key="k"), [], []
    engine.register(query)
    for i in range(60):
        ts = np.sort(rng.integers(3 * i, 3 * i + 3, 10))
        batches.append(pa.table({"ts": ts, "k": rng.integers(i, i + 5, 10), "x": rng.integers(0, 9, 10)}))
        engine.append(batches[-1])
        engine.advance(3 * i + 3)
        found += [tuple(row.values())[1:] for row in engine.emitted().to_pylist()]
    assert engine.stats()["keys"] < 20
    stored = [tuple(row.values()) for row in sw.evaluate([query], pa.concat_tables(batches), key="k").to_pylist()]
    assert sorted(found) == sorted(row for row in stored if row[0] < 180 // 4 or not every.by_time)
