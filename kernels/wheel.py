"""A timing wheel that grows its spokes where it is asked: entries in order of time, as far as anyone wants to know.

      root --> | . | 3 | . | list | . | list |        a slot: nothing, a list of entries, or a finer wheel of 32 slots
                     |                                 lists are unordered and doubly linked through the entries
                     +--> | . | list | list | . |

Every slot covers an aligned range of 2^shift times (shift a multiple of 5), a finer wheel divides one slot. A wheel that
nobody has asked is one list, so placing and moving entries is free of charge; a walk takes lists on the far side of its
boundary whole and compares entry by entry only in the list that the boundary cuts. Where that comparison was mostly in
vain, the list is divided among a finer wheel: the next walk finds the work done. A slot of one single time is never
compared. Wheels and slots that run empty are handed back at once, so whatever a walk enters holds something.

needs   times are any int64; an entry is in one wheel at most
costs   place, move and remove O(1) amortised (an entry is handed down 13 times at most, in practice once or twice);
        walk O(entries returned) amortised, whatever the distribution of times
space   16 bytes per entry, 160 per finer wheel
from    Arasu & Widom 2004, section 4.1 (SEARCHTREE), with the tree replaced

Many wheels live in one set of arrays, each known by its root slot. `cells` holds the time of an entry and, in the same 16
bytes, its links (`links` is the same memory seen as int32): moving an entry costs one cache line for it and one for each
neighbour. Links in arrays of their own were measured at half the speed with 10^6 keys.
"""

from typing import NamedTuple

import numpy as np

from kernels.jit import kernel

FAN, DIGIT = 32, 5  # slots of a wheel; 32 so that a bitmap of them needs no sign bit, and is two cache lines
TOP = 60  # the shift of the coarsest wheel: it covers all of int64
DEEPEST = 14
EMPTY = -1  # what a slot holds: nothing; an entry >= 0; or wheel n as -2 - n
NEXT, PREV = 2, 3  # columns of links; the first entry of a list has prev = -1 - slot
BITS, PREFIX, SHIFT, PARENT = range(4)  # columns of wheels
PATIENCE = 16  # comparisons in vain that a walk takes without dividing the list

_BIT = np.zeros(32, np.int64)  # de Bruijn: which bit is set
for _i in range(32):
    _BIT[((0x077CB531 << _i) & 0xFFFFFFFF) >> 27] = _i


class Wheel(NamedTuple):
    cells: np.ndarray  # int64 [entry, 2]: the time, and its links
    links: np.ndarray  # int32 [entry, 4]: the same memory
    slots: np.ndarray  # int32 [wheel * 32 + slot]
    wheels: np.ndarray  # int64 [wheel, 4]: bitmap of slots in use, the digits above its own, shift, slot it hangs from
    spare: np.ndarray  # int32: how many wheels are free, and which


