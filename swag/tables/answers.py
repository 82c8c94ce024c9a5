"""Answers of several queries in one table: what our own columns are called, and of what type their values are."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

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


def of_common_type(name_of: Callable[[int], str], values: Any, kind: pa.DataType, ask: str) -> pa.Array:
    """Answers in the type that all have. Whole numbers that floats can not hold are refused. name_of: the query that
    answers so, by the row."""
    values = decoded(one_chunk(values))
    if values.type == kind:
        return values
    if not pa.types.is_integer(values.type):
        return values.cast(kind)
    row = _first_inexact(values, kind)
    if row is not None:
        raise BadType(
            f'query "{name_of(row)}" answers {values[row].as_py()}, which {kind}, the type of all answers together, '
            "can not hold.",
            _by_name(ask, name_of(row)),
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
    keys = _key_columns(types)
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
            value = of_common_type(lambda row, name=query: name, table.columns[-1], kind, ask)  # type: ignore[misc]
            tables.append(pa.table([names, *table.columns[: len(front)], *of_keys, value], schema.names))
    return pa.concat_tables(tables, promote_options="permissive")


class ManyAnswers(NamedTuple):
    """Answers of many queries of one grouping, in one piece: for each row the place of its query among `names`, columns
    of our own, the key (structs where it has several columns; None: there is no key), and the value.

    Rows are in order of their queries. values: in pieces, each of some queries that answer in one type, whose rows, one
    after the other, are those of `order`. kinds: of one query at least for each type, whether there
    are rows of it or not.
    """

    names: list[str]
    kinds: Mapping[str, pa.DataType]
    which: np.ndarray
    key: pa.Array | None
    values: list[pa.Array]
    order: np.ndarray
    front: list[pa.Array] = []
    back: list[pa.Array] = []


def pieces_table(
    parts: Mapping[tuple[str, ...], ManyAnswers],
    types: Mapping[tuple[str, ...], list[pa.DataType]],
    front: list[tuple[str, pa.DataType]],
    back: list[tuple[str, pa.DataType]],
    ask: str,
) -> pa.Table:
    """As `answers_table`, of answers that are not parted by query: ordered by the place of their query, no work for
    each. front stands behind the keys here, as does ts in the changes of alerts, and back behind the value."""
    keys = _key_columns(types)
    kind = common_type(one_of_each({name: kind for part in parts.values() for name, kind in part.kinds.items()}), ask)
    ours = [name for name, _ in (*front, *back)]
    query_name, value_name = (own_name(name, *ours, *keys) for name in ("query", "value"))
    schema = pa.schema([(query_name, pa.string()), *keys.items(), *front, (value_name, kind), *back])
    tables = []
    for by, part in parts.items():
        names = pa.array(part.names, pa.string()).take(pa.array(part.which))
        there = dict(zip(by, _apart(part.key, len(by)), strict=True))
        rows = part.which.size
        of_keys = [there.get(name, pa.nulls(rows, each)) for name, each in keys.items()]
        values = pa.concat_arrays([pa.nulls(0, kind), *_of_one_type(part, kind, ask)]).take(pa.array(part.order))
        tables.append(pa.table([names, *of_keys, *part.front, values, *part.back], schema.names))
    if len(parts) == 1 and tables[-1].schema == schema:
        return tables[-1]
    return pa.concat_tables([schema.empty_table(), *tables], promote_options="permissive")


def one_of_each(kinds: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
    """The first query of each type. Types take a while to compare; most of a thousand are one and the same."""
    found: dict[int, tuple[str, pa.DataType]] = {}
    for name, kind in kinds.items():
        if id(kind) not in found:
            found[id(kind)] = name, kind
    return dict(found.values())


def _of_one_type(part: ManyAnswers, kind: pa.DataType, ask: str) -> Iterator[pa.Array]:
    """The pieces of many answers, each cast to the type of the value column."""
    before = 0
    for piece in part.values:

        def name_of(row: int, begin: int = before) -> str:
            return part.names[part.which[part.order == begin + row][0]]

        yield of_common_type(name_of, piece, kind, ask)
        before += len(piece)


def answers_of(
    name: str, table: pa.Table, front: Sequence[pa.Array] = (), back: Sequence[pa.Array] = ()
) -> ManyAnswers:
    """The answers of one query, of Table([key], value)."""
    key = one_chunk(table.column(0)) if table.num_columns > 1 else None
    values, rows = one_chunk(table.columns[-1]), np.arange(table.num_rows)
    which, kinds = np.zeros(rows.size, np.int64), {name: values.type}
    return ManyAnswers([name], kinds, which, key, [values], rows, list(front), list(back))


def merged(names: list[str], parts: list[tuple[list[int], ManyAnswers]]) -> ManyAnswers:
    """Answers of several parts of these queries as one. With each part: the places of its queries among all."""
    which = np.concatenate([np.array(places, np.int64)[part.which] for places, part in parts])
    order = in_order(which, len(names))
    begins = np.cumsum([0, *(part.which.size for _, part in parts)])
    rows = np.concatenate([part.order + begin for (_, part), begin in zip(parts, begins[:-1], strict=True)])
    kinds = {name: kind for _, part in parts for name, kind in part.kinds.items()}
    keys = None if parts[0][1].key is None else _joined([part.key for _, part in parts], order)
    values = [piece for _, part in parts for piece in part.values]
    front, back = (
        [_joined(list(each), order) for each in zip(*columns, strict=True)]
        for columns in ([part.front for _, part in parts], [part.back for _, part in parts])
    )
    return ManyAnswers(names, kinds, which[order], keys, values, rows[order], front, back)


def _joined(columns: list[pa.Array], order: np.ndarray) -> pa.Array:
    """One after the other, in another order. Of those without rows the type may not be known."""
    some = [column for column in columns if len(column)] or columns[:1]
    return pa.concat_arrays(some).take(pa.array(order))


def in_order(which: np.ndarray, places: int) -> np.ndarray:
    """Rows in order of their queries, of which there are so many; rows of one query stay as they are."""
    return np.argsort(which.astype(np.int16 if places < 2**15 else np.int32), kind="stable")


def _apart(key: pa.Array | None, columns: int) -> list[pa.Array]:
    if key is None or columns < 2:
        return [] if key is None else [key]
    return [pa.nulls(len(key))] * columns if pa.types.is_null(key.type) else key.flatten()


def _key_columns(types: Mapping[tuple[str, ...], list[pa.DataType]]) -> dict[str, pa.DataType]:
    """The key columns of all groupings, and their types, as far as any is known."""
    keys: dict[str, pa.DataType] = {}
    for by, some in types.items():
        known = zip(by, some if len(some) == len(by) else [pa.null()] * len(by), strict=True)
        keys |= {name: kind for name, kind in known if pa.types.is_null(keys.get(name, pa.null()))}
    return keys


def _first_inexact(values: pa.Array, kind: pa.DataType) -> int | None:
    """The row of the first whole number that is another one in a float64, or does not fit int64."""
    whole = np.asarray(pc.fill_null(values, 0))
    if pa.types.is_floating(kind):
        floats = whole.astype(np.float64)
        inside = floats < 2.0 ** (64 if whole.dtype == np.uint64 else 63)
        bad = ~inside | (np.where(inside, floats, 0).astype(whole.dtype) != whole)
    else:
        bad = whole > LARGEST
    return int(np.argmax(bad)) if bad.any() else None


def _by_name(ask: str, *names: str) -> str:
    return f'ask for one query at a time: engine.{ask}("{next(iter(names))}")'
