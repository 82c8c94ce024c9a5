"""From text to statements, in bounded time and memory. Whatever is wrong is a BadSQL with line and column."""

from collections.abc import Callable
from typing import Any

from sqlglot import ErrorLevel
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from swag.sql.clauses import Clause
from swag.sql.dialect import Parser, Select, Swag
from swag.sql.places import wrong

LONGEST, DEEPEST = 100_000, 60  # characters of a statement, parentheses in it


def parse(text: str) -> list[Select]:
    """The statements of a text."""
    return _parsed(text, Parser.read)


def parse_clause(text: str) -> Clause:
    """A clause by itself, with or without its brackets."""
    [clause] = _parsed(text, Parser.read_clause)[:1]
    return clause


def _parsed(text: str, read: Callable[[Parser, str, list[Token]], Any]) -> list[Any]:
    dialect = Swag()
    try:
        tokens = dialect.tokenize(text)
    except (TokenError, ValueError, RecursionError) as why:
        raise _token_error(text, why) from None
    found = []
    for statement in _statements(text, tokens):
        parser = Parser(error_level=ErrorLevel.IMMEDIATE, dialect=dialect)
        try:
            found.append(read(parser, text, statement))
        except ParseError as why:
            raise _parse_error(text, parser, why) from None
        except RecursionError:
            raise wrong(text, statement[0].start, "the statement is nested too deep.") from None
    if not found:
        raise wrong(text, 0, "there is no statement.", "SELECT SUM(volume) FROM trades [RANGE 5 MINUTES]")
    return found


def _statements(text: str, tokens: list[Token]) -> list[list[Token]]:
    """The tokens between semicolons; a statement too long or too deep to be one is refused before it is read."""
    statements: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
            depth = 0
            continue
        statements[-1].append(token)
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.text, 0)
        if depth > DEEPEST:
            raise wrong(text, token.start, f"more than {DEEPEST} parentheses are open.")
        if token.end - statements[-1][0].start > LONGEST:
            raise wrong(text, token.start, f"the statement is longer than {LONGEST:,} characters.")
    return [statement for statement in statements if statement]


def _parse_error(text: str, parser: Parser, why: ParseError) -> Exception:
    description = str((why.errors or [{}])[0].get("description") or "")
    if description.startswith("Expecting"):
        return wrong(text, parser.here, f"expected {description.removeprefix('Expecting').strip()}, {_found(parser)}.")
    return wrong(text, parser.here, f"{_found(parser)}, where an expression should go on.")


def _found(parser: Parser) -> str:
    return f'found "{parser._curr.text}"' if parser._curr else "found the end of the statement"


def _token_error(text: str, why: Exception) -> Exception:
    quote = next((q for q in ("'", '"', "*/") if f"Missing {q}" in str(why)), None)
    if quote is None:
        return wrong(text, len(text), "the text can not be read as SQL.")
    return wrong(text, len(text), f"expected {quote}, found the end of the text.", f"close what {quote} should end")
