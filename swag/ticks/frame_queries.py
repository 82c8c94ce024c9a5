"""Queries over frames in an engine: each is at work on the events of its grouping, and has rows for who fetches them.

events --> ContinuousFrames (swag/query/over_frames.py), one for each query --> emitted(name), changes()
"""

import numpy as np
import pyarrow as pa

from swag import errors
from swag.durable.state import State, nested, parts, table_from_array, table_to_array, with_arrays
from swag.errors import SwagError
from swag.live.arena import Batch
from swag.live.core import Core
from swag.query.groupings import By
from swag.query.over_frames import ContinuousFrames, OverFrames
from swag.query.query import Query
from swag.query.reading import Reading
from swag.tables.answers import ManyAnswers
from swag.tables.columns import Clock, to_arrow
from swag.tables.key_columns import apart
from swag.tables.waiting import TimedRows


class FrameQueries:
    """Those of a stream, which are told of its events. It owns them at work, the rows that nobody has fetched yet, what
    went wrong, and since when those are complete that came while events flowed.

    Asked of it: to `add` and `remove` queries; what they read (`reading`); to `check` and to `take` events; rows
    (`emitted`) and changes; which keys they need. It is empty for most streams, and then nobody asks.
    """

    def __init__(self, core: Core, by: By) -> None:
        self.core, self.by = core, by
        self.running: dict[str, ContinuousFrames] = {}
        self.reading = Reading([])
        self.since: dict[str, int] = {}
        self._readers: dict[str, list[Query]] = {}
        self._outbox: dict[str, list[pa.Table]] = {}
        self._errors: dict[str, list[SwagError]] = {}

    # -- queries ------------------------------------------------------------------------------------------------------

    def add(self, query: OverFrames, flowing: bool, unread: int) -> None:
        """It begins with the next event. flowing: events have come before; unread: up to this time some that wait lack
        what it reads."""
        name = query.label
        self.running[name] = query.running(self.core.ts, self.by)
        self._readers[name], self._outbox[name], self._errors[name] = query.readers, [], []
        if flowing:
            self.since[name] = max(self.core.time.now, unread)
        self._follow()

    def remove(self, name: str) -> None:
        """A query goes, with rows that nobody has fetched."""
        for each in (self.running, self._readers, self._outbox, self._errors, self.since):
            each.pop(name, None)  # type: ignore[attr-defined]
        self._follow()

    def _follow(self) -> None:
        self.reading = Reading([reader for some in self._readers.values() for reader in some])

    # -- events -------------------------------------------------------------------------------------------------------

    def check(self, table: pa.Table, clock: Clock) -> None:
        """Raise what is wrong with a batch; nothing is changed."""
        for each in self.running.values():
            each.check(table, clock)

    def take(self, table: pa.Table, ts: np.ndarray, ids: np.ndarray, by_key: Batch | None = None) -> None:
        """Events that were applied. What goes wrong with frames waits for who fetches them."""
        clock, keys = self.core.time.clock, self.core.store.keys
        assert clock is not None
        for name, each in self.running.items():
            self._put(name, *each.take(TimedRows(table, ts, ids), keys, clock, by_key))

    def decide(self, closed: int) -> None:
        """Every event up to `closed` has come: time ends frames, and those filled by time may be complete."""
        for name, each in self.running.items():
            self._put(name, *each.decide(closed))

    def filled_from(self, stream: str | None) -> list[ContinuousFrames]:
        """Those whose frames are filled from another stream of this name, or of any."""
        others = [each for each in self.running.values() if each.other is not None]
        return others if stream is None else [each for each in others if each.other == stream]

    def let_go(self) -> None:
        """Of what no frame can reach any more."""
        for each in self.running.values():
            each.let_go()

    def _put(self, name: str, rows: pa.Table | None, why: SwagError | None) -> None:
        self._outbox[name] += [] if rows is None else [rows]
        self._errors[name] += [] if why is None else [why]

    # -- out ----------------------------------------------------------------------------------------------------------

    def emitted(self, name: str) -> pa.Table:
        """The rows of frames that nobody has fetched yet; an error is raised first, once."""
        if self._errors[name]:
            raise self._errors[name].pop(0)
        rows, self._outbox[name] = self._outbox[name], []
        table = pa.concat_tables(rows or [self.running[name].nothing()])
        return apart(table, self.by) if len(self.by) > 1 else table

    def changes(self, name: str) -> ManyAnswers:
        """The frames that opened or closed since it was last told: value is the frame_id, ts its start or its end."""
        clock, keys = self.core.time.clock, self.core.store.keys
        numbers, ids, instants, is_open = self.running[name].changes()
        when = to_arrow(instants, None, pa.int64() if clock is None else clock.type)
        key = None if self.core.key is None else pa.nulls(0) if keys is None else keys.column(ids)
        rows, which = np.arange(numbers.size), np.zeros(numbers.size, np.int64)
        return ManyAnswers(
            [name], {name: pa.int64()}, which, key, [pa.array(numbers)], rows, [when], [pa.array(is_open)]
        )

    def tell(self, name: str) -> None:
        """What `changes` gave was told."""
        self.running[name].tell()

    # -- keys that come and go ----------------------------------------------------------------------------------------

    def needs(self, count: int) -> np.ndarray:
        """Which of the first so many keys frames have still to do with."""
        return np.logical_or.reduce([np.zeros(count, bool), *(each.needs(count) for each in self.running.values())])

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on."""
        for each in self.running.values():
            each.renumber(kept)

    # -- about itself -------------------------------------------------------------------------------------------------

    def complete_since(self) -> dict[str, object]:
        """Per query: None if complete from the first event, else the time after which events count."""
        clock = self.core.time.clock
        since = {name: None if clock is None else clock.value(at) for name, at in self.since.items()}
        return {name: since.get(name) for name in self.running}

    @property
    def undelivered(self) -> int:
        return sum(table.num_rows for tables in self._outbox.values() for table in tables)

    @property
    def kept(self) -> int:
        return sum(each.kept for each in self.running.values())

    @property
    def bytes(self) -> int:
        waiting = sum(table.nbytes for tables in self._outbox.values() for table in tables)
        return waiting + sum(each.bytes for each in self.running.values())

    def state(self) -> State:
        """All that is at work, what nobody has fetched, and what went wrong."""
        waiting = {name: pa.concat_tables(tables) for name, tables in self._outbox.items() if tables}
        wrong = {
            name: [[type(why).__name__, why.message, why.hint] for why in some] for name, some in self._errors.items()
        }
        header = {"names": list(self.running), "since": self.since, "errors": wrong, "outbox": list(waiting)}
        whole = nested(header, {"running": [each.state() for each in self.running.values()]})
        return with_arrays(whole, {f"outbox/{i}": table_to_array(each) for i, each in enumerate(waiting.values())})

    def restore(self, state: State) -> None:
        """Its queries have been added."""
        header, arrays = state
        self.since = header["since"]
        for name, some in header["errors"].items():
            self._errors[name] = [getattr(errors, kind)(message, hint) for kind, message, hint in some]
        for i, name in enumerate(header["outbox"]):
            self._outbox[name] = [table_from_array(arrays[f"outbox/{i}"])]
        for name, saved in zip(header["names"], parts(state, "running"), strict=True):
            self.running[name].restore(saved)
