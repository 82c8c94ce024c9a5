"""What every answer is, in plain and slow Python: SPEC sections 1-4 and the plain `having` of section 5.

Every structure is checked against this file and oracle_aggregates.py (what is computed of a window) and
oracle_tolerance.py (how far a float may be off), so they import nothing of ours and keep every event forever.
An event is a dict with an integer "ts", its columns and, on a keyed stream, the key's column. A null is None.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle_aggregates import Agg, Event, Values, aggregate, is_nan
from tests.oracle_aggregates import agg as agg
from tests.oracle_tolerance import same, tolerance

Events = Sequence[Event]

# --- Vocabulary ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """Positions max(m-n+1, 1) .. m-until (2); a negative until lies ahead."""

    n: int
    until: int = 0


@dataclass(frozen=True)
class Range:
    """Events with now-t < ts <= now-until; `closed` picks the edges (2)."""

    t: int
    until: int = 0
    closed: str = "right"  # "left", "both", "none"
    peers: bool = False


@dataclass(frozen=True)
class Unbounded:
    """Events with ts <= now-until (2)."""

    until: int = 0
    peers: bool = False


AnyWindow = Rows | Range | Unbounded


@dataclass(frozen=True)
class Q:
    """A query: `where` says True, False or None of an event; `having` is (">", v) ... ("between", lo, hi)."""

    agg: Agg
    window: AnyWindow
    where: Callable[[Event], bool | None] | None = None
    having: tuple[Any, ...] | None = None


class Window(list[Event]):
    """The events of a window, and the time for which it was asked."""

    def __init__(self, events: Iterable[Event], now: float) -> None:
        super().__init__(events)
        self.now = now


class BadBatch(ValueError):
    """A null ts, a null key, or disorder (1)."""


# --- Windows (2) -----------------------------------------------------------------------------------------


def in_order(events: Iterable[Event]) -> list[Event]:
    """By ts; equal ts keep arrival order (1)."""
    return sorted(events, key=lambda e: e["ts"])


def substream(events: Iterable[Event], key: str | None, value: Any) -> list[Event]:
    """The events of one key; all of them where there is no key (1)."""
    return [e for e in events if key is None or e[key] == value]


def window_events(past: Events, window: AnyWindow, now: float, later: Events = ()) -> list[Event]:
    """The window over `past`: what the request may see of one substream, in order. later: what comes after it, which
    only windows see that lie ahead, and as far as it has the same ts, those with peers."""
    m, everything = len(past), [*past, *later]
    if isinstance(window, Rows):
        return everything[max(m - window.n, 0) : max(m - window.until, 0)]
    seen = everything if window.until < 0 or window.peers else past
    if isinstance(window, Unbounded):
        return [e for e in seen if e["ts"] <= now - window.until]
    return [e for e in seen if in_range(e["ts"], window, now)]


def in_range(ts: int, window: Range, now: float) -> bool:
    start, end = now - window.t, now - window.until
    after_start = ts >= start if window.closed in ("left", "both") else ts > start
    before_end = ts <= end if window.closed in ("right", "both") else ts < end
    return after_start and before_end


def matching(query: Q, past: Events, now: float, later: Events = ()) -> list[Event]:
    """`where` comes after the window, as in CQL, and keeps an event only if it says True."""
    events = window_events(past, query.window, now, later)
    return Window((e for e in events if query.where is None or query.where(e)), now)


def window_at_time(query: Q, events: Iterable[Event], now: float) -> list[Event]:
    """A request at time `now` sees all events of its substream with ts <= now."""
    ordered = in_order(events)
    return matching(query, [e for e in ordered if e["ts"] <= now], now, [e for e in ordered if e["ts"] > now])


def windows_at_events(query: Q, events: Events, key: str | None) -> list[list[Event]]:
    """The sequence model: an event sees the positions up to its own, even where later ones share its ts."""
    order = sorted(range(len(events)), key=lambda row: events[row]["ts"])
    found: list[list[Event]] = [[] for _ in events]
    for j, row in enumerate(order):
        own = events[row].get(key)
        past, later = (substream([events[i] for i in some], key, own) for some in (order[: j + 1], order[j + 1 :]))
        found[row] = matching(query, past, events[row]["ts"], later)
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

    def __init__(self, key: str | None = None, lateness: int | None = None, hold: bool = True) -> None:
        self.key, self.lateness, self.late, self.hold = key, lateness, 0, hold
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
        latest = max([self.promised, *(a["ts"] for a in applied)]) if self.hold else self.now - (self.lateness or 0)
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
        """The time as of which lookups answer: with lateness L, now - L; unless events are not held."""
        return self.now - (self.lateness or 0) if self.hold else self.now

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


# --- Comparison -----------------------------------------------------------------------------------------


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
