"""Orders of bands under random actions: every invariant after each step, every walk against a plain list."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.compile.jit import kernel
from kernels.key_filters import band_walks, bands
from tests.examples import share
from tests.kernels.check_bands import check_bands

ROWS = range(1, 4)
SMALL = st.integers(-40, 40)
ANY = st.integers(-(2**63), 2**63 - 1)
NEAR = st.builds(lambda base, more: base + more, st.sampled_from([0, 10**18, -(2**63), 2**62 - 50]), st.integers(0, 99))
TIMES = st.one_of(SMALL, NEAR, ANY)


@kernel
def place(state, row, entry, t):
    bands.place(bands.opened(state), row, entry, t)


@kernel
def move(state, row, entry, t):
    bands.move(bands.opened(state), row, entry, t)


@kernel
def remove(state, row, entry):
    bands.remove(bands.opened(state), row, entry)


@kernel
def walk(state, row, x, out):
    return band_walks.walk(bands.opened(state), row, x, out)


def begun(rows: range, entries: int) -> bands.Bands:
    state = bands.empty(len(rows), entries)
    for row in rows:
        bands.begin(state.rows, row)
    return state


def with_room(state: bands.Bands) -> bands.Bands:
    return state if state.rows[0, bands.SPARE] > 2 else bands.with_spare(state, 3)


def filled(times: np.ndarray) -> bands.Bands:
    """One order: entry e + 1 has the e-th time."""
    state = begun(range(1, 2), times.size + 1)
    for e in range(times.size):
        state = with_room(state)
        place(state, 1, e + 1, times[e])
    return with_room(state)


def walked(state: bands.Bands, row: int, x: int, room: int = 8192) -> list[int]:
    out = np.empty(room, np.int64)
    found = walk(state, row, x, out)
    assert found <= room
    return sorted(out[:found].tolist())


def compared(state: bands.Bands, x: int) -> int:
    """How many entries of the first order a walk compares with x."""
    j = int(bands.band_of(state.rows, 1, x))
    return 0 if j > 0 and state.rows[1, j - 1] == x else int(state.rows[1, bands.LIVE + j])


class Model:
    """The orders and what they should hold."""

    def __init__(self, entries: int) -> None:
        self.state = begun(ROWS, entries + 1)
        self.held: dict[int, dict[int, int]] = {row: {} for row in ROWS}

    def act(self, action: str, entry: int, row: int, t: int) -> None:
        where = next((each for each, entries in self.held.items() if entry in entries), None)
        self.state = with_room(self.state)
        if action == "walk":
            assert sorted(e for e, at in self.held[row].items() if at > t) == walked(self.state, row, t)
        elif action == "remove" and where is not None:
            remove(self.state, where, entry)
            del self.held[where][entry]
        elif action == "put" and where is None:
            place(self.state, row, entry, t)
            self.held[row][entry] = t
        elif action == "put" and where is not None:
            move(self.state, where, entry, t)
            self.held[where][entry] = t


NAMES = st.sampled_from(["put", "put", "remove", "walk"])
ACTIONS = st.tuples(NAMES, st.integers(1, 60), st.sampled_from(ROWS), TIMES)


@settings(max_examples=share(150), deadline=None)
@given(st.lists(TIMES, min_size=20, max_size=60), st.lists(ACTIONS, max_size=60))
def test_random_actions_keep_every_invariant(start: list[int], actions: list[tuple[str, int, int, int]]) -> None:
    model = Model(60)
    for entry, t in enumerate(start, 1):
        model.act("put", entry, 1, t)
    for action in actions:
        model.act(*action)
        check_bands(model.state, model.held)


@pytest.mark.parametrize("seed", range(4))
def test_crowds_that_move_on_while_they_are_asked(seed: int) -> None:
    """Enough entries for piles of many chunks, to be tidied, cut and joined, and more windows than there are bands."""
    rng = np.random.default_rng(seed)
    model = Model(2000)
    now = 0
    for _ in range(60):
        for entry in rng.integers(1, 2001, 300):
            now += 1
            action = "put" if rng.random() < 0.9 else "remove"
            model.act(action, int(entry), 1, int(now - rng.integers(0, 3)))
        for t in rng.integers(1, 4000, 8):
            model.act("walk", 0, 1, int(now - t))
        check_bands(model.state, model.held)
    assert 2 < model.state.rows[1, bands.COUNT] <= bands.BANDS
    items = model.state.rows[1, bands.ITEMS : bands.ITEMS + bands.BANDS].sum()
    assert items <= 4 * (len(model.held[1]) + bands.BANDS * bands.CHUNK_WORDS)


@pytest.mark.parametrize("spread", [0, 1, 10**3, 10**9, 10**18])
def test_walks_settle_at_the_cost_of_their_output(spread: int) -> None:
    """A boundary in the middle of a crowd: after one walk nothing, or less than was returned, is compared in vain."""
    times = np.random.default_rng(1).integers(0, spread + 1, 5000)
    state = filled(times)
    for x in (spread // 2, spread - spread // 50, spread // 3, -1, spread):
        expected = (np.flatnonzero(times > x) + 1).tolist()
        for _ in range(2):
            state = with_room(state)
            assert expected == walked(state, 1, x)
        assert compared(state, x) <= band_walks.VAIN_COMPARISONS + 2 * len(expected)


def test_walks_that_go_a_little_further_back_each_time_do_not_start_over() -> None:
    """The work of 1,000 walks, one entry more each: cuts half-way keep what is compared near what is returned."""
    state, total = filled(np.arange(20_000)), 0
    for x in range(19_999, 18_999, -1):
        state = with_room(state)
        total += compared(state, x)
        assert len(walked(state, 1, x, 20_000)) == 19_999 - x
    assert total < 20 * 20_000 + 1000 * 1000


def test_a_walk_that_does_not_fit_says_so() -> None:
    state = filled(np.arange(1, 11))
    out = np.empty(4, np.int64)
    assert walk(state, 1, 0, out) == 5
    assert walk(state, 1, 6, out) == 4


def test_empty_piles_are_handed_back() -> None:
    times = np.random.default_rng(2).integers(-(2**62), 2**62, 1000)
    state = filled(times)
    for x in np.quantile(times, np.linspace(0.1, 0.9, 9)).astype(np.int64):
        for _ in range(4):
            state = with_room(state)
            walked(state, 1, int(x))
    assert state.rows[0, bands.SPARE] < state.piles.size // bands.CHUNK_WORDS - 1
    for entry in range(1, 1001):
        remove(state, 1, entry)
    assert state.rows[0, bands.SPARE] == state.piles.size // bands.CHUNK_WORDS - 1
    check_bands(state, {})
