"""One landmark that moves on: L-INT over stored events, where windows come in order, for any associative operator.

      lo ........ m ........ hi        m: the landmark; it moves to hi when a window begins at or after it
      scratch[lo]     run              answer = combine(scratch, run)

needs   an associative combine; windows whose edges never go back
costs   two combines per answer and one per row, whatever the widths; space one partial per row of the longest window
from    van Herk; Gil & Werman; Arasu & Widom 2004, section 3.1.2 (kernels/windows/landmark.py)
"""

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators import compensated  # noqa: F401  (an operator to sweep with)
from kernels.operators.monoids import append, combine, lift, load, prepend, store
from kernels.operators.numbers import unsigned


@kernel
def sweep(op, columns, lo, hi, mark, scratch, out):
    """out[i] = the aggregate of rows [lo[i], hi[i]), both non-decreasing; empty windows are left alone.

    mark = landmark, first row in scratch, rows taken after the landmark: the state to go on with at the next call.
    scratch: partials, one per row of the longest window, and one more at its end: the running aggregate.
    """
    m, base, upto = mark[0], mark[1], mark[2]
    run, i = load(scratch, -1), np.int64(0)  # not a literal, for which all it is handed to would be compiled again
    while i < lo.size:
        a, b = lo[i], hi[i]
        if a < b and a >= m:
            look_ahead(op, columns, a, b, scratch)
            m, base, upto = b, a, b
        if a >= b or b == m:
            if a < b:
                store(out, unsigned(i), load(scratch, unsigned(a - base)))
            i += 1
            continue
        if upto == m:
            run = lift(op, columns, unsigned(m))
            upto += 1
        while i < lo.size and lo[unsigned(i)] < m:  # the landmark is in the window: 1 ns faster as a loop of its own
            a, b = unsigned(lo[unsigned(i)]), hi[unsigned(i)]
            while upto < b:
                run = append(op, run, columns, unsigned(upto))
                upto += 1
            if lo[unsigned(i)] < b:
                store(out, unsigned(i), combine(op, load(scratch, a - unsigned(base)), run))
            i += 1
    mark[0], mark[1], mark[2] = m, base, upto
    store(scratch, np.int64(-1), run)


@kernel
def look_ahead(op, columns, first, end, scratch):
    """scratch[p - first] = the aggregate of rows [p, end)."""
    acc = lift(op, columns, unsigned(end - 1))
    store(scratch, unsigned(end - 1 - first), acc)
    for p in range(end - 2, first - 1, -1):
        acc = prepend(op, acc, columns, unsigned(p))
        store(scratch, unsigned(p - first), acc)
