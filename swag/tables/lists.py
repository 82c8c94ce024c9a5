"""Columns of lists, made of values that lie one behind the other."""

import numpy as np
import pyarrow as pa

from swag.tables.columns import one_chunk


def ranges(first: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """first[0], first[0] + 1 … counts[0] of them, then those from first[1] on, and so on."""
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1]) if ends.size else 0) + np.repeat(first - ends + counts, counts)


def lists(values: pa.Array | pa.ChunkedArray, counts: np.ndarray) -> pa.Array:
    """The first counts[0] values, the next counts[1], …; a list of none is null."""
    offsets = np.concatenate([[0], np.cumsum(counts)])
    kind = pa.list_ if offsets[-1] < 2**31 else pa.large_list
    array = pa.ListArray if offsets[-1] < 2**31 else pa.LargeListArray
    width = np.int32 if offsets[-1] < 2**31 else np.int64
    bounds, none = pa.array(offsets.astype(width)), pa.array(counts == 0)
    return array.from_arrays(bounds, one_chunk(values), kind(values.type), mask=none)
