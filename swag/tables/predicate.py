"""`where`: an SQL predicate on the event, parsed by sqlglot, compiled once to vectorised Arrow functions; never `eval`.

NULL means unknown, as in SQL: a row counts where the predicate is true.
"""

from collections.abc import Callable
from functools import lru_cache, partial, reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.errors import BadQuery, BadType
from swag.tables import arithmetic
from swag.tables.columns import column, decoded, one_chunk
from swag.tables.comparing import compared
from swag.tables.conjuncts import Conjuncts, conjuncts, constant, is_node, written

Compiled = Callable[[pa.Table], Any]
LONGEST = 100_000  # characters of a predicate
DEEPEST = 100
UNDERSTOOD = {  # what sqlglot says of the parts of a predicate; one of which it says more is refused
    "this", "expression", "expressions", "low", "high", "symmetric", "negate", "is_string", "table", "typed", "safe",
}  # fmt: skip
EXAMPLE = "where=\"side = 'buy' AND price > 20\""

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "And": arithmetic.both,
    "Or": arithmetic.either,
    "EQ": partial(compared, "="),
    "NEQ": partial(compared, "<>"),
    "LT": partial(compared, "<"),
    "LTE": partial(compared, "<="),
    "GT": partial(compared, ">"),
    "GTE": partial(compared, ">="),
    "Add": arithmetic.add,
    "Sub": arithmetic.subtract,
    "Mul": arithmetic.multiply,
    "Div": arithmetic.divide,
}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "Not": arithmetic.negated,
    "Neg": arithmetic.negate,
    "Abs": arithmetic.absolute,
}


class Predicate(NamedTuple):
    """A predicate as a function of a table, the columns it reads, and how it is written: one way, however it came."""

    holds: Compiled
    columns: frozenset[str]
    text: str
    within_and: str  # as a part of a conjunction
    parts: Conjuncts


def compile_predicate(text: str) -> Predicate:
    if not isinstance(text, str):
        raise BadQuery(f"where={text!r} is not an SQL predicate.", EXAMPLE)
    return _compiled(text)


@lru_cache(maxsize=1 << 16)  # one takes a millisecond, and of many filters all are asked for now and then
def _compiled(text: str) -> Predicate:
    import sqlglot  # a fifth of a second that only those who filter should pay
    from sqlglot.errors import SqlglotError

    if len(text) > LONGEST:
        raise BadQuery(f"where={text[:40]!r}… is {len(text):,} characters long, more than {LONGEST:,}.", EXAMPLE)
    try:
        tree = sqlglot.parse_one(text, into=sqlglot.exp.Condition, dialect="duckdb")
        if tree is None:
            raise BadQuery("where is empty.", 'where="price > 20", or leave it out')
        columns: set[str] = set()
        compiled = _compile(tree.unnest(), text, columns)
        for column_node in tree.find_all(sqlglot.exp.Column):
            column_node.set("table", None)
        text_of_it = written(tree.unnest())
        loose = isinstance(tree.unnest(), sqlglot.exp.Or)
        within_and = f"({text_of_it})" if loose else text_of_it
        return Predicate(compiled, frozenset(columns), text_of_it, within_and, conjuncts(tree.unnest()))
    except SqlglotError as why:
        place = (getattr(why, "errors", None) or [{}])[0]
        where = f" at column {place['col']}" if "col" in place else ""
        raise BadQuery(f"where={text!r} is not an SQL predicate{where}.", EXAMPLE) from None
    except RecursionError:
        raise BadQuery(f"where={text[:40]!r}… is nested too deep.", EXAMPLE) from None
    except (pa.ArrowException, OverflowError, ValueError) as why:
        if isinstance(why, BadQuery):
            raise
        raise BadQuery(f"where={text!r} holds a constant that can not be read: {why}.", EXAMPLE) from None


def canonical(text: str) -> str:
    """One way to write it: predicates that differ in blanks, case of keywords or comments only are one."""
    return compile_predicate(text).text


def conjunction(one: str | None, other: str | None) -> str | None:
    """Both of two predicates, each canonical or none."""
    if one is None or other is None or one == other:
        return other if one is None else one
    return f"{compile_predicate(one).within_and} AND {compile_predicate(other).within_and}"


