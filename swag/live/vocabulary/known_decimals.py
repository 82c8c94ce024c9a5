"""The decimals of a stream, each column in the type that it came in first."""

from collections.abc import Iterable

import pyarrow as pa

from swag.durable.state import State, types_from_array, types_to_array
from swag.tables.plain import fitted


class KnownDecimals:
    """Whether 1.10 is a decimal of 3 digits or of 18 depends on who wrote it down: it is what its column has been.

    It owns the types of the columns of a stream. Asked of it: a batch in them (`fitted`), whole or not at all; it is
    told of those that were taken (`note`).
    """

    def __init__(self) -> None:
        self._types: dict[str, pa.DataType] = {}
        self._usual: pa.Schema | None = None  # of a batch that fitted: to compare is faster than to look at each column

    def fitted(self, table: pa.Table) -> pa.Table:
        return table if table.schema == self._usual else fitted(table, self._types)

    def note(self, table: pa.Table) -> None:
        """These came."""
        if table.schema != self._usual:
            self.note_types(zip(table.column_names, table.schema.types, strict=True))
            self._usual = table.schema

    def note_types(self, types: Iterable[tuple[str, pa.DataType]]) -> None:
        """So much is known of some columns."""
        for name, kind in types:
            if pa.types.is_decimal(kind):
                self._types.setdefault(name, kind)

    def state(self) -> State | None:
        return ({}, {"types": types_to_array(self._types)}) if self._types else None

    def restore(self, state: State) -> None:
        self._types, self._usual = types_from_array(state[1]["types"]), None
