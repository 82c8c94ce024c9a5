"""A timing wheel that grows its spokes where it is asked: entries in order of time, as far as anyone wants to know.

      root --> | . | 3 | . | list | . | list |        a slot: nothing, a list of entries, or a finer wheel of 32 slots
                     |                                 lists are unordered and doubly linked through the entries
                     +--> | . | list | list | . |

Every slot covers an aligned range of 2^shift times (shift a multiple of 5), a finer wheel divides one slot. A wheel
that nobody has asked is one list, so placing and moving entries is free of charge; a walk takes lists on the far side
of its boundary whole and compares entry by entry only in the list that the boundary cuts. Where that comparison was
mostly in vain, the list is divided among a finer wheel: the next walk finds the work done. A slot of one single time is
never compared. Wheels and slots that run empty are handed back at once, so whatever a walk enters holds something.

needs   times are any int64; an entry is in one wheel at most
costs   place, move and remove O(1) amortised (an entry is handed down 13 times at most, in practice once or twice);
        walk O(entries returned) amortised, whatever the distribution of times
space   16 bytes per entry, 288 per finer wheel
from    Arasu & Widom 2004, section 4.1 (SEARCHTREE), with the tree replaced

Many wheels live in one set of arrays, each known by its root slot. `cells` holds the time of an entry and, in the same
16 bytes, its links (`links` is the same memory seen as int32): moving an entry costs one cache line for it and one for
each neighbour. The parts of a walk or a move are helpers on bare arrays (`opened`, kernels/inlining.py).
"""

from typing import NamedTuple

import numpy as np

from kernels.inlining import bare, helper

FAN, DIGIT = 32, 5  # slots of a wheel; 32 so that a bitmap of them needs no sign bit
TOP = 60  # the shift of the coarsest wheel: it covers all of int64
DEEPEST = 14
EMPTY = -1  # what a slot holds: nothing; an entry >= 0; or wheel n as -2 - n
NEXT, PREV = 2, 3  # columns of links; the first entry of a list has prev = -1 - slot
BITS, PREFIX, SHIFT, PARENT = range(FAN, FAN + 4)  # columns of tree, after the slots
ROOTS = -1  # the shift of a row whose slots are roots
SPARE, FIRST, PLACED = 0, 1, 2  # columns of row 0: how many wheels are spare, the first (PARENT is the next); a tally
PATIENCE = 16  # comparisons in vain that a walk takes without dividing the list

_BIT = np.zeros(32, np.int64)  # de Bruijn: which bit is set
for _i in range(32):
    _BIT[((0x077CB531 << _i) & 0xFFFFFFFF) >> 27] = _i


class Wheel(NamedTuple):
    cells: np.ndarray  # int64 [entry, 2]: the time, and its links
    links: np.ndarray  # int32 [entry, 4]: the same memory
    tree: np.ndarray  # int64 [wheel, 36]: slots, bitmap of those in use, the digits above its own, shift, slot it is in


