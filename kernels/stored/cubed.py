"""Skewness over stored events, by prefixes (R-INT): a window is the difference of running sums of powers.

As variances are (kernels/stored/swept.py), with one power more: running sums of y = x - c, y^2 and y^3, double-doubles,
c near the data. Of a window's sums s, q and r, and its mean m of y,

    m2 = q - s m        m3 = r - m (3 q - 2 s m)

and the skewness is m3 / m2^1.5, times what a sample's is more. No |y| exceeds Y, so rounding takes at most 64 eps Y q
from an m3, whatever cancels. An m2^1.5 that is not 1e8 times that much is doubted, as are windows of a constant and of
fewer than 3 rows: they are computed from their own rows, as long as that costs a few rows per answer. Where it costs
more, the caller is told to sweep with moments.

Values that wander are far from any c. So narrow windows are read off sums over pieces of the rows, each with a c of its
own. Pieces overlap, so that a narrow window lies as a whole in the one whose first rows it begins in:

    piece 0   |--------:----|              2^shift rows, and as many more as a narrow window may have
    piece 1            |--------:----|
    window         [---------)

Fifty windows at each of a million rows of a random walk take 0.22 s. To sweep them takes 0.24, and with one c for all
rows it was 0.38: windows of fewer than 700 rows were doubted first. Of noise it is 0.19 in place of 0.24.
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators.numbers import unsigned
from kernels.stored.swept import LEAST, PATIENCE, SUMMED_AT_ONCE, add_to

SURE_OF_CUBES = 1e8  # an m2^1.5 is at least so many times the error of m3
TINY = 1e-300  # cubes that are smaller lose digits
ROUNDED_CUBES = 64 * 2.0**-53 * SURE_OF_CUBES  # of Y q: powers, their sums, and what is done with these are rounded


class CubedSums(NamedTuple):
    """Running sums of y, y^2 and y^3 over values, the rows `base` …, in pieces, and how often x has changed.

    Piece g is of the `length` rows from g << shift on. sums: of each piece length + 1 rows, as accumulate_cubed leaves
    them. Of a window in it whose squares add up to q, an m2^1.5 / sqrt(n) that is less than per_square[g] q + error[g]
    is not certain.
    """

    values: np.ndarray
    base: int
    shift: int
    length: int
    sums: np.ndarray
    changes: np.ndarray
    per_square: np.ndarray
    error: np.ndarray


@kernel
def accumulate_cubed(values, centre, sums):
    """sums[i] = of y = x - centre, y^2 and y^3 over values[:i], hi and lo of each.

    Returns the largest |y|, and how far off an m3 can be because of what was lost on the way.
    """
    s, s_lo, q, q_lo, r, r_lo, largest = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    lost, lost_q, lost_r = 0.0, 0.0, 0.0
    for i in range(values.size + 1):
        sums[i, 0], sums[i, 1], sums[i, 2], sums[i, 3], sums[i, 4], sums[i, 5] = s, s_lo, q, q_lo, r, r_lo
        if i < values.size:
            y = values[i] - centre
            s, s_lo, err = add_to(s, s_lo, y)
            q, q_lo, err_q = add_to(q, q_lo, y * y)
            r, r_lo, err_r = add_to(r, r_lo, y * y * y)
            lost += err
            lost_q += err_q
            lost_r += err_r
            largest = max(largest, abs(y))
    of_squares = lost_q + q * LEAST
    of_sums = lost + largest * values.size * LEAST
    return largest, TINY + lost_r + largest * (q * LEAST + 3 * of_squares + 6 * largest * of_sums)


@kernel
def accumulate_pieces(cubed):
    """Sums of all pieces, each around the mean of its values."""
    values, _, shift, length, sums, _, per_square, error = cubed
    for g in range(error.size):
        first = g << shift
        piece, total = values[first : min(first + length, values.size)], 0.0
        for i in range(piece.size):
            total += piece[i]
        largest, lost = accumulate_cubed(piece, total / max(1, piece.size), sums[g * (length + 1) :])
        per_square[g], error[g] = ROUNDED_CUBES * largest, SURE_OF_CUBES * lost


@kernel
def count_changes(values, changes):
    """changes[i] = how often values[:i] go from one to another."""
    n = 0
    changes[0] = 0
    for i in range(values.size):
        n += i > 0 and values[i] != values[i - 1]
        changes[i + 1] = n


@kernel
def skews(cubed, lo, hi, out):
    """out[i] = the skewness of rows [lo[i], hi[i]), each in a piece. Returns how many are in doubt; those are NaN.

    Page by page, as variances are: to gather and to divide are loops of their own.
    """
    _, base, shift, length, sums, _, per_square, error = cubed
    n, squares, cubes = np.empty(SUMMED_AT_ONCE), np.empty(SUMMED_AT_ONCE), np.empty(SUMMED_AT_ONCE)
    needed, doubted = np.empty(SUMMED_AT_ONCE), 0
    for first in range(0, lo.size, SUMMED_AT_ONCE):
        stop = min(first + SUMMED_AT_ONCE, lo.size)
        page = out[first:stop]
        for i in range(page.size):
            a, b = lo[first + i] - base, hi[first + i] - base
            n[i], g = b - a, a >> shift
            skip = g * (length + 1) - (g << shift)
            a, b = unsigned(skip + a), unsigned(skip + b)
            page[i] = (sums[b, 0] - sums[a, 0]) + (sums[b, 1] - sums[a, 1])
            squares[i] = (sums[b, 2] - sums[a, 2]) + (sums[b, 3] - sums[a, 3])
            cubes[i] = (sums[b, 4] - sums[a, 4]) + (sums[b, 5] - sums[a, 5])
            needed[i] = squares[i] * per_square[unsigned(g)] + error[unsigned(g)]
        for i in range(page.size):
            k, q = n[i], squares[i]
            mean = page[i] / k
            m2 = q - page[i] * mean
            m3 = cubes[i] - mean * (3.0 * q - 2.0 * page[i] * mean)
            root = np.sqrt((k - 1.0) / m2)
            value = k * root * m3 / ((k - 2.0) * m2)
            sure = (k > 2.0) & (abs(value) < np.inf)
            sure &= 0.8 * m2 >= needed[i] * root  # m2 / root is less than 1.25 m2^1.5 / sqrt(n)
            page[i] = value if sure else np.nan
            doubted += not sure
    return doubted


@kernel
def reconsider_skews(cubed, lo, hi, out, valid):
    """Compute those in doubt from their own rows; valid: which are not null. False: that would cost too much."""
    values, base, _, _, _, changes, _, _ = cubed
    budget, doubted, places = PATIENCE * lo.size, 0, np.empty(lo.size, np.int64)
    for i in range(lo.size):  # those in doubt, without a guess at each whether it is
        places[doubted] = i
        doubted += np.isnan(out[i])
    for i in places[:doubted]:
        a, b = lo[i] - base, hi[i] - base
        if b - a < 3 or (changes[b] == changes[a + 1] and values[a] - values[a] == 0.0):
            valid[i] = False
            continue
        budget -= b - a
        if budget < 0:
            return False
        m2, m3 = powers(values, a, b)
        k = np.float64(b - a)
        value = np.sqrt(k * (k - 1.0)) / (k - 2.0) * (m3 / (m2 * np.sqrt(m2 / k)))
        out[i] = value if abs(value) < np.inf else np.nan
        valid[i] = m2 != 0.0
    return True


@kernel
def powers(values, lo, hi):
    """m2 and m3 of a few rows, in two passes."""
    mean, m2, m3 = 0.0, 0.0, 0.0
    for p in range(lo, hi):
        mean += (values[p] - mean) / (p - lo + 1)
    for p in range(lo, hi):
        d = values[p] - mean
        m2 += d * d
        m3 += d * d * d
    return m2, m3
