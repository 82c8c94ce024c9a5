"""What every answer is, in plain and slow Python: SPEC sections 1-4 and the plain `having` of section 5.

Every structure is checked against this file, so it imports nothing of ours and keeps every event forever.
An event is a dict with an integer "ts", its columns and, on a keyed stream, the key's column. A null is None.
Sums are taken in exact fractions and rounded once, so a float answer here is the correctly rounded one.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from numbers import Integral
from typing import Any

Event = Mapping[Any, Any]
Events = Sequence[Event]
Values = Sequence[Any]  # non-null values of one column, in order of position
Number = Any  # a Fraction, or a float that is NaN or infinite

# --- Vocabulary ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """Positions max(m-n+1, 1) .. m-until (2)."""

    n: int
    until: int = 0


@dataclass(frozen=True)
class Range:
    """Events with now-t < ts <= now-until; `closed` picks the edges (2)."""

    t: int
    until: int = 0
    closed: str = "right"  # "left", "both", "none"


@dataclass(frozen=True)
class Agg:
    """One aggregate of section 3; `agg` writes it shorter."""

    kind: str
    columns: tuple[str, ...] = ()
    ddof: int = 1  # var, std, cov
    phi: float = 0.5  # quantile
    method: str = "floor"  # quantile
    # user: lower(combine(... combine(identity, lift(v1)) ..., lift(vn)))
    lift: Any = None
    combine: Any = None
    lower: Any = None
    identity: Any = None


def agg(kind: str, *columns: str, **params: Any) -> Agg:
    """agg("count"), agg("wmean", "price", "volume"), agg("quantile", "x", phi=0.9, method="linear")."""
    return Agg(kind, columns, **params)


@dataclass(frozen=True)
class Q:
    """A query: `where` says True, False or None of an event; `having` is (">", v) ... ("between", lo, hi)."""

    agg: Agg
    window: Rows | Range
    where: Callable[[Event], bool | None] | None = None
    having: tuple[Any, ...] | None = None


class BadBatch(ValueError):
    """A null ts, a null key, or disorder (1)."""


# --- Windows (2) -----------------------------------------------------------------------------------------


def in_order(events: Iterable[Event]) -> list[Event]:
    """By ts; equal ts keep arrival order (1)."""
    return sorted(events, key=lambda e: e["ts"])


def substream(events: Iterable[Event], key: str | None, value: Any) -> list[Event]:
    """The events of one key; all of them where there is no key (1)."""
    return [e for e in events if key is None or e[key] == value]


def window_events(past: Events, window: Rows | Range, now: float) -> list[Event]:
    """The window over `past`: what the request may see of one substream, in order."""
    if isinstance(window, Rows):
        m = len(past)
        return list(past[max(m - window.n, 0) : max(m - window.until, 0)])
    return [e for e in past if in_range(e["ts"], window, now)]


def in_range(ts: int, window: Range, now: float) -> bool:
    start, end = now - window.t, now - window.until
    after_start = ts >= start if window.closed in ("left", "both") else ts > start
    before_end = ts <= end if window.closed in ("right", "both") else ts < end
    return after_start and before_end


def matching(query: Q, past: Events, now: float) -> list[Event]:
    """`where` comes after the window, as in CQL, and keeps an event only if it says True."""
    return [e for e in window_events(past, query.window, now) if query.where is None or query.where(e)]


def window_at_time(query: Q, events: Iterable[Event], now: float) -> list[Event]:
    """A request at time `now` sees all events of its substream with ts <= now."""
    return matching(query, [e for e in in_order(events) if e["ts"] <= now], now)


def windows_at_events(query: Q, events: Events, key: str | None) -> list[list[Event]]:
    """The sequence model: an event sees the positions up to its own, even where later ones share its ts."""
    order = sorted(range(len(events)), key=lambda row: events[row]["ts"])
    found: list[list[Event]] = [[] for _ in events]
    for j, row in enumerate(order):
        past = substream([events[i] for i in order[: j + 1]], key, events[row].get(key))
        found[row] = matching(query, past, events[row]["ts"])
    return found


# --- Stored events ---------------------------------------------------------------------------------------


def windows(query: Q, events: Events, at: Events | None = None, key: str | None = None) -> list[list[Event]]:
    """The window of each event or, given `at`, request, in input order; an unknown key sees nothing (1)."""
    if at is None:
        return windows_at_events(query, events, key)
    return [window_at_time(query, substream(events, key, r.get(key)), r["ts"]) for r in at]


def evaluate(queries: Sequence[Q], events: Events, at: Events | None = None, key: str | None = None) -> list[list[Any]]:
    """One row per event, or per request in `at`; one answer per query."""
    for row, e in enumerate(events):
        refuse_nulls(row, e, key)
    columns = [[answer(q, w) for w in windows(q, events, at, key)] for q in queries]
    return [[column[row] for column in columns] for row in range(len(events if at is None else at))]


def refuse_nulls(row: int, e: Event, key: str | None) -> None:
    if e["ts"] is None or (key is not None and e[key] is None):
        raise BadBatch(f"event {row} has a null ts or key")


# --- The engine: lookups while events arrive (1, 2, 5) ---------------------------------------------------


class Engine:
    """Takes events one by one, so how a stream is cut into batches cannot matter."""

    def __init__(self, key: str | None = None, lateness: int | None = None) -> None:
        self.key, self.lateness, self.late = key, lateness, 0
        self.taken: list[Event] = []  # in arrival order, those still held too
        self.now = -math.inf  # the largest ts appended or given to `advance`
        self.promised = -math.inf  # without lateness: nothing older is to come

    def append(self, batch: Events) -> int:
        """All or nothing; returns the number of events taken (late ones are not)."""
        before = self.taken.copy(), self.now, self.late
        try:
            for row, e in enumerate(batch):
                self._arrive(row, e)
        except (BadBatch, KeyError):
            self.taken, self.now, self.late = before
            raise
        return len(self.taken) - len(before[0])

    def _arrive(self, row: int, e: Event) -> None:
        """Older than what is applied of its substream: an error, or with lateness counted and dropped."""
        refuse_nulls(row, e, self.key)
        applied = substream(self.applied(), self.key, e.get(self.key))
        latest = max([self.promised, *(a["ts"] for a in applied)])
        if latest > e["ts"]:
            if self.lateness is None:
                raise BadBatch(f"event {row} has ts {e['ts']}, after ts {latest} was applied")
            self.late += 1
        else:
            self.taken.append(e)
            self.now = max(self.now, e["ts"])

    def advance(self, t: int) -> None:
        self.now = max(self.now, t)
        if self.lateness is None:
            self.promised = max(self.promised, t)

    @property
    def watermark(self) -> float:
        """The time as of which lookups answer: with lateness L, now - L."""
        return self.now - (self.lateness or 0)

    def applied(self) -> list[Event]:
        """What lookups see: with lateness, the events that the watermark has passed."""
        return in_order(e for e in self.taken if self.lateness is None or e["ts"] <= self.watermark)

    def keys(self) -> list[Any]:
        return list(dict.fromkeys(e[self.key] for e in self.taken))

    def window(self, query: Q, key: Any = None, at: int | None = None) -> list[Event]:
        past = substream(self.applied(), self.key, key)
        return window_at_time(query, past, self.watermark if at is None else at)

    def lookup(self, query: Q, key: Any = None, at: int | None = None) -> Any:
        """A value; on a keyed stream without `key`: {key: value} of the keys in the relation (5)."""
        if self.key is None or key is not None:
            return answer(query, self.window(query, key, at))
        groups = {k: self.window(query, k, at) for k in self.keys()}
        return {k: aggregate(query.agg, w) for k, w in groups.items() if in_relation(query, w)}

    def lookup_all(self, queries: Sequence[Q], at: int | None = None) -> Any:
        """A value per query without `having`; keyed: for each key with an event in any window (5)."""
        plain = [q for q in queries if q.having is None]
        if self.key is None:
            return [self.lookup(q, at=at) for q in plain]
        present = [k for k in self.keys() if any(self.window(q, k, at) for q in plain)]
        return {k: [self.lookup(q, k, at) for q in plain] for k in present}


# --- Answers (3) and `having` (5) ------------------------------------------------------------------------


def answer(query: Q, window: Events) -> Any:
    """The answer over a window (after `where`); null where `having` does not hold (5)."""
    return aggregate(query.agg, window) if query.having is None or in_relation(query, window) else None


def in_relation(query: Q, window: Events) -> bool:
    """No event, no group, as in SQL; null and NaN satisfy no condition (5)."""
    if not window or query.having is None:
        return bool(window)
    value, (op, *bounds) = aggregate(query.agg, window), query.having
    return value is not None and not is_nan(value) and CONDITIONS[op](value, *bounds)


CONDITIONS: dict[str, Callable[..., bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "between": lambda v, lo, hi: lo <= v <= hi,
}


def aggregate(agg: Agg, window: Iterable[Event]) -> Any:
    """Nulls are skipped; an empty window gives count 0, and null for all else (3)."""
    rows = non_null(agg, window)
    if agg.kind == "count":
        return len(rows)
    return AGGREGATES[agg.kind](agg, *zip(*rows, strict=True)) if rows else None


def non_null(agg: Agg, window: Iterable[Event]) -> list[tuple[Any, ...]]:
    """The rows where all the aggregate's columns are non-null: all rows for count()."""
    rows = [tuple(e[c] for c in agg.columns) for e in window]
    return [row for row in rows if not any(v is None for v in row)]


