"""An answer depends on the rows in its window and on nothing else, in the engine."""

import math

import numpy as np
import pytest

import swag as sw


def answers(aggregates, x, n, **options):
    engine = sw.Engine(**options)
    engine.register([sw.Query(a, sw.Rows(n), name=str(a)) for a in aggregates])
    for start in range(0, x.size, 100_000):
        part = x[start : start + 100_000]
        engine.append({"ts": np.arange(start, start + part.size), "x": part})
    return engine.lookup_all().to_pylist()[0]


@pytest.mark.parametrize("algorithm", ["auto", "b-int", "l-int"])
@pytest.mark.parametrize("wild", [math.nan, math.inf, -math.inf, 1e18, -1e300])
def test_what_has_left_leaves_no_trace(wild, algorithm):
    x = np.random.default_rng(1).normal(size=3000)
    aggregates = [sw.sum("x"), sw.mean("x"), sw.min("x"), sw.max("x"), sw.var("x"), sw.quantile("x", 0.5)]
    with_it = answers(aggregates, np.concatenate([[wild], x]), 3000, algorithm=algorithm)
    without = answers(aggregates, x, 3000, algorithm=algorithm)
    for name, value in without.items():
        assert with_it[name] == pytest.approx(value, rel=1e-12, abs=1e-12 * np.abs(x).sum())


def test_sums_after_two_million_events_and_a_1e18():
    x = np.concatenate([[1e18], np.full(2_000_000, 0.1)])
    got = answers([sw.sum("x")], x, 1000)["sum(x)"]
    assert got == pytest.approx(math.fsum([0.1] * 1000), rel=1e-12)


def test_variance_of_a_large_mean():
    x = 1e9 + np.random.default_rng(2).normal(size=200_000)
    got = answers([sw.var("x"), sw.std("x")], x, 10_000)
    expected = np.var(x[-10_000:] - 1e9, ddof=1)
    assert got["var(x)"] == pytest.approx(expected, rel=1e-6)
    assert got["std(x)"] == pytest.approx(math.sqrt(expected), rel=1e-6)


def test_the_variance_of_a_constant_is_zero():
    assert answers([sw.var("x")], np.full(5000, 0.1), 999)["var(x)"] == 0.0


@pytest.mark.parametrize("algorithm", ["auto", "b-int", "l-int"])
def test_integer_sums_are_exact_though_prefixes_wrap(algorithm):
    x = np.full(4000, 2**62 - 1)
    x[1::2] = -(2**62 - 3)
    assert answers([sw.sum("x")], x, 1000, algorithm=algorithm)["sum(x)"] == sum(x[-1000:].tolist())


def test_a_sum_that_does_not_fit_raises_and_a_mean_does_not():
    x = np.full(100, 2**62)
    with pytest.raises(OverflowError, match=r'"x" sums to about .*does not fit int64'):
        answers([sw.sum("x")], x, 3)
    assert answers([sw.sum("x")], x, 1)["sum(x)"] == 2**62
