"""Where the conditions of a pattern hold, in a batch: by NumPy where they compare numbers, by SQL else."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from frames.patterns import rows as pattern_rows
from frames.patterns.comparisons import Compared, Side
from frames.patterns.compiled import Compiled
from swag.tables.columns import column, field, to_arrow

COMPARED = (pa.int64(), pa.float64())
EXACT = 2**53  # whole numbers that float64 has
Holding = Callable[[slice], np.ndarray]  # of a piece of the rows: for which of them it holds


class Values(NamedTuple):
    """A column as NumPy has it: values, which of them are there (None: all), and its type."""

    values: np.ndarray
    valid: np.ndarray | None
    kind: pa.DataType


class Conditions:
    """Of a batch. Owns its columns, those of the rows before (by the names of PREV), and a table of both, which is made
    when it is asked for."""

    def __init__(self, table: pa.Table, before: dict[str, Values]) -> None:
        self.table, self.before = table, before
        self._whole: pa.Table | None = None

    def of(self, pattern: Compiled, symbol: int) -> Holding:
        """How to find out where the condition of a symbol holds."""
        read = [self._sides(each) for each in pattern.compared[symbol] or ()]
        if read and all(each is not None for each in read):
            return lambda piece: _compared(read, piece)
        whole = self._with_before()
        return lambda piece: pattern_rows.satisfying(
            pattern, symbol, whole.slice(piece.start, piece.stop - piece.start)
        )

    def _with_before(self) -> pa.Table:
        if self._whole is None:
            self._whole = self.table
            for name, (values, valid, kind) in self.before.items():
                self._whole = self._whole.append_column(name, to_arrow(values, valid, kind))
        return self._whole

    def _sides(self, compared: Compared) -> tuple[Any, ...] | None:
        """Both sides, if NumPy compares them exactly: numbers of one type, and constants that it has."""
        columns = [self._column(side) for side in (compared.left, compared.right) if isinstance(side, str)]
        kinds = {None if each is None else each.kind for each in columns}
        kind = next(iter(kinds))
        if len(kinds) > 1 or kind not in COMPARED:
            return None
        left, right = self._side(compared.left, kind), self._side(compared.right, kind)
        return None if left is None or right is None else (compared.op, left, right)

    def _side(self, side: Side, kind: pa.DataType) -> Values | None:
        if isinstance(side, str):
            return self._column(side)
        exact = abs(side) <= EXACT if kind == COMPARED[1] else isinstance(side, int) and abs(side) < 2**63
        return Values(np.array(side, kind.to_pandas_dtype()), None, kind) if exact else None

    def _column(self, name: str) -> Values | None:
        if name in self.before:
            return self.before[name]
        if column(self.table, name, "DEFINE reads").type not in COMPARED:
            return None
        read = field(self.table, name, "DEFINE reads")
        return Values(read.values, read.valid, read.type)


def _compared(comparisons: list[Any], piece: slice) -> np.ndarray:
    """Where all of them hold; nothing holds for null, and no comparison does for NaN."""
    found: Any = True
    for op, left, right in comparisons:
        found = op(_cut(left.values, piece), _cut(right.values, piece)) & found
        for side in (left, right):
            found = found if side.valid is None else found & side.valid[piece]
    return np.asarray(found)


def _cut(values: np.ndarray, piece: slice) -> Any:
    return values[piece] if values.ndim else values
