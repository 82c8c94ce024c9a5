"""Events in: anything tabular to Arrow, Arrow to the two kinds of array that kernels know (int64, float64)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.arguments import LARGEST, SMALLEST, is_whole
from swag.errors import BadEvents, BadQuery, BadType, SwagError, UnknownColumn, nearest
from swag.tables import decimals
from swag.tables.inputs import as_array, sentence, table_of
from swag.tables.plain import ENCODED, plain
from swag.tables.times.points import point, whole_number

POOLED_FROM = 1 << 20  # bytes from which on memory comes from Arrow's pool
AS_THEY_ARE = (pa.int64(), pa.float64())  # the types that kernels are given


def as_table(events: Any, keep: bool = False, what: str = "events are") -> pa.Table:
    """A pyarrow.Table of what users hand in; zero-copy where it can be.

    keep: rows are kept when the call is over. What is no table of Arrow may then be written to again, so it is copied.
    what: who is told of, if it is no table.
    """
    try:
        table = events if isinstance(events, pa.Table | dict) else table_of(events, what)
        table = _from_dict(table) if isinstance(table, dict) else table
        if keep and not isinstance(events, pa.Table | pa.RecordBatch):
            table = _copied(table)
        for kind in table.schema.types:
            if kind.id in ENCODED:
                return plain(table)
        return table
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as why:
        if isinstance(why, SwagError):
            raise
        raise BadType(f"the events can not be read: {sentence(why)}", "columns of one type each") from None


def _from_dict(columns: dict[str, Any]) -> pa.Table:
    """A table of columns by name, each a list or an array; they must be equally long."""
    arrays = {}
    for name, values in columns.items():
        if not isinstance(name, str):
            raise BadType(f"a column is named {name!r}, which is no text.", f'"{name}"')
        if isinstance(values, str | bytes | dict | set):  # they can be gone through, letter by letter or in any order
            raise BadType(f'column "{name}" is a {type(values).__name__}, no list or array.', f'"{name}": [value]')
        try:
            arrays[name] = values if isinstance(values, pa.Array | pa.ChunkedArray) else as_array(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as why:
            raise BadType(
                f'column "{name}" can not be read: {sentence(why)}', "a list or array of one type, None for null"
            ) from None
    if len(set(map(len, arrays.values()))) > 1:
        lengths = {name: len(array) for name, array in arrays.items()}
        raise BadEvents(f"the columns are not equally long: {lengths}.")
    return pa.Table.from_arrays(list(arrays.values()), names=list(arrays))


def _copied(table: pa.Table) -> pa.Table:
    """In memory of its own, as far as NumPy's or pandas' may have been taken for Arrow's."""
    columns = []
    for column in table.columns:
        chunks = []
        for chunk in column.chunks:
            chunks.append(_copied_array(chunk))
        columns.append(pa.chunked_array(chunks, column.type))
    return pa.Table.from_arrays(columns, schema=table.schema)


def _copied_array(array: pa.Array) -> pa.Array:
    """Numbers, times, and the places of words in a dictionary: other types are not shared with anybody."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        indices = _copied_array(array.indices)
        return pa.DictionaryArray.from_arrays(indices, array.dictionary, ordered=kind.ordered)
    if not pa.types.is_primitive(kind) or kind.bit_width % 8 or not len(array):
        return array
    width = kind.bit_width // 8
    values = np.frombuffer(array.buffers()[1], f"V{width}", len(array), array.offset * width).copy()
    bitmap = np.packbits(np.asarray(array.is_valid()), bitorder="little") if array.null_count else None
    buffers = [None if bitmap is None else pa.py_buffer(bitmap), pa.py_buffer(values)]
    return pa.Array.from_buffers(kind, len(array), buffers)


def room(size: int, dtype: Any) -> np.ndarray:
    """np.empty from Arrow's pool, which keeps what it is given back for a while.

    NumPy returns large arrays to the system, and a page that comes from there is zeroed first: to fill 100 columns of
    8 MB took 0.06 s from the pool, 0.12 to 2.4 s otherwise (on a virtual machine whose neighbours were at work). The
    first time it is 450 page faults, as the pool asks for huge pages, and none from then on; NumPy takes 53,000 each
    time, of which 8,400 are left if arrays begin at a huge page.
    Few faults are not always little time: on another virtual machine, 800 MB of huge pages took the system 1.1 to 2.8 s
    (400 faults), of small ones 0.5 s (205,000).
    """
    if size * np.dtype(dtype).itemsize < POOLED_FROM:
        return np.empty(size, dtype)
    return np.frombuffer(pa.allocate_buffer(size * np.dtype(dtype).itemsize), dtype)


def fixed(array: np.ndarray) -> np.ndarray:
    """A view that can not be written to, as Arrow's memory can not: kernels are compiled for one of the two only."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def column(table: pa.Table, name: str, asked_by: str, sql: str = "") -> pa.ChunkedArray:
    """A column by name; a misspelt one is refused with the nearest name there is. sql: what names it, if it is SQL."""
    if not isinstance(name, str):
        raise BadQuery(f"{asked_by} {name!r}, which is not the name of a column.", "one name, as text")
    found = table.schema.get_all_field_indices(name)
    if len(found) == 1:
        return table.column(found[0])
    names = shown_names(table)
    if found:
        raise UnknownColumn(
            f'{asked_by} "{name}", which the events have {len(found)} times: {", ".join(names)}.', "rename one"
        )
    have = f"the events have: {', '.join(names)}" if names else "the events have no columns"
    near = nearest(name, names) if asked_by != "ts is" else _time_like(name, table)
    text = f"{name!r} in single quotes, which is text" if f'"{name}"' in sql else ""
    hint = f"{near}, or {text}" if near and text else near or text
    raise UnknownColumn(f'{asked_by} "{name}", but {have}.', hint, name)


