"""From a statement with OVER ( … ) that was read, to the value that says what is asked."""

from typing import Any

from sqlglot import exp

from swag.query.over_statement import Item, OverStatement, SortKey, Star
from swag.sql.over.calls import Calls
from swag.sql.over.reading import OverSelect, StarItem
from swag.sql.over.terms import OverTerms
from swag.sql.places import wrong


def over_statement(text: str, select: OverSelect, number: int = 0) -> OverStatement:
    """The value of a statement: columns of answers, what is selected of them, WHERE, QUALIFY and the order of rows."""
    terms = OverTerms(text, select.aliases)
    calls = Calls(text, terms, select.windows)
    where = None if select.where is None else terms.of_row(select.where, select.where_start, "WHERE")
    items = tuple(_item(calls, *each, select.written[each[2]]) for each in select.items)
    _check_names(text, items)
    qualify = None if select.qualify is None else calls.item(select.qualify, select.qualify_start, "QUALIFY")
    order = tuple(_sort_key(calls, *each) for each in select.order)
    assert isinstance(select.source, str)
    return OverStatement(
        text,
        select.source,
        tuple(calls.found.values()),
        items,
        where,
        qualify,
        order,
        limit=select.limit,
        offset=select.offset,
        number=number,
        where_start=select.where_start,
        qualify_start=select.qualify_start,
    )


def _item(calls: Calls, tree: Any, name: str | None, start: int, written: str) -> Item | Star:
    """One selected item: a star with what it leaves out and replaces, or SQL over columns of events and answers."""
    if isinstance(tree, StarItem):
        replaced = tuple(Item(of, calls.item(each, at), at) for each, of, at in tree.args["replaced"])
        return Star(tuple(tree.args["without"]), replaced, start)
    if isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star):
        if tree.table not in calls.terms.aliases:
            raise wrong(calls.text, start, f'"{tree.table}" is not the stream of this statement.', "*")
        return Star(start=start)
    assert name is not None
    return Item(name, calls.item(tree, start), start, " ".join(written.split()))


def _check_names(text: str, items: tuple[Item | Star, ...]) -> None:
    named: set[str] = set()
    for item in items:
        if isinstance(item, Item):
            if item.name in named:
                raise wrong(text, item.start, f'two columns are called "{item.name}".', f'AS "{item.name} 2"')
            named.add(item.name)


def _sort_key(calls: Calls, tree: Any, descending: bool, nulls_first: bool, start: int) -> SortKey:
    if isinstance(tree, exp.Literal) and not tree.is_string:
        if not str(tree.this).isdigit():
            raise wrong(calls.text, start, f"ORDER BY {tree.this}: there is no such column.", "ORDER BY ts")
        return SortKey(int(tree.this), descending, nulls_first, start)
    return SortKey(calls.item(tree, start, "ORDER BY"), descending, nulls_first, start)
