"""A statement with OVER ( … ), clause by clause.

SELECT … FROM … WHERE … WINDOW … QUALIFY … ORDER BY … LIMIT … OFFSET …
"""

from dataclasses import dataclass, field
from typing import Any, NoReturn

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from swag.errors import BadQuery, BadSQL
from swag.sql.dialect import Parser
from swag.sql.hints import UNSUPPORTED
from swag.sql.nodes import Over, Select
from swag.sql.over.windows import CURRENT, FOREVER, Bound, Frame, WindowSpec
from swag.sql.places import wrong

OVER = "OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL 5 MINUTES PRECEDING AND CURRENT ROW)"
FRAME = "ROWS BETWEEN 9 PRECEDING AND CURRENT ROW"
ORDERED = "ORDER BY ts, the column of time, ascending; events of the same ts are in the order in which they came"
_FRAMES = ("ROWS", "RANGE", "GROUPS")


@dataclass
class OverSelect(Select):
    """A statement with OVER ( … ), read but not yet understood. Items that are `*` are the tree of a star."""

    written: dict[int, str] = field(default_factory=dict)  # the text of items, by their offset
    windows: dict[str, WindowSpec] = field(default_factory=dict)  # by their names in lower case
    qualify: Any = None
    qualify_start: int = 0
    order: list[tuple[Any, bool, bool, int]] = field(default_factory=list)  # tree, descending, nulls first, offset
    limit: int | None = None
    offset: int = 0
    limit_start: int = 0  # of LIMIT or OFFSET, whichever is first


class StarItem(exp.Expression):
    """* EXCLUDE (a, b) REPLACE (x + 1 AS x)."""

    arg_types = {"without": False, "replaced": False}


