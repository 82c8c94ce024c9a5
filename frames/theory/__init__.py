"""Framings by definition, on finite streams, slowly: what `detect` must find, and why it is the only answer.

A frame is a run of positions [s, e] (from 0, both inside) of one substream in order of ts. Papers: Grossniklaus et al.
2016 section 3, Maier et al. 2012 section 3.

    possible     all [s, e]
    candidates   those that satisfy the local condition (data-dependent, then data-independent)
    final        the one framing that the global conditions leave

    threshold, boundary,   union closure         maximal candidates; they cover, and are drained (Lemma 1)
    session, state
    delta, aggregate <     sub-interval closure  from left to right: the longest candidate from the first event that is
                                                 not in a frame yet and can be in one
    delta, aggregate >     super-interval        from left to right: the shortest candidate from the event after the
                                                 last frame
    between                none                  from left to right: from the next event that opens to the first behind
                                                 it that closes

Read literally, "maximal and covering" leaves overlapping delta frames ([0,1,2] and [1,2,3] for values 0 1 2 3 and
range < 2.5), and "minimal" a frame that starts later than the greedy one (values 1, 30 and sum >= 25: only [30]). The
proof of Lemma 2 builds the framing from left to right, each frame the first candidate after the one before, and so does
`final`: each frame is maximal (minimal) among the candidates *that start where it does*. Where closure fails (a mean,
measure="first") that construction is the definition.

Lengths are data-independent conditions. A minimum leaves candidates out: with union closure that is the same before and
after maximal ones are chosen; from left to right it is applied to the framing, so that a frame that is too short is
dropped, and the next one begins behind it all the same. A maximum makes candidates sub-interval closed, whatever they
were: from left to right, the longest that is not too long, the next one from the event that was too much. One that
would have had to reach something (`>`, `>=`) is then a frame without. What is left of a partition are its gaps, which
may have any length.

    >>> import frames as fr
    >>> fr.theory.final(fr.Threshold("x", ">", 1), {"ts": [1, 2, 3, 4], "x": [5, 0, 2, 3]})
    [(0, 0), (2, 3)]
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import pyarrow as pa

from frames.finding.intake import with_read
from frames.specs import (
    Aggregate,
    Between,
    Boundary,
    Custom,
    Delta,
    Pattern,
    Session,
    Spec,
    State,
    Threshold,
    check_spec,
)
from frames.specs.conditions import without_filters
from frames.theory.exact import WHEN, aggregate, satisfies, truth
from frames.theory.lengths import is_long_enough, is_short_enough, units
from frames.theory.logical import processed
from frames.theory.patterns import can_be_read, matches
from frames.theory.schemes import (
    AnyScheme,
    Event,
    Frame,
    check_read,
    covers,
    has_sub_interval_closure,
    has_super_interval_closure,
    has_union_closure,
    in_order,
    is_disjoint,
    is_drained,
    is_maximal,
    is_minimal,
    is_saturated,
    partitions,
    possible,
    rows_of,
)
from swag.errors import BadQuery
from swag.tables.columns import as_table

__all__ = [  # of exact.py and schemes.py, which know nothing of specs; and what is defined here
    "Event", "Frame", "Scheme", "aggregate", "candidates", "cell", "covers", "final", "gaps",
    "has_sub_interval_closure", "has_super_interval_closure", "has_union_closure", "holds", "in_order", "is_disjoint",
    "is_drained", "is_long_enough", "is_maximal", "is_minimal", "is_saturated", "is_short_enough", "owned",
    "partitions", "passes", "possible", "satisfies", "spread",
]  # fmt: skip


def __dir__() -> list[str]:
    """What is public, and nothing else."""
    return [*__all__, "__doc__"]


def candidates(spec: Spec, events: Any, ts: str = "ts") -> list[Frame]:
    """The possible frames that satisfy the local condition.

    >>> import frames as fr
    >>> fr.theory.candidates(fr.Threshold("x", ">", 1), {"ts": [1, 2, 3], "x": [5, 4, 0]})
    [(0, 0), (0, 1), (1, 1)]
    """
    rows = _read(spec, events, ts)
    local = (holds, lambda spec, extent: is_long_enough(spec, extent, ts) and is_short_enough(spec, extent, ts))
    return [(s, e) for s, e in possible(rows) if all(each(spec, rows[s : e + 1]) for each in local)]


def final(spec: Spec, events: Any, ts: str = "ts") -> list[Frame]:
    """The final framing, in order; with partition=True, see also `gaps`.

    >>> import frames as fr
    >>> fr.theory.final(fr.Session(2), {"ts": [1, 2, 9, 10]})
    [(0, 1), (2, 3)]
    """
    rows = _read(spec, events, ts)
    if isinstance(spec, Pattern):
        return [(match.first, match.last) for match in matches(spec, rows, ts)]
    if isinstance(spec, Custom):
        return processed(spec, rows, ts)
    if spec.union_closed and spec.max_rows is None and spec.max_duration is None:
        found = candidates(spec, rows, ts)
        return [frame for frame in found if is_maximal(frame, found)]
    if isinstance(spec, Between):
        framing = _opened(spec, rows, ts)
    else:
        grows = spec.closes_before or spec.union_closed
        framing = _longest(spec, rows, ts) if grows else _shortest(spec, rows, ts)
    return [(s, e) for s, e in framing if is_long_enough(spec, rows[s : e + 1], ts)]


def owned(spec: Spec, events: Any, ts: str = "ts") -> list[tuple[Frame, list[Event]]]:
    """Which events each final frame owns: those at its positions, and no others, whatever ts these have.

    Positions are those of the events in order of ts, equal ts in order of arrival. So of events that share the first or
    the last ts of a frame it owns those that it was found with; a framing that partitions gives each event once, and
    frames that overlap (Custom) own some together. With partition=True gaps own theirs as frames do, and are listed.

    >>> import frames as fr
    >>> fr.theory.owned(fr.Threshold("x", ">", 1), {"ts": [1, 1, 1, 2], "x": [5, 0, 2, 3]})[1]
    ((2, 3), [{'ts': 1, 'x': 2}, {'ts': 2, 'x': 3}])
    """
    rows, framing = in_order(events, ts), final(spec, events, ts)
    if isinstance(spec, Threshold) and spec.partition:
        framing = sorted(framing + gaps(framing, rows))
    return [((s, e), rows[s : e + 1]) for s, e in framing]


def _longest(spec: Spec, rows: Sequence[Event], ts: str) -> list[Frame]:
    """From left to right: from the next event the longest extent that holds and is not too long, and so on."""
    framing: list[Frame] = []
    at = 0
    while at < len(rows):
        end = at
        while end < len(rows) and _can_be(spec, rows[at : end + 1], ts):  # it grows event by event: all prefixes can
            end += 1
        if end > at:
            framing.append((at, end - 1))
        at = max(end, at + 1)
    return framing


def _can_be(spec: Spec, extent: Sequence[Event], ts: str) -> bool:
    return holds(spec, extent) and is_short_enough(spec, extent, ts)


def _shortest(spec: Spec, rows: Sequence[Event], ts: str) -> list[Frame]:
    """From left to right: from the next event the shortest extent that holds; or one that more would be too much for.

    What reaches neither by the end is no frame.
    """
    framing: list[Frame] = []
    at = end = 0
    while end < len(rows):
        if not is_short_enough(spec, rows[at : end + 1], ts):
            framing.append((at, end - 1))
            at = end
        if holds(spec, rows[at : end + 1]):
            framing.append((at, end))
            at = end + 1
        end += 1
    return framing


def _opened(spec: Between, rows: Sequence[Event], ts: str) -> list[Frame]:
    """From left to right: from the next event that opens to the first that closes, or to the end; in pieces."""
    framing: list[Frame] = []
    at = 0
    while at < len(rows):
        if rows[at][spec.start] is not True:
            at += 1
            continue
        end = at if spec.same else at + 1
        while end < len(rows) and rows[end][spec.end] is not True:
            end += 1
        stop = min(end, len(rows) - 1)
        for e in range(at, stop + 1):
            if not is_short_enough(spec, rows[at : e + 1], ts):
                framing.append((at, e - 1))
                at = e
        framing.append((at, stop))
        at = stop + 1
    return framing


def gaps(framing: Iterable[Frame], events: Sequence[Event]) -> list[Frame]:
    """What lies between the frames: the rest of a partition.

    >>> import frames as fr
    >>> fr.theory.gaps([(1, 1)], [{"ts": 1}, {"ts": 2}, {"ts": 3}])
    [(0, 0), (2, 2)]
    """
    between, at = [], 0
    for s, e in [*sorted(framing), (len(events), len(events))]:
        if s > at:
            between.append((at, s - 1))
        at = e + 1
    return between


# --- Local conditions: data-dependent, data-independent -----------------------------------------------------------


@singledispatch
def holds(spec: Spec, extent: Sequence[Event]) -> bool:
    """The data-dependent condition on the events of a frame: for each kind one of the functions below.

    >>> import frames as fr
    >>> fr.theory.holds(fr.State("x"), [{"x": 1}, {"x": 1}]), fr.theory.holds(fr.State("x"), [{"x": 1}, {"x": 2}])
    (True, False)
    """
    raise NotImplementedError(f"{type(spec).__name__} has no definition.")


@holds.register
def _within_threshold(spec: Threshold, extent: Sequence[Event]) -> bool:
    """The comparison, or the predicate, holds for every event."""
    if spec.op is None:
        return all(event[spec.column] is True for event in extent)
    return all(satisfies(event[spec.column], spec.op, spec.c) for event in extent)


@holds.register
def _within_boundary(spec: Boundary, extent: Sequence[Event]) -> bool:
    """All events are in one cell."""
    return len({cell(spec, event) for event in extent}) == 1


@holds.register
def _within_delta(spec: Delta, extent: Sequence[Event]) -> bool:
    """No column has moved too far, or, of a frame that closes with an event, some column has."""
    spreads = {name: spread(spec, [event[name] for event in extent]) for name in spec.limits}
    return any(passes(spreads[name], spec.op, x) for name, x in spec.limits.items()) != spec.closes_before


@holds.register
def _within_aggregate(spec: Aggregate, extent: Sequence[Event]) -> bool:
    """The condition holds for its aggregates; of no values yet, nothing is broken and nothing reached."""
    found = truth(without_filters(spec.condition), extent)
    return spec.closes_before if found is None else found


@holds.register
def _within_session(spec: Session, extent: Sequence[Event]) -> bool:
    """No silence is longer than the gap."""
    times: list[Any] = [event.get(WHEN, event.get("ts")) for event in extent]
    return all(b - a <= units(spec.gap, "gap", a) for a, b in itertools.pairwise(times))


@holds.register
def _within_state(spec: State, extent: Sequence[Event]) -> bool:
    """All events have one value; null is one, and so is NaN."""
    values = [event[spec.column] for event in extent]
    return len({"NaN" if value != value else (value,) for value in values}) == 1


@holds.register
def _within_between(spec: Between, extent: Sequence[Event]) -> bool:
    """The first event opens it; the last one, and no other behind the first, closes it."""
    behind = range(0 if spec.same else 1, len(extent))
    return extent[0][spec.start] is True and [i for i in behind if extent[i][spec.end] is True] == [len(extent) - 1]


@holds.register
def _within_pattern(spec: Pattern, extent: Sequence[Event]) -> bool:
    """The pattern can be read so that it takes all events; none comes before them."""
    return can_be_read(spec, extent)


@holds.register
def _within_custom(spec: Custom, extent: Sequence[Event]) -> bool:
    """The logical operator has a frame of all of these events, if it is given them alone."""
    return (0, len(extent) - 1) in processed(spec, extent, WHEN if WHEN in extent[0] else "ts")


def cell(spec: Boundary, event: Event) -> tuple[int | None, ...]:
    """The number of the cell in each dimension; None for null and NaN.

    >>> import frames as fr
    >>> fr.theory.cell(fr.Boundary({"x": 2, "y": [0, 10]}), {"x": 3, "y": 5})
    (2, 1)
    """
    return tuple(_cell(event[name], cut) for name, cut in spec.cells.items())


def _cell(value: Any, cut: Any) -> int | None:
    """Of a value in one dimension, cut at bounds or into cells of a width; each has its upper end inside."""
    if value is None or value != value:
        return None
    if isinstance(cut, tuple):
        return sum(b < value for b in cut)
    if isinstance(value, int) and float(cut).is_integer() and cut < 2**63:
        return max(-(-value // int(cut)), 1 - 2**63)  # the least int64 stands for no cell at all
    if math.isinf(value) or abs(value / cut) > 9.2e18:
        return int(math.copysign(9.2e18, value))
    return max(math.ceil(value / cut), 1) if value > 0 else math.ceil(value / cut)  # a small quotient may be 0.0


def spread(spec: Delta, values: Sequence[Any]) -> float:
    """Of the values that are there: how far the furthest is from the first, or max - min.

    >>> import frames as fr
    >>> fr.theory.spread(fr.Delta("x", 5), [3, 1, 4]), fr.theory.spread(fr.Delta("x", 5, measure="range"), [3, 1, 4])
    (2, 3)
    """
    there = [v for v in values if v is not None and v == v]
    if not there:
        return 0
    with_first = [abs(v - there[0]) for v in there[1:]]
    among = [max(there) - min(there)] if spec.measure == "range" else with_first
    return max([d for d in among if d == d], default=0)


def passes(spread: Any, op: str, x: Any) -> bool:
    """Does a frame with this spread close? `<` and `>=` at x, `<=` and `>` beyond it.

    >>> import frames as fr
    >>> fr.theory.passes(5, "<", 5), fr.theory.passes(5, "<=", 5)
    (True, False)
    """
    return bool(spread >= x if op in ("<", ">=") else spread > x)


# --- Framing schemes --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scheme(AnyScheme):
    """A framing scheme as a value: a local condition, and the global conditions that a final framing meets.

    `local` is a spec, or a function of a run of events (a list of dicts, in order) that says whether it is a candidate.
    `of` gives the scheme that a kind of frames is found by.

    >>> import frames as fr
    >>> events = {"ts": [1, 2, 3, 4], "x": [5, 0, 2, 3]}
    >>> scheme = fr.theory.Scheme(fr.Threshold("x", ">", 1), maximal=True, covering=True)
    >>> scheme.closures(events), scheme.lemma(events), scheme.final(events)
    (('union', 'sub-interval'), 1, [(0, 0), (2, 3)])
    >>> pairs = fr.theory.Scheme(lambda run: len(run) == 2, maximal=True, covering=True, drained=True)
    >>> pairs.lemma(events), pairs.framings(events)
    (None, [[(0, 1), (2, 3)]])
    """

    def __post_init__(self) -> None:
        if not isinstance(self.local, Spec):
            super().__post_init__()

    @classmethod
    def of(cls, spec: Spec) -> "Scheme":
        """Frames that close with an event are the shortest candidates, all others the longest."""
        check_spec(spec)
        waits = not spec.closes_before and not spec.union_closed
        return SchemeOfKind(spec, maximal=not waits, minimal=waits, covering=True, drained=True)

    def candidates(self, events: Any, ts: str = "ts") -> list[Frame]:
        if isinstance(self.local, Spec):
            return candidates(self.local, events, ts)
        return super().candidates(events, ts)


@dataclass(frozen=True)
class SchemeOfKind(Scheme):
    """The scheme that a kind is found by. It claims a unique framing only where a lemma does, of what `final` finds.

    The lemmas are about frames that are as long, or as short, as candidates can be. They say nothing of Between,
    Pattern and Custom, which are walks from left to right by definition, of pieces that a maximum cuts from frames that
    had to reach something, and of minimums where these drop what the walk has found.
    """

    def lemma(self, events: Any, ts: str = "ts") -> int | None:
        """Lemma 1 of kinds that have union closure, however few events there are; else lemma 2, where that applies."""
        spec: Spec = self.local
        splits = spec.max_rows is not None or spec.max_duration is not None
        if spec.union_closed and not splits:
            return 1
        drops, walks = spec.min_rows > 1 or spec.min_duration != 0, isinstance(spec, Between | Pattern | Custom)
        if drops or walks or (splits and self.minimal):
            return None
        return 2 if ("sub-interval" if self.maximal else "super-interval") in self.closures(events, ts) else None

    def final(self, events: Any, ts: str = "ts") -> list[Frame]:
        """The framing that a lemma says is unique; refused where none does: `theory.final` says what is found then."""
        if self.lemma(events, ts) is None:
            raise BadQuery(
                f"no lemma says that the framing of {self.local!r} is unique for these events.",
                "fr.theory.final(spec, events), the framing by definition",
            )
        return super().final(events, ts)

    def is_unique(self, events: Any, ts: str = "ts") -> bool:
        """Does a lemma say so?"""
        return self.lemma(events, ts) is not None


def _read(spec: Spec, events: Any, ts: str) -> list[Event]:
    """Rows in order of ts, each with the columns that the spec reads."""
    check_spec(spec)
    rows = rows_of(events)
    rows = with_read(spec, as_table(pa.Table.from_pylist(rows))).to_pylist() if spec.texts and rows else rows
    check_read(rows, (ts, *spec.columns))
    return [{**row, WHEN: row[ts]} for row in in_order(rows, ts)]
