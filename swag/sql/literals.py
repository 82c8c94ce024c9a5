"""Constants in a statement: 5, 0.5, 'text', TRUE, DATE '2024-03-01', INTERVAL '90' SECONDS."""

from typing import Any

from sqlglot import exp

from swag.errors import BadQuery
from swag.tables import constants

EXAMPLE = "numbers, 'text', TRUE, DATE '2024-03-01', TIMESTAMP '2024-03-01 09:30:00', DECIMAL '0.98'"
_WORDS = {"TIMESTAMPNTZ": "TIMESTAMP", "VARBINARY": "BLOB"}  # what sqlglot calls them
_MICROSECONDS = {
    "MICROSECOND": 1, "MILLISECOND": 10**3, "SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3600 * 10**6,
    "DAY": 86400 * 10**6,
}  # fmt: skip
READABLE_DIGITS = 4000  # digits of an integer: Python reads no longer ones


def is_constant(node: Any) -> bool:
    """Is it a literal, or the word for a type before a text?"""
    typed = isinstance(node, exp.Cast | exp.Interval) and isinstance(node.this, exp.Literal) and node.this.is_string
    return typed or isinstance(node, exp.Literal | exp.Boolean)


def constant(node: Any) -> Any:
    """The Python value of a literal, or of a word for a type with a text."""
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Literal):
        return str(node.this) if node.is_string else _number(str(node.this))
    if isinstance(node, exp.Interval):
        return _interval(str(node.this.this), str(node.args.get("unit") or ""))
    word = node.to.this.value
    word = _WORDS.get(word, word)
    if not constants.is_word(word):
        raise BadQuery(f"there are no constants of type {word}.", EXAMPLE)
    return constants.read(word, str(node.this.this))


def _number(text: str) -> int | float:
    if text.isascii() and text.isdigit() and len(text) < READABLE_DIGITS:
        return int(text)
    try:
        return float(text)
    except ValueError:
        raise BadQuery(f"{text} is not a number.") from None


def _interval(text: str, unit: str) -> Any:
    """A duration: a whole number of units."""
    size = _MICROSECONDS.get(unit.upper().removesuffix("S"))
    if size is None or not text.removeprefix("-").isdecimal():
        raise BadQuery(f"INTERVAL '{text}' {unit} is no duration.", "INTERVAL '90' SECONDS")
    return constants.read("MICROSECONDS", str(int(text) * size))
