"""A key of several columns, as one column of structs on its way through: joined on the way in, apart on the way out.

Whatever has a key so has one column, of any type that a KeyTable tells apart.
"""

from collections.abc import Iterable

import pyarrow as pa

from swag.errors import BadEvents
from swag.tables.answers import OWN, own_name
from swag.tables.columns import column, one_chunk
from swag.tables.keys import joint_name, ungroupable


def key_name(by: tuple[str, ...]) -> str | None:
    """What the one column is called; None: there is no key."""
    return None if not by else by[0] if len(by) == 1 else joint_name(by)


def checked(table: pa.Table, by: tuple[str, ...]) -> pa.Table:
    """The same table; raises if a column of the key is not there, or of a type that nothing is grouped by."""
    for each in by:
        own = column(table, each, "key is")
        if pa.types.is_nested(own.type):
            raise ungroupable(own.type)
    return table


def joined(table: pa.Table, by: tuple[str, ...]) -> pa.Table:
    """With the one column that stands for several; a key of one column is there already."""
    name = key_name(by)
    if is_joined(table, by):
        return table
    table = checked(table, by)
    if len(by) < 2:
        return table
    columns = [one_chunk(table.column(each)) for each in by]
    return table.append_column(name, pa.StructArray.from_arrays(columns, names=list(by)))


def is_joined(table: pa.Table, by: tuple[str, ...]) -> bool:
    """Is the one column there that stands for several? A user's own may have its name; that is refused, as it would be
    taken for the key."""
    if len(by) < 2:
        return False
    found = table.schema.get_all_field_indices(key_name(by))
    if not found:
        return False
    kind = table.schema.types[found[0]]
    if len(found) > 1 or not pa.types.is_struct(kind) or tuple(each.name for each in kind) != by:
        raise BadEvents(f'the events have a column "{key_name(by)}", as the key of several is called.', "rename it")
    return True


def apart(table: pa.Table, by: tuple[str, ...]) -> pa.Table:
    """The columns of the key in the place of the one that stood for them. Our own columns make way: "value" is called
    "value_" where a key column is called "value"."""
    name = key_name(by)
    if len(by) < 2 or name not in table.column_names:
        return table
    columns: list[pa.ChunkedArray | pa.Array] = []
    names: list[str] = []
    for each in table.column_names:
        values = table.column(each)
        if each == name:
            columns += _fields(values, by)
            names += by
        else:
            columns.append(values)
            names.append(own_name(each, *by) if each in OWN else each)
    return pa.table(columns, names)


def _fields(keys: pa.ChunkedArray, by: Iterable[str]) -> list[pa.ChunkedArray]:
    """Nothing is known of the types of a key before the first event."""
    return [pa.chunked_array([pa.nulls(len(keys))])] * len(list(by)) if pa.types.is_null(keys.type) else keys.flatten()
