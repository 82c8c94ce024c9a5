"""Which stream was it? A fingerprint of rows in order: their ts, their keys, and the columns that a spec reads.

Equal rows in equal order have equal fingerprints, however they are cut into chunks and batches, and whether text is
kept in a dictionary or not. Types are not told apart, values are: a null from a 0, -0.0 from 0.0. Of many rows some are
read (kernels/frames/fingerprint.py).
"""

import hashlib

import numpy as np
import pyarrow as pa

from kernels.frames.fingerprint import mix
from swag.tables.columns import decoded_type, field, is_number, valid_rows
from swag.tables.keys import KeyTable


class Fingerprint:
    """Of the rows so far. Owns a sum, and the number of its values, for every array that rows consist of."""

    def __init__(self) -> None:
        self.rows = 0
        self._sums: dict[str, tuple[int, int]] = {}

    def add(
        self, table: pa.Table, columns: tuple[str, ...], instants: np.ndarray, ids: np.ndarray, keys: KeyTable | None
    ) -> None:
        """The next rows, and the keys that were seen by their end."""
        self._mix("ts", instants)
        self._mix("ids", ids)
        for name in dict.fromkeys(columns):
            valid = valid_rows(table, name, "the fingerprint reads")
            if valid is not None:
                self._mix(f"null {name}", np.flatnonzero(~valid) + self.rows)
            # Of columns that are no numbers, a spec reads only where they are null.
            if is_number(decoded_type(table.schema.field(name).type)):
                self._mix(f"column {name}", field(table, name, "the fingerprint reads").values)
        for name, array in ({} if keys is None else keys.state()[1]).items():
            self._mix(f"keys {name}", array[self._sums.get(f"keys {name}", (0, 0))[0] :])
        self.rows += instants.size

    def digest(self) -> str:
        told = repr((self.rows, sorted(self._sums.items())))
        return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()

    def _mix(self, name: str, array: np.ndarray) -> None:
        if array.size:
            count, before = self._sums.get(name, (0, 0))
            self._sums[name] = count + array.size, (before + int(mix(_bits(array), count))) % 2**64


def _bits(array: np.ndarray) -> np.ndarray:
    """Unsigned integers of the same bits; read-only, as Arrow's own are, so that kernels are compiled for one type."""
    bits = array.view(f"u{array.itemsize}")
    bits.flags.writeable = False
    return bits
