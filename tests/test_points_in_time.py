"""Points in time and durations as users write them: exactly what was written, or refused with what to write."""

import datetime as dt
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swag as sw
from swag.tables.columns import Clock
from swag.tables.times.durations import NANOSECONDS, in_units

EPOCH = dt.datetime(1970, 1, 1)
NEW_YORK = ZoneInfo("America/New_York")
KINDS = [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "America/New_York")]


def engine(times: pa.Array) -> sw.Engine:
    made = sw.Engine()
    made.register(
        [sw.Query(sw.count(), sw.Range(10), name="n"), sw.Query(sw.count(), sw.Range(10, closed="left"), name="l")]
    )
    made.append(pa.table({"ts": times}))
    return made


def seconds(*values: int, zone: str | None = None) -> pa.Array:
    return pa.array(values, pa.int64()).cast(pa.timestamp("s", zone))


# -- exactly ----------------------------------------------------------------------------------------------------------


@given(
    kind=st.sampled_from([pa.date32(), pa.date64(), *KINDS]),
    microseconds=st.integers(-(2**50), 2**50) | st.integers(-(2**30), 2**30).map(lambda s: s * 10**6),
    offset=st.integers(-12, 12),
)
def test_a_datetime_is_that_instant_or_is_refused(kind: pa.DataType, microseconds: int, offset: int) -> None:
    clock = Clock(kind)
    zoned = pa.types.is_timestamp(kind) and kind.tz is not None
    plain = EPOCH + dt.timedelta(microseconds=microseconds)
    zone = dt.timezone(dt.timedelta(hours=offset))
    at = plain.replace(tzinfo=dt.UTC).astimezone(zone) if zoned else plain
    stamp = pd.Timestamp(at)
    same = [at, stamp, at.isoformat(), pa.scalar(at, pa.timestamp("us", "UTC" if zoned else None))]
    same += [] if zoned else [np.datetime64(at), np.datetime64(at).astype("datetime64[ns]")]
    assert clock.unit is not None
    wanted = Fraction(microseconds * 1000, NANOSECONDS[clock.unit])
    for each in same:
        if wanted.denominator == 1:
            assert clock.instant(each) == wanted
        else:
            with pytest.raises(sw.BadQuery, match="is finer than ts, which counts whole"):
                clock.instant(each)
    other = at.replace(tzinfo=None) if zoned else at.replace(tzinfo=dt.UTC)
    with pytest.raises(
        sw.BadType, match="has no time zone, but ts has" if zoned else "has a time zone, but ts has none"
    ):
        clock.instant(other)


@given(kind=st.sampled_from([pa.int64(), pa.date32(), *KINDS]), instant=st.integers(-(2**31), 2**31 - 1))
def test_what_a_clock_says_it_understands(kind: pa.DataType, instant: int) -> None:
    clock = Clock(kind)
    days = instant // 10**5 if kind == pa.date32() else instant
    assert clock.instant(clock.value(days)) == days == clock.instant(np.int64(days)) == clock.instant(pa.scalar(days))
    assert clock.show(days)


def test_nanoseconds_are_not_cut_off() -> None:
    stamp = pd.Timestamp("2024-03-01 09:30:00.000000007")
    assert Clock(pa.timestamp("ns")).instant(stamp) == stamp.value
    with pytest.raises(sw.BadQuery, match="is finer than ts, which counts whole microseconds"):
        Clock(pa.timestamp("us")).instant(stamp)


@pytest.mark.parametrize("at", [2**63, -(2**63) - 1, 10**30, np.uint64(2**64 - 1), dt.datetime(9999, 1, 1)])
def test_beyond_int64_is_refused(at: Any) -> None:
    kind = pa.timestamp("ns") if isinstance(at, dt.datetime) else pa.int64()
    made = engine(pa.array([1, 2], pa.int64()).cast(kind))
    for call in (lambda: made.advance(at), lambda: made.lookup("n", at=at), lambda: made.lookup_all(at=at)):
        with pytest.raises(sw.BadQuery, match="does not fit int64"):
            call()
    made.append(pa.table({"ts": pa.array([3], pa.int64()).cast(kind)}))
    assert made.lookup("n") == 3


@pytest.mark.parametrize("at", [
    None, 1.5, 3.0, np.float64(3), True, "", "noon", b"3", [3], np.timedelta64(3, "s"), pd.NaT, np.datetime64("NaT"),
    dt.time(3), dt.timedelta(3), pa.scalar(None), pa.scalar(1.5),
])  # fmt: skip
@pytest.mark.parametrize("kind", [pa.int64(), pa.timestamp("s"), pa.date32()])
def test_what_is_no_point_in_time_is_refused(at: Any, kind: pa.DataType) -> None:
    with pytest.raises(sw.BadType):
        Clock(kind).instant(at)


# -- where they are used ----------------------------------------------------------------------------------------------


def test_days() -> None:
    days = pa.array([1, 2, 30], pa.int32()).cast(pa.date32())
    made = engine(days)
    made.register(sw.Query(sw.count(), sw.Range("9d"), name="late"))
    assert made.stats()["complete_since"]["n"] is None
    assert (
        made.lookup("n", at=dt.date(1970, 1, 31)) == made.lookup("n", at=30) == made.lookup("n", at="1970-01-31") == 1
    )
    assert made.lookup("n", at=dt.datetime(1970, 2, 9)) == 1
    with pytest.raises(sw.BadQuery, match="counts whole days"):
        made.lookup("n", at=dt.datetime(1970, 2, 9, 12))
    with pytest.raises(sw.OutOfOrder, match="event 0 has ts 1970-01-02, after ts 1970-01-31 was applied"):
        made.append(pa.table({"ts": days[:1]}))


