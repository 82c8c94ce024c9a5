"""Comparisons as intervals, so that kernels know one: `v op c` is lo <= v <= hi, a spread passes a limit by `>=`."""

import math
from typing import Any

import numpy as np

SMALLEST, LARGEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def interval(op: str, c: Any, whole: bool) -> tuple[Any, Any]:
    """(lo, hi) with lo <= v <= hi exactly where `v op c`, for integers or for floats (NaN is in no interval)."""
    if whole:
        return _of_integers(op, c)
    c = float(c)
    if op in (">", ">="):
        lo = c if op == ">=" else math.nextafter(c, math.inf)
        return (lo, math.inf) if lo > c or op == ">=" else (math.inf, -math.inf)
    if op in ("<", "<="):
        hi = c if op == "<=" else math.nextafter(c, -math.inf)
        return (-math.inf, hi) if hi < c or op == "<=" else (math.inf, -math.inf)
    return c, c


def _of_integers(op: str, c: Any) -> tuple[np.int64, np.int64]:
    lo, hi = SMALLEST, LARGEST
    if math.isinf(c):
        holds = (c > 0) == (op in ("<", "<=")) and op != "=="
        lo, hi = (lo, hi) if holds else (1, 0)
    elif op == ">":
        lo = math.floor(c) + 1
    elif op == ">=":
        lo = math.ceil(c)
    elif op == "<":
        hi = math.ceil(c) - 1
    elif op == "<=":
        hi = math.floor(c)
    else:
        lo, hi = math.ceil(c), math.floor(c)
    if lo > hi or lo > LARGEST or hi < SMALLEST:
        return np.int64(1), np.int64(0)
    return np.int64(max(lo, SMALLEST)), np.int64(min(hi, LARGEST))


def limit(op: str, x: Any, whole: bool) -> Any:
    """The number L with `spread >= L` exactly where a delta frame of `op x` closes; NaN (or the largest) for never."""
    reached = op in ("<", ">=")  # "<" closes when the spread reaches x, "<=" when it exceeds it
    if whole:
        if math.isinf(x):
            return LARGEST
        return min(math.ceil(x) if reached else math.floor(x) + 1, LARGEST)
    if reached:
        return float(x)
    beyond = math.nextafter(float(x), math.inf)
    return beyond if beyond > x else math.nan
