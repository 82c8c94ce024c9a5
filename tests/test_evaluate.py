"""`evaluate` against the oracle: every aggregate, window and way of asking, in chunks and blocks of any size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import swag as sw
from swag.stored import blocks as chunks
from swag.stored import evaluation, ordered_rows
from tests import oracle
from tests.every_kind import options_of, others
from tests.kernels.harness import JIT
from tests.oracle import Agg, Q, agg, mismatches

NAN, INF = math.nan, math.inf
long_stream = pytest.mark.skipif(not JIT, reason="rows by the hundred thousand, which takes compiled kernels")
SCHEMA = pa.schema(
    {"ts": pa.int64(), "k": pa.string(), "x": pa.float64(), "y": pa.float64(), "i": pa.int64(), "s": pa.string(),
     "b": pa.bool_()}
)  # fmt: skip

# --- The same query for the oracle and for us -------------------------------------------------------------

GAP = sw.aggregate(
    "x", lift=lambda x: (x, x), combine=lambda a, b: (a[0], b[1]), lower=lambda a: a[1] - a[0], identity=(0.0, 0.0)
)
ORACLE_GAP = Agg(
    "user",
    ("x",),
    lift=lambda x: (x, x),
    combine=lambda a, b: (b[0] if a is None else a[0], b[1]),
    lower=lambda a: float(np.float64(a[1]) - np.float64(a[0])),
)

AGGREGATES: list[tuple[sw.Aggregate, Agg]] = [
    (sw.count(), agg("count")),
    *((sw.count(c), agg("count", c)) for c in "xis"),
    *((make(c), agg(kind, c)) for kind, make in (("sum", sw.sum), ("mean", sw.mean)) for c in "xi"),
    *((make(c), agg(kind, c)) for kind, make in (("min", sw.min), ("max", sw.max)) for c in "xi"),
    *((make(c), agg(kind, c)) for kind, make in (("first", sw.first), ("last", sw.last)) for c in "xis"),
    *(
        (make(c, ddof=d), agg(kind, c, ddof=d))
        for kind, make in (("var", sw.var), ("std", sw.std))
        for c in "xi"
        for d in (0, 1)
    ),
    *((sw.quantile(c, p), agg("quantile", c, phi=p)) for c in "xi" for p in (0.01, 0.5, 0.9, 1.0)),
    *(
        (sw.quantile(c, p, method="linear"), agg("quantile", c, phi=p, method="linear"))
        for c in "xi"
        for p in (0.3, 1.0)
    ),
    (sw.median("x"), agg("median", "x")),
    (sw.wmean("x", "y"), agg("wmean", "x", "y")),
    (sw.wmean("x", "i"), agg("wmean", "x", "i")),
    (sw.cov("x", "y"), agg("cov", "x", "y")),
    (sw.cov("x", "i", ddof=0), agg("cov", "x", "i", ddof=0)),
    (sw.corr("x", "y"), agg("corr", "x", "y")),
    (GAP, ORACLE_GAP),
    *((make(c), agg(kind, c)) for kind, make in (("skew", sw.skew), ("kurtosis", sw.kurtosis)) for c in "xi"),
    *((make(c), agg(make.__name__, c)) for make in (sw.any, sw.all, sw.count_if) for c in "b"),
    *((sw.product(c), agg("product", c)) for c in "xi"),
    *((make("x", c), agg(make.__name__, "x", c)) for make in (sw.slope, sw.intercept, sw.r2) for c in "yi"),
    *((make(c, by), agg(make.__name__, c, by)) for make in (sw.arg_max, sw.arg_min) for c in "xis" for by in "yi"),
    *((make(c, n), agg(make.__name__, c, n=n)) for make in (sw.first_n, sw.last_n) for c in "xsb" for n in (1, 3)),
    *(
        (make(c, h), agg(make.__name__, c, half_life=h))
        for make in (sw.decayed_sum, sw.decayed_mean)
        for c in "xi"
        for h in (1, 7, 2**40)
    ),
    *((sw.decayed_count(h), agg("decayed_count", half_life=h)) for h in (1, 5)),
    (sw.age(), agg("age")),
    *((make(c), agg(make.__name__, c)) for make in (sw.count_distinct, sw.mode) for c in "xisb"),
    (sw.count_distinct("x", approx=True), agg("count_distinct", "x")),
]
AGGREGATES += [
    (each, agg(each.kind, *each.columns, **options_of(each))) for each in others((a.kind for a, _ in AGGREGATES), "y")
]
WHERE = {None: None, "i > 0": lambda e: e["i"] is not None and e["i"] > 0, "k = 'b'": lambda e: e["k"] == "b"}


HAVING = st.sampled_from([None, None, (">", 0), ("<=", 2), ("between", -1, 3)])
EXACT = {"count", "min", "max", "count_if", "count_distinct"}  # a condition on what is rounded may go either way


def ours(window: oracle.Window) -> sw.Rows | sw.Range | sw.Unbounded:
    if isinstance(window, oracle.Rows):
        return sw.Rows(window.n, until=window.until)
    if isinstance(window, oracle.Unbounded):
        return sw.Unbounded(window.until, window.peers)
    return sw.Range(window.t, window.until, window.closed, window.peers)  # type: ignore[arg-type]


def rows(until: st.SearchStrategy[int]) -> st.SearchStrategy[oracle.Rows]:
    return st.builds(lambda u, n: oracle.Rows(u + n, u), until, st.integers(1, 12))


def ranges(until: st.SearchStrategy[int], t: st.SearchStrategy[int]) -> st.SearchStrategy[oracle.Range]:
    closed = st.sampled_from(["right", "left", "both", "none"])
    return st.builds(lambda u, t, c: oracle.Range(u + t, u, c), until, t, closed)


UNTIL = st.sampled_from([0, 0, 1, 3])
WINDOWS = rows(UNTIL) | ranges(UNTIL, st.integers(1, 12) | st.sampled_from([2**41, 2**62, 2**63 - 9, 2**70]))
QUERIES = st.lists(
    st.tuples(st.sampled_from(AGGREGATES), WINDOWS, st.sampled_from(list(WHERE)), HAVING), min_size=1, max_size=5
)

TAME = st.floats(-100, 100) | st.sampled_from([0.0, 1.0, -1.0, 0.1])
WILD = TAME | st.sampled_from([NAN, INF, -INF, 1e18, -1e18, 1e300, -1e300, 1e9 + 0.25, 1e9 - 0.5])
SMALL_TIMES = st.integers(0, 12)
TIMES = SMALL_TIMES | st.integers(-4, 4).map(lambda t: t + 2**40) | st.sampled_from([-(2**62), 2**62])


def events(times: st.SearchStrategy[int], values: st.SearchStrategy[float]) -> st.SearchStrategy[list[dict[str, Any]]]:
    event = st.fixed_dictionaries(
        {
            "ts": times,
            "k": st.sampled_from("abc"),
            "x": st.none() | values,
            "y": st.none() | values,
            "i": st.none() | st.integers(-5, 5) | st.sampled_from([2**40, -(2**50)]),
            "s": st.none() | st.sampled_from(["", "one", "two"]),
            "b": st.none() | st.booleans(),
        }
    )
    return st.lists(event, max_size=24)


def table(events: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(events, SCHEMA)


@contextmanager
def pieces(chunk: int, block: int, threads: int) -> Iterator[None]:
    """Answer in chunks and blocks of this many requests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "CHUNK", chunk)
        patch.setattr(chunks, "BLOCK", block)
        patch.setattr(ordered_rows, "HEAD", block)
        patch.setattr(evaluation, "MANY_ROWS", 0)
        patch.setenv("SWAG_THREADS", str(threads))
        yield


