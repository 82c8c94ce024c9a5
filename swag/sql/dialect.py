"""The statement, as a dialect of sqlglot: its tokens and its expressions, a SELECT of our own.

sqlglot reads far more SQL than a window query can mean, and would take in silence what nobody could answer. So SELECT
is read here, clause by clause, and whatever is left over is refused by name; expressions between the clauses are
sqlglot's, with every function left as a plain call (terms.py knows ours) and OVER followed by a window in brackets.
"""

from dataclasses import dataclass, field
from typing import Any, NoReturn

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token, TokenType

from swag.errors import nearest
from swag.sql.clauses import Clause, Clauses
from swag.sql.places import wrong

UNSUPPORTED = {
    "ORDER": ("ORDER BY", "sort the table of answers"),
    "LIMIT": ("LIMIT", "take a slice of the table of answers"),
    "OFFSET": ("OFFSET", "take a slice of the table of answers"),
    "FETCH": ("FETCH", "take a slice of the table of answers"),
    "UNION": ("UNION", "several statements, separated by ;"),
    "EXCEPT": ("EXCEPT", "several statements, separated by ;"),
    "INTERSECT": ("INTERSECT", "several statements, separated by ;"),
    "WINDOW": ("WINDOW", "SUM(x) OVER [RANGE 5 MINUTES]"),
    "QUALIFY": ("QUALIFY", "HAVING"),
    "WHEN": ("CASE", "FILTER (WHERE …), or COALESCE"),
    "WITH": ("WITH", "FROM (SELECT …) [RANGE 1 HOUR]"),
    ",": ("a second stream", "one stream per statement"),
    **dict.fromkeys(
        ("JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "ASOF", "LATERAL", "SEMI", "ANTI"),
        ("JOIN", "join the streams first, and read the result as one"),
    ),
}


class Over(exp.Expression):
    """An aggregate with a window or a filter of its own. The window is one of ours, not a tree."""

    arg_types = {"this": True, "window": False, "where": False, "text": False}


@dataclass
class Select:
    """A statement, read but not yet understood. Offsets say where its parts began."""

    start: int
    star: int | None = None  # the offset of SELECT *: all columns, a stream as it is
    items: list[tuple[Any, str | None, int]] = field(default_factory=list)  # tree, alias, offset
    source: "str | Select" = ""
    aliases: set[str] = field(default_factory=set)
    clause: Clause = field(default_factory=Clause)
    where: Any = None
    where_start: int = 0
    where_text: str = ""
    group_by: list[str] = field(default_factory=list)
    having: Any = None
    having_start: int = 0
    index: bool = True


class Parser(Clauses, DuckDBParser):
    FUNCTIONS: dict[str, Any] = {}  # type: ignore[misc]
    FUNCTION_PARSERS: dict[str, Any] = {}  # type: ignore[misc]
    NO_PAREN_FUNCTIONS: dict[Any, Any] = {}  # type: ignore[misc]
    NO_PAREN_FUNCTION_PARSERS: dict[str, Any] = {}  # type: ignore[misc]

    def read(self, text: str, tokens: list[Token]) -> Select:
        """One statement, all of it."""
        self.reset()
        self.sql, self._chunks = text, [tokens]
        self._advance_chunk()
        if not self._match(TokenType.SELECT, advance=False):
            self.expected("SELECT", *self._told())
        select = self.select()
        if self._curr:
            self.expected("WHERE, GROUP BY, HAVING or ;", *self._told())
        return select

    def read_clause(self, text: str, tokens: list[Token]) -> Clause:
        """A FRAME clause: [FRAME …], or what stands in it."""
        self.reset()
        self.sql, self._chunks = text, [tokens]
        self._advance_chunk()
        opened = self._match(TokenType.L_BRACKET)
        start = self.here
        self._match_text_seq("FRAME")
        clause = Clause(start, frame=self.frame())
        if opened and not self._match(TokenType.R_BRACKET):
            self.expected("]")
        if self._curr:
            self.expected("the end of the clause")
        return clause

    def select(self) -> Select:
        found = Select(self.here)
        self._advance()
        found.index = not self._hinted(self._prev_comments)
        if self._match(TokenType.DISTINCT, advance=False):
            self.unsupported("DISTINCT", "an answer has one row per key as it is")
        if self._match(TokenType.STAR, advance=False):
            found.star = self.here
            self._advance()
            if self._match(TokenType.COMMA, advance=False):
                self.unsupported("* beside others", "aggregates, e.g. COUNT(*)")
        else:
            self._items(found)
        if not self._match(TokenType.FROM):
            self.expected("FROM and the name of a stream", *self._told())
        self._from(found)
        if self._match(TokenType.WHERE):
            found.where_start, found.where = self.here, self._condition()
            found.where_text = self.sql[found.where_start : self._prev.end + 1]
        if self._match(TokenType.GROUP_BY):
            found.group_by = self._columns()
        if self._match(TokenType.HAVING):
            found.having_start, found.having = self.here, self._condition()
        return found

    def _hinted(self, comments: list[str]) -> bool:
        """SELECT /*+ NO_INDEX */: the one hint there is."""
        hints = [comment[1:].strip() for comment in comments if comment.startswith("+")]
        for hint in hints:
            if hint.upper() != "NO_INDEX":
                raise wrong(self.sql, self._prev.start, f"the hint {hint!r} is not known.", "/*+ NO_INDEX */")
        return bool(hints)

    def _items(self, found: Select) -> None:
        while True:
            found.items.append(self._item())
            if not self._match(TokenType.COMMA):
                return

    def _item(self) -> tuple[Any, str | None, int]:
        start = self.here
        if self._match(TokenType.STAR, advance=False):
            self.unsupported("* beside others", "aggregates, e.g. COUNT(*)")
        tree = self._parse_disjunction()
        if tree is None:
            self.expected("an aggregate or the column of GROUP BY")
        return tree, self._alias(), start

    def _alias(self) -> str | None:
        said = self._match(TokenType.ALIAS)
        if self._curr.token_type in (TokenType.VAR, TokenType.IDENTIFIER) or (said and self._is_name()):
            self._advance()
            return str(self._prev.text)
        if said:
            self.expected("a name after AS")
        return None

    def _from(self, found: Select) -> None:
        if self._match(TokenType.L_PAREN):
            if not self._match(TokenType.SELECT, advance=False):
                self.expected("SELECT")
            found.source = self.select()
            if not self._match(TokenType.R_PAREN):
                self.expected(")", *self._told())
        elif self._is_name():
            found.source = self.name("the name of a stream")
            found.aliases.add(found.source)
            if self._match(TokenType.DOT, advance=False):
                self.unsupported("a schema", f'one name: FROM "{found.source}.…"')
        else:
            self.expected("the name of a stream, or a statement in parentheses")
        alias = self._alias()
        if self._match(TokenType.L_BRACKET):
            found.clause = self.clause()
            alias = alias or self._alias()
        if alias is not None:
            found.aliases.add(alias)

    def _columns(self) -> list[str]:
        names = []
        while True:
            if self._curr.token_type == TokenType.NUMBER:
                self.unsupported("GROUP BY a number", "the name of the column")
            names.append(self.name("the name of a column"))
            if self._match(TokenType.DOT):
                names[-1] = self.name("the name of a column")
            if not self._match(TokenType.COMMA):
                return names

    def _condition(self) -> Any:
        tree = self._parse_disjunction()
        if tree is None:
            self.expected("a condition")
        return tree

    # -- hooks into sqlglot -------------------------------------------------------------------------------------------

    def _parse_window(self, this: Any, alias: bool = False) -> Any:
        """After a call: WITHIN GROUP (ORDER BY …), FILTER (WHERE …), OVER [ … ]."""
        if self._match_text_seq("WITHIN", "GROUP"):
            this = self.expression(exp.WithinGroup(this=this, expression=self._parse_wrapped(self._parse_order)))
        over: dict[str, Any] = {}
        while True:
            if "where" not in over and self._match_pair(TokenType.FILTER, TokenType.L_PAREN):
                if not self._match(TokenType.WHERE):
                    self.expected("WHERE")
                start, over["where"] = self.here, self._condition()
                over["text"] = self.sql[start : self._prev.end + 1]
                if not self._match(TokenType.R_PAREN):
                    self.expected(")")
            elif "window" not in over and self._match(TokenType.OVER):
                over["window"] = self._own_window()
            else:
                break
        if self._match_text_seq("IGNORE", "NULLS", advance=False) or self._match_text_seq(
            "RESPECT", "NULLS", advance=False
        ):
            self.unsupported(f"{self._curr.text.upper()} NULLS", "nulls are always skipped")
        return self.expression(Over(this=this, **over)) if over else this

    def _own_window(self) -> Any:
        if self._match(TokenType.L_PAREN, advance=False):
            self.unsupported("OVER ( … )", "OVER [RANGE 5 MINUTES], or [ROWS 1000]")
        if not self._match(TokenType.L_BRACKET):
            self.expected("[RANGE …] or [ROWS …]")
        start, clause = self.here, self.clause()
        if clause.window is None or clause.every is not None:
            raise wrong(self.sql, start, "OVER takes a window.", "OVER [RANGE 5 MINUTES]; FREQUENCY stands after FROM")
        return clause.window

    def _parse_bracket(self, this: Any = None) -> Any:
        if self._match(TokenType.L_BRACKET, advance=False) and self._next.text.upper() in ("RANGE", "ROWS"):
            self.expected("OVER before a window")
        if self._match_set((TokenType.L_BRACKET, TokenType.L_BRACE), advance=False):
            self.unsupported("a list or a struct", "columns, numbers and text")
        return this

    def _parse_select(self, *args: Any, **options: Any) -> Any:
        if self._match_set((TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.VALUES), advance=False):
            self.unsupported("a statement inside an expression", "FROM (SELECT …) [RANGE 1 HOUR]")
        return None

    # -- what is wrong ------------------------------------------------------------------------------------------------

    @property
    def here(self) -> int:
        """The offset of the next token; of the end, if there is none."""
        return self._curr.start if self._curr else self._prev.end + 1 if self._prev else 0

    def expected(self, what: str, hint: str = "") -> NoReturn:
        found = f'"{self._curr.text}"' if self._curr else "the end of the statement"
        raise wrong(self.sql, self.here, f"expected {what}, found {found}.", hint)

    def unsupported(self, what: str, instead: str) -> NoReturn:
        raise wrong(self.sql, self.here, f"{what} is not supported.", instead)

    def _told(self) -> list[str]:
        """Refuses by name what is known from other SQL, or a misspelt keyword; else nothing to add."""
        known = UNSUPPORTED.get(self._curr.text.upper().split()[0]) if self._curr and self._curr.text.strip() else None
        if known is not None and self._curr.token_type != TokenType.IDENTIFIER:
            self.unsupported(*known)
        if self._prev and self._prev.token_type == TokenType.VAR:  # FROM t [ROWS 3] WEHRE x > 1
            meant = nearest(self._prev.text, ["FROM", "WHERE", "GROUP BY", "HAVING"]).strip('"')
            if meant:
                raise wrong(self.sql, self._prev.start, f'"{self._prev.text}" is read as a name.', meant)
        return []


class Swag(DuckDB):
    """Registered with sqlglot as "swag"."""

    Parser = Parser
