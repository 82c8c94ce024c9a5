"""From text to statements, in bounded time and memory. Whatever is wrong is a BadSQL with line and column."""

import itertools
import re
from collections.abc import Callable
from typing import Any

from sqlglot import ErrorLevel
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from swag.errors import BadSQL
from swag.sql.dialect import Parser, Swag
from swag.sql.hints import STATEMENT
from swag.sql.nodes import Clause, Select
from swag.sql.over.reading import OverParser
from swag.sql.places import wrong

LONGEST, MOST_PARENTHESES = 100_000, 60  # characters of a statement, parentheses in it
DEEP = "fewer parentheses, or several statements"
_INSIDE = re.compile(r"\w'\w")
_UNCLOSED = re.compile(r"Missing (\S+) from \d+:(\d+)")


def parse(text: str) -> list[Select]:
    """The statements of a text."""
    return _parsed(text, _read)


def _read(parser: Parser, text: str, tokens: list[Token]) -> Select:
    return parser.read(text, tokens)


def _is_over(tokens: list[Token]) -> bool:
    """Does it have windows in parentheses, or by name?"""
    begin = (TokenType.L_PAREN, TokenType.VAR, TokenType.IDENTIFIER, TokenType.ORDER_BY, TokenType.PARTITION_BY)
    return any(
        one.token_type == TokenType.OVER and other.token_type in begin for one, other in itertools.pairwise(tokens)
    )


def parse_clause(text: str) -> Clause:
    """A clause by itself, with or without its brackets."""
    clause, *others = _parsed(text, Parser.read_clause) if text.strip() else [Clause()]
    if others:
        raise wrong(text, others[0].start, "expected one FRAME clause, found a second.", "a call for each")
    return clause


def parse_term(text: str) -> Any:
    """An aggregate by itself, or an expression over some."""
    found, *_ = _parsed(text, Parser.read_term)
    return found


def _parsed(text: str, read: Callable[[Parser, str, list[Token]], Any]) -> list[Any]:
    """What `read` makes of each statement of a text, by the parser that it needs; errors of sqlglot become BadSQL."""
    dialect = Swag()
    try:
        tokens = dialect.tokenize(text)
    except (TokenError, ValueError, RecursionError) as why:
        raise _token_error(text, why) from None
    found = []
    for statement in _statements(text, tokens):
        kind = OverParser if read is _read and _is_over(statement) else Parser
        parser = kind(error_level=ErrorLevel.IMMEDIATE, dialect=dialect)
        try:
            found.append(read(parser, text, statement))
        except ParseError as why:
            raise parser.not_an_expression(why) from None
        except RecursionError:
            raise wrong(text, statement[0].start, "the statement is nested too deep.", DEEP) from None
    if not found:
        raise wrong(text, 0, "there is no statement.", STATEMENT)
    return found


def _statements(text: str, tokens: list[Token]) -> list[list[Token]]:
    """The tokens between semicolons; a statement too long or too deep to be one is refused before it is read."""
    statements: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.text == "`" and token.token_type == TokenType.UNKNOWN:
            raise wrong(text, token.start, "` is no quote here.", 'double quotes around a name: "volume"')
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
            depth = 0
            continue
        before = statements[-1][-1].token_type if statements[-1] else None
        if (before, token.token_type) == (TokenType.COMMA, TokenType.R_PAREN):
            message = "expected something after the comma, found )."
            raise wrong(text, statements[-1][-1].start, message, "leave the comma out")
        statements[-1].append(token)
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.text, 0)
        if depth > MOST_PARENTHESES:
            raise wrong(text, token.start, f"more than {MOST_PARENTHESES} parentheses are open.", DEEP)
        if token.end - statements[-1][0].start > LONGEST:
            message = f"the statement is longer than {LONGEST:,} characters."
            raise wrong(text, token.start, message, "several statements, separated by ;")
    return [statement for statement in statements if statement]


def _token_error(text: str, why: Exception) -> BadSQL:
    """Quotes and comments that are not closed: said where they begin."""
    unclosed, comment = _UNCLOSED.match(str(why.__cause__ or why)), text.rfind("/*")
    if unclosed is not None:
        closing, start = unclosed[1], int(unclosed[2])
    elif comment > text.rfind("*/"):
        closing, start = "*/", comment
    elif text.count("'") % 2:
        closing, start = "'", text.rfind("'")
    else:
        return wrong(text, len(text), "expected SQL, found what can not be read as such.", STATEMENT)
    what = {"'": "text", '"': "a name", "*/": "a comment"}.get(closing, "what")
    message = f"expected {closing} at the end of {what} that begins here, found the end of the statements."
    inside = "; a quote inside of text is two: 'O''Brien'" * bool(closing == "'" and _INSIDE.search(text))
    return wrong(text, start, message, f"close it by {closing}{inside}")
