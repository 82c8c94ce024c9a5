"""What is read of a statement before anybody understands it: clauses in brackets, SELECTs, aggregates with OVER."""

from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from swag.query.every import Every
from swag.query.windows import Window


@dataclass
class Clause:
    """What was said in brackets. partition: the columns of PARTITIONED BY; fragments: of a FRAME clause, that word."""

    start: int = 0
    window: Window | None = None
    every: Every | None = None
    partition: tuple[str, ...] = ()
    frame: Any = None
    fragments: bool = False


class Over(exp.Expression):
    """An aggregate with a window or a filter of its own. The window is one of ours, not a tree."""

    arg_types = {"this": True, "window": False, "where": False, "text": False}


@dataclass
class Fill:
    """FILL FROM: the stream that frames are filled from, its names in the statement, and how far their edges move."""

    stream: str
    aliases: set[str]
    before: int | str = 0
    after: int | str = 0


@dataclass
class Select:
    """A statement, read but not yet understood. Offsets say where its parts began."""

    start: int
    star: int | None = None  # the offset of SELECT *: all columns, a stream as it is
    items: list[tuple[Any, str | None, int]] = field(default_factory=list)  # tree, alias, offset
    source: "str | Select" = ""
    aliases: set[str] = field(default_factory=set)
    clause: Clause = field(default_factory=Clause)
    fill: Fill | None = None
    where: Any = None
    where_start: int = 0
    where_text: str = ""
    group_by: list[str] = field(default_factory=list)
    often: Clause | None = None  # FREQUENCY in SELECT: of the results
    having: Any = None
    having_start: int = 0
    index: bool = True
    match: Any = None  # MATCH_RECOGNIZE ( … ), see match_recognize.py
