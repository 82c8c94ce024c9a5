"""Patterns at work: conditions as bits of every row, and a search for matches that is a table (or backtracking.py).

Where conditions are about rows alone and the rows before them, all that is remembered of a key is the state of its
search, where each of its threads began, and the last values that PREV will ask for.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from frames.patterns import rows as pattern_rows
from frames.patterns.compiled import Compiled
from frames.scans.holding import Conditions, Rows, Values
from frames.scans.previous import PreviousRows, levels
from frames.scans.scan import KeyedRows, Parallel, Scan, Share, any_fields, one_by_one
from frames.specs import Pattern
from kernels.frames import patterns as frame_patterns
from kernels.frames.framing import ROWS, SCAN_ROWS, START, ScannedEvents
from kernels.frames.patterns import BEGAN, FIRST, NUMBER, STATE, THREAD, THREADS, WHEN, WIDTH
from swag.tables.columns import Clock, Field, is_discrete

DISTANCES = " distances"  # the name under which `columns` gives them; frames/finding/measures.py takes them off


class Fields(dict[str, Field]):
    """The columns of a batch as fingerprints want them, and the batch itself."""

    table: pa.Table


class PreparedRows(NamedTuple):
    """The conditions of a batch as bits; and, of every key, the last values that PREV will ask for."""

    bits: np.ndarray
    last: tuple[np.ndarray, ...]
    known: tuple[np.ndarray, ...]


class PatternScan(Scan):
    """What both searches have in common: a match has beside it how many events at its first ts came before it
    (`skips`), and how many rows before the one that decided it it began (`distances`; if only the end of the stream
    did, before that end). No match is open: it is reported when it is certain.

    A key whose search rests but whose last rows PREV will ask for has ROWS = -1: it is remembered, and holds up nobody.
    """

    spec: Pattern
    skips: np.ndarray
    reads = "the pattern reads"
    extras = ("skips", "distances")
    ends_late = looks_ahead = True

    def __init__(self, spec: Pattern, schema: pa.Schema, clock: Clock) -> None:
        super().__init__(spec, schema, clock)
        self.pattern: Compiled = spec.compiled()
        self.rule = tuple(self.lengths)[:4]
        self.skips, self.distances = np.zeros(SCAN_ROWS, np.int64), np.zeros(SCAN_ROWS, np.int64)
        self.reported = ("distances",) if spec.measures else ()
        self.may_fail = bool(spec.measures)  # which are computed once matches are known
        self.needs_rows = bool(spec.measures) or spec.extent == "open"
        nothing = pattern_rows.counted(schema.empty_table(), 0)
        nothing = pattern_rows.in_order(self.pattern, nothing, np.zeros(0, np.int64))
        pattern_rows.holding(self.pattern, nothing, range(len(self.pattern.symbols)), np.zeros(0, np.uint64))
        pattern_rows.growing(self.pattern, nothing)  # types that do not go together are refused now

    def fields(self, table: pa.Table) -> dict[str, Field]:
        found = Fields(any_fields(table, self.kinds, self.reads))
        found.table = table
        return found

    def try_out(self, fields: dict[str, Field], size: int) -> None:
        assert isinstance(fields, Fields)
        pattern_rows.try_out(self.pattern, fields.table)

    def data(self, fields: dict[str, Field], size: int) -> Any:
        assert isinstance(fields, Fields)
        return pattern_rows.counted(fields.table, size)

    def columns(self, beside: dict[str, np.ndarray]) -> dict[str, pa.Array]:
        return {DISTANCES: pa.array(beside["distances"][0])} if self.reported else {}


class TableScan(PatternScan):
    """Remembers of a key its search, a row of `search`; of each column that PREV reads, the last values (`last`) and
    whether there are any (`known`)."""

    def __init__(self, spec: Pattern, schema: pa.Schema, clock: Clock) -> None:
        super().__init__(spec, schema, clock)
        assert self.pattern.machine is not None
        self.machine = self.pattern.machine
        self.chain = levels(self.pattern.shifted, schema) or []
        self.search = np.zeros((0, THREADS + self.machine.matches.shape[1] * WIDTH), np.int64)
        self.last = tuple(np.zeros(0, np.int64 if is_discrete(each.kind) else np.float64) for each in self.chain)
        self.known = tuple(np.zeros(0, bool) for _ in self.chain)
        self.per_key = {"search": 0, "last": 0, "known": False}

    @property
    def kept_rows(self) -> np.ndarray:
        """Of each key: how many of its last rows measures may still be read off, or be the one behind a match."""
        pending = np.maximum(self.keyed[:, ROWS], 0) + self.pattern.back
        return pending if self.needs_rows else np.zeros_like(pending)

    def ready(self, data: Any, rows: KeyedRows, parts: int, parallel: Parallel) -> PreparedRows:
        before = PreviousRows(rows.ids, self.last, self.known, parts, parallel)
        conditions, bits = Conditions(data), np.empty(data.num_rows, np.uint8)

        def hold(some: Rows, previous: dict[str, Values]) -> None:
            found: Any = np.uint8(0)
            for i, symbol in enumerate(self.pattern.conditional):
                found = found | conditions.holding(self.pattern, symbol, some, previous).view(np.uint8) << np.uint8(i)
            bits[some] = found

        before.each_piece(self.chain, data, hold)
        return PreparedRows(bits, before.last, before.known)

    def run(self, ts: np.ndarray, ids: np.ndarray, data: Any, share: Share | None = None) -> bool:
        """A share of what is ready; or a batch by itself, behind which keys have other last values."""
        if share is not None:
            return super().run(ts, ids, data, share)
        prepared = self.ready(data, KeyedRows(ts, ids), 1, one_by_one)
        in_order = super().run(ts, ids, prepared)
        self.last, self.known = prepared.last, prepared.known
        return in_order

    def step(self, events: ScannedEvents, data: Any, first: int) -> int:
        out = self.found, self.skips, self.distances
        return int(frame_patterns.find(events, data.bits, self.machine, self.rule, self.search, out, first))

    def touch(self) -> None:
        """Where the first undecided row of each key is."""
        kind = self.machine.kinds[self.search[:, STATE], 0]
        alone, number = kind > THREAD + 1, self.search[:, NUMBER]
        first = np.where(alone, number - 1, self.search[:, THREADS + FIRST])
        began = np.where(alone, self.search[:, WHEN], self.search[:, THREADS + BEGAN])
        self.keyed[:, ROWS] = np.where(kind > 0, number - first, -1 if self.pattern.back else 0)
        self.keyed[:, START] = np.where(kind > 0, began, 0)

    def finish(self) -> None:
        kinds = self.machine.kinds[self.search[:, STATE]]
        self.make_room(self.count + int(((kinds > 0) & (kinds % 2 == 0)).sum()))
        frame_patterns.finish(self.machine, self.rule, self.search, (self.found, self.skips, self.distances))
        self.touch()
