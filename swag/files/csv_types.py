"""The types of the columns of a CSV file are those of all its rows; Arrow, when it streams, asks the first block alone.

A file of one block is done with. A longer one is read once more, some columns of it: if the types of the first block
hold to the end they are right, since whatever is narrower failed there already. If they do not, the types of every
block are found by itself and joined.

    null  ->  anything              int64  ->  double              date32  ->  timestamp[s]  ->  timestamp[ns]

Other pairs have text in common. A joined type is tried on all rows before it is believed: 0 and 1 are true and false as
well, and a date may be too far off for nanoseconds.
"""

from collections.abc import Iterable
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

CSV_BLOCK = 1 << 23  # bytes; no row may be longer
PARSING = pa.csv.ParseOptions(newlines_in_values=True)
Types = dict[str, pa.DataType]

_NARROW = [pa.date32(), pa.timestamp("s"), pa.timestamp("ns")]  # each reads what those before it do
_JOINED = {
    frozenset((pa.int64(), pa.float64())): pa.float64(),
    frozenset((pa.int64(), pa.bool_())): pa.bool_(),
    frozenset((pa.timestamp("s", "UTC"), pa.timestamp("ns", "UTC"))): pa.timestamp("ns", "UTC"),
    **{frozenset((a, b)): b for i, b in enumerate(_NARROW) for a in _NARROW[:i]},
}


def reader(path: Path, columns: Iterable[str] = (), types: Types | None = None) -> pa.csv.CSVStreamingReader:
    """Some columns (all, if none is named), of these types or of those of the first block."""
    options = pa.csv.ConvertOptions(include_columns=list(columns), column_types=types)
    return pa.csv.open_csv(path, pa.csv.ReadOptions(block_size=CSV_BLOCK), PARSING, options)


def types_of(path: Path, columns: list[str]) -> Types:
    """The narrowest type that every value of a column has, as Arrow would infer it from the whole file at once."""
    with reader(path, columns) as first:
        types = dict(zip(columns, first.schema.types, strict=True))
    of_one_block = path.suffix.lower() == ".csv" and path.stat().st_size <= CSV_BLOCK  # unknown where it is compressed
    if of_one_block or _hold(path, types):
        return types
    types = _of_all_blocks(path, columns)
    if _hold(path, types):
        return types
    return {name: kind if _hold(path, {name: kind}) else pa.string() for name, kind in types.items()}


def of_all(files: Iterable[tuple[Path, pa.Schema]]) -> pa.Schema:
    """The same of several files, each with the types that it has by itself."""
    known = list(files)
    kinds = reduce(lambda one, other: map(joined, one, other), (schema.types for _, schema in known))
    types: Types = dict(zip(known[0][1].names, kinds, strict=True))
    for path, schema in known:
        for name in schema.names:
            if schema.field(name).type != types[name] and not _hold(path, {name: types[name]}):
                types[name] = pa.string()
    return pa.schema(list(types.items()))


def _hold(path: Path, types: Types) -> bool:
    """Whether all rows can be read so."""
    try:
        with reader(path, types, types) as rows:
            for _ in rows:
                pass
    except pa.ArrowInvalid:
        return False
    return True


def _of_all_blocks(path: Path, columns: list[str]) -> Types:
    types: Types = dict.fromkeys(columns, pa.null())
    with reader(path, columns, dict.fromkeys(columns, pa.binary())) as blocks:
        for block in blocks:
            found = _of_block(block)
            types = {name: joined(kind, found[name]) for name, kind in types.items()}
    return types


def _of_block(block: pa.RecordBatch) -> Types:
    """What Arrow takes some rows for: they are written as CSV once more, and read as a file of their own."""
    texts = {name: column for name, column in zip(block.schema.names, map(_text, block.columns)) if column is not None}
    types: Types = dict.fromkeys(block.schema.names, pa.binary())  # bytes that are no text, unless found otherwise
    if texts:
        written = pa.BufferOutputStream()
        pa.csv.write_csv(pa.table(texts), written)
        again = written.getvalue()
        found = pa.csv.read_csv(again, pa.csv.ReadOptions(block_size=again.size + 1), PARSING).schema
        types |= dict(zip(found.names, found.types))
    return types


def _text(column: pa.Array) -> pa.Array | None:
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return None


def joined(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """The type that holds what both hold."""
    if a == b or pa.types.is_null(b):
        return a
    if pa.types.is_null(a):
        return b
    text = pa.binary() if pa.binary() in (a, b) else pa.string()
    return _JOINED.get(frozenset((a, b)), text)
