"""Many thresholds against the same answers: which rules pass which keys.

      question 0:  count over the last 5 minutes     keys 3, 17, 40      answers 5, 9, 7         the candidates of the
      question 1:  count over the last hour          keys 3, 8           answers 9, 6            most lenient rule
      rule r:      its question, low <= answer <= high                   -->  (rule, pair), rule by rule

needs   answers of one type; those of a question beside each other
costs   one comparison for each rule and candidate of its question: a nanosecond, where a lookup takes sixty
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel


class Answered(NamedTuple):
    starts: np.ndarray  # where the pairs of a question begin, and the end
    values: np.ndarray
    there: np.ndarray  # bool: has the key an event in the window, and an answer that is not null?


class Thresholds(NamedTuple):
    question: np.ndarray  # of each rule
    low: np.ndarray
    high: np.ndarray


@kernel
def count(answered, rules, starts):
    """starts[r + 1] = the pairs that rules up to r pass."""
    begins, values, there = answered
    for r in range(rules.question.size):
        low, high, found = rules.low[r], rules.high[r], 0
        for i in range(begins[rules.question[r]], begins[rules.question[r] + 1]):
            found += there[i] & (values[i] >= low) & (values[i] <= high)
        starts[r + 1] = starts[r] + found


@kernel
def listed(answered, rules, starts, out):
    """out = rule, pair: all that pass, in order; `starts` as `count` has left it."""
    begins, values, there = answered
    rule, pair = out
    for r in range(rules.question.size):
        low, high, at = rules.low[r], rules.high[r], starts[r]
        for i in range(begins[rules.question[r]], begins[rules.question[r] + 1]):
            if there[i] & (values[i] >= low) & (values[i] <= high):
                rule[at], pair[at] = r, i
                at += 1


def passing(answered: Answered, rules: Thresholds) -> tuple[np.ndarray, np.ndarray]:
    """(rule, pair), in order."""
    starts = np.zeros(rules.question.size + 1, np.int64)
    count(answered, rules, starts)
    rule, pair = np.empty((2, starts[-1]), np.int64)
    listed(answered, rules, starts, (rule, pair))
    return rule, pair
