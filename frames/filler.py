"""Filling while frames and events arrive: each keeps what the other may still need, and no more.

An event is matched with the frames that are there, and kept as long as a frame to come may hold it; a frame is matched
with the events that are there, and kept as long as events to come may lie in it. Punctuations on either side purge the
other (Maier et al. 2012, section 4.1.2). A fragment is matched and kept like a frame: from where the piece before it
ended (exclusively) to its own end, so pieces hold what their frame holds, and events wait for one punctuation only.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from frames.filling import check_free, matches, placed, tagged
from frames.intake import NO_KEY, NO_TIME, key_ids, timed
from frames.tables import Pieces, check_key, margins, pieces_of
from swag.columns import Clock, as_table, column
from swag.errors import BadEvents, BadType, OutOfOrder
from swag.keys import KeyTable
from swag.windows import Duration

LONG_AGO, NEVER = np.iinfo(np.int64).min // 2, np.iinfo(np.int64).max // 2
NUMBER, KEY, START, END = range(4)  # of a stored interval; of an open frame: its number, key and (END) last piece's end


class Filler:
    """Joins a stream of frames (or fragments) with one of events. A pair comes out once, as soon as both are there."""

    def __init__(self, *, ts: str = "ts", key: str | None = None, before: Duration = 0, after: Duration = 0) -> None:
        check_key(key)
        margins(before, after, "ns")  # what is no duration is refused here, not with the first events
        self.ts, self.key, self.before, self.after = ts, key, before, after
        self._clock: Clock | None = None
        self._keys: KeyTable | None = None
        self._early = self._late = 0
        self._frames = np.zeros((0, 4), np.int64)
        self._open = np.zeros((0, 4), np.int64)  # frames of which not all pieces have come
        self._table: pa.Table | None = None  # events that a frame to come may hold
        self._instants, self._ids = NO_TIME, NO_KEY
        self._events_upto: Any = None
        self._frames_upto: Any = None

    @property
    def buffered(self) -> int:
        """Events kept because a frame that is still to come may hold them."""
        return int(self._instants.size)

    @property
    def waiting_frames(self) -> int:
        """Frames kept because events that are still to come may lie in them."""
        return int(self._frames.shape[0])

    def push_events(self, events: Any) -> pa.Table:
        """Take events, in any order; returns those that lie in frames that are there."""
        table = as_table(events)
        check_free(table)
        clock, instants = timed(table, self.ts)
        self._check_clock(clock, f'"{self.ts}"')
        if self._table is not None and table.schema != self._table.schema:
            raise BadType(
                f"the events' columns changed from {self._table.schema.names} or their types.",
                "push tables of one schema",
            )
        self._check_promise(clock, instants, self._events_upto, "event")
        self._keys, ids = key_ids(table, self.key, self._keys)
        self._set_clock(clock)
        found = self._tag(table, instants, ids, self._frames)
        self._keep(table, instants, ids)
        return found

    def push_frames(self, frames: Any) -> pa.Table:
        """Take frames, or fragments (a table with `final`); returns the events that lie in them and are there."""
        table = as_table(frames)
        clock, pieces = pieces_of(table, self._clock)
        self._check_promise(clock, pieces.starts[pieces.there], self._frames_upto, "frame")
        ids = np.zeros(pieces.numbers.size, np.int64)
        if self.key is not None:
            array = column(table, self.key, "frames are found per")
            if array.null_count:
                raise BadEvents(f'a frame has no key: "{self.key}" is null.', "drop such frames")
            self._keys, ids = key_ids(table, self.key, self._keys)
        self._set_clock(clock)
        intervals = self._intervals(pieces, ids)
        there = pa.table({}) if self._table is None else self._table
        found = self._tag(there, self._instants, self._ids, intervals)
        upto = self._instant(self._events_upto)
        self._frames = np.concatenate([self._frames, intervals[intervals[:, END] > upto]])
        return found

    def punctuate_events(self, t: Any) -> pa.Table:
        """No event with ts <= t is still to come: frames that end by then are done."""
        self._events_upto = self._later(self._events_upto, t)
        if self._clock is not None:
            self._frames = self._frames[self._frames[:, END] > self._instant(self._events_upto)]
        return self._nothing()

    def punctuate_frames(self, t: Any) -> pa.Table:
        """No frame (or piece) with start <= t is still to come: events that only such a one could hold are let go."""
        self._frames_upto = self._later(self._frames_upto, t)
        if self._table is not None:
            self._purge()
        return self._nothing()

    def _intervals(self, pieces: Pieces, ids: np.ndarray) -> np.ndarray:
        """The interval each piece holds: first pieces begin `before` early, final ones end `after` late."""
        order = np.argsort(pieces.numbers, kind="stable")
        numbers, there, final = pieces.numbers[order], pieces.there[order], pieces.final[order]
        starts, ends, ids = pieces.starts[order], pieces.ends[order], ids[order]
        at = np.searchsorted(self._open[:, NUMBER], numbers)
        known = at < self._open.shape[0]
        known[known] = self._open[at[known], NUMBER] == numbers[known]
        first = np.ones(numbers.size, bool)
        first[1:] = numbers[1:] != numbers[:-1]
        # An empty piece ends where the one before it did; only a frame's last piece is empty.
        before = np.where(
            first,
            np.where(known, _at(self._open[:, END], at), LONG_AGO),
            np.concatenate([[LONG_AGO], ends[:-1]])[: first.size],
        )
        begun = ~first | known
        ends = np.where(there, ends, before)
        lo = np.where(begun, before + 1, np.where(there, starts - self._early, 1))
        hi = np.where(begun | there, ends + np.where(final, self._late, 0), 0)
        self._note_open(numbers, ids, ends, final)
        intervals = np.stack([numbers, ids, lo, hi], axis=1)
        return intervals[lo <= hi]

    def _note_open(self, numbers: np.ndarray, ids: np.ndarray, ends: np.ndarray, final: np.ndarray) -> None:
        last = np.ones(numbers.size, bool)
        last[:-1] = numbers[1:] != numbers[:-1]
        others = self._open[~np.isin(self._open[:, NUMBER], numbers)]
        still = last & ~final
        more = np.stack([numbers[still], ids[still], ends[still], ends[still]], axis=1)
        merged = np.concatenate([others, more])
        self._open = merged[np.argsort(merged[:, NUMBER], kind="stable")]

    def _tag(self, table: pa.Table, instants: np.ndarray, ids: np.ndarray, intervals: np.ndarray) -> pa.Table:
        if table.num_columns == 0 or not intervals.shape[0] or not instants.size:
            return self._nothing(table)
        count = 1 if self._keys is None else self._keys.count
        row, frame = matches(instants, ids, placed(intervals[:, KEY], count, intervals[:, START], intervals[:, END]))
        return tagged(table, row, intervals[frame, NUMBER])

    def _keep(self, table: pa.Table, instants: np.ndarray, ids: np.ndarray) -> None:
        self._table = table if self._table is None else pa.concat_tables([self._table, table])
        self._instants, self._ids = np.concatenate([self._instants, instants]), np.concatenate([self._ids, ids])
        self._purge()

    def _purge(self) -> None:
        """Keep an event if a frame that starts later may reach back to it, or the rest of an open frame may hold it."""
        assert self._table is not None
        last = np.full(1 if self._keys is None else max(self._keys.count, 1), NEVER)
        np.minimum.at(last, self._open[:, KEY], self._open[:, END])
        own = last[self._ids] if self._ids.size else last[0]
        keep = (self._instants > self._instant(self._frames_upto) - self._early) | (self._instants > own)
        if not keep.all():
            self._table = self._table.filter(pa.array(keep))
            self._instants = self._instants[keep]
            self._ids = self._ids[keep] if self._ids.size else self._ids

    def _set_clock(self, clock: Clock) -> None:
        if self._clock is None:
            self._early, self._late = margins(self.before, self.after, clock.unit)
            self._clock = clock

    def _check_clock(self, clock: Clock, what: str) -> None:
        if self._clock is not None and clock != self._clock:
            raise BadType(
                f"{what} is {clock.type}, but has been {self._clock.type} so far.", f"cast it to {self._clock.type}"
            )
        margins(self.before, self.after, clock.unit)

    def _check_promise(self, clock: Clock, instants: np.ndarray, upto: Any, what: str) -> None:
        if upto is None or not instants.size or int(instants.min()) > clock.instant(upto, "punctuation"):
            return
        row = int(np.argmin(instants))
        raise OutOfOrder(
            f"{what} at {clock.show(int(instants[row]))} comes after a punctuation that promised none up to {upto}.",
            f"punctuate_{what}s later",
        )

    def _instant(self, upto: Any) -> int:
        return LONG_AGO if upto is None or self._clock is None else self._clock.instant(upto, "punctuation")

    def _later(self, known: Any, t: Any) -> Any:
        if self._clock is None:
            return t
        instant = self._clock.instant(t, "t")
        return instant if known is None else max(instant, self._clock.instant(known, "punctuation"))

    def _nothing(self, table: pa.Table | None = None) -> pa.Table:
        """No rows, with the columns of the events where they are known."""
        known = self._table if table is None or table.num_columns == 0 else table
        empty = pa.table({}) if known is None else known.schema.empty_table()
        return empty.append_column("frame_id", pa.array([], pa.int64()))


def _at(array: np.ndarray, index: np.ndarray) -> np.ndarray:
    """array[index] where that is inside, anything elsewhere."""
    return array[np.minimum(index, array.size - 1)] if array.size else np.zeros(index.size, np.int64)
