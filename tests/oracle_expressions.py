"""What expressions over aggregates are, in plain and slow Python: SQL's three-valued logic, NULL as None.

An expression is a constant, a Leaf, or a tuple (operator, operand, ...). Imports nothing of ours but the oracle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests import oracle
from tests.oracle import Agg, Event, Events, Q, Range, Rows

Term = Any


@dataclass(frozen=True)
class Leaf:
    """An aggregate over its window; `where` is its FILTER, on top of the statement's."""

    agg: Agg
    window: Rows | Range
    where: Callable[[Event], bool | None] | None = None


@dataclass(frozen=True)
class Statement:
    value: Term
    where: Callable[[Event], bool | None] | None = None
    having: Term = None


def leaves(term: Term) -> Iterator[Leaf]:
    if isinstance(term, Leaf):
        yield term
    elif isinstance(term, tuple):
        for each in term[1:]:
            yield from leaves(each)


def compute(term: Term, answer: Callable[[Leaf], Any]) -> Any:
    if isinstance(term, Leaf):
        return answer(term)
    if not isinstance(term, tuple):
        return term
    op, *operands = term
    return OPERATORS[op](*(compute(each, answer) for each in operands))


def strict(function: Callable[..., Any]) -> Callable[..., Any]:
    """NULL in, NULL out."""
    return lambda *values: None if any(v is None for v in values) else function(*values)


def divided(a: Any, b: Any) -> float:
    """As IEEE has it."""
    a, b = float(a), float(b)
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def compared(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool | None]:
    """Unknown with NULL, and with NaN."""
    return lambda a, b: None if a is None or b is None or oracle.is_nan(a) or oracle.is_nan(b) else test(a, b)


def both(*values: bool | None) -> bool | None:
    return False if False in values else None if None in values else True


def either(*values: bool | None) -> bool | None:
    return True if True in values else None if None in values else False


COMPARE = {
    ">": compared(lambda a, b: a > b),
    ">=": compared(lambda a, b: a >= b),
    "<": compared(lambda a, b: a < b),
    "<=": compared(lambda a, b: a <= b),
    "=": compared(lambda a, b: a == b),
    "<>": compared(lambda a, b: a != b),
}
OPERATORS: dict[str, Callable[..., Any]] = {
    "+": strict(lambda a, b: a + b),
    "-": strict(lambda a, b: a - b),
    "*": strict(lambda a, b: a * b),
    "/": strict(divided),
    "neg": strict(lambda a: -a),
    "abs": strict(abs),
    "coalesce": lambda *values: next((v for v in values if v is not None), None),
    **COMPARE,
    "between": lambda x, low, high: both(COMPARE[">="](x, low), COMPARE["<="](x, high)),
    "in": lambda x, *options: either(*(COMPARE["="](x, option) for option in options)),
    "is null": lambda x: x is None,
    "and": both,
    "or": either,
    "not": lambda a: None if a is None else not a,
}


def answer(statement: Statement, window: Callable[[Q], Events]) -> tuple[Any, bool, bool]:
    """The value; whether there is an event in any window (FILTER aside); whether `having` is true."""
    both_of = [*leaves(statement.value), *leaves(statement.having)]

    def one(leaf: Leaf) -> Any:
        seen = window(Q(leaf.agg, leaf.window, statement.where))
        counted = [e for e in seen if leaf.where is None or leaf.where(e)]
        return oracle.aggregate(leaf.agg, oracle.Window(counted, getattr(seen, "now", math.nan)))

    present = any(window(Q(leaf.agg, leaf.window, statement.where)) for leaf in both_of)
    passes = statement.having is None or compute(statement.having, one) is True
    return compute(statement.value, one), present, passes


def evaluate(statement: Statement, events: Events, key: str | None) -> list[Any]:
    """At each event; null where `having` does not hold."""
    windows: dict[Any, list[list[Event]]] = {}

    def at(row: int) -> Callable[[Q], Events]:
        def window(query: Q) -> Events:
            known = (query.window, query.where)
            if known not in windows:
                windows[known] = oracle.windows(query, events, None, key)
            return windows[known][row]

        return window

    found = [answer(statement, at(row)) for row in range(len(events))]
    if statement.having is None:
        return [value for value, _, _ in found]
    return [value if present and passes else None for value, present, passes in found]


def lookup(statement: Statement, engine: oracle.Engine) -> dict[Any, Any]:
    """{key: value} of the keys in the answer, now."""
    keys = engine.keys()
    found = {k: answer(statement, lambda q, k=k: engine.window(q, k)) for k in keys}  # type: ignore[misc]
    return {k: value for k, (value, present, passes) in found.items() if present and passes}
