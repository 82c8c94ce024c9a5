"""What is wrong with a statement, said at the token where reading it stopped: what was found, expected, and meant."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import TokenType

from swag.errors import BadSQL
from swag.sql.functions import EXAMPLES, NOT_OURS, THERE_ARE
from swag.sql.hints import CLAUSES, ELSEWHERE, OPERATORS, OTHERS, STATEMENT, UNSUPPORTED, VALUE, meant
from swag.sql.nodes import Over
from swag.sql.places import place, start_of, wrong

if TYPE_CHECKING:
    from sqlglot.parser import Parser as _Base
else:
    _Base = object

CLOSES = {"(": ")", "[": "]", "{": "}"}


class Refusing(_Base):
    """Methods of the parser (dialect.py). `clause_now` is the clause that is being read."""

    clause_now: str
    clauses: tuple[str, ...] = CLAUSES  # those that a statement may have, in this order
    of_others: Mapping[str, tuple[str, str]] = UNSUPPORTED  # words of clauses that it may not have

    # -- how it is said -----------------------------------------------------------------------------------------------

    @property
    def here(self: Any) -> int:
        """The offset of the next token; of the end, if there is none."""
        return self._curr.start if self._curr else self._prev.end + 1 if self._prev else 0

    @property
    def found(self: Any) -> str:
        if not self._curr:
            return "the end of the statement"
        text = self.sql[self._curr.start : self._curr.end + 1] or self._curr.text
        text = text if len(text) <= 40 else f"{text[:37]}…{text[-1]}"
        return text if text[:1] in ("'", '"') and len(text) > 1 else f'"{text}"'

    @property
    def word(self: Any) -> str:
        """The next token in capitals; nothing if it is a name in quotes, a text, or the end."""
        quoted = not self._curr or self._curr.token_type in (TokenType.IDENTIFIER, TokenType.STRING)
        return "" if quoted else " ".join(self._curr.text.upper().split())

    def expected(self: Any, what: str, hint: str) -> NoReturn:
        raise wrong(self.sql, self.here, f"expected {what}, found {self.found}.", hint)

    def unsupported(self: Any, what: str, instead: str) -> NoReturn:
        raise wrong(self.sql, self.here, f"{what} is not supported.", instead)

    # -- where a clause should begin, or the statement end ------------------------------------------------------------

    def no_statement(self: Any) -> None:
        self._refuse_by_name()
        if self.word in OTHERS:
            hint = OTHERS[self.word]
        else:
            hint = meant(self.word, ["SELECT"]) or STATEMENT
        self.expected("SELECT", hint)

    def no_from(self: Any) -> None:
        """Something else than FROM follows what is selected: say what it is, or what was meant."""
        self._refuse_by_name()
        self._refuse_misspelt(("FROM",))
        self._refuse_order(("FROM",))
        if self._prev.token_type == TokenType.STAR and self.is_value():  # read as all columns: SUM(x) * * 2
            raise wrong(self.sql, self._prev.start, 'expected a value after "*", found "*".', VALUE)
        self._refuse_two_values()
        if self._curr and self._index > 1 and self._tokens[self._index - 2].token_type == TokenType.ALIAS:
            self.expected("FROM", f'a name that is no plain word in quotes: AS "{self._prev.text}{self._curr.text}…"')
        self.expected("FROM and the name of a stream", self._unopened() or STATEMENT)

    def no_end(self: Any, *, end: str = ";") -> None:
        """After a clause: what is left is none that may follow."""
        follow = self.clauses[self.clauses.index(self.clause_now) + 1 :]
        self._refuse_by_name()
        self._refuse_misspelt(follow)
        self._refuse_order(follow)
        if self._match(TokenType.L_BRACKET, advance=False):
            self.misplaced_window()
        self._refuse_two_values()
        what = " or ".join([", ".join([*self._before_the_end(), *follow]), end]) if follow else end
        self.expected(what, self._instead(follow, end))

    def _before_the_end(self: Any) -> list[str]:
        return ["AND, OR"] if self.clause_now in ("WHERE", "HAVING", "QUALIFY") else []

    def _instead(self: Any, follow: tuple[str, ...], end: str) -> str:
        if self._unopened():
            return self._unopened()
        if self.word in ("AND", "OR") and follow:
            return f"{follow[0]} before the condition"
        if end == ")" and self._opened() is not None:
            return self.close()
        return f"leave it out, or one of {', '.join(follow)} before it" if follow else "leave it out, or ; before it"

    def _unopened(self: Any) -> str:
        closes = self.word in CLOSES.values() and self._opened() is None
        return f"leave the {self.word} out: nothing is open" if closes else ""

    def _refuse_by_name(self: Any) -> None:
        """A clause that other SQL has, and ours has not, such as JOIN: refused, with what to write instead."""
        known = self.of_others.get(self.word.split(" ")[0])
        if known is not None and self.word not in self.clauses:
            self.unsupported(*known)
        before = (
            self.of_others.get(self._prev.text.upper())
            if self._prev and self._prev.token_type == TokenType.VAR
            else None
        )
        if before is not None and self._curr and before[0] not in self.clauses:
            raise wrong(self.sql, self._prev.start, f"{before[0]} is not supported.", before[1])

    def _refuse_misspelt(self: Any, follow: tuple[str, ...]) -> None:
        """A keyword with a letter wrong is read as a name: WEHRE x > 1, SELECT SUM(x) FORM t, GROUP k."""
        if self._prev and self._prev.token_type == TokenType.VAR:
            if self._prev.text.upper() == "GROUP" and "GROUP BY" in follow:
                self.expected("BY after GROUP", f"GROUP BY {self._curr.text or 'k'}")
            keyword = meant(self._prev.text, follow)
            if keyword:
                raise wrong(self.sql, self._prev.start, f'"{self._prev.text}" is read as a name.', keyword)
        if self._curr and self._curr.token_type == TokenType.VAR and meant(self.word, follow, 0.7):
            self.expected(" or ".join(follow), meant(self.word, follow, 0.7))

    def _refuse_order(self: Any, follow: tuple[str, ...]) -> None:
        """A clause that comes twice, or out of order. follow: those that may come next."""
        if self.word not in self.clauses or self.word in follow:
            return
        if self.word == self.clause_now:
            more = ", between columns" if self.word == "GROUP BY" else "AND between conditions"
            raise wrong(self.sql, self.here, f"expected one {self.word}, found a second.", more)
        last = "SELECT" if self.clause_now == "SELECT" else self.clause_now
        raise wrong(
            self.sql, self.here, f"expected {self.word} before {last}, found it after."
            if last != "SELECT" else f"expected FROM before {self.word}, found none.",
            f"SELECT … {' … '.join(self.clauses)} …, in this order",
        )  # fmt: skip

    def _refuse_two_values(self: Any) -> None:
        """Two things side by side, with nothing between them: AVG x, SUM(x) AVG(y), x > 1 y < 2, x => 1."""
        before, word = self._prev.text.upper() if self._prev else "", self.word
        if word in OPERATORS or (before + word) in OPERATORS:
            known = OPERATORS.get(word) or OPERATORS[before + word]
            raise wrong(self.sql, self.here, f"expected an operator, found {self.found}.", known)
        if word in ("OVER", "FILTER", "WITHIN"):
            raise wrong(
                self.sql, self.here, f"expected an aggregate before {word}, found \"{self._prev.text}\".",
                "SUM(x) OVER [ROWS 1000], SUM(x) FILTER (WHERE y > 1)",
            )  # fmt: skip
        if not self.is_value():
            return
        self.refuse_call_without_parentheses()
        if self.clause_now == "SELECT":
            called = self._next.token_type != TokenType.L_PAREN and self._prev.token_type == TokenType.VAR
            two = f'a name of two words in quotes: AS "{self._prev.text} {self._curr.text}"; or a comma between them'
            self.expected(", or FROM", two if called else f"a comma between them: …, {self._curr.text}…")
        if self.clause_now in ("WHERE", "HAVING"):
            self.expected("AND or OR between two conditions", f"AND {self._curr.text} …")

    def refuse_call_without_parentheses(self: Any) -> None:
        """AVG x: a function is no name."""
        before = self._prev.text.upper() if self._prev and self._prev.token_type != TokenType.IDENTIFIER else ""
        if before in EXAMPLES and self.is_value() and not self._match(TokenType.L_PAREN, advance=False):
            self.expected(f"( after {before}", EXAMPLES[before].replace("(x", f"({self._curr.text}", 1))

    def is_value(self: Any) -> bool:
        return bool(self._curr) and (
            self._is_name() or self._curr.token_type in (TokenType.NUMBER, TokenType.STRING, TokenType.L_PAREN)
        )

    # -- inside expressions -------------------------------------------------------------------------------------------

    def not_an_expression(self: Any, why: ParseError) -> BadSQL:
        """What sqlglot could not read, in our words."""
        if not self.sql.strip():
            return wrong(self.sql, 0, "expected SELECT, found nothing.", STATEMENT)
        description = str((why.errors or [{}])[0].get("description") or "")
        opened = self._opened()
        if description.startswith("Expecting") and opened is not None:
            return self._not_closed(opened)
        before = self._prev.text if self._prev else ""
        for i in range(max(self._index - 3, 0), self._index):  # x =< 1 is read as two operators
            pair = "".join(token.text for token in self._tokens[i : i + 2])
            if pair in OPERATORS:
                start = self._tokens[i].start
                return wrong(self.sql, start, f'expected an operator, found "{pair}".', OPERATORS[pair])
        if self._left_open("BETWEEN", "AND"):
            return wrong(self.sql, self.here, f"expected AND in BETWEEN, found {self.found}.", "x BETWEEN 1 AND 2")
        what, hint = "a value", VALUE
        if before.upper() in ("AND", "OR", "NOT"):
            what, hint = "a condition", f"leave the {before} out, or x > 1 after it"
        return wrong(self.sql, self.here, f'expected {what} after "{before}", found {self.found}.', hint)

    def _not_closed(self: Any, opened: int) -> BadSQL:
        """A call or a parenthesis goes on where it should end."""
        name = self._tokens[opened - 1] if opened else None
        called = name.text.upper() if name and name.token_type == TokenType.VAR else ""
        if called == "GROUP":
            return wrong(self.sql, self.here, f"expected ORDER BY, found {self.found}.", EXAMPLES["PERCENTILE_CONT"])
        if name and called and called not in EXAMPLES:
            return self.no_function(called, name.start)
        if self.is_value() and self._prev.text.upper() in EXAMPLES:
            call = EXAMPLES[self._prev.text.upper()].replace("(x", f"({self._curr.text}", 1)
            return wrong(self.sql, self.here, f"expected ( after {self._prev.text}, found {self.found}.", call)
        what = "a comma or )" if called else ")"
        return wrong(self.sql, self.here, f"expected {what}, found {self.found}.", self.close())

    def refuse_position(self: Any) -> None:
        """POSITION('b' IN s)."""
        opened = self._opened()
        call = self._tokens[opened - 1] if opened else None
        if call is not None and call.text.upper() == "POSITION":
            raise wrong(self.sql, call.start, "the function POSITION is not supported.", ELSEWHERE["POSITION"])

    def refuse_dotted(self: Any, tree: Any, before: Any) -> None:
        """t.SUM(x), SUM(x).y: a dot stands between the names of a stream and its column alone. before: the first one"""
        part = tree
        while isinstance(part, exp.Dot) and isinstance(part.expression, exp.Identifier):
            part = part.this
        call = part.expression if isinstance(part, exp.Dot) else part.this if isinstance(part, exp.Column) else None
        if isinstance(call, Over | exp.Condition) and not isinstance(call, exp.Identifier | exp.Literal | exp.Star):
            start, shown = start_of(call, self.here), (call.this if isinstance(call, Over) else call).sql("duckdb")
            two = self.clause_now == "SELECT" and self._opened() is None
            first = " ".join(self.sql[start_of(before, start) : start].rstrip(" \n\t.").split())
            hint = f"{first}, {shown}; or {shown} alone" if two else f"{shown} alone"
            raise wrong(self.sql, start, f"expected the name of a column after the dot, found {shown}.", hint)
        if part is not tree and not isinstance(part, exp.Column):
            message = f"{part.sql('duckdb')} is followed by a dot, and is neither a stream nor a column."
            raise wrong(self.sql, start_of(part, self.here), message, "a comma, or an operator, instead of the dot")

    def no_function(self: Any, name: str, start: int) -> BadSQL:
        return no_function(self.sql, name, start)

    def close(self: Any) -> str:
        opened = self._opened()
        token = self._tokens[opened] if opened is not None else None
        if token is None:
            return "leave it out: nothing is open"
        line, column = place(self.sql, token.start)
        return f"{CLOSES[token.text]} to close the {token.text} of line {line}, column {column}"

    def _opened(self: Any) -> int | None:
        """The index of the innermost bracket that is open here."""
        stack: list[int] = []
        for i, token in enumerate(self._tokens[: self._index]):
            if token.text in CLOSES and token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER):
                stack.append(i)
            elif stack and token.text == CLOSES[self._tokens[stack[-1]].text]:
                stack.pop()
        return stack[-1] if stack else None

    def _left_open(self: Any, first: str, second: str) -> bool:
        """Whether the word of a pair was read, and the other was not yet."""
        words = [token.text.upper() for token in self._tokens[: self._index]]
        return first in words and second not in words[len(words) - words[::-1].index(first) :]


def no_function(text: str, name: str, start: int) -> BadSQL:
    """A function that there is not: known from elsewhere, misspelt, or made up."""
    if name in NOT_OURS:
        return wrong(text, start, f"the function {name} is not supported.", NOT_OURS[name])
    if name in ELSEWHERE:
        return wrong(text, start, f"the function {name} is not supported.", ELSEWHERE[name])
    close = meant(name, EXAMPLES)
    return wrong(text, start, f"there is no function {name}.", EXAMPLES[close] if close else f"one of {THERE_ARE}")
