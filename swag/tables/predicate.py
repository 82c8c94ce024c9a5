"""`where`: an SQL predicate on the event, an expression (swag/tables/expressions) that is true or false.

NULL means unknown, as in SQL: a row counts where the predicate is true.
"""

import numpy as np
import pyarrow as pa

from swag.errors import BadQuery
from swag.tables.columns import column
from swag.tables.expressions.expression import NotSQL, RowExpression, compiled, saying
from swag.tables.expressions.logic import satisfied

EXAMPLE = "where=\"side = 'buy' AND price > 20\""


def compile_predicate(text: str) -> RowExpression:
    """The predicate of a `where`, ready to be tried on rows; what is no SQL predicate is refused with its text."""
    if not isinstance(text, str):
        raise BadQuery(f"where={text!r} is not an SQL predicate.", EXAMPLE)
    try:
        return compiled(text)
    except NotSQL as why:
        place = f" {why.message}" if why.message else ""
        raise BadQuery(f"where={text!r} is not an SQL predicate{place}.", EXAMPLE) from None
    except BadQuery as why:
        shown = text if len(text) < 1000 else f"{text[:40]}…"
        raise BadQuery(f"where={shown!r}: {why.message}", why.hint or EXAMPLE) from None


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


def holds(text: str, table: pa.Table, places: np.ndarray | None = None, called: str = "") -> np.ndarray:
    """Which rows satisfy the predicate. places: their numbers in the batch, if they are some of it. called: what it is,
    if it is no `where`."""
    predicate = compile_predicate(text)
    with saying(f"{called} {text}" if called else f"where={text!r}", predicate, table):
        return satisfied(predicate.links, predicate.rows(_with_all(predicate, table, text), places))


def _with_all(predicate: RowExpression, table: pa.Table, text: str) -> pa.Table:
    for name in predicate.columns:
        column(table, name, f"where={text!r} reads", text)
    return table
