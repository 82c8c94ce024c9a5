"""PSoup's search tree: a balanced binary tree over the kept rows, every node with the aggregate of its subtree.

               [4]             node p is row p, older rows to its left, newer ones to its right;
             /     \\           under p: under its left child, row p, under its right child, combined in this order
          [2]       [6]
         /   \\     /   \\        a row comes: a new node at the right end; one goes: the node at the left end
       [1]  [3]  [5]   [7]     then up to the root: where one side is two deeper it is rotated; aggregates are renewed

needs   an associative combine, in stream order
costs   update O(log Nmax), lookup O(log Nmax), space O(Nmax): a partial and four links per kept row
from    Arasu & Widom 2004, section 3.1.3 and 6.1 (theirs was libavl's red-black tree, this is its AVL tree)

Here for comparison. Links are positions, not slots, so a ring that grows is copied like any column, and a node needs no
free list: it lies at the slot of its position. The newest row is the right end and the oldest the left end: an update
searches nothing. Not done: adding the new row to every aggregate on its way up, one combine per level instead of two.
A float sum would then be as many additions deep as there are rows, and no longer right to 1e-12.
Tried: a function that renews one node, called where one has changed. References to the arrays of its state are then
counted at every call: two to three times slower than the one loop in `climb`.
"""

from typing import Any, NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators.monoids import combine, lift, load, store
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL

LEFT, RIGHT, PARENT, HEIGHT = range(4)
NONE = -1


class Tree(NamedTuple):
    """One search tree per key: the links and the partial of each node, where nodes lie, and which is the root."""

    links: np.ndarray
    state: Any
    rings: np.ndarray
    roots: np.ndarray


@kernel
def height(links, offset, mask, p):
    return 0 if p == NONE else links[HEIGHT, offset + (p & mask)]


@kernel
def rotate(links, offset, mask, p):
    """The right child of p takes its place, and p goes down to the left; aggregates are not renewed yet."""
    at = offset + (p & mask)
    child, up = links[RIGHT, at], links[PARENT, at]
    to = offset + (child & mask)
    inner = links[LEFT, to]
    links[RIGHT, at], links[PARENT, at] = inner, child
    links[LEFT, to], links[PARENT, to] = p, up
    if inner != NONE:
        links[PARENT, offset + (inner & mask)] = p
    if up != NONE:
        above = offset + (up & mask)
        links[LEFT if links[LEFT, above] == p else RIGHT, above] = child


@kernel
def climb(op, columns, links, state, place, p):
    """From p, whose children have changed, up to the root, which is returned: rotate, then renew what has moved.

    Rows come at the right and go at the left, so only a right side gets too deep, and one rotation is enough: a node
    whose left side is the deeper one comes about at the left end of the tree, where it stays and is nobody's right
    child. place = where rows are (offset, mask, the oldest that can be read) and where nodes are (offset, mask).
    """
    at, row_mask, oldest, offset, mask = place
    root = p
    while p != NONE:
        left, right = links[LEFT, offset + (p & mask)], links[RIGHT, offset + (p & mask)]
        root, moved = p, 1
        if height(links, offset, mask, right) > height(links, offset, mask, left) + 1:
            rotate(links, offset, mask, p)
            root, moved = right, 2
        for i in range(moved):
            q = p if i == 0 else root
            slot = offset + (q & mask)
            older, newer = links[LEFT, slot], links[RIGHT, slot]
            links[HEIGHT, slot] = 1 + max(height(links, offset, mask, older), height(links, offset, mask, newer))
            if q >= oldest:  # else it is on its way out
                acc = lift(op, columns, at + (q & row_mask))
                if older != NONE:
                    acc = combine(op, load(state, offset + (older & mask)), acc)
                if newer != NONE:
                    acc = combine(op, acc, load(state, offset + (newer & mask)))
                store(state, slot, acc)
        p = links[PARENT, offset + (root & mask)]
    return root


@kernel
def expire(op, columns, rings, tree, keys):
    """Take out the nodes of rows that are no longer kept. `rings`: where the rows are."""
    links, state, own, roots = tree
    for r in range(keys.size):
        k = keys[r]
        offset, mask = own[k, OFFSET], own[k, CAPACITY] - 1
        place = rings[k, OFFSET], rings[k, CAPACITY] - 1, rings[k, HEAD], offset, mask
        for p in range(own[k, HEAD], min(rings[k, HEAD], own[k, TAIL])):
            slot = offset + (p & mask)
            child, up = links[RIGHT, slot], links[PARENT, slot]
            if child != NONE:
                links[PARENT, offset + (child & mask)] = up
            roots[k] = child
            if up != NONE:
                links[LEFT, offset + (up & mask)] = child
                roots[k] = climb(op, columns, links, state, place, up)
            own[k, HEAD] = p + 1


@kernel
def update(op, columns, rings, tree, keys):
    """Rows from the tree's tail to that of `rings` are new."""
    links, state, own, roots = tree
    for r in range(keys.size):
        k = keys[r]
        offset, mask = own[k, OFFSET], own[k, CAPACITY] - 1
        place = rings[k, OFFSET], rings[k, CAPACITY] - 1, rings[k, HEAD], offset, mask
        for p in range(own[k, TAIL], rings[k, TAIL]):
            slot, up = offset + (p & mask), NONE
            if p > own[k, HEAD]:
                up = p - 1
                links[RIGHT, offset + (up & mask)] = p
            links[LEFT, slot], links[RIGHT, slot], links[PARENT, slot] = NONE, NONE, up
            roots[k] = climb(op, columns, links, state, place, p)
        own[k, TAIL] = rings[k, TAIL]


@kernel
def lookup(op, columns, rings, tree, keys, edges, out):
    """out[i, w] (flat) = the aggregate of the positions in edges[i, w] of keys[i]; empty windows are left alone."""
    (links, state, own, roots), (lo, hi) = tree, edges
    for i in range(keys.size):
        k = keys[i]
        offset, mask, tail = own[k, OFFSET], own[k, CAPACITY] - 1, own[k, TAIL]
        at, row_mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        for w in range(lo.shape[1]):
            a, b = lo[i, w], hi[i, w]
            if a >= b:
                continue
            top = roots[k]
            while not a <= top < b:  # down to the node where the ways to both ends part
                top = links[RIGHT if top < a else LEFT, offset + (top & mask)]
            acc = lift(op, columns, at + (top & row_mask))
            p = links[LEFT, offset + (top & mask)]
            while p != NONE:  # to the older end: what lies right of the way
                slot = offset + (p & mask)
                if p >= a:
                    if links[RIGHT, slot] != NONE:
                        acc = combine(op, load(state, offset + (links[RIGHT, slot] & mask)), acc)
                    acc = combine(op, lift(op, columns, at + (p & row_mask)), acc)
                p = NONE if p == a else links[LEFT if p > a else RIGHT, slot]
            p = links[RIGHT, offset + (top & mask)]
            if p != NONE and b == tail:  # a suffix: all of it
                acc = combine(op, acc, load(state, offset + (p & mask)))
                p = NONE
            while p != NONE:  # to the newer end: what lies left of the way
                slot = offset + (p & mask)
                if p < b:
                    if links[LEFT, slot] != NONE:
                        acc = combine(op, acc, load(state, offset + (links[LEFT, slot] & mask)))
                    acc = combine(op, acc, lift(op, columns, at + (p & row_mask)))
                p = NONE if p == b - 1 else links[LEFT if p >= b else RIGHT, slot]
            store(out, i * lo.shape[1] + w, acc)
