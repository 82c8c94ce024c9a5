"""Invariants of structures, as sortedcontainers' check(): assert what must hold between any two calls."""

from typing import Any

import numpy as np

from kernels.baselines import psoup
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL
from kernels.windows.sorted_runs import SHORTEST_RUN
from swag.live.structures.baselines import PSoup
from swag.live.structures.intervals import Dyadic, Landmark, LandmarkGroup, Structure, partials_of
from swag.live.structures.ranks import SortedRuns
from tests.kernels.harness import Stream, check_arena
from tests.kernels.operators import Operator


def check(stream: Stream, operator: Operator, structure: Structure) -> None:
    """Whatever can be said of it."""
    if isinstance(structure, Dyadic):
        check_dyadic(stream, operator, structure)
    elif isinstance(structure, Landmark):
        check_landmark(stream, operator, structure)
    elif isinstance(structure, PSoup):
        check_psoup(stream, operator, structure)


def is_fold(operator: Operator, rows: list[Any], state: Any, slot: int) -> bool:
    one = tuple(s[slot : slot + 1] for s in state) if isinstance(state, tuple) else state[slot : slot + 1]
    answer = operator.answers(np.array([len(rows)]), one)[0]
    return operator.mismatch(rows, answer) is None


def some(stream: Stream, of: range) -> list[int]:
    """A few of many: the check is in plain Python."""
    return list(of) if len(of) <= 6 else [of[0], of[-1], *(of[int(i)] for i in stream.rng.integers(0, len(of), 4))]


def check_dyadic(stream: Stream, operator: Operator, structure: Dyadic) -> None:
    """Every complete node is the fold of its interval."""
    state = partials_of(structure.op, structure.held)
    for k in stream.keys:
        offset, capacity, head, tail = stream.space.arena.rings[k].tolist()
        for p in some(stream, range(max(head, 1), tail)):
            half = p & -p
            if p - half >= head and p + half <= tail:
                rows = stream.rows[k][p - half : p + half]
                assert is_fold(operator, rows, state, offset + p % capacity), (
                    f"node {p} of key {k} is not that of {rows}"
                )


def check_landmark(stream: Stream, operator: Operator, structure: Landmark) -> None:
    for group in structure.groups.values():
        check_arena(group.arena)
        for k in stream.keys:
            check_landmarks_of_key(stream, operator, group, structure, int(k))


def check_landmarks_of_key(
    stream: Stream, operator: Operator, group: LandmarkGroup, structure: Landmark, k: int
) -> None:
    """Up to every row from its landmark and the one before, and from every row of a full block to the next landmark."""
    _, prefix, longer, suffix, _ = group.record(structure)
    offset, capacity, head, tail = group.arena.rings[k].tolist()
    assert tail == stream.space.arena.rings[k, TAIL]
    head = max(head, int(stream.space.arena.rings[k, HEAD]))  # older rows are not asked for
    size = group.wmin
    for p in some(stream, range(head, tail)):
        block, slot, rows = p // size * size, offset + p % capacity, stream.rows[k]
        if block >= head:
            assert is_fold(operator, rows[block : p + 1], prefix, slot)
        if block - size >= head:
            assert is_fold(operator, rows[block - size : p + 1], longer, slot)
        if block + size <= tail:
            assert is_fold(operator, rows[p : block + size], suffix, slot)


def check_psoup(stream: Stream, operator: Operator, structure: PSoup) -> None:
    check_arena(structure.arena)
    for k in stream.keys:
        head, tail = structure.arena.rings[k, HEAD], structure.arena.rings[k, TAIL]
        if head == tail:
            continue
        tree = Tree(structure, int(k))
        assert tree.links(psoup.PARENT, tree.root) == psoup.NONE
        assert tree.in_order(tree.root) == list(range(head, tail))
        for p in some(stream, range(head, tail)):
            under = tree.in_order(p)
            rows = [stream.rows[k][q] for q in under]
            state = partials_of(structure.op, structure.aggregates)
            assert is_fold(operator, rows, state, tree.slot(p)), f"under node {p} of key {k}: not {rows}"


class Tree:
    def __init__(self, structure: PSoup, k: int) -> None:
        self.data, self.root = structure.links.data, int(structure.roots[k])
        self.offset, self.capacity = (int(structure.arena.rings[k, i]) for i in (OFFSET, CAPACITY))

    def slot(self, p: int) -> int:
        return self.offset + p % self.capacity

    def links(self, which: int, p: int) -> int:
        return int(self.data[which, self.slot(p)])

    def height(self, p: int) -> int:
        return 0 if p == psoup.NONE else self.links(psoup.HEIGHT, p)

    def in_order(self, p: int) -> list[int]:
        """Positions under p, oldest first; links go both ways, heights are right, no side is two deeper."""
        if p == psoup.NONE:
            return []
        left, right = self.links(psoup.LEFT, p), self.links(psoup.RIGHT, p)
        assert all(child == psoup.NONE or self.links(psoup.PARENT, child) == p for child in (left, right))
        assert self.height(p) == 1 + max(self.height(left), self.height(right))
        assert abs(self.height(left) - self.height(right)) <= 1
        return [*self.in_order(left), p, *self.in_order(right)]


def check_sorted_runs(stream: Stream, structure: SortedRuns) -> None:
    """Every complete block of every level holds its own values, sorted, NaN last."""
    runs = structure.held[0].data
    for k in stream.keys:
        offset, capacity, head, tail = stream.space.arena.rings[k].tolist()
        values = np.array([row[0] for row in stream.rows[k]])
        for level in range(runs.shape[0]):
            size = SHORTEST_RUN << level
            for start in range(-(-head // size) * size, tail - size + 1, size):
                slot = offset + start % capacity
                block = runs[level, slot : slot + size]
                assert np.array_equal(block, np.sort(values[start : start + size]), equal_nan=values.dtype.kind == "f")