class OverParser(Parser):
    """Reads such a statement. It owns what the parser owns that it is made from (swag/sql/dialect.py)."""

    of_nulls = "inside of the call, with FIRST_VALUE or LAST_VALUE: FIRST_VALUE(x IGNORE NULLS)"
    clauses = ("FROM", "WHERE", "WINDOW", "QUALIFY", "ORDER BY", "LIMIT", "OFFSET")
    of_others = {**UNSUPPORTED, "FETCH": ("FETCH", "LIMIT 10"), "TOP": ("TOP", "LIMIT 10, at the end")}

    def read(self, text: str, tokens: list[Token]) -> OverSelect:
        """One statement with OVER ( … ), all of it."""
        self._begin(text, tokens)
        if not self._match(TokenType.SELECT, advance=False):
            self.no_statement()
        found = OverSelect(self.here)
        self._advance()
        if self._match(TokenType.DISTINCT, advance=False):
            self.unsupported("DISTINCT beside OVER ( … )", "QUALIFY ROW_NUMBER() OVER (PARTITION BY x ORDER BY ts) = 1")
        self._items(found)
        self._source(found)
        self._chosen(found)
        self._sorted(found)
        if self._curr:
            self._refuse_grouped()
            self.no_end()
        return found

    def _source(self, found: OverSelect) -> None:
        """FROM with the name of a stream; statements inside and windows in brackets are refused beside OVER ( … )."""
        if not self._match(TokenType.FROM):
            self.no_from()
        if self._match(TokenType.L_PAREN, advance=False):
            self.unsupported(
                "a statement in FROM beside OVER ( … )",
                "FROM events WHERE …; or evaluate the inner statement first, and this one over its table",
            )
        self._from(found)
        if found.match is not None:
            raise wrong(
                self.sql, found.match.start, "MATCH_RECOGNIZE beside OVER ( … ) is not supported.", "one of them"
            )
        if found.clause.start:
            raise wrong(
                self.sql, found.clause.start, "a window in brackets is not supported beside OVER ( … ).",
                f"one of them: FROM {found.source}, and {OVER}",
            )  # fmt: skip

    def _chosen(self, found: OverSelect) -> None:
        if self._now(TokenType.WHERE, "WHERE"):
            found.where_start, found.where = self.here, self._condition()
        if self._now(TokenType.WINDOW, "WINDOW"):
            self._named_windows(found)
        if self._now(TokenType.QUALIFY, "QUALIFY"):
            found.qualify_start, found.qualify = self.here, self._condition("QUALIFY ROW_NUMBER() OVER w = 1")

    def _refuse_grouped(self) -> None:
        if self.word == "GROUP BY":
            self.unsupported("GROUP BY beside OVER ( … )", "PARTITION BY in the window")
        if self.word == "HAVING":
            self.unsupported("HAVING beside OVER ( … )", "QUALIFY")

    def _sorted(self, found: OverSelect) -> None:
        """ORDER BY, LIMIT and OFFSET at the end of a statement with OVER ( … )."""
        if self._now(TokenType.ORDER_BY, "ORDER BY"):
            found.order = self._order()
        found.limit_start = self.here
        while self._match_set((TokenType.LIMIT, TokenType.OFFSET)):
            self.clause_now = self._prev.text.upper()
            count = self.whole("a number of rows", f"{self.clause_now} 10")
            if self.clause_now == "LIMIT":
                found.limit = count
            else:
                found.offset = count

    def _no_item(self) -> NoReturn:
        comma = self._prev.token_type == TokenType.COMMA or self._match(TokenType.COMMA, advance=False)
        self.expected("a column or a window function", "leave the comma out" if comma else f"SUM(x) {OVER}")

    # -- items --------------------------------------------------------------------------------------------------------

    def _items(self, found: Select) -> None:
        """What is selected beside OVER ( … ): stars and expressions, each with its name, which may be its text."""
        assert isinstance(found, OverSelect)
        while True:
            start = self.here
            tree = self._star_item() or self._parse_disjunction()
            if tree is None:
                self._no_item()
            found.written[start] = self.sql[start : self._prev.end + 1]
            name = tree.name if isinstance(tree, exp.Column) else found.written[start]
            found.items.append((tree, None if isinstance(tree, StarItem) else self._alias() or name, start))
            if not self._match(TokenType.COMMA):
                return

    def _star_item(self) -> Any:
        """A star with its EXCLUDE and REPLACE; None if the item is another."""
        if not self._match(TokenType.STAR):
            return None
        if self.word == "RENAME":
            self.unsupported("RENAME after *", "* EXCLUDE (x), x AS z")
        without: list[str] = []
        if self._match_texts(("EXCLUDE", "EXCEPT")):
            hint, several = "* EXCLUDE (a, b)", self._match(TokenType.L_PAREN)
            without = [self.name("the name of a column", hint)]
            while several and self._match(TokenType.COMMA):
                without.append(self.name("the name of a column", hint))
            if several and not self._match(TokenType.R_PAREN):
                self.expected(")", self.close())
        return StarItem(without=without, replaced=self._replaced() if self._match(TokenType.REPLACE) else [])

    def _replaced(self) -> list[tuple[Any, str, int]]:
        """What stands in REPLACE ( … ) after a star: tree, the column that it replaces, offset."""
        hint = "* REPLACE (x + 1 AS x)"
        if not self._match(TokenType.L_PAREN):
            self.expected("( after REPLACE", hint)
        found: list[tuple[Any, str, int]] = []
        while not found or self._match(TokenType.COMMA):
            start, tree = self.here, self._parse_disjunction()
            name = self._alias() if tree is not None else None
            if name is None:
                self.expected("an expression AS the name of a column", hint)
            found.append((tree, name, start))
        if not self._match(TokenType.R_PAREN):
            self.expected(")", self.close())
        return found

    # -- windows ------------------------------------------------------------------------------------------------------

    def _parse_window(self, this: Any, alias: bool = False) -> Any:
        found = super()._parse_window(this, alias)
        if isinstance(found, Over):
            found.meta["end"] = self._prev.end
        return found

    def _of_outer(self, over: dict[str, Any]) -> bool:
        """FIRST_VALUE(ABS(x) IGNORE NULLS)"""
        after = self._tokens[self._index + 2 : self._index + 3]
        return not over and bool(after) and after[0].token_type in (TokenType.R_PAREN, TokenType.COMMA)

    def _own_window(self) -> Any:
        """What follows OVER: a window in parentheses, or the name of one that WINDOW defines."""
        if self._match(TokenType.L_BRACKET, advance=False):
            self.unsupported("OVER [ … ] beside OVER ( … )", OVER)
        if self._match(TokenType.L_PAREN, advance=False):
            return self._window_spec()
        if not self._is_name():
            self.expected("( or the name of a window after OVER", OVER)
        start = self.here
        return WindowSpec(start, self.name("the name of a window", OVER).lower(), start, bare=True)

    def _named_windows(self, found: OverSelect) -> None:
        """WINDOW w AS ( … ), v AS ( … ): each name once."""
        hint = "WINDOW w AS (PARTITION BY k ORDER BY ts)"
        while True:
            start, name = self.here, self.name("the name of a window", hint).lower()
            if name in found.windows:
                raise wrong(self.sql, start, f'there are two windows "{name}".', "a name for each")
            if not self._match(TokenType.ALIAS):
                self.expected("AS", hint)
            found.windows[name] = self._window_spec()
            if not self._match(TokenType.COMMA):
                return

    def _window_spec(self) -> WindowSpec:
        """A window in parentheses: the name of another to begin with, PARTITION BY, ORDER BY, and a frame."""
        start = self.here
        if not self._match(TokenType.L_PAREN):
            self.expected("(", OVER)
        found = WindowSpec(start)
        if self._is_name() and self.word not in _FRAMES:
            found.base_start, found.base = self.here, self.name("the name of a window", OVER).lower()
        if self._match(TokenType.PARTITION_BY):
            found.partition = self._partition_by()
        if self._match(TokenType.ORDER_BY):
            found.order = self._time_order()
        if self.word in _FRAMES:
            found.frame = self._frame()
        if not self._match(TokenType.R_PAREN):
            self._not_in_window()
        return found

    def _not_in_window(self) -> None:
        if self.word == "EXCLUDE":
            self.unsupported("EXCLUDE in a frame", "leave it out; SUM(x) OVER w - x is the sum without the current row")
        if self.word in ("ORDER", "PARTITION"):
            self.expected(f"{self.word} BY", OVER)
        if self.word in ("PARTITION BY", "ORDER BY"):
            self.expected("PARTITION BY, ORDER BY and the frame in this order", OVER)
        self.expected("PARTITION BY, ORDER BY, ROWS, RANGE or )", OVER)

    def _partition_by(self) -> list[tuple[Any, int]]:
        found: list[tuple[Any, int]] = []
        while not found or self._match(TokenType.COMMA):
            start, tree = self.here, self._parse_disjunction()
            if tree is None:
                self.expected("a column to partition by", "leave the comma out" if found else OVER)
            found.append((tree, start))
        return found

    def _order(self) -> list[tuple[Any, bool, bool, int]]:
        """The keys of the ORDER BY that sorts answers: tree, descending or not, nulls first or not, offset."""
        found: list[tuple[Any, bool, bool, int]] = []
        while not found or self._match(TokenType.COMMA):
            start, tree = self.here, self._parse_disjunction()
            if tree is None:
                self.expected("what to sort by", "leave the comma out" if found else "ORDER BY ts DESC")
            descending, nulls_first = bool(self._match(TokenType.DESC)), False
            self._match(TokenType.ASC)
            if self._match_text_seq("NULLS"):
                if not self._match_texts(("FIRST", "LAST")):
                    self.expected("FIRST or LAST", "ORDER BY x NULLS LAST")
                nulls_first = self._prev.text.upper() == "FIRST"
            found.append((tree, descending, nulls_first, start))
        return found

    def _time_order(self) -> tuple[Any, int]:
        keys = self._order()
        for tree, descending, _, start in keys:
            if descending or len(keys) > 1 or not isinstance(tree, exp.Column):
                what = "descending order" if descending else "several columns" if len(keys) > 1 else "an expression"
                raise wrong(self.sql, start, f"a window ordered by {what} is not supported.", ORDERED)
        return keys[0][0], keys[0][3]

    # -- frames -------------------------------------------------------------------------------------------------------

    def _frame(self) -> Frame:
        """ROWS or RANGE with one or two bounds; a frame that ends before it begins is refused."""
        start = self.here
        if self.word == "GROUPS":
            self.unsupported(
                "GROUPS", "ROWS, which counts rows, or RANGE, which goes by ts and takes equal ones together"
            )
        by_rows = self.word == "ROWS"
        self._advance()
        if self._match(TokenType.BETWEEN):
            first = self._frame_bound(by_rows)
            if not self._match(TokenType.AND):
                self.expected("AND", FRAME)
            last = self._frame_bound(by_rows)
        else:
            first, last = self._frame_bound(by_rows), CURRENT
        if first == Bound(None, 1) or last == FOREVER or first.way > last.way:
            message = "a frame can not begin after UNBOUNDED, or end on the other side of the current row."
            raise wrong(self.sql, start, f"the frame ends before it begins: {message}", FRAME)
        frame = Frame(by_rows, first, last)
        try:
            frame.window  # noqa: B018  (lengths that do not go together are refused here, with their place)
        except BadSQL:
            raise
        except BadQuery as why:
            raise wrong(self.sql, start, why.message, FRAME if by_rows else OVER) from None
        return frame

    def _frame_bound(self, by_rows: bool) -> Bound:
        """One end of a frame: CURRENT ROW, UNBOUNDED, or so many rows or so much time PRECEDING or FOLLOWING."""
        if self._match_text_seq("CURRENT", "ROW"):
            return CURRENT
        if self._match_text_seq("UNBOUNDED"):
            return Bound(None, self._which_way())
        if self._match(TokenType.DASH, advance=False):
            self.expected("a length of 0 or more", "5 FOLLOWING instead of -5 PRECEDING")
        size = self.whole("a number of rows, the same for all events", FRAME) if by_rows else self.duration(OVER)
        return Bound(size, self._which_way())

    def _which_way(self) -> int:
        if not self._match_texts(("PRECEDING", "FOLLOWING")):
            self.expected("PRECEDING or FOLLOWING", FRAME)
        return -1 if self._prev.text.upper() == "PRECEDING" else 1
