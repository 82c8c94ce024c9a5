"""Columns that are computed: wherever a column is named, SQL over columns will do.

    volume               a column
    price*volume         the column of that name, if there is one; else SQL, whose column is called "(price * volume)"
    "odd name"           SQL: the column that is named in quotes

Which of the two a text is shows when there are events. Until then, and inside, what may be SQL is called by its normal
form in parentheses: who writes the same in other blanks, cases of keywords or needless parentheses, reads the same
column, computed once for each batch. What is no SQL can only be the name of a column.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

import pyarrow as pa

from swag.errors import BadQuery, UnknownColumn, nearest
from swag.tables.columns import column, shown_names
from swag.tables.expressions.expression import NotSQL, RowExpression, compiled, values

CONSTANTS = ("TRUE", "FALSE", "NULL")


def is_word(name: str) -> bool:
    """Is it the name of a column, and no SQL?"""
    return name.isidentifier() and name.upper() not in CONSTANTS


@lru_cache(maxsize=1 << 16)
def derived(name: str) -> RowExpression | None:
    """The SQL that a text may be; None: it is the name of a column."""
    if is_word(name):
        return None
    try:
        found = compiled(name)
    except BadQuery:
        return None
    qualified = found.is_column and name.lstrip()[0] not in '("'  # a.b, or a column of that name
    return None if qualified else found


def column_name(text: str) -> str:
    """What a column is called that is named by this text."""
    found = derived(text)
    return text if found is None else f"({found.bare})"


def name_with_parentheses(text: str) -> str:
    """What the same column was called as long as parentheses made a difference: states of then name it so."""
    found = derived(text)
    return text if found is None else f"({found.text})"


def quoted(name: str) -> str:
    """The text that names this column and no expression."""
    return name if derived(name) is None else '"' + name.replace('"', '""') + '"'


def of_events(
    wanted: Mapping[str, str], texts: Mapping[str, Iterable[str]], have: Collection[str] = ()
) -> dict[str, str]:
    """The columns that events must have for these, each with who asks for it: those that SQL is over, not itself.

    texts: those that may be SQL, and how they were written. have: the names of columns that are there, if known.
    """
    found: dict[str, str] = {}
    for name, asked_by in wanted.items():
        exact = next((text for text in (name, *texts.get(name, ())) if text in have), None)
        expression = derived(name) if name in texts and exact is None else None
        for each in [exact or name] if expression is None else sorted(expression.columns):
            found.setdefault(each, asked_by)
    return found


def with_derived(table: pa.Table, wanted: Mapping[str, str], texts: Mapping[str, Iterable[str]]) -> pa.Table:
    """The table, with the columns that are computed. wanted: their names, each with who asks for it; texts: how they
    were written, as a column of exactly that name is meant if there is one."""
    there, extended = set(table.column_names), table
    for name, asked_by in wanted.items():
        if name in there:
            continue
        found = next((text for text in texts.get(name, ()) if text in there), None)
        values = _computed(table, name, asked_by) if found is None else table.column(found)
        extended = extended.append_column(name, values)
    return extended


def _computed(table: pa.Table, name: str, asked_by: str) -> pa.Array:
    expression = derived(name)
    if expression is None:
        raise _neither(table, name, asked_by)
    for each in sorted(expression.columns):
        column(table, each, f"{asked_by} {expression.text}, and with it", expression.text)
    return values(expression, table, f"{asked_by} {expression.text}, which")


def _neither(table: pa.Table, name: str, asked_by: str) -> UnknownColumn:
    """Of a text that is neither a column nor SQL."""
    try:
        why = "it is that of a table"
        compiled(name)
    except NotSQL as reason:
        why = f"it can not be read{f' {reason.message}' * bool(reason.message)}"
    except BadQuery as reason:
        why = reason.message.rstrip(".")
    have = f"the events have: {', '.join(shown_names(table))}"
    return UnknownColumn(f'{asked_by} "{name}", but {have}; and as SQL, {why}.', nearest(name, table.column_names))
