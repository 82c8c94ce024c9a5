"""Decimals as whole numbers of their smallest unit, and back: 12.50 of two digits behind the point is 1250.

What fits int64 is computed with exactly, by all that knows whole numbers; what does not is refused where it would be
computed with.
"""

import numpy as np
import pyarrow as pa

from swag.errors import BadType

ALWAYS_FIT = 18  # digits: every decimal of so many is an int64


def unscaled(array: pa.Array, name: str) -> np.ndarray:
    """The whole numbers of a column of decimals; 0 where it is null."""
    width = array.type.byte_width // 8
    if not len(array):
        return np.zeros(0, np.int64)
    words = np.frombuffer(array.buffers()[1], np.int64, width * len(array), array.offset * width * 8).reshape(-1, width)
    low, fits = words[:, 0], (words[:, 1:] == words[:, :1] >> 63).all(axis=1)
    if array.null_count:
        valid = np.asarray(array.is_valid())
        low, fits = np.where(valid, low, 0), fits | ~valid
    if not fits.all():
        row = int(np.argmin(fits))
        raise BadType(
            f'"{name}" ({array.type}) has {array[row].as_py()} in row {row}: decimals are computed with as whole '
            f"numbers of {array.type.scale} digits behind the point, and that one does not fit int64.",
            f'CAST("{name}" AS DOUBLE), or AS DECIMAL(18, …) with fewer digits behind the point',
        )
    return np.ascontiguousarray(low)


def from_unscaled(values: np.ndarray, bitmap: np.ndarray | None, kind: pa.DataType) -> pa.Array:
    """Whole numbers as decimals of a type. bitmap: a bit for each, 0 where it is null."""
    words = np.empty((values.size, 2), np.int64)
    words[:, 0], words[:, 1] = values, values >> 63
    buffers = [None if bitmap is None else pa.py_buffer(bitmap), pa.py_buffer(words)]
    carrier = kind if pa.types.is_decimal128(kind) else pa.decimal128(38, kind.scale)
    array = pa.Array.from_buffers(carrier, values.size, buffers)
    return array if carrier == kind else array.cast(kind)


def sum_type(kind: pa.DataType) -> pa.DataType:
    """Of a sum: as many digits as there are."""
    return pa.decimal256(76, kind.scale) if pa.types.is_decimal256(kind) else pa.decimal128(38, kind.scale)