def _sum(agg: Agg, xs: Values) -> int | float:
    """Integer sums are exact and fit int64; a float sum that does not fit float64 is infinite."""
    if not all(isinstance(x, int) for x in xs):
        return rounded(total(xs))
    if not -(2**63) <= sum(xs) < 2**63:
        raise OverflowError(f"the sum {sum(xs)} does not fit int64")
    return sum(xs)


def _mean(agg: Agg, xs: Values) -> float:
    """Sum / n, rounded once; infinite where the sum is."""
    s = total(xs)
    return rounded(s / len(xs)) if math.isfinite(rounded(s)) else rounded(s)


def _cov(agg: Agg, xs: Values, ys: Values) -> float | None:
    """Null where n - ddof <= 0; NaN where the window holds NaN or an infinity. var(x) = cov(x, x)."""
    if len(xs) <= agg.ddof:
        return None
    return rounded(co_moment(xs, ys) / (len(xs) - agg.ddof)) if finite(xs, ys) else math.nan


def _std(agg: Agg, xs: Values) -> float | None:
    """As var."""
    if len(xs) <= agg.ddof:
        return None
    return root(co_moment(xs, xs) / (len(xs) - agg.ddof)) if finite(xs) else math.nan


def _corr(agg: Agg, xs: Values, ys: Values) -> float:
    """Sxy / sqrt(Sxx Syy); NaN for a constant."""
    if not finite(xs, ys) or co_moment(xs, xs) * co_moment(ys, ys) == 0:
        return math.nan
    magnitude = root(co_moment(xs, ys) ** 2 / (co_moment(xs, xs) * co_moment(ys, ys)))
    return magnitude if co_moment(xs, ys) > 0 else -magnitude


