"""Values that frames tell apart: how many are different, and which is the most frequent.

      place        0  1  2  3  4  5       of every event, counted on through all batches
      value        a  b  a  c  a  b
      before      -1 -1  0 -1  2  1       where its key had that value last
      frame              [2 .  .  5]      begins at 2: an event whose value was last there before 2 is new to it

Frames only grow. So a value that comes is counted where it was last seen before the frame began, and no frame keeps a
set of its values. The most frequent value can only change to the one that has just come: of each (key, value) is kept
how often it was in the frame that had it last, and where first. What an event wrote there when it was considered for a
frame that it then was too much for, nobody reads: of the frame that it opens it is the first event, and that is known.

needs   a number for each (key, value), and its last place: frames/scans/told_apart.py
costs   O(1) per event
"""

from typing import Any, NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.frames.growing import PartFunctions, register

NEVER_BEFORE = np.int64(-1)
OFTEN, FIRST_PLACE = range(2)  # of a (key, value), in the frame that had it last


class GrowingDistinct(NamedTuple):
    tag: int = 0


class GrowingMode(NamedTuple):
    """Of every (key, value) how often it came, and where first, in the frame that had it last."""

    pairs: Any


@kernel
def note_places(pairs, first, last, before):
    """before[e] = where the pair of event e was last seen; its own place is first + e. A pair of -1 is none."""
    for e in range(pairs.size):
        pair = pairs[e]
        if pair >= 0:
            before[e] = last[pair]
            last[pair] = first + e
        else:
            before[e] = NEVER_BEFORE


@kernel
def _lift_distinct(op, columns, e):
    """How many values, where the frame begins, and where the value of this event was last."""
    return np.int64(1), columns[0][e], columns[1][e]


@kernel
def _combine_distinct(op, a, b):
    return a[0] + np.int64(b[2] < a[1]), a[1], b[2]


@kernel
def _lift_mode(op, columns, e):
    """The most frequent value, how often it came, where first; where the frame begins; of this event the rest."""
    place = columns[1][e]
    return columns[0][e], np.int64(1), place, place, columns[2][e], columns[3][e]


@kernel
def _combine_mode(op, a, b):
    """b is one event: frames only grow."""
    begin, place, before, pair = a[3], b[3], b[4], b[5]
    if before < begin:
        often, first = np.int64(1), place
    elif before == begin:
        often, first = np.int64(2), begin
    else:
        often, first = op.pairs[pair, OFTEN] + 1, op.pairs[pair, FIRST_PLACE]
    op.pairs[pair, OFTEN], op.pairs[pair, FIRST_PLACE] = often, first
    if often > a[1] or (often == a[1] and first < a[2]):
        return b[0], often, first, begin, before, pair
    return a[0], a[1], a[2], begin, before, pair


@kernel
def _first_of(op, a):
    return a[0]


@kernel
def _never(op, a):
    return False


@kernel
def _answered(op, a):
    return a[0], 1


register(GrowingDistinct, PartFunctions(_lift_distinct, _combine_distinct, _first_of, _never, _answered))
register(GrowingMode, PartFunctions(_lift_mode, _combine_mode, _first_of, _never, _answered))
DISTINCT_PARTIAL = (np.int64,) * 3
BEGIN_PLACE = {GrowingDistinct: 1, GrowingMode: 3}  # where a partial says at which place its frame begins


def mode_partial(dtype):
    """Of values of a type."""
    return (dtype, *(np.int64,) * 5)