def check(asked: list[Any], stream: list[dict[str, Any]], at: list[dict[str, Any]] | None, key: str | None) -> None:
    queries, theirs = [], []
    for (aggregate, same), window, where, having in asked:
        having = having if aggregate.kind in EXACT else None
        queries.append(sw.Query(aggregate, ours(window), f"q{len(queries)}", where, having))
        theirs.append(Q(same, window, WHERE[where], having))
    requests = None if at is None else pa.Table.from_pylist(at, pa.schema({"ts": pa.int64(), "k": pa.string()}))
    answers = sw.evaluate(queries, table(stream), at=requests, key=key)
    got = [[row[q.label] for q in queries] for row in answers.to_pylist()]
    with np.errstate(all="ignore"):
        assert mismatches(got, theirs, stream, at, key) == []


PIECES = st.sampled_from([(10**6, 10**6, 1), (5, 2, 1), (7, 7, 2), (1, 1, 2)])
KEYS = st.sampled_from([None, "k"])
RELAXED = settings(max_examples=3 * settings().max_examples, suppress_health_check=list(HealthCheck))


@RELAXED
@given(QUERIES, events(TIMES, WILD) | events(SMALL_TIMES, TAME), KEYS, PIECES)
def test_at_each_event(
    asked: list[Any], stream: list[dict[str, Any]], key: str | None, size: tuple[int, int, int]
) -> None:
    with pieces(*size):
        check(asked, stream, None, key)


