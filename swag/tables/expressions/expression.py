"""An expression over the columns of events: from its text to a value for each row, and the one way it is written."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from swag.errors import BadEvents, BadQuery, BadType
from swag.tables.conjuncts import Conjuncts, conjuncts, is_node, written
from swag.tables.expressions.compiling import Compiler
from swag.tables.expressions.logic import every
from swag.tables.expressions.parentheses import bare
from swag.tables.expressions.rows import BatchRows, Part, RowFailed

LONGEST = 100_000  # characters
_ARGUMENTS = {"number of provided arguments": "more", "Required keyword": "fewer"}  # how sqlglot says so
HINT = "numbers with numbers, text in '…' with text; \"…\" is the name of a column"


class RowExpression(NamedTuple):
    """An expression as functions of rows, the columns it reads, and how it is written: one way, however it came.

    links: what has to hold, if it is a conjunction; else itself. conjuncts: the same, as far as constants are compared.
    """

    part: Part
    links: tuple[Part, ...]
    columns: frozenset[str]
    text: str
    within_and: str  # as a part of a conjunction
    conjuncts: Conjuncts
    is_column: bool
    bare: str  # as `text`, without needless parentheses

    def rows(self, table: pa.Table, places: Any = None) -> BatchRows:
        return BatchRows(table.select(sorted(self.columns)), table.num_rows, places)


@lru_cache(maxsize=1 << 16)  # one takes a millisecond, and of many filters all are asked for now and then
def compiled(text: str) -> RowExpression:
    """Raises BadQuery, without saying whose expression it is."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if len(text) > LONGEST:
        raise BadQuery(f"it is {len(text):,} characters long, more than {LONGEST:,}.")
    try:
        tree = parsed(text).unnest()
        if "~" in text and tree.find(exp.RegexpLike):  # sqlglot takes the one for the other, which matches a part
            raise BadQuery("~ is not supported.", "REGEXP_MATCHES(s, '^a.*b$')")
        compiler = Compiler()
        is_joined = is_node(tree, "And")
        links = tuple(map(compiler.part, tree.flatten() if is_joined else [tree]))
        part = every(list(links)) if is_joined else links[0]
        for column in tree.find_all(exp.Column):
            column.set("table", None)
        of_it = written(tree)
        within_and = f"({of_it})" if is_node(tree, "Or") else of_it
        columns = frozenset(compiler.columns)
        found = conjuncts(tree), is_node(tree, "Column"), bare(tree, of_it)
        return RowExpression(part, links, columns, of_it, within_and, *found)
    except SqlglotError as why:
        found = (getattr(why, "errors", None) or [{}])[0]
        not_sql = NotSQL(f"at column {found['col']}" if "col" in found else "")
        not_sql.arguments = next((n for said, n in _ARGUMENTS.items() if said in found.get("description", "")), "")
        raise not_sql from None
    except RecursionError:
        raise TooDeep("it is nested too deep.") from None
    except (pa.ArrowException, OverflowError, ValueError) as why:
        if isinstance(why, BadQuery):
            raise
        raise BadQuery(f"it holds a constant that can not be read: {why}.") from None


class TooDeep(BadQuery):
    """A text whose parts lie in each other deeper than Python calls functions."""


class NotSQL(BadQuery):
    """A text that sqlglot can not read; where it stopped. arguments: "more" or "fewer" than a function takes, if that
    is why."""

    arguments: str = ""


def parsed(text: str) -> Any:
    """Its tree, of sqlglot."""
    import sqlglot  # a fifth of a second that only those who compute or filter should pay

    tree = sqlglot.parse_one(text, into=sqlglot.exp.Condition, dialect="duckdb")
    if tree is None:
        raise BadQuery("it is empty.")
    return tree


def values(expression: RowExpression, table: pa.Table, what: str) -> pa.Array:
    """A value for each row. what: how an error begins."""
    with saying(what, expression, table):
        rows = expression.rows(table)
        return rows.whole(expression.part(rows))


@contextmanager
def saying(what: str, expression: RowExpression, table: pa.Table) -> Iterator[None]:
    """What went wrong, said of an expression: that of a row is told with the row, that of types with the types."""
    try:
        yield
    except RowFailed as why:
        failed = f"{what} can not be computed of row {why.row}{why.shown}: {why}."
        raise BadEvents(failed, instead(why), about=expression.text) from None
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as why:
        names = [name for name in sorted(expression.columns) if name in table.column_names]
        types = ", ".join(f"{name} is {table.schema.field(name).type}" for name in names)
        reason = f"{types}. {why}" if types else str(why)
        unfit = f"{what} can not be computed: {reason.rstrip('.')}."
        raise BadType(unfit, getattr(why, "hint", "") or HINT, about=expression.text) from None


def instead(why: RowFailed, shown: str | None = None) -> str:
    """What to write where an expression can not be computed of a row. shown: how what failed is written, if not so."""
    if "division by zero" in why.why:
        return "a % NULLIF(b, 0), which is null there"
    if why.what.startswith("CAST"):
        return f"TRY_{shown or why.what}, which is null there"
    if "regular expression" in why.why:
        return r"REGEXP_MATCHES(s, '^a.*b$'), or '\(' for a parenthesis itself"
    return "CAST(… AS DOUBLE) has more room" if "overflow" in why.why else "CASE WHEN … THEN … END leaves rows out"
