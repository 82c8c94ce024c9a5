"""A query over frames at work in an engine, whose frames are filled from another stream, by time.

    reports  --> DetectorCore --> frames that have ended -----> wait until messages have got past end + after
    messages --> kept, while a frame to come, or one that waits, may reach back to them -----> a row for each frame

The clock is that of the slower one. Of a key whose messages come in order, a later one says that those before it have
come; of all keys, the watermark or `engine.advance` does. Messages are kept as they are, and aggregated when their
frame is complete, as `sw.evaluate` does it: edges may be moved, so that frames overlap and an event is in several.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from frames.continuous.running import OURS, RunningFrames
from frames.finding.intake import NO_KEY, NO_TIME, key_ids
from frames.scans.scan import extended
from frames.state import keys_from_arrays, keys_to_arrays
from frames.tables import frames_table, margins, noted_extent, shifted
from kernels.frames.framing import COUNT, LAST, ROWS, START
from kernels.operators.numbers import EARLIEST
from swag.durable.state import State, table_from_array, table_to_array
from swag.errors import BadType, OutOfOrder, SwagError
from swag.live import intake
from swag.query.families import check_columns
from swag.query.reading import Reading
from swag.tables.columns import Clock, column, decoded_type, instants
from swag.tables.key_columns import joined
from swag.tables.keys import KeyTable
from swag.tables.predicate import holds
from swag.tables.waiting import TimedRows

if TYPE_CHECKING:
    from frames.query import FrameQuery

SMALL = 4096  # messages that are not worth the trouble of looking which of them may go


class EndedFrames(NamedTuple):
    """Frames that have ended: as rows, their keys, and from when to when events lie in them."""

    table: pa.Table
    ids: np.ndarray
    first: np.ndarray
    last: np.ndarray

    def some(self, which: np.ndarray) -> "EndedFrames":
        return EndedFrames(self.table.filter(pa.array(which)), self.ids[which], self.first[which], self.last[which])


class FilledFrames(RunningFrames):
    """As its base, with two streams. It also owns the frames that have ended and wait to be filled (`frames`), the
    messages that may be in a frame (`messages`), the keys of both (`known`), of each key the time of its latest message
    (`latest`), and up to when all messages have come (`complete`).
    """

    def __init__(self, query: "FrameQuery", ts: str, by: tuple[str, ...]) -> None:
        super().__init__(query, ts, by)
        self.reading = Reading(query.filling, ts, *by)
        self.known: KeyTable | None = None
        self.frames: EndedFrames | None = None
        self.messages: TimedRows | None = None
        self.latest = NO_TIME
        self.complete = EARLIEST
        self._clock: Clock | None = None
        self._checked: TimedRows | None = None
        self._left = 0  # messages that were there when they were last looked through

    @property
    def other(self) -> str | None:
        return self.query.fill_from

    # -- the stream that frames are found in --------------------------------------------------------------------------

    def check(self, table: pa.Table, clock: Clock) -> None:
        self._check_clock(clock)
        self._check_spec(table, clock)

    def _check_clock(self, clock: Clock) -> None:
        """Both streams have one sort of time, in which margins can be told."""
        known = self._clock or self.core.clock
        if known is not None and clock != known:
            raise BadType(
                f'"{self.ts}" is {clock.type}, but {known.type} in the other stream.', f"cast to {known.type}"
            )
        margins(self.query.before, self.query.after, clock.unit)

    def _said(self, frames: pa.Table, clock: Clock) -> tuple[pa.Table | None, SwagError | None]:
        """Frames that have ended wait until they are filled."""
        table = frames.select([name for name in frames.column_names if name in (*OURS, self.key)])
        self.known, ids = key_ids(table, self.key, self.known)
        early, late = margins(self.query.before, self.query.after, clock.unit)
        first, _ = shifted(instants(table.column("start"), "start"), -early)
        late -= self.query.spec.extent == "open"  # then the end itself is outside
        last, _ = shifted(instants(table.column("end"), "end"), late)
        new = EndedFrames(table, ids if ids.size else np.zeros(first.size, ids.dtype), first, last)
        if self.frames is not None:
            tables = pa.concat_tables([self.frames.table, table])
            new = EndedFrames(tables, *(np.concatenate(each) for each in zip(self.frames[1:], new[1:], strict=True)))
        self.frames = new
        return None, None

    def decide(self, closed: int) -> tuple[pa.Table | None, SwagError | None]:
        super().decide(closed)  # what time ends is to be filled, too
        frames, clock = self.frames, self.core.clock
        if frames is None or clock is None:
            self._purge(closed)
            return None, None
        self.latest = extended(self.latest, int(frames.ids.max(initial=0)) + 1, EARLIEST)
        done = (self.latest[frames.ids] > frames.last) | (frames.last <= self.complete)
        if not done.any():
            return None, None
        ready = frames.some(done)
        self.frames = None if done.all() else frames.some(~done)
        try:
            found: tuple[pa.Table | None, SwagError | None] = self._filled(ready.table), None
        except SwagError as why:
            found = None, why
        self._purge(closed)
        return found

    def _filled(self, frames: pa.Table) -> pa.Table:
        """Frames whose events are all there, each with what is said of it."""
        table = self._nothing_came() if self.messages is None else self.messages.table
        noted = frames.replace_schema_metadata(noted_extent(self.query.spec.extent))
        return self.query.with_answers(frames, *self.query.answers(noted, table, self.ts, self.key, None))

    def _nothing_came(self) -> pa.Table:
        """No messages, of any type."""
        assert self.core.clock is not None
        types = dict.fromkeys(self.reading.columns, pa.null()) | {self.ts: self.core.clock.type}
        if self.key is not None and self.core.keys is not None:
            types[self.key] = self.core.keys.type
        return pa.schema(types).empty_table()

    def nothing(self) -> pa.Table:
        core = self.core
        if core.scan is None or core.clock is None:
            return super().nothing()
        named = None if core.keys is None or self.key is None else (self.key, core.keys)
        return self._filled(frames_table(NO_TIME, np.zeros((COUNT + 1, 0), np.int64), named, core.clock, {}))

    # -- the stream that they are filled from -------------------------------------------------------------------------

    def check_other(self, table: pa.Table, clock: Clock, ordered: bool) -> None:
        self._check_clock(clock)
        own = joined(intake.read(table, self.reading, keep=True), self.by)
        types = {name: decoded_type(own.schema.field(name).type) for name in self._aggregated}
        for name, kind in types.items():
            known = kind if self.messages is None else decoded_type(self.messages.table.schema.field(name).type)
            if kind != known and not pa.types.is_null(kind) and not pa.types.is_null(known):
                raise BadType(f'column "{name}" is {kind}, but has been {known} so far.', f"cast it to {known}")
        for aggregate, where in self._asked:
            check_columns(aggregate, types)
            if where is not None:
                holds(where, own)
        times = instants(column(own, self.ts, "ts is"), self.ts)
        self.known, ids = key_ids(own, self.key, self.known)
        ids = ids if ids.size else np.zeros(times.size, NO_KEY.dtype)
        self.latest = extended(self.latest, 1 if self.known is None else self.known.count, EARLIEST)
        if ordered:
            self._check_order(times, ids, clock)
        self._checked = TimedRows(own, times, ids)

    def _check_order(self, times: np.ndarray, ids: np.ndarray, clock: Clock) -> None:
        """Messages of a key come in order, and none that was promised not to come."""
        order = np.argsort(ids, kind="stable")
        before = np.concatenate([[EARLIEST], times[order][:-1]])
        first = np.concatenate([[True], ids[order][1:] != ids[order][:-1]])
        before = np.where(first, self.latest[ids[order]], before)
        early = np.flatnonzero((times[order] < before) | (times[order] <= self.complete))
        if early.size:
            row = int(order[early].min())
            raise OutOfOrder(
                f'event {row} of "{self.other}" has ts {clock.show(int(times[row]))}, and later ones of its key have '
                "come, or were promised to be the next.",
                "sort the batch by ts, or Engine(lateness=…)",
            )

    def take_other(self, closed: int, clock: Clock) -> None:
        if self._checked is not None:
            new, self._checked, self._clock = self._checked, None, clock
            np.maximum.at(self.latest, new.ids, new.ts)
            if self.messages is not None:
                tables = pa.concat_tables([self.messages.table, new.table], promote_options="permissive")
                both = (np.concatenate(each) for each in zip(self.messages[1:], new[1:], strict=True))
                new = TimedRows(tables, *both)
            self.messages = new
        self.complete = max(self.complete, closed)

    def _purge(self, closed: int) -> None:
        """Keep a message if a frame that waits, is open, or is still to come may reach back to it."""
        if self.messages is None or self.messages.ts.size <= 2 * self._left + SMALL or self.core.clock is None:
            return
        rows = self.messages
        keep = rows.ts >= self._needed(closed)[rows.ids]
        if not keep.all():
            table = rows.table.filter(pa.array(keep)).combine_chunks()
            self.messages = TimedRows(table, rows.ts[keep], rows.ids[keep])
        self._left = self.messages.ts.size

    def _needed(self, closed: int) -> np.ndarray:
        """From when on messages of each key may still be in a frame."""
        assert self.core.clock is not None
        starts = np.full(self.latest.size, min(closed, np.iinfo(np.int64).max - 1) + 1)
        ids = self._of_core()
        there, keyed = ids >= 0, None if self.core.scan is None else self.core.scan.keyed
        if keyed is not None:
            own = keyed[np.minimum(ids[there], keyed.shape[0] - 1)]
            open_ = np.where(own[:, ROWS] > 0, own[:, START], np.maximum(own[:, LAST], starts[there]))
            starts[there] = np.where(ids[there] < keyed.shape[0], open_, starts[there])
        early, _ = margins(self.query.before, self.query.after, self.core.clock.unit)
        needed, _ = shifted(starts, -early)
        if self.frames is not None:
            np.minimum.at(needed, self.frames.ids, self.frames.first)
        return needed

    def _of_core(self) -> np.ndarray:
        """By which number the engine knows each key; -1: it does not."""
        if self.known is None or self.key is None:
            return np.zeros(self.latest.size, np.int64)
        found = np.full(self.latest.size, -1)
        if self.core.keys is not None:
            found[: self.known.count] = self.core.keys.find(self.known.column(), self.key)
        return found

    # -- about itself -------------------------------------------------------------------------------------------------

    def explain(self) -> list[str]:
        """What is kept of frames, and why, in lines."""
        ended = 0 if self.frames is None else self.frames.ids.size
        return [
            f"{self.core.numbers.size:,} open, {ended:,} wait to be filled from {self.other}",
            f"{self.kept:,} of its events are kept, as frames may reach back to them",
        ]

    @property
    def kept(self) -> int:
        return self.core.waiting.count + (0 if self.messages is None else self.messages.ts.size)

    @property
    def bytes(self) -> int:
        own = [*(self.messages or ()), *(self.frames or ()), self.latest]
        return super().bytes + sum(each.nbytes for each in own)

    def state(self) -> State:
        header, arrays = super().state()
        header |= {"complete": self.complete}
        arrays |= {
            "latest": self.latest,
            **{f"known/{name}": each for name, each in keys_to_arrays(self.known).items()},
        }
        if self.messages is not None:
            arrays |= {
                "messages": table_to_array(self.messages.table),
                "ts": self.messages.ts,
                "ids": self.messages.ids,
            }
        if self.frames is not None:
            spans = dict(zip(("of", "first", "last"), self.frames[1:], strict=True))
            arrays |= {"frames": table_to_array(self.frames.table), **spans}
        types = {} if self._clock is None else {"ts": self._clock.type}
        types |= {} if self.known is None else {"key": self.known.type}
        arrays["types"] = table_to_array(pa.schema(types).empty_table())
        return header, arrays

    def restore(self, state: State) -> None:
        super().restore(state)
        header, arrays = state
        self.complete, self.latest = header["complete"], arrays["latest"].copy()
        types = table_from_array(arrays["types"]).schema
        self._clock = Clock(types.field("ts").type) if "ts" in types.names else None
        if "key" in types.names:
            own = {name.removeprefix("known/"): each for name, each in arrays.items() if name.startswith("known/")}
            self.known = keys_from_arrays(types.field("key").type, own)
        if "messages" in arrays:
            self.messages = TimedRows(table_from_array(arrays["messages"]), arrays["ts"], arrays["ids"])
        if "frames" in arrays:
            self.frames = EndedFrames(
                table_from_array(arrays["frames"]), *(arrays[name] for name in ("of", "first", "last"))
            )
