"""FRAME clauses: windows that the data delimit, found and filled by `frames`.

[FRAME WHERE drop_pct > 0.3 FOR 2 MINUTES]          runs for which a comparison holds; FOR 20 TUPLES; PARTITION
[FRAME UNTIL SUM(volume) >= 25]                     runs that aggregates close; WHILE MAX(a) - MIN(a) < 3 AND …
[FRAME DELTA fl 0.05]                               runs that move less than that; DELTA a 1, b / 2 2 MEASURE RANGE
[FRAME GRID x 4.25, y 4.2]                          runs inside one cell; GRID speed (20, 40, 60)
"""

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from swag.errors import BadQuery, BadSQL
from swag.query.expression import COMPARISONS, Expression, leaves
from swag.query.over_frames import frames_package
from swag.sql.hints import ANY_FRAME, FRAMES, WORDS
from swag.sql.nodes import Select
from swag.sql.places import wrong
from swag.sql.terms import Terms

_OPS = {TokenType.LT: "<", TokenType.LTE: "<=", TokenType.GT: ">", TokenType.GTE: ">="}


def frame_clause(parser: Any) -> Any:
    """A spec of frames, from after the word FRAME."""
    if parser._match(TokenType.WHERE):
        return _threshold(parser)
    if parser._match_texts(("UNTIL", "WHILE")):
        return _aggregate(parser, parser._prev.text.upper())
    if parser._match_texts(("DELTA",)):
        return _delta(parser)
    if parser._match_texts(("GRID", "BOUNDARY")):
        return _grid(parser)
    parser.expected("WHERE, UNTIL, WHILE, DELTA or GRID", ANY_FRAME)


def _threshold(parser: Any) -> Any:
    """FRAME WHERE column > number, FOR so long or so many tuples, PARTITION: a spec of threshold frames."""
    start = parser.here
    column, op, c = _comparison(parser, start)
    options: dict[str, Any] = {}
    if parser._match(TokenType.FOR):
        while True:
            parser._match_text_seq("AT", "LEAST")
            amount = parser.duration(FRAMES["WHERE"])
            rows = isinstance(amount, int) and parser._match_texts(("TUPLES", "TUPLE", "ROWS", "ROW"))
            kind = "min_rows" if rows else "min_duration"
            if kind in options:
                parser.expected("a duration and a number of tuples, each once", FRAMES["WHERE"])
            options[kind] = amount
            if not parser._match(TokenType.AND):
                break
    options["partition"] = bool(parser._match_texts(("PARTITION",)))
    return frames_package().Threshold(column, "==" if op == "=" else op, c, **options)  # type: ignore[arg-type]


def _comparison(parser: Any, start: int) -> tuple[str, str, Any]:
    """A column against a number, either way round."""
    tree = parser._condition(FRAMES["WHERE"])
    op = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=", exp.EQ: "="}.get(type(tree))
    terms = Terms(parser.sql, set())
    left, right = (tree.this, tree.expression) if op is not None else (None, None)
    if op is not None and isinstance(right, exp.Column):
        left, right, op = right, left, COMPARISONS[op]
    value = None if op is None or isinstance(right, exp.Column) else terms.read(right, start)
    if op is None or not isinstance(value, int | float):
        raise wrong(parser.sql, start, "FRAME WHERE compares one column with a number.", FRAMES["WHERE"])
    return terms.value(left, "FRAME WHERE", FRAMES["WHERE"]), op, value


def _aggregate(parser: Any, word: str) -> Any:
    """FRAME UNTIL or WHILE, a condition over aggregates: a spec of aggregate frames.

    UNTIL waits for the event that makes it true, WHILE closes before the one that makes it false.
    """
    start = parser.here
    hint = FRAMES[word]
    term = Terms(parser.sql, set()).read(parser._condition(hint), start)
    if not isinstance(term, Expression) or not term.is_condition:
        raise wrong(parser.sql, start, f"{word} compares aggregates, with numbers or with each other.", hint)
    return frames_package().Aggregate(term, close="with" if word == "UNTIL" else "before")


def _delta(parser: Any) -> Any:
    """FRAME DELTA, the columns with their limits, and MEASURE: a spec of delta frames."""
    limits: dict[str, Any] = {}
    ops = set()
    while True:
        _by_itself(parser)
        column = measured(parser, "DELTA", (TokenType.NUMBER, *_OPS))
        ops.add(_OPS[parser._prev.token_type] if parser._match_set(_OPS) else "<")
        limits[column] = _number(parser, FRAMES["DELTA"])
        if not parser._match(TokenType.COMMA):
            break
    if len(ops) > 1:
        parser.expected("one comparison for all columns", FRAMES["DELTA"])
    measure = "first"
    if parser._match_text_seq("MEASURE"):
        if not parser._match_texts(("FIRST", "RANGE")):
            parser.expected("FIRST or RANGE", FRAMES["DELTA"])
        measure = parser._prev.text.lower()
    return frames_package().Delta(limits, measure=measure, op=ops.pop())


