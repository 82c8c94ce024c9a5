"""Sums and moments over stored events, by prefixes (R-INT): a window is the difference of two running sums.

A prefix is kept for the rows that one chunk of requests can see, no more: it is built in parallel with those of other
chunks, stays in the cache while all windows are read off it, and a NaN or a 1e300 spoils one chunk's shortcut only.

Every answer is certified, so that it depends on the rows of its own window alone:

    float sums  running sums are double-doubles, 106 bits. What rounding took on the way is known exactly and bounds the
                error of any answer; one that is not 1e12 times larger is doubted. Mostly nothing was lost: values that
                are multiples of one power of two, 2^103 of which exceed their sum (as of any million of ordinary
                doubles), add up exactly, and no answer is doubted, not even 0.
    moments     running sums of y = x - c and y^2, c near the data, double-doubles too. An m2 that is not 1e8 times its
                error is doubted: n q - s^2 cancels where a window lies far from c and is narrow. With plain sums a
                short window among many rows was off by what all rows before it had lost: most minutes of a day of
                prices, which wander, were doubted.

A doubted answer is computed from its own rows, as long as that costs a few rows per answer; where it does not, the
caller is told to sweep with operators that never subtract (Compensated, Moments).
Tried: certifying by rows * |run[lo]| * 2^-103, answer by answer, doubts every window that cancels. The difference of
two double-doubles by two_sum, not by two subtractions: 0.7 ns more, for the last bit.
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators.numbers import two_sum, unsigned
from kernels.windows.running import add_up

PATIENCE = 4  # rows per answer, on average, that doubted answers may cost
SURE = 1e8  # an m2 is at least so many times its error
DOUBT = 8 * 2.0**-53 * SURE  # of the sum of squares: y, its square and what is done with both are rounded
LEAST = 2.0**-100
SUMMED_AT_ONCE = 512
HALF = np.int64(32)


class CentredSums(NamedTuple):
    """Running sums of y = x - c and y^2 over values, the rows `base` …, c near them, and how often x has changed.

    sums, changes: as accumulate_centred leaves them. An m2 of less than `error` is not certain.
    """

    values: np.ndarray
    base: int
    sums: np.ndarray
    changes: np.ndarray
    error: float


def certainty(values, lost, size):
    """The least sum that is certain, given what was lost and the sum of |values|: 0 if all are."""
    if not np.isfinite(size):
        return np.inf
    grains = 103 - int(np.frexp(size)[1])  # log2 of the grains to 1, if size is to be less than 2^103 of them
    if size == 0 or (lost == 0 and grains < 1024 and multiples(values, 2.0**grains)):
        return 0.0
    return float(1e12 * (lost + size * 2.0**-104))


@kernel
def add_to(hi, lo, x):
    """The double-double hi + lo + x, and the size of what rounding took."""
    s, e = two_sum(hi, x)
    e, err = two_sum(e, lo)
    hi = s + e
    return hi, e - (hi - s), abs(err)


@kernel
def accumulate(values, pairs):
    """pairs[i] = the sum of values[:i], hi and lo. Returns what rounding took in all, and the sum of |values|."""
    hi, lo, lost, size = 0.0, 0.0, 0.0, 0.0
    for i in range(values.size):
        pairs[i, 0], pairs[i, 1] = hi, lo
        hi, lo, err = add_to(hi, lo, values[i])
        lost += err  # the loop waits for hi and lo: counting costs nothing
        size += abs(values[i])
    pairs[values.size, 0], pairs[values.size, 1] = hi, lo
    return lost, size


@kernel
def multiples(values, per_grain):
    """Is every value a whole number of grains?"""
    for i in range(values.size):
        x = values[i] * per_grain
        if np.rint(x) != x:
            return False
    return True


@kernel
def subtract(pairs, base, sure, lo, hi, mean, out):
    """out[i] = the sum, or mean, of rows [lo[i], hi[i]); pairs begin at row `base`. Returns how many are in doubt."""
    doubted = 0
    for i in range(lo.size):
        a, b = unsigned(lo[i] - base), unsigned(hi[i] - base)
        s = (pairs[b, 0] - pairs[a, 0]) + (pairs[b, 1] - pairs[a, 1])
        doubted += not abs(s) >= sure
        out[i] = s / np.float64(hi[i] - lo[i]) if mean else s
    return doubted


@kernel
def subtract_in_step(left, right, sure, out):
    """The same for windows that go on row by row, given the pairs from the first window's edges on: unit strides."""
    doubted = 0
    for i in range(out.size):
        s = (right[i, 0] - left[i, 0]) + (right[i, 1] - left[i, 1])
        doubted += not abs(s) >= sure
        out[i] = s
    return doubted


