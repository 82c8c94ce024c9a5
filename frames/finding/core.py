"""Detection while events arrive, without its surroundings: what a Detector and the shards of a Spark stream both own.

Events wait until a punctuation promises that nothing older comes; then they leave in order of ts and are taken by the
scan of their spec, whose memory of every key is all that is kept of them. A frame has a number from when it is certain;
it comes out when it ends, or piece by piece.
"""

import numpy as np
import pyarrow as pa

from frames.finding.as_it_was import AsItWas
from frames.finding.follower import Closed, FrameFollower
from frames.finding.intake import ID, NO_KEY, NO_TIME, Punctuations, check_promise, key_ids, with_read
from frames.finding.measures import MatchEvents
from frames.finding.open_ends import OpenEnds, next_instants
from frames.finding.quantiles import FrameEvents, is_quantile
from frames.finding.ties import Ties
from frames.scans.kinds import SCANS
from frames.scans.scan import Scan
from frames.specs import Pattern, Spec
from frames.state import keys_from_arrays, keys_to_arrays, nested
from frames.tables import frames_table
from kernels.frames import framing
from kernels.frames.framing import AT, BEGIN, COUNT, END, GAP, KEY, LEAD, OPEN, OVER, ROWS, SENT, SLOT, START
from kernels.operators.numbers import EARLIEST
from swag.durable.state import State, table_from_array, table_to_array
from swag.durable.state import part as part_of
from swag.errors import BadType, SwagError
from swag.tables.columns import Clock, Field, column, decoded_type, timed
from swag.tables.keys import KeyTable
from swag.tables.plain import are_other_decimals, as_known
from swag.tables.waiting import TimedRows, Waiting

SKIP = " skip"  # beside frames that wait for their end: see frames/finding/ties.py


NOTHING_CLOSED = Closed(EARLIEST, EARLIEST)
LATER = "punctuate later, or drop late events before pushing"


