"""From a query to the statement that reads back as it."""

import re
from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from swag.query.aggregates import Aggregate
from swag.query.every import partitioned
from swag.query.expression import Expression, Windowed, mapped, plain, render
from swag.query.kind import sql_of
from swag.query.windows import Rows, Since, Unbounded, Window, lies_ahead
from swag.tables.constants import to_sql
from swag.tables.expressions.derived import derived

if TYPE_CHECKING:
    from swag.query.every import Every
    from swag.query.query import Events, Query

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DURATION = re.compile(r"(-?[\d.]+)([a-z]+)")
PERIODS = {"1h": "HOUR", "1d": "DAY", "1w": "WEEK", "1mo": "MONTH"}
_UNITS = {"ns": "NANOSECOND", "us": "MICROSECOND", "ms": "MILLISECOND", "s": "SECOND", "m": "MINUTE", "h": "HOUR"}
_UNITS["d"] = "DAY"
_NAMES = {"mean": "AVG", "skew": "SKEWNESS", "any": "BOOL_OR", "all": "BOOL_AND"}
_NAMES |= {"slope": "REGR_SLOPE", "intercept": "REGR_INTERCEPT", "r2": "REGR_R2"}


def statement(query: "Query", *others: "Query") -> str:
    """SQL. A user-defined aggregate has a name only, which does not read back. others: of the same statement."""
    if any(each.window != query.window for each in others):
        query, *others = (_over_its_own(each) for each in (query, *others))  # type: ignore[assignment]
    groups = [name(each) for each in query.by or ()]
    alone = not others and groups and query.name is None and query.aggregate == query.having
    items = ", ".join([*groups, *([] if alone else map(_item, (query, *others)))])
    if query.every is not None and query.every.own:
        items += f" {frequency(query.every, None)}"
    hint = "" if query.index else " /*+ NO_INDEX */"
    source = name(query.stream or "events") if query.source is None else f"({query.source})"
    lines = [f"SELECT{hint} {items} FROM {source}{_clause(query)}"]
    if query.where is not None:
        lines.append(f"WHERE {query.where}")
    if groups:
        lines.append(f"GROUP BY {', '.join(groups)}")
    if query.having is not None:
        lines.append(f"HAVING {term(_condition(query))}")
    return " ".join(lines)


def _over_its_own(query: "Query") -> Any:
    """The same, its window with each of its aggregates."""

    def over(leaf: Windowed) -> Windowed:
        return replace(leaf, window=leaf.window or query.window)

    shown = copy(query)
    having = None if query.having is None else mapped(_condition(query), over)
    for what, value in (("window", None), ("aggregate", mapped(query.aggregate, over)), ("having", having)):
        object.__setattr__(shown, what, value)
    return shown


def _item(query: "Query") -> str:
    return term(query.aggregate) + ("" if query.name is None else f" AS {name(query.name)}")


def stream_statement(events: "Events") -> str:
    """The events for which a condition holds, or that a frequency picks."""
    source = name(events.stream or "events") if events.source is None else f"({events.source})"
    often = "" if events.every is None else f" [{frequency(events.every, None)}]"
    return f"SELECT * FROM {source}{often}" + ("" if events.where is None else f" WHERE {events.where}")


def frame_statement(query: Any, clause: str) -> str:
    """A query over frames (frames/query.py), with its FRAME clause."""
    groups = [name(each) for each in query.by or ()]
    values = [
        term(value) + ("" if _unnamed(value) == called else f" AS {name(called)}") for called, value in query.values
    ]
    where = f" WHERE {query.where}" if query.where is not None else ""
    by = f" GROUP BY {', '.join(groups)}" if groups else ""
    having = f" HAVING {term(query.having)}" if query.having is not None else ""
    source = name(query.stream or "events")
    fill = "" if query.fill_from is None else f" FILL FROM {name(query.fill_from)}{_margins(query)}"
    clause += " FRAGMENTS" * query.fragments
    return f"SELECT {', '.join([*groups, *values])} FROM {source} [FRAME {clause}]{fill}{where}{by}{having}"


def _unnamed(value: Any) -> str:
    """What a value is called where its SQL is read back."""
    return str(mapped(value, lambda leaf: plain(replace(leaf, aggregate=leaf.aggregate.unnamed()))))


def _margins(query: Any) -> str:
    """How far the edges of frames move before they are filled."""
    moved = (("BEFORE", query.before), ("AFTER", query.after))
    return "".join(f" {word} {duration(by)}" for word, by in moved if by)


def _condition(query: "Query") -> Expression:
    if isinstance(query.having, Expression):
        return query.having
    op, *values = query.having
    return Expression(op, (query.aggregate, *values))


def _clause(query: "Query") -> str:
    parts = [] if query.window is None else [window(query.window)]
    if query.every is not None and not query.every.own:
        parts.append(frequency(query.every, query.by))
    return f" [{', '.join(parts)}]" if parts else ""


