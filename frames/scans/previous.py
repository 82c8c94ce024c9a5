"""What the rows before have, of every key: columns for PREV, from batch to batch.

rows of a batch, in two parts      a b a b | a c a b        each part is gone through by a core of its own
the row before, of the same key    ? ? 0 1 | ? ? 4 ?        ?: the first of its key in the part; it is put in
                                   - - 0 1 | 2 - 4 3        when the last rows of the part before it are known
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from frames.patterns import rows as pattern_rows
from frames.patterns.conditions import Shifted
from frames.scans.holding import Values
from frames.scans.scan import NONE, Parallel, extended
from kernels.frames import patterns as frame_patterns
from swag.tables.columns import field, fixed, is_discrete, room


class Level(NamedTuple):
    """What PREV reads: SQL over columns, its type, how many rows back."""

    text: str
    kind: pa.DataType
    back: int

    @property
    def name(self) -> str:
        return Shifted(self.text, self.back).name


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
    (`last`, `known`), which move on with each level that is asked for."""

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

    def columns(self, chain: list[Level], table: pa.Table) -> dict[str, Values]:
        """Of all levels, by name. PREV(x, 2) is the PREV of PREV(x)."""
        found: dict[str, Values] = {}
        for i, level in enumerate(chain):
            if level.back == 1:
                read = field(pa.table({"x": pattern_rows.value_of(level.text, table)}), "x", "PREV reads")
                source = Values(read.values, read.valid, level.kind)
            else:
                source = found[Shifted(level.text, level.back - 1).name]
            found[level.name] = self._shifted(i, source)
        return found

    def _shifted(self, i: int, source: Values) -> Values:
        size, keys = source.values.size, self.last[i].size
        out = room(size, source.values.dtype), room(size, bool)
        given = fixed(source.values), fixed(NONE if source.valid is None else source.valid)
        edges = [size * part // self.parts for part in range(self.parts + 1)]

        def shift(part: int) -> tuple[np.ndarray, ...]:
            own = np.zeros(keys, source.values.dtype), np.zeros(keys, bool), np.full(keys, -1)
            frame_patterns.previous(self.ids, (edges[part], edges[part + 1]), *given, own, out)
            return own

        for last, known, firsts in self.parallel(shift, range(self.parts)):
            seen = np.flatnonzero(firsts >= 0)
            out[0][firsts[seen]], out[1][firsts[seen]] = self.last[i][seen], self.known[i][seen]
            self.last[i][seen], self.known[i][seen] = last[seen], known[seen]
        return Values(*out, source.kind)