def _wmean(agg: Agg, ps: Values, vs: Values) -> float:
    """Sum pv / sum v; NaN where sum v is 0."""
    return rounded(total(map(product, ps, vs)) / total(vs)) if total(vs) != 0 else math.nan


def _quantile(agg: Agg, xs: Values) -> Any:
    """Floor: the element at position max(1, floor(phi N)), counted from 1. A window with NaN gives NaN."""
    if any(map(is_nan, xs)):
        return math.nan
    if agg.method == "floor":
        return sorted(xs)[max(1, math.floor(agg.phi * len(xs))) - 1]
    a, b, t = neighbours(xs, agg.phi)
    return rounded(exact(a) if a == b else total([product(a, 1 - t), product(b, t)]))


def neighbours(xs: Values, phi: float) -> tuple[Any, Any, Fraction]:
    """NumPy's linear: at index phi (N-1) from 0, the elements either side and how far it is between them."""
    index = phi * (len(xs) - 1)
    return sorted(xs)[math.floor(index)], sorted(xs)[math.ceil(index)], Fraction(index) % 1


def _user(agg: Agg, xs: Values) -> Any:
    """A fold in order of position."""
    state = agg.identity
    for x in xs:
        state = agg.combine(state, agg.lift(x))
    return agg.lower(state)


