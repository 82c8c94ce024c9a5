"""A statement with OVER ( … ) over stored events.

Every window function is a plain query, so that many share what any queries do: all with the same partition are one
grouping, whose rows are put in order once. What stands around them is computed over their columns.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.over.aliases import spelt_out
from swag.over.partitions import Partitions
from swag.over.results import Results, no_column
from swag.progress import Progress
from swag.query.over_statement import ROW, TIME, Call, Item, OverStatement
from swag.query.query import Query
from swag.sql.places import wrong
from swag.stored.evaluation import answered_by
from swag.tables.columns import as_table, one_chunk
from swag.tables.expressions.expression import compiled, values
from swag.tables.predicate import holds

UNORDERED = "no ts·"  # a column of equal times: events as they came, all of them peers


def evaluate_over(statement: OverStatement, events: Any, ts: str, progress: Progress) -> pa.Table:
    """One row per event for which WHERE holds, in input order, unless the statement says otherwise."""
    table = as_table(events)
    statement = spelt_out(statement, table.column_names)
    _check_order(statement, ts)
    _check_columns(statement, table)
    if statement.where is not None:
        table = table.filter(pa.array(holds(statement.where, table, called="WHERE")))
    answers = _answers(statement.calls, table, ts, progress)
    return Results(statement, table, answers).table()


def _check_order(statement: OverStatement, ts: str) -> None:
    for call in statement.calls:
        if call.order not in (None, ts):
            raise wrong(
                statement.text, call.order_start, f'the window is in order of "{call.order}", but ts is "{ts}".',
                f'sw.evaluate(…, ts="{call.order}"), if that is the column of time; windows are in order of no other',
            )  # fmt: skip


def _check_columns(statement: OverStatement, table: pa.Table) -> None:
    """Raise where a name is neither that of a column of the events nor given by AS."""
    given = {item.name for item in statement.items if isinstance(item, Item)}
    for name in sorted(statement.named - given - set(table.column_names)):
        raise no_column(statement.text, name, table)


def _answers(calls: tuple[Call, ...], table: pa.Table, ts: str, progress: Progress) -> dict[str, Any]:
    """The columns of answers, by their names."""
    partitions = Partitions(table)
    answers: dict[str, Any] = {}
    for ordered in (True, False):
        some = [call for call in calls if (call.order is not None) == ordered]
        queries = [_query(call, partitions) for call in some]
        if queries:
            extended, time = _extended(partitions.table, some, ts if ordered else None)
            found = answered_by(queries, extended, None, time, (), progress)
            answers |= {query.label: found.column(query.label) for query in queries}
    taken = {call.name: _taken(call, table, answers) for call in calls if call.takes}
    return answers | taken


def _query(call: Call, partitions: Partitions) -> Query:
    return Query(call.aggregate, call.window, call.name, where=call.where, by=partitions.columns(call.partition))


def _extended(table: pa.Table, calls: list[Call], ts: str | None) -> tuple[pa.Table, str]:
    """The events with the columns that calls need beside theirs, and the name of the one that is time."""
    time = ts or UNORDERED
    if ts is None:
        table = table.append_column(UNORDERED, pa.array(np.zeros(table.num_rows, np.int64)))
    asked = {name for call in calls for name in call.aggregate.columns}
    if ROW in asked:
        table = table.append_column(ROW, pa.array(np.arange(table.num_rows)))
    if TIME in asked and time in table.column_names:
        table = table.append_column(TIME, table.column(time))
    return table, time


def _taken(call: Call, table: pa.Table, answers: dict[str, Any]) -> Any:
    """The values in the rows whose numbers were answered."""
    found = answers[call.name]
    for text in call.takes:
        expression = compiled(text)
        inner = {name: answers[name] for name in expression.columns if name in answers}
        of = values(expression, with_columns(table, inner), f"{text} of a window function")
        found = pc.take(of, one_chunk(found))
    return found


def with_columns(table: pa.Table, columns: dict[str, Any]) -> pa.Table:
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table
