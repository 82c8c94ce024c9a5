"""Entries in order of time, as far as anyone wants to know: bands that are cut where they are asked.

      older          now - T                          now
      |   band   |     |           band                 |      a band: all entries with times in a range, in no order
         pile    pile              pile                        its pile: chunks of 63 entries, in a chain

An order that nobody has asked is one band. A walk takes the bands on the newer side of its boundary whole, and compares
times only in the band that the boundary cuts. Where that was mostly in vain, the band is cut just below the boundary,
and what lies below once more, half-way: the next walk finds the work done. A cut between two bands that together hold
no more than what is newer saves little, as whoever walks that far returns as many anyway; it is taken back.

An entry that moves to another band is added to its pile, and nothing is done where it was: a cell knows its place in
the piles, an item that is not at its entry's place is stale, and a pile is tidied when three in four are. So an update
touches the ends of a few piles, which are in the cache, and no neighbours.

needs   times are any int64; an entry is in one order at most; entry 0 is none
costs   place, move and remove O(log of entries) at worst to find the band, in practice one or two comparisons; walk
        O(entries returned) amortised: every comparison in vain halves a range of times, whatever their distribution
space   16 bytes per entry and 4 per item of a pile, of which there are between one and four per entry; 656 per order
from    Arasu & Widom 2004, section 4.1 (SEARCHTREE), with the tree replaced

Many orders live in one set of arrays, each known by its row. Parts of a walk (key_filters/band_walks.py) or a move are
helpers on bare arrays (`opened`, kernels/compile/inlining.py).
Tried: a timing wheel of lists, doubly linked through the entries. With 10^6 keys it spent 35 ns on a change of lists,
for a search in the wheel and two neighbours that were not in the cache, and asking for those ahead saved little; its
slots also parted times that no walk had asked about, which made twice the changes.
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.inlining import bare, fetch, helper, part
from kernels.compile.jit import kernel
from kernels.operators.numbers import EARLIEST

BANDS = 16  # bands of an order: enough for each to be at most four times what is newer, with 10^6 entries
CHUNK_WORDS = 64  # a chunk's number of the next one, 0 for none, and 63 entries
COUNT, PILE = BANDS, BANDS + 2  # columns of rows: how many bands there are; of each, its first chunk,
PILE_END, LIVE, ITEMS = PILE + BANDS, PILE + 2 * BANDS, PILE + 3 * BANDS  # its pile's end, its entries, its items
WIDTH = ITEMS + BANDS  # columns 0 .. BANDS - 1: times, band j holds those above the j-th
SPARE, FIRST_SPARE, PLACED = 0, 1, 2  # columns of row 0: how many chunks are spare, the first of them; a tally


class Bands(NamedTuple):
    cells: np.ndarray  # int64 [entry, 2]: its time, its place in the piles (0: in none)
    piles: np.ndarray  # int32, CHUNK per chunk; the first is no chunk
    rows: np.ndarray  # int64 [1 + order, WIDTH]: the bands, newest first; see the columns above


def empty(orders: int, entries: int) -> Bands:
    """Room for so many orders, and entries 1 .. entries - 1; the orders take nothing until they are begun."""
    cells, rows = np.zeros((entries, 2), np.int64), np.zeros((1 + orders, WIDTH), np.int64)
    return with_spare(Bands(cells, np.zeros(CHUNK_WORDS, np.int32), rows), 16)


def with_orders(state: Bands, orders: int) -> Bands:
    rows = np.zeros((1 + orders, WIDTH), np.int64)
    rows[: state.rows.shape[0]] = state.rows
    return state._replace(rows=rows)


def with_entries(state: Bands, entries: int) -> Bands:
    cells = np.zeros((entries, 2), np.int64)
    cells[: state.cells.shape[0]] = state.cells
    return state._replace(cells=cells)


def with_spare(state: Bands, wanted: int) -> Bands:
    """The same with at least `wanted` chunks to spare; half as many again, so growth is amortised."""
    have = state.piles.size // CHUNK_WORDS
    count = have + max(have // 2, wanted)
    piles, rows = np.zeros(count * CHUNK_WORDS, np.int32), state.rows
    piles[: state.piles.size] = state.piles
    piles[have * CHUNK_WORDS :: CHUNK_WORDS] = np.arange(have + 1, count + 1)
    piles[-CHUNK_WORDS] = rows[0, FIRST_SPARE]
    rows[0, FIRST_SPARE] = have
    rows[0, SPARE] += count - have
    return state._replace(piles=piles)


@helper
def opened(state):
    """The same with bare arrays, as helpers take them."""
    return Bands(bare(state.cells), bare(state.piles), bare(state.rows))


@helper
def begun(rows, r):
    """Is there an order in row r?"""
    return r < rows.shape[0] and rows[r, COUNT] > 0


@helper
def begin(rows, r):
    """An order with one band, which is empty."""
    rows[r, :] = 0
    rows[r, :BANDS] = EARLIEST
    rows[r, COUNT] = 1


@part
def band_of(rows, r, t):
    """The band of time t. Most are among the newest; looking at all bounds at once took longer."""
    j, last = 0, rows[r, COUNT] - 1
    while j < last and rows[r, j] >= t:
        j += 1
    return j


@part
def push(order, r, j, entry):
    """Add an entry to a pile. Takes one spare chunk at most."""
    cells, piles, rows = order
    at = rows[r, PILE_END + j]
    if at & (CHUNK_WORDS - 1) == 0:
        chunk = rows[0, FIRST_SPARE]
        rows[0, FIRST_SPARE] = piles[chunk * CHUNK_WORDS]
        rows[0, SPARE] -= 1
        piles[chunk * CHUNK_WORDS] = 0
        if at == 0:
            rows[r, PILE + j] = chunk
        else:
            piles[at - CHUNK_WORDS] = chunk
        at = chunk * CHUNK_WORDS + 1
    piles[at] = entry
    cells[entry, 1] = at
    rows[r, PILE_END + j] = at + 1
    rows[r, LIVE + j] += 1
    rows[r, ITEMS + j] += 1


@kernel
def free(piles, rows, chunk):
    """Hand back a chunk and those after it."""
    while chunk > 0:
        after = np.int64(piles[chunk * CHUNK_WORDS])
        piles[chunk * CHUNK_WORDS] = rows[0, FIRST_SPARE]
        rows[0, FIRST_SPARE] = chunk
        rows[0, SPARE] += 1
        chunk = after


@kernel
def tidy(order, r, j):
    """Write what is not stale in a pile side by side, and hand back the chunks behind it."""
    cells, piles, rows = order
    at, end = rows[r, PILE + j] * CHUNK_WORDS + 1, rows[r, PILE_END + j]
    to = at
    while at != end:
        if at & (CHUNK_WORDS - 1) == 0:
            at = np.int64(piles[at - CHUNK_WORDS]) * CHUNK_WORDS + 1
        fetch(cells, np.int64(piles[min(at + 16, piles.size - 1)]))
        entry = piles[at]
        if cells[entry, 1] == at:
            if to & (CHUNK_WORDS - 1) == 0:
                to = np.int64(piles[to - CHUNK_WORDS]) * CHUNK_WORDS + 1
            piles[to] = entry
            cells[entry, 1] = to
            to += 1
        at += 1
    rows[r, ITEMS + j] = rows[r, LIVE + j]
    if rows[r, LIVE + j] == 0:
        free(piles, rows, rows[r, PILE + j])
        rows[r, PILE + j] = rows[r, PILE_END + j] = 0
    else:
        last = (to - 1) // CHUNK_WORDS * CHUNK_WORDS
        free(piles, rows, np.int64(piles[last]))
        piles[last] = 0
        rows[r, PILE_END + j] = to


@part
def leave(order, r, j):
    """One entry of band j is stale now."""
    rows = order.rows
    live = rows[r, LIVE + j] - 1
    rows[r, LIVE + j] = live
    if live == 0 or rows[r, ITEMS + j] > 4 * (live + CHUNK_WORDS):
        tidy(order, r, j)


@part
def place(order, r, entry, t):
    """Put an entry, which is in no order, into the one in row r. Takes one spare chunk at most."""
    cells, _, rows = order
    cells[entry, 0] = t
    rows[0, PLACED] += 1
    push(order, r, band_of(rows, r, t), entry)


@helper
def remove(order, r, entry):
    """Take an entry out."""
    cells, _, rows = order
    cells[entry, 1] = 0
    leave(order, r, band_of(rows, r, cells[entry, 0]))


@helper
def move(order, r, entry, t):
    """An entry of the order in row r gets another time. Takes one spare chunk at most."""
    cells, _, rows = order
    old, j = cells[entry, 0], band_of(rows, r, t)
    cells[entry, 0] = t
    if old > t or old <= rows[r, j]:
        was = band_of(rows, r, old)
        if was != j:
            rows[0, PLACED] += 1
            push(order, r, j, entry)
            leave(order, r, was)
