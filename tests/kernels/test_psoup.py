"""The search tree stays balanced however rows come and go, by single rotations alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernels.baselines import psoup
from kernels.rings.timeline import HEAD, TAIL
from swag.live.structures.baselines import PSoup
from swag.query.kind import Part
from tests.kernels.checks import Tree
from tests.kernels.harness import JIT, check_arena, filled

MOST = 2000 if JIT else 300
KEY = np.zeros(1, np.int64)
STEPS = st.lists(st.tuples(st.integers(0, MOST // 8), st.integers(0, MOST // 6)), min_size=1, max_size=30)


def taller(tree: Tree, p: int) -> int:
    """By how much the left side of p is deeper than the right."""
    return tree.height(tree.links(psoup.LEFT, p)) - tree.height(tree.links(psoup.RIGHT, p))


@given(steps=STEPS)
def test_it_is_balanced_and_only_its_left_end_leans_left(steps: list[tuple[int, int]]) -> None:
    """Each step: some rows come, some go. What leans left is never a right child: no double rotation is ever due."""
    space = filled(np.arange(MOST))
    ring = space.arena.rings[0]
    ring[TAIL] = 0
    structure = PSoup(space, Part("sum", ("x",)))
    for come, go in steps:
        coming = min(come, MOST - int(ring[TAIL]))
        ring[HEAD] = min(ring[HEAD] + go, ring[TAIL])
        ring[TAIL] += coming
        structure.update(KEY, np.array([coming]))
        check_arena(structure.arena)
        head, tail = int(ring[HEAD]), int(ring[TAIL])
        if head == tail:
            continue
        tree = Tree(structure, 0)
        assert tree.in_order(tree.root) == list(range(head, tail))  # and heights, and links both ways
        left_end, p = set(), tree.root
        while p != psoup.NONE:
            left_end.add(p)
            p = tree.links(psoup.LEFT, p)
        assert all(taller(tree, q) <= 0 for q in range(head, tail) if q not in left_end)
        answer = structure.lookup(KEY, np.array([[head, head]]), np.array([[tail, (head + tail + 1) // 2]]))
        assert answer.tolist() == [sum(range(head, tail)), sum(range(head, (head + tail + 1) // 2))]


def test_its_memory_follows_what_is_kept() -> None:
    space = filled(np.arange(4096))
    ring = space.arena.rings[0]
    structure = PSoup(space, Part("max", ("x",)))
    structure.rebuild()
    assert structure.bytes >= 4096 * 5 * 8
    ring[HEAD] = 4090
    structure.update(KEY, np.zeros(1, np.int64))
    structure.arena.tidy(KEY, lambda keys, coming: None)
    assert structure.arena.kept(1).tolist() == [6]
    assert structure.arena.rings[0, 1] == 8
