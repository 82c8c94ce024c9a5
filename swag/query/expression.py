"""Arithmetic and conditions over aggregates, as frozen values: what SQL writes between SELECT and HAVING.

    (sw.max("price") - sw.min("price")) / sw.last("price") > 0.03
    sw.last("price").over(sw.Range("20m")) < 0.98 * sw.first("price").over(sw.Range("20m"))
    (sw.sum("volume").filter("side = 'ask'") >= 1000) & ~sw.count().between(1, 5)
    sw.Expression("sql", ("ROUND(_1 / _2, 1)", sw.sum("volume"), sw.count()))       any other SQL, of places

Equality compares values, as everywhere in Python; the condition is written `.eq(…)`, `.ne(…)`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from swag.arguments import as_list, is_option
from swag.errors import BadQuery
from swag.query.as_call import shown
from swag.query.windows import WINDOWS, Window
from swag.tables import constants
from swag.tables.expressions import places

DEEPEST = 100  # an expression nested deeper is refused: everything that walks one recurses
ARITHMETIC = {"+": 2, "-": 2, "*": 2, "/": 2, "neg": 1, "abs": 1}
COMPARISONS = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "=": "=", "<>": "<>"}  # and what they are from behind
TESTS = {**dict.fromkeys(COMPARISONS, 2), "between": 3, "in": None, "is null": 1}
LOGIC = {"and": None, "or": None, "not": 1}
SQL = "sql"  # scalar SQL over places (swag/tables/expressions/places.py), and the aggregates that these stand for
_ARITY: dict[str, int | None] = {**ARITHMETIC, "coalesce": None, **TESTS, **LOGIC, SQL: None}
SQL_EXAMPLE = 'sw.Expression("sql", ("ROUND(_1, 1)", sw.mean("price")))'
EXAMPLE = '(sw.max("price") - sw.min("price")) / sw.last("price") > 0.03'


class Operators:
    """What aggregates and expressions can be written with."""

    def __add__(self, other: Any) -> "Expression":
        return Expression("+", (self, other))

    def __radd__(self, other: Any) -> "Expression":
        return Expression("+", (other, self))

    def __sub__(self, other: Any) -> "Expression":
        return Expression("-", (self, other))

    def __rsub__(self, other: Any) -> "Expression":
        return Expression("-", (other, self))

    def __mul__(self, other: Any) -> "Expression":
        return Expression("*", (self, other))

    def __rmul__(self, other: Any) -> "Expression":
        return Expression("*", (other, self))

    def __truediv__(self, other: Any) -> "Expression":
        return Expression("/", (self, other))

    def __rtruediv__(self, other: Any) -> "Expression":
        return Expression("/", (other, self))

    def __neg__(self) -> "Expression":
        return Expression("neg", (self,))

    def __abs__(self) -> "Expression":
        return Expression("abs", (self,))

    def __gt__(self, other: Any) -> "Expression":
        return Expression(">", (self, other))

    def __ge__(self, other: Any) -> "Expression":
        return Expression(">=", (self, other))

    def __lt__(self, other: Any) -> "Expression":
        return Expression("<", (self, other))

    def __le__(self, other: Any) -> "Expression":
        return Expression("<=", (self, other))

    def __and__(self, other: Any) -> "Expression":
        return Expression("and", (self, other))

    def __or__(self, other: Any) -> "Expression":
        return Expression("or", (self, other))

    def __invert__(self) -> "Expression":
        return Expression("not", (self,))

    def eq(self, other: Any) -> "Expression":
        return Expression("=", (self, other))

    def ne(self, other: Any) -> "Expression":
        return Expression("<>", (self, other))

    def between(self, low: Any, high: Any) -> "Expression":
        """Both ends included."""
        return Expression("between", (self, low, high))

    def isin(self, options: Iterable[Any]) -> "Expression":
        return Expression("in", (self, *as_list(options, "options", 'sw.last("state").isin([1, 2])')))

    def is_null(self) -> "Expression":
        return Expression("is null", (self,))

    def coalesce(self, *others: Any) -> "Expression":
        """The first that is not null."""
        return Expression("coalesce", (self, *others))

    def alias(self, name: str) -> Any:
        """Refused: only what is one aggregate has a name of its own."""
        raise BadQuery(
            f"{self} is called by the name of its query: only an aggregate by itself has a name of its own.",
            f"sw.Query(…, name={shown(name)}), or over frames fr.FrameQuery(spec, {{{shown(name)}: …}})",
        )

    def over(self, window: Window) -> Any:
        """Over a window of its own, rather than the query's."""
        if not isinstance(window, WINDOWS):
            raise BadQuery(f"over({window!r}): that is no window.", 'sw.last("price").over(sw.Range("20m"))')
        return _with_leaves(self, lambda leaf: leaf if leaf.window else replace(leaf, window=window))

    def filter(self, where: str) -> Any:
        """Only of the rows for which an SQL predicate holds, as FILTER (WHERE …) does."""
        from swag.tables.predicate import canonical, conjunction

        text = canonical(where)
        return _with_leaves(self, lambda leaf: replace(leaf, where=conjunction(leaf.where, text)))


