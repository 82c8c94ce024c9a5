"""Who passes a query over the answers of others, as far as it was told: such queries are compared as a whole."""

from typing import Any

import pyarrow as pa

from swag.durable.state import State, table_from_array, table_to_array


class Told:
    """It owns, by query, the keys that were said to pass. Asked of it: what differs, and to note what was told.

    Keys are a column; a stream without any has one of a row that says True, or of none.
    """

    def __init__(self) -> None:
        self._keys: dict[str, pa.Array] = {}
        self._seen: dict[str, pa.Array] = {}

    def differing(self, name: str, passing: pa.Array) -> tuple[list[int], pa.Array]:
        """The rows of those that pass now and were not told to, and the keys that were told to and do not."""
        told = self._keys.get(name, passing.slice(0, 0))
        before, now = numbered(told), numbered(passing)
        self._seen[name] = passing
        ceased = [row for key, row in before.items() if key not in now]
        return [row for key, row in now.items() if key not in before], told.take(pa.array(ceased, pa.int64()))

    def tell(self, name: str) -> None:
        """What was last found of it was told."""
        self._keys[name] = self._seen.pop(name)

    def forget(self, name: str) -> None:
        self._keys.pop(name, None)

    def state(self) -> State:
        tables = [pa.table({"key": keys}) for keys in self._keys.values()]
        return {"names": list(self._keys)}, {str(i): table_to_array(each) for i, each in enumerate(tables)}

    def restore(self, state: State) -> None:
        header, arrays = state
        tables = [table_from_array(arrays[str(i)]) for i in range(len(header["names"]))]
        columns = [table.column(0).combine_chunks() for table in tables]
        self._keys = dict(zip(header["names"], columns, strict=True))


def numbered(keys: pa.Array) -> dict[Any, int]:
    """The row of each key, by what is equal where keys are."""
    return {repr(value): row for row, value in enumerate(keys.to_pylist())}
