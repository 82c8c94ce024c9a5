"""Patterns at work whose conditions are about the match so far, or whose search is no table: rows are read again.

      rows of a key    b b | u . . . . n n n       b: PREV asks for them, u: the first that is undecided, n: new ones
                                                   from u on, all are read again when new ones come

They are kept by who feeds the scan (frames/finding/measures.py), as many as `kept` says.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from frames.patterns import rows as pattern_rows
from frames.scans.pattern import Fields, PatternScan, TableScan
from frames.scans.previous import levels
from frames.scans.scan import Share
from frames.specs import Pattern
from kernels.frames import backtracking
from kernels.frames.framing import AT, BEGIN, COUNT, END, KEY, LAST, LEAD, ROWS, START
from swag.tables.columns import Clock, Field, taken

NO_FRAMES = np.zeros((0, 10), np.int64)
SKIP, DISTANCE = 8, 9  # behind the fields of a frame


def pattern_scan(spec: Pattern, schema: pa.Schema, clock: Clock) -> PatternScan:
    """The scan that finds the matches of a pattern in events of these types."""
    pattern = spec.compiled()
    by_table = pattern.machine is not None and levels(pattern.shifted, schema) is not None
    return TableScan(spec, schema, clock) if by_table else BacktrackingScan(spec, schema, clock)


class RowsByKey(NamedTuple):
    """Rows key by key: which they are, their ts, their key; and of each key where its own begin, and where all end.

    searched: where the search begins, behind rows that only PREV asks for."""

    rows: np.ndarray
    when: np.ndarray
    who: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    searched: np.ndarray

    @property
    def keys(self) -> np.ndarray:
        return self.who[self.begins]


class BacktrackingScan(PatternScan):
    """Remembers of a key how many rows are undecided (ROWS) and since when (START), how many before them PREV asks for
    (`before`), and how many at the very ts of the first undecided one came before it (`ties`).

    over: is nothing more to come? Then matches that only this decides are found, too; they wait in `late` for `finish`.
    """

    rereads = True
    changed = ("late",)

    def __init__(self, spec: Pattern, schema: pa.Schema, clock: Clock) -> None:
        super().__init__(spec, schema, clock)
        self.before = self.ties = np.zeros(0, np.int64)
        self.per_key = {"before": 0, "ties": 0}
        self.over, self.late = False, NO_FRAMES

    def try_out(self, fields: dict[str, Field], size: int) -> None:
        """Also what conditions over the match so far read: as numbers, or there is no search."""
        super().try_out(fields, size)
        assert isinstance(fields, Fields)
        pattern_rows.try_numbers(self.pattern, fields.table)

    @property
    def kept_rows(self) -> np.ndarray:
        """Of each key: how many of its last rows are to be read again."""
        return np.maximum(self.keyed[:, ROWS], 0) + self.before

    def run(self, ts: np.ndarray, ids: np.ndarray, data: Any, share: Share | None = None) -> bool:
        """All rows of these keys are here, from the first undecided one on, and those that PREV asks for."""
        self.over = self.over or share is not None  # stored events are all there
        laid = self._laid_out(ts, ids, share or Share(0, ts.size))
        if laid is None:
            return False
        first = np.repeat(laid.begins, laid.ends - laid.begins)
        rows = pattern_rows.in_order(self.pattern, taken(data, laid.rows), first)
        bits = np.zeros(laid.when.size, np.uint64)
        pattern_rows.holding(self.pattern, rows, range(len(self.pattern.symbols)), bits)
        growing = pattern_rows.growing(self.pattern, rows)
        found, undecided = np.empty((laid.when.size, 3), np.int64), np.empty(laid.begins.size, np.int64)
        spans = laid.searched, laid.ends
        count = backtracking.find_all(spans, self.over, bits, self.pattern.choices, growing, found, undecided)
        tied = self._tied(laid)
        self._report(laid, found[:count], tied)
        self._remember(laid, undecided, tied)
        return True

    def _laid_out(self, ts: np.ndarray, ids: np.ndarray, share: Share) -> RowsByKey | None:
        """The rows of a share, key by key; None: those of a key are not in order of ts."""
        self.share, mine = share, np.arange(share.first, share.last)
        who = ids[mine].astype(np.int64) if ids.size else np.zeros(mine.size, np.int64)
        if share.parts > 1:
            mine = mine[who % share.parts == share.part]
            who = ids[mine].astype(np.int64)
        order = np.argsort(who, kind="stable")
        mine, who = mine[order], who[order] // share.parts
        when, begin = ts[mine], np.append(True, who[1:] != who[:-1])[: who.size]
        if bool(((when[1:] < when[:-1]) & ~begin[1:]).any()):
            return None
        begins = np.flatnonzero(begin)
        ends = np.append(begins[1:], who.size)[: begins.size]
        return RowsByKey(mine, when, who, begins, ends, np.minimum(begins + self.before[who[begins]], ends))

    def _tied(self, laid: RowsByKey) -> np.ndarray:
        """Of each row: how many of its key at its ts came before it, among those that are undecided and before."""
        new = np.append(True, laid.when[1:] != laid.when[:-1])[: laid.when.size]
        new[laid.begins], at = True, np.arange(laid.when.size)
        there = laid.searched < laid.ends
        new[laid.searched[there]] = True
        since = np.maximum.accumulate(np.where(new, at, 0)) if at.size else at
        early = np.zeros(at.size, np.int64)
        early[laid.searched[there]] = self.ties[laid.keys[there]]
        return at - since + early[since]

    def _report(self, laid: RowsByKey, found: np.ndarray, tied: np.ndarray) -> None:
        """Matches that are neither too short nor too long become frames, in the order in which they became certain."""
        start, rows, sure = found.T
        last, late = start + rows - 1, sure < 0
        least, most, shortest, longest = self.rule
        span = (laid.when[last] - laid.when[start]).view(np.uint64)
        ends = np.zeros(laid.when.size, np.int64)
        ends[laid.begins] = laid.ends
        end = np.maximum.accumulate(ends)[start] if ends.size else start
        out = np.zeros((start.size, 10), np.int64)
        out[:, KEY], out[:, COUNT] = laid.who[start], rows
        out[:, BEGIN], out[:, END] = laid.when[start], laid.when[last]
        out[:, AT] = np.where(late, -1, laid.rows[sure])
        out[:, SKIP], out[:, DISTANCE] = tied[start], np.where(late, end, sure) - start
        out[:, LEAD] = out[:, DISTANCE]
        out = out[(least <= rows) & (rows <= most) & (shortest <= span) & (span <= longest)]
        self.late = np.concatenate([self.late, out[out[:, AT] < 0]])
        out = out[out[:, AT] >= 0]
        self._append(out[np.argsort(out[:, AT], kind="stable")])

    def _append(self, out: np.ndarray) -> None:
        n = self.count + out.shape[0]
        self.make_room(n)
        self.found.frames[self.count : n] = out[:, :8]
        self.skips[self.count : n], self.distances[self.count : n] = out[:, SKIP], out[:, DISTANCE]
        self.found.count[0] = n

    def _remember(self, laid: RowsByKey, undecided: np.ndarray, tied: np.ndarray) -> None:
        """Of the keys that had rows: what is undecided, and what PREV will ask for."""
        keys, left = laid.keys, laid.ends - undecided
        self.before[keys] = np.minimum(self.pattern.back, undecided - laid.begins)
        open_ = left > 0
        at = np.where(open_, undecided, 0)
        self.keyed[keys, ROWS] = np.where(open_, left, np.where(self.before[keys] > 0, -1, 0))
        self.keyed[keys, START] = np.where(open_, laid.when[at], 0)
        self.keyed[keys, LAST] = laid.when[laid.ends - 1]
        self.ties[keys] = np.where(open_, tied[at], 0)

    def touch(self) -> None: ...

    def finish(self) -> None:
        late, self.late = self.late, NO_FRAMES
        self._append(late)
