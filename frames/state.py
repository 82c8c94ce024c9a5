"""The state of frames' classes, by the protocol of swag/durable/state.py: parts of a whole, and keys as arrays."""

import numpy as np
import pyarrow as pa

from swag.durable.state import State, Stateful, own_arrays
from swag.durable.state import nested as with_parts
from swag.query.groupings import By
from swag.tables.keys import KeyTable


def nested(parts: dict[str, Stateful | None]) -> State:
    """The states of several as one; parts that are not there are left out."""
    return with_parts({}, {name: part.state() for name, part in parts.items() if part is not None})


def key_setting(by: By) -> str | list[str] | None:
    """The columns of a key as JSON gives them back."""
    return list(by) if len(by) > 1 else next(iter(by), None)


def keys_to_arrays(keys: KeyTable | None) -> dict[str, np.ndarray]:
    """A key table, under names of its own; none, where there is no key."""
    return {} if keys is None else {f"keys/{name}": array.copy() for name, array in keys.state()[1].items()}


def keys_from_arrays(kind: pa.DataType, arrays: dict[str, np.ndarray]) -> KeyTable:
    """The key table among these arrays. kind: the type of its keys."""
    keys = KeyTable(kind)
    keys.restore(({}, own_arrays(arrays, "keys")))
    return keys
