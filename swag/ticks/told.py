"""Who passes a query over the answers of others, as far as it was told: such queries are compared as a whole."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from swag.durable.state import State, table_from_array, table_to_array
from swag.tables.answers import ManyAnswers, answers_of
from swag.tables.columns import one_chunk


class Told:
    """It owns, by query, who was said to pass. Asked of it: what has changed, and to note that it was told.

    Answers are tables of a key, if there is one, and a value.
    """

    def __init__(self) -> None:
        self._passed: dict[str, pa.Table] = {}
        self._seen: dict[str, pa.Table] = {}

    def changed(self, name: str, passing: pa.Table, when: pa.Array, everyone: Callable[[], pa.Table]) -> ManyAnswers:
        """Who passes now and was not said to, then who was and does not. when: one instant, now. everyone: the answers
        now, of whoever has an event in the window."""
        told = self._passed.get(name, passing.slice(0, 0))
        before, now = numbered(told), numbered(passing)
        self._seen[name] = passing
        began = [row for key, row in now.items() if key not in before]
        ceased = {key: row for key, row in before.items() if key not in now}
        tables = [passing.take(pa.array(began, pa.int64())), *self._without(told, ceased, everyone)]
        table = pa.concat_tables(tables)
        front = when.take(pa.array(np.zeros(table.num_rows, np.int64)))
        return answers_of(name, table, [front], [pa.array(np.arange(len(front)) < len(began))])

    def _without(self, told: pa.Table, ceased: dict[Any, int], everyone: Any) -> Iterator[pa.Table]:
        """Those that ceased to pass, if any did, with their answers now."""
        if not ceased:
            return
        found = everyone()
        row = numbered(found)
        values = one_chunk(found.columns[-1]).take(pa.array([row.get(key) for key in ceased], pa.int64()))
        yield told.take(list(ceased.values())).set_column(told.num_columns - 1, told.column_names[-1], values)

    def tell(self, name: str) -> None:
        """What was last found of it was told."""
        self._passed[name] = self._seen.pop(name)

    def forget(self, name: str) -> None:
        self._passed.pop(name, None)

    def state(self) -> State:
        tables = {str(i): table_to_array(each) for i, each in enumerate(self._passed.values())}
        return {"names": list(self._passed)}, tables

    def restore(self, state: State) -> None:
        header, arrays = state
        self._passed = {name: table_from_array(arrays[str(i)]) for i, name in enumerate(header["names"])}


def numbered(answers: pa.Table) -> dict[str, int]:
    """The row of each key, by what is equal where keys are; a stream without a key has one row at most."""
    if answers.num_columns == 1:
        return {"": 0} if answers.num_rows else {}
    return {repr(value): row for row, value in enumerate(answers.column(0).to_pylist())}
