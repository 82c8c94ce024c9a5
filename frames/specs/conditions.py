"""Conditions over aggregates that frames are cut by: which there are, and whether frames close before or with an event.

    sw.max("a") - sw.min("a"), ">", 3               one value that is compared with a number
    (sw.sum("v") > 10) & (sw.count() >= 3)          several comparisons, by & and |

A comparison by > or >= is waited for: a frame closes with the event that makes it true. One by < or <= is kept up: a
frame closes before the event that would break it. A condition of both, or of neither, must say which is meant.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

from swag.errors import BadQuery
from swag.query.aggregates import Aggregate as Aggregated
from swag.query.expression import ARITHMETIC, COMPARISONS, Expression, Operators, Windowed, leaves, mapped, plain

Close = Literal["before", "with"]
GROWING = (  # frames grow by these: frames/scans/aggregate.py knows how
    "count", "sum", "mean", "min", "max", "first", "last", "var", "std", "wmean", "cov", "corr", "quantile",
    "aggregate",
)  # fmt: skip
FURTHER = (  # and by these: frames/scans/conditions.py
    "count_if", "any", "all", "skew", "kurtosis", "product", "slope", "intercept", "r2", "arg_max", "arg_min",
    "count_distinct", "approx_count_distinct", "mode", "decayed_sum", "decayed_mean", "decayed_count",
)  # fmt: skip
REFUSED = {  # by kind: why, and what to write
    "age": (
        "the age of a frame's last event is 0 at that event, which is when it is asked for",
        """since an event of one sort: sw.last("ts") - sw.last("CASE WHEN side = 'buy' THEN ts END"), on integer ts""",
    ),
    "last_n": ("a list is compared with no number", 'sw.last("x"), sw.min("x"), sw.max("x")'),
    "first_n": ("a list is compared with no number", 'sw.first("x"), sw.min("x"), sw.max("x")'),
}
OPERATORS = (*ARITHMETIC, *COMPARISONS, "between", "and", "or")
HINT = 'fr.Aggregate(sw.sum("volume"), ">=", 25), fr.Aggregate((sw.sum("v") > 10) & (sw.count() >= 3))'


def check_term(term: Any) -> None:
    """Refuse what frames do not grow by."""
    if not isinstance(term, Operators):
        raise BadQuery(f"Aggregate takes an aggregate of swag, or several, not {term!r}.", HINT)
    for each in _nodes(term):
        if each.op not in OPERATORS:
            raise BadQuery(f"frames are not cut by {each.op.upper()}: {each}.", f"by {' '.join(OPERATORS)}")
    for leaf in leaves(term):
        if leaf.window is not None:
            raise BadQuery(f"{leaf}: an aggregate of a frame has no window of its own.", HINT)
        kind = leaf.aggregate.kind
        if kind in REFUSED:
            raise BadQuery(f"frames are not cut by {kind}: {REFUSED[kind][0]}.", REFUSED[kind][1])
        if kind not in (*GROWING, *FURTHER):
            raise BadQuery(f"frames do not grow by {kind}.", f"one of {', '.join((*GROWING, *FURTHER))}")
        if kind == "quantile" and not isinstance(term, Aggregated):
            raise BadQuery(
                f"{leaf}: a quantile is compared with a number, by itself.", 'fr.Aggregate(sw.median("x"), ">", 3)'
            )
    for constant in _constants(term):
        if not isinstance(constant, int | float) or isinstance(constant, bool):
            raise BadQuery(f"{term} compares with {constant!r}, which is no number.", HINT)


def _nodes(term: Any) -> Iterator[Expression]:
    if isinstance(term, Expression):
        yield term
        for each in term.operands:
            yield from _nodes(each)


def _constants(term: Any) -> Iterator[Any]:
    for node in _nodes(term):
        yield from (each for each in node.operands if not isinstance(each, Operators))


def is_condition(term: Any) -> bool:
    return isinstance(term, Expression) and term.is_condition


def compared(term: Any) -> tuple[Any, str, Any] | None:
    """A value, how it is compared, and with which number; None: it is another condition."""
    if isinstance(term, Expression) and term.op in ("<", "<=", ">", ">="):
        value, c = term.operands
        return None if isinstance(c, Operators) else (value, term.op, c)
    return None


def usual_close(term: Expression) -> Close | None:
    """When frames of a condition close if nobody says so: None where its comparisons do not agree."""
    ops = {node.op for node in _nodes(term) if node.is_condition and node.op not in ("and", "or")}
    if ops <= {">", ">="}:
        return "with"
    return "before" if ops <= {"<", "<="} else None


def without_filters(term: Any) -> Any:
    """The same, of columns that are null where a filter does not hold."""
    return mapped(term, lambda leaf: leaf.aggregate if leaf.where is None else _of_chosen(leaf))


def _of_chosen(leaf: Windowed) -> Aggregated:
    from swag.query.as_sql import column

    first, *others = leaf.aggregate.columns or (None,)
    chosen = f"CASE WHEN {leaf.where} THEN {1 if first is None else column(first)} END"
    if leaf.aggregate.kind == "decayed_count":  # it is of no column: as many ones, decayed
        return replace(leaf.aggregate, kind="decayed_sum", columns=(chosen,), written=(), called=())
    return replace(leaf.aggregate, columns=(chosen, *others), written=(), called=())


def bare(term: Any) -> Any:
    """An aggregate without a window or a filter of its own is itself."""
    return plain(term) if isinstance(term, Windowed) else term
