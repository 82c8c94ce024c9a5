"""Rows that wait for their time, and leave in order of it: what an engine, a ticker, a detector and a shard each own.

    came      5 3 9 | 4 8 | 11 12      in order of arrival, in parts as they came
    due(6)    3 4 5                    in order of time, equal times as they came; they wait on, until let_go(6)
    wait      9 | 8 | 11 12            a part whose rows are all later was not looked at

Who applies rows that are due lets them go when that has succeeded: what fails half way has lost nothing.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from swag.durable.state import State, table_from_array, table_to_array
from swag.errors import BadType
from swag.tables.columns import decoded, taken
from swag.tables.keys import is_string

DICTIONARY = pa.dictionary(pa.int32(), pa.string()).id
NO_IDS = np.zeros(0, np.int64)
MANY_PARTS, SHARES = 64, 16  # parts that are too many, and by how many shares of all rows they are put together then


class TimedRows(NamedTuple):
    """Rows: their columns, their times, the ids of their keys (none where nobody asks for keys)."""

    table: pa.Table
    ts: np.ndarray
    ids: np.ndarray

    def some(self, rows: np.ndarray) -> "TimedRows":
        """A copy of the rows at these positions."""
        return TimedRows(taken(self.table, rows), self.ts[rows], self.ids[rows] if self.ids.size else self.ids)

    def known_by(self, ids: np.ndarray) -> "TimedRows":
        """The same rows, their keys by other numbers."""
        return TimedRows(self.table, self.ts, ids)

    def between(self, first: int, last: int) -> "TimedRows":
        """These rows, in the same memory."""
        return TimedRows(self.table.slice(first, last - first), self.ts[first:last], self.ids[first:last])


NOTHING = TimedRows(pa.table({}), np.zeros(0, np.int64), NO_IDS)


class Arrived(NamedTuple):
    """Rows that came together, the earliest of their times, and the number of rows whose memory they keep alive."""

    rows: TimedRows
    first: int
    behind: int

    def known_by(self, ids: np.ndarray) -> "Arrived":
        """The same rows, their keys by other numbers."""
        return Arrived(self.rows.known_by(ids), self.first, self.behind)

    def only(self, stay: np.ndarray) -> "Arrived":
        """The rows at these positions: without a copy where they are the last ones, and half of what is in memory."""
        size, first = self.rows.ts.size, int(stay[0])
        if stay.size < size - first or 2 * stay.size < self.behind:
            rows = self.rows.some(stay)
            return Arrived(rows, int(rows.ts.min()), stay.size)
        rows = self.rows.between(first, size)
        return Arrived(rows, int(rows.ts.min()), self.behind)


class Waiting:
    """It owns rows in order of arrival, in parts whose columns are of the same types, and says how many wait (`count`).

    Asked of it: to `add` rows; which are `due` by a time, to let those go, or both at once (`leave`); to drop the first
    ones; and all that wait (`rows`). To add copies nothing, to leave costs the parts that have rows to give: each is
    copied when half of it is gone, and sorted only if it is not in order.
    """

    def __init__(self) -> None:
        self.count = 0
        self._parts: list[Arrived] = []

    def add(self, table: pa.Table, ts: np.ndarray, ids: np.ndarray = NO_IDS, narrow: bool = False) -> None:
        """Rows that came. Columns that only some have are null in the others; types must go together.

        narrow: columns that only earlier rows have are not kept.
        """
        if not ts.size:
            return
        for kind in table.schema.types:
            if kind.id == DICTIONARY:
                table = _with_room(table)
                break
        new = TimedRows(table, ts, ids)
        if self._parts and self._parts[-1].rows.table.schema != table.schema:
            self._parts = [self._united(new, narrow)]
        else:
            self._parts.append(Arrived(new, int(ts.min()), ts.size))
        self.count += ts.size
        if len(self._parts) > MANY_PARTS:
            self._parts = fewer(self._parts)

    def due(self, upto: int) -> TimedRows | None:
        """The rows with ts <= upto, in order of ts, equal ones as they came; None if there are none. They wait on."""
        found = []
        for part in self._parts:
            if part.first <= upto:
                found.append(part)
        if not found:
            return None
        rows = (found[0] if len(found) == 1 else joined(found)).rows
        ts = rows.ts
        if bool((ts[1:] >= ts[:-1]).all()):
            now = int(np.searchsorted(ts, upto, side="right"))
            return rows if now == ts.size else rows.between(0, now)
        chosen = np.flatnonzero(ts <= upto)
        return rows.some(chosen[np.argsort(ts[chosen], kind="stable")])

    def let_go(self, upto: int) -> None:
        """Rows with ts <= upto wait no longer."""
        kept: list[Arrived] = []
        run: list[Arrived] = []  # neighbours of which some rows stay
        for part in self._parts:
            if part.first > upto:
                kept += self._rest(run, upto) if run else []
                kept.append(part)
                run = []
            elif int(part.rows.ts.max()) > upto:
                run.append(part)
            else:
                self.count -= part.rows.ts.size
        self._parts = kept + (self._rest(run, upto) if run else [])

    def _rest(self, run: list[Arrived], upto: int) -> list[Arrived]:
        """What stays of neighbours, as one: of many small ones in disorder, each would be copied each time."""
        part = run[0] if len(run) == 1 else joined(run)
        stay = np.flatnonzero(part.rows.ts > upto)
        self.count -= part.rows.ts.size - stay.size
        return [part.only(stay)]

    def leave(self, upto: int | None) -> TimedRows | None:
        """The rows that are due, which wait no longer. upto=None: no time has passed."""
        rows = None if upto is None else self.due(upto)
        if upto is not None and rows is not None:
            self.let_go(upto)
        return rows

    def put_columns(self, table: pa.Table) -> None:
        """The same rows have other columns from now on."""
        rows = self.rows  # which makes one part of all
        (part,) = self._parts
        self._parts = [Arrived(TimedRows(table, rows.ts, rows.ids), part.first, part.behind)]

    def forget_ids(self) -> None:
        """Nobody asks for keys by number any more."""
        self._parts = [part.known_by(NO_IDS) for part in self._parts]

    def drop(self, count: int) -> int:
        """The first rows to come wait no longer; returns the time of the last of them."""
        newest = 0
        self.count -= count
        while count > 0:
            part = self._parts[0]
            size = part.rows.ts.size
            newest = int(part.rows.ts[min(count, size) - 1])
            self._parts[:1] = [part.only(np.arange(count, size))] if count < size else []
            count -= size
        return newest

    def leading(self, upto: int) -> int:
        """How many of the first rows have ts <= upto, where they came in order of time."""
        count = 0
        for part in self._parts:
            some = int(np.searchsorted(part.rows.ts, upto, side="right"))
            count += some
            if some < part.rows.ts.size:
                break
        return count

    @property
    def rows(self) -> TimedRows:
        """All of them, in order of arrival; of none, the table has no columns."""
        if len(self._parts) > 1:
            self._parts = [joined(self._parts)]
        return self._parts[0].rows if self._parts else NOTHING

    @property
    def bytes(self) -> int:
        return sum(each.nbytes for part in self._parts for each in part.rows)

    @property
    def first(self) -> int | None:
        """The earliest time."""
        return min((part.first for part in self._parts), default=None)

    def ids_due(self, upto: int) -> np.ndarray | None:
        """Whose rows are due; None if none are."""
        due = [part.rows.ids[part.rows.ts <= upto] if part.rows.ids.size else NO_IDS
               for part in self._parts if part.first <= upto]  # fmt: skip
        return np.unique(np.concatenate(due)) if due else None

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on; the keys of all rows here are kept."""
        new = np.empty(int(kept.max(initial=-1)) + 1, np.int64)
        new[kept] = np.arange(kept.size)
        for i, part in enumerate(self._parts):
            self._parts[i] = part.known_by(new[part.rows.ids].astype(part.rows.ids.dtype))

    def state(self) -> State:
        if not self._parts:
            return {"rows": 0}, {}
        table, ts, ids = self.rows
        return {"rows": self.count}, {"table": table_to_array(table), "ts": ts, "ids": ids}

    def restore(self, state: State) -> None:
        """The rows that wait, from a state; refused if its columns, times and keys are not equally many."""
        arrays, self.count, self._parts = state[1], 0, []
        if "table" not in arrays:
            return
        table, ids = table_from_array(arrays["table"]), arrays["ids"]
        ts = arrays["ts"] if "ts" in arrays else arrays["instants"]  # as detectors of version 0.1 called them
        if (table.num_columns and table.num_rows != ts.size) or ids.size not in (0, ts.size):
            raise ValueError(f"{table.num_rows} rows wait, of {ts.size} times and {ids.size} keys")
        self.add(table, ts, ids)

    def _united(self, new: TimedRows, narrow: bool) -> Arrived:
        """All rows as one part, and new ones of other columns. At once, as it may fail: nothing has changed then."""
        table, ts, ids = self.rows
        if narrow:
            table = table.select([name for name in table.column_names if name in new.table.column_names])
        both = _alike(table, new.table), _alike(new.table, table)
        for name in set(both[0].column_names) & set(both[1].column_names):
            _check_same(name, *(each.schema.field(name).type for each in both))
        table = pa.concat_tables(both, promote_options="permissive")
        rows = TimedRows(table, np.concatenate([ts, new.ts]), np.concatenate([ids, new.ids]))
        return Arrived(rows, int(rows.ts.min()), rows.ts.size)


