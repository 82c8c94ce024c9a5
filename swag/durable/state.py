"""State: what every class that has any hands over, and takes back. Plain arrays, and a header that JSON can hold.

    engine.state() -> {"core": {"store": {...}}},  {"core/store/ts": array, ...}

Snapshots, streams inside of engines and Spark's shards save themselves this way and no other. A class hands over what
it owns and asks its parts for theirs; `nested` puts parts into a whole, `part` and `parts` take them out again. Nothing
in it is trusted: whatever does not go together raises, and whoever reads a file says of which one that is.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

State = tuple[dict[str, Any], dict[str, np.ndarray]]  # a header of plain JSON, and arrays by name
Parts = dict[str, "State | list[State] | None"]


class Stateful(Protocol):
    """A class with state. One that was restored goes on as the one that handed over its state would have."""

    def state(self) -> State:
        """All that it owns. The arrays may be its own: they are to be written before it changes again."""

    def restore(self, state: State) -> None:
        """Take a state that an object made alike has handed over; its arrays are one's own from then on."""


def nested(header: dict[str, Any], inside: Mapping[str, State | list[State] | None]) -> State:
    """A state with the states of parts in it, each under a name, or several under one. None: there is no such part."""
    header = dict(header)
    arrays: dict[str, np.ndarray] = {}
    for name, inner in inside.items():
        if isinstance(inner, list):
            header[name] = [each[0] for each in inner]
            for i, each in enumerate(inner):
                arrays |= {f"{name}/{i}/{own}": array for own, array in each[1].items()}
        else:
            header[name] = None if inner is None else inner[0]
            arrays |= {} if inner is None else {f"{name}/{own}": array for own, array in inner[1].items()}
    return header, arrays


def with_arrays(state: State, arrays: Mapping[str, np.ndarray]) -> State:
    """The same, with arrays of the whole beside those of its parts."""
    return state[0], {**state[1], **arrays}


def part(state: State, name: str) -> State:
    """The state of one part."""
    return state[0][name], own_arrays(state[1], name)


def parts(state: State, name: str) -> list[State]:
    """The states of several parts under one name."""
    return [(header, own_arrays(state[1], f"{name}/{i}")) for i, header in enumerate(state[0][name])]


def own_arrays(arrays: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """Those under a name, by the rest of theirs."""
    start = f"{name}/"
    return {each.removeprefix(start): array for each, array in arrays.items() if each.startswith(start)}


def table_to_array(table: pa.Table) -> np.ndarray:
    """An Arrow table as bytes."""
    sink = pa.BufferOutputStream()
    table = table.unify_dictionaries()  # a stream has one dictionary per column
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return np.frombuffer(sink.getvalue(), np.uint8)


def table_from_array(array: np.ndarray) -> pa.Table:
    """Back from bytes, whose memory it shares; a ValueError if they are those of no table."""
    try:
        return pa.ipc.open_stream(pa.py_buffer(array)).read_all()
    except OSError as why:  # so Arrow calls bytes that are none of its own
        raise ValueError(f"bytes of no table: {why}") from None


def types_to_array(types: Mapping[str, pa.DataType] | Iterable[tuple[str, pa.DataType]]) -> np.ndarray:
    """Arrow types by name, as the bytes of a schema."""
    fields = types.items() if isinstance(types, Mapping) else types
    return np.frombuffer(pa.schema(list(fields)).serialize(), np.uint8)


def types_from_array(array: np.ndarray) -> dict[str, pa.DataType]:
    """Back from bytes; a ValueError if they are those of no schema."""
    try:
        return {field.name: field.type for field in pa.ipc.read_schema(pa.py_buffer(array))}
    except OSError as why:
        raise ValueError(f"bytes of no schema: {why}") from None
