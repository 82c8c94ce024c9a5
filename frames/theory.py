"""Framings by definition, on finite streams, slowly: what `detect` must find, and why it is the only answer.

A frame is a run of positions [s, e] (from 0, both inside) of one substream in order of ts. Papers: Grossniklaus et al.
2016 section 3, Maier et al. 2012 section 3.

    possible     all [s, e]
    candidates   those that satisfy the local condition (data-dependent, then data-independent)
    final        the one framing that the global conditions leave

    threshold, boundary    union closure         maximal candidates; they cover, and are drained (Lemma 1)
    delta, aggregate <     sub-interval closure  from left to right: the longest candidate from the first event that is
                                                 not in a frame yet and can be in one
    delta, aggregate >     super-interval        from left to right: the shortest candidate from the event after the
                                                 last frame

Read literally, "maximal and covering" leaves overlapping delta frames ([0,1,2] and [1,2,3] for values 0 1 2 3 and
range < 2.5), and "minimal" a frame that starts later than the greedy one (values 1, 30 and sum >= 25: only [30]). The
proof of Lemma 2 builds the framing from left to right, each frame the first candidate after the one before, and so does
`final`: each frame is maximal (minimal) among the candidates *that start where it does*. Where closure fails (a mean,
measure="first") that construction is the definition.

    >>> import frames as fr
    >>> fr.theory.final(fr.Threshold("x", ">", 1), {"ts": [1, 2, 3, 4], "x": [5, 0, 2, 3]})
    [(0, 0), (2, 3)]
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from functools import singledispatch
from typing import Any

import pyarrow as pa

from frames.exact import aggregate, satisfies, truth
from frames.finding.intake import with_read
from frames.specs import Aggregate, Boundary, Delta, Spec, Threshold, check_spec
from frames.specs.conditions import without_filters
from swag.errors import BadQuery, UnknownColumn, nearest
from swag.tables.columns import as_table

Event = dict[str, Any]
Frame = tuple[int, int]
__all__ = ["aggregate", "satisfies"]  # are of frames/exact.py; all else is here


def possible(events: Sequence[Event]) -> list[Frame]:
    """Every run of positions."""
    return [(s, e) for s in range(len(events)) for e in range(s, len(events))]


def candidates(spec: Spec, events: Any, ts: str = "ts") -> list[Frame]:
    """The possible frames that satisfy the local condition."""
    rows = _read(spec, events, ts)
    return [
        (s, e) for s, e in possible(rows) if holds(spec, rows[s : e + 1]) and is_long_enough(spec, rows[s : e + 1], ts)
    ]


def final(spec: Spec, events: Any, ts: str = "ts") -> list[Frame]:
    """The final framing, in order; with partition=True, see also `gaps`."""
    rows = _read(spec, events, ts)
    found = candidates(spec, rows, ts)
    if spec.union_closed:
        return [frame for frame in found if is_maximal(frame, found)]
    return _left_to_right(spec, rows, found)


def _left_to_right(spec: Spec, rows: Sequence[Event], found: list[Frame]) -> list[Frame]:
    """The framing of delta and aggregate frames: the longest or shortest candidate from the next event, and so on."""
    framing: list[Frame] = []
    among, at = set(found), 0
    while at < len(rows):
        if spec.closes_before:
            end = at
            while (at, end) in among:  # a frame grows event by event: all its prefixes are candidates
                end += 1
            if end > at:
                framing.append((at, end - 1))
            at = max(end, at + 1)
        else:
            ends = [e for s, e in found if s == at]
            if not ends:
                break
            framing.append((at, min(ends)))
            at = min(ends) + 1
    return framing


def gaps(framing: Iterable[Frame], events: Sequence[Event]) -> list[Frame]:
    """What lies between the frames: the rest of a partition."""
    between, at = [], 0
    for s, e in [*sorted(framing), (len(events), len(events))]:
        if s > at:
            between.append((at, s - 1))
        at = e + 1
    return between


# --- Local conditions: data-dependent, data-independent -----------------------------------------------------------


@singledispatch
def holds(spec: Spec, extent: Sequence[Event]) -> bool:
    """The data-dependent condition on the events of a frame: for each kind one of the functions below."""
    raise NotImplementedError(f"{type(spec).__name__} has no definition.")


@holds.register
def _within_threshold(spec: Threshold, extent: Sequence[Event]) -> bool:
    """The comparison holds for every event."""
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


def is_long_enough(spec: Spec, extent: Sequence[Event], ts: str = "ts") -> bool:
    """The data-independent condition: rows and duration (here in the unit of ts)."""
    if len(extent) < spec.min_rows or spec.min_duration == 0:
        return len(extent) >= spec.min_rows
    if not isinstance(spec.min_duration, int) or not isinstance(extent[0][ts], int):
        raise BadQuery(
            f"min_duration={spec.min_duration!r}: theory counts in the unit of an integer ts.", "min_duration=2"
        )
    return bool(extent[-1][ts] - extent[0][ts] >= spec.min_duration)


def cell(spec: Boundary, event: Event) -> tuple[int | None, ...]:
    """The number of the cell in each dimension; None for null and NaN."""
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
    """Of the values that are there: how far the furthest is from the first, or max - min."""
    there = [v for v in values if v is not None and v == v]
    if not there:
        return 0
    with_first = [abs(v - there[0]) for v in there[1:]]
    among = [max(there) - min(there)] if spec.measure == "range" else with_first
    return max([d for d in among if d == d], default=0)


def passes(spread: Any, op: str, x: Any) -> bool:
    """Does a frame with this spread close? `<` and `>=` at x, `<=` and `>` beyond it."""
    return bool(spread >= x if op in ("<", ">=") else spread > x)


# --- Global conditions and closures ----------------------------------------------------------------------------------


def is_maximal(frame: Frame, among: Iterable[Frame]) -> bool:
    """No frame among these properly contains it."""
    return not any(s <= frame[0] and frame[1] <= e and (s, e) != frame for s, e in among)


def is_minimal(frame: Frame, among: Iterable[Frame]) -> bool:
    """It properly contains no frame among these."""
    return not any(frame[0] <= s and e <= frame[1] and (s, e) != frame for s, e in among)


def covers(framing: Iterable[Frame], frames: Iterable[Frame]) -> bool:
    """Every event of `frames` is in some frame of the framing."""
    return _extent(frames) <= _extent(framing)


def is_drained(framing: Sequence[Frame], found: Iterable[Frame]) -> bool:
    """It covers the candidates, and would not without any one of its frames."""
    found = list(found)
    return covers(framing, found) and not any(covers([f for f in framing if f != frame], found) for frame in framing)


def is_saturated(framing: Sequence[Frame], found: Iterable[Frame]) -> bool:
    """No candidate can be added that overlaps none of its frames."""
    return all(any(s <= e2 and s2 <= e for s2, e2 in framing) for s, e in found)


def is_disjoint(framing: Sequence[Frame]) -> bool:
    ordered = sorted(framing)
    return all(a[1] < b[0] for a, b in itertools.pairwise(ordered))


def partitions(framing: Sequence[Frame], events: Sequence[Event]) -> bool:
    """Every event is in exactly one frame."""
    return is_disjoint(framing) and _extent(framing) == set(range(len(events)))


def has_union_closure(found: Iterable[Frame]) -> bool:
    """The union of overlapping candidates is a candidate."""
    frames = set(found)
    return all(
        (min(a[0], b[0]), max(a[1], b[1])) in frames for a in frames for b in frames if a[0] <= b[1] and b[0] <= a[1]
    )


def has_sub_interval_closure(found: Iterable[Frame]) -> bool:
    """Whatever lies inside a candidate is one."""
    frames = set(found)
    return all((a, b) in frames for s, e in frames for a in range(s, e + 1) for b in range(a, e + 1))


def has_super_interval_closure(found: Iterable[Frame], events: Sequence[Event]) -> bool:
    """Whatever contains a candidate is one."""
    frames = set(found)
    return all((a, b) in frames for s, e in frames for a in range(s + 1) for b in range(e, len(events)))


def in_order(events: Any, ts: str = "ts") -> list[Event]:
    """Rows (dicts, or any table) by ts; equal ts keep arrival order."""
    return sorted(_rows(events), key=lambda event: event[ts])


def _read(spec: Spec, events: Any, ts: str) -> list[Event]:
    """Rows in order of ts, each with the columns that the spec reads."""
    check_spec(spec)
    rows = _rows(events)
    rows = with_read(spec, as_table(pa.Table.from_pylist(rows))).to_pylist() if spec.texts and rows else rows
    for name, row in itertools.product((ts, *spec.columns), rows):
        if name not in row:
            raise UnknownColumn(f'an event has no "{name}", but: {", ".join(row)}.', nearest(name, list(row)))
    return in_order(rows, ts)


def _rows(events: Any) -> list[Event]:
    return list(events) if isinstance(events, list | tuple) else as_table(events).to_pylist()


def _extent(framing: Iterable[Frame]) -> set[int]:
    return {p for s, e in framing for p in range(s, e + 1)}
