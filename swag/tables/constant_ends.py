"""The constants that a column is compared with, and where the values of a batch lie among them.

      constants    10    20    35
      codes      0  1  2  3  4  5  6        of a value: odd if it equals a constant; what lies between has an even one

Numbers are compared exactly, of whatever types. Text is only told apart: what equals no constant has no code.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kernels.keys import intervals
from swag.tables.columns import decoded, one_chunk
from swag.tables.comparing import nearest, within
from swag.tables.conjuncts import Comparison
from swag.tables.constants import is_number
from swag.tables.keys import is_string

FEW_CONSTANTS = 4  # constants of text


@dataclass
class Ends:
    """The constants that a column is compared with, in order, and with them the codes of its values."""

    type: pa.DataType
    asked: list[Any] = field(default_factory=list)
    values: Any = None  # of numbers an array of NumPy's, of text one of Arrow's
    places: dict[Any, int] = field(default_factory=dict)  # the code of each constant

    def settle(self) -> None:
        """All constants are known."""
        if is_string(self.type):
            self.values = pa.array(sorted(set(self.asked)), self.type)
            self.places = {each: 2 * i + 1 for i, each in enumerate(self.values.to_pylist())}
            return
        self.values = np.unique(np.array(self.asked, np.float64 if pa.types.is_floating(self.type) else np.int64))
        self.places = {each: 2 * i + 1 for i, each in enumerate(self.values.tolist())}

    def codes(self, column: pa.ChunkedArray, out: np.ndarray) -> None:
        """Of the values of a batch; of text, those that equal no constant have none."""
        if is_string(self.type):
            self._codes_of_text(one_chunk(decoded(column)), out)
            return
        intervals.code(*numbers(column, self.values.dtype), self.values, out)

    def _codes_of_text(self, array: pa.Array, out: np.ndarray) -> None:
        if len(self.values) > FEW_CONSTANTS:
            places = np.asarray(pc.index_in(array, self.values).fill_null(-1))
            out[:] = np.where(places < 0, -1, 2 * places + 1)
            return
        out[:] = -1
        for i, value in enumerate(self.values):  # to hash the values of a batch takes as long as six comparisons
            out[np.asarray(pc.equal(array, value).fill_null(False))] = 2 * i + 1

    @property
    def count(self) -> int:
        """How many codes there are."""
        return 2 * len(self.values) + 1

    @property
    def bytes(self) -> int:
        return int(self.values.nbytes)


def numbers(column: pa.ChunkedArray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """The values of a column, and which of them are not null (of no size: all)."""
    array = one_chunk(decoded(column))
    if pa.types.is_null(array.type):
        return np.zeros(len(array), dtype), np.zeros(len(array), bool)
    valid = np.asarray(array.is_valid()) if array.null_count else np.zeros(0, bool)
    array = array.fill_null(False if pa.types.is_boolean(array.type) else 0) if array.null_count else array
    return np.asarray(array).astype(dtype, copy=False), valid


def dispatched(comparison: Comparison, kind: pa.DataType) -> bool:
    """Are its constants of a type that values of the column are ordered with, exactly? (Text is only told apart.)"""
    constants = comparison.constants
    if is_string(kind):
        return comparison.op == "=" and all(isinstance(each, str) for each in constants)
    if pa.types.is_boolean(kind):
        return comparison.op == "=" and all(isinstance(each, bool) for each in constants)
    whole = pa.types.is_integer(kind) and kind != pa.uint64()
    return (whole or kind in (pa.float32(), pa.float64())) and all(map(is_number, constants))


def exact(comparison: Comparison, kind: pa.DataType) -> list[tuple[str, Any]]:
    """The same comparisons with constants of the column's own type; an operator that is none: it never holds."""
    op, constants = comparison.op, comparison.constants
    if is_string(kind) or pa.types.is_boolean(kind):
        return [(op, each) for each in constants]
    own = pa.float64() if pa.types.is_floating(kind) else pa.int64()
    if op != "=":
        return [within(op, each, own) for each in constants]
    near = [nearest(each, own) for each in constants]
    return [("=" if value == each else "never", value) for value, each in zip(near, constants, strict=True)]
