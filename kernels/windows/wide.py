"""Answers of many queries for some keys, side by side: from partials to words on a page, and from there into columns.

    page    values[slot, row], valid[slot, row]: a slot for each query, a row for each key

One call per block of queries that differ in their windows alone. By NumPy, the answers of 80 queries for one key took
five times as long; and what is computed here, others may do beside it.
"""

from kernels.compile.jit import kernel

ROWS, PARTIAL, PER_ROW = range(3)  # the answer is: how many rows there are, the partial itself, that per row
TILE = 64  # keys at a time: what is read row by row is written slot by slot


@kernel
def lower(how, edges, which, partial, states, rows, page):
    """The answers of a block: slot s of the page is that of window which[s], whose partials are partial[:, states[s]].

    rows: those of the keys on the page; if there are none, key i has row i. Empty windows have a word of 0.
    """
    lo, hi = edges
    values, valid = page
    for start in range(0, lo.shape[0], TILE):
        for s in range(which.size):
            w, at = which[s], states[s]
            for i in range(start, min(start + TILE, lo.shape[0])):
                n = hi[i, w] - lo[i, w]
                row = rows[i] if rows.size else i
                valid[s, row] = n > 0 or how == ROWS
                if how == ROWS or n <= 0:
                    values[s, row] = max(n, 0)
                elif how == PARTIAL:
                    values[s, row] = partial[i, at]
                else:
                    values[s, row] = partial[i, at] / n


@kernel
def pack(page, slots, body, nulls):
    """Into a message (swag/tables/wide_rows.py): of each column the bits of what is valid, then its values.

    body: a row for each column; nulls[2 * c]: how many column c has. slots: which slot of the page is that of a column.
    """
    values, valid = page
    for c in range(slots.size):
        slot, bits, there = slots[c], 0, 0
        for row in range(values.shape[1]):
            body[c, 1 + row] = values[slot, row]
            bits |= valid[slot, row] << row
            there += valid[slot, row]
        body[c, 0] = bits
        nulls[2 * c] = values.shape[1] - there


@kernel
def bitmaps(valid, bits, nulls):
    """A bit for each row of a slot, as Arrow has them; nulls[slot]: how many are 0. bits: zeros."""
    for slot in range(valid.shape[0]):
        there = 0
        for row in range(valid.shape[1]):
            bits[slot, row >> 3] |= valid[slot, row] << (row & 7)
            there += valid[slot, row]
        nulls[slot] = valid.shape[1] - there
