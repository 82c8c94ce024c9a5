"""Queries as plain values: what a case holds, the Python that makes a query of it, and what the oracle is asked.

    Ask(Of("sum", ("x",)), Range(10), where="y > 0", having=(">", 3))

A term is an aggregate (Of), a number, or (operator, term, …) as in tests/oracle_expressions.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

import swag as sw
from tests import oracle, oracle_expressions
from tests.oracle import Range, Rows
from tests.oracle_expressions import Leaf, Statement
from tests.oracle_ticks import Every

Event = dict[str, Any]


class Brief:
    """A repr without what is as usual."""

    def __repr__(self) -> str:
        shown = [(f.name, getattr(self, f.name), f.default) for f in fields(self)]  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v, default in shown if v != default)})"


@dataclass(frozen=True, repr=False)
class Of(Brief):
    """An aggregate of columns; with a window and a filter of its own, or those of the query."""

    kind: str
    columns: tuple[str, ...] = ()
    ddof: int | None = None
    phi: float | None = None
    method: str | None = None
    half_life: int | None = None
    n: int | None = None
    window: Rows | Range | None = None
    where: str | None = None


@dataclass(frozen=True, repr=False)
class Ask(Brief):
    """`having`: (">", v), ("between", low, high), or a term that is a condition.

    `source`: a condition on events, or the query whose answers are read; `name`: what those answers are called there.
    """

    term: Any
    window: Rows | Range | None = None
    where: str | None = None
    having: Any = None
    index: bool = True
    every: Every | None = None
    source: Any = None
    name: str | None = None

    @property
    def is_simple(self) -> bool:
        return isinstance(self.term, Of) and (self.having is None or not isinstance(self.having[1], Of | tuple))


def aggregates_of(ask: Ask) -> list[Of]:
    """All that are in its term and its condition."""

    def leaves(term: Any) -> list[Of]:
        if isinstance(term, Of):
            return [term]
        return [of for each in term for of in leaves(each)] if isinstance(term, tuple) else []

    return leaves(ask.term) + leaves(ask.having)


def columns_of(ask: Ask) -> set[str]:
    """All that are read. Names of columns are single letters, so those of a condition are found in its text."""
    texts = [ask.where, *(of.where for of in aggregates_of(ask)), ask.source if isinstance(ask.source, str) else None]
    read = {name for of in aggregates_of(ask) for name in of.columns}
    read |= columns_of(ask.source) if isinstance(ask.source, Ask) else set()
    return read | {word for text in texts if text for word in text.replace("(", " ").split() if len(word) == 1}


# --- Aggregates of the user's own ---------------------------------------------------------------------------


def _own(column: str, lift: Any, combine: Any, lower: Any, identity: Any) -> sw.Aggregate:
    return sw.aggregate(column, lift=lift, combine=combine, lower=lower, identity=identity)


OWN = {
    "squares": (lambda x: x * x, lambda a, b: a + b, lambda a: a, 0.0),
    "turn": (lambda x: (x, x), lambda a, b: (a[0], b[1]), lambda a: a[1] - a[0], (0.0, 0.0)),
}
MADE = {name: _own("y", *parts).alias(name) for name, parts in OWN.items()}
NAMESPACE = {"sw": sw, "inf": math.inf, "nan": math.nan, **MADE}


def _own_oracle(kind: str, columns: tuple[str, ...]) -> oracle.Agg:
    """The oracle folds from the left, and has no identity for `turn`: the first value is the state."""
    if kind == "squares":
        lift, combine, lower, identity = OWN[kind]
        return oracle.Agg("user", columns, lift=lift, combine=combine, lower=lower, identity=identity)
    joined = lambda a, b: b if a is None else (a[0], b[1])  # noqa: E731
    turned = lambda a: float(np.float64(a[1]) - np.float64(a[0]))  # noqa: E731
    return oracle.Agg("user", columns, lift=lambda x: (x, x), combine=joined, lower=turned)


# --- As Python, and as the library's own --------------------------------------------------------------------


def query(ask: Ask, name: str | None = None) -> sw.Query:
    """What is told is what is run: the query is made of its own text."""
    return eval(code(ask, name), dict(NAMESPACE))


def code(ask: Ask, name: str | None = None) -> str:
    name = name or ask.name
    parts = [term_code(ask.term), window_code(ask.window)] + [repr(name)] * (name is not None)
    parts += [f"where={ask.where!r}"] * (ask.where is not None)
    if ask.having is not None:
        parts.append(f"having={ask.having!r}" if is_plain_condition(ask.having) else f"having={term_code(ask.having)}")
    parts += ["index=False"] * (not ask.index)
    parts += [f"every={every_code(ask.every)}"] if ask.every is not None else []
    if ask.source is not None:
        parts.append(f"source={code(ask.source) if isinstance(ask.source, Ask) else f'sw.Events({ask.source!r})'}")
    return f"sw.Query({', '.join(parts)})"


def is_plain_condition(having: Any) -> bool:
    return not any(isinstance(each, Of | tuple) for each in having[1:])


def window_code(window: Rows | Range | None) -> str:
    if window is None:
        return "None"
    if isinstance(window, Rows):
        return f"sw.Rows({window.n}, {window.until})" if window.until else f"sw.Rows({window.n})"
    closed = f", closed={window.closed!r}" if window.closed != "right" else ""
    return f"sw.Range({window.t}{f', {window.until}' if window.until else ''}{closed})"


def every_code(every: Every) -> str:
    much = f"{every.rows}" if every.rows is not None else f"time={every.time}"
    anchor = f", anchor={every.anchor!r}" if every.rows is None and every.anchor != "tick" else ""
    return f"sw.Every({much}{anchor}{', per_key=True' if every.per_key else ''})"


INFIX = {"+": "+", "-": "-", "*": "*", "/": "/", ">": ">", ">=": ">=", "<": "<", "<=": "<=", "and": "&", "or": "|"}
PREFIX = {"neg": "-", "not": "~"}
METHODS = {"coalesce": "coalesce", "=": "eq", "<>": "ne", "between": "between", "is null": "is_null"}


def term_code(term: Any) -> str:
    if isinstance(term, Of):
        return _aggregate_code(term)
    if not isinstance(term, tuple):
        return repr(term)
    op, *operands = term
    texts = [term_code(each) for each in operands]
    if op in INFIX:
        return f"({f' {INFIX[op]} '.join(texts)})"
    if op in METHODS:
        return f"{texts[0]}.{METHODS[op]}({', '.join(texts[1:])})"
    return f"abs({texts[0]})" if op == "abs" else f"({PREFIX[op]}{texts[0]})"


def _aggregate_code(of: Of) -> str:
    options = [repr(column) for column in of.columns]
    options += [repr(of.phi)] if of.phi is not None else []
    named = ("ddof", "method", "half_life", "n")
    options += [f"{name}={getattr(of, name)!r}" for name in named if getattr(of, name) is not None]
    text = of.kind if of.kind in MADE else f"sw.{of.kind}({', '.join(options)})"
    text += f".filter({of.where!r})" if of.where is not None else ""
    return text + (f".over({window_code(of.window)})" if of.window is not None else "")


# --- As the oracle's ----------------------------------------------------------------------------------------


def unknown_or(test: Callable[[Any], bool], *columns: str) -> Callable[[Event], bool | None]:
    """SQL: unknown where a column is null; NaN satisfies no comparison."""

    def holds(event: Event) -> bool | None:
        values = [event[name] for name in columns]
        return None if any(v is None or v != v for v in values) else test(*values)

    return holds


def negated(test: Callable[[Event], bool | None]) -> Callable[[Event], bool | None]:
    return lambda event: None if test(event) is None else not test(event)


POSITIVE = unknown_or(lambda y: y > 0, "y")
WHERE: dict[str | None, Callable[[Event], bool | None] | None] = {
    None: None,
    "y > 0": POSITIVE,
    "NOT (y > 0)": negated(POSITIVE),
    "n <= 1": unknown_or(lambda n: n <= 1, "n"),
    "n IN (0, 2)": unknown_or(lambda n: n in (0, 2), "n"),
    "s LIKE 'b%'": unknown_or(lambda s: s.startswith("b"), "s"),
    "s = 'ask'": unknown_or(lambda s: s == "ask", "s"),
    "x IS NULL": lambda event: event["x"] is None,
    "y > 0 AND s = 'bid'": lambda event: bool(POSITIVE(event)) and event["s"] == "bid",
    "v > 0": unknown_or(lambda v: v > 0, "v"),  # of the answers of another query
}


def agg(of: Of) -> oracle.Agg:
    if of.kind in OWN:
        return _own_oracle(of.kind, ("y",))
    named = ("ddof", "phi", "method", "half_life", "n")
    options = {name: getattr(of, name) for name in named if getattr(of, name) is not None}
    return oracle.agg(of.kind, *of.columns, **options)


def statement(ask: Ask) -> Statement:
    having = ask.having
    if having is not None and is_plain_condition(having):
        having = (having[0], ask.term, *having[1:])
    return Statement(_leaves(ask.term, ask), WHERE[ask.where], None if having is None else _leaves(having, ask))


def _leaves(term: Any, ask: Ask) -> Any:
    if isinstance(term, Of):
        return Leaf(agg(term), term.window or ask.window, WHERE[term.where])
    return (term[0], *(_leaves(each, ask) for each in term[1:])) if isinstance(term, tuple) else term


def simple(ask: Ask) -> oracle.Q:
    """As the oracle of ticks takes it: one aggregate, and a plain condition."""
    return oracle.Q(agg(ask.term), ask.window, WHERE[ask.where], ask.having)


@dataclass(frozen=True)
class Expected:
    """An answer. `present`: is there an event in a window? `passes`: None where rounding may decide it either way."""

    value: Any
    allowed: float
    present: bool
    passes: bool | None


def expected(ask: Ask, window: Callable[[oracle.Q], list[Event]]) -> Expected:
    """`window`: the events of a query's window, after `where`. Of what is computed, the type is not looked at."""
    value, present, passes = oracle_expressions.answer(statement(ask), window)
    allowed = 0.0
    if isinstance(ask.term, Of):
        seen = window(oracle.Q(agg(ask.term), ask.term.window or ask.window, WHERE[ask.where]))
        counted = [e for e in seen if not ask.term.where or WHERE[ask.term.where](e)]
        allowed = oracle.tolerance(agg(ask.term), oracle.Window(counted, getattr(seen, "now", math.nan)))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        value = float(value)
        allowed = 1e-9 * max(1.0, abs(value)) if math.isfinite(value) else 0.0
    near = isinstance(value, float) and ask.having is not None and is_plain_condition(ask.having)
    near = near and any(abs(value - bound) <= allowed for bound in ask.having[1:])
    return Expected(value, allowed, present, None if near and allowed else passes)


def is_same(want: Expected, got: Any) -> bool:
    if isinstance(want.value, bool) or isinstance(got, bool):
        return want.value is got
    return oracle.same(want.value, got, want.allowed)
