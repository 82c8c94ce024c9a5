"""Columns in encodings that Arrow's own functions do not take everywhere, laid out plainly.

string and binary views     large strings, large binaries: Arrow can not take rows of views yet
run-end encoded             one value per row: their nulls are not counted, and few functions read them
dictionaries                of text and bytes they stay; a null in one is a null row, as its own nulls are not counted,
                            and such can not be put together. Of all else one value per row: of a dictionary of dates
                            or decimals, Arrow has no null and no empty column
decimals of 32 or 64 bits   of 128 bits, which Arrow can sort and compare
"""

import numpy as np
import pyarrow as pa

ENCODED = {
    kind.id for kind in (pa.string_view(), pa.binary_view(), pa.decimal32(1), pa.decimal64(1),
                         pa.run_end_encoded(pa.int32(), pa.int8()), pa.dictionary(pa.int8(), pa.int8()))
}  # fmt: skip
WORDS = {kind.id for kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(1))}


def plain(table: pa.Table) -> pa.Table:
    """The table with every column in a layout that can be computed with; zero-copy where it can be."""
    for i, field in enumerate(table.schema):
        if field.type.id in ENCODED and not _is_plain(table.column(i)):
            table = table.set_column(i, field.name, _plain_column(table.column(i)))
    return table


def _is_plain(values: pa.ChunkedArray) -> bool:
    """Can it stay as it is? Of all encodings, a dictionary of words may."""
    nulls = pa.types.is_dictionary(values.type) and any(chunk.dictionary.null_count for chunk in values.chunks)
    return not nulls and plain_type(values.type) == values.type


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type that a column has once it is laid out plainly."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if pa.types.is_dictionary(kind):
        values = plain_type(kind.value_type)
        return pa.dictionary(kind.index_type, values, kind.ordered) if values.id in WORDS else values
    return kind


def _plain_column(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([_plain_array(chunk) for chunk in values.chunks], plain_type(values.type))


def _plain_array(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_run_end_encoded(kind):
        rows = np.arange(array.offset, array.offset + len(array))
        return _plain_array(array.values).take(pa.array(np.searchsorted(array.run_ends, rows, side="right")))
    if pa.types.is_dictionary(kind):
        stays = pa.types.is_dictionary(plain_type(kind))
        return _without_nulls_inside(array) if stays else _plain_array(array.dictionary).take(array.indices)
    return array.cast(plain_type(kind))


def _without_nulls_inside(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Rows that point at a null in the dictionary are null; the values that are left are numbered anew."""
    values = _plain_array(array.dictionary)
    valid = np.asarray(values.is_valid())
    places = pa.array(np.cumsum(valid) - 1, mask=~valid).cast(array.type.index_type)
    return pa.DictionaryArray.from_arrays(places.take(array.indices), values.drop_null(), ordered=array.type.ordered)
