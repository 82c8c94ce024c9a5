"""The indexes as an engine uses them: never a key too few, whatever is asked, whenever, before and after a snapshot."""

import math
import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.key_filters import ci_levels, ci_sum
from swag.live.indexing.extrema_index import ExtremaIndex
from swag.live.indexing.indexes import CountIndex, SubstreamIndex, SumIndex
from tests.examples import share

OPS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
KINDS = ["count", "sum", "float sum", "max", "min", "integer max", "integer min"]
ENDS = (math.inf, -math.inf, 5e-324, 1e300, 2**53 + 1, 2**63 - 1, 2**63, -(2**63))
CONDITIONS = [(op, v) for op in OPS for v in (-2, 0, 1, 2.5, 4, 9, 2**40, 2**41 + 1, *ENDS)]
FLOATS = st.sampled_from([0.0, 0.1, 1.0, 1.0, 2.5, 4.0, 9.0, 1e-9, 1e12, 5e-324, 1e300, 1.7e308, math.inf, math.nan])
MODEST = st.sampled_from(
    [0.0, 0.1, 0.25, 1.0, 2.5, 3.7, 4.0, 9.0]
)  # none so large that a unit is more than any of them
NUMBERS = st.one_of(st.integers(0, 10), st.sampled_from([2**40 - 1, 2**40]))


def made(kind: str, p: int, longest: int) -> tuple[SubstreamIndex, CountIndex]:
    presence = CountIndex(p, longest)
    if kind == "count":
        return presence, presence
    if kind.endswith("sum"):
        return SumIndex(p, longest, floats=kind.startswith("float"), presence=presence), presence
    which = "max" if kind.endswith("max") else "min"
    dtype = np.int64 if kind.startswith("integer") else np.float64
    return ExtremaIndex(which, CONDITIONS[::2], longest, dtype, presence), presence


def answer(kind: str, values: list[float]) -> float:
    if kind == "count":
        return len(values)
    if any(map(math.isnan, values)):
        return math.nan
    return sum(values) if kind.endswith("sum") else max(values) if kind.endswith("max") else min(values)


def feed(indexes: set[SubstreamIndex], ids: list[int], ts: list[int], values: list[float], dtype: type) -> None:
    rows = np.array(ids, np.int64), np.array(ts, np.int64), np.array(values, dtype)
    for index in indexes:
        index.add_keys(max(index.key_count, int(rows[0].max()) + 1))
        index.update(*rows)


def check_relaxed(index: CountIndex, op: str, v: float, found: list[float]) -> None:
    """What is returned satisfies the condition relaxed by epsilon; of floats, units come into it. NaN is no answer."""
    found, unit = [each for each in found if not math.isnan(each)], 0.0
    if isinstance(index, SumIndex) and index.floats:
        if index.scale == 0 or 2 * v * index.scale > ci_sum.LARGEST_COUNTED / 4:
            return
        unit = 1 / index.scale
    if op in (">", ">="):
        least = v * (1 - index.epsilon) - 4 * unit
        assert all(each > least or each == v == 0 for each in found), (op, v, found)
    else:
        most = v if unit else math.floor(v) + 1 if op == "<=" else math.ceil(v)
        limit = (most + 8 * unit) * (1 + ci_levels.relaxation(index.known.p, below=True))
        assert all(0 <= each < limit or each == limit == 0 for each in found), (op, v, found)


@st.composite
def runs(draw, values):
    steps = st.tuples(st.integers(0, 5), st.integers(0, 3), values)
    batches = draw(st.lists(st.lists(steps, min_size=1, max_size=25), min_size=1, max_size=4))
    ask = st.tuples(st.integers(1, 80), st.sampled_from(CONDITIONS), st.integers(0, 9), st.integers(0, 1))
    asks = draw(st.lists(ask, max_size=8))
    return draw(st.integers(1, 16)), batches, asks


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=share(40), deadline=None)
@given(data=st.data())
def test_candidates_are_a_superset(kind: str, data: st.DataObject) -> None:
    floats = kind in ("float sum", "max", "min")
    p, batches, asks = data.draw(runs(data.draw(st.sampled_from([FLOATS, MODEST])) if floats else NUMBERS))
    index, presence = made(kind, p, longest=60)
    rows: dict[int, list[tuple[int, float]]] = {}
    now = 0
    for batch in batches:
        ids, ts, values = [], [], []
        for k, passed, value in batch:
            now += passed
            ids.append(k)
            ts.append(now)
            values.append(value)
            rows.setdefault(k, []).append((now, value))
        feed({index, presence}, ids, ts, values, np.float64 if floats else np.int64)
        for t, (op, v), ago, near in asks:
            at = now - ago if ago < 5 else now + ago  # in the past, now, and later than all events
            inside = {k: [x for when, x in of_key if at - t < when <= at - near] for k, of_key in rows.items()}
            exact = {k for k, x in inside.items() if x and OPS[op](answer(kind, x), v)}
            found = index.candidates(t, op, v, at, near).tolist()
            assert len(set(found)) == len(found)
            assert exact <= set(found), (op, v, t, at)
            if isinstance(index, CountIndex):
                certain, doubtful = (set(each.tolist()) for each in index.decided(t, op, v, at, near))
                assert certain <= exact <= certain | doubtful == set(found)
            if (
                at >= now
                and near == 0
                and t <= 60
                and isinstance(index, CountIndex)
                and abs(v) < ci_sum.LARGEST_COUNTED / 8
            ):
                check_relaxed(index, op, v, [answer(kind, inside[k]) for k in found])
            if kind in ("max", "min") and (op, v) in CONDITIONS[::2] and at >= now and near == 0 and t <= 60:
                assert exact == set(found)
        index.expire(now)
        presence.expire(now)