def _grid(parser: Any) -> Any:
    """FRAME GRID, columns with the width of their cells or the breaks between them: a spec of boundary frames."""
    cells: dict[str, Any] = {}
    while True:
        _by_itself(parser)
        column = measured(parser, "GRID", (TokenType.NUMBER, TokenType.L_PAREN))
        parser._match_text_seq("BREAKS")
        cells[column] = _numbers(parser) if parser._match(TokenType.L_PAREN) else _number(parser, FRAMES["GRID"])
        if not parser._match(TokenType.COMMA):
            return frames_package().Boundary(cells)


def measured(parser: Any, word: str, behind: tuple[Any, ...]) -> str:
    """A column, or SQL over columns, in front of its number: `x 4`, `temp * 0.8 + sal 0.1`, `(ABS(x)) 4`.

    SQL goes as far as it can: up to the last number. A name with what may stand `behind` one is that of a column, also
    where the two would be a call: GRID speed (20, 40).
    """
    start, at = parser.here, parser._index
    following = parser._next.token_type if parser._next else None
    plain = following in behind or following is None or parser._next.text.upper() in ("BREAKS", "]", ",")
    if plain or not (parser._is_name() or parser._curr.token_type in (TokenType.L_PAREN, TokenType.NUMBER)):
        return str(parser.name("the name of a column", FRAMES[word]))
    tree = parser._parse_term()
    if tree is None or tree.find(exp.Column) is None:
        parser._retreat(at)
        parser.expected("the name of a column", FRAMES[word])
    inner = tree.unnest()
    terms = Terms(parser.sql, set())
    terms.start = start
    return terms.value(inner, f"FRAME {word}", FRAMES[word])


def _by_itself(parser: Any) -> None:
    """[FRAME DELTA x 5, ROWS 3]: no column, but a clause."""
    if parser.word in WORDS and parser._prev.token_type == TokenType.COMMA:
        parser.expected("a FRAME clause by itself", "[FRAME …], without RANGE, ROWS and FREQUENCY")


def _numbers(parser: Any) -> list[Any]:
    found = [_number(parser, FRAMES["GRID"])]
    while parser._match(TokenType.COMMA):
        found.append(_number(parser, FRAMES["GRID"]))
    if not parser._match(TokenType.R_PAREN):
        parser.expected(")", parser.close())
    return found


def _number(parser: Any, hint: str) -> Any:
    """A number in a FRAME clause, with its sign."""
    sign = -1 if parser._match(TokenType.DASH) else 1
    if not parser._match(TokenType.NUMBER):
        parser.expected("a number", hint)
    text = parser._prev.text
    try:
        return sign * (int(text) if text.isdigit() and len(text) < 19 else float(text))
    except ValueError:
        raise wrong(parser.sql, parser._prev.start, f"expected a number, found {text[:20]}.", hint) from None


def _inner(text: str, inner: Select) -> BadSQL:
    """The error for frames of a statement in FROM: they are found in all events of a stream."""
    if inner.star is None:
        return wrong(
            text,
            inner.start,
            "frames are found in events, not in answers.",
            "swag.evaluate what is inside, then find frames in its answers",
        )
    return wrong(
        text, inner.start, "frames are found in all events, not in chosen ones.",
        "give it those events alone; WHERE after [FRAME …] chooses what is aggregated of a frame",
    )  # fmt: skip


def frame_query(text: str, select: Select, values: list[tuple[Any, str | None, int]], where: Any, having: Any) -> Any:
    """A statement with a FRAME clause as a query over frames; windows inside of frames are refused."""
    if not isinstance(select.source, str):
        raise _inner(text, select.source)
    for term, _, start in values:
        if any(leaf.window is not None for leaf in leaves(term)):
            raise wrong(text, start, "an aggregate over a frame has no window of its own.", "leave OVER away")
    named = [(name, term) for term, name, _ in values]
    try:
        return frames_package().FrameQuery(
            select.clause.frame, named, where, having, by=tuple(select.group_by), stream=select.source
        )
    except BadSQL:
        raise
    except BadQuery as why:
        example = "SELECT COUNT(*), AVG(x) FROM t [FRAME DELTA x 0.05]"
        raise wrong(text, select.start, why.message, example) from None
