"""PSoup's search tree: a balanced binary tree over the kept rows, every node with the aggregate of its subtree.

               [4]             node p is row p, older rows to its left, newer ones to its right;
             /     \\           under p: under its left child, row p, under its right child, combined in this order
          [2]       [6]
         /   \\     /   \\        a row comes: a new node at the right end; one goes: the node at the left end
       [1]  [3]  [5]   [7]     then up to the root: a side two deeper than the other is rotated, aggregates are renewed

needs   an associative combine, in stream order
costs   update O(log Nmax), lookup O(log Nmax), space O(Nmax): a partial and four links per kept row
from    Arasu & Widom 2004, section 3.1.3 and 6.1 (theirs was libavl's red-black tree, this is its AVL tree)

Here for comparison. Links are positions, not slots, so a ring that grows is copied like any column, and a node needs no
free list: it lies at the slot of its position. The newest row is the right end and the oldest the left end, so an update
searches nothing. Not done: adding the new row to every aggregate on its way up, one combine per level instead of two. A
float sum would then be as many additions deep as there are rows, and no longer right to 1e-12.
"""

import numba

from kernels.jit import FLAGS, kernel
from kernels.monoids import combine, lift, load, store
from kernels.timeline import CAPACITY, HEAD, OFFSET, TAIL

LEFT, RIGHT, PARENT, HEIGHT = range(4)
NONE = -1
helper = numba.njit(inline="always", **FLAGS)  # compiled into kernels: handing them arrays costs more than the work


@helper
def renew(op, rows, tree, p):
    """The height of node p and the aggregate under it, from its children. Rows before `oldest` can not be read."""
    columns, at, row_mask, oldest = rows
    links, state, offset, mask = tree
    slot, height = offset + (p & mask), 0
    left, right = links[LEFT, slot], links[RIGHT, slot]
    if left != NONE:
        height = links[HEIGHT, offset + (left & mask)]
    if right != NONE:
        height = max(height, links[HEIGHT, offset + (right & mask)])
    links[HEIGHT, slot] = height + 1
    if p < oldest:
        return  # on its way out
    acc = lift(op, columns, at + (p & row_mask))
    if left != NONE:
        acc = combine(op, load(state, offset + (left & mask)), acc)
    if right != NONE:
        acc = combine(op, acc, load(state, offset + (right & mask)))
    store(state, slot, acc)


@helper
def rotate(op, rows, tree, p, side):
    """The child of p on `side` takes its place, and p goes down on the other side. Returns the child."""
    links, _, offset, mask = tree
    other, at = 1 - side, offset + (p & mask)
    child, up = links[side, at], links[PARENT, at]
    to = offset + (child & mask)
    inner = links[other, to]
    links[side, at], links[PARENT, at] = inner, child
    links[other, to], links[PARENT, to] = p, up
    if inner != NONE:
        links[PARENT, offset + (inner & mask)] = p
    if up != NONE:
        above = offset + (up & mask)
        links[LEFT if links[LEFT, above] == p else RIGHT, above] = child
    renew(op, rows, tree, p)
    renew(op, rows, tree, child)
    return child


@helper
def deeper(links, offset, mask, p):
    """By how much the right side of p is deeper than the left."""
    slot = offset + (p & mask)
    left, right = links[LEFT, slot], links[RIGHT, slot]
    depth = 0 if left == NONE else -links[HEIGHT, offset + (left & mask)]
    return depth if right == NONE else depth + links[HEIGHT, offset + (right & mask)]


@helper
def climb(op, rows, tree, p):
    """From p, whose children have changed, up to the root, which is returned.

    Rows come at the right and go at the left, so only a right side ever gets too deep.
    """
    links, _, offset, mask = tree
    while True:
        if deeper(links, offset, mask, p) > 1:
            right = links[RIGHT, offset + (p & mask)]
            if deeper(links, offset, mask, right) < 0:
                rotate(op, rows, tree, right, LEFT)
            p = rotate(op, rows, tree, p, RIGHT)
        else:
            renew(op, rows, tree, p)
        up = links[PARENT, offset + (p & mask)]
        if up == NONE:
            return p
        p = up


