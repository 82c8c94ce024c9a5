"""Answers of several queries in one table: what our own columns are called, and of what type their values are."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.arguments import LARGEST
from swag.errors import BadType
from swag.tables.columns import decoded, decoded_type, one_chunk
from swag.tables.keys import is_string


def own_name(name: str, *theirs: str | None) -> str:
    """Our own column beside those of the user: "value" is called "value_" where a key is called "value"."""
    return own_name(f"{name}_", *theirs) if name in theirs else name


def common_type(kinds: Mapping[str, pa.DataType], ask: str) -> pa.DataType:
    """The type of a column for the answers of all queries. ask: the call that gives those of one."""
    found = {name: decoded_type(kind) for name, kind in kinds.items() if not pa.types.is_null(kind)}
    distinct = set(found.values())
    if len(distinct) <= 1:
        return distinct.pop() if distinct else pa.float64()
    if all(pa.types.is_integer(kind) for kind in distinct):
        return pa.int64()
    if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in distinct):
        return pa.float64()
    if all(is_string(kind) for kind in distinct):
        return pa.large_string()
    shown = ", ".join(f"{name} ({kind})" for name, kind in list(found.items())[:8])
    raise BadType(f"one column can not hold the answers of all queries: {shown}.", _by_name(ask, *found))


def of_common_type(name: str, values: Any, kind: pa.DataType, ask: str) -> pa.Array:
    """The answers of one query in the type that all have. Whole numbers that floats can not hold are refused."""
    values = decoded(one_chunk(values))
    if values.type == kind:
        return values
    if not pa.types.is_integer(values.type):
        return values.cast(kind)
    inexact = _first_inexact(values, kind)
    if inexact is not None:
        raise BadType(
            f'query "{name}" answers {inexact}, which {kind}, the type of all answers together, can not hold.',
            _by_name(ask, name),
        )
    return values.cast(kind, safe=False)


def filter_table(passing: dict[str, pa.Table], key: str | None) -> pa.Table:
    """Table(query, [key], value) of what each query lets pass: a table of its keys, if there are any, and values."""
    kind = common_type({name: table.schema.types[-1] for name, table in passing.items()}, "filters")
    rows = np.repeat(np.arange(len(passing)), [table.num_rows for table in passing.values()])
    columns = {own_name("query", key): pa.array(list(passing), pa.string()).take(rows)}
    if key is not None:
        found = [table.column(0) for table in passing.values() if not pa.types.is_null(table.schema.types[0])]
        chunks = [chunk for keys in found for chunk in keys.chunks]
        columns[key] = pa.chunked_array(chunks, found[0].type if found else pa.null())
    values = [of_common_type(name, table.columns[-1], kind, "filters") for name, table in passing.items()]
    return pa.table(columns | {own_name("value", key): pa.chunked_array(values, kind)})


def _first_inexact(values: pa.Array, kind: pa.DataType) -> Any:
    """The first whole number that is another one in a float64, or does not fit int64."""
    whole = np.asarray(pc.fill_null(values, 0))
    if pa.types.is_floating(kind):
        floats = whole.astype(np.float64)
        inside = floats < 2.0 ** (64 if whole.dtype == np.uint64 else 63)
        bad = ~inside | (np.where(inside, floats, 0).astype(whole.dtype) != whole)
    else:
        bad = whole > LARGEST
    return values[int(np.argmax(bad))].as_py() if bad.any() else None


def _by_name(ask: str, *names: str) -> str:
    return f'ask for one query at a time: engine.{ask}("{next(iter(names))}")'
