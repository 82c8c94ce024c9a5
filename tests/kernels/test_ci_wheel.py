"""The wheel under random actions: every invariant after each step, every walk against a plain list."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import wheel
from kernels.jit import kernel

ROOTS = 3
SMALL = st.integers(-40, 40)
ANY = st.integers(-(2**63), 2**63 - 1)
NEAR = st.builds(lambda base, more: base + more, st.sampled_from([0, 10**18, -(2**63), 2**62 - 50]), st.integers(0, 99))
TIMES = st.one_of(SMALL, NEAR, ANY)


@kernel
def place(state, root, entry, t):
    cells, links, tree = wheel.opened(state)
    wheel.place(cells, links, tree, wheel.root(root), entry, t)


@kernel
def move(state, root, entry, t):
    cells, links, tree = wheel.opened(state)
    wheel.move(cells, links, tree, wheel.root(root), entry, False, t)


@kernel
def remove(state, entry):
    wheel.remove(state.links, state.tree, entry)


@kernel
def walk(state, root, x, newer, out):
    cells, links, tree = wheel.opened(state)
    return wheel.walk(cells, links, tree, wheel.root(root), x, newer, out)


def walked(state: wheel.Wheel, root: int, x: int, newer: bool, room: int = 4096) -> list[int]:
    out = np.empty(room, np.int64)
    found = walk(state, root, x, newer, out)
    assert found <= room
    return sorted(out[:found].tolist())


class Model:
    """The wheel and what it should hold."""

    def __init__(self, entries: int) -> None:
        self.state = wheel.empty(ROOTS, entries, 2)
        self.held: dict[int, dict[int, int]] = {root: {} for root in range(ROOTS)}

    def root_of(self, entry: int) -> int | None:
        return next((root for root, entries in self.held.items() if entry in entries), None)

    def room(self) -> None:
        if self.state.tree[0, wheel.SPARE] == 0:
            self.state = wheel.with_spare(self.state, 1)

    def act(self, action: str, entry: int, root: int, t: int) -> None:
        where = self.root_of(entry)
        self.room()
        if action == "walk":
            for newer in (True, False):
                expected = sorted(e for e, at in self.held[root].items() if (at > t) == newer)
                assert expected == walked(self.state, root, t, newer)
        elif action == "remove" and where is not None:
            remove(self.state, entry)
            del self.held[where][entry]
        elif action == "put" and where is None:
            place(self.state, root, entry, t)
            self.held[root][entry] = t
        elif action == "put" and where is not None:
            move(self.state, where, entry, t)
            self.held[where][entry] = t


NAMES = st.sampled_from(["put", "put", "remove", "walk"])
ACTIONS = st.tuples(NAMES, st.integers(0, 59), st.integers(0, ROOTS - 1), TIMES)


@settings(max_examples=150, deadline=None)
@given(st.lists(TIMES, min_size=20, max_size=60), st.lists(ACTIONS, max_size=60))
def test_random_actions_keep_every_invariant(start: list[int], actions: list[tuple[str, int, int, int]]) -> None:
    model = Model(60)
    for entry, t in enumerate(start):
        model.act("put", entry, 0, t)
    for action in actions:
        model.act(*action)
        wheel.check(model.state, ROOTS, model.held)


@pytest.mark.parametrize("spread", [0, 1, 10**3, 10**9, 10**18])
def test_walks_settle_at_the_cost_of_their_output(spread: int) -> None:
    """A boundary in the middle of a crowd: after a few walks hardly an entry is compared in vain."""
    n = 5000
    rng = np.random.default_rng(1)
    times = rng.integers(0, spread + 1, n)
    state = wheel.empty(1, n)
    for entry in range(n):
        place(state, 0, entry, times[entry])
    x = np.int64(spread // 2)
    for _ in range(wheel.DEEPEST):
        if state.tree[0, wheel.SPARE] == 0:
            state = wheel.with_spare(state, 1)
        assert np.flatnonzero(times > x).tolist() == walked(state, 0, int(x), True, n)
    slot = wheel.FAN
    while wheel.holds(state.tree, slot) < wheel.EMPTY:
        n = -2 - int(wheel.holds(state.tree, slot))
        shift = state.tree[n, wheel.SHIFT]
        if shift == 0 or wheel.above(x, shift) != state.tree[n, wheel.PREFIX]:
            return  # nothing is compared at all
        slot = n * wheel.FAN + int(wheel.digit(x, shift))
    compared, at = 0, int(wheel.holds(state.tree, slot))
    while at >= 0:
        compared, at = compared + 1, int(state.links[at, wheel.NEXT])
    assert compared <= wheel.PATIENCE + 2 * (times > x).sum()  # what it returned, and as many in vain


def test_a_walk_that_does_not_fit_says_so() -> None:
    state = wheel.empty(1, 10)
    for entry in range(10):
        place(state, 0, entry, entry)
    out = np.empty(4, np.int64)
    assert walk(state, 0, -1, True, out) == 5
    assert walk(state, 0, 5, True, out) == 4


def test_empty_wheels_are_handed_back() -> None:
    state = wheel.empty(1, 1000)
    rng = np.random.default_rng(2)
    times = rng.integers(-(2**62), 2**62, 1000)
    for entry in range(1000):
        place(state, 0, entry, times[entry])
    for x in np.quantile(times, np.linspace(0.1, 0.9, 9)).astype(np.int64):
        for _ in range(4):
            if state.tree[0, wheel.SPARE] == 0:
                state = wheel.with_spare(state, 4)
            walked(state, 0, int(x), True)
    assert state.tree[0, wheel.SPARE] < state.tree.shape[0] - 2
    for entry in range(1000):
        remove(state, entry)
    assert state.tree[0, wheel.SPARE] == state.tree.shape[0] - 2
    wheel.check(state, 1, {})
