"""A query over frames at work in an engine, whose frames are filled from another stream, by time.

    reports  --> DetectorCore --> frames that have ended -----> wait until messages have got past end + after
    messages --> kept, while a frame to come, or one that waits, may reach back to them -----> a row for each frame

The clock is that of the slower one. Of a key whose messages come in order, a later one says that those before it have
come; of all keys, the watermark or `engine.advance` does. Where the stream is the one that frames are found in, its
events are the messages, too: these come in order always, as they have waited for the watermark. Edges may be moved, so
that frames overlap and an event is in several. What is kept of messages is in frames/continuous/messages.py.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from frames.continuous.messages import Messages, MessageSpans
from frames.continuous.running import OURS, RunningFrames
from frames.finding.intake import NO_KEY, NO_TIME, check_key_type, key_ids
from frames.scans.scan import extended
from frames.state import keys_from_arrays, keys_to_arrays
from frames.tables import frames_table, margins, noted_extent, shifted
from kernels.frames.framing import (
    BEGIN,
    COUNT,
    END,
    GAP_END,
    GAP_ROWS,
    GAP_SLOT,
    GAP_START,
    KEY,
    LAST,
    ROWS,
    SLOT,
    START,
)
from kernels.operators.numbers import EARLIEST
from swag.durable.state import State, nested, own_arrays, part, table_from_array, table_to_array
from swag.errors import BadType, OutOfOrder, SwagError
from swag.live import intake
from swag.live.arena import Batch
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


MANY_KEYS = 1024  # fewer are remembered for ever


class CheckedMessages(NamedTuple):
    """Messages that can be taken, and the keys by whose numbers they go. ordered: those of a key come in order."""

    rows: TimedRows
    keys: KeyTable | None
    ordered: bool


class EndedFrames(NamedTuple):
    """Frames that have ended: as rows, their keys, and from when to when events lie in them."""

    table: pa.Table
    ids: np.ndarray
    first: np.ndarray
    last: np.ndarray

    def known_by(self, ids: np.ndarray) -> "EndedFrames":
        """The same frames, their keys by other numbers."""
        return EndedFrames(self.table, ids, self.first, self.last)

    def some(self, which: np.ndarray) -> "EndedFrames":
        return EndedFrames(self.table.filter(pa.array(which)), self.ids[which], self.first[which], self.last[which])


class FilledFrames(RunningFrames):
    """As its base, with two streams. It also owns the frames that have ended and wait to be filled (`frames`), what is
    kept of messages (`messages`), the keys of both (`known`), of each key whose messages come in order the time of the
    latest (`latest`), and up to when all messages have come (`complete`), and all events (`closed`).
    """

    def __init__(self, query: "FrameQuery", ts: str, by: tuple[str, ...]) -> None:
        super().__init__(query, ts, by)
        self.reading = Reading(query.filling, ts, *by)
        self.known: KeyTable | None = None
        self.frames: EndedFrames | None = None
        self.messages = Messages(query.asked, query.spec.in_runs)
        self.latest = NO_TIME
        self.complete = self.closed = EARLIEST
        self._clock: Clock | None = None
        self._left = self._keys_left = 0  # messages and keys that were there when they were last looked through

    def _begin(self) -> None:
        super()._begin()
        self.core.follower = None  # of its events nothing is said

    # -- the stream that frames are found in --------------------------------------------------------------------------

    def check(self, table: pa.Table, clock: Clock) -> None:
        self._check_clock(clock)
        check_key_type(table, self.by, self.known)
        if self.query.fills_itself:
            super().check(table, clock)
        else:
            self._check_spec(table, clock)

    def take(
        self, rows: TimedRows, keys: KeyTable | None, clock: Clock, by_key: Batch | None = None
    ) -> tuple[pa.Table | None, SwagError | None]:
        found = super().take(rows, keys, clock, by_key)
        if self.query.fills_itself:
            self._add(self._read(rows.table, self.known))
        return found

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
        first, last, there = self._moved(
            instants(table.column("start"), "start"), instants(table.column("end"), "end"), clock
        )
        first, last = np.where(there, first, 1), np.where(there, last, 0)
        new = EndedFrames(table, ids if ids.size else np.zeros(first.size, ids.dtype), first, last)
        if self.frames is not None:
            tables = pa.concat_tables([self.frames.table, table])
            new = EndedFrames(tables, *(np.concatenate(each) for each in zip(self.frames[1:], new[1:], strict=True)))
        self.frames = new
        return None, None

    def _moved(self, starts: np.ndarray, ends: np.ndarray, clock: Clock) -> tuple[np.ndarray, ...]:
        """From when to when messages lie in frames, both inside; and whether that is not out of all time."""
        early, late = margins(self.query.before, self.query.after, clock.unit)
        first, below = shifted(starts, -early)
        last, above = shifted(ends, late - (self.query.spec.extent == "open"))  # then the end itself is outside
        return first, last, (below <= 0) & (above >= 0)

    def decide(self, closed: int) -> tuple[pa.Table | None, SwagError | None]:
        super().decide(closed)  # what time ends is to be filled, too
        self.closed = max(self.closed, closed)
        if self.query.fills_itself:
            self.complete = max(self.complete, closed)
        found: tuple[pa.Table | None, SwagError | None] = None, None
        if self.frames is not None:
            self._make_room()
            done = (self.latest[self.frames.ids] > self.frames.last) | (self.frames.last <= self.complete)
            if done.any():
                ready = self.frames.some(done)
                self.frames = None if done.all() else self.frames.some(~done)
                found = self._answered(ready)
        if self.messages.count > 2 * self._left + SMALL:
            self.let_go()
        self.forget_keys(MANY_KEYS)
        return found

    @property
    def first_to_fill(self) -> int | None:
        """Up to when messages must have come for the first frame that waits for some."""
        return None if self.frames is None else int(self.frames.last.min())

    def _answered(self, frames: EndedFrames) -> tuple[pa.Table | None, SwagError | None]:
        """Frames whose messages are all there, each with what is said of it; and what is wrong with those that lack."""
        try:
            return self._rows_of(frames), None
        except SwagError as why:
            fine = []
            for row in np.eye(frames.ids.size, dtype=bool) if frames.ids.size > 1 else ():
                try:
                    fine.append(self._rows_of(frames.some(row)))
                except SwagError:
                    continue
            return (pa.concat_tables(fine) if fine else None), why

    def _rows_of(self, frames: EndedFrames) -> pa.Table:
        said = self.messages.answers(MessageSpans(instants(frames.table.column("start"), "start"), *frames[1:]))
        if said is None:
            return self._filled(frames.table)
        return self.query.with_answers(frames.table, *self.query.computed(said))

    def _filled(self, frames: pa.Table) -> pa.Table:
        """The same, of the messages themselves."""
        table = self._nothing_came() if self.messages.rows is None else self.messages.rows.table
        table = table if frames.num_rows else table.slice(0, 0)
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

    def check_other(self, table: pa.Table, clock: Clock, keys: KeyTable | None, ordered: bool) -> CheckedMessages:
        self._check_clock(clock)
        own = intake.read(table, self.reading, keep=True)
        types = {name: decoded_type(own.schema.field(name).type) for name in self._aggregated}
        for name, kind in types.items():
            rows = self.messages.rows
            known = kind if rows is None else decoded_type(rows.table.schema.field(name).type)
            if kind != known and not pa.types.is_null(kind) and not pa.types.is_null(known):
                raise BadType(f'column "{name}" is {kind}, but has been {known} so far.', f"cast it to {known}")
        for aggregate, where in self._asked:
            check_columns(aggregate, types)
            if where is not None:
                holds(where, own)
        check_key_type(own, self.by, self.known or keys)
        new = self._read(own, self.known)
        if ordered:
            self._check_order(new.rows, clock)
        return new._replace(ordered=ordered)

    def _read(self, table: pa.Table, known: KeyTable | None) -> CheckedMessages:
        """Messages, their keys numbered as those of frames are."""
        key = [] if self.key is None or self.key in self.reading.columns else [self.key]
        own = joined(table, self.by).select([*self.reading.columns, *key])
        times = instants(column(own, self.ts, "ts is"), self.ts)
        keys, ids = key_ids(own, self.key, known)
        rows = TimedRows(own, times, ids if ids.size else np.zeros(times.size, NO_KEY.dtype))
        return CheckedMessages(rows, keys, ordered=True)

    def _make_room(self) -> None:
        self.latest = extended(self.latest, 1 if self.known is None else self.known.count, EARLIEST)

    def _check_order(self, rows: TimedRows, clock: Clock) -> None:
        """Messages of a key come in order, and none that was promised not to come."""
        times, ids, order = rows.ts, rows.ids, np.argsort(rows.ids, kind="stable")
        latest = extended(self.latest, int(ids.max(initial=-1)) + 1, EARLIEST)
        before = np.concatenate([[EARLIEST], times[order][:-1]])
        first = np.concatenate([[True], ids[order][1:] != ids[order][:-1]])
        before = np.where(first, latest[ids[order]], before)
        early = np.flatnonzero((times[order] < before) | (times[order] <= self.complete))
        if early.size:
            row = int(order[early].min())
            raise OutOfOrder(
                f'event {row} of "{self.query.other}" has ts {clock.show(int(times[row]))}, and later ones of its key '
                "have come, or were promised to be the next.",
                "sort the batch by ts, or Engine(lateness=…)",
            )

    def take_other(self, came: CheckedMessages, clock: Clock) -> None:
        self._clock = clock
        self._add(came)

    def close_other(self, closed: int) -> None:
        self.complete = max(self.complete, closed)

    def _add(self, new: CheckedMessages) -> None:
        """If they are not in order, of a key something may come that is before its latest message: `complete` alone
        says what will not."""
        self.known = new.keys
        self._make_room()
        if new.ordered:
            np.maximum.at(self.latest, new.rows.ids, new.rows.ts)
        self.messages.add(new.rows)

    # -- what of it is kept -------------------------------------------------------------------------------------------

    def let_go(self) -> None:
        """Of messages that no frame which waits, is open, or is still to come may reach back to. Those that lie in an
        open frame (or a run that may become one) alone, and that none is to come before, are folded into it."""
        clock = self.core.clock
        if self.messages.count == 0 or clock is None:
            return
        self._make_room()
        of_core = self._of_core()
        upto, _ = shifted(self._begins(of_core), -margins(self.query.before, self.query.after, clock.unit)[0])
        if self.frames is not None:
            np.minimum.at(upto, self.frames.ids, self.frames.first)
        open_ = self._open_spans(of_core, clock)
        alone = (np.bincount(open_.keys)[open_.keys] == 1) & (self.messages.partials is not None)
        np.minimum.at(upto, open_.keys[~alone], open_.first[~alone])
        open_ = open_.some(alone)
        come = np.maximum(self.complete, self.latest[open_.keys] - (self.latest[open_.keys] > EARLIEST))
        inside, _ = shifted(np.minimum(come, open_.last), 1)
        upto[open_.keys] = np.minimum(upto[open_.keys], np.maximum(inside, open_.first))
        self.messages.let_go(upto, open_)
        self._left = self.messages.count

    def _begins(self, of_core: np.ndarray) -> np.ndarray:
        """From when on a frame of each key may begin of which nothing has come, or whose end waits for an event."""
        found = np.full(of_core.size, min(self.closed, np.iinfo(np.int64).max - 1) + 1)
        core, keys = self.core, np.flatnonzero(of_core >= 0)
        if core.scan is None:
            return found
        keys = keys[of_core[keys] < core.scan.keyed.shape[0]]
        own = core.scan.keyed[of_core[keys]]
        found[keys] = np.maximum(own[:, LAST], found[keys])
        if core.ends is not None:
            waiting = self._by_known(of_core)[core.ends.keys(core.keys)]
            there = waiting >= 0
            np.minimum.at(found, waiting[there], core.ends.starts()[there])
        return found

    def are_kept(self, table: pa.Table) -> np.ndarray:
        """Of messages that came once, as they were read then: which of them are kept?"""
        return self.messages.are_kept(*self._known_rows(table)[1:])

    def take_again(self, table: pa.Table) -> None:
        """Messages that came once: those that are kept were left out of the state that has been restored."""
        rows = self._known_rows(table)
        self.messages.add(rows.some(np.flatnonzero(self.messages.are_kept(*rows[1:]))))

    def _known_rows(self, table: pa.Table) -> TimedRows:
        ids = np.zeros(table.num_rows, np.int64)
        if self.key is not None and self.known is not None:
            ids = self.known.find(table.column(self.key), self.key)
        return TimedRows(table, instants(table.column(self.ts), self.ts), ids)

    def forget_keys(self, many: int) -> None:
        """Keys of which nothing is kept are forgotten, where there are twice as many as there were after the last time.
        Not those of which messages have come that `complete` does not vouch for: the next one is to be in order."""
        if self.known is None or self.known.count < 2 * max(self._keys_left, many):
            return
        self.let_go()
        of_core = self._of_core()
        needed, there = self.latest > self.complete, of_core >= 0
        needed[there] |= self.needs(self.core.key_count)[of_core[there]]
        needed[[] if self.messages.rows is None else self.messages.rows.ids] = True
        needed[[] if self.frames is None else self.frames.ids] = True
        kept = np.flatnonzero(needed)
        place = np.cumsum(needed) - 1
        if self.frames is not None:
            self.frames = self.frames.known_by(place[self.frames.ids])
        self.known.keep(kept)
        self.messages.renumber(kept)
        self.latest, self._keys_left = self.latest[kept], kept.size

    def _open_spans(self, of_core: np.ndarray, clock: Clock) -> MessageSpans:
        """The frames that are open, and the runs and gaps that may become some, as far as they go by now."""
        if self.core.scan is None:
            return MessageSpans(*[NO_TIME] * 4)
        frames, keyed = self.core.scan.frames, self.core.scan.keyed
        found = [frames[:, [KEY, BEGIN, END]]]
        for slot, rows, ends in ((SLOT, ROWS, [START, LAST]), (GAP_SLOT, GAP_ROWS, [GAP_START, GAP_END])):
            keys = np.flatnonzero((keyed[:, rows] > 0) & ((keyed[:, slot] < 0) | (not self.query.spec.in_runs)))
            found.append(np.column_stack([keys, keyed[keys][:, ends]]))
        numbers, starts, until = np.concatenate(found).T
        keys = self._by_known(of_core)[numbers]
        spans = MessageSpans(starts, keys, *self._moved(starts, until, clock)[:2])
        return spans.some(keys >= 0)

    def _by_known(self, of_core: np.ndarray) -> np.ndarray:
        """The other way round; -1: no message or frame of that key has come."""
        scan = self.core.scan
        found = np.full(max(self.core.key_count, 0 if scan is None else scan.keyed.shape[0]), -1)
        there = np.flatnonzero(of_core >= 0)
        found[of_core[there]] = there
        return found

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
        folded = "; those inside of open frames are kept as partials" * (self.messages.partials is not None)
        return [
            f"{self.core.numbers.size:,} open, {ended:,} wait to be filled from {self.query.fill_from}",
            f"{self.messages.count:,} of its events are kept, as frames may reach back to them{folded}",
        ]

    @property
    def kept(self) -> int:
        return self.core.waiting.count + self.messages.count

    @property
    def bytes(self) -> int:
        own = [*(self.frames or ()), self.latest]
        keys = 0 if self.known is None else self.known.bytes
        return super().bytes + self.messages.bytes + keys + sum(each.nbytes for each in own)

    def state(self, messages: bool = True) -> State:
        """messages=False: without those that are kept, of whoever has them elsewhere (`take_again`)."""
        header, arrays = nested(
            {"complete": self.complete}, {"base": super().state(), "messages": self.messages.state(messages)}
        )
        arrays |= {
            "latest": self.latest,
            **{f"known/{name}": each for name, each in keys_to_arrays(self.known).items()},
        }
        if self.frames is not None:
            spans = dict(zip(("of", "first", "last"), self.frames[1:], strict=True))
            arrays |= {"frames": table_to_array(self.frames.table), **spans}
        types = {} if self._clock is None else {"ts": self._clock.type}
        types |= {} if self.known is None else {"key": self.known.type}
        arrays["types"] = table_to_array(pa.schema(types).empty_table())
        return header, arrays

    def restore(self, state: State) -> None:
        super().restore(part(state, "base"))
        self.messages.restore(part(state, "messages"))
        header, arrays = state
        self.complete, self.latest = header["complete"], arrays["latest"].copy()
        types = table_from_array(arrays["types"]).schema
        self._clock = Clock(types.field("ts").type) if "ts" in types.names else None
        if "key" in types.names:
            self.known = keys_from_arrays(types.field("key").type, own_arrays(arrays, "known"))
        if "frames" in arrays:
            self.frames = EndedFrames(
                table_from_array(arrays["frames"]), *(arrays[name] for name in ("of", "first", "last"))
            )
