"""FRAME clauses: windows that the data delimit, found and filled by `frames`.

[FRAME WHERE drop_pct > 0.3 AND load > 2]           runs for which a predicate holds; PARTITION: and what lies between
[FRAME UNTIL SUM(volume) >= 25]                     runs that aggregates close; WHILE MAX(a) - MIN(a) < 3 AND …
[FRAME DELTA fl 0.05]                               runs that move less than that; DELTA a 1, b / 2 2 MEASURE RANGE
[FRAME GRID x 4.25, y 4.2]                          runs inside one cell; GRID speed (20, 40, 60)
[FRAME SESSION 30 MINUTES]                          runs without a longer silence
[FRAME STATE status]                                runs of one value
[FRAME FROM x > 5 TO x < 2]                         from an event that opens to one that closes; SAME: may be the same

Behind each: FOR 2 MINUTES AND 20 TUPLES, FOR AT LEAST 3 ROWS AT MOST 1 HOUR; EXTENT OPEN. At the end FRAGMENTS: in an
engine, a row for each piece of a frame.

[FRAME …] FILL FROM messages AS m BEFORE 2 MINUTES  filled with the events of another stream, from before they begin
"""

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from swag.errors import BadQuery, BadSQL
from swag.query.expression import COMPARISONS, Expression, leaves
from swag.query.over_frames import frames_package
from swag.sql.hints import ANY_FRAME, FILL_FROM, FRAMES, LENGTHS, WORDS
from swag.sql.nodes import Clause, Fill, Select
from swag.sql.places import wrong
from swag.sql.terms import Terms
from swag.tables.predicate import canonical

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
    if parser._match_texts(("SESSION",)):
        return frames_package().Session(parser.duration(FRAMES["SESSION"]), **_lengths(parser))
    if parser._match_texts(("STATE",)):
        column = parser.name("the name of a column", FRAMES["STATE"])
        return frames_package().State(column, **_lengths(parser))
    if parser._match(TokenType.FROM):
        return _between(parser)
    *words, last = FRAMES
    parser.expected(f"{', '.join(words)} or {last}", ANY_FRAME)


def _lengths(parser: Any) -> dict[str, Any]:
    """FOR [AT LEAST | AT MOST] so long or so many tuples, AND others; EXTENT OPEN: what every kind takes.

    What was said last, LEAST or MOST, holds for what AND adds.
    """
    found: dict[str, Any] = {}
    if parser._match(TokenType.FOR):
        which = "min"
        while True:
            if parser._match_text_seq("AT"):
                if not parser._match_texts(("LEAST", "MOST")):
                    parser.expected("LEAST or MOST", LENGTHS)
                which = "max" if parser._prev.text.upper() == "MOST" else "min"
            amount = parser.duration(LENGTHS)
            rows = isinstance(amount, int) and parser._match_texts(("TUPLES", "TUPLE", "ROWS", "ROW"))
            name = f"{which}_{'rows' if rows else 'duration'}"
            if name in found:
                parser.expected("a duration and a number of tuples, each once", LENGTHS)
            found[name] = amount
            if not parser._match(TokenType.AND) and parser.word != "AT":
                break
    if parser._match_text_seq("EXTENT"):
        if not parser._match_texts(("OPEN", "CLOSED")):
            parser.expected("OPEN or CLOSED", "[FRAME STATE status EXTENT OPEN]")
        found["extent"] = parser._prev.text.lower()
    return found


def _threshold(parser: Any) -> Any:
    """FRAME WHERE a predicate, FOR so long or so many tuples, PARTITION: a spec of threshold frames."""
    start = parser.here
    tree = parser._condition(FRAMES["WHERE"])
    what = _comparison(parser, tree, start) or (canonical(parser.sql[start : parser._prev.end + 1]),)
    options = _lengths(parser)
    options["partition"] = bool(parser._match_texts(("PARTITION",)))
    return frames_package().Threshold(*what, **options)


def _comparison(parser: Any, tree: Any, start: int) -> tuple[str, str, Any] | None:
    """A column, or SQL over columns, against a number, either way round; None: it is another predicate."""
    op = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=", exp.EQ: "="}.get(type(tree))
    if op is None:
        return None
    left, right = tree.this, tree.expression
    if isinstance(right, exp.Column):
        left, right, op = right, left, COMPARISONS[op]
    terms = Terms(parser.sql, set())
    constant = right.find(exp.Column) is None and left.find(exp.Column) is not None
    value = terms.read(right, start) if constant else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return terms.value(left, "FRAME WHERE", FRAMES["WHERE"]), "==" if op == "=" else op, value


