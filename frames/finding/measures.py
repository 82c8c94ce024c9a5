"""What MEASURES say of matches: read off their events, once the matches are known.

A match is known by the row that decided it (AT; -1: the end of the stream) and how many rows before that it began. Its
rows are told apart by symbol by going through each match once more (kernels/frames/backtracking.py); aggregates are
answered as windows are (frames/finding/intervals.py), FIRST and LAST are rows.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from frames.finding.intake import END_OF_TIME, ID, NO_KEY
from frames.finding.intervals import over_intervals
from frames.patterns import rows as pattern_rows
from frames.patterns.conditions import MEASURE, Grown, in_words
from frames.scans.pattern import DISTANCES
from frames.scans.scan import Scan
from frames.specs import Pattern
from kernels.frames import backtracking
from kernels.frames.framing import AT, COUNT, KEY
from swag.durable.state import State, table_from_array, table_to_array
from swag.errors import SwagError
from swag.query.kinds import count, count_distinct, max, mean, min, sum
from swag.tables.columns import taken
from swag.tables.expressions.expression import compiled, values
from swag.tables.waiting import TimedRows

KINDS = {"sum": sum, "mean": mean, "min": min, "max": max}
LABEL, VALUE = " symbol", " value"  # columns beside those of events


def with_measures(
    spec: Pattern, table: pa.Table, ids: np.ndarray, frames: np.ndarray, extra: dict[str, pa.Array]
) -> dict[str, pa.Array]:
    """Measures in place of distances. table, ids: the events, in order of ts per key; frames: rows KEY … AT."""
    if not spec.measures:
        return extra
    spans = MatchSpans.of(ids, table.num_rows, frames, np.asarray(extra.pop(DISTANCES)))
    found = _Matches(spec, table, spans)
    measured = found.pattern.measured
    answers = pa.table({f"{MEASURE}{i}": found.answer(each) for i, each in enumerate(measured)})
    try:
        said = {name: values(compiled(text), answers, f"MEASURES {name}") for name, text in found.pattern.said.items()}
    except SwagError as why:
        raise type(why)(in_words(why.message, measured), why.hint, about=in_words(why.about, measured)) from None
    return {**said, **extra}


class MatchSpans(NamedTuple):
    """Rows key by key, and where in them matches begin. order: which they are; first: where each row's key begins."""

    order: np.ndarray
    first: np.ndarray
    begin: np.ndarray
    rows: np.ndarray

    @classmethod
    def of(cls, ids: np.ndarray, size: int, frames: np.ndarray, distances: np.ndarray) -> "MatchSpans":
        who = ids if ids.size else np.zeros(size, ID)
        order = np.argsort(who, kind="stable")
        place = np.empty(size, np.int64)
        place[order] = np.arange(size)
        counts = np.bincount(who, minlength=int(frames[KEY].max(initial=0)) + 1)
        ends = np.cumsum(counts)
        at = np.where(frames[AT] < 0, ends[frames[KEY]], place[frames[AT]] if size else 0)
        return cls(order, np.repeat(ends - counts, counts), at - distances, frames[COUNT])


class _Matches:
    """The rows of some matches, one match after the other, each with its symbol. May be asked for aggregates."""

    def __init__(self, spec: Pattern, table: pa.Table, spans: MatchSpans) -> None:
        self.pattern, self.sizes = spec.compiled(), spans.rows
        self.starts = np.cumsum(self.sizes) - self.sizes
        inside = np.repeat(spans.begin - self.starts, self.sizes) + np.arange(int(self.sizes.sum()))
        self.table = taken(table, spans.order[inside])
        self.labels = self._labels(table, spans, inside)

    def _labels(self, table: pa.Table, spans: MatchSpans, inside: np.ndarray) -> np.ndarray:
        """The number of each row's symbol."""
        rows = self.table
        for each in self.pattern.shifted:
            there = inside - each.back >= spans.first[inside]
            before = spans.order[np.where(there, inside - each.back, inside)]
            what = pattern_rows.value_of(each.text, table).take(pa.array(before, mask=~there))
            rows = rows.append_column(each.name, what)
        bits, labels = np.zeros(inside.size, np.uint64), np.zeros(inside.size, np.int64)
        pattern_rows.holding(self.pattern, rows, range(len(self.pattern.symbols)), bits)
        growing = pattern_rows.growing(self.pattern, rows)
        backtracking.label(self.starts, self.sizes, bits, self.pattern.choices, growing, labels)
        return labels

    def answer(self, asked: Grown) -> Any:
        """An aggregate of each match, of the rows of one symbol or of all."""
        symbol = None if asked.symbol is None else self.pattern.symbols.index(asked.symbol)
        if asked.whole is None and asked.kind in ("first", "last"):
            return self._row(asked, symbol)
        table = self.table.append_column(LABEL, pa.array(self.labels))
        if asked.whole is None and asked.text is not None:
            table = table.append_column(VALUE, pattern_rows.value_of(asked.text, self.table))
        where = None if symbol is None else f'"{LABEL}" = {symbol}'
        edges = (self.starts, self.starts + self.sizes)
        try:
            (found,) = over_intervals([(_aggregate(asked), where)], table, None, edges)
        except SwagError as why:
            raise _as_written(why, asked) from None
        return found

    def _row(self, asked: Grown, symbol: int | None) -> pa.Array:
        """FIRST and LAST are what that row has, and null if it is null."""
        at = np.arange(self.labels.size)
        mine = np.ones(at.size, bool) if symbol is None else self.labels == symbol
        none, best = (at.size, np.minimum) if asked.kind == "first" else (-1, np.maximum)
        rows = best.reduceat(np.where(mine, at, none), self.starts) if self.starts.size else at[:0]
        found = pa.array(rows, mask=rows == none)
        return pattern_rows.value_of(asked.text or "", self.table).take(found)


