"""Conditions that only compare numbers: of columns with each other, or with constants.

price < PREV(price), load > 0.3 AND load <= 2: most conditions are of this kind, and need no SQL. Arrow takes 9 ns a row
for one of them (nulls are bits, NaN is not null, bits become bytes), NumPy 1 ns, piece by piece.
"""

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from frames.patterns.conditions import SymbolCondition, parsed
from swag.tables.conjuncts import is_node

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "LT": operator.lt, "LTE": operator.le, "GT": operator.gt, "GTE": operator.ge, "EQ": operator.eq,
}  # fmt: skip
Side = str | int | float  # the name of a column, or a constant


class Compared(NamedTuple):
    """Of a column with a constant or with another column."""

    left: Side
    op: Callable[[Any, Any], Any]
    right: Side


def comparisons(condition: SymbolCondition) -> tuple[Compared, ...] | None:
    """What has to hold for a row, if that is no more than comparisons; None: it is more."""
    if condition.rows is None:
        return None
    tree = parsed(condition.rows, "").unnest()
    found = []
    for link in [each.unnest() for each in tree.flatten()] if is_node(tree, "And") else [tree]:
        op = OPERATORS.get(type(link).__name__)
        left, right = (None, None) if op is None else (_side(link.this), _side(link.expression))
        if op is None or left is None or right is None or not (isinstance(left, str) or isinstance(right, str)):
            return None
        found.append(Compared(left, op, right))
    return tuple(found)


def _side(node: Any) -> Side | None:
    """A column or a number; None: it is neither."""
    node = node.unnest()
    if is_node(node, "Column"):
        return str(node.name)
    if is_node(node, "Neg"):
        inner = _side(node.this)
        return None if inner is None or isinstance(inner, str) else -inner
    if not is_node(node, "Literal") or node.is_string:
        return None
    return int(node.this) if node.this.isdigit() else float(node.this)
