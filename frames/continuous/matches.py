"""A MATCH_RECOGNIZE statement at work in an engine: a match leaves as a row with the event that decides it.

What is kept of a key is the state of its search, the last values that PREV will ask for, and, where measures or
conditions are over rows of the match, those that an undecided one may have (frames/finding/measures.py).
"""

from typing import TYPE_CHECKING

import pyarrow as pa

from frames.continuous.running import RunningFrames
from frames.detection import search
from frames.tables import before_events
from swag.errors import SwagError
from swag.tables.columns import Clock
from swag.tables.key_columns import apart

if TYPE_CHECKING:
    from frames.match_query import MatchQuery


class RunningMatches(RunningFrames):
    """As its base; what is said of a match is found with it, so it owns nothing more."""

    query: "MatchQuery"  # type: ignore[assignment]

    def _said(self, frames: pa.Table, clock: Clock) -> tuple[pa.Table | None, SwagError | None]:
        return self._selected(frames), None

    def _selected(self, frames: pa.Table) -> pa.Table:
        """The columns that the statement selects."""
        return self.query.say(apart(frames, self.by), None, self.ts, self.by)

    def nothing(self) -> pa.Table:
        core = self.core
        if core.scan is None or core.clock is None or core.schema is None:
            return self.query.say(before_events(self.query.spec, self.by, False), None, self.ts, self.by)
        types = {self.ts: core.clock.type} | dict(zip(core.schema.names, core.schema.types, strict=True))
        if self.key is not None and core.keys is not None:
            types[self.key] = core.keys.type
        return self._selected(search(self.query.spec, pa.schema(types).empty_table(), self.ts, self.key).table())
