"""Detection while events arrive: push in any order, punctuate, and the frames decided so far come out.

Events wait until a punctuation promises that nothing older comes; then they are sorted and taken by the same scan as
stored events (finding/scans.py), whose state per key is all that is kept of them (Maier et al. 2012, 4.1 and 4.2).
"""

import copy
from typing import Any

import numpy as np
import pyarrow as pa

from frames.finding.aggregate_scan import scan_of
from frames.finding.intake import NO_KEY, NO_TIME, key_ids, timed
from frames.finding.promises import END_OF_TIME, START_OF_TIME, Promise, check_promise
from frames.finding.quantiles import Kept
from frames.finding.scans import Scan
from frames.finding.ties import Ties
from frames.owning.fingerprint import Fingerprint
from frames.owning.origin import Origin
from frames.specs import Spec, check_spec
from frames.tables import before_events, check_key, frames_table
from kernels.frames import framing
from kernels.frames.framing import AT, BEGIN, COUNT, END, GAP, GAP_ROWS, GAP_START, KEY, OPEN, ROWS, SENT, SLOT, START
from swag.arguments import check_flag, check_name
from swag.errors import BadEvents, BadType, SwagError
from swag.tables.columns import Clock, as_table, column
from swag.tables.keys import KeyTable


class Detector:
    """Frames of a stream. The result does not depend on how the stream is cut, or on the order between punctuations.

    fragments=True reports a frame that is certain but still open piece by piece, at every punctuation: pieces of one
    frame have one frame_id, are disjoint and in order; the last is marked `final` (with rows 0 and no interval if
    nothing is left to report).

    >>> import frames as fr
    >>> detector = fr.Detector(fr.Threshold("load", ">", 0.3))
    >>> detector.push({"ts": [1, 2, 3], "load": [0.5, 0.6, 0.1]})
    >>> detector.punctuate(3).to_pylist()
    [{'frame_id': 0, 'start': 1, 'end': 2, 'rows': 2}]
    >>> detector.finish().num_rows
    0
    """

    def __init__(self, spec: Spec, *, ts: str = "ts", key: str | None = None, fragments: bool = False) -> None:
        check_spec(spec)
        check_name(ts, "ts", 'ts="ts"')
        check_key(key, spec)
        check_flag(fragments, "fragments")
        self.spec, self.ts, self.key, self.fragments = spec, ts, key, fragments
        self._waiting: list[tuple[np.ndarray, np.ndarray, pa.Table]] = []
        self._clock: Clock | None = None
        self._schema: pa.Schema | None = None
        self._keys: KeyTable | None = None
        self._scan: Scan | None = None
        self._kept = Kept(spec)
        self._numbers = np.zeros(0, np.int64)  # of the open frames, by slot
        self._next = 0
        self._upto: int | None = None  # the latest punctuation
        self._said = Promise()  # the punctuations before there was a type of ts
        self._seen = Fingerprint()
        self._ties: Ties | None = None  # see `with_skips`
        self._over = False
        self._held: int | None = None  # where the earliest piece begins that could have been reported, but waits

    @property
    def buffered(self) -> int:
        """Events that wait for a punctuation."""
        return sum(instants.size for instants, _, _ in self._waiting)

    @property
    def promised(self) -> int | None:
        """The latest t (in the unit of ts) such that no frame, or piece of one, with start <= t is still to come."""
        if self._over:
            return END_OF_TIME
        if self._upto is None or self._scan is None:
            return None
        state, upto = self._scan.state, int(self._upto)
        pending = (state[:, ROWS] > 0) & (state[:, SLOT] < 0) if self.fragments else state[:, ROWS] > 0
        starts = [state[pending, START]] + ([] if self.fragments else [state[state[:, GAP_ROWS] > 0, GAP_START]])
        held = [] if self._held is None else [self._held - 1]
        t = min([upto, *(int(s.min()) - 1 for s in starts if s.size), *held])
        return None if t < START_OF_TIME else t

    def push(self, events: Any) -> None:
        """Take events, in any order, none at or before the last punctuation. All or nothing."""
        if self._over:
            raise BadEvents("the stream was finished; nothing can be pushed any more.", "make a new fr.Detector")
        table = as_table(events)
        clock, instants = timed(table, self.ts)
        for name in self.spec.columns:
            column(table, name, f"{type(self.spec).__name__} reads")
        wanted = table.select(list(dict.fromkeys(self.spec.columns)))
        self._check(clock, wanted.schema)
        upto = self._upto if self._clock is not None else self._said.instant(clock)
        check_promise(clock, instants, upto, "event", "punctuate later, or drop late events before pushing")
        scan = self._scan or scan_of(self.spec, wanted.schema, clock.unit)
        scan.data(wanted, instants.size)  # a column of a wrong type, or one that does not fit, is refused now
        keys, ids = key_ids(table, self.key, self._keys)
        self._clock, self._schema, self._keys, self._upto, self._scan = clock, wanted.schema, keys, upto, scan
        self._seen.add(wanted, self.spec.columns, instants, ids, keys)
        if instants.size:
            self._waiting.append((instants, ids, wanted))

    def punctuate(self, t: Any) -> pa.Table:
        """No event with ts <= t is still to come. Returns the frames (or pieces) that this decides."""
        if self._clock is None:
            self._said.add(t, None)
            return self._noted(before_events(self.spec, self.key, self.fragments))
        instant = self._clock.instant(t, "t")
        upto = instant if self._upto is None else max(instant, self._upto)
        table = self._advance(upto, False)
        self._upto = upto
        return self._noted(table)

    def finish(self) -> pa.Table:
        """The stream is over: the rest of its frames."""
        if self._clock is None:
            table = before_events(self.spec, self.key, self.fragments)
        else:
            table = self._advance(END_OF_TIME, True)
        self._upto, self._over = END_OF_TIME, True
        return self._noted(table)

    def punctuate_before(self, t: int) -> pa.Table:
        """No event with ts < t, in the unit of ts, is still to come."""
        return self.punctuate(t - 1) if t > START_OF_TIME else self._noted(self._advance(None, False))

    def with_skips(self) -> "Detector":
        """The same, with `skips`: for who fills frames with their own events."""
        self._ties = Ties()
        return self

    @property
    def skips(self) -> np.ndarray:
        """Of the frames that came out last: how many events of their key that share their start came before them."""
        assert self._ties is not None
        return self._ties.reported

    def _noted(self, table: pa.Table) -> pa.Table:
        return Origin.now(self.spec, self.ts, self.key, self._seen, self._over).noted(table)

    def _check(self, clock: Clock, schema: pa.Schema) -> None:
        if self._clock is not None and clock != self._clock:
            raise BadType(
                f'"{self.ts}" is {clock.type}, but has been {self._clock.type} so far.',
                f"cast it to {self._clock.type}",
            )
        for name in schema.names if self._schema is not None else ():
            before, now = self._schema.field(name).type, schema.field(name).type  # type: ignore[union-attr]
            if before != now:
                raise BadType(f'"{name}" is {now}, but has been {before} so far.', f"cast it to {before}")

    def _advance(self, upto: int | None, over: bool) -> pa.Table:
        assert self._scan is not None
        scan, carried = self._scan, self._scan.count
        waiting, saved = self._waiting, {name: copy.deepcopy(getattr(scan, name)) for name in scan.may_fail}
        instants, ids, table = self._take(upto)
        resume = self._resume(instants, ids)
        scan.add_keys(1 if self._keys is None else max(self._keys.count, 1))
        try:
            in_order = scan.run(instants, ids, scan.data(table, instants.size))
        except SwagError:  # an integer sum that does not fit: everything as it was
            self._waiting = waiting
            for name, value in saved.items():
                setattr(scan, name, value)
            raise
        assert in_order, "events were sorted"
        certain = scan.count
        ties = self._ties and self._ties.among(instants, ids, scan.state.shape[0])
        if ties:
            ties.add_frames(scan.frames[carried:])
        scan.frames[carried:, SENT] = 0  # it has been LEAD until now
        self._kept.add(table, ids, scan.frames[carried:])
        if over:
            scan.finish()
        else:
            scan.touch()
        if ties:
            ties.add_frames(scan.frames[certain:])
            ties.add_runs(scan.state)
        return self._report(resume, certain)

    def _take(self, upto: int | None) -> tuple[np.ndarray, np.ndarray, pa.Table]:
        """The waiting events with ts <= upto, in order; none, if nothing is promised."""
        assert self._schema is not None
        if not self._waiting or upto is None:
            return NO_TIME, NO_KEY, self._schema.empty_table()
        instants = np.concatenate([each[0] for each in self._waiting])
        ids = np.concatenate([each[1] for each in self._waiting])
        table = pa.concat_tables([each[2] for each in self._waiting])
        order = np.argsort(instants, kind="stable")
        now = int(np.searchsorted(instants[order], upto, side="right"))
        later = np.sort(order[now:])  # in arrival order
        self._waiting = []
        if later.size:
            self._waiting = [(instants[later], ids[later] if ids.size else ids, table.take(pa.array(later)))]
        order = order[:now]
        return instants[order], ids[order] if ids.size else ids, table.take(pa.array(order))

    def _resume(self, instants: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Where the next piece of an open frame begins: at its key's first event, or a short run that joins a gap."""
        assert self._scan is not None
        state, frames = self._scan.state, self._scan.frames
        firsts = np.zeros(1 if self._keys is None else max(self._keys.count, 1), np.int64)
        framing.first_instants(instants, ids, firsts)
        keys = frames[:, KEY]
        run = (frames[:, GAP] == 1) & (state[keys, ROWS] > 0)
        held = (frames[:, COUNT] > frames[:, SENT]) & (frames[:, SENT] > 0)
        return np.where(held, frames[:, AT], np.where(run, state[keys, START], firsts[keys]))

    def _report(self, resume: np.ndarray, certain: int) -> pa.Table:
        assert self._scan is not None and self._clock is not None
        scan, frames = self._scan, self._scan.frames
        numbers = np.concatenate([self._numbers, self._next + np.arange(frames.shape[0] - resume.size)])
        late = np.arange(certain, frames.shape[0])  # gaps that only the end of the stream made certain
        order = late[np.lexsort((frames[late, KEY], frames[late, BEGIN]))]
        numbers[order] = np.sort(numbers[late])
        self._next += frames.shape[0] - resume.size
        closed = frames[:, OPEN] == 0
        chosen = np.flatnonzero(closed | self._sendable(resume) if self.fragments else closed)
        chosen = chosen[np.argsort(numbers[chosen], kind="stable")]
        extra = self._kept.values(scan.columns(scan.beside(chosen)), frames[chosen])
        out = frames[chosen]
        empty = None
        if self.fragments:
            begun = np.flatnonzero((chosen < resume.size) & (out[:, SENT] > 0))
            out[begun, BEGIN] = resume[chosen[begun]]
            out[:, COUNT] -= out[:, SENT]
            empty, extra["final"] = out[:, COUNT] == 0, pa.array(closed[chosen])
            frames[chosen, SENT] = frames[chosen, COUNT]
        if self._ties is not None:
            self._ties.report(chosen, closed)
        named = None if self._keys is None or self.key is None else (self.key, self._keys)
        table = frames_table(
            numbers[chosen], np.ascontiguousarray(out[:, : COUNT + 1].T), named, self._clock, extra, empty
        )
        self._kept.drop(scan.state[:, ROWS], frames)
        self._numbers = numbers[~closed]
        scan.keep_open()
        return table

    def _sendable(self, resume: np.ndarray) -> np.ndarray:
        """Open frames with something new to report.

        A gap waits while a run that may yet join it begins at the very instant the gap has got to: pieces are disjoint.
        Where its next piece will begin is noted in AT, which has no other use by then.
        """
        assert self._scan is not None
        frames, state = self._scan.frames, self._scan.state
        keys, new = frames[:, KEY], frames[:, COUNT] > frames[:, SENT]
        pending = (state[keys, ROWS] > 0) & (state[keys, SLOT] < 0) & (state[keys, START] == frames[:, END])
        held = np.flatnonzero(new & (frames[:, OPEN] == 1) & (frames[:, GAP] == 1) & pending)
        begun = held[(held < resume.size) & (frames[held, SENT] > 0)]
        frames[begun, AT] = resume[begun]
        starts = np.where(frames[held, SENT] > 0, frames[held, AT], frames[held, BEGIN])
        self._held = int(starts.min()) if held.size else None
        new[held] = False
        return new
