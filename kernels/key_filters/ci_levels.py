"""Which level of CI-COUNT answers for a threshold, and how closely.

      level of size 2^s, q-th of p:   covers 2^s events, counted from the end     nearest .. farthest
      > v    the last level within the last v events        its event is inside whenever the v-th is: a superset
      < v    the first level at or beyond the v-th event    its event is outside whenever the v-th is: a superset

Plain arithmetic on one threshold; kernels/key_filters/ci_count.py keeps the levels.
"""

import numpy as np

SIZES = 56  # sizes 2^0 .. 2^55: more than any window holds, and what CI-SUM counts in stays within int64


def span(level: int, p: int) -> tuple[int, int]:
    """The events a level covers, counted from the end: nearest and farthest."""
    s, q = divmod(level, p)
    nearest = p * ((1 << s) - 1) + (q << s) + 1
    return nearest, nearest + (1 << s) - 1


def level_within(v: int, p: int) -> int:
    """The last level that lies wholly within the last v >= 1 events."""
    s = ((v + p) // (p + 1)).bit_length() - 1
    return min(s * p + min(((v + p) >> s) - p - 1, p - 1), SIZES * p - 1)


def level_beyond(v: int, p: int) -> int | None:
    """The first level that lies wholly at or beyond the v-th event from the end; None if no level is that far."""
    reach = v + p - 1
    s = max(0, -(-reach // (2 * p - 1)) - 1).bit_length()
    level = s * p + max(-(-reach // (1 << s)) - p, 0)
    return level if level < SIZES * p else None


def relaxation(p: int, below: bool = False) -> float:
    """The eps for all thresholds: what is returned for > v is above v (1 - eps), for < v below v (1 + eps)."""
    if below:
        return 3.0 if p == 1 else 2 / p
    return 0.75 if p == 1 else 2 / (p + 2)


def levels_for(epsilon: float) -> int:
    """The smallest p whose relaxation is at most epsilon, both for > and for <."""
    return 1 if epsilon >= 3 else max(2, int(np.ceil(2 / epsilon - 1e-9)))
