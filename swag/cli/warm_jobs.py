"""What people do with swag, small: every kind of window, aggregate, filter, tick and frame, over the usual types."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

import swag as sw
from swag.first_use import use_engine
from swag.query.kind import Reads
from swag.query.kinds.one_of_each import one_of_each
from swag.query.over_frames import frames_package

ROWS = 48
START = np.datetime64("2024-03-01T09:30:00", "us")
WINDOWS = (
    sw.Range("1m"), sw.Range("1m", until="10s"), sw.Range("1m", closed="both", peers=True),
    sw.Rows(9), sw.Rows(9, until=3), sw.Unbounded(), sw.Since("1h"),
)  # fmt: skip
MEASURED = ("x", "y", "n")  # floats, and whole numbers
COLUMNS: dict[Reads, tuple[str, ...]] = {
    "numbers": MEASURED,
    "numbers and times": MEASURED,
    "what has an order": (*MEASURED, "word"),
    "anything": (*MEASURED, "word"),
    "booleans": ("flag",),
}


def everything() -> None:
    """Run it all."""
    for table in tables():
        for key in (None, "word", "number"):
            _windows(table, key)
            _frames(table, key)
        _groupings(table)


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
                "flag": pa.array(places % 2 == 0, mask=missing),
            }
        )


def aggregates() -> list[sw.Aggregate]:
    """Of every kind that there is, over columns of every type that kernels tell apart."""
    return [*one_of_each(COLUMNS, half_life="10s"), sw.median("x")]


def queries() -> list[sw.Query]:
    """Every aggregate over every window."""
    return [sw.Query(what, window) for what in aggregates() for window in WINDOWS]


def some_queries() -> list[sw.Query]:
    """Every aggregate, and every window: enough where kernels of the aggregates are known already."""
    return [sw.Query(what, WINDOWS[n % len(WINDOWS)]) for n, what in enumerate(aggregates())]


def filters() -> list[sw.Query]:
    """Conditions on answers, which have an index, and on events: few, and as many as share structures."""
    kinds = (sw.count(), sw.sum("n"), *(kind(column) for kind in (sw.max, sw.min) for column in ("x", "n")))
    on_answers = [sw.Query(what, sw.Range("1m"), having=(op, 3)) for what in kinds for op in (">", "<")]
    on_events = [sw.Query(sw.sum("x"), sw.Range("1m"), where=f"n > {bound} AND word = 'a'") for bound in range(3)]
    thresholds = [
        sw.Query(each, sw.Range("1m"), where=f"x > {c}") for c in range(16) for each in (sw.sum("x"), sw.max("x"))
    ]
    return [*on_answers, *on_events, *thresholds]


def ticks() -> list[sw.Query]:
    every = (sw.Every("10s"), sw.Every(10))
    return [sw.Query(sw.sum("x"), window, every=each) for window in WINDOWS[::2] for each in every]


def specs() -> list[Any]:
    """Frames of every kind but Custom, whose kernels are of functions that only their users have."""
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
        fr.Aggregate(sw.mean("x"), "<", 3),
        fr.Pattern("A B+ C", {"B": "x < PREV(x)", "C": "x > PREV(x)"}, {"low": "LAST(B.x)"}),
        fr.Pattern("A B+", {"B": "x < AVG(A.x)"}),
        fr.Threshold("x > 2 AND n > 1", max_rows=5),
        fr.Session("10s"),
        fr.State("n"),
        fr.Between("x > 2", "x < 1"),
    ]


def frame_queries(key: str | None) -> list[Any]:
    """Queries over frames of every kind, for engines."""
    values = [sw.count(), sw.mean("x"), sw.max("x")]
    by = () if key is None else (key,)
    make = frames_package().FrameQuery
    pieces = make(specs()[0], values, by=by, name="pieces", fragments=True)
    return [*(make(spec, values, by=by, name=f"frames {n}") for n, spec in enumerate(specs())), pieces]


def _windows(table: pa.Table, key: str | None) -> None:
    """Warm windows: queries, filters and ticks in engines, in order and late, and the same table as stored events."""
    plain, some = queries() if key == "word" else some_queries(), some_queries()
    filtering = filters() if key is not None else []
    options = {"ts": "ts", "key": key}
    use_engine(sw.Engine, options, [*kept(plain, key), *filtering], table)
    use_engine(sw.Engine, {**options, "lateness": "4s"}, [*kept(some, key), *filtering, *ticks()], table)
    use_engine(sw.Engine, {**options, "lateness": "1h", "hold": False}, [*kept(some, key), *filtering], table)
    sw.evaluate(plain, table, key=key)
    sw.evaluate([sw.Query(what, WINDOWS[0]) for what in aggregates()], table, key=key)  # few windows share less
    sw.evaluate(some, table, at=table.select(["ts", "word", "number"]), key=key)
    for query in ticks():
        sw.evaluate([query], table, key=key)


def kept(queries: list[sw.Query], key: str | None) -> list[sw.Query]:
    """Those that an engine takes: of unbounded windows it keeps no rows."""
    found, engine = [], sw.Engine(key=key)
    for query in queries:
        with suppress(sw.BadQuery):
            engine.register(query)
            found.append(query)
    return found


def _groupings(table: pa.Table) -> None:
    """Warm what a keyed engine has besides: several groupings, features of some keys, and what has changed."""
    features, words, alerts = (sw.Engine(key="word") for _ in range(3))
    for number, by in enumerate((None, "number", ("word", "number"), ())):
        features.register([sw.Query(what, sw.Range("1m"), by=by, name=f"{what} {number}") for what in aggregates()])
    words.register([sw.Query(what, sw.Range("1m")) for what in (sw.count(), sw.sum("x"), sw.mean("n"))])
    searched = [sw.Query(what, sw.Rows(9), having=(">", 3)) for what in (sw.count(), sw.mean("x"))]
    alerts.register([*filters(), *searched])
    for rows in (table.slice(0, ROWS // 2), table.slice(ROWS // 2)):
        for engine in (features, words, alerts):
            engine.append(rows)
        features.features(rows.select(["word", "number"]))
        words.features(rows.select(["word"]))
        alerts.changes()
    alerts.advance(START + np.timedelta64(1, "h"))
    alerts.changes()


def _frames(table: pa.Table, key: str | None) -> None:
    """Warm frames: every kind detected, summarized, and in an engine; one filled, and one found by a detector."""
    fr = frames_package()
    for spec in specs():
        found = fr.detect(spec, table, key=key)
        fr.summarize(found, table, [sw.count(), sw.mean("x"), sw.max("x")], key=key)
    for margin in (0, "4s"):
        fr.fill(fr.detect(specs()[0], table, key=key), table, key=key, before=margin)
    for fragments in (False, True):
        detector = fr.Detector(specs()[0], key=key, fragments=fragments)
        detector.push(table)
        detector.punctuate(START + np.timedelta64(20, "s"))
        detector.finish()
    engine = sw.Engine(key=key)
    engine.register(frame_queries(key))
    for rows in (table.slice(0, ROWS // 2), table.slice(ROWS // 2)):
        engine.append(rows)
        engine.changes()
    engine.advance(START + np.timedelta64(1, "h"))
    engine.emitted()
