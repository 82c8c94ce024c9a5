"""Where values were before: how many are different, and the most frequent one, as plain Python counts them."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from kernels.rings.timeline import HEAD
from kernels.stored import distinct
from kernels.windows import previous
from swag.live.structures.ranks import DistinctRuns, Previous
from swag.query.kind import Part
from tests.kernels.harness import Batch, Plan, Stream, filled, plans
from tests.kernels.operators import floats, integers
from tests.kernels.test_late import LateStream

STREAMS = [Stream, LateStream]


def few(rng: np.random.Generator, n: int, odd: float) -> np.ndarray:
    return rng.integers(0, 4, n)


def odd_floats(rng: np.random.Generator, n: int, odd: float) -> np.ndarray:
    """Zeros of both signs, and NaN of several patterns."""
    words = np.array([0.0, -0.0, 1.5, np.inf, -np.inf, np.nan, -np.nan, 0.0]).view(np.int64)
    words[7] = 0x7FF0000000000001
    return words.view(np.float64)[rng.integers(0, 8, n)]


VALUES = [few, odd_floats, floats, integers]


def told_apart(x: Any) -> Any:
    return "NaN" if x != x else x + 0


def counts_of(rows: list[tuple[Any, ...]]) -> Counter[Any]:
    return Counter(told_apart(row[0]) for row in rows)


def check_distinct(stream: Stream, structure: DistinctRuns) -> None:
    lo, hi = stream.windows(6)
    found = structure.lookup(stream.keys, lo, hi).reshape(lo.shape)
    for k in stream.keys:
        for w, (a, b) in enumerate(zip(lo[k], hi[k], strict=True)):
            assert found[k, w] == len(counts_of(stream.rows[k][a:b]))


def check_mode(stream: Stream, structure: Previous) -> None:
    """most_common gives, of several, the one that was counted first."""
    lo, hi = stream.windows(6)
    found = structure.lookup(stream.keys, lo, hi).reshape(lo.shape)
    for k in stream.keys:
        for w, (a, b) in enumerate(zip(lo[k], hi[k], strict=True)):
            if a < b:
                assert told_apart(found[k, w]) == counts_of(stream.rows[k][a:b]).most_common(1)[0][0]


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("values", VALUES)
@given(plan=plans())
def test_distinct_values_and_modes_of_any_window(
    kind: type[Stream], values: Callable[..., np.ndarray], plan: Plan
) -> None:
    stream = kind(plan, values)
    counted = DistinctRuns(stream.space, Part("distinct", ("x",)))
    most = Previous(stream.space, Part("mode", ("x",)))
    stream.structures += [counted, most]
    for batch in plan.batches:
        stream.append(batch)
        check_distinct(stream, counted)
        check_mode(stream, most)


@pytest.mark.parametrize("kind", STREAMS)
def test_thousands_of_rows(kind: type[Stream]) -> None:
    stream = kind(Plan(2, False, 0.0, 3, ()), integers)
    structure = DistinctRuns(stream.space, Part("distinct", ("x",)))
    stream.structures.append(structure)
    for rows in (700, 1, 15, 900, 40):
        stream.append(Batch(rows, 1000, None))
        check_distinct(stream, structure)


def test_the_table_forgets_values_that_no_row_holds() -> None:
    stream = Stream(Plan(1, False, 0.0, 3, ()), lambda rng, n, odd: rng.integers(0, 2**60, n))
    structure = DistinctRuns(stream.space, Part("distinct", ("x",)))
    stream.structures.append(structure)
    for _ in range(100):
        stream.append(Batch(100, 100, None))
        check_distinct(stream, structure)
    assert structure.table.shape[0] <= 2048
    lost = structure.table[:, previous.PLACE] < stream.space.arena.rings[0, HEAD]
    assert np.count_nonzero(structure.table[:, previous.RING]) - np.count_nonzero(lost) <= 200


def test_rings_that_are_numbered_anew_keep_their_values() -> None:
    stream = Stream(Plan(4, False, 0.0, 9, ()), few)
    structure = DistinctRuns(stream.space, Part("distinct", ("x",)))
    stream.structures.append(structure)
    for _ in range(5):
        stream.append(Batch(50, 30, None))
    kept = np.array([3, 1])
    stream.store.renumber(kept)
    structure.renumber(kept)
    stream.rows, stream.times = [stream.rows[k] for k in kept], [stream.times[k] for k in kept]
    stream.store.keys.count = 2  # type: ignore[union-attr, misc]
    stream.plan = Plan(3, False, 0.0, 9, ())
    for _ in range(3):
        check_distinct(stream, structure)
        stream.append(Batch(50, 30, None))


def test_a_table_that_is_rebuilt_from_rows_answers_the_same() -> None:
    values = np.random.default_rng(1).integers(0, 50, 5000)
    space = filled(values)
    structure = DistinctRuns(space, Part("distinct", ("x",)))
    structure.rebuild()
    edges = np.array([[0, 17, 4000, 100]]), np.array([[5000, 17, 4001, 180]])
    found = structure.lookup(np.zeros(1, np.int64), *edges)
    assert found.tolist() == [50, 0, 1, len(set(values[100:180].tolist()))]


@pytest.mark.parametrize("different", [1, 2, 3, 8, 40])
def test_windows_that_jump_are_swept_right(different: int) -> None:
    rng = np.random.default_rng(different)
    ids = rng.integers(0, different, 300).astype(np.int32)
    before, after = np.empty(300, np.int32), np.empty(300, np.int32)
    distinct.link(ids, np.full(different, -1), before, after)
    linked = distinct.Linked(ids, before, after)
    lo = np.sort(rng.integers(0, 300, 60))
    hi = np.maximum.accumulate(np.minimum(300, lo + rng.integers(0, 40, 60)))
    cursor, found, first = np.zeros(3, np.int64), np.empty(60, np.int64), np.empty(60, np.int64)
    state = distinct.contest(different)
    for part in (slice(0, 25), slice(25, 60)):
        distinct.slide(linked, cursor, lo[part], hi[part], found[part])
        distinct.slide_mode(linked, state, lo[part], hi[part], first[part])
    for i in range(60):
        window = ids[lo[i] : hi[i]].tolist()
        assert found[i] == len(set(window))
        assert not window or ids[first[i]] == Counter(window).most_common(1)[0][0]
