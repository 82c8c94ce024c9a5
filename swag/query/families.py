"""How an aggregate is answered: which shared structures it reads (its parts), and how their partials become the answer.

    count                   positions alone
    first, last             the value at one end
    sum, mean               "sum"        s
    wmean                   "sum" twice  Σ x·w and Σ w
    var, std                "moments"    n, s, mean, m2          (serves sum and mean of the column too)
    cov, corr               "comoments"  n, mean x, mean y, xx, yy, xy
    min, max                "min", "max" m
    quantile                "quantile"   two neighbours in sorted order, and how far from one to the other
    user-defined            "user"       what they say

Rows that do not count (a null in a column of the aggregate, a `where` that does not hold) are not in the positions.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from kernels.operators import monoids
from swag.errors import BadType
from swag.query.aggregates import Aggregate
from swag.query.kind import KINDS, Part
from swag.query.try_out import try_out
from swag.query.user_defined import compiled
from swag.tables.columns import decoded_type, is_discrete, is_number


def parts_of(aggregate: Aggregate) -> tuple[Part, ...]:
    kind = KINDS[aggregate.kind]
    if kind.parts is not None:
        return kind.parts(aggregate.columns)
    return (Part(kind.family, aggregate.columns, aggregate.user),) if kind.family else ()


def operator(part: Part) -> Any:
    """The monoid of a part that has one."""
    if part.user is not None:
        return compiled(part.user)
    return {
        "sum": monoids.Sum,
        "moments": monoids.Moments,
        "comoments": monoids.CoMoments,
        "min": monoids.Min,
        "max": monoids.Max,
    }[part.family]()


def check_columns(aggregate: Aggregate, kinds: dict[str, pa.DataType]) -> None:
    """Refuse an aggregate over columns it can not be computed of."""
    reads = KINDS[aggregate.kind].reads
    if reads == "anything":
        return
    for name in aggregate.columns:
        kind = decoded_type(kinds[name])
        if reads == "numbers" and not is_number(kind):
            raise BadType(
                f'{aggregate} computes with "{name}", a column of type {kind}.', "cast it to float64 or int64"
            )
        if not (is_number(kind) or is_discrete(kind)):
            raise BadType(
                f'{aggregate} reads "{name}", a column of type {kind}, of which it knows no order.',
                "numbers, times and booleans can be compared; sw.first, sw.last and sw.count take any type",
            )
        if aggregate.user is not None:
            try_out(aggregate, kind)


def result_type(aggregate: Aggregate, kinds: dict[str, pa.DataType]) -> pa.DataType:
    """Elements of a column, as quantiles are unless they are interpolated, keep its type."""
    answers = KINDS[aggregate.kind].answers
    if answers == "counts":
        return pa.int64()
    kind = kinds[aggregate.columns[0]]
    if answers == "as the column" or aggregate.method == "floor":
        return kind
    return pa.int64() if answers == "sums" and is_discrete(kind) else pa.float64()


def lower(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray | None]:
    """Answers of windows that hold n rows each, and which of them are not null (None: all).

    partials: for each part of the aggregate, its array or tuple of arrays. Empty windows hold anything in them.
    """
    return KINDS[aggregate.kind].lower(aggregate, n, partials)
