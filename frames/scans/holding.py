"""Where the conditions of a pattern hold, in a batch: by NumPy where they compare numbers, by SQL else."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from frames.patterns import rows as pattern_rows
from frames.patterns.comparisons import Compared
from frames.patterns.compiled import Compiled
from swag.tables.columns import column, field, to_arrow

COMPARED = (pa.int64(), pa.float64())
EXACT = 2**53  # whole numbers that float64 has
Rows = slice | np.ndarray  # a piece of those of a batch, or some by number


class Values(NamedTuple):
    """A column as NumPy has it: values, which of them are there (None: all), and its type."""

    values: np.ndarray
    valid: np.ndarray | None
    kind: pa.DataType

    def some(self, rows: Rows) -> "Values":
        """Of these rows."""
        return Values(self.values[rows], None if self.valid is None else self.valid[rows], self.kind)


class Conditions:
    """Of a batch. Owns its columns, as NumPy has them, once they were asked for."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._read: dict[str, Values | None] = {}

    def holding(self, pattern: Compiled, symbol: int, rows: Rows, before: dict[str, Values]) -> np.ndarray:
        """For which of some rows the condition of a symbol holds. before: what PREV reads of these rows, by name."""
        read = [self._sides(each, rows, before) for each in pattern.compared[symbol] or ()]
        if read and None not in read:
            return _compared(read)
        some = self.table.slice(rows.start, rows.stop - rows.start) if isinstance(rows, slice) else None
        some = self.table.take(pa.array(rows)) if some is None else some
        for name, (values, valid, kind) in before.items():
            some = some.append_column(name, to_arrow(values, valid, kind))
        return pattern_rows.satisfying(pattern, symbol, some)

    def _sides(self, compared: Compared, rows: Rows, before: dict[str, Values]) -> tuple[Any, ...] | None:
        """Both sides, if NumPy compares them exactly: numbers of one type, and constants that it has."""
        sides = [
            self._column(side, rows, before) if isinstance(side, str) else side
            for side in (compared.left, compared.right)
        ]
        kinds = {None if each is None else each.kind for each in sides if not isinstance(each, int | float)}
        kind = next(iter(kinds))
        if len(kinds) > 1 or kind not in COMPARED:
            return None
        left, right = (_constant(each, kind) if isinstance(each, int | float) else each for each in sides)
        return None if left is None or right is None else (compared.op, left, right)

    def _column(self, name: str, rows: Rows, before: dict[str, Values]) -> Values | None:
        if name in before:
            return before[name]
        if name not in self._read:
            known = column(self.table, name, "DEFINE reads").type in COMPARED
            read = field(self.table, name, "DEFINE reads") if known else None
            self._read[name] = None if read is None else Values(read.values, read.valid, read.type)
        found = self._read[name]
        return None if found is None else found.some(rows)


def _constant(number: float, kind: pa.DataType) -> Values | None:
    """A number as columns of a type have it; None: they do not, exactly."""
    exact = abs(number) <= EXACT if kind == COMPARED[1] else isinstance(number, int) and abs(number) < 2**63
    return Values(np.array(number, kind.to_pandas_dtype()), None, kind) if exact else None


def _compared(comparisons: list[Any]) -> np.ndarray:
    """Where all of them hold; nothing holds for null, and no comparison does for NaN."""
    found: Any = True
    for op, left, right in comparisons:
        found = op(left.values, right.values) & found
        for side in (left, right):
            found = found if side.valid is None else found & side.valid
    return np.asarray(found)