def empty(roots: int, entries: int, wheels: int = 16) -> Wheel:
    """Room for `roots` wheels (root slots 0 .. roots - 1) and finer ones."""
    reserved = -(-roots // FAN)
    cells = np.zeros((entries, 2), np.int64)
    spare = np.zeros(reserved + wheels + 1, np.int32)
    spare[0] = wheels
    spare[1 : wheels + 1] = np.arange(reserved + wheels - 1, reserved - 1, -1)
    slots = np.full((reserved + wheels) * FAN, EMPTY, np.int32)
    return Wheel(cells, cells.view(np.int32), slots, np.zeros((reserved + wheels, 4), np.int64), spare)


def with_entries(wheel: Wheel, entries: int) -> Wheel:
    cells = np.zeros((entries, 2), np.int64)
    cells[: wheel.cells.shape[0]] = wheel.cells
    return wheel._replace(cells=cells, links=cells.view(np.int32))


def with_spare(wheel: Wheel, wanted: int) -> Wheel:
    """The same with at least `wanted` wheels to spare; doubles, so growth is amortised."""
    have = wheel.wheels.shape[0]
    count = max(2 * have, have + wanted)
    slots = np.full(count * FAN, EMPTY, np.int32)
    slots[: have * FAN] = wheel.slots
    wheels = np.zeros((count, 4), np.int64)
    wheels[:have] = wheel.wheels
    free = int(wheel.spare[0])
    spare = np.zeros(count + 1, np.int32)
    spare[0] = free + count - have
    spare[1 : 1 + count - have] = np.arange(count - 1, have - 1, -1)
    spare[1 + count - have : 1 + count - have + free] = wheel.spare[1 : 1 + free]
    return wheel._replace(slots=slots, wheels=wheels, spare=spare)


@kernel
def digit(t, shift):
    """The slot of time t in a wheel; at the top the sign bit is turned so that negative times come first."""
    return ((t >> shift) & (FAN - 1)) ^ (16 if shift == TOP else 0)


@kernel
def above(t, shift):
    """The digits before that one: equal for all times a wheel covers."""
    return (t >> shift) >> DIGIT if shift < TOP else 0


@kernel
def bit(bits):
    """The lowest bit set."""
    return _BIT[(((bits & -bits) * 0x077CB531) & 0xFFFFFFFF) >> 27]


@kernel
def take_wheel(wheel, slot, t, shift):
    """A spare wheel at `slot`, covering t at that shift; there must be one."""
    n = wheel.spare[wheel.spare[0]]
    wheel.spare[0] -= 1
    wheel.wheels[n, BITS] = 0
    wheel.wheels[n, PREFIX] = above(t, shift)
    wheel.wheels[n, SHIFT] = shift
    wheel.wheels[n, PARENT] = slot
    wheel.slots[slot] = -2 - n
    return np.int64(n)


@kernel
def widen(wheel, slot, n, t):
    """Put a coarser wheel above wheel n, one that covers t as well."""
    inside = wheel.wheels[n, PREFIX] << (wheel.wheels[n, SHIFT] + DIGIT)
    shift = wheel.wheels[n, SHIFT] + DIGIT
    while above(t, shift) != above(inside, shift):
        shift += DIGIT
    coarser = take_wheel(wheel, slot, t, shift)
    i = digit(inside, shift)
    wheel.wheels[coarser, BITS] = np.int64(1) << i
    wheel.slots[coarser * FAN + i] = -2 - n
    wheel.wheels[n, PARENT] = coarser * FAN + i
    return coarser


@kernel
def place(wheel, slot, entry, t):
    """Put an entry, which is in no wheel, into the one at root `slot`. Takes one spare wheel at most."""
    while wheel.slots[slot] < EMPTY:
        n = np.int64(-2 - wheel.slots[slot])
        if above(t, wheel.wheels[n, SHIFT]) != wheel.wheels[n, PREFIX]:
            n = widen(wheel, slot, n, t)
        i = digit(t, wheel.wheels[n, SHIFT])
        wheel.wheels[n, BITS] |= np.int64(1) << i
        slot = n * FAN + i
    wheel.cells[entry, 0] = t
    push(wheel, slot, entry)


@kernel
def push(wheel, slot, entry):
    first = wheel.slots[slot]
    wheel.links[entry, NEXT] = first
    wheel.links[entry, PREV] = -1 - slot
    if first >= 0:
        wheel.links[first, PREV] = entry
    wheel.slots[slot] = entry


@kernel
def remove(wheel, entry, roots):
    """Take an entry out; wheels left empty become spare. roots: as given to `empty`."""
    after, before = wheel.links[entry, NEXT], wheel.links[entry, PREV]
    if after >= 0:
        wheel.links[after, PREV] = before
    if before >= 0:
        wheel.links[before, NEXT] = after
        return
    slot = np.int64(-1 - before)
    wheel.slots[slot] = after
    while wheel.slots[slot] == EMPTY and slot >= roots:
        n = slot // FAN
        wheel.wheels[n, BITS] &= ~(np.int64(1) << (slot & (FAN - 1)))
        if wheel.wheels[n, BITS] != 0:
            return
        slot = wheel.wheels[n, PARENT]
        wheel.slots[slot] = EMPTY
        wheel.spare[0] += 1
        wheel.spare[wheel.spare[0]] = n


@kernel
def move(wheel, root, entry, t, roots):
    """An entry of the wheel at `root` gets another time; no link is touched if that falls into the same list."""
    old, slot = wheel.cells[entry, 0], root
    while wheel.slots[slot] < EMPTY:
        n = np.int64(-2 - wheel.slots[slot])
        shift = wheel.wheels[n, SHIFT]
        if above(t, shift) != wheel.wheels[n, PREFIX] or digit(t, shift) != digit(old, shift):
            remove(wheel, entry, roots)
            place(wheel, root, entry, t)
            return
        slot = n * FAN + digit(t, shift)
    wheel.cells[entry, 0] = t


@kernel
def divide(wheel, slot):
    """Hand the list of a slot down to a finer wheel, as coarse as its times are spread. Takes one spare wheel."""
    entry = wheel.slots[slot]
    t = wheel.cells[entry, 0]
    shift = 0
    other = wheel.links[entry, NEXT]
    while other >= 0:
        while above(wheel.cells[other, 0], shift) != above(t, shift):
            shift += DIGIT
        other = wheel.links[other, NEXT]
    n = take_wheel(wheel, slot, t, shift)
    while entry >= 0:
        after = wheel.links[entry, NEXT]
        i = digit(wheel.cells[entry, 0], shift)
        wheel.wheels[n, BITS] |= np.int64(1) << i
        push(wheel, n * FAN + i, entry)
        entry = after


@kernel
def collect(wheel, slot, out, found, stack):
    """Append all entries below a slot to `out`; stops, with found > out.size, where they do not fit."""
    stack[0] = slot
    height = 1
    while height > 0 and found <= out.size:
        height -= 1
        at = np.int64(wheel.slots[stack[height]])
        if at < EMPTY:
            n = -2 - at
            bits = wheel.wheels[n, BITS]
            while bits != 0:
                stack[height] = n * FAN + bit(bits)
                height += 1
                bits &= bits - 1
            continue
        while at >= 0:
            if found >= out.size:
                return out.size + 1
            out[found] = at
            found += 1
            at = np.int64(wheel.links[at, NEXT])
    return found


@kernel
def walk(wheel, slot, x, newer, out):
    """out = the entries with time > x (newer), or <= x (not newer), in any order; how many, or out.size + 1 if too many.

    Divides the list that x cuts if comparing it was mostly in vain (and a spare wheel is left to do it with).
    """
    stack = np.empty(FAN * DEEPEST, np.int64)
    found = 0
    while wheel.slots[slot] < EMPTY:
        n = np.int64(-2 - wheel.slots[slot])
        shift, prefix = wheel.wheels[n, SHIFT], wheel.wheels[n, PREFIX]
        if above(x, shift) != prefix:
            return collect(wheel, slot, out, found, stack) if (prefix > above(x, shift)) == newer else found
        i = digit(x, shift)
        low = (np.int64(1) << i) - 1  # the slots before the one that x is in
        bits = wheel.wheels[n, BITS] & (~(2 * low + 1) if newer else low)
        if shift == 0 and not newer:
            bits |= wheel.wheels[n, BITS] & (low + 1)
        while bits != 0:
            found = collect(wheel, n * FAN + bit(bits), out, found, stack)
            bits &= bits - 1
        if shift == 0 or found > out.size:
            return found
        slot = n * FAN + i
    return compare(wheel, slot, x, newer, out, found)


@kernel
def compare(wheel, slot, x, newer, out, found):
    """The list that x cuts: entry by entry."""
    at = np.int64(wheel.slots[slot])
    vain = 0
    while at >= 0:
        t = wheel.cells[at, 0]
        if (t > x) == newer:
            if found >= out.size:
                return out.size + 1
            out[found] = at
            found += 1
        else:
            vain += 1
        at = np.int64(wheel.links[at, NEXT])
    if vain > PATIENCE + found and wheel.spare[0] > 0:
        divide(wheel, slot)
    return found


def check(wheel: Wheel, roots: int, held: dict[int, dict[int, int]]) -> None:
    """Assert every invariant: held[root] = {entry: time}. For tests; slow."""
    used = set()
    for root in range(roots):
        seen: dict[int, int] = {}
        _check_slot(wheel, root, None, seen, used)
        assert seen == held.get(root, {}), (root, seen, held.get(root))
    spare = wheel.spare[1 : 1 + wheel.spare[0]].tolist()
    reserved = -(-roots // FAN)
    assert len(set(spare)) == len(spare) and not set(spare) & used
    assert set(spare) | used == set(range(reserved, wheel.wheels.shape[0]))


def _check_slot(wheel: Wheel, slot: int, covers: tuple[int, int] | None, seen: dict[int, int], used: set[int]) -> None:
    at = int(wheel.slots[slot])
    if at < EMPTY:
        n = -2 - at
        bits, prefix, shift, parent = (int(each) for each in wheel.wheels[n])
        assert n not in used and parent == slot and bits != 0 and shift % DIGIT == 0
        used.add(n)
        low = prefix << (shift + DIGIT) if shift < TOP else -(1 << 64)  # the top's slots 8 .. 23 are int64
        for i in range(FAN):
            assert (bits >> i) & 1 == (wheel.slots[n * FAN + i] != EMPTY)
            _check_slot(wheel, n * FAN + i, (low + (i << shift), low + ((i + 1) << shift)), seen, used)
        if covers is not None:
            assert covers[0] <= (low if shift < TOP else -(1 << 63)) and shift < TOP
        return
    before = -1 - slot
    while at >= 0:
        t = int(wheel.cells[at, 0])
        assert wheel.links[at, PREV] == before and at not in seen
        assert covers is None or covers[0] <= t < covers[1], (slot, covers, t)
        seen[at] = t
        before, at = at, int(wheel.links[at, NEXT])
