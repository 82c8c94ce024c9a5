"""What a predicate is made of: comparisons of a column with constants that all have to hold, and the rest.

symbol = 'A' AND price > 20 AND size < 2 * price          an equality, a range, and what is neither

A row satisfies a conjunction where it satisfies every part: where one is unknown, so is the whole, or it is false.
"""

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from swag.errors import BadQuery

_OPERATORS = {"EQ": "=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_own = threading.local()  # .generator: what writes trees, one for each thread, as to make one takes as long as a use


class Comparison(NamedTuple):
    """A column compared with a constant (with one of several, if it is =), and how that is written."""

    column: str
    op: str
    constants: tuple[Any, ...]
    text: str


class Conjuncts(NamedTuple):
    """Comparisons with constants; the other parts, written as one predicate (or none)."""

    comparisons: tuple[Comparison, ...]
    rest: str | None


def conjuncts(tree: Any) -> Conjuncts:
    """Of a predicate, as sqlglot parsed it."""
    found: list[Comparison] = []
    rest: list[Any] = []
    for link in _links(tree.unnest()):
        some = _comparisons(link)
        found += some
        if not some:
            rest.append(link)
    return Conjuncts(tuple(found), " AND ".join(map(_as_part, rest)) or None)


def _links(node: Any) -> Iterator[Any]:
    """What has to hold, however it is put in parentheses."""
    if not is_node(node, "And"):
        yield node
        return
    for each in node.flatten():
        yield from _links(each.unnest())


def _comparisons(link: Any) -> list[Comparison]:
    """None, if it is something else."""
    kind = type(link).__name__
    if link.args.get("negate"):
        return []
    if kind in _OPERATORS:
        return _compared(link, _OPERATORS[kind])
    if kind not in ("In", "Between") or not is_node(link.this.unnest(), "Column"):
        return []
    name, text = link.this.unnest().name, written(link)
    if kind == "In":
        options = tuple(_value(each.unnest()) for each in link.expressions)
        return [] if None in options else [Comparison(name, "=", options, text)]
    low, high = (_value(link.args[end].unnest()) for end in ("low", "high"))
    if low is None or high is None or link.args.get("symmetric"):
        return []
    return [Comparison(name, ">=", (low,), text), Comparison(name, "<=", (high,), text)]


def _compared(link: Any, op: str) -> list[Comparison]:
    left, right = link.left.unnest(), link.right.unnest()
    if is_node(right, "Column"):
        left, right, op = right, left, _TURNED[op]
    value = _value(right) if is_node(left, "Column") else None
    return [] if value is None else [Comparison(left.name, op, (value,), written(link))]


def _value(node: Any) -> Any:
    """A constant as Python has it; None: it is none, or null, with which nothing compares."""
    number = is_node(node, "Neg") and is_node(node.this.unnest(), "Literal") and not node.this.unnest().is_string
    return constant(node).as_py() if number or type(node).__name__ in ("Literal", "Boolean") else None


def constant(node: Any) -> pa.Scalar:
    """The Arrow scalar of a constant in a predicate: a number (uint64, if need be), text, TRUE, FALSE or NULL."""
    node = node.unnest()
    if is_node(node, "Neg"):
        return pc.negate(as_computed(constant(node.this)))
    if is_node(node, "Boolean"):
        return pa.scalar(bool(node.this))
    if is_node(node, "Null"):
        return pa.scalar(None)
    if not is_node(node, "Literal"):
        raise BadQuery(f"{written(node)} is not a constant.", "IN takes a list of numbers or of quoted text")
    if node.is_string:
        return pa.scalar(node.this)
    if not node.this.isdigit() or int(node.this) >= 2**64:
        return pa.scalar(float(node.this))
    return pa.scalar(int(node.this), pa.int64() if int(node.this) < 2**63 else pa.uint64())


def as_computed(value: pa.Scalar) -> pa.Scalar:
    """A constant as it is computed with: a whole number that is too large for int64 is a float."""
    return pa.scalar(float(value.as_py())) if value.type == pa.uint64() else value


def _as_part(node: Any) -> str:
    return f"({written(node)})" if is_node(node, "Or") else written(node)


def written(node: Any) -> str:
    """As SQL. Without a copy of the tree, which takes longer than the rest: of expressions nothing is changed."""
    generator = getattr(_own, "generator", None)
    if generator is None:
        from sqlglot import Dialect, ErrorLevel

        options: Any = {"comments": False, "unsupported_level": ErrorLevel.IGNORE}
        generator = _own.generator = Dialect.get_or_raise("duckdb").generator(**options)
    return str(generator.generate(node, copy=False))


def is_node(node: Any, kind: str) -> bool:
    return type(node).__name__ == kind
