"""Where in the text something is wrong, as line and column, and how that is said."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from swag.errors import BadEvents, BadSQL, BadType, UnknownColumn
from swag.tables.expressions.expression import compiled


def place(text: str, start: int) -> tuple[int, int]:
    """Line and column of an offset, both from 1; the end of the text is one column past its last character."""
    start = max(0, min(start, len(text)))
    return text.count("\n", 0, start) + 1, start - (text.rfind("\n", 0, start) + 1) + 1


def wrong(text: str, start: int, message: str, hint: str) -> BadSQL:
    """hint: what to write instead. There always is one."""
    line, column = place(text, start)
    error = BadSQL(f"line {line}, column {column}: {message}", hint)
    error.line, error.column = line, column
    return error


def start_of_name(text: str, name: str) -> int | None:
    """The offset at which the name of a column stands first, in quotes if it does anywhere; None: nowhere."""
    quoted = f'"{name}"'
    pattern = re.escape(quoted) if quoted in text else rf"(?<!\w){re.escape(name)}(?!\w)"
    found = re.search(pattern, text)
    return None if found is None else found.start()


def start_of_sql(text: str, sql: str) -> int | None:
    """The offset at which SQL stands first, whatever blanks are in it, and in any case; None: nowhere."""
    places = [at for at, letter in enumerate(text) if not letter.isspace()]
    squeezed, wanted = ("".join(each.split()).lower() for each in (text, sql))
    found = squeezed.find(wanted) if wanted and len(squeezed) == len(places) else -1
    return None if found < 0 else places[found]


@contextmanager
def placed(text: Any) -> Iterator[None]:
    """A column that is not there, or not of a type to compute with, and SQL that can not be computed, are said with
    their place in the statements, if text is what was asked."""
    try:
        yield
    except (UnknownColumn, BadType, BadEvents) as why:
        start = _start(text, getattr(why, "name", ""), getattr(why, "about", "")) if isinstance(text, str) else None
        if start is None:
            raise
        line, column = place(text, start)
        raise type(why)(f"line {line}, column {column}: {why.message}", why.hint) from None


def _start(text: str, name: str, sql: str) -> int | None:
    """Where a column is named, or SQL stands; if that is written otherwise, the first of its columns."""
    expression = compiled(sql) if sql else None
    if expression is not None and not expression.is_column and (found := start_of_sql(text, sql)) is not None:
        return found
    names = [name] if expression is None else sorted(expression.columns)
    starts = [start_of_name(text, each) for each in names if each]
    return min((each for each in starts if each is not None), default=None)


def start_of(node: Any, otherwise: int) -> int:
    """The offset at which a part of the tree begins, as far as its parts know."""
    known = [each.meta["start"] for each in node.walk() if "start" in each.meta] if hasattr(node, "walk") else []
    return min(known, default=otherwise)