def _between(parser: Any) -> Any:
    """FRAME FROM a predicate TO another, SAME: a spec of between frames."""
    opens = _predicate(parser)
    if not parser._match_text_seq("TO"):
        parser.expected("TO", FRAMES["FROM"])
    closes = _predicate(parser)
    same = bool(parser._match_text_seq("SAME"))
    return frames_package().Between(opens, closes, same, **_lengths(parser))


def _predicate(parser: Any) -> str:
    """A condition of events, in the one way that it is written."""
    start = parser.here
    parser._condition(FRAMES["FROM"])
    return canonical(parser.sql[start : parser._prev.end + 1])


def _aggregate(parser: Any, word: str) -> Any:
    """FRAME UNTIL or WHILE, a condition over aggregates: a spec of aggregate frames.

    UNTIL waits for the event that makes it true, WHILE closes before the one that makes it false.
    """
    start = parser.here
    hint = FRAMES[word]
    term = Terms(parser.sql, set()).read(parser._condition(hint), start)
    if not isinstance(term, Expression) or not term.is_condition:
        raise wrong(parser.sql, start, f"{word} compares aggregates, with numbers or with each other.", hint)
    close = "with" if word == "UNTIL" else "before"
    return frames_package().Aggregate(term, close=close, **_lengths(parser))


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
    return frames_package().Delta(limits, measure=measure, op=ops.pop(), **_lengths(parser))


def _grid(parser: Any) -> Any:
    """FRAME GRID, columns with the width of their cells or the breaks between them: a spec of boundary frames."""
    cells: dict[str, Any] = {}
    while True:
        _by_itself(parser)
        column = measured(parser, "GRID", (TokenType.NUMBER, TokenType.L_PAREN))
        parser._match_text_seq("BREAKS")
        cells[column] = _numbers(parser) if parser._match(TokenType.L_PAREN) else _number(parser, FRAMES["GRID"])
        if not parser._match(TokenType.COMMA):
            return frames_package().Boundary(cells, **_lengths(parser))


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


def is_fill(parser: Any) -> bool:
    """Does FILL FROM come next?"""
    return bool(parser._match_text_seq("FILL", "FROM", advance=False))


def fill_clause(parser: Any, clause: Clause) -> Fill | None:
    """FILL FROM messages AS m BEFORE 2 MINUTES AFTER 1 MINUTE, behind the brackets of a FRAME clause."""
    if not is_fill(parser):
        return None
    if clause.frame is None:
        parser.unsupported("FILL FROM without a frame", FILL_FROM)
    if clause.fragments:
        parser.unsupported("FILL FROM behind FRAGMENTS", "leave FRAGMENTS out: such frames are reported as a whole")
    parser._match_text_seq("FILL", "FROM")
    stream = parser.name("the name of a stream", FILL_FROM)
    alias = None if parser.word in ("BEFORE", "AFTER") else parser._alias()
    found = Fill(stream, {stream} | ({alias} if alias else set()))
    for word in ("BEFORE", "AFTER"):
        if parser._match_texts((word,)):
            sign = -1 if parser._match(TokenType.DASH) else 1
            amount = parser.duration(FILL_FROM)
            moved = sign * amount if isinstance(amount, int) else f"{'-' * (sign < 0)}{amount}"
            setattr(found, word.lower(), moved)
    return found


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


def _filled(select: Select) -> dict[str, Any]:
    """Where the events come from that frames are filled with, if not from the stream that they are found in."""
    fill = select.fill
    return {} if fill is None else {"fill_from": fill.stream, "before": fill.before, "after": fill.after}


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
            select.clause.frame,
            named,
            where,
            having,
            by=tuple(select.group_by),
            stream=select.source,
            fragments=select.clause.fragments,
            **_filled(select),
        )
    except BadSQL:
        raise
    except BadQuery as why:
        example = "SELECT COUNT(*), AVG(x) FROM t [FRAME DELTA x 0.05]"
        raise wrong(text, select.start, why.message, example) from None
