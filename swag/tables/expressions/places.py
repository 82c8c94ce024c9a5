"""Scalar SQL over places: `_1`, `_2`, … stand for values that come from elsewhere, such as the answers of aggregates.

    ROUND(_1 / _2, 1)      of SUM(x) and COUNT(*)

Each text has one form: places are numbered as they come in it, and there are no needless parentheses.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa

from swag.errors import BadQuery
from swag.tables.conjuncts import written
from swag.tables.constants import to_sql
from swag.tables.decimals import MOST_DIGITS
from swag.tables.expressions.expression import compiled, parsed
from swag.tables.expressions.rows import BatchRows, RowFailed

EXAMPLE = '"ROUND(_1 / _2, 1)", of two values'
_PLACE = re.compile(r"_([1-9][0-9]{0,5})")
_TOLD = re.compile(rf"(?<!\w){_PLACE.pattern}(?!\w)")
_WHOLE = frozenset(("Column", "Case", "Cast", "TryCast", "Paren", "Boolean", "Null"))  # beside functions


def place(number: int) -> str:
    """The place of a value, the first being 1."""
    return f"_{number}"


def number_of(name: str) -> int:
    """The number of a place."""
    found = _PLACE.fullmatch(name)
    if found is None:
        raise BadQuery(f"{name} stands for no value: values are _1, _2, … here.", EXAMPLE)
    return int(found[1])


@lru_cache(maxsize=1 << 14)
def in_order(text: str, values: int) -> tuple[str, tuple[int, ...]]:
    """A text in its one form, and which of the values, from 1, its places stand for then. Raises BadQuery."""
    text, order = compiled(text).bare, tuple(range(1, values + 1))
    for _ in range(3):  # what is written anew may be read in another order, once
        tree = parsed(text).unnest()
        found = list(dict.fromkeys(number_of(each.name) for each in _columns(tree)))
        if found and max(found) > len(order):
            raise BadQuery(f"{place(max(found))} stands for no value: there are {len(order)}.", EXAMPLE)
        if found == list(range(1, len(order) + 1)):
            break
        places = {number: i for i, number in enumerate(found, 1)}
        for each in _columns(tree):
            each.this.set("this", place(places[number_of(each.name)]))
        text, order = compiled(written(tree)).bare, tuple(order[number - 1] for number in found)
    return text, order


def _columns(tree: Any) -> list[Any]:
    from sqlglot import exp

    return [each for each in tree.dfs() if isinstance(each, exp.Column)]


def filled(text: str, values: Sequence[str]) -> str:
    """The text with each place replaced by how its value is written."""
    from sqlglot import exp

    tree = exp.Paren(this=parsed(text))
    for each in _columns(tree):
        each.replace(exp.Var(this=values[number_of(each.name) - 1]))
    return written(tree.this)


def inside(text: str) -> str:
    """An expression as a part of others."""
    return text if _PLACE.fullmatch(text) else f"({text})"


def told(message: str, values: Sequence[str]) -> str:
    """A message about an expression over places, in the words of whoever wrote it."""

    def named(found: re.Match[str]) -> str:
        number = int(found[1])
        return values[number - 1] if number <= len(values) else found[0]

    return _TOLD.sub(named, message)


def constant(value: Any) -> str:
    """A constant as SQL that has all of its digits."""
    if isinstance(value, Decimal):
        digits = max(0, -int(value.as_tuple().exponent)) if value.is_finite() else 0
        return f"CAST('{value:f}' AS DECIMAL({MOST_DIGITS}, {min(digits, MOST_DIGITS)}))"
    return to_sql(value)


@lru_cache(maxsize=1 << 14)
def is_whole(text: str) -> bool:
    """Can it stand beside any operator without parentheses: a call, CASE, a cast?"""
    from sqlglot import exp

    tree = parsed(text)
    binary = isinstance(tree, exp.Binary | exp.Unary | exp.Connector | exp.In | exp.Between | exp.AtTimeZone)
    return type(tree).__name__ in _WHOLE or (isinstance(tree, exp.Func) and not binary) or isinstance(tree, exp.Pow)


@lru_cache(maxsize=1 << 14)
def may_be_true(text: str) -> bool:
    """Not so where it is a number, a text or a time, whatever it is of."""
    expression = compiled(text)
    try:
        found = expression.part(BatchRows(pa.table({name: pa.nulls(0) for name in expression.columns}), 0))
    except (pa.ArrowException, RowFailed):  # nothing is known of what it is of
        return True
    return bool(pa.types.is_boolean(found.type) or pa.types.is_null(found.type))
