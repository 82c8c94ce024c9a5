"""What always holds of the bands, piles and chunks of kernels/key_filters/bands.py."""

import numpy as np

from kernels.key_filters import bands
from kernels.operators.numbers import EARLIEST


def check_bands(state: bands.Bands, held: dict[int, dict[int, int]]) -> None:
    """Assert every invariant: held[r] = {entry: time} of the order in row r."""
    used: set[int] = set()
    for r in range(1, state.rows.shape[0]):
        count = int(state.rows[r, bands.COUNT])
        bounds = state.rows[r, : bands.BANDS].tolist()
        assert (
            0 <= count <= bands.BANDS and bounds[: max(count, 1) - 1] == sorted(set(bounds[: max(count, 1) - 1]))[::-1]
        )
        assert count == 0 or set(bounds[count - 1 :]) == {EARLIEST}
        seen: dict[int, int] = {}
        for j in range(count):
            newest = bounds[j - 1] if j else np.iinfo(np.int64).max
            live = _check_pile(state, r, j, used)
            assert all((j == count - 1 or t > bounds[j]) and t <= newest for t in live.values())
            seen |= live
        assert seen == held.get(r, {}), (r, seen, held.get(r))
    spare, chunk = set(), int(state.rows[0, bands.FIRST_SPARE])
    for _ in range(state.rows[0, bands.SPARE]):
        spare.add(chunk)
        chunk = int(state.piles[chunk * bands.CHUNK_WORDS])
    assert len(spare) == state.rows[0, bands.SPARE] and not spare & used
    assert spare | used == set(range(1, state.piles.size // bands.CHUNK_WORDS))


def _check_pile(state: bands.Bands, r: int, j: int, used: set[int]) -> dict[int, int]:
    chunk, end, live, items = (
        int(state.rows[r, column + j]) for column in (bands.PILE, bands.PILE_END, bands.LIVE, bands.ITEMS)
    )
    found, seen = {}, 0
    while chunk > 0:
        assert chunk not in used
        used.add(chunk)
        after = int(state.piles[chunk * bands.CHUNK_WORDS])
        for at in range(chunk * bands.CHUNK_WORDS + 1, (chunk + 1) * bands.CHUNK_WORDS if after else end):
            entry = int(state.piles[at])
            seen += 1
            if state.cells[entry, 1] == at:
                found[entry] = int(state.cells[entry, 0])
        assert after or (end - 1) // bands.CHUNK_WORDS == chunk
        chunk = after
    assert len(found) == live and seen == items and (live > 0) == (end > 0)
    return found
