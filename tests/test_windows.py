"""Windows that lie ahead, see peers, never end or begin with the calendar, against definitions in plain Python."""

from __future__ import annotations

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swag as sw
from swag.tables.times.durations import canonical, nanoseconds
from tests import oracle
from tests.oracle import Q, mismatches
from tests.test_evaluate import AGGREGATES, WHERE, WILD, events, ours, pieces, table

UTC = dt.UTC

# --- Durations ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "short"),
    [
        ("5 minutes", "5m"), ("5min", "5m"), ("90 sec", "90s"), ("90 SECONDS", "90s"), ("1 hour", "1h"),
        ("2 hrs", "2h"), ("1 day", "1d"), ("1w", "7d"), ("2 weeks", "14d"), ("PT5M", "5m"),
        ("P1D", "1d"), ("P1DT12H", "36h"),
        ("PT0.5S", "0.5s"), ("P2W", "14d"), ("250 millis", "250ms"), ("3µs", "3us"), ("-1m", "-1m"), ("-PT5M", "-5m"),
        ("- 5 minutes", "-5m"), (dt.timedelta(minutes=-5), "-5m"), (np.timedelta64(-90, "s"), "-90s"),
        (pd.Timedelta("-1h"), "-1h"), (pd.Timedelta("1us"), "1us"), ("1.5 hours", "1.5h"), ("+5m", "5m"), ("PT0S", 0),
    ],
)  # fmt: skip
def test_durations_may_be_spelt_out(written: Any, short: Any) -> None:
    assert canonical(written) == short
    assert nanoseconds(written) == (nanoseconds(short) if short else 0)


@pytest.mark.parametrize(
    "text", ["5M", "P1M", "P1Y", "P", "PT", "P1DT", "5 fortnights", "m", "5", "PT5", "--5m", "1h30"]
)
def test_what_has_no_fixed_length_is_no_duration(text: str) -> None:
    with pytest.raises(sw.SwagError, match="duration"):
        sw.Range(text)


def test_equal_durations_are_equal_windows() -> None:
    assert sw.Range("5 minutes") == sw.Range("PT5M") == sw.Range("5m") == sw.Range(dt.timedelta(minutes=5))
    assert sw.Range("5m", until="-60 sec") == sw.Range("5m", until="-60s")
    assert repr(sw.Range("5 minutes", until="-1 minute")) == 'sw.Range("5m", until="-1m")'


# --- Following, peers, unbounded --------------------------------------------------------------------------------

EDGE = st.integers(-9, 9) | st.sampled_from([2**62, -(2**62), 2**70, -(2**70)])
LENGTH = st.integers(1, 12)
CLOSED = st.sampled_from(["right", "left", "both", "none"])
ROWS = st.builds(lambda u, n: oracle.Rows(u + n, u), EDGE, LENGTH)
RANGES = st.builds(lambda u, n, c, p: oracle.Range(u + n, u, c, p), EDGE, LENGTH, CLOSED, st.booleans())
PEERS = st.builds(lambda n: oracle.Range(n, 0, "both", True), st.integers(0, 5))
UNBOUNDED = st.builds(oracle.Unbounded, st.just(0) | EDGE, st.booleans())
ASKED = st.tuples(st.sampled_from(AGGREGATES), ROWS | RANGES | PEERS | UNBOUNDED, st.sampled_from(list(WHERE)))
TIMES = st.integers(0, 12) | st.sampled_from([-(2**62), 2**62, 2**63 - 1, -(2**63)])
STEADY = st.integers(1, 24).map(lambda n: list(range(0, 3 * n, 3)))


@given(
    st.lists(ASKED, min_size=1, max_size=4), events(TIMES, WILD), st.none() | st.lists(TIMES, max_size=8),
    st.sampled_from([None, "k"]), st.integers(1, 30), st.integers(1, 9), st.integers(1, 3),
)  # fmt: skip
def test_windows_that_lie_ahead_or_see_peers_are_as_the_oracle_says(
    asked, rows, at, key, chunk, block, threads
) -> None:
    requests = None if at is None else [{"ts": t, "k": "abcd"[i % 4]} for i, t in enumerate(at)]
    check(asked, rows, requests, key, (chunk, block, threads))


@given(st.lists(ASKED, min_size=1, max_size=4), STEADY, st.integers(1, 30), st.integers(1, 9))
def test_they_are_where_events_come_evenly(asked, times, chunk, block) -> None:
    rows = [{"ts": t, "k": "a", "x": t % 5 - 2.0, "y": 1.0, "i": t % 7 - 3, "s": "one", "b": t % 3 == 0} for t in times]
    check(asked, rows, None, None, (chunk, block, 1))


def check(asked: Any, rows: list[dict[str, Any]], requests: Any, key: str | None, cut: tuple[int, int, int]) -> None:
    theirs = [Q(of, window, WHERE[where]) for (_, of), window, where in asked]
    queries = [sw.Query(of, ours(window), f"q{n}", where=where) for n, ((of, _), window, where) in enumerate(asked)]
    at = None if requests is None else pa.Table.from_pylist(requests, pa.schema({"ts": pa.int64(), "k": pa.string()}))
    with pieces(*cut):
        found = sw.evaluate(queries, table(rows), at=at, ts="ts", key=key)
    actual = list(zip(*(found[f"q{n}"].to_pylist() for n in range(len(asked))), strict=True))
    assert mismatches(actual, theirs, rows, requests, key) == []


