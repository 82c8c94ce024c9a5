"""What users hand in as events that is no table yet: frames of other libraries, lists, paths of files."""

import datetime
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from swag.errors import BadEvents, BadType
from swag.tables.plain import inferred

HINT = (
    "a pyarrow.Table, a pandas or Polars frame, a DuckDB relation, a dict of arrays, a list of dicts, "
    "or the path of a Parquet, CSV or Arrow file"
)


def table_of(events: Any, what: str = "events are") -> pa.Table | dict[str, Any]:
    """A table, or its columns by name; zero-copy where it can be. what: who is told of, if there is none."""
    for found, read in READERS:
        if found(events):
            return read(events)
    raise BadType(f"{what} a {type(events).__name__}, which is no table.", HINT)


OBJECTS = np.dtype(object)  # values of Python's, as lists have them: of NumPy's types none is that of decimals
UNITS = {  # what stands for the units of NumPy that Arrow has not; a length in months or years is none
    "M": {"W": "D", "M": "D", "Y": "D", "h": "s", "m": "s"},
    "m": {"W": "s", "D": "s", "h": "s", "m": "s"},
}


def as_array(values: Any) -> pa.Array:
    """A column of Arrow, of an array of NumPy's or a list."""
    first = next((each for each in values if each is not None), None) if isinstance(values, list) else None
    if isinstance(first, np.datetime64 | np.timedelta64):
        known = [None if each is None or each != each else each for each in values]
        some = any(each is not None for each in known)
        values = np.array(known, f"{first.dtype.kind}8" if some else first.dtype)
    elif isinstance(first, datetime.datetime):
        zoned = {each.tzinfo is not None for each in values if isinstance(each, datetime.datetime) and each == each}
        if len(zoned) > 1:  # Arrow would take all for UTC
            raise TypeError("it has times with a time zone beside times without one")
    array = pa.array(_as_arrow_has_it(values) if isinstance(values, np.ndarray) else values)
    if pa.types.is_decimal(array.type) and isinstance(getattr(values, "dtype", OBJECTS), np.dtype):
        return array.cast(inferred(array.type))
    return array


def _as_arrow_has_it(values: np.ndarray) -> np.ndarray:
    """In this machine's order of bytes, and times in steps of one of Arrow's units: it takes steps of 25 seconds for
    seconds. What these can not hold stays as it is."""
    dtype = values.dtype.newbyteorder("=")
    if dtype.kind in UNITS:
        unit = np.datetime_data(dtype)[0]
        if unit in ("ps", "fs", "as", "generic") or (dtype.kind == "m" and unit in "MY"):
            return values
        dtype = np.dtype(f"{dtype.kind}8[{UNITS[dtype.kind].get(unit, unit)}]")
    if dtype == values.dtype:
        return values
    found = values.astype(dtype)
    if dtype.kind in UNITS:
        wrapped = (found.astype(values.dtype) != values) & ~np.isnat(values)
        if wrapped.any():
            raise OverflowError(f"{values[wrapped][0]!r} does not fit int64 in {dtype}")
    return found


def _is(module: str, name: str) -> Callable[[Any], bool]:
    """Of a library that need not be there, by its name."""
    return lambda events: type(events).__module__.split(".")[0] == module and type(events).__name__ == name


def _from_pandas(frame: Any) -> pa.Table:
    """An index that has a name is a column like others: often it is ts."""
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    frame = frame.reset_index(named) if named else frame
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for i, kind in enumerate(table.schema.types):
        if pa.types.is_decimal(kind) and isinstance(frame.dtypes.iloc[i], np.dtype):
            table = table.set_column(i, table.column_names[i], table.column(i).cast(inferred(kind)))
    return table


def _from_spark(frame: Any) -> pa.Table:
    to_spark = ".to_spark(), and then " if type(frame).__module__.startswith("pyspark.pandas") else ""
    raise BadType(
        f"events are a {type(frame).__name__} of Spark, which is not read into memory here.",
        f"{to_spark}swag.spark.evaluate(queries, df), swag.spark.stream(…), frames.spark.detect(spec, df)",
    )


def _computed(compute: Callable[[Any], Any], frame: Any) -> pa.Table:
    """Of a library that reads or computes only now, and may find that it can not."""
    try:
        return pa.table(compute(frame))
    except (pa.ArrowException, OverflowError, TypeError, ValueError, MemoryError):
        raise
    except Exception as why:
        raise BadEvents(
            f"the {type(frame).__name__} can not be computed: {sentence(why)}",
            "compute it first, which tells more: df.collect() of Polars, relation.arrow() of DuckDB",
        ) from why


_streamed = partial(_computed, lambda table: table)  # those that hand out what Arrow reads, DuckDB's relations too


def _from_list(rows: list[Any]) -> pa.Table | dict[str, Any]:
    """Of dicts, one for each event, what one lacks being null; or of paths, or of tables."""
    if rows and all(isinstance(each, str | os.PathLike) for each in rows):
        return _from_files(rows)
    if rows and all(hasattr(each, "__arrow_c_stream__") or isinstance(each, pa.RecordBatch) for each in rows):
        return pa.concat_tables([_streamed(each) for each in rows])
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            shown = repr(row) if len(repr(row).splitlines()) == 1 else f"a {type(row).__name__}"
            raise BadType(f"event {place} of the list is {shown}, which is no dict.", '[{"ts": 1, "price": 10.5}, …]')
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _from_files(paths: list[Any]) -> pa.Table:
    from swag.files.files import read  # most users have no files, and are not to wait for their readers

    return read(paths)


READERS: list[tuple[Callable[[Any], bool], Callable[[Any], Any]]] = [  # the first that fits
    (lambda events: isinstance(events, pa.RecordBatch), lambda batch: pa.Table.from_batches([batch])),
    (lambda events: isinstance(events, list), _from_list),
    (lambda events: isinstance(events, str | os.PathLike), lambda path: _from_files([path])),
    (_is("pandas", "DataFrame"), _from_pandas),
    (_is("polars", "LazyFrame"), partial(_computed, lambda lazy: lazy.collect())),
    (lambda events: type(events).__module__.startswith("pyspark."), _from_spark),
    (lambda events: hasattr(events, "__arrow_c_stream__") and not isinstance(events, pa.ChunkedArray), _streamed),
    (lambda events: type(events).__module__ == "pyarrow._dataset", partial(_computed, lambda data: data.to_table())),
]


def sentence(why: Exception) -> str:
    """What another library has against something, as a sentence."""
    return f"{str(why).strip().splitlines()[0].rstrip('.!')}." if str(why).strip() else f"{type(why).__name__}."
