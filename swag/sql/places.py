"""Where in the text something is wrong, as line and column, and how that is said."""

from typing import Any

from swag.errors import BadSQL


def place(text: str, start: int) -> str:
    start = max(0, min(start, len(text)))
    line, column = text.count("\n", 0, start) + 1, start - (text.rfind("\n", 0, start) + 1) + 1
    return f"line {line}, column {column}"


def wrong(text: str, start: int, message: str, hint: str = "") -> BadSQL:
    return BadSQL(f"{place(text, start)}: {message}", hint)


def start_of(node: Any, otherwise: int) -> int:
    """The offset at which a part of the tree begins, as far as its parts know."""
    known = [each.meta["start"] for each in node.walk() if "start" in each.meta] if hasattr(node, "walk") else []
    return min(known, default=otherwise)
