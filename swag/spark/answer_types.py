"""Answers of several queries in one column of values: of which type that is, known before any event has come.

Whole numbers beside floats are floats for as long as each of them is exact. A stream can not wait for the first that is
not: there only those are taken that always are, counts and numbers of at most 32 bits.
"""

from collections.abc import Mapping

import pyarrow as pa

from swag.errors import BadType
from swag.query.aggregates import Aggregate
from swag.query.kind import KINDS
from swag.query.query import Query
from swag.tables.answers import common_type


def value_type(kinds: Mapping[str, pa.DataType], call: str) -> pa.DataType:
    """kinds: the types of the queries' own answers. call: what to ask again, for some of the queries."""
    try:
        return common_type(kinds, "")
    except BadType as why:
        raise BadType(why.message, one_type_at_a_time(kinds, call)) from None


def streamed_type(asked: list[Query], kinds: Mapping[str, pa.DataType], call: str) -> pa.DataType:
    """The same, where it has to hold whatever comes."""
    kind = value_type(kinds, call)
    for query in asked if pa.types.is_floating(kind) else []:
        own = kinds[query.label]
        if pa.types.is_integer(own) and not _always_exact(query, own):
            raise BadType(
                f'query "{query.label}" answers {own}, which a column of {kind}, the type of all answers together, '
                "can not always hold.",
                one_type_at_a_time(kinds, call),
            )
    return kind


def _always_exact(query: Query, kind: pa.DataType) -> bool:
    """As a float64."""
    counts = isinstance(query.aggregate, Aggregate) and KINDS[query.aggregate.kind].counts
    return counts or kind.bit_width <= 32


def one_type_at_a_time(kinds: Mapping[str, pa.DataType], call: str) -> str:
    of_types: dict[pa.DataType, list[str]] = {}
    for name, kind in kinds.items():
        of_types.setdefault(kind, []).append(f'"{name}"')
    groups = "; ".join(f"{call} of {', '.join(names[:3])}" for names in list(of_types.values())[:3])
    return f"ask for one type at a time: {groups}"