def columns_of(text: str) -> frozenset[str]:
    return compile_predicate(text).columns


def holds(text: str, table: pa.Table) -> np.ndarray:
    """Which rows satisfy the predicate."""
    try:
        answer = compile_predicate(text).holds(table)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as why:
        types = ", ".join(f"{name} is {table.schema.field(name).type}" for name in sorted(columns_of(text)))
        raise BadType(
            f"where={text!r} can not be computed: {types}. {why}.",
            "numbers with numbers, text in '…' with text; \"…\" is the name of a column",
        ) from None
    answer = arithmetic.truth(answer)
    if not pa.types.is_boolean(answer.type):
        raise BadType(
            f"where={text!r} gives {answer.type}, not true or false.", 'a comparison, e.g. where="price > 20"'
        )
    if isinstance(answer, pa.Scalar):
        return np.full(table.num_rows, bool(answer.as_py()))
    return np.asarray(one_chunk(pc.fill_null(answer, False)))


def _compile(node: Any, text: str, columns: set[str], depth: int = 0) -> Compiled:
    kind = type(node).__name__
    if depth > DEEPEST:
        raise RecursionError

    def inside(each: Any) -> Compiled:
        return _compile(each, text, columns, depth + 1)

    if any(given for name, given in node.args.items() if name not in UNDERSTOOD):
        raise _unsupported(node, text)
    if kind == "Paren":
        return inside(node.this)
    if node.args.get("negate"):  # NOT LIKE
        plain = node.copy()
        plain.set("negate", None)
        inner = inside(plain)
        return lambda table: arithmetic.negated(inner(table))
    if kind == "Column":
        name = node.name
        columns.add(name)
        return lambda table: decoded(column(table, name, f"where={text!r} reads"))
    if kind in ("Literal", "Boolean", "Null"):
        value = constant(node)
        return lambda table: value
    if kind in ("And", "Or"):  # a long chain of them is no deep tree
        links, join = [inside(each) for each in node.flatten()], _BINARY[kind]
        return lambda table: reduce(join, (link(table) for link in links))
    if kind in _BINARY:
        left, right, apply = inside(node.left), inside(node.right), _BINARY[kind]
        return lambda table: apply(left(table), right(table))
    if kind in _UNARY:
        inner, apply_one = inside(node.this), _UNARY[kind]
        return lambda table: apply_one(inner(table))
    if kind == "Between":
        parts = [inside(part) for part in (node.this, node.args["low"], node.args["high"])]
        within = _between_either if node.args.get("symmetric") else _between
        return lambda table: within(*(part(table) for part in parts))
    if kind == "In":
        inner, options = inside(node.this), [constant(o) for o in node.expressions]
        return lambda table: _among(inner(table), options)
    if kind == "Is" and is_node(node.expression, "Null"):
        inner = inside(node.this)
        return lambda table: pc.is_null(inner(table))
    if kind == "Like" and is_node(node.expression.unnest(), "Literal"):
        inner, pattern = inside(node.this), node.expression.unnest().this
        return lambda table: _like(inner(table), pattern)
    raise _unsupported(node, text)


def _unsupported(node: Any, text: str) -> BadQuery:
    return BadQuery(
        f"where={text!r}: {written(node) or type(node).__name__} is not supported.",
        "comparisons, + - * /, ABS, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL",
    )


def _between(value: Any, low: Any, high: Any) -> Any:
    return pc.and_kleene(compared(">=", value, low), compared("<=", value, high))


def _like(value: Any, pattern: str) -> Any:
    """SQL has no character that escapes others unless ESCAPE names one; to Arrow a backslash is it."""
    if pa.types.is_null(value.type):
        return pc.cast(value, pa.bool_())
    return pc.match_like(value, pattern.replace("\\", "\\\\"))


def _between_either(value: Any, one: Any, other: Any) -> Any:
    return pc.or_kleene(_between(value, one, other), _between(value, other, one))


def _among(value: Any, options: list[pa.Scalar]) -> Any:
    """x IN (…): null where x is null, or where nothing matches and an option is null."""
    found: Any = pa.scalar(False)
    for option in options:
        found = pc.or_kleene(found, compared("=", value, option))
    return found
