"""Conditions with SQL's three values, and choices by them. What a row does not come to is not computed of it.

Everything is tried on all rows first, in one call of Arrow per operator: nearly always it can be computed of all. Where
it can not (CASE WHEN x <> 0 THEN 1 % x END), it is computed once more, of those rows only that come there.
"""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.tables import arithmetic
from swag.tables.comparing import compared
from swag.tables.expressions import instants
from swag.tables.expressions.rows import BatchRows, Part, RowFailed, applied
from swag.tables.expressions.types import alike, is_numeric

NOTHING = pa.NULL  # pa.scalar would import pandas, half a second that all would pay


def compare(op: str) -> Callable[[Any, Any], Any]:
    """With exact numbers, and times beside text. NaN and null compare as null."""
    return lambda a, b: compared(op, *instants.beside(a, b))


def among(value: Any, *options: Any) -> Any:
    """x IN (…): null where x is null, or where nothing matches and an option is null."""
    return reduce(pc.or_kleene, (compare("=")(value, option) for option in options), pa.scalar(False))


def between(value: Any, low: Any, high: Any) -> Any:
    return pc.and_kleene(compare(">=")(value, low), compare("<=")(value, high))


def between_either(value: Any, one: Any, other: Any) -> Any:
    return pc.or_kleene(between(value, one, other), between(value, other, one))


def is_true(value: Any) -> Any:
    return pc.fill_null(truth(value), False)


def is_false(value: Any) -> Any:
    return pc.fill_null(pc.invert(truth(value)), False)


def same(a: Any, b: Any) -> Any:
    """a IS NOT DISTINCT FROM b: two nulls are the same, and so are two NaN."""
    if not (is_numeric(a.type) and is_numeric(b.type)):  # numbers of any types are compared exactly
        a, b = alike(a, b)
    missing = pc.and_(pc.is_null(a, nan_is_null=True), pc.is_null(b, nan_is_null=True))
    missing = pc.and_(missing, pc.equal(pc.is_null(a), pc.is_null(b)))
    return pc.or_(missing, pc.fill_null(compare("=")(a, b), False))


def distinct(a: Any, b: Any) -> Any:
    return pc.invert(same(a, b))


def nullif(a: Any, b: Any) -> Any:
    equal = pc.fill_null(compare("=")(a, b), False)
    return pc.if_else(equal, pa.scalar(None, a.type), a)


def truth(value: Any) -> Any:
    found = arithmetic.truth(value)
    if not pa.types.is_boolean(found.type):
        raise pa.ArrowTypeError(f"{found.type} is neither true nor false: compare it with something")
    return found


# -- AND, OR ----------------------------------------------------------------------------------------------------------


def every(links: Sequence[Part]) -> Part:
    return partial(_joined, links, pc.and_kleene, False)


def either(links: Sequence[Part]) -> Part:
    return partial(_joined, links, pc.or_kleene, True)


def _joined(links: Sequence[Part], join: Callable[[Any, Any], Any], decided: bool, rows: BatchRows) -> Any:
    """decided: what one link is, the whole is, whatever the others are."""
    try:
        return reduce(join, (truth(link(rows)) for link in links))
    except RowFailed:
        pass
    found = np.full(rows.count, not decided, object)
    for link in _in_turn(links, rows):
        left = np.flatnonzero(found != decided)
        values = rows.whole(truth(link(rows.at(left)))) if left.size == rows.count else _of(link, rows.at(left))
        found[left] = join(pa.array(found[left], pa.bool_()), values).to_numpy(zero_copy_only=False)
    return pa.array(found, pa.bool_())


def _of(link: Part, rows: BatchRows) -> pa.Array:
    return rows.whole(truth(link(rows)))


def _in_turn(links: Sequence[Part], rows: BatchRows) -> list[Part]:
    """Those that can be computed of all rows first: they may leave out what others can not be computed of."""
    return sorted(links, key=lambda link: _fails(link, rows))


def _fails(link: Part, rows: BatchRows) -> bool:
    try:
        link(rows)
    except RowFailed:
        return True
    return False


