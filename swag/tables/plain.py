"""Columns in encodings that Arrow's own functions do not take everywhere, laid out plainly.

string and binary views     large strings, large binaries: Arrow can not take rows of views yet
run-end encoded             one value per row: their nulls are not counted, and few functions read them
dictionaries                of text and bytes they stay; a null in one is a null row, as its own nulls are not counted,
                            and such can not be put together. Of all else one value per row: of a dictionary of dates
                            or decimals, Arrow has no null and no empty column
decimals of 32 or 64 bits   of 128 bits, which Arrow can sort and compare
decimals of hundreds        with all their digits: Arrow casts few of a negative scale

Decimals that have come in one type can be laid out in another, if they are the same there (`as_known`, `fitted`).
"""

from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from swag.errors import BadType
from swag.tables.decimals import ALWAYS_FIT, MOST_DIGITS, MOST_DIGITS_THERE_ARE, as_decimal

ENCODED = {
    kind.id for kind in (pa.string_view(), pa.binary_view(),
                         pa.decimal32(1), pa.decimal64(1), pa.decimal128(1), pa.decimal256(1),
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
    if pa.types.is_decimal(kind) and kind.scale < 0:
        return _decimal(kind.precision - kind.scale, 0)
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


def _decimal(digits: int, scale: int) -> pa.DataType:
    if digits <= MOST_DIGITS:
        return pa.decimal128(digits, scale)
    return pa.decimal256(min(digits, MOST_DIGITS_THERE_ARE), scale)


def inferred(kind: pa.DataType) -> pa.DataType:
    """The type of a column of decimals, where Arrow has read one off the digits of some: with room for others. Of 18
    digits are those that leave half of them in front of the point, as money does: they are kept as int64."""
    if kind.precision <= ALWAYS_FIT and kind.scale <= ALWAYS_FIT // 2:
        return pa.decimal128(ALWAYS_FIT, kind.scale)
    return _decimal(MOST_DIGITS if kind.precision <= MOST_DIGITS else MOST_DIGITS_THERE_ARE, kind.scale)


def are_other_decimals(kind: pa.DataType, known: pa.DataType | None) -> bool:
    """Are both decimals, but of two types?"""
    return known is not None and kind != known and pa.types.is_decimal(kind) and pa.types.is_decimal(known)


def as_known(values: Any, known: pa.DataType, what: str) -> Any:
    """Decimals of one type as those of another, which all of them are to the last digit; else refused."""
    found = where_known(values, known)
    if found.type == known:
        return found

    def is_within(row: int) -> bool:
        return bool(where_known(values.slice(0, row + 1), known).type != known)

    row = bisect_left(range(len(values)), True, key=is_within)
    kind, value, scale = values.type, values[row].as_py(), max(values.type.scale, known.scale)
    digits = max(value.adjusted(), 0) + 1 + scale
    room = _decimal(MOST_DIGITS if digits <= MOST_DIGITS else MOST_DIGITS_THERE_ARE, scale)
    raise BadType(
        f"{what} is {kind}, but has been {known} so far, which {value} in row {row} does not fit.",
        f"pa.array(values, pa.{room}) from the first batch on",
    )


def where_known(values: Any, known: pa.DataType) -> Any:
    """The same, where all are such; else they stay as they are."""
    try:
        return as_decimal(values, known)
    except pa.ArrowInvalid:
        return values


def fitted(table: pa.Table, known: Mapping[str, pa.DataType]) -> pa.Table:
    """Columns of decimals in the types that they have had, by name."""
    for i, field in enumerate(table.schema):
        if are_other_decimals(field.type, known.get(field.name)):
            own = as_known(table.column(i), known[field.name], f'column "{field.name}"')
            table = table.set_column(i, field.name, own)
    return table
