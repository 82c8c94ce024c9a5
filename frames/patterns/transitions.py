"""All that can be known of a search after some rows, as the states of a table: one step per row, whatever the match.

      A B+ C      rows  A A B B C         after the fourth:  B+ began at 1,  A began at 3
                            [-----]       after the fifth:   the match [1, 4] is certain

A state is a list of *threads*, each at a position of the pattern and begun at some row, and of *candidates*, matches
that are certain if every thread before them dies. Those that come first are preferred. A row moves every thread on to
the positions that may follow and whose condition holds for it; last comes a thread that begins with the row. Of two
threads at one position the second is dropped: whatever comes, it ends as the first one does, which is preferred. A
thread that may end its match here makes a candidate, and all that comes behind it is dropped: the search that goes on
behind the candidate begins with the next row. Candidates that come first are matches.

So the states are finite, as long as matches need not wait for rows without bound, as those of `A (B* C)?` do; and
which thread of the next state comes from which of this one is known for every state and every set of conditions that
hold. What began where is carried along by kernels/frames/patterns.py; of one that began with the last row nothing need
be.

from    Pike's simulation with priorities, made a table as Laurikari's tagged automata are; candidates between threads
        are ours: no row is ever read twice, though a match be certain only long after its end.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from frames.patterns.automaton import END, Automaton
from kernels.frames.patterns import FRESH, NEW, THREAD, Machine

CANDIDATE = -2
WIDEST_STATE, LONGEST_TABLE = 24, 1 << 14  # threads and candidates of a state; rows of the table
SYMBOLS_IN_A_BYTE = 8  # with conditions: a row's are the bits of a byte


class Successor(NamedTuple):
    """Of the next state: a position or CANDIDATE, what it was in this state, does it end with this row?"""

    kind: int
    source: int
    now: bool


State = tuple[
    tuple[int, bool], ...
]  # of each thread or candidate: its position or CANDIDATE, is it the last row alone?


class Transition(NamedTuple):
    """From a state, with a row: the next one's number, how many matches come first in `items`, and the others."""

    then: int
    certain: int
    items: list[Successor]


@lru_cache(maxsize=256)
def machine(automaton: Automaton, conditional: tuple[int, ...]) -> Machine | None:
    """The table of a pattern; None if it would be too large. conditional: the symbols that have conditions, in the
    order of their bits."""
    if len(conditional) > SYMBOLS_IN_A_BYTE:
        return None
    classes = 1 << len(conditional)
    states: dict[State, int] = {(): 0}
    steps: list[Transition] = []
    order: list[State] = [()]
    for state in order:  # which grows
        for bits in range(classes):
            items = _step(automaton, conditional, state, bits)
            certain = next((i for i, item in enumerate(items) if item.kind != CANDIDATE), len(items))
            after = tuple((item.kind, item.source == NEW) for item in items[certain:])
            if len(items) > WIDEST_STATE or len(states) * classes > LONGEST_TABLE:
                return None
            if after not in states:
                states[after] = len(order)
                order.append(after)
            steps.append(Transition(states[after], certain, items))
    return _as_arrays(order, steps, classes)


def _step(automaton: Automaton, conditional: tuple[int, ...], state: State, bits: int) -> list[Successor]:
    """What a state becomes with a row for which these conditions hold, matches that are certain by now first."""
    holds = {symbol: bool(bits >> i & 1) for i, symbol in enumerate(conditional)}
    sources = [(kind, FRESH if fresh else i) for i, (kind, fresh) in enumerate(state)]
    found: list[Successor] = []
    seen = set()
    for kind, source in [*sources, (END, NEW)]:
        if kind == CANDIDATE:
            found.append(Successor(kind, source, False))
            continue
        for position in automaton.first if kind == END else automaton.behind[kind]:
            if position == END or position in seen or not holds.get(automaton.labels[position], True):
                continue
            seen.add(position)
            behind = automaton.behind[position]
            if behind != (END,):
                found.append(Successor(position, source, False))
            if behind[-1] == END:
                return [*found, Successor(CANDIDATE, source, True)]
    return found


def _as_arrays(states: list[State], steps: list[Transition], classes: int) -> Machine:
    wide = max(1, *(len(step.items) for step in steps))
    matches, moves = np.zeros((len(steps), wide), np.uint8), np.zeros((len(steps), wide, 3), np.uint8)
    moving, kinds = np.zeros(len(steps), np.int64), np.zeros((len(states), wide), np.uint8)
    for row, (_, certain, items) in enumerate(steps):
        matches[row, :certain] = [2 * item.source + item.now for item in items[:certain]]
        found = _moves(items[certain:])
        moving[row], moves[row, : len(found)] = len(found), np.array(found, np.uint8).reshape(-1, 3)
    for row, state in enumerate(states):
        kinds[row, : len(state)] = [THREAD + (kind == CANDIDATE) + 2 * fresh for kind, fresh in state]
    sure = np.array([step.certain for step in steps], np.int64)
    then = np.array([step.then for step in steps], np.int64) * 2 + ((sure > 0) | (moving > 0))
    return Machine(np.uint64(classes), then, sure, matches, moving, moves, kinds)


def _moves(items: list[Successor]) -> list[tuple[int, int, bool]]:
    """To, from, does it end here: of those that do not stay as they are, in an order in which none is written over
    before it is read. A new one need not be noted: its row is the key's last. Sources never fall, as what is preferred
    stays so; so first those that come forward, from the first on, then those that go back, from the last on, then those
    that are the last row alone so far."""
    found = [(to, item.source, item.now) for to, item in enumerate(items) if item.source != to or item.now]
    forward = [each for each in found if each[0] <= each[1] < FRESH]
    back = [each for each in found if each[0] > each[1]]
    return [*forward, *reversed(back), *(each for each in found if each[1] == FRESH)]
