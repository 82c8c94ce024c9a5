"""What the rows before have, of every key: columns for PREV, from batch to batch.

rows of a batch, in two parts      a b a b | a c a b        each part is gone through by a core of its own
the row before, of the same key    ? ? 0 1 | ? ? 4 ?        ?: the first of its key in the part; it is put in
                                   - - 0 1 | 2 - 4 3        when the last rows of the part before it are known
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from frames.patterns import rows as pattern_rows
from frames.patterns.conditions import Shifted
from frames.scans.holding import Rows, Values
from frames.scans.scan import NONE, Parallel, extended
from kernels.frames import patterns as frame_patterns
from swag.tables.columns import field, fixed, is_discrete, room

PREVIOUS_AT_ONCE = 1 << 15  # rows whose columns stay in the cache while all conditions are computed of them
SEEN = -2  # in place of the first row of a key, where nothing is to be put in
Taking = Callable[[Rows, dict[str, Values]], None]


class Memory(NamedTuple):
    """Of every key its last value, whether there is one, and its first row; -1: it has had none."""

    last: np.ndarray
    known: np.ndarray
    firsts: np.ndarray


class Level(NamedTuple):
    """What PREV reads: SQL over columns, its type, how many rows back."""

    text: str
    kind: pa.DataType
    back: int

    @property
    def name(self) -> str:
        return Shifted(self.text, self.back).name

    @property
    def before(self) -> str:
        """The name of what is one row less back."""
        return Shifted(self.text, self.back - 1).name


def levels(shifted: Iterable[Shifted], schema: pa.Schema) -> list[Level] | None:
    """One for each row that PREV goes back. None: some of what it reads are no numbers or times."""
    found: list[Level] = []
    furthest: dict[str, int] = {}
    for each in shifted:
        furthest[each.text] = max(each.back, furthest.get(each.text, 0))
    for text, most in furthest.items():
        kind = pattern_rows.value_of(text, schema.empty_table()).type
        if not (is_discrete(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
            return None
        found += [Level(text, kind, back) for back in range(1, most + 1)]
    return found


class PreviousRows:
    """A batch of some keys. Owns the last values of every key, per level: as they were before the batch, in new arrays
    (`last`, `known`), which move on as rows are gone through, once."""

    def __init__(
        self,
        ids: np.ndarray,
        last: tuple[np.ndarray, ...],
        known: tuple[np.ndarray, ...],
        parts: int,
        parallel: Parallel,
    ) -> None:
        self.ids, self.parts, self.parallel = ids, parts, parallel
        count = int(ids.max(initial=0)) + 1 if last else 1
        self.last = tuple(extended(each, count, 0).copy() for each in last)
        self.known = tuple(extended(each, count, False).copy() for each in known)

    def each_piece(self, chain: list[Level], table: pa.Table, take: Taking) -> None:
        """take(rows, what PREV reads of them), for pieces that stay in the cache. The first rows of keys in a part are
        taken again when the parts before it are known.

        PREV(x, 2) is the PREV of PREV(x): that is found of all rows first. Of most patterns it is never written to
        memory, which took as long as the search itself.
        """
        deep = max((level.back for level in chain), default=0) > 1
        before = self._columns(chain, table) if deep else {}
        sources = [] if deep else [self._source(level, table) for level in chain]
        edges = [table.num_rows * part // self.parts for part in range(self.parts + 1)]

        def of_part(part: int) -> list[Memory]:
            own = [self._memory(i, part) for i in range(len(sources))]
            room_of = [
                Values(np.empty(PREVIOUS_AT_ONCE, s.values.dtype), np.empty(PREVIOUS_AT_ONCE, bool), s.kind)
                for s in sources
            ]
            for begin in range(edges[part], edges[part + 1], PREVIOUS_AT_ONCE):
                rows = slice(begin, min(begin + PREVIOUS_AT_ONCE, edges[part + 1]))
                found = {name: each.some(rows) for name, each in before.items()}
                for level, source, memory, out in zip(chain, sources, own, room_of, strict=False):
                    found[level.name] = self._shifted(source, rows, memory, out)
                take(rows, found)
            return own

        for part, own in enumerate(self.parallel(of_part, range(self.parts))):
            if own and part:
                seen = np.flatnonzero(own[0].firsts >= 0)
                there = zip(chain, self.last, self.known, strict=True)
                take(own[0].firsts[seen], {each.name: Values(x[seen], y[seen], each.kind) for each, x, y in there})
            for i, memory in enumerate(own):
                self._go_on(i, memory)

    def _columns(self, chain: list[Level], table: pa.Table) -> dict[str, Values]:
        """Of all levels, by name."""
        found: dict[str, Values] = {}
        for i, level in enumerate(chain):
            source = self._source(level, table) if level.back == 1 else found[level.before]
            found[level.name] = self._column(i, source)
        return found

    def _source(self, level: Level, table: pa.Table) -> Values:
        read = field(pa.table({"x": pattern_rows.value_of(level.text, table)}), "x", "PREV reads")
        return Values(read.values, read.valid, level.kind)

    def _column(self, i: int, source: Values) -> Values:
        size = source.values.size
        out = Values(room(size, source.values.dtype), room(size, bool), source.kind)
        edges = [size * part // self.parts for part in range(self.parts + 1)]

        def shift(part: int) -> Memory:
            own, rows = self._memory(i, part), slice(edges[part], edges[part + 1])
            self._shifted(source, rows, own, out.some(rows))
            return own

        for memory in self.parallel(shift, range(self.parts)):
            seen = np.flatnonzero(memory.firsts >= 0)
            assert out.valid is not None
            out.values[memory.firsts[seen]], out.valid[memory.firsts[seen]] = self.last[i][seen], self.known[i][seen]
            self._go_on(i, memory)
        return out

    def _memory(self, i: int, part: int) -> Memory:
        """What is known of every key where a part begins: of the first all, of others nothing yet."""
        last, known = self.last[i], self.known[i]
        if part == 0:
            return Memory(last.copy(), known.copy(), np.full(last.size, SEEN))
        return Memory(np.zeros_like(last), np.zeros_like(known), np.full(last.size, -1))

    def _shifted(self, source: Values, rows: slice, memory: Memory, out: Values) -> Values:
        """Of some rows, into the first of `out`."""
        given = fixed(source.values), fixed(NONE if source.valid is None else source.valid)
        frame_patterns.previous(self.ids, (rows.start, rows.stop), *given, tuple(memory), (out.values, out.valid))
        return out.some(slice(0, rows.stop - rows.start))

    def _go_on(self, i: int, memory: Memory) -> None:
        """Behind the rows of a part, its keys have other last values."""
        seen = np.flatnonzero(memory.firsts != -1)
        self.last[i][seen], self.known[i][seen] = memory.last[seen], memory.known[seen]
