"""Where large substreams are cut: pieces that take as long as each other, with what they see of the past."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swag.spark.batch.cuts import EARLIEST, GRAINS, LATEST, Halo, Large

EVENLY = Large(0, 1e6, np.arange(GRAINS + 1) * 1000)


@pytest.mark.parametrize(
    ("pieces", "halo"),
    [
        (2, Halo()),
        (8, Halo(5_000, columns=3)),
        (2, Halo(10**9, columns=30)),
        (2, Halo(10**9, columns=300)),
        (6, Halo(0, 20_000, columns=20)),
        (2, Halo(0, 10**7, columns=150)),
    ],
)
def test_pieces_take_as_long_as_each_other(pieces: int, halo: Halo) -> None:
    starts = EVENLY.starts(pieces, halo)
    assert len(starts) == pieces - 1
    edges = [EVENLY.rank(int(t)) for t in (0, *starts, 10**9)]
    behind = [0.0, *(EVENLY.rank(int(t)) - EVENLY.rank(int(t) - halo.time) for t in starts)]
    behind = [max(seen, min(edge, halo.rows / EVENLY.rows)) for seen, edge in zip(behind, edges)]
    costs = np.diff(edges) + halo.cost * np.array(behind)
    assert costs.max() - costs.min() <= 2.5 / GRAINS  # to the grain that is known of them


def test_nothing_is_cut_where_that_gains_little() -> None:
    assert len(EVENLY.starts(2, Halo(10**9, columns=3))) == 0
    assert len(EVENLY.starts(8, Halo(10**9, columns=3))) == 0
    assert len(EVENLY.starts(2, Halo(1000, columns=3))) == 1


def test_halos_that_outweigh_the_events_make_pieces_fewer() -> None:
    assert len(EVENLY.starts(8, Halo(10**9, columns=30))) == 1
    assert len(EVENLY.starts(8, Halo(1_000))) == 7


@given(
    times=st.lists(st.integers(EARLIEST, LATEST) | st.integers(0, 3), min_size=1, max_size=5),
    pieces=st.integers(2, 300),
    halo=st.builds(Halo, st.integers(0, 2**63 - 1), st.integers(0, 10**9), st.integers(0, 500)),
    rows=st.integers(1, 10**9),
)
def test_cuts_lie_between_different_times_and_are_no_more_than_asked_for(times, pieces, halo, rows) -> None:
    quantiles = np.sort(np.resize(np.array(times, np.int64), GRAINS + 1))
    starts = Large(0, float(rows), quantiles).starts(pieces, halo)
    assert len(starts) < pieces
    assert (np.diff(starts) > 0).all()
    assert set(starts.tolist()) <= set(times) - {int(quantiles[0])}
