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

OWN = ("query", "tick", "value")  # our own columns, beside those of the user


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


def answers_table(
    parts: Mapping[tuple[str, ...], list[tuple[str, pa.Table]]],
    types: Mapping[tuple[str, ...], list[pa.DataType]],
    front: list[tuple[str, pa.DataType]],
    kinds: Mapping[str, pa.DataType],
    ask: str,
) -> pa.Table:
    """Table(query, [front], [keys], value) of the answers of several queries, in one type that holds them all.

    parts: by the key columns of a grouping, for each query (its own name first) a table of `front`, the key if there is
    one (a column of structs where it has several) and the value. A query that does not group by a key column has null
    there. types: of the key columns (one null: nobody knows yet). kinds: of answers of which there are none yet.
    """
    keys: dict[str, pa.DataType] = {}
    for by, some in types.items():
        known = zip(by, some if len(some) == len(by) else [pa.null()] * len(by), strict=True)
        keys |= {name: kind for name, kind in known if pa.types.is_null(keys.get(name, pa.null()))}
    seen = {query: table.schema.types[-1] for some in parts.values() for query, table in some}
    kind = common_type({**kinds, **seen}, ask)
    query_name, value_name = (own_name(name, *(each for each, _ in front), *keys) for name in ("query", "value"))
    schema = pa.schema([(query_name, pa.string()), *front, *keys.items(), (value_name, kind)])
    tables = [schema.empty_table()]
    for by, some in parts.items():
        for query, table in some:
            names = pa.DictionaryArray.from_arrays(np.zeros(table.num_rows, np.int32), [query]).cast(pa.string())
            own = table.columns[len(front) : -1]
            if len(by) > 1:
                own = [pa.nulls(0)] * len(by) if pa.types.is_null(own[0].type) else own[0].flatten()
            there = dict(zip(by, own, strict=True))
            of_keys = [there.get(name, pa.nulls(table.num_rows, each)) for name, each in keys.items()]
            value = of_common_type(query, table.columns[-1], kind, ask)
            tables.append(pa.table([names, *table.columns[: len(front)], *of_keys, value], schema.names))
    return pa.concat_tables(tables, promote_options="permissive")


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