def test_ahead_and_around() -> None:
    events = {"ts": [1, 2, 2, 9], "x": [1, 2, 4, 8]}
    asked = {
        "next": sw.Rows(0, until=-1), "three": sw.Rows(2, until=-1), "soon": sw.Range(0, until=-7),
        "peers": sw.Range(0, closed="both", peers=True), "as sql": sw.Range(1, closed="both", peers=True),
        "all": sw.Unbounded(until=-100), "so far": sw.Unbounded(), "ties": sw.Unbounded(peers=True),
    }  # fmt: skip
    found = sw.evaluate([sw.Query(sw.sum("x"), window, name) for name, window in asked.items()], events)
    assert {name: found[name].to_pylist() for name in asked} == {
        "next": [2, 4, 8, None], "three": [3, 7, 14, 12], "soon": [6, 8, 8, None],
        "peers": [1, 6, 6, 8], "as sql": [1, 7, 7, 8],
        "all": [15, 15, 15, 15], "so far": [1, 3, 7, 15], "ties": [1, 7, 7, 15],
    }  # fmt: skip


@pytest.mark.parametrize(
    "make",
    [
        lambda: sw.Rows(3, until=3), lambda: sw.Rows(-5, until=-5), lambda: sw.Range(5, until=5), lambda: sw.Range(0),
        lambda: sw.Range("-1m"), lambda: sw.Range(5, peers=1), lambda: sw.Range("5m", until=-3),
        lambda: sw.Since("15m"), lambda: sw.Since("2d"), lambda: sw.Since("1d", tz="Mars/Olympus"),
        lambda: sw.Since("1d", tz=5),
        lambda: sw.Since(5), lambda: sw.Unbounded(until=1.5), lambda: sw.Unbounded(peers="yes"),
    ],
)  # fmt: skip
def test_what_is_no_window_is_refused(make: Any) -> None:
    with pytest.raises(sw.BadQuery):
        make()


# --- Since ------------------------------------------------------------------------------------------------------

ZONES = [
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Asia/Kathmandu",
    "America/Sao_Paulo",
    "Australia/Sydney",
    "+05:30",
]
PERIODS = ["1h", "1d", "1w", "1mo"]
CHANGES = [  # instants around which clocks change somewhere
    "2024-03-10T07:00", "2024-11-03T06:00", "2024-03-31T01:00", "2024-10-27T01:00", "2018-11-04T03:00",
    "2018-02-18T02:00", "2024-04-06T16:00", "2024-10-05T16:00", "2024-12-31T23:00", "2024-02-29T23:00",
    "1960-06-01T00:00", "2061-07-04T00:00",
]  # fmt: skip
INSTANTS = st.builds(
    lambda base, seconds: int(np.datetime64(base, "s").astype(np.int64)) + seconds,
    st.sampled_from(CHANGES), st.integers(-3 * 86400, 3 * 86400) | st.sampled_from([0, -1, 1, 3600, 7200, -3600]),
)  # fmt: skip


def zone_of(name: str) -> dt.tzinfo:
    return ZoneInfo(name) if name[0] not in "+-" else dt.timezone(dt.timedelta(hours=5, minutes=30))


def boundary(period: str, name: str, second: int) -> int:
    """By Python's own calendar: the clock of that zone, put back."""
    zone = zone_of(name)
    local = dt.datetime.fromtimestamp(second, zone)
    if period == "1h":  # these zones are off by whole hours, or never change
        return second - local.minute * 60 - local.second
    first = {"1d": local.date(), "1w": local.date() - dt.timedelta(local.weekday()), "1mo": local.date().replace(day=1)}
    return int(dt.datetime.combine(first[period], dt.time(), zone).timestamp())


@given(
    st.sampled_from(PERIODS), st.sampled_from(ZONES), st.lists(INSTANTS, max_size=20),
    st.sampled_from(["s", "ms", "ns"]), st.booleans(),
)  # fmt: skip
def test_since_begins_where_the_calendar_of_the_zone_says(period, zone, seconds, unit, own) -> None:
    seconds = sorted(seconds)
    ts = pa.array([s * {"s": 1, "ms": 10**3, "ns": 10**9}[unit] for s in seconds], pa.int64())
    ts = ts.cast(pa.timestamp(unit, tz=zone if own else None))
    window = sw.Since(period, tz=None if own else zone)
    found = sw.evaluate(sw.Query(sw.count(), window, "n"), {"ts": ts})["n"].to_pylist()
    starts = [boundary(period, zone, s) for s in seconds]
    assert found == [sum(starts[j] <= s for s in seconds[: j + 1]) for j in range(len(seconds))]


def test_days_have_23_or_25_hours_where_clocks_are_changed() -> None:
    def hours(day: str) -> list[int]:
        start = np.datetime64(day) - np.timedelta64(12, "h")
        ts = pa.array((start + np.arange(60) * np.timedelta64(1, "h")).astype("datetime64[s]"))
        found = sw.evaluate(sw.Query(sw.count(), sw.Since("1d", tz="America/New_York"), "n"), {"ts": ts})["n"]
        return [n for n, after in zip(found.to_pylist(), [*found.to_pylist()[1:], 0], strict=True) if after == 1]

    assert hours("2024-03-10") == [17, 23] and hours("2024-11-03") == [16, 25]


def test_an_integer_has_no_calendar() -> None:
    with pytest.raises(sw.BadQuery, match="integer"):
        sw.evaluate(sw.Query(sw.count(), sw.Since("1d")), {"ts": [1, 2]})