def _time_like(name: str, table: pa.Table) -> str:
    """A hint: the column of time that was meant, by its type or its name; else any that is called much the same."""
    times = [field.name for field in table.schema if pa.types.is_temporal(field.type)]
    times += [each for each in table.column_names if "time" in each.lower() or "date" in each.lower()]
    if times:
        return nearest(name, times) or f'ts="{times[0]}"'
    any_ = 'ts="…", the column of time; of pandas, its index: df.rename_axis("ts")' if table.column_names else ""
    return nearest(name, table.column_names) or any_


def shown_names(table: pa.Table) -> list[str]:
    """The names of its columns as users know them: without the one that stands for a key of several, "(a, b)"."""
    names = table.column_names
    return [name for name in names if name[:1] != "(" or not set(name[1:-1].split(", ")) <= set(names)]


def one_chunk(array: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(array, pa.Array):
        return array
    if array.num_chunks == 1:
        return array.chunk(0)
    combined = array.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def taken(table: pa.Table, rows: np.ndarray) -> pa.Table:
    """Rows of a table."""
    return pa.Table.from_arrays([_taken(one_chunk(each), rows) for each in table.columns], schema=table.schema)


def _taken(array: pa.Array, rows: np.ndarray) -> pa.Array:
    """Numbers without nulls go through NumPy, those of words too: Arrow takes ten times as long, chunks or not."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        indices = _taken(array.indices, rows)
        return pa.DictionaryArray.from_arrays(indices, array.dictionary, ordered=kind.ordered, safe=False)
    if not (pa.types.is_primitive(kind) and kind.bit_width % 8 == 0 and array.null_count == 0 and len(array)):
        return array.take(pa.array(rows))
    width = kind.bit_width // 8
    all_rows = np.frombuffer(array.buffers()[1], f"u{width}", len(array), array.offset * width)
    found = room(rows.size, all_rows.dtype)
    np.take(all_rows, rows, out=found, mode="clip")  # rows are there; "raise" would go through a buffer
    return pa.Array.from_buffers(kind, rows.size, [None, pa.py_buffer(found)])


def order_of(*columns: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """The order of rows by these columns, those of a key of several one by one."""
    own = [each for column in columns for each in (column.flatten() if pa.types.is_struct(column.type) else [column])]
    own = [each.cast(pa.float32()) if pa.types.is_float16(each.type) else each for each in own]  # Arrow sorts no halves
    if len(own) == 1:
        return np.asarray(pc.sort_indices(own[0]))
    table = pa.table(own, [str(i) for i in range(len(own))])
    return np.asarray(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in table.column_names]))


@dataclass(frozen=True)
class Clock:
    """The type of `ts`: an integer (unit None), or a timestamp whose int64 values count `unit`s; null of an empty list,
    whose times may be any: those of a calendar go with all queries."""

    type: pa.DataType

    @cached_property
    def unit(self) -> str | None:
        if pa.types.is_timestamp(self.type):
            return str(self.type.unit)
        if pa.types.is_date32(self.type):
            return "d"
        if pa.types.is_null(self.type):
            return "us"
        return "ms" if pa.types.is_date64(self.type) else None

    def instant(self, at: Any, what: str = "at") -> int:
        """A point in time as users write it (an integer, a datetime, a NumPy or pandas timestamp), as int64."""
        if type(at) is int and SMALLEST <= at <= LARGEST:
            return at
        if isinstance(at, pa.Scalar) and at.is_valid and pa.types.is_integer(at.type):
            at = at.as_py()
        if is_whole(at):
            return whole_number(at, what)
        if self.unit is None:
            raise BadType(f"{what}={at!r} is not a whole number, but ts is an integer column.", f"{what}=1700000000")
        return point(at, self.type, self.unit, what)

    def value(self, instant: int) -> Any:
        """An instant as a value of the type of ts."""
        if self.unit is None:
            return instant
        width = pa.int32() if self.type.bit_width == 32 else pa.int64()
        return pa.scalar(instant, width).cast(self.type).as_py()

    def show(self, instant: int) -> str:
        """An instant as a reader would want it in a message."""
        try:
            return str(self.value(instant))
        except (ValueError, OverflowError, pa.ArrowInvalid):
            return f"{instant} {self.unit}"


def clock_of(array: pa.ChunkedArray, name: str) -> Clock:
    if pa.types.is_integer(array.type) or pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
        return Clock(array.type)
    if pa.types.is_null(array.type) and not len(array):
        return Clock(array.type)
    raise BadType(
        f'ts column "{name}" is {array.type}; ts is an integer or a timestamp.',
        "cast it, e.g. with pyarrow.compute.strptime for text, or to whole microseconds for seconds as floats",
    )


def timed(table: pa.Table, ts: str) -> tuple[Clock, np.ndarray]:
    """The ts column: its type, and its values as int64 in its own unit."""
    array = column(table, ts, "ts is")
    clock = clock_of(array, ts)
    return clock, instants(array, ts)


def instants(array: pa.ChunkedArray, name: str) -> np.ndarray:
    """The ts column as int64 in its own unit."""
    if array.null_count:
        row = pc.index(pc.is_null(one_chunk(array)), True).as_py()
        raise BadEvents(f'row {row} has no timestamp: "{name}" is null.', "drop or repair such rows first")
    only = one_chunk(array)
    if only.type == AS_THEY_ARE[0]:
        return only.to_numpy()
    return _integers(only, name, f"whole numbers up to {LARGEST}: time in a coarser unit, as int64, or a timestamp")


@dataclass(frozen=True)
class Field:
    """A column as kernels want it: int64 or float64 values, which of them are valid (None: all), the type it had.

    words: where values are the numbers of others, the table of those (swag/tables/keys.py). exact: of decimals of many
    digits, if they are computed with, their low and high words (swag/tables/decimals.py)."""

    values: np.ndarray
    valid: np.ndarray | None
    type: pa.DataType
    words: Any = None
    exact: np.ndarray | None = None

    @property
    def floats(self) -> np.ndarray:
        """The values as floats, as they are computed with."""
        if self.exact is not None:
            return decimals.as_floats(self.exact, self.type.scale)
        return self.values.astype(np.float64, copy=False)

    @property
    def scaled(self) -> np.ndarray:
        """The values, but decimals as floats, not as whole numbers of their smallest unit."""
        if not pa.types.is_decimal(self.type):
            return self.values
        return self.floats if self.exact is not None else self.floats / 10.0**self.type.scale

    def some(self, rows: np.ndarray) -> "Field":
        """Those in some rows."""
        values = self.values[rows] if self.values.size else self.values
        valid, exact = (None if each is None else each[rows] for each in (self.valid, self.exact))
        return Field(values, valid, self.type, self.words, exact)


def hashed(column: Field) -> np.ndarray:
    """The values of a column as words of 64 bits that are equal for equal ones: NaN is one value, -0.0 is 0.0."""
    values = column.values
    if column.words is not None:
        found: np.ndarray = column.words.hashes(values)
        return found
    return np.where(values == values, values + 0.0, np.nan).view(np.int64) if values.dtype == np.float64 else values


def field(table: pa.Table, name: str, asked_by: str, as_they_are: bool = False) -> Field:
    """as_they_are: values are only handed back, so uint64 beyond int64 may wrap: they come out as they went in."""
    array = one_chunk(column(table, name, asked_by))
    kind = array.type
    if array.null_count == 0 and kind in AS_THEY_ARE:  # as nearly all are: to look for the others takes as long again
        return Field(array.to_numpy(), None, kind)
    array = decoded(array)
    kind = array.type
    valid = None if array.null_count == 0 else np.asarray(pc.is_valid(array))
    if pa.types.is_null(kind):
        return Field(np.zeros(len(array)), np.zeros(len(array), bool), kind)
    if pa.types.is_floating(kind):
        filled = array if valid is None else pc.fill_null(array, 0)
        return Field(np.asarray(filled.cast(pa.float64())), valid, kind)
    if pa.types.is_decimal(kind):
        return Field(decimals.unscaled(array), valid, kind)
    if is_discrete(kind):
        array = array if valid is None else array.fill_null(_zero(kind))
        wrapped = as_they_are and pa.types.is_uint64(kind)
        return Field(np.asarray(array).view(np.int64) if wrapped else _integers(array, name), valid, kind)
    raise BadType(
        f'{asked_by} "{name}", a column of type {kind}.', 'cast it to float64 or int64; sw.count("…") takes any type'
    )


def ranked_field(table: pa.Table, name: str, asked_by: str) -> Field:
    """Values that are no numbers, but have an order, by their places among those there are; `words` has those."""
    encoded = decoded(one_chunk(column(table, name, asked_by))).dictionary_encode()
    order = np.asarray(pc.sort_indices(encoded.dictionary))
    place = np.empty(order.size + 1, np.int64)
    place[order] = np.arange(order.size)
    valid = None if encoded.null_count == 0 else np.asarray(pc.is_valid(encoded))
    at = np.asarray(encoded.indices if valid is None else encoded.indices.fill_null(order.size))
    words = encoded.dictionary.take(pa.array(order))
    place[-1] = 0
    return Field(place[at], valid, words.type, words)


def valid_rows(table: pa.Table, name: str, asked_by: str) -> np.ndarray | None:
    """Which rows of a column of any type are not null (None: all)."""
    array = column(table, name, asked_by)
    return None if array.null_count == 0 else np.asarray(pc.is_valid(one_chunk(array)))


def decoded_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values, however they are written down."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def decoded(array: Any) -> Any:
    """The values of a column, one by one."""
    if not pa.types.is_dictionary(array.type):
        return array
    if isinstance(array, pa.Array):
        return array.dictionary_decode()
    return pa.chunked_array([chunk.dictionary_decode() for chunk in array.chunks], array.type.value_type)


def is_discrete(kind: pa.DataType) -> bool:
    """Types whose values are whole numbers underneath."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind)
    ) and not pa.types.is_interval(kind)


