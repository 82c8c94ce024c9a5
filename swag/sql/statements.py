"""From statements to queries."""

from typing import Any

from sqlglot import exp

from swag.errors import BadQuery, BadSQL, BadType
from swag.query.expression import Expression, Operators
from swag.query.query import Events, Query
from swag.sql.framing import frame_query
from swag.sql.functions import EXAMPLES
from swag.sql.hints import ANY_FRAME
from swag.sql.nodes import Select
from swag.sql.over.reading import OverSelect
from swag.sql.over.registering import queries_to_register
from swag.sql.over.statements import over_statement
from swag.sql.parsing import parse, parse_clause
from swag.sql.places import wrong
from swag.sql.terms import Terms
from swag.tables.constants import to_sql

MOST = 10_000_000  # characters of a text


def queries_of(text: str, engine_ts: str | None = None) -> list[Any]:
    """engine_ts: the time of the engine that they are for, if there is one."""
    if not isinstance(text, str):
        raise BadType(f"SQL is text, not {type(text).__name__}.", 'sw.sql("SELECT SUM(volume) FROM trades [ROWS 100]")')
    if len(text) > MOST:
        raise wrong(text, 0, f"the text has {len(text):,} characters, more than {MOST:,}.", "several calls of sw.sql")
    return [query for select in parse(text) for query in _asked(text, select, engine_ts)]


def _asked(text: str, select: Select, engine_ts: str | None) -> list[Any]:
    if not isinstance(select, OverSelect):
        return _queries(text, select)
    return [over_statement(text, select)] if engine_ts is None else queries_to_register(text, select, engine_ts)


def spec_of(text: str) -> Any:
    spec = parse_clause(text).frame
    if spec is None:
        raise wrong(text, 0, "expected a FRAME clause, found nothing.", ANY_FRAME)
    return spec


def _queries(text: str, select: Select) -> list[Any]:
    if select.star is not None:
        raise wrong(
            text, select.star, "SELECT * is not supported here.",
            "an aggregate, e.g. COUNT(*); or FROM (SELECT * FROM trades WHERE price > 20) [ROWS 10]",
        )  # fmt: skip
    terms = Terms(text, select.aliases)
    values = _selected(terms, select)
    having = None if select.having is None else _having(terms, select)
    where = None if select.where is None else terms.predicate(select.where, select.where_start, select.where_text)
    _check_partition(text, select)
    if select.clause.frame is not None:
        return [frame_query(text, select, values, where, having)]
    if not values and having is None:
        raise wrong(text, select.start, "the statement selects no aggregate.", "SELECT symbol, SUM(volume) FROM …")
    source, stream = _source(text, select)
    options: dict[str, Any] = {
        "where": where,
        "having": having,
        "index": select.index,
        "every": select.clause.every,
        "source": source,
        "by": tuple(select.group_by),
        "stream": stream,
    }
    return [_query(text, select, each, options) for each in values or [(None, None, select.start)]]


def _query(text: str, select: Select, value: tuple[Any, str | None, int], options: dict[str, Any]) -> Query:
    term, name, start = value
    try:
        return Query(term, select.clause.window, name, **options)
    except BadSQL:
        raise
    except BadQuery as why:
        raise wrong(text, start, why.message, (select.clause.window and why.hint) or _windowed(select)) from None


def _windowed(select: Select) -> str:
    """FROM with a window, and with what stands in its brackets already."""
    source = select.source if isinstance(select.source, str) else "(SELECT …)"
    return f"FROM {source} [RANGE 5 MINUTES{', FREQUENCY …' if select.clause.every is not None else ''}]"


def _selected(terms: Terms, select: Select) -> list[tuple[Any, str | None, int]]:
    """What is selected, other than the columns of GROUP BY: term, name, offset."""
    values = []
    for tree, alias, start in select.items:
        if isinstance(tree, exp.Column):
            name = terms.column(tree, "SELECT", "GROUP BY symbol, or LAST(symbol)")
            if name not in select.group_by:
                if alias is None and name.upper() in EXAMPLES and not tree.this.args.get("quoted"):
                    raise terms.wrong(tree, f"expected ( after {name}, found none.", EXAMPLES[name.upper()])
                if name in terms.named:
                    values.append((terms.named[name], alias, start))
                    continue
                hint = f"GROUP BY {name}, or LAST({name})"
                raise terms.wrong(tree, f'"{name}" is neither aggregated nor in GROUP BY.', hint)
            if alias is not None and alias != name:
                raise terms.wrong(tree, f'the column "{name}" keeps its name.', "rename it in the answer")
            continue
        term = terms.read(tree, start)
        if not isinstance(term, Operators):
            raise wrong(terms.text, start, f"{to_sql(term)} is a constant.", "an aggregate, e.g. COUNT(*)")
        values.append((term, alias, start))
        terms.named |= {} if alias is None else {alias: term}
    return values


def _having(terms: Terms, select: Select) -> Any:
    having = terms.read(select.having, select.having_start)
    if not isinstance(having, Expression) or not having.is_condition:
        raise wrong(terms.text, select.having_start, "HAVING takes a condition.", "HAVING SUM(volume) > 1000")
    return having


def _check_partition(text: str, select: Select) -> None:
    partition = select.clause.partition
    if partition is not None and select.group_by != [partition]:
        said = f"GROUP BY {', '.join(select.group_by)}" if select.group_by else "no GROUP BY"
        raise wrong(text, select.clause.start, f"PARTITIONED BY {partition}, but {said}.", f"GROUP BY {partition}")


def _source(text: str, select: Select) -> tuple[Query | Events | None, str | None]:
    """What is read, if not all events: their choice, or the answers of a query. And the name of the stream."""
    inner = select.source
    if isinstance(inner, str):
        return None, inner
    if inner.star is not None:
        return _chosen(text, inner)
    found = _queries(text, inner)
    if len(found) != 1 or not isinstance(found[0], Query):
        raise wrong(
            text, inner.start, f"a statement in FROM selects one aggregate; this one selects {len(found)}.",
            "SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM cpu [RANGE 1 HOUR]) [RANGE 1 DAY]",
        )  # fmt: skip
    return found[0], None


def _chosen(text: str, select: Select) -> tuple[Query | Events | None, str | None]:
    """SELECT * FROM stream WHERE …, in FROM."""
    clause = select.clause
    if clause.window is not None or clause.every is not None or clause.frame is not None:
        raise wrong(
            text, clause.start, "SELECT * chooses events, it has no window.",
            "FROM (SELECT * FROM trades WHERE price > 20) [ROWS 10]",
        )  # fmt: skip
    if select.group_by or select.having is not None:
        raise wrong(text, select.start, "SELECT * chooses events, it does not group them.", "GROUP BY outside of FROM")
    source, stream = _source(text, select)
    if select.where is None:
        return source, stream
    where = Terms(text, select.aliases).predicate(select.where, select.where_start, select.where_text)
    chosen = Events(where, source, stream=stream)
    return chosen, stream
