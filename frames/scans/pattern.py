"""Patterns at work: conditions as bits of every row, and a search for matches that is a table (or backtracking.py).

Where conditions are about rows alone and the rows before them, all that is remembered of a key is the state of its
search, where each of its threads began, and the last values that PREV will ask for.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from frames.patterns import rows as pattern_rows
from frames.patterns.compiled import Compiled
from frames.scans.scan import NONE, Parallel, Scan, Share, any_fields, extended
from frames.specs import Pattern
from kernels.frames import patterns as frame_patterns
from kernels.frames.framing import BLOCK, ROWS, START, ScannedEvents
from kernels.frames.patterns import BEGAN, FIRST, NUMBER, STATE, THREADS, WIDTH
from swag.tables.columns import Clock, Field, field, fixed, is_discrete, to_arrow

DISTANCES = " distances"  # the name under which `columns` gives them; frames/finding/measures.py takes them off


class Fields(dict[str, Field]):
    """The columns of a batch as fingerprints want them, and the batch itself."""

    table: pa.Table


class Prepared(NamedTuple):
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
    reads = "the pattern reads"
    honours = ("min_rows", "max_rows", "min_duration", "max_duration")
    extras = ("skips", "distances")
    ends_late = True

    def __init__(self, spec: Pattern, schema: pa.Schema, clock: Clock) -> None:
        super().__init__(spec, schema)
        self.pattern: Compiled = spec.compiled()
        self.rule = tuple(spec.allowed(clock.unit))
        self.skips, self.distances = np.zeros(BLOCK, np.int64), np.zeros(BLOCK, np.int64)
        self.reported = ("distances",) if spec.measures else ()
        nothing = pattern_rows.in_order(self.pattern, schema.empty_table(), np.zeros(0, np.int64))
        pattern_rows.holding(self.pattern, nothing, range(len(self.pattern.symbols)), np.zeros(0, np.uint64))
        pattern_rows.growing(self.pattern, nothing)  # types that do not go together are refused now

    def fields(self, table: pa.Table) -> dict[str, Field]:
        found = Fields(any_fields(table, self.kinds, self.reads))
        found.table = table
        return found

    def data(self, fields: dict[str, Field], size: int) -> Any:
        assert isinstance(fields, Fields)
        return fields.table

    def columns(self, beside: dict[str, np.ndarray]) -> dict[str, pa.Array]:
        return {DISTANCES: pa.array(beside["distances"][0])} if self.reported else {}


class TableScan(PatternScan):
    """Remembers of a key its search, a row of `search`; of each column that PREV reads, the last values (`last`) and
    whether there are any (`known`)."""

    def __init__(self, spec: Pattern, schema: pa.Schema, clock: Clock) -> None:
        super().__init__(spec, schema, clock)
        assert self.pattern.machine is not None
        self.machine = self.pattern.machine
        self.chain = levels(self.pattern, schema) or []
        self.search = np.zeros((0, THREADS + self.machine.matches.shape[1] * WIDTH), np.int64)
        self.last = tuple(np.zeros(0, np.int64 if is_discrete(each.kind) else np.float64) for each in self.chain)
        self.known = tuple(np.zeros(0, bool) for _ in self.chain)
        self.per_key = {"search": 0, "last": 0, "known": False}

    @property
    def kept(self) -> np.ndarray:
        """Of each key: how many of its last rows measures may still be read off."""
        pending = np.maximum(self.keyed[:, ROWS], 0) + self.pattern.back
        return pending if self.spec.measures else np.zeros_like(pending)

    def ready(self, data: Any, ids: np.ndarray, parts: int, parallel: Parallel) -> Prepared:
        count = int(ids.max(initial=0)) + 1
        last = tuple(extended(each, count, 0).copy() for each in self.last)
        known = tuple(extended(each, count, False).copy() for each in self.known)
        table = data
        for level, *own in zip(self.chain, last, known, strict=True):
            table = level.extend(table, ids, tuple(own), parts, parallel)
        bits = np.zeros(data.num_rows, np.uint8)

        def hold(begin: int, end: int) -> None:
            pattern_rows.holding(
                self.pattern, table.slice(begin, end - begin), self.pattern.conditional, bits[begin:end]
            )

        edges = [data.num_rows * i // parts for i in range(parts + 1)]
        parallel(lambda edge: hold(*edge), itertools.pairwise(edges))
        return Prepared(bits, last, known)

    def run(self, ts: np.ndarray, ids: np.ndarray, data: Any, share: Share | None = None) -> bool:
        in_order = super().run(ts, ids, data, share)
        if share is None:
            self.last, self.known = data.last, data.known
        return in_order

    def step(self, events: ScannedEvents, data: Any, first: int) -> int:
        out, memory = (self.found, self.skips, self.distances), (self.keyed, self.search)
        return int(frame_patterns.find(events, data.bits, self.machine, self.rule, memory, out, first))

    def touch(self) -> None:
        """Where the first undecided row of each key is."""
        state, first = self.search[:, STATE], self.search[:, THREADS + FIRST]
        undecided = self.machine.sizes[state] > 0
        resting = -1 if self.pattern.back else 0
        self.keyed[:, ROWS] = np.where(undecided, self.search[:, NUMBER] - first, resting)
        self.keyed[:, START] = np.where(undecided, self.search[:, THREADS + BEGAN], 0)

    def finish(self) -> None:
        state = self.search[:, STATE]
        self.make_room(self.count + int(self.machine.candidates[state].sum()))
        frame_patterns.finish(self.machine, self.rule, self.search, (self.found, self.skips, self.distances))
        self.touch()


class Level(NamedTuple):
    """A column of the rows before: SQL over columns, its type, how many rows back."""

    text: str
    kind: pa.DataType
    back: int

    @property
    def name(self) -> str:
        return f"PREV({self.text}, {self.back})"

    def extend(self, table: pa.Table, ids: np.ndarray, memory: Any, parts: int, parallel: Parallel) -> pa.Table:
        """The table with this column, which is that of the level before it, one row back in each key."""
        before = self._replace(back=self.back - 1).name
        source = table.column(before) if self.back > 1 else pattern_rows.value_of(self.text, table)
        read = field(pa.table({self.text: source}), self.text, "PREV reads")
        out = np.empty(len(source), read.values.dtype), np.empty(len(source), bool)
        given = fixed(read.values), fixed(NONE if read.valid is None else read.valid)
        mask = parts - 1 if ids.size else 0
        parallel(
            lambda part: frame_patterns.previous(ids, (part, mask), *given, memory, out),
            range(parts if ids.size else 1),
        )
        return table.append_column(self.name, to_arrow(*out, self.kind))


def levels(pattern: Compiled, schema: pa.Schema) -> list[Level] | None:
    """What PREV reads, once for each row that it goes back. None: some of it are no numbers or times."""
    found: list[Level] = []
    for text in dict.fromkeys(each.text for each in pattern.shifted):
        kind = pattern_rows.value_of(text, schema.empty_table()).type
        if not (is_discrete(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
            return None
        most = max(each.back for each in pattern.shifted if each.text == text)
        found += [Level(text, kind, back) for back in range(1, most + 1)]
    return found
