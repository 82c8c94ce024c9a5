"""State that saves itself: what every class with state of frames is asked for; tables and keys as plain arrays.

A state is a small header of plain JSON and arrays by name. Whoever owns others nests their states under names of its
own: `waiting.instants` is the array `instants` of what waits.
"""

from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from swag.tables.keys import KeyTable

State = tuple[dict[str, Any], dict[str, np.ndarray]]


class Stateful(Protocol):
    """Hands its state over, and takes it back: then it goes on as if nothing had happened.

    What is taken back may come from another process. Settings are not part of a state: one like it is made first.
    """

    def state(self) -> State: ...

    def restore(self, state: State) -> None: ...


def nested(parts: dict[str, Stateful | None]) -> State:
    """The states of several as one; parts that are not there are left out."""
    states = {name: part.state() for name, part in parts.items() if part is not None}
    arrays = {f"{name}.{each}": array for name, (_, own) in states.items() for each, array in own.items()}
    return {name: header for name, (header, _) in states.items()}, arrays


def part_of(state: State, name: str) -> State:
    """The state of one of several."""
    header, arrays = state
    return header[name], {each.removeprefix(f"{name}."): arrays[each] for each in arrays if each.startswith(f"{name}.")}


def keys_to_arrays(keys: KeyTable | None) -> dict[str, np.ndarray]:
    """A key table, under names of its own; none, where there is no key."""
    return {} if keys is None else {f"keys.{name}": array.copy() for name, array in keys.state().items()}


def keys_from_arrays(kind: pa.DataType, arrays: dict[str, np.ndarray]) -> KeyTable:
    """The key table among these arrays. kind: the type of its keys."""
    names = [name for name in arrays if name.startswith("keys.")]
    return KeyTable.restore(kind, {name.removeprefix("keys."): arrays[name] for name in names})


def table_to_bytes(table: pa.Table) -> np.ndarray:
    """A table with its types, as bytes."""
    sink = pa.BufferOutputStream()
    table = table.unify_dictionaries().combine_chunks()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return np.frombuffer(sink.getvalue(), np.uint8)


def table_from_bytes(array: np.ndarray) -> pa.Table:
    """The table that `table_to_bytes` was given."""
    return pa.ipc.open_stream(pa.py_buffer(np.ascontiguousarray(array))).read_all()
