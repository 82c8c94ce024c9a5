"""From statements to queries."""

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlglot import exp

from swag.errors import BadQuery, BadSQL, BadType
from swag.query.every import Every
from swag.query.expression import Expression, Operators
from swag.query.groupings import streams_of
from swag.query.kinds import last
from swag.query.lowering import components
from swag.query.query import Events, Query, Several, Source
from swag.query.windows import Rows, sees_later
from swag.sql.framing import frame_query
from swag.sql.functions import EXAMPLES
from swag.sql.hints import ANY_FRAME
from swag.sql.match_recognize import match_query
from swag.sql.nodes import Clause, Select
from swag.sql.over.reading import OverSelect
from swag.sql.over.registering import queries_to_register
from swag.sql.over.statements import over_statement
from swag.sql.parsing import parse, parse_clause, parse_term
from swag.sql.places import wrong
from swag.sql.templates import Templates
from swag.sql.terms import Terms
from swag.tables.constants import to_sql

MOST_CHARACTERS = 10_000_000  # characters of a text
OF_FRAMES = ("frame_id", "start", "end", "rows")  # what every row about a frame has
_KNOWN = Templates()


def queries_of(
    text: str, registered: Mapping[str, Any] | None = None, engine_ts: str | None = None, templates: Templates = _KNOWN
) -> list[Any]:
    """registered: those that a statement may read by their name. Of the text itself, the ones before it. engine_ts: the
    time of the engine that they are for, if there is one. templates: of statements that need not be read again."""
    if not isinstance(text, str):
        raise BadType(f"SQL is text, not {type(text).__name__}.", 'sw.sql("SELECT SUM(volume) FROM trades [ROWS 100]")')
    if len(text) > MOST_CHARACTERS:
        raise wrong(
            text, 0, f"the text has {len(text):,} characters, more than {MOST_CHARACTERS:,}.", "several calls of sw.sql"
        )
    known = templates.queries(text, lambda text: _read(text, None, engine_ts), registered or (), engine_ts)
    return _read(text, registered, engine_ts) if known is None else known


def _read(text: str, registered: Mapping[str, Any] | None, engine_ts: str | None) -> list[Any]:
    found: list[Any] = []
    named = None if registered is None else Named(registered)
    for select in parse(text):
        if isinstance(select, OverSelect):
            if engine_ts is None:
                some: list[Any] = [over_statement(text, select, len(found))]
            else:
                some = queries_to_register(text, select, engine_ts)
        else:
            some = _asked(text, select, named)
        found += some
        if named is not None:
            named.add(some)
    return found


class Named:
    """What names in FROM stand for: the queries that an engine has, and those of the statements before.

    Thousands may be there, and hardly a statement names one: they are looked at when one does.
    """

    def __init__(self, registered: Mapping[str, Any]) -> None:
        self._before: dict[str, Any] = {}
        self._queries = ChainMap(self._before, registered)  # type: ignore[arg-type]

    def add(self, queries: list[Any]) -> None:
        """Of the statement that was just read."""
        self._before |= {query.label: query for query in queries if isinstance(query, Query)}

    def _streams(self) -> set[str]:
        """The streams of events that queries read."""
        asked = [query for query in self._queries.values() if isinstance(query, Query)]
        return set().union(*map(streams_of, asked))

    def source(self, text: str, select: Select) -> Query | None:
        """The query that FROM names, if it is one's name."""
        name = select.source
        query = self._queries.get(name) if isinstance(name, str) else None
        if not isinstance(query, Query):
            return None
        if name in self._streams():
            raise wrong(
                text, select.start, f'FROM {name}: both a query and the events that queries read are called "{name}".',
                "another name for the query",
            )  # fmt: skip
        return query


def spec_of(text: str) -> Any:
    spec = parse_clause(text).frame
    if spec is None:
        raise wrong(text, 0, "expected a FRAME clause, found nothing.", ANY_FRAME)
    return spec


def term_of(text: str) -> Any:
    return Terms(text, set()).read(parse_term(text), 0)


def _asked(text: str, select: Select, named: Named | None) -> list[Any]:
    """A statement by itself: it may also ask for events as they are, or for matches of a pattern."""
    if select.match is not None:
        return [match_query(text, select)]
    if select.star is not None and (select.clause.every is not None or select.where is not None):
        return [_chosen(text, select, named)[0]]
    return _queries(text, select, named)


def _queries(text: str, select: Select, named: Named | None) -> list[Any]:
    """The queries of one SELECT, one for each aggregate that is selected; or the one over its frames."""
    if select.star is not None:
        raise wrong(
            text, select.star, "SELECT * is not supported here.",
            "an aggregate, e.g. COUNT(*); or FROM (SELECT * FROM trades WHERE price > 20) [ROWS 10]",
        )  # fmt: skip
    terms = Terms(text, select.aliases if select.fill is None else select.fill.aliases)
    values = _selected(terms, select)
    having = None if select.having is None else _having(terms, select)
    where = None if select.where is None else terms.predicate(select.where, select.where_start, select.where_text)
    if select.clause.frame is not None:
        return [frame_query(text, select, values, where, having)]
    if not values and having is None:
        raise wrong(text, select.start, "the statement selects no aggregate.", "SELECT symbol, SUM(volume) FROM …")
    source, stream = _source(text, select, named)
    options: dict[str, Any] = {
        "where": where,
        "having": having,
        "index": select.index,
        "every": _often(select.clause, tuple(select.group_by)),
        "source": source,
        "by": tuple(select.group_by),
        "stream": stream,
    }
    found = [_query(text, select, each, options) for each in values or [(None, None, select.start)]]
    return found if select.often is None else _picked(text, select, found)