@dataclass(frozen=True)
class Windowed(Operators):
    """An aggregate with a window, a filter, or both, of its own."""

    aggregate: Any
    window: Window | None = None
    where: str | None = None

    def __repr__(self) -> str:
        where = f".filter({shown(self.where)})" if self.where else ""
        return f"{self.aggregate!r}{where}" + (f".over({self.window!r})" if self.window else "")

    def __str__(self) -> str:
        where = f" FILTER (WHERE {self.where})" if self.where else ""
        return f"{self.aggregate}{where}{self.window or ''}"


@dataclass(frozen=True)
class Expression(Operators):
    """An operator over aggregates, numbers, text and other expressions. NULL is unknown, as in SQL.

    >>> import swag as sw
    >>> spread = (sw.max("x") - sw.min("x")) / sw.last("x")
    >>> spread
    (sw.max("x") - sw.min("x")) / sw.last("x")
    >>> sw.evaluate(sw.Query(spread, sw.Rows(2), name="s"), {"ts": [1, 2], "x": [2.0, 4.0]})["s"].to_pylist()
    [0.0, 0.5]
    """

    op: str
    operands: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not is_option(self.op, _ARITY) or not isinstance(self.operands, tuple):
            raise BadQuery(f"{self.op!r} of {self.operands!r} is no expression.", EXAMPLE)
        operands = tuple(_operand(each) for each in self.operands)
        if self.op in ("and", "or"):  # a AND (b AND c) is one AND of three
            operands = tuple(part for each in operands for part in (each.operands if is_op(each, self.op) else (each,)))
        if self.op in COMPARISONS and len(operands) == 2 and not isinstance(operands[0], Operators):
            object.__setattr__(self, "op", COMPARISONS[self.op])  # 5 < sum is sum > 5, as Python has it
            operands = operands[::-1]
        object.__setattr__(self, "operands", operands)
        _check(self)
        if self.op == SQL:
            operands = _in_one_form(*operands)
            object.__setattr__(self, "operands", operands)
        depth = 1 + max((each.depth for each in operands if isinstance(each, Expression)), default=0)
        object.__setattr__(self, "depth", depth)
        if depth > DEEPEST:
            raise BadQuery(f"an expression is nested more than {DEEPEST} deep.", "register its parts as queries")

    depth = 1

    def __bool__(self) -> bool:
        raise BadQuery(f"{self} is known only once there are events.", "combine conditions by &, | and ~")

    @property
    def is_condition(self) -> bool:
        """Of SQL: it may be one."""
        return self.op in TESTS or self.op in LOGIC or (self.op == SQL and places.may_be_true(self.operands[0]))

    def __repr__(self) -> str:
        return as_python(self)

    def __str__(self) -> str:
        return render(self, str)


def is_op(term: Any, *ops: str) -> bool:
    return isinstance(term, Expression) and term.op in ops


def holds_sql(term: Any) -> bool:
    """Is some of it SQL?"""
    return isinstance(term, Expression) and (term.op == SQL or any(map(holds_sql, term.operands)))


@lru_cache(maxsize=1 << 14)
def as_sql(term: Expression) -> Expression:
    """All of an expression as SQL over the places of its aggregates."""
    return term if term.op == SQL else Expression(SQL, ("_1", term))


