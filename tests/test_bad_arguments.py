"""Whatever is handed to the public functions: an error on purpose that says what is wrong, or an answer."""

import datetime as dt
import decimal
import fractions
import math
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import frames as fr
import swag as sw

EVENTS = {"ts": [1, 2, 3, 4], "k": ["a", "b", "a", "b"], "x": [1, 2, 3, 4], "y": [0.5, 1.5, 2.5, 3.5]}
ZONED = pa.table({"ts": pa.array([1, 2, 3], pa.int64()).cast(pa.timestamp("s", "UTC")), "x": [1, 2, 3]})


class Unfriendly:
    """An object that can do nothing: it compares with nothing, has no length, no hash, no text."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not comparable")

    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")


BAD: list[Any] = [
    None, True, False, 0, 1, -1, 2**31, 2**63, 2**70, -(2**70), 10**400, 1.5, -0.0, math.nan, math.inf, -math.inf, 1j,
    "", " ", "x", "k", "ts", "no such column", "5m", "-5m", "5 parsecs", "9" * 40 + "d", "9" * 5000 + "s",
    "2024-03-01", "2024-03-01T09:30:00Z",
    "SELECT", "x > ", "x = 'a", "\0", "x" * 1000, b"x", b"", [], [1], ["x"], [[1]], [None], ["x", None], (), (1,),
    ("x", "y"), (">",), (">", None), (">", "x"), ("!", 1), ("between", 1), {}, {"x": 1}, {1: 1}, {"x": None},
    {"x": [1, "a"]}, {"ts": [1], "x": [1, 2]}, {"ts": [2**70], "x": [1]}, {"ts": [None], "x": [1]}, {"ts": ["a"]},
    {"ts": [1.5], "x": [1]}, {"ts": [[1]], "x": [1]}, {"ts": 5}, {"ts": None}, {1: [1]}, {"ts": [1], "x": [object()]},
    {"ts": [1], "x": [[1, "a"]]}, set(), {"x"}, frozenset(), range(3), object(), object, len, lambda: None, ...,
    NotImplemented, Unfriendly(), np.int8(3), np.float32(0.5), np.bool_(True), np.array([]), np.array([1, 2]),
    np.array([[1, 2]]), np.array(["x"]), np.array([None], object), np.array(5), np.datetime64("NaT"),
    np.datetime64("2024-01-01"), np.datetime64(10**15, "Y"), np.datetime64(1, "as"), np.timedelta64("NaT"),
    np.timedelta64(5, "s"), np.timedelta64(5, "Y"), np.timedelta64(5), np.timedelta64(2**62, "D"),
    dt.datetime(2024, 1, 1), dt.datetime.max, dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.date(2024, 1, 1), dt.time(1),
    dt.timedelta(seconds=5), dt.timedelta(seconds=-5), dt.timedelta.max, dt.timedelta(microseconds=1), pd.NaT, pd.NA,
    pd.Timestamp("2024-01-01"), pd.Timedelta("5s"), pd.Series([1]), pd.DataFrame(), pd.DataFrame({"x": [1, 1]}),
    pd.DataFrame([[1, 2]], columns=["ts", "ts"]), pd.DataFrame({"ts": [1, "a"]}), decimal.Decimal("1.5"),
    decimal.Decimal("NaN"), fractions.Fraction(1, 3), pa.scalar(5), pa.scalar(None), pa.array([1]),
    pa.scalar(dt.datetime(2024, 1, 1)), pa.chunked_array([[1]]), pa.table({}), pa.table({"ts": [1]}), pa.int64(),
    pa.table({"ts": pa.array([1], pa.float16()), "x": [1]}), pa.table({"ts": pa.nulls(1), "x": pa.nulls(1)}),
    pa.table([[1], [1]], names=["ts", "ts"]), pa.record_batch({"ts": [1]}), pathlib.Path("/no/such/folder/file"),
    "/no/such/folder/file", "/", sw.sum("x"), sw.count(), sw.sum, sw.Rows(2), sw.Range(2), sw.Range("5m"), sw.Every(2),
    sw.Query(sw.count(), sw.Rows(2)), [sw.Query(sw.count(), sw.Rows(2))], sw.sum("x") > 1, sw.sum("x") + 1,
    sw.Query(sw.sum("no such column"), sw.Rows(2)), fr.Threshold("x", ">", 1), fr.Threshold("no such column", ">", 1),
    sw.BadQuery, ValueError("x"), iter([]), (i for i in [1]),
]  # fmt: skip


def query(**changes: Any) -> sw.Query:
    return sw.Query(**({"aggregate": sw.sum("x"), "window": sw.Rows(2), "name": "q"} | changes))


def engine(**options: Any) -> sw.Engine:
    made = sw.Engine(**options)
    keyed = options.get("key") is not None
    made.register([query(), query(name="h", window=sw.Range(9), having=(">", 0)), query(name="e", every=sw.Every(2))])
    made.append(EVENTS if keyed else {name: EVENTS[name] for name in ("ts", "x", "y")})
    return made


def zoned() -> sw.Engine:
    made = sw.Engine()
    made.register([query(), query(name="h", window=sw.Range("9s"), having=(">", 0))])
    made.append(ZONED)
    return made


def advanced(time: Any) -> sw.Engine:
    """An engine that was told the time before it knew what time is."""
    made = sw.Engine()
    made.advance(time)
    return made


def frame_table() -> pa.Table:
    return fr.detect(fr.Threshold("x", ">", 1), EVENTS, key="k")


def detector() -> fr.Detector:
    made = fr.Detector(fr.Threshold("x", ">", 1))
    made.push(EVENTS)
    return made


def filler() -> fr.Filler:
    made = fr.Filler()
    made.push_frames(frame_table())
    made.push_events(EVENTS)
    return made


SUM = sw.sum("x")
R2 = sw.Rows(2)
DELTA = fr.Delta("x", 2)
OWN: dict[str, Any] = {"lift": lambda x: x, "combine": lambda a, b: a + b, "lower": lambda a: a, "identity": 0.0}
ONE_COLUMN = (sw.count, sw.sum, sw.mean, sw.min, sw.max, sw.first, sw.last, sw.median)

# By name: a function of one argument, which is the bad one.
WINDOWS: dict[str, Callable[[Any], Any]] = {
    **{f"{each.__name__}(column)": each for each in ONE_COLUMN},
    "var(column)": sw.var,
    "var(ddof)": lambda bad: sw.var("x", bad),
    "std(ddof)": lambda bad: sw.std("x", ddof=bad),
    "wmean(column)": lambda bad: sw.wmean(bad, "x"),
    "wmean(weight)": lambda bad: sw.wmean("x", bad),
    "cov(x)": lambda bad: sw.cov(bad, "x"),
    "cov(ddof)": lambda bad: sw.cov("x", "y", bad),
    "corr(y)": lambda bad: sw.corr("x", bad),
    "quantile(column)": lambda bad: sw.quantile(bad, 0.5),
    "quantile(phi)": lambda bad: sw.quantile("x", bad),
    "quantile(phi, linear)": lambda bad: sw.quantile("x", bad, "linear"),
    "quantile(method)": lambda bad: sw.quantile("x", 0.5, bad),
    "aggregate(column)": lambda bad: sw.aggregate(bad, **OWN),
    **{f"aggregate({what})": lambda bad, what=what: sw.aggregate("x", **(OWN | {what: bad})) for what in OWN},
    "aggregate(invert)": lambda bad: sw.aggregate("x", **OWN, invert=bad),
    "alias": SUM.alias,
    "over": SUM.over,
    "filter": SUM.filter,
    "+": lambda bad: SUM + bad,
    "r+": lambda bad: SUM.__radd__(bad),
    "-": lambda bad: SUM - bad,
    "*": lambda bad: SUM * bad,
    "/": lambda bad: SUM / bad,
    ">": lambda bad: bad < SUM,
    "<=": lambda bad: bad >= SUM,
    "&": lambda bad: (SUM > 1) & bad,
    "|": lambda bad: (SUM > 1) | bad,
    "eq": SUM.eq,
    "ne": SUM.ne,
    "between": lambda bad: SUM.between(1, bad),
    "isin": SUM.isin,
    "isin one": lambda bad: SUM.isin([1, bad]),
    "coalesce": SUM.coalesce,
    "Aggregate(kind)": lambda bad: sw.Aggregate(bad, ("x",)),
    "Aggregate(columns)": lambda bad: sw.Aggregate("sum", bad),
    "Aggregate(one column)": lambda bad: sw.Aggregate("corr", ("x", bad)),
    **{
        f"Aggregate({kind})": lambda bad, kind=kind: sw.evaluate(sw.Query(sw.Aggregate(kind, ("x",), bad), R2), EVENTS)
        for kind in ("sum", "var", "quantile", "aggregate")
    },
    "Aggregate(phi)": lambda bad: sw.evaluate(sw.Query(sw.Aggregate("quantile", ("x",), None, bad), R2), EVENTS),
    "Expression(op)": lambda bad: sw.Expression(bad, (SUM, 1)),
    "Expression(operands)": lambda bad: sw.Expression("+", bad),
    "Rows(n)": sw.Rows,
    "Rows(until)": lambda bad: sw.Rows(5, bad),
    "Range(t)": sw.Range,
    "Range(until)": lambda bad: sw.Range(5, bad),
    "Range(5m, until)": lambda bad: sw.Range("5m", bad),
    "Range(closed)": lambda bad: sw.Range(5, closed=bad),
    "Every(rows)": sw.Every,
    "Every(time)": lambda bad: sw.Every(time=bad),
    "Every(anchor)": lambda bad: sw.Every("5m", anchor=bad),
    "Every(per_key)": lambda bad: sw.Every(5, per_key=bad),
    **{
        f"Query({what})": lambda bad, what=what: str(query(**{what: bad}))
        for what in ("aggregate", "window", "name", "where", "having", "index", "every", "source", "by", "stream")
    },
    "Query(having alone)": lambda bad: sw.Query(having=bad),
    "Query(threshold)": lambda bad: query(having=(">", bad)),
    "Query(between)": lambda bad: query(having=("between", 1, bad)),
    "Events(where)": sw.Events,
    "Events(source)": lambda bad: sw.Events("x > 1", bad),
    "Events(stream)": lambda bad: sw.Events("x > 1", stream=bad),
    "sql": sw.sql,
    "evaluate(progress)": lambda bad: sw.evaluate([query()], EVENTS, progress=bad),
    "evaluate(queries)": lambda bad: sw.evaluate(bad, EVENTS),
    "evaluate(events)": lambda bad: sw.evaluate([query()], bad),
    "evaluate(at)": lambda bad: sw.evaluate([query()], EVENTS, at=bad),
    "evaluate(ts)": lambda bad: sw.evaluate([query()], EVENTS, ts=bad),
    "evaluate(key)": lambda bad: sw.evaluate([query()], EVENTS, key=bad),
    "evaluate(every, key)": lambda bad: sw.evaluate([query(every=sw.Every(2))], EVENTS, key=bad),
    "evaluate(threshold)": lambda bad: sw.evaluate([query(having=(">", bad))], EVENTS),
    "evaluate(window)": lambda bad: sw.evaluate([query(window=sw.Range(bad))], EVENTS),
    "evaluate(rows)": lambda bad: sw.evaluate([query(window=sw.Rows(bad))], EVENTS),
    "evaluate(where)": lambda bad: sw.evaluate([query(where=bad)], EVENTS),
    "evaluate(expression)": lambda bad: sw.evaluate([query(aggregate=SUM + bad)], EVENTS),
    "evaluate(comparison)": lambda bad: sw.evaluate([query(aggregate=bad < SUM)], EVENTS),
    "evaluate(coalesce)": lambda bad: sw.evaluate([query(aggregate=SUM.coalesce(bad))], EVENTS),
    "evaluate(zoned, window)": lambda bad: sw.evaluate([query(window=sw.Range(bad))], ZONED),
    "evaluate(zoned, every)": lambda bad: sw.evaluate([query(every=sw.Every(bad))], ZONED),
}
MADE: dict[str, Callable[[Any], Any]] = {
    **{
        f"Engine({what})": lambda bad, what=what: engine(**{what: bad})
        for what in ("ts", "key", "lateness", "epsilon", "algorithm")
    },
    "Engine(lateness) of times": lambda bad: sw.Engine(lateness=bad).append(ZONED),
    "append": lambda bad: sw.Engine(key="k").append(bad),
    "advance": lambda bad: advanced(bad).append({"ts": [1]}),
    "advance, zoned": lambda bad: advanced(bad).append(ZONED),
    "advance twice": lambda bad: advanced(bad).advance(bad),
    "load(path)": sw.Engine.load,
    "load(queries)": lambda bad: sw.Engine.load("/no/such/file", bad),
}
LOOKED_UP: dict[str, Callable[[sw.Engine], Callable[[Any], Any]]] = {
    "lookup(name)": lambda e: e.lookup,
    "lookup(key)": lambda e: lambda bad: e.lookup("q", key=bad),
    "lookup(at)": lambda e: lambda bad: e.lookup("q", at=bad),
    "lookup(h, at)": lambda e: lambda bad: e.lookup("h", at=bad),
    "lookup(exact)": lambda e: lambda bad: e.lookup("h", exact=bad),
    "lookup_all(at)": lambda e: e.lookup_all,
    "filters(name)": lambda e: e.filters,
    "filters(at)": lambda e: lambda bad: e.filters(at=bad),
    "emitted(name)": lambda e: e.emitted,
}
CHANGED: dict[str, Callable[[sw.Engine], Callable[[Any], Any]]] = {
    "register": lambda e: e.register,
    "unregister": lambda e: e.unregister,
    "append": lambda e: e.append,
    "advance": lambda e: e.advance,
    "save": lambda e: e.save,
}
FRAMES: dict[str, Callable[[Any], Any]] = {
    "Threshold(column)": lambda bad: fr.Threshold(bad, ">", 1),
    "Threshold(op)": lambda bad: fr.Threshold("x", bad, 1),
    "Threshold(c)": lambda bad: fr.Threshold("x", ">", bad),
    "Threshold(min_rows)": lambda bad: fr.Threshold("x", ">", 1, min_rows=bad),
    "Threshold(min_duration)": lambda bad: fr.Threshold("x", ">", 1, min_duration=bad),
    "Threshold(predicate)": lambda bad: fr.Threshold(bad),
    "Session(gap)": lambda bad: fr.Session(bad),
    "State(column)": lambda bad: fr.State(bad),
    "Between(start)": lambda bad: fr.Between(bad, "x > 1"),
    "Between(same)": lambda bad: fr.Between("x > 1", "x < 1", bad),
    "Boundary(max_rows)": lambda bad: fr.Boundary("x", 1, max_rows=bad),
    "Delta(max_duration)": lambda bad: fr.Delta("x", 1, max_duration=bad),
    "Delta(extent)": lambda bad: fr.Delta("x", 1, extent=bad),
    "Threshold(partition)": lambda bad: fr.Threshold("x", ">", 1, partition=bad),
    "Boundary(column)": lambda bad: fr.Boundary(bad, 2),
    "Boundary(mapping)": fr.Boundary,
    "Boundary(width)": lambda bad: fr.Boundary("x", bad),
    "Boundary(breaks)": lambda bad: fr.Boundary("x", breaks=bad),
    "Delta(column)": lambda bad: fr.Delta(bad, 2),
    "Delta(mapping)": fr.Delta,
    "Delta(x)": lambda bad: fr.Delta("x", bad),
    "Delta(measure)": lambda bad: fr.Delta("x", 2, measure=bad),
    "Delta(op)": lambda bad: fr.Delta("x", 2, op=bad),
    "Aggregate(aggregate)": lambda bad: fr.Aggregate(bad, ">", 2),
    "Aggregate(op)": lambda bad: fr.Aggregate(SUM, bad, 2),
    "Aggregate(c)": lambda bad: fr.Aggregate(SUM, ">", bad),
    "FrameQuery(spec)": lambda bad: fr.FrameQuery(bad, [SUM]),
    "FrameQuery(values)": lambda bad: fr.FrameQuery(fr.Delta("x", 2), bad),
    "FrameQuery(where)": lambda bad: fr.FrameQuery(fr.Delta("x", 2), [SUM], bad),
    "FrameQuery(having)": lambda bad: fr.FrameQuery(fr.Delta("x", 2), [SUM], having=bad),
    "detect(spec)": lambda bad: fr.detect(bad, EVENTS),
    "detect(events)": lambda bad: fr.detect(fr.Delta("x", 2), bad),
    "detect(ts)": lambda bad: fr.detect(fr.Delta("x", 2), EVENTS, ts=bad),
    "detect(key)": lambda bad: fr.detect(fr.Delta("x", 2), EVENTS, key=bad),
    "detect(Threshold)": lambda bad: fr.detect(fr.Threshold("x", ">", bad), EVENTS),
    "detect(Boundary)": lambda bad: fr.detect(fr.Boundary("x", bad), EVENTS),
    "detect(breaks)": lambda bad: fr.detect(fr.Boundary("y", breaks=[1, bad]), EVENTS),
    "detect(Delta)": lambda bad: fr.detect(fr.Delta("x", bad), EVENTS),
    "detect(Aggregate)": lambda bad: fr.detect(fr.Aggregate(SUM, ">", bad), EVENTS),
    "detect(zoned, min_duration)": lambda bad: fr.detect(fr.Threshold("x", ">", 1, min_duration=bad), ZONED),
    **{
        f"FrameQuery({what})": lambda bad, what=what: str(
            fr.FrameQuery(**({"spec": DELTA, "values": SUM} | {what: bad}))
        )
        for what in ("spec", "values", "where", "having", "by", "stream")
    },
    "FrameQuery(name)": lambda bad: str(fr.FrameQuery(DELTA, [(bad, SUM)])),
    "FrameQuery(pair)": lambda bad: str(fr.FrameQuery(DELTA, [(SUM, bad, bad)])),
    "fill(frames)": lambda bad: fr.fill(bad, EVENTS),
    "fill(events)": lambda bad: fr.fill(frame_table(), bad),
    **{
        f"fill({what})": lambda bad, what=what: fr.fill(frame_table(), EVENTS, **({"key": "k"} | {what: bad}))
        for what in ("ts", "key", "before", "after", "own")
    },
    "summarize(frames)": lambda bad: fr.summarize(bad, EVENTS, SUM),
    "summarize(events)": lambda bad: fr.summarize(frame_table(), bad, SUM),
    "summarize(aggregates)": lambda bad: fr.summarize(frame_table(), EVENTS, bad),
    "summarize(one aggregate)": lambda bad: fr.summarize(frame_table(), EVENTS, [bad]),
    **{
        f"summarize({what})": lambda bad, what=what: fr.summarize(frame_table(), EVENTS, SUM, **{what: bad})
        for what in ("ts", "key", "before", "after", "own")
    },
    "Detector(spec)": fr.Detector,
    **{
        f"Detector({what})": lambda bad, what=what: fr.Detector(fr.Delta("x", 2), **{what: bad}).push(EVENTS)
        for what in ("ts", "key", "fragments")
    },
    "Detector.push": lambda bad: detector().push(bad),
    "Detector.punctuate": lambda bad: detector().punctuate(bad),
    **{
        f"Filler({what})": lambda bad, what=what: fr.Filler(**{what: bad}).push_events(EVENTS)
        for what in ("ts", "key", "before", "after")
    },
    "Filler.push_events": lambda bad: filler().push_events(bad),
    "Filler.push_frames": lambda bad: filler().push_frames(bad),
    "Filler.punctuate_events": lambda bad: filler().punctuate_events(bad),
    "Filler.punctuate_frames": lambda bad: filler().punctuate_frames(bad),
    "united": fr.united,
    "duration_error(frames)": lambda bad: fr.metrics.duration_error(bad, frame_table(), EVENTS),
    "duration_error(windows)": lambda bad: fr.metrics.duration_error(frame_table(), bad, EVENTS),
    "duration_error(events)": lambda bad: fr.metrics.duration_error(frame_table(), frame_table(), bad),
    "existence_error": lambda bad: fr.metrics.existence_error(frame_table(), bad),
    "jaccard_distance": lambda bad: fr.metrics.jaccard_distance([1], bad),
    "earth_movers_distance": lambda bad: fr.metrics.earth_movers_distance([1.0], bad),
    "rms_error": lambda bad: fr.metrics.rms_error([1.0], bad),
}


def refusals(call: Callable[[Any], Any]) -> Iterator[str]:
    """What a call says that is not said on purpose, for each bad argument."""
    for bad in BAD:
        try:
            call(bad)
        except sw.SwagError:
            continue
        except Exception as why:
            yield f"{type(why).__name__} of {bad!r:.60}: {why!s:.120}"


@pytest.mark.parametrize("name", WINDOWS)
def test_what_is_asked(name: str) -> None:
    assert list(refusals(WINDOWS[name])) == []


@pytest.mark.parametrize("name", MADE)
def test_engines_that_are_made(name: str) -> None:
    assert list(refusals(MADE[name])) == []


@pytest.mark.parametrize("name", LOOKED_UP)
@pytest.mark.parametrize("make", [engine, lambda: engine(key="k"), zoned, sw.Engine, lambda: sw.Engine(key="k")])
def test_lookups(name: str, make: Callable[[], sw.Engine]) -> None:
    assert list(refusals(LOOKED_UP[name](make()))) == []


@pytest.mark.parametrize("name", CHANGED)
@pytest.mark.parametrize("options", [{}, {"key": "k"}, {"lateness": 2}])
def test_what_is_refused_changes_nothing(
    name: str, options: dict[str, Any], tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)  # some of them are names of files, too

    made = engine(**options)
    before = seen(made)

    def call(bad: Any) -> None:
        nonlocal made
        try:
            CHANGED[name](made)(bad)
        except sw.SwagError:
            assert seen(made) == before
        else:
            made = engine(**options)  # it was taken

    assert list(refusals(call)) == []
    assert made.append({"ts": [10], "k": ["a"], "x": [5], "y": [1.0]}) == 1


def seen(made: sw.Engine) -> list[Any]:
    stats = made.stats()
    return [made.lookup_all(), made.filters(), stats["events"], stats["undelivered"], len(made.queries)]


@pytest.mark.parametrize("name", FRAMES)
def test_frames(name: str) -> None:
    assert list(refusals(FRAMES[name])) == []


@pytest.mark.parametrize("key", [["a", 1], ("a", None), [""], ["a", "b", "a"], {"a": 1}, [["a", "b"]], 5, ""])
def test_what_names_no_columns_is_refused_as_a_key(key: Any) -> None:
    spec = fr.Delta("x", 2)
    calls: list[Callable[[], Any]] = [
        lambda: sw.Engine(key=key),
        lambda: sw.evaluate(sw.Query(sw.count(), sw.Rows(1)), EVENTS, key=key),
        lambda: fr.detect(spec, EVENTS, key=key),
        lambda: fr.Detector(spec, key=key),
        lambda: fr.Filler(key=key),
    ]
    for call in calls:
        with pytest.raises(sw.BadQuery, match=r"is no name of a column|names a column twice"):
            call()
