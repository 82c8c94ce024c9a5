"""The normal form of a query over expressions: what means the same is equal, however it was written.

window    that of the one aggregate; else the one window of all; else the query's, if any of them uses it; else none
leaves    carry a window only where it is another than the query's
having    a condition on the one aggregate itself is a tuple, which an index over the keys may serve
"""

from dataclasses import replace
from typing import Any

from swag.errors import BadQuery
from swag.query.condition import condition
from swag.query.expression import COMPARISONS, EXAMPLE, Expression, Operators, Windowed, leaves, mapped, plain
from swag.query.windows import WINDOWS


def normal(aggregate: Any, window: Any, having: Any) -> tuple[Any, Any, Any]:
    """The aggregate, the window and the condition of a query in the form that all have who mean the same."""
    if window is not None and not isinstance(window, WINDOWS):
        raise BadQuery(f"{window!r} is no window.", 'sw.Rows(1000) or sw.Range("5m")')
    if aggregate is None:
        aggregate = _selected(having)
    if not isinstance(aggregate, Operators):
        raise BadQuery(
            f"a query aggregates something; {aggregate!r} is no aggregate.", 'sw.Query(sw.sum("volume"), sw.Rows(100))'
        )
    having = _checked(having)
    if window is not None and not isinstance(aggregate, Windowed | Expression) and not isinstance(having, Expression):
        return aggregate, window, having
    terms = [_resolved(aggregate, window), _resolved(having, window) if isinstance(having, Expression) else None]
    window = _common(terms, window)
    aggregate, conditions = (mapped(term, lambda leaf: plain(_relative(leaf, window))) for term in terms)
    if isinstance(having, tuple) and isinstance(aggregate, Expression | Windowed):
        op, *values = having
        return aggregate, window, Expression(op, (aggregate, *values))
    return aggregate, window, having if conditions is None else _as_tuple(conditions, aggregate)


def _selected(having: Any) -> Any:
    """SELECT key … HAVING …: the value is the aggregate that is compared; of a longer condition, that it holds."""
    if not isinstance(having, Expression):
        raise BadQuery("a query aggregates something, or has a condition that does.", f"sw.Query(having={EXAMPLE})")
    first = having.operands[0]
    return having if isinstance(first, Expression) or not _is_simple(having) else first


def _checked(having: Any) -> Any:
    if having is None or (isinstance(having, Expression) and having.is_condition):
        return having
    if isinstance(having, Operators):
        raise BadQuery(f"having={having}: that is neither true nor false.", f"having={EXAMPLE}")
    return condition(having).written


def _resolved(term: Any, window: Any) -> Any:
    """Every leaf with the window it is over."""

    def explicit(leaf: Windowed) -> Windowed:
        if leaf.window is None and window is None:
            raise BadQuery(f"{leaf} is over no window.", f'sw.Query(…, sw.Range("5m")), or {leaf}.over(sw.Range("5m"))')
        return leaf if leaf.window is not None else replace(leaf, window=window)

    return mapped(term, explicit)


def _common(terms: list[Any], window: Any) -> Any:
    if isinstance(terms[0], Windowed):
        return terms[0].window
    used = {leaf.window for term in terms for leaf in leaves(term)}
    if len(used) == 1:
        return used.pop()
    return window if window in used else None


def _relative(leaf: Windowed, window: Any) -> Windowed:
    return replace(leaf, window=None) if leaf.window == window else leaf


def _is_simple(term: Expression) -> bool:
    """An aggregate against constants, in a way that `having` knows as a tuple."""
    known = (term.op in COMPARISONS and term.op not in ("=", "<>")) or term.op == "between"
    return known and not any(isinstance(each, Operators) for each in term.operands[1:])


def _as_tuple(having: Expression, aggregate: Any) -> Any:
    simple = not isinstance(aggregate, Expression | Windowed) and having.operands[0] == aggregate and _is_simple(having)
    return (having.op, *having.operands[1:]) if simple else having
