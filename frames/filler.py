"""Filling while frames and events arrive: each keeps what the other may still need, and no more.

An event is matched with the frames that are there, and kept as long as a frame to come may hold it; a frame is matched
with the events that are there, and kept as long as events to come may lie in it. Punctuations on either side purge the
other (Maier et al. 2012, section 4.1.2). A fragment is matched and kept like a frame: from where the piece before it
ended (exclusively) to its own end, so pieces hold what their frame holds, and events wait for one punctuation only. A
negative `after` takes as much off the end of every piece: none is known to be the last.

Events are matched by time alone, also those of the stream that the frames were found in: of a frame whose first or last
ts others share, these are handed out too.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from frames.filling import check_free, matches, placed, tagged
from frames.finding.intake import (
    END_OF_TIME,
    NO_KEY,
    NO_TIME,
    START_OF_TIME,
    Punctuations,
    after,
    check_promise,
    is_empty,
    key_ids,
)
from frames.state import key_setting, keys_from_arrays, keys_to_arrays, nested
from frames.tables import FramePieces, Key, is_untyped, key_of, margins, pieces_of, shifted
from swag.arguments import check_name
from swag.durable.state import State, table_from_array, table_to_array
from swag.durable.state import part as part_of
from swag.errors import BadEvents, BadQuery, BadType
from swag.explain import many
from swag.query.as_call import shown
from swag.query.groupings import one_or_several
from swag.tables.columns import Clock, as_table, column, timed
from swag.tables.key_columns import joined, key_name
from swag.tables.keys import KeyTable
from swag.tables.plain import fitted
from swag.tables.times.durations import Duration

NUMBER, KEY, START, END = range(4)  # of an interval; of an open frame: where it begins, and its last piece ended


class Filler:
    """Joins a stream of frames (or fragments) with one of events. A pair comes out once, as soon as both are there.

    >>> import frames as fr
    >>> filler = fr.Filler()
    >>> filler.push_frames({"frame_id": [0], "start": [2], "end": [3], "rows": [2]}).num_rows
    0
    >>> filler.push_events({"ts": [1, 2, 3, 4], "x": [10, 20, 30, 40]}).to_pylist()
    [{'ts': 2, 'x': 20, 'frame_id': 0}, {'ts': 3, 'x': 30, 'frame_id': 0}]

    Owns the intervals of frames that events to come may lie in, the frames of which not all pieces have come, the
    events that a frame to come may hold, and the punctuations of both streams. `state` hands all of it over.
    """

    def __init__(self, *, ts: str = "ts", key: Key = None, before: Duration = 0, after: Duration = 0) -> None:
        check_name(ts, "ts", 'ts="ts"')
        self._by = key_of(key)
        margins(before, after, "ns")  # what is no duration is refused here, not with the first events
        self.ts, self.key, self.before, self.after = ts, one_or_several(self._by), before, after
        self._clock: Clock | None = None
        self._keys: KeyTable | None = None
        self._early = self._late = 0
        self._frames = np.zeros((0, 4), np.int64)
        self._open = np.zeros((0, 4), np.int64)  # frames of which not all pieces have come
        self._table: pa.Table | None = None  # events that a frame to come may hold
        self._instants, self._ids = NO_TIME, NO_KEY
        self._of_events, self._of_frames = Punctuations(), Punctuations()
        self._purged, self._seen = -1, NO_TIME  # all frames up to this one are done; those after it that have come

    def __repr__(self) -> str:
        said = f"{many(self.buffered, 'event')} buffered, {many(self.waiting_frames, 'frame')} waiting"
        key = f", key={shown(self.key)}" * (self.key is not None)
        return f'<fr.Filler ts="{self.ts}"{key}: {said}>'

    @property
    def purged(self) -> int:
        """The largest frame_id such that nothing more comes out for it, nor for any before it; -1: there is none.

        Frames are numbered 0, 1, 2, …: one that has not come holds back those after it, until punctuate_frames says
        that none is still to come.
        """
        seen = self._seen
        waiting = np.isin(seen, np.concatenate([self._frames[:, NUMBER], self._open[:, NUMBER]]))
        done = seen[: int(np.argmax(waiting)) if waiting.any() else seen.size]
        if self._of_frames.instant(self._clock) != END_OF_TIME:
            done = done[done == self._purged + 1 + np.arange(done.size)]
        if done.size:
            self._purged, self._seen = int(done[-1]), seen[done.size :]
        return self._purged

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
        table = as_table(events, keep=True)
        if is_empty(table):
            return self._nothing()
        if self._table is not None:
            table = fitted(table, dict(zip(self._table.column_names, self._table.schema.types, strict=True)))
        check_free(table)
        clock, instants = timed(table, self.ts)
        self._check_clock(clock, f'"{self.ts}"')
        if self._table is not None and table.schema != self._table.schema:
            raise BadType(
                f"the events' columns changed from {self._table.schema.names} or their types.",
                "push tables of one schema",
            )
        check_promise(clock, instants, self._of_events.instant(clock), "event", "punctuate_events later")
        ids = self._key_ids(table)
        self._set_clock(clock)
        found = self._tag(table, instants, ids, self._frames)
        self._keep(table, instants, ids)
        return found

    def push_frames(self, frames: Any) -> pa.Table:
        """Take frames, or fragments (a table with `final`); returns the events that lie in them and are there."""
        table = as_table(frames, keep=True)
        if is_untyped(table):
            return self._nothing()
        clock, pieces = pieces_of(table, self._clock)
        if pieces.half_open and "final" in table.column_names:
            raise BadQuery(
                'pieces of frames with extent="open" do not say where they end.', "fr.Detector(…, fragments=False)"
            )
        self._check_clock(clock, '"start"')
        starts = pieces.starts[pieces.there]
        check_promise(clock, starts, self._of_frames.instant(clock), "frame", "punctuate_frames later")
        ids = np.zeros(pieces.numbers.size, np.int64)
        for name in self._by:
            if column(table, name, "frames are found per").null_count:
                raise BadEvents(f'a frame has no key: "{name}" is null.', "drop such frames")
        if self._by:
            ids = self._key_ids(table)
        self._set_clock(clock)
        self._seen = np.union1d(self._seen, pieces.numbers[pieces.numbers > self._purged])
        intervals = self._intervals(pieces, ids)
        there = pa.table({}) if self._table is None else self._table
        found = self._tag(there, self._instants, self._ids, intervals)
        self._frames = self._awaited(np.concatenate([self._frames, intervals]))
        return found

    def _key_ids(self, table: pa.Table) -> np.ndarray:
        """Those of its rows; keys that are new are known from now on."""
        self._keys, ids = key_ids(joined(table, self._by), key_name(self._by), self._keys)
        return ids

    def punctuate_events(self, t: Any) -> pa.Table:
        """No event with ts <= t is still to come: frames that end by then are done."""
        self._of_events.add(t, self._clock)
        self._frames = self._awaited(self._frames)
        return self._nothing()

    def punctuate_frames(self, t: Any) -> pa.Table:
        """No frame (or piece) with start <= t is still to come: events that only such a one could hold are let go."""
        self._of_frames.add(t, self._clock)
        if self._table is not None:
            self._purge()
        return self._nothing()

    def state(self) -> State:
        """All that it knows: a header of plain JSON, and arrays. A filler of the same arguments can go on with it."""
        header, arrays = nested({"of_events": self._of_events, "of_frames": self._of_frames})
        arrays |= {"frames": self._frames, "open": self._open, "instants": self._instants, "ids": self._ids}
        arrays |= {"seen": self._seen, "purged": np.array([self._purged])}
        if self._table is not None:
            arrays["table"] = table_to_array(self._table)
        if self._clock is not None:
            types = {"ts": self._clock.type} | ({} if self._keys is None else {"key": self._keys.type})
            arrays["types"] = table_to_array(pa.schema(types).empty_table())
        return {**header, "of": self._settings()}, arrays | keys_to_arrays(self._keys)

    def restore(self, state: State) -> None:
        """Go on from what a filler of the same arguments knew; what this one knew is forgotten."""
        header, arrays = state
        if header["of"] != self._settings():
            raise BadQuery(f"the state is that of another filler: {header['of']}.", "fr.Filler with the same arguments")
        types = table_from_array(arrays["types"]).schema if "types" in arrays else pa.schema([])
        self._clock, self._keys = None, None
        if "ts" in types.names:
            self._set_clock(Clock(types.field("ts").type))
        if "key" in types.names:
            self._keys = keys_from_arrays(types.field("key").type, arrays)
        self._table = table_from_array(arrays["table"]) if "table" in arrays else None
        self._frames, self._open = arrays["frames"], arrays["open"]
        self._instants, self._ids = arrays["instants"], arrays["ids"]
        self._purged, self._seen = int(arrays.get("purged", [-1])[0]), arrays.get("seen", NO_TIME)
        self._of_events.restore(part_of(state, "of_events"))
        self._of_frames.restore(part_of(state, "of_frames"))

    def _settings(self) -> dict[str, Any]:
        """What must be the same for a state to go on."""
        return {"ts": self.ts, "key": key_setting(self._by), "before": repr(self.before), "after": repr(self.after)}

    def _awaited(self, intervals: np.ndarray) -> np.ndarray:
        """Those that events to come may lie in."""
        return intervals[after(intervals[:, END], self._of_events.instant(self._clock))]

    def _intervals(self, pieces: FramePieces, ids: np.ndarray) -> np.ndarray:
        """The interval each piece holds: first pieces begin `before` early, final ones end `after` late."""
        order = np.argsort(pieces.numbers, kind="stable")
        numbers, there, final = pieces.numbers[order], pieces.there[order], pieces.final[order]
        ends, ids = pieces.ends[order], ids[order]
        first = np.ones(numbers.size, bool)
        first[1:] = numbers[1:] != numbers[:-1]
        start, before, begun = self._begun(numbers, first)
        start = np.where(begun, start, pieces.starts[order])
        start = start[np.maximum.accumulate(np.where(first, np.arange(first.size), 0))]
        before = np.where(first, before, np.roll(ends, 1))
        begun |= ~first
        ends = np.where(there, ends, before)  # a frame's last piece may be empty: it ends where the one before it did
        lo, none = self._rest(start, before, begun)
        hi, cut = shifted(ends, min(self._late, 0))
        late, _ = shifted(ends, max(self._late, 0))
        hi = np.where(final & (self._late > 0), late, hi)
        self._note_open(np.stack([numbers, ids, start, ends], axis=1), final)
        return np.stack([numbers, ids, lo, hi], axis=1)[(begun | there) & ~none & (cut == 0) & (lo <= hi)]

    def _begun(self, numbers: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of frames of which a piece has come before: where they start, where that piece ended; and which are."""
        at = np.searchsorted(self._open[:, NUMBER], numbers)
        known = first & (at < self._open.shape[0])
        known[known] = self._open[at[known], NUMBER] == numbers[known]
        start, before = np.zeros(numbers.size, np.int64), np.zeros(numbers.size, np.int64)
        start[known], before[known] = self._open[at[known], START], self._open[at[known], END]
        return start, before, known

    def _rest(self, starts: np.ndarray, ends: np.ndarray, begun: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """From when on the rest of a frame holds events, and where none is left. begun: pieces up to `ends` are out."""
        begin, never = shifted(starts, -self._early)
        handed, cut = shifted(ends, min(self._late, 0))
        behind, none = shifted(handed, 1)
        behind = np.where(cut < 0, START_OF_TIME, behind)
        return np.where(begun, np.maximum(behind, begin), begin), (never > 0) | (begun & (none > 0))

    def _note_open(self, pieces: np.ndarray, final: np.ndarray) -> None:
        last = np.ones(final.size, bool)
        last[:-1] = pieces[1:, NUMBER] != pieces[:-1, NUMBER]
        others = self._open[~np.isin(self._open[:, NUMBER], pieces[:, NUMBER])]
        merged = np.concatenate([others, pieces[last & ~final]])
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
        upto = self._of_frames.instant(self._clock)
        early = 0 if upto == END_OF_TIME else self._early  # then no frame comes that could reach back
        keep = after(self._instants, None if upto is None else upto - early)
        if self._open.shape[0]:
            begin, none = self._rest(self._open[:, START], self._open[:, END], np.ones(self._open.shape[0], bool))
            rest = np.full(1 if self._keys is None else max(self._keys.count, 1), END_OF_TIME)
            some = np.zeros(rest.size, bool)
            some[self._open[~none, KEY]] = True
            np.minimum.at(rest, self._open[~none, KEY], begin[~none])
            ids = self._ids if self._ids.size else np.zeros(1, np.int64)
            keep |= some[ids] & (self._instants >= rest[ids])
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

    def _nothing(self, table: pa.Table | None = None) -> pa.Table:
        """No rows, with the columns of the events where they are known."""
        known = self._table if table is None or table.num_columns == 0 else table
        empty = pa.table({}) if known is None else known.schema.empty_table()
        return empty.append_column("frame_id", pa.array([], pa.int64()))
