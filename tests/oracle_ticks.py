"""What jumping windows and nested queries answer, in plain and slow Python: SPEC section 6, on top of `oracle`.

A tick is picked from a sequence of events first; then every query looks at its window from there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle import Event, Events, Q, Rows, answer, in_order, in_relation, matching, substream, window_events


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
    later: Sequence[Event] = ()


def slot(ts: int, t: int) -> int:
    """j with (j-1) t < ts <= j t."""
    return -(-ts // t)


def picks(every: Every, sequence: Events, queries: Sequence[Q], last: int | None = None) -> list[Pick]:
    """F_n or F_t of a sequence in order; `last`: the last slot that is decided, if not that of the last event."""
    if every.rows is not None:
        n = every.rows
        count = len(sequence) // n
        return [Pick(j, sequence[j * n - 1]["ts"], sequence[: j * n], sequence[j * n :]) for j in range(1, count + 1)]
    assert every.time is not None
    if not sequence:
        return []
    t = every.time
    last = slot(sequence[-1]["ts"], t) if last is None else last
    if every.anchor == "tuple":
        return [_picked(j, t, sequence) for j in sorted({slot(e["ts"], t) for e in sequence}) if j <= last]
    ahead = max(0, *(-query.window.until for query in queries if not isinstance(query.window, Rows)), 0)
    slots = range(
        slot(sequence[0]["ts"] - ahead, t), last + 1
    )  # a window that lies ahead holds an event before it comes
    upto = [[e for e in sequence if e["ts"] <= j * t] for j in slots]
    return [Pick(j, j * t, seen, sequence[len(seen) :]) for j, seen in zip(slots, upto, strict=True)]


def _picked(j: int, t: int, sequence: Events) -> Pick:
    """The first tuple with ts = j t if there is one, else the last of the slot."""
    inside = [i for i, e in enumerate(sequence) if slot(e["ts"], t) == j]
    at_end = [i for i in inside if sequence[i]["ts"] == j * t]
    i = at_end[0] if at_end else inside[-1]
    return Pick(j, sequence[i]["ts"], sequence[: i + 1], sequence[i + 1 :])


def end_of(events: Iterable[Event], *ends: int) -> int:
    """The time of the last event, which decides the last slot; or a later one, of events around these."""
    return max([e["ts"] for e in events] + list(ends), default=-(2**62))


def ticks(
    queries: Sequence[Q], every: Every, events: Iterable[Event], key: str | None = None, last: Any = None
) -> list[tuple[Any, ...]]:
    """(tick, ts, [key], answer of each query), in order. last: the last decided slot, or of each key; if it is not that
    of the last event of all."""
    sequence = in_order(events)
    if last is None and every.time is not None:
        last = slot(end_of(sequence), every.time)
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
    """One row if any query has something to say: a group without events says nothing, nor does a condition that does
    not hold, nor the slot of a stream whose window holds no event."""
    past, later = substream(pick.seen, key, value), substream(pick.later, key, value)
    windows = [matching(query, past, pick.now, later) for query in queries]
    slots = every is not None and every.time is not None and every.anchor == "tick"
    passing = [
        in_relation(query, window)
        if query.having is not None or key is not None
        else not slots or bool(window_events(past, query.window, pick.now, later))  # whatever `where` says
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


def stream(
    query: Q, every: Every | None, events: Events, name: str, key: str | None = None, last: Any = None
) -> list[Event]:
    """The answers of a query as events, for another query to read."""
    if every is None:
        return _at_each(query, in_order(events), name, key)
    columns = ("tick", "ts", name) if key is None else ("tick", "ts", key, name)
    return [dict(zip(columns, row, strict=True)) for row in ticks([query], every, events, key, last)]


def _at_each(query: Q, sequence: Events, name: str, key: str | None) -> list[Event]:
    found: list[Event] = []
    for i, e in enumerate(sequence):
        past = substream(sequence[: i + 1], key, e.get(key) if key else None)
        window = matching(query, past, e["ts"])
        if query.having is None or in_relation(query, window):
            own = {} if key is None else {key: e[key]}
            found.append({"ts": e["ts"], name: answer(query, window), **own})
    return found


# --- A stream that flows ------------------------------------------------------------------------------------


class Stream:
    """What an engine has applied, event by event: order, lateness, and how far its slots are decided.

    slots: the lengths of the slots in use; an event in one that was passed is late. together: keys are judged as one.
    hold: False refuses all that is older than the watermark.
    """

    def __init__(
        self, key: str | None, lateness: int | None, slots: Sequence[int], together: bool, hold: bool = True
    ) -> None:
        self.key, self.lateness, self.slots, self.together, self.hold = key, lateness, slots, together, hold
        self.applied: list[Event] = []
        self.held: list[Event] = []
        self.now: float = -math.inf
        self.promised: float = -math.inf

    def arrive(self, e: Event) -> bool:
        """False if it is refused: out of order, or late."""
        if not self.hold and e["ts"] < self.now - (self.lateness or 0):
            return False
        newer = any(
            a["ts"] > e["ts"] and (self.together or self.key is None or a[self.key] == e[self.key])
            for a in self.applied
        )
        if newer or e["ts"] < self.promised:
            return False
        if self.lateness is not None and any(slot(e["ts"], t) * t < self.now - self.lateness for t in self.slots):
            return False
        self.now = max(self.now, e["ts"])
        self.held.append(e)
        self._apply()
        return True

    def advance(self, ts: int) -> None:
        self.now = max(self.now, ts)
        if self.lateness is None:
            self.promised = max(self.promised, ts)
        self._apply()

    def _apply(self) -> None:
        due = [e for e in in_order(self.held) if self.lateness is None or e["ts"] <= self.now - self.lateness]
        self.applied += due
        self.held = [e for e in self.held if e not in due]

    @property
    def promise(self) -> float:
        """Nothing before it is still to come, of any key."""
        return self.promised if self.lateness is None else self.now - self.lateness

    def last(self, every: Every) -> Any:
        """The last slot that is decided; of each key, where they are on their own."""
        if every.time is None:
            return None
        if self.key is None or not every.per_key:
            return self._last(every, self.applied)
        keys = {e[self.key] for e in self.applied}
        return {value: self._last(every, substream(self.applied, self.key, value)) for value in keys}

    def _last(self, every: Every, events: Events) -> int:
        latest = max((e["ts"] for e in events), default=-(2**62))
        known = max(latest, self.promise)
        return decided(every, -(2**62) if known == -math.inf else int(known), latest)


def decided(every: Every, known: int, latest: int) -> int:
    """The last slot before `known`; a tuple at the very end of one stands for it at once."""
    assert every.time is not None
    last = (known - 1) // every.time
    exact = every.anchor == "tuple" and latest % every.time == 0
    return max(last, latest // every.time) if exact else last


def promised_after(every: Every, known: int) -> int:
    """No tick before this is still to come, if all events before `known` have."""
    if every.time is None:
        return known
    over = (known - 1) // every.time
    return (over + 1) * every.time if every.anchor == "tick" else over * every.time + 1


# --- The frequency operator on tuples, partitions, and relations at ticks ------------------------------------


def parted(events: Iterable[Event], by: Sequence[str]) -> dict[tuple[Any, ...], list[Event]]:
    """The events of each partition, in order."""
    found: dict[tuple[Any, ...], list[Event]] = {}
    for e in in_order(events):
        found.setdefault(tuple(e[name] for name in by), []).append(e)
    return found


def picked(every: Every, by: Sequence[str], events: Iterable[Event]) -> list[Event]:
    """F_n or F_t of the tuples of each partition, in the order of the stream."""
    sequence = in_order(events)
    tuples = Every(every.rows, every.time, "tuple")
    chosen = [pick.seen[-1] for own in parted(sequence, by).values() for pick in picks(tuples, own, [])]
    return [e for e in sequence if any(e is one for one in chosen)]


def of_partitions(
    queries: Sequence[Q], every: Every, by: Sequence[str], events: Events, key: str, last: int | None = None
) -> list[tuple[Any, ...]]:
    """The ticks of each partition as if it were a stream by itself; the end of all events decides their last slot."""
    if last is None and every.time is not None:
        last = slot(end_of(events), every.time)
    found = [row for own in parted(events, by).values() for row in ticks(queries, every, own, key, last)]
    return sorted(found, key=lambda row: (row[1], row[0], row[2]))


def related(query: Q, by: Sequence[str], rows: Sequence[Event], name: str) -> list[Event]:
    """A query over the relation of the rows of each tick: a group for those that count; without groups, one."""
    found: list[Event] = []
    for tick in dict.fromkeys(row["tick"] for row in rows):
        relation = [row for row in rows if row["tick"] == tick]
        for group, own in sorted(parted(relation, by).items()):
            counted = [row for row in own if query.where is None or query.where(row)]
            if by and not counted:
                continue
            if query.having is None or in_relation(query, counted):
                front = {"tick": tick, "ts": relation[0]["ts"], **dict(zip(by, group, strict=True))}
                found.append(front | {name: answer(query, counted)})
    return found
