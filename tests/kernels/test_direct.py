"""Few windows over many rows: pieces between their edges, each added up once, and none that no window sees."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernels.stored import direct

EDGES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=12)


@given(edges=EDGES)
def test_windows_are_made_of_the_pieces_between_edges(edges: list[tuple[int, int]]) -> None:
    starts, ends = sorted(a for a, _ in edges), sorted(b for _, b in edges)
    lo, hi = np.minimum(starts, ends).astype(np.int64), np.array(ends, np.int64)
    room, n = 2 * lo.size, lo.size
    bounds, covered = np.empty(room, np.int64), np.empty(room, np.bool_)
    first, last = np.empty(n, np.int64), np.empty(n, np.int64)
    pieces = direct.cut(lo, hi, bounds, covered, first, last)
    assert (np.diff(bounds[: pieces + 1]) > 0).all()
    assert bounds[first].tolist() == lo.tolist()
    assert bounds[last].tolist() == hi.tolist()
    for j in range(pieces):
        assert covered[j] == any(a <= bounds[j] and bounds[j + 1] <= b for a, b in zip(lo, hi, strict=True))
    values = np.where(seen(lo, hi, 31), np.arange(31.0), np.nan)  # what no window sees is not looked at
    out = np.empty(pieces)
    assert direct.piece_sums(values, bounds, covered, out)
    for a, b, i, j in zip(lo, hi, first, last, strict=True):
        assert out[i:j].sum() == values[a:b].sum()


def seen(lo: np.ndarray, hi: np.ndarray, rows: int) -> np.ndarray:
    return np.array([any(a <= row < b for a, b in zip(lo, hi, strict=True)) for row in range(rows)], bool)


@given(values=st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40), times=st.integers(1, 40))
def test_long_windows_are_added_up_to_the_last_digits(values: list[float], times: int) -> None:
    column, out = np.array(values * times), np.empty(1)
    assert direct.sums(column, np.array([0]), np.array([column.size]), out)
    assert abs(out[0] - math.fsum(column)) <= 1e-13 * math.fsum(np.abs(column))


def test_what_overflows_is_reported() -> None:
    out = np.empty(1)
    assert not direct.sums(np.array([1.5e308, 1.5e308, -1.5e308]), np.array([0]), np.array([3]), out)
