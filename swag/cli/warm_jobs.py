"""What people do with swag, small: every kind of window, aggregate, filter, tick and frame, over the usual types."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import swag as sw
from swag.first_use import use_engine
from swag.query.over_frames import frames_package

ROWS = 48
START = np.datetime64("2024-03-01T09:30:00", "us")
WINDOWS = (sw.Range("1m"), sw.Range("1m", until="10s"), sw.Rows(9), sw.Rows(9, until=3))


def everything() -> None:
    """Run it all."""
    for table in tables():
        for key in (None, "word", "number"):
            _windows(table, key)
            _frames(table, key)


def tables() -> Iterator[pa.Table]:
    """Events whose values are floats and integers, without nulls and with some."""
    places = np.arange(ROWS)
    for nulls in (False, True):
        missing = places % 7 == 3 if nulls else None
        yield pa.table(
            {
                "ts": START + places * np.timedelta64(2, "s"),
                "word": pa.array(["a", "b", "c"]).take(pa.array(places % 3)),
                "number": places % 4,
                "x": pa.array(np.sqrt(places), mask=missing),
                "y": pa.array(places * 0.5, mask=missing),
                "n": pa.array(places % 5, mask=missing),
            }
        )


def aggregates() -> list[sw.Aggregate]:
    of_numbers = (sw.sum, sw.mean, sw.min, sw.max, sw.var, sw.first, sw.last, sw.median)
    one = [kind(column) for kind in of_numbers for column in ("x", "n")]
    two = [sw.wmean("x", "n"), sw.cov("x", "y"), sw.corr("x", "y")]
    return [sw.count(), sw.count("x"), *one, *two, sw.quantile("x", 0.9)]


def queries() -> list[sw.Query]:
    return [sw.Query(what, window) for what in aggregates() for window in WINDOWS]


def filters() -> list[sw.Query]:
    kinds = (sw.count(), sw.sum("n"), sw.max("x"), sw.min("x"))
    return [sw.Query(what, sw.Range("1m"), having=(op, 3)) for what in kinds for op in (">", "<")]


def ticks() -> list[sw.Query]:
    every = (sw.Every("10s"), sw.Every(10))
    return [sw.Query(sw.sum("x"), window, every=each) for window in WINDOWS[::2] for each in every]


def specs() -> list[Any]:
    """Frames of every kind, to be detected when everything is compiled."""
    fr = frames_package()
    return [
        fr.Threshold("x", ">", 2.0),
        fr.Threshold("n", ">", 2, partition=True),
        fr.Delta("x", 0.5),
        fr.Delta("x", 0.5, measure="range"),
        fr.Boundary("x", 1.5),
        fr.Boundary("x", breaks=[2, 4]),
        fr.Aggregate(sw.sum("x"), ">=", 9),
        fr.Aggregate(sw.count(), ">=", 4),
        fr.Pattern("A B+ C", {"B": "x < PREV(x)", "C": "x > PREV(x)"}, {"low": "LAST(B.x)"}),
        fr.Pattern("A B+", {"B": "x < AVG(A.x)"}),
        fr.Threshold("x > 2 AND n > 1", max_rows=5),
        fr.Session("10s"),
        fr.State("n"),
        fr.Between("x > 2", "x < 1"),
    ]


def _windows(table: pa.Table, key: str | None) -> None:
    """Warm windows: queries, filters and ticks in engines, in order and late, and the same table as stored events."""
    asked = [*queries(), *(filters() if key is not None else [])]
    for lateness in (None, "4s"):
        use_engine(sw.Engine, {"ts": "ts", "key": key, "lateness": lateness}, [*asked, *ticks()], table)
    use_engine(sw.Engine, {"ts": "ts", "key": key, "lateness": "1h", "hold": False}, asked, table)
    requests = table.select(["ts", "word", "number"])
    sw.evaluate(queries(), table, key=key)
    sw.evaluate(queries(), table, at=requests, key=key)
    for query in ticks():
        sw.evaluate([query], table, key=key)


def _frames(table: pa.Table, key: str | None) -> None:
    """Warm frames: every kind detected and summarized over the table, one filled, and one found by a detector."""
    fr = frames_package()
    for spec in specs():
        found = fr.detect(spec, table, key=key)
        fr.summarize(found, table, [sw.count(), sw.mean("x"), sw.max("x")], key=key)
    fr.fill(fr.detect(specs()[0], table, key=key), table, key=key)
    detector = fr.Detector(specs()[0], key=key)
    detector.push(table)
    detector.punctuate(START + np.timedelta64(20, "s"))
    detector.finish()
