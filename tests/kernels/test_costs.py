"""Costs in combines, not seconds: counted by an operator in plain Python, so only where kernels are not compiled.

tests/kernels/test_without_jit.py runs them.
"""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swag as sw
from swag.live.structures.baselines import MaterializeAll, MaterializeNone, PSoup
from swag.live.structures.intervals import Dyadic, Landmark, LandmarkGroup, Running, Structure
from swag.query.families import parts_of
from swag.query.windows import Reach
from tests.kernels.harness import filled

COUNTS = {"combine": 0, "lift": 0}


def counted_lift(x: Any) -> Any:
    COUNTS["lift"] += 1
    return x


def counted_sum(a: Any, b: Any) -> Any:
    COUNTS["combine"] += 1
    return a + b


def difference(a: Any, b: Any) -> Any:
    COUNTS["combine"] += 1
    return a - b


COUNTED = sw.aggregate("x", counted_lift, counted_sum, lambda a: a, identity=0, invert=difference)
KEY = np.zeros(1, np.int64)


def built(kind: type[Structure], rows: int) -> Structure:
    """Over that many rows; counting starts afterwards."""
    structure = kind(filled(np.arange(rows)), parts_of(COUNTED)[0])
    structure.rebuild()
    COUNTS.update(combine=0, lift=0)
    return structure


def combines(structure: Structure, lo: int, hi: int) -> int:
    COUNTS.update(combine=0)
    answer = structure.lookup(KEY, np.array([[lo]]), np.array([[hi]]))
    assert answer.tolist() == [sum(range(lo, hi))]
    return COUNTS["combine"]


def combines_per_row(kind: type[Structure], rows: int) -> float:
    structure = kind(filled(np.arange(rows)), parts_of(COUNTED)[0])
    COUNTS.update(combine=0)
    structure.rebuild()
    return COUNTS["combine"] / rows


WINDOWS = st.tuples(st.integers(0, 499), st.integers(1, 500)).map(lambda w: (w[0], min(500, w[0] + w[1])))


@given(window=WINDOWS)
def test_a_lookup_in_running_intervals_subtracts_once(window: tuple[int, int]) -> None:
    assert combines(built(Running, 500), *window) == 1


@given(window=WINDOWS)
def test_a_lookup_in_base_intervals_depends_on_its_width_alone(window: tuple[int, int]) -> None:
    lo, hi = window
    assert combines(built(Dyadic, 500), lo, hi) <= 2 * math.log2(hi - lo) + 2


@given(window=WINDOWS)
def test_a_lookup_in_landmark_intervals_combines_once_at_most(window: tuple[int, int]) -> None:
    structure = built(Landmark, 500)
    structure.lookup(KEY, np.array([[window[0]]]), np.array([[window[1]]]))  # makes the group
    assert combines(structure, *window) <= 1


@given(window=WINDOWS)
def test_a_lookup_in_a_search_tree_walks_down_twice(window: tuple[int, int]) -> None:
    assert combines(built(PSoup, 500), *window) <= 4 * 1.45 * math.log2(501)


@given(window=WINDOWS)
def test_a_lookup_with_nothing_materialized_folds_its_rows(window: tuple[int, int]) -> None:
    assert combines(built(MaterializeNone, 500), *window) == window[1] - window[0] - 1


def test_a_lookup_with_everything_materialized_combines_nothing() -> None:
    structure = built(MaterializeAll, 500)
    assert isinstance(structure, MaterializeAll)
    structure.set_windows([Reach(False, n, 0) for n in range(1, 101)])
    assert [combines(structure, 500 - n, 500) for n in range(1, 101)] == [0] * 100


@pytest.mark.parametrize("rows", [1, 2, 3, 64, 500, 1024])
def test_updates_of_base_intervals_cost_less_than_one_combine(rows: int) -> None:
    assert combines_per_row(Dyadic, rows) < 1


def test_updates_of_running_intervals_cost_one_combine() -> None:
    assert combines_per_row(Running, 500) == 1


@pytest.mark.parametrize("width", [1, 2, 3, 8, 100, 250])
def test_updates_of_landmark_intervals_cost_no_more_than_four_combines_per_group(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernels.windows.landmark.STRETCH_BITS", 11)
    structure = built(Landmark, 1000)
    COUNTS.update(combine=0)
    LandmarkGroup(width, 1000, structure)  # type: ignore[arg-type]
    assert COUNTS["combine"] <= 3 * 1000


def test_wide_landmark_intervals_cost_two_more() -> None:
    """Those put together from stretches (2^11 rows; here of 4, see tests/kernels/conftest.py)."""
    structure = built(Landmark, 1000)
    structure.lookup(KEY, np.array([[700]]), np.array([[1000]]))
    COUNTS.update(combine=0)
    structure.groups.clear()  # type: ignore[attr-defined]
    structure.lookup(KEY, np.array([[700]]), np.array([[1000]]))
    assert 3 * 300 < COUNTS["combine"] <= 5 * 512 + 1


def test_updates_of_a_search_tree_cost_two_combines_per_level() -> None:
    assert combines_per_row(PSoup, 500) <= 2 * (1.45 * math.log2(501) + 2)


def test_updates_with_everything_materialized_cost_a_few_combines_per_window() -> None:
    """One by one, as they come: pushed once, flipped once, and the answer put together."""
    windows, rows = 20, 400
    space = filled(np.arange(rows))
    structure = MaterializeAll(space, parts_of(COUNTED)[0])
    space.arena.rings[0, 3] = 100
    structure.set_windows([Reach(False, n, 0) for n in range(1, windows + 1)])
    COUNTS.update(combine=0)
    for tail in range(101, rows + 1):
        space.arena.rings[0, 3] = tail
        structure.update(KEY, np.array([1]))
    assert COUNTS["combine"] <= 5 * windows * (rows - 100)
    assert combines(structure, rows - windows, rows) == 0
