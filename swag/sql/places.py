"""Where in the text something is wrong, as line and column, and how that is said."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from swag.errors import BadSQL, BadType, UnknownColumn


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


@contextmanager
def placed(text: Any) -> Iterator[None]:
    """A column that is not there, or not of a type to compute with, is said with its place in the statements, if text
    is what was asked."""
    try:
        yield
    except (UnknownColumn, BadType) as why:
        start = start_of_name(text, why.name) if isinstance(text, str) and why.name else None
        if start is None:
            raise
        line, column = place(text, start)
        raise type(why)(f"line {line}, column {column}: {why.message}", why.hint) from None


def start_of(node: Any, otherwise: int) -> int:
    """The offset at which a part of the tree begins, as far as its parts know."""
    known = [each.meta["start"] for each in node.walk() if "start" in each.meta] if hasattr(node, "walk") else []
    return min(known, default=otherwise)
