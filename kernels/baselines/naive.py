"""The two extremes: nothing is prepared, or every answer is.

      materialize none     a lookup folds the rows of its window
      materialize all      every window of every query is kept current; a lookup finds its answer

needs   an associative combine, in stream order
costs   none: update O(1), lookup O(W);  all: update O(windows) amortised, lookup O(1), space O(sum of widths)
from    Arasu & Widom 2004, sections 1 and 6.1

Here for comparison. A window is kept current without subtracting by two stacks: aggregates of what is left of its older
rows, from each of them on, and one running aggregate of the newer rows (van Herk's cut, one per window).

      lo ........ mid ........ hi         mid: where the stack was last built
      front[lo]       back                answer = combine(front, back)

Folds go by stretches of 2^11 rows, so that a float sum is never more than a few thousand additions deep.
"""

from kernels.compile.jit import kernel
from kernels.operators.monoids import combine, lift, load, store
from kernels.rings.timeline import CAPACITY, OFFSET

STRETCH = 1 << 11
LO, MID, HI, FROM, PLACE, ROOM = range(6)  # a window: its edges, and its front: of rows from FROM on, at PLACE


@kernel
def fold(op, rows, lo, hi):
    """The aggregate of rows [lo, hi), row by row; lo < hi. rows = the columns, offset, mask."""
    columns, offset, mask = rows
    end = min(lo + STRETCH, hi)
    acc = lift(op, columns, offset + (lo & mask))
    for p in range(lo + 1, end):
        acc = combine(op, acc, lift(op, columns, offset + (p & mask)))
    while end < hi:
        lo, end = end, min(end + STRETCH, hi)
        run = lift(op, columns, offset + (lo & mask))
        for p in range(lo + 1, end):
            run = combine(op, run, lift(op, columns, offset + (p & mask)))
        acc = combine(op, acc, run)
    return acc


@kernel
def lookup(op, columns, rings, keys, edges, out):
    """out[i, w] (flat) = the aggregate of the positions in edges[i, w] of keys[i]; empty windows are left alone."""
    lo, hi = edges
    for i in range(keys.size):
        offset, mask = rings[keys[i], OFFSET], rings[keys[i], CAPACITY] - 1
        for w in range(lo.shape[1]):
            if lo[i, w] < hi[i, w]:
                store(out, i * lo.shape[1] + w, fold(op, (columns, offset, mask), lo[i, w], hi[i, w]))


@kernel
def flip(op, rows, front, place, lo, hi):
    """front[place + i] = the aggregate of rows [lo + i, hi), by stretches from hi on."""
    columns, offset, mask = rows
    run = lift(op, columns, offset + ((hi - 1) & mask))
    store(front, place + hi - 1 - lo, run)
    for p in range(hi - 2, lo - 1, -1):
        x = lift(op, columns, offset + (p & mask))
        done = (hi - 1 - p) & -STRETCH  # rows in whole stretches
        run = x if done == hi - 1 - p else combine(op, x, run)
        store(front, place + p - lo, combine(op, run, load(front, place + hi - done - lo)) if done > 0 else run)


@kernel
def push(op, rows, back, w, mid, lo, hi):
    """Rows [lo, hi) join the back of window w, which begins at mid: its whole stretches, and the rest."""
    (columns, offset, mask), (whole, rest) = rows, back
    for p in range(lo, hi):
        x = lift(op, columns, offset + (p & mask))
        into = (p - mid) & (STRETCH - 1)
        if into > 0:
            x = combine(op, load(rest, w), x)
        if into == STRETCH - 1:
            store(whole, w, x if p - mid < STRETCH else combine(op, load(whole, w), x))
        store(rest, w, x)


@kernel
def slide(op, rows, windows, front, back, edges, answers):
    """Window w moves on to the positions in edges[w]; the answers of windows that are not empty are renewed."""
    (whole, rest), (lo, hi) = back, edges
    for w in range(windows.shape[0]):
        a, b, mid, upto = lo[w], hi[w], windows[w, MID], windows[w, HI]
        if a == windows[w, LO] and b == upto:
            continue
        if a >= upto or b < upto or a < windows[w, LO]:  # nothing in common, or it went back
            mid, upto = a, a
        if a > mid:
            flip(op, rows, front, windows[w, PLACE], a, b)
            windows[w, FROM], mid = a, b
        else:
            push(op, rows, back, w, mid, upto, b)
        windows[w, LO], windows[w, MID], windows[w, HI] = a, mid, b
        if a < b:
            acc = load(rest, w)
            if b - mid >= STRETCH:
                acc = load(whole, w) if (b - mid) & (STRETCH - 1) == 0 else combine(op, load(whole, w), acc)
            if a < mid:
                older = load(front, windows[w, PLACE] + a - windows[w, FROM])
                acc = older if b == mid else combine(op, older, acc)
            store(answers, w, acc)


@kernel
def find(far, near, table, begin, end):
    """The place in the table of the window that begins and ends so many rows before the tail, or a free one."""
    at = (begin + 37 * end) & (table.size - 1)
    while table[at] != 0 and (far[table[at] - 1] != begin or near[table[at] - 1] != end):
        at = (at + 1) & (table.size - 1)
    return at


@kernel
def index(far, near, table):
    """table: 0 is free, otherwise a window + 1; at least twice as long as there are windows, a power of two."""
    table[:] = 0
    for w in range(far.size):
        table[find(far, near, table, far[w], near[w])] = w + 1


@kernel
def recall(op, columns, rings, current, keys, edges, out):
    """As `lookup`, but windows of key 0 that are kept current are found. Returns how many others were folded.

    current = far, near, table, answers, and the tail that far and near count from.
    """
    (far, near, table, answers, tail), (lo, hi) = current, edges
    folded = 0
    for i in range(keys.size):
        offset, mask = rings[keys[i], OFFSET], rings[keys[i], CAPACITY] - 1
        for w in range(lo.shape[1]):
            a, b = lo[i, w], hi[i, w]
            if a >= b:
                continue
            found = table[find(far, near, table, tail - a, tail - b)] if keys[i] == 0 else 0
            if found == 0:
                folded += 1
                store(out, i * lo.shape[1] + w, fold(op, (columns, offset, mask), a, b))
            else:
                store(out, i * lo.shape[1] + w, load(answers, found - 1))
    return folded
