"""Framing schemes as values: a local condition, the global ones, which closure they have and so whether one is unique.

    local       which runs of events are candidates: a spec, or any function of the events of a run
    global      what a final framing, a set of candidates, must be: of maximal or minimal candidates, covering all
                others, drained (none can be left out), saturated (none can be added that overlaps no other)

    Lemma 1     union closure, maximal and covering: the maximal candidates, which do not overlap
    Lemma 2     sub-interval closure and maximal, or super-interval closure and minimal; covering and drained

The proof of Lemma 2 walks from left to right, and what it finds is the final framing. Read as conditions on sets alone,
they may leave several (`framings` lists them), as two frames that overlap may both be what covers an event.

Grossniklaus et al. 2016, definitions 3 to 5, lemmas 1 and 2. By definition, on small streams, slowly.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from swag.errors import BadEvents, BadQuery, UnknownColumn, nearest
from swag.tables.columns import as_table

Event = dict[str, Any]
Frame = tuple[int, int]
Closure = Literal["union", "sub-interval", "super-interval"]
HINT = 'fr.theory.Scheme(fr.Threshold("x", ">", 1), maximal=True, covering=True)'
MOST_CANDIDATES = 16  # candidates of which all sets are tried


def possible(events: Sequence[Event]) -> list[Frame]:
    """Every run of positions.

    >>> import frames as fr
    >>> fr.theory.possible([{"ts": 1}, {"ts": 2}])
    [(0, 0), (0, 1), (1, 1)]
    """
    return [(s, e) for s in range(len(events)) for e in range(s, len(events))]


def is_maximal(frame: Frame, among: Iterable[Frame]) -> bool:
    """No frame among these properly contains it.

    >>> import frames as fr
    >>> fr.theory.is_maximal((0, 1), [(0, 1), (0, 2)])
    False
    """
    return not any(s <= frame[0] and frame[1] <= e and (s, e) != frame for s, e in among)


def is_minimal(frame: Frame, among: Iterable[Frame]) -> bool:
    """It properly contains no frame among these.

    >>> import frames as fr
    >>> fr.theory.is_minimal((0, 1), [(0, 1), (0, 2)])
    True
    """
    return not any(frame[0] <= s and e <= frame[1] and (s, e) != frame for s, e in among)


def covers(framing: Iterable[Frame], frames: Iterable[Frame]) -> bool:
    """Every event of `frames` is in some frame of the framing.

    >>> import frames as fr
    >>> fr.theory.covers([(0, 1), (3, 4)], [(1, 1), (3, 3)])
    True
    """
    return _extent(frames) <= _extent(framing)


def is_drained(framing: Sequence[Frame], found: Iterable[Frame]) -> bool:
    """It covers the candidates, and would not without any one of its frames.

    >>> import frames as fr
    >>> fr.theory.is_drained([(0, 1), (1, 2)], [(0, 1), (1, 2), (0, 2)])
    True
    >>> fr.theory.is_drained([(0, 2), (1, 2)], [(0, 2), (1, 2)])
    False
    """
    found = list(found)
    return covers(framing, found) and not any(covers([f for f in framing if f != frame], found) for frame in framing)


def is_saturated(framing: Sequence[Frame], found: Iterable[Frame]) -> bool:
    """No candidate can be added that overlaps none of its frames.

    >>> import frames as fr
    >>> fr.theory.is_saturated([(0, 1)], [(0, 1), (2, 3)])
    False
    """
    return all(any(s <= e2 and s2 <= e for s2, e2 in framing) for s, e in found)


def is_disjoint(framing: Sequence[Frame]) -> bool:
    """No event is in two of its frames.

    >>> import frames as fr
    >>> fr.theory.is_disjoint([(0, 1), (2, 3)]), fr.theory.is_disjoint([(0, 1), (1, 2)])
    (True, False)
    """
    ordered = sorted(framing)
    return all(a[1] < b[0] for a, b in itertools.pairwise(ordered))


def partitions(framing: Sequence[Frame], events: Sequence[Event]) -> bool:
    """Every event is in exactly one frame.

    >>> import frames as fr
    >>> fr.theory.partitions([(0, 1), (2, 2)], [{"ts": 1}, {"ts": 2}, {"ts": 3}])
    True
    """
    return is_disjoint(framing) and _extent(framing) == set(range(len(events)))


def has_union_closure(found: Iterable[Frame]) -> bool:
    """The union of overlapping candidates is a candidate.

    >>> import frames as fr
    >>> fr.theory.has_union_closure([(0, 1), (1, 2)])
    False
    """
    frames = set(found)
    return all(
        (min(a[0], b[0]), max(a[1], b[1])) in frames for a in frames for b in frames if a[0] <= b[1] and b[0] <= a[1]
    )


def has_sub_interval_closure(found: Iterable[Frame]) -> bool:
    """Whatever lies inside a candidate is one.

    >>> import frames as fr
    >>> fr.theory.has_sub_interval_closure([(0, 0), (0, 1), (1, 1)])
    True
    """
    frames = set(found)
    return all((a, b) in frames for s, e in frames for a in range(s, e + 1) for b in range(a, e + 1))


def has_super_interval_closure(found: Iterable[Frame], events: Sequence[Event]) -> bool:
    """Whatever contains a candidate is one.

    >>> import frames as fr
    >>> fr.theory.has_super_interval_closure([(0, 1), (1, 1)], [{"ts": 1}, {"ts": 2}])
    True
    """
    frames = set(found)
    return all((a, b) in frames for s, e in frames for a in range(s + 1) for b in range(e, len(events)))


# --- Schemes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AnyScheme:
    """A framing scheme over any local condition: fr.theory.Scheme, which also takes specs, says more."""

    local: Any
    maximal: bool = False
    minimal: bool = False
    covering: bool = False
    drained: bool = False
    saturated: bool = False

    def __post_init__(self) -> None:
        if not callable(self.local):
            raise BadQuery(f"local={self.local!r} is neither a spec nor a function of a run of events.", HINT)

    def candidates(self, events: Any, ts: str = "ts") -> list[Frame]:
        """The runs of events that satisfy the local condition."""
        rows = in_order(events, ts)
        return [(s, e) for s, e in possible(rows) if self.local(rows[s : e + 1])]

    def closures(self, events: Any, ts: str = "ts") -> tuple[Closure, ...]:
        """Those that the candidates of these events have."""
        rows, found = in_order(events, ts), self.candidates(events, ts)
        have: dict[Closure, bool] = {
            "union": has_union_closure(found),
            "sub-interval": has_sub_interval_closure(found),
            "super-interval": has_super_interval_closure(found, rows),
        }
        return tuple(name for name, holds in have.items() if holds)

    def lemma(self, events: Any, ts: str = "ts") -> int | None:
        """Which lemma says that the framing of these events is unique: 1, 2, or None where neither does."""
        have = self.closures(events, ts)
        if "union" in have and self.maximal and self.covering:
            return 1
        closed = ("sub-interval" in have and self.maximal) or ("super-interval" in have and self.minimal)
        return 2 if closed and self.covering and self.drained else None

    def final(self, events: Any, ts: str = "ts") -> list[Frame]:
        """The framing that a lemma says is unique; refused where none does."""
        rows, found, lemma = in_order(events, ts), self.candidates(events, ts), self.lemma(events, ts)
        if lemma is None:
            raise BadQuery(
                f"the scheme has the closures {self.closures(events, ts)}: no lemma says that its framing is unique.",
                "scheme.framings(events) lists all that there are",
            )
        return (
            [f for f in found if is_maximal(f, found)]
            if lemma == 1
            else from_left_to_right(found, len(rows), self.maximal)
        )

    def is_final(self, framing: Sequence[Frame], events: Any, ts: str = "ts") -> bool:
        """Does a set of frames meet all conditions, read as they stand?"""
        found = self.candidates(events, ts)
        each = [f in found and (not self.maximal or is_maximal(f, found)) and (not self.minimal or is_minimal(f, found))
                for f in framing]  # fmt: skip
        return all(each) and all((
            not self.covering or covers(framing, found),
            not self.drained or is_drained(framing, found),
            not self.saturated or is_saturated(framing, found),
        ))  # fmt: skip

    def framings(self, events: Any, ts: str = "ts") -> list[list[Frame]]:
        """All sets of frames that meet the conditions, read as they stand: every set of candidates is tried."""
        found = self.candidates(events, ts)
        extreme = is_maximal if self.maximal else is_minimal if self.minimal else None
        fit = [frame for frame in found if extreme is None or extreme(frame, found)]
        if len(fit) > MOST_CANDIDATES:
            raise BadQuery(
                f"there are {len(fit)} frames to choose from, and 2^{len(fit)} sets of them.", "fewer events"
            )
        sets = (list(each) for size in range(len(fit) + 1) for each in itertools.combinations(fit, size))
        return [framing for framing in sets if self.is_final(framing, events, ts)]

    def is_unique(self, events: Any, ts: str = "ts") -> bool:
        """Is there one framing of these events, and no other?"""
        return self.lemma(events, ts) is not None or len(self.framings(events, ts)) == 1


def from_left_to_right(found: list[Frame], size: int, longest: bool) -> list[Frame]:
    """The framing of Lemma 2: the longest or the shortest candidate from the next event that is in none, and so on."""
    framing: list[Frame] = []
    at = 0
    while at < size:
        ends = [e for s, e in found if s == at]
        if ends:
            framing.append((at, max(ends) if longest else min(ends)))
        at = framing[-1][1] + 1 if ends else at + 1
    return framing


def in_order(events: Any, ts: str = "ts") -> list[Event]:
    """Rows (dicts, or any table) by ts; equal ts keep arrival order.

    >>> import frames as fr
    >>> fr.theory.in_order({"ts": [2, 1], "x": [5, 6]})
    [{'ts': 1, 'x': 6}, {'ts': 2, 'x': 5}]
    """
    rows = rows_of(events)
    check_read(rows, (ts,))
    return sorted(rows, key=lambda event: event[ts])


def rows_of(events: Any) -> list[Event]:
    rows = list(events) if isinstance(events, list | tuple) else as_table(events).to_pylist()
    odd = next((row for row in rows if not isinstance(row, dict)), None)
    if odd is not None:
        raise BadEvents(f"{odd!r} is no event: events are a table, or dicts.", '[{"ts": 1, "x": 2}]')
    return rows


def check_read(rows: Sequence[Event], names: Iterable[str]) -> None:
    """Refuse events that lack what is read of them."""
    for name, row in itertools.product(names, rows):
        if name not in row:
            raise UnknownColumn(f'an event has no "{name}", but: {", ".join(row)}.', nearest(name, list(row)))


def _extent(framing: Iterable[Frame]) -> set[int]:
    return {p for s, e in framing for p in range(s, e + 1)}