@given(
    QUERIES,
    st.lists(st.sampled_from([3, 3, 3, 3, 3, 3, 3, 3, 3, 0, 2, 4, 40]), min_size=30, max_size=60),
    st.sampled_from([(10**6, 10**6, 1), (16, 8, 2), (9, 3, 1)]),
)
def test_events_that_come_evenly_but_for_some(asked: list[Any], steps: list[int], size: tuple[int, int, int]) -> None:
    """Where they do, edges by time are slices; a gap, a tie or an event out of step must not be taken for one."""
    stream = [
        {"ts": int(ts), "k": "a", "x": float(j * j % 17), "y": 1.0, "i": j % 5, "s": "s", "b": j % 3 > 0}
        for j, ts in enumerate(np.cumsum(steps))
    ]
    with pieces(*size):
        check(asked, stream, None, None)


REQUESTS = st.lists(
    st.fixed_dictionaries({"ts": TIMES | st.integers(-3, 20), "k": st.sampled_from("abcd")}), max_size=12
)


@RELAXED
@given(QUERIES, events(TIMES, WILD) | events(SMALL_TIMES, TAME), REQUESTS, KEYS, PIECES)
def test_at_requests(
    asked: list[Any],
    stream: list[dict[str, Any]],
    at: list[dict[str, Any]],
    key: str | None,
    size: tuple[int, int, int],
) -> None:
    with pieces(*size):
        check(asked, stream, at, key)


@pytest.mark.parametrize("number", range(len(AGGREGATES)), ids=lambda j: str(AGGREGATES[j][0]))
def test_every_aggregate_over_every_window_of_one_stream(number: int) -> None:
    """A stream long enough for windows of all sizes, with nulls, ties and a few values that are hard on sums."""
    rng = np.random.default_rng(number)
    hard = {3: 1e18, 12: NAN, 21: -INF, 30: 1e300}
    stream = [
        {
            "ts": int(t),
            "k": "abc"[rng.integers(3)],
            "x": hard.get(j, None if j % 11 == 0 else float(rng.normal())),
            "y": None if j % 13 == 0 else float(rng.integers(1, 9)),
            "i": None if j % 7 == 0 else int(rng.integers(-9, 9)),
            "s": None if j % 9 == 0 else str(j * j % 10),
            "b": None if j % 5 == 0 else bool(rng.integers(2)),
        }
        for j, t in enumerate(rng.integers(0, 30, 45))
    ]
    windows = [oracle.Rows(1), oracle.Rows(20, 2), oracle.Range(2**63)]
    windows += [oracle.Range(9, u, c) for u in (0, 4) for c in ("right", "left", "both", "none")]
    asked = [(AGGREGATES[number], w, where, None) for w in windows for where in (None, "i > 0")]
    at = [{"ts": int(t), "k": "abcd"[rng.integers(4)]} for t in rng.integers(-5, 40, 12)]
    with pieces(16, 8, 2):
        check(asked, stream, None, None)
        check(asked, stream, at, "k")


# --- Numbers ----------------------------------------------------------------------------------------------


def one(aggregate: sw.Aggregate, window: Any, values: Any, ts: Any = None) -> np.ndarray:
    stream = {"ts": np.arange(len(values)) if ts is None else ts, "x": values}
    return sw.evaluate([sw.Query(aggregate, window, "q")], stream).column("q").to_numpy(zero_copy_only=False)


@long_stream
def test_a_million_times_a_tenth_is_exact_to_the_last_digits() -> None:
    got = one(sw.sum("x"), sw.Rows(10**6), np.full(10**6, 0.1))
    assert got[-1] == math.fsum([0.1] * 10**6)
    assert one(sw.sum("x"), sw.Rows(10), np.full(10**6, 0.1))[-1] == math.fsum([0.1] * 10)


@long_stream
@pytest.mark.parametrize("spike", [1e18, -1e18, 1e300, NAN, INF])
def test_nothing_remains_of_a_value_that_has_left(spike: float) -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=300_000)
    spiked = values.copy()
    spiked[[1000, 150_000]] = spike
    for aggregate in (sw.sum("x"), sw.mean("x"), sw.std("x"), sw.min("x"), sw.median("x")):
        expected, got = one(aggregate, sw.Rows(500), values), one(aggregate, sw.Rows(500), spiked)
        clean = np.ones(values.size, bool)
        clean[1000:1500] = clean[150_000:150_500] = False
        np.testing.assert_allclose(got[clean], expected[clean], rtol=1e-9, atol=500 * 1e-12)
        if math.isnan(spike):
            assert np.isnan(got[~clean]).all()


