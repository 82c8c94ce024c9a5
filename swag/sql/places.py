"""Where in the text something is wrong, as line and column, and how that is said."""

from typing import Any

from swag.errors import BadSQL


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


def start_of(node: Any, otherwise: int) -> int:
    """The offset at which a part of the tree begins, as far as its parts know."""
    known = [each.meta["start"] for each in node.walk() if "start" in each.meta] if hasattr(node, "walk") else []
    return min(known, default=otherwise)