MEDIAN = Agg("quantile", phi=0.5, method="linear")
AGGREGATES: dict[str, Callable[..., Any]] = {
    "sum": _sum,
    "mean": _mean,
    "min": lambda agg, xs: math.nan if any(map(is_nan, xs)) else min(xs),
    "max": lambda agg, xs: math.nan if any(map(is_nan, xs)) else max(xs),
    "first": lambda agg, xs: xs[0],  # by position, among the non-null
    "last": lambda agg, xs: xs[-1],
    "var": lambda agg, xs: _cov(agg, xs, xs),
    "std": _std,
    "cov": _cov,
    "corr": _corr,
    "wmean": _wmean,
    "quantile": _quantile,
    "median": lambda agg, xs: _quantile(MEDIAN, xs),
    "user": _user,
}

# --- Exact arithmetic ------------------------------------------------------------------------------------


def exact(x: Any) -> Number:
    return x if isinstance(x, float) and not math.isfinite(x) else Fraction(x)


def finite(*columns: Iterable[Any]) -> bool:
    return all(isinstance(exact(x), Fraction) for xs in columns for x in xs)


def is_nan(x: Any) -> bool:
    return isinstance(x, float) and math.isnan(x)


def product(x: Any, y: Any) -> Number:
    """With NaN or an infinity as in IEEE (inf * 0 is NaN)."""
    return exact(x) * exact(y) if finite([x, y]) else float(x) * float(y)


def total(xs: Iterable[Any]) -> Number:
    """With NaN or infinities as in IEEE (inf - inf is NaN)."""
    numbers = [exact(x) for x in xs]
    special = [x for x in numbers if isinstance(x, float)]
    return sum(special) if special else sum(numbers, Fraction(0))


def co_moment(xs: Values, ys: Values) -> Fraction:
    """Sum (x - mean x)(y - mean y), of finite values."""
    return total(map(product, xs, ys)) - total(xs) * total(ys) / len(xs)


def rounded(x: Number) -> float:
    """To the nearest float; beyond the largest one, infinite."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def root(x: Fraction) -> float:
    """The square root, from 60 digits."""
    digits = Context(prec=60)
    return float(digits.sqrt(digits.divide(Decimal(x.numerator), Decimal(x.denominator))))


# --- Comparison: how far from the exact answer a float may be (3) ----------------------------------------


def same(expected: Any, actual: Any, allowed: float = 0.0) -> bool:
    """Null only equals null, NaN NaN; integers, infinities and text exactly; floats within `allowed`."""
    if expected is None or actual is None or not isinstance(expected, (int, float)):
        return expected is actual or (expected is not None and expected == actual)
    if isinstance(expected, int) and allowed == 0:
        return isinstance(actual, Integral) and expected == actual  # an integer stays one
    if expected == actual or allowed == math.inf:
        return True
    if not finite([expected, float(actual)]):
        return math.isnan(expected) and math.isnan(actual)
    return abs(exact(expected) - exact(float(actual))) <= allowed


def mismatches(
    actual: Sequence[Values],
    queries: Sequence[Q],
    events: Events,
    at: Events | None = None,
    key: str | None = None,
) -> list[str]:
    """What is wrong with `actual` as an answer to `evaluate`; empty if nothing is."""
    expected = evaluate(queries, events, at, key)
    wrong = [] if len(actual) == len(expected) else [f"{len(actual)} rows, expected {len(expected)}"]
    for c, q in enumerate(queries):
        found = windows(q, events, at, key)
        for row, (w, want, got) in enumerate(zip(found, expected, actual, strict=False)):
            if not same(want[c], got[c], tolerance(q.agg, w)):
                wrong.append(f"row {row}, {q}: expected {want[c]!r}, got {got[c]!r}, window {w}")
    return wrong


def tolerance(agg: Agg, window: Iterable[Event]) -> float:
    """The absolute error allowed over a window: 0 is exact, inf where float64 can be held to nothing."""
    columns = list(zip(*non_null(agg, window), strict=True))
    if not columns or agg.kind not in TOLERANCES:
        return 0.0
    return rounded(TOLERANCES[agg.kind](agg, *columns)) if agg.kind in ANY_VALUE or finite(*columns) else 0.0


E12, TINY = Fraction(1, 10**12), Fraction(sys.float_info.min)  # TINY: what underflow may cost


def size(xs: Iterable[Any]) -> Fraction:
    """The sum of absolute values."""
    return total(abs(exact(x)) for x in xs)


def in_float64(x: Fraction) -> bool:
    """Neither overflows nor underflows, with room to spare."""
    return x == 0 or Fraction(1, 10**290) < abs(x) < 10**290


def _wmean_tolerance(agg: Agg, ps: Values, vs: Values) -> Number:
    """1e-12 of the absolute values in both sums; nothing is promised where float weights cancel."""
    if not finite(vs):
        return 0.0
    pv, v = [x for x in map(product, ps, vs) if isinstance(x, Fraction)], abs(total(vs))
    small_integers = size(vs) < 2**53 and all(x == int(x) for x in vs)
    above, below = E12 * size(pv) + len(pv) * TINY, 0 if small_integers else E12 * size(vs)
    if v <= below or not in_float64(size(pv)) or not in_float64(size(vs)):
        return math.inf if v or below else 0.0
    return (above + abs(total(pv) / total(vs)) * below) / (v - below) + TINY


def _cov_tolerance(agg: Agg, xs: Values, ys: Values) -> Number:
    """1e-6 of both standard deviations, 1e-12 of both largest deviations, and the values' own last digits."""
    freedom = len(xs) - agg.ddof
    if freedom <= 0 or not all(size(map(product, c, c)) < 10**290 for c in (xs, ys)):
        return math.inf if freedom > 0 else 0.0
    spread = Fraction(root(co_moment(xs, xs) * co_moment(ys, ys))) / freedom
    deviations = math.prod(max(abs(exact(x) - total(c) / len(c)) for x in c) for c in (xs, ys))
    digits = math.prod(4 * Fraction(math.ulp(max(map(abs, c)))) for c in (xs, ys))
    return spread / 10**6 + E12 * deviations + digits + TINY


