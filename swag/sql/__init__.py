"""SQL in, queries out, and back: a dialect of sqlglot with windows in brackets.

    dialect.py      the statement: SELECT … FROM stream [window] WHERE … GROUP BY … HAVING …
    parsing.py      a text as statements, or what is wrong with it
    clauses.py      what stands in brackets: RANGE, ROWS, FREQUENCY, FRAME
    terms.py        aggregates, arithmetic and conditions, as expressions
    functions.py    the functions there are, and what each takes
    statements.py   a parsed statement as queries
    templates.py    statements that differ in constants alone (shapes.py, filling.py) are not read again
    match_recognize.py  rows that match a pattern
    over            statements with OVER ( … ): standard window functions
    places.py       where something is wrong
    refusing.py     what was found there, and what was expected
    guessing.py     windows that are written otherwise
    hints.py        what other SQL has, and what to write instead

Only what is asked for is imported: sqlglot takes a fifth of a second.
"""

from typing import Any


def sql(text: str) -> list[Any]:
    """The queries of one or several statements: one per aggregate selected, in order.

    A statement with a FRAME clause gives a frame query instead (see frames), for `sw.evaluate` and engines.

    >>> import swag as sw
    >>> sw.sql("SELECT SUM(volume) AS v FROM trades [RANGE 5 MINUTES]")
    [sw.Query(sw.sum("volume"), sw.Range("5m"), name="v", by=(), stream="trades")]
    """
    from swag.sql.statements import queries_of

    return queries_of(text)


def to_register(text: str, ts: str, registered: Any) -> list[Any]:
    """As `sql`, for an engine whose time is `ts`: statements with OVER ( … ) are queries there, too. registered: its
    queries by name, which a statement may read by it."""
    from swag.sql.statements import queries_of

    return queries_of(text, registered, ts)


def term(text: str) -> Any:
    """What is selected by itself, as it stands behind SELECT: "ARG_MAX(ts, price)"; an aggregate or an expression."""
    from swag.sql.statements import term_of

    return term_of(text)


def frame_spec(text: str) -> Any:
    """A FRAME clause by itself, as a spec of frames: "DELTA fl 0.05", with or without FRAME and the brackets."""
    from swag.sql.statements import spec_of

    return spec_of(text)
