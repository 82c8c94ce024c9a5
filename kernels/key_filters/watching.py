"""Alerts as they change: which rules a key has begun or ceased to pass, and when time alone may change that.

      bits[rows[key], rule]     what was last seen of a rule and a key; where that is nothing, row 0, of zeros

      losing    count >= v, max > v, min < v …   events that leave can only end it: watched while it passes
      gaining   count < v, max <= v …            events that leave can only begin it, until none is left: watched
      general   mean > v, between v and w …      looked at again whenever an event leaves
      delayed   windows that end in the past     looked at again whenever an event leaves, and whenever one enters

needs   answers of one family of rules for some keys, as kernels/key_filters/thresholds.py has them
costs   a nanosecond for each rule and key that is looked at
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.inlining import bare
from kernels.compile.jit import kernel

NEVER, LOSING, GAINING, GENERAL, DELAYED = range(5)  # kinds of rules
PASSING, TOLD = 1, 2  # bits: it passed when last seen; it was said to pass
WATCHED = 4  # << side: it is in the queue, for the time until which it certainly
FAILS, PASSES, UNCHANGED, ENTERING = range(4)  # sides: does not pass, passes, no event leaves its window, none enters
NOT_WATCHED = 4
FLIPPED = 8  # in what is found, beside the side (or NOT_WATCHED)
BOTH_EDGES = WATCHED << UNCHANGED | WATCHED << ENTERING


class Judged(NamedTuple):
    """Rules of a family, question by question: each passes answers from low to high. Between `inner` and `outer` bounds
    a float may be on either side, by how it was added up."""

    begins: np.ndarray  # the first rule of each question, and the end
    widest: np.ndarray  # [2, question]: what is outside interests none of its rules, if nothing was seen of the key
    kind: np.ndarray
    column: np.ndarray  # its number among all rules
    low: np.ndarray
    high: np.ndarray
    inner: np.ndarray  # [2, rule]
    outer: np.ndarray


class SeenPairs(NamedTuple):
    """Answers, the questions of a key beside each other: the value, whether there is one, and whether there is an event
    that may still leave the window or enter it."""

    values: np.ndarray
    there: np.ndarray
    reached: np.ndarray


@kernel
def judged(rules, r, value, there, reached):
    """Does the answer pass, and on which side is it to be watched?"""
    passes = there and rules.low[r] <= value <= rules.high[r]
    kind = rules.kind[r]
    if kind == NEVER:
        return passes, NOT_WATCHED
    if kind >= GENERAL:
        return passes, UNCHANGED if reached else NOT_WATCHED
    if not there:
        return passes, NOT_WATCHED
    close = rules.outer[0, r] <= value <= rules.outer[1, r] and not rules.inner[0, r] <= value <= rules.inner[1, r]
    if value != value or close:
        return passes, UNCHANGED
    if kind == LOSING and not passes:
        return passes, NOT_WATCHED
    return passes, PASSES if passes else FAILS


@kernel
def look(keys, rows, bits, seen, rules, out):
    """out = key, rule, what[n]: those that changed, or are to be watched and are not. Returns n, which may be more than
    there is room for; then out holds the first of them."""
    which, rule, what = out
    begins, widest, kind, column, outer = (
        bare(rules.begins), bare(rules.widest), bare(rules.kind), bare(rules.column), bare(rules.outer)
    )  # fmt: skip
    values, there, questions, n = bare(seen.values), bare(seen.there), begins.size - 1, 0
    for i in range(keys.size):
        row = rows[keys[i]]
        for q in range(questions):
            at = i * questions + q
            if row == 0 and (values[at] < widest[0, q] or values[at] > widest[1, q]):  # as of nearly all keys
                continue
            for r in range(begins[q], begins[q + 1]):
                flag = bits[row, column[r]]
                outside = (values[at] < outer[0, r]) | (values[at] > outer[1, r]) | ~there[at]
                if outside & (flag == 0) & (kind[r] == LOSING):
                    continue
                passes, side = judged(rules, r, values[at], there[at], seen.reached[at])
                flipped = passes != (flag & PASSING > 0)
                queued = BOTH_EDGES if kind[r] == DELAYED else WATCHED << side
                watched = side == NOT_WATCHED or flag & queued == queued
                if flipped or not watched:
                    if n < which.size:
                        which[n], rule[n] = i, r
                        what[n] = (NOT_WATCHED if watched else side) | (FLIPPED if flipped else 0)
                    n += 1
    return n


@kernel
def judge_each(rule, seen, rules, passes, side):
    """The same of pairs: passes[i], side[i] of the answer i of rule[i]."""
    for i in range(rule.size):
        passes[i], side[i] = judged(rules, rule[i], seen.values[i], seen.there[i], seen.reached[i])


@kernel
def narrow(rule, side, seen, rules, span):
    """A step of a bisection: pair i is certainly as it is from first[i] on, and may not be from last[i] on. seen: the
    answers from middle[i] on, which becomes the one or the other."""
    first, last, middle = span
    for i in range(rule.size):
        r, value = rule[i], seen.values[i]
        if side[i] == PASSES:
            inside = rules.inner[0, r] <= value <= rules.inner[1, r]
            same = rules.low[r] <= value <= rules.high[r] and (rules.kind[r] != LOSING or inside)
        else:
            same = value == value and not rules.outer[0, r] <= value <= rules.outer[1, r]
        if seen.there[i] and same:
            first[i] = middle[i]
        else:
            last[i] = middle[i]


@kernel
def mark(rows, bits, keys, rules, added, removed):
    """Set bits of pairs, and clear others; keys with a row of zeros alone have none to clear."""
    for i in range(keys.size):
        row = rows[keys[i]]
        if row > 0:
            bits[row, rules[i]] = (bits[row, rules[i]] & ~removed[i]) | added[i]


@kernel
def flags(rows, bits, keys, rules, out):
    """out[i] = the bits of a pair."""
    for i in range(keys.size):
        out[i] = bits[rows[keys[i]], rules[i]]