@kernel
def reconsider(values, sure, lo, hi, out):
    """Add up the windows whose sums are in doubt, row by row. False: that would cost too much."""
    budget = PATIENCE * lo.size
    for i in range(lo.size):
        if not abs(out[i]) >= sure:
            budget -= hi[i] - lo[i]
            if budget < 0:
                return False
            out[i] = add_up(values, 0, -1, lo[i], hi[i])
    return True


@kernel
def accumulate_centred(values, centre, sums, changes):
    """sums[i] = of y = x - centre and of y^2 over values[:i], both hi and lo; they have changed changes[i] times.

    Returns how far off a difference of two sums of squares can be because of what was lost on the way; a difference of
    sums is off so little that, times any 2 |y|, it is in it too.
    """
    s, s_lo, q, q_lo, lost, lost_q, largest, n = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0
    before = values[0] if values.size else 0.0
    for i in range(values.size):
        sums[i, 0], sums[i, 1], sums[i, 2], sums[i, 3], changes[i] = s, s_lo, q, q_lo, n
        y = values[i] - centre
        s, s_lo, err = add_to(s, s_lo, y)
        q, q_lo, err_q = add_to(q, q_lo, y * y)
        lost += err
        lost_q += err_q
        largest = max(largest, abs(y))
        n += values[i] != before
        before = values[i]
    end = values.size
    sums[end, 0], sums[end, 1], sums[end, 2], sums[end, 3], changes[end] = s, s_lo, q, q_lo, n
    return lost_q + q * LEAST + 2 * largest * (lost + largest * end * LEAST)


@kernel
def variances(centred, lo, hi, ddof, root, out):
    """out[i] = m2 / (n - ddof) of rows [lo[i], hi[i]), or its root. Returns how many are in doubt; those are NaN.

    Page by page: to gather, divide and take roots in one loop is 3 ns slower, as nothing of it is vectorised.
    """
    _, base, sums, _, error = centred
    n, squares, doubted = np.empty(SUMMED_AT_ONCE), np.empty(SUMMED_AT_ONCE), 0
    for first in range(0, lo.size, SUMMED_AT_ONCE):
        stop = min(first + SUMMED_AT_ONCE, lo.size)
        page = out[first:stop]
        differences(sums, base, lo[first:stop], hi[first:stop], n, squares, page)
        doubted += spread(n, squares, error, ddof, root, page)
    return doubted


@kernel
def variances_in_step(left, right, rows, error, ddof, root, out):
    """The same for windows of so many rows that go on row by row, given the sums from the first window's edges on."""
    n, squares, doubted = np.full(SUMMED_AT_ONCE, np.float64(rows)), np.empty(SUMMED_AT_ONCE), 0
    for first in range(0, out.size, SUMMED_AT_ONCE):
        page = out[first : first + SUMMED_AT_ONCE]
        a, b = left[first : first + SUMMED_AT_ONCE], right[first : first + SUMMED_AT_ONCE]
        for i in range(page.size):
            page[i] = (b[i, 0] - a[i, 0]) + (b[i, 1] - a[i, 1])
            squares[i] = (b[i, 2] - a[i, 2]) + (b[i, 3] - a[i, 3])
        doubted += spread(n, squares, error, ddof, root, page)
    return doubted


@kernel
def spread(n, squares, error, ddof, root, page):
    """Sums of y to variances, or their roots, given how many rows and the sums of squares. Doubted ones are NaN."""
    doubted = 0
    for i in range(page.size):
        q = squares[i] * n[i]
        m2 = q - page[i] * page[i]  # n times that
        doubtful = not m2 >= q * DOUBT + n[i] * error
        page[i] = np.nan if doubtful else m2 / (n[i] * (n[i] - ddof))
        doubted += doubtful
    if root:
        for i in range(page.size):
            page[i] = np.sqrt(page[i])
    return doubted


