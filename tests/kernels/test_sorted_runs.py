"""B-INT-QNT, and sorting on lookup: the element of any rank, and the one after it, as sorted() has them."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given

from kernels.windows import sorted_runs
from kernels.windows.sorted_runs import RUN_BITS, SHORTEST_RUN
from swag.live.structures.ranks import ByRank, SortedOnLookup, SortedRuns
from swag.query.kind import Part
from tests.kernels.checks import check_sorted_runs
from tests.kernels.harness import Batch, Plan, Stream, check_arena, plans
from tests.kernels.operators import floats, integers

PART = Part("quantile", ("x",))


def few(rng: np.random.Generator, n: int, odd: float) -> np.ndarray:
    """Mostly duplicates."""
    return rng.integers(0, 4, n).astype(np.float64)


def without_nan(rng: np.random.Generator, n: int, odd: float) -> np.ndarray:
    values = floats(rng, n, odd)
    return np.where(np.isnan(values), -0.0, values)


VALUES = [few, floats, without_nan, integers]


def check_ranks(stream: Stream, structure: ByRank, lo: np.ndarray, hi: np.ndarray) -> None:
    """A random rank in every window, against sorted()."""
    ranks = (stream.rng.random(lo.shape) * np.maximum(hi - lo, 1)).astype(np.int64)
    element, after = structure.select(stream.keys, lo, hi, ranks)
    for k in stream.keys:
        for w, (a, b, rank) in enumerate(zip(lo[k], hi[k], ranks[k], strict=True)):
            values = [row[0] for row in stream.rows[k][a:b]]
            if any(v != v for v in values):
                assert math.isnan(element[k, w]) and math.isnan(after[k, w])
            elif values:
                expected = sorted(values)
                assert element[k, w] == expected[rank]
                assert after[k, w] == expected[min(rank + 1, len(values) - 1)]


@pytest.mark.parametrize("values", VALUES)
@given(plan=plans())
def test_the_element_of_any_rank_in_any_window(values: Callable[..., np.ndarray], plan: Plan) -> None:
    stream = Stream(plan, values)
    structure, without = SortedRuns(stream.space, PART), SortedOnLookup(stream.space, PART)
    stream.structures += [structure, without]
    for batch in plan.batches:
        stream.append(batch)
        windows = stream.windows(6)
        check_ranks(stream, structure, *windows)
        check_ranks(stream, without, *windows)
        check_sorted_runs(stream, structure)
    check_arena(stream.space.arena)


def test_every_rank_of_one_window() -> None:
    stream = Stream(Plan(1, False, 0.0, 1, ()), few)
    structure = SortedRuns(stream.space, PART)
    stream.structures.append(structure)
    stream.append(Batch(61, 61, None))
    lo, hi = np.full((1, 50), 7), np.full((1, 50), 57)
    element, after = structure.select(stream.keys, lo, hi, np.arange(50)[None, :])
    expected = sorted(row[0] for row in stream.rows[0][7:57])
    assert element[0].tolist() == expected
    assert after[0].tolist() == [*expected[1:], expected[-1]]


def test_a_nan_spoils_the_windows_that_hold_it_and_no_other() -> None:
    #   position  0 .. 9   10   11 .. 29
    #   value     p        NaN  p
    runs, rings = one_ring(np.array([math.nan if p == 10 else float(p) for p in range(30)]))
    element, after = look(runs, rings, [(0, 10), (11, 30), (5, 11), (10, 11), (10, 30)])
    assert element[:2] == [0.0, 11.0] and after[:2] == [1.0, 12.0]
    assert all(map(math.isnan, element[2:] + after[2:]))


def test_infinities_are_values() -> None:
    runs, rings = one_ring(np.array([math.inf, -math.inf, 5.0, -math.inf]))
    assert look(runs, rings, [(0, 4)], rank=0) == ([-math.inf], [-math.inf])
    assert look(runs, rings, [(0, 4)], rank=1) == ([-math.inf], [5.0])
    assert look(runs, rings, [(0, 4)], rank=3) == ([math.inf], [math.inf])


@pytest.mark.parametrize("different", [3, 40, 10**6])
def test_windows_that_are_alike_are_looked_for_where_the_last_answer_was(different: int) -> None:
    """Some are just not alike, some lie in another part of the stream, some are empty."""
    rng = np.random.default_rng(4)
    values = rng.integers(0, different, 1000).astype(np.float64)
    values[500:] += 10  # so that a guess may be wrong
    runs, rings = one_ring(values, 5)
    lo = np.cumsum(rng.integers(-3, 12, 90)).clip(0, 990)[None, :]
    hi = np.minimum(lo + rng.choice([0, 20, 300, 305, 330, 400], 90), 1000)
    ranks = np.maximum((hi - lo) * rng.choice([0.3, 0.5, 0.51], 90) - 1, 0).astype(np.int64)
    element, after = np.zeros(lo.shape), np.zeros(lo.shape)
    sorted_runs.lookup(runs, rings, np.zeros(1, np.int64), (lo, hi), ranks, element, after)
    for w in np.flatnonzero(hi[0] > lo[0]):
        expected = np.sort(values[lo[0, w] : hi[0, w]])
        assert element[0, w] == expected[ranks[0, w]]
        assert after[0, w] == expected[min(ranks[0, w] + 1, expected.size - 1)]


@pytest.mark.parametrize("levels", range(1, 5))
def test_levels_that_are_missing_cost_time_but_no_answer(levels: int) -> None:
    values = np.random.default_rng(2).permutation(200).astype(np.float64)
    runs, rings = one_ring(values, levels)
    for rank in (0, 1, 60, 120):
        element, _ = look(runs, rings, [(3, 190)], rank=rank)
        assert element == [sorted(values[3:190])[rank]]


def test_levels_added_late_are_what_they_would_have_been() -> None:
    values = np.random.default_rng(3).normal(size=500)
    early, rings = one_ring(values, 5)
    late = np.empty((5, early[1].shape[1]))
    for level in range(5):
        sorted_runs.rebuild_level(early[0], late, level, rings)
        complete = 500 // (SHORTEST_RUN << level) * (SHORTEST_RUN << level)
        assert np.array_equal(late[level, :complete], early[1][level, :complete])


def test_a_ring_that_outgrows_its_levels_gets_more() -> None:
    stream = Stream(Plan(1, False, 0.0, 5, ()), few)
    structure = SortedRuns(stream.space, PART)
    stream.structures.append(structure)
    for rows in (1, 1, 2, 4, 8, 100, 900):
        stream.append(Batch(rows, 1016, None))
        check_sorted_runs(stream, structure)
        assert structure.held[0].data.shape[0] >= len(stream.rows[0]).bit_length() - RUN_BITS


def one_ring(values: np.ndarray, levels: int = 3) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """The values and runs of a single ring that holds all the values from slot 0 on."""
    capacity = 1 << (values.size - 1).bit_length()
    column = np.zeros(capacity, values.dtype)
    column[: values.size] = values
    rings = np.array([[0, capacity, 0, values.size]])
    runs = np.empty((levels, capacity), values.dtype)
    sorted_runs.update(column, runs, rings, np.zeros(1, np.int64), np.array([values.size]))
    return (column, runs), rings


def look(
    runs: tuple[np.ndarray, np.ndarray], rings: np.ndarray, windows: list[tuple[int, int]], rank: int = 0
) -> tuple[list[float], list[float]]:
    lo, hi = (np.array([edge]) for edge in zip(*windows, strict=True))
    element, after = np.empty(lo.shape), np.empty(lo.shape)
    sorted_runs.lookup(runs, rings, np.zeros(1, np.int64), (lo, hi), np.full(lo.shape, rank), element, after)
    return element[0].tolist(), after[0].tolist()


SHAPES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "noise": lambda rng, n: rng.normal(size=n),
    "a walk": lambda rng, n: np.cumsum(rng.normal(size=n)),
    "rising": lambda rng, n: np.arange(n, dtype=np.float64),
    "falling": lambda rng, n: -np.arange(n, dtype=np.float64),
    "one value": lambda rng, n: np.full(n, 7.0),
    "two values": lambda rng, n: rng.integers(0, 2, n).astype(np.float64),
    "steps": lambda rng, n: np.repeat(rng.normal(size=n // 64 + 1), 64)[:n],
    "mostly one": lambda rng, n: np.where(rng.random(n) < 0.97, 0.0, rng.normal(size=n)),
    "heavy tails": lambda rng, n: rng.standard_cauchy(n) * 1e300,
    "infinite": lambda rng, n: rng.choice([-np.inf, 0.0, np.inf], n),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_ranks_of_thousands_of_rows_whatever_they_are_like(shape: str) -> None:
    rng = np.random.default_rng(11)
    values = SHAPES[shape](rng, 3000)
    runs, rings = one_ring(values, 8)
    for lo, hi in ((0, 3000), (5, 2999), (17, 2048), (1000, 1100), (2950, 3000), (31, 64)):
        expected = np.sort(values[lo:hi])
        for rank in {0, 1, (hi - lo) // 100, (hi - lo) // 2, (hi - lo) * 9 // 10, hi - lo - 2, hi - lo - 1}:
            after = expected[min(rank + 1, hi - lo - 1)]
            assert look(runs, rings, [(lo, hi)], rank=rank) == ([expected[rank]], [after])
