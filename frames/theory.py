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
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import pyarrow as pa

from frames.exact import aggregate, satisfies, truth
from frames.finding.intake import with_read
from frames.logical import processed
from frames.schemes import (
    AnyScheme,
    Event,
    Frame,
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
from frames.specs import Aggregate, Boundary, Custom, Delta, Spec, Threshold, check_spec
from frames.specs.conditions import without_filters
from swag.errors import BadQuery, UnknownColumn, nearest
from swag.tables.columns import as_table

__all__ = [  # of frames/exact.py and frames/schemes.py, which know nothing of specs; and what is defined here
    "Event", "Frame", "Scheme", "aggregate", "candidates", "cell", "covers", "final", "gaps",
    "has_sub_interval_closure", "has_super_interval_closure", "has_union_closure", "holds", "in_order", "is_disjoint",
    "is_drained", "is_long_enough", "is_maximal", "is_minimal", "is_saturated", "partitions", "passes", "possible",
    "satisfies", "spread",
]  # fmt: skip


def candidates(spec: Spec, events: Any, ts: str = "ts") -> list[Frame]:
    """The possible frames that satisfy the local condition."""
    rows = _read(spec, events, ts)
    return [
        (s, e) for s, e in possible(rows) if holds(spec, rows[s : e + 1]) and is_long_enough(spec, rows[s : e + 1], ts)
    ]


def final(spec: Spec, events: Any, ts: str = "ts") -> list[Frame]:
    """The final framing, in order; with partition=True, see also `gaps`."""
    rows = _read(spec, events, ts)
    if isinstance(spec, Custom):
        return processed(spec, rows, ts)
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
    (('union',), 1, [(0, 0), (2, 3)])
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
        waits = not spec.closes_before and not spec.union_closed
        return cls(spec, maximal=not waits, minimal=waits, covering=True, drained=True)

    def candidates(self, events: Any, ts: str = "ts") -> list[Frame]:
        if isinstance(self.local, Spec):
            return candidates(self.local, events, ts)
        return super().candidates(events, ts)


def _read(spec: Spec, events: Any, ts: str) -> list[Event]:
    """Rows in order of ts, each with the columns that the spec reads."""
    check_spec(spec)
    rows = rows_of(events)
    rows = with_read(spec, as_table(pa.Table.from_pylist(rows))).to_pylist() if spec.texts and rows else rows
    for name, row in itertools.product((ts, *spec.columns), rows):
        if name not in row:
            raise UnknownColumn(f'an event has no "{name}", but: {", ".join(row)}.', nearest(name, list(row)))
    return in_order(rows, ts)