def _in_one_form(text: str, *values: Any) -> tuple[Any, ...]:
    """Its text in the one form that it has, and the aggregates that its places stand for: other values become SQL."""
    found = list(dict.fromkeys(leaf for each in values for leaf in leaves(each)))
    numbers = {leaf: places.place(number) for number, leaf in enumerate(found, 1)}

    def place(leaf: Any) -> str:
        return numbers[leaf if isinstance(leaf, Windowed) else Windowed(leaf)]

    plain_ones = all(isinstance(each, Operators) and not isinstance(each, Expression) for each in values)
    if not plain_ones or len(found) < len(values):
        whole = text.strip() in ("_1", "(_1)")
        written = [render(each, place, places.constant) for each in values]
        text = places.filled(text, written if whole else [places.inside(each) for each in written])
    text, order = places.in_order(text, len(found))
    if not order:
        raise BadQuery(f"{text} is of no aggregate.", f'"_1", for the first: {SQL_EXAMPLE}')
    return (text, *(plain(found[number - 1]) for number in order))


def conjuncts(term: Expression) -> tuple[Any, ...]:
    return term.operands if term.op == "and" else (term,)


def leaves(term: Any) -> Iterator[Windowed]:
    """The aggregates of an expression, each with a window and filter of its own or none."""
    if isinstance(term, Expression):
        for each in term.operands:
            yield from leaves(each)
    elif isinstance(term, Windowed):
        yield term
    elif isinstance(term, Operators):
        yield Windowed(term)


def mapped(term: Any, change: Callable[[Windowed], Any]) -> Any:
    """The expression with each of its aggregates replaced."""
    if isinstance(term, Expression):
        return Expression(term.op, tuple(mapped(each, change) for each in term.operands))
    if not isinstance(term, Operators):
        return term
    return change(term if isinstance(term, Windowed) else Windowed(term))


def plain(leaf: Windowed) -> Any:
    """The bare aggregate where it has nothing of its own."""
    return leaf.aggregate if leaf.window is None and leaf.where is None else leaf


def _with_leaves(term: Any, change: Callable[[Windowed], Windowed]) -> Any:
    return mapped(term, lambda leaf: plain(change(leaf)))


def _operand(value: Any) -> Any:
    """What an operator may stand between: aggregates, expressions and constants; anything else is refused, and NaN."""
    if isinstance(value, Operators):
        return value
    value = constants.plain(value)
    if not constants.is_constant(value):
        raise BadQuery(f"{value!r} is neither an aggregate, a number nor text.", EXAMPLE)
    if value != value:
        raise BadQuery("nothing compares with NaN.", EXAMPLE)
    return value


def _check(term: Expression) -> None:
    """Raise if an operator is given too few operands, constants alone, or conditions where numbers belong."""
    op, operands = term.op, term.operands
    arity = _ARITY.get(op, -1)
    if arity is not None and len(operands) != arity:
        raise BadQuery(f"{op!r} of {len(operands)} operands is no expression.", EXAMPLE)
    if arity is None and len(operands) < 2:
        raise BadQuery(f"{op!r} takes at least two operands.", EXAMPLE)
    if not any(isinstance(each, Operators) for each in operands):
        raise BadQuery(f"{op!r} of constants alone: an expression is of aggregates.", EXAMPLE)
    if op == SQL and not isinstance(operands[0], str):
        raise BadQuery(f"{operands[0]!r} is no SQL.", SQL_EXAMPLE)
    if op == "in" and any(isinstance(each, Operators) for each in operands[1:]):
        raise BadQuery("IN takes a list of constants.", 'sw.last("state").isin([1, 2])')
    for each in operands:
        condition = isinstance(each, Expression) and each.is_condition
        if op == SQL:
            continue
        if op in LOGIC and not condition:
            raise BadQuery(
                f"{op.upper()} is given {each}, which is neither true nor false.", f"a comparison: {EXAMPLE}"
            )
        if op not in LOGIC and condition and each.op != SQL:
            raise BadQuery(f"{each} is a condition, and can not be computed or compared with.", "combine by & and |")
        if op in ARITHMETIC and isinstance(each, str):
            raise BadQuery(f"{op!r} computes with text: {each!r}.", EXAMPLE)
        if op in ARITHMETIC and (isinstance(each, bool) or not isinstance(each, Operators | int | float)):
            raise BadQuery(f"{op!r} computes with {each!r}, which is no integer and no float.", EXAMPLE)


