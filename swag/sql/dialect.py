"""The statement, as a dialect of sqlglot: its tokens and its expressions, a SELECT of our own.

sqlglot reads far more SQL than a window query can mean, and would take in silence what nobody could answer. So SELECT
is read here, clause by clause, and whatever is left over is refused by name; expressions between the clauses are
sqlglot's, with every function left as a plain call (terms.py knows ours) and OVER followed by a window in brackets.
"""

from typing import Any, NoReturn

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token, TokenType

from swag.sql import match_recognize
from swag.sql.clauses import Clauses
from swag.sql.framing import fill_clause, is_fill
from swag.sql.hints import GROUPED, STATEMENT, WORDS
from swag.sql.nodes import Clause, Over, Select
from swag.sql.places import wrong
from swag.sql.refusing import Refusing
from swag.tables.expressions.compiling import BESIDE_TEXT

_COMPUTING = (TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.DPIPE, TokenType.MOD)


class Parser(Clauses, Refusing, DuckDBParser):
    """Reads a statement, clause by clause. It owns the tokens and where it is among them; what it gives is a Select."""

    FUNCTIONS: dict[str, Any] = {}  # type: ignore[misc]
    FUNCTION_PARSERS: dict[str, Any] = {  # type: ignore[misc]
        name: DuckDBParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "TRIM")
    }
    NO_PAREN_FUNCTIONS: dict[Any, Any] = {}  # type: ignore[misc]
    NO_PAREN_FUNCTION_PARSERS: dict[str, Any] = {"CASE": lambda self: self._case()}  # type: ignore[misc]

    clause_now = "SELECT"
    of_nulls = "leave it out: nulls are always skipped"  # what to write instead of IGNORE NULLS

    def read(self, text: str, tokens: list[Token]) -> Select:
        """One statement, all of it."""
        self._begin(text, tokens)
        if not self._match(TokenType.SELECT, advance=False):
            self.no_statement()
        select = self.select()
        if self._curr:
            self.no_end()
        return select

    def _begin(self, text: str, tokens: list[Token]) -> None:
        self.reset()
        self.sql, self._chunks = text, [tokens]
        self._advance_chunk()

    def read_clause(self, text: str, tokens: list[Token]) -> Clause:
        """A FRAME clause: [FRAME …], or what stands in it."""
        self._begin(text, tokens)
        opened = self._match(TokenType.L_BRACKET)
        start = self.here
        self._match_text_seq("FRAME")
        clause = Clause(start, frame=self.frame())
        if opened and not self._match(TokenType.R_BRACKET):
            self.expected("]", self.close())
        if self._curr:
            self.expected("the end of the clause", "one FRAME clause, or a statement: SELECT COUNT(*) FROM t [FRAME …]")
        return clause

    def read_term(self, text: str, tokens: list[Token]) -> Any:
        """What stands between two commas of SELECT."""
        self._begin(text, tokens)
        found = self._condition("SUM(x)")
        if self._curr:
            self.expected("its end", "one aggregate")
        return found

    def select(self) -> Select:
        """SELECT with all its clauses, in their order; one in FROM ends with its parenthesis."""
        found, outside = Select(self.here), self.clause_now
        self.clause_now = "SELECT"
        self._advance()
        found.index = not self._hinted(self._prev_comments)
        if self._match(TokenType.DISTINCT, advance=False):
            self.unsupported("DISTINCT", "leave it out: an answer has one row per key as it is")
        if self._match(TokenType.STAR, advance=False):
            self._star(found)
        else:
            self._items(found)
        found.often = self.results()
        if not self._match(TokenType.FROM):
            self.no_from()
        self._from(found)
        if self._now(TokenType.WHERE, "WHERE"):
            found.where_start, found.where = self.here, self._condition()
            found.where_text = self.sql[found.where_start : self._prev.end + 1]
        if self._now(TokenType.GROUP_BY, "GROUP BY"):
            found.group_by = self._columns()
        if self._now(TokenType.HAVING, "HAVING"):
            found.having_start, found.having = self.here, self._condition()
        found.often = found.often or self.results()
        if outside != "SELECT":  # a statement in FROM ends with its parenthesis
            if not self._match(TokenType.R_PAREN):
                self.no_end(end=")")
            self.clause_now = outside
        return found

    def _now(self, token: TokenType, clause: str) -> bool:
        if not self._match(token):
            return False
        self.clause_now = clause
        return True

    def _star(self, found: Select) -> None:
        found.star = self.here
        self._advance()
        if self._match(TokenType.COMMA, advance=False):
            self.unsupported("* beside others", "aggregates, e.g. COUNT(*)")

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
        """One item of what is selected: its tree, the name that AS gives it, and its offset."""
        start = self.here
        if self._match(TokenType.STAR, advance=False):
            self.unsupported("* beside others", "aggregates, e.g. COUNT(*)")
        tree = self._parse_disjunction()
        if tree is None:
            self._no_item()
        if not self._match(TokenType.ALIAS, advance=False):
            self.refuse_call_without_parentheses()
        return tree, self._alias(), start

    def _no_item(self) -> NoReturn:
        comma = self._prev.token_type == TokenType.COMMA or self._match(TokenType.COMMA, advance=False)
        self.expected("an aggregate or the column of GROUP BY", "leave the comma out" if comma else STATEMENT)

    def _alias(self) -> str | None:
        """The name after AS, which may be left out before a plain word; None if there is none."""
        said = self._match(TokenType.ALIAS)
        plain = self._curr.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
        called = self._next.token_type == TokenType.L_PAREN or self.is_frequency()  # SUM(x) AVG(y) lacks a comma
        if (plain and not called) or (said and self._is_name()):
            self._advance()
            return str(self._prev.text)
        if said:
            text = self._curr.token_type == TokenType.STRING
            self.expected("a name after AS", f'AS "{self._curr.text}"' if text else "AS total")
        return None

    def _from(self, found: Select) -> None:
        """What is read: a stream or a statement in parentheses, with an alias and a window in brackets."""
        self.clause_now = "FROM"
        if self._match(TokenType.L_PAREN):
            if not self._match(TokenType.SELECT, advance=False):
                name = self._curr.text if self._is_name() else "trades"
                self.expected("SELECT", f"FROM {name} [ROWS 1000], or FROM (SELECT …) [ROWS 1000]")
            found.source = self.select()
        elif self._is_name():
            found.source = self.name("the name of a stream", "FROM trades")
            found.aliases.add(found.source)
            if self._match(TokenType.DOT, advance=False):
                self.unsupported("a schema", f'one name: FROM "{found.source}.…"')
        else:
            self._no_stream()
        self.refuse_bare_window()
        if self.word == match_recognize.WORD:
            found.match = match_recognize.match_clause(self)
        alias = self._alias()
        self.refuse_bare_window()
        if self._match(TokenType.L_BRACKET):
            found.clause = self.clause()
            alias = alias or (None if is_fill(self) else self._alias())
            found.fill = fill_clause(self, found.clause)
        if alias is not None:
            found.aliases.add(alias)
        if self._match(TokenType.COMMA, advance=False):
            self.unsupported("a second stream", "one stream per statement")
        if self._match(TokenType.L_BRACKET, advance=False):
            self.unsupported("a second window", "FROM t [ROWS 1000, FREQUENCY 1 MINUTE], or SUM(x) OVER [RANGE 300]")

    def _no_stream(self) -> NoReturn:
        hint = "FROM trades [RANGE 5 MINUTES]"
        if self.word == "SELECT":
            hint = "FROM (SELECT …) [RANGE 1 HOUR], in parentheses"
        elif self._curr and self._curr.token_type == TokenType.STRING:
            hint = "a name, FROM trades; which file that is says swag run --events, or the call"
        self.expected("the name of a stream, or a statement in parentheses", hint)

    def _columns(self) -> list[str]:
        """The columns of GROUP BY, by name; expressions are refused."""
        names = []
        while True:
            self._refuse_grouping()
            comma = self._prev.token_type == TokenType.COMMA
            hint = "leave the comma out" if comma else "GROUP BY symbol"
            names.append(self.name("the name of a column", hint))
            if self._match(TokenType.DOT):
                names[-1] = self.name("the name of a column", "GROUP BY symbol")
            if self._match_set((*_COMPUTING, TokenType.L_PAREN), advance=False):
                hint = GROUPED.get(names[-1].upper(), "compute it as a column of the events first")
                self.unsupported("GROUP BY an expression", hint)
            if not self._match(TokenType.COMMA):
                return names

    def _refuse_grouping(self) -> None:
        if self._curr.token_type == TokenType.NUMBER:
            self.unsupported("GROUP BY a number", "the name of the column")
        if self._match(TokenType.L_PAREN, advance=False):
            self.expected("the name of a column", "GROUP BY symbol, without parentheses")
        if self.word in ("ALL", "ROLLUP", "CUBE", "GROUPING SETS", "GROUPING"):
            self.unsupported(f"GROUP BY {self.word}", "GROUP BY symbol, by the column's name")

    def _condition(self, hint: str = "") -> Any:
        tree = self._parse_disjunction()
        if tree is None:
            self.expected("a condition", hint or ("WHERE x > 1" if self.clause_now == "WHERE" else "HAVING SUM(x) > 1"))
        return tree

    # -- hooks into sqlglot -------------------------------------------------------------------------------------------

    def _parse_window(self, this: Any, alias: bool = False) -> Any:
        """After a call: WITHIN GROUP (ORDER BY …), FILTER (WHERE …), OVER [ … ]."""
        if self._match_text_seq("WITHIN", "GROUP"):
            this = self.expression(exp.WithinGroup(this=this, expression=self._parse_wrapped(self._parse_order)))
        over: dict[str, Any] = {}
        while True:
            if "where" not in over and self._match(TokenType.FILTER):
                over |= self._filter()
            elif "window" not in over and self._match(TokenType.OVER):
                over["window"] = self._own_window()
            else:
                break
        if self.word in ("IGNORE", "RESPECT") and self._next.text.upper() == "NULLS" and not self._of_outer(over):
            self.unsupported(f"{self.word} NULLS", self.of_nulls)
        return self.expression(Over(this=this, **over)) if over else this

    def _of_outer(self, over: dict[str, Any]) -> bool:
        """Is IGNORE NULLS after a call, maybe with a window, of the call around it, which reads it?"""
        return False

    def _filter(self) -> dict[str, Any]:
        """FILTER (WHERE …) of a call: the tree of its condition, and its text."""
        example = "FILTER (WHERE price > 20)"
        if not self._match(TokenType.L_PAREN):
            self.expected("( after FILTER", example)
        if not self._match(TokenType.WHERE):
            self.expected("WHERE", example)
        start, tree = self.here, self._condition(example)
        text = self.sql[start : self._prev.end + 1]
        if not self._match(TokenType.R_PAREN):
            self.expected(")", self.close())
        return {"where": tree, "text": text}

    def _own_window(self) -> Any:
        """The window in brackets after OVER; parentheses and names are refused here (over/reading.py reads those)."""
        example = "OVER [RANGE 5 MINUTES], or OVER [ROWS 1000]"
        if self._match(TokenType.L_PAREN, advance=False):
            keyed = self._next.token_type == TokenType.PARTITION_BY
            self.unsupported("OVER ( … )", example + ("; and GROUP BY for PARTITION BY" if keyed else ""))
        if not self._match(TokenType.L_BRACKET):
            if self._is_name():
                self.unsupported("a window by name", example)
            self.expected("[RANGE …] or [ROWS …]", example)
        start, clause = self.here, self.clause()
        if clause.window is None or clause.every is not None:
            raise wrong(self.sql, start, "OVER takes a window.", "OVER [RANGE 5 MINUTES]; FREQUENCY stands after FROM")
        return clause.window

    def _parse_primary(self) -> Any:
        found = super()._parse_primary()
        if isinstance(found, exp.Concat):  # no call, as those are plain: texts side by side
            raise wrong(self.sql, self._prev.start, "a text right after another is not supported.", BESIDE_TEXT)
        return found

    def _parse_bracket(self, this: Any = None) -> Any:
        if self._match(TokenType.L_BRACKET, advance=False) and self._next.text.upper() in WORDS:
            self.misplaced_window()
        if self._match_set((TokenType.L_BRACKET, TokenType.L_BRACE), advance=False):
            self.unsupported("a list or a struct", "columns, numbers and text")
        return this

    def _parse_column_ops(self, this: Any) -> Any:
        found = super()._parse_column_ops(this)
        self.refuse_dotted(found, this)
        return found

    def _parse_select(self, *args: Any, **options: Any) -> Any:
        if self._match_set((TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.VALUES), advance=False):
            self.unsupported("a statement inside an expression", "FROM (SELECT …) [RANGE 1 HOUR]")
        return None

    def _parse_in(self, this: Any, alias: bool = False) -> Any:
        if not self._match(TokenType.L_PAREN, advance=False):
            self.refuse_position()
            self.expected("( after IN", "x IN (1, 2, 3)")
        return super()._parse_in(this, alias)

    def _case(self) -> Any:
        """CASE has been read: a column of that name, or CASE WHEN … END."""
        begun = self._prev
        if self._match(TokenType.WHEN, advance=False) or self.is_value():
            return self._parse_case().update_positions(begun)  # type: ignore[union-attr]
        return self.expression(exp.Column(this=exp.Identifier(this=self._prev.text).update_positions(self._prev)))


class Swag(DuckDB):
    """Registered with sqlglot as "swag"."""

    Parser = Parser
