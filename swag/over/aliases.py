"""Names that AS gives, used in WHERE and inside of windows: each is spelt out, as what it stands for.

SELECT x + 1 AS z, SUM(z) OVER (ORDER BY ts) AS s FROM t WHERE z > 2        SUM((x + 1)) OVER …, WHERE (x + 1) > 2

A column of the events of that name goes first, as in DuckDB, so this is for when the events are there.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NoReturn

from swag.query.over_statement import Call, Item, OverStatement
from swag.sql.places import start_of_name, wrong
from swag.tables.conjuncts import written
from swag.tables.expressions.derived import derived
from swag.tables.expressions.expression import compiled, parsed

AFTER_WINDOWS = "is computed after windows are, by one of them"


def spelt_out(statement: OverStatement, columns: Collection[str]) -> OverStatement:
    """The statement with no name of its own in WHERE and in windows. columns: those of the events."""
    own = {each.name: each for each in statement.items if isinstance(each, Item) and each.name not in columns}
    if not own.keys() & statement.named:
        return statement
    texts: dict[str, str] = {}
    for name, item in own.items():
        text = _spelt(item.text, texts)
        if compiled(text).columns <= set(columns):
            texts[name] = text
    where = statement.where
    if where is not None:
        where = _spelt(where, texts)
        hint = "QUALIFY, for a condition on it"
        _check(statement, own, compiled(where).columns, statement.where_start, hint)
    return replace(statement, where=where, calls=tuple(_call(statement, own, texts, call) for call in statement.calls))


def _call(statement: OverStatement, own: Mapping[str, Item], texts: Mapping[str, str], call: Call) -> Call:
    """A window function without names that were given before it."""
    before = {name: text for name, text in texts.items() if own[name].start < call.start}
    aggregate, order = call.aggregate, call.order
    inside = tuple(_column(text, before) for text in aggregate.texts)
    if inside != aggregate.texts:
        aggregate = replace(aggregate, columns=inside, written=(), called=())
    if order in before and compiled(before[order]).is_column:
        [order] = compiled(before[order]).columns
    found = replace(
        call, aggregate=aggregate, order=order, where=call.where and _spelt(call.where, before),
        partition=tuple(_spelt(text, before) for text in call.partition),
        takes=tuple(_spelt(text, before) for text in call.takes),
    )  # fmt: skip
    _check(statement, own, found.reads, call.start, "a statement for the inner one, and this one over its table")
    return found


def _column(text: str, before: Mapping[str, str]) -> str:
    """What an aggregate is of: the name of a column, or SQL."""
    return f"({before[text]})" if text in before else text if derived(text) is None else _spelt(text, before)


def _check(statement: OverStatement, own: Mapping[str, Item], names: Collection[str], start: int, hint: str) -> None:
    """start: where it is, in which names that are not known yet may not be used."""
    for name in sorted(own.keys() & set(names)):
        _refuse(statement, own[name], start + (start_of_name(statement.text[start:], name) or 0), hint)


def _refuse(statement: OverStatement, item: Item, start: int, hint: str) -> NoReturn:
    if compiled(item.text).columns & {call.name for call in statement.calls}:
        raise wrong(statement.text, start, f'"{item.name}" {AFTER_WINDOWS}.', hint)
    rule = f'"{item.name}" is a name that AS gives after it is used.'
    raise wrong(statement.text, start, rule, f"{item.name} before what uses it")


def _spelt(text: str, texts: Mapping[str, str]) -> str:
    """SQL with what the names in it stand for, in parentheses."""
    if not compiled(text).columns & texts.keys():
        return text
    from sqlglot import exp

    holder = exp.Paren(this=parsed(text))
    for column in list(holder.find_all(exp.Column)):
        if column.name in texts:
            column.replace(exp.Paren(this=parsed(texts[column.name])))
    return written(holder.this)
