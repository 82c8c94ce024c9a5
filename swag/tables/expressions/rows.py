"""The rows that an expression is computed over, and which of them it can not be computed of.

A part of an expression is a function of `BatchRows`, and gives an array of Arrow, or a scalar where it is the same for
all rows. Nothing is masked: a branch that only some rows take is given those, once computing it of all has failed.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from swag.tables.columns import decoded, one_chunk, taken
from swag.tables.expressions.types import is_numeric, is_text

Part = Callable[["BatchRows"], Any]
MOST_SHOWN = 4  # columns of a row that is refused


class RowFailed(Exception):
    """An expression can not be computed of a row: its number in the batch, what was computed, why not, and the values
    of the row."""

    def __init__(self, row: int, what: str, why: str, values: dict[str, Any]) -> None:
        super().__init__(f"{what}: {why}")
        self.row, self.what, self.why = row, what, why
        shown = ", ".join(f"{name} = {value!r}" for name, value in list(values.items())[:MOST_SHOWN])
        self.shown = f", where {shown}" if shown else ""


def _shown(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except (OverflowError, ValueError):  # a time that Python's do not reach, as it is kept
        return value.cast(pa.int64() if value.type.bit_width == 64 else pa.int32()).as_py()


class Unfit(pa.ArrowTypeError):  # type: ignore[misc]
    """An expression can not be computed of operands of these types, whatever their values; and what to write."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class BatchRows:
    """BatchRows of a batch: the columns that an expression reads, how many rows these are, and which of the batch."""

    def __init__(self, table: pa.Table, count: int | None = None, places: np.ndarray | None = None) -> None:
        self.table, self.places = table, places
        self.count = table.num_rows if count is None else count

    def column(self, name: str) -> pa.Array:
        """Half floats as floats, since Arrow neither compares nor rounds them."""
        found = one_chunk(decoded(self.table.column(name)))
        return found.cast(pa.float32()) if pa.types.is_float16(found.type) else found

    def at(self, rows: np.ndarray) -> "BatchRows":
        """Some of them, by their numbers here."""
        places = rows if self.places is None else self.places[rows]
        return BatchRows(taken(self.table, rows), rows.size, places)

    def place(self, row: int) -> int:
        """The number that a row has in the batch."""
        return row if self.places is None else int(self.places[row])

    def failed(self, row: int, what: str, why: str) -> RowFailed:
        there = row < self.count
        values = {name: _shown(self.table.column(name)[row]) for name in self.table.column_names} if there else {}
        return RowFailed(self.place(row) if there else row, what, why, values)

    def whole(self, values: Any) -> pa.Array:
        """A value for each row, also where they are all the same."""
        if not isinstance(values, pa.Scalar):
            return one_chunk(values)
        return pa.nulls(self.count, values.type) if not values.is_valid else pa.repeat(values, self.count)


def applied(kernel: Callable[..., Any], what: str, rows: BatchRows, arguments: list[Any]) -> Any:
    """kernel(*arguments); if values are to blame for its failing, which is the first row that they are of."""
    try:
        return kernel(*arguments)
    except pa.ArrowInvalid as why:
        row = _first_failing(kernel, arguments)
        if row is None:
            raise
        said = str(_failure(kernel, arguments, row, row + 1) or why)  # of this row, where others fail, too
        raise rows.failed(row, what, said.splitlines()[0].rstrip(".")) from None
    except pa.ArrowNotImplementedError:
        raise no_such_types([each.type for each in arguments], what) from None


def no_such_types(kinds: Sequence[pa.DataType], what: str = "") -> Unfit:
    """The error for operands of types that an operator is not for; what: how that is written."""
    named = [str(each) for each in kinds]
    if len(named) == 1:
        return Unfit(f"{what} is of {named[0]}")
    return Unfit(f"{' and '.join(named)} do not go together{f' in {what}' * bool(what)}", _instead(kinds))


def _instead(kinds: Sequence[pa.DataType]) -> str:
    """What to write where values of two types stand beside each other that have nothing in common."""
    texts, numbers = ([each for each in kinds if of(each)] for of in (is_text, is_numeric))
    if len(texts) == len(kinds):
        return "s || 'a' joins texts"
    if any(map(pa.types.is_temporal, kinds)) and numbers:
        return "a time in quotes: ts >= '2024-03-01 09:30:00'; so much later: ts + INTERVAL '90' SECONDS"
    if texts and numbers:
        return "10 beside a number, '10' beside text; CAST(s AS DOUBLE), of a column of text"
    return "b, or NOT b: a condition by itself" if any(map(pa.types.is_boolean, kinds)) and numbers else ""


def _first_failing(kernel: Callable[..., Any], arguments: list[Any]) -> int | None:
    """By halving: the shortest beginning that fails. None: it fails without any rows, so it is the types."""
    arrays = [each for each in arguments if isinstance(each, pa.Array)]
    size = min((len(each) for each in arrays), default=1)
    if not arrays:
        return 0
    low, high = 0, size
    if size == 0 or _failure(kernel, arguments, 0, 0):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _failure(kernel, arguments, low, middle) else (middle, high)
    return low


def _failure(kernel: Callable[..., Any], arguments: list[Any], low: int, high: int) -> pa.ArrowInvalid | None:
    """Why some rows can not be computed; None: they can."""
    try:
        kernel(*(each.slice(low, high - low) if isinstance(each, pa.Array) else each for each in arguments))
    except pa.ArrowInvalid as why:
        return why
    return None
