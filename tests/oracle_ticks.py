"""What jumping windows and nested queries answer, in plain and slow Python: SPEC section 6, on top of `oracle`.

A tick is picked from a sequence of events first; then every query looks at its window from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle import Event, Events, Q, answer, in_order, in_relation, matching, substream, window_events


@dataclass(frozen=True)
class Every:
    """Every so many rows, or so much time."""

    rows: int | None = None
    time: int | None = None
    anchor: str = "tick"
    per_key: bool = False


@dataclass(frozen=True)
class Pick:
    """Tick j, at time `now`, seeing these events."""

    j: int
    now: int
    seen: Sequence[Event]


def slot(ts: int, t: int) -> int:
    """j with (j-1) t < ts <= j t."""
    return -(-ts // t)


def picks(every: Every, sequence: Events, queries: Sequence[Q], last: int | None = None) -> list[Pick]:
    """F_n or F_t of a sequence in order; `last`: the last slot that is decided, if not that of the last event."""
    if every.rows is not None:
        n = every.rows
        return [Pick(j, sequence[j * n - 1]["ts"], sequence[: j * n]) for j in range(1, len(sequence) // n + 1)]
    assert every.time is not None
    if not sequence:
        return []
    t = every.time
    last = slot(sequence[-1]["ts"], t) if last is None else last
    if every.anchor == "tuple":
        return [_picked(j, t, sequence) for j in sorted({slot(e["ts"], t) for e in sequence}) if j <= last]
    slots = range(slot(sequence[0]["ts"], t), last + 1)
    return [Pick(j, j * t, [e for e in sequence if e["ts"] <= j * t]) for j in slots]


def _picked(j: int, t: int, sequence: Events) -> Pick:
    """The first tuple with ts = j t if there is one, else the last of the slot."""
    inside = [i for i, e in enumerate(sequence) if slot(e["ts"], t) == j]
    at_end = [i for i in inside if sequence[i]["ts"] == j * t]
    i = at_end[0] if at_end else inside[-1]
    return Pick(j, sequence[i]["ts"], sequence[: i + 1])


def ticks(
    queries: Sequence[Q], every: Every, events: Iterable[Event], key: str | None = None, last: Any = None
) -> list[tuple[Any, ...]]:
    """(tick, ts, [key], answer of each query), in order. last: the last decided slot, or of each key."""
    sequence = in_order(events)
    keys = [] if key is None else sorted({e[key] for e in sequence})
    found: list[tuple[Any, ...]] = []
    if key is not None and every.per_key:
        for value in keys:
            own = substream(sequence, key, value)
            for pick in picks(every, own, queries, last[value] if isinstance(last, dict) else last):
                found += _row(queries, pick, key, value)
        return sorted(found, key=lambda row: (row[1], row[2], row[0]))
    for pick in picks(every, sequence, queries, last):
        if key is None:
            found += _row(queries, pick, None, None, every)
        else:
            for value in keys:
                found += _row(queries, pick, key, value)
    return found


def _row(queries: Sequence[Q], pick: Pick, key: str | None, value: Any, every: Every | None = None) -> list[Any]:
    """One row, or none: a group without events says nothing, nor does a condition that does not hold."""
    past = substream(pick.seen, key, value)
    windows = [matching(query, past, pick.now) for query in queries]
    slots = every is not None and every.time is not None and every.anchor == "tick"
    if slots and not any(window_events(past, query.window, pick.now) for query in queries):
        return []  # a slot ticks if its window holds an event, whatever `where` says
    passing = [
        in_relation(query, window) if query.having is not None or key is not None else True
        for query, window in zip(queries, windows, strict=True)
    ]
    if not any(passing):
        return []
    answers = [
        None if query.having is not None and not passes else answer(query, window)
        for query, window, passes in zip(queries, windows, passing, strict=True)
    ]
    front = (pick.j, pick.now) if key is None else (pick.j, pick.now, value)
    return [(*front, *answers)]


def stream(query: Q, every: Every | None, events: Events, name: str, key: str | None = None) -> list[Event]:
    """The answers of a query as events, for another query to read."""
    if every is None:
        return _at_each(query, in_order(events), name, key)
    columns = ("tick", "ts", name) if key is None else ("tick", "ts", key, name)
    return [dict(zip(columns, row, strict=True)) for row in ticks([query], every, events, key)]


def _at_each(query: Q, sequence: Events, name: str, key: str | None) -> list[Event]:
    found: list[Event] = []
    for i, e in enumerate(sequence):
        past = substream(sequence[: i + 1], key, e.get(key) if key else None)
        window = matching(query, past, e["ts"])
        if query.having is None or in_relation(query, window):
            own = {} if key is None else {key: e[key]}
            found.append({"ts": e["ts"], name: answer(query, window), **own})
    return found