def window(of: Window) -> str:
    """A window as it stands in brackets: ROWS 1000, RANGE 5 MINUTES CLOSED LEFT, SINCE 1 DAY."""
    if isinstance(of, Since):
        return f"SINCE 1 {PERIODS[of.period]}" + (f" AT TIME ZONE '{of.tz}'" if of.tz else "")
    if isinstance(of, Rows):
        return f"ROWS {_extent(of.n, of.until)}"
    peers = " PEERS" * of.peers
    if isinstance(of, Unbounded):
        ahead = f"RANGE BETWEEN UNBOUNDED PRECEDING AND {_bound(of.until)}"
        return (ahead if lies_ahead(of) else f"UNBOUNDED{_until(of.until)}") + peers
    closed = "" if of.closed == "right" else f" CLOSED {of.closed.upper()}"
    return f"RANGE {_extent(of.t, of.until)}{closed}{peers}"


def _extent(far: Any, near: Any) -> str:
    """From how far back until when; what lies ahead, only BETWEEN can say."""
    if any(str(edge).startswith("-") for edge in (far, near)):
        return f"BETWEEN {_bound(far)} AND {_bound(near)}"
    return duration(far) + _until(near)


def _until(near: Any) -> str:
    return f" UNTIL {duration(near)}" if near else ""


def _bound(edge: Any) -> str:
    ahead = str(edge).startswith("-")
    return f"{duration(edge).removeprefix('-')} {'FOLLOWING' if ahead else 'PRECEDING'}"


def frequency(every: "Every", groups: tuple[str, ...] | None) -> str:
    amount = f"{every.rows} TUPLES" if every.time is None else duration(every.time)
    word = "EVERY" if every.anchor == "tick" else "FREQUENCY"
    columns = tuple(map(name, every.by or (groups or () if every.per_key else ())))
    return f"{word} {amount}{partitioned(every.per_key, columns)}"


def duration(of: Any) -> str:
    if isinstance(of, int):
        return str(of)
    match = _DURATION.fullmatch(of)
    assert match is not None
    return f"{match[1]} {_UNITS[match[2]]}{'' if match[1] == '1' else 'S'}"


def term(of: Any) -> str:
    return render(of, _leaf)


def _leaf(of: Aggregate | Windowed) -> str:
    if isinstance(of, Aggregate):
        return call(of)
    where = f" FILTER (WHERE {of.where})" if of.where is not None else ""
    return f"{call(of.aggregate)}{where}" + (f" OVER [{window(of.window)}]" if of.window is not None else "")


def call(of: Aggregate) -> str:
    """An aggregate as the call that reads back as it: COUNT(*), MEDIAN(x), QUANTILE(x, 0.9)."""
    if of.kind == "count" and not of.columns:
        return "COUNT(*)"
    if of.kind == "quantile" and of.name == f"median({of.texts[0]})":
        return f"MEDIAN({column(of.columns[0])})"
    arguments = [column(each) for each in of.columns]
    if of.kind == "count_distinct":
        return f"COUNT(DISTINCT {arguments[0]})"
    if of.kind == "quantile":
        arguments += [to_sql(of.phi)] + ([] if of.method == "floor" else [f"'{of.method}'"])
    if of.ddof not in (None, 1):
        arguments.append(str(of.ddof))
    if of.half_life is not None:
        arguments.append(_interval(of.half_life))
    arguments += [str(of.n)] * (of.n is not None)
    return f"{_NAMES.get(of.kind, of.kind.upper())}({', '.join(arguments)})"


def column(of: str) -> str:
    """A column, or SQL over columns."""
    found = derived(of)
    return name(of) if found is None else sql_of(of) if found.columns else of  # COUNT(1) is that of all rows


def predicate(of: str) -> str:
    """What is true or false of an event: SQL, in the one way that it is written, or a column."""
    found = derived(of)
    return name(of) if found is None else found.text


def _interval(of: Any) -> str:
    """A length of time among arguments; as text where INTERVAL has no word for it."""
    amount, _, unit = duration(of).partition(" ")
    plain = amount.isdigit() and not unit.startswith("NANO")
    return str(of) if isinstance(of, int) else f"INTERVAL '{amount}' {unit}" if plain else f"'{of}'"


def name(of: str) -> str:
    """A name as SQL has it: in quotes unless it is a plain word that means nothing else."""
    return of if _WORD.fullmatch(of) and not _is_taken(of.upper()) else '"' + of.replace('"', '""') + '"'


@lru_cache(maxsize=1)
def _keywords() -> frozenset[str]:
    from sqlglot.dialects.duckdb import DuckDB  # which swag/sql/dialect.py is made of

    words = {word for keyword in DuckDB.tokenizer_class.KEYWORDS for word in keyword.split()}
    return frozenset(words | {"FRAME", "FREQUENCY", "EVERY", "UNTIL", "CLOSED", "ANCHOR", "PARTITIONED", "MEASURE"})


def _is_taken(word: str) -> bool:
    return word in _keywords()
