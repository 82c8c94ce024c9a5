"""Spark against embedded: the same rows, types and values, in any order."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def assert_same(actual: pa.Table, expected: pa.Table, by: str) -> None:
    """by: a column that tells rows apart."""
    assert actual.column_names == expected.column_names
    actual, expected = actual.sort_by(by), expected.sort_by(by)
    assert actual.num_rows == expected.num_rows
    for name in expected.column_names:
        a, e = actual.column(name).combine_chunks(), expected.column(name).combine_chunks()
        assert plain(a.type) == plain(e.type), name
        assert_equal(a, e, name)


def plain(kind: pa.DataType) -> Any:
    """A type as Spark can say it: strings of any width, timestamps in microseconds, zoned or not."""
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(kind) and kind.tz else kind


def assert_equal(a: pa.Array, e: pa.Array, name: str) -> None:
    assert a.is_null().to_pylist() == e.is_null().to_pylist(), name
    if pa.types.is_floating(e.type):
        x, y = (np.asarray(pc.fill_null(each, 0.0)) for each in (a, e))
        scale = np.abs(y[np.isfinite(y)]).max(initial=0)
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9 * scale, err_msg=name)
    elif not pa.types.is_null(e.type):
        assert a.cast(plain(a.type)).to_pylist() == e.cast(plain(e.type)).to_pylist(), name
