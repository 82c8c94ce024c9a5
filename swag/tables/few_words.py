"""A few rows of plain numbers, as arrays: an Arrow table of one event takes longer to make and read than to apply."""

from typing import Any

import numpy as np
import pyarrow as pa

FEW_ROWS = 64  # rows
WORDS = (pa.int64(), pa.float64())  # types that are written as they are
TYPES = {np.dtype(np.int64): WORDS[0], np.dtype(np.float64): WORDS[1]}
PLAIN = {int: np.dtype(np.int64), float: np.dtype(np.float64)}  # what Arrow makes of values of these types


def few_words(columns: Any) -> dict[str, np.ndarray]:
    """Columns as arrays that nobody writes to, if these are a few rows of whole numbers, or of floats, none of which is
    null; else nothing. Arrow would make the same of them."""
    if type(columns) is not dict:
        return {}
    found: dict[str, np.ndarray] = {}
    size = -1
    for name, values in columns.items():
        array = _array(values)
        if array is None or type(name) is not str or size not in (-1, array.size) or not 0 < array.size <= FEW_ROWS:
            return {}
        found[name], size = array, array.size
    return found


def table_of_words(words: dict[str, np.ndarray]) -> pa.Table:
    return pa.Table.from_arrays([pa.array(each) for each in words.values()], list(words))


def _array(values: Any) -> np.ndarray | None:
    """An array of words, if that is what Arrow would make of these values."""
    if type(values) is np.ndarray:
        if values.ndim != 1 or values.dtype not in TYPES or not values.flags.c_contiguous:
            return None
        array = values.view()
    else:
        kinds = set(map(type, values)) if type(values) is list and len(values) <= FEW_ROWS else set()
        kind = kinds.pop() if len(kinds) == 1 else None
        if kind not in PLAIN:
            return None
        array = np.array(values)
        if array.dtype != PLAIN[kind]:  # whole numbers beyond 64 bits
            return None
    array.flags.writeable = False
    return array