@kernel
def expire(op, columns, rings, nodes, own, roots, keys):
    """Take out the nodes of rows that are no longer kept. nodes = links, state; `rings`: the rows, `own`: the nodes."""
    links, state = nodes
    for r in range(keys.size):
        k = keys[r]
        rows = columns, rings[k, OFFSET], rings[k, CAPACITY] - 1, rings[k, HEAD]
        offset, mask = own[k, OFFSET], own[k, CAPACITY] - 1
        for p in range(own[k, HEAD], min(rings[k, HEAD], own[k, TAIL])):
            slot = offset + (p & mask)
            child, up = links[RIGHT, slot], links[PARENT, slot]
            if child != NONE:
                links[PARENT, offset + (child & mask)] = up
            roots[k] = child
            if up != NONE:
                links[LEFT, offset + (up & mask)] = child
                roots[k] = climb(op, rows, (links, state, offset, mask), up)
            own[k, HEAD] = p + 1


@kernel
def update(op, columns, rings, nodes, own, roots, keys):
    """Rows from own's tail to that of `rings` are new."""
    links, state = nodes
    for r in range(keys.size):
        k = keys[r]
        rows = columns, rings[k, OFFSET], rings[k, CAPACITY] - 1, rings[k, HEAD]
        offset, mask = own[k, OFFSET], own[k, CAPACITY] - 1
        for p in range(own[k, TAIL], rings[k, TAIL]):
            slot, up = offset + (p & mask), NONE
            if p > own[k, HEAD]:
                up = p - 1
                links[RIGHT, offset + (up & mask)] = p
            links[LEFT, slot], links[RIGHT, slot], links[PARENT, slot] = NONE, NONE, up
            roots[k] = climb(op, rows, (links, state, offset, mask), p)
        own[k, TAIL] = rings[k, TAIL]


@helper
def older_part(op, rows, tree, p, lo, acc):
    """What lies from lo on under p, in front of acc."""
    columns, at, row_mask, _ = rows
    links, state, offset, mask = tree
    while p != NONE:
        slot = offset + (p & mask)
        if p < lo:
            p = links[RIGHT, slot]
            continue
        right = links[RIGHT, slot]
        if right != NONE:
            acc = combine(op, load(state, offset + (right & mask)), acc)
        acc = combine(op, lift(op, columns, at + (p & row_mask)), acc)
        p = NONE if p == lo else links[LEFT, slot]
    return acc


@helper
def newer_part(op, rows, tree, p, hi, acc):
    """What lies before hi under p, after acc."""
    columns, at, row_mask, _ = rows
    links, state, offset, mask = tree
    while p != NONE:
        slot = offset + (p & mask)
        if p >= hi:
            p = links[LEFT, slot]
            continue
        left = links[LEFT, slot]
        if left != NONE:
            acc = combine(op, acc, load(state, offset + (left & mask)))
        acc = combine(op, acc, lift(op, columns, at + (p & row_mask)))
        p = NONE if p == hi - 1 else links[RIGHT, slot]
    return acc


@kernel
def lookup(op, columns, rings, nodes, own, roots, keys, lo, hi, out):
    """out[i, w] = the aggregate of positions [lo, hi)[i, w] of keys[i]; empty windows are left alone."""
    links, state = nodes
    for i in range(keys.size):
        k = keys[i]
        rows = columns, rings[k, OFFSET], rings[k, CAPACITY] - 1, rings[k, HEAD]
        offset, mask = own[k, OFFSET], own[k, CAPACITY] - 1
        tree = links, state, offset, mask
        for w in range(lo.shape[1]):
            a, b = lo[i, w], hi[i, w]
            if a >= b:
                continue
            p = roots[k]
            while not a <= p < b:  # down to the node where the ways to both ends part
                p = links[RIGHT if p < a else LEFT, offset + (p & mask)]
            slot = offset + (p & mask)
            acc = older_part(op, rows, tree, links[LEFT, slot], a, lift(op, columns, rows[1] + (p & rows[2])))
            right = links[RIGHT, slot]
            if b == own[k, TAIL] and right != NONE:  # a suffix: the whole subtree
                acc = combine(op, acc, load(state, offset + (right & mask)))
            else:
                acc = newer_part(op, rows, tree, right, b, acc)
            store(out, i * lo.shape[1] + w, acc)
