"""Where frames were found: a note in the metadata of their schema, which stays when rows are filtered or sorted.

It holds the spec, the names of ts and key, and a fingerprint of the events. With them the events of a frame are told
from others that share its first or last ts: the frames are found again, and looked up by frame_id.

Why not the positions themselves? A column of them would be seen by users; in the metadata they would be as large as the
table, and be lost where the tables of several punctuations are put together, of which the first one's metadata stay. A
spec is small and the same for all. It costs a scan more, of those events only whose ties make it necessary.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from frames.finding.intake import key_ids
from frames.scans.kinds import SCANS
from frames.scans.scan import Scan, any_fields
from frames.specs import Spec, spec_from_json
from frames.tables import NOTE, Key, key_of, note_of
from kernels.frames.fingerprint import mix_all, slices_read
from swag.durable.state import State
from swag.errors import SwagError
from swag.query.groupings import By, one_or_several
from swag.tables.columns import Clock, Field, column, timed
from swag.tables.expressions.derived import with_derived
from swag.tables.key_columns import joined, key_name
from swag.tables.keys import KeyTable

FORMAT = 1


class Fingerprint:
    """Which stream was it? Tells rows in order by their ts, their keys, and the columns that a spec reads.

    Equal rows in equal order have equal fingerprints, however they are cut into chunks and batches, and whether text is
    kept in a dictionary or not. Types are not told apart, values are: a null from a 0, -0.0 from 0.0. Of many rows some
    are read (kernels/frames/fingerprint.py).

    Owns a sum, and the number of its values, for every array that the rows so far consist of. It is told of the next
    rows with `add`, and asked for `rows` and `digest`.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._sums: dict[str, tuple[int, int]] = {}

    def add(self, fields: dict[str, Field], instants: np.ndarray, ids: np.ndarray, keys: KeyTable | None) -> None:
        """The next rows, and the keys that were seen by their end. fields: what the spec reads of them.

        No rows are as if they had not come: a table of keys may hold something of its own before the first one.
        """
        if not instants.size:
            return
        new = {"ts": instants, "ids": ids}
        for name, read in fields.items():
            new[f"column {name}"] = read.values if read.words is None else self._hashed(read)
            if read.valid is not None:
                new[f"null {name}"] = np.flatnonzero(~read.valid) + self.rows
        if keys is not None:
            for name, array in keys.state()[1].items():
                new[f"keys {name}"] = array[self._sums.get(f"keys {name}", (0, 0))[0] :]
        mix_all(new, self._sums)
        self.rows += instants.size

    def _hashed(self, read: Field) -> np.ndarray:
        """Values that are numbers of others: words for those, where they are read at all; 0 for nulls."""
        found = np.zeros(read.values.size, np.int64)
        for some in slices_read(self.rows, found.size):
            found[some] = read.words.hashes(read.values[some])
        return found if read.valid is None else np.where(read.valid, found, 0)

    def digest(self) -> str:
        """A short text that stands for the rows so far."""
        told = repr((self.rows, sorted(self._sums.items())))
        return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()

    def state(self) -> State:
        return {"rows": self.rows, "sums": {name: list(each) for name, each in self._sums.items()}}, {}

    def restore(self, state: State) -> None:
        header, _ = state
        self.rows, self._sums = header["rows"], {name: (size, of) for name, (size, of) in header["sums"].items()}


@dataclass(frozen=True)
class Origin:
    """What the note says: how frames were found, and in which events.

    The first `rows` events of the stream had this digest; whole: there were no others. key: a name, several, or None.
    """

    spec: dict[str, Any]
    columns: tuple[str, ...]
    ts: str
    key: str | By | None
    rows: int = 0
    digest: str = ""
    whole: bool = False
    format: int = FORMAT

    @classmethod
    def of_search(cls, spec: Spec, ts: str, by: By) -> "Origin":
        """Of frames that are still to be found: see `noted`."""
        return cls(spec.to_json(), spec.columns, ts, one_or_several(by))

    @classmethod
    def of(cls, frames: pa.Table) -> "Origin | None":
        """What a table of frames says; None where it says nothing, or nothing that we could read."""
        entry = note_of(frames)
        try:
            if entry.get("format") != FORMAT:
                return None
            key = entry["key"]
            several = {"columns": tuple(entry["columns"]), "key": tuple(key) if isinstance(key, list) else key}
            return cls(**{**entry, **several})
        except (TypeError, KeyError):
            return None

    def noted(self, frames: pa.Table, seen: Fingerprint, whole: bool) -> pa.Table:
        """Frames that were found in the events seen, with the note."""
        note = {**vars(self), "rows": seen.rows, "digest": seen.digest(), "whole": whole}
        return frames.replace_schema_metadata({**(frames.schema.metadata or {}), NOTE: json.dumps(note)})

    @property
    def by(self) -> By:
        """The columns of the key."""
        return () if self.key is None else (self.key,) if isinstance(self.key, str) else self.key

    def found_by(self) -> Spec | None:
        """None: by functions that this process does not have, or by a kind of spec that it does not know."""
        try:
            return spec_from_json(self.spec)
        except (KeyError, TypeError, ValueError):
            return None

    def is_of(self, events: pa.Table) -> bool:
        """Are these the events that the frames were found in? A detector's went on, and these begin with them."""
        if events.num_rows < self.rows or (self.whole and events.num_rows > self.rows):
            return False
        return self._fingerprint(events.slice(0, self.rows)) == self.digest

    def _fingerprint(self, events: pa.Table) -> str | None:
        """None: they lack a column, or one is of a type that was not searched."""
        seen = Fingerprint()
        try:
            clock, instants = timed(events, self.ts)
            keys, ids = key_ids(joined(events, self.by), key_name(self.by), None)
            for name in self.columns:
                if not name.isidentifier():
                    events = with_derived(events, {name: "the spec reads"}, {})
                column(events, name, "the spec reads")
            seen.add(self._fields(events.select(list(dict.fromkeys(self.columns))), clock), instants, ids, keys)
        except SwagError:
            return None
        return seen.digest()

    def _fields(self, table: pa.Table, clock: Clock) -> dict[str, Field]:
        """What was read of events, as the scan has it; where its functions are not, as one that calls none has."""
        spec = self.found_by()
        if spec is None:
            return any_fields(table, self.columns, "the fingerprint reads")
        scan: Scan = SCANS[type(spec)](spec, table.schema, clock)
        return scan.fields(table)


def filled_by(key: Key, frames: pa.Table, events: Iterable[str]) -> By:
    """By which columns frames meet events: as the user says, else by what they were found per, where both have it."""
    origin = Origin.of(frames) if key is None else None
    if origin is None or not {*origin.by} <= {*frames.column_names} & {*events}:
        return key_of(key)
    return origin.by