# -- as text ----------------------------------------------------------------------------------------------------------

_BINDS = {"or": 1, "and": 2, "not": 3, "+": 5, "-": 5, "*": 6, "/": 6, "neg": 7, "abs": 8, "coalesce": 8}
_CALLED = 8


def render(term: Any, leaf: Callable[[Any], str], constant: Callable[[Any], str] = constants.to_sql) -> str:
    """As SQL writes it; `leaf` writes an aggregate."""
    if not isinstance(term, Expression):
        return leaf(term) if isinstance(term, Operators) else constant(term)
    op, binds = term.op, _binds(term)

    def inside(each: Any, least: int) -> str:
        text = render(each, leaf, constant)
        return f"({text})" if isinstance(each, Expression) and _binds(each) < least else text

    if op == SQL:
        return places.filled(term.operands[0], [render(each, leaf) for each in term.operands[1:]])
    if op in ("abs", "coalesce"):
        return f"{op.upper()}({', '.join(inside(each, 0) for each in term.operands)})"
    if op == "neg":
        return f"-{inside(term.operands[0], 8)}"
    if op == "not":
        return f"NOT ({inside(term.operands[0], 0)})"
    if op in ("and", "or"):
        return f" {op.upper()} ".join(inside(each, binds + 1) for each in term.operands)
    first, *rest = (inside(each, binds + (i > 0 or binds == 4)) for i, each in enumerate(term.operands))
    if op == "is null":
        return f"{first} IS NULL"
    if op == "between":
        return f"{first} BETWEEN {rest[0]} AND {rest[1]}"
    return f"{first} IN ({', '.join(rest)})" if op == "in" else f"{first} {op} {rest[0]}"


def _binds(term: Expression) -> int:
    """How tightly: what binds less than its surroundings stands in parentheses."""
    if term.op == SQL:
        return _CALLED if places.is_whole(term.operands[0]) else 0
    return _BINDS.get(term.op, 4)


# -- as Python --------------------------------------------------------------------------------------------------------

_INFIX = {**dict.fromkeys((">", ">=", "<", "<="), 0), "or": 1, "and": 2, "+": 4, "-": 4, "*": 5, "/": 5}
_SIGNS = {"or": "|", "and": "&", "neg": "-", "not": "~"}
_METHODS = {"=": "eq", "<>": "ne", "between": "between", "in": "isin", "is null": "is_null", "coalesce": "coalesce"}
_UNARY, _CALL = 6, 8


def as_python(term: Any) -> str:
    """As it is written with aggregates of sw."""
    if not isinstance(term, Expression):
        return shown(term)
    op, first, rest = term.op, term.operands[0], term.operands[1:]
    if op in _INFIX:
        binds = _INFIX[op]
        texts = [_inside(first, max(binds, 1)), *(_inside(each, binds + 1) for each in rest)]
        return f" {_SIGNS.get(op, op)} ".join(texts)
    if op in ("neg", "not"):
        return f"{_SIGNS[op]}{_inside(first, _UNARY)}"
    if op == "abs":
        return f"abs({as_python(first)})"
    if op == SQL or not isinstance(first, Operators):  # 5 BETWEEN a AND b: constants have no such methods
        return f"sw.Expression({shown(op)}, {shown(term.operands)})"
    given = ", ".join(map(as_python, rest))
    return f"{_inside(first, _CALL)}.{_METHODS[op]}({f'[{given}]' if op == 'in' else given})"


def _inside(term: Any, least: int) -> str:
    """In parentheses, if it binds less than that."""
    if not isinstance(term, Expression):
        return as_python(term)
    binds = _UNARY if term.op in ("neg", "not") else _INFIX.get(term.op, _CALL)
    return f"({as_python(term)})" if binds < least else as_python(term)