class DetectorCore:
    """Finds frames in events that arrive. May be asked to take events, to advance, and for its state.

    Owns, from the first events on, the type of ts (`clock`), that of the columns (`schema`), the key table (`keys`) and
    the scan (`scan`, with what it remembers of every key); the events that wait (`waiting`); the numbers of the open
    frames by slot (`numbers`), the next one (`next`), and where the earliest piece begins that could have been reported
    but is held back (`held`); the latest punctuation (`upto`), or those before there was a type of ts (`said`). events:
    of open frames, where a quantile is read off them; ties: where skips are asked for (frames/finding/ties.py);
    of_keys: of keys that are further than all together, their latest punctuation. follower: who is told of every batch.
    ends: rows that wait for where their frame ends; who has a follower asks for them with `settled`. ended: of the
    frames that ended last, their numbers, and when they did. closed: the keys whose runs time ended last. forgiving: do
    frames of which nothing can be said leave without a word? lost: then, why the last of them did.

    Its state as a whole is handed over by `state` and `restore`, that of some keys by frames/finding/key_memory.py.
    """

    def __init__(self, spec: Spec, ts: str, key: str | None, fragments: bool) -> None:
        self.spec, self.ts, self.key, self.fragments = spec, ts, key, fragments
        self.columns = list(dict.fromkeys(spec.columns))
        self.clock: Clock | None = None
        self.schema: pa.Schema | None = None
        self.keys: KeyTable | None = None
        self.scan: Scan | None = None
        self.waiting = Waiting()
        self.events = (
            MatchEvents(spec) if isinstance(spec, Pattern) else FrameEvents(spec) if is_quantile(spec) else None
        )
        self.ties: Ties | None = None
        self.ends = OpenEnds(key) if spec.extent == "open" and not spec.scans_ends else None
        self.follower: FrameFollower | None = None
        self.ended, self.closed = (NO_TIME, NO_TIME), NO_KEY
        self.numbers, self.next = np.zeros(0, np.int64), 0
        self.held: int | None = None
        self.forgiving = False
        self.lost: SwagError | None = None
        self.upto: int | None = None
        self.of_keys: dict[int, int] = {}
        self.said = Punctuations()

    @property
    def key_count(self) -> int:
        """How many keys there are; without a key column there is one."""
        return 1 if self.keys is None else max(self.keys.count, 1)

    def take(self, events: pa.Table) -> tuple[TimedRows, dict[str, Field]]:
        """Events in any order, none at or before the latest punctuation, which wait from now on. All or nothing.

        Returns them, and the columns that the spec reads as kernels want them.
        """
        clock, instants = timed(events, self.ts)
        for name in self.columns:
            events = events if name.isidentifier() else with_read(self.spec, events)
            column(events, name, f"{type(self.spec).__name__} reads")
        wanted = events.select(self.columns)
        wanted, scan, fields = self.check(wanted, clock)
        upto = self.said.instant(clock) if self.clock is None else self.upto
        if upto is not None:
            check_promise(clock, instants, upto, "event", LATER)
        keys, ids = key_ids(events, self.key, self.keys)
        if self.of_keys:
            self._check_promises(clock, instants, ids)
        self.waiting.add(wanted, instants, ids)
        if scan.looks_ahead:
            scan.begin(fields)
        self.clock, self.schema, self.keys, self.upto, self.scan = clock, wanted.schema, keys, upto, scan
        return TimedRows(wanted, instants, ids), fields

    def _check_promises(self, clock: Clock, instants: np.ndarray, ids: np.ndarray) -> None:
        """Refuse events of keys that were promised not to come."""
        for key, upto in self.of_keys.items():
            check_promise(clock, instants[ids == key], upto, "of its key, event", LATER)

    def check(self, wanted: pa.Table, clock: Clock) -> tuple[pa.Table, Scan, dict[str, Field]]:
        """Columns of events, found to be of the types that they have had, and such as the scan can read; or raises."""
        if self.clock is not None and not (clock == self.clock and wanted.schema == self.schema):
            wanted = self._typed(wanted, self.clock, clock)
        scan = self.scan or SCANS[type(self.spec)](self.spec, wanted.schema, clock)
        fields = scan.fields(wanted)  # a column of a wrong type, or one that does not fit, is refused now
        if scan.looks_ahead:
            scan.try_out(fields, wanted.num_rows)
        return wanted, scan, fields

    def _typed(self, wanted: pa.Table, known: Clock, clock: Clock) -> pa.Table:
        """Columns of the types of the events before: one without values is of the type that it had; others that are
        not are refused."""
        assert self.schema is not None
        if clock != known:
            raise BadType(f'"{self.ts}" is {clock.type}, but has been {known.type} so far.', f"cast it to {known.type}")
        for i, name in enumerate(self.columns):
            before, values = self.schema.field(name).type, wanted.column(i)
            if values.type != before and values.null_count == len(values):
                wanted = wanted.set_column(i, name, pa.nulls(len(values), before))
            elif pa.types.is_null(before) and before != values.type:
                raise BadType(
                    f'"{name}" is {values.type}, but came without a type of its own so far.',
                    f"cast it to {values.type} from the start",
                )
            elif are_other_decimals(values.type, before):
                wanted = wanted.set_column(i, name, as_known(values, before, f'"{name}"'))
            elif decoded_type(before) != decoded_type(values.type):
                raise BadType(f'"{name}" is {values.type}, but has been {before} so far.', f"cast it to {before}")
        return wanted

    def advance(
        self, upto: int | None, over: bool = False, rows: TimedRows | None = None, closed: Closed = NOTHING_CLOSED
    ) -> pa.Table:
        """No event with ts <= upto is still to come: the frames, or pieces, that this decides. over: none at all is.

        Or it raises, and everything is as it was: an integer does not fit, or a function of a user refuses.

        upto=None: nothing more is promised than was before. rows: these are taken, not those that wait; every key's are
        in order. closed: then, of which keys all events have come.
        """
        assert self.scan is not None
        may_fail = self.scan.may_fail or (self.follower is not None and self.follower.may_fail)
        before = AsItWas(self, self.scan) if may_fail else None
        try:
            return self._advance(upto, over, rows, closed)
        except BaseException:
            if before is not None:
                before.put_back(self)
            raise

    def _advance(self, upto: int | None, over: bool, rows: TimedRows | None, closed: Closed) -> pa.Table:
        assert self.scan is not None and self.schema is not None
        upto = upto if upto is None or self.upto is None else max(upto, self.upto)
        scan, carried = self.scan, self.numbers.size
        if rows is None:
            due = None if upto is None else self.waiting.due(upto)
            rows = due or TimedRows(self.schema.empty_table(), NO_TIME, NO_KEY)
        resume = self._resume(rows) if self.fragments else NO_TIME
        scan.add_keys(self.key_count)
        if self.follower is not None:
            self.follower.begin(rows, scan)
        scanned = self._scan(rows, over)
        if scan.deadlines is not None and not over:
            self._close(rows, closed if upto is None else Closed(upto, upto))
        frames = scan.frames
        certain = frames.shape[0]
        if self.follower is not None:
            self.follower.cut(scan, carried, scanned)
        ties = self.ties and self.ties.among(rows.ts, rows.ids, scan.keyed.shape[0])
        if ties:
            ties.add_frames(frames[carried:], scan.skips)
        if self.events is not None:
            self.events.add(frames[carried:])
        leads = frames[carried:, LEAD].copy()
        frames[carried:, SENT] = 0  # it has been LEAD until now
        if over:
            scan.finish()
            frames = scan.frames
        elif self.follower is None or self.fragments:  # else nobody looks at those that are open
            scan.touch()
        if ties:
            ties.add_frames(frames[certain:], scan.skips)
            ties.add_runs(scan.keyed)
        if self.ends is not None:
            self._put_ends(frames[carried:], np.append(leads, frames[certain:, LEAD]), scanned)
        frames[certain:, SENT] = 0
        found = self._report(frames, self._numbered(frames, carried, certain), resume)
        if upto is not None:
            self.upto = upto
            self.waiting.let_go(upto)
            if self.of_keys:
                self.of_keys = {key: later for key, later in self.of_keys.items() if later > upto}
        return found if self.follower is not None or self.ends is None else self.settled(found, rows, over)

    def _close(self, rows: TimedRows, closed: Closed) -> None:
        """Runs are over that no event can belong to any more, though none has come that says so."""
        assert self.scan is not None and self.scan.deadlines is not None
        ids = rows.ids.astype(ID, copy=False) if rows.ids.size else np.zeros(min(rows.ts.size, 1), ID)
        if closed.key is not None:
            ids = np.append(ids, ID(closed.key))
        self.closed = self.scan.deadlines.over(self.scan.keyed, ids, closed.until, closed.upto)
        if self.closed.size:
            if self.follower is not None:
                self.follower.join(self.closed, self.scan)
            self.scan.close(self.closed)

    def settled(self, found: pa.Table, rows: TimedRows, over: bool = False) -> pa.Table:
        """Of rows of frames that came out with these events, and of those that waited, the ones whose end is known."""
        if self.ends is None or self.clock is None:
            return found
        if self.ties is not None:
            found = found.append_column(SKIP, pa.array(self.ties.reported))
        found = self.ends.settled(found, rows, self.keys, self.clock, over)
        if self.ties is not None:
            self.ties.reported = np.asarray(found.column(SKIP))
            found = found.drop_columns([SKIP])
        return found

    def _put_ends(self, frames: np.ndarray, leads: np.ndarray, scanned: TimedRows) -> None:
        """Frames end with the next event of their key; or they wait for that."""
        if not frames.size:
            return
        if isinstance(self.events, MatchEvents) and self.events.rows is not None:
            scanned = self.events.rows
        ends, there = next_instants(frames[:, : AT + 1].T, leads, scanned)
        frames[:, END], frames[:, OPEN] = np.where(there, ends, frames[:, END]), np.where(there, 0, OVER)

    def advance_key(self, key: pa.Array, upto: int) -> pa.Table:
        """The same of one key, of those that come later, too."""
        assert self.schema is not None and self.keys is not None and self.key is not None
        (number,) = self.keys.encode(key, self.key)
        mine, rows = self.waiting.rows, TimedRows(self.schema.empty_table(), NO_TIME, NO_KEY)
        due = (mine.ids == number) & (mine.ts <= upto)
        chosen = np.flatnonzero(due)
        if chosen.size:
            rows = mine.some(chosen[np.argsort(mine.ts[chosen], kind="stable")])
        found = self.advance(None, rows=rows, closed=Closed(upto, EARLIEST, int(number)))
        if chosen.size:
            rest, self.waiting = mine.some(np.flatnonzero(~due)), Waiting()
            self.waiting.add(*rest)
        if self.upto is None or upto > self.upto:
            self.of_keys[int(number)] = max(upto, self.of_keys.get(int(number), upto))
        return found

    def _scan(self, rows: TimedRows, over: bool) -> TimedRows:
        """Returns the rows that were scanned: these, and some that are read again."""
        assert self.scan is not None
        scan = self.scan
        scan.over = over
        if self.events is not None:
            rows = self.events.again(scan, TimedRows(rows.table.select(self.columns), rows.ts, rows.ids))
        data = scan.data(scan.fields(rows.table), rows.ts.size)
        in_order = scan.run(rows.ts, rows.ids.astype(ID, copy=False), data)
        assert in_order, "events were sorted"
        return rows

    def _resume(self, rows: TimedRows) -> np.ndarray:
        """Where the next piece of an open frame begins: at its key's first event, or a short run that joins a gap."""
        assert self.scan is not None
        keyed, frames = self.scan.keyed, self.scan.frames
        firsts = np.zeros(self.key_count, np.int64)
        framing.first_instants(rows.ts, rows.ids, firsts)
        keys = frames[:, KEY]
        run = (frames[:, GAP] == 1) & (keyed[keys, ROWS] > 0)
        held = (frames[:, COUNT] > frames[:, SENT]) & (frames[:, SENT] > 0)
        return np.where(held, frames[:, AT], np.where(run, keyed[keys, START], firsts[keys]))

    def _numbered(self, frames: np.ndarray, carried: int, certain: int) -> np.ndarray:
        """The numbers of all frames by slot: the first `carried` have theirs, those behind `certain` are the last.

        These are gaps that only the end of the stream made certain.
        """
        first, self.next = self.next, self.next + frames.shape[0] - carried
        numbers = np.concatenate([self.numbers, np.arange(first, self.next)])
        if certain < frames.shape[0]:
            late = np.arange(certain, frames.shape[0])
            order = late[np.lexsort((frames[late, KEY], frames[late, BEGIN]))]
            numbers[order] = np.sort(numbers[late])
        return numbers

    def _report(self, frames: np.ndarray, numbers: np.ndarray, resume: np.ndarray) -> pa.Table:
        """The frames that have ended, and with fragments what is new of open ones, leave as a table."""
        assert self.scan is not None and self.clock is not None
        scan = self.scan
        gone = np.flatnonzero(frames[:, OPEN] != 1)
        chosen = np.union1d(gone, np.flatnonzero(self._sendable(resume))) if self.fragments else gone
        chosen = chosen[np.argsort(numbers[chosen], kind="stable")]
        try:
            extra = self._values(frames, chosen)
        except SwagError as why:
            if not self.forgiving:
                raise
            chosen, self.lost = np.array([slot for slot in chosen if self._has_values(frames, slot)], np.int64), why
            extra = self._values(frames, chosen)
        if self.follower is not None:
            self.follower.report(frames, chosen, scan.keyed)
        out = frames[chosen]
        empty = None
        if self.fragments:
            begun = np.flatnonzero((chosen < resume.size) & (out[:, SENT] > 0))
            out[begun, BEGIN] = resume[chosen[begun]]
            out[:, COUNT] -= out[:, SENT]
            empty, extra["final"] = out[:, COUNT] == 0, pa.array(out[:, OPEN] != 1)
            frames[chosen, SENT] = frames[chosen, COUNT]
        self.ended = numbers[gone], frames[gone, END]
        named = None if self.keys is None or self.key is None else (self.key, self.keys)
        fields = np.ascontiguousarray(out[:, : COUNT + 1].T)
        endless = out[:, OPEN] != 0 if scan.lengths.open else None
        table = frames_table(numbers[chosen], fields, named, self.clock, extra, empty, endless)
        if self.events is not None:
            self.events.drop(scan, frames)
        moves = scan.keep_open(gone)
        numbers[moves[1]] = numbers[moves[0]]
        self.numbers = numbers[: scan.count]
        if self.ties is not None:
            self.ties.report(chosen, moves, scan.count)
        return table

    def _values(self, frames: np.ndarray, chosen: np.ndarray) -> dict[str, pa.Array]:
        """What is said of frames in these slots beside their intervals."""
        assert self.scan is not None
        extra = self.scan.columns(self.scan.beside(chosen)) if self.scan.reported else {}
        return extra if self.events is None else self.events.values(extra, frames[chosen])

    def _has_values(self, frames: np.ndarray, slot: int) -> bool:
        try:
            self._values(frames, np.array([slot]))
        except SwagError:
            return False
        return True

    def _sendable(self, resume: np.ndarray) -> np.ndarray:
        """Open frames with something new to report.

        A gap waits while a run that may yet join it begins at the very instant the gap has got to: pieces are disjoint.
        Where its next piece will begin is noted in AT, which has no other use by then.
        """
        assert self.scan is not None
        frames, keyed = self.scan.frames, self.scan.keyed
        keys, new = frames[:, KEY], frames[:, COUNT] > frames[:, SENT]
        pending = (keyed[keys, ROWS] > 0) & (keyed[keys, SLOT] < 0) & (keyed[keys, START] == frames[:, END])
        held = np.flatnonzero(new & (frames[:, OPEN] == 1) & (frames[:, GAP] == 1) & pending)
        begun = held[(held < resume.size) & (frames[held, SENT] > 0)]
        frames[begun, AT] = resume[begun]
        starts = np.where(frames[held, SENT] > 0, frames[held, AT], frames[held, BEGIN])
        self.held = int(starts.min()) if held.size else None
        new[held] = False
        return new

    @property
    def due(self) -> int | None:
        """Once all events up to this time have come, time may end a run; no earlier. None: there is none to end."""
        if self.scan is None or self.scan.deadlines is None:
            return None
        return self.scan.deadlines.first(self.scan.keyed)

    @property
    def kept(self) -> int:
        """How many events are kept, other than those that wait: a quantile is read of them, or measures."""
        return 0 if self.events is None else self.events.ids.size

    @property
    def bytes(self) -> int:
        """What is kept of keys and of open frames, about."""
        if self.scan is None:
            return 0
        kept = 0 if self.events is None else self.events.bytes
        return self.scan.bytes + kept

    def rest(self) -> State:
        """What is remembered of no key and of no event: for who keeps those apart."""
        assert self.scan is not None
        header, arrays = self.scan.rest()
        waits = {} if self.ends is None else self.ends.state()[1]
        return {"next": self.next, "held": self.held, **header}, arrays | waits

    def go_on(self, rest: State, upto: int | None) -> None:
        """The rest is this, and the latest punctuation that."""
        assert self.scan is not None
        self.next, self.held, self.upto = rest[0]["next"], rest[0]["held"], upto
        self.scan.go_on(rest)
        if self.ends is not None:
            self.ends.restore(rest)

    def read(self, events: pa.Table) -> TimedRows:
        """Events that were taken before, here or elsewhere; their keys are known from now on."""
        _, instants = timed(events, self.ts)
        self.keys, ids = key_ids(events, self.key, self.keys)
        return TimedRows(events.select(self.columns), instants, ids)

    def state(self) -> State:
        """What is kept while frames are found: waiting events, punctuations, the scan's memory, types and keys."""
        parts = {"said": self.said, "scan": self.scan, "events": self.events, "ties": self.ties, "ends": self.ends}
        header, arrays = nested({"waiting": self.waiting, **parts})
        header |= {"next": self.next, "held": self.held, "upto": self.upto, "of_keys": list(self.of_keys.items())}
        if self.clock is None or self.schema is None:
            return header, arrays
        types = [pa.field("ts", self.clock.type), *self.schema]
        if self.keys is not None:
            types.insert(1, pa.field("key", self.keys.type))
        arrays |= {"types": table_to_array(pa.schema(types).empty_table()), "numbers": self.numbers}
        return header, arrays | keys_to_arrays(self.keys)

    def restore(self, state: State) -> None:
        """Goes on finding frames where the state was taken; a core that can not be made of it is left as it was."""
        header, arrays = state
        fresh = DetectorCore(self.spec, self.ts, self.key, self.fragments)
        fresh.forgiving = self.forgiving
        fresh.waiting.restore(part_of(state, "waiting"))
        fresh.said.restore(part_of(state, "said"))
        fresh.next, fresh.held, fresh.upto = header["next"], header["held"], header["upto"]
        fresh.of_keys = dict(header.get("of_keys", ()))
        if "types" in arrays:
            types = table_from_array(arrays["types"]).schema
            fresh.clock, front = Clock(types[0].type), 1 if self.key is None else 2
            fresh.schema, fresh.numbers = pa.schema(list(types)[front:]), arrays["numbers"]
            if self.key is not None:
                fresh.keys = keys_from_arrays(types[1].type, arrays)
            fresh.scan = SCANS[type(self.spec)](self.spec, fresh.schema, fresh.clock)
            fresh.scan.restore(part_of(state, "scan"))
        if fresh.events is not None:
            fresh.events.restore(part_of(state, "events"))
        if fresh.ends is not None:
            fresh.ends.restore(part_of(state, "ends"))
        if "ties" in header:
            fresh.ties = Ties()
            fresh.ties.restore(part_of(state, "ties"))
        vars(self).update(vars(fresh))