def is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)
    )


def _zero(kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_boolean(kind):
        return pa.scalar(False)
    width = pa.int32() if kind.bit_width == 32 and pa.types.is_temporal(kind) else pa.int64()
    return pa.scalar(0, width).cast(kind)


def _integers(array: pa.Array, name: str, hint: str = "cast the column to float64") -> np.ndarray:
    """Whole numbers, and times as such, as int64; refused if they do not fit."""
    kind = array.type
    if pa.types.is_temporal(kind):
        array = array.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    if array.type != pa.int64():
        try:
            array = array.cast(pa.int64())
        except pa.ArrowInvalid:
            raise BadType(f'"{name}" ({kind}) holds values that do not fit int64.', hint) from None
    return np.asarray(array)


def to_arrow(values: np.ndarray, valid: np.ndarray | None, kind: pa.DataType) -> pa.Array:
    """A column out: int64 or float64 values (zero-copy), invalid ones null, cast to the type it should have."""
    if valid is None or valid.all():
        return with_bitmap(values, None, kind)
    return with_bitmap(values, np.packbits(valid, bitorder="little"), kind)


def with_bitmap(values: np.ndarray, bitmap: np.ndarray | None, kind: pa.DataType) -> pa.Array:
    """The same, given a bit for each value, as Arrow has them: 0 where it is null."""
    if pa.types.is_null(kind):
        return pa.nulls(values.size)
    if pa.types.is_decimal(kind):
        return decimals.from_unscaled(values, bitmap, kind)
    carrier = pa.float64() if values.dtype == np.float64 else pa.int64()
    buffers = [None if bitmap is None else pa.py_buffer(bitmap), pa.py_buffer(np.ascontiguousarray(values))]
    array = pa.Array.from_buffers(carrier, values.size, buffers)
    if kind == carrier:
        return array
    if pa.types.is_temporal(kind) and kind.bit_width == 32:
        return array.cast(pa.int32()).cast(kind)
    return array.cast(kind, safe=False)