def _aggregate(asked: Grown) -> Any:
    if asked.whole is not None:
        return asked.whole
    if asked.kind == "count":
        return count() if asked.text is None else count_distinct(VALUE) if asked.distinct else count(VALUE)
    return KINDS[asked.kind](VALUE)


def _as_written(why: SwagError, asked: Grown) -> SwagError:
    """The error with what was written in the place of the column that stands for it."""
    if asked.whole is not None or asked.text is None:
        return why
    of = compiled(asked.text)
    name = next(iter(of.columns)) if of.is_column else ""
    said, column = why.message.replace(str(_aggregate(asked)), str(asked)), f'"{VALUE}"'
    message, hint = said.replace(column, f'"{name}"' if name else of.text), why.hint.replace(column, asked.of)
    return type(why)(message, hint, name, "" if name else of.text)


class MatchEvents:
    """Rows that undecided matches may have, while events arrive: measures are read off them, or they are read again.

    Owns the columns that the spec reads, the ts and the key of each row, in order of ts for each key. It is asked which
    rows are to be scanned (`again`), told when they were (`add`), asked for the `values` of matches, and told which
    rows are no longer needed (`drop`).
    """

    def __init__(self, spec: Pattern) -> None:
        self.spec = spec
        self.rows: TimedRows | None = None
        self._next: tuple[TimedRows, int] | None = None

    @property
    def ids(self) -> np.ndarray:
        return NO_KEY if self.rows is None else self.rows.ids

    @property
    def bytes(self) -> int:
        return 0 if self.rows is None else int(self.rows.table.nbytes) + self.rows.ts.nbytes

    def again(self, scan: Scan, rows: TimedRows) -> TimedRows:
        """The rows to be scanned, now that these have come: those of the same keys that were kept come before them."""
        self._next = None
        if not (scan.rereads or self.spec.measures or self.spec.extent == "open"):
            return rows
        kept, new = self.rows, _with_ids(rows)
        if kept is None or not scan.rereads:
            self._next = (new if kept is None else _joined(kept, new), 0 if kept is None else kept.ts.size)
            return rows
        touched = np.ones(kept.ids.size, bool) if scan.over else np.isin(kept.ids, new.ids)
        others, same = kept.some(np.flatnonzero(~touched)), kept.some(np.flatnonzero(touched))
        self._next = _joined(_joined(others, same), new), others.ts.size
        return _joined(same, new)

    def add(self, new: np.ndarray) -> None:
        """The rows were scanned, and these frames found in them."""
        if self._next is not None:
            self.rows, before = self._next
            new[:, AT] += before

    def take(self, rows: TimedRows) -> None:
        """Rows that were scanned elsewhere."""
        self.rows = _with_ids(rows) if self.rows is None else _joined(self.rows, _with_ids(rows))

    def values(self, extra: dict[str, pa.Array], frames: np.ndarray) -> dict[str, pa.Array]:
        """What is reported of these frames, with their measures."""
        if self.rows is None:
            return extra
        table = pattern_rows.counted(self.rows.table, self.rows.ts.size)
        return with_measures(self.spec, table, self.rows.ids, frames[:, : AT + 1].T, extra)

    def drop(self, scan: Scan, frames: np.ndarray) -> None:
        """Keep the last rows of each key, as many as the scan still needs."""
        if self.rows is None:
            return
        rows, kept = self.rows, scan.kept_rows
        order = np.argsort(rows.ids, kind="stable")
        counts = np.bincount(rows.ids, minlength=kept.size)
        rank = np.arange(order.size) - np.repeat(np.cumsum(counts) - counts, counts)
        keep = np.zeros(order.size, bool)
        keep[order] = rank >= np.repeat(counts - kept[: counts.size], counts)
        self.rows = rows if bool(keep.all()) else rows.some(np.flatnonzero(keep))

    def since(self, scan: Scan) -> np.ndarray:
        """Of each key the ts of its first row that is kept; the end of time where none is."""
        found = np.full(scan.keyed.shape[0], END_OF_TIME)
        if self.rows is not None:
            np.minimum.at(found, self.rows.ids, self.rows.ts)
        return found

    def point(self, frames: np.ndarray) -> None:
        """No match is open: there is none to find its events again."""

    def renumber(self, ids: np.ndarray) -> None:
        """Keys have other ids now: ids[k] is what k has become."""
        if self.rows is not None:
            self.rows = self.rows.known_by(ids[self.rows.ids])

    def state(self) -> State:
        if self.rows is None:
            return {}, {}
        return {}, {"ids": self.rows.ids, "ts": self.rows.ts, "table": table_to_array(self.rows.table)}

    def restore(self, state: State) -> None:
        _, arrays = state
        self.rows = None
        if arrays:
            self.rows = TimedRows(table_from_array(arrays["table"]), arrays["ts"], arrays["ids"])


def _with_ids(rows: TimedRows) -> TimedRows:
    return rows if rows.ids.size else rows.known_by(np.zeros(rows.ts.size, ID))


def _joined(one: TimedRows, other: TimedRows) -> TimedRows:
    table = pa.concat_tables([one.table, other.table]).combine_chunks()
    return TimedRows(table, np.concatenate([one.ts, other.ts]), np.concatenate([one.ids, other.ids]))