@long_stream
def test_windows_of_zeros_and_windows_that_cancel_are_exactly_zero() -> None:
    values = np.concatenate([np.full(1000, 0.3), np.zeros(50_000), np.tile([0.7, -0.7], 25_000)])
    got = one(sw.sum("x"), sw.Rows(100), values)
    assert (got[1100:51_000] == 0).all()
    assert (got[51_100::2] == got[51_100]).all()


@long_stream
def test_deviations_of_large_values_keep_their_digits() -> None:
    noise = np.random.default_rng(2).normal(size=200_000)
    values = 1e9 + noise
    got = one(sw.std("x"), sw.Rows(1000), values)
    for j in (999, 5000, 123_456, 199_999):
        assert got[j] == pytest.approx(np.std(values[j - 999 : j + 1] - 1e9, ddof=1), rel=1e-9)


@long_stream
def test_deviations_on_a_random_walk() -> None:
    values = np.cumsum(np.random.default_rng(3).normal(size=200_000)) * 1e3 + 1e9
    for n in (3, 20, 5000):
        got = one(sw.var("x"), sw.Rows(n), values)
        for j in (n, 77_777, 199_999):
            part = values[j - n + 1 : j + 1] - values[j]
            assert got[j] == pytest.approx(np.var(part, ddof=1), rel=1e-8)


@long_stream
def test_the_deviation_of_a_constant_is_exactly_zero() -> None:
    values = np.repeat(np.random.default_rng(4).normal(size=200), 500)
    got = one(sw.std("x"), sw.Rows(100), values)
    inside = np.arange(values.size) % 500 >= 99
    assert (got[inside] == 0).all()
    assert (got[~inside][99:] > 0).all()


def test_integer_sums_are_exact_where_they_fit_and_refused_where_they_do_not() -> None:
    big = 2**62
    assert one(sw.sum("x"), sw.Rows(2), np.array([big, big - 1, -big, 3, big])).tolist() == [
        big,
        2 * big - 1,
        -1,
        3 - big,
        big + 3,
    ]
    mean = one(sw.mean("x"), sw.Rows(3), np.array([big, big, big]))
    assert mean.tolist() == [float(big)] * 3
    stream = {"ts": [5, 1, 3], "x": pa.array([big, 7, big])}
    with pytest.raises(
        sw.SumOverflow, match=r'query "total": the sum of "x" at row 0 does not fit int64\. Hint: cast "x" to float64'
    ):
        sw.evaluate([sw.Query(sw.sum("x"), sw.Rows(2), "total")], stream)
    assert issubclass(sw.SumOverflow, OverflowError)


@long_stream
def test_long_streams_in_many_chunks_agree_with_numpy() -> None:
    rng = np.random.default_rng(5)
    n = 400_000
    values, ts = rng.normal(size=n), np.cumsum(rng.exponential(5, n)).astype(np.int64)
    lo = np.searchsorted(ts, ts - 1000, side="right")
    prefix = np.concatenate([[0], np.cumsum(values)])
    np.testing.assert_allclose(one(sw.sum("x"), sw.Range(1000), values, ts), prefix[1:] - prefix[lo], atol=1e-9)
    top, quartile = (
        one(sw.max("x"), sw.Range(1000), values, ts),
        one(sw.quantile("x", 0.25), sw.Range(1000), values, ts),
    )
    for j in rng.integers(0, n, 500):
        part = np.sort(values[lo[j] : j + 1])
        assert top[j] == part[-1]
        assert quartile[j] == part[max(1, math.floor(0.25 * part.size)) - 1]


@long_stream
def test_bursts_and_gaps_that_defeat_buckets_of_time() -> None:
    rng = np.random.default_rng(6)
    ts = np.sort(np.concatenate([rng.integers(0, 50, 5000), 2**61 + rng.integers(0, 2000, 5000), [-(2**61)]]))
    for t in (10, 100, 2**61):
        expected = np.arange(1, ts.size + 1) - [np.searchsorted(ts, now - t, side="right") for now in ts.tolist()]
        assert (one(sw.count(), sw.Range(t), np.zeros(ts.size), ts) == expected).all()


@long_stream
def test_the_number_of_threads_does_not_change_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    values = rng.normal(size=300_000)
    answers = []
    for threads in ("1", "2", "5", "nonsense"):
        monkeypatch.setenv("SWAG_THREADS", threads)
        answers.append([one(a, sw.Rows(777), values).tobytes() for a in (sw.sum("x"), sw.std("x"))])
    assert all(a == answers[0] for a in answers)