@kernel
def differences(sums, base, lo, hi, n, squares, out):
    """out[i] = the sum of y over rows [lo[i], hi[i]), squares[i] of y^2, and n[i] how many they are."""
    for i in range(lo.size):
        a, b = unsigned(lo[i] - base), unsigned(hi[i] - base)
        n[i] = b - a
        out[i] = (sums[b, 0] - sums[a, 0]) + (sums[b, 1] - sums[a, 1])
        squares[i] = (sums[b, 2] - sums[a, 2]) + (sums[b, 3] - sums[a, 3])


@kernel
def reconsider_variances(centred, lo, hi, ddof, root, out):
    """Compute those in doubt from their own rows. False: that would cost too much."""
    values, base, _, changes, _ = centred
    budget = PATIENCE * lo.size
    for i in range(lo.size):
        if lo[i] < hi[i] and np.isnan(out[i]):
            if changes[hi[i] - base] == changes[lo[i] - base + 1]:
                m2 = values[lo[i] - base] - values[lo[i] - base]  # a constant: exactly 0, or NaN
            else:
                budget -= hi[i] - lo[i]
                if budget < 0:
                    return False
                m2 = deviations(values, lo[i] - base, hi[i] - base)
            v = m2 / np.float64(hi[i] - lo[i] - ddof)
            out[i] = np.sqrt(v) if root else v
    return True


@kernel
def deviations(values, lo, hi):
    """m2 of a few rows, in two passes."""
    mean, m2 = 0.0, 0.0
    for p in range(lo, hi):
        mean += (values[p] - mean) / (p - lo + 1)
    for p in range(lo, hi):
        m2 += (values[p] - mean) ** 2
    return m2


@kernel
def divide(sums, lo, hi, out):
    for i in range(out.size):
        out[i] = sums[i] / np.float64(hi[i] - lo[i])


@kernel
def accumulate_integers(values, run):
    """run[i] = the sum of values[:i]."""
    s = np.int64(0)
    for i in range(values.size):
        run[i] = s
        s += values[i]
    run[values.size] = s


@kernel
def integer_differences(run, base, lo, hi, out):
    for i in range(lo.size):
        out[i] = run[unsigned(hi[i] - base)] - run[unsigned(lo[i] - base)]


@kernel
def accumulate_halves(values, halves):
    """The upper and the lower 32 bits apart: 2^31 rows can not overflow either."""
    upper, lower = np.int64(0), np.int64(0)
    for i in range(values.size):
        halves[i, 0], halves[i, 1] = upper, lower
        upper += values[i] >> HALF
        lower += values[i] & 0xFFFFFFFF
    halves[values.size, 0], halves[values.size, 1] = upper, lower


@kernel
def wide_differences(halves, base, lo, hi, out, approximate):
    """As integer_differences, for sums that may not fit int64: `approximate` holds them as floats as well.

    Returns the first answer that does not fit, or -1.
    """
    beyond = -1
    for i in range(lo.size):
        a, b = lo[i] - base, hi[i] - base
        upper, lower = halves[b, 0] - halves[a, 0], halves[b, 1] - halves[a, 1]
        upper += lower >> HALF
        lower &= 0xFFFFFFFF
        approximate[i] = upper * 4294967296.0 + lower
        if -2147483648 <= upper < 2147483648:
            out[i] = (upper << HALF) + lower
        else:
            out[i] = 0
            if beyond < 0:
                beyond = i
    return beyond


@kernel
def two_words(halves, base, lo, hi, low, high):
    """The same sums, in two words: what they are modulo 2^64, and how often that."""
    for i in range(lo.size):
        a, b = lo[i] - base, hi[i] - base
        upper, lower = halves[b, 0] - halves[a, 0], halves[b, 1] - halves[a, 1]
        upper += lower >> HALF
        low[i] = (upper << HALF) + (lower & 0xFFFFFFFF)
        high[i] = upper >> HALF
