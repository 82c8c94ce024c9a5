"""Conditions as bounds: which answers pass is two comparisons, for thousands of conditions in one vector."""

import math
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.query.condition import Condition
from swag.tables import constants
from swag.tables.comparing import within


class Bounds(NamedTuple):
    """An answer passes condition i if low[i] <= answer <= high[i]; NaN and null pass none."""

    low: np.ndarray
    high: np.ndarray


def has_bounds(condition: Condition | None, kind: pa.DataType) -> bool:
    """Is it about numbers, of a type that NumPy has?"""
    if condition is None or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return False
    return constants.is_number(condition.low) and (condition.op != "between" or constants.is_number(condition.high))


def carrier(kind: pa.DataType) -> pa.DataType:
    """What answers of a number's type are compared as. Whole numbers that are computed with fit int64."""
    return pa.float64() if pa.types.is_floating(kind) else pa.int64()


def bounds_of(conditions: list[Condition], kind: pa.DataType) -> Bounds:
    """kind: int64 or float64."""
    dtype = np.dtype(kind.to_pandas_dtype())
    low, high = np.array([_bounds(each, kind, dtype) for each in conditions], dtype).reshape(-1, 2).T.copy()
    return Bounds(low, high)


def _bounds(condition: Condition, kind: pa.DataType, dtype: np.dtype) -> tuple[Any, Any]:
    if condition.op == "between":
        low, high = _one(">=", condition.low, kind, dtype), _one("<=", condition.high, kind, dtype)
        return max(low[0], high[0]), min(low[1], high[1])
    return _one(condition.op, condition.low, kind, dtype)


def _one(op: str, threshold: Any, kind: pa.DataType, dtype: np.dtype) -> tuple[Any, Any]:
    """The smallest and the largest value of a type that pass; where none does, the one is above the other."""
    floats = dtype.kind == "f"
    least, most = (-math.inf, math.inf) if floats else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    op, near = within(op, threshold, kind)
    if (op == ">" and near == most) or (op == "<" and near == least):
        return 1, 0
    if op in (">", ">="):
        return (near if op == ">=" else math.nextafter(near, math.inf) if floats else near + 1), most
    return least, (near if op == "<=" else math.nextafter(near, -math.inf) if floats else near - 1)


def plain_values(answers: pa.Array, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray | None]:
    """Answers as an array of the bounds' type, and which of them are not null (None: all)."""
    if answers.null_count == 0:
        return np.asarray(answers).astype(dtype, copy=False), None
    return np.asarray(pc.fill_null(answers, 0)).astype(dtype, copy=False), np.asarray(answers.is_valid())