def satisfied(links: Sequence[Part], rows: BatchRows) -> np.ndarray:
    """Which rows satisfy every link. One that is false or unknown settles it: the others need not be computed of it."""
    try:
        return _true(reduce(pc.and_kleene, (truth(link(rows)) for link in links)), rows)
    except RowFailed:
        pass
    left = np.arange(rows.count)
    for link in _in_turn(links, rows):
        some = rows.at(left)
        left = left[_true(truth(link(some)), some)]
    found = np.zeros(rows.count, bool)
    found[left] = True
    return found


def _true(values: Any, rows: BatchRows) -> np.ndarray:
    return np.asarray(rows.whole(pc.fill_null(values, False)))


# -- CASE, COALESCE ---------------------------------------------------------------------------------------------------


def case(branches: Sequence[tuple[Part, Part]], default: Part | None, what: str) -> Part:
    """CASE WHEN … THEN … ELSE … END. what: how it is written."""
    last = default or (lambda rows: NOTHING)

    def chosen(rows: BatchRows) -> Any:
        try:
            conditions = [truth(condition(rows)) for condition, _ in branches]
            return _choose(conditions, alike(*(value(rows) for _, value in branches), last(rows)))
        except (RowFailed, pa.ArrowInvalid):  # what can not be computed, or has no room in the type that all have
            return _step_by_step(branches, last, rows, what)

    return chosen


def _choose(conditions: list[Any], values: list[Any]) -> Any:
    found = values[-1]
    for condition, value in zip(conditions[::-1], values[-2::-1], strict=True):
        found = pc.if_else(pc.fill_null(condition, False), value, found)
    return found


def _step_by_step(branches: Sequence[tuple[Part, Part]], last: Part, rows: BatchRows, what: str) -> pa.Array:
    """CASE, each branch computed of those rows only that come to it."""
    left, places, pieces = np.arange(rows.count), [], []
    for condition, value in branches:
        some = rows.at(left)
        taken = _true(truth(condition(some)), some)
        places.append(left[taken])
        pieces.append(_typed(value, rows.at(left[taken])))
        left = left[~taken]
    return _put_together([*pieces, _typed(last, rows.at(left))], [*places, left], rows, what)


def coalesce(values: Sequence[Part], what: str) -> Part:
    """The first that is not null. what: how it is written."""

    def first(rows: BatchRows) -> Any:
        """COALESCE of a batch: of all rows at once; where that fails, of those rows only that were null so far."""
        try:
            return pc.coalesce(*alike(*(value(rows) for value in values)))
        except (RowFailed, pa.ArrowInvalid):
            pass
        left, places, pieces = np.arange(rows.count), [], []
        for value in values:
            some = rows.at(left)
            found = _typed(value, some)
            there = np.asarray(some.whole(pc.is_valid(found)))
            places.append(left[there])
            pieces.append(found if isinstance(found, pa.Scalar) else found.filter(pa.array(there)))
            left = left[~there]
        return _put_together([*pieces, NOTHING], [*places, left], rows, what)

    return first


def _typed(value: Part, rows: BatchRows) -> Any:
    """Where no row comes, nothing is computed but the type."""
    try:
        return value(rows)
    except RowFailed:
        if rows.count:
            raise
        return NOTHING


def _put_together(pieces: list[Any], places: list[np.ndarray], rows: BatchRows, what: str) -> pa.Array:
    """Pieces of rows, each where it belongs, in the type that they have together. A constant stays one until then."""
    order = np.concatenate(places)
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    kinds = [each if isinstance(each, pa.Scalar) else each.slice(0, 0) for each in pieces]

    def beside(number: int, piece: Any) -> Any:
        return alike(*kinds[:number], piece, *kinds[number + 1 :])[number]

    found = []
    for number, (piece, place) in enumerate(zip(pieces, places, strict=True)):
        some = rows.at(place)
        found.append(some.whole(applied(partial(beside, number), what, some, [piece])))
    return pa.concat_arrays(found).take(pa.array(back))