def _with_room(table: pa.Table) -> pa.Table:
    """Places in dictionaries, wide enough for those of several together."""
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type) and field.type.index_type.bit_width < 32:
            wide = pa.dictionary(pa.int32(), field.type.value_type, field.type.ordered)
            table = table.set_column(i, field.name, table.column(i).cast(wide))
    return table


def _check_same(name: str, before: pa.DataType, now: pa.DataType) -> None:
    words = is_string(before) and is_string(now)
    if before != now and not words and not pa.types.is_null(before) and not pa.types.is_null(now):
        raise BadType(f'column "{name}" is {now}, but is {before} in events that wait.', f"cast it to {before}")


def _alike(table: pa.Table, other: pa.Table) -> pa.Table:
    """Words as such, where the other one does not have them as places in the same sort of dictionary."""
    for i, field in enumerate(table.schema):
        theirs = other.schema.field(field.name).type if field.name in other.column_names else field.type
        if pa.types.is_dictionary(field.type) and theirs != field.type:
            table = table.set_column(i, field.name, decoded(table.column(i)))
    return table


def joined(parts: list[Arrived]) -> Arrived:
    """Several as one, in memory of its own."""
    rows, firsts, _ = zip(*parts, strict=True)
    tables, ts, ids = zip(*rows, strict=True)
    whole = TimedRows(pa.concat_tables(tables).combine_chunks(), np.concatenate(ts), np.concatenate(ids))
    return Arrived(whole, min(firsts), whole.ts.size)


def fewer(parts: list[Arrived]) -> list[Arrived]:
    """Neighbours are joined up to a small share of all rows. A row that is part of one is not copied again until far
    more rows wait."""
    share = sum(part.rows.ts.size for part in parts) // SHARES
    groups: list[list[Arrived]] = [[]]
    size = 0
    for part in parts:
        if groups[-1] and size + part.rows.ts.size > share:
            groups.append([])
            size = 0
        groups[-1].append(part)
        size += part.rows.ts.size
    return [group[0] if len(group) == 1 else joined(group) for group in groups]