@pytest.mark.parametrize("kind", KINDS)
def test_a_snapshot_goes_on_as_if_nothing_had_happened(kind: str) -> None:
    rng = np.random.default_rng(7)
    dtype = np.float64 if kind in ("float sum", "max", "min") else np.int64
    one, presence = made(kind, 4, longest=500)
    ids, ts, values = rng.integers(0, 40, 3000), np.sort(rng.integers(0, 1000, 3000)), rng.integers(0, 12, 3000)
    feed({one, presence}, ids[:2000].tolist(), ts[:2000].tolist(), values[:2000].tolist(), dtype)
    before = [one.candidates(300, op, v, 900) for op, v in CONDITIONS]
    other, _ = made(kind, 4, longest=500)
    header, arrays = one.state()
    other.restore((header, {name: array.copy() for name, array in arrays.items()}))
    other.presence = presence
    assert [found.tolist() for found in before] == [other.candidates(300, op, v, 900).tolist() for op, v in CONDITIONS]
    feed({one, other, presence}, ids[2000:].tolist(), ts[2000:].tolist(), values[2000:].tolist(), dtype)
    for op, v in CONDITIONS:
        assert set(one.candidates(300, op, v, 1000)) == set(other.candidates(300, op, v, 1000))
    assert one.bytes == other.bytes


def test_counts_keep_the_relaxed_bound_with_many_keys() -> None:
    """Large enough for the batch to be taken in by neighbourhoods."""
    rng = np.random.default_rng(8)
    keys, p = 20_000, 4
    ids, ts = (rng.zipf(1.3, 200_000) - 1) % keys, np.arange(200_000)
    index = CountIndex(p, longest=150_000)
    index.add_keys(keys)
    for part in np.array_split(np.arange(ids.size), 7):
        index.update(ids[part], ts[part])
    for t, v in ((1000, 3), (50_000, 20), (150_000, 333)):
        counts = np.bincount(ids[ts > 199_999 - t], minlength=keys)
        found = index.candidates(t, ">=", v, 199_999)
        assert set(np.flatnonzero(counts >= v)) <= set(found)
        assert (counts[found] > v * (1 - ci_levels.relaxation(p))).all()
        found = index.candidates(t, "<", v, 199_999)
        assert set(np.flatnonzero((counts > 0) & (counts < v))) <= set(found)
        assert ((counts[found] > 0) & (counts[found] < v * (1 + ci_levels.relaxation(p, below=True)))).all()


def test_memory_follows_the_keys_that_are_alive() -> None:
    index = CountIndex(4, longest=100)
    sizes = []
    for generation in range(12):
        ids = np.repeat(np.arange(generation * 500, (generation + 1) * 500), 8)
        index.add_keys((generation + 1) * 500)
        index.update(ids, np.full(ids.size, generation * 1000))
        index.expire(generation * 1000)
        sizes.append(index.known.blocks.shape[0])
    assert sizes[-1] == sizes[1]


def test_infinite_and_missing_thresholds() -> None:
    index, presence = made("count", 4, longest=10)
    feed({index, presence}, [0, 1], [1, 2], [0, 0], np.int64)
    for op in (">", ">=", "<", "<="):
        assert index.candidates(10, op, math.nan, 2).size == 0
    assert index.candidates(10, ">", math.inf, 2).size == 0
    assert set(index.candidates(10, "<", math.inf, 2)) == {0, 1}
    assert index.candidates(10, "<=", -math.inf, 2).size == 0
    assert set(index.candidates(10, ">", -math.inf, 2)) == {0, 1}


def test_more_keys_than_there_was_room_for() -> None:
    """The first walk does not fit: what is in its buffer is no entry, and must not be followed."""
    index = CountIndex(4, longest=10)
    index.add_keys(5000)
    index._out[:] = 1 << 40
    index.update(np.arange(5000), np.zeros(5000, np.int64))
    for op, v in ((">=", 1), ("<", 2)):
        assert index.candidates(5, op, v, 0).tolist() == list(range(5000))
        certain, doubtful = index.decided(5, op, v, 0)
        assert sorted([*certain, *doubtful]) == list(range(5000))
