"""Where frames were found: a note in the metadata of their schema, which stays when rows are filtered or sorted.

It holds the spec, the names of ts and key, and a fingerprint of the events. With them the events of a frame are told
from others that share its first or last ts: the frames are found again, and looked up by frame_id.

Why not the positions themselves? A column of them would be seen by users; in the metadata they would be as large as the
table, and be lost where the tables of several punctuations are put together, of which the first one's metadata stay. A
spec is small and the same for all. It costs a scan more, of those events only whose ties make it necessary.
"""

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from frames.as_json import spec_from_json, spec_to_json
from frames.finding.intake import key_ids, timed
from frames.owning.fingerprint import Fingerprint
from frames.specs import Spec
from swag.errors import SwagError
from swag.tables.columns import column

NAME = b"swag.frames"
FORMAT = 1


@dataclass(frozen=True)
class Origin:
    """The first `rows` events of the stream had this digest; whole: there were no others."""

    spec: dict[str, Any]
    columns: tuple[str, ...]
    ts: str
    key: str | None
    rows: int
    digest: str
    whole: bool
    format: int = FORMAT

    @classmethod
    def now(cls, spec: Spec, ts: str, key: str | None, seen: Fingerprint, whole: bool) -> "Origin":
        return cls(spec_to_json(spec), spec.columns, ts, key, seen.rows, seen.digest(), whole)

    @classmethod
    def of(cls, frames: pa.Table) -> "Origin | None":
        """What a table of frames says; None where it says nothing, or nothing that we could read."""
        note = (frames.schema.metadata or {}).get(NAME)
        try:
            entry = {} if note is None else json.loads(note)
            return cls(**{**entry, "columns": tuple(entry["columns"])}) if entry.get("format") == FORMAT else None
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    def noted(self, frames: pa.Table) -> pa.Table:
        return frames.replace_schema_metadata({**(frames.schema.metadata or {}), NAME: json.dumps(vars(self))})

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
            _, instants = timed(events, self.ts)
            keys, ids = key_ids(events, self.key, None)
            for name in self.columns:
                column(events, name, "the spec reads")
            seen.add(events, self.columns, instants, ids, keys)
        except SwagError:
            return None
        return seen.digest()