def _std_tolerance(agg: Agg, xs: Values) -> Number:
    """That of the variance, through |√a - √b| <= min(√|a - b|, |a - b| / √a)."""
    allowed, std = rounded(_cov_tolerance(agg, xs, xs)), _std(agg, xs)
    return min(math.sqrt(allowed), allowed / std) if std else math.sqrt(allowed)


def _corr_tolerance(agg: Agg, xs: Values, ys: Values) -> Number:
    """1e-6 where both columns vary by 1e-10 of their size, or one is constant; else nothing is promised."""
    sxx, syy = co_moment(xs, xs), co_moment(ys, ys)
    varied = all(s * 10**20 >= size(map(product, c, c)) for s, c in ((sxx, xs), (syy, ys)))
    return 1e-6 if sxx * syy == 0 or (varied and all(map(in_float64, (sxx, syy, sxx * syy)))) else math.inf


def _quantile_tolerance(agg: Agg, xs: Values) -> Number:
    """Floor picks an element; linear rounds a few times."""
    if agg.method == "floor" or any(map(is_nan, xs)):
        return 0.0
    a, b, _ = neighbours(xs, agg.phi)
    return 8 * math.ulp(max(abs(a), abs(b))) if finite([a, b]) else 0.0


ANY_VALUE = ("wmean", "quantile", "median", "user")  # these may need room also where there is an infinity
TOLERANCES: dict[str, Callable[..., Number]] = {
    "sum": lambda agg, xs: 0.0 if all(isinstance(x, int) for x in xs) else E12 * size(xs),
    "mean": lambda agg, xs: E12 * size(xs) / len(xs) + TINY,
    "var": lambda agg, xs: _cov_tolerance(agg, xs, xs),
    "std": _std_tolerance,
    "cov": _cov_tolerance,
    "corr": _corr_tolerance,
    "wmean": _wmean_tolerance,
    "quantile": _quantile_tolerance,
    "median": lambda agg, xs: _quantile_tolerance(MEDIAN, xs),
    "user": lambda agg, xs: 1e-9 * abs(_user(agg, xs)) + float(TINY),
}
