"""Whatever users hand in as events, as a pyarrow.Table: frames of other libraries, lists, dicts, paths of files."""

import os
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from swag.errors import BadEvents, BadType

HINT = (
    "a pyarrow.Table, a pandas or Polars frame, a DuckDB relation, a dict of arrays, a list of dicts, "
    "or the path of a Parquet, CSV or Arrow file"
)


def table_of(events: Any) -> pa.Table:
    """Zero-copy where it can be."""
    if isinstance(events, pa.Table):
        return events
    for found, read in READERS:
        if found(events):
            return read(events)
    raise BadType(f"events are a {type(events).__name__}, which is no table.", HINT)


def _is(module: str, name: str) -> Callable[[Any], bool]:
    """Of a library that need not be there, by its name."""
    return lambda events: type(events).__module__.split(".")[0] == module and type(events).__name__ == name


def _from_pandas(frame: Any) -> pa.Table:
    """An index that has a name is a column like others: often it is ts."""
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    return pa.Table.from_pandas(frame.reset_index(named) if named else frame, preserve_index=False)


def _from_spark(frame: Any) -> pa.Table:
    to_spark = ".to_spark(), and then " if type(frame).__module__.startswith("pyspark.pandas") else ""
    raise BadType(
        f"events are a {type(frame).__name__} of Spark, which is not read into memory here.",
        f"{to_spark}swag.spark.evaluate(queries, df), swag.spark.stream(…), frames.spark.detect(spec, df)",
    )


def _from_dict(columns: dict[str, Any]) -> pa.Table:
    arrays = {name: _array(name, values) for name, values in columns.items()}
    if len(set(map(len, arrays.values()))) > 1:
        lengths = {name: len(array) for name, array in arrays.items()}
        raise BadEvents(f"the columns are not equally long: {lengths}.")
    return pa.table(arrays)


def _array(name: Any, values: Any) -> pa.Array | pa.ChunkedArray:
    if not isinstance(name, str):
        raise BadType(f"a column is named {name!r}, which is no text.", f'"{name}"')
    try:
        return values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as why:
        raise BadType(
            f'column "{name}" can not be read: {sentence(why)}', "a list or array of one type, None for null"
        ) from None


def _from_list(rows: list[Any]) -> pa.Table:
    """Of dicts, one for each event, what one lacks being null; or of paths."""
    if rows and all(isinstance(each, str | os.PathLike) for each in rows):
        return _from_files(rows)
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            raise BadType(f"event {place} of the list is {row!r}, which is no dict.", '[{"ts": 1, "price": 10.5}, …]')
    names = dict.fromkeys(name for row in rows for name in row)
    return _from_dict({name: [row.get(name) for row in rows] for name in names})


def _from_files(paths: list[Any]) -> pa.Table:
    from swag.files.files import read  # most users have no files, and are not to wait for their readers

    return read(paths)


READERS: list[tuple[Callable[[Any], bool], Callable[[Any], pa.Table]]] = [  # the first that fits
    (lambda events: isinstance(events, pa.RecordBatch), lambda batch: pa.Table.from_batches([batch])),
    (lambda events: isinstance(events, dict), _from_dict),
    (lambda events: isinstance(events, list), _from_list),
    (lambda events: isinstance(events, str | os.PathLike), lambda path: _from_files([path])),
    (_is("pandas", "DataFrame"), _from_pandas),
    (_is("polars", "LazyFrame"), lambda frame: pa.table(frame.collect())),
    (lambda events: type(events).__module__.startswith("pyspark."), _from_spark),
    (lambda events: hasattr(events, "__arrow_c_stream__") and not isinstance(events, pa.ChunkedArray), pa.table),
    (lambda events: type(events).__module__ == "pyarrow._dataset", lambda dataset: dataset.to_table()),
]


def sentence(why: Exception) -> str:
    """What another library has against something, as a sentence."""
    return f"{str(why).strip().splitlines()[0].rstrip('.')}." if str(why).strip() else f"{type(why).__name__}."