def test_finer_than_the_unit_of_ts_sees_neither_less_nor_the_future() -> None:
    made = engine(seconds(-3, -2, -1, zone="UTC"))
    for at in (dt.datetime(1969, 12, 31, 23, 59, 58, 500000, tzinfo=dt.UTC), -1.5):
        with pytest.raises(sw.SwagError):
            made.lookup("l", at=at)


def test_a_zone_is_not_guessed() -> None:
    made = engine(seconds(1, 2, 3, zone="America/New_York"))
    here = dt.datetime(1969, 12, 31, 19, 0, 3)
    assert made.lookup("n", at=here.replace(tzinfo=NEW_YORK)) == 3
    assert made.lookup("n", at="1969-12-31T19:00:03-05:00") == 3
    for call in (
        lambda: made.lookup("n", at=here),
        lambda: made.advance(here),
        lambda: made.lookup_all(np.datetime64(here)),
    ):
        with pytest.raises(sw.BadType, match=r"has no time zone, but ts has: timestamp\[s, tz=America/New_York\]"):
            call()
    with pytest.raises(sw.BadType, match="has a time zone, but ts has none"):
        engine(seconds(1)).lookup("n", at=dt.datetime(1970, 1, 1, tzinfo=dt.UTC))


def test_keys_that_are_times_are_meant_as_exactly() -> None:
    made = sw.Engine(key="k")
    made.register(sw.Query(sw.count(), sw.Rows(5), name="n"))
    made.append(pa.table({"ts": [1], "k": seconds(5, zone="UTC")}))
    assert made.lookup("n", key=dt.datetime(1970, 1, 1, 0, 0, 5, tzinfo=dt.UTC)) == 1
    assert made.lookup("n", key=dt.datetime(1970, 1, 1, 0, 0, 6, tzinfo=dt.UTC)) == 0
    for at in (dt.datetime(1970, 1, 1, 0, 0, 5), dt.datetime(1970, 1, 1, 0, 0, 5, 1, tzinfo=dt.UTC)):
        with pytest.raises(sw.SwagError, match=r"^key="):
            made.lookup("n", key=at)


# -- durations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("duration", [
    "90s", "1.5m", dt.timedelta(seconds=90), np.timedelta64(90, "s"), np.timedelta64(90 * 10**9, "ns"),
    np.timedelta64(3, "30s"), pd.Timedelta("90s"),
])  # fmt: skip
def test_durations_of_every_kind(duration: Any) -> None:
    assert in_units(duration, "s") == 90
    assert sw.Range(duration) == sw.Range("90s") or isinstance(duration, str)
    assert sw.Every(duration).step("s") == 90
    query = sw.Query(sw.count(), sw.Range(duration), name="n")
    assert sw.evaluate([query], pa.table({"ts": seconds(0, 89, 90)}))["n"].to_pylist() == [1, 2, 2]


@pytest.mark.parametrize("duration", [
    np.timedelta64("NaT"), np.timedelta64(1, "Y"), np.timedelta64(1, "ps"), np.timedelta64(5), pd.NaT, "1.5ns",
    "5 parsecs", "9" * 99 + "s", 1.5, True, None,
])  # fmt: skip
def test_what_has_no_certain_length_is_refused(duration: Any) -> None:
    for call in (sw.Range, lambda each: sw.Every(time=each), lambda each: sw.Engine(lateness=each or 0.5)):
        with pytest.raises(sw.BadQuery):
            call(duration)


def test_nanoseconds_of_a_timedelta_count() -> None:
    assert in_units(pd.Timedelta(1500, "ns"), "ns") == 1500
    with pytest.raises(sw.BadQuery, match="not a whole number of the unit of ts"):
        in_units(pd.Timedelta(1500, "ns"), "us")


def test_words_beyond_int64_are_no_times_and_the_hint_works():
    large = pa.table({"ts": pa.array([2**63 + 1000], pa.uint64()), "x": [1]})
    query = sw.Query(sw.count(), sw.Rows(2), "n")
    with pytest.raises(sw.BadType, match=r"do not fit int64\. Hint: whole numbers up to 9223372036854775807"):
        sw.evaluate(query, large)
    assert sw.evaluate(query, {"ts": [(2**63 + 1000) // 1000], "x": [1]})["n"].to_pylist() == [1]


def test_days_at_the_ends_of_the_calendar_are_answered_or_told():
    today = sw.Query(sw.count(), sw.Since("1d"), "n")
    for at in (dt.datetime(1, 1, 2), dt.datetime(9999, 12, 29, 23, 59)):
        assert sw.evaluate(today, {"ts": [at]})["n"].to_pylist() == [1]
    for at, shown in (
        (dt.datetime(1, 1, 1, 12), "0001-01-01T12:00:00"),
        (dt.datetime(9999, 12, 30), "9999-12-30T00:00:00"),
    ):
        with pytest.raises(sw.BadEvents, match=f"ts {shown}.* is beyond the days .* 0001-01-02 to 9999-12-29. Hint"):
            sw.evaluate(today, {"ts": [at]})
