"""MATCH_RECOGNIZE: rows that match a pattern, found by `frames`; read clause by clause, the rest refused by name.

SELECT * FROM ticks MATCH_RECOGNIZE (
    PARTITION BY symbol ORDER BY ts
    MEASURES FIRST(A.ts) AS start, LAST(B.price) AS low
    ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW          as always; they may be left out
    PATTERN (A B+ C)
    DEFINE B AS price < PREV(price), C AS price > PREV(price))
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from swag.errors import BadQuery, BadSQL
from swag.query.over_frames import frames_package
from swag.sql.nodes import Select
from swag.sql.places import wrong

WORD = "MATCH_RECOGNIZE"
CLAUSE = "MATCH_RECOGNIZE (ORDER BY ts PATTERN (A B+ C) DEFINE B AS price < PREV(price), C AS price > PREV(price))"
_ORDER = "PARTITION BY, ORDER BY, MEASURES, ONE ROW PER MATCH, AFTER MATCH SKIP PAST LAST ROW, PATTERN, DEFINE"
_ELSEWHERE = {
    "SUBSET": ("SUBSET", "MEASURES and DEFINE of one symbol, or of all rows: AVG(price)"),
    "WITHIN": ("WITHIN", "DEFINE C AS … AND ts - FIRST(A.ts) <= INTERVAL '5' MINUTES"),
    "ALL": ("ALL ROWS PER MATCH", "ONE ROW PER MATCH; fr.fill(matches, events) has the rows of each"),
    "INITIAL": ("INITIAL", "leave it out: a pattern is searched for from every row on"),
    "SEEK": ("SEEK", "leave it out: a pattern is searched for from every row on"),
}


class NamedSQL(NamedTuple):
    """The SQL that a name stands for, and the offsets of both."""

    text: str
    start: int
    named: int


@dataclass
class MatchClause:
    """What stands in the parentheses, read but not yet understood: names with the SQL behind them."""

    start: int
    by: list[str] = field(default_factory=list)
    time: str | None = None
    measures: dict[str, NamedSQL] = field(default_factory=dict)
    pattern: str = ""
    pattern_start: int = 0
    define: dict[str, NamedSQL] = field(default_factory=dict)


def match_clause(parser: Any) -> MatchClause:
    """The clause, from its first word on."""
    found = MatchClause(parser.here)
    parser._advance()
    if not parser._match(TokenType.L_PAREN):
        parser.expected(f"( after {WORD}", CLAUSE)
    if parser._match(TokenType.PARTITION_BY):
        found.by = _names(parser)
    if parser._match(TokenType.ORDER_BY):
        found.time = _time(parser)
    if parser._match_texts(("MEASURES",)):
        _listed(parser, found.measures, _measure)
    _how(parser)
    if not parser._match_texts(("PATTERN",)):
        _refuse(parser)
        parser.expected("PATTERN", f"{_ORDER}, in this order: {CLAUSE}")
    found.pattern, found.pattern_start = _inside(parser)
    _refuse(parser)
    if parser._match_texts(("DEFINE",)):
        _listed(parser, found.define, _defined)
    if not parser._match(TokenType.R_PAREN):
        _refuse(parser)
        parser.expected("DEFINE or )", parser.close())
    return found


def _names(parser: Any) -> list[str]:
    names = [parser.name("the name of a column", "PARTITION BY symbol")]
    while parser._match(TokenType.COMMA):
        names.append(parser.name("the name of a column", "PARTITION BY symbol"))
    return names


def _time(parser: Any) -> str:
    """ORDER BY one column, which is the time of the events, ascending."""
    name = str(parser.name("the name of a column", "ORDER BY ts"))
    if parser._match(TokenType.DESC, advance=False):
        parser.unsupported("ORDER BY … DESC", "ORDER BY ts: matches are found as time goes on")
    parser._match(TokenType.ASC)
    if parser._match(TokenType.COMMA, advance=False):
        parser.unsupported("ORDER BY several columns", "ORDER BY ts: rows of one time are in the order they came in")
    return name


def _how(parser: Any) -> None:
    """ONE ROW PER MATCH and AFTER MATCH SKIP PAST LAST ROW may be said; all others are refused."""
    if parser._match_text_seq("ONE", "ROW", "PER", "MATCH") and parser.word in ("SHOW", "OMIT", "WITH"):
        parser.unsupported(f"{parser.word} …", "leave it out: an empty match is none")
    _refuse(parser)
    if parser._match_text_seq("AFTER", "MATCH", "SKIP") and not parser._match_text_seq("PAST", "LAST", "ROW"):
        rest = " ".join(token.text.upper() for token in parser._tokens[parser._index : parser._index + 3])
        parser.unsupported(f"AFTER MATCH SKIP {rest}", "AFTER MATCH SKIP PAST LAST ROW, or nothing")
    _refuse(parser)


def _refuse(parser: Any) -> None:
    if parser.word.split(" ")[0] in _ELSEWHERE:
        parser.unsupported(*_ELSEWHERE[parser.word.split(" ")[0]])


def _inside(parser: Any) -> tuple[str, int]:
    """The text in parentheses, and its offset: a pattern has a grammar of its own (frames/patterns/reading.py)."""
    if not parser._match(TokenType.L_PAREN):
        parser.expected("( after PATTERN", "PATTERN (A B+ C)")
    start = parser.here
    end = _skip(parser, ())
    if not parser._match(TokenType.R_PAREN):
        parser.expected(")", parser.close())
    return str(parser.sql[start:end]), int(start)


def _skip(parser: Any, until: tuple[TokenType, ...]) -> int:
    """Go on to a token of these types, or to the ) that closes what is open. Returns where the one before it ends."""
    depth = 0
    while parser._curr:
        kind = parser._curr.token_type
        if depth == 0 and (kind in until or kind == TokenType.R_PAREN):
            break
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(kind, 0)
        parser._advance()
    return int(parser._prev.end + 1)


def _listed(parser: Any, into: dict[str, NamedSQL], one: Any) -> None:
    """One after the other, with commas between them; each is called by a name of its own."""
    while True:
        start = parser.here
        name, part = one(parser)
        if name in into:
            raise wrong(parser.sql, start, f'two of them are called "{name}".', "a name for each")
        into[name] = part
        if not parser._match(TokenType.COMMA):
            return


def _measure(parser: Any) -> tuple[str, NamedSQL]:
    """LAST(B.price) AS low."""
    start = parser.here
    if parser.word in ("FINAL", "RUNNING"):
        parser.unsupported(parser.word, "leave it out: measures are of the whole match")
    end = _skip(parser, (TokenType.ALIAS, TokenType.COMMA))
    if not parser._match(TokenType.ALIAS):
        parser.expected("AS and a name", "MEASURES LAST(B.price) AS low")
    text, named = parser.sql[start:end], parser.here
    return str(parser.name("a name after AS", "MEASURES LAST(B.price) AS low")), NamedSQL(str(text), start, named)


def _defined(parser: Any) -> tuple[str, NamedSQL]:
    """B AS price < PREV(price)."""
    named = parser.here
    symbol = str(parser.name("a symbol of the pattern", "DEFINE B AS price < PREV(price)"))
    if not parser._match(TokenType.ALIAS):
        parser.expected(f"AS after {symbol}", f"DEFINE {symbol} AS price < PREV(price)")
    start = parser.here
    return symbol, NamedSQL(str(parser.sql[start : _skip(parser, (TokenType.COMMA,))]), start, named)


def match_query(text: str, select: Select) -> Any:
    """A statement over matches, as a query. Its pattern is read here."""
    clause = select.match
    _refuse_others(text, select)
    package = frames_package()
    spec = _pattern(text, clause, package)
    try:
        names = tuple(_selected(text, tree, alias, start) for tree, alias, start in select.items)
        return package.MatchQuery(spec, names, clause.time, by=tuple(clause.by), stream=select.source)
    except BadSQL:
        raise
    except BadQuery as why:
        raise wrong(text, clause.start, why.message, why.hint or CLAUSE) from None


def _pattern(text: str, clause: MatchClause, package: Any) -> Any:
    """The pattern. What is wrong with it is said at the first part with which it is."""
    *_, (_, define, measures) = _growing(clause, package.MATCH_COLUMNS)
    try:
        return package.Pattern(clause.pattern, define, measures)
    except BadQuery:
        for part, *some in _growing(clause, package.MATCH_COLUMNS):
            try:
                package.Pattern(clause.pattern, *some)
            except BadQuery as why:
                start = part.named if why.name else part.start
                raise wrong(text, start, why.message, why.hint or CLAUSE) from None
        raise


def _growing(clause: MatchClause, ours: tuple[str, ...]) -> Iterator[tuple[NamedSQL, dict[str, str], dict[str, str]]]:
    """DEFINE and MEASURES with one part more each time, and which that is; at last, with all."""
    define: dict[str, str] = {}
    measures: dict[str, str] = {}
    yield NamedSQL(clause.pattern, clause.pattern_start, clause.pattern_start), define, measures
    for symbol, part in clause.define.items():
        define = {**define, symbol: part.text}
        yield part, define, measures
    for name, part in clause.measures.items():
        measures = {**measures, f" {name}" if name in ours else name: part.text}
        yield part, define, measures


def _selected(text: str, tree: Any, alias: str | None, start: int) -> str:
    if not isinstance(tree, exp.Column) or alias is not None:
        raise wrong(
            text, start, "what is selected of matches are their columns, by name.",
            "SELECT *, or SELECT symbol, low; what is computed stands in MEASURES",
        )  # fmt: skip
    return str(tree.name)


def _refuse_others(text: str, select: Select) -> None:
    """What other statements have: a window, WHERE, GROUP BY, HAVING, a statement in FROM."""
    clause = select.clause
    said = {
        "a window": (clause.window or clause.every or clause.frame, "leave the brackets out"),
        "WHERE": (select.where, "filter the table of matches"),
        "GROUP BY": (select.group_by, "PARTITION BY inside of MATCH_RECOGNIZE"),
        "HAVING": (select.having, "filter the table of matches"),
        "FREQUENCY": (select.often, "leave it out"),
    }
    for name, (given, instead) in said.items():
        if given:
            raise wrong(text, select.start, f"{name} beside {WORD} is not supported.", instead)
    if not isinstance(select.source, str):
        raise wrong(text, select.start, f"{WORD} reads a stream of events, by its name.", f"FROM ticks {CLAUSE}")