def _picked(text: str, select: Select, queries: list[Query]) -> list[Query]:
    """FREQUENCY in SELECT: those tuples of the results that it picks, each as it is."""
    assert select.often is not None
    by = tuple(select.group_by)
    often = _often(select.often, by)
    assert often is not None
    try:
        together = bool(by) and not often.per_key and often.by is None and often.anchor == "tuple"
        often = replace(often, own=True) if together else often
        if _is_jumping(queries, often, by):
            return [replace(query, every=often, name=query.column) for query in queries]
        each = Every(1, per_key=bool(by))
        if together or not by:  # what is picked stays so, and is numbered as it was
            each = replace(often, anchor="tuple", own=bool(by)) if often.by_time else Every(1, own=bool(by))
        source = Events(None, queries[0] if len(queries) == 1 else Several(tuple(queries)), often)
        return [Query(last(q.column), Rows(1), q.column, every=each, source=source, by=by) for q in queries]
    except BadQuery as why:
        raise wrong(text, select.often.start, why.message, why.hint) from None


def _is_jumping(queries: list[Query], often: Every, by: tuple[str, ...]) -> bool:
    """Whether the results are those of one window after the other, so that to pick some is to jump: a jumping window is
    the frequency operator over the windows of all tuples."""
    plain = all((query.is_plain or often.own) and query.having is None for query in queries)
    whole = all(query.where is None for query in queries)  # else a jump leaves out keys of which no event matches
    if often.own:
        windows = [each.window for query in queries for each in components(query)]
        return plain and whole and not any(query.at_ticks or any(map(sees_later, windows)) for query in queries)
    return plain and often.anchor == "tuple" and (often.per_key and whole if by else not often.by)


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
                raise terms.wrong(tree, f'"{name}" is neither aggregated nor in GROUP BY.', _instead_of(name, select))
            if alias is not None and alias != name:
                raise terms.wrong(tree, f'the column "{name}" keeps its name.', "rename it in the answer")
            continue
        term = terms.read(tree, start)
        if not isinstance(term, Operators):
            raise wrong(terms.text, start, f"{to_sql(term)} is a constant.", "an aggregate, e.g. COUNT(*)")
        values.append((term, alias, start))
        terms.named |= {} if alias is None else {alias: term}
    return values


def _instead_of(name: str, select: Select) -> str:
    """What to write where a column is selected that is neither aggregated nor a key."""
    spec = select.clause.frame
    if spec is None or name in spec.columns:
        return f"GROUP BY {name}, or LAST({name})"
    if name in OF_FRAMES:
        return f"leave {name} out: each row has {', '.join(OF_FRAMES)}"
    if name in spec.reported:
        return f'leave it out; fr.detect reports "{name}"'
    return f"GROUP BY {name}, or LAST({name})"


def _having(terms: Terms, select: Select) -> Any:
    having = terms.read(select.having, select.having_start, truth=True)
    if not isinstance(having, Expression) or not having.is_condition:
        raise wrong(terms.text, select.having_start, "HAVING takes a condition.", "HAVING SUM(volume) > 1000")
    return having


def _often(clause: Clause, by: tuple[str, ...]) -> Every | None:
    """PARTITIONED BY what the statement groups by is key by key."""
    every = clause.every
    if every is None or every.by is None or set(every.by) != set(by):
        return every
    return replace(every, per_key=True, by=None)


def _source(text: str, select: Select, named: Named | None) -> tuple[Source | None, str | None]:
    """What is read, if not all events: their choice, or the answers of a query. And the name of the stream."""
    inner = select.source
    if isinstance(inner, str):
        return None if named is None else named.source(text, select), inner
    if inner.match is not None:
        raise wrong(
            text, inner.start, "MATCH_RECOGNIZE inside of FROM ( … ) is not supported.", "evaluate it by itself"
        )
    if inner.star is not None:
        return _chosen(text, inner, named)
    found = _queries(text, inner, named)
    if not all(isinstance(each, Query) for each in found):
        raise wrong(
            text, inner.start, "a statement in FROM is over windows; this one is over frames.",
            "SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM cpu [RANGE 1 HOUR]) [RANGE 1 DAY]",
        )  # fmt: skip
    try:
        return found[0] if len(found) == 1 else Several(tuple(found)), None
    except BadQuery as why:
        raise wrong(text, inner.start, why.message, why.hint) from None


def _chosen(text: str, select: Select, named: Named | None) -> tuple[Source | None, str | None]:
    """SELECT * FROM stream [FREQUENCY …] WHERE …, in FROM."""
    clause = select.clause
    if clause.window is not None or clause.frame is not None:
        raise wrong(
            text, clause.start, "SELECT * chooses events, it has no window.",
            "FROM (SELECT * FROM trades WHERE price > 20) [ROWS 10]",
        )  # fmt: skip
    if select.group_by or select.having is not None:
        raise wrong(text, select.start, "SELECT * chooses events, it does not group them.", "GROUP BY outside of FROM")
    source, stream = _source(text, select, named)
    if select.where is None and clause.every is None:
        return source, stream
    where = None
    if select.where is not None:
        where = Terms(text, select.aliases).predicate(select.where, select.where_start, select.where_text)
    return Events(where, source, clause.every, stream=stream), stream
