"""What is made of the answers of windows: the columns that were selected, QUALIFY, ORDER BY, LIMIT."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.errors import BadEvents, BadSQL, BadType, nearest
from swag.query.over_statement import Item, OverStatement, SortKey, Star
from swag.query.query import HIDDEN
from swag.sql.places import place, start_of_name, wrong
from swag.tables.arithmetic import as_float
from swag.tables.columns import decoded, one_chunk
from swag.tables.expressions.expression import compiled, values
from swag.tables.predicate import holds


class Results:
    """The result of a statement while it is put together. It owns the columns so far, in their order, and what names
    mean: columns of the events, those of answers, and what was selected before under another name."""

    def __init__(self, statement: OverStatement, events: pa.Table, answers: dict[str, Any]) -> None:
        self.statement, self.events = statement, events
        self.known: dict[str, Any] = {name: events.column(name) for name in events.column_names} | answers
        self.columns: dict[str, Any] = {}

    def table(self) -> pa.Table:
        for item in self.statement.items:
            self._select(item)
        names = list(self.columns)
        rows = self._rows()
        found = pa.table(list(self.columns.values()), names=names) if names else self.events.select([])
        return found if rows is None else found.take(pa.array(rows))

    def _select(self, item: Item | Star) -> None:
        """A selected column, or for a star those of the events, without some and with others replaced."""
        if isinstance(item, Item):
            self._add(item.name, self._computed(item), item.start)
            self.known.setdefault(item.name, self.columns[item.name])
            return
        replaced = {each.name: each for each in item.replaced}
        for name in (*item.without, *replaced):
            if name not in self.events.column_names:
                raise no_column(self.statement.text, name, self.events)
        for name in self.events.column_names:
            if name in replaced:
                self._add(name, self._computed(replaced[name]), item.start)
            elif name not in item.without:
                self._add(name, self.events.column(name), item.start)

    def _add(self, name: str, column: Any, start: int) -> None:
        if name in self.columns:
            raise wrong(
                self.statement.text, start, f'two columns are called "{name}".',
                f'another name by AS, or * EXCLUDE ("{name}")',
            )  # fmt: skip
        self.columns[name] = column

    def _computed(self, item: Item) -> Any:
        with self._said_at(item.start):
            return self._value(item.text, item.written)

    @contextmanager
    def _said_at(self, start: int) -> Iterator[None]:
        """What can not be computed is said with its place, and in the words of the statement."""
        try:
            yield
        except (BadType, BadEvents) as why:
            line, column = place(self.statement.text, start)
            message = why.message
            for name in sorted((call.name for call in self.statement.calls), key=len, reverse=True):
                said = re.sub(r" \(\d+\)$", "", name.removeprefix(HIDDEN))
                message = message.replace(f'"{name}"', said).replace(name, said)
            raise type(why)(f"line {line}, column {column}: {message}", why.hint) from None

    def _value(self, text: str, written: str = "") -> Any:
        """A column as it is, or computed from some."""
        expression = compiled(text)
        for name in sorted(expression.columns - set(self.known)):
            raise no_column(self.statement.text, name, self.events)
        if expression.is_column:
            return self.known[next(iter(expression.columns))]
        return values(expression, self._scope(expression.columns), written or text)

    def _scope(self, names: Any) -> pa.Table:
        """Of all rows, also if there are none of these columns."""
        chosen = {name: self.known[name] for name in sorted(names)}
        return pa.table(chosen) if chosen else self.events.select([]) if self.events.num_columns == 0 else self.events

    # -- which rows, in which order -----------------------------------------------------------------------------------

    def _rows(self) -> np.ndarray | None:
        """The rows that QUALIFY, ORDER BY, LIMIT and OFFSET leave, in order; None: all as they are."""
        said, rows = self.statement, None
        if said.qualify is not None:
            with self._said_at(said.qualify_start):
                found = holds(said.qualify, self._scope(compiled(said.qualify).columns), called="QUALIFY")
            rows = np.flatnonzero(found)
        if said.order:
            rows = self._sorted(rows)
        if said.limit is not None or said.offset:
            rows = np.arange(self.events.num_rows) if rows is None else rows
            rows = rows[said.offset :][: said.limit]
        return rows

    def _sorted(self, rows: np.ndarray | None) -> np.ndarray:
        """By numpy's stable sort, the last key first: each key is its ranks, turned around if it is descending."""
        rows = np.arange(self.events.num_rows) if rows is None else rows
        for key in reversed(self.statement.order):
            with self._said_at(key.start):
                found = self._key(key)
            ranks = _ranks(one_chunk(decoded(found)).take(pa.array(rows)), key)
            rows = rows[np.argsort(ranks, kind="stable")]
        return rows

    def _key(self, key: SortKey) -> Any:
        """A column of the result by its number or name; else SQL."""
        if isinstance(key.text, int):
            if not 1 <= key.text <= len(self.columns):
                message = f"ORDER BY {key.text}: the result has {len(self.columns)}."
                raise wrong(self.statement.text, key.start, message, "the number of a column, from 1; or its name")
            return list(self.columns.values())[key.text - 1]
        expression = compiled(key.text)
        if expression.is_column:
            name = next(iter(expression.columns))
            if name in self.columns:
                return self.columns[name]
        return self._value(key.text)


def no_column(text: str, name: str, events: pa.Table) -> BadSQL:
    """Said where the name stands first."""
    from swag.sql.hints import ELSEWHERE  # by way of sqlglot, which is imported by those alone who write SQL

    quoted = f'"{name}"' in text
    near = nearest(name, events.column_names) or ("" if quoted else ELSEWHERE.get(name.upper(), ""))
    near = near or f"one of these{f', or {name!r} in single quotes, which is text' * quoted}"
    message = f'there is no column "{name}"; the events have: {", ".join(events.column_names)}.'
    return wrong(text, start_of_name(text, name) or 0, message, near)


def _ranks(found: Any, key: SortKey) -> np.ndarray:
    """The order of values as whole numbers, equal where they are; NaN is above all numbers."""
    array = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    if pa.types.is_floating(array.type):
        array = pc.add(as_float(array), pa.scalar(0.0))  # -0.0 is 0.0
    unique = pc.unique(array.drop_null())
    in_order = unique.take(pc.sort_indices(unique))
    ranks = np.asarray(pc.fill_null(pc.index_in(array, in_order), 0)).astype(np.int64)
    ranks = -ranks if key.descending else ranks
    none = np.iinfo(np.int64).min if key.nulls_first else np.iinfo(np.int64).max
    return np.where(np.asarray(pc.is_null(array)), none, ranks)
