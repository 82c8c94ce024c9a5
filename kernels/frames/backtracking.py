"""Matches of a pattern by going back: choices are tried in order of preference, and taken back where they are stuck.

      rows      s . . . .            of one key, in order; from s on, row by row, one position of the pattern for each
      stuck     no choice is left for a row: the row before it tries its next
      at the end of what has come so far, nothing is known: more rows may come

needs   the rows of a key one after the other; bits: which symbols' own conditions hold for each
costs   O(rows x positions) per start if conditions are about rows alone (what has failed once is not tried again);
        exponential at worst where they are about the match so far
For what a table (kernels/frames/patterns.py) does not hold: conditions over the match so far, matches that wait without
bound, many symbols. And to find out which row of a match is which symbol.
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.inlining import bare, helper
from kernels.compile.jit import kernel

END, UNKNOWN = -1, -1  # a choice: the match may end here. An outcome: it depends on rows that are still to come
COUNT, SUM, MEAN, MIN, MAX, FIRST, LAST = range(7)  # aggregates of the match so far
CONSTANT, VALUE, GROWN, ADD, SUB, MUL, DIV, NEG, EQ, NE, LT, LE, GT, GE, AND, OR, NOT = range(17)  # steps of programs
MOST_AT_HAND = 64  # numbers that a program may have at hand


class Choices(NamedTuple):
    """behind[starts[p] : starts[p + 1]]: what may follow position p, in order; of p = positions, what may come first.

    labels: the symbol of each position.
    """

    labels: np.ndarray
    starts: np.ndarray
    behind: np.ndarray


class Growing(NamedTuple):
    """Aggregates of the match so far, and programs over them, a row for each.

    kinds, symbols (-1: any row), columns: of each aggregate. steps: (what, operand) of all programs; starts: where that
    of each symbol begins. constants: of all programs. values: of aggregates and programs, a row for each column; there:
    which of them are not null.
    """

    kinds: np.ndarray
    symbols: np.ndarray
    columns: np.ndarray
    steps: np.ndarray
    starts: np.ndarray
    constants: np.ndarray
    values: np.ndarray
    there: np.ndarray


class Stack(NamedTuple):
    """Of each row of a match: which choice is tried, its position, its aggregates; tried: which have failed.

    furthest: the last row that was looked at, and whether one behind the last was asked for. numbers: of a program.
    """

    choice: np.ndarray
    position: np.ndarray
    partials: np.ndarray
    tried: np.ndarray
    furthest: np.ndarray
    numbers: np.ndarray


@kernel
def stack(rows, positions, aggregates):
    """Room for matches of so many rows. Without aggregates, what has failed once is remembered."""
    tried = np.full((rows if aggregates == 0 else 0, positions), -1, np.int64)
    partials = np.zeros((rows + 1, aggregates, 2))
    choice, position = np.zeros(rows + 2, np.int64), np.zeros(rows + 2, np.int64)
    return Stack(choice, position, partials, tried, np.zeros(2, np.int64), np.zeros(MOST_AT_HAND))


@helper
def opened(bits, choices, growing):
    """The same with bare arrays: references to them were counted at every call, which took most of the time."""
    kinds, symbols, columns = bare(growing.kinds), bare(growing.symbols), bare(growing.columns)
    steps, starts, constants = bare(growing.steps), bare(growing.starts), bare(growing.constants)
    bare_choices = Choices(bare(choices.labels), bare(choices.starts), bare(choices.behind))
    values, there = bare(growing.values), bare(growing.there)
    return bare(bits), bare_choices, Growing(kinds, symbols, columns, steps, starts, constants, values, there)


@helper
def opened_stack(own):
    """The same; `own` has to be kept for as long as this is used."""
    choice, position, partials = bare(own.choice), bare(own.position), bare(own.partials)
    return Stack(choice, position, partials, bare(own.tried), bare(own.furthest), bare(own.numbers))


@kernel
def find(span, over, bits, choices, growing, found):
    """All matches among the rows of a key: found[i] = first row, rows, the row that made it certain (-1: the end).

    span: its rows, from … until. over: are there no more? Returns how many, and the first row that is undecided.
    """
    begin, end = span
    own = stack(end - begin, choices.labels.size, growing.kinds.size)
    n, row, room = 0, begin, opened_stack(own)
    while row < end:
        length = attempt(row, (begin, end), over, bits, choices, growing, room)
        if length == UNKNOWN:
            break
        if length > 0:
            found[n, 0], found[n, 1] = row, length
            found[n, 2] = -1 if room.furthest[1] else max(room.furthest[0], row + length - 1)
            n += 1
        row += max(length, 1)
    own.furthest[0] = row
    return n, row


@kernel
def find_all(spans, over, bits, choices, growing, found, undecided):
    """The matches of all keys, one after the other, and of each its first row that is undecided. Returns how many."""
    (begins, ends), n, (bits, choices, growing) = spans, 0, opened(bits, choices, growing)
    for k in range(begins.size):
        more, undecided[k] = find((begins[k], ends[k]), over, bits, choices, growing, found[n:])
        n += more
    return n


@kernel
def attempt(first, span, over, bits, choices, growing, room):
    """The rows of the preferred match from `first` on; 0 if there is none, or an empty one; or UNKNOWN."""
    (begin, end), depth = span, 0
    room.choice[0] = 0
    while depth >= 0:
        before = choices.labels.size if depth == 0 else room.position[depth - 1]
        at, row = choices.starts[before] + room.choice[depth], first + depth
        if at == choices.starts[before + 1]:  # no choice is left: the row before tries its next
            depth -= 1
            room.choice[max(depth, 0)] += 1
            continue
        position = choices.behind[at]
        if position == END:
            return depth
        if row >= end:
            room.furthest[1] = 1
            if not over:
                return UNKNOWN
            room.choice[depth] += 1
            continue
        room.furthest[0] = max(room.furthest[0], row)
        if holds(position, row, depth, (first, begin), bits, choices, (growing, room)):
            room.position[depth] = position
            depth += 1
            room.choice[depth] = 0
        else:
            room.choice[depth] += 1
    return 0


@helper
def holds(position, row, depth, origin, bits, choices, rest):
    """May this row take that position, as the match has come so far?"""
    growing, room = rest
    first, begin = origin
    symbol = choices.labels[position]
    if not (bits[row] >> np.uint64(symbol)) & np.uint64(1):
        return False
    if growing.kinds.size == 0:
        new = room.tried[row - begin, position] != first
        room.tried[row - begin, position] = first
        return new
    grow(growing, symbol, row, room.partials[depth], room.partials[depth + 1])
    return run(growing, symbol, row, room.partials[depth + 1], room.numbers)


@helper
def grow(growing, symbol, row, before, after):
    """Aggregates of the match with one row more. Each: a number, and how many values it is of. A NaN stays in it."""
    for a in range(growing.kinds.size):
        kind, value, count = growing.kinds[a], before[a, 0], before[a, 1]
        if growing.symbols[a] == -1 or growing.symbols[a] == symbol:
            x, there = growing.values[growing.columns[a], row], growing.there[growing.columns[a], row]
            by_place = kind in (FIRST, LAST)
            if by_place:
                value = x if kind == LAST or count == 0 else value
            elif there and count > 0:
                known = x == x and value == value and kind in (MIN, MAX)
                value = value + x if not known else min(value, x) if kind == MIN else max(value, x)
            elif there:
                value = x
            count += by_place or there
        after[a, 0], after[a, 1] = value, count


@helper
def grown(growing, a, partials):
    """The answer of an aggregate; NaN is null."""
    kind, value, count = growing.kinds[a], partials[a, 0], partials[a, 1]
    if kind == COUNT:
        return count
    if count == 0:
        return np.nan
    return value / count if kind == MEAN else value


@helper
def run(growing, symbol, row, partials, numbers):
    """Is what the program of a symbol gives true? One without steps is. Unknown is NaN, and not true."""
    begin, end = growing.starts[symbol], growing.starts[symbol + 1]
    top = 0
    for s in range(begin, end):
        what, operand = growing.steps[s, 0], growing.steps[s, 1]
        if what <= GROWN:
            if what == CONSTANT:
                numbers[top] = growing.constants[operand]
            else:
                numbers[top] = growing.values[operand, row] if what == VALUE else grown(growing, operand, partials)
            top += 1
        elif what in (NEG, NOT):
            numbers[top - 1] = -numbers[top - 1] if what == NEG else 1 - numbers[top - 1]
        else:
            top -= 1
            numbers[top - 1] = applied(what, numbers[top - 1], numbers[top])
    return begin == end or numbers[0] == 1.0


@helper
def applied(what, a, b):
    """An operator of programs; what is unknown stays so, unless the other side settles it."""
    if what == AND:
        return 0.0 if a == 0 or b == 0 else a * b
    if what == OR:
        return 1.0 if a == 1 or b == 1 else a + b
    if what < EQ:
        return a + b if what == ADD else a - b if what == SUB else a * b if what == MUL else a / b
    if a != a or b != b:
        return np.nan
    if what in (EQ, NE):
        holds = (a == b) == (what == EQ)
    elif what in (LT, GE):
        holds = (a < b) == (what == LT)
    else:
        holds = (a <= b) == (what == LE)
    return 1.0 if holds else 0.0


@kernel
def label(starts, lengths, bits, choices, growing, labels):
    """labels[i] = the symbol of each row of the matches that begin at these rows, and are so long."""
    bits, choices, growing = opened(bits, choices, growing)
    own = stack(lengths.max() if lengths.size else 0, choices.labels.size, growing.kinds.size)
    room = opened_stack(own)
    for m in range(starts.size):
        begin, end = starts[m], starts[m] + lengths[m]
        attempt(begin, (begin, end), True, bits, choices, growing, room)
        for i in range(lengths[m]):
            labels[begin + i] = choices.labels[room.position[i]]
    own.furthest[0] = 0
