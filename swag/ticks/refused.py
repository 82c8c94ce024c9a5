"""Events that came too late: how late that is, and the rows that were refused for it, until somebody fetches them."""

import numpy as np
import pyarrow as pa

from kernels.operators.numbers import EARLIEST
from swag.durable.state import State, nested, parts, table_from_array, table_to_array
from swag.tables.answers import own_name
from swag.tables.columns import decoded, taken

MOST_KEPT = 1_000_000  # rows that are kept; of more the last ones
REASON = "· reason"  # as long as nobody knows what columns of the user's stand beside it


def due_before(ts: np.ndarray, now: int, lateness: int) -> np.ndarray:
    """The watermark as each event of a batch arrives: `now` moves on event by event, so cuts do not matter."""
    before = np.maximum.accumulate(np.concatenate([[now], ts]))[:-1]
    with np.errstate(over="ignore"):
        return np.where(before < EARLIEST + lateness, EARLIEST, before - lateness)


class Refused:
    """Rows that were refused, each with the reason, in the order in which they came.

    It owns the last million of those that nobody has fetched, in tables whose columns are alike, and counts all that
    there were (`count`). Asked of it: to `add` some, and to hand them out, each row once.
    """

    def __init__(self) -> None:
        self.count = 0
        self._tables: list[pa.Table] = []

    def add(self, table: pa.Table, late: np.ndarray, reason: str) -> None:
        """Those rows of a batch that are late."""
        rows = np.flatnonzero(late)
        if rows.size == 0:
            return
        self.count += rows.size
        some = taken(table, rows[-MOST_KEPT:])
        for i, name in enumerate(some.column_names):
            some = some.set_column(i, name, decoded(some.column(i)))
        self._tables.append(some.append_column(REASON, pa.repeat(reason, some.num_rows)))
        self._join()

    def hand_out(self, columns: dict[str, pa.DataType]) -> pa.Table:
        """All of them; where types of a column changed in between, those before it. columns: what there is if none."""
        if not self._tables:
            return _named(pa.schema([*columns.items(), (REASON, pa.string())]).empty_table())
        found, self._tables = self._tables[0], self._tables[1:]
        while self._tables:
            try:
                found = pa.concat_tables([found, self._tables[0]], promote_options="permissive")
            except pa.ArrowException:
                break
            self._tables = self._tables[1:]
        return _named(found.combine_chunks())

    def _join(self) -> None:
        """Neighbours with the same columns as one, and no more rows than are kept. The few last ones wait for more, so
        that rows which come one by one are not copied each time."""
        tables = self._tables
        if len(tables) > 1 and tables[-1].schema == tables[-2].schema:
            tables[-2:] = [pa.concat_tables(tables[-2:])]
            if tables[-1].column(0).num_chunks > 64:
                tables[-1] = tables[-1].combine_chunks()
        excess = sum(table.num_rows for table in tables) - MOST_KEPT
        while excess > 0:
            excess -= tables[0].num_rows
            tables[:1] = [tables[0].slice(tables[0].num_rows + excess)] if excess < 0 else []

    def state(self) -> State:
        return nested({"late": self.count}, {"tables": [({}, {"rows": table_to_array(each)}) for each in self._tables]})

    def restore(self, state: State) -> None:
        self.count = state[0]["late"]
        self._tables = [table_from_array(arrays["rows"]) for _, arrays in parts(state, "tables")]


def _named(table: pa.Table) -> pa.Table:
    """The reason last, under a name that no other column has."""
    theirs = [name for name in table.column_names if name != REASON]
    return table.select([*theirs, REASON]).rename_columns([*theirs, own_name("reason", *theirs)])
