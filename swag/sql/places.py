"""Where in the text something is wrong, as line and column, and how that is said."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from swag.errors import BadEvents, BadQuery, BadSQL, BadType, UnknownColumn
from swag.tables.expressions.expression import compiled
from swag.tables.times.durations import nanoseconds

_NO_NAMES = re.compile(r"""("[^"]*")|'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/""", re.DOTALL)  # but the first
_PLACE = re.compile(r"\Aline \d+, column \d+: ")
_CURLED = "\u2018\u2019\u201c\u201d"
_AS = re.compile(r"\bAS\s+\Z", re.IGNORECASE)
_AMOUNT = re.compile(r"(?:\bINTERVAL\s*)?'?(?<![\w.])(\d+(?:\.\d+)?)\s*'?\s*([A-Za-z]+)", re.IGNORECASE)


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


def unplaced(message: str) -> str:
    """What is said without where: of a part of a text that its reader never wrote so."""
    return _PLACE.sub("", message)


def start_of_name(text: str, name: str) -> int | None:
    """The offset at which a column is first read, in quotes if it is anywhere, neither in text nor after AS; None:
    nowhere."""
    bare = _NO_NAMES.sub(lambda found: found[1] or " " * len(found[0]), text)
    quoted = f'"{name}"'
    pattern = re.escape(quoted) if quoted in bare else rf"(?<!\w){re.escape(name)}(?!\w)"
    found = [each.start() for each in re.finditer(pattern, bare)]
    read = [each for each in found if not _AS.search(bare, 0, each)]
    return next(iter(read or found), None)


def start_of_sql(text: str, sql: str, begin: int = 0) -> int | None:
    """The offset at which SQL stands first, whatever blanks are in it, and in any case; None: nowhere."""
    places = [at for at in range(begin, len(text)) if not text[at].isspace()]
    squeezed, wanted = ("".join(each.split()).lower() for each in (text[begin:], sql))
    found = squeezed.find(wanted) if wanted and len(squeezed) == len(places) else -1
    return None if found < 0 else places[found]


def _start_of_duration(text: str, duration: str) -> int | None:
    """The offset at which a length of time is written, in whatever words."""
    for each in _AMOUNT.finditer(text):
        try:
            if nanoseconds(f"{each[1]} {each[2]}") == nanoseconds(duration):
                return each.start()
        except BadQuery:  # a word that is no unit
            continue
    return None


def _start_of_second(text: str, label: str) -> int | None:
    """The offset at which a query is called as one before it, or else, as it has no name, where it stands."""
    named = [each.start(1) for each in re.finditer(rf'\bAS\s+("?{re.escape(label)}"?)(?!\w)', text, re.IGNORECASE)]
    if named:
        return named[min(1, len(named) - 1)]
    first = start_of_sql(text, label.partition("[")[0])
    return None if first is None else start_of_sql(text, label.partition("[")[0], first + 1)


@contextmanager
def placed(text: Any) -> Iterator[None]:
    """A column that is not there, or not of a type to compute with, SQL that can not be computed, a duration that can
    not be taken and a name that is taken are said with their place in the statements, if text is what was asked."""
    try:
        yield
    except (UnknownColumn, BadType, BadEvents, BadQuery) as why:
        start = None if isinstance(why, BadSQL) or not isinstance(text, str) else _start(text, why)
        if start is None:
            raise
        line, column = place(text, start)
        raise type(why)(f"line {line}, column {column}: {why.message}", why.hint or _instead(text, why)) from None


def _instead(text: str, why: Any) -> str:
    """What to write for a column that is not there: a condition on an answer, or text in straight quotes."""
    name = why.name
    if name[:1] and name[0] in _CURLED:
        return f"{name.strip(_CURLED)!r} in straight quotes, which is text"
    of_answer = name and re.search(rf'\bAS\s+"?{re.escape(name)}(?!\w)', text, re.IGNORECASE)
    return f"HAVING {name} > 1, for a condition on the answer; WHERE and aggregates read events" if of_answer else ""


def _start(text: str, why: Any) -> int | None:
    """Where what an error is about stands. Of a column, where it is named; of SQL that is written otherwise there, the
    first of its columns."""
    if isinstance(why, BadQuery):
        of_name = _start_of_second(text, why.name) if why.name else None
        return _start_of_duration(text, why.about) if why.about else of_name
    try:
        expression = compiled(why.about) if why.about else None
    except BadQuery:  # half of a comparison
        return start_of_sql(text, why.about)
    if expression is not None and not expression.is_column and (found := start_of_sql(text, why.about)) is not None:
        return found
    names = [why.name] if expression is None else sorted(expression.columns)
    starts = [start_of_name(text, each) for each in names if each]
    return min((each for each in starts if each is not None), default=None)


def start_of(node: Any, otherwise: int) -> int:
    """The offset at which a part of the tree begins, as far as its parts know."""
    known = [each.meta["start"] for each in node.walk() if "start" in each.meta] if hasattr(node, "walk") else []
    return min(known, default=otherwise)