def empty(roots: int, entries: int, spare: int = 16) -> Wheel:
    """Room for `roots` wheels, at slots `root(0)` .. `root(roots - 1)`, and for finer ones."""
    reserved = -(-roots // FAN) + 1
    cells = np.zeros((entries, 2), np.int64)
    tree = np.zeros((reserved, FAN + 4), np.int64)
    tree[1:, :FAN] = EMPTY
    tree[1:, SHIFT] = ROOTS
    return with_spare(Wheel(cells, cells.view(np.int32), tree), spare)


def with_entries(wheel: Wheel, entries: int) -> Wheel:
    cells = np.zeros((entries, 2), np.int64)
    cells[: wheel.cells.shape[0]] = wheel.cells
    return wheel._replace(cells=cells, links=cells.view(np.int32))


def with_spare(wheel: Wheel, wanted: int) -> Wheel:
    """The same with at least `wanted` wheels to spare; half as many again, so growth is amortised."""
    have = wheel.tree.shape[0]
    count = have + max(have // 2, wanted)
    tree = np.full((count, FAN + 4), EMPTY, np.int64)
    tree[:have] = wheel.tree
    tree[have:, PARENT] = np.arange(have + 1, count + 1)
    tree[-1, PARENT] = wheel.tree[0, FIRST]
    tree[0, FIRST] = have
    tree[0, SPARE] += count - have
    return wheel._replace(tree=tree)


@helper
def root(i):
    """The slot of wheel i."""
    return FAN + i


@helper
def opened(wheel):
    """The arrays of a wheel as helpers take them."""
    cells, links, tree = wheel
    return bare(cells), bare(links), bare(tree)


@helper
def digit(t, shift):
    """The slot of time t in a wheel; at the top the sign bit is turned so that negative times come first."""
    return ((t >> shift) & (FAN - 1)) ^ (16 if shift == TOP else 0)


@helper
def above(t, shift):
    """The digits before that one: equal for all times a wheel covers."""
    return (t >> shift) >> DIGIT if shift < TOP else 0


@helper
def bit(bits):
    """The lowest bit set."""
    return _BIT[(((bits & -bits) * 0x077CB531) & 0xFFFFFFFF) >> 27]


@helper
def holds(tree, slot):
    return tree[slot // FAN, slot & (FAN - 1)]


@helper
def take_wheel(tree, slot, t, shift):
    """A spare wheel at `slot`, covering t at that shift; there must be one."""
    n = tree[0, FIRST]
    tree[0, FIRST] = tree[n, PARENT]
    tree[0, SPARE] -= 1
    tree[n, BITS] = 0
    tree[n, PREFIX] = above(t, shift)
    tree[n, SHIFT] = shift
    tree[n, PARENT] = slot
    tree[slot // FAN, slot & (FAN - 1)] = -2 - n
    return n


@helper
def widen(tree, slot, n, t):
    """Put a coarser wheel above wheel n, one that covers t as well."""
    inside = tree[n, PREFIX] << (tree[n, SHIFT] + DIGIT)
    shift = tree[n, SHIFT] + DIGIT
    while above(t, shift) != above(inside, shift):
        shift += DIGIT
    coarser = take_wheel(tree, slot, t, shift)
    i = digit(inside, shift)
    tree[coarser, BITS] = np.int64(1) << i
    tree[coarser, i] = -2 - n
    tree[n, PARENT] = coarser * FAN + i
    return coarser


@helper
def push(links, tree, n, i, entry):
    """Entry becomes the first of the list in slot i of wheel n."""
    first = tree[n, i]
    links[entry, NEXT] = first
    links[entry, PREV] = -1 - (n * FAN + i)
    if first >= 0:
        links[first, PREV] = entry
    tree[n, i] = entry


@helper
def place(cells, links, tree, slot, entry, t):
    """Put an entry, which is in no wheel, into the one at root `slot`. Takes one spare wheel at most."""
    n, i = slot // FAN, slot & (FAN - 1)
    while tree[n, i] < EMPTY:
        slot, n = n * FAN + i, -2 - tree[n, i]
        if above(t, tree[n, SHIFT]) != tree[n, PREFIX]:
            n = widen(tree, slot, n, t)
        i = digit(t, tree[n, SHIFT])
        tree[n, BITS] |= np.int64(1) << i
    cells[entry, 0] = t
    tree[0, PLACED] += 1
    push(links, tree, n, i, entry)


@helper
def remove(links, tree, entry):
    """Take an entry out; wheels left empty become spare."""
    after, before = np.int64(links[entry, NEXT]), np.int64(links[entry, PREV])
    if after >= 0:
        links[after, PREV] = before
    if before >= 0:
        links[before, NEXT] = after
        return
    n, i = (-1 - before) // FAN, (-1 - before) & (FAN - 1)
    tree[n, i] = after
    while tree[n, i] == EMPTY and tree[n, SHIFT] != ROOTS:
        tree[n, BITS] &= ~(np.int64(1) << i)
        if tree[n, BITS] != 0:
            return
        slot = tree[n, PARENT]
        tree[n, PARENT] = tree[0, FIRST]
        tree[0, FIRST] = n
        tree[0, SPARE] += 1
        n, i = slot // FAN, slot & (FAN - 1)
        tree[n, i] = EMPTY


@helper
def same_list(tree, slot, old, t):
    """Is time t, in the wheel at root `slot`, in the list that the entry with time `old` is in?"""
    at, same = holds(tree, slot), True
    while at < EMPTY and same:
        n = -2 - at
        i = digit(t, tree[n, SHIFT])
        same = i == digit(old, tree[n, SHIFT]) and above(t, tree[n, SHIFT]) == tree[n, PREFIX]
        at = tree[n, i]
    return same


@helper
def move(cells, links, tree, slot, entry, fresh, t):
    """An entry of the wheel at root `slot` gets another time, or (fresh) its first. Takes one spare wheel at most."""
    if not fresh and same_list(tree, slot, cells[entry, 0], t):
        cells[entry, 0] = t
    else:
        if not fresh:
            remove(links, tree, entry)
        place(cells, links, tree, slot, entry, t)


@helper
def divide(cells, links, tree, slot):
    """Hand the list of a slot down to a finer wheel, as coarse as its times are spread. Takes one spare wheel."""
    entry = holds(tree, slot)
    t = cells[entry, 0]
    shift = 0
    other = np.int64(links[entry, NEXT])
    while other >= 0:
        while above(cells[other, 0], shift) != above(t, shift):
            shift += DIGIT
        other = np.int64(links[other, NEXT])
    n = take_wheel(tree, slot, t, shift)
    while entry >= 0:
        after = np.int64(links[entry, NEXT])
        i = digit(cells[entry, 0], shift)
        tree[n, BITS] |= np.int64(1) << i
        push(links, tree, n, i, entry)
        entry = after


@helper
def collect(links, tree, slot, out, found, stack):
    """Append all entries below a slot to `out`; out.size + 1 where they do not fit."""
    stack[0] = slot
    height = 1
    while height > 0:
        height -= 1
        at = holds(tree, stack[height])
        if at < EMPTY:
            n = -2 - at
            bits = tree[n, BITS]
            while bits != 0:
                stack[height] = n * FAN + bit(bits)
                height += 1
                bits &= bits - 1
        while at >= 0:
            if found >= out.size:
                return out.size + 1
            out[found] = at
            found += 1
            at = np.int64(links[at, NEXT])
    return found


@helper
def walk(cells, links, tree, slot, x, newer, out):
    """out = the entries with time > x (newer), or <= x, in any order; how many, or out.size + 1 if they do not fit.

    Divides the list that x cuts if comparing it was mostly in vain (and a spare wheel is left to do it with).
    """
    stack = np.empty(FAN * DEEPEST, np.int64)
    found = 0
    while holds(tree, slot) < EMPTY:
        n = -2 - holds(tree, slot)
        shift, prefix = tree[n, SHIFT], tree[n, PREFIX]
        if above(x, shift) != prefix:
            return collect(links, tree, slot, out, found, stack) if (prefix > above(x, shift)) == newer else found
        i = digit(x, shift)
        low = (np.int64(1) << i) - 1  # the slots before the one that x is in
        bits = tree[n, BITS] & (~(2 * low + 1) if newer else low)
        if shift == 0 and not newer:
            bits |= tree[n, BITS] & (low + 1)
        while bits != 0:
            found = collect(links, tree, n * FAN + bit(bits), out, found, stack)
            if found > out.size:
                return found
            bits &= bits - 1
        if shift == 0:
            return found
        slot = n * FAN + i
    return compare(cells, links, tree, slot, x, newer, out, found)


@helper
def compare(cells, links, tree, slot, x, newer, out, found):
    """The list that x cuts: entry by entry."""
    at = holds(tree, slot)
    vain = 0
    while at >= 0:
        if (cells[at, 0] > x) != newer:
            vain += 1
        elif found < out.size:
            out[found] = at
            found += 1
        else:
            return out.size + 1
        at = np.int64(links[at, NEXT])
    if vain > PATIENCE + found and tree[0, SPARE] > 0:
        divide(cells, links, tree, slot)
    return found


def check(wheel: Wheel, roots: int, held: dict[int, dict[int, int]]) -> None:
    """Assert every invariant: held[i] = {entry: time} of wheel i. For tests; slow."""
    used: set[int] = set()
    for i in range(roots):
        seen: dict[int, int] = {}
        _check_slot(wheel, FAN + i, None, seen, used)
        assert seen == held.get(i, {}), (i, seen, held.get(i))
    spare, n = [], int(wheel.tree[0, FIRST])
    for _ in range(wheel.tree[0, SPARE]):
        spare.append(n)
        n = int(wheel.tree[n, PARENT])
    reserved = -(-roots // FAN) + 1
    assert len(set(spare)) == len(spare) and not set(spare) & used
    assert set(spare) | used == set(range(reserved, wheel.tree.shape[0]))


def _check_slot(wheel: Wheel, slot: int, covers: tuple[int, int] | None, seen: dict[int, int], used: set[int]) -> None:
    at = int(wheel.tree[slot // FAN, slot % FAN])
    if at < EMPTY:
        n = -2 - at
        bits, prefix, shift, parent = (int(each) for each in wheel.tree[n, FAN:])
        assert n not in used and parent == slot and bits != 0 and shift % DIGIT == 0
        used.add(n)
        low = prefix << (shift + DIGIT) if shift < TOP else -(1 << 64)  # the top's slots 8 .. 23 are int64
        assert covers is None or covers[0] <= low < covers[1]
        for i in range(FAN):
            assert (bits >> i) & 1 == (wheel.tree[n, i] != EMPTY)
            _check_slot(wheel, n * FAN + i, (low + (i << shift), low + ((i + 1) << shift)), seen, used)
        return
    before = -1 - slot
    while at >= 0:
        t = int(wheel.cells[at, 0])
        assert wheel.links[at, PREV] == before and at not in seen
        assert covers is None or covers[0] <= t < covers[1], (slot, covers, t)
        seen[at] = t
        before, at = at, int(wheel.links[at, NEXT])
